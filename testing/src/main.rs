//! `random-programs`: any number of random programs, computed in every way, by one process a core.
//!
//! The processes are this program again, each told on its standard input which seeds are next. One that a kernel takes down
//! with it is started again, and what it did is done again program by program, so that the one at fault is found.

use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::verify::Tools;
use stencilc_runtime::{Error, Result};
use stencilc_testing::batch::{Subject, Tally};

/// Random programs, computed in every way there is and compared to the last bit.
#[derive(Parser)]
struct Args {
    /// How many programs.
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// The seed of the first; the next has the next.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What they are about.
    #[arg(long, value_enum, default_value_t = Subject::All)]
    subject: Subject,
    /// What kernels run on: `cpu` is the interpreter and the evaluator alone.
    #[arg(long, value_enum, default_value_t = On::Emulate)]
    device: On,
    /// Processes at once; as many as there are processors unless told otherwise.
    #[arg(long)]
    jobs: Option<usize>,
    /// Begin nothing new after so many minutes. What has not ended half a minute later is given up, and said.
    #[arg(long)]
    minutes: Option<f64>,
    /// Where programs that fail are written.
    #[arg(long, default_value = "failures")]
    failures: PathBuf,
    /// Programs whose kernels are compiled together.
    #[arg(long, default_value_t = 60)]
    batch: u64,
    /// Do what standard input says, in this process.
    #[arg(long, hide = true)]
    worker: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum On {
    Emulate,
    /// Kernels on the CPU, as fast as it can.
    Native,
    Cuda,
    Cpu,
}

impl On {
    fn open(self) -> Result<Tools> {
        Ok(match self {
            On::Emulate => Tools::emulated(&Compiler::find()?, Settings::default()),
            On::Native => Tools::emulated(&Compiler::find()?, Settings::native()),
            On::Cuda => Tools::on_gpu(Arc::new(Gpu::open(0)?)),
            On::Cpu => Tools::default(),
        })
    }
}

/// What is printed in the end.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    tally: Tally,
    /// Processes that a kernel took down with it.
    crashes: u64,
    /// Programs that were begun, and given up when the time was over.
    given_up: u64,
    /// Seconds from beginning to end.
    wall: f64,
    /// The seed to go on with.
    next_seed: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if args.worker { work(&args) } else { lead(&args) };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", error.message);
            ExitCode::from(2)
        }
    }
}

fn broken(error: &std::io::Error) -> Error {
    Error::input(format!("a process cannot be talked to: {error}"))
}

/// Answers each line, two seeds, with a line: the tally of the seeds between.
fn work(args: &Args) -> Result<ExitCode> {
    let tools = args.device.open()?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| broken(&error))?;
        let mut seeds = line.split(' ').map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(end))) = (seeds.next(), seeds.next()) else {
            return Err(Error::call(format!("`{line}` is not two seeds")));
        };
        let tally = args.subject.run(first..end, &tools)?;
        let answer = serde_json::to_string(&tally).map_err(|error| Error::check(error.to_string()))?;
        println!("{answer}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A process that works.
struct Worker {
    child: Arc<Mutex<Child>>,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Worker {
    fn start(args: &Args) -> Result<Worker> {
        let own = std::env::current_exe().map_err(|error| broken(&error))?;
        let name = |value: Option<PossibleValue>| value.map_or(String::new(), |value| value.get_name().to_owned());
        let (device, subject) = (name(args.device.to_possible_value()), name(args.subject.to_possible_value()));
        let mut command = Command::new(own);
        command.args(["--worker", "--subject", &subject, "--device", &device]);
        // There are as many processes as processors: one thread each. What is not known elsewhere is not kept either.
        command.env("RAYON_NUM_THREADS", "1").env("STENCILC_CACHE", "off");
        if std::env::var_os("TMPDIR").is_none() && memory_is_executable() {
            command.env("TMPDIR", "/dev/shm");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| broken(&error))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::check("a process without input or output"));
        };
        Ok(Worker { child: Arc::new(Mutex::new(child)), to, from: BufReader::new(from) })
    }

    /// The tally of some seeds; nothing if the process ended over it.
    fn ask(&mut self, seeds: &Range<u64>) -> Option<Tally> {
        writeln!(self.to, "{} {}", seeds.start, seeds.end).ok()?;
        let mut line = String::new();
        self.from.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    fn stop(self) {
        let Worker { child, to, from } = self;
        drop((to, from));
        // It has nothing left to read, and ends; how it did says no more than its answers.
        let _ = child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

/// Whether there is a file system in memory from which libraries can be loaded.
fn memory_is_executable() -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        words.next() == Some("/dev/shm")
            && words.nth(1).is_some_and(|options| !options.split(',').any(|own| own == "noexec"))
    })
}

/// What a process is at work on.
struct Work {
    child: Arc<Mutex<Child>>,
    seeds: Range<u64>,
    since: Instant,
}

/// What processes are at work on.
#[derive(Default)]
struct Busy {
    by_job: Mutex<BTreeMap<usize, Work>>,
    is_over: AtomicBool,
    /// Whether what is still at work is given up.
    is_late: AtomicBool,
}

impl Busy {
    /// How long a batch may take before it is told.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// How long what was begun in time may take when the time is over.
    const GRACE: Duration = Duration::from_secs(30);

    fn at_work(&self) -> MutexGuard<'_, BTreeMap<usize, Work>> {
        self.by_job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, job: usize, worker: &Worker, seeds: &Range<u64>) {
        let work = Work { child: Arc::clone(&worker.child), seeds: seeds.clone(), since: Instant::now() };
        self.at_work().insert(job, work);
        // It may have been given up between.
        self.give_up_if_late();
    }

    fn end(&self, job: usize) {
        self.at_work().remove(&job);
    }

    fn give_up_if_late(&self) {
        if self.is_late.load(Ordering::Relaxed) {
            for Work { child, .. } in self.at_work().values() {
                // One that has ended cannot be killed, and need not.
                let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
        }
    }

    /// Tells of batches that take long, each minute of each, until all is over or late.
    fn watch(&self, bar: &ProgressBar, deadline: Option<Instant>) {
        let mut told = BTreeMap::new();
        let say = |text: String| bar.suspend(|| eprintln!("note: {text}"));
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            for Work { seeds, since, .. } in self.at_work().values() {
                let minutes = since.elapsed().as_secs() / Self::PATIENCE.as_secs();
                if minutes > 0 && told.insert(seeds.start, minutes) != Some(minutes) {
                    say(format!("{minutes} min over the seeds {} to {}", seeds.start, seeds.end - 1));
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline + Self::GRACE)
                && !self.is_late.swap(true, Ordering::Relaxed)
            {
                for Work { seeds, .. } in self.at_work().values() {
                    say(format!("given up: the seeds {} to {}", seeds.start, seeds.end - 1));
                }
                self.give_up_if_late();
            }
        }
    }
}

/// Gives work to processes, and sums up.
fn lead(args: &Args) -> Result<ExitCode> {
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let start = Instant::now();
    let deadline = args.minutes.map(|minutes| start + Duration::from_secs_f64(60.0 * minutes.max(0.0)));
    let end = args.seed.saturating_add(args.programs);
    let [next, crashes, given_up] = [args.seed, 0, 0].map(AtomicU64::new);
    let total = Mutex::new(Tally::default());
    let bar = ProgressBar::new(args.programs);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len}, {per_sec}, {eta} left{msg}") {
        bar.set_style(style);
    }
    let add = |mut tally: Tally| -> Result<()> {
        write(&args.failures, std::mem::take(&mut tally.failed))?;
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        bar.inc(tally.programs);
        *total = std::mem::take(&mut *total).and(tally);
        if total.failures > 0 {
            bar.set_message(format!(", {} failed", total.failures));
        }
        Ok(())
    };
    // The seeds of the next batch, unless it is late or all are done.
    let take = || {
        let in_time = deadline.is_none_or(|deadline| Instant::now() < deadline);
        let batch = args.batch.max(1);
        let taken = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| {
            (in_time && at < end).then(|| end.min(at.saturating_add(batch)))
        });
        taken.ok().map(|at| at..end.min(at.saturating_add(batch)))
    };
    let busy = Busy::default();
    std::thread::scope(|scope| {
        scope.spawn(|| busy.watch(&bar, deadline));
        let threads: Vec<_> = (0..jobs)
            .map(|job| {
                let (busy, take, add, crashes, given_up) = (&busy, &take, &add, &crashes, &given_up);
                scope.spawn(move || -> Result<()> {
                    let mut worker = Worker::start(args)?;
                    while let Some(seeds) = take() {
                        busy.begin(job, &worker, &seeds);
                        let answer = worker.ask(&seeds);
                        busy.end(job);
                        if let Some(tally) = answer {
                            add(tally)?;
                            continue;
                        }
                        if busy.is_late.load(Ordering::Relaxed) {
                            given_up.fetch_add(seeds.end - seeds.start, Ordering::Relaxed);
                            break;
                        }
                        crashes.fetch_add(1, Ordering::Relaxed);
                        worker.stop();
                        worker = one_by_one(args, seeds, add)?;
                    }
                    worker.stop();
                    Ok(())
                })
            })
            .collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(Error::check("a thread ended early"))));
        let ended: Vec<Result<()>> = ended.collect();
        busy.is_over.store(true, Ordering::Relaxed);
        ended.into_iter().collect::<Result<Vec<()>>>()
    })?;
    bar.finish_and_clear();
    let tally = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = tally.failures > 0;
    let [crashes, given_up, next_seed] = [crashes, given_up, next].map(AtomicU64::into_inner);
    let summary = Summary { tally, crashes, given_up, wall: start.elapsed().as_secs_f64(), next_seed };
    let text = serde_json::to_string_pretty(&summary).map_err(|error| Error::check(error.to_string()))?;
    println!("{text}");
    Ok(if failed { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// Writes down programs that failed.
fn write(folder: &Path, failed: Vec<(String, String)>) -> Result<()> {
    for (name, text) in failed {
        let file = folder.join(format!("{name}.stn"));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text));
        written.map_err(|error| Error::input(format!("{} cannot be written: {error}", file.display())))?;
    }
    Ok(())
}

/// Programs over which a process ended, each by itself; and a process to go on with.
fn one_by_one(args: &Args, seeds: Range<u64>, add: &impl Fn(Tally) -> Result<()>) -> Result<Worker> {
    let mut worker = Worker::start(args)?;
    let mut survived = seeds.end - seeds.start < 2;
    for seed in seeds {
        if let Some(tally) = worker.ask(&(seed..seed + 1)) {
            survived = true;
            add(tally)?;
            continue;
        }
        worker.stop();
        worker = Worker::start(args)?;
        add(args.subject.crashed(seed))?;
    }
    if !survived {
        return Err(Error::check("no process works: its messages are above"));
    }
    Ok(worker)
}
