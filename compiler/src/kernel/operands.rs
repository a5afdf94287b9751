//! What operations and statements are made of.

use super::{
    Array, ArrayId, Block, Contents, Follow, For, Kernel, Operand, Operation, Space, Statement, Step, ValueId,
};
use crate::names::Identifier;

/// The values that an operation is made of, borrowed as it is: to be read (`as_ref`) or to be changed (`as_mut`).
macro_rules! operands {
    ($operation:expr, $borrow:ident) => {
        match $operation {
            Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_) => Vec::new(),
            Operation::Argument(_) | Operation::Variable(_) | Operation::Coordinate(..) => Vec::new(),
            Operation::Negate(a) | Operation::Not(a) => vec![a],
            Operation::Convert(a) | Operation::Lane(a, _) | Operation::Load(_, a) => vec![a],
            Operation::Binary(_, a, b) | Operation::Compare(_, a, b) => vec![a, b],
            Operation::And(a, b) | Operation::Or(a, b) | Operation::ShuffleDown(a, b) => vec![a, b],
            Operation::Choose(condition, yes, no) => vec![condition, yes, no],
            Operation::Lanes(operands) | Operation::Call(_, operands) => Vec::from_iter(operands),
            Operation::Shuffle { value, lane, lanes } => vec![value, lane, lanes],
            Operation::Follow(follow) => {
                let Follow { start, place, .. } = follow.$borrow();
                vec![start, place]
            }
        }
    };
}

/// What a statement uses itself, borrowed in the same way.
macro_rules! parts {
    ($statement:expr, $borrow:ident) => {{
        let (mut values, mut arrays, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
        match $statement {
            Statement::Let(value) | Statement::Assign(_, value) => values.push(value),
            Statement::Declare(_, value) => values.extend(value),
            Statement::Array(array, contents) => {
                arrays.push(array);
                match contents {
                    Contents::Unset | Contents::Zeros => {}
                    Contents::Listed(listed) => values.extend(listed),
                    Contents::From(first) => values.push(first),
                    Contents::Either(condition, other) => {
                        values.push(condition);
                        arrays.push(other);
                    }
                }
            }
            Statement::Store(array, index, value) => {
                arrays.push(array);
                values.extend([index, value]);
            }
            Statement::AtomicAdd(array, index, added) => {
                arrays.push(array);
                values.push(index);
                values.extend(added);
            }
            Statement::Do(_, operands) => {
                for operand in operands {
                    match operand {
                        Operand::Value(value) => values.push(value),
                        Operand::Row(array) => arrays.push(array),
                        Operand::Place(array, index) => {
                            arrays.push(array);
                            values.push(index);
                        }
                    }
                }
            }
            Statement::If(condition, yes, no) => {
                values.push(condition);
                blocks.extend([yes, no]);
            }
            Statement::For(own) => {
                let For { first, end, step, body, .. } = own.$borrow();
                values.extend([first, end]);
                match step {
                    Step::By(step) | Step::Down(step) => values.push(step),
                    Step::Doubled => {}
                }
                blocks.push(body);
            }
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => {}
            Statement::Gap | Statement::Note(_) => {}
        }
        Parts { values, arrays, blocks }
    }};
}

/// What a statement uses itself, without what statements in it do.
pub(super) struct Parts<Value, Array, Inner> {
    pub values: Vec<Value>,
    pub arrays: Vec<Array>,
    pub blocks: Vec<Inner>,
}

impl Operation {
    /// The values that it is made of.
    pub fn operands(&self) -> Vec<ValueId> {
        operands!(self, as_ref).into_iter().copied().collect()
    }

    /// The values that it is made of, to be changed.
    pub fn operands_mut(&mut self) -> Vec<&mut ValueId> {
        operands!(self, as_mut)
    }
}

impl Statement {
    /// The values that it uses itself, without those of statements in it.
    pub fn values(&self) -> Vec<ValueId> {
        self.parts().values.into_iter().copied().collect()
    }

    /// The arrays that it uses itself.
    pub fn arrays(&self) -> Vec<ArrayId> {
        self.parts().arrays.into_iter().copied().collect()
    }

    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Block> {
        self.parts().blocks
    }

    pub(super) fn parts(&self) -> Parts<&ValueId, &ArrayId, &Block> {
        parts!(self, as_ref)
    }

    /// The same, to be changed.
    pub(super) fn parts_mut(&mut self) -> Parts<&mut ValueId, &mut ArrayId, &mut Block> {
        parts!(self, as_mut)
    }
}

impl Block {
    /// Its statements and those within them, each before those in it.
    pub fn all(&self) -> impl Iterator<Item = &Statement> {
        let mut waiting: Vec<&Statement> = self.0.iter().rev().collect();
        std::iter::from_fn(move || {
            let statement = waiting.pop()?;
            waiting.extend(statement.blocks().into_iter().rev().flat_map(|inner| inner.0.iter().rev()));
            Some(statement)
        })
    }
}

impl Space {
    /// The array that this one is a part or a view of.
    pub fn base(&self) -> Option<ArrayId> {
        match self {
            Space::Part { of, .. } | Space::View(of) => Some(*of),
            Space::Global { .. } | Space::Shared(_) | Space::Dynamic(_) | Space::Constant(_) => None,
            Space::Local(_) | Space::Rows(..) => None,
        }
    }
}

impl Kernel {
    /// The array that another one is a part or a view of, in the end.
    pub fn whole(&self, array: ArrayId) -> &Array {
        let mut own = &self.arrays[array];
        while let Some(base) = own.space.base() {
            own = &self.arrays[base];
        }
        own
    }

    /// The name that means something from a statement on.
    pub fn declares(&self, statement: &Statement) -> Option<&Identifier> {
        match statement {
            Statement::Let(value) => self.values[*value].name.as_ref(),
            Statement::Declare(variable, _) => Some(&self.variables[*variable].name),
            Statement::Array(array, _) => Some(&self.arrays[*array].name),
            _ => None,
        }
    }

    /// The bytes of shared memory whose size the launch gives.
    pub fn dynamic_bytes(&self) -> usize {
        let bytes = |array: &Array| if let Space::Dynamic(bytes) = array.space { bytes } else { 0 };
        self.arrays.iter().map(|(_, array)| bytes(array)).sum()
    }
}
