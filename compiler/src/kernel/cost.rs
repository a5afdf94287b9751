//! What a kernel does, counted.

use super::{ArgumentKind, ArrayId, Block, Kernel, Meaning, Operation, Space, Statement, ValueId};
use crate::ir::Handle;
use std::collections::HashMap;

/// Loads from tables that a kernel's statements and values are written with. Compilers may find out that some are the same.
pub struct TableLoads<'a> {
    kernel: &'a Kernel,
    is_table: Vec<bool>,
    /// Of values so far how many loads they are written with, down to what has a name.
    known: HashMap<ValueId, usize>,
}

impl<'a> TableLoads<'a> {
    /// Of a kernel.
    pub fn new(kernel: &'a Kernel) -> Self {
        let mut is_table: Vec<bool> =
            kernel.arrays.iter().map(|(_, array)| matches!(array.space, Space::Constant(_))).collect();
        for (_, argument) in kernel.arguments.iter() {
            if let (ArgumentKind::Array(array), Meaning::Table(_)) = (argument.what, &argument.meaning) {
                is_table[array.index()] = true;
            }
        }
        Self { kernel, is_table, known: HashMap::new() }
    }

    /// Of the statements of a block, each counted once.
    pub fn of_block(&mut self, block: &Block) -> usize {
        let mut count = 0;
        for statement in &block.0 {
            count += match statement {
                Statement::Let(value) => self.of_operation(*value),
                own => own.values().into_iter().map(|value| self.of_value(value)).sum(),
            };
            count += statement.blocks().into_iter().map(|inner| self.of_block(inner)).sum::<usize>();
        }
        count
    }

    /// Of a value where it is used: nothing for one that has a name.
    pub fn of_value(&mut self, value: ValueId) -> usize {
        if self.kernel.values[value].name.is_some() { 0 } else { self.of_operation(value) }
    }

    /// Of what computes a value.
    fn of_operation(&mut self, value: ValueId) -> usize {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        let operation = &self.kernel.values[value].operation;
        let is_table = |array: &ArrayId| usize::from(self.is_table[array.index()]);
        let own = match operation {
            Operation::Load(array, _) => is_table(array),
            Operation::Follow(follow) => is_table(&follow.table) + follow.patterns.iter().map(is_table).sum::<usize>(),
            _ => 0,
        };
        let count = own + operation.operands().into_iter().map(|operand| self.of_value(operand)).sum::<usize>();
        self.known.insert(value, count);
        count
    }
}
