//! Makes kernels: statements in blocks, values once each, names by what somebody wished for.

use super::{
    Argument, Array, ArrayId, Axis, Binary, Block, Coordinate, Element, For, Kernel, Operation, Space, Statement, Step,
    Type, Value, ValueId, Variable, VariableId, What,
};
use crate::ir::{Arena, Relation};
use crate::names::Names;
use crate::text::Comment;
use std::collections::HashMap;

/// A kernel that is being made.
///
/// Values that are the same are one value, within the block where they are made and those in it; what the names of two would be is
/// then the name of the first. Sums and products of what is known are worked out.
pub struct Builder {
    kernel: Kernel,
    names: Names,
    /// The blocks that are open, the innermost last: their statements, and the values that are known there.
    open: Vec<(Block, Known)>,
}

/// Values by what computes them.
type Known = HashMap<(Operation, Type), ValueId>;

impl Builder {
    /// Of a kernel with this name, and at most so many threads in a block.
    pub fn new(name: &str, threads: u32, doc: &str) -> Self {
        let mut names = Names::default();
        let kernel = Kernel {
            name: names.declared(name),
            doc: doc.lines().map(Comment::new).collect(),
            threads,
            arguments: Arena::new(),
            arrays: Arena::new(),
            variables: Arena::new(),
            values: Arena::new(),
            body: Block::default(),
        };
        Self { kernel, names, open: vec![(Block::default(), Known::new())] }
    }

    /// The kernel, when all is said.
    pub fn finish(mut self) -> Kernel {
        // Each block that is opened is closed by what has opened it.
        if let Some((body, _)) = self.open.pop() {
            self.kernel.body = body;
        }
        self.kernel
    }

    /// A number that the kernel takes.
    pub fn number(&mut self, name: &str, kind: Type) -> ValueId {
        let name = self.names.declared(name);
        let argument = self.kernel.arguments.add(Argument { name, what: What::Number(kind) });
        self.value(Operation::Argument(argument), kind)
    }

    /// An array that the kernel reads, and no thread writes.
    pub fn input(&mut self, name: &str, element: Type) -> ArrayId {
        self.array(name, element, Space::Global { aliased: false }, false)
    }

    /// An array that the kernel writes.
    pub fn output(&mut self, name: &str, element: Type) -> ArrayId {
        self.array(name, element, Space::Global { aliased: false }, true)
    }

    /// An array that may be the same memory as another one of the kernel.
    pub fn aliased(&mut self, name: &str, element: Type, is_written: bool) -> ArrayId {
        self.array(name, element, Space::Global { aliased: true }, is_written)
    }

    /// An array of so many elements in the shared memory of a block.
    pub fn shared(&mut self, name: &str, element: Type, count: usize) -> ArrayId {
        self.array(name, element, Space::Shared(count), true)
    }

    fn array(&mut self, name: &str, element: Type, space: Space, is_written: bool) -> ArrayId {
        let name = self.names.declared(name);
        let array = self.kernel.arrays.add(Array { name: name.clone(), element, space, is_written });
        if let Space::Global { .. } = space {
            self.kernel.arguments.add(Argument { name, what: What::Array(array) });
        }
        array
    }

    /// The type of a value.
    pub fn kind(&self, value: ValueId) -> Type {
        self.kernel.values[value].kind
    }

    fn value(&mut self, operation: Operation, kind: Type) -> ValueId {
        let key = (operation, kind);
        if let Some(&known) = self.open.iter().rev().find_map(|(_, known)| known.get(&key)) {
            return known;
        }
        let value = self.kernel.values.add(Value { operation: key.0.clone(), kind, name: None });
        if self.is_fixed(&key.0)
            && let Some((_, known)) = self.open.last_mut()
        {
            known.insert(key, value);
        }
        value
    }

    /// Whether an operation comes to the same wherever it is done, as long as its operands do.
    fn is_fixed(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Variable(variable) => self.kernel.variables[*variable].is_counter,
            Operation::Load(array, _) => {
                let own = &self.kernel.arrays[*array];
                !own.is_written && own.space != (Space::Global { aliased: true })
            }
            Operation::ShuffleDown(..) => false,
            Operation::Int(_)
            | Operation::Argument(_)
            | Operation::Coordinate(..)
            | Operation::Binary(..)
            | Operation::Compare(..)
            | Operation::And(..)
            | Operation::Or(..)
            | Operation::Choose(..)
            | Operation::Convert(_)
            | Operation::Lane(..)
            | Operation::Lanes(_) => true,
        }
    }

    /// A whole number of 32 bits.
    pub fn int(&mut self, number: i64) -> ValueId {
        self.literal(number, Type::I32)
    }

    /// A whole number as one of a type.
    pub fn literal(&mut self, number: i64, kind: Type) -> ValueId {
        self.value(Operation::Int(number), kind)
    }

    fn known(&self, value: ValueId) -> Option<i64> {
        match self.kernel.values[value].operation {
            Operation::Int(number) if self.kind(value).is_whole() => Some(number),
            _ => None,
        }
    }

    /// The coordinate of a thread or block, or how many there are.
    pub fn coordinate(&mut self, coordinate: Coordinate, axis: Axis) -> ValueId {
        self.value(Operation::Coordinate(coordinate, axis), Type::I32)
    }

    /// An operation on two numbers of one type.
    pub fn binary(&mut self, operation: Binary, a: ValueId, b: ValueId) -> ValueId {
        let kind = self.kind(a);
        match (operation, self.known(a), self.known(b)) {
            (Binary::Add, Some(0), _) | (Binary::Mul, Some(1), _) => return b,
            (Binary::Mul, Some(0), _) | (Binary::Mul, _, Some(0)) => return self.literal(0, kind),
            (Binary::Add | Binary::Sub, _, Some(0)) | (Binary::Mul | Binary::Div, _, Some(1)) => return a,
            (Binary::Add, Some(x), Some(y)) => return self.literal(x.saturating_add(y), kind),
            (Binary::Sub, Some(x), Some(y)) => return self.literal(x.saturating_sub(y), kind),
            (Binary::Mul, Some(x), Some(y)) => return self.literal(x.saturating_mul(y), kind),
            _ => {}
        }
        self.value(Operation::Binary(operation, a, b), kind)
    }

    /// Their sum.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Add, a, b)
    }

    /// Their product.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Mul, a, b)
    }

    /// A comparison of two numbers of one type.
    pub fn compare(&mut self, relation: Relation, a: ValueId, b: ValueId) -> ValueId {
        self.value(Operation::Compare(relation, a, b), Type::BOOL)
    }

    /// Whether the first number is less than the second.
    pub fn less(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.compare(Relation::Lt, a, b)
    }

    /// Whether both truths hold.
    pub fn and(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.value(Operation::And(a, b), Type::BOOL)
    }

    /// Whether one of two truths holds.
    pub fn or(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.value(Operation::Or(a, b), Type::BOOL)
    }

    /// The first value where the truth holds, else the second.
    pub fn choose(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        let kind = self.kind(yes);
        self.value(Operation::Choose(condition, yes, no), kind)
    }

    /// A number as one of another type.
    pub fn convert(&mut self, value: ValueId, kind: Type) -> ValueId {
        if self.kind(value) == kind {
            return value;
        }
        self.value(Operation::Convert(value), kind)
    }

    /// One of the numbers of a value that has several.
    pub fn lane(&mut self, value: ValueId, lane: u8) -> ValueId {
        let kind = Type::one(self.kind(value).element);
        self.value(Operation::Lane(value, lane), kind)
    }

    /// Numbers of one type side by side.
    pub fn lanes(&mut self, lanes: Vec<ValueId>) -> ValueId {
        let element = lanes.first().map_or(Element::I32, |&lane| self.kind(lane).element);
        let kind = Type { element, lanes: lanes.len() as u8 };
        self.value(Operation::Lanes(lanes), kind)
    }

    /// An element of an array.
    pub fn load(&mut self, array: ArrayId, index: ValueId) -> ValueId {
        let kind = self.kernel.arrays[array].element;
        self.value(Operation::Load(array, index), kind)
    }

    /// What the thread so many lanes further on has.
    pub fn shuffle_down(&mut self, value: ValueId, by: ValueId) -> ValueId {
        let kind = self.kind(value);
        self.value(Operation::ShuffleDown(value, by), kind)
    }

    /// What a variable holds now.
    pub fn get(&mut self, variable: VariableId) -> ValueId {
        let kind = self.kernel.variables[variable].kind;
        self.value(Operation::Variable(variable), kind)
    }

    fn push(&mut self, statement: Statement) {
        if let Some((block, _)) = self.open.last_mut() {
            block.0.push(statement);
        }
    }

    /// Computes a value here, and calls it so. One that has a name keeps it.
    pub fn name(&mut self, wish: &str, value: ValueId) -> ValueId {
        if self.kernel.values[value].name.is_none() {
            let name = self.names.declared(wish);
            self.kernel.values[value].name = Some(name);
            self.push(Statement::Let(value));
        }
        value
    }

    /// A variable with its first value.
    pub fn variable(&mut self, wish: &str, first: ValueId) -> VariableId {
        let (name, kind) = (self.names.declared(wish), self.kind(first));
        let variable = self.kernel.variables.add(Variable { name, kind, is_counter: false });
        self.push(Statement::Declare(variable, first));
        variable
    }

    /// Gives a variable another value.
    pub fn assign(&mut self, variable: VariableId, value: ValueId) {
        self.push(Statement::Assign(variable, value));
    }

    /// Writes an element of an array.
    pub fn store(&mut self, array: ArrayId, index: ValueId, value: ValueId) {
        self.push(Statement::Store(array, index, value));
    }

    /// Waits for all threads of the block.
    pub fn barrier(&mut self) {
        self.push(Statement::Barrier);
    }

    /// Ends threads for which a truth holds.
    pub fn leave_if(&mut self, condition: ValueId) {
        self.when(condition, |own| own.push(Statement::Return));
    }

    fn block(&mut self, write: impl FnOnce(&mut Self)) -> Block {
        self.open.push((Block::default(), Known::new()));
        write(self);
        self.open.pop().map(|(block, _)| block).unwrap_or_default()
    }

    /// Does something where a truth holds.
    pub fn when(&mut self, condition: ValueId, write: impl FnOnce(&mut Self)) {
        let block = self.block(write);
        self.push(Statement::If(condition, block, Block::default()));
    }

    /// A loop whose counter begins with a number, goes on by a step, and stays below an end.
    pub fn each(
        &mut self,
        wish: &str,
        (first, end, step): (ValueId, ValueId, Step),
        is_unrolled: bool,
        write: impl FnOnce(&mut Self, ValueId),
    ) {
        let (name, kind) = (self.names.declared(wish), self.kind(first));
        let counter = self.kernel.variables.add(Variable { name, kind, is_counter: true });
        let body = self.block(|own| {
            let value = own.get(counter);
            write(own, value);
        });
        self.push(Statement::For(Box::new(For { counter, first, end, step, is_unrolled, body })));
    }
}
