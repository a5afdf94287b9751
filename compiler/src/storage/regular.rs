//! Rows of a regular grid, padded so that each row's first computed value is aligned.

use super::neighbors::Hop;
use super::{
    Along, Columns, Coordinates, Layout, LayoutRequest, Origin, PLANE, Placement, Row, Sizes, Storage, Threads, padded,
};
use crate::access::LevelsPerThread;
use crate::grid::{Grid, Region, Topology};
use crate::ir::{Offset, Relation};
use crate::kernel::ValueId;
use crate::kernel::build::{Builder, Computing, Term};
use std::ops::Range;

/// Neighbours lie at fixed distances: 1 along i, a row along j.
pub struct Regular;

/// The number of the size that is a row's length.
const ROW: usize = 1;

impl Storage for Regular {
    fn name(&self) -> &'static str {
        "regular"
    }

    fn summary(&self) -> &'static str {
        "rows of a regular grid; a neighbour's address is arithmetic"
    }

    fn sizes(&self) -> &[(&'static str, &'static str)] {
        &[PLANE, ("row", "elements from a row to the next")]
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn coordinates(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Coordinates {
        let (mut axes, mut outside) = (Vec::new(), Vec::new());
        for (number, (along, name)) in threads.along.iter().zip(["i", "j"]).enumerate() {
            let [first, end] = sizes.bounds[number];
            let thread = along.number(own, threads.block);
            let columns = threads.tile.columns[number];
            let mut at = first.plus(thread.times(columns));
            let mut start = None;
            if !threads.tile.whole[number] {
                let from = own.name(["i_start", "j_start"][number], at);
                // A tile that would reach beyond the last column stands back, onto another. By a remainder: a minimum is what
                // compilers do not get right (`docs/trust.md`).
                let missing = columns.minus(end.minus(first).rem(columns));
                at = from.minus(from.plus(columns).is(Relation::Le, end).picks(0, missing));
                start = Some(from);
            }
            let at = own.name(name, at);
            outside.push(own.term(start.unwrap_or(at).is(Relation::Ge, end)));
            axes.push(at);
        }
        let outside = own.or(outside[0], outside[1]);
        column(own, sizes, axes, outside)
    }

    fn row(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Row {
        let range = threads.along[0].share(own, threads.block, sizes.bounds[0], "i");
        let [first, end] = sizes.bounds[1];
        let thread = threads.along[1].number(own, threads.block);
        let j = own.name("j", first.plus(thread));
        Row { name: "i", range, others: vec![j], outside: Some(own.term(j.is(Relation::Ge, end))) }
    }

    fn column_of_row(&self, own: &mut Builder, sizes: &Sizes, _: &Threads, row: &Row, at: ValueId) -> Coordinates {
        let outside = own.truth(false);
        column(own, sizes, vec![at, row.others[0]], outside)
    }

    fn place_of(&self, own: &mut Builder, sizes: &Sizes, from: &Coordinates, chain: &[&Hop]) -> ValueId {
        let Offset { i, j, .. } = chain.last().map(|hop| hop.path.offset()).unwrap_or_default();
        let [i, j] = [(0, i), (1, j)].map(|(axis, by)| from.axes[axis].plus(by));
        own.term(place(sizes, i, j))
    }

    fn distance(&self, own: &mut Builder, sizes: &Sizes, hop: &Hop, _: &Origin) -> ValueId {
        let Offset { i, j, .. } = hop.path.offset();
        let rows = own.term(j.unsigned_abs().times(sizes.own[ROW]));
        let columns = own.literal(i64::from(i), sizes.index);
        match (i, j) {
            (_, 0) => columns,
            (0, ..0) => own.negate(rows),
            (_, 1..) => own.add(rows, columns),
            _ => own.sub(columns, rows),
        }
    }

    fn layout(&self, request: &LayoutRequest) -> Layout {
        let (ni, nj) = match request.topology {
            Topology::Rows { ni, nj } => (ni, nj),
            // Plans refuse this storage for cells that stand in no rows.
            Topology::Adjacent(adjacency) => (adjacency.cells(), 1),
        };
        let row = padded(ni, request.smallest);
        // One more unit keeps planes from starting at a power of two, where they would compete for the same cache sets.
        let plane = row * nj + padded(1, request.smallest);
        Layout {
            columns: Columns::Rows { row },
            places: plane,
            strides: self.strides(),
            lead: request.region.i.start,
            placement: Placement::Aligned,
            sizes: vec![plane, row],
            tables: Vec::new(),
        }
    }

    fn arrangement(&self, known: Option<(Grid, &Layout)>, _: &str) -> Vec<String> {
        vec![match known {
            Some((grid, layout)) => {
                let [plane, row] = [layout.sizes[0], layout.sizes[ROW]];
                format!("Grid {grid}: cell (i, j) lies at i + j * {row}; plane is {plane}.")
            }
            None => "Cell (i, j) lies at i + j * row; row = ni and plane = ni * nj is a plain C array.".into(),
        }]
    }

    fn columns_along(&self, _: LevelsPerThread) -> &'static [Along] {
        &[Along::X, Along::Y]
    }

    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        &[("i_first", "i_end"), ("j_first", "j_end")]
    }

    fn columns(&self, region: &Region, _: &Layout) -> Vec<Range<usize>> {
        vec![region.i.clone(), region.j.clone()]
    }
}

/// The column at i and j.
fn column(own: &mut Builder, sizes: &Sizes, axes: Vec<ValueId>, outside: ValueId) -> Coordinates {
    let column = own.term(place(sizes, axes[0], axes[1]));
    let [is_i, is_j] = [0, 1].map(|axis| own.compare(Relation::Eq, axes[axis], sizes.bounds[axis][0]));
    let first = own.and(is_i, is_j);
    Coordinates { axes, outside, column, first }
}

/// The place of the column at i and j.
fn place(sizes: &Sizes, i: impl Into<Term>, j: impl Into<Term>) -> Term {
    i.into().to(sizes.index).plus(j.into().to(sizes.index).times(sizes.own[ROW]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_starts_aligned() {
        let grid = Grid::rows(37, 5, 3);
        let region = Region::rows(2..35, 2..3, 0..3);
        for smallest in [1, 4, 8] {
            let topology = Topology::Rows { ni: grid.ni, nj: grid.nj };
            let layout = Regular.layout(&LayoutRequest { smallest, ..LayoutRequest::new(topology, &region) });
            for bytes in [smallest, 8] {
                for (j, k) in [(0, 0), (4, 0), (3, 2)] {
                    let index = layout.origin(bytes) + layout.index(layout.place(grid, region.i.start, j), k);
                    assert_eq!(index * bytes % super::super::ALIGNMENT, 0);
                }
            }
        }
    }
}
