//! Operations as C++ writes them; what nodes without operands are called is the caller's.

use super::prelude;
use crate::ir::{Binary, Binding, Body, Kind, Node, NodeId, Precision, Relation, Stored, Texts};
use crate::kernel::scalar::{is_small, may_be_alike, may_be_extreme};
use crate::kernel::{Function, Math, Type};
use std::collections::BTreeSet;

/// Names of the functions of the prelude that are called.
pub type Helpers = BTreeSet<&'static str>;

/// The type that values are computed in.
pub fn computing_type(kind: Kind, precision: Precision) -> &'static str {
    match (kind, precision) {
        (Kind::Real, Precision::F64) => "double",
        (Kind::Real, Precision::F32) => "float",
        (Kind::Int, _) => "int",
        (Kind::Bool, _) => "bool",
    }
}

/// The text of an element of a field as the value that it is.
pub fn read_as(text: String, stored: Stored, precision: Precision) -> String {
    match (stored, precision) {
        (Stored::F32, Precision::F64) => format!("double({text})"),
        (Stored::F64, Precision::F32) => format!("float({text})"),
        (Stored::Bool, _) => format!("({text} != 0)"),
        (Stored::Real | Stored::F32 | Stored::F64 | Stored::Int, _) => text,
    }
}

/// The text of a value as an element of a field holds it.
pub fn stored_as(text: String, stored: Stored, precision: Precision) -> String {
    match (stored, precision) {
        (Stored::F32, Precision::F64) => format!("float({text})"),
        (Stored::F64, Precision::F32) => format!("double({text})"),
        (Stored::Bool, _) => format!("({text}) ? 1 : 0"),
        (Stored::Real | Stored::F32 | Stored::F64 | Stored::Int, _) => text,
    }
}

/// The text of a whole body as one expression, choices and all; `leaf` names what has no operands and is no number.
pub fn written(
    body: &Body,
    precision: Precision,
    math: Math,
    helpers: &mut Helpers,
    leaf: &dyn Fn(&Node) -> (String, Binding),
) -> String {
    let mut texts = Texts::new(body);
    for (id, node) in body.iter() {
        let (text, binding) = match node {
            Node::Param(_) | Node::Level | Node::LevelCount => leaf(node),
            Node::Read { .. } | Node::Use { .. } | Node::Present { .. } => leaf(node),
            _ => operation(body, id, precision, math, &mut texts, helpers),
        };
        texts.add(text, binding);
    }
    texts.finish().0
}

/// The text of a literal or an operation whose operands' texts are known.
pub fn operation(
    body: &Body,
    id: NodeId,
    precision: Precision,
    math: Math,
    texts: &mut Texts,
    helpers: &mut Helpers,
) -> (String, Binding) {
    let single = precision == Precision::F32;
    let is_real = |node: NodeId| body.kind_of(node) == Kind::Real;
    let mut call = |function: Function, operands: &[NodeId], texts: &mut Texts| {
        let kind = operands.first().map_or(body.kind_of(id), |&operand| body.kind_of(operand));
        let name = prelude::function_name(function, Type::computing(kind, precision));
        helpers.insert(name);
        texts.call(name, operands)
    };
    match &body[id] {
        Node::Real(x) => real(*x, precision),
        Node::Int(x) => int(*x),
        Node::Bool(x) => (x.to_string(), Binding::Atom),
        // Leaves, which the caller names.
        Node::Param(_) | Node::Level | Node::LevelCount => (String::new(), Binding::Atom),
        Node::Read { .. } | Node::Use { .. } | Node::Present { .. } => (String::new(), Binding::Atom),
        Node::ToReal(a) => texts.call(computing_type(Kind::Real, precision), &[*a]),
        Node::ToSingle(a) if single => (texts.operand(*a, Binding::Atom), Binding::Atom),
        Node::ToSingle(a) => {
            let (text, _) = texts.call("float", &[*a]);
            (format!("double({text})"), Binding::Atom)
        }
        Node::Negate(a) if is_real(*a) => texts.prefix("-", *a),
        Node::Negate(a) => {
            helpers.insert("int_sub");
            let operand = texts.operand(*a, Binding::Choice);
            (format!("int_sub(0, {operand})"), Binding::Atom)
        }
        Node::Not(a) => texts.prefix("!", *a),
        Node::Binary(Binary::Rem, a, b) => call(Function::Rem, &[*a, *b], texts),
        Node::Binary(op, a, b) if is_real(*a) => texts.infix(*a, op.symbol(), *b, op.binding()),
        Node::Binary(op @ (Binary::Add | Binary::Sub), a, b) if is_small(body, *a, *b) => {
            texts.infix(*a, op.symbol(), *b, op.binding())
        }
        Node::Binary(Binary::Add, a, b) => call(Function::WrappingAdd, &[*a, *b], texts),
        Node::Binary(Binary::Sub, a, b) => call(Function::WrappingSub, &[*a, *b], texts),
        Node::Binary(Binary::Mul | Binary::Div, a, b) => call(Function::WrappingMul, &[*a, *b], texts),
        Node::Compare(relation, a, b) if may_be_extreme(body, *relation, *a, *b) => {
            let (less, binding) = match relation {
                Relation::Lt | Relation::Ge => call(Function::Less, &[*a, *b], texts),
                Relation::Gt | Relation::Le | Relation::Eq | Relation::Ne => call(Function::Less, &[*b, *a], texts),
            };
            match relation {
                Relation::Ge | Relation::Le => (format!("!{less}"), Binding::Sign),
                Relation::Lt | Relation::Gt | Relation::Eq | Relation::Ne => (less, binding),
            }
        }
        Node::Compare(relation, a, b) => {
            // C++ compilers warn of comparisons in a row.
            let left = match may_be_alike(body, *relation, *a, *b) {
                true => call(Function::Opaque, &[*a], texts).0,
                false => texts.operand(*a, Binding::Sum),
            };
            let right = texts.operand(*b, Binding::Sum);
            (format!("{left} {} {right}", relation.symbol()), relation.binding())
        }
        Node::And(a, b) => texts.infix(*a, "&&", *b, Binding::And),
        Node::Or(a, b) => {
            // C++ compilers warn of `a && b || c` without parentheses.
            let mut side = |id: NodeId| texts.operand(id, Binding::Equality);
            let (left, right) = (side(*a), side(*b));
            (format!("{left} || {right}"), Binding::Or)
        }
        Node::Call(function, operands) => call(Function::Scalar(*function, math), operands, texts),
        Node::Choose { condition, yes, no } => {
            let condition = texts.operand(*condition, Binding::Or);
            let yes = texts.operand(*yes, Binding::Or);
            let no = texts.operand(*no, Binding::Or);
            (format!("{condition} ? {yes} : {no}"), Binding::Choice)
        }
    }
}

/// A real number, exact in the precision.
pub fn real(x: f64, precision: Precision) -> (String, Binding) {
    if x.is_nan() {
        // Not a quotient: ptxas 13.0 compares one of zeros with itself as if it were a number.
        let text = if precision == Precision::F32 { "nanf(\"\")" } else { "nan(\"\")" };
        return (text.into(), Binding::Atom);
    }
    let sign = if x.is_sign_negative() { "-" } else { "" };
    let magnitude = match (x.is_infinite(), precision) {
        (true, Precision::F64) => "(1.0 / 0.0)".to_owned(),
        (true, Precision::F32) => "(1.0f / 0.0f)".to_owned(),
        (false, Precision::F64) => format!("{:?}", x.abs()),
        (false, Precision::F32) => format!("{:?}f", x.abs() as f32),
    };
    let binding = if sign.is_empty() { Binding::Atom } else { Binding::Sign };
    (format!("{sign}{magnitude}"), binding)
}

/// A whole number.
fn int(x: i32) -> (String, Binding) {
    match x {
        // C++ reads -2147483648 as the negation of a number that does not fit.
        i32::MIN => ("(-2147483647 - 1)".into(), Binding::Atom),
        -2_147_483_647..0 => (x.to_string(), Binding::Sign),
        0.. => (x.to_string(), Binding::Atom),
    }
}
