//! `stencilc profile`: what hardware counters say of kernels, beside their times.

mod table;
mod ways;

use crate::args::given::Names;
use crate::args::kernels::{KernelsArgs, Named};
use crate::args::mesh::MeshArgs;
use crate::args::method::WARMUPS;
use crate::args::shapes::Shapes;
use crate::bench::mesh;
use crate::bench::open;
use crate::terminal::{self, Progress};
use crate::{input, output};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::Device;
use stencilc_runtime::bench::Case;
use stencilc_runtime::bench::limit::Limit;
use stencilc_runtime::bench::log::Log;
use stencilc_runtime::bench::rows::{MachineFacts, Method, Row, Subject};
use stencilc_runtime::bench::sweep::{STEPS, Sweep, Swept};
use stencilc_runtime::device::Platform;
use stencilc_runtime::profile::metrics::{Counters, METRICS, Metric};
use stencilc_runtime::profile::{Launcher, Ncu, Profile};
use stencilc_runtime::{Error, Fault, Result};

/// Steps of a kernel: those of measuring it, and one in which it is counted.
const ALL_STEPS: usize = STEPS + 1;

/// Arguments of `profile`.
#[derive(clap::Args)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    kernels: KernelsArgs,
    /// Blocks of threads: usual (the strategy's own), few (four more), thesis (powers of two, 32 along x and more, 32 to 512
    /// threads), all (any powers of two), or shapes; several with commas between them
    #[arg(long, value_name = "SHAPES", value_delimiter = ',', default_value = "usual")]
    blocks: Vec<Shapes>,
    /// How many launches of each kernel are timed, without the profiler
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Do not compare results with the interpreter
    #[arg(long)]
    no_verify: bool,
    /// The program of Nsight Compute; if not given, what the variable STENCILC_NCU names, or the `ncu` on PATH or in a CUDA
    /// toolkit
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::ExecutablePath)]
    ncu: Option<PathBuf>,
    #[command(flatten)]
    of_program: ways::ProgramArgs,
    #[command(flatten)]
    over: MeshArgs,
    /// How long Nsight Compute may take for one kernel
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    /// A file for profiles as they come, one of JSON a line; what it holds already is not counted again
    #[arg(short, long = "output", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// One stencil on one grid in one precision, and what came of its kernels.
pub struct Done {
    subject: Subject,
    limit: Option<Limit>,
    swept: Swept,
    /// The fastest first.
    profiles: Vec<Profile>,
    /// Kernels that could not be counted in, and why.
    failed: Vec<(Row, String)>,
    found: usize,
}

/// Counts in kernels.
///
/// # Errors
/// There is no GPU or no Nsight Compute, or counters may not be read; a kernel could not be counted in, or differs from the
/// interpreter; or something is wrong with the file, the call or the grid.
pub fn profile(args: &Args, json: bool) -> Result<()> {
    let input = input::load(&args.kernels.file)?;
    let (program, stencil) = (args.of_program.program.as_deref(), args.kernels.stencil.as_deref());
    if let Some(subject) = mesh::Subject::of(&input, program, stencil, false)? {
        return ways::over_a_mesh(args, &subject, json);
    }
    args.over.refuse()?;
    if let Some(program) = input.program(program, stencil)? {
        return ways::of_a_program(args, &input, program, json);
    }
    let stencil = input.stencil(stencil)?;
    args.names.refuse_of_programs(&stencil.name)?;
    let mut counting = Counting::new(args)?;
    let platform = open(counting.device)?;
    let machine = platform.facts();
    let mut log = args.output.as_deref().map(Log::open).transpose()?;
    output::tell_dropped(log.as_ref());
    let grids = args.kernels.grids(&platform)?;
    let choices = |own| Ok((own, args.kernels.choices(&args.blocks, own)?));
    let of_each: Vec<_> = args.kernels.precisions().into_iter().map(choices).collect::<Result<_>>()?;
    let all: usize = of_each.iter().map(|(_, choices)| choices.len() * grids.len()).sum();
    let progress = Progress::new(all * ALL_STEPS, "counting");
    let (mut done, mut told) = (Vec::new(), BTreeSet::new());
    for (precision, choices) in &of_each {
        progress.aside(|| input.warn_of_numbers(stencil, *precision));
        for grid in &grids {
            let problem = args.kernels.problem(&input, stencil, *precision, grid)?;
            progress.aside(|| args.kernels.tell_drawn(&problem, &mut told));
            let case = Case::new(problem, &platform, args.method())?;
            let subject = case.subject(&args.kernels.file, &input.source.text, grid.name.clone(), args.kernels.seed);
            let work = Work { args, platform: &platform, machine: &machine, case: &case, grid };
            let one = work.done(subject, choices, (&mut counting, &mut log), &progress)?;
            if !json {
                progress.aside(|| terminal::print(&table::text(&one, &machine, &counting.ncu)))?;
            }
            done.push(one);
        }
    }
    drop(progress);
    report(args, &machine, &counting.ncu, &done, json)
}

/// What kernels run on, which has counters.
fn device(args: &Args) -> Result<Device> {
    let help = "counters are those of a GPU; `stencilc bench` measures the interpreter, too";
    match Device::choose(args.kernels.device) {
        (Device::Cpu, Some(no_gpu)) => Err(Error::input(format!("nothing can be counted: {}", no_gpu.message))
            .help(no_gpu.help.unwrap_or_else(|| help.to_owned()))),
        (Device::Cpu, None) => Err(Error::call("the interpreter has no hardware counters").help(help)),
        (device, _) => Ok(device),
    }
}

/// Nsight Compute, and what is counted with it.
struct Counting {
    ncu: Ncu,
    device: Device,
    metrics: Vec<Metric>,
    patience: Duration,
}

impl Counting {
    fn new(args: &Args) -> Result<Self> {
        let device = device(args)?;
        let patience = Duration::from_secs(args.timeout.into());
        Ok(Self { ncu: Ncu::find(args.ncu.as_deref())?, device, metrics: METRICS.to_vec(), patience })
    }

    /// Counts in the first launch of a kernel by this program, which is given these words; nothing if it launches none.
    fn count(&mut self, words: Vec<String>, kernel: &str) -> Result<Option<Counters>> {
        let program = std::env::current_exe()
            .map_err(|error| Error::input(format!("this program's own file is not to be found: {error}")))?;
        let launcher = Launcher { program, arguments: words, kernel: kernel.to_owned() };
        self.ncu.count(&launcher, &mut self.metrics, self.patience)
    }
}

/// The kernels of one case, to be counted in.
struct Work<'a> {
    args: &'a Args,
    platform: &'a Platform,
    machine: &'a MachineFacts,
    case: &'a Case,
    grid: &'a Named,
}

/// What counts, and the file that has what was counted before.
type To<'a> = (&'a mut Counting, &'a mut Option<Log<Profile>>);

impl Work<'_> {
    fn done(&self, subject: Subject, choices: &[Choices], to: To, progress: &Progress) -> Result<Done> {
        let Work { platform, machine, case, .. } = *self;
        let sweep = Sweep { platform, machine, case, subject: &subject, method: self.args.method() };
        let swept = sweep.run(choices, &mut None, &|steps| progress.advance(steps))?;
        let rows: Vec<Row> = swept.fastest().into_iter().cloned().collect();
        // Those that have no times are not counted in.
        progress.advance(choices.len().saturating_sub(rows.len()));
        let mut done =
            Done { subject, limit: case.limit.clone(), swept, profiles: Vec::new(), failed: Vec::new(), found: 0 };
        for row in rows {
            self.add(row, &mut done, (&mut *to.0, &mut *to.1))?;
            progress.advance(1);
        }
        Ok(done)
    }

    /// Counts in one kernel, or takes what is in the file.
    fn add(&self, row: Row, done: &mut Done, (counting, log): To) -> Result<()> {
        let key = Profile::key_of(&row, &counting.ncu);
        if let Some(found) = log.as_ref().and_then(|log| log.get(&key)) {
            done.profiles.push(found.clone());
            done.found += 1;
            return Ok(());
        }
        let kernel = row.kernel.name.as_deref().unwrap_or_default();
        match counting.count(self.words(&row, counting.device), kernel) {
            Ok(Some(counters)) => {
                let profile = Profile::new(row, &counting.ncu, counters);
                if let Some(log) = log {
                    log.append(&profile)?;
                }
                done.profiles.push(profile);
            }
            Ok(None) => {
                let reason = format!("Nsight Compute saw no launch of `{kernel}` on a GPU");
                done.failed.push((row, reason));
            }
            Err(error) if error.fault == Fault::Check => done.failed.push((row, error.message)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What `run` is told, so that it launches the kernel.
    fn words(&self, row: &Row, device: Device) -> Vec<String> {
        let Subject { file, stencil, parameters, seed, .. } = &row.subject;
        let (seed, device) = (seed.to_string(), device.to_string());
        let fixed = ["run", file, "--stencil", stencil, "--seed", &seed, "--device", &device, "--json"];
        let settings = parameters.iter().flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]);
        let options = shlex::split(&row.kernel.options).unwrap_or_default();
        let fixed = fixed.into_iter().map(str::to_owned);
        fixed.chain(options).chain(self.grid.words.iter().cloned()).chain(settings).collect()
    }
}

impl Args {
    fn method(&self) -> Method {
        Method { runs: self.runs as usize, warmups: WARMUPS, hot: false, verify: !self.no_verify }
    }
}

fn report(args: &Args, machine: &MachineFacts, ncu: &Ncu, done: &[Done], json: bool) -> Result<()> {
    let sum = |count: &dyn Fn(&Done) -> usize| -> usize { done.iter().map(count).sum() };
    let counted = sum(&|done| done.profiles.len());
    let failed = sum(&|done| done.failed.len() + done.swept.failed().count());
    let refused = sum(&|done| done.swept.refused.values().sum());
    let found = sum(&|done| done.found);
    if json {
        let cases: Vec<Value> = done.iter().map(case_as_json).collect();
        let totals = json!({ "counted": counted, "found": found, "refused": refused, "failed": failed });
        terminal::json(&json!({ "machine": machine, "profiler": ncu, "cases": cases, "totals": totals }))?;
    } else {
        let parts = [(counted, "counted"), (failed, "failed"), (refused, "left out")];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let mut text: Vec<String> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        if let Some(path) = args.output.as_ref().filter(|_| found > 0) {
            text.push(format!("{found} of the profiles were in {} before", path.display()));
        }
        terminal::print(&format!("in all: {}\n", text.join(", ")))?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Error::check(format!("{failed} of {} failed", terminal::count(counted + failed, "kernel")))),
    }
}

fn case_as_json(done: &Done) -> Value {
    let uncounted = done.failed.iter().map(|(row, reason)| (row, reason.as_str()));
    let failed = done.swept.failed().chain(uncounted);
    let failed = failed.map(|(row, reason)| json!({ "options": row.kernel.options, "reason": reason }));
    let refused = done.swept.refused.iter().map(|(reason, kernels)| json!({ "reason": reason, "kernels": kernels }));
    json!({
        "subject": done.subject,
        "profiles": done.profiles,
        "failed": failed.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}
