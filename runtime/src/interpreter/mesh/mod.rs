//! What a stencil over a mesh computes, on the CPU: the reference that every kernel on meshes is compared with.
//!
//! Elements are computed in chunks, each value of a chunk as a row, by the same instructions as on grids; what lies at the
//! end of a path is gathered. Then values are written: element after element, and of one element store after store, which is
//! the order in which increments are added.

mod sweeps;
mod tape;

use super::execute::{Cells, Element as Row, Operand, Slots, compute};
use super::program::Slot;
use crate::mesh::{Bound, HOLE};
use crate::problem::element_of;
use crate::{Data, Error, Result, memory};
use rayon::prelude::*;
use std::ops::Range;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::mesh::{Fold, How};
use stencilc_compiler::ir::scalar::{Real, Value, apply};
use stencilc_compiler::ir::{
    Binary, FieldId, Function, Handle, Kind, MeshStencil, Node, NodeId, Place, Precision, Role,
};
use tape::{Instruction, Tape};

/// What to compute on a mesh, and from what.
#[derive(Clone, Copy)]
pub struct MeshJob<'a> {
    /// The stencil, contracted or not: it is computed as it stands.
    pub stencil: &'a MeshStencil,
    /// What `real` is.
    pub precision: Precision,
    /// The mesh.
    pub mesh: &'a Bound,
    /// How many levels there are; 1 of a mesh without.
    pub levels: usize,
    /// Those that are computed.
    pub computed: &'a Range<usize>,
    /// One value for each parameter.
    pub params: &'a [Value],
    /// By field: the array of each that is given, level after level, element after element, number after number; of an `inout`
    /// or `inc` the values before.
    pub inputs: &'a [Option<&'a Data>],
    /// Whether a reduction leaves the numbers that it would fold, in their order, and not what they come to.
    pub leaves: bool,
}

/// Elements that are computed together.
const CHUNK: usize = 512;

/// The values of a store for a chunk.
enum Values<R> {
    Real(Vec<R>),
    Int(Vec<i32>),
    Truth(Vec<u8>),
}

/// How many numbers the array of a field has.
pub fn len(place: Place, mesh: &Bound, levels: usize) -> usize {
    let elements = place.home.map_or(1, |home| mesh.size(home.set) * home.width as usize);
    elements * place.levels.count(levels)
}

/// Computes `job` into `outputs`, by field: one array for each that is written, of an `inc` what is added to. `sums`, by
/// field, gets for each number of an `inc` the sum of the absolute values added.
///
/// # Errors
/// An array is missing or has another length or type than its field.
pub fn interpret_mesh(
    job: &MeshJob,
    outputs: &mut [Option<Data>],
    sums: Option<&mut [Vec<f64>]>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<()> {
    if !job.stencil.stencil.sweeps.is_empty() {
        return sweeps::run(job, outputs, progress);
    }
    match job.precision {
        Precision::F32 => run::<f32>(job, outputs, sums, progress),
        Precision::F64 => run::<f64>(job, outputs, sums, progress),
    }
}

fn run<R: Real + Row>(
    job: &MeshJob,
    outputs: &mut [Option<Data>],
    mut sums: Option<&mut [Vec<f64>]>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<()> {
    for (id, field) in job.stencil.stencil.fields.iter() {
        check(job, id, job.inputs[id.index()], matches!(field.role, Role::In | Role::InOut))?;
        check(job, id, outputs[id.index()].as_ref(), field.role.is_written())?;
    }
    let set = job.stencil.set();
    let elements = job.mesh.size(set);
    let zones = job.stencil.stencil.zones;
    let is_computed = |element: &usize| zones.is_none_or(|zones| zones.contain(job.mesh.zone(set, *element)));
    let number_computed = if zones.is_none() { elements } else { (0..elements).filter(is_computed).count() };
    let known = Known::new(&job.stencil.stencil, job.precision, job.levels, job.params);
    let mut leaves: Vec<Vec<f64>> = vec![Vec::new(); job.stencil.writes.len()];
    for (leaf, write) in leaves.iter_mut().zip(&job.stencil.writes) {
        if matches!(write.how, How::Reduce(_)) {
            *leaf = memory::filled(0.0, number_computed * job.computed.len(), "the numbers to reduce")?;
        }
    }
    for (number, level) in job.computed.clone().enumerate() {
        let mut tape = Tape::new(job.stencil, &known, job.levels, level);
        let targets: Vec<Option<usize>> =
            job.stencil.writes.iter().map(|write| target(&mut tape, &write.how)).collect();
        let chunks: Vec<Range<usize>> =
            (0..elements).step_by(CHUNK).map(|first| first..elements.min(first + CHUNK)).collect();
        let mut met = 0;
        // So many at once that all threads have work, and results do not pile up.
        for some in chunks.chunks(64 * rayon::current_num_threads()) {
            let computed: Vec<_> = some
                .par_iter()
                .map(|chunk| {
                    let computed = chunk_of::<R>(job, &tape, chunk.clone());
                    progress(chunk.len());
                    computed
                })
                .collect();
            for (chunk, (ways, values)) in some.iter().zip(&computed) {
                for (at, element) in chunk.clone().enumerate().filter(|(_, element)| is_computed(element)) {
                    let rank = met;
                    met += 1;
                    for (store, write) in job.stencil.writes.iter().enumerate() {
                        let field = job.stencil.stencil.stores[store].field;
                        let place = job.stencil.stencil.fields[field].place;
                        let to = match (&write.how, targets[store]) {
                            (How::Reduce(_), _) => {
                                leaves[store][rank * job.computed.len() + number] = values[store].number(at);
                                continue;
                            }
                            (How::Assign | How::Add(_), None) => element,
                            (How::Assign | How::Add(_), Some(way)) => match ways[way][at] {
                                HOLE => continue,
                                there => there as usize,
                            },
                        };
                        let index = index(job, place, level, to, write.part);
                        let Some(output) = &mut outputs[field.index()] else { continue };
                        values[store].write(at, output, index, write.how != How::Assign);
                        if let (Some(sums), How::Add(_)) = (&mut sums, &write.how) {
                            sums[field.index()][index] += values[store].number(at).abs();
                        }
                    }
                }
            }
        }
    }
    for ((store, write), leaves) in job.stencil.stores().zip(leaves) {
        if let How::Reduce(fold) = write.how {
            let numbers = if job.leaves { leaves } else { vec![folded(fold, job.precision, leaves)] };
            outputs[store.field.index()] = Some(match job.precision {
                Precision::F32 => Data::F32(numbers.into_iter().map(|number| number as f32).collect()),
                Precision::F64 => Data::F64(numbers),
            });
        }
    }
    Ok(())
}

/// The way that leads to what is written.
fn target(tape: &mut Tape, how: &How) -> Option<usize> {
    match how {
        How::Assign | How::Reduce(_) => None,
        How::Add(path) => tape.way(path.hops()),
    }
}

/// What numbers come to, neighbours made one pairwise; each is of the precision, as a double.
pub fn folded(fold: Fold, precision: Precision, mut numbers: Vec<f64>) -> f64 {
    let node = match fold {
        Fold::Sum => Node::Binary(Binary::Add, NodeId::new(0), NodeId::new(1)),
        Fold::Min => Node::Call(Function::Min, vec![NodeId::new(0), NodeId::new(1)]),
        Fold::Max => Node::Call(Function::Max, vec![NodeId::new(0), NodeId::new(1)]),
    };
    while numbers.len() > 1 {
        let one = |pair: &[f64]| match *pair {
            [a, b] => {
                let operands = [Value::Real(a), Value::Real(b)];
                apply(precision, &node, &operands).map_or(f64::NAN, Value::real)
            }
            _ => pair[0],
        };
        numbers = numbers.chunks(2).map(one).collect();
    }
    numbers.first().copied().unwrap_or_else(|| fold.empty(Kind::Real))
}

/// Where the number `part` of an element is.
fn index(job: &MeshJob, place: Place, level: usize, element: usize, part: u32) -> usize {
    let level = if place.levels == stencilc_compiler::ir::Levels::None { 0 } else { level };
    match place.home {
        Some(home) => (level * job.mesh.size(home.set) + element) * home.width as usize + part as usize,
        None => level,
    }
}

fn check(job: &MeshJob, id: FieldId, data: Option<&Data>, wanted: bool) -> Result<()> {
    let field = &job.stencil.stencil.fields[id];
    let (element, len) = (element_of(field.stored, job.precision), len(field.place, job.mesh, job.levels));
    let fits = |data: &Data| data.element() == element && data.len() == len;
    if !wanted || data.is_some_and(fits) {
        return Ok(());
    }
    Err(Error::call(format!("field `{}` needs an array of {len} numbers, {}", field.name, element.name())))
}

/// Computes a chunk: where its ways lead, and the values of its stores.
fn chunk_of<R: Real + Row>(job: &MeshJob, tape: &Tape, elements: Range<usize>) -> (Vec<Vec<i32>>, Vec<Values<R>>) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[target_feature(enable = "avx2,fma")]
        fn wide<R: Real + Row>(job: &MeshJob, tape: &Tape, elements: Range<usize>) -> (Vec<Vec<i32>>, Vec<Values<R>>) {
            rows(job, tape, elements)
        }
        // SAFETY: the processor has both features.
        return unsafe { wide::<R>(job, tape, elements) };
    }
    rows(job, tape, elements)
}

// Inlined, to be compiled with the features chosen above.
#[inline(always)]
fn rows<R: Real + Row>(job: &MeshJob, tape: &Tape, elements: Range<usize>) -> (Vec<Vec<i32>>, Vec<Values<R>>) {
    let len = elements.len();
    let mut ways: Vec<Vec<i32>> = Vec::with_capacity(tape.ways.len());
    for (from, hop) in &tape.ways {
        let (map, arity) = job.mesh.map(hop.map);
        let to = |element: usize| map[element * arity + hop.slot as usize];
        ways.push(match from {
            None => elements.clone().map(to).collect(),
            Some(from) => {
                ways[*from].iter().map(|&element| if element == HOLE { HOLE } else { to(element as usize) }).collect()
            }
        });
    }
    let [real, int, truth] = tape.slots;
    let mut slots = Slots {
        real: vec![vec![R::from_f64(0.0); len]; real],
        int: vec![vec![0; len]; int],
        truth: vec![vec![0; len]; truth],
    };
    let cells = Cells { inputs: &[], grid: Grid::cells(len, 1), i: 0, j: 0, len };
    for instruction in &tape.instructions {
        match instruction {
            Instruction::Read { field, way, level, part, into } => {
                let place = job.stencil.stencil.fields[*field].place;
                let at = |_: usize, element: usize| index(job, place, *level, element, *part);
                let row = way.map(|way| &ways[way][..]);
                let Some(data) = job.inputs[field.index()] else { continue };
                read(data, row, elements.start, at, *into, &mut slots);
            }
            Instruction::ReadMoved { field, way, level, by, part, into } => {
                let place = job.stencil.stencil.fields[*field].place;
                let last = place.levels.count(job.levels) as i64 - 1;
                let by = cells.operand(&slots.int, *by);
                let levels: Vec<usize> =
                    (0..len).map(|n| (i64::from(*level) + i64::from(by.at(n))).clamp(0, last) as usize).collect();
                let at = |n: usize, element: usize| index(job, place, levels[n], element, *part);
                let row = way.map(|way| &ways[way][..]);
                let Some(data) = job.inputs[field.index()] else { continue };
                read(data, row, elements.start, at, *into, &mut slots);
            }
            Instruction::Present { way, into } => {
                let row = &mut slots.truth[into.at(0)];
                row.iter_mut().zip(&ways[*way]).for_each(|(row, &element)| *row = u8::from(element != HOLE));
            }
            Instruction::InZone { zones, set, way, into } => {
                let is_in = |element: usize| u8::from(zones.contain(job.mesh.zone(*set, element)));
                let row = &mut slots.truth[into.at(0)];
                match way {
                    None => row.iter_mut().zip(elements.clone()).for_each(|(row, element)| *row = is_in(element)),
                    // Through a hole nobody looks.
                    Some(way) => row.iter_mut().zip(&ways[*way]).for_each(|(row, &element)| {
                        *row = usize::try_from(element).map_or(0, is_in);
                    }),
                }
            }
            Instruction::Compute { node, of, operands, into } => {
                compute(node, *of, *operands, (into.kind, into.at(0)), cells, &mut slots);
            }
        }
    }
    let kind = |store: usize| job.stencil.stencil.stores[store].body.kind();
    let values = tape.values.iter().enumerate().map(|(store, source)| match kind(store) {
        Kind::Real => Values::Real(row(cells.operand(&slots.real, *source), len)),
        Kind::Int => Values::Int(row(cells.operand(&slots.int, *source), len)),
        Kind::Bool => Values::Truth(row(cells.operand(&slots.truth, *source), len)),
    });
    let values = values.collect();
    (ways, values)
}

fn row<T: Copy>(operand: Operand<'_, T>, len: usize) -> Vec<T> {
    (0..len).map(|at| operand.at(at)).collect()
}

/// Gathers a field. Through a hole there is nothing: NaN, 0 or false, which nobody looks at.
#[inline(always)]
fn read<R: Real>(
    data: &Data,
    way: Option<&[i32]>,
    first: usize,
    at: impl Fn(usize, usize) -> usize,
    into: Slot,
    slots: &mut Slots<R>,
) {
    macro_rules! gather {
        ($rows:ident, $data:ident, $missing:expr, |$x:ident| $value:expr) => {{
            let row = &mut slots.$rows[into.at(0)];
            match way {
                None => row.iter_mut().enumerate().for_each(|(n, to)| {
                    let $x = $data[at(n, first + n)];
                    *to = $value;
                }),
                Some(way) => row.iter_mut().zip(way).enumerate().for_each(|(n, (to, &element))| {
                    *to = usize::try_from(element).map_or($missing, |element| {
                        let $x = $data[at(n, element)];
                        $value
                    });
                }),
            }
        }};
    }
    match data {
        Data::F32(data) => gather!(real, data, R::from_f64(f64::NAN), |x| R::from_f32(x)),
        Data::F64(data) => gather!(real, data, R::from_f64(f64::NAN), |x| R::from_f64(x)),
        Data::I32(data) => gather!(int, data, 0, |x| x),
        Data::Bool(data) => gather!(truth, data, 0, |x| x),
    }
}

impl<R: Real> Values<R> {
    fn number(&self, at: usize) -> f64 {
        match self {
            Values::Real(row) => row[at].to_f64(),
            Values::Int(row) => f64::from(row[at]),
            Values::Truth(row) => f64::from(row[at]),
        }
    }

    /// Writes a value to an array, or adds it to what is there, in the precision in which one computes.
    fn write(&self, at: usize, to: &mut Data, index: usize, add: bool) {
        let sum = |before: R, x: R| R::binary(Binary::Add, before, x);
        match (self, to) {
            (Values::Real(row), Data::F32(to)) => {
                let x = if add { sum(R::from_f32(to[index]), row[at]) } else { row[at] };
                to[index] = x.to_f32();
            }
            (Values::Real(row), Data::F64(to)) => {
                let x = if add { sum(R::from_f64(to[index]), row[at]) } else { row[at] };
                to[index] = x.to_f64();
            }
            (Values::Int(row), Data::I32(to)) => {
                to[index] = if add { to[index].wrapping_add(row[at]) } else { row[at] };
            }
            (Values::Truth(row), Data::Bool(to)) => to[index] = row[at],
            // Stores and fields are of one kind.
            (Values::Real(_) | Values::Int(_) | Values::Truth(_), _) => {}
        }
    }
}
