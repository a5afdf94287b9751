//! Angles in double precision: what is left of a number after whole quarter turns.
//!
//! Up to a million the quarter turns are subtracted part by part, as W. J. Cody and W. Waite do in "Software Manual for the
//! Elementary Functions" (1980); beyond, by the method of M. H. Payne and R. N. Hanek, "Radian reduction for trigonometric
//! functions" (SIGNUM Newsletter 18, 1983).

use super::operations::double::*;
use super::operations::{bits, complement, product, product_high, real_of, sum, whole};

/// `quadrant` quarter turns and `high + rest`, which is at most an eighth of a turn.
pub struct Turn {
    pub quadrant: i32,
    pub high: f64,
    pub rest: f64,
}

/// The binary digits of `2 / pi`, 64 at a time; the first are those before the point.
#[inline(always)]
pub fn digits(n: i32) -> u64 {
    match n {
        1 => 0xa2f9836e4e441529,
        2 => 0xfc2757d1f534ddc0,
        3 => 0xdb6295993c439041,
        4 => 0xfe5163abdebbc561,
        5 => 0xb7246e3a424dd2e0,
        6 => 0x06492eea09d1921c,
        7 => 0xfe1deb1cb129a73e,
        8 => 0xe88235f52ebb4484,
        9 => 0xe99c7026b45f7e41,
        10 => 0x3991d639835339f4,
        11 => 0x9c845f8bbdf9283b,
        12 => 0x1ff897ffde05980f,
        13 => 0xef2f118b5a0a6d1f,
        14 => 0x6d367ecf27cb09b7,
        15 => 0x4f463f669e5fea2d,
        16 => 0x7527bac7ebe5f17b,
        17 => 0x3d0739f78a5292ea,
        18 => 0x6bfb5fb11f8d5d08,
        19 => 0x56033046fc7b6bab,
        _ => 0,
    }
}

/// 64 of the digits, from one of them on.
#[inline(always)]
pub fn digits_from(first: i32) -> u64 {
    let word = first >> 6;
    let shift = first & 63;
    (digits(word) << shift) | ((digits(word + 1) >> 1) >> (63 - shift))
}

/// With `x = m 2^e`, only those digits of `2 / pi` matter that `m 2^e` moves to the last two before the point, or behind it:
/// the others make whole turns. 192 of them leave more than 64 that count, however near `x` is to a whole quarter turn.
#[cold]
#[inline(never)]
pub fn reduce(x: f64) -> Turn {
    let m = (bits(x) & 0xfffffffffffff) | 0x10000000000000;
    let e = whole((bits(x) >> 52) & 2047) - 1075;
    let first = e + 62;
    let d0 = digits_from(first);
    let d1 = digits_from(first + 64);
    let d2 = digits_from(first + 128);
    // The product in units of four quarter turns, modulo 1: three words.
    let r2 = product(m, d2);
    let r1 = sum(product(m, d1), product_high(m, d2));
    let carry = choose(r1 < product_high(m, d2), 1, 0);
    let r0 = sum(sum(product(m, d0), product_high(m, d1)), carry);
    // Two binary digits are the quadrant; the others, a part of a quarter turn, are read as a number with a sign.
    let top = (r0 << 2) | (r1 >> 62);
    let next = (r1 << 2) | (r2 >> 62);
    let is_past = (top >> 63) == 1;
    let size = choose(is_past, complement(top), top);
    let size_next = choose(is_past, complement(next), next);
    let a = fma(real_of(size >> 32), 4294967296.0, real_of(size & 4294967295));
    let a_rest = fma(real_of(size >> 32), 4294967296.0, -a) + real_of(size & 4294967295);
    let b = fma(real_of(size_next >> 32), 4294967296.0, real_of(size_next & 4294967295)) * 5.421010862427522e-20;
    let part = (a + b) * 5.421010862427522e-20;
    let part_rest = (a - (a + b) + b + a_rest) * 5.421010862427522e-20;
    let most = part * 1.5707963267948966;
    let less = fma(part, 1.5707963267948966, -most) + fma(part, 6.123233995736766e-17, part_rest * 1.5707963267948966);
    let angle = most + less;
    let angle_rest = most - angle + less;
    let quarters = whole(r0 >> 62) + choose(is_past, 1, 0);
    let is_turned = is_past != (x < 0.0);
    let quadrant = choose(x < 0.0, -quarters, quarters);
    let finite = choose(abs(x) < INFINITY, angle, NAN);
    let high = choose(is_turned, -finite, finite);
    let rest = choose(is_turned, -angle_rest, angle_rest);
    Turn { quadrant, high, rest }
}

/// A quarter turn is the sum of three numbers. The first is subtracted exactly, since the difference has few digits; the
/// second has so few that what rounding it away leaves is exact, too. `high` alone is the angle to its last digit or two;
/// what the roundings leave goes to `rest`, for those who need more.
#[inline(always)]
pub fn turn(x: f64) -> Turn {
    if abs(x) > 1000000.0 {
        return reduce(x);
    }
    let shifted = fma(x, 0.6366197723675814, 6755399441055744.0);
    let k = shifted - 6755399441055744.0;
    let first = fma(-k, 1.5707963267948966, x);
    let second = fma(-k, 6.12323399538461e-17, first);
    let high = fma(-k, 3.5215598651832e-27, second);
    let rest = fma(-k, 3.5215598651832e-27, second - high) + fma(-k, 6.12323399538461e-17, first - second);
    let quadrant = whole(bits(shifted));
    Turn { quadrant, high, rest }
}
