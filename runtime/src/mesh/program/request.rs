//! From what a user asks for to a problem: names, shapes, types and numbers are checked against each other.

use super::moving::Moving;
use super::{MeshProblem, Outline, shape, wrong};
use crate::array::{Array, Data};
use crate::drawing::{self, Drawing};
use crate::given::{self, Cast, Given};
use crate::memory;
use crate::mesh::{Bound, Field, Mesh};
use crate::problem::{element_of, params};
use crate::{Element, Error, Result};
use std::collections::BTreeMap;
use stencilc_compiler::analysis::LEVELS;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::mesh::MeshProgram;
use stencilc_compiler::ir::program::Variable;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Levels, Precision, Role, VariableId};

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
    /// Whether numbers may lose precision to fit their field, those that came with the mesh like those that are given.
    pub cast: Cast,
    /// What is drawn where it is neither given nor came with the mesh.
    pub drawing: Drawing,
}

impl MeshProblem {
    /// Checks a request and fills in what it leaves open: fields that came with the mesh are taken by their names, others are
    /// drawn at random, if that is wanted.
    ///
    /// # Errors
    /// Names that do not exist, arrays and fields of the mesh of the wrong shape or type, a mesh that is not the declared one,
    /// inputs and parameters without a value.
    pub fn new(request: Request) -> Result<Self> {
        let Request { precision, contract, mesh, seed, cast, drawing, .. } = request;
        mesh.check()?;
        given::lengths(&request.arrays)?;
        let bound = Bound::new(&request.program.mesh, &mesh)?;
        let Outline { program, steps, chains, .. } = Outline::new(request.program, precision, contract);
        let mut arrays = request.arrays;
        check_names(&program, &arrays)?;
        let levels = levels(&program, request.levels, &arrays)?;
        check_memory(&program, precision, &bound, levels, &arrays)?;
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
        let along = along(&program, &mesh, &arrays, &drawing)?;
        let moving = Moving::new(&program, precision, levels);
        let (mut initial, mut drawn, mut came_along) = (BTreeMap::new(), Vec::new(), Vec::new());
        let values: Vec<Value> =
            params(&program.program.numbers, precision, grid, &settings, seed, &drawing, &mut drawn).map_err(own)?;
        for (id, variable) in program.program.variables.iter() {
            let Some(role) = variable.role else { continue };
            if program.numbers.contains(&id) {
                continue;
            }
            let element = element_of(variable.stored, precision);
            let shape = shape(variable.place, &bound, levels);
            let len = shape.iter().product();
            let mut is_drawn = false;
            let mut data = if !role.is_read() {
                Data::fresh(element, len)
            } else if let Some(array) = arrays.remove(&variable.name) {
                if array.shape != shape {
                    return Err(wrong_shape(variable, &array.shape, &shape, &program));
                }
                given::array(array, Given { field: &variable.name, holder: "the array" }, element, cast)?
            } else if let Some(field) = along.get(&id) {
                came_along.push(variable.name.clone());
                let holder = format!("`{}`", mesh.origin);
                let array = Array { shape, data: field.data.clone() };
                given::array(array, Given { field: &variable.name, holder: &holder }, element, cast)?
            } else {
                is_drawn = true;
                drawn.push(variable.name.clone());
                drawing::draw(variable.range, element, len, seed, &variable.name)?
            };
            match is_drawn {
                true => moving.fit(id, variable, &mut data, &bound),
                false => moving.check(id, variable, &data, &program, &bound)?,
            }
            initial.insert(id, data);
        }
        let params = values;
        Ok(Self { program, steps, chains, precision, levels, mesh, bound, params, initial, drawn, came_along })
    }
}

/// Refuses fields that there is no memory for, before any is made; those that are given are there already.
fn check_memory(
    program: &MeshProgram,
    precision: Precision,
    bound: &Bound,
    levels: usize,
    arrays: &BTreeMap<String, Array>,
) -> Result<()> {
    let declared = program.program.variables.iter().filter(|(_, own)| own.role.is_some());
    let made = declared.filter(|(id, own)| !program.numbers.contains(id) && !arrays.contains_key(&own.name));
    let bytes = made.map(|(_, own)| {
        let home = own.place.home.map_or(1, |home| bound.size(home.set) as u128 * u128::from(home.width));
        home.saturating_mul(own.place.levels.count(levels) as u128)
            .saturating_mul(element_of(own.stored, precision).bytes() as u128)
    });
    let bytes = bytes.fold(0, u128::saturating_add);
    memory::check(bytes, &format!("the fields of `{}` take", program.program.name), FEWER)
}

/// What takes less memory.
const FEWER: &str = "take a smaller mesh, fewer --levels, or --precision f32";

/// Changes every body of actions.
pub(super) fn bodies(
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

/// The fields that came with the mesh, by the inputs that take their numbers: those that are not given, or to be drawn.
///
/// # Errors
/// Such a field is not what the input is declared as; an input is to be drawn that there is not, or not to be drawn and missing.
fn along<'m>(
    program: &MeshProgram,
    mesh: &'m Mesh,
    arrays: &BTreeMap<String, Array>,
    drawing: &Drawing,
) -> Result<BTreeMap<VariableId, &'m Field>> {
    let inputs = || {
        let variables = program.program.variables.iter();
        variables.filter(|(id, own)| own.role.is_some_and(Role::is_read) && !program.numbers.contains(id))
    };
    let names: Vec<&str> = inputs().map(|(_, own)| own.name.as_str()).collect();
    drawing.check(&format!("`{}`", program.program.name), &names, |name| arrays.contains_key(name))?;
    let (mut found, mut missing) = (BTreeMap::new(), Vec::new());
    for (id, variable) in inputs().filter(|(_, own)| !arrays.contains_key(&own.name) && !drawing.names(&own.name)) {
        match fitting(mesh, variable, program)? {
            Some(field) => _ = found.insert(id, field),
            None => {
                if let (Some(original), false) = (&variable.original, drawing.draws(&variable.name)) {
                    let names: Vec<&str> = mesh.fields.iter().map(|field| field.name.as_str()).collect();
                    let what = format!(
                        "`{}` is the field `{original}` of a mesh, and {} has none",
                        variable.name, mesh.origin
                    );
                    return Err(Error::input(what).help(match guess(original, names.iter().copied()) {
                        Some(guess) => format!("did you mean `in {guess} as {}`?", variable.name),
                        None => format!(
                            "its fields are {}; or give another: --in {1}={1}.npy",
                            names.join(", "),
                            variable.name
                        ),
                    }));
                }
                missing.push(variable.name.as_str());
            }
        }
    }
    drawing.check_missing(&missing, &format!(", and `{}` has no such field", mesh.origin))?;
    Ok(found)
}

/// The field that came with the mesh under an input's name, if there is one.
///
/// # Errors
/// There are fields of that name, and none is what the input is declared as.
pub(super) fn fitting<'m>(mesh: &'m Mesh, variable: &Variable, program: &MeshProgram) -> Result<Option<&'m Field>> {
    let name = variable.original.as_ref().unwrap_or(&variable.name);
    let Some(first) = mesh.field_named(name) else { return Ok(None) };
    let (declared, place) = (&program.mesh, variable.place);
    // Several sets may have a field of that name.
    let own = place.home.and_then(|home| {
        let set = mesh.set_named(&declared.sets[home.set].name)?;
        let map = home.map.and_then(|map| mesh.map_named(set, &declared.maps[map].name));
        mesh.field_on(name, set, map)
    });
    let parts = place.home.map_or(1, |home| home.parts as usize);
    if let Some(field) = own.filter(|own| own.parts == parts && place.levels == Levels::None) {
        return Ok(Some(field));
    }
    let field = own.unwrap_or(first);
    let kind = match field.data.element() {
        Element::F32 | Element::F64 => "real",
        Element::I32 => "int",
        Element::Bool => "bool",
    };
    let of_parts = |parts: usize| if parts == 1 { String::new() } else { format!("[{parts}]") };
    let origin = &mesh.origin;
    let on = mesh.field_place(field);
    let there = format!("{kind}{}{}", of_parts(field.parts), on.strip_prefix(name.as_str()).unwrap_or(&on));
    let here = format!("{}{}{}", variable.stored, of_parts(parts), declared.place(place));
    Err(match own.is_some_and(|own| own.parts == parts) {
        // Nothing but the levels differ.
        true => Error::input(format!("`{name}` is {here} with levels, in {origin} it is {there} without"))
            .help(format!("declare it as it is there: `{on}, no k`; or give another: --in {0}={0}.npy", variable.name)),
        false => Error::input(format!("`{name}` is {here}, in {origin} it is {there}"))
            .help(format!("declare it as it is there, or give another: --in {0}={0}.npy", variable.name)),
    })
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
    let mut found = given.map(|levels| (levels, "the call".to_owned()));
    for (_, variable) in program.program.variables.iter() {
        let interfaces = match variable.place.levels {
            Levels::None => continue,
            Levels::Full => 0,
            Levels::Interfaces => 1,
        };
        let Some(array) = arrays.get(&variable.name) else { continue };
        // What has another number of axes tells nothing.
        let home =
            variable.place.home.map_or(0, |home| 1 + usize::from(home.map.is_some()) + usize::from(home.parts > 1));
        if array.shape.len() != 1 + home {
            continue;
        }
        let Some(&length) = array.shape.first() else { continue };
        let levels = length.saturating_sub(interfaces);
        match &found {
            Some((known, from)) if *known != levels => {
                let has = match interfaces {
                    0 => format!("{levels} levels"),
                    _ => format!("{length} interfaces, of {levels} levels"),
                };
                return Err(Error::input(format!("`{}` has {has}, {from} says {known}", variable.name)));
            }
            Some(_) => {}
            None => found = Some((levels, format!("`{}`", variable.name))),
        }
    }
    match found {
        Some((0, from)) => Err(Error::input(format!("{from} says that there are no levels"))),
        Some((levels, from)) if levels > LEVELS => {
            Err(Error::input(format!("{from} says that there are {levels} levels: at most {LEVELS} are possible")))
        }
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
