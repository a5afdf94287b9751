//! Unstructured in the horizontal, with a compressed table of neighbours.
//!
//! Cells of a plane stand in any order, halo cells first. Cells whose neighbours lie at the same relative offsets share a
//! *pattern*: `pattern` maps a cell to its pattern, and for each relation the table has one offset a pattern (struct of
//! arrays). After A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020), section
//! 4.2.2.

use super::neighbors::Hop;
use super::tables::{self, Patterns, Plane};
use super::{Coordinates, Ground, Layout, Origin, Storage, Threads};
use crate::grid::Region;
use crate::names::Names;
use std::ops::Range;

/// Neighbours are looked up: a pattern a cell, an offset a pattern and relation.
pub struct Compressed;

/// The place of a cell's neighbour. Tables are a type of their own where they are watched.
const HELPER: &str = "\
template <class Patterns, class Table>
static __device__ __forceinline__ int neighbour_of(const Patterns& pattern, const Table& table, int start, int cell)
{
    return cell + table[start + pattern[cell]];
}";

/// The number of the table of offsets.
const TABLE: usize = 1;

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

    fn constant(&self) -> Option<usize> {
        Some(TABLE)
    }

    fn coordinates(&self, names: &mut Names, threads: &Threads) -> Coordinates {
        tables::coordinates(names, threads)
    }

    fn place_of(&self, names: &mut Names, chain: &[&Hop]) -> String {
        let [cell, pattern] = names.internals(["cell", "pattern"]);
        match chain {
            [hop] => format!("{cell} + {}", entry(names, hop.relation, &format!("{pattern}[{cell}]"))),
            _ => chain.iter().fold(cell, |at, hop| {
                let [table, patterns] = names.internals(["table", "patterns"]);
                format!("neighbour_of({pattern}, {table}, {}, {at})", tables::start(hop.relation, &patterns))
            }),
        }
    }

    fn prepare(&self, names: &mut Names, from: &Origin) -> Option<String> {
        let [pattern] = names.internals(["pattern"]);
        let p = pattern_of(names, from);
        Some(format!("const int {p} = {pattern}[{}];", from.place))
    }

    fn distance(&self, names: &mut Names, hop: &Hop, from: &Origin) -> String {
        let p = pattern_of(names, from);
        entry(names, hop.relation, &p)
    }

    fn layout(&self, ground: &Ground) -> Layout {
        let plane = Plane::new(ground);
        let Patterns { of_place, offsets, .. } = Patterns::new(&plane, ground, ground.inner_only);
        let table = (0..ground.relations.len()).flat_map(|relation| offsets.iter().map(move |own| own[relation]));
        let tables = vec![of_place, table.collect()];
        plane.layout(ground.smallest, vec![offsets.len()], tables)
    }

    fn helper(&self) -> &'static str {
        HELPER
    }

    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        tables::BOUNDS
    }

    fn columns(&self, region: &Region, layout: &Layout) -> Vec<Range<usize>> {
        tables::columns(region, layout)
    }
}

/// The variable that holds the pattern of the cell at a place.
fn pattern_of(names: &mut Names, from: &Origin) -> String {
    names.internal(&format!("p{}", from.suffix))
}

/// A relation's offset for pattern `p`.
fn entry(names: &mut Names, relation: usize, p: &str) -> String {
    let [table, patterns] = names.internals(["table", "patterns"]);
    match relation {
        0 => format!("{table}[{p}]"),
        relation => format!("{table}[{} + {p}]", tables::start(relation, &patterns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_to_the_neighbours() {
        tables::tests::leads_to_the_neighbours(&Compressed, |layout, relation, place| {
            let (pattern, table, patterns) = (&layout.tables[0], &layout.tables[TABLE], layout.sizes[0]);
            table[relation * patterns + pattern[place] as usize]
        });
    }
}
