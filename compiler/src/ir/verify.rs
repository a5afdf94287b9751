//! Checks what every pass relies on. A violation is a fault of the compiler, never of its user.
//!
//! Rules:
//! 1. Operands are earlier nodes of the same body; no body is empty.
//! 2. A definition uses earlier definitions only.
//! 3. Kinds fit: both sides of an operation and both branches of a choice agree, conditions are `bool`, `/` is of reals.
//! 4. Only `in` and `inout` fields are read; each `out` and `inout` field is stored exactly once, no other is.
//! 5. A field without an axis is never read at a step along it.
//! 6. A carried field is stored at most once, by a sweep; it is read in its own column only, after that sweep on any level, in
//!    it on levels that come before, and not before it.
//! 7. Constants and defaults of parameters read no field, no parameter and no level.

use super::Path;
use super::{Body, FieldId, Function, Handle, Kind, Levels, Node, Origin, Role, Stencil, Store};
use std::collections::BTreeSet;

/// The first rule that `stencil` breaks, in words.
pub fn verify(stencil: &Stencil) -> Result<(), String> {
    for (id, def) in stencil.defs.iter() {
        let name = format!("definition {}.{}", def.name, id.index());
        check(stencil, &def.body, id.index(), def.origin == Origin::Constant)
            .map_err(|rule| format!("{name}: {rule}"))?;
    }
    for (_, param) in stencil.params.iter() {
        if let Some(default) = &param.default {
            check(stencil, default, stencil.defs.len(), true).map_err(|rule| format!("{}: {rule}", param.name))?;
        }
    }
    let mut stored = vec![0; stencil.fields.len()];
    for store in &stencil.stores {
        let field = &stencil.fields[store.field];
        check(stencil, &store.body, stencil.defs.len(), false).map_err(|rule| format!("{}: {rule}", field.name))?;
        if store.body.kind() != field.stored.kind() {
            return Err(format!("{}: a {} is stored in it", field.name, store.body.kind().name()));
        }
        stored[store.field.index()] += 1;
    }
    for print in &stencil.prints {
        check(stencil, &print.body, stencil.defs.len(), false)
            .map_err(|rule| format!("print {}: {rule}", print.label.as_told()))?;
    }
    for (id, field) in stencil.fields.iter() {
        let fits = match field.role {
            Role::Carried => stored[id.index()] <= 1,
            // On a mesh, where other rules hold.
            Role::Inc | Role::Reduce => false,
            Role::In | Role::Out | Role::InOut => stored[id.index()] == usize::from(field.role.is_written()),
        };
        if !fits {
            return Err(format!("{} field {} is stored {} times", field.role.name(), field.name, stored[id.index()]));
        }
    }
    check_order(stencil)
}

/// Whether carried fields are read when their values are known.
fn check_order(stencil: &Stencil) -> Result<(), String> {
    for store in &stencil.stores {
        if stencil.fields[store.field].role == Role::Carried && store.sweep.is_none() {
            return Err(format!("no sweep stores {}", stencil.fields[store.field].name));
        }
        check_reads(stencil, store)?;
    }
    Ok(())
}

fn check_reads(stencil: &Stencil, store: &Store) -> Result<(), String> {
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
                        (None, _) => false,
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

fn check(stencil: &Stencil, body: &Body, defs_before: usize, constant: bool) -> Result<(), String> {
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
        let same = |expected: Kind| kinds.iter().all(|&kind| kind == expected);
        let fits = match node {
            Node::Real(_) => kind == Kind::Real,
            Node::Int(_) | Node::Level | Node::LevelCount => kind == Kind::Int,
            Node::Bool(_) => kind == Kind::Bool,
            Node::Param(param) => kind == stencil.params[*param].kind && !constant,
            // On a mesh alone.
            Node::Present { .. } => false,
            Node::Read { field, path, .. } => {
                check_read(stencil, *field, path)?;
                kind == stencil.fields[*field].stored.kind() && !constant
            }
            Node::Use { def, .. } => {
                if def.index() >= defs_before {
                    return Err(format!("it uses the later definition {}", def.index()));
                }
                let used = &stencil.defs[*def];
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
        };
        if !fits || constant && matches!(node, Node::Level | Node::LevelCount) {
            return Err(format!("node {} ({node:?}) of kind {} does not fit", id.index(), kind.name()));
        }
    }
    Ok(())
}

fn check_read(stencil: &Stencil, field: FieldId, path: &super::Path) -> Result<(), String> {
    let field = &stencil.fields[field];
    if !field.role.is_read() && field.role != Role::Carried {
        return Err(format!("the out field {} is read", field.name));
    }
    if field.role == Role::Carried && !path.steps().is_empty() {
        return Err(format!("the value {} of a sweep is read at {path}, in another column", field.name));
    }
    if !field.place.horizontal && !path.steps().is_empty() || field.place.levels == Levels::None && path.levels() != 0 {
        return Err(format!("{} is read at {path}, along an axis that it lacks", field.name));
    }
    Ok(())
}
