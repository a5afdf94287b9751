//! The rules of stencils over meshes.

use super::super::mesh::How;
use super::super::{FieldId, Handle, Home, Mesh, MeshStencil, Path, Role, SetId, Store};
use super::{Checker, GridOrMesh, Verify, ensure};
use std::collections::BTreeSet;

impl Verify for MeshStencil {
    fn verify(&self) -> Result<(), String> {
        check_over_mesh(self, None)
    }
}

/// Stencils over the same fields that are computed one after the other: each stores some of them, and reads what those before it
/// have stored.
pub struct Stages<'a>(pub &'a [MeshStencil]);

impl Verify for Stages<'_> {
    fn verify(&self) -> Result<(), String> {
        let mut given = BTreeSet::new();
        for own in self.0 {
            check_over_mesh(own, Some(&given))?;
            given.extend(own.stencil.stores.iter().map(|store| store.field));
        }
        Ok(())
    }
}

/// Checks a stencil over a mesh; if it is a part of a computation, what was stored before it is given.
fn check_over_mesh(own: &MeshStencil, given: Option<&BTreeSet<FieldId>>) -> Result<(), String> {
    let over = own.over.ok_or("it runs over no set")?;
    check_mesh(&own.mesh)?;
    ensure(over.index() < own.mesh.sets.len(), || "it runs over a set that is not there".into())?;
    let (stores, writes) = (own.stencil.stores.len(), own.writes.len());
    ensure(writes == stores, || format!("{stores} stores, and {writes} writes"))?;
    let through = GridOrMesh::Mesh { mesh: &own.mesh, from: over, over };
    Checker { through, given, is_part: given.is_some(), ..Checker::new(&own.stencil) }.stencil()?;
    let only_assigns = own.writes.iter().all(|write| write.how == How::Assign);
    ensure(only_assigns || own.stencil.sweeps.is_empty(), || "it sweeps, and adds or folds".into())?;
    own.stores().try_for_each(|(store, write)| check_write(own, over, store, write.part, &write.how))
}

/// How many numbers a field has at an element.
pub(super) fn width(home: Option<Home>) -> usize {
    home.map_or(1, |home| home.width as usize)
}

/// The set where a path from a set leads.
pub(super) fn end(mesh: &Mesh, from: SetId, path: &Path) -> Result<SetId, String> {
    let has_levels = mesh.levels || path.levels() == 0;
    ensure(has_levels, || format!("a path leads to another level, and there are none: {path}"))?;
    path.hops().iter().try_fold(from, |at, hop| {
        let is_there = hop.map.index() < mesh.maps.len();
        ensure(is_there, || format!("a path leads through a map that is not there: {path}"))?;
        let map = &mesh.maps[hop.map];
        ensure(map.from == at, || format!("a path goes on from a set that it does not lead to: {path}"))?;
        ensure(hop.slot < map.arity, || format!("a path leads through a slot that its map has not: {path}"))?;
        Ok(map.to)
    })
}

pub(super) fn check_mesh(mesh: &Mesh) -> Result<(), String> {
    let is_set = |set: SetId| set.index() < mesh.sets.len();
    mesh.maps.iter().try_for_each(|(_, map)| {
        let leads = is_set(map.from) && is_set(map.to) && map.arity > 0;
        ensure(leads, || format!("the map {} leads nowhere", map.name))
    })
}

fn check_write(own: &MeshStencil, over: SetId, store: &Store, part: u32, how: &How) -> Result<(), String> {
    let field = &own.stencil.fields[store.field];
    let (name, home) = (&field.name, field.place.home);
    let at_home = |set: SetId| home.is_some_and(|home| home.set == set && home.map.is_none());
    let (fits, at) = match how {
        How::Assign => (matches!(field.role, Role::Out | Role::InOut | Role::Carried), at_home(over)),
        How::Add(path) => (field.role == Role::Inc, path.levels() == 0 && at_home(end(&own.mesh, over, path)?)),
        How::Reduce(_) => (field.role == Role::Reduce, home.is_none()),
    };
    ensure(fits, || format!("{how:?} is done with the {} field {name}", field.role.name()))?;
    ensure(at, || format!("{how:?} is done with {name} where it is not at home"))?;
    ensure((part as usize) < width(home), || format!("part {part} of {name} is written, which it has not"))?;
    let times = own.stores().filter(|(other, write)| other.field == store.field && write.part == part).count();
    let once = times == 1 || matches!(how, How::Add(_));
    ensure(once, || format!("part {part} of {name} is written {times} times"))
}
