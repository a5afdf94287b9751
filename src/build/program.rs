//! `stencilc build --program`: the texts of all kernels of a program's plan. What launches them is `run`.

use super::Args;
use super::kernels::{self, Several};
use crate::args::Chosen;
use crate::args::program::PlanArgs;
use crate::drawn::Drawn;
use crate::emit::Emit;
use crate::input::Input;
use serde_json::json;
use stencilc_compiler::ir::Program;
use stencilc_runtime::program::kernels::Planned;
use stencilc_runtime::program::plan::ProgramPlan;
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::{Error, Result};

/// Options of `build` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Build the kernels of this program's plan, on the grid that is given
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    #[command(flatten)]
    plan: PlanArgs,
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
    let choices = args.kernel.program_choices()?;
    let grid: Chosen = args.kernel.chosen()?;
    if grid.grid.is_none() && grid.adjacency.is_none() {
        return Err(Error::call(format!("kernels of the program `{name}` are for one grid, and none is given"))
            .help("give it: --grid NIxNJxNK"));
    }
    let (facade, precision, contract) = (program.facade(), choices.precision, choices.contract);
    input.warn_of_program(program, precision);
    let (share, set) = (&choices.share, &args.kernel.set);
    let drawn = Drawn { stencil: &facade, precision, contract, grid: &grid, share, set, seed: 0 };
    let problem = drawn.problem(input).map_err(|error| of_program(program, error))?;
    let problem = ProgramProblem::of(program, problem, contract)?;
    let plan = args.of_program.plan.plan(&problem, &choices, &args.arch)?;
    let planned = Planned::new(&problem, &plan)?;
    let again = format!("--program {name} {} {}", again(&plan), args.kernel.words());
    let several = Several::new(args, name, &again, planned.codes()?);
    match args.emit {
        Some(Emit::Plan) => {
            kernels::show(args, Emit::Plan, name, &format!("{plan}\n{}", planned.problem.staged.program), json)
        }
        Some(emit) => several.show(emit, json),
        None => several.write(
            &format!("{plan}, {}", precision.name()),
            json!({ "program": name, "precision": precision, "grid": problem.outer.grid, "plan": plan.to_string() }),
            "what launches them is `stencilc run`, which knows when each is due",
            json,
        ),
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
