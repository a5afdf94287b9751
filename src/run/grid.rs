//! What is special about running a program on a grid.

use super::Args;
use crate::args::{ARCH, Chosen, KernelArgs};
use crate::input::Input;
use crate::tuned;
use stencilc_compiler::ir::Program;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::device::Platform;
use stencilc_runtime::job::Domain;
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::plan::ProgramPlan;
use stencilc_runtime::tune::database::name_of;
use stencilc_runtime::{Error, Result};

/// Refuses options that are about one stencil.
pub fn refuse_options(args: &Args, program: &Program) -> Result<()> {
    match args.runs {
        1 => Ok(()),
        _ => Err(Error::call(format!("--runs is for stencils, and `{}` is a program", program.name))
            .help("run one of its stencils: --stencil NAME")),
    }
}

/// The grid that is asked for, if it is.
pub fn domain(args: &Args) -> Result<Option<Domain>> {
    let Chosen { grid, adjacency } = Chosen::new(args.grid.as_ref(), args.levels)?;
    Ok(match adjacency {
        Some(adjacency) => Some(Domain::Cells { adjacency, levels: grid.map(|grid| grid.nk) }),
        None => grid.map(Domain::Rows),
    })
}

/// The plan that is asked for, that was tuned, or the usual one; nothing on the CPU, which has none.
pub fn plan(
    args: &Args,
    input: &Input,
    problem: &ProgramProblem,
    choices: &Choices,
    platform: &Platform,
) -> Result<Option<ProgramPlan>> {
    let arch = match platform {
        Platform::Cpu => return Ok(None),
        Platform::Emulator(_) => ARCH.to_owned(),
        Platform::Gpu(gpu) => gpu.arch(),
    };
    if let Some(plan) = tuned(args, input, problem, choices, name_of(&platform.facts())) {
        return Ok(Some(plan));
    }
    args.of_program.plan.plan(problem, choices, &arch).map(Some)
}

/// The plan that was tuned for a GPU, program and grid, where the options leave open which.
fn tuned(args: &Args, input: &Input, problem: &ProgramProblem, choices: &Choices, gpu: &str) -> Option<ProgramPlan> {
    if args.tuned.untuned || args.of_program.plan.is_given() || args.kernel.is_given_beside(&KernelArgs::OPEN) {
        return None;
    }
    tuned::plan(&input.source, problem, choices, gpu)
}
