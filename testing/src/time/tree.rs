//! Programs in time, as a tree. Names are numbers, so that parts can be cut out.

/// A file with stencils and one program.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The stencils, which are called `s0`, `s1`, ...
    pub stencils: Vec<Stencil>,
    /// All fields of the program, declared ones and those that calls make.
    pub variables: Vec<Variable>,
    /// Numbers of the program: parameters with their defaults.
    pub params: Vec<Param>,
    /// What is said of edges.
    pub boundaries: Vec<Boundary>,
    /// What it does.
    pub actions: Vec<Action>,
}

/// Where a field lives, and how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Whether it has the axes i and j, and k.
    pub axes: [bool; 2],
    /// Whether it has one level more.
    pub interfaces: bool,
    /// Its type.
    pub stored: Stored,
}

/// A type of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Whatever is computed in.
    Real,
    /// `f32`
    Single,
    /// `f64`
    Double,
    /// `int`
    Int,
    /// `int`, and its numbers say which levels are read.
    Levels,
}

/// How a field is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

impl Role {
    /// Whether it is read.
    pub fn is_read(self) -> bool {
        self != Role::Out
    }

    /// Whether it is written.
    pub fn is_written(self) -> bool {
        self != Role::In
    }
}

/// A field of the program: `v0`, `v1`, ...
#[derive(Clone, Debug)]
pub struct Variable {
    /// Where it lives.
    pub shape: Shape,
    /// Its role, if it is declared.
    pub role: Option<Role>,
}

/// A parameter of the program: `p0`, `p1`, ...
#[derive(Clone, Debug)]
pub struct Param {
    /// Whether it is an int.
    pub whole: bool,
    /// Its default.
    pub default: f64,
}

/// A stencil.
#[derive(Clone, Debug)]
pub struct Stencil {
    /// Its fields: `a0`, `a1`, ...
    pub fields: Vec<(Role, Shape)>,
    /// Defaults of its parameters, if they have one: `c0`, `c1`, ...
    pub params: Vec<Option<f64>>,
    /// Names of values: `d0`, `d1`, ...
    pub lets: Vec<Term>,
    /// What is computed level by level.
    pub sweeps: Vec<Sweep>,
    /// By output that no sweep assigns: the field, and its value.
    pub outputs: Vec<(usize, Term)>,
}

/// Values that are made of what they are at the levels before.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Whether it goes up.
    pub is_up: bool,
    /// What it names, in the order in which it stands there.
    pub values: Vec<(Swept, Term)>,
}

/// A value of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Swept {
    /// A let: `e0`, `e1`, ..., counted through all sweeps of the stencil.
    Let(usize),
    /// A field.
    Field(usize),
}

/// A value at a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A real number.
    Number(f64),
    /// A whole one.
    Whole(i64),
    /// A parameter of the stencil.
    Param(usize),
    /// The level.
    Level,
    /// A field, at an offset.
    Read(usize, [i64; 3]),
    /// A field, at an offset, and so many levels further as a number of another says, at an offset of its own.
    Moved([usize; 2], [[i64; 3]; 2]),
    /// A field, at an offset along i and j, on a level that is said by its number: so many more than a number of another says, at an offset
    /// of its own.
    ByNumber([usize; 2], [[i64; 3]; 2]),
    /// The same by a number that the text says: from the first level, or, if it is less than 0, from behind the last.
    OnLevel(usize, [i64; 2], i64),
    /// A let, at an offset.
    Use(usize, [i64; 3]),
    /// A value of a sweep, so many levels away.
    Swept(Swept, i64),
    /// Two values.
    Binary(Op, Box<Term>, Box<Term>),
    /// `if k > n { a } else { b }`: known on each level.
    Above(i64, Box<Term>, Box<Term>),
    /// `if k < nk - n { a } else { b }`
    Below(i64, Box<Term>, Box<Term>),
    /// `if a > b { c } else { d }`: open.
    Greater(Box<[Term; 4]>),
}

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `min`
    Min,
    /// `max`
    Max,
}

/// A number of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A real literal.
    Literal(f64),
    /// A whole one.
    Whole(i64),
    /// A parameter.
    Param(usize),
    /// A name that `let` gave: `n0`, `n1`, ...
    Named(usize),
    /// A sum.
    Sum(Box<Number>, Box<Number>),
}

/// What a program does.
#[derive(Clone, Debug)]
pub enum Action {
    /// `v1, v2 = s0(v3, c0 = 0.5)`
    Call {
        /// The stencil.
        stencil: usize,
        /// What its inputs are.
        reads: Vec<usize>,
        /// What its parameters are; some may be left out.
        params: Vec<Option<Number>>,
        /// What its outputs are.
        targets: Vec<usize>,
        /// Whether they are new.
        fresh: bool,
        /// Where it is computed, at most once for each axis.
        within: Vec<Within>,
    },
    /// `v1 = v2`, or `let v1 = v2`
    Rename {
        /// Whose value it is.
        from: usize,
        /// What gets it.
        to: usize,
        /// Whether that is new.
        fresh: bool,
    },
    /// `let n0 = p0 + 0.5`
    Let(usize, Number),
    /// `repeat p0 { ... }`
    Repeat(Number, Vec<Action>),
}

/// The part of an axis where a call is computed: `i 1..ni`, `level 0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Within {
    /// 0 is i, 1 is j, 2 is k.
    pub axis: usize,
    /// The first, or the only one.
    pub first: End,
    /// The one after the last.
    pub end: Option<End>,
}

/// A place along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// So many after the first.
    After(i64),
    /// So many before the one after the last.
    Before(i64),
    /// As a whole number of the program says.
    Said(Number),
}

/// What lies beyond an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The other end.
    Periodic,
    /// The outermost cell.
    Copy,
    /// The same, seen in a mirror.
    Mirror,
    /// The same with the other sign.
    OddMirror,
    /// A number.
    Value(f64),
    /// Nothing.
    Halo,
}

/// What is said of the edges of one field, or of all: by axis and side.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// Of which field; of all if there is none.
    pub of: Option<usize>,
    /// By axis, low and high; nothing where nothing is said.
    pub rules: [[Option<Rule>; 2]; 3],
}

impl Term {
    /// The terms directly inside.
    pub fn children(&self) -> Vec<&Term> {
        match self {
            Term::Number(_) | Term::Whole(_) | Term::Param(_) | Term::Level => Vec::new(),
            Term::Read(..) | Term::Moved(..) | Term::ByNumber(..) | Term::OnLevel(..) => Vec::new(),
            Term::Use(..) | Term::Swept(..) => Vec::new(),
            Term::Binary(_, a, b) | Term::Above(_, a, b) | Term::Below(_, a, b) => vec![a, b],
            Term::Greater(four) => four.iter().collect(),
        }
    }

    /// The same, to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Term> {
        match self {
            Term::Number(_) | Term::Whole(_) | Term::Param(_) | Term::Level => Vec::new(),
            Term::Read(..) | Term::Moved(..) | Term::ByNumber(..) | Term::OnLevel(..) => Vec::new(),
            Term::Use(..) | Term::Swept(..) => Vec::new(),
            Term::Binary(_, a, b) | Term::Above(_, a, b) | Term::Below(_, a, b) => vec![a, b],
            Term::Greater(four) => four.iter_mut().collect(),
        }
    }
}

impl Shape {
    /// Whether it has an axis: 0 is i, 1 is j, 2 is k.
    pub fn has(self, axis: usize) -> bool {
        self.axes[usize::from(axis == 2)]
    }
}
