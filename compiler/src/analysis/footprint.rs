//! What the stores of a stencil over a mesh look at, and what they cost an element.

use super::operations::Operations;
use super::reuse::operations;
use crate::ir::{Body, FieldId, Hop, MeshStencil, Node, Path, Stencil};
use std::collections::{BTreeMap, BTreeSet};

/// What some stores of a stencil look at and compute, of one element.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// Fields, and where hops lead from the element: which of the field's numbers there.
    pub reads: BTreeMap<(FieldId, Vec<Hop>), BTreeSet<u32>>,
    /// The same, and how many levels away.
    pub shifts: BTreeMap<(FieldId, Vec<Hop>), BTreeSet<i32>>,
    /// The same, where data says how many.
    pub moved: BTreeSet<(FieldId, Vec<Hop>)>,
    /// The same on levels that the text says by their numbers.
    pub said: BTreeSet<(FieldId, Vec<Hop>)>,
    /// Where it is asked whether there is an element.
    pub present: BTreeSet<Vec<Hop>>,
    /// What is computed, each definition once wherever it is used.
    pub operations: Operations,
}

impl Footprint {
    /// Of the stores with these numbers.
    pub fn new(stencil: &MeshStencil, stores: impl IntoIterator<Item = usize>) -> Self {
        let (mut footprint, own) = (Self::default(), &stencil.stencil);
        let bodies = stores.into_iter().map(|store| &own.stores[store].body);
        own.at_places(bodies, Path::default(), Path::then, |_, body, at| {
            footprint.operations.add_all(&operations(body, &vec![true; body.len()]), 1);
            body.iter().for_each(|(_, node)| footprint.look(own, body, node, at));
        });
        footprint
    }

    /// Whether a field is read on levels that are data, or said by their numbers.
    pub fn is_moved(&self, field: FieldId) -> bool {
        self.moved.iter().chain(&self.said).any(|(own, _)| *own == field)
    }

    fn look(&mut self, stencil: &Stencil, body: &Body, node: &Node, at: &Path) {
        match node {
            Node::Read { field, path, part, by } if stencil.fields[*field].place.horizontal => {
                let whole = at.then(path);
                let key = (*field, whole.hops().to_vec());
                self.reads.entry(key.clone()).or_default().insert(*part);
                match by {
                    None => _ = self.shifts.entry(key).or_default().insert(whole.levels()),
                    Some(by) if body.is_data(*by) => _ = self.moved.insert(key),
                    Some(_) => _ = self.said.insert(key),
                }
            }
            Node::Present { path } => {
                self.present.insert(at.then(path).hops().to_vec());
            }
            // Which zone an element is in, its number tells.
            Node::InZone(_) => {
                self.present.insert(at.hops().to_vec());
            }
            _ => {}
        }
    }

    /// Every way that is walked, to read or to ask.
    pub fn ways(&self) -> impl Iterator<Item = &[Hop]> {
        self.reads.keys().map(|(_, hops)| hops.as_slice()).chain(self.present.iter().map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::lower;
    use crate::parse::parse;
    use crate::source::Source;

    const TEXT: &str = "
mesh m {
    set edge, cell
    map edge.cells -> cell[2]
}
stencil flux over m.edge {
    in  q: real[2] on cell
    in  w
    inc r on cell
    out o
    let a = q[cells.0].0 * w
    let d = a - q[cells.1].1
    r[cells.0] += d
    r[cells.1] -= d + a
    o = w
}
";

    #[test]
    fn definitions_count_once_and_stores_by_themselves() {
        let source = Source::new("m", TEXT);
        let lowered = lower(&parse(&source).unwrap(), "m");
        let stencil = &lowered.mesh_stencils[0];
        let stores = stencil.stencil.stores.len();
        let own =
            (0..stores).find(|&store| Footprint::new(stencil, [store]).reads.keys().all(|(_, hops)| hops.is_empty()));
        let added = (0..stores).filter(|store| Some(*store) != own);
        let footprint = Footprint::new(stencil, added);
        let ways: Vec<usize> = footprint.reads.keys().map(|(_, hops)| hops.len()).collect();
        assert_eq!(ways, [1, 1, 0], "q through two slots, w here");
        // a product, a difference and a sum.
        assert_eq!(footprint.operations.flops(), 3);
        assert_eq!(Footprint::new(stencil, own).operations.flops(), 0);
    }
}
