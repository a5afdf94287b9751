//! Reproducible pseudo-random fields.
//!
//! Every number is a function of the seed, the field's name and the element's index alone, so that
//! fields can be filled in parallel, in any order and on any machine with the same result.

use rayon::prelude::*;

use crate::array::{Data, Element};

/// The increment of splitmix64: 2⁶⁴ divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// `len` pseudo-random elements of the field `name`.
///
/// Reals are uniform in `[low, high)`, integers are uniform among the whole numbers in
/// `[low, high)`, truth values are fair and ignore the bounds. An f32 is the f64 of the same seed,
/// name and index, rounded, but never to `high`. Where no number lies between the bounds, all
/// elements are `low` (for integers, rounded up and kept to 32 bits).
pub fn fill(element: Element, len: usize, low: f64, high: f64, seed: u64, name: &str) -> Data {
    fill_some(element, (len, &|index| index), (low, high), seed, name)
}

/// The same of some elements of the field alone: so many, with the indices that they have there.
pub(crate) fn fill_some(
    element: Element,
    (len, index_of): (usize, &(dyn Fn(usize) -> usize + Sync)),
    (low, high): (f64, f64),
    seed: u64,
    name: &str,
) -> Data {
    let key = key(seed, name);
    let indices = (0..len).into_par_iter().map(index_of);
    match element {
        Element::F64 => Data::F64(indices.map(|index| double(draw(key, index), low, high)).collect()),
        Element::F32 => Data::F32(indices.map(|index| single(draw(key, index), low, high)).collect()),
        Element::I32 => Data::I32(indices.map(|index| integer(draw(key, index), low, high)).collect()),
        Element::Bool => Data::Bool(indices.map(|index| u8::from(draw(key, index) >> 63 == 1)).collect()),
    }
}

/// The start of the sequence of one field: unrelated for any two seeds or names.
fn key(seed: u64, name: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(name.as_bytes());
    let mut key = [0; 8];
    hasher.finalize_xof().fill(&mut key);
    u64::from_le_bytes(key)
}

/// The 64 random bits of element `index`.
///
/// This is output `index` of splitmix64 started at `key`, whose state is a plain counter: G. L.
/// Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, with
/// the constants of S. Vigna's public-domain `splitmix64.c` (D. Stafford's variant 13).
fn draw(key: u64, index: usize) -> u64 {
    let counter = (index as u64).wrapping_add(1);
    let mut bits = key.wrapping_add(counter.wrapping_mul(GOLDEN));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A double in `[low, high)`.
fn double(bits: u64, low: f64, high: f64) -> f64 {
    let some_between = low < high;
    if !some_between {
        return low;
    }
    // 53 bits are what a double holds exactly.
    let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    // Unlike `low + unit * (high - low)`, this cannot overflow; either may round out of the range.
    let value = low * (1.0 - unit) + high * unit;
    if value >= high { high.next_down() } else { value.max(low) }
}

/// The double rounded to single precision, in `[low, high)` if a float lies there.
fn single(bits: u64, low: f64, high: f64) -> f32 {
    let value = double(bits, low, high) as f32;
    let some_between = low < high;
    if !some_between {
        value
    } else if f64::from(value) >= high {
        value.next_down()
    } else if f64::from(value) < low && f64::from(value.next_up()) < high {
        value.next_up()
    } else {
        value
    }
}

/// A whole number in `[low, high)`.
fn integer(bits: u64, low: f64, high: f64) -> i32 {
    // Casts of doubles saturate, and a whole number is below `high` exactly if it is below the next
    // whole number up.
    let first = i64::from(low.ceil() as i32);
    let end = (high.ceil() as i64).clamp(i64::from(i32::MIN), i64::from(i32::MAX) + 1);
    let choices = u64::try_from(end - first).unwrap_or(0);
    // Multiplying instead of taking the remainder: D. Lemire, "Fast random integer generation in an
    // interval", ACM TOMACS 29 (2019). The bias is below 2⁻³².
    let offset = (u128::from(bits) * u128::from(choices)) >> 64;
    (first + offset as i64) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubles(len: usize, low: f64, high: f64, seed: u64, name: &str) -> Vec<f64> {
        match fill(Element::F64, len, low, high, seed, name) {
            Data::F64(values) => values,
            other => panic!("asked for f64, got {:?}", other.element()),
        }
    }

    fn singles(len: usize, low: f64, high: f64, seed: u64, name: &str) -> Vec<f32> {
        match fill(Element::F32, len, low, high, seed, name) {
            Data::F32(values) => values,
            other => panic!("asked for f32, got {:?}", other.element()),
        }
    }

    fn integers(len: usize, low: f64, high: f64) -> Vec<i32> {
        match fill(Element::I32, len, low, high, 3, "n") {
            Data::I32(values) => values,
            other => panic!("asked for int, got {:?}", other.element()),
        }
    }

    #[test]
    fn bits_are_those_of_splitmix64() {
        // Published outputs for the seeds 0 and 1234567.
        assert_eq!(draw(0, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(draw(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(draw(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_depend_on_seed_name_and_index_alone() {
        let long = doubles(1000, 0.0, 1.0, 7, "in");
        assert_eq!(doubles(10, 0.0, 1.0, 7, "in"), long[..10]);
        assert_ne!(doubles(10, 0.0, 1.0, 8, "in"), long[..10]);
        assert_ne!(doubles(10, 0.0, 1.0, 7, "out"), long[..10]);
        // Written down once: a change of the function changes everybody's fields.
        assert_eq!(key(7, "in"), 14_370_514_375_769_904_720);
    }

    #[test]
    fn reals_are_uniform() {
        let values = doubles(100_000, -1.0, 3.0, 1, "u");
        assert!(values.iter().all(|v| (-1.0..3.0).contains(v)));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        for tenth in 0..10 {
            let from = -1.0 + 0.4 * f64::from(tenth);
            let share = values.iter().filter(|v| (from..from + 0.4).contains(*v)).count();
            assert!((9_500..10_500).contains(&share), "{tenth}: {share}");
        }
    }

    #[test]
    fn singles_are_the_rounded_doubles() {
        let wide = doubles(10_000, -5.0, 11.0, 2, "w");
        let narrow = singles(10_000, -5.0, 11.0, 2, "w");
        assert!(wide.iter().zip(&narrow).all(|(w, n)| *w as f32 == *n));
    }

    #[test]
    fn the_upper_bound_is_never_reached() {
        let low = 1.0_f64;
        let high = low.next_up().next_up();
        assert!(doubles(1000, low, high, 1, "x").iter().all(|v| *v < high));
        // Half of all doubles here would round to 2.
        let low = 2.0 - 2.0_f64.powi(-24);
        assert!(singles(1000, low, 2.0, 1, "x").iter().all(|v| *v < 2.0));
        let all = singles(1000, -1e300, 1e300, 1, "x");
        assert!(all.iter().all(|v| v.is_finite()));
        let all = doubles(1000, f64::MIN, f64::MAX, 1, "x");
        assert!(all.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn integers_are_whole_and_exclude_the_upper_bound() {
        let dice = integers(60_000, 1.0, 7.0);
        for side in 1..7 {
            let share = dice.iter().filter(|v| **v == side).count();
            assert!((9_500..10_500).contains(&share), "{side}: {share}");
        }
        assert!(dice.iter().all(|v| (1..7).contains(v)));
        assert!(integers(100, -0.5, 0.5).iter().all(|v| *v == 0));
        let all = integers(1000, f64::NEG_INFINITY, f64::INFINITY);
        assert!(all.iter().any(|v| *v < -2_000_000_000));
        assert!(all.iter().any(|v| *v > 2_000_000_000));
    }

    #[test]
    fn empty_ranges_give_the_lower_bound() {
        assert_eq!(doubles(2, 4.0, 4.0, 1, "x"), [4.0, 4.0]);
        assert_eq!(singles(2, 4.0, 4.0, 1, "x"), [4.0, 4.0]);
        assert_eq!(singles(2, 4.0, -4.0, 1, "x"), [4.0, 4.0]);
        assert_eq!(integers(2, 4.0, 4.0), [4, 4]);
        assert_eq!(integers(2, 9e9, -9e9), [i32::MAX, i32::MAX]);
        assert_eq!(integers(2, f64::NAN, f64::NAN), [0, 0]);
    }

    #[test]
    fn truth_values_are_fair() {
        let Data::Bool(values) = fill(Element::Bool, 100_000, 0.0, 0.0, 5, "b") else {
            panic!("asked for bool");
        };
        let share = values.iter().filter(|v| **v == 1).count();
        assert!(values.iter().all(|v| *v <= 1));
        assert!((49_000..51_000).contains(&share), "{share}");
    }
}
