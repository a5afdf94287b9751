//! Rows of a regular grid, padded so that each row's first computed value is aligned.

use super::neighbors::Hop;
use super::{Columns, Coordinates, Ground, Inner, Layout, Origin, Storage, Threads, padded};
use crate::grid::{Region, Topology};
use crate::ir::Offset;
use crate::names::Names;
use std::ops::Range;

/// Neighbours lie at fixed distances: 1 along i, a row along j.
pub struct Regular;

impl Storage for Regular {
    fn name(&self) -> &'static str {
        "regular"
    }

    fn summary(&self) -> &'static str {
        "rows of a regular grid; a neighbour's address is arithmetic"
    }

    fn sizes(&self) -> &'static [(&'static str, &'static str)] {
        &[("row", "elements from a row to the next")]
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn coordinates(&self, names: &mut Names, threads: &Threads) -> Coordinates {
        let [i, j, row] = names.internals(["i", "j", "row"]);
        let [i_first, i_end, j_first, j_end] = names.internals(["i_first", "i_end", "j_first", "j_end"]);
        let (mut lines, mut outside) = (Vec::new(), Vec::new());
        for (axis, (name, first, end)) in [(&i, &i_first, &i_end), (&j, &j_first, &j_end)].into_iter().enumerate() {
            let (letter, threads_of_block) = (["x", "y"][axis], threads.block[axis]);
            let thread = format!("blockIdx.{letter} * {threads_of_block} + threadIdx.{letter}");
            let mut start = name.clone();
            match (threads.tile.columns[axis], threads.tile.whole[axis]) {
                (1, _) => lines.push(format!("const int {name} = {first} + {thread};")),
                (columns, true) => lines.push(format!("const int {name} = {first} + ({thread}) * {columns};")),
                (columns, false) => {
                    // A tile that would reach beyond the last column stands back, onto another.
                    [start] = names.internals([["i_start", "j_start"][axis]]);
                    lines.push(format!("const int {start} = {first} + ({thread}) * {columns};"));
                    // By a remainder: a minimum is what compilers do not get right (`docs/trust.md`).
                    lines.push(format!(
                        "const int {name} = {start} - ({start} + {columns} <= {end} ? 0 : {columns} - ({end} - {first}) % {columns});"
                    ));
                }
            }
            outside.push(format!("{start} >= {end}"));
        }
        Coordinates {
            lines,
            outside: outside.join(" || "),
            column: format!("{i} + {j} * {row}"),
            first: format!("{i} == {i_first} && {j} == {j_first}"),
        }
    }

    fn place_of(&self, names: &mut Names, chain: &[&Hop]) -> String {
        let [i, j, row] = names.internals(["i", "j", "row"]);
        let shifted = |axis: String, by: i32| match by {
            0 => axis,
            1.. => format!("({axis} + {by})"),
            _ => format!("({axis} - {})", by.unsigned_abs()),
        };
        let Offset { i: di, j: dj, .. } = chain.last().map(|hop| hop.path.offset()).unwrap_or_default();
        format!("{} + {} * {row}", shifted(i, di), shifted(j, dj))
    }

    fn prepare(&self, _: &mut Names, _: &Origin) -> Option<String> {
        None
    }

    fn distance(&self, names: &mut Names, hop: &Hop, _: &Origin) -> String {
        let [row] = names.internals(["row"]);
        let Offset { i, j, .. } = hop.path.offset();
        let rows = match j.unsigned_abs() {
            1 => row,
            n => format!("{n} * {row}"),
        };
        match (i, j) {
            (_, 0) => i.to_string(),
            (0, 1..) => rows,
            (0, _) => format!("-{rows}"),
            (_, 1..) => format!("{rows} {} {}", if i < 0 { "-" } else { "+" }, i.unsigned_abs()),
            _ => format!("{i} - {rows}"),
        }
    }

    fn layout(&self, ground: &Ground) -> Layout {
        let (ni, nj) = match ground.topology {
            Topology::Rows { ni, nj } => (ni, nj),
            // Plans refuse this storage for cells that stand in no rows.
            Topology::Adjacent(adjacency) => (adjacency.cells(), 1),
        };
        let row = padded(ni, ground.smallest);
        Layout {
            columns: Columns::Rows { row },
            // One more unit keeps planes from starting at a power of two, where they would compete for the same cache sets.
            plane: row * nj + padded(1, ground.smallest),
            lead: ground.region.i.start,
            inner: Inner::Aligned,
            sizes: vec![row],
            tables: Vec::new(),
        }
    }

    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        &[("i_first", "i_end"), ("j_first", "j_end")]
    }

    fn columns(&self, region: &Region, _: &Layout) -> Vec<Range<usize>> {
        vec![region.i.clone(), region.j.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::ir::Path;
    use crate::storage::order;

    #[test]
    fn every_row_starts_aligned() {
        let grid = Grid::rows(37, 5, 3);
        let region = Region::rows(2..35, 2..3, 0..3);
        for smallest in [1, 4, 8] {
            let layout = Regular.layout(&Ground {
                topology: Topology::Rows { ni: grid.ni, nj: grid.nj },
                region: &region,
                sharing: None,
                relations: &[],
                inner_only: true,
                order: order::ORDERS[0],
                run_width: 32,
                short_last: false,
                smallest,
            });
            for bytes in [smallest, 8] {
                for (j, k) in [(0, 0), (4, 0), (3, 2)] {
                    let index = layout.origin(bytes) + layout.place(grid, region.i.start, j) + k * layout.plane;
                    assert_eq!(index * bytes % super::super::ALIGNMENT, 0);
                }
            }
        }
    }

    #[test]
    fn distances_read_naturally() {
        let mut names = Names::default();
        let here = Origin { place: String::new(), suffix: String::new() };
        let mut distance = |i, j| {
            let hop = Hop { path: Path::from_offset(Offset { i, j, k: 0 }), from: None, relation: 0 };
            Regular.distance(&mut names, &hop, &here)
        };
        assert_eq!(distance(-2, 0), "-2");
        assert_eq!(distance(0, -1), "-row");
        assert_eq!(distance(1, 2), "2 * row + 1");
        assert_eq!(distance(-1, 1), "row - 1");
        assert_eq!(distance(1, -1), "1 - row");
    }
}
