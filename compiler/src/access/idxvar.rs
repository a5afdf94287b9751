//! `idxvar`: all indices first, in variables.

use super::{Access, LevelsPerThread, Lookups, Reach};
use crate::names::Names;

/// One thread a cell; each neighbour's index is computed once.
pub struct IdxVar;

impl Access for IdxVar {
    fn name(&self) -> &'static str {
        "idxvar"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; every neighbour's index once, in a variable"
    }

    fn template(&self) -> &'static str {
        "cell.cu.tera"
    }

    fn levels(&self, _: u32) -> LevelsPerThread {
        LevelsPerThread::One
    }

    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups {
        let mut lookups = Lookups::default();
        if !reach.wanted.is_empty() {
            let (lines, distances) = reach.distances(names, false);
            lookups.lines = lines;
            super::indices(reach, names, &distances, &mut lookups);
        }
        lookups
    }
}
