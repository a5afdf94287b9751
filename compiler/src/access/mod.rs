//! Access strategies: where and when neighbours' addresses are computed, and which cells a thread computes. One file a
//! strategy, after A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020), chapter 5.

mod idxvar;
mod naive;
mod zloop;
mod zloop_sliced;

use crate::ir::Offset;
use crate::names::Names;
use crate::storage::{Neighbour, Storage};
use std::collections::BTreeMap;

/// Every access strategy, in the order that lists show.
pub const ACCESSES: &[&dyn Access] = &[&naive::Naive, &idxvar::IdxVar, &zloop::ZLoop, &zloop_sliced::ZLoopSliced];

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

    /// How the neighbours are reached.
    fn lookups(&self, storage: &dyn Storage, names: &mut Names, wanted: &[Wanted]) -> Lookups;
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
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Which.
    pub neighbour: Neighbour,
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
    /// What stands before the first use.
    pub lines: Vec<String>,
    /// The index of each neighbour on the thread's own level.
    pub index: BTreeMap<(Offset, Shape), String>,
}

/// The access strategy called `name`.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find(name: &str) -> Result<&'static dyn Access, String> {
    crate::registry::find(ACCESSES, |access| access.name(), name, "access strategy")
}
