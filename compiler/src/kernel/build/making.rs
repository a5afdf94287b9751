//! Loops and branches of a kernel, for those who write into it while they know more than it.

use super::{BlockKey, Builder};
use crate::kernel::{Step, Unroll, ValueId};

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
    fn when(&mut self, condition: ValueId, write: impl FnOnce(&mut Self)) {
        let yes = self.block(write);
        let own = self.own();
        let no = own.open();
        own.branch(condition, yes, no);
    }

    /// The same, or always if nothing is asked.
    fn when_if(&mut self, condition: Option<ValueId>, write: impl FnOnce(&mut Self)) {
        match condition {
            Some(condition) => self.when(condition, write),
            None => write(self),
        }
    }

    /// A loop whose counter begins with a number, goes on by a step, and stays below an end.
    fn each(
        &mut self,
        wish: &str,
        bounds: (ValueId, ValueId, Step),
        unroll: Unroll,
        write: impl FnOnce(&mut Self, ValueId),
    ) {
        let (counter, value) = self.own().counter(wish, bounds.0);
        let body = self.block(|own| write(own, value));
        self.own().repeat(counter, bounds, unroll, body);
    }
}
