//! Whole numbers. Those that may be constant carry their range, since a constant that overflows is an error.

use super::scope::{Kind, Origin};
use super::{Context, Generator};
use crate::tree::Expr;

/// A whole number, and its range if it may be constant.
pub type Whole = (Expr, Option<(i64, i64)>);

const MOST: i64 = i32::MAX as i64;

impl Generator {
    /// A whole number.
    pub(super) fn int(&mut self, size: usize, context: Context) -> Whole {
        if size <= 1 {
            return self.int_leaf(context);
        }
        match self.rng.u32(0..100) {
            0..45 => self.int_arithmetic(size, context),
            45..58 => {
                let (inner, _) = self.int(size - 1, context);
                let divisor = self.divisor(context);
                (Expr::infix("%", inner, divisor), Some((-20, 20)))
            }
            58..70 => {
                let (left, right) = self.split(size);
                let (a, a_range) = self.int(left, context);
                match self.rng.u32(0..4) {
                    0 => (Expr::Call("abs".into(), vec![a]), a_range.map(symmetric)),
                    1 => (Expr::Call("sign".into(), vec![a]), a_range.map(|_| (-1, 1))),
                    two => {
                        let (b, b_range) = self.int(right, context);
                        let name = if two == 2 { "min" } else { "max" };
                        (Expr::Call(name.into(), vec![a, b]), hull(a_range, b_range))
                    }
                }
            }
            // A choice by real numbers may be another one in another precision, and then is no offset.
            70..80 if !context.constant => {
                let mut range: Option<Option<(i64, i64)>> = None;
                let expr = self.choice(size, context, |own, size, context| {
                    let (value, own_range) = own.int(size, context);
                    range = Some(range.map_or(own_range, |known| hull(known, own_range)));
                    value
                });
                (expr, range.flatten())
            }
            80..85 => {
                let (inner, range) = self.int(size - 1, context);
                (Expr::prefix('-', inner), range.map(|(low, high)| (-high, -low)))
            }
            85..90 => {
                // At most 3 terms of at most 1000 each fit wherever such a sum is used.
                let op = self.pick(&["sum", "min", "max"]);
                let mut range = None;
                let expr = self.fold(op, context, |own, context| {
                    own.block(context, size / 2, |own, size| {
                        let (mut term, mut own_range) = own.int(size.max(1), context);
                        if own_range.is_some_and(|(low, high)| low.min(-high) < -100_000) {
                            (term, own_range) = (Expr::literal(2), Some((2, 2)));
                        }
                        range = own_range.map(|(low, high)| (low.min(low * 100), high.max(high * 100)));
                        term
                    })
                });
                (expr, range)
            }
            90..94 => {
                let (base, range) = self.int_leaf(context);
                let by = self.pick(&[2, 3, 1, 0]);
                let most = range.map(|(low, high)| low.abs().max(high.abs()));
                if most.is_some_and(|most| most > 1000) {
                    return (base, range);
                }
                // Whatever the base is, `x**0` is the constant 1.
                let range = match by {
                    0 => Some((1, 1)),
                    by => most.map(|most| symmetric((0, most.pow(by as u32).max(1)))),
                };
                let exponent = self.exponent(by, context);
                (Expr::infix("**", base, exponent), range)
            }
            _ => {
                let range = self.functions.iter().find(|function| function.gives == Kind::Int);
                let range = range.and_then(|function| function.range);
                let is_only = self.functions.iter().filter(|function| function.gives == Kind::Int).count() == 1;
                match is_only.then(|| self.called(Kind::Int, size, context)).flatten() {
                    Some(call) => (call, range),
                    None => self.int_arithmetic(size, context),
                }
            }
        }
    }

    fn int_leaf(&mut self, context: Context) -> Whole {
        let roll = self.rng.u32(0..100);
        if roll < 30 && !context.constant {
            if context.allow.levels && self.chance(70) {
                self.seen.levels = true;
                return (Expr::name("k"), None);
            }
            return (Expr::name("nk"), None);
        }
        if roll < 75
            && let Some(var) = self.var(context, |var| var.kind == Kind::Int)
        {
            let range = var.range;
            let expr = if self.chance(35) { self.shifted_var(var, context) } else { Expr::Name(var.name) };
            return (expr, range);
        }
        let large = !context.constant && self.chance(6);
        let x = if large { self.pick(&[2_000_000_000, 123_456_789, MOST]) } else { self.rng.i64(0..8) };
        (Expr::literal(x), Some((x, x)))
    }

    /// A whole number that is surely not constant, if there is one.
    pub(super) fn open_int(&mut self, size: usize, context: Context) -> Option<Expr> {
        for _ in 0..4 {
            if let (expr, None) = self.int(size, context) {
                return Some(expr);
            }
        }
        self.seen.levels |= context.allow.levels;
        (!context.constant).then(|| Expr::name(if context.allow.levels { "k" } else { "nk" }))
    }

    fn int_arithmetic(&mut self, size: usize, context: Context) -> Whole {
        let (left, right) = self.split(size);
        let (a, a_range) = self.int(left, context);
        let (b, b_range) = self.int(right, context);
        let op = self.pick(&["+", "-", "*"]);
        let range = a_range.zip(b_range).map(|((a, b), (c, d))| match op {
            "+" => (a + c, b + d),
            "-" => (a - d, b - c),
            _ => {
                let corners = [a * c, a * d, b * c, b * d];
                (corners.iter().copied().fold(i64::MAX, i64::min), corners.iter().copied().fold(i64::MIN, i64::max))
            }
        });
        match range {
            Some((low, high)) if low < -MOST || high > MOST => (a, a_range),
            range => (Expr::infix(op, a, b), range),
        }
    }

    /// The divisor of a whole `%`: not 0.
    fn divisor(&mut self, context: Context) -> Expr {
        if !context.constant
            && self.chance(40)
            && let Some(var) = self.var(context, |var| var.kind == Kind::Int && var.origin == Origin::Param)
        {
            return Expr::Name(var.name);
        }
        let is_divisor = |range: Option<(i64, i64)>| range.is_some_and(|(low, high)| low > 0 && high < 20);
        if self.chance(30)
            && let Some(var) = self.var(context, |var| var.origin == Origin::Constant && is_divisor(var.range))
        {
            return Expr::Name(var.name);
        }
        let x = self.pick(&[1, 2, 3, 3, 4, 5, 7, -2, -3, -5]);
        Expr::whole(x)
    }

    /// A whole constant between two numbers.
    pub(super) fn whole(&mut self, low: i64, high: i64, context: Context) -> Expr {
        if self.chance(40)
            && let Some(var) = self.var(Context { constant: true, ..context }, |var| {
                var.range.is_some_and(|(own_low, own_high)| own_low >= low && own_high <= high)
            })
        {
            return Expr::Name(var.name);
        }
        let x = self.rng.i64(low..=high);
        if self.chance(15) { Expr::infix("-", Expr::whole(x + 2), Expr::literal(2)) } else { Expr::whole(x) }
    }

    /// An exponent.
    pub(super) fn exponent(&mut self, by: i64, context: Context) -> Expr {
        if by >= 0 && self.chance(10) { self.whole(by, by, context) } else { Expr::whole(by) }
    }
}

fn symmetric((low, high): (i64, i64)) -> (i64, i64) {
    let most = low.abs().max(high.abs());
    (-most, most)
}

fn hull(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    // What may be constant at times counts as such.
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (one, other) => one.or(other),
    }
}
