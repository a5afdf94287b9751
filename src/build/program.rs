//! `stencilc build --program`: the texts of all kernels of a program's plan. What launches them is `run`.

use super::Args;
use super::kernels::{self, Several};
use crate::args::program::PlanArgs;
use crate::args::{Chosen, GridArg, Pair};
use crate::drawn::Drawn;
use crate::emit::Emit;
use crate::input::Input;
use crate::kernel::words_on;
use serde_json::json;
use stencilc_compiler::ir::Program;
use stencilc_compiler::kernel::Kernel;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::program::plan::ProgramPlan;
use stencilc_runtime::program::planned::Planned;
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::{Error, Result};

/// Options of `build` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// The kernels of this program's plan, on the grid that is given, or over a mesh
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    #[command(flatten)]
    pub plan: PlanArgs,
}

impl ProgramArgs {
    /// Refuses options of plans where no program is named.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse(&self) -> Result<()> {
        match self.plan.is_given() {
            true => Err(Error::call("--fuse, --steps and --resident choose the plan of a program, and none is named")
                .help("add --program NAME, or leave them out")),
            false => Ok(()),
        }
    }
}

/// Builds the kernels of a program.
///
/// # Errors
/// The grid is not known, the plan cannot compute the program, or nothing can be written.
pub fn build(args: &Args, input: &Input, program: &Program, json: bool) -> Result<()> {
    let name = &program.name;
    if let Some(emit @ (Emit::Ast | Emit::Ir)) = args.emit {
        return kernels::show(args, emit, name, &program.to_string(), json);
    }
    kernels::refuse_code(args.emit, name)?;
    let (choices, own) = (args.kernel.choices_of(program)?, &args.kernel);
    let (grid, levels, set, arch) = (own.grid(), own.levels, &own.set[..], args.arch());
    let wanted = Wanted { choices: &choices, grid, levels, set, plan: &args.of_program.plan, arch, of_parts: false };
    let Kernels { plan, planned, again, codes, .. } = wanted.kernels(input, program)?;
    let precision = choices.precision;
    let several = Several::new(args, name, &again, codes);
    match args.emit {
        Some(Emit::Plan) => {
            kernels::show(args, Emit::Plan, name, &format!("{plan}\n{}", planned.problem.staged.program), json)
        }
        Some(emit) => several.show(emit, json),
        None => several.write(
            &format!("{plan}, {}", precision.name()),
            json!({ "program": name, "precision": precision, "grid": planned.problem.outer.grid, "plan": plan.to_string() }),
            "what launches them is `stencilc run`, and libstencilc for callers: they know when each is due",
            json,
        ),
    }
}

/// What the kernels of a program depend on.
pub struct Wanted<'a> {
    /// The choices of its calls.
    pub choices: &'a Choices,
    /// The grid, as it was named.
    pub grid: Option<&'a GridArg>,
    /// Levels of a grid from a file.
    pub levels: Option<usize>,
    /// Parameters that have a value.
    pub set: &'a [Pair],
    /// The plan that is asked for.
    pub plan: &'a PlanArgs,
    /// The architecture whose usual plan is taken.
    pub arch: &'a str,
    /// Whether it is computed in parts.
    pub of_parts: bool,
}

/// The kernels of a program.
pub struct Kernels {
    /// Its plan.
    pub plan: ProgramPlan,
    /// The program as the plan computes it.
    pub planned: Planned,
    /// The same, as it is before.
    pub problem: ProgramProblem,
    /// The options of `build` that make them again.
    pub again: String,
    /// The kernels: one a stage, and then those that fill halos.
    pub codes: Vec<Kernel>,
}

impl Wanted<'_> {
    /// The kernels of a program.
    ///
    /// # Errors
    /// The grid is not known, or the plan cannot compute the program.
    pub fn kernels(&self, input: &Input, program: &Program) -> Result<Kernels> {
        let (name, choices) = (&program.name, self.choices);
        let grid = Chosen::new(self.grid, self.levels)?;
        if grid.grid.is_none() && grid.adjacency.is_none() {
            return Err(Error::call(format!("kernels of the program `{name}` are for one grid, and none is given"))
                .help("give it: --grid NIxNJxNK"));
        }
        let (facade, precision, contract) = (program.facade(), choices.precision, choices.contract);
        input.warn_of_program(program, precision);
        let (share, set) = (&choices.share, self.set);
        let drawn = Drawn { stencil: &facade, precision, contract, grid: &grid, share, set, seed: 0 };
        let problem = drawn.problem(input).map_err(|error| of_program(program, error))?;
        let problem = ProgramProblem::of(program, problem, contract)?;
        problem.has_kernels()?;
        let plan = match self.of_parts && !self.plan.is_given() {
            true => ProgramPlan::of_parts(choices.clone()),
            false => self.plan.plan(&problem, choices, self.arch)?,
        };
        let planned = Planned::new(&problem, &plan)?;
        let words = words_on(choices, self.grid, self.levels, self.set);
        let again = format!("--program {name} {} {words}", again(&plan));
        let codes = planned.codes()?;
        Ok(Kernels { plan, planned, problem, again, codes })
    }
}

/// The options that choose which calls become one kernel.
fn again(plan: &ProgramPlan) -> String {
    let mut words = format!("--fuse {}", plan.kind.name());
    if plan.steps > 1 {
        words.push_str(&format!(" --steps {}", plan.steps));
    }
    if plan.resident > 0 {
        words.push_str(&format!(" --resident {}", plan.resident));
    }
    words
}
