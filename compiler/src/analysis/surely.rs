//! What is read wherever a stencil is computed: not behind a condition that only numbers decide.

use super::levels::Known;
use super::runs::runs;
use crate::ir::scalar::Value;
use crate::ir::{Body, DefId, FieldId, Handle, Node, NodeId, Path};
use std::collections::HashSet;
use std::ops::Range;

/// Some levels, and what is read on each of them.
pub type ReadOn = (Range<usize>, Vec<(FieldId, Path)>);

/// The reads of some levels, by runs of levels on which they are the same, always in the same order. What stands behind the question whether there is a neighbour
/// counts: it is read where there is one.
pub fn surely_read(known: &Known, levels: Range<usize>) -> Vec<ReadOn> {
    let reads = |run: Range<usize>| {
        let mut reader = Reader { known, level: run.start as i64, seen: HashSet::new(), reads: Vec::new() };
        reader.follow();
        (run, reader.reads)
    };
    runs(known, levels, None).into_iter().map(reads).collect()
}

struct Reader<'a, 'b> {
    known: &'a Known<'b>,
    level: i64,
    seen: HashSet<(DefId, Path)>,
    reads: Vec<(FieldId, Path)>,
}

impl Reader<'_, '_> {
    /// Looks at all that is stored, and at what that is made of.
    fn follow(&mut self) {
        let stencil = self.known.stencil();
        let mut waiting = Vec::new();
        stencil.stores.iter().for_each(|store| self.body(&store.body, &Path::default(), &mut waiting));
        while let Some((def, at)) = waiting.pop() {
            if self.seen.insert((def, at.clone())) {
                self.body(&stencil.defs[def].body, &at, &mut waiting);
            }
        }
    }

    /// Looks at a body at the end of a path; what it uses waits.
    fn body(&mut self, body: &Body, at: &Path, waiting: &mut Vec<(DefId, Path)>) {
        let values = self.known.values(body, self.level + i64::from(at.levels()));
        let truth = |node: NodeId| match values[node.index()] {
            Some(Value::Bool(truth)) => Some(truth),
            _ => None,
        };
        let mut nodes = vec![body.root()];
        while let Some(node) = nodes.pop() {
            match &body[node] {
                Node::Read { field, path, by: None, .. } => self.read(*field, at.then(path)),
                Node::Read { by: Some(by), .. } => nodes.push(*by),
                Node::Use { def, path } => waiting.push((*def, at.then(path))),
                Node::Choose { condition, yes, no } => match truth(*condition) {
                    Some(true) => nodes.push(*yes),
                    Some(false) => nodes.push(*no),
                    None if asks_for_neighbours(body, *condition) => nodes.push(*yes),
                    None => nodes.push(*condition),
                },
                // The right side is looked at where the left one leaves it open.
                Node::And(left, right) if truth(*left) == Some(true) => nodes.push(*right),
                Node::Or(left, right) if truth(*left) == Some(false) => nodes.push(*right),
                Node::And(left, _) | Node::Or(left, _) => nodes.push(*left),
                other => nodes.extend(other.operands()),
            }
        }
    }

    fn read(&mut self, field: FieldId, path: Path) {
        if !self.reads.iter().any(|(own, at)| (*own, at) == (field, &path)) {
            self.reads.push((field, path));
        }
    }
}

/// Whether a condition asks for nothing but neighbours.
fn asks_for_neighbours(body: &Body, condition: NodeId) -> bool {
    match &body[condition] {
        Node::Present { .. } => true,
        Node::And(left, right) => asks_for_neighbours(body, *left) && asks_for_neighbours(body, *right),
        _ => false,
    }
}
