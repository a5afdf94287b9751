//! What kernels do for its effect alone: operations of the hardware, and functions on elements that follow each other.

use super::{ArrayId, ValueId};

/// What is done for its effect alone. What it takes stands beside it, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Routine {
    /// Starts to copy so many bytes, 4, 8 or 16, to a place in shared memory from one in global memory.
    CopyAsync(usize),
    /// Copies so many elements that follow each other: to a place, from a place.
    CopyRun(usize),
    /// Makes a group of the copies that the thread has started since the last.
    CopyAsyncCommit,
    /// Waits until at most so many of the thread's groups are under way.
    CopyAsyncWait(usize),
}

/// What a routine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Value(ValueId),
    /// An element of an array, by its index: where it is.
    Place(ArrayId, ValueId),
}

impl Routine {
    /// What it is called: an operation of the hardware, or a function on rows.
    pub fn name(self) -> &'static str {
        match self {
            Routine::CopyAsync(_) => "copy_async",
            Routine::CopyRun(_) => "copy_run",
            Routine::CopyAsyncCommit => "copy_async_commit",
            Routine::CopyAsyncWait(_) => "copy_async_wait",
        }
    }

    /// The number that is part of it, if one is.
    pub fn number(self) -> Option<usize> {
        match self {
            Routine::CopyAsync(number) | Routine::CopyRun(number) | Routine::CopyAsyncWait(number) => Some(number),
            Routine::CopyAsyncCommit => None,
        }
    }

    /// Whether it writes to the array of one of its operands.
    pub fn writes(self, operand: usize) -> bool {
        match self {
            Routine::CopyAsync(_) | Routine::CopyRun(_) => operand == 0,
            Routine::CopyAsyncCommit | Routine::CopyAsyncWait(_) => false,
        }
    }
}

impl Operand {
    /// The array that it is in.
    pub fn array(&self) -> Option<ArrayId> {
        match self {
            Operand::Value(_) => None,
            Operand::Place(array, _) => Some(*array),
        }
    }

    /// The value that it is, or the index.
    pub fn value(&self) -> ValueId {
        match self {
            Operand::Value(value) | Operand::Place(_, value) => *value,
        }
    }

    /// The same, to be changed.
    pub fn value_mut(&mut self) -> &mut ValueId {
        match self {
            Operand::Value(value) | Operand::Place(_, value) => value,
        }
    }

    /// The array that it is in, to be changed.
    pub fn array_mut(&mut self) -> Option<&mut ArrayId> {
        match self {
            Operand::Value(_) => None,
            Operand::Place(array, _) => Some(array),
        }
    }
}
