//! Operations as C++ writes them; what nodes without operands are called is the caller's.

use crate::ir::{Binary, Binding, Body, Function, Kind, Node, NodeId, Precision, Relation, Stored, Texts};
use crate::plan::Math;
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

/// The text of a node whose operands' texts are known, where it is not to be as C++ writes it.
pub type Other<'a> = dyn FnMut(NodeId, &mut Texts) -> Option<(String, Binding)> + 'a;

/// The text of a whole body as one expression, choices and all; `leaf` names what has no operands and is no number.
pub fn written(
    body: &Body,
    precision: Precision,
    math: Math,
    helpers: &mut Helpers,
    leaf: &dyn Fn(&Node) -> (String, Binding),
    other: &mut Other,
) -> String {
    let mut texts = Texts::new(body);
    for (id, node) in body.iter() {
        let (text, binding) = match node {
            Node::Param(_) | Node::Level | Node::LevelCount => leaf(node),
            Node::Read { .. } | Node::Use { .. } | Node::Present { .. } => leaf(node),
            _ => match other(id, &mut texts) {
                Some(own) => own,
                None => operation(body, id, precision, math, &mut texts, helpers),
            },
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
    let mut helper = |name: &'static str, operands: &[NodeId], texts: &mut Texts| {
        helpers.insert(name);
        texts.call(name, operands)
    };
    // What devices round differently: the language's own, the device's in double and in single precision.
    let inexact =
        |[own, double, float]: [&'static str; 3], operands: &[NodeId], texts: &mut Texts, helpers: &mut Helpers| {
            match math {
                Math::Own => {
                    helpers.insert(own);
                    texts.call(own, operands)
                }
                Math::Device => texts.call(if single { float } else { double }, operands),
            }
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
        Node::Binary(op, a, b) => match (op, is_real(*a)) {
            (Binary::Rem, true) => helper("real_rem", &[*a, *b], texts),
            (_, true) => texts.infix(*a, op.symbol(), *b, op.binding()),
            (Binary::Rem, false) => helper("int_rem", &[*a, *b], texts),
            // Levels are far from overflowing; everything else wraps, which C++ leaves undefined.
            (Binary::Add | Binary::Sub, false) if is_small(body, *a) && is_small(body, *b) => {
                texts.infix(*a, op.symbol(), *b, op.binding())
            }
            (Binary::Add, false) => helper("int_add", &[*a, *b], texts),
            (Binary::Sub, false) => helper("int_sub", &[*a, *b], texts),
            (Binary::Mul | Binary::Div, false) => helper("int_mul", &[*a, *b], texts),
        },
        Node::Compare(relation, a, b) if may_be_extreme(body, *relation, *a, *b) => {
            helpers.insert("int_less");
            let (less, binding) = match relation {
                Relation::Lt | Relation::Ge => texts.call("int_less", &[*a, *b]),
                Relation::Gt | Relation::Le | Relation::Eq | Relation::Ne => texts.call("int_less", &[*b, *a]),
            };
            match relation {
                Relation::Ge | Relation::Le => (format!("!{less}"), Binding::Sign),
                Relation::Lt | Relation::Gt | Relation::Eq | Relation::Ne => (less, binding),
            }
        }
        Node::Compare(relation, a, b) => {
            // C++ compilers warn of comparisons in a row.
            let left = match may_be_alike(body, *relation, *a, *b) {
                true => helper("real_opaque", &[*a], texts).0,
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
        Node::Call(function, operands) => match (function, is_real(id)) {
            (Function::Min, true) => helper("real_min", operands, texts),
            (Function::Max, true) => helper("real_max", operands, texts),
            (Function::Sign, true) => helper("real_sign", operands, texts),
            (Function::Min, false) => helper("int_min", operands, texts),
            (Function::Max, false) => helper("int_max", operands, texts),
            (Function::Abs, false) => helper("int_abs", operands, texts),
            (Function::Sign, false) => helper("int_sign", operands, texts),
            (Function::Abs, true) => texts.call(if single { "fabsf" } else { "fabs" }, operands),
            (Function::Sqrt, _) => texts.call(if single { "sqrtf" } else { "sqrt" }, operands),
            (Function::Floor, _) => texts.call(if single { "floorf" } else { "floor" }, operands),
            (Function::Ceil, _) => texts.call(if single { "ceilf" } else { "ceil" }, operands),
            (Function::CopySign, _) => helper("real_copysign", operands, texts),
            (Function::Fma, _) => texts.call(if single { "fmaf" } else { "fma" }, operands),
            (Function::Exp, _) => inexact(["real_exp", "exp", "expf"], operands, texts, helpers),
            (Function::Log, _) => inexact(["real_log", "log", "logf"], operands, texts, helpers),
            (Function::Pow, _) => inexact(["real_pow", "pow", "powf"], operands, texts, helpers),
            (Function::Sin, _) => inexact(["real_sin", "sin", "sinf"], operands, texts, helpers),
            (Function::Cos, _) => inexact(["real_cos", "cos", "cosf"], operands, texts, helpers),
            (Function::Tan, _) => inexact(["real_tan", "tan", "tanf"], operands, texts, helpers),
            (Function::Atan, _) => inexact(["real_atan", "atan", "atanf"], operands, texts, helpers),
            (Function::Atan2, _) => inexact(["real_atan2", "atan2", "atan2f"], operands, texts, helpers),
            (Function::Tanh, _) => inexact(["real_tanh", "tanh", "tanhf"], operands, texts, helpers),
            (Function::Cbrt, _) => inexact(["real_cbrt", "cbrt", "cbrtf"], operands, texts, helpers),
        },
        Node::Choose { condition, yes, no } => {
            let condition = texts.operand(*condition, Binding::Or);
            let yes = texts.operand(*yes, Binding::Or);
            let no = texts.operand(*no, Binding::Or);
            (format!("{condition} ? {yes} : {no}"), Binding::Choice)
        }
    }
}

/// Whether a comparison of whole numbers might become a minimum or a maximum, together with a choice that need not stand
/// beside it: the prelude says why none may. Parameters and levels a few steps away are harmless, and easier to read.
fn may_be_extreme(body: &Body, relation: Relation, a: NodeId, b: NodeId) -> bool {
    let is_plain = |node: NodeId| matches!(body[node], Node::Level | Node::LevelCount | Node::Int(_) | Node::Param(_));
    let is_near = |node: NodeId| match body[node] {
        Node::Binary(Binary::Add | Binary::Sub, level, by) => is_plain(level) && matches!(body[by], Node::Int(_)),
        _ => is_plain(node),
    };
    let orders = matches!(relation, Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge);
    orders && body.kind_of(a) == Kind::Int && !(is_near(a) && is_near(b))
}

/// Whether a whole value is surely far from overflowing: a level, a number.
fn is_small(body: &Body, id: NodeId) -> bool {
    match &body[id] {
        Node::Level | Node::LevelCount => true,
        Node::Int(x) => x.unsigned_abs() < 1 << 24,
        _ => false,
    }
}

/// Whether a comparison of real numbers might find two operations on constants, known to make a NaN by nobody yet, and take
/// them for equal: the prelude says more. A constant comes about where a condition tells what a level or a field is.
fn may_be_alike(body: &Body, relation: Relation, a: NodeId, b: NodeId) -> bool {
    let is_plain =
        |node: NodeId| matches!(body[node], Node::Read { .. } | Node::Param(_) | Node::Real(_) | Node::ToReal(_));
    let holds_of_equals = matches!(relation, Relation::Eq | Relation::Ne | Relation::Le | Relation::Ge);
    holds_of_equals && body.kind_of(a) == Kind::Real && !is_plain(a) && !is_plain(b)
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
