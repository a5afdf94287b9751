//! Random stencils that the checker takes, of the whole language.
//!
//! Sizes are spread evenly over orders of magnitude, so most programs are small and some are not. A program is a function
//! of its seed alone.

mod choice;
mod program;
pub use program::NAMED;
mod real;
mod scope;
mod truth;
mod whole;

use crate::tree::{Block, Expr, Program, Term};
pub use real::FUNCTIONS;
use scope::{Function, Guard, Kind, Origin, Var, Varies};

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut generator = Generator {
        // Neighbouring seeds must not begin alike.
        rng: fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995),
        vars: Vec::new(),
        functions: Vec::new(),
        seen: Varies::default(),
        by_level: false,
        is_moving: fastrand::Rng::with_seed(seed ^ 0x6c65_7665_6c73).u32(0..100) < 25,
    };
    // By numbers of its own, so that most programs are what they would be without it.
    generator.by_level = generator.rng.clone().u32(0..100) < 25;
    generator.program()
}

/// What is written, and what may be used in it.
struct Generator {
    rng: fastrand::Rng,
    /// Names that are visible.
    vars: Vec<Var>,
    /// Functions that are visible.
    functions: Vec<Function>,
    /// Along which axes what was written since this was last cleared varies.
    seen: Varies,
    /// Whether sums are added level by level: then most of what is read lies on other levels, up to four away.
    by_level: bool,
    /// Whether fields are read on levels that others say.
    is_moving: bool,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
struct Context {
    /// The axes along which it may vary.
    allow: Varies,
    /// Whether it must be known when compiling.
    constant: bool,
    /// Levels that exist for sure.
    guard: Guard,
    /// Folds around it.
    folds: usize,
}

impl Context {
    fn guarded(self, guard: Guard) -> Context {
        Context { guard: Guard { down: self.guard.down || guard.down, up: self.guard.up || guard.up }, ..self }
    }
}

impl Generator {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(0..from.len())]
    }

    /// The parts of a budget for two operands.
    fn split(&mut self, size: usize) -> (usize, usize) {
        let rest = size.saturating_sub(1).max(2);
        let left = self.rng.usize(1..rest);
        (left, rest - left)
    }

    /// What `write` writes, and along which axes it varies.
    fn measured<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> (T, Varies) {
        let before = std::mem::take(&mut self.seen);
        let written = write(self);
        let own = self.seen;
        self.seen = before.or(own);
        (written, own)
    }

    /// A visible variable that fits, recent ones more often; counted as used.
    fn var(&mut self, context: Context, fits: impl Fn(&Var) -> bool) -> Option<Var> {
        let fitting: Vec<usize> = (0..self.vars.len())
            .filter(|&index| {
                let var = &self.vars[index];
                fits(var)
                    && var.origin != Origin::Output
                    && context.allow.holds(var.varies)
                    && (!context.constant || var.is_constant())
            })
            .collect();
        let recent = fitting.len().saturating_sub(4);
        let from = if self.chance(50) { &fitting[recent..] } else { &fitting[..] };
        let index = *from.get(self.rng.usize(0..from.len().max(1)))?;
        let var = self.vars[index].clone();
        self.seen = self.seen.or(var.varies);
        Some(var)
    }

    /// A block around what `write` writes, sometimes with names of its own.
    fn block(&mut self, context: Context, size: usize, write: impl FnOnce(&mut Self, usize) -> Expr) -> Block {
        let mark = self.vars.len();
        let mut lets = Vec::new();
        let mut rest = size;
        if size > 5 && self.chance(25) {
            let own = self.rng.usize(1..size / 2);
            rest -= own;
            let ((value, kind, range), varies) = self.measured(|own_self| own_self.any(own, context));
            let name = self.fresh(scope::LETS);
            lets.push((name.clone(), value));
            self.vars.push(Var { name, kind, origin: Origin::Value, varies, range });
        }
        let value = write(self, rest);
        self.vars.truncate(mark);
        Block { lets, value }
    }

    /// A value of any kind, for a name; its range if it is whole and may be constant.
    fn any(&mut self, size: usize, context: Context) -> (Expr, Kind, Option<(i64, i64)>) {
        match self.rng.u32(0..100) {
            0..70 => (self.real(size, context), Kind::Real, None),
            70..82 => {
                let whole = self.int(size, context);
                (whole.0, Kind::Int, whole.1)
            }
            82..92 => (self.truth(size, context), Kind::Bool, None),
            _ => {
                let parts = self.rng.usize(1..4);
                (self.vector(parts, size, context), Kind::Vector(parts), None)
            }
        }
    }

    /// `expr` at an offset along some of its axes; `lacks` for a field that is named directly.
    fn shifted(&mut self, expr: Expr, axes: Varies, interfaces: bool, context: Context) -> Expr {
        let mut parts: Vec<(char, Vec<Term>)> = Vec::new();
        if context.constant {
            return expr;
        }
        if axes.horizontal {
            for axis in ['i', 'j'] {
                if self.chance(55) {
                    let by = self.pick(&[-1, 1, -1, 1, -1, 1, -2, 2, 3, 0]);
                    let terms = self.terms(by, context);
                    parts.push((axis, terms));
                }
            }
        }
        if axes.levels {
            let Guard { down, up } = context.guard;
            if interfaces && self.chance(50) {
                parts.push(('k', self.terms(1, context)));
            } else if down && self.chance(60) {
                parts.push(('k', self.terms(-1, context)));
            } else if up && self.chance(60) {
                parts.push(('k', self.terms(1, context)));
            } else if self.by_level && self.chance(70) {
                let by = self.pick(&[-1, 1, -1, 1, -2, 2, -3, 3, 4]);
                parts.push(('k', self.terms(by, context)));
            } else if self.chance(12) {
                let by = self.pick(&[-1, 1, -1, 1, -2, 2]);
                parts.push(('k', self.terms(by, context)));
            }
        }
        if parts.is_empty() {
            return expr;
        }
        if self.chance(20) {
            parts.reverse();
        }
        Expr::Offset(Box::new(expr), parts)
    }

    /// What is added to `k` where a field says which level is read, if there is such a field: its number, and perhaps a constant.
    fn level_of_data(&mut self, context: Context) -> Option<Vec<Term>> {
        if !self.is_moving || context.constant || self.chance(50) {
            return None;
        }
        let says = |var: &Var| var.kind == Kind::Int && matches!(var.origin, Origin::Field { is_only_read: true, .. });
        let var = self.var(context, says)?;
        let (interfaces, varies) = (matches!(var.origin, Origin::Field { interfaces: true, .. }), var.varies);
        let number = Expr::Name(var.name);
        let number = if self.chance(40) { self.shifted(number, varies, interfaces, context) } else { number };
        let mut terms = vec![Term { minus: false, value: number }];
        if self.chance(30) {
            let by = self.pick(&[-1, 1, 2]);
            terms.extend(self.terms(by, context));
            if self.chance(30) {
                terms.reverse();
            }
        }
        Some(terms)
    }

    /// A field on a level that another says, or by its own number (`l`), perhaps of another column.
    fn shifted_to(&mut self, field: Expr, axes: Varies, (axis, terms): (char, Vec<Term>), context: Context) -> Expr {
        let beside = Varies { levels: false, ..axes };
        match self.shifted(field, beside, false, context) {
            Expr::Offset(field, mut parts) => {
                parts.push((axis, terms));
                Expr::Offset(field, parts)
            }
            field => Expr::Offset(Box::new(field), vec![(axis, terms)]),
        }
    }

    /// A real field on one level of all, also where nothing may vary along k.
    fn on_one_level(&mut self, context: Context) -> Option<Expr> {
        if !self.is_moving || context.constant {
            return None;
        }
        let (seen, wide) = (self.seen, Varies { levels: true, ..context.allow });
        let is_one = |var: &Var| var.kind == Kind::Real && var.varies.levels;
        let var = self
            .var(Context { allow: wide, ..context }, |var| is_one(var) && matches!(var.origin, Origin::Field { .. }))?;
        self.seen.levels = seen.levels;
        let has_more = matches!(var.origin, Origin::Field { interfaces: true, .. });
        let terms = match self.level_of_data(context) {
            Some(mut terms) => {
                // What is taken away does not come first.
                terms.sort_by_key(|term| term.minus);
                terms
            }
            None => {
                let last = if has_more { &["nk"] } else { &["nk-1"] };
                let number = self.pick(&["0", "0", "1", "2", "nk-1", "nk-1", "nk-2", "min(nk-1,3)", last[0]]);
                vec![Term { minus: false, value: Expr::literal(number) }]
            }
        };
        Some(self.shifted_to(Expr::Name(var.name), var.varies, ('l', terms), context))
    }

    /// What is added to an axis: `by`, or a name or two that come near it.
    fn terms(&mut self, by: i64, context: Context) -> Vec<Term> {
        if self.chance(25)
            && let Some(var) = self
                .var(context, |var| var.is_constant() && var.range.is_some_and(|(low, high)| low >= -3 && high <= 3))
        {
            let mut terms = vec![Term { minus: self.chance(40), value: Expr::Name(var.name) }];
            if self.chance(25) {
                terms.push(Term { minus: self.chance(50), value: Expr::literal(1) });
            }
            return terms;
        }
        match (by, self.rng.u32(0..10)) {
            (0, _) => Vec::new(),
            (_, 0) => vec![
                Term { minus: by < 0, value: Expr::literal(by.unsigned_abs() + 1) },
                Term { minus: by > 0, value: Expr::literal(1) },
            ],
            _ => vec![Term { minus: by < 0, value: Expr::literal(by.unsigned_abs()) }],
        }
    }
}
