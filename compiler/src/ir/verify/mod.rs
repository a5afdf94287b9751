//! Checks what every pass relies on. A violation is a fault of the compiler, never of its user.
//!
//! Of any stencil:
//! 1. Operands are earlier nodes of the same body; no body is empty.
//! 2. A definition uses earlier definitions only. Fields, parameters and definitions that nodes name exist.
//! 3. Kinds fit: both sides of an operation and both branches of a choice agree, conditions are `bool`, `/` is of reals.
//! 4. Only `in` and `inout` fields are read; each `out` and `inout` field is stored exactly once, no other is. A [`Phase`] or one of
//!    [`Stages`] leaves stores to others, and reads what those before it have stored; what stores nothing at all only says which fields
//!    and parameters there are, as [`Program::facade`] does.
//! 5. A field without an axis is never read at a step along it.
//! 6. A carried field is stored at most once, by a sweep; it is read in its own column only, after that sweep on any level, in
//!    it on levels that come before, and not before it.
//! 7. Constants and defaults of parameters read no field, no parameter and no level.
//!
//! On a grid:
//! 8. Paths have no hops, fields have no home and one number each, and nothing is added to, folded or asked for.
//!
//! Over a mesh, as far as the mesh is known, which a [`Stencil`] by itself does not know:
//! 9. Paths have no steps, and what sweeps adds to nothing and folds nothing. Each hop goes through a slot of a map that is there, from the set where the hop before
//!    it led; without levels there is no shift of them.
//! 10. A read leads to the set where its field is at home, and takes a part that the field has; numbers without a home are read
//!     through no hops. Zones are those of the stencil's set. A use of what differs from element to element leads to the set
//!     at whose elements it has a value. [`Node::Present`] asks about hops.
//! 11. Each store has a write beside it. What is assigned is `out` or `inout`, on the stencil's own set, each of its parts once;
//!     what is added is `inc`, a part of it, along a path to its set, on the level at hand; what is folded is `reduce`, once.
//!
//! Of a program:
//! 12. A call is of a stencil that is there, with a binding for each field and a value or none for each parameter. It reads what is read,
//!     writes what is written, and variables are stored as fields are.
//! 13. Values of numbers and parameters are of their kind, numbers of repetitions whole; they read numbers alone.

mod mesh;
mod program;
#[cfg(test)]
mod tests;

use super::{
    Body, Bound, Field, FieldId, Kind, Levels, Mesh, Node, Origin, Path, Phase, Role, SetId, Stencil, Store,
    varies_across,
};
use crate::ir::Handle;
use crate::ir::mesh::Zones;
use crate::ir::program::GridAxis;
pub use mesh::Stages;
use mesh::{end, width};
use std::collections::BTreeSet;
use std::rc::Rc;

/// What passes leave, and rely on.
pub trait Verify: Sized {
    /// The first rule that it breaks, in words.
    ///
    /// # Errors
    /// It breaks one.
    fn verify(&self) -> Result<(), String>;

    /// The same, as a pass has left it. Where the project is tested, that breaks no rule; nobody asks otherwise.
    fn verified(self, pass: &str) -> Self {
        if cfg!(debug_assertions) {
            assert_eq!(self.verify(), Ok(()), "after {pass}");
        }
        self
    }
}

/// A rule, and what is told where it is broken.
fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Verify for Stencil {
    fn verify(&self) -> Result<(), String> {
        Checker::new(self).stencil()
    }
}

/// A part of a stencil's computation: not all of it is stored.
impl Verify for Phase {
    fn verify(&self) -> Result<(), String> {
        Checker { is_part: true, ..Checker::new(&self.stencil) }.stencil()
    }
}

/// What paths lead through.
#[derive(Clone, Copy)]
enum GridOrMesh<'a> {
    /// A grid.
    Grid,
    /// A mesh that is not known.
    SomeMesh,
    /// A mesh, from an element of a set of it; and the set over which the stencil runs.
    Mesh { mesh: &'a Mesh, from: SetId, over: SetId },
}

/// Looks for rules that a stencil breaks.
#[derive(Clone)]
struct Checker<'a> {
    stencil: &'a Stencil,
    through: GridOrMesh<'a>,
    /// Whether there may be outputs that are not stored.
    is_part: bool,
    /// Outputs that may be read, since something before has stored them.
    given: Option<&'a BTreeSet<FieldId>>,
    /// Whether each definition differs from column to column, or from element to element.
    varying: Rc<[bool]>,
}

/// Which definitions differ from column to column, whatever they name.
fn varying(stencil: &Stencil) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(stencil.defs.len());
    for (_, def) in stencil.defs.iter() {
        let varies = |node: &Node| match node {
            Node::Use { def, .. } => found.get(def.index()).copied().unwrap_or(true),
            Node::Read { field, .. } if field.index() >= stencil.fields.len() => true,
            node => varies_across(stencil, node),
        };
        found.push(def.body.iter().any(|(_, node)| varies(node)));
    }
    found
}

impl<'a> Checker<'a> {
    fn new(stencil: &'a Stencil) -> Self {
        let is_of_mesh = stencil.fields.iter().any(|(_, field)| match field.role {
            Role::Inc | Role::Reduce => true,
            Role::In | Role::Out | Role::InOut | Role::Carried => field.place.home.is_some(),
        });
        let through = if is_of_mesh { GridOrMesh::SomeMesh } else { GridOrMesh::Grid };
        Self { stencil, through, is_part: stencil.stores.is_empty(), given: None, varying: varying(stencil).into() }
    }

    fn stencil(&self) -> Result<(), String> {
        let stencil = self.stencil;
        stencil.fields.iter().try_for_each(|(_, field)| self.home(field))?;
        for (id, def) in stencil.defs.iter() {
            let name = format!("definition {}.{}", def.name, id.index());
            self.over(def.over)?
                .body(&def.body, id.index(), def.origin == Origin::Constant)
                .map_err(|rule| format!("{name}: {rule}"))?;
        }
        let defs = stencil.defs.len();
        for (_, param) in stencil.params.iter() {
            let Some(default) = &param.default else { continue };
            self.body(default, defs, true).map_err(|rule| format!("{}: {rule}", param.name))?;
            ensure(default.kind() == param.kind, || {
                format!("{}: a {} is its default", param.name, default.kind().name())
            })?;
        }
        let mut stored = vec![0; stencil.fields.len()];
        for store in stencil.stores.iter().chain(&stencil.spare) {
            let number = store.field.index();
            ensure(number < stencil.fields.len(), || format!("it stores the field {number}, which is not there"))?;
            let is_there = store.sweep.is_none_or(|sweep| sweep.index() < stencil.sweeps.len());
            ensure(is_there, || "it stores in a sweep that is not there".into())?;
            let field = &stencil.fields[store.field];
            self.body(&store.body, defs, false).map_err(|rule| format!("{}: {rule}", field.name))?;
            let kind = store.body.kind();
            ensure(kind == field.stored.kind(), || format!("{}: a {} is stored in it", field.name, kind.name()))?;
        }
        for store in &stencil.stores {
            stored[store.field.index()] += 1;
        }
        let counts = |(_, node): (_, &Node)| matches!(node, Node::Count(GridAxis::I | GridAxis::J));
        ensure(!stencil.bodies().flat_map(Body::iter).any(counts), || {
            "a value depends on how many columns there are".into()
        })?;
        for Bound { axis, body, .. } in &stencil.within {
            self.body(body, defs, false).map_err(|rule| format!("a bound along {axis}: {rule}"))?;
            ensure(body.kind() == Kind::Int, || format!("a bound along {axis} is no whole number"))?;
            let is_there = |(_, node): (_, &Node)| matches!(node, Node::Read { .. } | Node::Level);
            ensure(!body.iter().any(is_there), || format!("a bound along {axis} depends on where something is"))?;
        }
        stencil.zones.map_or(Ok(()), |zones| self.zones(zones))?;
        for print in &stencil.prints {
            self.body(&print.body, defs, false).map_err(|rule| format!("print {}: {rule}", print.label.as_told()))?;
        }
        for id in stencil.fields.handles() {
            self.times(id, stored[id.index()])?;
        }
        self.order()
    }

    /// The same, for what has a value at the elements of another set.
    fn over(&self, set: Option<SetId>) -> Result<Checker<'a>, String> {
        let through = match (self.through, set) {
            (GridOrMesh::Mesh { mesh, over, .. }, Some(from)) => {
                ensure(from.index() < mesh.sets.len(), || "a definition lives on a set that is not there".into())?;
                GridOrMesh::Mesh { mesh, from, over }
            }
            (GridOrMesh::Grid, Some(_)) => return Err("a definition lives on a set of no mesh".into()),
            (through, _) => through,
        };
        Ok(Checker { through, ..self.clone() })
    }

    /// Whether there are such zones.
    fn zones(&self, zones: Zones) -> Result<(), String> {
        let there_are = match self.through {
            GridOrMesh::Grid => 0,
            GridOrMesh::SomeMesh => usize::MAX,
            GridOrMesh::Mesh { mesh, from, .. } => mesh.sets[from].zones.len(),
        };
        let fits = zones.first <= zones.last && usize::from(zones.last) < there_are;
        ensure(fits, || format!("zones {} to {} of {there_are}", zones.first, zones.last))
    }

    /// Whether a field may be stored so many times.
    fn times(&self, id: FieldId, times: usize) -> Result<(), String> {
        let field = &self.stencil.fields[id];
        let once = |count: usize| times == count || self.is_part && times == 0;
        let fits = match (field.role, matches!(self.through, GridOrMesh::Grid)) {
            (Role::Carried, _) => times <= 1,
            (Role::In, _) => times == 0,
            // Each part by itself.
            (Role::Out | Role::InOut, _) => once(width(field.place.home)),
            (Role::Inc, false) => true,
            (Role::Reduce, false) => once(1),
            (Role::Inc | Role::Reduce, true) => false,
        };
        ensure(fits, || format!("{} field {} is stored {times} times", field.role.name(), field.name))
    }

    /// Whether a field is at home at something that the mesh has.
    fn home(&self, field: &Field) -> Result<(), String> {
        let (GridOrMesh::Mesh { mesh, .. }, Some(home)) = (self.through, field.place.home) else { return Ok(()) };
        let slots = match home.map {
            None => Some(1),
            Some(map) if map.index() >= mesh.maps.len() || mesh.maps[map].from != home.set => None,
            Some(map) => Some(mesh.maps[map].arity),
        };
        let is_there =
            home.set.index() < mesh.sets.len() && slots.is_some_and(|slots| home.width == home.parts * slots);
        ensure(is_there, || format!("{} is at home at nothing that the mesh has", field.name))
    }

    /// Whether carried fields are read when their values are known.
    fn order(&self) -> Result<(), String> {
        if self.stencil.fields.iter().all(|(_, field)| field.role != Role::Carried) {
            return Ok(());
        }
        self.stencil.stores.iter().try_for_each(|store| {
            let field = &self.stencil.fields[store.field];
            let is_swept = field.role != Role::Carried || store.sweep.is_some();
            ensure(is_swept, || format!("no sweep stores {}", field.name))?;
            self.reads(store)
        })
    }

    fn reads(&self, store: &Store) -> Result<(), String> {
        let stencil = self.stencil;
        let mut found = Ok(());
        // Of a place its level, and whether it is in another column.
        let then = |&(levels, is_away): &(i32, bool), path: &Path| {
            (path.levels().saturating_add(levels), is_away || path.is_away())
        };
        stencil.at_places([&store.body], (0, false), then, |_, body, at| {
            for (field, path) in body.reads().filter(|(field, _)| stencil.fields[*field].role == Role::Carried) {
                if found.is_ok() {
                    let (levels, is_away) = then(at, path);
                    found = self.carried(store, field, levels, is_away);
                }
            }
        });
        found
    }

    /// Whether a store may look at what a sweep carries, so many levels away.
    fn carried(&self, store: &Store, field: FieldId, levels: i32, is_away: bool) -> Result<(), String> {
        let (stencil, name) = (self.stencil, &self.stencil.fields[field].name);
        let at = Path::levels_only(levels);
        ensure(!is_away, || format!("the value {name}{at} of a sweep is read in another column"))?;
        let is_known = match (stencil.sweep_of(field), store.sweep) {
            // The phase before has stored it.
            (None, _) => self.is_part,
            (Some(_), None) => true,
            (Some(own), Some(reader)) if own == reader => stencil.sweeps[own].direction.before(levels) > 0,
            (Some(own), Some(reader)) => own < reader,
        };
        ensure(is_known, || format!("the value {name}{at} of a sweep is read before it is known"))
    }

    fn body(&self, body: &Body, defs_before: usize, constant: bool) -> Result<(), String> {
        ensure(!body.is_empty(), || "empty body".into())?;
        for (id, node) in body.iter() {
            let operands = node.operands();
            let comes_first = operands.iter().all(|operand| operand.index() < id.index());
            ensure(comes_first, || format!("node {} uses a later one", id.index()))?;
            let kinds: Vec<Kind> = operands.iter().map(|&operand| body.kind_of(operand)).collect();
            let kind = body.kind_of(id);
            let fits = self.node(node, kind, &kinds, defs_before, constant)?;
            ensure(fits, || format!("node {} ({node:?}) of kind {} does not fit", id.index(), kind.name()))?;
        }
        Ok(())
    }

    /// Whether a node fits the kinds of its operands, and its own.
    fn node(
        &self,
        node: &Node,
        kind: Kind,
        kinds: &[Kind],
        defs_before: usize,
        constant: bool,
    ) -> Result<bool, String> {
        let same = |expected: Kind| kinds.iter().all(|&kind| kind == expected);
        Ok(match node {
            Node::Real(_) => kind == Kind::Real,
            Node::Int(_) => kind == Kind::Int,
            Node::Level | Node::Count(_) => kind == Kind::Int && !constant,
            Node::Bool(_) => kind == Kind::Bool,
            Node::Param(param) => {
                let (number, count) = (param.index(), self.stencil.params.len());
                ensure(number < count, || format!("it uses the parameter {number}, which is not there"))?;
                kind == self.stencil.params[*param].kind && !constant
            }
            Node::Present { path } => {
                self.end(path)?;
                kind == Kind::Bool && !constant && !path.hops().is_empty()
            }
            Node::InZone(zones) => {
                self.zones(*zones)?;
                kind == Kind::Bool && !constant
            }
            Node::Read { field, path, part, by } => {
                let (number, count) = (field.index(), self.stencil.fields.len());
                ensure(number < count, || format!("it reads the field {number}, which is not there"))?;
                self.read(*field, path, *part)?;
                let own = &self.stencil.fields[*field];
                let may_move = own.place.levels != Levels::None && own.role != Role::Carried;
                ensure(by.is_none() || may_move && same(Kind::Int), || {
                    format!("data says which level of {} is read, and may not", own.name)
                })?;
                kind == self.stencil.fields[*field].stored.kind() && !constant
            }
            Node::Use { def, path } => {
                ensure(def.index() < defs_before, || format!("it uses the later definition {}", def.index()))?;
                let end = self.end(path)?;
                let used = &self.stencil.defs[*def];
                if let (GridOrMesh::Mesh { mesh, over, .. }, true) = (self.through, self.varying[def.index()]) {
                    let told = || format!("it uses a definition at {}, where there are none", mesh.written(path));
                    ensure(end == Some(used.over.unwrap_or(over)), told)?;
                }
                kind == used.body.kind() && (!constant || used.origin == Origin::Constant)
            }
            Node::ToReal(_) => kind == Kind::Real && same(Kind::Int),
            Node::ToSingle(_) => kind == Kind::Real && same(Kind::Real),
            Node::Negate(_) => kind != Kind::Bool && same(kind),
            Node::Not(_) | Node::And(..) | Node::Or(..) => kind == Kind::Bool && same(Kind::Bool),
            Node::Binary(op, ..) => {
                same(kind) && kind != Kind::Bool && (kind == Kind::Real || *op != super::Binary::Div)
            }
            Node::Compare(..) => kind == Kind::Bool && same(kinds[0]),
            Node::Call(function, operands) => {
                let takes = kind == Kind::Real || kind == Kind::Int && function.takes_whole_numbers();
                operands.len() == function.arity() && same(kind) && takes
            }
            Node::Choose { .. } => kinds[0] == Kind::Bool && kinds[1] == kind && kinds[2] == kind,
        })
    }

    fn read(&self, field: FieldId, path: &Path, part: u32) -> Result<(), String> {
        let is_given = self.given.is_some_and(|given| given.contains(&field));
        let field = &self.stencil.fields[field];
        let (name, role, place) = (&field.name, field.role, field.place);
        let may_be = role.is_read() || role == Role::Carried || is_given;
        ensure(may_be, || format!("the {} field {name} is read", role.name()))?;
        let end = self.end(path)?;
        let is_away = !path.steps().is_empty() || !path.hops().is_empty();
        ensure(!(role == Role::Carried && is_away), || {
            format!("the value {name} of a sweep is read at {path}, in another column")
        })?;
        let has_axes = (place.horizontal || !is_away) && (place.levels != Levels::None || path.levels() == 0);
        ensure(has_axes, || format!("{name} is read at {path}, along an axis that it lacks"))?;
        let has_part = (part as usize) < width(place.home);
        ensure(has_part, || format!("part {part} of {name} is read, which it has not"))?;
        match (self.through, place.home) {
            (GridOrMesh::Mesh { mesh, .. }, Some(home)) => ensure(end == Some(home.set), || {
                format!("{name} is read at {}, where it is not at home", mesh.written(path))
            }),
            (GridOrMesh::Grid | GridOrMesh::SomeMesh, _) | (GridOrMesh::Mesh { .. }, None) => Ok(()),
        }
    }

    /// The set where a path leads, if that is known.
    fn end(&self, path: &Path) -> Result<Option<SetId>, String> {
        match self.through {
            GridOrMesh::Grid if !path.hops().is_empty() => Err(format!("a path on a grid has hops: {path}")),
            GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. } if !path.steps().is_empty() => {
                Err(format!("a path over a mesh has steps: {path}"))
            }
            GridOrMesh::Grid | GridOrMesh::SomeMesh => Ok(None),
            GridOrMesh::Mesh { mesh, from, .. } => end(mesh, from, path).map(Some),
        }
    }
}
