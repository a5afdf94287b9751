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
//! 9. Paths have no steps, and nothing sweeps. Each hop goes through a slot of a map that is there, from the set where the hop before
//!    it led; without levels there is no shift of them.
//! 10. A read leads to the set where its field is at home, and takes a part that the field has; numbers without a home are read
//!     through no hops. A use leads back to the stencil's own set. [`Node::Present`] asks about hops.
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

use super::{Body, Field, FieldId, Kind, Levels, Mesh, Node, Origin, Path, Phase, Role, SetId, Stencil, Store};
use crate::ir::Handle;
pub use mesh::Stages;
use mesh::{end, width};
use std::collections::BTreeSet;

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
    /// A mesh, over a set of it.
    Mesh { mesh: &'a Mesh, over: SetId },
}

/// Looks for rules that a stencil breaks.
#[derive(Clone, Copy)]
struct Checker<'a> {
    stencil: &'a Stencil,
    through: GridOrMesh<'a>,
    /// Whether there may be outputs that are not stored.
    is_part: bool,
    /// Outputs that may be read, since something before has stored them.
    given: Option<&'a BTreeSet<FieldId>>,
}

impl<'a> Checker<'a> {
    fn new(stencil: &'a Stencil) -> Self {
        let is_of_mesh = stencil.fields.iter().any(|(_, field)| match field.role {
            Role::Inc | Role::Reduce => true,
            Role::In | Role::Out | Role::InOut | Role::Carried => field.place.home.is_some(),
        });
        let through = if is_of_mesh { GridOrMesh::SomeMesh } else { GridOrMesh::Grid };
        Self { stencil, through, is_part: stencil.stores.is_empty(), given: None }
    }

    fn stencil(&self) -> Result<(), String> {
        let stencil = self.stencil;
        stencil.fields.iter().try_for_each(|(_, field)| self.home(field))?;
        for (id, def) in stencil.defs.iter() {
            let name = format!("definition {}.{}", def.name, id.index());
            self.body(&def.body, id.index(), def.origin == Origin::Constant)
                .map_err(|rule| format!("{name}: {rule}"))?;
        }
        let defs = stencil.defs.len();
        for (_, param) in stencil.params.iter() {
            let Some(default) = &param.default else { continue };
            self.body(default, defs, true).map_err(|rule| format!("{}: {rule}", param.name))?;
            if default.kind() != param.kind {
                return Err(format!("{}: a {} is its default", param.name, default.kind().name()));
            }
        }
        let mut stored = vec![0; stencil.fields.len()];
        for store in stencil.stores.iter().chain(&stencil.spare) {
            if store.field.index() >= stencil.fields.len() {
                return Err(format!("it stores the field {}, which is not there", store.field.index()));
            }
            let field = &stencil.fields[store.field];
            self.body(&store.body, defs, false).map_err(|rule| format!("{}: {rule}", field.name))?;
            if store.body.kind() != field.stored.kind() {
                return Err(format!("{}: a {} is stored in it", field.name, store.body.kind().name()));
            }
        }
        for store in &stencil.stores {
            stored[store.field.index()] += 1;
        }
        for print in &stencil.prints {
            self.body(&print.body, defs, false).map_err(|rule| format!("print {}: {rule}", print.label.as_told()))?;
        }
        for id in stencil.fields.handles() {
            self.times(id, stored[id.index()])?;
        }
        match self.through {
            GridOrMesh::Grid => self.order(),
            GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. } => self.no_sweeps(),
        }
    }

    /// Whether a field may be stored so many times.
    fn times(&self, id: FieldId, times: usize) -> Result<(), String> {
        let field = &self.stencil.fields[id];
        let once = |count: usize| times == count || self.is_part && times == 0;
        let fits = match (field.role, self.through) {
            (Role::Carried, GridOrMesh::Grid) => times <= 1,
            (Role::In, _) => times == 0,
            (Role::Out | Role::InOut, GridOrMesh::Grid) => once(1),
            // Each part by itself.
            (Role::Out | Role::InOut, GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. }) => once(width(field.place.home)),
            (Role::Inc, GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. }) => true,
            (Role::Reduce, GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. }) => once(1),
            (Role::Inc | Role::Reduce, GridOrMesh::Grid)
            | (Role::Carried, GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. }) => false,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("{} field {} is stored {times} times", field.role.name(), field.name)),
        }
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
        match is_there {
            true => Ok(()),
            false => Err(format!("{} is at home at nothing that the mesh has", field.name)),
        }
    }

    fn no_sweeps(&self) -> Result<(), String> {
        let sweeps = !self.stencil.sweeps.is_empty() || self.stencil.stores.iter().any(|store| store.sweep.is_some());
        if sweeps { Err("it sweeps over a mesh".into()) } else { Ok(()) }
    }

    /// Whether carried fields are read when their values are known.
    fn order(&self) -> Result<(), String> {
        if self.stencil.fields.iter().all(|(_, field)| field.role != Role::Carried) {
            return Ok(());
        }
        for store in &self.stencil.stores {
            if self.stencil.fields[store.field].role == Role::Carried && store.sweep.is_none() {
                return Err(format!("no sweep stores {}", self.stencil.fields[store.field].name));
            }
            self.reads(store)?;
        }
        Ok(())
    }

    fn reads(&self, store: &Store) -> Result<(), String> {
        let stencil = self.stencil;
        let mut seen = BTreeSet::new();
        let mut waiting = vec![(&store.body, Path::default())];
        while let Some((body, at)) = waiting.pop() {
            for (_, node) in body.iter() {
                match node {
                    Node::Use { def, path } => {
                        let path = at.then(path);
                        if seen.insert((*def, path.levels(), path.steps().is_empty())) {
                            waiting.push((&stencil.defs[*def].body, path));
                        }
                    }
                    Node::Read { field, path, .. } if stencil.fields[*field].role == Role::Carried => {
                        let (path, name) = (at.then(path), &stencil.fields[*field].name);
                        if !path.steps().is_empty() {
                            return Err(format!("the value {name} of a sweep is read at {path}, in another column"));
                        }
                        let is_known = match (stencil.sweep_of(*field), store.sweep) {
                            // The phase before has stored it.
                            (None, _) => self.is_part,
                            (Some(_), None) => true,
                            (Some(own), Some(reader)) if own == reader => {
                                stencil.sweeps[own].direction.before(path.levels()) > 0
                            }
                            (Some(own), Some(reader)) => own < reader,
                        };
                        if !is_known {
                            return Err(format!("the value {name}{path} of a sweep is read before it is known"));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn body(&self, body: &Body, defs_before: usize, constant: bool) -> Result<(), String> {
        if body.is_empty() {
            return Err("empty body".into());
        }
        for (id, node) in body.iter() {
            let operands = node.operands();
            if operands.iter().any(|operand| operand.index() >= id.index()) {
                return Err(format!("node {} uses a later one", id.index()));
            }
            let kinds: Vec<Kind> = operands.iter().map(|&operand| body.kind_of(operand)).collect();
            let kind = body.kind_of(id);
            if !self.node(node, kind, &kinds, defs_before, constant)? {
                return Err(format!("node {} ({node:?}) of kind {} does not fit", id.index(), kind.name()));
            }
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
            Node::Level | Node::LevelCount => kind == Kind::Int && !constant,
            Node::Bool(_) => kind == Kind::Bool,
            Node::Param(param) => {
                if param.index() >= self.stencil.params.len() {
                    return Err(format!("it uses the parameter {}, which is not there", param.index()));
                }
                kind == self.stencil.params[*param].kind && !constant
            }
            Node::Present { path } => {
                self.end(path)?;
                kind == Kind::Bool && !constant && !path.hops().is_empty()
            }
            Node::Read { field, path, part } => {
                if field.index() >= self.stencil.fields.len() {
                    return Err(format!("it reads the field {}, which is not there", field.index()));
                }
                self.read(*field, path, *part)?;
                kind == self.stencil.fields[*field].stored.kind() && !constant
            }
            Node::Use { def, path } => {
                if def.index() >= defs_before {
                    return Err(format!("it uses the later definition {}", def.index()));
                }
                let end = self.end(path)?;
                if let GridOrMesh::Mesh { mesh, over } = self.through
                    && end != Some(over)
                {
                    return Err(format!("it uses a definition at {}, where there are none", mesh.written(path)));
                }
                let used = &self.stencil.defs[*def];
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
        if !field.role.is_read() && field.role != Role::Carried && !is_given {
            return Err(format!("the {} field {} is read", field.role.name(), field.name));
        }
        let end = self.end(path)?;
        let is_away = !path.steps().is_empty() || !path.hops().is_empty();
        if field.role == Role::Carried && is_away {
            return Err(format!("the value {} of a sweep is read at {path}, in another column", field.name));
        }
        if !field.place.horizontal && is_away || field.place.levels == Levels::None && path.levels() != 0 {
            return Err(format!("{} is read at {path}, along an axis that it lacks", field.name));
        }
        if part as usize >= width(field.place.home) {
            return Err(format!("part {part} of {} is read, which it has not", field.name));
        }
        if let (GridOrMesh::Mesh { mesh, .. }, Some(home)) = (self.through, field.place.home)
            && end != Some(home.set)
        {
            return Err(format!("{} is read at {}, where it is not at home", field.name, mesh.written(path)));
        }
        Ok(())
    }

    /// The set where a path leads, if that is known.
    fn end(&self, path: &Path) -> Result<Option<SetId>, String> {
        match self.through {
            GridOrMesh::Grid if !path.hops().is_empty() => Err(format!("a path on a grid has hops: {path}")),
            GridOrMesh::SomeMesh | GridOrMesh::Mesh { .. } if !path.steps().is_empty() => {
                Err(format!("a path over a mesh has steps: {path}"))
            }
            GridOrMesh::Grid | GridOrMesh::SomeMesh => Ok(None),
            GridOrMesh::Mesh { mesh, over } => end(mesh, over, path).map(Some),
        }
    }
}
