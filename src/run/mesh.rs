//! What is special about running a program or stencil over a mesh.

use super::Args;
use crate::args::mesh::{MeshArgs, Ordered};
use crate::args::program::PlanArgs;
use crate::build::mesh_program::merge;
use crate::drawn::refuse_of_grids;
use crate::input::Input;
use crate::tuned;
use std::collections::BTreeMap;
use std::ops::Range;
use stencilc_compiler::ir::MeshProgram;
use stencilc_compiler::mesh::MeshChoices;
use stencilc_runtime::device::Platform;
use stencilc_runtime::job::Domain;
use stencilc_runtime::mesh::program::{MeshProblem, measure};
use stencilc_runtime::tune::database::name_of;
use stencilc_runtime::{Device, Error, Result, mesh};

/// Options of `run` that also make sense over meshes, beside those of all commands.
const OPTIONS: [&str; 20] = [
    "inputs",
    "draw",
    "outputs",
    "vtu",
    "texts",
    "cast",
    "at",
    "bits",
    "program",
    "fuse",
    "every",
    "no_graph",
    "gpus",
    "checkpoint",
    "resume",
    "untuned",
    "plot",
    "level",
    "animate",
    "fps",
];

/// Whether a name is that of a program, and not of a stencil that runs by itself.
pub fn is_program(input: &Input, name: &str) -> bool {
    input.mesh_programs.iter().any(|own| own.program.name == name)
}

/// Refuses options that are about grids, those of programs of a stencil, and several values of what one is taken of.
pub fn refuse_options(args: &Args, input: &Input, program: &MeshProgram) -> Result<()> {
    let name = &program.program.name;
    refuse_of_grids(&args.names, &OPTIONS, name)?;
    if !is_program(input, name) {
        args.names.refuse_of_programs(name)?;
    }
    args.of_mesh.file(name, &program.mesh.name)?;
    args.of_mesh.choices(program.mesh.levels)?;
    merge(&args.of_program.plan, &args.of_mesh, name).map(drop)
}

/// The mesh that is asked for.
pub fn domain(args: &Args, program: &MeshProgram) -> Result<Domain> {
    let path = args.of_mesh.file(&program.program.name, &program.mesh.name)?;
    Ok(Domain::Mesh { mesh: mesh::load(path)?, levels: args.levels })
}

/// Refuses `--texts` of a device that launches no kernels.
pub fn refuse_texts(args: &Args, device: Device) -> Result<()> {
    match device {
        Device::Cpu if args.texts.is_some() => {
            Err(Error::call("--texts writes the kernels that are launched, and the cpu launches none")
                .help("--device emulate launches them without a GPU"))
        }
        _ => Ok(()),
    }
}

/// The kernels that are asked for, or that were tuned, and the order of elements; nothing on the CPU, which has neither.
pub fn how(
    args: &Args,
    input: &Input,
    problem: &MeshProblem,
    platform: &Platform,
) -> Result<Option<(MeshChoices, Ordered)>> {
    if matches!(platform, Platform::Cpu) {
        return Ok(None);
    }
    let tuned = tuned(args, input, problem, name_of(&platform.facts()));
    let (of_mesh, plan) = tuned.as_ref().map_or((&args.of_mesh, &args.of_program.plan), |(mesh, plan)| (mesh, plan));
    way(of_mesh, plan, problem).map(Some)
}

/// The kernels that options choose, and the order of elements.
///
/// # Errors
/// They do not go together, or the mesh lacks what they need.
pub fn way(of_mesh: &MeshArgs, plan: &PlanArgs, problem: &MeshProblem) -> Result<(MeshChoices, Ordered)> {
    let merge = merge(plan, of_mesh, &problem.program.program.name)?;
    let choices = MeshChoices { merge, ..of_mesh.choices(problem.program.mesh.levels)? };
    let ordered = of_mesh.one_ordering(problem, &[choices.layout])?;
    Ok((choices, ordered))
}

/// The way to compute it that was tuned for this GPU and mesh, where the options leave open which.
fn tuned(args: &Args, input: &Input, problem: &MeshProblem, gpu: &str) -> Option<(MeshArgs, PlanArgs)> {
    if args.tuned.untuned || !args.of_mesh.is_open() || args.of_program.plan.is_given() {
        return None;
    }
    tuned::over_mesh(&input.source, problem, gpu)
}

/// What the mesh has how much of.
pub fn sizes(problem: &MeshProblem) -> BTreeMap<&str, usize> {
    let sets = problem.program.mesh.sets.iter();
    sets.map(|(id, set)| (set.name.as_str(), problem.bound.size(id))).collect()
}

/// `node: 7381, cell: 7200`: of what the mesh has how much.
pub fn sizes_text(problem: &MeshProblem) -> String {
    let sets = problem.program.mesh.sets.iter();
    let sets: Vec<String> = sets.map(|(id, set)| format!("{}: {}", set.name, problem.bound.size(id))).collect();
    let mut levels = if problem.program.mesh.levels { format!(", levels: {}", problem.levels) } else { String::new() };
    // Of a stencil by itself it is known before.
    let computed =
        measure::only_call(problem).and_then(|call| problem.computed(call.stencil, &problem.params_of(call)));
    if let Ok(Range { start, end }) = computed
        && end - start < problem.levels
    {
        levels.push_str(&format!(", of which {start}..{end} are computed"));
    }
    format!("{}{levels}", sets.join(", "))
}
