//! What a level's cells evaluate, and how often: values and reads once each, and as often as the text writes them.

use super::operations::{Operation, Operations};
use super::reached::Reached;
use crate::ir::{Body, DefId, FieldId, Handle, Node, Offset, Role, Stencil};
use std::collections::BTreeMap;

/// What one cell needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// Each definition at each offset where its value is needed, with how often that value would be computed if every use
    /// computed it anew.
    pub values: BTreeMap<DefId, BTreeMap<Offset, u64>>,
    /// Each field's distinct reads: offsets along the axes that it has, with how often the values and outputs, each
    /// computed once, read there.
    pub reads: BTreeMap<FieldId, BTreeMap<Offset, u64>>,
    /// Operations with every value computed once.
    pub once: Operations,
    /// Operations with every use computing its value anew.
    pub anew: Operations,
    /// Reads with every use computing its value anew.
    pub reads_anew: u64,
}

/// What a cell on a level needs that reaches `reached`.
pub fn evaluate(stencil: &Stencil, reached: &Reached) -> Evaluation {
    let mut evaluation = Evaluation::default();
    for (store, nodes) in stencil.stores.iter().zip(&reached.stores) {
        evaluation.visit(stencil, &store.body, nodes, &BTreeMap::from([(Offset::default(), 1)]));
    }
    // Users come after what they use, so backwards every count is complete when its turn comes.
    for def in stencil.defs.handles().rev() {
        let Some(at) = evaluation.values.get(&def).cloned() else { continue };
        let mut by_shift: BTreeMap<i32, BTreeMap<Offset, u64>> = BTreeMap::new();
        for (offset, times) in at {
            by_shift.entry(offset.k).or_default().insert(offset, times);
        }
        for (shift, at) in by_shift {
            if let Some(nodes) = reached.defs.get(&(def, shift)) {
                evaluation.visit(stencil, &stencil.defs[def].body, nodes, &at);
            }
        }
    }
    evaluation
}

impl Evaluation {
    /// Counts a body that is evaluated at offsets, at each so many times if nothing is shared.
    fn visit(&mut self, stencil: &Stencil, body: &Body, reached: &[bool], at: &BTreeMap<Offset, u64>) {
        let all: u64 = at.values().fold(0, |sum, &times| sum.saturating_add(times));
        let own = operations(body, reached);
        self.once.add_all(&own, at.len() as u64);
        self.anew.add_all(&own, all);
        for (_, node) in body.iter().filter(|(id, _)| reached[id.index()]) {
            match node {
                // What a sweep carries is read from no field.
                Node::Read { field, .. } if stencil.fields[*field].role == Role::Carried => {}
                Node::Read { field, path, .. } => {
                    let place = stencil.fields[*field].place;
                    let reads = self.reads.entry(*field).or_default();
                    for offset in at.keys() {
                        *reads.entry(offset.plus(path.offset()).along(place)).or_default() += 1;
                    }
                    self.reads_anew = self.reads_anew.saturating_add(all);
                }
                Node::Use { def, path } => {
                    let values = self.values.entry(*def).or_default();
                    for (offset, times) in at {
                        let count = values.entry(offset.plus(path.offset())).or_default();
                        *count = count.saturating_add(*times);
                    }
                }
                _ => {}
            }
        }
    }

    /// How many distinct values are read from fields.
    pub fn distinct_reads(&self) -> usize {
        self.reads.values().map(BTreeMap::len).sum()
    }

    /// How many values, a definition at an offset each, are computed.
    pub fn distinct_values(&self) -> usize {
        self.values.values().map(BTreeMap::len).sum()
    }
}

/// The operations of a body's evaluated nodes.
pub fn operations(body: &Body, reached: &[bool]) -> Operations {
    let mut operations = Operations::default();
    for (id, node) in body.iter().filter(|(id, _)| reached[id.index()]) {
        let decided = match node {
            Node::Choose { yes, no, .. } => !(reached[yes.index()] && reached[no.index()]),
            _ => false,
        };
        if let (Some(operation), false) = (Operation::of(body, id), decided) {
            operations.add(operation, 1);
        }
    }
    operations
}
