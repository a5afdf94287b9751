//! `stencilc verify` of programs: every plan against the interpreter.

use super::Args;
use super::bench::Bench;
use super::outcome::{Outcome, Totals, refusals, told};
use crate::args::Chosen;
use crate::args::program::{parse_steps, plan_kind};
use crate::drawn::Drawn;
use crate::input::Input;
use crate::terminal::Progress;
use serde::{Serialize, Serializer};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::program::measure::candidates;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan};
use stencilc_runtime::program::verify::{self, Reference, Tools};
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::{Error, Fault, Result};

/// A grid on which whole rows lie in the registers of warps, beside those that are verified on if none is given.
const ROWS: Grid = Grid::rows(128, 32, 5);

/// Options of `verify` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Only this program of the files
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    /// Of programs: the plans to compare; all if not given. Why some of them cannot compute a program is told, too
    #[arg(long, value_name = "PLAN,...", value_delimiter = ',', value_parser = plan_kind())]
    pub fuse: Vec<PlanKind>,
    /// Of programs: steps of a loop that one kernel computes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 3, 4], value_parser = parse_steps)]
    steps: Vec<usize>,
    /// Of programs: how often each outermost loop is run
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: u32,
}

/// A program on a grid in one precision, and what came of its plans.
#[derive(Serialize)]
pub struct Case {
    file: String,
    program: String,
    precision: Precision,
    grid: Grid,
    seed: u64,
    times: u32,
    /// Why nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Those that can compute it, and why others cannot.
    #[serde(flatten, serialize_with = "apart")]
    plans: Vec<Tried>,
}

/// One plan.
#[derive(Serialize)]
struct Tried {
    /// The options that choose it.
    plan: String,
    #[serde(skip)]
    again: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Plans that were refused are counted, not listed.
fn apart<S: Serializer>(plans: &[Tried], to: S) -> std::result::Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Apart<'a> {
        plans: Vec<&'a Tried>,
        refused: Vec<Refused<'a>>,
    }
    #[derive(Serialize)]
    struct Refused<'a> {
        reason: &'a str,
        plans: usize,
    }
    let reasons = refusals(plans.iter().map(|tried| &tried.outcome));
    let refused = reasons.into_iter().map(|(reason, plans)| Refused { reason, plans }).collect();
    let plans = plans.iter().filter(|tried| !tried.outcome.is_refused()).collect();
    Apart { plans, refused }.serialize(to)
}

impl ProgramArgs {
    /// Refuses options that are for programs, where there is none.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse(&self) -> Result<()> {
        match self.fuse.is_empty() {
            true => Ok(()),
            false => Err(Error::call("--fuse is for programs, and there is none to verify")
                .help("a program repeats calls of stencils: `program name { repeat steps { ... } }`")),
        }
    }
}

/// Every plan that is asked for: one kernel a call on every storage, and else those that are worth measuring.
fn plans(args: &Args, precision: Precision) -> Vec<ProgramPlan> {
    let own = &args.of_programs;
    let all = args.combinations(precision);
    // What a call is computed by is independent of which calls are one: each storage is tried once more.
    let usual = |own: &&Choices| own.access == Choices::default().access || own.access == "tile";
    let some: Vec<Choices> = match args.variants.is_open() {
        true => all.iter().filter(usual).cloned().collect(),
        false => all.clone(),
    };
    let is_chosen = |kind: &PlanKind| own.fuse.is_empty() || own.fuse.contains(kind);
    let (separate, others): (Vec<PlanKind>, Vec<PlanKind>) =
        PlanKind::ALL.into_iter().filter(is_chosen).partition(|&kind| kind == PlanKind::Separate);
    let mut plans = candidates(&separate, &own.steps, &all, true);
    plans.extend(candidates(&others, &own.steps, &some, true));
    plans
}

/// Refuses options that leave no plan of so many programs.
///
/// # Errors
/// They leave none.
pub fn check(args: &Args, programs: usize) -> Result<()> {
    let mut of_precisions = args.precisions().iter().map(|&precision| plans(args, precision));
    match programs == 0 || of_precisions.any(|plans| !plans.is_empty()) {
        true => Ok(()),
        false => Err(Error::call("these options leave no plan of a program")
            .help("kernels that walk rows are for --storage regular, and --fuse recomputed makes one or two --steps")),
    }
}

/// How many plans there are to try, of so many programs.
pub fn count(args: &Args, programs: usize) -> usize {
    let of_precisions = args.precisions().iter().map(|&precision| plans(args, precision).len());
    let grids = args.grids.len().max(super::GRIDS.len() + 1);
    if programs == 0 { 0 } else { programs * grids * of_precisions.sum::<usize>() }
}

/// The grids that are given; if none is, one more than those of stencils.
pub fn grids(args: &Args, grids: &[Chosen]) -> Vec<Chosen> {
    let rows = args.grids.is_empty().then_some(Chosen { grid: Some(ROWS), adjacency: None });
    grids.iter().cloned().chain(rows).collect()
}

/// Verifies every plan of a program on a grid.
///
/// # Errors
/// Something is wrong with the call, the grid or the device.
pub fn verify(
    args: &Args,
    bench: &Bench,
    progress: &Progress,
    input: &Input,
    program: &Program,
    precision: Precision,
    grid: &Chosen,
) -> Result<Case> {
    let facade = program.facade();
    let (share, set, seed) = (&args.shared.share[..], &args.set[..], args.seed);
    let contract = args.launch.code.contract;
    let problem = Drawn { stencil: &facade, precision, contract, grid, share, set, seed }.problem(input);
    let problem = problem.map_err(|error| of_program(program, error))?;
    let problem = ProgramProblem::of(program, problem, contract)?;
    let mut case = Case {
        file: input.source.name.clone(),
        program: program.name.clone(),
        precision,
        grid: problem.outer.grid,
        seed,
        times: args.of_programs.times,
        error: None,
        plans: Vec::new(),
    };
    let plans = plans(args, precision);
    let reference = Reference::new(problem.with_times(args.of_programs.times as usize))?;
    match reference.check_worth() {
        Ok(()) => {}
        Err(error) if error.fault == Fault::Check => {
            case.error = Some(error.to_string());
            progress.advance(plans.len());
            return Ok(case);
        }
        Err(error) => return Err(error),
    }
    let tools = Tools {
        arch: bench.has_nvrtc.then_some(bench.arch.as_str()),
        gpu: bench.gpu.as_ref(),
        emulator: bench.emulator.as_ref(),
    };
    let verdicts = verify::verify(&reference, &plans, &tools, &|plans| progress.advance(plans))?;
    case.plans = plans
        .into_iter()
        .zip(verdicts)
        .map(|(plan, verdict)| Tried {
            plan: plan.to_string(),
            again: again(&plan),
            outcome: verdict.map_or(Outcome::Skipped { status: "skipped" }, Outcome::Done),
        })
        .collect();
    Ok(case)
}

/// The options that choose a plan, and what is tried beside it.
fn again(plan: &ProgramPlan) -> String {
    let choices = plan.choices.words();
    format!("--fuse {} --steps {} {choices}", plan.kind.name(), plan.steps)
}

impl Case {
    /// What came of all plans.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.plans.iter().map(|tried| &tried.outcome)
    }

    /// `diffusion4 f64 37x29x9: 24 equal, 70 refused`, and what failed.
    pub fn text(&self, args: &Args) -> String {
        let Case { file, program, precision, grid, seed, times, .. } = self;
        let mut totals = Totals::default();
        totals.add(self.outcomes(), self.error.is_some());
        let mut text = format!("{program} {} {grid}, {times} times: {totals}\n", precision.name());
        if let Some(error) = &self.error {
            text.push_str(&format!("  {error}\n"));
        }
        for Tried { plan, again, outcome } in &self.plans {
            let Some(failure) = outcome.failure(plan) else { continue };
            let file = ShellWord::path(file);
            text.push_str(&failure);
            text.push_str(&format!(
                "    again: stencilc verify {file} --program {program} {again} --grid {grid} --times {times} --seed {seed}"
            ));
            args.set.iter().for_each(|pair| text.push_str(&format!(" --set {}", ShellWord::new(pair.to_string()))));
            text.push('\n');
        }
        if !args.of_programs.fuse.is_empty() || totals.has_only_refusals() {
            text.push_str(&told(&refusals(self.outcomes())));
        }
        text
    }
}
