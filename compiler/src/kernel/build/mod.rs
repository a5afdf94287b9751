//! Makes kernels: statements in blocks, values once each, names by what somebody wished for.

mod levels;
mod making;
mod terms;
#[cfg(test)]
mod tests;
mod values;

pub use making::Making;
pub use terms::{Computing, Term};

use super::{
    Argument, ArgumentKind, Array, ArrayId, Attempt, Block, Contents, For, Kernel, Meaning, Operand, Operation,
    Routine, Space, Statement, Step, Type, Unroll, Value, ValueId, Variable, VariableId, Watch,
};
use crate::ir::{Arena, Handle};
use crate::names::{Identifier, Names};
use crate::text::Comment;
use std::collections::{BTreeSet, HashMap};

/// A kernel that is being made.
///
/// Values that are the same are one value, within the block where they are made and those in it; what the names of two would be is
/// then the name of the first. Sums and products of what is known are worked out.
///
/// Statements go to the block at hand. A block can also be [opened](Builder::open) before it is known which statement it belongs to,
/// and written to bit by bit.
pub struct Builder {
    kernel: Kernel,
    names: Names,
    /// Every block that was ever opened, after the one that it stands in.
    blocks: Vec<Opened>,
    /// The block that statements go to.
    current: usize,
    /// Whether each value is part of a statement without being named before.
    is_used: Vec<bool>,
    /// The block that each value was made in.
    made_in: Vec<usize>,
    /// The blocks within which each name ended.
    closed: HashMap<Identifier, BTreeSet<usize>>,
}

/// A block that is being written.
#[derive(Default)]
struct Opened {
    parent: Option<usize>,
    is_closed: bool,
    block: Block,
    /// The values that are known there, and not yet around it.
    known: Known,
    /// The names that end with it.
    names: Vec<Identifier>,
}

/// A block of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockKey(usize);

/// Values by what computes them.
type Known = HashMap<(Operation, Type), ValueId>;

impl Builder {
    /// Of a kernel with this name, and at most so many threads in a block.
    pub fn new(name: &str, threads: u32, doc: &str) -> Self {
        let mut names = Names::default();
        let name = names.declared(name);
        Self::with_names(names, name, threads, doc.lines().map(Comment::new).collect())
    }

    /// Of a kernel that has a name, beside others that are taken.
    pub fn with_names(names: Names, name: Identifier, threads: u32, doc: Vec<Comment>) -> Self {
        let kernel = Kernel {
            name,
            doc,
            made: None,
            threads,
            blocks: 0,
            arguments: Arena::new(),
            arrays: Arena::new(),
            variables: Arena::new(),
            values: Arena::new(),
            body: Block::default(),
            watch: None,
            attempt: None,
        };
        let blocks = vec![Opened::default()];
        Self { kernel, names, blocks, current: 0, is_used: Vec::new(), made_in: Vec::new(), closed: HashMap::new() }
    }

    /// The same with at most so many threads in a block.
    pub fn of_threads(&mut self, threads: u32) {
        self.kernel.threads = threads;
    }

    /// The kernel, when all is said.
    pub fn finish(mut self) -> Kernel {
        self.kernel.body = self.close(BlockKey(0));
        self.kernel
    }

    /// The kernel so far, without its statements.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// A number that the kernel takes.
    pub fn number(&mut self, name: &str, kind: Type) -> ValueId {
        let name = self.declared(name);
        self.argument(name, kind, Meaning::Documented)
    }

    /// A number that the kernel takes, by a name that it has.
    pub fn argument(&mut self, name: Identifier, kind: Type, meaning: Meaning) -> ValueId {
        let argument = self.kernel.arguments.add(Argument { name, what: ArgumentKind::Number(kind), meaning });
        self.value(Operation::Argument(argument), kind)
    }

    /// A whole number that has a name, or, where it is not known, one that the kernel takes.
    pub fn size(&mut self, name: Identifier, known: Option<usize>, kind: Type, meaning: Meaning) -> ValueId {
        let Some(number) = known else { return self.argument(name, kind, meaning) };
        // By its name it reads better than as a number, so it is none for those who work out sums.
        let value = self.fresh(Operation::Int(number as i64), kind);
        self.kernel.values[value].name = Some(name);
        self.push(Statement::Let(value));
        value
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

    /// Bytes of the shared arrays so far.
    pub fn shared_bytes(&self) -> usize {
        let arrays = self.kernel.arrays.iter().map(|(_, own)| match own.space {
            Space::Shared(count) => count * own.element.bytes(),
            _ => 0,
        });
        arrays.sum()
    }

    /// An array of so many elements that a thread has for itself from here on.
    pub fn local(&mut self, wish: &str, element: Type, count: usize) -> ArrayId {
        self.made(wish, element, (Space::Local(count), true), Contents::Unset)
    }

    /// The same, of zeros.
    pub fn zeros(&mut self, wish: &str, element: Type, count: usize) -> ArrayId {
        self.made(wish, element, (Space::Local(count), true), Contents::Zeros)
    }

    /// An array that is there from here on.
    pub fn make(&mut self, array: Array, contents: Contents) -> ArrayId {
        let array = self.add_array(array, Meaning::Documented);
        self.push(Statement::Array(array, contents));
        array
    }

    fn made(&mut self, wish: &str, element: Type, (space, is_written): (Space, bool), contents: Contents) -> ArrayId {
        let array = self.array(wish, element, space, is_written);
        self.push(Statement::Array(array, contents));
        array
    }

    /// The shared memory of a block whose size the launch gives: so many bytes.
    pub fn dynamic(&mut self, wish: &str, bytes: usize) -> ArrayId {
        self.array(wish, Type::U8, Space::Dynamic(bytes), false)
    }

    /// Lets it have so many bytes.
    pub fn grow(&mut self, dynamic: ArrayId, bytes: usize) {
        self.kernel.arrays[dynamic].space = Space::Dynamic(bytes);
    }

    /// A part of that: so many elements, from a byte on.
    pub fn part(&mut self, wish: &str, of: ArrayId, element: Type, (first, count): (usize, usize)) -> ArrayId {
        self.array(wish, element, Space::Part { of, first, count }, true)
    }

    /// A view of another array, from an element on.
    pub fn view(&mut self, wish: &str, of: ArrayId, first: impl Into<Term>) -> ArrayId {
        let first = self.term(first);
        let Array { element, is_written, .. } = self.kernel.arrays[of];
        self.made(wish, element, (Space::View(of), is_written), Contents::From(first))
    }

    fn array(&mut self, name: &str, element: Type, space: Space, is_written: bool) -> ArrayId {
        let name = self.declared(name);
        let array = Array { name, element, space, is_written, watched: None };
        self.add_array(array, Meaning::Documented)
    }

    /// An array that has a name, and what it means if it is an argument.
    pub fn add_array(&mut self, array: Array, meaning: Meaning) -> ArrayId {
        let name = array.watched.as_ref().map_or(&array.name, |watched| &watched.entries).clone();
        let is_argument = matches!(array.space, Space::Global { .. });
        let array = self.kernel.arrays.add(array);
        if is_argument {
            self.kernel.arguments.add(Argument { name, what: ArgumentKind::Array(array), meaning });
        }
        array
    }

    /// Makes it a checked kernel.
    pub fn watch(&mut self, watch: Watch) {
        self.kernel.watch = Some(watch);
    }

    /// Makes it a kernel that is tried.
    pub fn attempt(&mut self, attempt: Attempt) {
        self.kernel.attempt = Some(attempt);
    }

    /// Asks that so many blocks fit on a multiprocessor.
    pub fn blocks_at_once(&mut self, blocks: u32) {
        self.kernel.blocks = blocks;
    }

    /// How many values there are so far.
    pub fn value_count(&self) -> usize {
        self.kernel.values.len()
    }

    /// The type of a value.
    pub fn kind(&self, value: ValueId) -> Type {
        self.kernel.values[value].kind
    }

    /// A name like `wish` for something that is written to the block at hand or to one within it: one that nothing has there, around
    /// it, or in blocks that will stand behind it.
    pub fn declared(&mut self, wish: &str) -> Identifier {
        let mut name = self.names.declared(wish);
        let mut passed = Vec::new();
        while self.is_behind(&name) {
            passed.push(std::mem::replace(&mut name, self.names.declared(wish)));
        }
        passed.iter().for_each(|name| self.names.release(name));
        name
    }

    /// Whether something has this name that will stand behind what is written to the block at hand: in a block that is closed, and
    /// part of an open one within this one.
    fn is_behind(&mut self, name: &Identifier) -> bool {
        let Some(blocks) = self.closed.remove(name) else { return false };
        // What is closed by now has become part of the open block around it.
        let open = |&block: &usize| self.around(block).find(|&block| !self.blocks[block].is_closed).unwrap_or(block);
        let blocks: BTreeSet<usize> = blocks.iter().map(open).collect();
        let is_within = |&block: &usize| self.around(block).skip(1).any(|block| block == self.current);
        let is_behind = blocks.iter().any(is_within);
        self.closed.insert(name.clone(), blocks);
        is_behind
    }

    /// Gives a name back that ends within a block.
    fn retire(&mut self, name: Identifier, block: usize) {
        self.names.release(&name);
        self.closed.entry(name).or_default().insert(block);
    }

    /// A block, then the one around it, and so on.
    fn around(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(block), |&block| self.blocks[block].parent)
    }

    fn push(&mut self, statement: Statement) {
        let mut waiting = match &statement {
            Statement::Let(value) => self.kernel.values[*value].operation.operands(),
            own => own.values(),
        };
        while let Some(value) = waiting.pop() {
            let own = &self.kernel.values[value];
            if own.name.is_none() && !std::mem::replace(&mut self.is_used[value.index()], true) {
                waiting.extend(own.operation.operands());
            }
        }
        let name = self.kernel.declares(&statement).cloned();
        let block = &mut self.blocks[self.current];
        block.names.extend(name);
        block.block.0.push(statement);
    }

    /// Computes a value here, and calls it so. One that has a name keeps it.
    pub fn name(&mut self, wish: &str, value: impl Into<Term>) -> ValueId {
        let value = self.term(value);
        if self.kernel.values[value].name.is_some() {
            return value;
        }
        let name = self.declared(wish);
        self.named(name, value)
    }

    /// The same, by a name that was given out before.
    pub fn named(&mut self, name: Identifier, value: ValueId) -> ValueId {
        if self.kernel.values[value].name.is_some() {
            self.names.release(&name);
            return value;
        }
        let Value { operation, kind, .. } = self.kernel.values[value].clone();
        let is_number =
            matches!(operation, Operation::Int(_) | Operation::Real(_) | Operation::Bool(_) | Operation::Mask(_));
        // What statements before this one, or around it, are made of has no name there; and a number is no less one because somebody
        // gave it a name.
        let is_own = self.made_in[value.index()] == self.current && !self.is_used[value.index()] && !is_number;
        let value = if is_own { value } else { self.fresh(operation.clone(), kind) };
        if self.is_fixed(&operation) && !is_number {
            self.blocks[self.current].known.insert((operation, kind), value);
        }
        self.kernel.values[value].name = Some(name);
        self.push(Statement::Let(value));
        value
    }

    /// A variable with its first value.
    pub fn variable(&mut self, wish: &str, first: impl Into<Term>) -> VariableId {
        let first = self.term(first);
        let (name, kind) = (self.declared(wish), self.kind(first));
        let variable = self.undeclared(name, kind);
        self.push(Statement::Declare(variable, Some(first)));
        variable
    }

    /// A variable that is [declared](Builder::declare) later.
    pub fn undeclared(&mut self, name: Identifier, kind: Type) -> VariableId {
        self.kernel.variables.add(Variable { name, kind, is_counter: false })
    }

    /// Declares a variable here, which gets its first value later.
    pub fn declare(&mut self, variable: VariableId) {
        self.push(Statement::Declare(variable, None));
    }

    /// Gives a variable another value.
    pub fn assign(&mut self, variable: VariableId, value: impl Into<Term>) {
        let value = self.term(value);
        self.push(Statement::Assign(variable, value));
    }

    /// Writes an element of an array, or as many as the value has numbers.
    pub fn store(&mut self, array: ArrayId, index: impl Into<Term>, value: impl Into<Term>) {
        let (index, value) = (self.term(index), self.term(value));
        self.push(Statement::Store(array, index, value));
    }

    /// Adds numbers to elements of an array, whoever else does.
    pub fn atomic_add(&mut self, array: ArrayId, index: ValueId, values: Vec<ValueId>) {
        self.push(Statement::AtomicAdd(array, index, values));
    }

    /// Whether anything adds that way so far.
    pub fn adds_atomically(&self) -> bool {
        let mut statements = self.blocks.iter().flat_map(|own| own.block.all());
        statements.any(|own| matches!(own, Statement::AtomicAdd(..)))
    }

    /// An array of these elements, which a thread has for itself.
    pub fn list(&mut self, wish: &str, element: Type, values: Vec<ValueId>) -> ArrayId {
        self.made(wish, element, (Space::Local(values.len()), false), Contents::Listed(values))
    }

    /// Ends the attempt here, if there is one.
    pub fn give_up(&mut self) {
        if self.kernel.attempt.is_some() {
            self.push(Statement::GiveUp);
        }
    }

    /// Does what is done for its effect alone.
    pub fn perform(&mut self, routine: Routine, operands: Vec<Operand>) {
        self.push(Statement::Do(routine, operands));
    }

    /// Rows of so many elements that a thread has for itself from here on: zeros, or nothing yet.
    pub fn rows(&mut self, wish: &str, element: Type, (count, width): (usize, usize), contents: Contents) -> ArrayId {
        self.made(wish, element, (Space::Rows(count, width), true), contents)
    }

    /// A row of them, to be read alone or to be written.
    pub fn row(&mut self, wish: &str, of: ArrayId, number: ValueId, is_written: bool) -> ArrayId {
        self.made(wish, self.kernel.arrays[of].element, (Space::View(of), is_written), Contents::From(number))
    }

    /// A view of one of two arrays: of the first where a truth holds.
    pub fn either(&mut self, wish: &str, condition: ValueId, [yes, no]: [ArrayId; 2], is_written: bool) -> ArrayId {
        let contents = Contents::Either(condition, no);
        self.made(wish, self.kernel.arrays[yes].element, (Space::View(yes), is_written), contents)
    }

    /// Waits for all threads of the block.
    pub fn barrier(&mut self) {
        self.push(Statement::Barrier);
    }

    /// An empty line, for readers.
    pub fn gap(&mut self) {
        self.push(Statement::Gap);
    }

    /// What readers are told.
    pub fn note(&mut self, note: impl AsRef<str>) {
        self.push(Statement::Note(Comment::new(note)));
    }

    /// Ends threads for which a truth holds.
    pub fn leave_if(&mut self, condition: impl Into<Term>) {
        self.when(condition, |own| own.push(Statement::Return));
    }

    /// Leaves the innermost loop where a truth holds.
    pub fn break_if(&mut self, condition: impl Into<Term>) {
        self.when(condition, |own| own.push(Statement::Break));
    }

    /// A block within the one at hand, which some statement will hold.
    pub fn open(&mut self) -> BlockKey {
        self.blocks.push(Opened { parent: Some(self.current), ..Opened::default() });
        BlockKey(self.blocks.len() - 1)
    }

    /// The block at hand.
    pub fn current(&self) -> BlockKey {
        BlockKey(self.current)
    }

    /// Writes to a block.
    pub fn within<T>(&mut self, block: BlockKey, write: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.enter(block);
        let made = write(self);
        self.enter(before);
        made
    }

    /// Writes to a block from now on. Returns the one at hand so far.
    pub fn enter(&mut self, block: BlockKey) -> BlockKey {
        BlockKey(std::mem::replace(&mut self.current, block.0))
    }

    /// Whether nothing is in a block yet.
    pub fn is_empty(&self, block: BlockKey) -> bool {
        self.blocks[block.0].block.0.is_empty()
    }

    /// What is in a block, which is empty then. Its names can be those of others from now on.
    pub fn close(&mut self, block: BlockKey) -> Block {
        let own = &mut self.blocks[block.0];
        own.is_closed = true;
        own.known.clear();
        let (names, statements, parent) =
            (std::mem::take(&mut own.names), std::mem::take(&mut own.block), own.parent.unwrap_or(block.0));
        names.into_iter().for_each(|name| self.retire(name, parent));
        statements
    }

    /// Does what is in one block where a truth holds, and what is in another where it does not.
    pub fn branch(&mut self, condition: ValueId, yes: BlockKey, no: BlockKey) {
        let (yes, no) = (self.close(yes), self.close(no));
        self.push(Statement::If(condition, yes, no));
    }

    /// The counter of a loop, and what it holds.
    pub fn counter(&mut self, wish: &str, first: ValueId) -> (VariableId, ValueId) {
        let (name, kind) = (self.declared(wish), self.kind(first));
        let counter = self.kernel.variables.add(Variable { name, kind, is_counter: true });
        (counter, self.get(counter))
    }

    /// Does what is in a block again and again.
    pub fn repeat(
        &mut self,
        counter: VariableId,
        (first, end, step): (ValueId, ValueId, Step),
        unroll: Unroll,
        body: BlockKey,
    ) {
        let body = self.close(body);
        let name = self.kernel.variables[counter].name.clone();
        self.retire(name, self.current);
        self.push(Statement::For(Box::new(For { counter, first, end, step, unroll, body })));
    }
}
