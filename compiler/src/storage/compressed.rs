//! Unstructured in the horizontal, with a compressed table of neighbours.
//!
//! Cells of a plane stand in any order, halo cells first; here those of a regular grid, inner cells row by row. Cells whose
//! neighbours lie at the same relative offsets share a *pattern*: `pattern` maps a cell to its pattern, and for each
//! relation the table has one offset a pattern (struct of arrays). After A. Roesti, "Efficient GPU Implementation of
//! Stencils on Unstructured Grids" (ETH Zurich, 2020), section 4.2.2.

use super::{Columns, Coordinates, Layout, Neighbour, Storage, padded};
use crate::grid::{Grid, Region};
use crate::ir::Offset;
use crate::names::Names;
use std::collections::HashMap;
use std::ops::Range;

/// Neighbours are looked up: a pattern a cell, an offset a pattern and relation.
pub struct Compressed;

impl Storage for Compressed {
    fn name(&self) -> &'static str {
        "compressed"
    }

    fn summary(&self) -> &'static str {
        "cells in any order; a pattern a cell, a table of relative offsets a pattern"
    }

    fn sizes(&self) -> &'static [(&'static str, &'static str)] {
        &[("patterns", "distinct patterns of neighbours: the length of a relation in `table`")]
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("pattern", "the pattern of each cell of a plane"),
            ("table", "relative offsets: relation r of pattern p is at `r * patterns + p`"),
        ]
    }

    fn coordinates(&self, names: &mut Names, block: [u32; 3]) -> Coordinates {
        let [cell, cell_first, cell_end] = names.internals(["cell", "cell_first", "cell_end"]);
        let [x, y, _] = block;
        let thread = match y {
            1 => format!("blockIdx.x * {x} + threadIdx.x"),
            _ => format!("(blockIdx.x * {y} + threadIdx.y) * {x} + threadIdx.x"),
        };
        Coordinates {
            lines: vec![format!("const int {cell} = {cell_first} + {thread};")],
            outside: format!("{cell} >= {cell_end}"),
            column: cell.clone(),
            first: format!("{cell} == {cell_first}"),
        }
    }

    fn column_of(&self, names: &mut Names, neighbour: Neighbour) -> String {
        let [cell, pattern] = names.internals(["cell", "pattern"]);
        if neighbour.offset == Offset::default() {
            return cell;
        }
        format!("{cell} + {}", entry(names, neighbour, &format!("{pattern}[{cell}]")))
    }

    fn prepare(&self, names: &mut Names) -> Vec<String> {
        let [p, pattern, cell] = names.internals(["p", "pattern", "cell"]);
        vec![format!("const int {p} = {pattern}[{cell}];")]
    }

    fn offset_of(&self, names: &mut Names, neighbour: Neighbour) -> String {
        let [p] = names.internals(["p"]);
        entry(names, neighbour, &p)
    }

    fn layout(&self, grid: Grid, region: &Region, neighbours: &[Offset], smallest: usize) -> Layout {
        let inner = |i: usize, j: usize| region.i.contains(&i) && region.j.contains(&j);
        let columns = || (0..grid.nj).flat_map(|j| (0..grid.ni).map(move |i| (i, j)));
        let halo = columns().filter(|&(i, j)| !inner(i, j));
        let order: Vec<(usize, usize)> = halo.chain(columns().filter(|&(i, j)| inner(i, j))).collect();
        let mut places = vec![0u32; grid.columns()];
        for (place, &(i, j)) in order.iter().enumerate() {
            places[j * grid.ni + i] = place as u32;
        }
        let offset = |place: usize, (i, j): (usize, usize), neighbour: Offset| {
            let (i, j) = (i.checked_add_signed(neighbour.i as isize), j.checked_add_signed(neighbour.j as isize));
            match (i, j) {
                (Some(i), Some(j)) if i < grid.ni && j < grid.nj => {
                    (i64::from(places[j * grid.ni + i]) - place as i64) as i32
                }
                // A halo cell's missing neighbour, which no kernel reads.
                _ => 0,
            }
        };
        let mut known: HashMap<Vec<i32>, i32> = HashMap::new();
        let mut patterns: Vec<Vec<i32>> = Vec::new();
        let mut pattern = Vec::with_capacity(order.len());
        for (place, &column) in order.iter().enumerate() {
            let tuple: Vec<i32> = neighbours.iter().map(|&neighbour| offset(place, column, neighbour)).collect();
            let number = *known.entry(tuple.clone()).or_insert_with(|| {
                patterns.push(tuple);
                patterns.len() as i32 - 1
            });
            pattern.push(number);
        }
        let table = (0..neighbours.len()).flat_map(|relation| patterns.iter().map(move |tuple| tuple[relation]));
        let tables = vec![pattern, table.collect()];
        Layout {
            columns: Columns::Places(places),
            plane: padded(grid.columns(), smallest),
            lead: grid.columns() - region.i.len() * region.j.len(),
            sizes: vec![patterns.len()],
            tables,
        }
    }

    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        &[("cell_first", "cell_end")]
    }

    // One range: inner cells stand together, behind the halo.
    #[allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]
    fn columns(&self, region: &Region, layout: &Layout) -> Vec<Range<usize>> {
        vec![layout.lead..layout.lead + region.i.len() * region.j.len()]
    }
}

/// A relation's offset for pattern `p`.
fn entry(names: &mut Names, neighbour: Neighbour, p: &str) -> String {
    let [table, patterns] = names.internals(["table", "patterns"]);
    match neighbour.relation {
        0 => format!("{table}[{p}]"),
        1 => format!("{table}[{patterns} + {p}]"),
        relation => format!("{table}[{relation} * {patterns} + {p}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_to_the_neighbours() {
        let grid = Grid::rows(9, 7, 1);
        let region = Region::rows(2..7, 1..6, 0..1);
        let neighbours = [Offset { i: -2, j: 0, k: 0 }, Offset { i: 1, j: 1, k: 0 }];
        let layout = Compressed.layout(grid, &region, &neighbours, 8);
        let (pattern, table, patterns) = (&layout.tables[0], &layout.tables[1], layout.sizes[0]);
        for j in region.j.clone() {
            for i in region.i.clone() {
                let cell = layout.place(grid, i, j);
                assert!(cell >= layout.lead, "inner cells follow the halo");
                for (relation, neighbour) in neighbours.iter().enumerate() {
                    let offset = table[relation * patterns + pattern[cell] as usize];
                    let (i, j) = (i.strict_add_signed(neighbour.i as isize), j.strict_add_signed(neighbour.j as isize));
                    assert_eq!(cell as i32 + offset, layout.place(grid, i, j) as i32);
                }
            }
        }
    }

    #[test]
    fn patterns_of_the_thesis() {
        // Table 6.7: row-major, 512 x 512 with a halo of two, patterns over all cells.
        let grid = Grid::rows(512, 512, 1);
        let region = Region::rows(2..510, 2..510, 0..1);
        let direct = [(-1, 0), (1, 0), (0, -1), (0, 1)].map(|(i, j)| Offset { i, j, k: 0 });
        assert_eq!(Compressed.layout(grid, &region, &direct, 8).sizes, [2054]);
    }
}
