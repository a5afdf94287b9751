//! What a kernel moves, before it is compiled: enough to say which of many kernels to try first, and which not at all.
//!
//! Memory and the first-level cache work at the same time, but not wholly: of the two the root of the sum of squares counts,
//! which lies between the larger one and the sum. What passes through the cache weighs an eighth, the order of the ratio of
//! both bandwidths on GPUs of the last ten years.

use super::{Plan, schedule::Item, shape_of};
use crate::ir::{Body, FieldId, Node, Path};
use std::collections::BTreeSet;

/// Bytes that the first-level cache passes in the time of one from memory.
const CACHE: f64 = 8.0;

/// Bytes of a table's entry.
const ENTRY: f64 = 4.0;

/// Bytes a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Between the GPU and its memory, if everything passes once.
    pub memory: f64,
    /// Between threads and the first-level cache.
    pub cache: f64,
}

impl Estimate {
    /// Bytes from memory that would take as long.
    pub fn bytes(self) -> f64 {
        self.memory.hypot(self.cache / CACHE)
    }
}

/// What the kernel of a plan moves: `memory` bytes a cell between the GPU and its memory, and `table_loads` entries of
/// tables a cell that threads load.
pub fn estimate(plan: &Plan, memory: f64, table_loads: f64) -> Estimate {
    Estimate { memory, cache: of_fields(plan) + ENTRY * table_loads }
}

/// Bytes of fields with levels that a thread loads and stores, of each of its cells. Every value is loaded once, but those
/// of other levels for each level anew.
fn of_fields(plan: &Plan) -> f64 {
    let mut read: BTreeSet<(FieldId, Path)> = BTreeSet::new();
    let mut look = |body: &Body, Item { at, contexts, .. }: &Item| {
        for ((_, node), context) in body.iter().zip(contexts) {
            if let (Node::Read { field, path }, Some(_)) = (node, context) {
                read.insert((*field, plan.ways.join(at, path)));
            }
        }
    };
    let defs = plan.schedule.values.iter().map(|((def, _), item)| (&plan.stencil.defs[*def].body, item));
    defs.for_each(|(body, item)| look(body, item));
    let stores = || plan.stencil.stores.iter().cycle().zip(&plan.schedule.stores);
    stores().for_each(|(store, item)| look(&store.body, item));
    let bytes = |field: FieldId| match shape_of(&plan.stencil, field) {
        Some(_) => plan.stencil.fields[field].stored.bytes(plan.choices.precision) as f64,
        None => 0.0,
    };
    let all: f64 =
        read.iter().map(|&(field, _)| bytes(field)).chain(stores().map(|(store, _)| bytes(store.field))).sum();
    all / plan.tile.columns.iter().product::<u32>() as f64
}
