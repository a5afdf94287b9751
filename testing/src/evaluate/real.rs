//! The two precisions, by Rust's own operations.

use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use stencilc_compiler::ir::{Function, scalar};

/// What a floating-point type can do.
pub trait Real:
    Copy
    + PartialOrd
    + 'static
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
{
    /// Rounded to nearest even.
    fn of(x: f64) -> Self;
    /// Rounded to nearest even.
    fn of_whole(x: i32) -> Self;
    /// Exact.
    fn double(self) -> f64;
    /// `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;
    /// The magnitude.
    fn magnitude(self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// Rounded down.
    fn down(self) -> Self;
    /// Rounded up.
    fn up(self) -> Self;
    /// The magnitude with the sign of `other`.
    fn signed_like(self, other: Self) -> Self;
    /// One of the language's own algorithms, of one operand or two.
    fn own(function: Function, a: Self, b: Self) -> Self;
}

macro_rules! real {
    ($own:ty) => {
        impl Real for $own {
            fn of(x: f64) -> Self {
                x as $own
            }
            fn of_whole(x: i32) -> Self {
                x as $own
            }
            fn double(self) -> f64 {
                self.into()
            }
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            fn magnitude(self) -> Self {
                self.abs()
            }
            fn root(self) -> Self {
                self.sqrt()
            }
            fn down(self) -> Self {
                self.floor()
            }
            fn up(self) -> Self {
                self.ceil()
            }
            fn signed_like(self, other: Self) -> Self {
                // The sign of a NaN says nothing.
                if other.is_nan() { self.abs() } else { self.copysign(other) }
            }
            fn own(function: Function, a: Self, b: Self) -> Self {
                scalar::Real::call(function, [a, b, b])
            }
        }
    };
}
real!(f32);
real!(f64);

/// `a % b` with the sign of the divisor, 0 included.
pub fn remainder<R: Real>(a: R, b: R) -> R {
    let zero = R::of(0.0);
    let rest = a % b;
    if rest == zero {
        return zero.signed_like(b);
    }
    let turned = (rest < zero && b > zero) || (rest > zero && b < zero);
    if turned { rest + b } else { rest }
}

/// 1, -1, or `x` itself if it is 0 or no number.
pub fn sign<R: Real>(x: R) -> R {
    let zero = R::of(0.0);
    if x > zero {
        R::of(1.0)
    } else if x < zero {
        R::of(-1.0)
    } else {
        x
    }
}

/// `if a < b || a != a { a } else { b }`
#[allow(clippy::eq_op, reason = "the definition of the language, word by word")]
pub fn least<R: Real>(a: R, b: R) -> R {
    if a < b || a != a { a } else { b }
}

/// `if a > b || a != a { a } else { b }`
#[allow(clippy::eq_op, reason = "the definition of the language, word by word")]
pub fn most<R: Real>(a: R, b: R) -> R {
    if a > b || a != a { a } else { b }
}
