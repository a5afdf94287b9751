//! Options that choose a plan of a program.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan, has_clusters, usual_shape};
use stencilc_runtime::{Error, Result};

/// One plan.
#[derive(clap::Args, Default)]
pub struct PlanArgs {
    /// Of a program: which calls become one kernel; if not given, resident or streamed where that is possible, or else merged, but
    /// of `run` the plan that was tuned, if there is one
    #[arg(long, value_name = "PLAN", value_parser = plan_kind())]
    pub fuse: Option<PlanKind>,
    /// Of a program: steps of a loop that one kernel computes
    #[arg(long, value_name = "N", value_parser = parse_steps)]
    steps: Option<usize>,
    /// Of a program that is `--fuse resident`: which of the ways to hold a plane in registers, from 0
    #[arg(long, value_name = "N")]
    resident: Option<usize>,
}

impl PlanArgs {
    /// Those that say no more than which calls become one kernel, if that.
    pub fn of(fuse: Option<PlanKind>) -> Self {
        Self { fuse, ..Self::default() }
    }

    /// Whether any is given.
    pub fn is_given(&self) -> bool {
        self.fuse.is_some() || self.steps.is_some() || self.resident.is_some()
    }

    /// Steps of one kernel, where the options do not say which kind of plan computes several.
    pub fn steps_alone(&self) -> Option<usize> {
        self.steps.filter(|_| self.fuse.is_none())
    }

    /// The options that were given, again.
    pub fn words(&self) -> String {
        let fuse = self.fuse.map(|kind| format!(" --fuse {}", kind.name()));
        let numbers = [("steps", self.steps), ("resident", self.resident)];
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some(format!(" --{name} {}", number?)));
        fuse.into_iter().chain(numbers).collect()
    }

    /// The plan that is asked for, or the usual one of an architecture.
    ///
    /// # Errors
    /// An option makes no difference for the plan.
    pub fn plan(&self, problem: &ProgramProblem, choices: &Choices, arch: &str) -> Result<ProgramPlan> {
        let mut plan = ProgramPlan::usual(problem, choices, has_clusters(arch));
        if let Some(kind) = self.fuse {
            plan.kind = kind;
            plan.steps = 1;
        }
        if let Some(steps) = self.steps {
            plan.steps = steps;
            if self.fuse.is_none() {
                plan.kind = PlanKind::Streamed;
            }
        }
        plan.shape = usual_shape(plan.steps, choices.precision);
        if self.resident.is_some() && plan.kind != PlanKind::Resident {
            return Err(Error::call(format!("--resident makes no difference here: the plan is {}", plan.kind.name()))
                .help("add --fuse resident, or leave it out"));
        }
        plan.resident = self.resident.unwrap_or(0);
        Ok(plan)
    }
}

/// Plans by their names.
pub fn plan_kind() -> impl TypedValueParser<Value = PlanKind> {
    let values = PlanKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.summary()));
    PossibleValuesParser::new(values)
        .map(|name| PlanKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(PlanKind::Separate))
}

/// A number of steps that one kernel computes.
///
/// # Errors
/// It is none.
pub fn parse_steps(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(steps) if (1..=16).contains(&steps) => Ok(steps),
        _ => Err("a whole number from 1 to 16".to_owned()),
    }
}
