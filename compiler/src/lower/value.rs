//! Values under construction.

use super::{Body, Found};
use crate::ir::{Binary, DefId, FieldId, Handle, Kind, Levels, Node, NodeId, ParamId, Path, Stencil, varies_across};

/// A number, or a vector of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<T> {
    /// One.
    One(T),
    /// Several: a constant array.
    Many(Vec<T>),
}

/// A value in the body being written.
pub type Nodes = Value<NodeId>;

/// A value that has a name.
pub type Bound = Value<Alias>;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Alias {
    /// A number of a field where the path leads.
    Field(FieldId, Path, u32),
    /// A value on a map of a mesh, where the path leads, before it is said at which slot; and which part of it.
    Slots(FieldId, Path, u32),
    /// A definition where the path leads.
    Def(DefId, Path),
    /// A value that the sweep at hand defines below, where the path leads.
    Ahead(FieldId, Path),
    /// A parameter, the same everywhere.
    Param(ParamId),
    /// A whole constant, which may be an offset.
    Int(i32),
}

impl<T> Value<T> {
    /// Each part changed.
    pub fn map<U>(self, mut map: impl FnMut(T) -> U) -> Value<U> {
        match self {
            Value::One(one) => Value::One(map(one)),
            Value::Many(many) => Value::Many(many.into_iter().map(map).collect()),
        }
    }

    /// Both values part by part, if they have as many.
    pub fn zip<U>(self, other: Value<U>) -> Option<Value<(T, U)>> {
        match (self, other) {
            (Value::One(a), Value::One(b)) => Some(Value::One((a, b))),
            (Value::Many(a), Value::Many(b)) if a.len() == b.len() => Some(Value::Many(a.into_iter().zip(b).collect())),
            (Value::One(_) | Value::Many(_), _) => None,
        }
    }

    /// Both values part by part; a single one goes with each part of the other.
    pub fn spread<U: Clone>(self, other: Value<U>) -> Option<Value<(T, U)>>
    where
        T: Clone,
    {
        match (self, other) {
            (Value::One(a), Value::Many(b)) => Some(Value::Many(b.into_iter().map(|b| (a.clone(), b)).collect())),
            (Value::Many(a), Value::One(b)) => Some(Value::Many(a.into_iter().map(|a| (a, b.clone())).collect())),
            (a, b) => a.zip(b),
        }
    }

    /// Each part changed; nothing, and none of those after it, once one cannot be.
    pub fn try_map<U>(self, mut map: impl FnMut(T) -> Option<U>) -> Option<Value<U>> {
        match self {
            Value::One(one) => map(one).map(Value::One),
            Value::Many(many) => many.into_iter().map(map).collect::<Option<_>>().map(Value::Many),
        }
    }

    /// The parts.
    pub fn into_parts(self) -> Vec<T> {
        match self {
            Value::One(one) => vec![one],
            Value::Many(many) => many,
        }
    }
}

impl<T> Value<Option<T>> {
    /// Nothing if any part is nothing.
    pub fn collected(self) -> Found<Value<T>> {
        self.try_map(|part| part)
    }
}

/// Whether a body's value varies horizontally, and along k.
pub fn varies(stencil: &Stencil, body: &Body) -> (bool, bool) {
    let across = |node: &Node| varies_across(stencil, node);
    let varying = body.any(&stencil.of_defs(|body, defs| body.any(defs, across)), across);
    let along = stencil.of_defs(|body, defs| varies_along(stencil, body, defs));
    (varying, varies_along(stencil, body, &along))
}

/// Whether a body's value varies along k, given whether definitions do.
fn varies_along(stencil: &Stencil, body: &Body, defs: &[bool]) -> bool {
    let varies = body.of_nodes(|_, node, varies: &[bool]| match node {
        // A level by its number, less that of the cell, is the same level from every cell.
        Node::Read { by: Some(by), .. } => match &body[*by] {
            Node::Binary(Binary::Sub, number, level) if body[*level] == Node::Level => varies[number.index()],
            _ => true,
        },
        Node::Read { field, .. } => stencil.fields[*field].place.levels != Levels::None,
        Node::Level => true,
        Node::Use { def, .. } => defs[def.index()],
        _ => node.operands().iter().any(|operand| varies[operand.index()]),
    });
    varies.last().copied().unwrap_or(false)
}

/// What two kinds become where they meet; nothing if they do not.
pub fn meet(a: Kind, b: Kind) -> Option<Kind> {
    match (a, b) {
        (Kind::Bool, Kind::Bool) => Some(Kind::Bool),
        (Kind::Int, Kind::Int) => Some(Kind::Int),
        (Kind::Real, Kind::Real) | (Kind::Real, Kind::Int) | (Kind::Int, Kind::Real) => Some(Kind::Real),
        (Kind::Bool, _) | (_, Kind::Bool) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn a_level_by_its_number_does_not_vary_along_k() {
        let varying = |value: &str| {
            let text = format!(
                "stencil s {{ in a; in v on (k); in n: int on (i, j); in m: int; param p: int; out r
                 let t = a[level 0]; let u = a[level m]; r = {value} }}"
            );
            let lowered = crate::check(&Source::new("own", &text));
            varies(&lowered.stencils[0], &lowered.stencils[0].stores[0].body)
        };
        for value in ["a[level 0]", "a[i+1, level nk - 1] + nk", "a[level n[i+1] + 1]", "t[k+1]", "a[level p] * n"] {
            assert_eq!(varying(value), (true, false), "{value}");
        }
        for value in ["a[level m]", "u", "t + a", "t * k", "a[k + n]", "a[level 0] + a[k+1]"] {
            assert_eq!(varying(value), (true, true), "{value}");
        }
        assert_eq!(varying("v[level 1]"), (false, false));
        assert_eq!(varying("v[level n]"), (true, false));
    }
}
