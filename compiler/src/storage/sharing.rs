//! One layout for several stencils, so that they can work on the same arrays.
//!
//! Stencils that reach further compute fewer columns. Where those of one are all among those of the next, columns stand
//! from the outside in: first what none computes, then what only the next does, last what both do. So what each computes
//! stands together, from its first column to the end of the plane. What fits into no such chain is listed.

use crate::analysis;
use crate::grid::{Adjacency, Grid};
use crate::ir::{Precision, Stencil};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the stencils of one layout have together.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// The columns that each computes, in ascending order.
    pub computed: Vec<Arc<[u32]>>,
    /// Bytes of the smallest elements that any of them has.
    pub smallest: usize,
    /// How many levels the highest field of any of them has.
    pub levels: usize,
}

impl Sharing {
    /// What `stencils`, which are prepared, have together on a grid. Those that compute none of its columns take no part.
    pub fn new<'a>(
        stencils: impl IntoIterator<Item = &'a Stencil>,
        precision: Precision,
        grid: Grid,
        adjacency: Option<&Adjacency>,
    ) -> Self {
        let mut sharing = Self { computed: Vec::new(), smallest: 8, levels: grid.nk };
        for stencil in stencils {
            if let Ok(region) = analysis::columns_of(stencil, grid, adjacency) {
                sharing.computed.push(region.column_numbers(grid).into());
                sharing.smallest = sharing.smallest.min(stencil.smallest(precision));
                sharing.levels = sharing.levels.max(stencil.highest(grid.nk));
            }
        }
        sharing
    }

    /// Of each column how many stencils of the longest chain compute it, and how many stencils that chain has.
    pub(super) fn rings(&self, columns: usize) -> (Vec<u32>, u32) {
        let chain = self.chain();
        let mut rings = vec![0; columns];
        for computed in &chain {
            computed.iter().for_each(|&column| rings[column as usize] += 1);
        }
        (rings, chain.len() as u32)
    }

    /// Different sets of columns, each within the one before, for as many stencils as there can be.
    fn chain(&self) -> Vec<&[u32]> {
        let mut sets: Vec<&[u32]> =
            self.computed.iter().map(AsRef::as_ref).collect::<BTreeSet<_>>().into_iter().collect();
        // A set can only be within a larger one.
        sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
        let stencils = |set: &[u32]| self.computed.iter().filter(|own| own.as_ref() == set).count();
        // Of each set the stencils of the longest chain that it ends, and the set before it.
        let mut ending: Vec<(usize, Option<usize>)> = Vec::new();
        for (number, set) in sets.iter().enumerate() {
            let around = (0..number).filter(|&other| is_within(set, sets[other]));
            let before = around.max_by_key(|&other| (ending[other].0, std::cmp::Reverse(other)));
            ending.push((stencils(set) + before.map_or(0, |before| ending[before].0), before));
        }
        let mut last = (0..sets.len()).max_by_key(|&number| (ending[number].0, std::cmp::Reverse(number)));
        let mut chain = Vec::new();
        while let Some(number) = last {
            chain.push(sets[number]);
            last = ending[number].1;
        }
        chain.reverse();
        chain
    }
}

/// Whether every number of `inner` is one of `outer`; both ascend.
fn is_within(inner: &[u32], outer: &[u32]) -> bool {
    let mut outer = outer.iter();
    inner.iter().all(|column| outer.any(|other| other == column))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(sets: &[&[u32]]) -> Sharing {
        Sharing { computed: sets.iter().map(|&set| set.into()).collect(), smallest: 8, levels: 1 }
    }

    #[test]
    fn the_longest_chain_is_found() {
        let all = [0, 1, 2, 3, 4, 5];
        let chain = |sets: &[&[u32]]| sharing(sets).chain().into_iter().map(<[u32]>::to_vec).collect::<Vec<_>>();
        assert_eq!(chain(&[&[2, 3], &all, &[1, 2, 3]]), [&all[..], &[1, 2, 3], &[2, 3]]);
        // Neither of the last two is within the other.
        assert_eq!(chain(&[&all, &[1, 2, 3], &[0, 1]]), [&all[..], &[1, 2, 3]]);
        // Two stencils that compute the same columns count twice.
        assert_eq!(chain(&[&all, &[1, 2, 3], &[0, 1], &[0, 1]]), [&all[..], &[0, 1]]);
        assert_eq!(sharing(&[&[2, 3], &all, &[1, 2, 3]]).rings(6), (vec![1, 2, 3, 3, 1, 1], 3));
    }
}
