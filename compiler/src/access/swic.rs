//! `swic`: a block walks along k, with planes of fields in shared memory and unfinished outputs in registers.

use super::{Access, Knob, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::step::planes::Queue;
use crate::storage::{Storage, Stride};

/// What users can choose of walks along k.
pub(super) const KNOBS: [Knob; 3] = [HEIGHT, STAGE, CHUNK];

/// Rows of a thread.
pub const HEIGHT: Knob = Knob {
    name: "height",
    form: "N",
    summary: "Rows that a thread computes, for walks along k: 1 to 16, or 0 for as many as registers have room for, up to 4 (2 in f64)",
    usual: |_| &[0],
    is_possible: |rows| matches!(rows, [0..=16]),
    others: [
        "rows a thread are not possible",
        "a thread computes 1 to 16 rows, as 4, or 0 for as many as registers have room for",
    ],
    searched: &["0", "2", "3", "4", "6", "8"],
};

/// Planes in shared memory.
pub const STAGE: Knob = Knob {
    name: "stage",
    form: "N",
    summary: "Planes of a field in shared memory at once, for walks along k: 2 to 8",
    usual: |_| &[3],
    is_possible: |planes| matches!(planes, [2..=8]),
    others: ["planes at once are not possible", "2 to 8 planes are in shared memory at once, as 3"],
    searched: &["3"],
};

/// Planes of a block.
pub const CHUNK: Knob = Knob {
    name: "chunk",
    form: "N",
    summary: "Levels that a block walks through, for walks along k, or 0 for as many as let blocks fill whole waves",
    usual: |_| &[0],
    is_possible: |levels| matches!(levels, [0..=65_536]),
    others: [
        "levels a block are not possible",
        "a block walks through 1 to 65536 levels, or 0 for as many as fill whole waves",
    ],
    searched: &["0"],
};

/// Blocks walk along k, and each plane that comes is added to all outputs that read it: O. Anjum, G. de Gonzalo Simon, M. Hidayetoglu
/// and W. Hwu, "An Efficient GPU Implementation Technique for Higher-Order 3D Stencils" (HPCC 2019).
pub struct Swic;

impl Access for Swic {
    fn name(&self) -> &'static str {
        "swic"
    }

    fn summary(&self) -> &'static str {
        "a block walks along k, planes in shared memory; sums over levels wait in registers (for `sums by level`)"
    }

    fn knobs(&self) -> &'static [Knob] {
        &KNOBS
    }

    fn block(&self) -> [u32; 3] {
        BLOCK
    }

    fn queue(&self) -> Option<Queue> {
        Some(Queue::Output)
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        needs_planes(self, storage)
    }

    /// Planes are found by arithmetic.
    fn distances(&self, _: &mut Builder, _: &Neighbourhood) -> Option<Vec<ValueId>> {
        None
    }
}

/// The threads of a block: so many that one of them fills a multiprocessor, and its planes have few cells around them.
pub(super) const BLOCK: [u32; 3] = [128, 4, 1];

/// Why a strategy that walks through planes of rows does not work with a storage.
pub(super) fn needs_planes(access: &dyn Access, storage: &dyn Storage) -> Option<Refusal> {
    let has_planes = !storage.has_tables() && storage.strides().place == Stride::One;
    let why = || {
        let (name, access) = (storage.name(), access.name());
        format!("`{access}` access walks through planes of rows, and {name} storage keeps cells otherwise")
    };
    (!has_planes).then(|| Refusal::new(why()).help("give --storage regular --fastest columns, or another access"))
}
