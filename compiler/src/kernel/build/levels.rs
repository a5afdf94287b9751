//! Levels that are data: the level that a number leads to, of those that there are.

use super::Builder;
use super::terms::{Computing, Term};
use crate::kernel::{Binary, ValueId};

/// More levels than any field has: a number that leads further leads to the nearest level all the same.
const MANY: i64 = 1 << 24;

impl Builder {
    /// The level that is `shift` away from `k`, and a number more; beyond the first and `last`, the nearest. Any number may be data, and no
    /// sum overflows.
    pub fn level_away(&mut self, k: ValueId, shift: i32, by: ValueId, last: impl Into<Term>) -> ValueId {
        let shift = i64::from(shift);
        let bound = |end: i64| (end - shift).clamp(i32::MIN.into(), i32::MAX.into());
        let by = self.term(by.by(Binary::Max, bound(-MANY)).at_most(bound(MANY)));
        let by = self.term(by.plus(shift));
        self.term(k.plus(by).by(Binary::Max, 0).at_most(last))
    }
}
