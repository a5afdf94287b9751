//! Bodies: written expressions, as nodes in operand-first order.

use super::{DefId, FieldId, Function, Handle, NodeId, ParamId, Path, scalar};
use crate::ir::mesh::Zones;
use crate::ir::program::GridAxis;
use crate::named::named;
use crate::source::Span;
use serde::Serialize;
use std::collections::BTreeSet;

named! {
    /// What one computes with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        /// A floating-point number of the chosen [`Precision`](super::Precision).
        Real = "real";
        /// A 32-bit integer.
        Int = "int";
        /// A truth value.
        Bool = "bool";
    }
}

named! {
    /// An operation on two numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Binary {
        /// `a + b`
        Add = "+";
        /// `a - b`
        Sub = "-";
        /// `a * b`
        Mul = "*";
        /// `a / b`, of reals only.
        Div = "/";
        /// `a % b`, with the sign of b.
        Rem = "%";
    }

    /// A comparison of two numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Relation {
        /// `a < b`
        Lt = "<";
        /// `a <= b`
        Le = "<=";
        /// `a > b`
        Gt = ">";
        /// `a >= b`
        Ge = ">=";
        /// `a == b`
        Eq = "==";
        /// `a != b`
        Ne = "!=";
    }
}

/// One written expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    pub(super) nodes: Vec<Node>,
    pub(super) kinds: Vec<Kind>,
    pub(super) spans: Vec<Span>,
}

/// A step of an expression. Operands are earlier nodes of the same body.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A real number, not yet rounded to the precision.
    Real(f64),
    /// A whole number.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A parameter.
    Param(ParamId),
    /// `k`, the level of the cell where the body is evaluated.
    Level,
    /// `nk`, the number of levels; `ni` and `nj`, the numbers of columns along i and j, stand in [bounds](super::Bound) alone.
    Count(GridAxis),
    /// A field where the path leads.
    Read {
        /// An `in` or `inout` field.
        field: FieldId,
        /// From the cell where the body is evaluated.
        path: Path,
        /// Which of its numbers there: 0 of a field that has one. Of a field on a map, slot after slot.
        part: u32,
        /// By how many levels further it is read, where data says so, or where a level is said by its number: then that is the number less
        /// [`Node::Level`]. Of what lies beyond the field's levels, the nearest is read.
        by: Option<NodeId>,
    },
    /// Whether a path through a mesh leads to an element; false where it meets a hole.
    Present {
        /// From the element where the body is evaluated.
        path: Path,
    },
    /// Whether the element where the body is evaluated is in one of some zones of its set.
    InZone(Zones),
    /// A definition's value where the path leads.
    Use {
        /// An earlier definition.
        def: DefId,
        /// From the cell where the body is evaluated.
        path: Path,
    },
    /// A whole number as a real one.
    ToReal(NodeId),
    /// A real number rounded to single precision (`const c: f32`).
    ToSingle(NodeId),
    /// `-a`
    Negate(NodeId),
    /// `!a`
    Not(NodeId),
    /// An operation on two numbers of one kind.
    Binary(Binary, NodeId, NodeId),
    /// A comparison of two values of one kind.
    Compare(Relation, NodeId, NodeId),
    /// `a && b`; b counts only where a is true.
    And(NodeId, NodeId),
    /// `a || b`; b counts only where a is false.
    Or(NodeId, NodeId),
    /// A function of as many operands as it takes.
    Call(Function, Vec<NodeId>),
    /// One of two branches.
    Choose {
        /// Which.
        condition: NodeId,
        /// If it is true.
        yes: NodeId,
        /// If it is false.
        no: NodeId,
    },
}

impl Node {
    /// A literal.
    pub fn literal(value: scalar::Value) -> Node {
        match value {
            scalar::Value::Real(x) => Node::Real(x),
            scalar::Value::Int(x) => Node::Int(x),
            scalar::Value::Bool(x) => Node::Bool(x),
        }
    }

    /// The operands, in order.
    pub fn operands(&self) -> Vec<NodeId> {
        match self {
            Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::Count(_) => Vec::new(),
            Node::Read { by, .. } => by.iter().copied().collect(),
            Node::Present { .. } | Node::InZone(_) | Node::Use { .. } => Vec::new(),
            Node::ToReal(a) | Node::ToSingle(a) | Node::Negate(a) | Node::Not(a) => vec![*a],
            Node::Binary(_, a, b) | Node::Compare(_, a, b) | Node::And(a, b) | Node::Or(a, b) => vec![*a, *b],
            Node::Call(_, operands) => operands.clone(),
            Node::Choose { condition, yes, no } => vec![*condition, *yes, *no],
        }
    }

    /// The same node with other operands.
    pub fn map_operands(&self, mut map: impl FnMut(NodeId) -> NodeId) -> Node {
        let mut node = self.clone();
        match &mut node {
            Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::Count(_) => {}
            Node::Read { by, .. } => {
                if let Some(by) = by {
                    *by = map(*by);
                }
            }
            Node::Present { .. } | Node::InZone(_) | Node::Use { .. } => {}
            Node::ToReal(a) | Node::ToSingle(a) | Node::Negate(a) | Node::Not(a) => *a = map(*a),
            Node::Binary(_, a, b) | Node::Compare(_, a, b) | Node::And(a, b) | Node::Or(a, b) => {
                (*a, *b) = (map(*a), map(*b));
            }
            Node::Call(_, operands) => operands.iter_mut().for_each(|a| *a = map(*a)),
            Node::Choose { condition, yes, no } => {
                (*condition, *yes, *no) = (map(*condition), map(*yes), map(*no));
            }
        }
        node
    }
}

impl Body {
    /// An empty body, which is not valid until it has a node.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a node.
    pub fn add(&mut self, node: Node, kind: Kind, span: Span) -> NodeId {
        self.nodes.push(node);
        self.kinds.push(kind);
        self.spans.push(span);
        NodeId::new(self.nodes.len() - 1)
    }

    /// The node whose value is the body's.
    pub fn root(&self) -> NodeId {
        NodeId::new(self.nodes.len() - 1)
    }

    /// What the body's value is.
    pub fn kind(&self) -> Kind {
        self.kind_of(self.root())
    }

    /// What a node's value is.
    pub fn kind_of(&self, node: NodeId) -> Kind {
        self.kinds[node.index()]
    }

    /// Where a node is written.
    pub fn span_of(&self, node: NodeId) -> Span {
        self.spans[node.index()]
    }

    /// The nodes in operand-first order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId::new(index), node))
    }

    /// The nodes in operand-first order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Adds the nodes of another body; gives the number of its value here.
    pub fn append(&mut self, other: &Body) -> NodeId {
        let first = self.len();
        for (id, node) in other.iter() {
            let node = node.map_operands(|operand| NodeId::new(first + operand.index()));
            self.add(node, other.kind_of(id), other.span_of(id));
        }
        self.root()
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the value of `root` is made of what a field holds, and not of numbers alone that are known without any.
    pub fn is_data(&self, root: NodeId) -> bool {
        self.rooted(root).reads().next().is_some()
    }

    /// The body without nodes that its value does not need.
    pub fn pruned(&self) -> Body {
        self.rooted(self.root())
    }

    /// The body whose value is that of `root`, without nodes that it does not need.
    pub fn rooted(&self, root: NodeId) -> Body {
        // Only what is needed is looked at: of a body that holds a long vector, each part is taken by itself.
        let mut waiting = BTreeSet::from([root]);
        let mut needed = Vec::new();
        while let Some(id) = waiting.pop_last() {
            waiting.extend(self[id].operands());
            needed.push(id);
        }
        needed.reverse();
        let renamed = |operand: NodeId| needed.binary_search(&operand).map_or(operand, NodeId::new);
        let mut body = Body::new();
        for &id in &needed {
            body.add(self[id].map_operands(renamed), self.kind_of(id), self.span_of(id));
        }
        body
    }

    /// The literal that the body is, if it is one.
    pub fn literal(&self) -> Option<&Node> {
        match self.nodes.last() {
            Some(node @ (Node::Real(_) | Node::Int(_) | Node::Bool(_))) => Some(node),
            _ => None,
        }
    }
}

impl std::ops::Index<NodeId> for Body {
    type Output = Node;
    fn index(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }
}
