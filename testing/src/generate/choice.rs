//! Choices and folds of any kind.

use super::scope::{COUNTERS, Kind, Origin, Var, Varies};
use super::{Context, Generator};
use crate::tree::{Block, Expr};

impl Generator {
    /// `if a { b } else if c { d } else { e }`, often with guards of levels.
    pub(super) fn choice(
        &mut self,
        size: usize,
        context: Context,
        mut write: impl FnMut(&mut Self, usize, Context) -> Expr,
    ) -> Expr {
        let branches = if size > 8 && self.chance(25) { 3 } else { 2 };
        let each = (size / (branches + 1)).max(1);
        let mut arms = Vec::new();
        let mut rest = context;
        for _ in 1..branches {
            let guards = context.allow.levels && !context.constant && self.chance(45);
            let (mut condition, mut yes, mut no) = (None, context.guard, context.guard);
            if guards {
                let (guard, holds, fails) = self.guard(rest);
                (yes, no) = (holds, fails);
                condition = Some(guard);
                if self.chance(25) {
                    // Open, but known to be false where the guard is.
                    let other = self.truth(each, rest.guarded(yes));
                    condition = condition.map(|guard| Expr::infix("&&", guard, other));
                    no = Default::default();
                }
            }
            let condition = match condition {
                Some(condition) => condition,
                None => self.truth(each.max(3), rest),
            };
            let inner = rest.guarded(yes);
            let block = self.block(inner, each, |own, size| write(own, size, inner));
            arms.push((condition, block));
            rest = rest.guarded(no);
        }
        let otherwise = self.block(rest, each, |own, size| write(own, size, rest));
        Expr::Choose(arms, Box::new(otherwise))
    }

    /// `sum(n in 1..=3) { ... }` and its like.
    pub(super) fn fold(
        &mut self,
        op: &'static str,
        context: Context,
        write: impl FnOnce(&mut Self, Context) -> Block,
    ) -> Expr {
        let mark = self.vars.len();
        let several = context.folds == 0 && self.chance(25);
        let mut binders = Vec::new();
        for index in 0..if several { 2 } else { 1 } {
            let low = self.pick(&[-1, 0, 1, -1]);
            let terms = if several || context.folds > 0 { self.rng.i64(1..3) } else { self.rng.i64(1..5) };
            let high = (low + terms - 1).min(3);
            // The ends of a range do not see the counters beside it.
            let low_end = if index == 0 { self.whole(low, low, context) } else { Expr::whole(low) };
            let name = self.fresh(COUNTERS);
            binders.push((name.clone(), low_end, Expr::whole(high)));
            let (kind, origin, varies) = (Kind::Int, Origin::Counter, Varies::default());
            self.vars.push(Var { name, kind, origin, varies, range: Some((low, high)) });
        }
        let block = write(self, Context { folds: context.folds + 1, ..context });
        self.vars.truncate(mark);
        Expr::Fold(op, binders, Box::new(block))
    }
}
