//! Arrays with a halo, on the CPU.

use crate::array::Data;
use std::ops::Range;
use stencilc_compiler::grid::{Form, Grid};
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Handle, Place, Precision, VariableId};
use stencilc_compiler::program::{Source, Staged};

/// Extents of an array of a field on `place`, along i, j and k; 1 along an axis that it lacks.
fn extents(grid: Grid, place: Place) -> [usize; 3] {
    let levels = place.levels.count(grid.nk);
    match (place.horizontal, grid.form) {
        (true, _) => [grid.ni, grid.nj, levels],
        (false, Form::Rows | Form::Cells) => [1, 1, levels],
    }
}

/// How many elements an array with its halo has.
pub fn length(staged: &Staged, place: Place) -> usize {
    extents(staged.grid, place).iter().product()
}

/// The rows along i of the cells that belong to the arrays: the first element of each in an array without a halo and
/// in one with it, and their length.
fn rows(staged: &Staged, place: Place) -> (impl Iterator<Item = (usize, usize)> + use<>, usize) {
    let [i, j, k] = staged.inner_of(place);
    let [wide_i, wide_j, _] = extents(staged.grid, place);
    let (width, first) = (i.len(), i.start);
    let rows = k.flat_map(move |k| j.clone().map(move |j| (k * wide_j + j) * wide_i + first));
    (rows.enumerate().map(move |(n, wide)| (n * width, wide)), width)
}

/// Calls `$body` with the numbers of two arrays of one type.
macro_rules! both {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $body:expr) => {
        match ($a, $b) {
            (Data::F32($x), Data::F32($y)) => $body,
            (Data::F64($x), Data::F64($y)) => $body,
            (Data::I32($x), Data::I32($y)) => $body,
            (Data::Bool($x), Data::Bool($y)) => $body,
            (Data::F32(_) | Data::F64(_) | Data::I32(_) | Data::Bool(_), _) => {}
        }
    };
}

/// An array with its halo, which holds nothing yet.
pub fn widened(staged: &Staged, place: Place, data: &Data) -> Data {
    let mut wide = Data::fresh(data.element(), length(staged, place));
    let (rows, width) = rows(staged, place);
    both!(&mut wide, data, |wide, data| for (own, at) in rows {
        wide[at..at + width].copy_from_slice(&data[own..own + width]);
    });
    wide
}

/// An array without its halo.
pub fn narrowed(staged: &Staged, place: Place, wide: &Data) -> Data {
    let len = staged.inner_of(place).iter().map(Range::len).product();
    let mut data = Data::fresh(wide.element(), len);
    let (rows, width) = rows(staged, place);
    both!(&mut data, wide, |data, wide| for (own, at) in rows {
        data[own..own + width].copy_from_slice(&wide[at..at + width]);
    });
    data
}

/// Where a cell of a halo gets its value from.
struct From {
    origin: Origin,
    /// Whether it gets it with the other sign.
    is_negated: bool,
}

enum Origin {
    /// The element with this number.
    Element(usize),
    Value(Value),
}

/// Fills the halo of a variable's array.
pub fn fill(staged: &Staged, variable: VariableId, data: &mut Data) {
    let place = staged.program.variables[variable].place;
    let wide = extents(staged.grid, place);
    let inner = staged.inner_of(place);
    let edges = &staged.edges[variable.index()];
    // Along each axis: where each index of the array with its halo gets its value from.
    let sources: Vec<Vec<Source>> = GridAxis::ALL
        .into_iter()
        .map(|axis| {
            let (own, n) = (&inner[axis as usize], inner[axis as usize].len());
            let at = |index: usize| match edges.source(axis, index as i64 - own.start as i64, n) {
                Source::Cell(cell) => Source::Cell(own.start + cell),
                Source::Negated(cell) => Source::Negated(own.start + cell),
                source => source,
            };
            (0..wide[axis as usize]).map(at).collect()
        })
        .collect();
    let [ni, nj, nk] = wide;
    let from = |[i, j, k]: [usize; 3]| {
        let along = [sources[0][i], sources[1][j], sources[2][k]];
        let (mut cell, mut is_negated) = ([0; 3], false);
        for (cell, source) in cell.iter_mut().zip(along) {
            match source {
                Source::Cell(own) => *cell = own,
                Source::Negated(own) => (*cell, is_negated) = (own, !is_negated),
                // Where several axes say a number, i comes before j before k; what axes before say of the sign holds for it.
                Source::Value(value) => {
                    let is_known = along.iter().all(|own| *own != Source::Nothing);
                    return is_known.then_some(From { origin: Origin::Value(value), is_negated });
                }
                Source::Nothing => return None,
            }
        }
        Some(From { origin: Origin::Element((cell[2] * nj + cell[1]) * ni + cell[0]), is_negated })
    };
    let is_inner = |axis: usize, index: usize| inner[axis].contains(&index);
    let mut one = |cell: [usize; 3]| {
        if let Some(from) = from(cell) {
            set(data, (cell[2] * nj + cell[1]) * ni + cell[0], &from, staged.precision);
        }
    };
    for k in 0..nk {
        for j in 0..nj {
            if is_inner(1, j) && is_inner(2, k) {
                (0..inner[0].start).chain(inner[0].end..ni).for_each(|i| one([i, j, k]));
            } else {
                (0..ni).for_each(|i| one([i, j, k]));
            }
        }
    }
}

fn set(data: &mut Data, to: usize, from: &From, precision: Precision) {
    let real = |value: &Value| value.rounded(precision).real();
    match (&mut *data, &from.origin) {
        (Data::F32(data), Origin::Element(from)) => data[to] = data[*from],
        (Data::F64(data), Origin::Element(from)) => data[to] = data[*from],
        (Data::I32(data), Origin::Element(from)) => data[to] = data[*from],
        (Data::Bool(data), Origin::Element(from)) => data[to] = data[*from],
        (Data::F32(data), Origin::Value(value)) => data[to] = real(value) as f32,
        (Data::F64(data), Origin::Value(value)) => data[to] = real(value),
        (Data::I32(data), Origin::Value(value)) => data[to] = value.int(),
        (Data::Bool(data), Origin::Value(value)) => data[to] = u8::from(value.truth()),
    }
    if from.is_negated {
        match data {
            Data::F32(data) => data[to] = -data[to],
            Data::F64(data) => data[to] = -data[to],
            Data::I32(data) => data[to] = data[to].wrapping_neg(),
            // Truth values have no sign, and no such edge.
            Data::Bool(_) => {}
        }
    }
}
