//! The files that `run` of a program writes fields to: `.npy` each by itself; over a mesh, `.vtu` with the mesh, several in one.

use super::{ARRAY, Args, Declared, Steps, VTU, note_replaced, will_write};
use crate::args;
use crate::terminal;
use std::path::{Path, PathBuf};
use stencilc_compiler::ir::VariableId;
use stencilc_runtime::files::Pattern;
use stencilc_runtime::job::{ByRows, Checked};
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::mesh::{self, Field};
use stencilc_runtime::{Array, Data, Error, Result, npy};

/// A file and the fields that go there.
#[derive(Debug)]
pub struct Target {
    /// Its name, in which `{step}` stands for a number.
    pattern: Pattern,
    is_vtu: bool,
    fields: Vec<String>,
}

/// What a field holds, if it has a value.
pub type Held<'a> = dyn Fn(&str) -> Result<Option<Array>> + 'a;

/// The same, where each of several processes has some rows of it.
pub type HeldByRows<'a> = dyn Fn(&str) -> Result<Option<ByRows>> + 'a;

/// The files that are to be written; those of `--vtu` have no fields yet, since the mesh says which have a place.
///
/// # Errors
/// There is no such output, or it cannot be written there.
pub fn targets(args: &Args, declared: &Declared, is_over_mesh: bool) -> Result<Vec<Target>> {
    let mut all: Vec<Target> = Vec::new();
    // A field can go to a file of its own, and to one with the mesh.
    if !is_over_mesh {
        args::by_name(&args.outputs, "--out")?;
    }
    for pair in &args.outputs {
        let name = pair.name();
        if declared.find(name, "--out")?.is_number {
            return Err(Error::call(format!("`{name}` is a single number, which no file is written for"))
                .help("it is printed at the end; --json has it, too"));
        }
        let path = PathBuf::from(pair.value());
        let pattern = Pattern::new(&path);
        let is_vtu = is_over_mesh && path.extension().is_some_and(|ending| ending == VTU.ending);
        match all.iter_mut().find(|own| own.pattern == pattern) {
            Some(own) if is_vtu && own.fields.iter().any(|own| own == name) => {}
            Some(own) if is_vtu => own.fields.push(name.to_owned()),
            Some(_) if is_over_mesh => {
                return Err(Error::call(format!("two outputs would go to `{}`", path.display())));
            }
            Some(_) | None => {
                let format = if is_vtu { VTU } else { ARRAY };
                will_write("--out", &path, format, Steps::Each).map_err(|error| match error.help {
                    Some(help) if is_over_mesh && path.extension().is_some_and(|own| own != ARRAY.ending) => {
                        Error { help: Some(format!("{help}, or .vtu for ParaView")), ..error }
                    }
                    _ => error,
                })?;
                all.push(Target { pattern, is_vtu, fields: vec![name.to_owned()] });
            }
        }
    }
    if let Some(name) = &args.vtu {
        let path = PathBuf::from(name);
        let pattern = Pattern::new(&path);
        if path.extension().is_none() {
            return Err(Error::call(format!("--vtu writes .vtu, and `{name}` has no ending"))
                .help(format!("call it `{name}.vtu`")));
        }
        if all.iter().all(|own| own.pattern != pattern) {
            will_write("--vtu", &path, VTU, Steps::Each)?;
            all.push(Target { pattern, is_vtu: true, fields: Vec::new() });
        }
    }
    Ok(all)
}

/// Finds what goes to the file of `--vtu`, and whether files with meshes have places for what goes there.
///
/// # Errors
/// The mesh has no coordinates, or nothing that leads to where they are known.
pub fn check(targets: &mut [Target], vtu: Option<&str>, problem: &MeshProblem) -> Result<()> {
    let variables = &problem.program.program.variables;
    for target in targets.iter_mut().filter(|own| own.is_vtu) {
        let named = target.fields.iter().filter_map(|name| problem.program.program.declared(name));
        let mut all: Vec<VariableId> = named.collect();
        if vtu.is_some_and(|name| target.pattern == Pattern::new(Path::new(name))) {
            let fields = problem.outputs().filter(|id| !problem.is_number(*id));
            let (fit, others): (Vec<_>, Vec<_>) = fields.partition(|&id| check_place(problem, &[id]).is_ok());
            if fit.is_empty() {
                // Says why not.
                check_place(problem, &others)?;
                return Err(Error::call(format!("`{}` has no output for a .vtu file", problem.program.program.name)));
            }
            if !others.is_empty() {
                let names: Vec<String> = others.iter().map(|&id| format!("`{}`", variables[id].name)).collect();
                terminal::note(&format!("{} has no place for {}", vtu.unwrap_or_default(), names.join(", ")));
            }
            all.extend(fit.into_iter().filter(|id| !all.contains(id)).collect::<Vec<_>>());
            target.fields = all.iter().map(|&id| variables[id].name.clone()).collect();
        }
        check_place(problem, &all)?;
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
    /// The fields that go there, in the order in which they are asked for.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// Writes what its fields hold after so many steps, in their order; those that have a value by then, which `held` knows, or `rows`. Of several
    /// processes, all call it: what each has some rows of they write together, the others the one that `writes`.
    ///
    /// # Errors
    /// It cannot be written, or those of `held`.
    pub fn write(
        &self,
        args: &Args,
        checked: &Checked,
        (held, rows): (&Held, &HeldByRows),
        writes: bool,
        step: u64,
    ) -> Result<()> {
        let path = self.pattern.at(step);
        let mut all: Vec<(&str, Array)> = Vec::new();
        for name in &self.fields {
            if let Some(own) = rows(name)? {
                // A file has one field.
                if writes {
                    note_replaced(&args.inputs, name, &path);
                }
                own.save(&path)?;
            } else if let Some(array) = held(name)?.filter(|_| writes) {
                note_replaced(&args.inputs, name, &path);
                all.push((name, array));
            }
        }
        match checked {
            Checked::Mesh(problem) if self.is_vtu && !all.is_empty() => {
                let declared = |name| problem.program.program.declared(name);
                let fields = all.iter().filter_map(|(name, array)| Some(fields(problem, declared(name)?, &array.data)));
                let fields: Vec<Field> = fields.flatten().collect();
                mesh::write_vtu(&problem.mesh, &fields.iter().collect::<Vec<_>>(), &path)
            }
            _ => all.iter().try_for_each(|(_, array)| npy::save(&path, array)),
        }
    }
}
