//! `rows`: a thread computes columns that follow each other in a loop whose turns have nothing to do with each other. That is what
//! compilers for CPUs make vectors of.

use super::{Access, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::storage::{Storage, Stride};

/// One thread a row of cells.
pub struct Rows;

impl Access for Rows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn summary(&self) -> &'static str {
        "a thread a row of cells of one level, for CPUs; every neighbour's index once, in a variable"
    }

    fn block(&self) -> [u32; 3] {
        [1, 8, 1]
    }

    fn row(&self) -> Option<u32> {
        Some(1024)
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        (storage.strides().place != Stride::One).then(|| {
            Refusal::new(
                "`rows` and `zrows` access compute columns that follow each other in memory, and here levels do",
            )
            .help("give --fastest columns, or another access: --access idxvar")
        })
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, false))
    }

    fn has_index_variables(&self) -> bool {
        true
    }
}
