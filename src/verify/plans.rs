//! Plans of programs on grids: the options that choose them, and which there are.

use super::Args;
use crate::args::program::{parse_steps, plan_kind};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::program::measure::candidates;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan};
use stencilc_runtime::{Error, Result};

/// Options of `verify` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Only this program of the files
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    /// Of programs: the plans to compare; all if not given. With it, or with --program, it is told why some cannot compute a program
    #[arg(long, value_name = "PLAN,...", value_delimiter = ',', value_parser = plan_kind())]
    pub fuse: Vec<PlanKind>,
    /// Of programs: steps of a loop that one kernel computes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 3, 4], value_parser = parse_steps)]
    steps: Vec<usize>,
    /// Of programs: how often each outermost loop is run
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub times: u32,
    /// Of programs: cut into as many parts, each on a GPU of its own from that of --device on; on the emulator they are computed side by side
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub gpus: Option<u16>,
}

impl ProgramArgs {
    /// Whether it is told why plans cannot compute a program: where somebody asks for that program, or for plans.
    pub fn tells_refusals(&self) -> bool {
        self.program.is_some() || !self.fuse.is_empty()
    }

    /// Refuses options that are for programs, where there is none.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse(&self) -> Result<()> {
        let given = [("--fuse", !self.fuse.is_empty()), ("--gpus", self.gpus.is_some())];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(Error::call(format!("{option} is for programs, and there is none to verify"))
                .help("a program repeats calls of stencils: `program name { repeat steps { ... } }`")),
        }
    }

    /// How many parts programs are cut into; 1 if they are not.
    pub fn parts(&self) -> usize {
        self.gpus.map_or(1, usize::from)
    }
}

/// Every plan that is asked for: one kernel a call on every storage, and else those that are worth measuring.
pub fn plans(args: &Args, precision: Precision) -> Vec<ProgramPlan> {
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

/// Refuses options that leave no plan of a program.
///
/// # Errors
/// They leave none.
pub fn check(args: &Args) -> Result<()> {
    match args.precisions().iter().any(|&precision| !plans(args, precision).is_empty()) {
        true => Ok(()),
        false => Err(Error::call("these options leave no plan of a program")
            .help("kernels that walk rows are for --storage regular, and --fuse recomputed makes one or two --steps")),
    }
}
