//! `zloop-sliced`: as `zloop`, with a few levels a thread, so that there are enough threads.

use super::{Access, LevelsPerThread, Neighbourhood};
use crate::kernel::ValueId;
use crate::kernel::build::Builder;

/// One thread for several levels of a column.
pub struct ZLoopSliced;

impl Access for ZLoopSliced {
    fn name(&self) -> &'static str {
        "zloop-sliced"
    }

    fn summary(&self) -> &'static str {
        "a thread for --slice levels of a column (8 unless told otherwise)"
    }

    fn levels(&self, slice: u32) -> LevelsPerThread {
        LevelsPerThread::Slice(slice)
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, true))
    }
}
