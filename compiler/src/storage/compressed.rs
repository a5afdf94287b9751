//! Unstructured in the horizontal, with a compressed table of neighbours.
//!
//! Cells of a plane stand in any order, halo cells first. Cells whose neighbours lie at the same relative offsets share a
//! *pattern*: `pattern` maps a cell to its pattern, and for each relation the table has one offset a pattern (struct of
//! arrays). After A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020), section
//! 4.2.2.

use super::neighbors::Hop;
use super::tables::{Patterns, Plane};
use super::{Coordinates, Layout, LayoutRequest, Origin, PLANE, Sizes, Storage};
use crate::kernel::build::{Builder, Computing, Term};
use crate::kernel::{Follow, Type, ValueId};
use crate::names::name_at;

/// Neighbours are looked up: a pattern a cell, an offset a pattern and relation.
pub struct Compressed;

/// The number of the table of offsets.
const TABLE: usize = 1;

/// The number of the size that is the length of a relation in it.
const LENGTH: usize = 1;

impl Storage for Compressed {
    fn name(&self) -> &'static str {
        "compressed"
    }

    fn summary(&self) -> &'static str {
        "cells in any order; a pattern a cell, a table of relative offsets a pattern"
    }

    fn sizes(&self) -> &[(&'static str, &'static str)] {
        &[PLANE, ("patterns", "distinct patterns of neighbours: the length of a relation in `table`")]
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

    fn place_of(&self, own: &mut Builder, sizes: &Sizes, from: &Coordinates, chain: &[&Hop]) -> ValueId {
        let cell = from.axes[0];
        let place = match chain {
            [hop] => {
                let pattern = own.load(sizes.tables[0], cell);
                own.term(cell.plus(entry(sizes, hop, pattern)))
            }
            _ => chain.iter().fold(cell, |place, hop| {
                let start = own.term(hop.relation.times(sizes.own[LENGTH]).to(Type::I32));
                own.follow(Follow { patterns: Some(sizes.tables[0]), table: sizes.tables[TABLE], start, place })
            }),
        };
        own.convert(place, sizes.index)
    }

    fn distance(&self, own: &mut Builder, sizes: &Sizes, hop: &Hop, from: &Origin) -> ValueId {
        // All hops from a place share its pattern.
        let pattern = own.name(&name_at("p", &from.path), sizes.tables[0].at(from.place));
        own.term(entry(sizes, hop, pattern).to(sizes.index))
    }

    fn layout(&self, request: &LayoutRequest) -> Layout {
        let plane = Plane::new(request);
        let Patterns { of_place, offsets, .. } = Patterns::new(&plane, request, request.inner_only);
        let table = (0..request.relations.len()).flat_map(|relation| offsets.iter().map(move |own| own[relation]));
        let tables = vec![of_place, table.collect()];
        plane.layout(request.smallest, offsets.len(), tables)
    }
}

/// The offset of a hop for a pattern.
fn entry(sizes: &Sizes, hop: &Hop, pattern: ValueId) -> Term {
    sizes.tables[TABLE].at(hop.relation.times(sizes.own[LENGTH]).plus(pattern.to(sizes.index)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_to_the_neighbours() {
        super::super::tables::tests::leads_to_the_neighbours(&Compressed, |layout, relation, place| {
            let (pattern, table, patterns) = (&layout.tables[0], &layout.tables[TABLE], layout.sizes[LENGTH]);
            table[relation * patterns + pattern[place] as usize]
        });
    }
}
