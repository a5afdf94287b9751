//! `stencilc tune` of a program: finds its fastest plan on a grid, and remembers it for `run`.

use super::Args;
use crate::args::ARCH;
use crate::args::program::{parse_steps, plan_kind};
use crate::audience::Audience;
use crate::bench::open;
use crate::input::Input;
use crate::terminal::{self, bar};
use serde_json::{Value, json};
use std::path::PathBuf;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_runtime::bench::hash_of_neighbours;
use stencilc_runtime::bench::rows::MachineFacts;
use stencilc_runtime::bench::statistics::Statistics;
use stencilc_runtime::device::Platform;
use stencilc_runtime::measure::Asked;
use stencilc_runtime::program::measure::{Came, Plans, candidates, enough};
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan, has_clusters};
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::tune::database::{Entry, For, Tried};
use stencilc_runtime::tune::search::Found;
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

/// What came of one grid in one precision.
struct Done<'a> {
    precision: Precision,
    grid: String,
    plans: Plans<'a>,
    /// How many of them were asked for.
    asked: usize,
    found: Found,
    came: Came,
    /// Seconds of the search.
    seconds: f64,
    /// The file that remembers it.
    kept: Option<PathBuf>,
}

/// Tunes a program.
///
/// # Errors
/// No plan works, or one differs from the interpreter; or something is wrong with the call, the grid or the device, or what was
/// found cannot be kept.
pub fn tune(args: &Args, input: &Input, program: &Program, audience: &mut Audience) -> Result<()> {
    let kernels = &args.search.0;
    let platform = open(args.device()?)?;
    let machine = platform.facts();
    let memory = args.memory(&machine, &program.name, input)?;
    let facade = program.facade();
    let mut all = Vec::new();
    for precision in kernels.precisions() {
        let named = kernels.choices(&args.blocks, precision)?;
        for grid in &kernels.grids(&platform)? {
            let problem = kernels.problem(input, &facade, precision, grid);
            let problem = problem.map_err(|error| of_program(program, error))?;
            let choices = if kernels.is_open() { enough(&named, problem.grid.form) } else { named.clone() };
            let contract = choices.first().is_none_or(|own| own.contract);
            let problem = ProgramProblem::of(program, problem, contract)?;
            let mut done = searched(args, &platform, &problem, &choices, grid.name.clone())?;
            done.kept = memory.keep(done.entry(&problem, &machine).filter(|_| !done.has_none()))?;
            if !done.has_none() {
                audience.text(|| done.text(program, &machine, args))?;
            }
            all.push(done);
        }
    }
    let cases = || all.iter().map(|done| done.as_json(program)).collect::<Vec<Value>>();
    audience.data(|| json!({ "machine": machine, "cases": cases() }))?;
    match all.iter().map(|done| done.came.wrong.len()).sum() {
        0 => all.iter().find(|done| done.has_none()).map_or(Ok(()), |done| Err(nothing_found(program, done))),
        wrong => Err(Error::check(format!("{} failed", terminal::count(wrong, "plan")))),
    }
}

/// Why there is no plan: what most of them were refused for.
fn nothing_found(program: &Program, done: &Done) -> Error {
    let why = done.came.reasons().into_iter().max_by_key(|(_, plans)| *plans);
    let why = why.map_or(String::new(), |(reason, _)| format!(": {reason}"));
    let error = Error::call(format!("no plan can compute program `{}`{why}", program.name));
    match done.asked < done.plans.plans.len() {
        true => error.help("give other plans: --fuse"),
        false => error.help("give another grid, or one of its stencils: --stencil NAME"),
    }
}

fn searched<'a>(
    args: &Args,
    platform: &'a Platform,
    problem: &ProgramProblem,
    choices: &[Choices],
    grid: String,
) -> Result<Done<'a>> {
    let own = &args.of_program;
    let kinds = if own.fuse.is_empty() { &PlanKind::ALL[..] } else { &own.fuse[..] };
    let mut plans = candidates(kinds, &own.steps, choices, true);
    let asked = plans.len();
    let usual = usual(args, problem, platform);
    let usual = plans.iter().position(|own| own.to_string() == usual.to_string()).unwrap_or_else(|| {
        plans.push(usual);
        plans.len() - 1
    });
    let times = own.often(args.search.0.device) as usize;
    let plans = Plans::new(problem, platform, args.method.method(), times, plans, bar("interpreting"))?;
    let among = Asked { usual, is_asked: &|plan| plan < asked };
    let ((found, came), seconds) = args.timed(|budget, progress| plans.tune(among, budget, progress))?;
    Ok(Done { precision: problem.outer.precision, grid, plans, asked, found, came, seconds, kept: None })
}

/// The plan that `run` takes where nobody chooses.
fn usual(args: &Args, problem: &ProgramProblem, platform: &Platform) -> ProgramPlan {
    let choices = args.search.0.code.choices(Choices::default(), problem.outer.precision);
    let (choices, open) = platform.usual(choices, Open::Kernel);
    let choices = problem.on_cells(choices, open);
    let arch = platform.facts().arch.unwrap_or_else(|| ARCH.to_owned());
    ProgramPlan::usual(problem, &choices, has_clusters(&arch))
}

impl Done<'_> {
    fn winner(&self) -> Option<(&ProgramPlan, &Statistics)> {
        self.found.fastest.first().map(|(plan, statistics)| (&self.plans.plans[*plan], statistics))
    }

    /// Whether none of the plans that were asked for can be taken, and it is not for being wrong.
    fn has_none(&self) -> bool {
        self.found.has_none() && self.came.wrong.is_empty()
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
            of_limit: self.plans.of_copy(statistics),
            among: self.plans.plans.len(),
            tried: self.found.tried,
        };
        Some(Entry::new(of, machine, plan.choices.clone(), Some(plan.to_string()), found))
    }

    fn text(&self, program: &Program, machine: &MachineFacts, args: &Args) -> String {
        let Self { plans: Plans { plans, .. }, found, came, .. } = self;
        let (fastest, refused) = (&found.fastest, came.reasons());
        let mut text = format!("{} {} {}\n", program.name, self.precision.name(), self.grid);
        let mut rows = vec![["us a step", "quartiles", "of copy", "plan"].map(str::to_owned).to_vec()];
        for (plan, times) in fastest {
            rows.push(vec![
                format!("{:.2}", times.median_us),
                format!("{:.2}..{:.2}", times.lower_quartile_us, times.upper_quartile_us),
                self.plans.of_copy(times).map_or("-".to_owned(), |part| format!("{part:.3}")),
                plans[*plan].to_string(),
            ]);
        }
        text.push_str(&terminal::table(&rows, &[0, 1, 2]));
        for (plan, why) in &came.wrong {
            text.push_str(&format!("failed: {}: {why}\n", plans[*plan]));
        }
        let mut besides = String::new();
        let interpreted = self.plans.interpreted;
        if interpreted >= 1.0 {
            besides.push_str(&format!(" after {interpreted:.1} s of the interpreter, with which they are compared"));
        }
        if !came.refused.is_empty() {
            let cannot = terminal::count(came.refused.len(), "plan");
            besides.push_str(&format!("; {cannot} cannot compute this program"));
        }
        text.push_str(&args.tried(found, plans.len(), ("plan", "plan"), self.seconds, &besides));
        // Where others are found, that some are none is no news.
        if fastest.is_empty() {
            text.extend(refused.iter().map(|(reason, plans)| format!("refused {plans}: {reason}\n")));
        }
        if let (Some(path), Some((plan, _))) = (&self.kept, self.winner()) {
            let who = match machine.device.as_str() {
                own @ ("emulate" | "native") => format!("`run --device {own}`"),
                _ => "`run`".to_owned(),
            };
            let (file, grid) = (&args.search.0.file, &self.grid);
            text.push_str(&format!(
                "the fastest: {plan}\nremembered in {}: {who} of {file} on {grid} takes it\n",
                path.display()
            ));
        }
        text
    }

    fn as_json(&self, program: &Program) -> Value {
        let Self { plans: Plans { plans, .. }, found, came, .. } = self;
        let (fastest, refused) = (&found.fastest, came.reasons());
        let fastest = fastest.iter().map(|(plan, times)| {
            json!({ "plan": plans[*plan].to_string(), "us_a_step": times, "of_copy": self.plans.of_copy(times) })
        });
        let wrong = came.wrong.iter().map(|(plan, why)| json!({ "plan": plans[*plan].to_string(), "reason": why }));
        let refused = refused.iter().map(|(reason, plans)| json!({ "reason": reason, "plans": plans }));
        json!({
            "program": program.name,
            "precision": self.precision,
            "grid": self.grid,
            "copy": self.plans.copy,
            "fastest": fastest.collect::<Vec<_>>(),
            "failed": wrong.collect::<Vec<_>>(),
            "refused": refused.collect::<Vec<_>>(),
            "among": plans.len(),
            "tried": found.tried,
            "hopeless": found.hopeless,
            "complete": found.is_complete(),
            "left": found.left,
            "seconds_before": self.plans.interpreted,
            "seconds": self.seconds,
            "kept": self.kept,
        })
    }
}
