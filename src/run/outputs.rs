//! The files that `run` of a program over a mesh writes fields to: `.npy` each by itself, `.vtu` with the mesh, several in one.

use crate::args::Pair;
use crate::output;
use crate::terminal;
use std::path::{Path, PathBuf};
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::ir::{MeshProgram, Role, VariableId};
use stencilc_runtime::files::{Kind, Pattern};
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::mesh::{self, Field};
use stencilc_runtime::{Array, Data, Error, Result, npy};

/// A file and the fields that go there.
#[derive(Debug)]
pub struct Target {
    /// Its name, in which `{step}` stands for a number.
    pattern: Pattern,
    is_vtu: bool,
    variables: Vec<VariableId>,
}

/// The ending of files with a mesh.
const VTU: &str = "vtu";

/// The files that are to be written; those of `--vtu` have no fields yet, since the mesh says which have a place.
///
/// # Errors
/// There is no such output, or it cannot be written there.
pub fn targets(pairs: &[Pair], vtu: Option<&str>, program: &MeshProgram) -> Result<Vec<Target>> {
    let mut all: Vec<Target> = Vec::new();
    for pair in pairs {
        let variable = output_named(pair.name(), program)?;
        let path = PathBuf::from(pair.value());
        let pattern = Pattern::new(&path);
        let is_vtu = path.extension().is_some_and(|ending| ending == VTU);
        if program.numbers.contains(&variable) {
            return Err(Error::call(format!("`{}` is a single number, which no file is written for", pair.name()))
                .help("it is printed at the end; --json has it, too"));
        }
        match all.iter_mut().find(|own| own.pattern == pattern) {
            Some(own) if is_vtu && own.variables.contains(&variable) => {}
            Some(own) if is_vtu => own.variables.push(variable),
            Some(_) => return Err(Error::call(format!("two outputs would go to `{}`", path.display()))),
            None if is_vtu => {
                output::check_each("--out", &path, VTU, Kind::Mesh)?;
                all.push(Target { pattern, is_vtu, variables: vec![variable] });
            }
            None => {
                output::check_each("--out", &path, "npy", Kind::Array).map_err(|error| match error.help {
                    Some(help) if path.extension().is_some_and(|own| own != "npy") => {
                        Error { help: Some(format!("{help}, or .vtu for ParaView")), ..error }
                    }
                    _ => error,
                })?;
                all.push(Target { pattern, is_vtu, variables: vec![variable] });
            }
        }
    }
    if let Some(name) = vtu {
        let path = PathBuf::from(name);
        let pattern = Pattern::new(&path);
        if path.extension().is_none() {
            return Err(Error::call(format!("--vtu writes .vtu, and `{name}` has no ending"))
                .help(format!("call it `{name}.vtu`")));
        }
        if all.iter().all(|own| own.pattern != pattern) {
            output::check_each("--vtu", &path, VTU, Kind::Mesh)?;
            all.push(Target { pattern, is_vtu: true, variables: Vec::new() });
        }
    }
    Ok(all)
}

/// The output of a program that has this name.
fn output_named(name: &str, program: &MeshProgram) -> Result<VariableId> {
    let written = program.program.variables.iter().filter(|(_, own)| own.role.is_some_and(Role::is_written));
    let written: Vec<(VariableId, &str)> = written.map(|(id, own)| (id, own.name.as_str())).collect();
    written.iter().find(|(_, own)| *own == name).map(|(id, _)| *id).ok_or_else(|| {
        let names: Vec<&str> = written.iter().map(|(_, own)| *own).collect();
        let error = Error::call(format!("`{}` has no output `{name}`", program.program.name));
        match guess(name, names.iter().copied()) {
            Some(guess) => error.help(format!("did you mean `{guess}`?")),
            None => error.help(format!("its outputs are {}", names.join(", "))),
        }
    })
}

/// Finds what goes to the file of `--vtu`, and whether files with meshes have places for what goes there.
///
/// # Errors
/// The mesh has no coordinates, or nothing that leads to where they are known.
pub fn check(targets: &mut [Target], vtu: Option<&str>, problem: &MeshProblem) -> Result<()> {
    for target in targets.iter_mut().filter(|own| own.is_vtu) {
        if vtu.is_some_and(|name| target.pattern == Pattern::new(Path::new(name))) {
            let fields = problem.outputs().filter(|id| !problem.is_number(*id));
            let (fit, others): (Vec<_>, Vec<_>) = fields.partition(|&id| check_place(problem, &[id]).is_ok());
            if fit.is_empty() {
                // Says why not.
                check_place(problem, &others)?;
                return Err(Error::call(format!("`{}` has no output for a .vtu file", problem.program.program.name)));
            }
            if !others.is_empty() {
                let names = others.iter().map(|&id| format!("`{}`", problem.program.program.variables[id].name));
                let names: Vec<String> = names.collect();
                terminal::note(&format!("{} has no place for {}", vtu.unwrap_or_default(), names.join(", ")));
            }
            let new: Vec<VariableId> = fit.into_iter().filter(|id| !target.variables.contains(id)).collect();
            target.variables.extend(new);
        }
        check_place(problem, &target.variables)?;
    }
    Ok(())
}

fn check_place(problem: &MeshProblem, variables: &[VariableId]) -> Result<()> {
    let fields: Vec<Field> = variables.iter().flat_map(|&id| fields(problem, id, &problem.fresh(id))).collect();
    mesh::check_vtu(&problem.mesh, &fields.iter().collect::<Vec<_>>())
}

/// A variable as fields of the mesh: one a level.
fn fields(problem: &MeshProblem, variable: VariableId, data: &Data) -> Vec<Field> {
    let (own, declared) = (&problem.program.program.variables[variable], &problem.program.mesh);
    let Some(home) = own.place.home else { return Vec::new() };
    let Some(set) = problem.mesh.set_named(&declared.sets[home.set].name) else { return Vec::new() };
    let map = home.map.and_then(|map| problem.mesh.map_named(set, &declared.maps[map].name));
    let each = problem.bound.size(home.set) * home.width as usize;
    let levels = data.len().checked_div(each).unwrap_or(0);
    let field = |level: usize| {
        let name = if levels == 1 { own.name.clone() } else { format!("{}_{level}", own.name) };
        Field { name, set, map, parts: home.parts as usize, data: data.part(level * each..(level + 1) * each) }
    };
    (0..levels).map(field).collect()
}

impl Target {
    /// The fields that it takes.
    pub fn variables(&self) -> &[VariableId] {
        &self.variables
    }

    /// Where it is after so many steps.
    pub fn path(&self, step: u64) -> PathBuf {
        self.pattern.at(step)
    }

    /// Writes what its fields hold, in their order.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, problem: &MeshProblem, path: &Path, all: Vec<(VariableId, Data)>) -> Result<()> {
        if self.is_vtu {
            let fields: Vec<Field> = all.iter().flat_map(|(id, data)| fields(problem, *id, data)).collect();
            return mesh::write_vtu(&problem.mesh, &fields.iter().collect::<Vec<_>>(), path);
        }
        all.into_iter().try_for_each(|(id, data)| npy::save(path, &Array { shape: problem.shape(id), data }))
    }
}
