//! Forms fused multiply-adds, so that every device rounds alike.
//!
//! `a*b + c`, `c + a*b`, `a*b - c` and `c - a*b` become one [`Function::Fma`] where product and sum stand in one body; of
//! two products the right one is fused. Changing a sign is exact, so subtraction is an fma with a negated operand.

use super::{Binary, Body, Function, Kind, Node, NodeId, Stencil};

/// `stencil` with its fused multiply-adds formed.
pub fn contract(stencil: &Stencil) -> Stencil {
    stencil.map_bodies(contract_body)
}

/// A body with its fused multiply-adds formed.
pub fn contract_body(body: &Body) -> Body {
    let mut contracted = Body::new();
    let mut renamed: Vec<NodeId> = Vec::with_capacity(body.len());
    for (id, node) in body.iter() {
        let (kind, span) = (body.kind_of(id), body.span_of(id));
        let product = |node: NodeId| match body[node] {
            Node::Binary(Binary::Mul, a, b) => Some((a, b)),
            _ => None,
        };
        let mapped = |node: NodeId| renamed[super::Handle::index(node)];
        let fused = match node {
            Node::Binary(op @ (Binary::Add | Binary::Sub), left, right) if kind == Kind::Real => {
                let mut negated = |node: NodeId| contracted.add(Node::Negate(mapped(node)), kind, body.span_of(node));
                if let Some((a, b)) = product(*right) {
                    let a = if *op == Binary::Sub { negated(a) } else { mapped(a) };
                    Some(vec![a, mapped(b), mapped(*left)])
                } else if let Some((a, b)) = product(*left) {
                    let c = if *op == Binary::Sub { negated(*right) } else { mapped(*right) };
                    Some(vec![mapped(a), mapped(b), c])
                } else {
                    None
                }
            }
            _ => None,
        };
        let node = fused.map_or_else(|| node.map_operands(mapped), |operands| Node::Call(Function::Fma, operands));
        renamed.push(contracted.add(node, kind, span));
    }
    contracted.pruned()
}
