//! `zrows`: a thread computes columns that follow each other, level after level, each level in a loop whose turns have nothing to do with
//! each other: `rows` for sweeps.

use super::rows::Rows;
use super::{Access, Knobs, LevelsPerThread, Neighbourhood};
use crate::cells::carried::COLUMNS;
use crate::diagnostic::Refusal;
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::storage::Storage;

/// One thread a row of columns.
pub struct ZRows;

impl Access for ZRows {
    fn name(&self) -> &'static str {
        "zrows"
    }

    fn summary(&self) -> &'static str {
        "a thread a row of columns, for CPUs: it goes from level to level with all of them"
    }

    fn levels(&self, _: &Knobs) -> LevelsPerThread {
        LevelsPerThread::All
    }

    fn block(&self) -> [u32; 3] {
        [1, 1, 1]
    }

    fn row(&self) -> Option<u32> {
        Some(COLUMNS as u32)
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        Rows.refusal(storage)
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Rows.distances(own, neighbourhood)
    }

    fn has_index_variables(&self) -> bool {
        true
    }
}
