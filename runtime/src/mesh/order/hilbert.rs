//! Along a Hilbert curve: what is near in space is near in memory.

use super::position::{Point, positions};
use super::{Method, Options, Ordering};
use crate::error::Result;
use crate::mesh::Mesh;
use rayon::prelude::*;

/// Bits of each of three coordinates: together they fill a key.
const BITS: u32 = 21;

/// D. Hilbert, "Über die stetige Abbildung einer Linie auf ein Flächenstück", 1891.
pub struct Hilbert;

impl Method for Hilbert {
    fn name(&self) -> &'static str {
        "hilbert"
    }

    fn summary(&self) -> &'static str {
        "along a Hilbert curve through the elements' coordinates, in the plane or in space"
    }

    fn ordering(&self, mesh: &Mesh, options: &Options) -> Result<Ordering> {
        let points = positions(mesh, options.lead, options.coordinates)?;
        Ordering::led(mesh, options.lead, order(&points))
    }
}

/// The order of points along the curve; unknown ones stand last.
fn order(points: &[Point]) -> Vec<u32> {
    let bound =
        |start: f64, part: usize, pick: fn(f64, f64) -> f64| points.iter().map(|point| point[part]).fold(start, pick);
    // NaN loses against any number.
    let low = [0, 1, 2].map(|part| bound(f64::INFINITY, part, f64::min));
    let high = [0, 1, 2].map(|part| bound(f64::NEG_INFINITY, part, f64::max));
    // One scale for all axes, so that no direction counts more than another. Halves, since the whole may overflow.
    let half = (0..3).map(|part| high[part] / 2.0 - low[part] / 2.0).fold(0.0, f64::max);
    let flat = low[2] == high[2];
    let cell = |part: usize, value: f64, bits: u32| {
        let share = (value / 2.0 - low[part] / 2.0) / half;
        // A cast keeps within bounds, and makes NaN (all at one place) 0.
        ((share * f64::from(bits).exp2()) as u64).min((1 << bits) - 1) as u32
    };
    let key = |point: &Point| match point {
        [x, ..] if x.is_nan() => u64::MAX,
        [x, y, _] if flat => fast_hilbert::xy2h(cell(0, *x, 31), cell(1, *y, 31), 32),
        [x, y, z] => in_space([cell(0, *x, BITS), cell(1, *y, BITS), cell(2, *z, BITS)]),
    };
    let mut keys: Vec<(u64, u32)> = points.par_iter().map(key).zip(0..points.len() as u32).collect();
    keys.par_sort_unstable();
    keys.into_par_iter().map(|(_, number)| number).collect()
}

/// How far along the curve of three dimensions a point is: J. Skilling, "Programming the Hilbert Curve", AIP Conference
/// Proceedings 707 (2004).
fn in_space(mut x: [u32; 3]) -> u64 {
    // Undo the excess work of each level, from the largest cubes to the smallest.
    for level in (1..BITS).rev() {
        let (bit, below) = (1 << level, (1 << level) - 1);
        for axis in 0..3 {
            if x[axis] & bit != 0 {
                x[0] ^= below;
            } else {
                let swapped = (x[0] ^ x[axis]) & below;
                x[0] ^= swapped;
                x[axis] ^= swapped;
            }
        }
    }
    // Gray encode.
    x[1] ^= x[0];
    x[2] ^= x[1];
    let flips = (1..BITS).filter(|&level| x[2] >> level & 1 == 1).fold(0, |flips, level| flips ^ ((1 << level) - 1));
    let x = x.map(|x| x ^ flips);
    // One bit of each coordinate after the other.
    (0..BITS).rev().flat_map(|bit| x.map(|x| x >> bit & 1)).fold(0, |key, bit| key << 1 | u64::from(bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All points of a cube or square; the curve goes from each to one beside it.
    fn is_continuous(size: [u32; 3]) {
        let range = |axis: usize| 0..size[axis];
        let points: Vec<Point> = range(0)
            .flat_map(|x| range(1).flat_map(move |y| range(2).map(move |z| [x, y, z].map(f64::from))))
            .collect();
        let order = order(&points);
        for pair in order.windows(2) {
            let [a, b] = [0, 1].map(|side| points[pair[side] as usize]);
            let far: f64 = (0..3).map(|axis| (a[axis] - b[axis]).abs()).sum();
            assert_eq!(far, 1.0, "from {a:?} to {b:?}");
        }
    }

    #[test]
    fn the_curve_goes_from_neighbour_to_neighbour() {
        is_continuous([16, 16, 1]);
        is_continuous([8, 8, 8]);
        is_continuous([32, 32, 32]);
    }

    #[test]
    fn points_anywhere_are_ordered() {
        assert!(order(&[]).is_empty());
        assert_eq!(order(&[[1.0; 3]; 3]), [0, 1, 2]);
        assert_eq!(order(&[[f64::NAN; 3], [1e308, 0.0, 0.0], [-1e308, 0.0, 0.0]]), [2, 1, 0]);
        assert_eq!(order(&[[f64::NAN; 3]; 2]), [0, 1]);
    }
}
