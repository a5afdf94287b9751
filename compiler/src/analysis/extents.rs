//! How far a stencil reaches, and the values it needs.

use crate::ir::program::GridAxis;
use crate::ir::{DefId, FieldId, Handle, Offset, Path, Stencil};
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
    let then = |at: &Offset, path: &Path| at.plus(path.offset());
    stencil.at_places(stencil.outputs(), Offset::default(), then, |def, body, at| {
        if let Some(def) = def {
            demand.defs.entry(def).or_default().insert(*at);
        }
        for (field, path) in body.reads() {
            demand.reads.entry(field).or_default().insert(then(at, path).along(stencil.fields[field].place));
        }
    });
    demand
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
    let then = |at: Extents, path: &Path| {
        let step = path.offset();
        Extents { low: at.low.plus(step), high: at.high.plus(step) }
    };
    stencil.at_joined_places(Extents::default(), then, Extents::union, |body, at| {
        for (field, path) in body.reads() {
            let (entry, reached) = (&mut fields[field.index()], then(at, path));
            *entry = Some(entry.map_or(reached, |known| known.union(reached)));
        }
    });
    fields
}

impl Extents {
    /// The smallest and the largest offset along an axis.
    pub fn along(self, axis: GridAxis) -> [i32; 2] {
        match axis {
            GridAxis::I => [self.low.i, self.high.i],
            GridAxis::J => [self.low.j, self.high.j],
            GridAxis::K => [self.low.k, self.high.k],
        }
    }

    fn union(self, other: Extents) -> Extents {
        Extents { low: self.low.with(other.low, i32::min), high: self.high.with(other.high, i32::max) }
    }
}
