//! Unstructured in the horizontal, with a table of neighbours for every cell.
//!
//! Cells of a plane stand in any order, halo cells first. For each relation a table holds every cell's relative offset to
//! that neighbour (struct of arrays). After A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH
//! Zurich, 2020), section 4.2.2.

use super::neighbors::Hop;
use super::tables::{self, Plane};
use super::{Coordinates, Ground, Layout, Origin, Storage, Threads};
use crate::grid::Region;
use crate::names::Names;
use std::ops::Range;

/// Neighbours are looked up: an offset a cell and relation.
pub struct Uncompressed;

/// The place of a cell's neighbour. Tables are a type of their own where they are watched.
const HELPER: &str = "\
template <class Table>
static __device__ __forceinline__ int neighbour_of(const Table& table, int start, int cell)
{
    return cell + table[start + cell];
}";

impl Storage for Uncompressed {
    fn name(&self) -> &'static str {
        "uncompressed"
    }

    fn summary(&self) -> &'static str {
        "cells in any order; a table of relative offsets for every cell"
    }

    fn sizes(&self) -> &'static [(&'static str, &'static str)] {
        &[("entries", "places in a plane: the length of a relation in `table`")]
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        &[("table", "relative offsets: relation r of a cell is at `r * entries + cell`")]
    }

    fn coordinates(&self, names: &mut Names, threads: &Threads) -> Coordinates {
        tables::coordinates(names, threads)
    }

    fn place_of(&self, names: &mut Names, chain: &[&Hop]) -> String {
        let [cell] = names.internals(["cell"]);
        match chain {
            [hop] => format!("{cell} + {}", entry(names, hop.relation, &cell)),
            _ => chain.iter().fold(cell, |at, hop| {
                let [table, entries] = names.internals(["table", "entries"]);
                format!("neighbour_of({table}, {}, {at})", tables::start(hop.relation, &entries))
            }),
        }
    }

    fn prepare(&self, _: &mut Names, _: &Origin) -> Option<String> {
        None
    }

    fn distance(&self, names: &mut Names, hop: &Hop, from: &Origin) -> String {
        entry(names, hop.relation, &from.place)
    }

    fn layout(&self, ground: &Ground) -> Layout {
        let plane = Plane::new(ground);
        let entries = plane.end();
        let mut table = vec![0; ground.relations.len() * entries];
        for at in plane.looked_up(ground.inner_only) {
            for (relation, distance) in plane.distances(ground, at).enumerate() {
                table[relation * entries + plane.first + at] = distance;
            }
        }
        plane.layout(ground.smallest, vec![entries], vec![table])
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

/// A relation's offset for the cell at a place.
fn entry(names: &mut Names, relation: usize, place: &str) -> String {
    let [table, entries] = names.internals(["table", "entries"]);
    match relation {
        0 => format!("{table}[{place}]"),
        relation => format!("{table}[{} + {place}]", tables::start(relation, &entries)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lead_to_the_neighbours() {
        tables::tests::leads_to_the_neighbours(&Uncompressed, |layout, relation, place| {
            layout.tables[0][relation * layout.sizes[0] + place]
        });
    }
}
