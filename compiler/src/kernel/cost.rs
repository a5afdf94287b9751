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
                // What it lets come is counted where it is loaded.
                Routine::Prefetch => 0,
                Routine::CopyAsyncCommit | Routine::CopyAsyncWait(_) | Routine::GridBarrier => 0,
                Routine::BarrierInit | Routine::BarrierFence | Routine::BarrierExpect => 0,
                Routine::BarrierWaitCluster | Routine::ClusterArrive | Routine::ClusterWait => 0,
                Routine::FlagRaise | Routine::FlagWait | Routine::PeersMeet => 0,
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
            Routine::ClusterWait | Routine::FlagWait | Routine::PeersMeet => counts.waits += 1,
            Routine::CopyAsync(_) | Routine::CopyRun(_) | Routine::CopyAsyncCommit | Routine::CopyRow => {}
            Routine::Prefetch => {}
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
mod tests;
