//! `patches`: a warp for a patch of columns, found in the grid, whose lanes are levels.

use super::{Access, Elements, Knob, Knobs, Neighbourhood, Reads};
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Path, Precision};
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::names::name_at;
use crate::storage::fastest::Fastest;
use crate::storage::{Storage, Stride};
use std::collections::{BTreeMap, BTreeSet};

/// What users can choose: the numbers decide how many registers a thread needs, and so how many warps there can be.
const KNOBS: [Knob; 3] = [
    Knob {
        name: "patch",
        form: "IxJ",
        summary: "Columns of a patch along i and j: 1, 2 or 4 each",
        usual: |_| &[2, 2],
        is_possible: |columns| matches!(columns, [1 | 2 | 4, 1 | 2 | 4]),
        others: ["columns a patch are not possible", "a patch has 1, 2 or 4 columns along i and along j, as 4x2"],
        searched: &["1x1", "2x2", "4x2"],
    },
    Knob {
        name: "lane",
        form: "N",
        summary: "Levels that a lane of a warp computes at most, for patches: 1, 2 or 4",
        usual: |_| &[2],
        is_possible: |levels| matches!(levels, [1 | 2 | 4]),
        others: ["levels a lane are not possible", "a lane computes 1, 2 or 4 levels, as 2"],
        searched: &["1", "2"],
    },
    Knob {
        name: "room",
        form: "N",
        summary: "Warps that a multiprocessor has to have room for, for patches: 4 to 64, or 0 for as many as its registers leave room for",
        usual: |_| &[0],
        is_possible: |warps| matches!(warps, [0 | 4..=64]),
        others: [
            "warps a multiprocessor are not possible",
            "4 to 64 are, as 16, and 0 for as many as its registers leave room for",
        ],
        searched: &["16", "32"],
    },
];

/// One warp for a patch of columns whose neighbours stand as in rows, or for a column that is in none: lanes are levels.
pub struct Patches;

impl Access for Patches {
    fn name(&self) -> &'static str {
        "patches"
    }

    fn summary(&self) -> &'static str {
        "a warp for a patch of columns that is found in the grid (2x2), which share what they read and compute"
    }

    fn storage(&self) -> &'static str {
        "uncompressed"
    }

    fn fastest(&self) -> Fastest {
        Fastest::Levels
    }

    fn block(&self) -> [u32; 3] {
        [32, 4, 1]
    }

    fn knobs(&self) -> &'static [Knob] {
        &KNOBS
    }

    fn tile(&self, knobs: &Knobs, precision: Precision) -> [u32; 2] {
        KNOBS[0].of(knobs, precision)
    }

    fn tile_levels(&self, knobs: &Knobs, precision: Precision) -> u32 {
        let [levels] = KNOBS[1].of(knobs, precision);
        levels
    }

    fn warps(&self, knobs: &Knobs, precision: Precision) -> Option<u32> {
        let [warps] = KNOBS[2].of(knobs, precision);
        // A bound that is too low makes kernels spill: only users, and `tune`, set one.
        (warps > 0).then_some(warps)
    }

    fn has_patches(&self) -> bool {
        true
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        let name = storage.name();
        if !storage.has_tables() {
            return Some(
                Refusal::new(format!("`patches` access finds patches in a table, and {name} storage keeps rows"))
                    .help("give --access tile, which computes tiles of rows, or --storage uncompressed"),
            );
        }
        if storage.constant().is_some() {
            return Some(
                Refusal::new(format!(
                    "`patches` access has a table of its own, and no use for those of {name} storage"
                ))
                .help("give --storage uncompressed"),
            );
        }
        (storage.strides().level != Stride::One).then(|| {
            Refusal::new("`patches` access gives the lanes of a warp levels, which do not follow each other in memory")
                .help("give --fastest levels")
        })
    }

    /// Levels that a lane reads beside each other are loaded by one instruction.
    fn elements(&self, own: &mut Builder, reads: &Reads) -> Elements {
        let mut runs = Elements::new();
        let mut read: BTreeMap<(FieldId, Path), BTreeSet<i32>> = BTreeMap::new();
        for (field, path) in reads.sure {
            let Some(width) = (reads.run_width)(*field) else { continue };
            // Other levels than the thread's own need not all be there.
            if (0..reads.levels as i32).contains(&path.levels()) {
                let first = path.levels() / width as i32 * width as i32;
                let start = path.clone().without_levels().then(&Path::levels_only(first));
                read.entry((*field, start)).or_default().insert(path.levels() - first);
            }
        }
        for ((field, path), levels) in read {
            let Some(width) = (reads.run_width)(field).filter(|_| levels.len() > 1) else { continue };
            let array = reads.arrays[&field];
            let start = (reads.index)(own, field, &path);
            let run = own.load_run(array, start, width as u8);
            let run = own.name(&name_at(&own.kernel().arrays[array].name.clone(), &path), run);
            for level in levels {
                let element = own.lane(run, level as u8);
                runs.insert((field, path.then(&Path::levels_only(level))), element);
            }
        }
        runs
    }

    fn distances(&self, _own: &mut Builder, _neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        None
    }
}
