//! Sums, products and comparisons of a kernel's values, written as they are read.
//!
//! `own.called("first_row", rank.times(warps).plus(warp).times(rows))` is a line, where a [`Builder`] takes a statement for each
//! operation and each number. Operations are done from left to right.

use crate::ir::Relation;
use crate::kernel::build::{Builder, Making};
use crate::kernel::{ArrayId, Binary, Operand, Step, Type, Unroll, ValueId};
use std::ops::Range;

/// What is to be computed.
pub enum Term {
    /// What is computed already.
    Value(ValueId),
    /// A whole number, of the type of what it is computed with.
    Number(i64),
    /// An operation on two numbers.
    Binary(Binary, Box<[Term; 2]>),
    /// A comparison of two numbers.
    Compare(Relation, Box<[Term; 2]>),
    /// A number as one of another type.
    Convert(Box<Term>, Type),
}

/// What terms are made of, and how.
pub trait Computing: Into<Term> {
    /// The sum of both.
    fn plus(self, other: impl Into<Term>) -> Term {
        Term::Binary(Binary::Add, Box::new([self.into(), other.into()]))
    }

    /// Their difference.
    fn minus(self, other: impl Into<Term>) -> Term {
        Term::Binary(Binary::Sub, Box::new([self.into(), other.into()]))
    }

    /// Their product.
    fn times(self, other: impl Into<Term>) -> Term {
        Term::Binary(Binary::Mul, Box::new([self.into(), other.into()]))
    }

    /// Their quotient.
    fn over(self, other: impl Into<Term>) -> Term {
        Term::Binary(Binary::Div, Box::new([self.into(), other.into()]))
    }

    /// What their division leaves.
    fn rem(self, other: impl Into<Term>) -> Term {
        Term::Binary(Binary::Rem, Box::new([self.into(), other.into()]))
    }

    /// The lesser of both.
    fn at_most(self, other: impl Into<Term>) -> Term {
        Term::Binary(Binary::Min, Box::new([self.into(), other.into()]))
    }

    /// Whether they are in a relation.
    fn is(self, relation: Relation, other: impl Into<Term>) -> Term {
        Term::Compare(relation, Box::new([self.into(), other.into()]))
    }

    /// Whether the first is less.
    fn less(self, other: impl Into<Term>) -> Term {
        self.is(Relation::Lt, other)
    }

    /// The same as a number of another type.
    fn to(self, kind: Type) -> Term {
        Term::Convert(Box::new(self.into()), kind)
    }
}

impl<T: Into<Term>> Computing for T {}

impl From<ValueId> for Term {
    fn from(value: ValueId) -> Self {
        Self::Value(value)
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

impl From<usize> for Term {
    fn from(number: usize) -> Self {
        Self::Number(number as i64)
    }
}

impl Builder {
    /// The value of a term.
    pub(super) fn term(&mut self, term: impl Into<Term>) -> ValueId {
        match term.into() {
            Term::Value(value) => value,
            Term::Number(number) => self.int(number),
            Term::Binary(operation, both) => {
                let [a, b] = self.alike(*both);
                self.binary(operation, a, b)
            }
            Term::Compare(relation, both) => {
                let [a, b] = self.alike(*both);
                self.compare(relation, a, b)
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

    /// The value of a term, computed here and called so.
    pub(super) fn called(&mut self, wish: &str, term: impl Into<Term>) -> ValueId {
        let value = self.term(term);
        self.name(wish, value)
    }

    /// One of two terms of a type, by a truth.
    pub(super) fn one_of(&mut self, truth: ValueId, both: [Term; 2]) -> ValueId {
        let [yes, no] = self.alike(both);
        self.choose(truth, yes, no)
    }

    /// A place in an array.
    pub(super) fn place(&mut self, array: ArrayId, index: impl Into<Term>) -> Operand {
        Operand::Place(array, self.term(index))
    }

    /// Whether all of these truths hold; nothing if nothing is asked.
    pub(super) fn all(&mut self, truths: impl IntoIterator<Item = ValueId>) -> Option<ValueId> {
        truths.into_iter().reduce(|all, truth| self.and(all, truth))
    }

    /// Whether a number is in a range, as far as that is open for one of `known`.
    pub(super) fn in_range(&mut self, number: ValueId, range: Range<i64>, known: Range<i64>) -> Option<ValueId> {
        let begins = (range.start > known.start).then(|| self.term(number.is(Relation::Ge, range.start)));
        let ends = (range.end < known.end).then(|| self.term(number.less(range.end)));
        self.all(begins.into_iter().chain(ends))
    }
}

/// Loops over numbers.
pub trait Counting: Making {
    /// One whose turns all stand there.
    fn unrolled(
        &mut self,
        wish: &str,
        (first, end): (impl Into<Term>, impl Into<Term>),
        write: impl FnOnce(&mut Self, ValueId),
    ) {
        let own = self.own();
        let bounds = (own.term(first), own.term(end), Step::By(own.int(1)));
        self.each(wish, bounds, Unroll::Whole, write);
    }

    /// One that goes on by some numbers at a time.
    fn repeated(
        &mut self,
        wish: &str,
        (first, end, by): (impl Into<Term>, impl Into<Term>, impl Into<Term>),
        write: impl FnOnce(&mut Self, ValueId),
    ) {
        let own = self.own();
        let first = own.term(first);
        let kind = own.kind(first);
        let bounds = (first, own.term(end.to(kind)), Step::By(own.term(by.to(kind))));
        self.each(wish, bounds, Unroll::Times(1), write);
    }
}

impl<T: Making> Counting for T {}
