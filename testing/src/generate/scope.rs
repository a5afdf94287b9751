//! What a name stands for while a program is written.

use super::Generator;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Real,
    Int,
    Bool,
    /// Real parts.
    Vector(usize),
}

/// Along which axes a value varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Varies {
    pub horizontal: bool,
    pub levels: bool,
}

impl Varies {
    /// Along all axes.
    pub const ALL: Varies = Varies { horizontal: true, levels: true };

    /// Along the axes of either.
    pub fn or(self, other: Varies) -> Varies {
        Varies { horizontal: self.horizontal || other.horizontal, levels: self.levels || other.levels }
    }

    /// Whether `other` varies along no further axis.
    pub fn holds(self, other: Varies) -> bool {
        self.or(other) == self
    }
}

/// Which neighbouring levels exist for sure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guard {
    pub down: bool,
    pub up: bool,
}

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A field, on interfaces or not.
    Field {
        interfaces: bool,
        /// Whether it is an `in`.
        is_only_read: bool,
    },
    /// Taken, but not to be read.
    Output,
    Param,
    Constant,
    /// A let or an argument.
    Value,
    /// The counter of a fold, or an argument that is a whole constant.
    Counter,
}

/// A name that is visible.
#[derive(Clone, Debug)]
pub struct Var {
    pub name: String,
    pub kind: Kind,
    pub origin: Origin,
    pub varies: Varies,
    /// Of a whole number that may be constant: the least and the most it can be.
    pub range: Option<(i64, i64)>,
}

impl Var {
    /// Whether it is known when compiling for sure.
    pub fn is_constant(&self) -> bool {
        matches!(self.origin, Origin::Constant | Origin::Counter)
    }
}

/// What a function takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A value of a kind; of a whole one only such that are not constant.
    Value(Kind),
    /// A whole constant in a range.
    Whole(i64, i64),
}

/// A function that is visible.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    pub takes: Vec<Takes>,
    pub gives: Kind,
    /// Along which axes its result varies besides its arguments.
    pub varies: Varies,
    /// Of a whole result that may be constant: its range.
    pub range: Option<(i64, i64)>,
    /// Whether it is too large to be called in a loop.
    pub heavy: bool,
}

/// Names of fields. Some mean something in C++ or CUDA, or are what generated code likes to call things.
pub const FIELDS: &[&str] = &[
    "a",
    "b",
    "u",
    "v",
    "w",
    "t",
    "phi",
    "rho",
    "c",
    "row",
    "plane",
    "left",
    "top",
    "double",
    "float",
    "threadIdx",
    "new",
    "exp2",
    "fmax",
    "i_first",
    "k_end",
    "std",
    "nan",
    "M_PI",
    "NULL",
    "int_add",
    "a_left",
    "kk",
    "_x",
    "Float",
];
/// Names of lets.
pub const LETS: &[&str] = &["p", "q", "s", "lap", "flux", "d", "e", "g", "h", "value", "template", "a_top", "p_left"];
/// Names of constants and parameters.
pub const NUMBERS: &[&str] = &["dt", "dx", "alpha", "limit", "c0", "c1", "weights", "eps", "on_off", "first", "class"];
/// Names of functions.
pub const NAMES: &[&str] = &["f", "diff", "box", "ddx", "avg", "pick", "delta", "smooth", "main", "fabs"];
/// Names of arguments.
pub const ARGUMENTS: &[&str] = &["a", "b", "x", "y", "z", "n", "m", "o"];
/// Names of counters.
pub const COUNTERS: &[&str] = &["n", "m", "l", "r", "di", "dj"];

impl Generator {
    /// A name that is not taken, one of `pool` if there still is one.
    pub(super) fn fresh(&mut self, pool: &[&str]) -> String {
        for _ in 0..4 {
            let name = self.pick(pool);
            if self.is_free(name) {
                return name.to_owned();
            }
        }
        let stem = self.pick(pool);
        let mut number = 2;
        while !self.is_free(&format!("{stem}{number}")) {
            number += 1;
        }
        format!("{stem}{number}")
    }

    fn is_free(&self, name: &str) -> bool {
        self.vars.iter().all(|var| var.name != name) && self.functions.iter().all(|function| function.name != name)
    }
}
