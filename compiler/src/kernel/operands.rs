//! What operations and statements are made of.

use super::{Block, Operation, Statement, Step, ValueId};

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
            Statement::List(_, values) => values.clone(),
            Statement::If(condition, ..) => vec![*condition],
            Statement::For(own) => match own.step {
                Step::By(step) | Step::Down(step) => vec![own.first, own.end, step],
                Step::Doubled => vec![own.first, own.end],
            },
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp | Statement::Gap => {
                Vec::new()
            }
        }
    }

    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Statement::If(_, yes, no) => vec![yes, no],
            Statement::For(own) => vec![&own.body],
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::Store(..) => Vec::new(),
            Statement::AtomicAdd(..) | Statement::List(..) => Vec::new(),
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp | Statement::Gap => {
                Vec::new()
            }
        }
    }

    /// The values that it uses itself, to be changed.
    pub fn values_mut(&mut self) -> Vec<&mut ValueId> {
        match self {
            Statement::Let(value) | Statement::Assign(_, value) => vec![value],
            Statement::Declare(_, value) => value.iter_mut().collect(),
            Statement::Store(_, index, value) => vec![index, value],
            Statement::AtomicAdd(_, index, values) => [index].into_iter().chain(values).collect(),
            Statement::List(_, values) => values.iter_mut().collect(),
            Statement::If(condition, ..) => vec![condition],
            Statement::For(own) => match &mut own.step {
                Step::By(step) | Step::Down(step) => vec![&mut own.first, &mut own.end, step],
                Step::Doubled => vec![&mut own.first, &mut own.end],
            },
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp | Statement::Gap => {
                Vec::new()
            }
        }
    }

    /// The blocks in it, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Statement::If(_, yes, no) => vec![yes, no],
            Statement::For(own) => vec![&mut own.body],
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::Store(..) => Vec::new(),
            Statement::AtomicAdd(..) | Statement::List(..) => Vec::new(),
            Statement::Barrier | Statement::Break | Statement::Return | Statement::GiveUp | Statement::Gap => {
                Vec::new()
            }
        }
    }
}
