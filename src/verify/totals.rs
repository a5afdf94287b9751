//! How many kernels came to what, and why some were refused.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use stencilc_runtime::verify::Verdict;

/// Why kernels were refused, each reason once, and how often.
pub fn refusals<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> BTreeMap<&'a str, usize> {
    let mut reasons = BTreeMap::new();
    for verdict in verdicts {
        if let Verdict::Refused { reason } = verdict {
            *reasons.entry(reason.as_str()).or_default() += 1;
        }
    }
    reasons
}

/// The same in lines.
pub fn told(reasons: &BTreeMap<&str, usize>) -> String {
    reasons.iter().map(|(reason, times)| format!("refused {times}: {reason}\n")).collect()
}

/// How many kernels came to what.
#[derive(Clone, Default, Serialize)]
pub struct Totals {
    equal: usize,
    /// Of strategies that add in no order.
    #[serde(skip_serializing_if = "is_none")]
    within: usize,
    different: usize,
    compiled: usize,
    refused: usize,
    skipped: usize,
    pub failed: usize,
}

fn is_none(number: &usize) -> bool {
    *number == 0
}

impl Totals {
    /// Adds what came of kernels, which failed together if nothing could be compared.
    pub fn add<'a>(&mut self, verdicts: impl IntoIterator<Item = &'a Verdict>, has_error: bool) {
        self.failed += usize::from(has_error);
        for verdict in verdicts {
            *match verdict {
                Verdict::Equal { .. } => &mut self.equal,
                Verdict::Within { .. } => &mut self.within,
                Verdict::Different { .. } => &mut self.different,
                Verdict::Compiled => &mut self.compiled,
                Verdict::Skipped => &mut self.skipped,
                Verdict::Refused { .. } => &mut self.refused,
                Verdict::Failed { .. } => &mut self.failed,
            } += 1;
        }
    }

    fn parts(&self) -> [(usize, &'static str); 7] {
        let Totals { equal, within, different, compiled, refused, skipped, failed } = *self;
        [
            (equal, "equal"),
            (within, "within the bound of another order"),
            (different, "different as expected"),
            (compiled, "compiled"),
            (refused, "refused"),
            (skipped, "skipped"),
            (failed, "failed"),
        ]
    }

    /// Whether every kernel was refused, so that nothing is known.
    pub fn has_only_refusals(&self) -> bool {
        self.refused == self.sum()
    }

    /// How many there are.
    pub fn sum(&self) -> usize {
        self.parts().iter().map(|(number, _)| number).sum()
    }
}

/// `8 equal, 2 refused`
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts().into_iter().filter(|&(number, _)| number > 0);
        let parts: Vec<String> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        f.write_str(&parts.join(", "))
    }
}
