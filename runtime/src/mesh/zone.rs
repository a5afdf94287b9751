//! Zones of a mesh: a field of each set that tells in which zone each element is.

use super::order::Ordering;
use super::{Bound, Field, Mesh};
use crate::array::Data;
use crate::{Error, Result};
use std::sync::Arc;
use stencilc_compiler::ir::Mesh as Declared;
use stencilc_compiler::ir::mesh::Set;

/// The field that tells the zone of each element of a set, by its number in the order in which the zones are declared.
pub const ZONE: &str = "zone";

/// The zones of a set.
#[derive(Clone, Debug)]
pub(super) struct Zoned {
    /// The zone of each element.
    pub of: Arc<[u8]>,
    /// How many elements are in those before each zone, and at last how many there are: where zones begin, if elements are in their order.
    pub starts: Arc<[usize]>,
}

/// The zones of a set of `mesh`, if `declared` names zones of it.
///
/// # Errors
/// The mesh does not say them, or says numbers of zones that there are not.
pub(super) fn of_set(declared: &Declared, set: &Set, mesh: &Mesh, number: usize) -> Result<Option<Zoned>> {
    if set.zones.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = set.zones.iter().enumerate().map(|(n, zone)| format!("{n} {}", zone.name)).collect();
    let name = &set.name;
    let Some(field) = mesh.field_on(ZONE, number, None) else {
        let what = format!(
            "{} does not say in which zone each element of `{name}` is, and the mesh `{}` names zones",
            mesh.origin, declared.name
        );
        return Err(
            Error::input(what).help(format!("give the field `{ZONE} on {name}`, whole numbers: {}", names.join(", ")))
        );
    };
    let Field { parts: 1, data: Data::I32(numbers), .. } = field else {
        let what = format!("`{ZONE} on {name}` of {} is no whole number for each element", mesh.origin);
        return Err(Error::input(what).help(format!("the zones are {}", names.join(", "))));
    };
    let zone = |(element, &number): (usize, &i32)| match u8::try_from(number) {
        Ok(zone) if usize::from(zone) < set.zones.len() => Ok(zone),
        _ => Err(Error::input(format!(
            "`{ZONE} on {name}` of {} is {number} at element {element}, and there is no such zone",
            mesh.origin
        ))
        .help(format!("the zones are {}", names.join(", ")))),
    };
    let of: Arc<[u8]> = numbers.iter().enumerate().map(zone).collect::<Result<_>>()?;
    let mut starts = vec![0; set.zones.len() + 1];
    of.iter().for_each(|&zone| starts[usize::from(zone) + 1] += 1);
    (1..starts.len()).for_each(|zone| starts[zone] += starts[zone - 1]);
    Ok(Some(Zoned { of, starts: starts.into() }))
}

impl Mesh {
    /// The same mesh without fields, but for those that tell zones.
    pub(super) fn bare(&self) -> Mesh {
        let zones = self.fields.iter().filter(|field| field.name == ZONE && field.map.is_none()).cloned().collect();
        Mesh { origin: self.origin.clone(), sets: self.sets.clone(), maps: self.maps.clone(), fields: zones }
    }
}

/// Puts the elements of each set with zones in the order of these, and leaves those of a zone in theirs. Returns whether that changes
/// anything. `bound` is the mesh in the user's order.
pub(super) fn sort(declared: &Declared, bound: &Bound, mesh: &Mesh, ordering: &mut Ordering) -> bool {
    let mut is_changed = false;
    for (id, set) in declared.sets.iter().filter(|(_, set)| !set.zones.is_empty()) {
        let Some(number) = mesh.set_named(&set.name) else { continue };
        let order = &mut ordering.orders[number];
        if order.is_sorted_by_key(|&old| bound.zone(id, old as usize)) {
            continue;
        }
        order.sort_by_key(|&old| bound.zone(id, old as usize));
        is_changed = true;
        // Its parts are none any more.
        ordering.cuts.take_if(|cuts| cuts.set == number);
    }
    is_changed
}
