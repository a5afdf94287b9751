//! What came of kernels, how many there are of each, and how it is told.

use super::mesh;
use crate::terminal;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use stencilc_runtime::verify::{Mismatch, Verdict};

/// What came of a kernel.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Done(Verdict),
    /// There is no NVRTC to compile it.
    Skipped {
        status: &'static str,
    },
}

impl Outcome {
    /// Whether the kernel makes no sense.
    pub fn is_refused(&self) -> bool {
        matches!(self, Outcome::Done(Verdict::Refused { .. }))
    }

    /// What failed of a kernel with this name, in lines; nothing of one that did not.
    pub fn failure(&self, name: &str) -> Option<String> {
        let Outcome::Done(Verdict::Failed { order, mismatches, damage }) = self else { return None };
        let order = order.map_or(String::new(), |order| format!(", threads in {order} order"));
        let mut text = format!("  {name}{order}:\n");
        for Mismatch { field, cell, cells, expected, expected_bits, found, found_bits } in mismatches {
            text.push_str(&format!(
                "    {field} differs first at {cell}, in all in {}:\n",
                terminal::count(*cells, "cell")
            ));
            text.push_str(&format!("      interpreter {expected_bits} {expected:?}\n"));
            text.push_str(&format!("      kernel      {found_bits} {found:?}\n"));
        }
        damage.iter().for_each(|damage| text.push_str(&format!("    {damage}\n")));
        Some(text)
    }
}

/// Why kernels were refused, each reason once, and how often.
pub fn refusals<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> BTreeMap<&'a str, usize> {
    let mut reasons = BTreeMap::new();
    for outcome in outcomes {
        if let Outcome::Done(Verdict::Refused { reason }) = outcome {
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
    /// Adds what came of kernels over a mesh.
    pub fn add_of_meshes<'a>(&mut self, outcomes: impl IntoIterator<Item = &'a mesh::Outcome>, has_error: bool) {
        self.failed += usize::from(has_error);
        for outcome in outcomes {
            *match outcome {
                mesh::Outcome::Equal => &mut self.equal,
                mesh::Outcome::Within { .. } => &mut self.within,
                mesh::Outcome::Compiled => &mut self.compiled,
                mesh::Outcome::Skipped => &mut self.skipped,
                mesh::Outcome::Refused { .. } => &mut self.refused,
                mesh::Outcome::Failed { .. } => &mut self.failed,
            } += 1;
        }
    }

    /// Adds what came of kernels, which failed together if nothing could be compared.
    pub fn add<'a>(&mut self, outcomes: impl IntoIterator<Item = &'a Outcome>, has_error: bool) {
        self.failed += usize::from(has_error);
        for outcome in outcomes {
            *match outcome {
                Outcome::Done(Verdict::Equal { .. }) => &mut self.equal,
                Outcome::Done(Verdict::Different { .. }) => &mut self.different,
                Outcome::Done(Verdict::Compiled) => &mut self.compiled,
                Outcome::Done(Verdict::Refused { .. }) => &mut self.refused,
                Outcome::Done(Verdict::Failed { .. }) => &mut self.failed,
                Outcome::Skipped { .. } => &mut self.skipped,
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
