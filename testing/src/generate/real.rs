//! Real numbers, and vectors of them.

use super::scope::{Kind, Origin, Takes, Var, Varies};
use super::{Context, Generator};
use crate::tree::{Block, Expr};

/// What an argument of a function should be, so that its value mostly is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Anything.
    Any,
    /// Not negative.
    Root,
    /// Positive.
    Positive,
    /// Between -1 and 1, mostly.
    Small,
}

/// The functions of real numbers: name, and what each argument should be. `min` and `max` take more, too.
pub const FUNCTIONS: &[(&str, &[Domain])] = &[
    ("abs", &[Domain::Any]),
    ("sqrt", &[Domain::Root]),
    ("floor", &[Domain::Any]),
    ("ceil", &[Domain::Any]),
    ("sign", &[Domain::Any]),
    ("min", &[Domain::Any, Domain::Any]),
    ("max", &[Domain::Any, Domain::Any]),
    ("copysign", &[Domain::Any, Domain::Any]),
    ("fma", &[Domain::Any, Domain::Any, Domain::Any]),
    ("exp", &[Domain::Small]),
    ("log", &[Domain::Positive]),
    ("pow", &[Domain::Positive, Domain::Small]),
    ("sin", &[Domain::Any]),
    ("cos", &[Domain::Any]),
    ("tan", &[Domain::Any]),
    ("atan", &[Domain::Any]),
    ("atan2", &[Domain::Any, Domain::Any]),
    ("tanh", &[Domain::Any]),
    ("cbrt", &[Domain::Any]),
];

const LITERALS: &[&str] = &[
    "0.5",
    "0.25",
    "1.5",
    "2.0",
    "0.1",
    "3.",
    "1e-3",
    ".75",
    "1.0",
    "0.3",
    "0.0",
    "1.25e1",
    "7.",
    "0.6666666666666666",
];

impl Generator {
    /// A real number.
    pub(super) fn real(&mut self, size: usize, context: Context) -> Expr {
        if size <= 1 {
            return self.real_leaf(context);
        }
        match self.rng.u32(0..100) {
            0..24 => self.arithmetic(size, context),
            24..38 => self.product_and_sum(size, context),
            38..50 => self.moved(size, context),
            50..60 => self.function(size, context),
            60..69 => self.choice(size, context, |own, size, context| own.real(size, context)),
            69..76 => self.real_fold(size, context),
            76..84 => self.called(Kind::Real, size, context).unwrap_or_else(|| self.arithmetic(size, context)),
            84..88 => {
                let base = self.real(size - 1, context);
                let by = self.pick(&[2, 2, 2, 3, 3, 1, 0, 4, -1, -2]);
                let exponent = self.exponent(by, context);
                Expr::infix("**", base, exponent)
            }
            88..91 => Expr::prefix('-', self.real(size - 1, context)),
            91..93 => {
                let (left, right) = self.split(size);
                let (left, right) = (self.mixed(left, context), self.real(right, context));
                Expr::infix("%", left, right)
            }
            93..96 => self.of_vectors(size, context),
            96 if !self.by_level => {
                let to = self.pick(&["f32", "f32", "real"]);
                Expr::Call(to.to_owned(), vec![self.mixed(size - 1, context)])
            }
            96..98 => {
                let block = self.block(context, size + 3, |own, size| own.real(size, context));
                Expr::Block(Box::new(block))
            }
            _ => match self.real(size - 1, context) {
                // A field in parentheses would no longer be named directly.
                name @ Expr::Name(_) => name,
                inner => Expr::Group(Box::new(inner)),
            },
        }
    }

    /// A real or whole number, for where it meets a real one.
    pub(super) fn mixed(&mut self, size: usize, context: Context) -> Expr {
        if self.chance(14) { self.int(size, context).0 } else { self.real(size, context) }
    }

    fn real_leaf(&mut self, context: Context) -> Expr {
        let roll = self.rng.u32(0..100);
        if self.is_moving
            && self.chance(20)
            && let Some(level) = self.on_one_level(context)
        {
            return level;
        }
        if roll < 12
            && let Some(part) = self.part(context)
        {
            return part;
        }
        if roll < 82
            && let Some(var) = self.var(context, |var| var.kind == Kind::Real)
        {
            return if self.chance(45) { self.shifted_var(var, context) } else { Expr::Name(var.name) };
        }
        if self.chance(6) { Expr::name("pi") } else { Expr::literal(self.pick(LITERALS)) }
    }

    /// A variable, at an offset if it can have one.
    pub(super) fn shifted_var(&mut self, var: Var, context: Context) -> Expr {
        let name = Expr::Name(var.name);
        match var.origin {
            Origin::Field { interfaces, .. } => {
                let offset = if var.varies.levels { self.level_of_data(context) } else { None };
                match offset {
                    Some(terms) => self.shifted_to(name, var.varies, ('k', terms), context),
                    None => self.shifted(name, var.varies, interfaces, context),
                }
            }
            Origin::Value => self.shifted(name, Varies::ALL, false, context),
            Origin::Output | Origin::Param | Origin::Constant | Origin::Counter => name,
        }
    }

    fn arithmetic(&mut self, size: usize, context: Context) -> Expr {
        let (left, right) = self.split(size);
        match self.rng.u32(0..10) {
            0..3 => self.met("+", left, right, context),
            3..6 => self.met("-", left, right, context),
            6..8 => self.met("*", left, right, context),
            _ => {
                // Division is real of any two numbers.
                let above = self.mixed(left, context);
                let below = match self.rng.u32(0..10) {
                    0..4 => Expr::literal(self.pick(&["2", "4.0", "3", "0.7", "9"])),
                    4..7 => {
                        let magnitude = Expr::Call("abs".into(), vec![self.real(right, context)]);
                        Expr::infix("+", magnitude, Expr::literal("0.5"))
                    }
                    _ => self.mixed(right, context),
                };
                Expr::infix("/", above, below)
            }
        }
    }

    /// Two numbers, at least one of them real.
    fn met(&mut self, op: &'static str, left: usize, right: usize, context: Context) -> Expr {
        if self.chance(50) {
            let left = self.mixed(left, context);
            Expr::infix(op, left, self.real(right, context))
        } else {
            let left = self.real(left, context);
            Expr::infix(op, left, self.mixed(right, context))
        }
    }

    /// `a*b + c` in all its shapes, which are fused, and some that are not.
    fn product_and_sum(&mut self, size: usize, context: Context) -> Expr {
        let (left, right) = self.split(size);
        let product = |own: &mut Self, size: usize| {
            let (a, b) = own.split(size);
            if own.chance(10) {
                let base = own.real(size, context);
                let by = own.pick(&[2, 3]);
                return Expr::infix("**", base, own.exponent(by, context));
            }
            own.met("*", a, b, context)
        };
        let op = self.pick(&["+", "-"]);
        let first = product(self, left);
        match self.rng.u32(0..10) {
            0..3 => Expr::infix(op, first, self.mixed(right, context)),
            3..6 => Expr::infix(op, self.mixed(right, context), first),
            6..8 => Expr::infix(op, first, product(self, right)),
            8 => Expr::infix(op, Expr::Group(Box::new(first)), self.mixed(right, context)),
            _ => Expr::infix(op, Expr::prefix('-', first), self.mixed(right, context)),
        }
    }

    /// Something at an offset: a name, a call, or any expression.
    fn moved(&mut self, size: usize, context: Context) -> Expr {
        if self.chance(60)
            && let Some(var) = self.var(context, |var| var.kind == Kind::Real)
        {
            return self.shifted_var(var, context);
        }
        match self.real(size - 1, context) {
            // Fields have offsets only along their own axes.
            inner @ Expr::Name(_) => inner,
            inner if self.is_number(&inner) => inner,
            inner => self.shifted(inner, Varies::ALL, false, context),
        }
    }

    /// Whether an expression is written of numbers alone, and of `k`: such has no offset.
    fn is_number(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(_) => true,
            Expr::Name(name) => match self.vars.iter().rfind(|var| var.name == *name) {
                Some(var) => matches!(var.origin, Origin::Param | Origin::Constant | Origin::Counter),
                None => true,
            },
            Expr::Prefix(_, inner) | Expr::Group(inner) | Expr::Part(inner, _) | Expr::Component(inner, _) => {
                self.is_number(inner)
            }
            Expr::Infix(_, left, right) => self.is_number(left) && self.is_number(right),
            Expr::Call(_, arguments) => arguments.iter().all(|argument| self.is_number(argument)),
            Expr::Offset(..) | Expr::Choose(..) | Expr::Fold(..) | Expr::Vector(_) | Expr::Block(_) => false,
        }
    }

    fn function(&mut self, size: usize, context: Context) -> Expr {
        let (name, domains) = self.pick(FUNCTIONS);
        let each = (size - 1).div_ceil(domains.len());
        let mut arguments: Vec<Expr> = Vec::new();
        for (index, domain) in domains.iter().enumerate() {
            // One argument is real for sure, so that the result is.
            let argument = if index == 0 { self.real(each, context) } else { self.mixed(each, context) };
            arguments.push(self.inside(*domain, argument));
        }
        if (name == "min" || name == "max") && self.chance(20) {
            arguments.push(self.mixed(1, context));
        }
        Expr::Call(name.to_owned(), arguments)
    }

    /// `argument`, mostly made fit for a function.
    fn inside(&mut self, domain: Domain, argument: Expr) -> Expr {
        if domain == Domain::Any || self.chance(15) {
            return argument;
        }
        let magnitude = |argument| Expr::Call("abs".into(), vec![argument]);
        match domain {
            Domain::Any => argument,
            Domain::Root => magnitude(argument),
            Domain::Positive => Expr::infix("+", magnitude(argument), Expr::literal("0.25")),
            Domain::Small => {
                let most = Expr::Call("min".into(), vec![argument, Expr::literal("1.0")]);
                Expr::Call("max".into(), vec![most, Expr::prefix('-', Expr::literal("1.0"))])
            }
        }
    }

    /// A call of a function of the program.
    pub(super) fn called(&mut self, gives: Kind, size: usize, context: Context) -> Option<Expr> {
        let fitting: Vec<usize> = (0..self.functions.len())
            .filter(|&index| {
                let function = &self.functions[index];
                function.gives == gives
                    && context.allow.holds(function.varies)
                    && !(function.heavy && context.folds > 0)
            })
            .collect();
        if context.constant || fitting.is_empty() {
            return None;
        }
        let chosen = self.pick(&fitting);
        let function = self.functions[chosen].clone();
        self.seen = self.seen.or(function.varies);
        let each = (size / function.takes.len().max(1)).max(1);
        let mut arguments = Vec::new();
        for takes in function.takes {
            arguments.push(match takes {
                Takes::Value(Kind::Real) => self.real(each, context),
                Takes::Value(Kind::Int) => self.open_int(each, context)?,
                Takes::Value(Kind::Bool) => self.truth(each, context),
                Takes::Value(Kind::Vector(parts)) => self.vector(parts, each, context),
                Takes::Whole(low, high) => self.whole(low, high, context),
            });
        }
        Some(Expr::Call(function.name, arguments))
    }

    fn real_fold(&mut self, size: usize, context: Context) -> Expr {
        if self.chance(35)
            && let Some(fold) = self.weighted(context)
        {
            return fold;
        }
        let op = self.pick(&["sum", "sum", "sum", "min", "max"]);
        self.fold(op, context, |own, context| own.block(context, size / 2, |own, size| own.real(size.max(1), context)))
    }

    /// `sum(n in 0..=2) { w[n] * a[i+n-1] }`
    fn weighted(&mut self, context: Context) -> Option<Expr> {
        let is_array = |var: &Var| matches!(var.kind, Kind::Vector(2..)) && var.origin == Origin::Constant;
        let weights = self.var(context, is_array)?;
        let Kind::Vector(parts) = weights.kind else { return None };
        let field = self.var(context, |var| {
            var.kind == Kind::Real
                && var.varies.horizontal
                && matches!(var.origin, Origin::Field { .. } | Origin::Value)
        })?;
        let counter = self.fresh(super::scope::COUNTERS);
        let n = || Expr::Name(counter.clone());
        let axis = self.pick(&['i', 'j']);
        let minus = self.chance(20);
        let mut terms = vec![crate::tree::Term { minus, value: n() }];
        if self.chance(60) {
            terms.push(crate::tree::Term { minus: true, value: Expr::literal(1) });
        }
        let read = Expr::Offset(Box::new(Expr::Name(field.name)), vec![(axis, terms)]);
        let weight = Expr::Part(Box::new(Expr::Name(weights.name)), Box::new(n()));
        let term = if self.chance(70) { Expr::infix("*", weight, read) } else { Expr::infix("*", read, weight) };
        let high = Expr::literal(parts - 1);
        Some(Expr::Fold("sum", vec![(counter, Expr::literal(0), high)], Box::new(Block::of(term))))
    }

    /// A part of an array or a vector.
    fn part(&mut self, context: Context) -> Option<Expr> {
        let var = self.var(context, |var| matches!(var.kind, Kind::Vector(_)))?;
        let Kind::Vector(parts) = var.kind else { return None };
        let base = if self.chance(30) { self.shifted_var(var, context) } else { Expr::Name(var.name) };
        Some(if self.chance(50) {
            Expr::Component(Box::new(base), self.rng.usize(0..parts))
        } else {
            let index = self.whole(0, parts as i64 - 1, context);
            Expr::Part(Box::new(base), Box::new(index))
        })
    }

    /// A number made of vectors.
    fn of_vectors(&mut self, size: usize, context: Context) -> Expr {
        let parts = self.rng.usize(1..4);
        let (left, right) = self.split(size);
        if self.chance(60) {
            let left = self.vector(parts, left, context);
            return Expr::Call("dot".into(), vec![left, self.vector(parts, right, context)]);
        }
        let vector = self.vector(parts, size - 1, context);
        Expr::Component(Box::new(vector), self.rng.usize(0..parts))
    }

    /// A vector of so many real parts.
    pub(super) fn vector(&mut self, parts: usize, size: usize, context: Context) -> Expr {
        let roll = self.rng.u32(0..100);
        if roll < 30
            && let Some(var) = self.var(context, |var| var.kind == Kind::Vector(parts))
        {
            return if self.chance(40) { self.shifted_var(var, context) } else { Expr::Name(var.name) };
        }
        if size > 3 && roll < 45 {
            let (left, right) = self.split(size);
            let op = self.pick(&["+", "-", "*", "/"]);
            let left = if self.chance(30) { self.mixed(left, context) } else { self.vector(parts, left, context) };
            return Expr::infix(op, left, self.vector(parts, right, context));
        }
        if size > 3 && roll < 52 {
            let inner = self.vector(parts, size - 1, context);
            return match self.rng.u32(0..4) {
                0 => Expr::prefix('-', inner),
                1 => Expr::Call("abs".into(), vec![inner]),
                2 => Expr::Call("max".into(), vec![inner, self.mixed(1, context)]),
                _ => Expr::infix("**", inner, Expr::literal(2)),
            };
        }
        if size > 3 && roll < 58 {
            return self.choice(size, context, |own, size, context| own.vector(parts, size, context));
        }
        if size > 3 && roll < 62 {
            return self.fold("sum", context, |own, context| {
                own.block(context, size / 2, |own, size| own.vector(parts, size.max(1), context))
            });
        }
        let each = (size / parts).max(1);
        Expr::Vector((0..parts).map(|_| self.real(each, context)).collect())
    }
}
