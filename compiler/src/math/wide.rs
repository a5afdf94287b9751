//! Logarithms and powers of 2 in double precision, as exact as single precision needs: a power computed with them is
//! rounded once, and costs less than one that carries every number as two single ones.

use super::operations::double::*;
use super::operations::{bits, number, series, sum, whole};

/// The logarithm to base 2 of a normal positive number, to 35 binary digits: of `2^k m` with `m` around 1 it is
/// `k + log2(m)`, and `log2(m)` a polynomial in `m - 1`.
#[inline(always)]
pub fn log2_wide(x: f64) -> f64 {
    // `m` is from the square root of 1/2 on, of which the upper half of the digits will do.
    let digits = sum(bits(x), 0x00095f6200000000);
    let k = real(whole(digits >> 52) - 1023);
    let f = number(sum(digits & 0xfffffffffffff, 0x3fe6a09e00000000)) - 1.0;
    let p = series!(f;
        0.07737075520023586, -0.1428397773688408, 0.14474852018276538, -0.14315637785852, 0.15876977738152234,
        -0.18030060672083717, 0.20617536134335687, -0.24045316542436554, 0.2885372934204561, -0.36067367483108104,
        0.48089836139571956, -0.7213475208687257, 1.4426950408687058);
    fma(f, p, k)
}

/// `2^x` to 29 binary digits for `x` from -1000 to 1000, and NaN of NaN.
#[inline(always)]
pub fn exp2_wide(x: f64) -> f64 {
    let shifted = x + 6755399441055744.0;
    let r = x - (shifted - 6755399441055744.0);
    let p = series!(r;
        0.0001534582796604524, 0.0013399931670741378, 0.009618488893398716, 0.05550328775951962,
        0.24022646891345875, 0.6931472057376675, 1.0000000005539897);
    p * number(sum(bits(shifted) << 52, 0x3ff0000000000000))
}
