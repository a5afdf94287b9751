//! Which threads come to a place together: those for which the same holds.

use super::{Array, Axis, Binary, Coordinate, Function, Kernel, Operation, Space, ValueId, VariableId};
use crate::gpu;
use std::collections::{HashMap, HashSet};

/// Threads that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Together {
    /// Each may do something else.
    Nobody,
    /// Those of a warp do the same.
    Warp,
    /// Those of a block.
    Block,
    /// All of the launch.
    Launch,
}

/// Counters of loops, and for which threads they are the same.
pub type Counters = HashMap<VariableId, Together>;

/// The threads of a warp.
const WARP: i64 = gpu::WARP as i64;

/// For which threads a value is the same.
pub fn uniform(kernel: &Kernel, counters: &Counters, value: ValueId) -> Together {
    let (mut waiting, mut seen) = (vec![value], HashSet::new());
    let mut all = Together::Launch;
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let operation = &kernel.values[id].operation;
        let own = match operation {
            Operation::Binary(Binary::Div, thread, count) if is_warp(kernel, *thread, *count) => {
                all = all.min(Together::Warp);
                continue;
            }
            // What nobody writes is the same for all who read it at one index.
            Operation::Load(array, _) => match kernel.arrays[*array] {
                Array { is_written: false, space: Space::Global { aliased: false }, .. } => Together::Launch,
                _ => Together::Nobody,
            },
            Operation::Coordinate(Coordinate::Thread, _) | Operation::Follow(_) => Together::Nobody,
            Operation::ShuffleDown(..) | Operation::Shuffle { .. } => Together::Nobody,
            Operation::Coordinate(Coordinate::Block, _) | Operation::Call(Function::ClusterRank, _) => Together::Block,
            Operation::Variable(variable) => counters.get(variable).copied().unwrap_or(Together::Nobody),
            _ => Together::Launch,
        };
        all = all.min(own);
        if all == Together::Nobody {
            return all;
        }
        waiting.extend(operation.operands());
    }
    all
}

/// Whether a thread's place in its block, divided by so many, is that of its warp, or of several together.
fn is_warp(kernel: &Kernel, thread: ValueId, count: ValueId) -> bool {
    let is_whole = matches!(kernel.values[count].operation, Operation::Int(count) if count > 0 && count % WARP == 0);
    let is_thread = kernel.values[thread].operation == Operation::Coordinate(Coordinate::Thread, Axis::X);
    is_whole && is_thread && i64::from(kernel.threads) % WARP == 0
}
