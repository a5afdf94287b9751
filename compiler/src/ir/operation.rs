//! What evaluating a node costs.

use super::{Binary, Body, Kind, Node, NodeId};

/// What an evaluated node costs. Everything else is free: literals, signs, conversions, truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `a + b` and `a - b`, of reals.
    Add,
    /// `a * b`, of reals.
    Multiply,
    /// `a * b + c`, rounded once.
    Fma,
    /// `a / b`.
    Divide,
    /// `a % b`, of reals.
    Remainder,
    /// `sqrt`.
    Root,
    /// `exp`, `log`, `sin` and their kin.
    Function,
    /// `min` and `max`, of reals.
    MinMax,
    /// `floor`, `ceil` and `sign`, of reals.
    Round,
    /// A comparison of reals.
    Compare,
    /// A choice between two branches that both may be taken.
    Choose,
    /// Anything of whole numbers.
    Whole,
}

impl Operation {
    /// Each, in the order that lists show.
    pub const ALL: [Operation; 12] = [
        Operation::Add,
        Operation::Multiply,
        Operation::Fma,
        Operation::Divide,
        Operation::Remainder,
        Operation::Root,
        Operation::Function,
        Operation::MinMax,
        Operation::Round,
        Operation::Compare,
        Operation::Choose,
        Operation::Whole,
    ];

    /// What lists call it, the floating-point operations that it counts as, and whether hardware takes many instructions for it.
    fn facts(self) -> (&'static str, u64, bool) {
        match self {
            Operation::Add => ("additions", 1, false),
            Operation::Multiply => ("multiplications", 1, false),
            Operation::Fma => ("fused multiply-adds", 2, false),
            Operation::Divide => ("divisions", 1, true),
            Operation::Remainder => ("remainders", 1, true),
            Operation::Root => ("square roots", 1, true),
            Operation::Function => ("exp, log, sin and their kin", 1, true),
            Operation::MinMax => ("min and max", 1, false),
            Operation::Round => ("floor, ceil and sign", 1, false),
            Operation::Compare => ("comparisons", 0, false),
            Operation::Choose => ("choices by data", 0, false),
            Operation::Whole => ("whole-number operations", 0, false),
        }
    }

    /// What lists call it.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Floating-point operations that it counts as.
    pub fn flops(self) -> u64 {
        self.facts().1
    }

    /// Whether hardware takes many instructions for it, so that counting it as one flop flatters.
    pub fn is_slow(self) -> bool {
        self.facts().2
    }

    /// What evaluating a node costs by itself, without its operands.
    pub fn of(body: &Body, id: NodeId) -> Option<Operation> {
        let is_real = body.kind_of(id) == Kind::Real;
        match &body[id] {
            Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::LevelCount => None,
            Node::Read { .. } | Node::Present { .. } | Node::Use { .. } | Node::ToReal(_) | Node::ToSingle(_) => None,
            Node::Not(_) | Node::And(..) | Node::Or(..) => None,
            Node::Negate(_) => (!is_real).then_some(Operation::Whole),
            Node::Binary(..) | Node::Call(..) if !is_real => Some(Operation::Whole),
            Node::Binary(Binary::Add | Binary::Sub, ..) => Some(Operation::Add),
            Node::Binary(Binary::Mul, ..) => Some(Operation::Multiply),
            Node::Binary(Binary::Div, ..) => Some(Operation::Divide),
            Node::Binary(Binary::Rem, ..) => Some(Operation::Remainder),
            Node::Compare(_, a, _) => match body.kind_of(*a) {
                Kind::Real => Some(Operation::Compare),
                Kind::Int => Some(Operation::Whole),
                Kind::Bool => None,
            },
            Node::Call(function, _) => function.cost(),
            Node::Choose { .. } => Some(Operation::Choose),
        }
    }
}
