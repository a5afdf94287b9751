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
//! [`build::Builder`] makes kernels, [`simplify`] leaves out what nothing uses, [`verify`] says what every kernel keeps to, [`cost`]
//! counts what it does, and `cuda::print` writes it down.

pub mod build;
pub mod cost;
mod display;
mod live;
pub mod machine;
mod meaning;
mod operands;
mod routine;
pub mod scalar;
pub mod simplify;
mod types;
mod uniform;
pub mod verify;

use crate::ir::arena::handles;
use crate::ir::{self, Arena, Relation};
use crate::named::named;
use crate::names::Identifier;
use crate::text::Comment;
pub use cost::Memory;
pub use meaning::{Meaning, MeshData, MeshTable, PieceTable, Size, StepData};
pub use routine::{Operand, Routine};
use serde::{Deserialize, Serialize};
pub use types::{Element, Type};
pub use uniform::Together;

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

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: Identifier,
    /// What it computes, for readers.
    pub doc: Vec<Comment>,
    /// The call that makes its file again.
    pub made: Option<Comment>,
    /// The most threads of a block, of which registers are counted.
    pub threads: u32,
    /// Blocks that have to fit on a multiprocessor, which bounds the registers of a thread; 0 if nothing is asked.
    pub blocks: u32,
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
    /// Of a checked kernel, how it looks at indices.
    pub watch: Option<Watch>,
    /// Of a kernel that is tried first with quick divisions, what its attempts are told.
    pub attempt: Option<Attempt>,
}

/// Of a kernel whose divisions share what they can ([`Function::Inverse`], [`Function::Quotient`]): every thread tries so, up to where
/// it would [give up](Statement::GiveUp). If a division until there was not a usual one, it begins again with those of the device.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What the truth is called that this is the quick attempt.
    pub is_quick: Identifier,
    /// What the truth is called that all divisions so far were usual ones.
    pub is_usual: Identifier,
}

impl Kernel {
    /// What its arguments mean, in order.
    pub fn meanings(&self) -> impl Iterator<Item = &Meaning> {
        self.arguments.iter().map(|(_, own)| &own.meaning)
    }

    /// The sizes that its body begins with: whole numbers with names.
    pub fn sizes(&self) -> impl Iterator<Item = ValueId> {
        self.body.0.iter().map_while(|statement| match statement {
            Statement::Let(value) if matches!(self.values[*value].operation, Operation::Int(_)) => Some(*value),
            _ => None,
        })
    }
}

/// How a checked kernel looks at indices: what `Watch` of the prelude is made of.
#[derive(Clone, Debug)]
pub struct Watch {
    /// What it is called.
    pub name: Identifier,
    /// Where it writes what went wrong.
    pub report: ArrayId,
    /// Of each place in a plane its column.
    pub columns: ArrayId,
    /// The places in a plane: a number, an argument, or one of the kernel's sizes.
    pub plane: ValueId,
}

/// What a kernel takes: a number, or where an array begins.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: Identifier,
    /// What it is.
    pub what: ArgumentKind,
    /// What it means to who launches the kernel.
    pub meaning: Meaning,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
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
    /// Of a checked kernel: indices outside give 0 and are told.
    pub watched: Option<Watched>,
}

/// What a checked kernel knows of an array whose indices it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What the array itself is called; its own name is that of what looks at indices.
    pub entries: Identifier,
    /// How many elements it has.
    pub length: usize,
    /// The number by which it is told.
    pub site: usize,
}

/// Where an array is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Space {
    /// In global memory, which all threads see. No other array of the kernel overlaps it, unless it may be `aliased`.
    Global {
        /// Whether other arrays of the kernel may be the same memory.
        aliased: bool,
    },
    /// In the shared memory of a block: so many elements.
    Shared(usize),
    /// The shared memory of a block whose size the launch gives: so many bytes. A kernel has at most one such array.
    Dynamic(usize),
    /// A part of that, which other parts may overlap.
    Part {
        /// All of it.
        of: ArrayId,
        /// The byte that it begins with.
        first: usize,
        /// Its elements.
        count: usize,
    },
    /// Where another array is, from an element or in a row that a [statement](Statement::Array) says.
    View(ArrayId),
    /// A thread's own: so many elements, from a [statement](Statement::Array) on.
    Local(usize),
    /// A thread's own: so many rows of so many elements, from a statement on. An index is that of a row.
    Rows(usize, usize),
    /// In constant memory: these elements.
    Constant(Vec<i32>),
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
    /// A real number, by the bits of a double; exact in its type.
    Real(u64),
    /// A truth.
    Bool(bool),
    /// A bit for each of some lanes of a warp.
    Mask(u32),
    /// An argument that is a number.
    Argument(ArgumentId),
    /// What a variable holds now.
    Variable(VariableId),
    /// Where a thread is, along x, y or z.
    Coordinate(Coordinate, Axis),
    /// Two whole or real numbers make one, as the hardware does it. Whole numbers are indices and counts, which never overflow; for
    /// those of the language see [`Function`].
    Binary(Binary, ValueId, ValueId),
    /// A number with the other sign.
    Negate(ValueId),
    /// Whether a truth does not hold.
    Not(ValueId),
    /// A function.
    Call(Function, Vec<ValueId>),
    /// A comparison of values of one type.
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
    /// An element of an array, or several that follow each other, by the index of the first.
    Load(ArrayId, ValueId),
    /// The place that a table of neighbours leads to from another place.
    Follow(Box<Follow>),
    /// What the thread so many lanes further on in the warp has; its own where there is none. All threads of the warp are here.
    ShuffleDown(ValueId, ValueId),
    /// What another lane of the warp has: a value, the lane, and the lanes that are here.
    Shuffle {
        /// What is handed on.
        value: ValueId,
        /// By which lane.
        lane: ValueId,
        /// The lanes that do this together.
        lanes: ValueId,
    },
}

/// How a table leads from one place to another: `place + table[start + place]`, or where places have patterns `place +
/// table[start + patterns[place]]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follow {
    /// Of each place its pattern.
    pub patterns: Option<ArrayId>,
    /// The distances.
    pub table: ArrayId,
    /// Where those of the neighbour at hand begin.
    pub start: ValueId,
    /// The place.
    pub place: ValueId,
}

/// A function: what takes several instructions, or means more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// One of the language, of real or whole numbers.
    Scalar(ir::Function, Math),
    /// The sum of two whole numbers, which wraps.
    WrappingAdd,
    /// The difference of two whole numbers, which wraps.
    WrappingSub,
    /// The product of two whole numbers, which wraps.
    WrappingMul,
    /// The rest of a division, with the sign of the divisor.
    Rem,
    /// Whether a whole number is less than another, by arithmetic alone: where compilers must not see a comparison.
    Less,
    /// The number itself, of which compilers do not know where it comes from.
    Opaque,
    /// A real number, with the other sign where the highest bit of a whole number is set. The other bits of that are 0.
    Turned,
    /// The inverse of a divisor, for quotients by it, in a kernel that is tried. It is a usual one, or the attempt fails.
    Inverse,
    /// A quotient, of the dividend, the divisor and its inverse, in a kernel that is tried. It is a usual one, or the attempt fails.
    Quotient,
    /// The index of an element of an array that shares blocks of 32 with others: of so many in all.
    Interleaved(u32),
    /// Which block of its cluster this is.
    ClusterRank,
    /// Whether a checked kernel may touch an element: site, index, how far the column is away, level, levels, own column, own level.
    WatchShift,
    /// The same, with the number of a neighbour for how far the column is away.
    WatchNeighbour,
    /// The same for a field without columns.
    WatchLevel,
}

named! {
    /// Whose `exp`, `log`, `sin` and their kin a kernel calls.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Math {
        /// The language's own: the same bits everywhere.
        #[default]
        Own = "own";
        /// The device's: what it rounds differently is different.
        Device = "device";
    }
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
    /// Their quotient; of whole numbers that are not negative, cut off.
    Div,
    /// And the rest.
    Rem,
    /// Of whole numbers the bits that differ.
    Xor,
    /// Of whole numbers the bits that either has.
    BitOr,
    /// And those that both have.
    BitAnd,
    /// The first, without so many of its lowest bits.
    ShiftRight,
    /// The smaller of two whole numbers.
    Min,
    /// The larger of them.
    Max,
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
    /// Makes a variable, with its first value if it has one yet.
    Declare(VariableId, Option<ValueId>),
    /// Gives a variable another value.
    Assign(VariableId, ValueId),
    /// Makes an array that is a thread's own, or a view of another.
    Array(ArrayId, Contents),
    /// Writes an element of an array, or several that follow each other, by the index of the first.
    Store(ArrayId, ValueId, ValueId),
    /// Adds numbers to elements of an array that follow each other, by the index of the first, whoever else adds to them meanwhile. Of
    /// one number. Of two or four, where all threads of the warp are here: neighbouring lanes add those at one index together; at -1
    /// nothing is added.
    AtomicAdd(ArrayId, ValueId, Vec<ValueId>),
    /// Does what is done for its effect alone.
    Do(Routine, Vec<Operand>),
    /// Does one thing where a truth holds, and another where it does not.
    If(ValueId, Block, Block),
    /// Does something again and again.
    For(Box<For>),
    /// Waits until all threads of the block are here, and sees what they have written.
    Barrier,
    /// Leaves the innermost loop.
    Break,
    /// The thread is done.
    Return,
    /// The attempt has failed if a division was not a usual one: the thread begins again. Nothing is written before but to memory of its own,
    /// and no quick division is behind it.
    GiveUp,
    /// An empty line, for readers.
    Gap,
    /// What readers are told.
    Note(Comment),
}

/// What an array has at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing yet.
    Unset,
    /// Zeros.
    Zeros,
    /// These elements, which nothing changes.
    Listed(Vec<ValueId>),
    /// What another array has from an element on, or in a row of it: the array is a view of it.
    From(ValueId),
    /// All that another array has where a truth holds, of which it is a view; else what a third one has.
    Either(ValueId, ArrayId),
}

/// A loop: a counter goes on by a step until it reaches an end.
#[derive(Clone, Debug)]
pub struct For {
    /// The counter.
    pub counter: VariableId,
    /// Its first value.
    pub first: ValueId,
    /// It stays below this, or, where it goes down, does not come below; computed before each turn.
    pub end: ValueId,
    /// How it goes on.
    pub step: Step,
    /// How often the body is to be written out.
    pub unroll: Unroll,
    /// What is done each time.
    pub body: Block,
}

/// How a counter goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// By a number that is added.
    By(ValueId),
    /// By a number that is taken off.
    Down(ValueId),
    /// It is doubled.
    Doubled,
}

/// How often the body of a loop is to be written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unroll {
    /// As compilers like.
    Free,
    /// Once for each turn.
    Whole,
    /// So often, for as many turns at once.
    Times(u32),
    /// As compilers like, or for several turns side by side: no turn has to do with another.
    SideBySide,
}
