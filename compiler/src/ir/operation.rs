//! What evaluating a node costs.

use super::{Binary, Body, Kind, Node, NodeId};
use crate::named::named;

named! {
    /// What an evaluated node costs. Everything else is free: literals, signs, conversions, truth values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Operation {
        /// `a + b` and `a - b`, of reals.
        Add = "additions";
        /// `a * b`, of reals.
        Multiply = "multiplications";
        /// `a * b + c`, rounded once.
        Fma = "fused multiply-adds";
        /// `a / b`.
        Divide = "divisions";
        /// `a % b`, of reals.
        Remainder = "remainders";
        /// `sqrt`.
        Root = "square roots";
        /// `exp`, `log`, `sin` and their kin.
        Function = "exp, log, sin and their kin";
        /// `min` and `max`, of reals.
        MinMax = "min and max";
        /// `floor`, `ceil` and `sign`, of reals.
        Round = "floor, ceil and sign";
        /// A comparison of reals.
        Compare = "comparisons";
        /// A choice between two branches that both may be taken.
        Choose = "choices by data";
        /// Anything of whole numbers.
        Whole = "whole-number operations";
    }
}

impl Operation {
    /// Floating-point operations that it counts as.
    pub fn flops(self) -> u64 {
        match self {
            Operation::Fma => 2,
            Operation::Compare | Operation::Choose | Operation::Whole => 0,
            Operation::Add | Operation::Multiply | Operation::Divide | Operation::Remainder => 1,
            Operation::Root | Operation::Function | Operation::MinMax | Operation::Round => 1,
        }
    }

    /// Whether hardware takes many instructions for it, so that counting it as one flop flatters.
    pub fn is_slow(self) -> bool {
        use Operation::{Divide, Function, Remainder, Root};
        matches!(self, Divide | Remainder | Root | Function)
    }

    /// What evaluating a node costs by itself, without its operands.
    pub fn of(body: &Body, id: NodeId) -> Option<Operation> {
        let is_real = body.kind_of(id) == Kind::Real;
        match &body[id] {
            Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::Count(_) => None,
            Node::Read { .. } | Node::Present { .. } | Node::InZone(_) | Node::Use { .. } => None,
            Node::ToReal(_) | Node::ToSingle(_) => None,
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
