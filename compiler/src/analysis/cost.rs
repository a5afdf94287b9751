//! What a stencil costs a cell, whatever the plan.

use super::extents::demand;
use super::reuse::operations;
use crate::ir::{Body, Levels, Precision, Stencil};
use serde::Serialize;

/// Costs of one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Distinct values read from fields, each at its own offset.
    pub reads: usize,
    /// Values written.
    pub writes: usize,
    /// Bytes that must come from or go to memory if every field passes once: fields with all axes only, since the others
    /// are small.
    pub bytes: usize,
    /// Real operations with every value at an offset computed once: an fma counts two, a choice none, and any
    /// other function one.
    pub flops: usize,
}

/// What `stencil`, which is prepared, costs a cell.
pub fn cost(stencil: &Stencil, precision: Precision) -> Cost {
    let demand = demand(stencil);
    let mut cost = Cost::default();
    for (id, field) in stencil.own_fields() {
        cost.reads += demand.reads.get(&id).map_or(0, |offsets| offsets.len());
        let bytes = field.stored.bytes(precision);
        let is_large = field.place.horizontal && field.place.levels != Levels::None;
        cost.writes += usize::from(field.role.is_written());
        if is_large {
            let passes = usize::from(demand.reads.contains_key(&id)) + usize::from(field.role.is_written());
            cost.bytes += bytes * passes;
        }
    }
    let flops = |body: &Body| operations(body, &vec![true; body.len()]).flops() as usize;
    cost.flops = stencil.stores.iter().map(|store| flops(&store.body)).sum();
    for (id, def) in stencil.defs.iter() {
        cost.flops += demand.defs.get(&id).map_or(0, |offsets| offsets.len() * flops(&def.body));
    }
    cost
}
