//! What a kernel moves, before it is compiled: enough to say which of many kernels to try first, and which not at all.
//!
//! Memory and the first-level cache work at the same time, but not wholly: of the two the root of the sum of squares counts,
//! which lies between the larger one and the sum. What passes through the cache weighs an eighth, the order of the ratio of
//! both bandwidths on GPUs of the last ten years. A GPU that has too few threads waits; registers, which also keep threads
//! out, are not known before a kernel is compiled.

use super::phases::Phase;
use super::{Plan, shape_of};
use crate::ir::{FieldId, Path};
use std::collections::BTreeSet;

/// Bytes that the first-level cache passes in the time of one from memory.
const CACHE: f64 = 8.0;

/// Bytes of a table's entry.
const ENTRY: f64 = 4.0;

/// The part of all threads that a GPU has room for with which it is as fast as with all of them. With fewer its speed goes by
/// the root of how many there are: on 200x168 columns `zloop` has an eighth of an H200's threads, and takes 1.0 to 3.6 times as
/// long as `idxvar`, on 512x512 columns 0.6 to 1.3 times (eight stencils).
const ENOUGH: f64 = 0.5;

/// By how much longer blocks that walk along k take than memory alone would: what a plane gives is added while the next one comes, but
/// not wholly, and planes of tiles overlap. Measured for 19 to 55 points in single precision on an H100.
const WALKED: f64 = 1.3;

/// What a kernel moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes a cell between the GPU and its memory, if everything passes once.
    pub memory: f64,
    /// Bytes a cell between threads and the first-level cache.
    pub cache: f64,
    /// Cells that a thread computes.
    pub cells: f64,
}

impl Estimate {
    /// Bytes a cell from memory that would take as long as the kernel, of which there are so many cells, on a GPU that has
    /// room for so many threads at once, if that is known.
    pub fn bytes(self, cells: usize, room: Option<u32>) -> f64 {
        let threads = cells as f64 / self.cells;
        let full = room.map_or(1.0, |room| (threads / (ENOUGH * f64::from(room))).min(1.0));
        self.memory.hypot(self.cache / CACHE) / full.sqrt()
    }
}

/// What the kernel of a plan moves for columns of `levels` levels: `memory` bytes a cell between the GPU and its memory, and
/// `table_loads` entries of tables a cell that threads load.
pub fn estimate(plan: &Plan, levels: usize, memory: f64, table_loads: f64) -> Estimate {
    if plan.access.queue().is_some() {
        return Estimate { memory: memory * WALKED, cache: 0.0, cells: 1.0 };
    }
    let columns: u32 = plan.columns_of_a_thread().iter().product();
    let cells = f64::from(columns) * plan.levels_of_a_thread(levels).max(1) as f64;
    Estimate { memory, cache: of_fields(plan) + ENTRY * table_loads, cells }
}

/// Bytes of fields with levels that a thread loads and stores, of each of its cells. Every value is loaded once, but those
/// of other levels for each level anew.
fn of_fields(plan: &Plan) -> f64 {
    let reads = plan.phases.iter().flat_map(Phase::reads);
    let read: BTreeSet<(FieldId, Path)> =
        reads.map(|(field, [at, path], _)| (field, plan.path_classes.join(at, path))).collect();
    let bytes = |field: FieldId| match shape_of(&plan.stencil, field) {
        Some(_) => plan.stencil.fields[field].stored.bytes(plan.choices.precision) as f64,
        None => 0.0,
    };
    let stores = plan.phases.iter().flat_map(Phase::stores);
    let all: f64 = read.iter().map(|&(field, _)| bytes(field)).chain(stores.map(|(store, _)| bytes(store.field))).sum();
    all / f64::from(plan.tile.columns.iter().product::<u32>() * plan.tile.levels)
}
