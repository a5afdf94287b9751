//! Colours of numbers, and what stands beside a colour bar.

use plotters::style::RGBColor;

/// The colour map "viridis" of matplotlib by S. van der Walt, N. Smith and E. Firing (CC0), at 32
/// equal steps: equal differences look equally large, also in grey and to the colour-blind.
pub(super) const VIRIDIS: [[u8; 3]; 32] = [
    [68, 1, 84],
    [71, 13, 96],
    [72, 25, 107],
    [72, 36, 116],
    [71, 46, 124],
    [69, 56, 130],
    [65, 66, 134],
    [62, 75, 137],
    [58, 84, 140],
    [54, 93, 141],
    [50, 101, 142],
    [46, 109, 142],
    [43, 117, 142],
    [40, 125, 142],
    [37, 133, 142],
    [34, 140, 141],
    [32, 148, 140],
    [30, 156, 137],
    [32, 163, 134],
    [37, 171, 130],
    [45, 178, 125],
    [57, 186, 118],
    [72, 193, 110],
    [88, 199, 101],
    [106, 205, 91],
    [126, 211, 79],
    [146, 215, 66],
    [168, 219, 52],
    [190, 223, 38],
    [212, 226, 27],
    [233, 228, 26],
    [253, 231, 37],
];

/// The finite numbers of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Scale {
    /// The least and the greatest finite number, if there is one.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        values.iter().filter(|value| value.is_finite()).fold(None, |scale: Option<Self>, &value| {
            let scale = scale.unwrap_or(Self { low: value, high: value });
            Some(Self { low: scale.low.min(value), high: scale.high.max(value) })
        })
    }

    /// What holds both.
    pub(super) fn with(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Where `value` lies, from 0 to 1.
    pub(super) fn fraction(self, value: f64) -> f64 {
        // Halves, since the difference of two large doubles may be none.
        let span = self.high / 2.0 - self.low / 2.0;
        if span > 0.0 { ((value / 2.0 - self.low / 2.0) / span).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Round numbers on the scale, about `wanted` of them; its ends where there are none.
    pub(super) fn ticks(self, wanted: usize) -> Vec<Label> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let mut labels: Vec<Label> = Vec::new();
        if let Some(step) = step {
            let first = (self.low / step).ceil();
            // A round step is never less than the one wanted, so this does not run on.
            for n in 0..=wanted {
                let value = (first + n as f64) * step;
                if value > self.high {
                    break;
                }
                labels.push(Label::new(value, step));
            }
            labels.dedup_by(|a, b| a.text == b.text);
        }
        if labels.len() < 2 {
            labels = self.ends().to_vec();
            labels.dedup_by(|a, b| a.text == b.text);
        }
        labels
    }

    /// The least and the greatest number, in full if that is short.
    pub(super) fn ends(self) -> [Label; 2] {
        let step = round_step((self.high - self.low) / 1000.0);
        [self.low, self.high].map(|value| match (Label::exact(value), step) {
            (exact, Some(step)) if exact.text.len() > LONGEST_PLAIN => Label::new(value, step),
            (exact, _) => exact,
        })
    }
}

/// The most characters that a number takes before it is written with an exponent.
pub(super) const LONGEST_PLAIN: usize = 10;

/// The least number but 0 that is written without an exponent.
pub(super) const LEAST_PLAIN: f64 = 1e-4;

/// A number with its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) value: f64,
    pub(super) text: String,
}

impl Label {
    /// `value`, with the digits that tell it from its neighbours at a distance of `step`.
    pub(super) fn new(value: f64, step: f64) -> Self {
        // Adding 0 turns -0 into 0.
        let value = value + 0.0;
        let finest = step.log10().floor() as i32;
        let decimals = finest.min(0).unsigned_abs() as usize;
        let mut text = format!("{value:.decimals$}");
        if value == 0.0 {
            text = "0".to_owned();
        } else if text.len() > LONGEST_PLAIN || value.abs() < LEAST_PLAIN {
            let digits = (value.abs().log10().floor() as i32 - finest).clamp(0, 16) as usize;
            text = format!("{value:.digits$e}");
        }
        Self { value, text }
    }

    /// `value` in the fewest digits that give it back.
    pub(super) fn exact(value: f64) -> Self {
        let value = value + 0.0;
        let mut text = value.to_string();
        if text.len() > LONGEST_PLAIN || value != 0.0 && value.abs() < LEAST_PLAIN {
            text = format!("{value:e}");
        }
        Self { value, text }
    }
}

/// The least of 1, 2, 5, 10, ... times a power of ten that is not below `step`, if there is one.
pub(super) fn round_step(step: f64) -> Option<f64> {
    let power = 10.0_f64.powi(step.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].iter().map(|factor| factor * power).find(|&round| round.is_normal() && round >= step)
}

/// The colour at a fraction of the scale.
pub(super) fn colour(fraction: f64) -> RGBColor {
    let place = fraction.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = place as usize;
    let above = (below + 1).min(VIRIDIS.len() - 1);
    let mix = |channel: usize| {
        let (from, to) = (VIRIDIS[below][channel], VIRIDIS[above][channel]);
        let (from, to) = (f64::from(from), f64::from(to));
        (from + (to - from) * place.fract()).round() as u8
    };
    RGBColor(mix(0), mix(1), mix(2))
}
