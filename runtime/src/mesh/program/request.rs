//! From what a user asks for to a problem: names, shapes, types and numbers are checked against each other.

use super::{MeshProblem, live, prepared, shape, wrong};
use crate::array::{Array, Data};
use crate::mesh::{Bound, Mesh};
use crate::problem::{converted, draw_array, element_of, params};
use crate::{Error, Result};
use std::collections::BTreeMap;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::mesh::MeshProgram;
use stencilc_compiler::ir::program::Variable;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Levels, Precision, Role, contract_body};
use stencilc_compiler::plan::prepare;

/// What a user asks for.
#[derive(Debug)]
pub struct Request<'a> {
    /// A program as it was lowered.
    pub program: &'a MeshProgram,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// The mesh.
    pub mesh: Mesh,
    /// How many levels there are, if it does not follow from the arrays.
    pub levels: Option<usize>,
    /// Arrays by the name of their field.
    pub arrays: BTreeMap<String, Array>,
    /// Parameters by name, as text.
    pub settings: BTreeMap<String, String>,
    /// Of the random numbers that fill what is not given.
    pub seed: u64,
    /// Whether numbers may lose precision to fit their field.
    pub cast: bool,
    /// Whether parameters without a value or a default are drawn at random.
    pub draw_all: bool,
}

impl MeshProblem {
    /// Checks a request and fills in what it leaves open: fields that came with the mesh are taken by their names, others are
    /// drawn at random.
    ///
    /// # Errors
    /// Names that do not exist, arrays of the wrong shape or type, a mesh that is not the declared one, parameters without a
    /// value.
    pub fn new(request: Request) -> Result<Self> {
        let Request { precision, contract, mesh, seed, cast, .. } = request;
        let mut program = request.program.clone();
        let bound = Bound::new(&program.mesh, &mesh)?;
        for (inner, stencil) in program.program.stencils.iter_mut().zip(&mut program.stencils) {
            *stencil = prepared(stencil, precision, contract);
            *inner = stencil.stencil.clone();
        }
        program.program.numbers = prepare(&program.program.numbers, precision, contract);
        if contract {
            bodies(&mut program.program.actions, &mut |body| *body = contract_body(body));
        }
        let mut arrays = request.arrays;
        check_names(&program, &arrays)?;
        let levels = levels(&program, request.levels, &arrays)?;
        let mut settings = request.settings;
        for (param, set) in &program.sizes {
            let name = program.program.numbers.params[*param].name.clone();
            let size = i32::try_from(bound.size(*set)).map_err(|_| wrong(format!("{name} does not fit 32 bits")))?;
            settings.insert(name, size.to_string());
        }
        let own = |error: Error| {
            let (seen, own) =
                (format!("stencil `{}`", program.program.numbers.name), format!("`{}`", program.program.name));
            Error { message: error.message.replace(&seen, &own), ..error }
        };
        let grid = Grid::cells(1, levels);
        let (mut initial, mut drawn, mut came_along) = (BTreeMap::new(), Vec::new(), Vec::new());
        let values: Vec<Value> =
            params(&program.program.numbers, precision, grid, &settings, seed, request.draw_all, &mut drawn)
                .map_err(own)?;
        for (id, variable) in program.program.variables.iter() {
            let Some(role) = variable.role else { continue };
            if program.numbers.contains(&id) {
                continue;
            }
            let element = element_of(variable.stored, precision);
            let shape = shape(variable.place, &bound, levels);
            let len = shape.iter().product();
            let data = if !role.is_read() {
                Data::fresh(element, len)
            } else if let Some(array) = arrays.remove(&variable.name) {
                if array.shape != shape {
                    return Err(wrong_shape(variable, &array.shape, &shape, &program));
                }
                converted(array.data, element, &variable.name, cast)?
            } else if let Some(data) = along(&mesh, variable, &program, len)? {
                came_along.push(variable.name.clone());
                converted(data, element, &variable.name, true)?
            } else {
                drawn.push(variable.name.clone());
                draw_array(variable.range, element, len, seed, &variable.name)
            };
            initial.insert(id, data);
        }
        let mut chains = Vec::new();
        let steps = live::chained(&program, precision, live::steps(&program.program), &mut chains);
        let params = values;
        Ok(Self { program, steps, chains, precision, levels, mesh, bound, params, initial, drawn, came_along })
    }
}

/// Changes every body of actions.
fn bodies(
    actions: &mut [stencilc_compiler::ir::program::Action],
    change: &mut dyn FnMut(&mut stencilc_compiler::ir::Body),
) {
    use stencilc_compiler::ir::program::Action;
    for action in actions {
        match action {
            Action::Call(call) => call.params.iter_mut().flatten().for_each(&mut *change),
            Action::Rename(_) => {}
            Action::Number(number) => change(&mut number.value),
            Action::Repeat(repeat) => {
                change(&mut repeat.times);
                bodies(&mut repeat.actions, change);
            }
        }
    }
}

/// A field that came with the mesh, if it fits.
fn along(mesh: &Mesh, variable: &Variable, program: &MeshProgram, len: usize) -> Result<Option<Data>> {
    let Some(first) = mesh.field_named(&variable.name) else { return Ok(None) };
    let Some(home) = variable.place.home.filter(|_| variable.place.levels == Levels::None) else { return Ok(None) };
    let declared = &program.mesh;
    // Several sets may have a field of that name.
    let set = mesh.set_named(&declared.sets[home.set].name);
    let map = set.zip(home.map).and_then(|(set, map)| mesh.map_named(set, &declared.maps[map].name));
    let own = set.and_then(|set| mesh.field_on(&variable.name, set, map));
    let fits = own.filter(|own| own.parts == home.parts as usize && own.data.len() == len);
    if let Some(field) = fits {
        return Ok(Some(field.data.clone()));
    }
    let field = own.unwrap_or(first);
    let (set, map) = (&mesh.sets[field.set].name, field.map.map(|map| mesh.maps[map].name.clone()));
    let there = map.map_or_else(|| set.clone(), |map| format!("{set}.{map}"));
    let parts = if field.parts == 1 { String::new() } else { format!("[{}]", field.parts) };
    Err(Error::input(format!(
        "`{}` is {}{}{}, in {} it is real{parts} on {there}",
        variable.name,
        variable.stored,
        if home.parts == 1 { String::new() } else { format!("[{}]", home.parts) },
        declared.place(variable.place),
        mesh.origin
    ))
    .help(format!("declare it as it is there, or give another: --in {0}={0}.npy", variable.name)))
}

fn check_names(program: &MeshProgram, arrays: &BTreeMap<String, Array>) -> Result<()> {
    let variables = || program.program.variables.iter().map(|(_, own)| own);
    let inputs: Vec<&str> =
        variables().filter(|own| own.role.is_some_and(Role::is_read)).map(|own| own.name.as_str()).collect();
    let unknown = arrays.keys().find(|name| !inputs.contains(&name.as_str()));
    if let Some(name) = unknown {
        let error = Error::call(format!("`{}` has no input `{name}`", program.program.name));
        if variables().any(|own| own.role.is_some() && own.name == *name) {
            return Err(error.help(format!("`{name}` is an output: write it with --out {name}={name}.npy")));
        }
        return Err(match guess(name, inputs.iter().copied()) {
            Some(guess) => error.help(format!("did you mean `{guess}`?")),
            None => error.help(format!("its inputs are {}", inputs.join(", "))),
        });
    }
    Ok(())
}

/// How many levels there are.
fn levels(program: &MeshProgram, given: Option<usize>, arrays: &BTreeMap<String, Array>) -> Result<usize> {
    if !program.mesh.levels {
        return match given {
            Some(_) => Err(Error::call(format!("the mesh `{}` has no levels", program.mesh.name))
                .help("leave out --levels, or declare them in the mesh: `levels k`")),
            None => Ok(1),
        };
    }
    let mut found = given.map(|levels| (levels, "--levels".to_owned()));
    for (_, variable) in program.program.variables.iter() {
        let (Some(array), Levels::Full) = (arrays.get(&variable.name), variable.place.levels) else { continue };
        // What has another number of axes tells nothing.
        let home =
            variable.place.home.map_or(0, |home| 1 + usize::from(home.map.is_some()) + usize::from(home.parts > 1));
        if array.shape.len() != 1 + home {
            continue;
        }
        let Some(&levels) = array.shape.first() else { continue };
        match &found {
            Some((known, from)) if *known != levels => {
                return Err(Error::input(format!("`{}` has {levels} levels, {from} says {known}", variable.name)));
            }
            Some(_) => {}
            None => found = Some((levels, format!("`{}`", variable.name))),
        }
    }
    match found {
        Some((0, from)) => Err(Error::input(format!("{from} says that there are no levels"))),
        Some((levels, _)) => Ok(levels),
        None => Err(Error::call("how many levels there are is not known").help("give --levels N")),
    }
}

fn wrong_shape(variable: &Variable, found: &[usize], wanted: &[usize], program: &MeshProgram) -> Error {
    let place = program.mesh.place(variable.place);
    let error = Error::input(format!("`{}` has the shape {found:?}, {wanted:?} is needed:{place}", variable.name));
    let mut turned = found.to_vec();
    turned.reverse();
    error.help(if turned == wanted {
        "save its transpose: `array.T`".to_owned()
    } else {
        "the axes are (levels, elements, slots, parts), of which a field has some".to_owned()
    })
}
