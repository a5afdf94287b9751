//! Orders of the inner columns in a plane. Kernels do not depend on them, tables do.

/// Every order, in the order that lists show.
pub const ORDERS: &[&dyn Order] = &[&RowMajor, &ZCurve, &Hilbert, &Random];

/// An order of columns.
pub trait Order: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// Columns are sorted by this: `number` is a column's number in the user's order, `i` and `j` its coordinates, counted
    /// from the first inner column; `run` is the logarithm of the run width. First comes the place on a curve, then that in
    /// a run.
    fn key(&self, number: u32, i: u32, j: u32, run: u32) -> (u64, u32);

    /// Whether runs along i stay together.
    fn has_runs(&self) -> bool;
}

/// The order called `name`.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find(name: &str) -> Result<&'static dyn Order, String> {
    crate::registry::find(ORDERS, |order| order.name(), name, "layout")
}

/// Row after row: the user's order.
struct RowMajor;

impl Order for RowMajor {
    fn name(&self) -> &'static str {
        "row-major"
    }

    fn summary(&self) -> &'static str {
        "row after row, as the user has them"
    }

    fn key(&self, number: u32, _: u32, _: u32, _: u32) -> (u64, u32) {
        (0, number)
    }

    fn has_runs(&self) -> bool {
        false
    }
}

/// Along a Z-order curve, stretched: runs along i stay together. After A. Roesti, "Efficient GPU Implementation of Stencils
/// on Unstructured Grids" (ETH Zurich, 2020), section 4.2.3.
struct ZCurve;

impl Order for ZCurve {
    fn name(&self) -> &'static str {
        "z-curve"
    }

    fn summary(&self) -> &'static str {
        "along a Z-order curve, stretched: --run-width cells along i stay together"
    }

    fn key(&self, _: u32, i: u32, j: u32, run: u32) -> (u64, u32) {
        (spread(i >> run) | spread(j) << 1, low_bits(i, run))
    }

    fn has_runs(&self) -> bool {
        true
    }
}

/// Along a Hilbert curve, stretched likewise.
struct Hilbert;

impl Order for Hilbert {
    fn name(&self) -> &'static str {
        "hilbert"
    }

    fn summary(&self) -> &'static str {
        "along a Hilbert curve, stretched: --run-width cells along i stay together"
    }

    fn key(&self, _: u32, i: u32, j: u32, run: u32) -> (u64, u32) {
        (fast_hilbert::xy2h(i >> run, j, 32), low_bits(i, run))
    }

    fn has_runs(&self) -> bool {
        true
    }
}

/// At random, always the same: what destroys all locality.
struct Random;

impl Order for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn summary(&self) -> &'static str {
        "at random, the same each time: no locality at all"
    }

    fn key(&self, number: u32, _: u32, _: u32, _: u32) -> (u64, u32) {
        // A step of the generator SplitMix64 (G. Steele, D. Lea, C. Flood, 2014), which gives no two columns the same key.
        let mut x = u64::from(number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31, 0)
    }

    fn has_runs(&self) -> bool {
        false
    }
}

fn low_bits(i: u32, run: u32) -> u32 {
    i & ((1 << run) - 1)
}

/// The bits of a number, each followed by a zero.
fn spread(x: u32) -> u64 {
    (0..32).fold(0, |spread, bit| spread | u64::from(x >> bit & 1) << (2 * bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_keep_runs_together() {
        let at = |order: &dyn Order, run| {
            let mut cells: Vec<(u32, u32)> = (0..4).flat_map(|j| (0..8).map(move |i| (i, j))).collect();
            cells.sort_by_key(|&(i, j)| order.key(j * 8 + i, i, j, run));
            cells
        };
        assert_eq!(at(&ZCurve, 0)[..6], [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (3, 0)]);
        assert_eq!(at(&ZCurve, 1)[..6], [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1)]);
        let hilbert = at(&Hilbert, 0);
        let far = |a: (u32, u32), b: (u32, u32)| a.0.abs_diff(b.0) + a.1.abs_diff(b.1);
        assert!(hilbert[..16].windows(2).all(|pair| far(pair[0], pair[1]) == 1), "{hilbert:?}");
        assert_eq!(at(&RowMajor, 5)[7..9], [(7, 0), (0, 1)]);
        assert_ne!(at(&Random, 0), at(&RowMajor, 0));
    }
}
