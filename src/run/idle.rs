//! Options that are taken, and change nothing: what `run` says about them.

use super::Args;
use crate::terminal;
use stencilc_compiler::ir::program::Action;
use stencilc_compiler::ir::{Node, Program};
use stencilc_runtime::Device;

/// Options beside those of [`KernelArgs`](crate::args::KernelArgs) that choose kernels, or how they are launched.
const OF_KERNELS: [&str; 9] =
    ["fuse", "steps", "resident", "no_graph", "strategy", "vectors", "order", "threads", "untuned"];

/// Those of [`KernelArgs`](crate::args::KernelArgs) that mean something to the interpreter, too, or of which something else is said.
const OF_ALL_DEVICES: [&str; 3] = ["precision", "contract", "math"];

/// The device that is meant. Says if it is the CPU for want of a GPU, and which options then change nothing.
pub fn device(args: &Args) -> Device {
    let (device, no_gpu) = Device::choose(args.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("running on the cpu: {}", error.message));
    }
    let idle: Vec<String> =
        args.kernel.beside(&OF_ALL_DEVICES).chain(args.names.among(&OF_KERNELS)).map(option).collect();
    if device == Device::Cpu && !idle.is_empty() {
        terminal::note(&format!(
            "the cpu launches no kernels, so nothing changes by {}: --device native launches them without a GPU",
            idle.join(", ")
        ));
    }
    device
}

/// Says that `--steps` is not how often a program repeats something, where that is left as it is.
pub fn tell_of_steps(args: &Args, program: &Program) {
    let Some(steps) = args.of_program.plan.steps_alone() else { return };
    let Some(name) = repetitions(program).filter(|name| args.set.iter().all(|pair| pair.name() != *name)) else {
        return;
    };
    terminal::note(&format!(
        "--steps {steps} is how many steps one kernel computes; how often `{}` repeats them, its parameter `{name}` says: --set \
         {name}={steps}",
        program.name
    ));
}

/// The parameter that says how often a program repeats something, of the first loop with one.
fn repetitions(program: &Program) -> Option<&str> {
    program.actions.iter().find_map(|action| match action {
        Action::Repeat(own) => match own.times.iter().next_back()?.1 {
            Node::Param(id) => Some(program.numbers.params[*id].name.as_str()),
            _ => None,
        },
        Action::Call(_) | Action::Rename(_) | Action::Number(_) => None,
    })
}

/// An option as it is written.
fn option(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}
