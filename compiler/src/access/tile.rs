//! `tile`: a tile of cells a thread, whose values stay in registers.

use super::{Access, Elements, Knob, Knobs, Neighbourhood, Reads};
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Offset, Path, Precision};
use crate::kernel::ValueId;
use crate::kernel::build::{Builder, Computing};
use crate::names::path_name;
use crate::storage::Storage;
use std::collections::{BTreeMap, BTreeSet};

/// How many cells a thread computes along i and j: along i, if nothing else is asked for, what 16 bytes hold.
const TILE: [Knob; 1] = [Knob {
    name: "tile",
    form: "IxJ",
    summary: "Cells a thread along i and j, for strategies that tile: 1, 2, 4 or 8, and 1 to 16",
    usual: |precision| match precision {
        Precision::F64 => &[2, 2],
        Precision::F32 => &[4, 2],
    },
    is_possible: |cells| matches!(cells, [1 | 2 | 4 | 8, 1..=16]),
    others: ["cells a thread are not possible", "a tile has 1, 2, 4 or 8 cells along i and 1 to 16 along j, as 2x4"],
    searched: &["2x1", "1x4", "2x2", "4x1", "4x2", "2x4", "4x4", "8x2"],
}];

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

    fn block(&self) -> [u32; 3] {
        [64, 4, 1]
    }

    fn knobs(&self) -> &'static [Knob] {
        &TILE
    }

    fn tile(&self, knobs: &Knobs, precision: Precision) -> [u32; 2] {
        TILE[0].of(knobs, precision)
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        storage.has_tables().then(|| {
            let name = storage.name();
            Refusal::new(format!("`tile` access computes tiles of rows, and {name} storage keeps cells in any order"))
                .help("give --storage regular, or another access, as --access zloop-sliced")
        })
    }

    /// Runs of elements that follow each other along i and are moved by one instruction. A thread that computes a tile begins at an aligned
    /// element, so what is read at some width from there lies in aligned runs of that width. A run of which at least two elements are
    /// read is loaded as one.
    fn elements(&self, own: &mut Builder, reads: &Reads) -> Elements {
        let mut runs = Elements::new();
        let mut read: BTreeMap<(FieldId, Offset), BTreeSet<i32>> = BTreeMap::new();
        for (field, path) in reads.sure {
            let Some(width) = (reads.run_width)(*field) else { continue };
            let (offset, width) = (path.offset(), width as i32);
            let first = offset.i.div_euclid(width) * width;
            read.entry((*field, Offset { i: first, ..offset })).or_default().insert(offset.i);
        }
        for ((field, first), elements) in read {
            let Some(width) = (reads.run_width)(field) else { continue };
            // What no cell of the tile can reach need not be there.
            let is_there = (reads.extents.low.i..=reads.extents.high.i).contains(&first.i);
            let Some(&nearest) = elements.first().filter(|_| elements.len() > 1 && is_there) else { continue };
            let path = |i: i32| Path::from_offset(Offset { i, ..first });
            let start = (reads.index)(own, field, &path(nearest)).minus(nearest - first.i);
            let array = reads.arrays[&field];
            let name = format!("{}_{}", own.kernel().arrays[array].name, path_name(&path(first.i)));
            let run = own.load_run(array, start, width as u8);
            let run = own.name(&name, run);
            for i in elements {
                let element = own.lane(run, (i - first.i) as u8);
                runs.insert((field, path(i)), element);
            }
        }
        runs
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, false))
    }
}
