//! `zloop`: a thread computes a whole column; neighbours are looked up once, before the loop over the levels.

use super::{Access, Knobs, LevelsPerThread, Neighbourhood};
use crate::kernel::ValueId;
use crate::kernel::build::Builder;

/// One thread a column.
pub struct ZLoop;

impl Access for ZLoop {
    fn name(&self) -> &'static str {
        "zloop"
    }

    fn summary(&self) -> &'static str {
        "a thread a column; neighbours are looked up once, before the loop over its levels"
    }

    fn levels(&self, _: &Knobs) -> LevelsPerThread {
        LevelsPerThread::All
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, true))
    }
}
