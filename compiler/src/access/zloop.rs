//! `zloop`: a thread computes a whole column; neighbours are looked up once, before the loop over the levels.

use super::{Access, LevelsPerThread, Lookups, Reach, Shape, Wanted};
use crate::names::Names;

/// One thread a column.
pub struct ZLoop;

impl Access for ZLoop {
    fn name(&self) -> &'static str {
        "zloop"
    }

    fn summary(&self) -> &'static str {
        "a thread a column; neighbours are looked up once, before the loop over its levels"
    }

    fn template(&self) -> &'static str {
        "levels.cu.tera"
    }

    fn levels(&self, _: u32) -> LevelsPerThread {
        LevelsPerThread::All
    }

    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups {
        relative(reach, names)
    }
}

/// Offsets relative to the cell, which are the same on every level.
pub(super) fn relative(reach: &Reach, names: &mut Names) -> Lookups {
    let mut lookups = Lookups::default();
    if reach.wanted.is_empty() {
        return lookups;
    }
    let (lines, distances) = reach.distances(names, true);
    lookups.lines = lines;
    for Wanted { path, shape } in reach.wanted {
        let [base] = names.internals([if *shape == Shape::Volume { "c" } else { "column" }]);
        lookups.index.insert((path.clone(), *shape), format!("{base} + {}", distances[reach.ends[path]]));
    }
    lookups
}
