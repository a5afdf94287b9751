//! What the functions are made of: operations that every device computes alike. `templates/math.cu` has the same for C++.

/// A polynomial in `x`, by its coefficients from the highest on.
macro_rules! series {
    ($x:ident; $first:expr, $($next:expr),+) => {{
        let mut p = $first;
        $(p = fma(p, $x, $next);)+
        p
    }};
}
pub(super) use series;

/// Declares functions that are one expression each: they are always inlined.
macro_rules! inlined {
    ($($(#[$doc:meta])* $name:ident($($x:ident: $type:ty),*) -> $result:ty = $value:expr;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($($x: $type),*) -> $result {
            $value
        }
    )* };
}

macro_rules! operations {
    ($module:ident, $real:ty, $bits:ty) => {
        #[doc = concat!("Of `", stringify!($real), "`.")]
        pub mod $module {
            pub use super::choose;

            pub const INFINITY: $real = <$real>::INFINITY;
            pub const NAN: $real = <$real>::NAN;
            const DIGITS: u32 = <$real>::MANTISSA_DIGITS - 1;
            const ONE: $bits = (1.0 as $real).to_bits();
            /// The square root of 1/2: mantissas are from here to twice as much.
            const LEAST: $bits = (std::f64::consts::FRAC_1_SQRT_2 as $real).to_bits();

            inlined! {
                fma(a: $real, b: $real, c: $real) -> $real = a.mul_add(b, c);
                abs(x: $real) -> $real = x.abs();
                floor(x: $real) -> $real = x.floor();
                copysign(x: $real, sign: $real) -> $real = x.copysign(sign);
                real(n: i32) -> $real = n as $real;
                /// The lowest binary digits of a number to which 1.5 * 2^52 (or 2^23) was added: the number as a whole one.
                low(x: $real) -> i32 =
                    x.to_bits().wrapping_sub((1.5 as $real * (1u64 << DIGITS) as $real).to_bits()) as i32;
                /// `2^k`; anything if that is no normal number.
                power_of_two(k: i32) -> $real = <$real>::from_bits(((k as u32 as $bits) << DIGITS).wrapping_add(ONE));
                /// `k` of `2^k m` with `m` around 1; anything for what is no normal positive number.
                exponent(x: $real) -> i32 = (x.to_bits().wrapping_sub(LEAST).cast_signed() >> DIGITS) as i32;
            }

            /// `m` of `2^k m`, from `sqrt(1/2)` to `sqrt(2)`; anything for what is no normal positive number.
            #[inline(always)]
            pub fn mantissa(x: $real) -> $real {
                let k = x.to_bits().wrapping_sub(LEAST) >> DIGITS << DIGITS;
                <$real>::from_bits(x.to_bits().wrapping_sub(k))
            }
        }
    };
}
operations!(double, f64, u64);
operations!(single, f32, u32);

/// One of two values, both of which are computed.
#[inline(always)]
pub fn choose<T>(condition: bool, yes: T, no: T) -> T {
    if condition { yes } else { no }
}

/// An entry of one of two rows of a table. A GPU loads it, since each choice between two numbers costs it instructions; here
/// choosing lets the compiler work on many numbers at once.
#[inline(always)]
pub fn entry<const N: usize>(table: [[f64; N]; 2], second: bool, n: usize) -> f64 {
    choose(second, table[1][n], table[0][n])
}

/// A number about `1 / cbrt(x)`, off by less than 4%: a third of the exponent, by a division of all binary digits. The
/// constant makes the error least.
#[inline(always)]
pub fn inverse_root_f64(x: f64) -> f64 {
    let high = (x.to_bits() >> 32) as u32;
    f64::from_bits(u64::from(1_430_186_309 - high / 3) << 32)
}

inlined! {
    /// The same in single precision.
    inverse_root_f32(x: f32) -> f32 = f32::from_bits(1_419_900_111 - x.to_bits() / 3);
    /// From single precision to double, exactly.
    widened(x: f32) -> f64 = f64::from(x);
    /// From double precision to single, rounded to nearest even.
    narrowed(x: f64) -> f32 = x as f32;
    /// The binary digits of a number.
    bits(x: f64) -> u64 = x.to_bits();
    /// The number of these binary digits.
    number(bits: u64) -> f64 = f64::from_bits(bits);
    /// The lower half of a word as a whole number.
    whole(word: u64) -> i32 = word as i32;
    /// A word below 2^53 as a real number.
    real_of(word: u64) -> f64 = word as f64;
    /// Each binary digit the other way.
    complement(a: u64) -> u64 = !a;
    /// The lower word of a sum.
    sum(a: u64, b: u64) -> u64 = a.wrapping_add(b);
    /// The lower word of a product.
    product(a: u64, b: u64) -> u64 = a.wrapping_mul(b);
    /// The upper word of a product.
    product_high(a: u64, b: u64) -> u64 = ((u128::from(a) * u128::from(b)) >> 64) as u64;
}
