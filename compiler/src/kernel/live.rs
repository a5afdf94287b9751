//! The values that wait in registers: computed, and not yet used for the last time.
//!
//! Statements are walked backwards, and those of a loop twice, since what the next turn wants waits through all of this one. Literals,
//! arguments and truths take no register, nor do values without a name, which are computed where they are used, nor arrays of a thread's
//! own that are indexed by what is not known before. So many registers are needed at least, as the kernel is written: addresses come
//! on top, and compilers may put statements in another order.

use super::{ArrayId, Block, Contents, Element, Kernel, Memory, Operand, Operation, Space, Statement, Step, Type};
use super::{Unroll, ValueId, VariableId};
use crate::ir::Handle;
use std::collections::BTreeSet;

/// What may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Value(ValueId),
    Variable(VariableId),
    /// An array of a thread's own, or where a view begins.
    Array(ArrayId),
}

/// What waits at a place, and how many words of 32 bits that are.
#[derive(Clone, Default)]
struct Live {
    items: BTreeSet<Item>,
    words: usize,
}

/// The most words of 32 bits that wait at one place of a kernel.
pub fn waiting(kernel: &Kernel) -> usize {
    let mut walk = Walk { kernel, unrolled: BTreeSet::new(), is_scattered: vec![false; kernel.arrays.len()], most: 0 };
    walk.look_around();
    walk.back(&kernel.body, &mut Live::default(), &Live::default());
    walk.most
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// Counters of loops that are written out, once for each turn: they are literals.
    unrolled: BTreeSet<VariableId>,
    /// Whether an array is indexed by what is not known before.
    is_scattered: Vec<bool>,
    most: usize,
}

impl Walk<'_> {
    /// Finds the loops that are written out, and the arrays that cannot be in registers.
    fn look_around(&mut self) {
        let mut indexed: Vec<(ArrayId, ValueId)> = Vec::new();
        for statement in self.kernel.body.all() {
            match statement {
                Statement::For(own) if own.unroll == Unroll::Whole => _ = self.unrolled.insert(own.counter),
                Statement::Store(array, index, _) | Statement::AtomicAdd(array, index, _) => {
                    indexed.push((*array, *index))
                }
                Statement::Array(array, Contents::From(index)) => indexed.push((*array, *index)),
                Statement::Do(_, operands) => indexed.extend(operands.iter().filter_map(|operand| match operand {
                    Operand::Place(array, index) => Some((*array, *index)),
                    Operand::Value(_) | Operand::Row(_) => None,
                })),
                Statement::Array(_, Contents::Unset | Contents::Zeros | Contents::Listed(_) | Contents::Either(..)) => {
                }
                Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::If(..) => {}
                Statement::For(_) | Statement::Barrier | Statement::Break | Statement::Return => {}
                Statement::GiveUp | Statement::Gap | Statement::Note(_) => {}
            }
        }
        indexed.extend(self.kernel.values.iter().filter_map(|(_, own)| match own.operation {
            Operation::Load(array, index) => Some((array, index)),
            _ => None,
        }));
        for (array, index) in indexed {
            if !self.is_known(index) {
                self.is_scattered[self.kernel.home_of(array).index()] = true;
            }
        }
    }

    /// Whether a number is a literal once loops are written out.
    fn is_known(&self, value: ValueId) -> bool {
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            let operation = &self.kernel.values[value].operation;
            match operation {
                Operation::Int(_) => {}
                Operation::Variable(variable) if self.unrolled.contains(variable) => {}
                Operation::Binary(..) | Operation::Negate(_) | Operation::Convert(_) => {
                    left.append(&mut operation.operands())
                }
                _ => return false,
            }
        }
        true
    }

    /// Goes back through a block: from what is wanted behind it to what is wanted before it. `behind` is what is wanted behind the
    /// innermost loop.
    fn back(&mut self, block: &Block, live: &mut Live, behind: &Live) {
        for statement in block.0.iter().rev() {
            match statement {
                Statement::Let(value) => {
                    self.leave(Item::Value(*value), live);
                    self.use_all(self.kernel.values[*value].operation.operands(), live);
                    self.use_arrays_of(*value, live);
                }
                Statement::Declare(variable, _) | Statement::Assign(variable, _) => {
                    self.leave(Item::Variable(*variable), live);
                }
                Statement::Array(array, _) => {
                    self.leave(Item::Array(*array), live);
                    if let Space::View(of) = self.kernel.arrays[*array].space {
                        self.use_array(of, live);
                    }
                }
                Statement::If(_, yes, no) => {
                    let mut other = live.clone();
                    self.back(yes, live, behind);
                    self.back(no, &mut other, behind);
                    self.wait_all(&other, live);
                }
                Statement::For(own) => {
                    let after = live.clone();
                    let mut each_turn = vec![own.end];
                    if let Step::By(step) | Step::Down(step) = own.step {
                        each_turn.push(step);
                    }
                    for _ in 0..2 {
                        self.wait_all(&after, live);
                        self.wait(Item::Variable(own.counter), live);
                        self.use_all(each_turn.clone(), live);
                        self.note(live);
                        self.back(&own.body, live, &after);
                    }
                    self.wait_all(&after, live);
                    self.leave(Item::Variable(own.counter), live);
                }
                Statement::Break => live.clone_from(behind),
                Statement::Return => *live = Live::default(),
                Statement::Store(..) | Statement::AtomicAdd(..) | Statement::Do(..) | Statement::Barrier => {}
                Statement::GiveUp | Statement::Gap | Statement::Note(_) => {}
            }
            if !matches!(statement, Statement::Let(_)) {
                self.use_all(statement.values(), live);
            }
            if !matches!(statement, Statement::Array(..)) {
                statement.arrays().into_iter().for_each(|array| self.use_array(array, live));
            }
            self.note(live);
        }
    }

    /// What has a name and values are made of, down to that.
    fn use_all(&self, mut left: Vec<ValueId>, live: &mut Live) {
        let mut seen = BTreeSet::new();
        while let Some(value) = left.pop() {
            let own = &self.kernel.values[value];
            if own.name.is_some() {
                self.wait(Item::Value(value), live);
            } else if seen.insert(value) {
                self.use_arrays_of(value, live);
                left.append(&mut own.operation.operands());
            }
        }
    }

    /// What an operation looks at that is no value.
    fn use_arrays_of(&self, value: ValueId, live: &mut Live) {
        match self.kernel.values[value].operation {
            Operation::Variable(variable) => self.wait(Item::Variable(variable), live),
            Operation::Load(array, _) => self.use_array(array, live),
            _ => {}
        }
    }

    fn use_array(&self, array: ArrayId, live: &mut Live) {
        self.wait(Item::Array(array), live);
        self.wait(Item::Array(self.kernel.home_of(array)), live);
    }

    /// Something waits from here on, going back. What takes no register is not kept.
    fn wait(&self, item: Item, live: &mut Live) {
        let words = self.words(item);
        if words > 0 && live.items.insert(item) {
            live.words += words;
        }
    }

    fn wait_all(&self, others: &Live, live: &mut Live) {
        others.items.iter().for_each(|&item| self.wait(item, live));
    }

    /// Before here, nothing of it waits.
    fn leave(&self, item: Item, live: &mut Live) {
        if live.items.remove(&item) {
            live.words -= self.words(item);
        }
    }

    fn note(&mut self, live: &Live) {
        self.most = self.most.max(live.words);
    }

    /// Registers that something takes while it waits.
    fn words(&self, item: Item) -> usize {
        let of_type = |kind: Type| if kind.element == Element::Bool { 0 } else { kind.registers() };
        match item {
            Item::Value(value) => match self.kernel.values[value].operation {
                Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_) => 0,
                Operation::Argument(_) => 0,
                _ => of_type(self.kernel.values[value].kind),
            },
            Item::Variable(variable) if self.unrolled.contains(&variable) => 0,
            Item::Variable(variable) => of_type(self.kernel.variables[variable].kind),
            Item::Array(array) => {
                let own = &self.kernel.arrays[array];
                match own.space {
                    _ if self.is_scattered[array.index()] => 0,
                    Space::Local(count) => (count * own.element.bytes()).div_ceil(4),
                    Space::Rows(count, width) => (count * width * own.element.bytes()).div_ceil(4),
                    // Where it begins, in 64 bits.
                    Space::View(_) if self.kernel.memory_of(array) != Memory::Own => 2,
                    Space::View(_) | Space::Global { .. } | Space::Shared(_) | Space::Dynamic(_) => 0,
                    Space::Part { .. } | Space::Constant(_) => 0,
                }
            }
        }
    }
}
