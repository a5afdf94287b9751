//! A problem: a stencil, a grid, and the numbers to compute with, all checked.

mod cells;
mod extents;

use crate::array::{Array, Data, Element};
use crate::error::{Error, Result};
use crate::interpreter::Job;
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
    pub cast: bool,
    /// Whether parameters without a value are drawn too, and outputs start from random numbers.
    pub draw_all: bool,
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
    /// parameters without a value.
    pub fn new(request: Request) -> Result<Problem> {
        let Request { precision, settings, seed, cast, draw_all, .. } = request;
        let stencil = prepare(request.stencil, precision, request.contract);
        check_names(&stencil, &request.arrays)?;
        let adjacency = request.adjacency;
        let grid = match &adjacency {
            Some(adjacency) => cells::find(&stencil, adjacency, request.grid, &request.arrays)?,
            None => extents::find(&stencil, request.grid, &request.arrays)?,
        };
        check_memory(&stencil, precision, grid)?;
        let mut drawn = Vec::new();
        let params = params(&stencil, precision, grid, &settings, seed, draw_all, &mut drawn)?;
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
                (true, Some(array)) => Some(converted(array.data, element, &field.name, cast)?),
                (true, None) => {
                    drawn.push(field.name.clone());
                    Some(draw(field, element, len, seed, &field.name))
                }
            };
            outputs.push(field.role.is_written().then(|| match &input {
                // What is not computed keeps its value.
                Some(before) => before.clone(),
                None if draw_all => draw(field, element, len, seed, &format!("{} before", field.name)),
                None => Data::fresh(element, len),
            }));
            inputs.push(input);
        }
        Ok(Problem { stencil, precision, grid, adjacency, region, sharing: None, params, inputs, outputs, drawn })
    }
}

impl Problem {
    /// Lets kernels share their layout with those of `stencils`, as they were lowered, this one among them.
    pub fn share<'a>(&mut self, stencils: impl IntoIterator<Item = &'a Stencil>, contract: bool) {
        let prepared = stencils.into_iter().map(|stencil| prepare(stencil, self.precision, contract));
        let prepared: Vec<Stencil> = prepared.collect();
        self.sharing = Some(Sharing::new(&prepared, self.precision, self.grid, self.adjacency.as_deref()));
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

fn draw(field: &Field, element: Element, len: usize, seed: u64, name: &str) -> Data {
    draw_array(field.range, element, len, seed, name)
}

/// Random numbers for a field.
pub(crate) fn draw_array(range: Option<(f64, f64)>, element: Element, len: usize, seed: u64, name: &str) -> Data {
    let (low, high) = range.unwrap_or(if element == Element::I32 { (0.0, 10.0) } else { (-1.0, 1.0) });
    random::fill(element, len, low, high, seed, name)
}

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
    let cells = grid.ni as u128 * grid.nj as u128 * (grid.nk as u128 + 1);
    if cells > 1 << 46 {
        return Err(Error::input(format!("the grid {grid} has {cells} cells: more than any machine holds"))
            .help("give a smaller --grid"));
    }
    Ok(grid)
}

/// Refuses what this machine's memory does not hold, before anything is allocated.
pub(crate) fn check_memory(stencil: &Stencil, precision: Precision, grid: Grid) -> Result<()> {
    let bytes: u128 = fields(stencil)
        .map(|field| {
            let len: u128 = grid.shape(field.place).iter().map(|&n| n as u128).product();
            len * element_of(field.stored, precision).bytes() as u128
        })
        .sum();
    check_room(bytes, &format!("the fields of grid {grid} take"), "give a smaller --grid, or --precision f32")
}

/// Refuses more bytes than this machine's memory has free. `what` takes them: "the fields take".
///
/// # Errors
/// There is not so much.
pub fn check_room(bytes: u128, what: &str, help: &str) -> Result<()> {
    match available_memory() {
        Some(available) if bytes > u128::from(available) => Err(Error::input(format!(
            "{what} {:.1} GiB, this machine has {:.1} GiB free",
            gib(bytes),
            gib(u128::from(available))
        ))
        .help(help)),
        _ => Ok(()),
    }
}

fn gib(bytes: u128) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// Bytes that Linux says could be used; nothing elsewhere, where the allocator has to tell.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

pub(crate) fn params(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    settings: &BTreeMap<String, String>,
    seed: u64,
    draw_all: bool,
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
    let mut values = Vec::new();
    for (_, param) in stencil.params.iter() {
        let default = param.default.as_ref().and_then(|body| body.literal());
        let value = match (settings.get(&param.name), default) {
            (Some(text), _) => parse(param, text)?,
            (None, Some(literal)) => ir::scalar::apply(precision, literal, &[]).unwrap_or(Value::Int(0)),
            (None, None) if draw_all => {
                drawn.push(param.name.clone());
                draw_param(param, grid, seed)
            }
            (None, None) => {
                return Err(Error::call(format!("the parameter `{}` has no value", param.name)).help(format!(
                    "give one: --set {}={}",
                    param.name,
                    if param.kind == Kind::Int { "3" } else { "0.5" }
                )));
            }
        };
        values.push(value.rounded(precision));
    }
    check_divisors(stencil, &values)?;
    Ok(values)
}

fn parse(param: &Param, text: &str) -> Result<Value> {
    let text = text.trim();
    let value = match param.kind {
        // `inf` is meant, 1e999 is not.
        Kind::Real => {
            let value = text
                .parse()
                .ok()
                .filter(|value: &f64| value.is_finite() || !text.contains(|c: char| c.is_ascii_digit()));
            value.map(Value::Real)
        }
        Kind::Int => text.parse().ok().map(Value::Int),
        Kind::Bool => text.parse().ok().map(Value::Bool),
    };
    value.ok_or_else(|| {
        let expected = match param.kind {
            Kind::Real => "a number such as 0.5",
            Kind::Int => "a whole number of 32 bits such as 3",
            Kind::Bool => "true or false",
        };
        Error::call(format!("`{text}` is no value for the parameter `{}`", param.name)).help(format!("give {expected}"))
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

/// The numbers as `element`: exactly, or as near as possible if `cast`.
pub(crate) fn converted(data: Data, element: Element, name: &str, cast: bool) -> Result<Data> {
    let own = data.element();
    if own == element {
        return Ok(data);
    }
    let is_exact = matches!((own, element), (Element::F32 | Element::I32, Element::F64));
    if !is_exact && !cast {
        return Err(Error::input(format!("`{name}` is stored as {}, the array holds {}", element.name(), own.name()))
            .help(match (own, element) {
                (_, Element::Bool) => {
                    "save it as truth values, in NumPy by `.astype(bool)`; or give --cast, which takes 0 for false"
                }
                (Element::F64, Element::F32) => "give --cast to round it; or --precision f64, if the field is `real`",
                _ => "give --cast to convert it, which may round",
            }));
    }
    let len = data.len();
    let numbers = (0..len).map(|index| data.get(index));
    Ok(match element {
        Element::F32 => Data::F32(numbers.map(|x| x as f32).collect()),
        Element::F64 => Data::F64(numbers.collect()),
        Element::I32 => Data::I32(numbers.map(|x| x as i32).collect()),
        Element::Bool => Data::Bool(numbers.map(|x| u8::from(x != 0.0)).collect()),
    })
}
