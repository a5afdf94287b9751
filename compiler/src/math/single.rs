//! The functions in single precision: the same steps with shorter polynomials, but powers in double precision.

use super::operations::single::*;
use super::operations::{inverse_root_f32, narrowed, series, widened};
use super::turn::turn;
use super::wide::{exp2_wide, log2_wide};

type Real = f32;

/// An angle: `quadrant` quarter turns and `high + rest`, which is at most an eighth of a turn.
pub struct Angle {
    pub quadrant: i32,
    pub high: f32,
    pub rest: f32,
}

/// `exp(r) * 2^k` for small `r`. Two steps of scaling, so that what is subnormal is rounded once.
#[inline(always)]
pub fn exp_scaled(r: f32, k: i32) -> f32 {
    let p = series!(r; 0.0013930504, 0.008363252, 0.04166651, 0.16666576, 0.5);
    let value = 1.0 + fma(r * r, p, r);
    let half = k >> 1;
    value * power_of_two(half) * power_of_two(k - half)
}

/// `x = k ln(2) + r`, and `exp(r)` by a polynomial.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let bounded = choose(x > 110.0, 110.0, choose(x < -110.0, -110.0, x));
    let shifted = fma(bounded, 1.442695, 12582912.0);
    let k = shifted - 12582912.0;
    let r = fma(-k, 0.69314575, bounded);
    exp_scaled(fma(-k, 1.4286068e-6, r), low(shifted))
}

/// `x = 2^k m` with `m` around 1, and `log(m)` by the series of `s = (m - 1) / (m + 1)`.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let tiny = x < 1.1754944e-38;
    let scaled = choose(tiny, x * 8388608.0, x);
    let k = exponent(scaled);
    let f = mantissa(scaled) - 1.0;
    let e = real(k) - choose(tiny, 23.0, 0.0);
    let s = f / (f + 2.0);
    let z = s * s;
    let p = series!(z; 0.29586893, 0.39988548, 0.66666687);
    let half = 0.5 * f * f;
    let rest = half - fma(s, fma(p, z, half), e * 1.4286068e-6);
    let value = fma(e, 0.69314575, f - rest);
    choose(x > 0.0 && x < INFINITY, value, choose(x == 0.0, -INFINITY, choose(x < 0.0, NAN, x)))
}

/// `2^(y log2(|x|))`, found in double precision, with the sign of `x` where `y` is odd.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = abs(x);
    let finite = choose(a == 0.0, widened(-INFINITY), log2_wide(widened(a)));
    let product = widened(y) * choose(a < INFINITY, finite, widened(a));
    let least = choose(product < widened(-200.0), widened(-200.0), product);
    let size = narrowed(exp2_wide(choose(product > widened(200.0), widened(200.0), least)));

    let is_whole = floor(y) == y;
    let is_odd = is_whole & (floor(0.5 * y) != 0.5 * y);
    let with_sign = choose(is_odd, copysign(size, x), size);
    // Conditions are joined by `|` and `&`, which compilers do not make branches of.
    let value = choose((x < 0.0) & (a < INFINITY) & !is_whole, NAN, with_sign);
    choose((x == 1.0) | (y == 0.0) | ((x == -1.0) & (abs(y) == INFINITY)), 1.0, value)
}

/// What the sine of `r + rest`, at most an eighth of a turn, is more than `r`.
#[inline(always)]
pub fn sin_rest(r: f32, rest: f32) -> f32 {
    let z = r * r;
    let p = series!(z; -0.00019583864, 0.008332717, -0.16666664);
    fma(r * z, p, fma(-0.5 * z, rest, rest))
}

/// What the cosine of `r + rest`, at most an eighth of a turn, is more than `most`, which is `1 - r^2 / 2` rounded.
#[inline(always)]
pub fn cos_rest(r: f32, rest: f32, most: f32) -> f32 {
    let z = r * r;
    let p = series!(z; 2.4543946e-05, -0.0013888272, 0.041666664);
    fma(-0.5, z, 1.0 - most) + fma(z * z, p, -(r * rest))
}

/// The angle of a number beyond a few hundred, found in double precision.
#[cold]
#[inline(never)]
pub fn angle_far(x: f32) -> Angle {
    let exact = turn(widened(x));
    let quadrant = exact.quadrant;
    let high = narrowed(exact.high);
    let rest = narrowed(exact.high - widened(high));
    Angle { quadrant, high, rest }
}

/// What is left of `x` after whole quarter turns, as `turn` finds it in double precision.
#[inline(always)]
pub fn angle(x: f32) -> Angle {
    if abs(x) > 800.0 {
        return angle_far(x);
    }
    let shifted = fma(x, 0.63661975, 12582912.0);
    let k = shifted - 12582912.0;
    let first = fma(-k, 1.5707963, x);
    let second = fma(-k, 7.5495336e-8, first);
    let high = fma(-k, 2.563344e-12, second);
    let rest = fma(-k, 2.563344e-12, second - high) + fma(-k, 7.5495336e-8, first - second);
    let quadrant = low(shifted);
    Angle { quadrant, high, rest }
}

/// The sine of `r`, or its cosine where `is_cosine`, for at most an eighth of a turn. The two series have one form, so that
/// their coefficients are chosen and one of them is evaluated.
#[inline(always)]
pub fn sin_or_cos(r: f32, is_cosine: bool) -> f32 {
    let z = r * r;
    let mut p = choose(is_cosine, 2.4543946e-05, -0.00019583864);
    p = fma(p, z, choose(is_cosine, -0.0013888272, 0.008332717));
    p = fma(p, z, choose(is_cosine, 0.041666664, -0.16666664));
    p = fma(p, z, choose(is_cosine, -0.5, 0.0));
    fma(choose(is_cosine, z, r), p, choose(is_cosine, 1.0, r))
}

include!("angles.rs");

/// The angle whose tangent is `t`, which is between 0 and 1.
#[inline(always)]
pub fn atan_near(t: f32) -> f32 {
    let z = t * t;
    let p = series!(z;
        -0.002423103, 0.013648626, -0.03609236, 0.062678605, -0.08664453, 0.11035383, -0.14278696, 0.19999737,
        -0.3333333);
    fma(t * z, p, t)
}

/// Beyond 1, a quarter turn less the angle of `1 / x`.
#[inline(always)]
pub fn atan(x: f32) -> f32 {
    let a = abs(x);
    let is_steep = a > 1.0;
    let near = atan_near(choose(is_steep, 1.0 / a, a));
    copysign(choose(is_steep, 1.5707964 - (near + 4.371139e-8), near), x)
}

/// The angle of the smaller over the larger, turned into the octant of `(x, y)`.
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let a = abs(x);
    let b = abs(y);
    let is_steep = b > a;
    let less = choose(is_steep, a, b);
    let more = choose(is_steep, b, a);
    let near = atan_near(choose(more == 0.0, less, choose(less == more, 1.0, less / more)));
    let is_left = copysign(1.0, x) < 0.0;
    let start = choose(is_steep, 1.5707964, choose(is_left, 3.1415927, 0.0));
    let start_rest = choose(is_steep, -4.371139e-8, choose(is_left, -8.742278e-8, 0.0));
    let turned = choose(is_steep != is_left, -near, near);
    copysign(start + (turned + start_rest), y)
}

/// A polynomial near 0, and `1 - 2 / (exp(2 x) + 1)` further out.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = abs(x);
    let z = a * a;
    let p = series!(z; 0.002903271, -0.008839879, 0.021913318, -0.053977262, 0.13333392, -0.33333334);
    let far = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    copysign(choose(a < 0.55, fma(a * z, p, a), far), x)
}

/// `y`, the inverse of the root, by one step of Newton's kind from a guess; then one step from `x y^2`.
#[inline(always)]
pub fn cbrt(x: f32) -> f32 {
    let a = abs(x);
    let tiny = a < 1e-27;
    let scaled = choose(tiny, a * 1.152921504606847e18, a);
    let mut y = inverse_root_f32(scaled);
    let h = fma(-(scaled * y * y), y, 1.0);
    y = fma(y * h, fma(h, fma(h, 0.17283951, 0.22222222), 0.33333334), y);
    let root = scaled * y * y;
    let square = root * root;
    let left = fma(-fma(root, root, -square), root, fma(-square, root, scaled));
    let better = fma(left, 0.33333334 * (y * y), root);
    let value = copysign(choose(tiny, better * 9.536743e-7, better), x);
    choose(a > 0.0 && a < INFINITY, value, x)
}
