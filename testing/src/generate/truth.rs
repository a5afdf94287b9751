//! Truth values.

use super::scope::{Guard, Kind, Origin};
use super::{Context, Generator};
use crate::tree::Expr;

const ORDERS: &[&str] = &["<", "<=", ">", ">=", "==", "!="];

impl Generator {
    /// A truth value.
    pub(super) fn truth(&mut self, size: usize, context: Context) -> Expr {
        if size <= 2 {
            return self.truth_leaf(context);
        }
        let (left, right) = self.split(size);
        match self.rng.u32(0..100) {
            0..45 => self.compared(left, right, context),
            45..58 => {
                let op = self.pick(&["&&", "||"]);
                Expr::infix(op, self.truth(left, context), self.truth(right, context))
            }
            58..72 if context.allow.levels && !context.constant => {
                // The right side reads a level that exists where the left lets it be reached.
                let (condition, yes, no) = self.guard(context);
                let (op, guard) = if self.chance(60) { ("&&", yes) } else { ("||", no) };
                let other = self.truth(right, context.guarded(guard));
                if self.chance(85) { Expr::infix(op, condition, other) } else { Expr::infix(op, other, condition) }
            }
            72..82 => Expr::prefix('!', self.truth(size - 1, context)),
            82..88 => {
                let op = self.pick(&["==", "!="]);
                Expr::infix(op, self.truth(left, context), self.truth(right, context))
            }
            88..95 => self.choice(size, context, |own, size, context| own.truth(size, context)),
            _ => match self.called(Kind::Bool, size, context) {
                Some(call) => call,
                None => self.compared(left, right, context),
            },
        }
    }

    fn compared(&mut self, left: usize, right: usize, context: Context) -> Expr {
        let op = self.pick(ORDERS);
        if self.chance(35) {
            let (a, _) = self.int(left, context);
            let (b, _) = self.int(right, context);
            return Expr::infix(op, a, b);
        }
        let left = self.mixed(left, context);
        Expr::infix(op, left, self.mixed(right, context))
    }

    fn truth_leaf(&mut self, context: Context) -> Expr {
        if self.chance(60)
            && let Some(var) = self.var(context, |var| var.kind == Kind::Bool)
        {
            return if self.chance(35) { self.shifted_var(var, context) } else { Expr::Name(var.name) };
        }
        if self.chance(8) { Expr::literal(self.chance(50)) } else { self.compared(1, 1, context) }
    }

    /// A condition on the level, and which levels exist where it holds and where not.
    pub(super) fn guard(&mut self, context: Context) -> (Expr, Guard, Guard) {
        self.seen.levels = true;
        let k = || Expr::name("k");
        let last = || Expr::infix("-", Expr::name("nk"), Expr::literal(1));
        let none = Guard::default();
        let (down, up, both) =
            (Guard { down: true, up: false }, Guard { down: false, up: true }, Guard { down: true, up: true });
        match self.rng.u32(0..14) {
            0 | 1 => (Expr::infix(">", k(), Expr::literal(0)), down, none),
            2 => (Expr::infix("==", k(), Expr::literal(0)), none, down),
            3 => (Expr::infix("<=", Expr::literal(1), k()), down, none),
            4 => (Expr::prefix('!', Expr::infix("==", k(), Expr::literal(0))), down, none),
            5 | 6 => (Expr::infix("<", k(), last()), up, none),
            7 => (Expr::infix("==", k(), last()), none, up),
            8 => {
                let up = Expr::infix("<", Expr::infix("+", k(), Expr::literal(1)), Expr::name("nk"));
                (Expr::infix("&&", Expr::infix(">", k(), Expr::literal(0)), up), both, none)
            }
            9 => (Expr::infix(">", Expr::infix("/", k(), Expr::name("nk")), Expr::literal("0.4")), down, none),
            10 => (Expr::infix("==", Expr::infix("%", k(), Expr::literal(2)), Expr::literal(0)), none, none),
            11 => match self.var(context, |var| var.kind == Kind::Bool && var.origin == Origin::Param) {
                Some(var) => (Expr::Name(var.name), none, none),
                None => (Expr::infix("||", Expr::infix("<", k(), Expr::literal(1)), Expr::literal(false)), none, down),
            },
            _ => match self.var(context, |var| var.kind == Kind::Int && var.origin == Origin::Param) {
                // Where the parameter is negative, this is no guard: then fewer levels are computed.
                Some(var) => (Expr::infix(">", k(), Expr::Name(var.name)), down, none),
                None => (Expr::infix("!=", k(), Expr::literal(0)), down, none),
            },
        }
    }
}
