//! What an ordering is worth.

use super::{Bandwidth, Cuts, Graph};
use crate::error::Result;
use crate::mesh::Mesh;
use crate::mesh::lists::{Cut, Lists};
use crate::mesh::slots::Slot;
use serde::Serialize;

/// How near to each other what is used together lies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// How far apart neighbours are in the graph of the set that leads.
    pub bandwidth: Bandwidth,
    /// For each map, how often a block of elements uses what it leads to.
    pub reuse: Vec<Reuse>,
}

/// Reuse through a map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reuse {
    /// The map's name, with that of its set.
    pub map: String,
    /// Blocks of elements.
    pub blocks: usize,
    /// Slots that lead to an element that a block uses, on average: 1 is no reuse, and 0 is no use.
    pub mean: f64,
}

impl Measures {
    /// Measures for blocks of consecutive elements, all of the size `block` but for those of `cuts`.
    ///
    /// # Errors
    /// Blocks are too large for local numbers, or of no elements, or a map is too large for its inverse.
    pub fn new(mesh: &Mesh, lead: usize, block: usize, cuts: Option<&Cuts>) -> Result<Self> {
        let reuse = |number: usize| {
            let from = mesh.maps[number].from;
            let cut = cuts.filter(|cuts| cuts.set == from).map_or(Cut::Every(block), |cuts| Cut::At(&cuts.starts));
            let starts = cut.starts(mesh.sets[from].size)?;
            let elements: Vec<u32> = (0..mesh.sets[from].size as u32).collect();
            let lists = Lists::new(mesh, &Slot::all(mesh, number), &starts, &elements)?;
            let mean = lists.first().map_or(0.0, |lists| lists.statistics(mesh).reuse);
            Ok(Reuse { map: mesh.full_name(&mesh.maps[number]), blocks: starts.len() - 1, mean })
        };
        let bandwidth = Graph::of(mesh, lead)?.bandwidth();
        Ok(Self { bandwidth, reuse: (0..mesh.maps.len()).map(reuse).collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::sample;

    #[test]
    fn rows_of_squares_share_nodes() {
        let mesh = sample::quads(16, 16);
        let mean = |block, cuts| Measures::new(&mesh, 2, block, cuts).unwrap().reuse[2].mean;
        assert_eq!(mean(1, None), 1.0);
        assert_eq!(mean(16, None), 64.0 / 34.0);
        // Two rows.
        assert_eq!(mean(32, None), 128.0 / 51.0);
        let cuts = Cuts { set: 2, starts: vec![0, 16, 256] };
        assert_eq!(mean(1, Some(&cuts)), 1024.0 / (34.0 + 17.0 * 16.0));
        let measures = Measures::new(&mesh, 2, 32, None).unwrap();
        assert_eq!(
            (measures.bandwidth.max, measures.reuse[2].blocks, &measures.reuse[2].map[..]),
            (16, 8, "cell.nodes")
        );
    }
}
