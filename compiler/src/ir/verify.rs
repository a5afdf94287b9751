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
//! 12. A call is of a stencil that is there, with a seat for each field and a value or none for each parameter. It reads what is read,
//!     writes what is written, and variables are stored as fields are.
//! 13. Values of numbers and parameters are of their kind, numbers of repetitions whole; they read numbers alone.

use super::mesh::How;
use super::program::Action;
use super::{
    Body, Field, FieldId, Function, Handle, Home, Kind, Levels, Mesh, MeshProgram, MeshStencil, Node, Origin, Path,
    Phase, Program, Role, SetId, Stencil, Store, VariableId,
};
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

impl Verify for Program {
    fn verify(&self) -> Result<(), String> {
        self.stencils.iter().try_for_each(Verify::verify)?;
        check_program(self, &self.stencils.iter().collect::<Vec<_>>())
    }
}

impl Verify for MeshProgram {
    fn verify(&self) -> Result<(), String> {
        check_mesh(&self.mesh)?;
        self.stencils.iter().try_for_each(Verify::verify)?;
        let variables = self.program.variables.len();
        if self.numbers.len() != self.program.numbers.fields.len()
            || self.numbers.iter().any(|id| id.index() >= variables)
        {
            return Err("fields of its numbers stand for no variables".into());
        }
        check_program(&self.program, &self.stencils.iter().map(|own| &own.stencil).collect::<Vec<_>>())
    }
}

/// Checks a stencil over a mesh; if it is a part of a computation, what was stored before it is given.
fn check_over_mesh(own: &MeshStencil, given: Option<&BTreeSet<FieldId>>) -> Result<(), String> {
    let over = own.over.ok_or("it runs over no set")?;
    check_mesh(&own.mesh)?;
    if over.index() >= own.mesh.sets.len() {
        return Err("it runs over a set that is not there".into());
    }
    if own.writes.len() != own.stencil.stores.len() {
        return Err(format!("{} stores, and {} writes", own.stencil.stores.len(), own.writes.len()));
    }
    let ground = Ground::Mesh { mesh: &own.mesh, over };
    Checker { ground, given, is_part: given.is_some(), ..Checker::new(&own.stencil) }.stencil()?;
    own.stores().try_for_each(|(store, write)| check_write(own, over, store, write.part, &write.how))
}

/// What paths lead through.
#[derive(Clone, Copy)]
enum Ground<'a> {
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
    ground: Ground<'a>,
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
        let ground = if is_of_mesh { Ground::SomeMesh } else { Ground::Grid };
        Self { stencil, ground, is_part: stencil.stores.is_empty(), given: None }
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
        match self.ground {
            Ground::Grid => self.order(),
            Ground::SomeMesh | Ground::Mesh { .. } => self.no_sweeps(),
        }
    }

    /// Whether a field may be stored so many times.
    fn times(&self, id: FieldId, times: usize) -> Result<(), String> {
        let field = &self.stencil.fields[id];
        let once = |count: usize| times == count || self.is_part && times == 0;
        let fits = match (field.role, self.ground) {
            (Role::Carried, Ground::Grid) => times <= 1,
            (Role::In, _) => times == 0,
            (Role::Out | Role::InOut, Ground::Grid) => once(1),
            // Each part by itself.
            (Role::Out | Role::InOut, Ground::SomeMesh | Ground::Mesh { .. }) => once(width(field.place.home)),
            (Role::Inc, Ground::SomeMesh | Ground::Mesh { .. }) => true,
            (Role::Reduce, Ground::SomeMesh | Ground::Mesh { .. }) => once(1),
            (Role::Inc | Role::Reduce, Ground::Grid) | (Role::Carried, Ground::SomeMesh | Ground::Mesh { .. }) => false,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("{} field {} is stored {times} times", field.role.name(), field.name)),
        }
    }

    /// Whether a field is at home at something that the mesh has.
    fn home(&self, field: &Field) -> Result<(), String> {
        let (Ground::Mesh { mesh, .. }, Some(home)) = (self.ground, field.place.home) else { return Ok(()) };
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
                if let Ground::Mesh { mesh, over } = self.ground
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
                let (count, whole) = match function {
                    Function::Min | Function::Max => (2, true),
                    Function::Abs | Function::Sign => (1, true),
                    Function::Sqrt
                    | Function::Floor
                    | Function::Ceil
                    | Function::Exp
                    | Function::Log
                    | Function::Sin
                    | Function::Cos
                    | Function::Tan
                    | Function::Atan
                    | Function::Tanh
                    | Function::Cbrt => (1, false),
                    Function::CopySign | Function::Pow | Function::Atan2 => (2, false),
                    Function::Fma => (3, false),
                };
                operands.len() == count && same(kind) && (kind == Kind::Real || whole && kind == Kind::Int)
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
        if let (Ground::Mesh { mesh, .. }, Some(home)) = (self.ground, field.place.home)
            && end != Some(home.set)
        {
            return Err(format!("{} is read at {}, where it is not at home", field.name, mesh.written(path)));
        }
        Ok(())
    }

    /// The set where a path leads, if that is known.
    fn end(&self, path: &Path) -> Result<Option<SetId>, String> {
        match self.ground {
            Ground::Grid if !path.hops().is_empty() => Err(format!("a path on a grid has hops: {path}")),
            Ground::SomeMesh | Ground::Mesh { .. } if !path.steps().is_empty() => {
                Err(format!("a path over a mesh has steps: {path}"))
            }
            Ground::Grid | Ground::SomeMesh => Ok(None),
            Ground::Mesh { mesh, over } => end(mesh, over, path).map(Some),
        }
    }
}

/// How many numbers a field has at an element.
fn width(home: Option<Home>) -> usize {
    home.map_or(1, |home| home.width as usize)
}

/// The set where a path from a set leads.
fn end(mesh: &Mesh, from: SetId, path: &Path) -> Result<SetId, String> {
    if path.levels() != 0 && !mesh.levels {
        return Err(format!("a path leads to another level, and there are none: {path}"));
    }
    path.hops().iter().try_fold(from, |at, hop| {
        if hop.map.index() >= mesh.maps.len() {
            return Err(format!("a path leads through a map that is not there: {path}"));
        }
        let map = &mesh.maps[hop.map];
        if map.from != at {
            return Err(format!("a path goes on from a set that it does not lead to: {path}"));
        }
        if hop.slot >= map.arity {
            return Err(format!("a path leads through a slot that its map has not: {path}"));
        }
        Ok(map.to)
    })
}

fn check_mesh(mesh: &Mesh) -> Result<(), String> {
    let is_set = |set: SetId| set.index() < mesh.sets.len();
    match mesh.maps.iter().find(|(_, map)| !is_set(map.from) || !is_set(map.to) || map.arity == 0) {
        Some((_, map)) => Err(format!("the map {} leads nowhere", map.name)),
        None => Ok(()),
    }
}

fn check_write(own: &MeshStencil, over: SetId, store: &Store, part: u32, how: &How) -> Result<(), String> {
    let field = &own.stencil.fields[store.field];
    let (name, home) = (&field.name, field.place.home);
    let at_home = |set: SetId| home.is_some_and(|home| home.set == set && home.map.is_none());
    let (fits, at) = match how {
        How::Assign => (matches!(field.role, Role::Out | Role::InOut), at_home(over)),
        How::Add(path) => (field.role == Role::Inc, path.levels() == 0 && at_home(end(&own.mesh, over, path)?)),
        How::Reduce(_) => (field.role == Role::Reduce, home.is_none()),
    };
    if !fits {
        return Err(format!("{how:?} is done with the {} field {name}", field.role.name()));
    }
    if !at {
        return Err(format!("{how:?} is done with {name} where it is not at home"));
    }
    if part as usize >= width(home) {
        return Err(format!("part {part} of {name} is written, which it has not"));
    }
    let times = own.stores().filter(|(other, write)| other.field == store.field && write.part == part).count();
    match how {
        How::Assign | How::Reduce(_) if times != 1 => Err(format!("part {part} of {name} is written {times} times")),
        How::Assign | How::Reduce(_) | How::Add(_) => Ok(()),
    }
}

fn check_program(program: &Program, stencils: &[&Stencil]) -> Result<(), String> {
    let numbers = Checker::new(&program.numbers);
    numbers.stencil().map_err(|rule| format!("numbers: {rule}"))?;
    let number = |body: &Body, kind: Kind, what: &str| {
        numbers.body(body, program.numbers.defs.len(), false).map_err(|rule| format!("{what}: {rule}"))?;
        match body.kind() == kind {
            true => Ok(()),
            false => Err(format!("{what} is a {}", body.kind().name())),
        }
    };
    let known = |id: VariableId| match id.index() < program.variables.len() {
        true => Ok(&program.variables[id]),
        false => Err(format!("there is no variable {}", id.index())),
    };
    let mut waiting: Vec<&Action> = program.actions.iter().collect();
    while let Some(action) = waiting.pop() {
        match action {
            Action::Rename(rename) => {
                if known(rename.from)?.stored.kind() != known(rename.to)?.stored.kind() {
                    return Err(format!("{} becomes one of another kind", known(rename.from)?.name));
                }
            }
            Action::Number(own) => {
                let variable = known(own.to)?;
                number(&own.value, variable.stored.kind(), &variable.name)?;
            }
            Action::Repeat(own) => {
                number(&own.times, Kind::Int, "a number of repetitions")?;
                waiting.extend(&own.actions);
            }
            Action::Call(call) => {
                let Some(stencil) = stencils.get(call.stencil) else {
                    return Err(format!("a call is of stencil {}, which is not there", call.stencil));
                };
                let name = &stencil.name;
                if (call.fields.len(), call.params.len()) != (stencil.fields.len(), stencil.params.len()) {
                    return Err(format!("a call of {name} has seats for other fields or parameters"));
                }
                for ((_, field), seat) in stencil.fields.iter().zip(&call.fields) {
                    let reads = field.role.is_read() || field.role == Role::Inc;
                    if seat.read.is_some() && !reads || seat.written.is_some() && !field.role.is_written() {
                        return Err(format!("a call of {name} takes {} for what it is not", field.name));
                    }
                    for id in seat.read.into_iter().chain(seat.written) {
                        if known(id)?.stored.kind() != field.stored.kind() {
                            return Err(format!("a call of {name}: {} is of another kind", field.name));
                        }
                    }
                }
                for ((_, param), given) in stencil.params.iter().zip(&call.params) {
                    given.as_ref().map_or(Ok(()), |body| number(body, param.kind, &param.name))?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::program::Seat;
    use crate::ir::{Binary, Hop, MapId, NodeId, ParamId, Place, Stored, SweepId, phases};
    use crate::source::Source;

    const GRID: &str = "stencil s { in a; in w on (k); param p = 1.5; out b, c
        let x = 2 * a; let y = x + p; b = y + w; c = if a > 0 { x } else { y } }";

    const SWEEP: &str = "stencil s { in a; out b, c
        sweep k up { b = if k == 0 { a } else { b[k-1] + a } }
        c = 2 * b }";

    const MESH: &str = "mesh m {
            set cell, edge
            map edge.cells -> cell[2]
            map cell.near -> cell[2]
        }
        stencil s over m.edge {
            in q: real[2] on cell
            inc r on cell
            out o: real[2]
            reduce most: max
            let d = q[cells.0].0 - q[cells.1].1
            o = [d, 0.5 * d]
            r[cells.0] += d
            r[cells.1] -= d
            most = 2 * d
        }
        program t over m {
            in q: real[2] on cell
            out r on cell
            out o: real[2] on edge
            out big: real on ()
            param times: int = 3
            repeat times {
                r, o, most = s(q)
                big = most + 1
            }
        }";

    fn lowered(text: &str) -> crate::lower::Lowered {
        let lowered = crate::check(&Source::new("own", text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        lowered
    }

    /// The rule that a stencil breaks once something is done to it.
    fn of_grid(text: &str, change: impl FnOnce(&mut Stencil)) -> String {
        let mut own = lowered(text).stencils.remove(0);
        assert_eq!(own.verify(), Ok(()));
        change(&mut own);
        own.verify().unwrap_err()
    }

    fn of_mesh(change: impl FnOnce(&mut MeshStencil)) -> String {
        let mut own = lowered(MESH).mesh_stencils.remove(0);
        assert_eq!((own.verify(), own.stencil.verify()), (Ok(()), Ok(())));
        change(&mut own);
        own.verify().unwrap_err()
    }

    fn of_program(change: impl FnOnce(&mut MeshProgram)) -> String {
        let mut own = lowered(MESH).mesh_programs.remove(0);
        assert_eq!(own.verify(), Ok(()));
        change(&mut own);
        own.verify().unwrap_err()
    }

    /// A body of one node.
    fn only(node: Node, kind: Kind) -> Body {
        let mut body = Body::new();
        body.add(node, kind, Default::default());
        body
    }

    /// A body of an operation on a real number, twice.
    fn twice(kind: Kind, operation: impl Fn(NodeId) -> Node) -> Body {
        let mut body = only(Node::Real(1.0), Kind::Real);
        body.add(operation(NodeId::new(0)), kind, Default::default());
        body
    }

    fn read(field: usize, path: Path, part: u32) -> Body {
        only(Node::Read { field: FieldId::new(field), path, part }, Kind::Real)
    }

    fn hops(hops: &[(usize, u32)]) -> Path {
        Path::through(hops.iter().map(|&(map, slot)| Hop { map: MapId::new(map), slot }).collect::<Vec<_>>())
    }

    fn left() -> Path {
        Path::from_offset(crate::ir::Offset { i: -1, ..Default::default() })
    }

    #[test]
    fn operands_and_definitions_come_first() {
        let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
        assert_eq!(stored(Body::new()), "b: empty body");
        let later = only(Node::Negate(NodeId::new(0)), Kind::Real);
        assert_eq!(stored(later), "b: node 0 uses a later one");
        let found = of_grid(GRID, |own| {
            let own_use = Node::Use { def: crate::ir::DefId::new(1), path: Path::default() };
            own.defs.values_mut().for_each(|def| def.body = only(own_use.clone(), Kind::Real));
        });
        assert_eq!(found, "definition x.0: it uses the later definition 1");
        let missing = |node: Node| stored(only(node, Kind::Real));
        assert_eq!(missing(Node::Param(ParamId::new(7))), "b: it uses the parameter 7, which is not there");
        assert_eq!(stored(read(7, Path::default(), 0)), "b: it reads the field 7, which is not there");
        let found = of_grid(GRID, |own| own.stores[0].field = FieldId::new(7));
        assert_eq!(found, "it stores the field 7, which is not there");
    }

    #[test]
    fn kinds_fit() {
        let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
        for body in [
            only(Node::Real(1.0), Kind::Int),
            only(Node::Level, Kind::Real),
            only(Node::Param(ParamId::new(0)), Kind::Int),
            twice(Kind::Int, Node::Negate),
            twice(Kind::Bool, Node::Not),
            twice(Kind::Real, Node::ToReal),
            twice(Kind::Int, |a| Node::Binary(Binary::Div, a, a)),
            twice(Kind::Real, |a| Node::Compare(crate::ir::Relation::Lt, a, a)),
            twice(Kind::Real, |a| Node::Call(Function::Min, vec![a])),
            twice(Kind::Real, |a| Node::Choose { condition: a, yes: a, no: a }),
        ] {
            let found = stored(body);
            assert!(found.contains("does not fit"), "{found}");
        }
        assert_eq!(stored(only(Node::Int(1), Kind::Int)), "b: a int is stored in it");
    }

    #[test]
    fn fields_are_read_and_stored_as_they_are_declared() {
        let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
        assert_eq!(stored(read(3, Path::default(), 0)), "b: the out field c is read");
        assert!(stored(read(1, left(), 0)).starts_with("b: w is read at [i-1], along an axis that it lacks"));
        let found = of_grid(GRID, |own| own.stores.truncate(1));
        assert_eq!(found, "out field c is stored 0 times");
        let found = of_grid(GRID, |own| own.stores.push(own.stores[0].clone()));
        assert_eq!(found, "out field b is stored 2 times");
        let found = of_grid(GRID, |own| own.fields.values_mut().for_each(|field| field.role = Role::In));
        assert_eq!(found, "in field b is stored 1 times");
    }

    #[test]
    fn constants_read_nothing() {
        let default = |body: Body, kind: Kind| {
            of_grid(GRID, |own| {
                own.params.values_mut().for_each(|param| (param.default, param.kind) = (Some(body.clone()), kind));
            })
        };
        assert!(default(read(0, Path::default(), 0), Kind::Real).contains("p: node 0"));
        let mut level = only(Node::Level, Kind::Int);
        level.add(Node::ToReal(NodeId::new(0)), Kind::Real, Default::default());
        assert!(default(level, Kind::Real).contains("p: node 0"));
        assert!(default(only(Node::Param(ParamId::new(0)), Kind::Real), Kind::Real).contains("p: node 0"));
        let found = of_grid(GRID, |own| {
            own.params.values_mut().for_each(|param| param.default = Some(only(Node::Int(1), Kind::Int)));
        });
        assert_eq!(found, "p: a int is its default");
    }

    #[test]
    fn values_of_sweeps_are_known_where_they_are_read() {
        let carried = |own: &Stencil| own.fields.iter().find(|(_, field)| field.role == Role::Carried).unwrap().0;
        let reading = |at: Path| {
            of_grid(SWEEP, |own| {
                let body = read(carried(own).index(), at, 0);
                own.stores.iter_mut().filter(|store| store.sweep.is_some()).for_each(|store| store.body = body.clone());
            })
        };
        assert!(reading(Path::levels_only(1)).contains("is read before it is known"));
        assert!(reading(left()).contains("in another column"));
        let found = of_grid(SWEEP, |own| own.stores.iter_mut().for_each(|store| store.sweep = None));
        assert!(found.starts_with("no sweep stores"), "{found}");
        // What a phase before has stored is known in the next; not all is stored in one.
        let own = lowered(SWEEP).stencils.remove(0);
        for mut phase in phases(&own) {
            assert_eq!(phase.verify(), Ok(()));
            phase.stencil.stores.push(phase.stencil.stores[0].clone());
            assert!(phase.verify().is_err());
        }
    }

    #[test]
    fn a_grid_has_no_maps() {
        let stored = |body: Body| of_grid(GRID, |own| own.stores[0].body = body);
        assert_eq!(stored(read(0, hops(&[(0, 1)]), 0)), "b: a path on a grid has hops: [map 0 slot 1]");
        assert_eq!(stored(read(0, Path::default(), 1)), "b: part 1 of a is read, which it has not");
        let present = only(Node::Present { path: Path::default() }, Kind::Bool);
        assert!(stored(present).contains("does not fit"));
    }

    #[test]
    fn hops_lead_from_set_to_set() {
        let def = |body: Body| of_mesh(|own| own.stencil.defs.values_mut().for_each(|def| def.body = body.clone()));
        let told = |path: Path| def(read(0, path, 0));
        assert!(told(hops(&[(9, 0)])).contains("a path leads through a map that is not there"));
        assert!(told(hops(&[(0, 2)])).contains("a path leads through a slot that its map has not"));
        assert!(told(hops(&[(1, 0)])).contains("a path goes on from a set that it does not lead to"));
        assert!(told(hops(&[(0, 0), (0, 0)])).contains("a path goes on from a set that it does not lead to"));
        assert!(told(hops(&[(0, 0)]).then(&Path::levels_only(1))).contains("a path leads to another level"));
        assert!(told(left()).contains("a path over a mesh has steps"));
        assert!(def(only(Node::Present { path: Path::default() }, Kind::Bool)).contains("does not fit"));
        let swept = of_mesh(|own| own.stencil.stores[0].sweep = Some(SweepId::new(0)));
        assert_eq!(swept, "it sweeps over a mesh");
    }

    #[test]
    fn reads_end_where_fields_are_at_home() {
        let def = |body: Body| of_mesh(|own| own.stencil.defs.values_mut().for_each(|def| def.body = body.clone()));
        assert!(def(read(0, Path::default(), 0)).contains("q is read at , where it is not at home"));
        assert!(def(read(0, hops(&[(0, 0)]), 2)).contains("part 2 of q is read, which it has not"));
        let nowhere = of_mesh(|own| {
            own.stencil.fields[FieldId::new(0)].place = Place { horizontal: false, levels: Levels::None, home: None };
        });
        assert!(nowhere.contains("along an axis that it lacks"), "{nowhere}");
        let found = of_mesh(|own| {
            let used = Node::Use { def: crate::ir::DefId::new(0), path: hops(&[(0, 0)]) };
            own.stencil.stores[0].body = only(used, Kind::Real);
        });
        assert_eq!(found, "o: it uses a definition at [cells.0], where there are none");
        let home = |change: &dyn Fn(&mut Home)| {
            of_mesh(|own| {
                own.stencil.fields.values_mut().filter_map(|field| field.place.home.as_mut()).for_each(change)
            })
        };
        assert!(home(&|own| own.set = SetId::new(7)).contains("is at home at nothing"));
        assert!(home(&|own| own.map = Some(MapId::new(7))).contains("is at home at nothing"));
        assert!(home(&|own| own.parts += 1).contains("is at home at nothing"));
        assert_eq!(of_mesh(|own| own.over = None), "it runs over no set");
        assert_eq!(of_mesh(|own| own.over = Some(SetId::new(7))), "it runs over a set that is not there");
        let maps = of_mesh(|own| own.mesh.maps.values_mut().for_each(|map| map.to = SetId::new(7)));
        assert_eq!(maps, "the map cells leads nowhere");
    }

    #[test]
    fn writes_are_those_of_their_fields() {
        let how = |store: usize, how: How| of_mesh(|own| own.writes[store].how = how);
        assert!(how(0, How::Add(hops(&[(0, 0)]))).contains("is done with the out field o"));
        assert!(how(2, How::Assign).contains("is done with the inc field r"));
        assert!(how(2, How::Add(Path::default())).contains("where it is not at home"));
        assert!(how(2, How::Add(hops(&[(0, 5)]))).contains("a slot that its map has not"));
        assert_eq!(of_mesh(|own| own.writes[0].part = 2), "part 2 of o is written, which it has not");
        assert_eq!(of_mesh(|own| own.writes[0].part = 1), "part 1 of o is written 2 times");
        let fewer = of_mesh(|own| {
            own.writes.pop();
        });
        assert_eq!(fewer, "5 stores, and 4 writes");
        let all = |own: &mut MeshStencil, keep: usize| {
            own.writes.truncate(keep);
            own.stencil.stores.truncate(keep);
        };
        assert_eq!(of_mesh(|own| all(own, 4)), "reduce field most is stored 0 times");
        assert_eq!(of_mesh(|own| all(own, 1)), "out field o is stored 1 times");
        // Of stages that are computed one after the other each stores its part, and a later one reads what one before it has written.
        let own = lowered(MESH).mesh_stencils.remove(0);
        let mut parts = [own.clone(), own];
        all(&mut parts[0], 2);
        parts[1].writes.drain(..4);
        parts[1].stencil.stores.drain(..4);
        parts[1].stencil.stores[0].body = read(2, Path::default(), 0);
        assert_eq!(Stages(&parts).verify(), Ok(()));
        parts.reverse();
        assert_eq!(Stages(&parts).verify().unwrap_err(), "most: the out field o is read");
    }

    /// The call of the program, which stands in a loop.
    fn call(program: &mut MeshProgram) -> &mut crate::ir::program::Call {
        let in_loop = program.program.actions.iter_mut().find_map(|action| match action {
            Action::Repeat(own) => Some(&mut own.actions),
            _ => None,
        });
        let call = in_loop.unwrap().iter_mut().find_map(|action| match action {
            Action::Call(call) => Some(call),
            _ => None,
        });
        call.unwrap()
    }

    #[test]
    fn calls_fit_their_stencils() {
        let broken = |change: &dyn Fn(&mut crate::ir::program::Call)| of_program(|own| change(call(own)));
        assert_eq!(broken(&|call| call.stencil = 7), "a call is of stencil 7, which is not there");
        assert_eq!(broken(&|call| call.fields.truncate(1)), "a call of s has seats for other fields or parameters");
        assert_eq!(broken(&|call| call.params.push(None)), "a call of s has seats for other fields or parameters");
        let seat = |read: Option<usize>, written: Option<usize>| Seat {
            read: read.map(VariableId::new),
            written: written.map(VariableId::new),
        };
        assert_eq!(broken(&|call| call.fields[2] = seat(Some(0), None)), "a call of s takes o for what it is not");
        assert_eq!(broken(&|call| call.fields[0] = seat(None, Some(0))), "a call of s takes q for what it is not");
        assert_eq!(broken(&|call| call.fields[0] = seat(Some(99), None)), "there is no variable 99");
        let other = of_program(|own| own.program.variables.values_mut().for_each(|own| own.stored = Stored::Int));
        assert!(other.contains("is of another kind") || other.contains("is a real"), "{other}");
        let fewer = of_program(|own| own.numbers.push(VariableId::new(0)));
        assert_eq!(fewer, "fields of its numbers stand for no variables");
    }

    #[test]
    fn numbers_of_programs_are_made_of_numbers() {
        let times = |body: Body| {
            of_program(|own| {
                for action in &mut own.program.actions {
                    if let Action::Repeat(own) = action {
                        own.times = body.clone();
                    }
                }
            })
        };
        assert_eq!(times(only(Node::Real(1.5), Kind::Real)), "a number of repetitions is a real");
        let missing = times(only(Node::Param(ParamId::new(7)), Kind::Int));
        assert_eq!(missing, "a number of repetitions: it uses the parameter 7, which is not there");
    }
}
