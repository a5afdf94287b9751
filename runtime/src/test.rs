//! Runs a test of the source: its inputs, the stencil, and what is expected of it.
//!
//! A test's own two stencils (see [`ir::Test`](stencilc_compiler::ir::Test)) are computed by the interpreter. Around the
//! grid their arrays have a margin where the coordinates go on, so that a value made of them exists at any offset.

use crate::array::{Array, Data};
use crate::drawing::Drawing;
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::given::{self, Cast};
use crate::interpreter::{Job, interpret};
use crate::problem::{Problem, Request, element_of};
use crate::program::cpu::Interpreter;
use crate::program::{ProgramProblem, results};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::analysis::extents::{demand, extents};
use stencilc_compiler::analysis::levels::{Known, readable_with_said};
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::scalar::{Value, apply};
use stencilc_compiler::ir::{
    Body, COORDINATES, Expectation, FieldId, Handle, Levels, Node, Param, Place, Precision, Program, Role, Stencil,
    Test,
};
use stencilc_compiler::plan::prepare;
use stencilc_compiler::source::Span;

/// The most cells of a grid with its margin.
const CELLS: u128 = 1 << 24;

/// How a test is run.
pub struct Options<'a> {
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// Computes the outputs, by field. What was computed it writes into the problem.
    pub compute: &'a dyn Fn(&mut Problem) -> Result<Computed>,
}

/// What came of a test.
#[derive(Debug)]
pub struct Report {
    /// What the stencil computed.
    pub region: Region,
    /// What was not as expected, in the order of the text.
    pub failures: Vec<Failure>,
}

/// What was computed, by the fields of a problem.
pub struct Computed {
    /// The outputs.
    pub outputs: Vec<Option<Data>>,
    /// On which levels.
    pub levels: Vec<Range<usize>>,
}

/// An expectation that does not hold.
#[derive(Debug)]
pub struct Failure {
    /// Where the expectation stands.
    pub span: Span,
    /// On how many cells it was looked at; 0 is a failure, too.
    pub cells: usize,
    /// On how many of them it is false.
    pub failed: usize,
    /// The first of these.
    pub first: First,
    /// Values at that cell: where each is written, and the value.
    pub values: Vec<(Span, String)>,
}

/// Where an expectation does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum First {
    /// On a grid: along i, j and k.
    Cell([usize; 3]),
    /// Over a mesh.
    Element {
        /// Of which set.
        set: String,
        /// Its number.
        element: usize,
        /// The level, where there are several.
        level: Option<usize>,
    },
}

/// Runs `test`, which is one of `stencil`.
///
/// # Errors
/// The grid is smaller than the stencil's reach, a parameter does not suit it, or the stencil cannot be computed.
pub fn run(stencil: &Stencil, test: &Test, options: &Options) -> Result<Report> {
    let Options { precision, contract, .. } = *options;
    let inputs = prepare(&test.inputs, precision, contract);
    // What the test sets goes before the defaults.
    let mut values = defaults(&prepare(stencil, precision, contract), precision);
    let mut set = defaults(&inputs, precision);
    for (name, value) in stencil.params.iter().filter_map(|(_, param)| set.get_key_value(&param.name)) {
        given::set(name, *value, precision)?;
    }
    values.append(&mut set);
    let arrays = arrays(&inputs, test.grid, precision, &values)?;
    let problem = Problem::new(Request {
        stencil: &with_defaults(stencil, &values),
        precision,
        contract,
        grid: Some(test.grid),
        adjacency: None,
        arrays,
        settings: BTreeMap::new(),
        seed: 0,
        cast: Cast::Exact,
        drawing: Drawing::Nothing,
    });
    let mut problem = problem.map_err(without_options)?;
    let computed = (options.compute)(&mut problem)?;
    let checks = Checks::new(prepare(&test.checks, precision, contract), &problem, &computed, &values)?;
    let failures = test.expectations.iter().map(|expectation| checks.failure(expectation));
    let failures = failures.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    Ok(Report { region: problem.region, failures })
}

/// An error without advice about options, which is not for those who write a test.
pub(crate) fn without_options(error: Error) -> Error {
    Error { help: error.help.filter(|help| !help.contains("--")), ..error }
}

/// Computes the outputs by the interpreter.
///
/// # Errors
/// Those of [`interpret`].
pub fn interpreted(problem: &Problem) -> Result<Computed> {
    let mut outputs = problem.outputs.clone();
    interpret(&problem.job(&problem.inputs()), &mut outputs, &|_| {})?;
    let levels = outputs.iter().map(|_| problem.region.k.clone()).collect();
    Ok(Computed { outputs, levels })
}

/// Computes the outputs of a program by the interpreter.
///
/// # Errors
/// The program does not fit the grid, or those of [`interpret`].
pub fn interpreted_program(program: &Program, problem: &mut Problem, contract: bool) -> Result<Computed> {
    let own = Arc::new(ProgramProblem::of(program, problem.clone(), contract)?);
    problem.region = own.outer.region.clone();
    let mut driver = Driver::new(Interpreter::new(Arc::clone(&own))).given()?;
    driver.finish()?;
    let levels = own.staged.program.outer().map(|variable| own.region_of(variable).k).collect();
    Ok(Computed { outputs: results(&own, &driver)?, levels })
}

/// The values that parameters of a prepared stencil have if none is given.
pub(crate) fn defaults(stencil: &Stencil, precision: Precision) -> BTreeMap<String, Value> {
    let default = |param: &Param| apply(precision, param.default.as_ref()?.literal()?, &[]);
    stencil.params.iter().filter_map(|(_, param)| Some((param.name.clone(), default(param)?))).collect()
}

/// The stencil with these values as defaults of its parameters.
pub(crate) fn with_defaults(stencil: &Stencil, values: &BTreeMap<String, Value>) -> Stencil {
    let mut stencil = stencil.clone();
    for param in stencil.params.values_mut() {
        if let Some(value) = values.get(&param.name) {
            let mut body = Body::new();
            let literal = match *value {
                Value::Real(x) => Node::Real(x),
                Value::Int(x) => Node::Int(x),
                Value::Bool(x) => Node::Bool(x),
            };
            body.add(literal, param.kind, param.span);
            param.default = Some(body);
        }
    }
    stencil
}

/// The values of a stencil's parameters, by its own defaults where nothing else is known.
pub(crate) fn values_of(
    stencil: &Stencil,
    precision: Precision,
    values: &BTreeMap<String, Value>,
) -> Result<Vec<Value>> {
    let own = defaults(stencil, precision);
    let value = |param: &Param| values.get(&param.name).or_else(|| own.get(&param.name)).copied();
    let params = stencil.params.iter().map(|(_, param)| {
        value(param).ok_or_else(|| Error::input(format!("the parameter `{}` has no value", param.name)))
    });
    params.collect()
}

/// A grid with a margin, in which offsets lie inside.
#[derive(Clone, Copy)]
struct Frame {
    inner: Grid,
    outer: Grid,
    /// Cells before the first along i and j.
    before: [usize; 2],
}

impl Frame {
    /// Wide enough for every horizontal read of `stencil`; `nk` levels, whatever the grid has.
    fn new(stencil: &Stencil, inner: Grid, nk: usize) -> Result<Self> {
        let reach = extents(stencil);
        let cells = |offset: i32| offset.unsigned_abs() as usize;
        let before = [cells(reach.low.i), cells(reach.low.j)];
        let ni = inner.ni + before[0] + cells(reach.high.i);
        let nj = inner.nj + before[1] + cells(reach.high.j);
        if ni as u128 * nj as u128 * nk as u128 > CELLS {
            return Err(Error::input("this test looks too far beyond its grid").help("use smaller offsets"));
        }
        Ok(Self { inner, outer: Grid::rows(ni, nj, nk), before })
    }

    /// The cells of the inner grid, on these levels.
    fn region(&self, i: Range<usize>, j: Range<usize>, k: Range<usize>) -> Region {
        let [left, top] = self.before;
        Region::rows(i.start + left..i.end + left, j.start + top..j.end + top, k)
    }

    /// Where the values of an array on the inner grid are.
    fn numbers(&self, place: Place) -> impl Iterator<Item = usize> + use<> {
        let Grid { ni, nj, nk, .. } = self.inner;
        self.region(0..ni, 0..nj, 0..place.levels.count(nk)).numbers(self.outer, place)
    }

    /// How many values a field has.
    fn len(&self, place: Place) -> usize {
        self.outer.shape(place).iter().product()
    }

    /// The arrays of i and j.
    fn coordinates(&self) -> [Data; 2] {
        let Grid { ni, nj, .. } = self.outer;
        let [left, top] = self.before;
        let along = |number: usize, before: usize| number as i32 - before as i32;
        let cells = || (0..nj).flat_map(|j| (0..ni).map(move |i| (i, j)));
        [
            Data::I32(cells().map(|(i, _)| along(i, left)).collect()),
            Data::I32(cells().map(|(_, j)| along(j, top)).collect()),
        ]
    }
}

/// The arrays that a test gives, by field.
fn arrays(
    stencil: &Stencil,
    grid: Grid,
    precision: Precision,
    values: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Array>> {
    // An array of interfaces has a value more than there are levels.
    let frame = Frame::new(stencil, grid, grid.nk + 1)?;
    let [i, j] = frame.coordinates();
    let inputs: Vec<Option<&Data>> =
        stencil.fields.iter().map(|(_, field)| coordinate(&field.name).map(|axis| [&i, &j][axis])).collect();
    let written = stencil.fields.iter().map(|(_, field)| {
        let element = element_of(field.stored, precision);
        field.role.is_written().then(|| Data::fresh(element, frame.len(field.place)))
    });
    let mut outputs: Vec<Option<Data>> = written.collect();
    let params = values_of(stencil, precision, values)?;
    let region = frame.region(0..grid.ni, 0..grid.nj, 0..frame.outer.nk);
    let job = Job {
        stencil,
        precision,
        grid: frame.outer,
        adjacency: None,
        region: &region,
        params: &params,
        inputs: &inputs,
    };
    interpret(&job, &mut outputs, &|_| {})?;
    let arrays = stencil.fields.iter().zip(outputs).filter_map(|((_, field), data)| {
        let data = data?.pick(frame.numbers(field.place));
        Some((field.name.clone(), Array { shape: grid.shape(field.place), data }))
    });
    Ok(arrays.collect())
}

/// Which coordinate a field of a test's own stencil holds.
fn coordinate(name: &str) -> Option<usize> {
    COORDINATES.iter().position(|own| *own == name)
}

/// What is expected, and all that it is made of.
struct Checks<'a> {
    stencil: Stencil,
    problem: &'a Problem,
    frame: Frame,
    params: Vec<Value>,
    /// By field of `stencil`: what is read.
    inputs: Vec<Option<Data>>,
    /// By field of `stencil`: whether it was computed; nothing of what is no field of the tested stencil.
    computed: Vec<Option<bool>>,
    /// By field of `stencil`: on which levels it was computed, if it was.
    there: Vec<Range<usize>>,
    /// The levels on which anything was computed.
    levels: Range<usize>,
}

impl<'a> Checks<'a> {
    fn new(
        mut stencil: Stencil,
        problem: &'a Problem,
        Computed { outputs, levels }: &Computed,
        values: &BTreeMap<String, Value>,
    ) -> Result<Self> {
        let end = levels.iter().map(|own| own.end).fold(problem.region.k.end, usize::max);
        let all_levels = problem.region.k.start..end;
        goes_on_as(&mut stencil, &all_levels, problem.grid.nk);
        let frame = Frame::new(&stencil, problem.grid, problem.grid.nk)?;
        let params = values_of(&stencil, problem.precision, values)?;
        let axes = frame.coordinates();
        let (mut inputs, mut computed, mut there) = (Vec::new(), Vec::new(), Vec::new());
        for (_, field) in stencil.fields.iter() {
            let own = problem.stencil.field_named(&field.name);
            let data = match (coordinate(&field.name), own) {
                (Some(axis), _) => Some(axes[axis].clone()),
                (None, Some(own)) => {
                    let data = outputs[own.index()].as_ref().or(problem.inputs[own.index()].as_ref());
                    data.map(|data| data.spread(frame.len(field.place), frame.numbers(field.place)))
                }
                (None, None) => None,
            };
            inputs.push(data);
            computed.push(own.map(|own| problem.stencil.fields[own].role != Role::In));
            there.push(own.map_or_else(|| all_levels.clone(), |own| levels[own.index()].clone()));
        }
        Ok(Self { stencil, problem, frame, params, inputs, computed, there, levels: all_levels })
    }

    /// Nothing if the expectation holds.
    fn failure(&self, expectation: &Expectation) -> Result<Option<Failure>> {
        let only = self.only(expectation.truth);
        let (i, j) = self.columns(&only);
        let levels = self.levels(&only, self.levels.clone());
        let (mut cells, mut failed, mut first) = (0, 0, None);
        for run in levels.chunk_by(|below, above| below + 1 == *above) {
            let (Some(&low), Some(&high)) = (run.first(), run.last()) else { continue };
            let region = self.frame.region(i.clone(), j.clone(), low..high + 1);
            let truth = self.compute(&only, expectation.truth, &region)?;
            let place = self.stencil.fields[expectation.truth].place;
            for number in region.numbers(self.frame.outer, place) {
                cells += 1;
                if truth.get(number) == 0.0 {
                    failed += 1;
                    first.get_or_insert(number);
                }
            }
        }
        let span = expectation.span;
        let Some(number) = first else {
            let empty = Failure { span, cells, failed, first: First::Cell([0; 3]), values: Vec::new() };
            return Ok((cells == 0).then_some(empty));
        };
        let Grid { ni, nj, .. } = self.frame.outer;
        let first = [number % ni - self.frame.before[0], number / ni % nj - self.frame.before[1], number / ni / nj];
        let values = self.values(expectation, number, first)?;
        Ok(Some(Failure { span, cells, failed, first: First::Cell(first), values }))
    }

    /// The values of an expectation's parts at one cell, except those that do not exist there.
    fn values(&self, expectation: &Expectation, number: usize, [i, j, k]: [usize; 3]) -> Result<Vec<(Span, String)>> {
        let region = self.frame.region(i..i + 1, j..j + 1, k..k + 1);
        let mut values = Vec::new();
        for &(span, field) in &expectation.parts {
            let only = self.only(field);
            // What stands in a branch that is not taken may look at a level that is not there.
            if self.levels(&only, k..k + 1).is_empty() {
                continue;
            }
            values.push((span, self.compute(&only, field, &region)?.text(number)));
        }
        Ok(values)
    }

    /// The stencil with this output alone.
    fn only(&self, field: FieldId) -> Stencil {
        let mut stencil = self.stencil.clone();
        stencil.stores.retain(|store| store.field == field);
        stencil
    }

    /// The columns, along i and j, on which all that is read was given or computed.
    fn columns(&self, stencil: &Stencil) -> (Range<usize>, Range<usize>) {
        let Region { i, j, .. } = &self.problem.region;
        let (mut columns_i, mut columns_j) = (i.clone(), j.clone());
        for (field, offsets) in demand(stencil).reads {
            let place = stencil.fields[field].place;
            let Some(computed) = self.computed[field.index()].filter(|_| place.horizontal) else { continue };
            let Grid { ni, nj, .. } = self.frame.inner;
            let there = if computed { (i.clone(), j.clone()) } else { (0..ni, 0..nj) };
            for offset in offsets {
                columns_i = common(columns_i, &there.0, offset.i);
                columns_j = common(columns_j, &there.1, offset.j);
            }
        }
        (columns_i, columns_j)
    }

    /// Those of `levels` on which all level reads that count are of levels that were given or computed.
    fn levels(&self, stencil: &Stencil, levels: Range<usize>) -> Vec<usize> {
        let (precision, nk) = (self.problem.precision, self.frame.inner.nk);
        let given = readable_with_said(&Known::new(stencil, precision, nk, &self.params), levels.clone(), None);
        // The same once more of outputs alone, which are there where they were computed.
        let mut outputs = stencil.clone();
        for (field, computed) in outputs.fields.values_mut().zip(&self.computed) {
            if *computed != Some(true) {
                field.place.levels = Levels::None;
            }
        }
        let known = Known::new(&outputs, precision, nk, &self.params);
        let computed = readable_with_said(&known, levels, Some(&self.there));
        given.into_iter().filter(|level| computed.binary_search(level).is_ok()).collect()
    }

    /// The values of one output on a region.
    fn compute(&self, stencil: &Stencil, field: FieldId, region: &Region) -> Result<Data> {
        let own = &stencil.fields[field];
        let fresh = Data::fresh(element_of(own.stored, self.problem.precision), self.frame.len(own.place));
        let mut outputs: Vec<Option<Data>> = stencil.fields.iter().map(|_| None).collect();
        outputs[field.index()] = Some(fresh);
        let inputs: Vec<Option<&Data>> = self.inputs.iter().map(Option::as_ref).collect();
        let job = Job {
            stencil,
            precision: self.problem.precision,
            grid: self.frame.outer,
            adjacency: None,
            region,
            params: &self.params,
            inputs: &inputs,
        };
        interpret(&job, &mut outputs, &|_| {})?;
        outputs.swap_remove(field.index()).ok_or_else(|| Error::check("an expectation has no value"))
    }
}

/// Makes room for what is expected on the last interface, where that is computed.
pub(crate) fn goes_on_as(expected: &mut Stencil, computed: &Range<usize>, nk: usize) {
    for field in expected.fields.values_mut() {
        if computed.end > nk && field.role == Role::Out && field.place.levels == Levels::Full {
            field.place.levels = Levels::Interfaces;
        }
    }
}

/// Those of `cells` whose neighbour at `offset` lies in `there`.
fn common(cells: Range<usize>, there: &Range<usize>, offset: i32) -> Range<usize> {
    let shifted = |bound: usize| (bound as i64 - i64::from(offset)).max(0) as usize;
    let start = cells.start.max(shifted(there.start));
    start..cells.end.min(shifted(there.end)).max(start)
}
