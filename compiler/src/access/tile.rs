//! `tile`: a tile of cells a thread, whose values stay in registers.

use super::{Access, LevelsPerThread, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::storage::Storage;

/// One thread for a tile of cells, `--tile` of them along i and j. What several of them need is read and computed once, and
/// cells that follow each other along i are read and written by one instruction.
pub struct Tiles;

impl Access for Tiles {
    fn name(&self) -> &'static str {
        "tile"
    }

    fn former_names(&self) -> &'static [&'static str] {
        &["march"]
    }

    fn summary(&self) -> &'static str {
        "a thread for --tile cells along i and j (2x2, in f32 4x2), which share what they read and compute"
    }

    fn levels(&self, _: u32) -> LevelsPerThread {
        LevelsPerThread::One
    }

    fn block(&self) -> [u32; 3] {
        [64, 4, 1]
    }

    fn tiles(&self) -> bool {
        true
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        storage.has_tables().then(|| {
            let name = storage.name();
            Refusal::new(format!("`tile` access computes tiles of rows, and {name} storage keeps cells in any order"))
                .help("give --storage regular, or another access, as --access zloop-sliced")
        })
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, false))
    }
}
