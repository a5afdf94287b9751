//! `stencilc tune` of a program: finds its fastest plan on a grid, and remembers it for `run`.

use super::Args;
use crate::args::ARCH;
use crate::args::program::{parse_steps, plan_kind};
use crate::bench::open;
use crate::input::Input;
use crate::terminal::{self, Progress};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::bench::limit::Limit;
use stencilc_runtime::bench::rows::MachineFacts;
use stencilc_runtime::bench::statistics::Statistics;
use stencilc_runtime::bench::{hash, hash_of_neighbours};
use stencilc_runtime::clock::{Clock, Watch};
use stencilc_runtime::device::Platform;
use stencilc_runtime::program::measure::{ProgramMethod, candidates, copy};
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan, has_clusters};
use stencilc_runtime::program::tune::{Found, Tuner};
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::tune::database::{Entry, For, Tried, name_of};
use stencilc_runtime::tune::search::{self, Found as Searched};
use stencilc_runtime::verify::program::Reference;
use stencilc_runtime::{Device, Error, Result};

/// Options of `tune` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Which program of the file
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    /// Of a program: the plans to search among; all if not given
    #[arg(long, value_name = "PLAN,...", value_delimiter = ',', value_parser = plan_kind())]
    pub fuse: Vec<PlanKind>,
    /// Of a program: steps of a loop that one kernel computes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 3, 4], value_parser = parse_steps)]
    steps: Vec<usize>,
    /// Of a program: steps of its loop in one measurement; 96 if not given, and 6 on the emulator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: Option<u32>,
}

impl ProgramArgs {
    /// Steps of its loop in one measurement.
    pub fn often(&self, device: Option<Device>) -> u32 {
        self.times.unwrap_or(if device == Some(Device::Emulate) { 6 } else { 96 })
    }
}

/// Steps that are compared with the interpreter: not a multiple of those that a kernel computes.
const COMPARED: usize = 13;

/// What came of one grid in one precision.
struct Done {
    precision: Precision,
    grid: String,
    plans: Vec<ProgramPlan>,
    /// How many of them were asked for.
    asked: usize,
    found: Found,
    limit: Option<Limit>,
    seconds: f64,
    /// The file that remembers it.
    kept: Option<PathBuf>,
}

/// Tunes a program.
///
/// # Errors
/// No plan works, or one differs from the interpreter; or something is wrong with the call, the grid or the device, or what was
/// found cannot be kept.
pub fn tune(args: &Args, input: &Input, program: &Program, json: bool) -> Result<()> {
    let kernels = &args.search.0;
    let platform = open(args.device()?)?;
    let machine = platform.facts();
    let database = args.database()?;
    let source = hash(&[input.source.text.as_bytes()]);
    if let Some(database) = &database {
        database.check(name_of(&machine), &program.name, &source)?;
    }
    let facade = program.facade();
    let mut all = Vec::new();
    for precision in kernels.precisions() {
        let choices = choices(args, precision)?;
        for grid in &kernels.grids(&platform)? {
            let problem = kernels.problem(input, &facade, precision, grid);
            let problem = problem.map_err(|error| of_program(program, error))?;
            let contract = choices.first().is_none_or(|own| own.contract);
            let problem = ProgramProblem::of(program, problem, contract)?;
            let mut done = searched(args, &platform, &problem, &choices, grid.name.clone())?;
            if let (Some(database), Some(entry), false) = (&database, done.entry(&problem, &machine), done.has_none()) {
                done.kept = Some(database.keep(name_of(&machine), machine.arch.as_deref(), &source, entry)?);
            }
            if !json && !done.has_none() {
                terminal::print(&done.text(program, &machine, args))?;
            }
            all.push(done);
        }
    }
    if json {
        let cases: Vec<Value> = all.iter().map(|done| done.as_json(program)).collect();
        terminal::json(&json!({ "machine": machine, "cases": cases }))?;
    }
    match all.iter().map(|done| done.found.plans.wrong.len()).sum() {
        0 => all.iter().find(|done| done.has_none()).map_or(Ok(()), |done| Err(nothing_found(program, done))),
        wrong => Err(Error::check(format!("{} failed", terminal::count(wrong, "plan")))),
    }
}

/// Why there is no plan: what most of them were refused for.
fn nothing_found(program: &Program, done: &Done) -> Error {
    let why = done.found.refused.iter().max_by_key(|(_, plans)| **plans);
    let why = why.map_or(String::new(), |(reason, _)| format!(": {reason}"));
    let error = Error::call(format!("no plan can compute program `{}`{why}", program.name));
    match done.asked < done.plans.len() {
        true => error.help("give other plans: --fuse"),
        false => error.help("give another grid, or one of its stencils: --stencil NAME"),
    }
}

/// How cells may be stored and reached where a thread computes one: as `bench` has it where nobody asks for more.
///
/// # Errors
/// An option was given that makes no difference for any of them.
fn choices(args: &Args, precision: Precision) -> Result<Vec<Choices>> {
    let kernels = &args.search.0;
    let all = kernels.choices(&args.blocks, precision)?;
    if !kernels.is_open() {
        return Ok(all);
    }
    let usual = |access: &str| {
        let own = Choices { access: access.to_owned(), precision, ..Choices::default() };
        Choices { block: Choices::usual_block(access), ..kernels.code.choices(own, precision) }
    };
    Ok(["idxvar", "tile"].map(usual).to_vec())
}

fn searched(
    args: &Args,
    platform: &Platform,
    problem: &ProgramProblem,
    choices: &[Choices],
    grid: String,
) -> Result<Done> {
    let own = &args.of_program;
    let method = args.method.method();
    let limit = copy(problem, platform, method.runs)?;
    let reference = match method.verify {
        true => {
            let reference = Reference::new(problem.with_times(COMPARED))?;
            reference.check_worth()?;
            Some(reference)
        }
        false => None,
    };
    let kinds = if own.fuse.is_empty() { &PlanKind::ALL[..] } else { &own.fuse[..] };
    let mut plans = candidates(kinds, &own.steps, choices, true);
    let asked = plans.len();
    let usual = usual(args, problem, platform);
    let usual = plans.iter().position(|own| own.to_string() == usual.to_string()).unwrap_or_else(|| {
        plans.push(usual);
        plans.len() - 1
    });
    let watch = Watch::start();
    let budget = Duration::from_secs_f64(args.budget);
    let progress = Progress::new(budget.as_millis() as usize, "tuning");
    let shown = AtomicU64::new(0);
    let advance = || {
        let now = watch.now().min(budget).as_millis() as u64;
        progress.advance((now - shown.fetch_max(now, Ordering::Relaxed).min(now)) as usize);
    };
    let times = own.often(args.search.0.device) as usize;
    let tuner = Tuner {
        problem,
        reference: reference.as_ref(),
        platform,
        method: ProgramMethod { times, runs: method.runs, compared: COMPARED },
        budget: search::budget(&watch, args.budget),
    };
    let found = tuner.run(&plans, usual, &|plan| plan < asked, &advance)?;
    drop(progress);
    let seconds = watch.now().as_secs_f64();
    Ok(Done { precision: problem.outer.precision, grid, plans, asked, found, limit, seconds, kept: None })
}

/// The plan that `run` takes where nobody chooses.
fn usual(args: &Args, problem: &ProgramProblem, platform: &Platform) -> ProgramPlan {
    let choices = args.search.0.code.choices(Choices::default(), problem.outer.precision);
    let arch = platform.facts().arch.unwrap_or_else(|| ARCH.to_owned());
    ProgramPlan::usual(problem, &choices, has_clusters(&arch))
}

impl Done {
    fn winner(&self) -> Option<(&ProgramPlan, &Statistics)> {
        self.found.plans.fastest.first().map(|(plan, statistics)| (&self.plans[*plan], statistics))
    }

    /// Whether none of the plans that were asked for can be taken, and it is not for being wrong.
    fn has_none(&self) -> bool {
        self.found.plans.has_none() && self.found.plans.wrong.is_empty()
    }

    fn of_copy(&self, statistics: &Statistics) -> Option<f64> {
        self.limit.as_ref().map(|limit| limit.statistics.median_us / statistics.median_us)
    }

    /// What is remembered.
    fn entry(&self, problem: &ProgramProblem, machine: &MachineFacts) -> Option<Entry> {
        let (plan, statistics) = self.winner()?;
        let of = For {
            stencil: problem.staged.program.name.clone(),
            precision: self.precision,
            grid: self.grid.clone(),
            extents: problem.outer.grid,
            neighbours: problem.adjacency.as_deref().map(hash_of_neighbours),
        };
        let found = Tried {
            median_us: statistics.median_us,
            of_limit: self.of_copy(statistics),
            among: self.plans.len(),
            tried: self.found.plans.tried,
        };
        Some(Entry::new(of, machine, plan.choices.clone(), Some(plan.to_string()), found))
    }

    fn text(&self, program: &Program, machine: &MachineFacts, args: &Args) -> String {
        let Found { plans: found, refused } = &self.found;
        let Searched { fastest, wrong, tried, hopeless, .. } = found;
        let mut text = format!("{} {} {}\n", program.name, self.precision.name(), self.grid);
        let mut rows = vec![["us a step", "quartiles", "of copy", "plan"].map(str::to_owned).to_vec()];
        for (plan, times) in fastest {
            rows.push(vec![
                format!("{:.2}", times.median_us),
                format!("{:.2}..{:.2}", times.lower_quartile_us, times.upper_quartile_us),
                self.of_copy(times).map_or("-".to_owned(), |part| format!("{part:.3}")),
                self.plans[*plan].to_string(),
            ]);
        }
        text.push_str(&terminal::table(&rows, &[0, 1, 2]));
        for (plan, why) in wrong {
            text.push_str(&format!("failed: {}: {why}\n", self.plans[*plan]));
        }
        let among = terminal::count(self.plans.len(), "plan");
        text.push_str(&format!("tried {tried} of {among} in {:.1} s", self.seconds));
        let cannot: usize = refused.values().sum();
        if cannot > 0 {
            text.push_str(&format!("; {} cannot compute this program", terminal::count(cannot, "plan")));
        }
        if *hopeless > 0 {
            text.push_str(&format!("; {} could not win by the model", terminal::count(*hopeless, "plan")));
        }
        text.push_str(&super::left(found, args.budget));
        text.push('\n');
        // Where others are found, that some are none is no news.
        if fastest.is_empty() {
            text.extend(refused.iter().map(|(reason, plans)| format!("refused {plans}: {reason}\n")));
        }
        if let (Some(path), Some((plan, _))) = (&self.kept, self.winner()) {
            let who = if machine.device == "emulate" { "`run --device emulate`" } else { "`run`" };
            let (file, grid) = (&args.search.0.file, &self.grid);
            text.push_str(&format!(
                "the fastest: {plan}\nremembered in {}: {who} of {file} on {grid} takes it\n",
                path.display()
            ));
        }
        text
    }

    fn as_json(&self, program: &Program) -> Value {
        let Found { plans: found, refused } = &self.found;
        let Searched { fastest, wrong, tried, hopeless, .. } = found;
        let fastest = fastest.iter().map(|(plan, times)| {
            json!({ "plan": self.plans[*plan].to_string(), "us_a_step": times, "of_copy": self.of_copy(times) })
        });
        let wrong = wrong.iter().map(|(plan, why)| json!({ "plan": self.plans[*plan].to_string(), "reason": why }));
        let refused = refused.iter().map(|(reason, plans)| json!({ "reason": reason, "plans": plans }));
        json!({
            "program": program.name,
            "precision": self.precision,
            "grid": self.grid,
            "copy": self.limit,
            "fastest": fastest.collect::<Vec<_>>(),
            "failed": wrong.collect::<Vec<_>>(),
            "refused": refused.collect::<Vec<_>>(),
            "among": self.plans.len(),
            "tried": tried,
            "hopeless": hopeless,
            "complete": found.is_complete(),
            "left": found.left,
            "seconds": self.seconds,
            "kept": self.kept,
        })
    }
}
