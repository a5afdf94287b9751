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
    /// Lets what is at a place in global memory come to the second-level cache.
    Prefetch,
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
    /// Tells other GPUs that all is done that came before this launch, and waits until they have told the same, if a truth holds. It takes
    /// the numbers that this GPU keeps of that, the addresses of those by which it tells the others, how many others there are, and the truth.
    PeersMeet,
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

/// What is to be known of a routine.
struct Facts {
    name: &'static str,
    together: Together,
    /// The operands whose arrays it writes to.
    writes: &'static [usize],
    numbers: Vec<usize>,
}

impl Routine {
    fn facts(self) -> Facts {
        use Together::{Block, Launch, Nobody, Warp};
        let (name, together, writes, numbers): (_, _, &[usize], _) = match self {
            Routine::CopyAsync(bytes) => ("copy_async", Nobody, &[0], vec![bytes]),
            Routine::CopyRun(count) => ("copy_run", Nobody, &[0], vec![count]),
            Routine::Prefetch => ("prefetch", Nobody, &[], vec![]),
            Routine::CopyAsyncCommit => ("copy_async_commit", Nobody, &[], vec![]),
            Routine::CopyAsyncWait(pending) => ("copy_async_wait", Nobody, &[], vec![pending]),
            Routine::LoadRow(at_once) => ("load_row", Nobody, &[0], vec![at_once]),
            Routine::LoadRowWhere => ("load_row_where", Nobody, &[0], vec![]),
            Routine::PutRow(at_once) => ("put_row", Nobody, &[0], vec![at_once]),
            Routine::PutBetween(at_once) => ("put_between", Nobody, &[0], vec![at_once]),
            Routine::CopyRow => ("copy_row", Nobody, &[0], vec![]),
            Routine::WidenRow(before, after) => ("widen_row", Warp, &[0], vec![before, after]),
            Routine::JoinRows(before, after) => ("join_rows", Warp, &[0], vec![before, after]),
            Routine::GridBarrier => ("grid_barrier", Launch, &[0], vec![]),
            Routine::PushRow => ("push_row", Warp, &[0, 4], vec![]),
            Routine::PullRow => ("pull_row", Warp, &[0], vec![]),
            Routine::BarrierInit => ("mbarrier_init", Nobody, &[0], vec![]),
            Routine::BarrierFence => ("mbarrier_fence", Nobody, &[], vec![]),
            Routine::BarrierExpect => ("mbarrier_expect", Nobody, &[0], vec![]),
            Routine::BarrierWaitCluster => ("mbarrier_wait_cluster", Warp, &[0], vec![]),
            Routine::ClusterArrive => ("cluster_arrive", Launch, &[], vec![]),
            Routine::ClusterWait => ("cluster_wait", Launch, &[], vec![]),
            Routine::FlagRaise => ("flag_raise", Block, &[0], vec![]),
            Routine::FlagWait => ("flag_wait", Block, &[0], vec![]),
            Routine::PeersMeet => ("peers_meet", Block, &[0], vec![]),
        };
        Facts { name, together, writes, numbers }
    }

    /// What it is called: an operation of the hardware, or a function on rows.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The numbers that are part of it.
    pub fn numbers(self) -> Vec<usize> {
        self.facts().numbers
    }

    /// Whether it writes to the array of one of its operands.
    pub fn writes(self, operand: usize) -> bool {
        self.facts().writes.contains(&operand)
    }

    /// Which threads have to do it together.
    pub fn together(self) -> Together {
        self.facts().together
    }

    /// Whether a routine on rows, or one that needs nothing else, can take these operands.
    pub fn takes(self, kernel: &Kernel, operands: &[Operand]) -> bool {
        use OperandType::{Place, Row, Value};
        let kinds: Vec<OperandType> = operands.iter().map(|operand| operand.operand_type(kernel)).collect();
        let fits_at_once = |count: usize, width: usize, kind: Type| {
            count.is_power_of_two() && width.is_multiple_of(count) && count * kind.bytes() <= 16
        };
        let is_copy = |to: Type, from: Type| to.lanes == 1 && from.lanes == 1;
        let is_sent = |width: usize, kind: Type| (width * kind.bytes()).is_multiple_of(SENT);
        match (self, kinds.as_slice()) {
            (Routine::LoadRow(count), &[Row(row, width), Place(from)])
            | (Routine::PutRow(count), &[Place(from), Row(row, width)]) => {
                row == from && fits_at_once(count, width, row)
            }
            (Routine::LoadRowWhere, &[Row(row, _), Place(from), Value(Type::BOOL)]) => row == from,
            (Routine::PutBetween(count), &[Place(to), Row(row, width), Value(Type::I32), Value(Type::I32)]) => {
                row == to && fits_at_once(count, width, row)
            }
            (Routine::CopyRow, &[Row(to, width), Row(from, other)]) => width == other && is_copy(to, from),
            (Routine::WidenRow(before, after), &[Row(to, wide), Row(from, width), Value(Type::I32)]) => {
                wide == before + width + after && is_copy(to, from)
            }
            (
                Routine::JoinRows(before, after),
                &[Row(to, wide), Row(from, width), Row(own, beyond), Value(Type::I32)],
            ) => {
                let is_there = beyond >= before.max(after) && width >= before.max(after);
                is_there && wide == before + width + after && own == from && is_copy(to, from)
            }
            (Routine::GridBarrier | Routine::FlagRaise | Routine::FlagWait, &[Place(Type::U32)]) => true,
            (Routine::PeersMeet, &[Place(Type::U32), Place(Type::I64), Value(Type::I32), Value(Type::BOOL)]) => true,
            (
                Routine::PushRow,
                &[Place(to), Row(row, width), Value(Type::I32), Value(Type::U32), Place(Type::BARRIER)],
            ) => to == row && is_sent(width, row),
            (Routine::PullRow, &[Row(row, width), Place(from), Value(Type::I32)]) => row == from && is_sent(width, row),
            (
                Routine::BarrierInit | Routine::BarrierExpect | Routine::BarrierWaitCluster,
                &[Place(Type::BARRIER), Value(Type::U32)],
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
    use super::super::build::{Builder, Making};
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
        let name = own.declared("barrier");
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
