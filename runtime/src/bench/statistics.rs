//! What several times of one thing come to.

use serde::{Deserialize, Serialize};

/// Order statistics of times, in microseconds. A mean is none of them: one launch that was interrupted would move it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Half of the times are shorter.
    pub median_us: f64,
    /// The shortest.
    pub minimum_us: f64,
    /// A quarter of the times is shorter.
    pub lower_quartile_us: f64,
    /// A quarter of the times is longer.
    pub upper_quartile_us: f64,
}

impl Statistics {
    /// Those of `times`; nothing of none.
    pub fn of(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median_us: quantile(&sorted, 0.5)?,
            minimum_us: *sorted.first()?,
            lower_quartile_us: quantile(&sorted, 0.25)?,
            upper_quartile_us: quantile(&sorted, 0.75)?,
        })
    }
}

/// The number below which a part of the `sorted` numbers lies, between two of them in proportion: definition 7 of
/// R. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996), as NumPy has it.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let at = part * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_those_of_the_definition() {
        let of = |times: &[f64]| {
            let found = Statistics::of(times).unwrap();
            [found.minimum_us, found.lower_quartile_us, found.median_us, found.upper_quartile_us]
        };
        assert_eq!(Statistics::of(&[]), None);
        assert_eq!(of(&[7.0]), [7.0; 4]);
        assert_eq!(of(&[3.0, 1.0]), [1.0, 1.5, 2.0, 2.5]);
        // numpy.quantile([1, 2, 4, 8], [0, 0.25, 0.5, 0.75])
        assert_eq!(of(&[8.0, 1.0, 4.0, 2.0]), [1.0, 1.75, 3.0, 5.0]);
        assert_eq!(of(&[5.0, 4.0, 3.0, 2.0, 1.0]), [1.0, 2.0, 3.0, 4.0]);
        // One that took far longer moves none of them.
        assert_eq!(of(&[5e6, 4.0, 3.0, 2.0, 1.0]), [1.0, 2.0, 3.0, 4.0]);
    }
}
