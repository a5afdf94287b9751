//! `zloop-sliced`: as `zloop`, with a few levels a thread, so that there are enough threads.

use super::{Access, LevelsPerThread, Lookups, Reach};
use crate::names::Names;

/// One thread for several levels of a column.
pub struct ZLoopSliced;

impl Access for ZLoopSliced {
    fn name(&self) -> &'static str {
        "zloop-sliced"
    }

    fn summary(&self) -> &'static str {
        "a thread for --slice levels of a column (8 unless told otherwise)"
    }

    fn template(&self) -> &'static str {
        "levels.cu.tera"
    }

    fn levels(&self, slice: u32) -> LevelsPerThread {
        LevelsPerThread::Slice(slice)
    }

    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups {
        super::zloop::relative(reach, names)
    }
}
