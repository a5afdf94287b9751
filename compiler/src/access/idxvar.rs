//! `idxvar`: all indices first, in variables.

use super::{Access, LevelsPerThread, Lookups, Shape, Wanted};
use crate::names::Names;
use crate::storage::Storage;

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

    fn lookups(&self, storage: &dyn Storage, names: &mut Names, wanted: &[Wanted]) -> Lookups {
        let mut lookups = Lookups::default();
        if wanted.is_empty() {
            return lookups;
        }
        lookups.lines = storage.prepare(names);
        let index_type = names.index_type();
        for &Wanted { neighbour, shape } in wanted {
            let offset = storage.offset_of(names, neighbour);
            let (base, suffix) = match shape {
                Shape::Volume => ("c", ""),
                Shape::Plane => ("column", "_column"),
            };
            let [base] = names.internals([base]);
            let name = names.fresh(&format!("{}{suffix}", crate::names::offset_name(neighbour.offset)));
            let sum = match offset.strip_prefix('-') {
                // A sign in front of the first term reads as the operator.
                Some(distance) => format!("{base} - {distance}"),
                None => format!("{base} + {offset}"),
            };
            lookups.lines.push(format!("const {index_type} {name} = {sum};"));
            lookups.index.insert((neighbour.offset, shape), name);
        }
        lookups
    }
}
