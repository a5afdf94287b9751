//! Access strategies: where and when neighbours' addresses are computed, and which cells a thread computes. One file a
//! strategy, after A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020), chapter 5.

mod idxvar;
mod march;
mod naive;
mod shared;
mod warp;
mod zloop;
mod zloop_sliced;

use crate::ir::Path;
use crate::names::{Names, path_name};
use crate::storage::neighbors::Hop;
use crate::storage::{Coordinates, Origin, Storage};
use std::collections::BTreeMap;

/// Every access strategy, in the order that lists show.
pub const ACCESSES: &[&dyn Access] = &[
    &naive::Naive,
    &idxvar::IdxVar,
    &shared::Shared,
    &warp::Warp,
    &zloop::ZLoop,
    &zloop_sliced::ZLoopSliced,
    &march::March,
];

/// A way to reach neighbours.
pub trait Access: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// The skeleton of its kernels: a file in `templates/`.
    fn template(&self) -> &'static str;

    /// How many levels a thread computes, where `slice` are asked for.
    fn levels(&self, slice: u32) -> LevelsPerThread;

    /// Threads of a block along x, y and z, if nothing else is asked for.
    fn block(&self) -> [u32; 3] {
        [64, 2, 1]
    }

    /// Whether threads share what they look up, which only makes sense where something is looked up.
    fn shares(&self) -> bool {
        false
    }

    /// Whether a thread computes a tile of cells, which only makes sense where columns stand in rows.
    fn tiles(&self) -> bool {
        false
    }

    /// Whether it makes sense for a storage.
    fn suits(&self, storage: &dyn Storage) -> bool {
        let has_tables = !storage.tables().is_empty();
        if has_tables { !self.tiles() } else { !self.shares() }
    }

    /// How many threads of a column share what one of them looks up, in blocks of this many threads.
    fn sharing(&self, _block: [u32; 3]) -> u32 {
        1
    }

    /// Bytes of shared memory that a block needs for this many neighbours.
    fn shared_bytes(&self, _block: [u32; 3], _neighbours: usize, _wide: bool) -> usize {
        0
    }

    /// How the neighbours are reached.
    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups;
}

/// What a strategy has to reach.
pub struct Reach<'a> {
    /// The storage, which knows the addresses.
    pub storage: &'a dyn Storage,
    /// The neighbours that the stencil reads.
    pub wanted: &'a [Wanted],
    /// The look-ups that lead there.
    pub hops: &'a [Hop],
    /// The last hop to each neighbour.
    pub ends: &'a BTreeMap<Path, usize>,
    /// How a thread finds its column.
    pub coordinates: &'a Coordinates,
    /// Threads of a block.
    pub block: [u32; 3],
}

/// How many levels a thread computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelsPerThread {
    /// One.
    One,
    /// Several that follow each other.
    Slice(u32),
    /// All.
    All,
}

/// A neighbour that the stencil reads, other than the cell itself.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Which.
    pub path: Path,
    /// In a field with or without levels.
    pub shape: Shape,
}

/// The horizontal fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// With levels: the index counts planes.
    Volume,
    /// One value a column.
    Plane,
}

/// How the neighbours are reached: C++ texts.
#[derive(Clone, Debug, Default)]
pub struct Lookups {
    /// What all threads of a block do together, before those that have nothing to compute leave.
    pub together: Vec<String>,
    /// What stands before the first use.
    pub lines: Vec<String>,
    /// The index of each neighbour on the thread's own level.
    pub index: BTreeMap<(Path, Shape), String>,
}

impl Reach<'_> {
    /// Distances from the thread's own place to the end of each hop: what must be declared for them, and their texts. Those
    /// that `keep` asks for, and those that others start from, get variables.
    fn distances(&self, names: &mut Names, keep: bool) -> (Vec<String>, Vec<String>) {
        let [cell] = names.internals(["cell"]);
        let own = Origin { place: cell.clone(), suffix: String::new() };
        let mut lines: Vec<String> = self.storage.prepare(names, &own).into_iter().collect();
        let index_type = names.index_type();
        let mut texts: Vec<String> = Vec::new();
        let mut prepared: Vec<Option<Origin>> = vec![None; self.hops.len()];
        let mut is_start = vec![false; self.hops.len()];
        self.hops.iter().filter_map(|hop| hop.from).for_each(|from| is_start[from] = true);
        for (number, hop) in self.hops.iter().enumerate() {
            let mut text = match hop.from {
                None => self.storage.distance(names, hop, &own),
                Some(from) => {
                    let origin = prepared[from].get_or_insert_with(|| {
                        let suffix = format!("_{}", path_name(&self.hops[from].path));
                        let origin = Origin { place: format!("{cell} + {}", texts[from]), suffix };
                        lines.extend(self.storage.prepare(names, &origin));
                        origin
                    });
                    format!("{} + {}", texts[from], self.storage.distance(names, hop, origin))
                }
            };
            if keep || is_start[number] {
                let name = names.fresh(&format!("to_{}", path_name(&hop.path)));
                lines.push(format!("const {index_type} {name} = {text};"));
                text = name;
            }
            texts.push(text);
        }
        (lines, texts)
    }

    /// The last hops to the neighbours that the stencil reads, without those that are only on the way.
    fn last_hops(&self) -> Vec<usize> {
        let mut last: Vec<usize> =
            self.wanted.iter().filter_map(|wanted| self.ends.get(&wanted.path).copied()).collect();
        last.dedup();
        last
    }

    /// The hops from the cell to a neighbour.
    fn chain(&self, path: &Path) -> Vec<&Hop> {
        let mut chain = Vec::new();
        let mut next = self.ends.get(path).copied();
        while let Some(hop) = next {
            chain.push(&self.hops[hop]);
            next = self.hops[hop].from;
        }
        chain.reverse();
        chain
    }
}

/// One variable for each neighbour's index, given the texts of the distances.
fn indices(reach: &Reach, names: &mut Names, distances: &[String], lookups: &mut Lookups) {
    let index_type = names.index_type();
    for Wanted { path, shape } in reach.wanted {
        let (base, suffix) = match shape {
            Shape::Volume => ("c", ""),
            Shape::Plane => ("column", "_column"),
        };
        let [base] = names.internals([base]);
        let name = names.fresh(&format!("{}{suffix}", path_name(path)));
        let distance = &distances[reach.ends[path]];
        let sum = sum(&base, distance);
        lookups.lines.push(format!("const {index_type} {name} = {sum};"));
        lookups.index.insert((path.clone(), *shape), name);
    }
}

/// `c + row`, `c - 2 * row + 1`
fn sum(base: &str, distance: &str) -> String {
    match distance.strip_prefix('-') {
        // A sign in front of the first term reads as the operator.
        Some(distance) => format!("{base} - {distance}"),
        None => format!("{base} + {distance}"),
    }
}

/// The access strategy called `name`.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find(name: &str) -> Result<&'static dyn Access, String> {
    crate::registry::find(ACCESSES, |access| access.name(), name, "access strategy")
}
