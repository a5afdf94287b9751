//! Which neighbours tables hold: every one that a stencil reads, or the direct ones alone, from which others are reached
//! step by step.

use crate::grid::adjacency::DIRECTIONS;
use crate::ir::Path;
use crate::named::named;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

named! {
    /// How longer paths are followed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Neighbors {
        /// One look-up: a table for every path that the stencil needs.
        #[default]
        Direct = "direct", "tables hold every path that the stencil needs: one look-up each";
        /// Step by step: tables for the four direct neighbours.
        Chasing = "chasing", "tables hold the four direct neighbours; longer paths are followed step by step";
    }
}

/// The most steps of all paths together of a kernel that follows them step by step: some strategies write each path down where it
/// is used. Of 109 long paths, 2,971 steps, NVRTC 13.0 made a kernel in 69 s by `naive` and 37 s by `idxvar`; of half as many in 20 s.
const STEPS: usize = 3_000;

/// Every way, in the order that lists show.
pub const NEIGHBORS: [Neighbors; 2] = Neighbors::ALL;

/// One look-up on the way to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Where it leads, from the cell itself.
    pub path: Path,
    /// The hop that it starts from; none for one that starts at the cell itself.
    pub from: Option<usize>,
    /// Its relation: which part of a table it looks into.
    pub relation: usize,
}

impl Neighbors {
    /// Whether it makes a difference for a stencil that reads at `paths`.
    pub fn suits(self, paths: &[Path]) -> bool {
        match self {
            Neighbors::Direct => true,
            Neighbors::Chasing => paths.iter().any(|path| path.units().count() > 1),
        }
    }

    /// The relations that tables hold for a stencil that reads at `paths`.
    pub fn relations(self, paths: &[Path]) -> Vec<Path> {
        match self {
            Neighbors::Direct => paths.to_vec(),
            Neighbors::Chasing => DIRECTIONS.iter().map(|&(_, step)| walked(&Path::default(), step)).collect(),
        }
    }

    /// The hops to `paths`, each after the one that it starts from, and of each path the number of its last hop. Nothing if
    /// they are more than a kernel can have.
    pub fn hops(self, paths: &[Path]) -> Option<(Vec<Hop>, BTreeMap<Path, usize>)> {
        let mut hops: Vec<Hop> = Vec::new();
        let mut last_hops = BTreeMap::new();
        match self {
            Neighbors::Direct => {
                for (relation, path) in paths.iter().enumerate() {
                    last_hops.insert(path.clone(), hops.len());
                    hops.push(Hop { path: path.clone(), from: None, relation });
                }
            }
            Neighbors::Chasing => {
                // By the hop before, and the relation: so that a step is looked up, not the whole way to it.
                let mut known: HashMap<(Option<usize>, usize), usize> = HashMap::new();
                let mut steps = 0;
                for path in paths {
                    let mut from = None;
                    for step in path.units() {
                        steps += 1;
                        if steps > STEPS {
                            return None;
                        }
                        let relation = DIRECTIONS.iter().position(|&(_, own)| own == step).unwrap_or_default();
                        from = Some(*known.entry((from, relation)).or_insert_with(|| {
                            let before = from.map_or(Path::default(), |from: usize| hops[from].path.clone());
                            hops.push(Hop { path: walked(&before, step), from, relation });
                            last_hops.insert(hops[hops.len() - 1].path.clone(), hops.len() - 1);
                            hops.len() - 1
                        }));
                    }
                }
            }
        }
        Some((hops, last_hops))
    }
}

/// A path and one step more.
fn walked(path: &Path, step: crate::ir::Step) -> Path {
    let mut path = path.clone();
    path.walk(step);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Offset;

    #[test]
    fn chasing_shares_the_beginnings_of_paths() {
        let paths = [(-1, 0), (-2, 0), (-1, 1)].map(|(i, j)| Path::from_offset(Offset { i, j, k: 0 }));
        let (hops, last_hops) = Neighbors::Chasing.hops(&paths).unwrap();
        let shown: Vec<_> = hops.iter().map(|hop| (hop.path.to_string(), hop.from, hop.relation)).collect();
        let expected = [("[i-1]", None, 0), ("[i-2]", Some(0), 0), ("[i-1, j+1]", Some(0), 3)];
        assert_eq!(shown, expected.map(|(path, from, relation)| (path.to_owned(), from, relation)));
        assert_eq!(paths.iter().map(|path| last_hops[path]).collect::<Vec<_>>(), [0, 1, 2]);
        let (hops, _) = Neighbors::Direct.hops(&paths).unwrap();
        assert!(hops.iter().all(|hop| hop.from.is_none()));
        assert_eq!(Neighbors::Chasing.relations(&paths).len(), 4);
    }

    #[test]
    fn ways_that_no_kernel_can_follow_are_given_up_early() {
        let far = |i, j| Path::from_offset(Offset { i, j, k: 0 });
        // Paths that share their beginnings are followed once: 2,850 steps, 75 hops.
        let paths: Vec<Path> = (1..=75).map(|n| far(n, 0)).collect();
        assert_eq!(Neighbors::Chasing.hops(&paths).unwrap().0.len(), 75);
        // Were all steps of these walked, there would be 6 * 10^9.
        let paths: Vec<Path> = (0..3_000).map(|n| far(1_000_000 - n, 1_000_000)).collect();
        assert!(Neighbors::Chasing.hops(&paths).is_none());
        assert_eq!(Neighbors::Direct.hops(&paths).unwrap().0.len(), 3_000);
    }
}
