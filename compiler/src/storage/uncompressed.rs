//! Unstructured in the horizontal, with a table of neighbours for every cell.
//!
//! Cells of a plane stand in any order, halo cells first. For each relation a table holds every cell's relative offset to
//! that neighbour (struct of arrays). After A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH
//! Zurich, 2020), section 4.2.2.

use super::neighbors::Hop;
use super::tables::Plane;
use super::{Coordinates, Layout, LayoutRequest, Origin, PLANE, Sizes, Storage};
use crate::kernel::build::{Builder, Computing, Term};
use crate::kernel::{Follow, Type, ValueId};

/// Neighbours are looked up: an offset a cell and relation.
pub struct Uncompressed;

/// The number of the size that is the length of a relation in the table.
const LENGTH: usize = 1;

impl Storage for Uncompressed {
    fn name(&self) -> &'static str {
        "uncompressed"
    }

    fn summary(&self) -> &'static str {
        "cells in any order; a table of relative offsets for every cell"
    }

    fn sizes(&self) -> &[(&'static str, &'static str)] {
        &[PLANE, ("entries", "places in a plane: the length of a relation in `table`")]
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[("table", "relative offsets: relation r of a cell is at `r * entries + cell`")]
    }

    fn place_of(&self, own: &mut Builder, sizes: &Sizes, from: &Coordinates, chain: &[&Hop]) -> ValueId {
        let cell = from.axes[0];
        let place = match chain {
            [hop] => own.term(cell.plus(entry(sizes, hop, cell))),
            _ => chain.iter().fold(cell, |place, hop| {
                let start = own.term(hop.relation.times(sizes.own[LENGTH]).to(Type::I32));
                own.follow(Follow { patterns: None, table: sizes.tables[0], start, place })
            }),
        };
        own.convert(place, sizes.index)
    }

    fn distance(&self, own: &mut Builder, sizes: &Sizes, hop: &Hop, from: &Origin) -> ValueId {
        own.term(entry(sizes, hop, from.place).to(sizes.index))
    }

    fn layout(&self, request: &LayoutRequest) -> Layout {
        let plane = Plane::new(request);
        let entries = plane.end();
        let mut table = vec![0; request.relations.len() * entries];
        for at in plane.looked_up(request.inner_only) {
            for (relation, distance) in plane.distances(request, at).enumerate() {
                table[relation * entries + plane.first + at] = distance;
            }
        }
        plane.layout(request.smallest, entries, vec![table])
    }
}

/// The offset of a hop for the cell at a place.
fn entry(sizes: &Sizes, hop: &Hop, place: ValueId) -> Term {
    sizes.tables[0].at(hop.relation.times(sizes.own[LENGTH]).plus(place.to(sizes.index)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_to_the_neighbours() {
        super::super::tables::tests::leads_to_the_neighbours(&Uncompressed, |layout, relation, place| {
            layout.tables[0][relation * layout.sizes[LENGTH] + place]
        });
    }
}
