//! Computes what is constant, in the precision that everything else is computed in, operation by operation.

use super::scalar::{Value, apply};
use super::{Body, Handle, Node, NodeId, Precision, Stencil};

/// What the definitions of a stencil are worth that is still being made: each is looked at once, however often one asks.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    values: Vec<Option<Value>>,
}

impl Constants {
    /// The value of a body of `stencil` that is constant, in double precision.
    pub fn value(&mut self, stencil: &Stencil, body: &Body) -> Option<Value> {
        for (_, def) in stencil.defs.iter().skip(self.values.len()) {
            let value = literal(&fold_body(&def.body, Precision::F64, &self.values), Precision::F64);
            self.values.push(value);
        }
        literal(&fold_body(body, Precision::F64, &self.values), Precision::F64)
    }
}

fn literal(body: &Body, precision: Precision) -> Option<Value> {
    body.literal().and_then(|literal| apply(precision, literal, &[]))
}

/// `stencil` with its constants computed. A definition whose body is a literal is replaced by it where it is used.
pub fn fold(stencil: &Stencil, precision: Precision) -> Stencil {
    let defs = stencil.of_defs(|body, defs| literal(&fold_body(body, precision, defs), precision));
    stencil.map_bodies(|body| fold_body(body, precision, &defs))
}

/// A body with its constants computed, given the values of the definitions that are constant.
pub fn fold_body(body: &Body, precision: Precision, defs: &[Option<Value>]) -> Body {
    let mut folded = Body::new();
    let mut values: Vec<Option<Value>> = Vec::with_capacity(body.len());
    let mut renamed: Vec<NodeId> = Vec::with_capacity(body.len());
    for (id, node) in body.iter() {
        let (kind, span) = (body.kind_of(id), body.span_of(id));
        let operands: Option<Vec<Value>> = node.operands().iter().map(|operand| values[operand.index()]).collect();
        // A known condition chooses a branch even where the other, or the branch itself, is not constant.
        let chosen = match node {
            Node::Choose { condition, yes, no } => {
                values[condition.index()].map(|value| if value.truth() { *yes } else { *no })
            }
            _ => None,
        };
        let value = match (node, chosen) {
            (_, Some(branch)) => values[branch.index()],
            (Node::Use { def, .. }, None) => defs[def.index()],
            _ => operands.and_then(|operands| apply(precision, node, &operands)),
        };
        values.push(value);
        renamed.push(match (value, chosen) {
            (Some(value), _) => folded.add(Node::literal(value), kind, span),
            (None, Some(branch)) => renamed[branch.index()],
            (None, None) => folded.add(node.map_operands(|operand| renamed[operand.index()]), kind, span),
        });
    }
    let root = renamed.last().copied();
    root.map_or(folded.clone(), |root| folded.rooted(root))
}
