//! The functions in double precision.

use super::operations::double::*;
use super::operations::{entry, inverse_root_f64, series};
use super::turn::turn as angle;

type Real = f64;

/// `exp(r) * 2^k` for small `r`. Two steps of scaling, so that what is subnormal is rounded once.
#[inline(always)]
pub fn exp_scaled(r: f64, k: i32) -> f64 {
    let p = series!(r;
        2.5105421026898544e-08, 2.762020885344883e-07, 2.7557254801642484e-06, 2.4801520970632304e-05,
        0.00019841269875426533, 0.0013888888917506694, 0.008333333333325893, 0.04166666666662315,
        0.1666666666666667, 0.5000000000000001);
    let value = 1.0 + fma(r * r, p, r);
    let half = k >> 1;
    value * power_of_two(half) * power_of_two(k - half)
}

/// `x = k ln(2) + r`, and `exp(r)` by a polynomial.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let bounded = choose(x > 750.0, 750.0, choose(x < -750.0, -750.0, x));
    let shifted = fma(bounded, 1.4426950408889634, 6755399441055744.0);
    let k = shifted - 6755399441055744.0;
    let r = fma(-k, 0.6931471805598903, bounded);
    exp_scaled(fma(-k, 5.497923018708371e-14, r), low(shifted))
}

/// `x = 2^k m` with `m` around 1, and `log(m)` by the series of `s = (m - 1) / (m + 1)`.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    let tiny = x < 2.2250738585072014e-308;
    let scaled = choose(tiny, x * 18014398509481984.0, x);
    let k = exponent(scaled);
    let f = mantissa(scaled) - 1.0;
    let e = real(k) - choose(tiny, 54.0, 0.0);
    let s = f / (f + 2.0);
    let z = s * s;
    let p = series!(z;
        0.1461796478030114, 0.15331601402887865, 0.1818289260179483, 0.22222211090935115, 0.2857142862619172,
        0.3999999999989935, 0.666666666666667);
    let half = 0.5 * f * f;
    let rest = half - fma(s, fma(p, z, half), e * 5.497923018708371e-14);
    let value = fma(e, 0.6931471805598903, f - rest);
    choose(x > 0.0 && x < INFINITY, value, choose(x == 0.0, -INFINITY, choose(x < 0.0, NAN, x)))
}

/// `exp(y log(|x|))`, with the logarithm and the product in two numbers each, and the sign of `x` where `y` is odd.
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    let a = abs(x);
    let tiny = a < 2.2250738585072014e-308;
    let scaled = choose(tiny, a * 18014398509481984.0, a);
    let k = real(exponent(scaled)) - choose(tiny, 54.0, 0.0);
    let m = mantissa(scaled);
    let f = m - 1.0;
    let sum = m + 1.0;
    let inverse = 1.0 / sum;
    let s = f * inverse;
    let s_rest = inverse * fma(-s, m - (sum - 1.0), fma(-s, sum, f));
    let z = s * s;
    let z_rest = fma(2.0 * s, s_rest, fma(s, s, -z));
    // The series is s + s z (1/3 + z p).
    let p = series!(z;
        0.05794309087987663, 0.05860563134129403, 0.06667072801635779, 0.07692304910229869, 0.09090909078002987,
        0.11111111111383885, 0.14285714285713164, 0.2);
    let v = fma(p, z, 0.3333333333333333);
    let v_rest = fma(p, z, 0.3333333333333333 - v) + 1.850371707708594e-17;
    let w = s * z;
    let w_rest = fma(s, z_rest, fma(s_rest, z, fma(s, z, -w)));
    let q = w * v;
    let q_rest = fma(w, v_rest, fma(w_rest, v, fma(w, v, -q)));
    let t = s + q;
    let t_rest = s - t + q + (s_rest + q_rest);
    let whole = k * 0.6931471805598903;
    let log = fma(2.0, t, whole);
    let log_rest = fma(2.0, t, whole - log) + fma(k, 5.497923018708371e-14, 2.0 * t_rest);
    let logarithm = choose(a == 0.0, -INFINITY, choose(a < INFINITY, log, a));

    let product = y * logarithm;
    let bounded = choose(product > 1000.0, 1000.0, choose(product < -1000.0, -1000.0, product));
    let product_rest = choose(bounded == product, fma(y, log_rest, fma(y, logarithm, -product)), 0.0);
    let shifted = fma(bounded, 1.4426950408889634, 6755399441055744.0);
    let n = shifted - 6755399441055744.0;
    let r = fma(-n, 0.6931471805598903, bounded);
    let size = exp_scaled(fma(-n, 5.497923018708371e-14, r) + product_rest, low(shifted));

    let is_whole = floor(y) == y;
    let is_odd = is_whole && floor(0.5 * y) != 0.5 * y;
    let with_sign = choose(is_odd, copysign(size, x), size);
    let value = choose(x < 0.0 && a < INFINITY && !is_whole, NAN, with_sign);
    choose(x == 1.0 || y == 0.0 || (x == -1.0 && abs(y) == INFINITY), 1.0, value)
}

/// What the sine of `r + rest`, at most an eighth of a turn, is more than `r`.
#[inline(always)]
pub fn sin_rest(r: f64, rest: f64) -> f64 {
    let z = r * r;
    let p = series!(z;
        1.5919285713487644e-10, -2.5051151497621314e-08, 2.7557316223987385e-06, -0.00019841269837086805,
        0.00833333333333131, -0.16666666666666666);
    fma(r * z, p, fma(-0.5 * z, rest, rest))
}

/// What the cosine of `r + rest`, at most an eighth of a turn, is more than `most`, which is `1 - r^2 / 2` rounded.
#[inline(always)]
pub fn cos_rest(r: f64, rest: f64, most: f64) -> f64 {
    let z = r * r;
    let p = series!(z;
        -1.1381548878317389e-11, 2.0876127907563258e-09, -2.755731715858484e-07, 2.480158729846062e-05,
        -0.0013888888888887061, 0.041666666666666664);
    fma(-0.5, z, 1.0 - most) + fma(z * z, p, -(r * rest))
}

/// The sine of `r`, or its cosine where `is_cosine`, for at most an eighth of a turn. The two series have one form, so that
/// one of them is evaluated, with coefficients from a table.
#[inline(always)]
pub fn sin_or_cos(r: f64, is_cosine: bool) -> f64 {
    const SERIES: [[f64; 6]; 2] = [
        [
            1.5919285713487644e-10,
            -2.5051151497621314e-08,
            2.7557316223987385e-06,
            -0.00019841269837086805,
            0.00833333333333131,
            -0.16666666666666666,
        ],
        [
            -1.1381548878317389e-11,
            2.0876127907563258e-09,
            -2.755731715858484e-07,
            2.480158729846062e-05,
            -0.0013888888888887061,
            0.041666666666666664,
        ],
    ];
    let z = r * r;
    let mut p = entry(SERIES, is_cosine, 0);
    p = fma(p, z, entry(SERIES, is_cosine, 1));
    p = fma(p, z, entry(SERIES, is_cosine, 2));
    p = fma(p, z, entry(SERIES, is_cosine, 3));
    p = fma(p, z, entry(SERIES, is_cosine, 4));
    p = fma(p, z, entry(SERIES, is_cosine, 5));
    p = fma(p, z, choose(is_cosine, -0.5, 0.0));
    fma(choose(is_cosine, z, r), p, choose(is_cosine, 1.0, r))
}

include!("angles.rs");

/// The angle whose tangent is `t`, which is between 0 and 1.
#[inline(always)]
pub fn atan_near(t: f64) -> f64 {
    let z = t * t;
    let p = series!(z;
        1.861715499889663e-05, -0.0002052708619898856, 0.0010729944627307108, -0.0035588517244989335,
        0.008484707446291746, -0.015689156214044164, 0.023849846488605376, -0.031393119025214446,
        0.03756235148618498, -0.04263384508500889, 0.047387931699865035, -0.05258247057567916, 0.058815606503935136,
        -0.06666572422835207, 0.07692299754118705, -0.0909090864411851, 0.11111111095733142, -0.14285714285435647,
        0.19999999999998042, -0.3333333333333333);
    fma(t * z, p, t)
}

/// Beyond 1, a quarter turn less the angle of `1 / x`.
#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let a = abs(x);
    let is_steep = a > 1.0;
    let near = atan_near(choose(is_steep, 1.0 / a, a));
    copysign(choose(is_steep, 1.5707963267948966 - (near - 6.123233995736766e-17), near), x)
}

/// The angle of the smaller over the larger, turned into the octant of `(x, y)`.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    let a = abs(x);
    let b = abs(y);
    let is_steep = b > a;
    let less = choose(is_steep, a, b);
    let more = choose(is_steep, b, a);
    let near = atan_near(choose(more == 0.0, less, choose(less == more, 1.0, less / more)));
    let is_left = copysign(1.0, x) < 0.0;
    let start = choose(is_steep, 1.5707963267948966, choose(is_left, 3.141592653589793, 0.0));
    let start_rest = choose(is_steep, 6.123233995736766e-17, choose(is_left, 1.2246467991473532e-16, 0.0));
    let turned = choose(is_steep != is_left, -near, near);
    copysign(start + (turned + start_rest), y)
}

/// A polynomial near 0, and `1 - 2 / (exp(2 x) + 1)` further out.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let a = abs(x);
    let z = a * a;
    let p = series!(z;
        -2.053375787334839e-05, 8.500229463661287e-05, -0.00023455835230734448, 0.0005889065496866619,
        -0.001455654833588362, 0.0035921093291230027, -0.008863234298919706, 0.02186948848805152,
        -0.053968253967258226, 0.13333333333332462, -0.3333333333333333);
    let far = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    copysign(choose(a < 0.55, fma(a * z, p, a), far), x)
}

/// `y`, the inverse of the root, by two steps of Newton's kind from a guess; then one step from `x y^2`.
#[inline(always)]
pub fn cbrt(x: f64) -> f64 {
    let a = abs(x);
    let tiny = a < 1e-270;
    let scaled = choose(tiny, a * 2.037035976334486e90, a);
    let mut y = inverse_root_f64(scaled);
    let mut h = fma(-(scaled * y * y), y, 1.0);
    y = fma(y * h, fma(h, fma(h, 0.1728395061728395, 0.2222222222222222), 0.3333333333333333), y);
    h = fma(-(scaled * y * y), y, 1.0);
    y = fma(y * h, fma(h, 0.2222222222222222, 0.3333333333333333), y);
    let root = scaled * y * y;
    let square = root * root;
    let left = fma(-fma(root, root, -square), root, fma(-square, root, scaled));
    let better = fma(left, 0.3333333333333333 * (y * y), root);
    let value = copysign(choose(tiny, better * 7.888609052210118e-31, better), x);
    choose(a > 0.0 && a < INFINITY, value, x)
}
