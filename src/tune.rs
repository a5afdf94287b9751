//! `stencilc tune`: finds the fastest kernel of a stencil, or plan of a program, on a grid, and remembers it for `run` and
//! `build`.

mod mesh;
mod program;
mod wide_search;

use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::args::method::MethodArgs;
use crate::args::shapes::Shapes;
use crate::audience::Audience;
use crate::bench::mesh::Subject as OverMesh;
use crate::bench::{open, table, with_kernels};
use crate::input::{self, Input};
use crate::terminal::{self, Progress};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::Device;
use stencilc_runtime::bench::rows::{MachineFacts, Row, Subject};
use stencilc_runtime::bench::sweep::Sweep;
use stencilc_runtime::bench::{Case, hash};
use stencilc_runtime::clock::{Budget, Clock, Watch};
use stencilc_runtime::device::Platform;
use stencilc_runtime::measure::Asked;
use stencilc_runtime::tune::database::{Database, Entry, VARIABLE, name_of};
use stencilc_runtime::tune::search::{self, Found};
use stencilc_runtime::tune::{Tuned, Tuner};
use stencilc_runtime::{Error, Result};
use wide_search::WideSearch;

/// Arguments of `tune`.
#[derive(clap::Args)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    search: WideSearch,
    /// Blocks of threads that are searched: usual, few, thesis, all, or shapes; several with commas between them
    #[arg(long, value_name = "SHAPES", value_delimiter = ',', default_value = "thesis")]
    blocks: Vec<Shapes>,
    /// Seconds for the search, on each grid and in each precision: beside fields, the limit, the interpreter, and what is taken without a
    /// search, which is always measured
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = budget)]
    budget: f64,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    of_program: program::ProgramArgs,
    #[command(flatten)]
    of_mesh: MeshArgs,
    /// Say what is the fastest, but do not remember it
    #[arg(long)]
    forget: bool,
}

fn budget(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e6).contains(&seconds) => Ok(seconds),
        _ => Err("a budget is a number of seconds, as in --budget 10".to_owned()),
    }
}

/// Where what is found is kept, if it is.
struct Memory<'a> {
    database: Option<Database>,
    machine: &'a MachineFacts,
    source: String,
}

impl Memory<'_> {
    /// Keeps what was found, if anything was. Gives the file's path.
    fn keep(&self, entry: Option<Entry>) -> Result<Option<PathBuf>> {
        let Self { database, machine, source } = self;
        let keep = |(database, entry): (&Database, Entry)| {
            database.keep(name_of(machine), machine.arch.as_deref(), source, entry)
        };
        database.as_ref().zip(entry).map(keep).transpose()
    }
}

/// What came of one grid in one precision.
struct Done {
    subject: Subject,
    tuned: Tuned,
    /// Among how many kernels was searched, and for how many seconds.
    among: usize,
    seconds: f64,
    /// The file that remembers it.
    kept: Option<PathBuf>,
}

/// Tunes.
///
/// # Errors
/// No kernel works, or one differs from the interpreter; or something is wrong with the file, the call, the grid or the
/// device, or what was found cannot be kept.
pub fn tune(args: &Args, json: bool) -> Result<()> {
    tuned(args, &input::load(&args.search.0.file)?, &mut Audience::of_stdout(json))
}

/// Tunes what is meant of a text that was read.
///
/// # Errors
/// As [`tune`].
pub fn tuned(args: &Args, input: &Input, audience: &mut Audience) -> Result<()> {
    let kernels = &args.search.0;
    let (program, stencil) = (args.of_program.program.as_deref(), kernels.stencil.as_deref());
    if let Some(subject) = OverMesh::of(input, program, stencil, false)? {
        return mesh::tune(args, input, &subject, audience);
    }
    args.of_mesh.refuse()?;
    if let Some(program) = input.program(program, stencil)? {
        return program::tune(args, input, program, audience);
    }
    let stencil = input.stencil(kernels.stencil.as_deref())?;
    args.names.refuse_of_programs(&stencil.name)?;
    let platform = open(args.device()?)?;
    let machine = platform.facts();
    let memory = args.memory(&machine, &stencil.name, input)?;
    let mut told = BTreeSet::new();
    let mut all = Vec::new();
    for precision in kernels.precisions() {
        input.warn_of_numbers(stencil, precision);
        let choices = kernels.choices(&args.blocks, precision)?;
        for grid in &kernels.grids(&platform)? {
            let problem = kernels.problem(input, stencil, precision, grid)?;
            kernels.tell_drawn(&problem, &mut told);
            let case = Case::new(problem, &platform, args.method.method())?;
            let subject = case.subject(&kernels.file, &input.source.text, grid.name.clone(), kernels.seed);
            let mut all_choices = choices.clone();
            let usual = kernels.usual(&case.problem, &platform, &mut all_choices);
            let is_asked = |kernel: usize| kernel < choices.len();
            let mut done = args.search(&all_choices, (usual, &is_asked), &platform, &machine, &case, subject)?;
            let of = |row| Entry::of_row(&done.subject, &machine, row, done.among, done.tuned.found.tried);
            let entry = done.winner().filter(|_| !done.has_none()).and_then(of);
            done.kept = memory.keep(entry)?;
            if !done.has_none() {
                audience.text(|| done.text(&machine, &case, args))?;
            }
            all.push(done);
        }
    }
    let cases = || all.iter().map(Done::as_json).collect::<Vec<Value>>();
    audience.data(|| json!({ "machine": machine, "cases": cases() }))?;
    match all.iter().map(|done| done.tuned.swept.failed().count()).sum() {
        0 => all.iter().find(|done| done.has_none()).map_or(Ok(()), |done| Err(nothing_found(done))),
        failed => Err(Error::check(format!("{} failed", terminal::count(failed, "kernel")))),
    }
}

/// Why there is no kernel: what most of them were left out for.
fn nothing_found(done: &Done) -> Error {
    let error = match done.tuned.swept.refused.iter().max_by_key(|(_, kernels)| **kernels) {
        Some((reason, kernels)) => {
            Error::input(format!("no kernel was found; {} left out: {reason}", count_are(*kernels)))
        }
        None => Error::call("no kernel was found"),
    };
    error.help("give other kernels to search among, or another grid")
}

/// `1 kernel is`, `2 kernels are`.
fn count_are(kernels: usize) -> String {
    format!("{} {}", count(kernels), if kernels == 1 { "is" } else { "are" })
}

impl Args {
    /// What is measured on.
    fn device(&self) -> Result<Device> {
        with_kernels(self.search.0.device, "tune")
    }

    /// Where what is found of a stencil or program is kept, which is better asked before the search than after it.
    fn memory<'a>(&self, machine: &'a MachineFacts, name: &str, input: &Input) -> Result<Memory<'a>> {
        let memory = Memory { database: self.database()?, machine, source: hash(&[input.source.text.as_bytes()]) };
        let check = |database: &Database| database.check(name_of(machine), name, &memory.source);
        memory.database.as_ref().map_or(Ok(()), check)?;
        Ok(memory)
    }

    /// Not for what is found among kernels of a special kind: `run` and `build` take an entry where nothing is asked for.
    fn database(&self) -> Result<Option<Database>> {
        if self.forget {
            return Ok(None);
        }
        let kernels = &self.search.0;
        let special = kernels.special().or_else(|| self.method.is_hot().then_some("--hot"));
        if let Some(option) = special {
            terminal::note(&format!("what is found will not be remembered: it is for calls with {option}"));
            return Ok(None);
        }
        let database = Database::usual().ok_or_else(|| {
            Error::call("there is no folder to remember in")
                .help(format!("set the variable {VARIABLE} to a folder, or give --forget"))
        });
        database.map(Some)
    }

    fn search(
        &self,
        choices: &[Choices],
        (usual, is_asked): (usize, &dyn Fn(usize) -> bool),
        platform: &Platform,
        machine: &MachineFacts,
        case: &Case,
        subject: Subject,
    ) -> Result<Done> {
        let sweep = Sweep { platform, machine, case, subject: &subject, method: self.method.method() };
        let among = Asked { usual, is_asked };
        let (tuned, seconds) = self.timed(|budget, progress| Tuner { sweep, budget }.run(choices, among, progress))?;
        let among = choices.len();
        Ok(Done { subject, tuned, among, seconds, kept: None })
    }

    /// Searches, and shows how much of the budget is used up. Returns how many seconds it took, too.
    fn timed<T>(&self, search: impl FnOnce(Budget, &(dyn Fn(usize) + Sync)) -> Result<T>) -> Result<(T, f64)> {
        let watch = Watch::start();
        let budget = Duration::from_secs_f64(self.budget);
        let progress = Progress::new(budget.as_millis() as usize, "tuning");
        let shown = AtomicU64::new(0);
        let advance = |_| {
            let now = watch.now().min(budget).as_millis() as u64;
            progress.advance((now - shown.fetch_max(now, Ordering::Relaxed).min(now)) as usize);
        };
        let found = search(search::budget(&watch, self.budget), &advance)?;
        Ok((found, watch.now().as_secs_f64()))
    }

    /// How many were tried among how many, and why no others: what each is called, and those that are hopeless; `besides` follows the time.
    fn tried(&self, found: &Found, among: usize, (what, others): (&str, &str), seconds: f64, besides: &str) -> String {
        let mut text = format!("tried {} of {} in {seconds:.1} s{besides}", found.tried, terminal::count(among, what));
        if found.hopeless > 0 {
            text.push_str(&format!("; {} could not win by the model", terminal::count(found.hopeless, others)));
        }
        text + &found.advice(self.budget) + "\n"
    }
}

impl Done {
    /// Whether none of the kernels that were asked for can be taken, and it is not for being wrong.
    fn has_none(&self) -> bool {
        self.tuned.found.has_none() && self.tuned.swept.failed().next().is_none()
    }

    fn winner(&self) -> Option<&Row> {
        self.tuned.swept.fastest().first().copied()
    }

    fn text(&self, machine: &MachineFacts, case: &Case, args: &Args) -> String {
        let found = &self.tuned.found;
        let mut text = table::text(&self.subject, machine, case.limit.as_ref(), &self.tuned.swept, usize::MAX);
        text.push_str(&args.tried(found, self.among, ("kernel", "variant"), self.seconds, ""));
        if let (Some(path), Some(row)) = (&self.kept, self.winner()) {
            let (file, grid) = (&args.search.0.file, &self.subject.grid);
            text.push_str(&format!("the fastest: {}\n", row.kernel.options));
            let who = match machine.device.as_str() {
                own @ ("emulate" | "native") => format!("`run --device {own}` of {file} on {grid} takes it"),
                _ => format!("`run` and `build` of {file} on {grid} take it"),
            };
            text.push_str(&format!("remembered in {}: {who}\n", path.display()));
        }
        text
    }

    fn as_json(&self) -> Value {
        let found = &self.tuned.found;
        json!({
            "subject": self.subject,
            "fastest": self.tuned.swept.fastest(),
            "failed": self.tuned.swept.failed().map(|(row, _)| row).collect::<Vec<_>>(),
            "among": self.among,
            "tried": found.tried,
            "hopeless": found.hopeless,
            "complete": found.is_complete(),
            "left": found.left,
            "seconds": self.seconds,
            "kept": self.kept,
        })
    }
}

fn count(kernels: usize) -> String {
    terminal::count(kernels, "kernel")
}
