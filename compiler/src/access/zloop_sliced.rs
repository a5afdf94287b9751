//! `zloop-sliced`: as `zloop`, with a few levels a thread, so that there are enough threads.

use super::{Access, Knob, Knobs, LevelsPerThread, Neighbourhood};
use crate::ir::Precision;
use crate::kernel::ValueId;
use crate::kernel::build::Builder;

/// How many levels a thread computes.
const SLICE: [Knob; 1] = [Knob {
    name: "slice",
    form: "N",
    summary: "Levels a thread, for strategies that slice",
    usual: |_| &[8],
    is_possible: |levels| matches!(levels, [1..=1024]),
    others: ["levels a thread are not possible", "1 to 1024 are"],
    searched: &["2", "4", "8"],
}];

/// One thread for several levels of a column.
pub struct ZLoopSliced;

impl Access for ZLoopSliced {
    fn name(&self) -> &'static str {
        "zloop-sliced"
    }

    fn summary(&self) -> &'static str {
        "a thread for --slice levels of a column (8 unless told otherwise)"
    }

    fn knobs(&self) -> &'static [Knob] {
        &SLICE
    }

    fn levels(&self, knobs: &Knobs) -> LevelsPerThread {
        let [levels] = SLICE[0].of(knobs, Precision::F64);
        LevelsPerThread::Slice(levels)
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, true))
    }
}
