//! `naive`: every use computes, or looks up, its address again.

use super::{Access, LevelsPerThread, Lookups, Shape, Wanted};
use crate::names::Names;
use crate::storage::Storage;

/// One thread a cell; nothing is remembered.
pub struct Naive;

impl Access for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; every use computes its address again"
    }

    fn template(&self) -> &'static str {
        "cell.cu.tera"
    }

    fn levels(&self, _: u32) -> LevelsPerThread {
        LevelsPerThread::One
    }

    fn lookups(&self, storage: &dyn Storage, names: &mut Names, wanted: &[Wanted]) -> Lookups {
        let mut lookups = Lookups::default();
        let [k, plane] = names.internals(["k", "plane"]);
        for &Wanted { neighbour, shape } in wanted {
            let column = storage.column_of(names, neighbour);
            let index = match shape {
                Shape::Volume => format!("{column} + {k} * {plane}"),
                Shape::Plane => column,
            };
            lookups.index.insert((neighbour.offset, shape), index);
        }
        lookups
    }
}
