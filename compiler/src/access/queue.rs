//! `queue`: a block walks along k, with planes of fields in shared memory and values of other levels in registers.

use super::swic::{BLOCK, KNOBS, needs_planes};
use super::{Access, Knob, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::step::planes::Queue;
use crate::storage::Storage;

/// Blocks walk along k, and a thread keeps what it has read of the levels before, as in P. Micikevicius, "3D Finite Difference
/// Computation on GPUs using CUDA" (GPGPU-2, 2009). What is read beside the cell on other levels stays in shared memory for longer.
pub struct InputQueue;

impl Access for InputQueue {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn summary(&self) -> &'static str {
        "a block walks along k, planes in shared memory; values of other levels wait in registers"
    }

    fn knobs(&self) -> &'static [Knob] {
        &KNOBS
    }

    fn block(&self) -> [u32; 3] {
        BLOCK
    }

    fn queue(&self) -> Option<Queue> {
        Some(Queue::Input)
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        needs_planes(self, storage)
    }

    /// Planes are found by arithmetic.
    fn distances(&self, _: &mut Builder, _: &Neighbourhood) -> Option<Vec<ValueId>> {
        None
    }
}
