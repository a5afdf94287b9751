//! Sums, products and comparisons of a kernel's values, written as they are read.
//!
//! `own.name("first_row", rank.times(warps).plus(warp).times(rows))` is a line, where a [`Builder`] takes a statement for each
//! operation and each number. Operations are done from left to right.

use super::Builder;
use crate::ir::Relation;
use crate::kernel::{ArrayId, Axis, Binary, Coordinate, Operand, Type, ValueId, VariableId};
use std::ops::Range;

/// What is to be computed.
pub enum Term {
    /// What is computed already.
    Value(ValueId),
    /// A whole number, of the type of what it is computed with.
    Number(i64),
    /// The coordinate of a thread or block, or how many there are.
    Coordinate(Coordinate, Axis),
    /// What a variable holds.
    Variable(VariableId),
    /// An element of an array.
    Element(ArrayId, Box<Term>),
    /// An operation on two numbers.
    Binary(Binary, Box<[Term; 2]>),
    /// A comparison of two numbers.
    Compare(Relation, Box<[Term; 2]>),
    /// Whether both truths hold.
    And(Box<[Term; 2]>),
    /// Whether one of two truths holds.
    Or(Box<[Term; 2]>),
    /// By a truth, one of two.
    Choose(Box<Term>, Box<[Term; 2]>),
    /// A number as one of another type.
    Convert(Box<Term>, Type),
}

/// What terms are made of, and how.
pub trait Computing: Into<Term> {
    /// An operation on both.
    fn by(self, operation: Binary, other: impl Into<Term>) -> Term {
        Term::Binary(operation, Box::new([self.into(), other.into()]))
    }

    /// The sum of both.
    fn plus(self, other: impl Into<Term>) -> Term {
        self.by(Binary::Add, other)
    }

    /// Their difference.
    fn minus(self, other: impl Into<Term>) -> Term {
        self.by(Binary::Sub, other)
    }

    /// Their product.
    fn times(self, other: impl Into<Term>) -> Term {
        self.by(Binary::Mul, other)
    }

    /// Their quotient.
    fn over(self, other: impl Into<Term>) -> Term {
        self.by(Binary::Div, other)
    }

    /// What their division leaves.
    fn rem(self, other: impl Into<Term>) -> Term {
        self.by(Binary::Rem, other)
    }

    /// The lesser of both.
    fn at_most(self, other: impl Into<Term>) -> Term {
        self.by(Binary::Min, other)
    }

    /// Whether they are in a relation.
    fn is(self, relation: Relation, other: impl Into<Term>) -> Term {
        Term::Compare(relation, Box::new([self.into(), other.into()]))
    }

    /// Whether the first is less.
    fn less(self, other: impl Into<Term>) -> Term {
        self.is(Relation::Lt, other)
    }

    /// Whether both truths hold.
    fn and(self, other: impl Into<Term>) -> Term {
        Term::And(Box::new([self.into(), other.into()]))
    }

    /// Whether one of both does.
    fn or(self, other: impl Into<Term>) -> Term {
        Term::Or(Box::new([self.into(), other.into()]))
    }

    /// The first where this truth holds, else the second.
    fn picks(self, yes: impl Into<Term>, no: impl Into<Term>) -> Term {
        Term::Choose(Box::new(self.into()), Box::new([yes.into(), no.into()]))
    }

    /// The same as a number of another type.
    fn to(self, kind: Type) -> Term {
        Term::Convert(Box::new(self.into()), kind)
    }
}

impl ArrayId {
    /// An element of the array.
    pub fn at(self, index: impl Into<Term>) -> Term {
        Term::Element(self, Box::new(index.into()))
    }
}

impl Coordinate {
    /// The coordinate along an axis.
    pub fn along(self, axis: Axis) -> Term {
        Term::Coordinate(self, axis)
    }
}

impl<T: Into<Term>> Computing for T {}

impl Term {
    /// The number of a thread of a launch whose blocks have so many, along x.
    pub fn thread_of_launch(threads: u32) -> Self {
        Coordinate::Block.along(Axis::X).times(threads).plus(Coordinate::Thread.along(Axis::X))
    }
}

impl From<ValueId> for Term {
    fn from(value: ValueId) -> Self {
        Self::Value(value)
    }
}

impl From<VariableId> for Term {
    fn from(variable: VariableId) -> Self {
        Self::Variable(variable)
    }
}

impl From<i64> for Term {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Term {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Term {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Term {
    fn from(number: usize) -> Self {
        Self::Number(number as i64)
    }
}

impl Builder {
    /// The value of a term.
    pub fn term(&mut self, term: impl Into<Term>) -> ValueId {
        match term.into() {
            Term::Value(value) => value,
            Term::Number(number) => self.int(number),
            Term::Coordinate(coordinate, axis) => self.coordinate(coordinate, axis),
            Term::Variable(variable) => self.get(variable),
            Term::Element(array, index) => self.load(array, *index),
            Term::Binary(operation, both) => {
                let [a, b] = self.alike(*both);
                self.binary(operation, a, b)
            }
            Term::Compare(relation, both) => {
                let [a, b] = self.alike(*both);
                self.compare(relation, a, b)
            }
            Term::And(both) => {
                let [a, b] = both.map(|term| self.term(term));
                self.and(a, b)
            }
            Term::Or(both) => {
                let [a, b] = both.map(|term| self.term(term));
                self.or(a, b)
            }
            Term::Choose(truth, both) => {
                let truth = self.term(*truth);
                let [yes, no] = self.alike(*both);
                self.choose(truth, yes, no)
            }
            Term::Convert(term, kind) => match *term {
                Term::Number(number) => self.literal(number, kind),
                term => {
                    let value = self.term(term);
                    self.convert(value, kind)
                }
            },
        }
    }

    /// Two terms, of which a number has the type of the other.
    fn alike(&mut self, both: [Term; 2]) -> [ValueId; 2] {
        match both {
            [Term::Number(number), b] => {
                let b = self.term(b);
                [self.literal(number, self.kind(b)), b]
            }
            [a, Term::Number(number)] => {
                let a = self.term(a);
                [a, self.literal(number, self.kind(a))]
            }
            both => both.map(|term| self.term(term)),
        }
    }

    /// A place in an array.
    pub fn place(&mut self, array: ArrayId, index: impl Into<Term>) -> Operand {
        Operand::Place(array, self.term(index))
    }

    /// Whether all of these truths hold; nothing if nothing is asked.
    pub fn all(&mut self, truths: impl IntoIterator<Item = ValueId>) -> Option<ValueId> {
        truths.into_iter().reduce(|all, truth| self.and(all, truth))
    }

    /// Whether a number is in a range, as far as that is open for one of `known`.
    pub fn in_range(&mut self, number: ValueId, range: Range<i64>, known: Range<i64>) -> Option<ValueId> {
        let begins = (range.start > known.start).then(|| self.term(number.is(Relation::Ge, range.start)));
        let ends = (range.end < known.end).then(|| self.term(number.less(range.end)));
        self.all(begins.into_iter().chain(ends))
    }
}
