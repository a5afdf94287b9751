//! What kernels do for the effect alone: operations of the hardware, and functions on elements that follow each other.

use super::uniform::Together;
use super::{Array, ArrayId, Kernel, Space, Type, ValueId};

/// Something that is done for its effect alone. What it takes stands beside it, in order.
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
    /// Loads a row, from a place on, so many elements at once.
    LoadRow(usize),
    /// The same where a truth holds; elsewhere the row stays as it is.
    LoadRowWhere,
    /// Stores from a place on a row, so many elements at once.
    PutRow(usize),
    /// The same for those elements whose numbers lie between two: the first, and one past the last.
    PutBetween(usize),
    /// Makes a row of another one, possibly in another type.
    CopyRow,
    /// Makes a row of another one and so many columns of neighbouring lanes before and behind it. It takes the lane.
    WidenRow(usize, usize),
    /// The same where the first and the last lane have what lies beyond: in a third row.
    JoinRows(usize, usize),
    /// Waits for all threads of the launch, by a number in global memory.
    GridBarrier,
    /// Sends a row to a place in the shared memory of a block of the cluster: it takes the lane, the block, and the barrier that counts
    /// the bytes.
    PushRow,
    /// Takes a row that has been sent from a place on. It takes the lane.
    PullRow,
    /// Makes a barrier in shared memory, for so many arrivals.
    BarrierInit,
    /// Makes new barriers known to the cluster.
    BarrierFence,
    /// Arrives at a barrier, which waits for as many bytes, too.
    BarrierExpect,
    /// Waits until the phase of a barrier has ended that has this parity, and sees what the cluster has sent.
    BarrierWaitCluster,
    /// Arrives at the barrier of the cluster.
    ClusterArrive,
    /// Waits until all threads of the cluster have arrived.
    ClusterWait,
    /// Tells the block that waits for a flag that it can read what this one has written.
    FlagRaise,
    /// Waits until another block has raised a flag, and lowers it.
    FlagWait,
}

/// What a routine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Value(ValueId),
    /// An element of an array, by its index: where it is. Of an array of rows a row.
    Place(ArrayId, ValueId),
    /// An array of a thread's own as a row.
    Row(ArrayId),
}

impl Routine {
    /// What it is called: an operation of the hardware, or a function on rows.
    pub fn name(self) -> &'static str {
        match self {
            Routine::CopyAsync(_) => "copy_async",
            Routine::CopyRun(_) => "copy_run",
            Routine::CopyAsyncCommit => "copy_async_commit",
            Routine::CopyAsyncWait(_) => "copy_async_wait",
            Routine::LoadRow(_) => "load_row",
            Routine::LoadRowWhere => "load_row_where",
            Routine::PutRow(_) => "put_row",
            Routine::PutBetween(_) => "put_between",
            Routine::CopyRow => "copy_row",
            Routine::WidenRow(..) => "widen_row",
            Routine::JoinRows(..) => "join_rows",
            Routine::GridBarrier => "grid_barrier",
            Routine::PushRow => "push_row",
            Routine::PullRow => "pull_row",
            Routine::BarrierInit => "mbarrier_init",
            Routine::BarrierFence => "mbarrier_fence",
            Routine::BarrierExpect => "mbarrier_expect",
            Routine::BarrierWaitCluster => "mbarrier_wait_cluster",
            Routine::ClusterArrive => "cluster_arrive",
            Routine::ClusterWait => "cluster_wait",
            Routine::FlagRaise => "flag_raise",
            Routine::FlagWait => "flag_wait",
        }
    }

    /// The numbers that are part of it.
    pub fn numbers(self) -> Vec<usize> {
        match self {
            Routine::CopyAsync(number) | Routine::CopyRun(number) | Routine::CopyAsyncWait(number) => vec![number],
            Routine::LoadRow(number) | Routine::PutRow(number) | Routine::PutBetween(number) => vec![number],
            Routine::WidenRow(before, after) | Routine::JoinRows(before, after) => vec![before, after],
            Routine::CopyAsyncCommit | Routine::LoadRowWhere | Routine::CopyRow | Routine::GridBarrier => Vec::new(),
            Routine::PushRow | Routine::PullRow | Routine::BarrierInit | Routine::BarrierFence => Vec::new(),
            Routine::BarrierExpect | Routine::BarrierWaitCluster | Routine::ClusterArrive => Vec::new(),
            Routine::ClusterWait | Routine::FlagRaise | Routine::FlagWait => Vec::new(),
        }
    }

    /// Whether it writes to the array of one of its operands.
    pub fn writes(self, operand: usize) -> bool {
        match self {
            Routine::CopyAsyncCommit | Routine::CopyAsyncWait(_) => false,
            Routine::BarrierFence | Routine::ClusterArrive | Routine::ClusterWait => false,
            Routine::PushRow => operand == 0 || operand == 4,
            Routine::PullRow | Routine::BarrierInit | Routine::BarrierExpect => operand == 0,
            Routine::BarrierWaitCluster | Routine::FlagRaise | Routine::FlagWait => operand == 0,
            Routine::CopyAsync(_) | Routine::CopyRun(_) | Routine::GridBarrier => operand == 0,
            Routine::LoadRow(_) | Routine::LoadRowWhere | Routine::PutRow(_) | Routine::PutBetween(_) => operand == 0,
            Routine::CopyRow | Routine::WidenRow(..) | Routine::JoinRows(..) => operand == 0,
        }
    }

    /// Which threads have to do it together.
    pub fn together(self) -> Together {
        match self {
            Routine::WidenRow(..) | Routine::JoinRows(..) => Together::Warp,
            Routine::GridBarrier | Routine::ClusterArrive | Routine::ClusterWait => Together::Launch,
            Routine::FlagRaise | Routine::FlagWait => Together::Block,
            Routine::PushRow | Routine::PullRow | Routine::BarrierWaitCluster => Together::Warp,
            Routine::BarrierInit | Routine::BarrierFence | Routine::BarrierExpect => Together::Nobody,
            Routine::CopyAsync(_) | Routine::CopyRun(_) | Routine::CopyAsyncCommit => Together::Nobody,
            Routine::CopyAsyncWait(_) | Routine::LoadRow(_) | Routine::LoadRowWhere => Together::Nobody,
            Routine::PutRow(_) | Routine::PutBetween(_) | Routine::CopyRow => Together::Nobody,
        }
    }

    /// Whether a routine on rows, or one that needs nothing else, can take these operands.
    pub fn takes(self, kernel: &Kernel, operands: &[Operand]) -> bool {
        let kinds: Vec<OperandType> = operands.iter().map(|operand| operand.operand_type(kernel)).collect();
        let fits_at_once = |count: usize, width: usize, kind: Type| {
            count.is_power_of_two() && width.is_multiple_of(count) && count * kind.bytes() <= 16
        };
        let is_copy = |to: Type, from: Type| to.lanes == 1 && from.lanes == 1;
        match (self, kinds.as_slice()) {
            (Routine::LoadRow(count), &[OperandType::Row(row, width), OperandType::Place(from)])
            | (Routine::PutRow(count), &[OperandType::Place(from), OperandType::Row(row, width)]) => {
                row == from && fits_at_once(count, width, row)
            }
            (
                Routine::LoadRowWhere,
                &[OperandType::Row(row, _), OperandType::Place(from), OperandType::Value(condition)],
            ) => row == from && condition == Type::BOOL,
            (
                Routine::PutBetween(count),
                &[
                    OperandType::Place(to),
                    OperandType::Row(row, width),
                    OperandType::Value(first),
                    OperandType::Value(end),
                ],
            ) => row == to && fits_at_once(count, width, row) && [first, end] == [Type::I32; 2],
            (Routine::CopyRow, &[OperandType::Row(to, width), OperandType::Row(from, other)]) => {
                width == other && is_copy(to, from)
            }
            (
                Routine::WidenRow(before, after),
                &[OperandType::Row(to, wide), OperandType::Row(from, width), OperandType::Value(lane)],
            ) => wide == before + width + after && is_copy(to, from) && lane == Type::I32,
            (
                Routine::JoinRows(before, after),
                &[
                    OperandType::Row(to, wide),
                    OperandType::Row(from, width),
                    OperandType::Row(own, beyond),
                    OperandType::Value(lane),
                ],
            ) => {
                let is_there = beyond >= before.max(after) && width >= before.max(after);
                is_there && wide == before + width + after && own == from && is_copy(to, from) && lane == Type::I32
            }
            (Routine::GridBarrier | Routine::FlagRaise | Routine::FlagWait, &[OperandType::Place(Type::U32)]) => true,
            (
                Routine::PushRow,
                &[
                    OperandType::Place(to),
                    OperandType::Row(row, width),
                    OperandType::Value(Type::I32),
                    OperandType::Value(Type::U32),
                    OperandType::Place(Type::BARRIER),
                ],
            ) => to == row && (width * row.bytes()).is_multiple_of(SENT),
            (
                Routine::PullRow,
                &[OperandType::Row(row, width), OperandType::Place(from), OperandType::Value(Type::I32)],
            ) => row == from && (width * row.bytes()).is_multiple_of(SENT),
            (
                Routine::BarrierInit | Routine::BarrierExpect | Routine::BarrierWaitCluster,
                &[OperandType::Place(Type::BARRIER), OperandType::Value(Type::U32)],
            ) => true,
            (Routine::BarrierFence | Routine::ClusterArrive | Routine::ClusterWait, []) => true,
            _ => false,
        }
    }
}

/// Bytes that a lane sends at once.
const SENT: usize = 16;

/// What an operand is.
#[derive(Clone, Copy)]
enum OperandType {
    Value(Type),
    /// Where elements of a type are in memory.
    Place(Type),
    /// So many elements that a thread holds.
    Row(Type, usize),
    Nothing,
}

impl Operand {
    fn operand_type(&self, kernel: &Kernel) -> OperandType {
        match self {
            Operand::Value(value) => OperandType::Value(kernel.values[*value].kind),
            Operand::Row(array) => match kernel.row_width(*array) {
                Some(width) => OperandType::Row(kernel.arrays[*array].element, width),
                None => OperandType::Nothing,
            },
            Operand::Place(array, _) => match kernel.arrays[*array] {
                Array { space: Space::Rows(_, width), element, .. } => OperandType::Row(element, width),
                Array { element, .. } if kernel.row_width(*array).is_none() => OperandType::Place(element),
                _ => OperandType::Nothing,
            },
        }
    }

    /// The array that it is in.
    pub fn array(&self) -> Option<ArrayId> {
        match self {
            Operand::Value(_) => None,
            Operand::Place(array, _) | Operand::Row(array) => Some(*array),
        }
    }

    /// The value that it is, or the index.
    pub fn value(&self) -> Option<ValueId> {
        match self {
            Operand::Value(value) | Operand::Place(_, value) => Some(*value),
            Operand::Row(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn value_mut(&mut self) -> Option<&mut ValueId> {
        match self {
            Operand::Value(value) | Operand::Place(_, value) => Some(value),
            Operand::Row(_) => None,
        }
    }

    /// The array that it is in, to be changed.
    pub fn array_mut(&mut self) -> Option<&mut ArrayId> {
        match self {
            Operand::Value(_) => None,
            Operand::Place(array, _) | Operand::Row(array) => Some(array),
        }
    }
}

impl Kernel {
    /// The elements of an array that is a row of a thread's own.
    pub fn row_width(&self, array: ArrayId) -> Option<usize> {
        match self.arrays[array].space {
            Space::Local(width) => Some(width),
            Space::View(of) => match self.arrays[of].space {
                Space::Rows(_, width) => Some(width),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::super::verify::verify;
    use super::super::{Axis, Contents, Coordinate, Space, StepData, Type};
    use super::*;
    use crate::kernel::{Binary, Element, Meaning};

    /// What is said of a kernel of rows: `now` is what is loaded from `a`, four elements of a lane, and goes to `b`.
    fn told(write: impl FnOnce(&mut Builder, [ArrayId; 3], ValueId)) -> String {
        let mut own = Builder::new("own", 64, "");
        let real = Type::one(Element::F64);
        let (a, b) = (own.aliased("a", real, false), own.aliased("b", real, true));
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let now = own.local("now", real, 4);
        own.perform(Routine::LoadRow(2), vec![Operand::Row(now), Operand::Place(a, thread)]);
        own.perform(Routine::PutRow(2), vec![Operand::Place(b, thread), Operand::Row(now)]);
        write(&mut own, [a, b, now], thread);
        verify(&own.finish()).err().map(|refusal| refusal.message).unwrap_or_default()
    }

    /// `wide` of so many elements, where the number of a thread, divided by so many, is 0.
    fn widened(own: &mut Builder, now: ArrayId, thread: ValueId, by: i64, width: usize) {
        let (by, zero) = (own.int(by), own.int(0));
        let number = own.binary(Binary::Div, thread, by);
        let condition = own.compare(crate::ir::Relation::Eq, number, zero);
        own.when(condition, |own| {
            let wide = own.local("wide", Type::one(Element::F64), width);
            let operands = vec![Operand::Row(wide), Operand::Row(now), Operand::Value(thread)];
            own.perform(Routine::WidenRow(1, 2), operands);
        });
    }

    fn waits(own: &mut Builder, of: Coordinate) {
        let meaning = Meaning::Step(StepData::Barrier);
        let name = own.names().declared("barrier");
        let space = Space::Global { aliased: true };
        let state = own.add_array(Array { name, element: Type::U32, space, is_written: true, watched: None }, meaning);
        let (number, zero) = (own.coordinate(of, Axis::X), own.int(0));
        let condition = own.less(zero, number);
        own.when(condition, |own| own.perform(Routine::GridBarrier, vec![Operand::Place(state, zero)]));
    }

    #[test]
    fn what_is_right_passes() {
        assert_eq!(told(|_, _, _| {}), "");
        assert_eq!(told(|own, [.., now], thread| widened(own, now, thread, 32, 7)), "");
        assert_eq!(told(|own, _, _| waits(own, Coordinate::Blocks)), "");
    }

    #[test]
    fn each_fault_is_found() {
        type Fault = fn(&mut Builder, [ArrayId; 3], ValueId);
        let faults: [(&str, Fault); 9] = [
            ("widen_row takes", |own, [.., now], thread| widened(own, now, thread, 32, 6)),
            ("not all threads come to widen_row", |own, [.., now], thread| widened(own, now, thread, 16, 7)),
            ("not all threads come to grid_barrier", |own, _, _| waits(own, Coordinate::Block)),
            ("load_row takes", |own, [a, _, now], thread| {
                own.perform(Routine::LoadRow(4), vec![Operand::Row(now), Operand::Place(a, thread)]);
            }),
            ("is written by put_row", |own, [a, _, now], thread| {
                own.perform(Routine::PutRow(2), vec![Operand::Place(a, thread), Operand::Row(now)]);
            }),
            ("copy_row takes", |own, [.., now], _| {
                let other = own.local("other", Type::one(Element::F32), 3);
                own.perform(Routine::CopyRow, vec![Operand::Row(other), Operand::Row(now)]);
            }),
            ("made by Load", |own, _, thread| {
                let kept = own.rows("kept", Type::one(Element::F64), (2, 4), Contents::Zeros);
                let element = own.load(kept, thread);
                own.variable("element", element);
            }),
            ("is used where it is not there", |own, [.., now], thread| {
                let (two, mut inner) = (own.int(2), now);
                let condition = own.less(thread, two);
                own.when(condition, |own| inner = own.local("inner", Type::one(Element::F64), 4));
                own.perform(Routine::CopyRow, vec![Operand::Row(inner), Operand::Row(now)]);
            }),
            ("is made twice, or otherwise", |own, [a, _, now], thread| {
                let two = own.int(2);
                let condition = own.less(thread, two);
                own.either("either", condition, [a, now], false);
            }),
        ];
        for (what, fault) in faults {
            let said = told(fault);
            assert!(said.contains(what), "{what}: {said}");
        }
    }
}
