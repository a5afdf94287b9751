//! Levels that are data: which numbers of a field lead to levels that there are.

use super::levels::{Known, candidates, depend_on_params, readable};
use super::reached::reached;
use crate::ir::scalar::Value;
use crate::ir::{Binary, Body, FieldId, Handle, Kind, Levels, Node, NodeId, Precision, Stencil};
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of a field that may say which level is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The least of them.
    pub low: i64,
    /// The largest.
    pub high: i64,
    /// The field that is read where they lead.
    pub read: FieldId,
}

/// A read on a level that is data: the field that is read, that whose number says by how many levels further, how many levels from
/// that number's own level this counts, and how many are added.
struct Moving {
    read: FieldId,
    offset: FieldId,
    from: i32,
    plus: i32,
}

/// The fields whose numbers say which levels are read.
pub fn offsets(stencil: &Stencil) -> BTreeSet<FieldId> {
    let of = |body: &Body| -> Vec<FieldId> {
        body.iter().filter_map(|(id, _)| moving(body, id)).map(|own| own.offset).collect()
    };
    stencil.bodies().flat_map(of).collect()
}

/// What a node reads on a level that is data, if it does.
fn moving(body: &Body, id: NodeId) -> Option<Moving> {
    let Node::Read { field, path, by: Some(by), .. } = &body[id] else { return None };
    let (data, plus) = match &body[*by] {
        Node::Binary(Binary::Add, data, plus) => match body[*plus] {
            Node::Int(plus) => (*data, plus),
            _ => return None,
        },
        _ => (*by, 0),
    };
    let Node::Read { field: offset, path: at, .. } = &body[data] else { return None };
    let from = path.levels().saturating_sub(at.levels());
    Some(Moving { read: *field, offset: *offset, from, plus })
}

/// Of each field whose numbers say which levels are read: which may, by the level that they stand on, or, of a field without levels,
/// on all of them.
pub fn allowed(stencil: &Stencil, precision: Precision, nk: usize) -> BTreeMap<(FieldId, Option<usize>), Allowed> {
    let mut all = BTreeMap::new();
    if offsets(stencil).is_empty() {
        return all;
    }
    // Where parameters decide, whatever may be computed counts.
    let params: Vec<Value> = stencil.params.iter().map(|(_, param)| some_number(param.kind)).collect();
    let is_known = !depend_on_params(stencil);
    let known = Known::new(stencil, precision, nk, &params);
    let levels: Vec<usize> = match is_known {
        true => readable(&known, candidates(stencil, 0..nk), None),
        false => candidates(stencil, 0..nk).collect(),
    };
    for level in levels {
        let reached = reached(stencil, &known, level);
        let stores = stencil.stores.iter().zip(&reached.stores).map(|(store, nodes)| (&store.body, nodes, 0));
        let defs = reached.defs.iter().map(|(&(def, shift), nodes)| (&stencil.defs[def].body, nodes, shift));
        for (body, nodes, shift) in stores.chain(defs) {
            let counts = |id: NodeId| !is_known || nodes[id.index()];
            for own in body.iter().filter(|(id, _)| counts(*id)).filter_map(|(id, _)| moving(body, id)) {
                let at = level as i64 + i64::from(shift);
                let start = at + i64::from(own.plus);
                let last = stencil.fields[own.read].place.levels.count(nk) as i64 - 1;
                // The level of the number itself: the read is `from` levels away from it.
                let stands = usize::try_from(at - i64::from(own.from)).ok();
                let has_levels = stencil.fields[own.offset].place.levels != Levels::None;
                if has_levels && stands.is_none() {
                    continue;
                }
                let key = (own.offset, stands.filter(|_| has_levels));
                let new = Allowed { low: -start, high: last - start, read: own.read };
                let entry = all.entry(key).or_insert(new);
                let tighter = new.low > entry.low || new.high < entry.high;
                let read = if tighter { new.read } else { entry.read };
                *entry = Allowed { low: entry.low.max(new.low), high: entry.high.min(new.high), read };
            }
        }
    }
    all
}

fn some_number(kind: Kind) -> Value {
    match kind {
        Kind::Real => Value::Real(1.0),
        Kind::Int => Value::Int(1),
        Kind::Bool => Value::Bool(true),
    }
}
