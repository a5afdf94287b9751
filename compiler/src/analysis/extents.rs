//! How far a stencil reaches, and the values it needs.

use crate::ir::{Body, DefId, FieldId, Handle, Node, Offset, Stencil};
use std::collections::{BTreeMap, BTreeSet};

/// The reach of a stencil: its reads lie within `low..=high` of the cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// The smallest offsets, at most 0.
    pub low: Offset,
    /// The largest offsets, at least 0.
    pub high: Offset,
}

/// Every offset at which something is needed, where steps commute.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// Offsets at which each definition's value is needed; definitions that nobody uses are absent.
    pub defs: BTreeMap<DefId, BTreeSet<Offset>>,
    /// Offsets at which each field is read, along the axes that it has.
    pub reads: BTreeMap<FieldId, BTreeSet<Offset>>,
}

/// What `stencil` needs at which offsets, in whatever branch.
pub fn demand(stencil: &Stencil) -> Demand {
    let mut demand = Demand::default();
    let here = BTreeSet::from([Offset::default()]);
    for store in &stencil.stores {
        visit(stencil, &store.body, &here, &mut demand);
    }
    // Users come after what they use, so backwards every set is complete when its turn comes.
    for (id, def) in stencil.defs.iter().rev() {
        if let Some(at) = demand.defs.get(&id).cloned() {
            visit(stencil, &def.body, &at, &mut demand);
        }
    }
    demand
}

fn visit(stencil: &Stencil, body: &Body, at: &BTreeSet<Offset>, demand: &mut Demand) {
    for (_, node) in body.iter() {
        match node {
            Node::Read { field, path, .. } => {
                let (step, place) = (path.offset(), stencil.fields[*field].place);
                let reads = demand.reads.entry(*field).or_default();
                reads.extend(at.iter().map(|offset| offset.plus(step).along(place)));
            }
            Node::Use { def, path } => {
                let step = path.offset();
                demand.defs.entry(*def).or_default().extend(at.iter().map(|offset| offset.plus(step)));
            }
            _ => {}
        }
    }
}

/// How far `stencil` reaches along i and j; `k` is 0, since levels follow other rules (see [`super::levels`]).
///
/// Only the outermost offsets of each definition are followed, so this is fast for any stencil.
pub fn extents(stencil: &Stencil) -> Extents {
    let fields = stencil.fields.iter().zip(reaches(stencil)).filter(|((_, field), _)| field.place.horizontal);
    let all = fields.filter_map(|(_, reach)| reach).fold(Extents::default(), Extents::union);
    Extents { low: all.low.horizontal(), high: all.high.horizontal() }
}

/// How far `stencil` reaches field by field, along all three axes, in whatever branch, the cell itself among what is reached;
/// nothing for one that is not read.
pub fn reaches(stencil: &Stencil) -> Vec<Option<Extents>> {
    bounds(stencil).into_iter().map(|reach| Some(reach?.union(Extents::default()))).collect()
}

/// The smallest and largest offsets of the reads of each field, whether the cell itself lies between them or not.
pub fn bounds(stencil: &Stencil) -> Vec<Option<Extents>> {
    let mut fields: Vec<Option<Extents>> = vec![None; stencil.fields.len()];
    let mut defs: Vec<Option<Extents>> = vec![None; stencil.defs.len()];
    let mut visit = |body: &Body, at: Extents, defs: &mut Vec<Option<Extents>>| {
        for (_, node) in body.iter() {
            let path = match node {
                Node::Read { path, .. } | Node::Use { path, .. } => path,
                _ => continue,
            };
            let step = path.offset();
            let reached = Extents { low: at.low.plus(step), high: at.high.plus(step) };
            match node {
                Node::Read { field, .. } => {
                    let entry = &mut fields[field.index()];
                    *entry = Some(entry.map_or(reached, |known| known.union(reached)));
                }
                Node::Use { def, .. } => {
                    let entry = &mut defs[def.index()];
                    *entry = Some(entry.map_or(reached, |known| known.union(reached)));
                }
                _ => {}
            }
        }
    };
    for store in &stencil.stores {
        visit(&store.body, Extents::default(), &mut defs);
    }
    for (id, def) in stencil.defs.iter().rev() {
        if let Some(at) = defs[id.index()] {
            visit(&def.body, at, &mut defs);
        }
    }
    fields
}

impl Extents {
    fn union(self, other: Extents) -> Extents {
        let (a, b) = (self, other);
        Extents {
            low: Offset { i: a.low.i.min(b.low.i), j: a.low.j.min(b.low.j), k: a.low.k.min(b.low.k) },
            high: Offset { i: a.high.i.max(b.high.i), j: a.high.j.max(b.high.j), k: a.high.k.max(b.high.k) },
        }
    }
}
