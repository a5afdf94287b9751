//! Loops and branches of a kernel, for those who write into it while they know more than it.

use crate::kernel::build::Builder;
use crate::kernel::{Step, Unroll, ValueId};

/// Makes a kernel.
pub trait Making: Sized {
    /// The kernel so far.
    fn own(&mut self) -> &mut Builder;

    /// Does something where a truth holds.
    fn when(&mut self, condition: ValueId, write: impl FnOnce(&mut Self)) {
        let yes = self.own().open();
        let before = self.own().enter(yes);
        write(self);
        let own = self.own();
        own.enter(before);
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
        let body = self.own().open();
        let before = self.own().enter(body);
        write(self, value);
        let own = self.own();
        own.enter(before);
        own.repeat(counter, bounds, unroll, body);
    }
}
