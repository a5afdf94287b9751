//! What operations and statements are made of.

use super::{Array, ArrayId, Block, Contents, Kernel, Operand, Operation, Space, Statement, Step, ValueId};
use crate::names::Identifier;

impl Operation {
    /// The values that it is made of.
    pub fn operands(&self) -> Vec<ValueId> {
        match self {
            Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_) => Vec::new(),
            Operation::Argument(_) | Operation::Variable(_) | Operation::Coordinate(..) => Vec::new(),
            Operation::Negate(a) | Operation::Not(a) => vec![*a],
            Operation::Convert(a) | Operation::Lane(a, _) | Operation::Load(_, a) => vec![*a],
            Operation::Call(_, operands) => operands.clone(),
            Operation::Follow(follow) => vec![follow.start, follow.place],
            Operation::Shuffle { value, lane, lanes } => vec![*value, *lane, *lanes],
            Operation::Binary(_, a, b) | Operation::Compare(_, a, b) => vec![*a, *b],
            Operation::And(a, b) | Operation::Or(a, b) | Operation::ShuffleDown(a, b) => vec![*a, *b],
            Operation::Choose(condition, yes, no) => vec![*condition, *yes, *no],
            Operation::Lanes(lanes) => lanes.clone(),
        }
    }
}

impl Operation {
    /// The values that it is made of, to be changed.
    pub fn operands_mut(&mut self) -> Vec<&mut ValueId> {
        match self {
            Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_) => Vec::new(),
            Operation::Argument(_) | Operation::Variable(_) | Operation::Coordinate(..) => Vec::new(),
            Operation::Negate(a) | Operation::Not(a) => vec![a],
            Operation::Convert(a) | Operation::Lane(a, _) | Operation::Load(_, a) => vec![a],
            Operation::Binary(_, a, b) | Operation::Compare(_, a, b) => vec![a, b],
            Operation::And(a, b) | Operation::Or(a, b) | Operation::ShuffleDown(a, b) => vec![a, b],
            Operation::Choose(condition, yes, no) => vec![condition, yes, no],
            Operation::Lanes(operands) | Operation::Call(_, operands) => operands.iter_mut().collect(),
            Operation::Follow(follow) => vec![&mut follow.start, &mut follow.place],
            Operation::Shuffle { value, lane, lanes } => vec![value, lane, lanes],
        }
    }
}

impl Statement {
    /// The values that it uses itself, without those of statements in it.
    pub fn values(&self) -> Vec<ValueId> {
        match self {
            Statement::Let(value) | Statement::Assign(_, value) => vec![*value],
            Statement::Declare(_, value) => value.iter().copied().collect(),
            Statement::Store(_, index, value) => vec![*index, *value],
            Statement::AtomicAdd(_, index, values) => [index].into_iter().chain(values).copied().collect(),
            Statement::Array(_, Contents::Listed(values)) => values.clone(),
            Statement::Array(_, Contents::From(value) | Contents::Either(value, _)) => vec![*value],
            Statement::Array(_, Contents::Unset | Contents::Zeros) => Vec::new(),
            Statement::Do(_, operands) => operands.iter().filter_map(Operand::value).collect(),
            Statement::If(condition, ..) => vec![*condition],
            Statement::For(own) => match own.step {
                Step::By(step) | Step::Down(step) => vec![own.first, own.end, step],
                Step::Doubled => vec![own.first, own.end],
            },
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => Vec::new(),
            Statement::Gap | Statement::Note(_) => Vec::new(),
        }
    }

    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Statement::If(_, yes, no) => vec![yes, no],
            Statement::For(own) => vec![&own.body],
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::Store(..) => Vec::new(),
            Statement::Array(..) | Statement::Do(..) | Statement::AtomicAdd(..) => Vec::new(),
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => Vec::new(),
            Statement::Gap | Statement::Note(_) => Vec::new(),
        }
    }

    /// The values that it uses itself, to be changed.
    pub fn values_mut(&mut self) -> Vec<&mut ValueId> {
        match self {
            Statement::Let(value) | Statement::Assign(_, value) => vec![value],
            Statement::Declare(_, value) => value.iter_mut().collect(),
            Statement::Store(_, index, value) => vec![index, value],
            Statement::AtomicAdd(_, index, values) => [index].into_iter().chain(values).collect(),
            Statement::Array(_, Contents::Listed(values)) => values.iter_mut().collect(),
            Statement::Array(_, Contents::From(value) | Contents::Either(value, _)) => vec![value],
            Statement::Array(_, Contents::Unset | Contents::Zeros) => Vec::new(),
            Statement::Do(_, operands) => operands.iter_mut().filter_map(Operand::value_mut).collect(),
            Statement::If(condition, ..) => vec![condition],
            Statement::For(own) => match &mut own.step {
                Step::By(step) | Step::Down(step) => vec![&mut own.first, &mut own.end, step],
                Step::Doubled => vec![&mut own.first, &mut own.end],
            },
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => Vec::new(),
            Statement::Gap | Statement::Note(_) => Vec::new(),
        }
    }

    /// The blocks in it, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Statement::If(_, yes, no) => vec![yes, no],
            Statement::For(own) => vec![&mut own.body],
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::Store(..) => Vec::new(),
            Statement::Array(..) | Statement::Do(..) | Statement::AtomicAdd(..) => Vec::new(),
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => Vec::new(),
            Statement::Gap | Statement::Note(_) => Vec::new(),
        }
    }

    /// The arrays that it uses itself.
    pub fn arrays(&self) -> Vec<ArrayId> {
        match self {
            Statement::Array(array, Contents::Either(_, other)) => vec![*array, *other],
            Statement::Array(array, _) | Statement::Store(array, ..) | Statement::AtomicAdd(array, ..) => vec![*array],
            Statement::Do(_, operands) => operands.iter().filter_map(Operand::array).collect(),
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::If(..) => Vec::new(),
            Statement::For(_) | Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => {
                Vec::new()
            }
            Statement::Gap | Statement::Note(_) => Vec::new(),
        }
    }

    /// The same, to be changed.
    pub fn arrays_mut(&mut self) -> Vec<&mut ArrayId> {
        match self {
            Statement::Array(array, Contents::Either(_, other)) => vec![array, other],
            Statement::Array(array, _) | Statement::Store(array, ..) | Statement::AtomicAdd(array, ..) => vec![array],
            Statement::Do(_, operands) => operands.iter_mut().filter_map(Operand::array_mut).collect(),
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::If(..) => Vec::new(),
            Statement::For(_) | Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp => {
                Vec::new()
            }
            Statement::Gap | Statement::Note(_) => Vec::new(),
        }
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

    /// The same, to be changed.
    pub fn base_mut(&mut self) -> Option<&mut ArrayId> {
        match self {
            Space::Part { of, .. } | Space::View(of) => Some(of),
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
