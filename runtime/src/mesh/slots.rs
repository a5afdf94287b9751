//! Slots of maps: what an access `q[cells.1]` goes through.

use super::{HOLE, Map, Mesh};
use crate::error::{Error, Result};

/// A slot of a map: `cells.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The number of the map.
    pub map: usize,
    /// Which of its slots.
    pub slot: usize,
}

impl Slot {
    /// Every slot of a map.
    pub fn all(mesh: &Mesh, map: usize) -> Vec<Slot> {
        (0..mesh.maps[map].arity).map(|slot| Slot { map, slot }).collect()
    }

    /// Where it leads from an element, if anywhere.
    pub fn target(self, mesh: &Mesh, element: usize) -> Option<u32> {
        let map = &mesh.maps[self.map];
        match map.table[element * map.arity + self.slot] {
            HOLE => None,
            target => Some(target as u32),
        }
    }
}

/// The set whose elements all these slots are of.
///
/// # Errors
/// There are no slots, one does not exist, or they are of elements of several sets.
pub fn common_source(mesh: &Mesh, slots: &[Slot]) -> Result<usize> {
    let map = |slot: &Slot| -> Result<&Map> {
        let map = mesh.maps.get(slot.map).filter(|map| slot.slot < map.arity);
        map.ok_or_else(|| Error::call(format!("{} has no slot {} of map {}", mesh.origin, slot.slot, slot.map)))
    };
    let first = map(slots.first().ok_or_else(|| Error::call("no slot of a map is given"))?)?;
    for slot in slots {
        let other = map(slot)?;
        if other.from != first.from {
            let (first, other) = (mesh.full_name(first), mesh.full_name(other));
            return Err(Error::call(format!("the maps `{first}` and `{other}` are not of one set")));
        }
    }
    Ok(first.from)
}

/// The set where all these slots lead.
///
/// # Errors
/// As for [`common_source`], or they lead to several sets.
pub fn common_target(mesh: &Mesh, slots: &[Slot]) -> Result<usize> {
    common_source(mesh, slots)?;
    let first = &mesh.maps[slots[0].map];
    match slots.iter().map(|slot| &mesh.maps[slot.map]).find(|map| map.to != first.to) {
        None => Ok(first.to),
        Some(other) => {
            let (first, other) = (mesh.full_name(first), mesh.full_name(other));
            Err(Error::call(format!("the maps `{first}` and `{other}` do not lead to one set")))
        }
    }
}
