//! What a stencil computes, on the CPU: the reference that every kernel is compared with.
//!
//! Each level is computed by itself. `plan` finds which rows along i it needs (of definitions, outputs and converted
//! inputs) and where, given what the level decides; `program` writes each row down as instructions on whole rows; and
//! `execute` runs these down a strip of the level, row after row. A row is kept for as long as a later one looks back
//! at it, so that scratch space is a few rows, and a level computes a value twice only where strips or chunks meet; an
//! offset along i is a shift of the slice that is read. No operation is reordered: each element is what
//! [`stencilc_compiler::ir::scalar`] says.
//!
//! A stencil with sweeps is computed as many plain ones (`sweeps`), one after the other.
//!
//! Where columns stand in no rows, a whole plane of cells is one row, and what lies at the end of a path is gathered
//! through the numbers of the cells there (`walks`), which are found step by step in the adjacency as it is given.

mod alike;
mod execute;
mod functions;
pub mod mesh;
mod plan;
mod program;
mod sweeps;
#[cfg(test)]
mod tests;
mod walks;

use crate::problem::element_of;
use crate::{Data, Error, Result};
use alike::Alike;
use execute::{Count, Element, Part, Strip, execute};
use plan::{Item, plan};
use program::Program;
use rayon::prelude::*;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::grid::{Adjacency, Form, Grid, Region};
use stencilc_compiler::ir::scalar::{Real, Value};
use stencilc_compiler::ir::{Field, FieldId, Handle, Kind, Levels, NodeId, Place, Precision, Stencil, varying};
use stencilc_compiler::source::Span;
use walks::Walks;

/// What to compute, and from what.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The stencil, contracted or not: it is computed as it stands.
    pub stencil: &'a Stencil,
    /// What `real` is.
    pub precision: Precision,
    /// The extents of the arrays.
    pub grid: Grid,
    /// Of a grid whose columns stand in no rows: which are neighbours.
    pub adjacency: Option<&'a Adjacency>,
    /// The cells to compute: those of [`stencilc_compiler::analysis::region`], or some of them.
    pub region: &'a Region,
    /// One value for each parameter.
    pub params: &'a [Value],
    /// By field: the array of each that is read, of [`Grid::shape`]; of an `inout` the values before.
    pub inputs: &'a [Option<&'a Data>],
}

/// How often open conditions were true and false.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Definitions' first, then outputs', each in the order of the IR.
    pub choices: Vec<Choice>,
}

/// A `Choose` whose condition is not known from the level alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Where it is written.
    pub span: Span,
    /// How often its condition was true.
    pub taken: u64,
    /// How often it was false.
    pub not_taken: u64,
}

/// Cells along i that are computed together: short enough for the rows of common stencils to stay in the first cache.
const CHUNK: usize = 512;

/// Rows along j below which it does not pay to cut a level into more strips, since each starts its rows afresh.
const STRIP: usize = 16;

/// Computes `job` into `outputs`, by field, one array for each that is written; cells outside the region keep what they
/// hold. `progress` is told now and then, from several threads, how many further rows (along i) are done.
///
/// # Errors
/// An array or parameter is missing, or an array has another type or size than its field.
pub fn interpret(job: &Job, outputs: &mut [Option<Data>], progress: &(dyn Fn(usize) + Sync)) -> Result<()> {
    let plain = |job: &Job, outputs: &mut [Option<Data>], progress: &(dyn Fn(usize) + Sync)| match job.precision {
        Precision::F32 => run::<f32>(job, outputs, progress),
        Precision::F64 => run::<f64>(job, outputs, progress),
    };
    if job.stencil.sweeps.is_empty() {
        return plain(job, outputs, progress);
    }
    sweeps::run(job, outputs, &mut |job, outputs, is_last| {
        plain(job, outputs, if is_last { progress } else { &|_| {} })
    })
}

/// Evaluates `job` without keeping the results, and counts what its open conditions were.
///
/// A definition counts once for each cell where it is computed, and once more for each further level that looks at it.
/// Both branches of an open condition are computed, so a condition inside a branch counts where that branch is not
/// chosen, too.
///
/// # Errors
/// An array or parameter is missing, or an array has another type or size than its field.
pub fn cover(job: &Job) -> Result<Coverage> {
    let mut choices = BTreeMap::new();
    let mut count = |job: &Job| match job.precision {
        Precision::F32 => count::<f32>(job, &mut choices),
        Precision::F64 => count::<f64>(job, &mut choices),
    };
    if job.stencil.sweeps.is_empty() {
        count(job)?;
    } else {
        // A level of a sweep needs what the levels before it computed.
        let fresh = |field: &Field| {
            let len = job.grid.shape(field.place).iter().product();
            field.role.is_written().then(|| Data::fresh(element_of(field.stored, job.precision), len))
        };
        let mut outputs: Vec<Option<Data>> = job.stencil.fields.iter().map(|(_, field)| fresh(field)).collect();
        sweeps::run(job, &mut outputs, &mut |job, outputs, _| {
            count(job)?;
            interpret(job, outputs, &|_| {})
        })?;
    }
    Ok(Coverage { choices: choices.into_values().collect() })
}

/// Where a choice is written: of which definition or output it is a part, and which.
type Written = (Item, NodeId);

fn run<R: Real + Element>(job: &Job, outputs: &mut [Option<Data>], progress: &(dyn Fn(usize) + Sync)) -> Result<()> {
    let shared = Shared::new(job)?;
    let region = job.region;
    let wanted = (4 * rayon::current_num_threads()).div_ceil(region.k.len().max(1));
    let rows = region.j.len().div_ceil(wanted).max(STRIP);
    // A plane without rows is gathered from as a whole.
    let chunk = if shared.walks.is_some() { job.grid.ni } else { CHUNK };
    let mut strips: Vec<Strip> = Vec::new();
    for level in region.k.clone() {
        for start in region.j.clone().step_by(rows) {
            let rows = start..region.j.end.min(start + rows);
            strips.push(Strip { level, rows, outputs: Vec::new(), counts: Vec::new() });
        }
    }
    let mut outputs: Vec<Option<&mut Data>> = outputs.iter_mut().map(Option::as_mut).collect();
    for store in &job.stencil.stores {
        let data = outputs.get_mut(store.field.index()).and_then(Option::take);
        let data = fitting(job, store.field, data)?;
        let place = job.stencil.fields[store.field].place;
        let parts: Vec<_> = strips.iter().map(|strip| part(job, place, strip)).collect();
        for (strip, part) in strips.iter_mut().zip(Part::split(data, &parts)) {
            strip.outputs.push(part);
        }
    }
    strips.par_chunk_by_mut(|a, b| a.level == b.level).for_each(|strips| {
        let program = Program::new(&shared, &plan(&shared, strips[0].level));
        strips.par_iter_mut().for_each(|strip| {
            execute::<R>(job, &program, strip, chunk);
            progress(strip.rows.len());
        });
    });
    Ok(())
}

fn count<R: Real + Element>(job: &Job, choices: &mut BTreeMap<Written, Choice>) -> Result<()> {
    let shared = Shared::new(job)?;
    let levels = job.region.k.clone().into_par_iter().map(|level| {
        let plans = plan(&shared, level);
        let program = Program::new(&shared, &plans);
        // A plane without rows is computed as a whole, and counts where it is needed.
        let looked_at = shared.walks.as_ref().map(|walks| walks.looked_at(job.region, &plans));
        let columns = |task: usize| looked_at.as_ref().and_then(|tasks| tasks.get(task)).cloned();
        let counts = program.choices.iter().map(|&(task, ..)| Count { columns: columns(task), ..Count::default() });
        // One strip and one chunk, so that nothing is computed twice where two meet.
        let mut strip = Strip { level, rows: job.region.j.clone(), outputs: Vec::new(), counts: counts.collect() };
        execute::<R>(job, &program, &mut strip, job.grid.ni);
        program.choices.into_iter().zip(strip.counts).collect::<Vec<_>>()
    });
    for ((_, place, span), Count { times: [not_taken, taken], .. }) in levels.collect::<Vec<_>>().into_iter().flatten()
    {
        let choice = choices.entry(place).or_insert(Choice { span, taken: 0, not_taken: 0 });
        choice.taken += taken;
        choice.not_taken += not_taken;
    }
    Ok(())
}

/// What all levels share.
struct Shared<'a> {
    job: &'a Job<'a>,
    known: Known<'a>,
    alike: Alike,
    /// Of each definition whether its value differs from column to column.
    varying: Vec<bool>,
    /// Where steps do not commute.
    walks: Option<Walks<'a>>,
}

impl<'a> Shared<'a> {
    /// Inputs, parameters and the grid are found to fit.
    fn new(job: &'a Job<'a>) -> Result<Self> {
        let &Job { stencil, precision, grid, adjacency, region, params, inputs } = job;
        for (id, _) in stencil.fields.iter().filter(|(_, field)| field.role.is_read()) {
            fitting(job, id, inputs.get(id.index()).copied().flatten())?;
        }
        let (given, needed) = (params.len(), stencil.params.len());
        if given != needed {
            return Err(Error::call(format!("stencil `{}` has {needed} parameters, not {given}", stencil.name)));
        }
        let walks = match (grid.form, adjacency, &region.cells) {
            (Form::Rows, ..) => None,
            (Form::Cells, Some(adjacency), Some(_)) if adjacency.cells() == grid.columns() => {
                Some(Walks::new(adjacency))
            }
            (Form::Cells, ..) => {
                return Err(Error::call(format!("the grid {grid} needs an adjacency of {} cells", grid.columns())));
            }
        };
        let known = Known::new(stencil, precision, grid.nk, params);
        let alike = Alike::new(&known, region.k.clone());
        Ok(Self { job, known, alike, varying: varying(stencil), walks })
    }
}

/// The array of a field, if there is one and it fits.
fn fitting<D: Borrow<Data>>(job: &Job, id: FieldId, data: Option<D>) -> Result<D> {
    let field = &job.stencil.fields[id];
    let shape = job.grid.shape(field.place);
    let fits = |data: &Data| kind(data) == field.stored.kind() && data.len() == shape.iter().product::<usize>();
    data.filter(|data| fits(data.borrow())).ok_or_else(|| {
        let Field { name, .. } = field;
        Error::call(format!("field `{name}` needs an array of kind {} and shape {shape:?}", field.stored.kind().name()))
    })
}

/// What the numbers of an array are to the stencil.
fn kind(data: &Data) -> Kind {
    match data {
        Data::F32(_) | Data::F64(_) => Kind::Real,
        Data::I32(_) => Kind::Int,
        Data::Bool(_) => Kind::Bool,
    }
}

/// The part of an output that a strip writes. Along an axis that the output lacks, the first to come writes it.
fn part(job: &Job, place: Place, strip: &Strip) -> Range<usize> {
    let Grid { ni, nj, .. } = job.grid;
    let level = match place.levels {
        Levels::None if strip.level > job.region.k.start => 1..1,
        Levels::None => 0..1,
        Levels::Full | Levels::Interfaces => strip.level..strip.level + 1,
    };
    if place.horizontal && level.is_empty() {
        nj * ni..nj * ni
    } else if place.horizontal {
        (level.start * nj + strip.rows.start) * ni..(level.start * nj + strip.rows.end) * ni
    } else if strip.rows.start > job.region.j.start {
        level.end..level.end
    } else {
        level
    }
}
