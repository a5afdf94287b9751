//! A problem: a stencil, a grid, and the numbers to compute with, all checked.

mod cells;
pub(crate) mod extents;

use crate::array::{Array, Data, Element};
use crate::drawing::{self, Drawing};
use crate::error::{Error, Result};
use crate::given::{self, Cast, Given};
use crate::interpreter::Job;
use crate::memory;
use crate::random;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::analysis;
use stencilc_compiler::diagnostic::{Refusal, guess};
use stencilc_compiler::grid::{Adjacency, Form, Grid, Region};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{self, Binary, Field, Handle, Kind, Node, Param, Precision, Stencil, Stored};
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
}

/// The type of a field's elements.
pub fn element_of(stored: Stored, precision: Precision) -> Element {
    match (stored, precision) {
        (Stored::F32, _) | (Stored::Real, Precision::F32) => Element::F32,
        (Stored::F64, _) | (Stored::Real, Precision::F64) => Element::F64,
        (Stored::Int, _) => Element::I32,
        (Stored::Bool, _) => Element::Bool,
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
        let Request { precision, settings, seed, cast, drawing, .. } = request;
        let stencil = prepare(request.stencil, precision, request.contract);
        check_names(&stencil, &request.arrays)?;
        check_given(&stencil, &request.arrays, &drawing)?;
        given::lengths(&request.arrays)?;
        let adjacency = request.adjacency;
        let grid = match &adjacency {
            Some(adjacency) => cells::find(&stencil, adjacency, request.grid, &request.arrays)?,
            None => extents::find(&stencil, request.grid, &|name| Some(&request.arrays.get(name)?.shape[..]))?,
        };
        check_memory(&stencil, precision, grid, &request.arrays)?;
        let mut drawn = Vec::new();
        let params = params(&stencil, precision, grid, &settings, seed, &drawing, &mut drawn)?;
        let region_of = |grid: Grid| analysis::region(&stencil, precision, grid, adjacency.as_deref(), &params);
        let region = region_of(grid).map_err(|refusal| {
            // An array in Fortran's order, (ni, nj, nk), is read as a grid that lies on its side.
            let upright = Grid { ni: grid.nk, nk: grid.ni, ..grid };
            let is_transposed = grid.form == Form::Rows && request.grid.is_none() && region_of(upright).is_ok();
            if is_transposed { refusal.help(TRANSPOSED) } else { refusal }
        })?;
        let mut arrays = request.arrays;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (_, field) in stencil.fields.iter() {
            let element = element_of(field.stored, precision);
            let len = grid.shape(field.place).iter().product();
            let input = match (field.role.is_read(), arrays.remove(&field.name)) {
                (false, _) => None,
                (true, Some(array)) => {
                    let given = Given { field: &field.name, holder: "the array" };
                    Some(given::array(array, given, element, cast)?)
                }
                (true, None) => {
                    drawn.push(field.name.clone());
                    Some(drawing::draw(field.range, element, len, seed, &field.name)?)
                }
            };
            outputs.push(match &input {
                _ if !field.role.is_written() => None,
                // What is not computed keeps its value.
                Some(before) => Some(before.clone()),
                None if drawing == Drawing::Everything => {
                    Some(drawing::draw(field.range, element, len, seed, &format!("{} before", field.name))?)
                }
                None => Some(Data::fresh(element, len)),
            });
            inputs.push(input);
        }
        let mut own =
            Problem { stencil, precision, grid, adjacency, region, sharing: None, params, inputs, outputs, drawn };
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

    /// The inputs, by field.
    pub fn inputs(&self) -> Vec<Option<&Data>> {
        self.inputs.iter().map(Option::as_ref).collect()
    }
}

/// Advice where it looks as if an array were not (nk, nj, ni).
const TRANSPOSED: &str = "arrays are (nk, nj, ni), i fastest; if yours is (ni, nj, nk), save its transpose: `array.T`";

fn check_names(stencil: &Stencil, arrays: &BTreeMap<String, Array>) -> Result<()> {
    for name in arrays.keys() {
        let inputs: Vec<&str> =
            fields(stencil).filter(|field| field.role.is_read()).map(|field| field.name.as_str()).collect();
        if inputs.contains(&name.as_str()) {
            continue;
        }
        let error = Error::call(format!("stencil `{}` has no input `{name}`", stencil.name));
        if fields(stencil).any(|field| field.name == *name) {
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
fn check_given(stencil: &Stencil, arrays: &BTreeMap<String, Array>, drawing: &Drawing) -> Result<()> {
    let inputs: Vec<&str> =
        fields(stencil).filter(|field| field.role.is_read()).map(|field| field.name.as_str()).collect();
    drawing.check(&format!("stencil `{}`", stencil.name), &inputs, |name| arrays.contains_key(name))?;
    let missing: Vec<&str> = inputs.into_iter().filter(|name| !arrays.contains_key(*name)).collect();
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

/// Refuses what this machine's memory does not hold, before anything is allocated: what is read and not `given`, and what is
/// written.
pub(crate) fn check_memory(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    given: &BTreeMap<String, Array>,
) -> Result<()> {
    let bytes: u128 = fields(stencil)
        .map(|field| {
            let len: u128 = grid.shape(field.place).iter().map(|&n| n as u128).product();
            let is_drawn = field.role.is_read() && !given.contains_key(&field.name);
            let arrays = u128::from(is_drawn) + u128::from(field.role.is_written());
            arrays * len * element_of(field.stored, precision).bytes() as u128
        })
        .sum();
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
