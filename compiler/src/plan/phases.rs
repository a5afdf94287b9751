//! The loops of a kernel: one, but for stencils with sweeps.
//!
//! A thread goes through all levels of its column, once for each phase of the stencil. A phase that needs of the one before
//! only what is known at the level at hand, and at those before, is computed in the same loop.

use super::path_classes::Walker;
use super::schedule::{self, Context, Item, Schedule};
use crate::diagnostic::Refusal;
use crate::ir::{self, Body, Direction, FieldId, Node, Path, Role, Stencil, Store, reads_of_sweeps};
use std::collections::{BTreeMap, BTreeSet};

/// What is computed in one loop.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The order of levels, where that matters.
    pub direction: Option<Direction>,
    /// The stencil with the stores of this phase alone.
    pub stencil: Stencil,
    /// What is computed where.
    pub schedule: Schedule,
}

/// How a thread keeps what a sweep carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Of how many levels before the one at hand, in variables.
    pub before: u32,
    /// Whether of every level, in an array.
    pub levels: bool,
}

/// The most levels that are kept in variables.
const VARIABLES: u32 = 4;

/// The loops of a kernel for `stencil`, and how each carried field is kept.
///
/// # Errors
/// A cell would need too many values.
pub fn phases(
    stencil: &Stencil,
    walker: &mut Walker,
    tile: &[Path],
) -> Result<(Vec<Phase>, BTreeMap<FieldId, Kept>), Refusal> {
    let (loops, kept) = loops(stencil);
    let mut phases = Vec::new();
    for ir::Phase { direction, stencil } in loops {
        let schedule = schedule::schedule(&stencil, walker, tile)?;
        phases.push(Phase { direction, stencil, schedule });
    }
    Ok((phases, kept))
}

/// What a thread goes through all levels for, loop after loop, and how each carried field is kept.
pub fn loops(stencil: &Stencil) -> (Vec<ir::Phase>, BTreeMap<FieldId, Kept>) {
    let fused = fused(stencil);
    let mut kept: BTreeMap<FieldId, Kept> = BTreeMap::new();
    for ir::Phase { direction, stencil } in &fused {
        let own = stored(stencil);
        kept.extend(own.iter().map(|&field| (field, Kept::default())));
        for (field, shift) in reads_of_sweeps(stencil) {
            let kept = kept.entry(field).or_default();
            let before = direction.map_or(0, |direction| direction.before(shift));
            if !own.contains(&field) || before > VARIABLES {
                kept.levels = true;
            } else {
                kept.before = kept.before.max(before);
            }
        }
    }
    (fused, kept)
}

/// The phases of a stencil, with those put together that one loop can compute.
fn fused(stencil: &Stencil) -> Vec<ir::Phase> {
    let mut fused: Vec<ir::Phase> = Vec::new();
    for phase in ir::phases(stencil) {
        match fused.last_mut() {
            Some(before) if joins(before, &phase) => before.stencil.stores.extend(phase.stencil.stores),
            _ => fused.push(phase),
        }
    }
    fused
}

/// Whether a phase can be computed together with the one before it.
fn joins(before: &ir::Phase, phase: &ir::Phase) -> bool {
    let Some(direction) = before.direction else { return false };
    let stored = stored(&before.stencil);
    let is_known =
        |(field, shift): (FieldId, i32)| !stored.contains(&field) || shift == 0 || direction.before(shift) > 0;
    phase.direction.is_none_or(|own| own == direction) && reads_of_sweeps(&phase.stencil).into_iter().all(is_known)
}

/// The carried fields that a phase stores.
fn stored(phase: &Stencil) -> BTreeSet<FieldId> {
    let stored = phase.stores.iter().map(|store| store.field);
    stored.filter(|&field| phase.fields[field].role == Role::Carried).collect()
}

impl Phase {
    /// Every store, cell by cell of a thread's tile.
    pub fn stores(&self) -> impl Iterator<Item = (&Store, &Item)> {
        self.stencil.stores.iter().cycle().zip(&self.schedule.stores)
    }

    /// Everything that is evaluated, values first.
    pub fn bodies(&self) -> impl Iterator<Item = (&Body, &Item)> {
        let values = self.schedule.values.iter().map(|((def, _), item)| (&self.stencil.defs[*def].body, item));
        values.chain(self.stores().map(|(store, item)| (&store.body, item)))
    }

    /// Every read that is evaluated: the field, the cell of the body and the path from there, and where in the kernel; nothing for that if
    /// data says on which level, so that nobody knows it before.
    pub fn reads(&self) -> impl Iterator<Item = (FieldId, [&Path; 2], Option<Context>)> {
        self.bodies().flat_map(|(body, item)| {
            body.iter().zip(&item.contexts).filter_map(|((_, node), context)| match node {
                Node::Read { field, path, by, .. } => {
                    let context = (*context)?;
                    Some((*field, [&item.at, path], by.is_none().then_some(context)))
                }
                _ => None,
            })
        })
    }
}
