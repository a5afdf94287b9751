//! A problem: a stencil, a grid, and the numbers to compute with, all checked.

mod cells;
pub(crate) mod extents;
mod fields;

use crate::array::{Array, Data, Element};
use crate::drawing::Drawing;
use crate::error::{Error, Result};
use crate::given::{self, Cast};
use crate::interpreter::Job;
use crate::memory;
use crate::npy::Stored;
use crate::random;
use crate::rows::{Part, Slab};
use fields::Fields;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::analysis;
use stencilc_compiler::diagnostic::{Refusal, guess};
use stencilc_compiler::grid::{Adjacency, Form, Grid, Region};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{
    self, Binary, Field, Handle, Kind, Node, Param, Place, Precision, Stencil, Stored as Type,
};
use stencilc_compiler::plan::prepare;
use stencilc_compiler::storage::sharing::Sharing;

/// What a user asks for.
#[derive(Debug)]
pub struct Request<'a> {
    /// A stencil as it was lowered.
    pub stencil: &'a Stencil,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// The grid, if it does not follow from the arrays.
    pub grid: Option<Grid>,
    /// Which columns are neighbours, if they stand in no rows; then `grid` says how many levels there are.
    pub adjacency: Option<Arc<Adjacency>>,
    /// Arrays by the name of their field.
    pub arrays: BTreeMap<String, Array>,
    /// Parameters by name, as text.
    pub settings: BTreeMap<String, String>,
    /// Of the random numbers that fill what is not given.
    pub seed: u64,
    /// Whether numbers may lose precision to fit their field.
    pub cast: Cast,
    /// What is drawn where it is not given.
    pub drawing: Drawing,
}

/// Everything that a computation needs.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The stencil, contracted and folded.
    pub stencil: Stencil,
    /// What `real` is.
    pub precision: Precision,
    /// The grid.
    pub grid: Grid,
    /// Which columns are neighbours, if they stand in no rows.
    pub adjacency: Option<Arc<Adjacency>>,
    /// What is computed.
    pub region: Region,
    /// The stencils that kernels share their layout with.
    pub sharing: Option<Sharing>,
    /// A value for each parameter.
    pub params: Vec<Value>,
    /// By field: what is read, in the user's order.
    pub inputs: Vec<Option<Data>>,
    /// By field: what outputs hold before, in the user's order.
    pub outputs: Vec<Option<Data>>,
    /// Names of inputs and parameters that were drawn at random.
    pub drawn: Vec<String>,
    /// The part whose rows it has, of fields that have rows; if there is none it has all.
    pub part: Option<Part>,
    /// By field of which it has some rows: a hash of those of the next part, as they are here.
    pub(crate) seen: BTreeMap<String, [u8; 32]>,
}

/// The type of a field's elements.
pub fn element_of(stored: Type, precision: Precision) -> Element {
    match (stored, precision) {
        (Type::F32, _) | (Type::Real, Precision::F32) => Element::F32,
        (Type::F64, _) | (Type::Real, Precision::F64) => Element::F64,
        (Type::Int, _) => Element::I32,
        (Type::Bool, _) => Element::Bool,
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let error = Error::input(refusal.message);
        match refusal.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

impl Problem {
    /// Checks a request and fills in what it leaves open.
    ///
    /// # Errors
    /// Names that do not exist, arrays of the wrong shape or type, a grid that is missing, too small or too large,
    /// parameters without a value, numbers that say levels which are not there.
    pub fn new(request: Request) -> Result<Problem> {
        Self::partly(request, BTreeMap::new(), None)
    }

    /// The same, where some arrays are in files; of a part, if one is named, with its rows alone, of which nothing else is read or drawn. Only a
    /// grid in rows has parts.
    ///
    /// # Errors
    /// As [`Problem::new`]; or a file cannot be read.
    pub(crate) fn partly(request: Request, files: BTreeMap<String, Stored>, part: Option<Part>) -> Result<Problem> {
        let Request { precision, settings, seed, cast, drawing, .. } = request;
        let stencil = prepare(request.stencil, precision, request.contract);
        let adjacency = request.adjacency;
        let mut given = Fields::new(request.arrays, files, part.filter(|_| adjacency.is_none()))?;
        check_names(&stencil, given.names())?;
        check_given(&stencil, |name| given.has(name), &drawing)?;
        given::lengths(given.arrays())?;
        let grid = match &adjacency {
            Some(adjacency) => cells::find(&stencil, adjacency, request.grid, given.arrays())?,
            None => extents::find(&stencil, request.grid, &|name| given.shape(name))?,
        };
        check_memory(&stencil, precision, grid, given.part, |name| given.has(name))?;
        let mut drawn = Vec::new();
        let params = params(&stencil, precision, grid, &settings, seed, &drawing, &mut drawn)?;
        let region_of = |grid: Grid| analysis::region(&stencil, precision, grid, adjacency.as_deref(), &params);
        let region = region_of(grid).map_err(|refusal| {
            // An array in Fortran's order, (ni, nj, nk), is read as a grid that lies on its side.
            let upright = Grid { ni: grid.nk, nk: grid.ni, ..grid };
            let is_transposed = grid.form == Form::Rows && request.grid.is_none() && region_of(upright).is_ok();
            if is_transposed { refusal.help(TRANSPOSED) } else { refusal }
        })?;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (_, field) in stencil.fields.iter() {
            let element = element_of(field.stored, precision);
            let input = if field.role.is_read() { Some(given.read(field, element, grid, seed, cast)?) } else { None };
            drawn.extend(input.as_ref().filter(|own| own.is_drawn).map(|_| field.name.clone()));
            let input = input.map(|own| own.data);
            outputs.push(match &input {
                _ if !field.role.is_written() => None,
                // What is not computed keeps its value: a program has it among its inputs, and of a part nothing is kept twice.
                Some(_) if given.part.is_some() => None,
                Some(before) => Some(before.clone()),
                None if drawing == Drawing::Everything => {
                    Some(given.drawn(field, element, grid, seed, &format!("{} before", field.name))?)
                }
                None => Some(Data::fresh(element, given.len(field, element, grid))),
            });
            inputs.push(input);
        }
        let Fields { part, seen, .. } = given;
        let sharing = None;
        let mut own = Problem {
            stencil,
            precision,
            grid,
            adjacency,
            region,
            sharing,
            params,
            inputs,
            outputs,
            drawn,
            part,
            seen,
        };
        own.look_at_levels()?;
        Ok(own)
    }
}

impl Problem {
    /// Lets kernels share their layout with those of `stencils`, as they were lowered, this one among them.
    pub fn share<'a>(&mut self, stencils: impl IntoIterator<Item = &'a Stencil>, contract: bool) {
        let prepared = stencils.into_iter().map(|stencil| prepare(stencil, self.precision, contract));
        let prepared: Vec<Stencil> = prepared.collect();
        self.sharing = Some(Sharing::new(&prepared, self.precision, self.grid, self.adjacency.as_deref()));
    }

    /// The values of its parameters, as `--set` says them.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let names = self.stencil.params.iter().map(|(_, param)| param.name.clone());
        let spelled = |value: &Value| match value {
            Value::Real(x) => format!("{x:?}"),
            Value::Int(x) => x.to_string(),
            Value::Bool(x) => x.to_string(),
        };
        names.zip(self.params.iter().map(spelled)).collect()
    }

    /// What the interpreter is given.
    pub fn job<'a>(&'a self, inputs: &'a [Option<&'a Data>]) -> Job<'a> {
        Job {
            stencil: &self.stencil,
            precision: self.precision,
            grid: self.grid,
            adjacency: self.adjacency.as_deref(),
            region: &self.region,
            params: &self.params,
            inputs,
        }
    }

    /// The rows that it has of a field at a place; nothing if it has all, or the field has no rows.
    pub fn slab(&self, place: Place) -> Option<Slab> {
        Slab::new(self.grid, place, self.part?.rows(self.grid.nj))
    }

    /// Keeps of each field the rows of its part, once nobody has to look at others.
    pub(crate) fn keep_rows(&mut self) {
        let Some(part) = self.part else { return };
        for (n, (_, field)) in self.stencil.fields.iter().enumerate() {
            let slab_of = |part: Part| Slab::new(self.grid, field.place, part.rows(self.grid.nj));
            let (Some(own), Some(next)) = (slab_of(part), slab_of(part.next())) else { continue };
            let is_whole = |data: &&mut Data| data.len() == own.whole();
            if let Some(input) = self.inputs[n].as_mut().filter(is_whole) {
                self.seen.insert(field.name.clone(), hash_of(&next.of(input)));
                *input = own.of(input);
            }
            if let Some(output) = self.outputs[n].as_mut().filter(is_whole) {
                *output = own.of(output);
            }
        }
    }

    /// The inputs, by field.
    pub fn inputs(&self) -> Vec<Option<&Data>> {
        self.inputs.iter().map(Option::as_ref).collect()
    }
}

/// Advice where it looks as if an array were not (nk, nj, ni).
const TRANSPOSED: &str = "arrays are (nk, nj, ni), i fastest; if yours is (ni, nj, nk), save its transpose: `array.T`";

fn check_names<'a>(stencil: &Stencil, given: impl Iterator<Item = &'a str>) -> Result<()> {
    for name in given {
        let inputs: Vec<&str> =
            fields(stencil).filter(|field| field.role.is_read()).map(|field| field.name.as_str()).collect();
        if inputs.contains(&name) {
            continue;
        }
        let error = Error::call(format!("stencil `{}` has no input `{name}`", stencil.name));
        if fields(stencil).any(|field| field.name == name) {
            return Err(error.help(format!("`{name}` is an output: write it with --out {name}={name}.npy")));
        }
        return Err(match guess(name, inputs.iter().copied()) {
            Some(guess) => error.help(format!("did you mean `{guess}`?")),
            None => error.help(format!("its inputs are {}", inputs.join(", "))),
        });
    }
    Ok(())
}

/// Whether every input is given, or to be drawn.
fn check_given(stencil: &Stencil, is_given: impl Fn(&str) -> bool, drawing: &Drawing) -> Result<()> {
    let inputs: Vec<&str> =
        fields(stencil).filter(|field| field.role.is_read()).map(|field| field.name.as_str()).collect();
    drawing.check(&format!("stencil `{}`", stencil.name), &inputs, &is_given)?;
    let missing: Vec<&str> = inputs.into_iter().filter(|name| !is_given(name)).collect();
    drawing.check_missing(&missing, "")
}

fn fields(stencil: &Stencil) -> impl Iterator<Item = &Field> {
    stencil.fields.iter().map(|(_, field)| field)
}

/// The grid, if it is one that fields can have.
///
/// # Errors
/// It has no cells, or more than any machine holds.
pub fn checked(grid: Grid) -> Result<Grid> {
    if grid.ni == 0 || grid.nj == 0 || grid.nk == 0 {
        return Err(Error::input(format!("the grid {grid} has no cells")).help("every extent is at least 1"));
    }
    let cells = (grid.ni as u128 * grid.nj as u128).saturating_mul(grid.nk as u128 + 1);
    if cells > 1 << 46 {
        return Err(Error::input(format!("the grid {grid} has {cells} cells: more than any machine holds"))
            .help("give a smaller --grid"));
    }
    Ok(grid)
}

/// What a part has of so many bytes of a grid's fields.
pub(crate) fn of_part(bytes: u128, part: Option<Part>, grid: Grid) -> u128 {
    part.map_or(bytes, |part| bytes.div_ceil(grid.nj.max(1) as u128) * part.rows(grid.nj).len() as u128)
}

/// A hash of numbers.
pub(crate) fn hash_of(data: &Data) -> [u8; 32] {
    *blake3::hash(data.bytes()).as_bytes()
}

/// Refuses what this machine's memory does not hold, before anything is allocated: what is read and not `given`, and what is
/// written.
pub(crate) fn check_memory(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    part: Option<Part>,
    is_given: impl Fn(&str) -> bool,
) -> Result<()> {
    let bytes: u128 = fields(stencil)
        .map(|field| {
            let len: u128 = grid.shape(field.place).iter().map(|&n| n as u128).product();
            let is_drawn = field.role.is_read() && !is_given(&field.name);
            let arrays = u128::from(is_drawn) + u128::from(field.role.is_written());
            arrays * len * element_of(field.stored, precision).bytes() as u128
        })
        .sum();
    let bytes = of_part(bytes, part, grid);
    memory::check(bytes, &format!("the fields of grid {grid} take"), "give a smaller --grid, or --precision f32")
}

pub(crate) fn params(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    settings: &BTreeMap<String, String>,
    seed: u64,
    drawing: &Drawing,
    drawn: &mut Vec<String>,
) -> Result<Vec<Value>> {
    let names: Vec<&str> = stencil.params.iter().map(|(_, param)| param.name.as_str()).collect();
    if let Some(name) = settings.keys().find(|name| !names.contains(&name.as_str())) {
        let error = Error::call(format!("stencil `{}` has no parameter `{name}`", stencil.name));
        // Sizes of sets are parameters that nobody sets.
        let names: Vec<&str> = names.into_iter().filter(|name| !name.contains('(')).collect();
        return Err(match (guess(name, names.iter().copied()), names.is_empty()) {
            (Some(guess), _) => error.help(format!("did you mean `{guess}`?")),
            (None, true) => error.help("it has none"),
            (None, false) => error.help(format!("its parameters are {}", names.join(", "))),
        });
    }
    let (mut values, mut missing) = (Vec::new(), Vec::new());
    for (_, param) in stencil.params.iter() {
        let default = param.default.as_ref().and_then(|body| body.literal());
        let value = match (settings.get(&param.name), default) {
            (Some(text), _) => given::parameter(param, text, precision)?,
            (None, Some(literal)) => ir::scalar::apply(precision, literal, &[]).unwrap_or(Value::Int(0)),
            (None, None) if *drawing == Drawing::Everything => {
                drawn.push(param.name.clone());
                draw_param(param, grid, seed)
            }
            (None, None) => {
                missing.push(param);
                continue;
            }
        };
        values.push(value.rounded(precision));
    }
    check_valued(&missing)?;
    check_divisors(stencil, &values)?;
    Ok(values)
}

/// Refuses parameters without a value, all at once.
fn check_valued(missing: &[&Param]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|param| param.name.as_str()).collect();
    let values = missing.iter().map(|param| {
        let value = match param.kind {
            Kind::Int => "3",
            Kind::Real => "0.5",
            Kind::Bool => "true",
        };
        format!("--set {}={value}", param.name)
    });
    let values: Vec<String> = values.collect();
    Err(match names.as_slice() {
        [] => return Ok(()),
        [one] => Error::call(format!("the parameter `{one}` has no value")).help(format!("give one: {}", values[0])),
        all => Error::call(format!("the parameters `{}` have no value", all.join("`, `")))
            .help(format!("give them: {}", values.join(" "))),
    })
}

/// A parameter for verification: neither 0 nor large.
fn draw_param(param: &Param, grid: Grid, seed: u64) -> Value {
    let uniform = random::fill(Element::F64, 1, 0.5, 1.5, seed, &param.name).get(0);
    match param.kind {
        Kind::Real => Value::Real(uniform),
        // Whole parameters are mostly levels or counts.
        Kind::Int => Value::Int(1 + ((grid.nk / 4).min(1000) as f64 * uniform) as i32),
        Kind::Bool => Value::Bool(uniform < 1.0),
    }
}

/// A parameter that is the divisor of a whole `%` is not 0.
pub(crate) fn check_divisors(stencil: &Stencil, values: &[Value]) -> Result<()> {
    for body in stencil.bodies() {
        for (_, node) in body.iter() {
            let Node::Binary(Binary::Rem, _, divisor) = node else { continue };
            if let Node::Param(param) = body[*divisor]
                && values[param.index()] == Value::Int(0)
            {
                let name = &stencil.params[param].name;
                return Err(Error::call(format!("the parameter `{name}` is 0, and a remainder divides by it"))
                    .help(format!("give another value: --set {name}=1")));
            }
        }
    }
    Ok(())
}
