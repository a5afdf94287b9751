//! Access strategies: where and when neighbours' addresses are computed, and which cells a thread computes. One file a
//! strategy, after A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020), chapter 5.

mod idxvar;
pub mod knobs;
mod naive;
mod patches;
mod queue;
mod rows;
mod shared;
pub mod swic;
mod tile;
mod warp;
mod zloop;
mod zloop_sliced;
mod zrows;

use crate::analysis::extents::Extents;
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Path, Precision};
use crate::kernel::build::{Builder, Computing};
use crate::kernel::{ArrayId, ValueId};
use crate::names::path_name;
use crate::step::planes::Queue;
use crate::storage::fastest::Fastest;
use crate::storage::neighbors::Hop;
use crate::storage::{Along, Coordinates, Origin, Sizes, Storage, Stride};
use knobs::{Knob, Knobs};
use std::collections::{BTreeMap, BTreeSet};

/// Every access strategy, in the order that lists show.
pub const ACCESSES: &[&dyn Access] = &[
    &naive::Naive,
    &idxvar::IdxVar,
    &shared::Shared,
    &warp::Warp,
    &zloop::ZLoop,
    &zloop_sliced::ZLoopSliced,
    &rows::Rows,
    &zrows::ZRows,
    &tile::Tiles,
    &patches::Patches,
    &swic::Swic,
    &queue::InputQueue,
];

/// A way to reach neighbours.
pub trait Access: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// Names that it had before, which are taken still.
    fn former_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// What users can choose beside, for it alone.
    fn knobs(&self) -> &'static [Knob] {
        &[]
    }

    /// The storage that it is meant for, if nothing else is asked for.
    fn storage(&self) -> &'static str {
        "regular"
    }

    /// Which axis is fastest in memory, if nothing else is asked for.
    fn fastest(&self) -> Fastest {
        Fastest::Columns
    }

    /// How many levels a thread computes.
    fn levels(&self, _knobs: &Knobs) -> LevelsPerThread {
        LevelsPerThread::One
    }

    /// Threads of a block along x, y and z, if nothing else is asked for.
    fn block(&self) -> [u32; 3] {
        [64, 2, 1]
    }

    /// How many cells a thread computes along i and j.
    fn tile(&self, _knobs: &Knobs, _precision: Precision) -> [u32; 2] {
        [1, 1]
    }

    /// About how many columns a thread computes one after the other, if it computes a row of them.
    fn row(&self) -> Option<u32> {
        None
    }

    /// How many levels a thread computes together, as it does the columns of a tile.
    fn tile_levels(&self, _knobs: &Knobs, _precision: Precision) -> u32 {
        1
    }

    /// For how many warps a multiprocessor has to have room, which bounds the registers of a thread; nothing if that is for compilers to
    /// decide.
    fn warps(&self, _knobs: &Knobs, _precision: Precision) -> Option<u32> {
        None
    }

    /// Whether a thread's tile is a patch of columns, which is found in a grid of any neighbours.
    fn has_patches(&self) -> bool {
        false
    }

    /// What waits in registers while a block walks along k; nothing if no block does.
    fn queue(&self) -> Option<Queue> {
        None
    }

    /// Why it makes no sense for a storage, or cannot work with it.
    fn refusal(&self, _storage: &dyn Storage) -> Option<Refusal> {
        None
    }

    /// How many threads of a column share what one of them looks up, in blocks of this many threads.
    fn sharing(&self, _block: [u32; 3]) -> u32 {
        1
    }

    /// Bytes of shared memory that a block needs.
    fn shared_bytes(&self, _block: [u32; 3], _needs: &Needs) -> usize {
        0
    }

    /// Whether all threads of a block look up together, before those leave that have nothing to compute.
    fn is_together(&self) -> bool {
        false
    }

    /// How far away the neighbours are: of each hop the distance from the thread's own place to its end. Nothing if each use finds its
    /// neighbour anew.
    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>>;

    /// Whether each neighbour's index is a variable, before the first use.
    fn has_index_variables(&self) -> bool {
        false
    }

    /// The elements of fields that it loads by itself, before the first use: of strategies that give a thread one level, or a tile's. Whoever uses
    /// any other loads it there. Where all threads of a block are together, those without a cell are there as well.
    fn elements(&self, _own: &mut Builder, _reads: &Reads) -> Elements {
        Elements::new()
    }
}

/// Elements of fields, by the paths that lead there from a thread's cell.
pub type Elements = BTreeMap<(FieldId, Path), ValueId>;

/// What a strategy can load by itself.
pub struct Reads<'a> {
    /// The reads of fields with horizontal axes that each thread makes, whatever the conditions.
    pub sure: &'a BTreeSet<(FieldId, Path)>,
    /// The arrays that are read.
    pub arrays: &'a BTreeMap<FieldId, ArrayId>,
    /// How far the stencil reaches along i and j.
    pub extents: Extents,
    /// How many levels a thread computes together.
    pub levels: u32,
    /// How many elements of a field that follow each other can be moved at once; nothing if each moves alone.
    pub run_width: &'a dyn Fn(FieldId) -> Option<u32>,
    /// The neighbours, and what their addresses are made of.
    pub neighbourhood: Neighbourhood<'a>,
    /// The thread's cell.
    pub cell: Cell,
    /// The index of a field's element at the end of a path.
    pub index: &'a dyn Fn(&mut Builder, FieldId, &Path) -> ValueId,
}

/// What a strategy may share in a block.
pub struct Needs<'a> {
    /// How many neighbours there are.
    pub neighbours: usize,
    /// Bytes of an index.
    pub index: usize,
    /// [`Reads::sure`].
    pub sure: &'a BTreeSet<(FieldId, Path)>,
    /// Bytes of a field's elements.
    pub bytes: &'a dyn Fn(FieldId) -> usize,
}

/// Why a strategy whose threads of a column, along z, share what one of them looks up does not work with a storage.
fn needs_look_ups(access: &dyn Access, storage: &dyn Storage) -> Option<Refusal> {
    let (name, access) = (storage.name(), access.name());
    if !storage.has_tables() {
        let why = format!("`{access}` access shares what is looked up, and {name} storage looks nothing up");
        let help = "give another access, as --access idxvar, or a storage with tables: --storage compressed";
        return Some(Refusal::new(why).help(help));
    }
    (storage.levels_along(LevelsPerThread::One) != Along::Z).then(|| {
        let why =
            format!("`{access}` access shares along z, where threads of {name} storage have no levels of a column");
        Refusal::new(why).help("give another access, as --access idxvar")
    })
}

/// The neighbours that a strategy has to reach, and what their addresses are made of.
pub struct Neighbourhood<'a> {
    /// The storage, which knows the addresses.
    pub storage: &'a dyn Storage,
    /// What addresses are made of.
    pub sizes: &'a Sizes,
    /// The neighbours that the stencil reads.
    pub wanted: &'a [Wanted],
    /// The look-ups that lead there.
    pub hops: &'a [Hop],
    /// The last hop to each neighbour.
    pub last_hops: &'a BTreeMap<Path, usize>,
    /// How a thread finds its column.
    pub coordinates: &'a Coordinates,
    /// Threads of a block.
    pub block: [u32; 3],
}

/// How many levels a thread computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelsPerThread {
    /// One, or as many as its tile has.
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

/// The cell that a thread computes, at some place in its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Its level.
    pub k: ValueId,
    /// The index of its value.
    pub c: ValueId,
    /// The place of its column in the plane.
    pub column: ValueId,
}

impl Cell {
    /// The index of its value in a field of a shape.
    pub fn index(self, shape: Shape) -> ValueId {
        match shape {
            Shape::Volume => self.c,
            Shape::Plane => self.column,
        }
    }
}

/// How the indices of neighbours are had where they are used.
#[derive(Clone, Debug)]
pub enum Addresses {
    /// Each is computed anew, from the thread's coordinates.
    Anew,
    /// From the distance to the end of each hop, which is the same on every level.
    Distances(Vec<ValueId>),
    /// They are known.
    Indices(BTreeMap<(Path, Shape), ValueId>),
}

impl Neighbourhood<'_> {
    /// The indices of the neighbours as variables, given the distances.
    pub fn index_variables(&self, own: &mut Builder, distances: &[ValueId], cell: Cell) -> Addresses {
        let named = self.wanted.iter().map(|Wanted { path, shape }| {
            let suffix = if *shape == Shape::Plane { "_column" } else { "" };
            let index = self.away(own, cell, *shape, distances[self.last_hops[path]]);
            ((path.clone(), *shape), own.name(&format!("{}{suffix}", path_name(path)), index))
        });
        Addresses::Indices(named.collect())
    }

    /// The index of a neighbour of a cell.
    pub fn index(&self, own: &mut Builder, addresses: &Addresses, path: &Path, shape: Shape, cell: Cell) -> ValueId {
        match addresses {
            Addresses::Indices(known) => known[&(path.clone(), shape)],
            Addresses::Distances(distances) => self.away(own, cell, shape, distances[self.last_hops[path]]),
            Addresses::Anew => {
                let place = self.storage.place_of(own, self.sizes, self.coordinates, &self.hops_to(path));
                match shape {
                    Shape::Volume => self.storage.index(own, self.sizes, place, cell.k),
                    Shape::Plane => place,
                }
            }
        }
    }

    /// The index of a neighbour whose place is so far away from a cell's.
    fn away(&self, own: &mut Builder, cell: Cell, shape: Shape, distance: ValueId) -> ValueId {
        let stride = match shape {
            Shape::Volume => self.storage.strides().place,
            Shape::Plane => Stride::One,
        };
        let stride = self.sizes.stride(own, stride);
        own.term(cell.index(shape).plus(distance.times(stride)))
    }

    /// Distances from the thread's own place to the end of each hop. Those that `keep` asks for, and those that others start from,
    /// are variables.
    fn hop_distances(&self, own: &mut Builder, keep: bool) -> Vec<ValueId> {
        let mut is_start = vec![false; self.hops.len()];
        self.hops.iter().filter_map(|hop| hop.from).for_each(|from| is_start[from] = true);
        let here = Origin { place: self.coordinates.column, path: Path::default() };
        let mut distances: Vec<ValueId> = Vec::new();
        for (number, hop) in self.hops.iter().enumerate() {
            let mut distance = match hop.from {
                None => self.storage.distance(own, self.sizes, hop, &here),
                Some(from) => {
                    let place = own.add(here.place, distances[from]);
                    let origin = Origin { place, path: self.hops[from].path.clone() };
                    let step = self.storage.distance(own, self.sizes, hop, &origin);
                    own.add(distances[from], step)
                }
            };
            if keep || is_start[number] {
                distance = own.name(&format!("to_{}", path_name(&hop.path)), distance);
            }
            distances.push(distance);
        }
        distances
    }

    /// The last hops to the neighbours that the stencil reads, without those that are only on the way.
    fn last_hops(&self) -> Vec<usize> {
        let mut last: Vec<usize> =
            self.wanted.iter().filter_map(|wanted| self.last_hops.get(&wanted.path).copied()).collect();
        last.dedup();
        last
    }

    /// The hops from the cell to a neighbour.
    fn hops_to(&self, path: &Path) -> Vec<&Hop> {
        let mut chain = Vec::new();
        let mut next = self.last_hops.get(path).copied();
        while let Some(hop) = next {
            chain.push(&self.hops[hop]);
            next = self.hops[hop].from;
        }
        chain.reverse();
        chain
    }
}

/// Returns the access strategy that is called `name`, or was called so once.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find(name: &str) -> Result<&'static dyn Access, String> {
    match ACCESSES.iter().find(|access| access.former_names().contains(&name)) {
        Some(&access) => Ok(access),
        None => crate::registry::find(ACCESSES, |access| access.name(), name, "access strategy"),
    }
}

/// Returns the name that the access strategy called `name` has now; `name` itself if there is none.
pub fn present_name(name: String) -> String {
    find(&name).map_or(name, |access| access.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_names_are_taken_and_names_differ() {
        assert_eq!(find("march").unwrap().name(), "tile");
        assert_eq!(present_name("march".to_owned()), "tile");
        assert_eq!(present_name("marsh".to_owned()), "marsh");
        let own = |access: &&'static dyn Access| [&[access.name()], access.former_names()].concat();
        let mut names: Vec<&str> = ACCESSES.iter().flat_map(own).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "no name means two strategies");
    }
}
