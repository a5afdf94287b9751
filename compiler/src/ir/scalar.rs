//! What each operation means, to the last bit. The interpreter, the folding of constants and every device compute these.

use super::{Binary, Function, Kind, Node, Precision, Relation};
use crate::math::{choose, double, single};
use serde::{Deserialize, Serialize};

/// A number or truth value. A real one is exact in the precision that computed it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i32),
    /// A real number.
    Real(f64),
}

impl Value {
    /// What it is.
    pub fn kind(self) -> Kind {
        match self {
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Real(_) => Kind::Real,
        }
    }

    /// As a real number; 0 or 1 for a truth value.
    pub fn real(self) -> f64 {
        match self {
            Value::Bool(x) => f64::from(u8::from(x)),
            Value::Int(x) => f64::from(x),
            Value::Real(x) => x,
        }
    }

    /// As a whole number; 0 for a real one, which the types of the IR exclude.
    pub fn int(self) -> i32 {
        match self {
            Value::Int(x) => x,
            Value::Bool(_) | Value::Real(_) => 0,
        }
    }

    /// As a truth value; false for a number, which the types of the IR exclude.
    pub fn truth(self) -> bool {
        self == Value::Bool(true)
    }

    /// Rounded to `precision` if it is real.
    pub fn rounded(self, precision: Precision) -> Value {
        match (self, precision) {
            (Value::Real(x), Precision::F32) => Value::Real(f64::from(x as f32)),
            (value, _) => value,
        }
    }
}

/// The value of a node whose operands are known, or nothing for a leaf that is no literal.
pub fn apply(precision: Precision, node: &Node, operands: &[Value]) -> Option<Value> {
    match precision {
        Precision::F32 => apply_in::<f32>(node, operands),
        Precision::F64 => apply_in::<f64>(node, operands),
    }
}

fn apply_in<R: Real>(node: &Node, operands: &[Value]) -> Option<Value> {
    let real = |index: usize| R::from_f64(operands[index].real());
    let int = |index: usize| operands[index].int();
    let truth = |index: usize| operands[index].truth();
    let known = |x: R| Value::Real(x.to_f64());
    let of_reals = || operands.first().is_some_and(|value| value.kind() == Kind::Real);
    Some(match node {
        Node::Real(x) => known(R::from_f64(*x)),
        Node::Int(x) => Value::Int(*x),
        Node::Bool(x) => Value::Bool(*x),
        Node::Param(_) | Node::Level | Node::Count(_) => return None,
        Node::Read { .. } | Node::Use { .. } | Node::Present { .. } | Node::InZone(_) => return None,
        Node::ToReal(_) => known(R::from_i32(int(0))),
        Node::ToSingle(_) => known(R::from_f32(real(0).to_f32())),
        Node::Negate(_) if of_reals() => known(real(0).negate()),
        Node::Negate(_) => Value::Int(int(0).wrapping_neg()),
        Node::Not(_) => Value::Bool(!truth(0)),
        Node::Binary(op, ..) if of_reals() => known(R::binary(*op, real(0), real(1))),
        Node::Binary(op, ..) => Value::Int(int_binary(*op, int(0), int(1))),
        Node::Compare(relation, ..) if of_reals() => Value::Bool(compare(*relation, real(0), real(1))),
        Node::Compare(relation, ..) => Value::Bool(match operands[0] {
            Value::Bool(a) => compare(*relation, a, truth(1)),
            Value::Int(_) | Value::Real(_) => compare(*relation, int(0), int(1)),
        }),
        Node::And(..) => Value::Bool(truth(0) && truth(1)),
        Node::Or(..) => Value::Bool(truth(0) || truth(1)),
        Node::Call(function, _) if !of_reals() => {
            Value::Int(int_call(*function, int(0), operands.get(1).map_or(0, |value| value.int())))
        }
        // What takes fewer operands does not look at the others.
        Node::Call(function, _) => known(R::call(*function, [0, 1, 2].map(|n| real(n.min(operands.len() - 1))))),
        Node::Choose { .. } => operands[if truth(0) { 1 } else { 2 }],
    })
}

/// A floating-point type that `real` can be.
pub trait Real: Copy + PartialOrd + Send + Sync + std::fmt::Debug + 'static {
    /// From a double, rounded to nearest even.
    fn from_f64(x: f64) -> Self;
    /// To a double, exactly.
    fn to_f64(self) -> f64;
    /// From single precision, exactly.
    fn from_f32(x: f32) -> Self;
    /// To single precision, rounded to nearest even.
    fn to_f32(self) -> f32;
    /// From a whole number, rounded to nearest even.
    fn from_i32(x: i32) -> Self;
    /// `-x`: only the sign changes, of NaN too.
    fn negate(self) -> Self;
    /// Whether it is no number.
    fn is_nan(self) -> bool;
    /// `a + b`, `a - b`, `a * b`, `a / b`, rounded to nearest even; `a % b` with the sign of the divisor.
    fn binary(op: Binary, a: Self, b: Self) -> Self;
    /// A function of the first of these, as many as it takes.
    fn call(function: Function, operands: [Self; 3]) -> Self;
}

macro_rules! real {
    ($type:ty, $functions:ident, $from_f64:expr, $to_f64:expr, $from_f32:expr, $to_f32:expr) => {
        impl Real for $type {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                $from_f64(x)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                $from_f32(x)
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $to_f32(self)
            }
            #[inline(always)]
            fn from_i32(x: i32) -> Self {
                x as $type
            }
            #[inline(always)]
            fn negate(self) -> Self {
                -self
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
            #[inline(always)]
            fn binary(op: Binary, a: Self, b: Self) -> Self {
                match op {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                    Binary::Div => a / b,
                    Binary::Rem => {
                        // Rust's `%` is C's fmod, which is exact.
                        let rest = a % b;
                        let with_sign = choose((rest < 0.0) != (b < 0.0), rest + b, rest);
                        choose(rest == 0.0, rest.copysign(b), with_sign)
                    }
                }
            }
            #[inline(always)]
            fn call(function: Function, [a, b, c]: [Self; 3]) -> Self {
                match function {
                    // NaN if either is.
                    Function::Min => choose(a < b || a.is_nan(), a, b),
                    Function::Max => choose(a > b || a.is_nan(), a, b),
                    Function::Abs => a.abs(),
                    Function::Sqrt => a.sqrt(),
                    Function::Floor => a.floor(),
                    Function::Ceil => a.ceil(),
                    Function::Sign => choose(a > 0.0, 1.0, choose(a < 0.0, -1.0, a)),
                    // A NaN has no sign that devices agree on.
                    Function::CopySign => choose(b.is_nan(), a.abs(), a.copysign(b)),
                    Function::Fma => a.mul_add(b, c),
                    Function::Cbrt => $functions::cbrt(a),
                    Function::Exp => $functions::exp(a),
                    Function::Log => $functions::log(a),
                    Function::Pow => $functions::pow(a, b),
                    Function::Sin => $functions::sin(a),
                    Function::Cos => $functions::cos(a),
                    Function::Tan => $functions::tan(a),
                    Function::Atan => $functions::atan(a),
                    Function::Atan2 => $functions::atan2(a, b),
                    Function::Tanh => $functions::tanh(a),
                }
            }
        }
    };
}
real!(f64, double, |x| x, |x| x, f64::from, |x: f64| x as f32);
real!(f32, single, |x: f64| x as f32, f64::from, |x| x, |x| x);

/// A comparison.
#[inline(always)]
pub fn compare<T: PartialOrd>(relation: Relation, a: T, b: T) -> bool {
    match relation {
        Relation::Lt => a < b,
        Relation::Le => a <= b,
        Relation::Gt => a > b,
        Relation::Ge => a >= b,
        Relation::Eq => a == b,
        Relation::Ne => a != b,
    }
}

/// An operation on whole numbers: wraps. `a % 0` never comes up: lowering refuses it, and so does setting a parameter
/// that divides to 0; it is 0 here so that no input can stop the program. Whole numbers have no `/`.
#[inline(always)]
pub fn int_binary(op: Binary, a: i32, b: i32) -> i32 {
    match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Div | Binary::Rem => {
            let rest = if b == 0 { 0 } else { a.wrapping_rem(b) };
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
    }
}

/// The functions of whole numbers: `min`, `max` of two, `abs` and `sign` of the first.
#[inline(always)]
pub fn int_call(function: Function, a: i32, b: i32) -> i32 {
    match function {
        Function::Min => a.min(b),
        Function::Max => a.max(b),
        Function::Abs => a.wrapping_abs(),
        Function::Sign => a.signum(),
        Function::Sqrt | Function::Floor | Function::Ceil | Function::CopySign | Function::Fma | Function::Cbrt => a,
        Function::Exp | Function::Log | Function::Pow | Function::Sin | Function::Cos | Function::Tan => a,
        Function::Atan | Function::Atan2 | Function::Tanh => a,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_have_the_sign_of_the_divisor() {
        let rem = |a, b| f64::binary(Binary::Rem, a, b);
        assert_eq!(rem(7.5, 2.0), 1.5);
        assert_eq!(rem(-7.5, 2.0), 0.5);
        assert_eq!(rem(7.5, -2.0), -0.5);
        assert!(rem(-4.0, 2.0).is_sign_positive() && rem(4.0, -2.0).is_sign_negative());
        assert_eq!(int_binary(Binary::Rem, -1, 5), 4);
        assert_eq!(int_binary(Binary::Rem, 1, -5), -4);
        assert_eq!(int_binary(Binary::Rem, i32::MIN, -1), 0);
    }

    #[test]
    fn extremes_of_nan_are_nan() {
        for function in [Function::Min, Function::Max] {
            assert!(f64::call(function, [f64::NAN, 1.0, 0.0]).is_nan());
            assert!(f64::call(function, [1.0, f64::NAN, 0.0]).is_nan());
        }
        // Devices give a NaN different signs, so no function may show it.
        assert_eq!(f64::call(Function::CopySign, [-2.0, -f64::NAN, 0.0]), 2.0);
        // The rule decides which zero: `min(a, b)` is b unless a < b.
        assert!(f64::call(Function::Min, [-0.0, 0.0, 0.0]).is_sign_positive());
    }
}
