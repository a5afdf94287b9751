//! What stencils look at beside an element, and where they add to.

use super::super::MeshProblem;
use std::collections::BTreeSet;
use stencilc_compiler::analysis::footprint::Footprint;
use stencilc_compiler::ir::mesh::{How, Zones};
use stencilc_compiler::ir::{FieldId, Hop, MeshStencil, SetId};

/// The ways that a stencil goes from an element.
pub struct Reach {
    /// Over whose elements it runs.
    pub set: SetId,
    /// Of which zones.
    pub zones: Option<Zones>,
    /// The ways to what it reads or asks for.
    pub reads: BTreeSet<Vec<Hop>>,
    /// The ways to what it adds to beside the element.
    pub adds: BTreeSet<Vec<Hop>>,
}

impl Reach {
    /// Of a stencil.
    pub fn new(stencil: &MeshStencil) -> Self {
        let footprint = Footprint::new(stencil, 0..stencil.stencil.stores.len());
        let reads = footprint.ways().filter(|hops| !hops.is_empty()).map(<[Hop]>::to_vec).collect();
        Self {
            set: stencil.set(),
            zones: stencil.stencil.zones,
            reads,
            adds: adds(stencil).map(|(_, hops)| hops.to_vec()).collect(),
        }
    }
}

/// The stores of a stencil that add to other elements, by their numbers, and the ways there.
fn adds(stencil: &MeshStencil) -> impl Iterator<Item = (usize, &[Hop])> {
    stencil.writes.iter().enumerate().filter_map(|(store, write)| match &write.how {
        How::Add(path) if !path.hops().is_empty() => Some((store, path.hops())),
        How::Add(_) | How::Assign | How::Reduce(_) => None,
    })
}

/// The fields that a call reads at elements that another part may own: where ways lead, and, for what it adds to others, at the element
/// itself. `number` is that of a stencil or of a chain.
pub fn foreign(problem: &MeshProblem, number: usize) -> BTreeSet<FieldId> {
    let mut foreign = BTreeSet::new();
    for stencil in problem.stages(number) {
        let all = Footprint::new(stencil, 0..stencil.stencil.stores.len());
        foreign.extend(all.reads.keys().filter(|(_, hops)| !hops.is_empty()).map(|(field, _)| *field));
        let added = Footprint::new(stencil, adds(stencil).map(|(store, _)| store));
        foreign.extend(added.reads.keys().map(|(field, _)| *field));
    }
    foreign
}
