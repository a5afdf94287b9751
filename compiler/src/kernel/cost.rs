//! What a kernel does, counted in one walk over its body.
//!
//! Counts are those of a thread that leaves out nothing, as the kernel is written. A statement works out each value that it is made of
//! once, both sides of a choice count, and of two branches, count by count, the one that does more. What stands in a loop of known
//! length counts as often as the loop turns at most; what stands in others is counted beside, for one turn. Compilers may find out that
//! some of it is the same. What loops themselves count is left out, and so is what the addresses of elements take.

use super::{
    Argument, ArgumentKind, ArrayId, Binary, Block, Contents, Coordinate, Element, For, Function, Kernel, Operand,
    Operation, Routine, Space, Statement, Step, Type, ValueId, live,
};
use crate::ir::{self, Handle};
use std::collections::BTreeMap;

/// What a kernel does and needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// What a thread does outside of loops of unknown length.
    pub thread: Counts,
    /// What one turn of each loop of unknown length does, added up.
    pub turn: Counts,
    /// Loops whose length is known.
    pub known_loops: usize,
    /// Loops whose length is not.
    pub unknown_loops: usize,
    /// Bytes of shared memory of a block.
    pub shared_bytes: usize,
    /// Registers that a thread needs: the most words of 32 bits that wait at one place.
    pub waiting: usize,
}

/// Bytes that are read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that are read.
    pub read: u64,
    /// Bytes that are written.
    pub written: u64,
}

/// What a thread does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of each array. What is looked at through a view is the array's that the view is of.
    pub moved: BTreeMap<ArrayId, Moved>,
    /// Loads from tables: those of a storage or a mesh, and those in constant memory.
    pub lookups: u64,
    /// Operations on real numbers: arithmetic, functions, comparisons, choices, conversions. A fused multiply-add is one.
    pub real: u64,
    /// Those of them that take many instructions: divisions, roots, functions.
    pub slow: u64,
    /// Operations on whole numbers and truths.
    pub whole: u64,
    /// Values that lanes of a warp hand on to each other.
    pub exchanges: u64,
    /// Additions by atomic operations.
    pub atomics: u64,
    /// Barriers and other places where a thread waits for others, or for a copy.
    pub waits: u64,
}

/// Where the bytes of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In global memory.
    Global,
    /// In the shared memory of a block.
    Shared,
    /// A thread's own: in registers, or in local memory.
    Own,
    /// In constant memory.
    Constant,
}

impl Cost {
    /// The cost of a kernel.
    pub fn of(kernel: &Kernel) -> Self {
        let mut counter = Counter::new(kernel);
        counter.cost.thread = counter.of_block(&kernel.body);
        let shared = kernel.arrays.iter().map(|(_, own)| match own.space {
            Space::Shared(count) => count * own.element.bytes(),
            Space::Dynamic(bytes) => bytes,
            Space::Global { .. } | Space::Part { .. } | Space::View(_) => 0,
            Space::Local(_) | Space::Rows(..) | Space::Constant(_) => 0,
        });
        Self { shared_bytes: shared.sum(), waiting: live::waiting(kernel), ..counter.cost }
    }
}

impl Counts {
    /// The bytes of all arrays in one kind of memory.
    pub fn moved_in(&self, kernel: &Kernel, memory: Memory) -> Moved {
        let own = self.moved.iter().filter(|(array, _)| kernel.memory_of(**array) == memory);
        own.fold(Moved::default(), |sum, (_, own)| sum.with(*own, &|sum, own| sum.saturating_add(own)))
    }

    /// The same by a function of each count and that of others.
    fn with(mut self, others: &Counts, of: &dyn Fn(u64, u64) -> u64) -> Self {
        for (array, own) in &others.moved {
            let known = self.moved.entry(*array).or_default();
            *known = known.with(*own, of);
        }
        let Counts { moved: _, lookups, real, slow, whole, exchanges, atomics, waits } = *others;
        Self {
            lookups: of(self.lookups, lookups),
            real: of(self.real, real),
            slow: of(self.slow, slow),
            whole: of(self.whole, whole),
            exchanges: of(self.exchanges, exchanges),
            atomics: of(self.atomics, atomics),
            waits: of(self.waits, waits),
            moved: self.moved,
        }
    }

    /// Adds what is done several times. More than fits is the most that fits.
    fn add(&mut self, others: &Counts, times: u64) {
        *self = std::mem::take(self).with(others, &|own, other| own.saturating_add(other.saturating_mul(times)));
    }
}

impl Moved {
    fn with(self, other: Moved, of: &dyn Fn(u64, u64) -> u64) -> Self {
        Self { read: of(self.read, other.read), written: of(self.written, other.written) }
    }
}

impl Kernel {
    /// The array whose elements those of an array are: its own, unless it is a view.
    pub fn home_of(&self, mut array: ArrayId) -> ArrayId {
        // A view is of an array that there was before.
        while let Space::View(of) = self.arrays[array].space {
            array = of;
        }
        array
    }

    /// Where the elements of an array are.
    pub fn memory_of(&self, array: ArrayId) -> Memory {
        match self.arrays[self.home_of(array)].space {
            Space::Global { .. } => Memory::Global,
            Space::Shared(_) | Space::Dynamic(_) | Space::Part { .. } => Memory::Shared,
            Space::Local(_) | Space::Rows(..) | Space::View(_) => Memory::Own,
            Space::Constant(_) => Memory::Constant,
        }
    }
}

/// Counts what parts of a kernel do.
pub struct Counter<'a> {
    kernel: &'a Kernel,
    is_table: Vec<bool>,
    /// In which round each value was counted last.
    seen: Vec<usize>,
    round: usize,
    cost: Cost,
}

impl<'a> Counter<'a> {
    /// Of a kernel.
    pub fn new(kernel: &'a Kernel) -> Self {
        let mut is_table: Vec<bool> =
            kernel.arrays.iter().map(|(_, array)| matches!(array.space, Space::Constant(_))).collect();
        for (_, Argument { what, meaning, .. }) in kernel.arguments.iter() {
            if let ArgumentKind::Array(array) = what {
                is_table[array.index()] = meaning.is_table();
            }
        }
        Self { kernel, is_table, seen: vec![0; kernel.values.len()], round: 0, cost: Cost::default() }
    }

    /// What the statements of a block do outside of loops of unknown length.
    pub fn of_block(&mut self, block: &Block) -> Counts {
        let mut counts = Counts::default();
        for statement in &block.0 {
            counts.add(&self.of_statement(statement), 1);
        }
        counts
    }

    /// What a value takes where it is used: nothing for one that has a name.
    pub fn of_value(&mut self, value: ValueId) -> Counts {
        let mut counts = Counts::default();
        self.values(vec![value], &mut counts);
        counts
    }

    fn of_statement(&mut self, statement: &Statement) -> Counts {
        let mut counts = Counts::default();
        match statement {
            Statement::Let(value) => {
                self.operation(*value, &mut counts);
                self.values(self.kernel.values[*value].operation.operands(), &mut counts);
                return counts;
            }
            Statement::If(_, yes, no) => {
                let (yes, no) = (self.of_block(yes), self.of_block(no));
                counts = yes.with(&no, &|a, b| a.max(b));
            }
            Statement::For(own) => {
                let body = self.of_block(&own.body);
                match turns(self.kernel, own) {
                    Some(turns) => {
                        self.cost.known_loops += 1;
                        counts.add(&body, turns);
                    }
                    None => {
                        self.cost.unknown_loops += 1;
                        self.cost.turn.add(&body, 1);
                    }
                }
            }
            Statement::Store(array, _, value) => self.moves(*array, 0, self.bytes(*value), &mut counts),
            Statement::AtomicAdd(array, _, values) => {
                let bytes = values.iter().map(|&value| self.bytes(value)).sum();
                self.moves(*array, bytes, bytes, &mut counts);
                counts.atomics = values.len() as u64;
            }
            Statement::Array(array, Contents::Zeros | Contents::Listed(_)) => {
                let own = &self.kernel.arrays[*array];
                let count = match own.space {
                    Space::Local(count) => count,
                    Space::Rows(count, width) => count * width,
                    Space::Global { .. } | Space::Shared(_) | Space::Dynamic(_) | Space::Part { .. } => 0,
                    Space::View(_) | Space::Constant(_) => 0,
                };
                self.moves(*array, 0, count * own.element.bytes(), &mut counts);
            }
            Statement::Do(routine, operands) => self.routine(*routine, operands, &mut counts),
            Statement::Barrier => counts.waits = 1,
            Statement::Array(_, Contents::Unset | Contents::From(_) | Contents::Either(..)) => {}
            Statement::Declare(..) | Statement::Assign(..) | Statement::Break | Statement::Return => {}
            Statement::GiveUp | Statement::Gap | Statement::Note(_) => {}
        }
        self.values(statement.values(), &mut counts);
        counts
    }

    /// What values take that a statement uses, each once. Those that have a name are there already.
    fn values(&mut self, mut left: Vec<ValueId>, counts: &mut Counts) {
        self.round += 1;
        while let Some(value) = left.pop() {
            let own = &self.kernel.values[value];
            if own.name.is_none() && std::mem::replace(&mut self.seen[value.index()], self.round) != self.round {
                self.operation(value, counts);
                left.append(&mut own.operation.operands());
            }
        }
    }

    /// What an operation takes by itself, without its operands.
    fn operation(&self, value: ValueId, counts: &mut Counts) {
        let own = &self.kernel.values[value];
        let number = u64::from(own.kind.lanes);
        let mut is_slow = false;
        match &own.operation {
            Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_) => return,
            Operation::Argument(_) | Operation::Variable(_) | Operation::Coordinate(..) => return,
            Operation::Lane(..) | Operation::Lanes(_) => return,
            Operation::Call(Function::Opaque | Function::ClusterRank, _) => return,
            Operation::Load(array, _) => {
                counts.lookups += u64::from(self.is_table[array.index()]);
                return self.moves(*array, own.kind.bytes(), 0, counts);
            }
            Operation::Follow(follow) => {
                for array in [Some(follow.table), follow.patterns].into_iter().flatten() {
                    counts.lookups += u64::from(self.is_table[array.index()]);
                    self.moves(array, self.kernel.arrays[array].element.bytes(), 0, counts);
                }
                // Where the entry is, and what it leads to.
                counts.whole += 2;
                return;
            }
            Operation::ShuffleDown(..) | Operation::Shuffle { .. } => {
                counts.exchanges += 1;
                return;
            }
            Operation::Binary(Binary::Div | Binary::Rem, ..) => is_slow = true,
            Operation::Call(function, _) => is_slow = is_slow_function(*function),
            Operation::Binary(..) | Operation::Negate(_) | Operation::Not(_) | Operation::Compare(..) => {}
            Operation::And(..) | Operation::Or(..) | Operation::Choose(..) | Operation::Convert(_) => {}
        }
        let is_real = |kind: Type| matches!(kind.element, Element::F32 | Element::F64);
        let mut operands = own.operation.operands().into_iter();
        if is_real(own.kind) || operands.any(|operand| is_real(self.kernel.values[operand].kind)) {
            counts.real += number;
            counts.slow += if is_slow { number } else { 0 };
        } else {
            counts.whole += number;
        }
    }

    /// What a routine moves: rows, and from places as much as goes into or comes out of them.
    fn routine(&self, routine: Routine, operands: &[Operand], counts: &mut Counts) {
        let kernel = self.kernel;
        let width = |operand: &Operand| match operand {
            Operand::Value(_) => None,
            Operand::Row(array) => kernel.row_width(*array),
            Operand::Place(array, _) => match kernel.arrays[*array].space {
                Space::Rows(_, width) => Some(width),
                Space::Global { .. } | Space::Shared(_) | Space::Dynamic(_) | Space::Part { .. } => None,
                Space::View(_) | Space::Local(_) | Space::Constant(_) => None,
            },
        };
        let usual = operands.iter().find_map(width).unwrap_or(0);
        for (number, operand) in operands.iter().enumerate() {
            let Some(array) = operand.array() else { continue };
            let element = kernel.arrays[array].element;
            let bytes = match routine {
                // Barriers hold no data.
                _ if element == Type::BARRIER => 0,
                Routine::CopyAsync(bytes) => bytes,
                Routine::CopyRun(count) => count * element.bytes(),
                Routine::LoadRow(_) | Routine::LoadRowWhere | Routine::PutRow(_) | Routine::PutBetween(_) => {
                    width(operand).unwrap_or(usual) * element.bytes()
                }
                Routine::CopyRow
                | Routine::WidenRow(..)
                | Routine::JoinRows(..)
                | Routine::PushRow
                | Routine::PullRow => width(operand).unwrap_or(usual) * element.bytes(),
                Routine::CopyAsyncCommit | Routine::CopyAsyncWait(_) | Routine::GridBarrier => 0,
                Routine::BarrierInit | Routine::BarrierFence | Routine::BarrierExpect => 0,
                Routine::BarrierWaitCluster | Routine::ClusterArrive | Routine::ClusterWait => 0,
                Routine::FlagRaise | Routine::FlagWait => 0,
            };
            match routine.writes(number) {
                true => self.moves(array, 0, bytes, counts),
                false => self.moves(array, bytes, 0, counts),
            }
        }
        match routine {
            Routine::WidenRow(before, after) | Routine::JoinRows(before, after) => {
                counts.exchanges += (before + after) as u64;
            }
            Routine::CopyAsyncWait(_) | Routine::GridBarrier | Routine::BarrierWaitCluster => counts.waits += 1,
            Routine::ClusterWait | Routine::FlagWait => counts.waits += 1,
            Routine::CopyAsync(_) | Routine::CopyRun(_) | Routine::CopyAsyncCommit | Routine::CopyRow => {}
            Routine::LoadRow(_) | Routine::LoadRowWhere | Routine::PutRow(_) | Routine::PutBetween(_) => {}
            Routine::PushRow | Routine::PullRow | Routine::BarrierInit | Routine::BarrierFence => {}
            Routine::BarrierExpect | Routine::ClusterArrive | Routine::FlagRaise => {}
        }
    }

    fn moves(&self, array: ArrayId, read: usize, written: usize, counts: &mut Counts) {
        if read + written > 0 {
            let known = counts.moved.entry(self.kernel.home_of(array)).or_default();
            let own = Moved { read: read as u64, written: written as u64 };
            *known = known.with(own, &|known, own| known.saturating_add(own));
        }
    }

    fn bytes(&self, value: ValueId) -> usize {
        self.kernel.values[value].kind.bytes()
    }
}

/// Whether a function of real numbers takes many instructions.
fn is_slow_function(function: Function) -> bool {
    match function {
        Function::Scalar(own, _) => own == ir::Function::Sqrt || own.is_inexact(),
        Function::Rem | Function::Inverse => true,
        Function::WrappingAdd | Function::WrappingSub | Function::WrappingMul | Function::Less => false,
        Function::Opaque | Function::Turned | Function::Quotient | Function::Interleaved(_) => false,
        Function::ClusterRank | Function::WatchShift | Function::WatchNeighbour | Function::WatchLevel => false,
    }
}

/// How often a loop turns at most, if its numbers say so. That of a thread is at least 0.
fn turns(kernel: &Kernel, own: &For) -> Option<u64> {
    let number = |value: ValueId| match kernel.values[value].operation {
        Operation::Int(number) => Some(number),
        _ => None,
    };
    let from_thread = matches!(kernel.values[own.first].operation, Operation::Coordinate(Coordinate::Thread, _));
    let (first, end) = (number(own.first), number(own.end)?);
    let length = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    match own.step {
        Step::By(step) => {
            let first = first.or(from_thread.then_some(0))?;
            number(step).filter(|&step| step > 0).map(|step| length(first, end).div_ceil(step.unsigned_abs()))
        }
        Step::Down(step) => {
            let step = number(step).filter(|&step| step > 0)?;
            Some(length(end, first?.saturating_add(1)).div_ceil(step.unsigned_abs()))
        }
        Step::Doubled => {
            let first = first.filter(|&first| first > 0)?;
            let powers = std::iter::successors(Some(first), |&power| power.checked_mul(2));
            Some(powers.take_while(|&power| power < end).count() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::{Builder, Making};
    use super::super::{Array, Axis, Follow, Meaning, MeshData, Unroll};
    use super::*;
    use crate::ir::Relation;

    const REAL: Type = Type::one(Element::F64);

    fn kernel(write: impl FnOnce(&mut Builder, ValueId)) -> Kernel {
        let mut own = Builder::new("own", 64, "");
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        write(&mut own, thread);
        own.finish()
    }

    fn array(own: &mut Builder, name: &str, (element, is_written): (Type, bool), meaning: Meaning) -> ArrayId {
        let name = own.names().declared(name);
        let space = Space::Global { aliased: false };
        own.add_array(Array { name, element, space, is_written, watched: None }, meaning)
    }

    fn moved(read: u64, written: u64) -> Moved {
        Moved { read, written }
    }

    #[test]
    fn a_statement_works_out_each_value_once() {
        let mut arrays = Vec::new();
        let kernel = kernel(|own, thread| {
            let (a, b) = (own.input("a", REAL), own.output("b", Type::one(Element::F32)));
            arrays = vec![a, b];
            let one = own.int(1);
            let next = own.add(thread, one);
            let (x, y) = (own.load(a, thread), own.load(a, next));
            let sum = own.add(x, y);
            let product = own.mul(sum, sum);
            let product = own.binary(Binary::Div, product, x);
            let rounded = own.convert(product, Type::one(Element::F32));
            own.store(b, thread, rounded);
            own.store(b, next, rounded);
        });
        let cost = Cost::of(&kernel);
        // Twice: 16 bytes of doubles, a sum, a product, a quotient and a conversion; and the index of the next element.
        assert_eq!(cost.thread.moved, BTreeMap::from([(arrays[0], moved(32, 0)), (arrays[1], moved(0, 8))]));
        assert_eq!((cost.thread.real, cost.thread.slow, cost.thread.whole), (8, 2, 2));
        assert_eq!(cost.thread.moved_in(&kernel, Memory::Global), moved(32, 8));
        assert_eq!((cost.thread.lookups, cost.turn, cost.waiting), (0, Counts::default(), 0));
    }

    #[test]
    fn loops_count_as_often_as_they_turn() {
        type MakeStep = fn(ValueId) -> Step;
        let steps: [(i64, i64, MakeStep, u64); 5] = [
            (0, 10, Step::By, 4),
            (1, 10, Step::By, 3),
            (9, 3, Step::By, 0),
            (9, 3, Step::Down, 3),
            (3, 25, |_| Step::Doubled, 4),
        ];
        for (first, end, step, turns) in steps {
            let kernel = kernel(|own, thread| {
                let b = own.output("b", REAL);
                let [first, end, three] = [first, end, 3].map(|number| own.int(number));
                own.each("n", (first, end, step(three)), Unroll::Free, |own, n| {
                    let index = own.add(thread, n);
                    let real = own.convert(n, REAL);
                    own.store(b, index, real);
                });
            });
            let cost = Cost::of(&kernel);
            assert_eq!((cost.thread.real, cost.thread.whole), (turns, turns), "{first}..{end}");
            assert_eq!(cost.thread.moved_in(&kernel, Memory::Global), moved(0, 8 * turns));
            assert_eq!((cost.known_loops, cost.unknown_loops), (1, 0));
        }
    }

    #[test]
    fn loops_of_unknown_length_are_counted_for_one_turn() {
        let kernel = kernel(|own, thread| {
            let (b, count) = (own.output("b", REAL), own.number("count", Type::I32));
            let [zero, one, five, sixty_four] = [0, 1, 5, 64].map(|number| own.int(number));
            own.each("n", (zero, count, Step::By(one)), Unroll::Free, |own, n| {
                own.each("m", (zero, five, Step::By(one)), Unroll::Free, |own, m| {
                    let index = own.add(n, m);
                    let real = own.convert(thread, REAL);
                    own.store(b, index, real);
                });
            });
            // Of a thread that is the first of 64, three turns; of others at most as many.
            let end = own.int(130);
            own.each("t", (thread, end, Step::By(sixty_four)), Unroll::Free, |own, _| own.barrier());
        });
        let cost = Cost::of(&kernel);
        assert_eq!((cost.known_loops, cost.unknown_loops), (2, 1));
        assert_eq!((cost.turn.whole, cost.turn.real), (5, 5));
        assert_eq!(cost.turn.moved_in(&kernel, Memory::Global), moved(0, 40));
        assert_eq!(cost.thread, Counts { waits: 3, ..Counts::default() });
    }

    #[test]
    fn of_two_branches_the_one_counts_that_does_more() {
        let kernel = kernel(|own, thread| {
            let (a, b) = (own.input("a", REAL), own.output("b", REAL));
            let zero = own.int(0);
            let condition = own.compare(Relation::Eq, thread, zero);
            let (yes, no) = (own.open(), own.open());
            own.within(yes, |own| {
                let x = own.load(a, thread);
                own.store(b, thread, x);
                own.atomic_add(b, zero, vec![x]);
            });
            own.within(no, |own| {
                let real = own.convert(thread, REAL);
                let root = own.call(Function::Scalar(ir::Function::Sqrt, Default::default()), vec![real], REAL);
                own.store(b, thread, root);
            });
            own.branch(condition, yes, no);
        });
        let counts = Cost::of(&kernel).thread;
        // One side loads twice, stores and adds; the other converts, takes a root and stores. Both compare.
        assert_eq!((counts.real, counts.slow, counts.whole, counts.atomics), (2, 1, 1, 1));
        assert_eq!(counts.moved_in(&kernel, Memory::Global), moved(24, 16));
    }

    #[test]
    fn tables_and_each_kind_of_memory_are_told_apart() {
        let mut map = None;
        let kernel = kernel(|own, thread| {
            let table = array(own, "table", (Type::I32, false), Meaning::Table(0));
            let patterns = array(own, "patterns", (Type::one(Element::U8), false), Meaning::Table(1));
            let users = array(own, "users", (Type::I32, false), Meaning::Mesh(MeshData::Users(Handle::new(0))));
            map = Some(users);
            let a = array(own, "a", (REAL, false), Meaning::Input(Handle::new(0)));
            let (tile, kept) = (own.shared("tile", REAL, 64), own.local("kept", REAL, 2));
            let [zero, one] = [0, 1].map(|number| own.int(number));
            let place = own.follow(Follow { patterns: Some(patterns), table, start: zero, place: thread });
            let place = own.name("place", place);
            let user = own.load(users, place);
            let x = own.load(a, user);
            own.store(tile, thread, x);
            own.barrier();
            let x = own.load(tile, thread);
            own.store(kept, zero, x);
            let x = own.load(kept, zero);
            own.store(kept, one, x);
        });
        let cost = Cost::of(&kernel);
        let in_memory = |memory| cost.thread.moved_in(&kernel, memory);
        assert_eq!((cost.thread.lookups, cost.thread.whole, cost.thread.waits, cost.shared_bytes), (3, 2, 1, 512));
        assert_eq!(in_memory(Memory::Global), moved(4 + 1 + 4 + 8, 0));
        assert_eq!((in_memory(Memory::Shared), in_memory(Memory::Own)), (moved(8, 8), moved(8, 16)));
        assert_eq!(map.map(|map| cost.thread.moved[&map]), Some(moved(4, 0)));
        // The array `kept`, from where it is made, and for a while `place`.
        assert_eq!(cost.waiting, 5);
    }

    #[test]
    fn rows_move_as_a_whole() {
        let kernel = kernel(|own, thread| {
            let (a, b) = (own.aliased("a", REAL, false), own.aliased("b", REAL, true));
            let row = own.local("row", REAL, 4);
            own.perform(Routine::LoadRow(2), vec![Operand::Row(row), Operand::Place(a, thread)]);
            let wide = own.local("wide", REAL, 7);
            let operands = vec![Operand::Row(wide), Operand::Row(row), Operand::Value(thread)];
            own.perform(Routine::WidenRow(1, 2), operands);
            own.perform(Routine::PutRow(1), vec![Operand::Place(b, thread), Operand::Row(wide)]);
        });
        let cost = Cost::of(&kernel);
        assert_eq!(cost.thread.moved_in(&kernel, Memory::Global), moved(32, 56));
        assert_eq!(cost.thread.moved_in(&kernel, Memory::Own), moved(32 + 56, 32 + 56));
        assert_eq!((cost.thread.exchanges, cost.waiting), (3, 2 * (4 + 7)));
    }

    /// An element of an array, by a name of its own.
    fn named(own: &mut Builder, name: &str, (array, index): (ArrayId, i64)) -> ValueId {
        let index = own.int(index);
        let element = own.load(array, index);
        own.name(name, element)
    }

    #[test]
    fn what_waits_is_counted_where_most_of_it_does() {
        type Write = fn(&mut Builder, ArrayId, ValueId);
        let cases: [(&str, usize, Write); 4] = [
            ("three elements, until two become one", 6, |own, a, thread| {
                let [x, y, z] = [("x", 0), ("y", 1), ("z", 2)].map(|(name, at)| named(own, name, (a, at)));
                let sum = own.add(x, y);
                let sum = own.name("sum", sum);
                let all = own.add(sum, z);
                own.store(a, thread, all);
            }),
            ("two of a branch and one from before, not what the other branch wants", 6, |own, a, thread| {
                let [x, y] = [("x", 0), ("y", 1)].map(|(name, at)| named(own, name, (a, at)));
                let zero = own.int(0);
                let condition = own.less(thread, zero);
                let (yes, no) = (own.open(), own.open());
                own.within(yes, |own| {
                    let [p, q] = [("p", 2), ("q", 3)].map(|(name, at)| named(own, name, (a, at)));
                    [p, q, x].into_iter().for_each(|value| own.store(a, thread, value));
                });
                own.within(no, |own| own.store(a, thread, y));
                own.branch(condition, yes, no);
            }),
            ("two of a turn, the counter, and what the next turn wants", 7, |own, a, thread| {
                let x = named(own, "x", (a, 0));
                let [zero, one, nine] = [0, 1, 9].map(|number| own.int(number));
                own.each("n", (zero, nine, Step::By(one)), Unroll::Free, |own, n| {
                    own.store(a, n, x);
                    let [p, q] = [("p", 2), ("q", 3)].map(|(name, at)| named(own, name, (a, at)));
                    [p, q].into_iter().for_each(|value| own.store(a, thread, value));
                });
            }),
            ("an array by literals, and not the one by a counter", 6 + 1, |own, a, _| {
                let [zero, one, three] = [0, 1, 3].map(|number| own.int(number));
                let (kept, far) = (own.local("kept", REAL, 3), own.local("far", REAL, 3));
                for unroll in [Unroll::Whole, Unroll::Free] {
                    own.each("n", (zero, three, Step::By(one)), unroll, |own, n| {
                        let x = own.load(a, n);
                        own.store(if unroll == Unroll::Whole { kept } else { far }, n, x);
                    });
                }
                let (x, y) = (own.load(kept, one), own.load(far, one));
                let sum = own.add(x, y);
                own.store(a, zero, sum);
            }),
        ];
        for (what, words, write) in cases {
            let kernel = kernel(|own, thread| {
                let a = own.output("a", REAL);
                write(own, a, thread);
            });
            assert_eq!(Cost::of(&kernel).waiting, words, "{what}");
        }
    }
}
