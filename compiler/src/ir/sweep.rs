//! Vertical recurrences, and the phases in which a stencil that has some is computed.

use super::{Body, FieldId, Handle, Path, Role, Stencil, Store, SweepId, Verify};
use crate::named::named;
use crate::source::Span;
use serde::Serialize;
use std::collections::BTreeSet;
use std::mem::replace;

named! {
    /// Which way a sweep goes through the levels.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Direction {
        /// From level 0 on.
        Up = "up";
        /// From the last level on.
        Down = "down";
    }
}

/// Values that are computed level by level.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Which level comes first.
    pub direction: Direction,
    /// Where it is written.
    pub span: Span,
}

/// A part of a stencil's computation that needs all of those before it.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The order of levels, where that matters.
    pub direction: Option<Direction>,
    /// The stencil with the stores of this phase alone.
    pub stencil: Stencil,
}

impl Direction {
    /// How many levels before the one at hand a level comes that is `shift` away; none if it comes with it or after it.
    pub fn before(self, shift: i32) -> u32 {
        match self {
            Direction::Up => shift.min(0).unsigned_abs(),
            Direction::Down => shift.max(0).unsigned_abs(),
        }
    }
}

/// The phases of `stencil`, in order; those that store nothing are left out.
pub fn phases(stencil: &Stencil) -> Vec<Phase> {
    let sweeps = stencil.sweeps.iter().map(|(id, sweep)| (Some(id), Some(sweep.direction)));
    let mut phases = Vec::new();
    for (sweep, direction) in sweeps.chain([(None, None)]) {
        let own = |store: &&Store| store.sweep == sweep;
        let stores: Vec<Store> = stencil.stores.iter().filter(own).cloned().collect();
        if !stores.is_empty() {
            let own = Phase { direction, stencil: Stencil { stores, ..stencil.clone() } };
            phases.push(own.verified("cutting into phases"));
        }
    }
    phases
}

/// The values of sweeps that `stencil`'s stores need: which, and how many levels away.
pub fn reads_of_sweeps(stencil: &Stencil) -> BTreeSet<(FieldId, i32)> {
    let mut reads = BTreeSet::new();
    let then = |shift: &i32, path: &Path| shift.saturating_add(path.levels());
    stencil.at_places(stencil.outputs(), 0, then, |_, body, shift| {
        let carried = body.reads().filter(|(field, _)| stencil.fields[*field].role == Role::Carried);
        reads.extend(carried.map(|(field, path)| (field, then(shift, path))));
    });
    reads
}

/// `stencil` without what its sweeps compute for no output.
pub fn needed(stencil: &Stencil) -> Stencil {
    if stencil.sweeps.is_empty() {
        return stencil.clone();
    }
    let is_carried = |store: &Store| stencil.fields[store.field].role == Role::Carried;
    let (carried, mut waiting): (Vec<&Store>, Vec<&Store>) = stencil.stores.iter().partition(|store| is_carried(store));
    let mut defs = vec![false; stencil.defs.len()];
    let mut fields = vec![false; stencil.fields.len()];
    while let Some(store) = waiting.pop() {
        let mut bodies: Vec<&Body> = vec![&store.body];
        while let Some(body) = bodies.pop() {
            for (def, _) in body.uses() {
                if !replace(&mut defs[def.index()], true) {
                    bodies.push(&stencil.defs[def].body);
                }
            }
            for (field, _) in body.reads() {
                if !replace(&mut fields[field.index()], true) {
                    waiting.extend(carried.iter().filter(|store| store.field == field));
                }
            }
        }
    }
    let mut stencil = stencil.clone();
    let roles = &stencil.fields;
    let is_needed = |store: &Store| fields[store.field.index()] || roles[store.field].role != Role::Carried;
    let (stores, spare): (Vec<Store>, Vec<Store>) = stencil.stores.into_iter().partition(is_needed);
    stencil.stores = stores;
    stencil.spare.extend(spare);
    stencil
}

impl Stencil {
    /// The sweep that computes a carried field.
    pub fn sweep_of(&self, field: FieldId) -> Option<SweepId> {
        self.stores.iter().find(|store| store.field == field).and_then(|store| store.sweep)
    }
}
