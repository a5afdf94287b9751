//! `zloop`: a thread computes a whole column; neighbours are looked up once, before the loop over the levels.

use super::{Access, LevelsPerThread, Lookups, Shape, Wanted};
use crate::names::Names;
use crate::storage::Storage;

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

    fn lookups(&self, storage: &dyn Storage, names: &mut Names, wanted: &[Wanted]) -> Lookups {
        relative(storage, names, wanted)
    }
}

/// Offsets relative to the cell, which are the same on every level.
pub(super) fn relative(storage: &dyn Storage, names: &mut Names, wanted: &[Wanted]) -> Lookups {
    let mut lookups = Lookups::default();
    if wanted.is_empty() {
        return lookups;
    }
    lookups.lines = storage.prepare(names);
    let index_type = names.index_type();
    let mut named = std::collections::BTreeMap::new();
    for &Wanted { neighbour, shape } in wanted {
        let name = named.entry(neighbour.offset).or_insert_with(|| {
            let offset = storage.offset_of(names, neighbour);
            let name = names.fresh(&format!("to_{}", crate::names::offset_name(neighbour.offset)));
            lookups.lines.push(format!("const {index_type} {name} = {offset};"));
            name
        });
        let [base] = names.internals([if shape == Shape::Volume { "c" } else { "column" }]);
        lookups.index.insert((neighbour.offset, shape), format!("{base} + {name}"));
    }
    lookups
}
