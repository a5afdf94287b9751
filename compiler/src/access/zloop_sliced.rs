//! `zloop-sliced`: as `zloop`, with a few levels a thread, so that there are enough threads.

use super::{Access, LevelsPerThread, Lookups, Wanted};
use crate::names::Names;
use crate::storage::Storage;

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

    fn lookups(&self, storage: &dyn Storage, names: &mut Names, wanted: &[Wanted]) -> Lookups {
        super::zloop::relative(storage, names, wanted)
    }
}
