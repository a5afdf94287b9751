//! The kernel IR: what one kernel is, between a plan and its CUDA.
//!
//! A kernel has **arguments**, **arrays** (in global memory, which an argument points to, or shared by the threads of a block) and a
//! **body**, which every thread executes. Statements are structured: there are loops and branches, and no jump but [`Statement::Return`].
//!
//! A **value** is an expression in an arena, after those that it is made of. It has no effect. [`Statement::Let`] computes it at one
//! place and gives it a name, by which it is known in the rest of the block and in what is nested there; any other value is computed
//! again by each statement that uses it, in the place of that statement. So what a [variable](Variable) holds, and an element of an
//! array that is written, is what it is *there*; who wants what it was before has it named before. Each time that such is asked for,
//! it is a value of its own.
//!
//! [`build::Builder`] makes kernels, [`verify`] says what every kernel keeps to, and `cuda::print` writes them down.

pub mod build;
mod display;
pub mod machine;
pub mod verify;

use crate::ir::arena::handles;
use crate::ir::{Arena, Relation};
use crate::names::Identifier;
use crate::text::Comment;

handles! {
    /// An argument of a kernel.
    ArgumentId
    /// An array of a kernel.
    ArrayId
    /// A variable of a kernel.
    VariableId
    /// A value of a kernel.
    ValueId
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A real number of single precision.
    F32,
    /// A real number of double precision.
    F64,
    /// A whole number of 32 bits.
    I32,
    /// A whole number of 64 bits.
    I64,
    /// A byte of memory. Nothing is computed with it but whether two are the same.
    U8,
    /// A truth value. It has no place in memory.
    Bool,
}

/// The type of a value: one number, or several that memory holds side by side and an access moves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// What each number is.
    pub element: Element,
    /// How many there are: 1, 2 or 4.
    pub lanes: u8,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: Identifier,
    /// What it computes, for readers.
    pub doc: Vec<Comment>,
    /// The most threads of a block, of which registers are counted.
    pub threads: u32,
    /// What it takes, in order.
    pub arguments: Arena<ArgumentId, Argument>,
    /// What it reads and writes.
    pub arrays: Arena<ArrayId, Array>,
    /// What changes while it runs.
    pub variables: Arena<VariableId, Variable>,
    /// What it computes, operands first.
    pub values: Arena<ValueId, Value>,
    /// What each thread does.
    pub body: Block,
}

/// What a kernel takes: a number, or where an array begins.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: Identifier,
    /// What it is.
    pub what: What,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A number.
    Number(Type),
    /// The first element of an array in global memory.
    Array(ArrayId),
}

/// An array.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its name.
    pub name: Identifier,
    /// The type of its elements.
    pub element: Type,
    /// Where it is.
    pub space: Space,
    /// Whether the kernel writes to it.
    pub is_written: bool,
}

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// In global memory, which all threads see. No other array of the kernel overlaps it, unless it may be `aliased`.
    Global {
        /// Whether other arrays of the kernel may be the same memory.
        aliased: bool,
    },
    /// In the shared memory of a block: so many elements.
    Shared(usize),
}

/// A number that changes: where it is declared, it gets its first value.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: Identifier,
    /// Its type.
    pub kind: Type,
    /// Whether it is the counter of a loop, which alone changes it.
    pub is_counter: bool,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// What computes it.
    pub operation: Operation,
    /// Its type.
    pub kind: Type,
    /// Its name, where a statement gives it one.
    pub name: Option<Identifier>,
}

/// What computes a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A whole number.
    Int(i64),
    /// An argument that is a number.
    Argument(ArgumentId),
    /// What a variable holds now.
    Variable(VariableId),
    /// Where a thread is, along x, y or z.
    Coordinate(Coordinate, Axis),
    /// Two whole or real numbers make one. Whole numbers are indices and counts, which never overflow.
    Binary(Binary, ValueId, ValueId),
    /// A comparison of numbers.
    Compare(Relation, ValueId, ValueId),
    /// Whether both truths hold, the second of which is looked at only where the first does.
    And(ValueId, ValueId),
    /// Whether one of two truths holds, the second of which is looked at only where the first does not.
    Or(ValueId, ValueId),
    /// The first of two values where a truth holds, else the second; the other one is not computed.
    Choose(ValueId, ValueId, ValueId),
    /// A number as one of another type.
    Convert(ValueId),
    /// One of the numbers of a value that has several.
    Lane(ValueId, u8),
    /// Several numbers side by side.
    Lanes(Vec<ValueId>),
    /// An element of an array.
    Load(ArrayId, ValueId),
    /// What the thread so many lanes further on in the warp has; its own where there is none. All threads of the warp are here.
    ShuffleDown(ValueId, ValueId),
}

/// An operation on two numbers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Their sum.
    Add,
    /// Their difference.
    Sub,
    /// Their product.
    Mul,
    /// Of whole numbers that are not negative the quotient, cut off.
    Div,
    /// And the rest.
    Rem,
    /// Of whole numbers the bits that differ.
    Xor,
    /// Of whole numbers the bits that either has.
    BitOr,
}

/// Where a thread is, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coordinate {
    /// Of the thread in its block.
    Thread,
    /// Of the block in the launch.
    Block,
    /// How many threads a block has.
    Threads,
    /// How many blocks there are.
    Blocks,
}

/// An axis of blocks and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The first, along which the threads of a warp follow each other.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

/// Statements, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Block(pub Vec<Statement>);

/// What a thread does.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Computes a value here, by whose name it is known from now on.
    Let(ValueId),
    /// Makes a variable, with its first value.
    Declare(VariableId, ValueId),
    /// Gives a variable another value.
    Assign(VariableId, ValueId),
    /// Writes an element of an array, by its index.
    Store(ArrayId, ValueId, ValueId),
    /// Does one thing where a truth holds, and another where it does not.
    If(ValueId, Block, Block),
    /// Does something again and again.
    For(Box<For>),
    /// Waits until all threads of the block are here, and sees what they have written.
    Barrier,
    /// The thread is done.
    Return,
}

/// A loop: a counter goes on by a step until it reaches an end.
#[derive(Clone, Debug)]
pub struct For {
    /// The counter.
    pub counter: VariableId,
    /// Its first value.
    pub first: ValueId,
    /// It stays below this, which is computed before each turn.
    pub end: ValueId,
    /// How it goes on.
    pub step: Step,
    /// Whether the loop is to be written out.
    pub is_unrolled: bool,
    /// What is done each time.
    pub body: Block,
}

/// How a counter goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// By a number that is added.
    By(ValueId),
    /// It is doubled.
    Doubled,
}

impl Type {
    /// One number.
    pub const fn one(element: Element) -> Self {
        Self { element, lanes: 1 }
    }

    /// A truth value.
    pub const BOOL: Type = Type::one(Element::Bool);
    /// A whole number of 32 bits.
    pub const I32: Type = Type::one(Element::I32);
    /// A whole number of 64 bits.
    pub const I64: Type = Type::one(Element::I64);
    /// Four whole numbers of 32 bits: the widest access that there is, 16 bytes.
    pub const WIDEST: Type = Type { element: Element::I32, lanes: 4 };

    /// Whether it is one whole number that is computed with.
    pub fn is_whole(self) -> bool {
        self == Type::I32 || self == Type::I64
    }

    /// Whether it is one real number.
    pub fn is_real(self) -> bool {
        self == Type::one(Element::F32) || self == Type::one(Element::F64)
    }
}

impl Operation {
    /// The values that it is made of.
    pub fn operands(&self) -> Vec<ValueId> {
        match self {
            Operation::Int(_) | Operation::Argument(_) | Operation::Variable(_) | Operation::Coordinate(..) => {
                Vec::new()
            }
            Operation::Convert(a) | Operation::Lane(a, _) | Operation::Load(_, a) => vec![*a],
            Operation::Binary(_, a, b) | Operation::Compare(_, a, b) => vec![*a, *b],
            Operation::And(a, b) | Operation::Or(a, b) | Operation::ShuffleDown(a, b) => vec![*a, *b],
            Operation::Choose(condition, yes, no) => vec![*condition, *yes, *no],
            Operation::Lanes(lanes) => lanes.clone(),
        }
    }
}

impl Statement {
    /// The values that it uses itself, without those of statements in it.
    pub fn values(&self) -> Vec<ValueId> {
        match self {
            Statement::Let(value) | Statement::Declare(_, value) | Statement::Assign(_, value) => vec![*value],
            Statement::Store(_, index, value) => vec![*index, *value],
            Statement::If(condition, ..) => vec![*condition],
            Statement::For(own) => match own.step {
                Step::By(step) => vec![own.first, own.end, step],
                Step::Doubled => vec![own.first, own.end],
            },
            Statement::Barrier | Statement::Return => Vec::new(),
        }
    }

    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Statement::If(_, yes, no) => vec![yes, no],
            Statement::For(own) => vec![&own.body],
            Statement::Let(_) | Statement::Declare(..) | Statement::Assign(..) | Statement::Store(..) => Vec::new(),
            Statement::Barrier | Statement::Return => Vec::new(),
        }
    }
}
