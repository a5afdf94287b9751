//! `naive`: every use computes, or looks up, its address again.

use super::{Access, LevelsPerThread, Lookups, Reach, Shape, Wanted};
use crate::names::Names;

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

    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups {
        let mut lookups = Lookups::default();
        let [k, plane] = names.internals(["k", "plane"]);
        for Wanted { path, shape } in reach.wanted {
            let place = reach.storage.place_of(names, &reach.chain(path));
            let index = match shape {
                Shape::Volume => format!("{place} + {k} * {plane}"),
                Shape::Plane => place,
            };
            lookups.index.insert((path.clone(), *shape), index);
        }
        lookups
    }
}
