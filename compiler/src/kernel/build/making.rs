//! Loops and branches of a kernel, for those who write into it while they know more than it.

use super::terms::{Computing, Term};
use super::{BlockKey, Builder};
use crate::kernel::{Step, Unroll, ValueId};

/// The most values that turns of a loop compute, all together, if they all stand there. NVRTC takes 84 s for a gather of 8 turns of
/// 4,000 values each, and 10 s for one turn that is repeated.
const MOST_UNROLLED: usize = 8000;

/// Makes a kernel.
pub trait Making: Sized {
    /// The kernel so far.
    fn own(&mut self) -> &mut Builder;

    /// A block begins: what is found out from now on is known in it alone.
    fn begin(&mut self) {}

    /// It ends.
    fn end(&mut self) {}

    /// What is written to a block.
    fn block(&mut self, write: impl FnOnce(&mut Self)) -> BlockKey {
        let block = self.own().open();
        let before = self.own().enter(block);
        self.begin();
        write(self);
        self.end();
        self.own().enter(before);
        block
    }

    /// Does something where a truth holds.
    fn when(&mut self, condition: impl Into<Term>, write: impl FnOnce(&mut Self)) {
        let condition = self.own().term(condition);
        let yes = self.block(write);
        let own = self.own();
        let no = own.open();
        own.branch(condition, yes, no);
    }

    /// The same, or always if nothing is asked.
    fn when_if(&mut self, condition: Option<impl Into<Term>>, write: impl FnOnce(&mut Self)) {
        match condition {
            Some(condition) => self.when(condition, write),
            None => write(self),
        }
    }

    /// A loop whose counter begins with a number, goes on by a step, and stays below an end.
    fn each(
        &mut self,
        wish: &str,
        (first, end, step): (impl Into<Term>, impl Into<Term>, Step),
        unroll: Unroll,
        write: impl FnOnce(&mut Self, ValueId),
    ) {
        let own = self.own();
        let bounds = (own.term(first), own.term(end), step);
        let (counter, value) = own.counter(wish, bounds.0);
        let body = self.block(|own| write(own, value));
        self.own().repeat(counter, bounds, unroll, body);
    }

    /// A loop whose turns all stand there.
    fn unrolled(
        &mut self,
        wish: &str,
        (first, end): (impl Into<Term>, impl Into<Term>),
        write: impl FnOnce(&mut Self, ValueId),
    ) {
        let one = Step::By(self.own().int(1));
        self.each(wish, (first, end, one), Unroll::Whole, write);
    }

    /// A loop from 0 whose turns all stand there, unless they would be more than NVRTC reads in a few seconds.
    fn unrolled_if_short(&mut self, wish: &str, turns: usize, write: impl FnOnce(&mut Self, ValueId)) {
        let own = self.own();
        let bounds = (own.int(0), own.term(turns), Step::By(own.int(1)));
        let (counter, value) = own.counter(wish, bounds.0);
        let before = own.value_count();
        let body = self.block(|own| write(own, value));
        let own = self.own();
        let is_short = (own.value_count() - before).saturating_mul(turns) <= MOST_UNROLLED;
        own.repeat(counter, bounds, if is_short { Unroll::Whole } else { Unroll::Times(1) }, body);
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
        let step = Step::By(own.term(by.to(kind)));
        self.each(wish, (first, end.to(kind), step), Unroll::Times(1), write);
    }
}

impl Making for Builder {
    fn own(&mut self) -> &mut Builder {
        self
    }
}
