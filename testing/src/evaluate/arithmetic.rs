//! Operations on whole arrays.

use super::order::{Written, joined, with};
use super::real::{self, Real};
use super::value::{Cells, Domain, Mask, Rounding, Value, both};
use std::rc::Rc;
use stencilc_compiler::ir::{Binary, Function, Relation};

/// Computes on the arrays of one domain.
#[derive(Clone, Copy)]
pub struct Arithmetic<'a> {
    pub domain: Domain<'a>,
    /// Whether products and sums are fused.
    pub contract: bool,
    /// Whether sums are added level by level.
    pub by_level: bool,
}

fn map<T: Copy, U>(a: &[T], op: impl Fn(T) -> U) -> Rc<[U]> {
    a.iter().map(|&a| op(a)).collect()
}

fn zip<T: Copy, U: Copy, V>(a: &[T], b: &[U], op: impl Fn(T, U) -> V) -> Rc<[V]> {
    a.iter().zip(b).map(|(&a, &b)| op(a, b)).collect()
}

fn reals<R: Real>(value: &Value<R>) -> Rc<[R]> {
    match &value.cells {
        Cells::Real(cells) => cells.clone(),
        Cells::Int(cells) => map(cells, R::of_whole),
        Cells::Bool(_) => unreachable!("the checker lets no truth value be a number"),
    }
}

/// The whole numbers of a value.
pub fn wholes<R: Real>(value: &Value<R>) -> Rc<[i32]> {
    match &value.cells {
        Cells::Int(cells) => cells.clone(),
        Cells::Real(_) | Cells::Bool(_) => unreachable!("the checker lets only a whole number be one"),
    }
}

/// The truth values of a value.
pub fn truths<R: Real>(value: &Value<R>) -> Rc<[bool]> {
    match &value.cells {
        Cells::Bool(cells) => cells.clone(),
        Cells::Real(_) | Cells::Int(_) => unreachable!("the checker lets no number be a truth value"),
    }
}

/// Whether a value is whole.
pub fn is_whole<R>(value: &Value<R>) -> bool {
    matches!(value.cells, Cells::Int(_))
}

/// As a real value, which it may be already.
pub fn widened<R: Real>(value: &Value<R>) -> Value<R> {
    match &value.cells {
        Cells::Real(_) => value.clone(),
        Cells::Int(_) | Cells::Bool(_) => Value::made_of(Cells::Real(reals(value)), &[value]),
    }
}

/// A value rounded to single precision.
pub fn single<R: Real>(value: &Value<R>) -> Value<R> {
    let wide = widened(value);
    let cells = Cells::Real(map(&reals(&wide), |x| R::of(f64::from(x.double() as f32))));
    Value { cells, rounding: Rounding::Single, factors: None, ..wide }
}

/// The operands of an operation, and whether it is one of numbers of single precision: what is written is rounded to that, then.
fn met<R: Real>(of: &[&Value<R>]) -> (Vec<Value<R>>, bool) {
    let has = |rounding| of.iter().any(|value| matches!(value.cells, Cells::Real(_)) && value.rounding == rounding);
    let is_single = has(Rounding::Single) && !has(Rounding::Real);
    let own = |value: &&Value<R>| match &value.cells {
        Cells::Real(_) | Cells::Int(_) if is_single && value.rounding != Rounding::Single => single(value),
        _ => (*value).clone(),
    };
    (of.iter().map(own).collect(), is_single)
}

/// What an operation gives, rounded if it is one of numbers of single precision.
fn rounded<R: Real>(value: Value<R>, is_single: bool) -> Value<R> {
    if is_single && matches!(value.cells, Cells::Real(_)) { single(&value) } else { value }
}

impl Arithmetic<'_> {
    /// `a + b` and its like.
    pub fn binary<R: Real>(self, op: Binary, a: &Value<R>, b: &Value<R>) -> Value<R> {
        let (of, is_single) = met(&[a, b]);
        rounded(self.binary_of(op, &of[0], &of[1]), is_single)
    }

    fn binary_of<R: Real>(self, op: Binary, a: &Value<R>, b: &Value<R>) -> Value<R> {
        if is_whole(a) && is_whole(b) && op != Binary::Div {
            let (x, y) = (wholes(a), wholes(b));
            let cells = match op {
                Binary::Add => zip(&x, &y, i32::wrapping_add),
                Binary::Sub => zip(&x, &y, i32::wrapping_sub),
                Binary::Mul => zip(&x, &y, i32::wrapping_mul),
                Binary::Div | Binary::Rem => zip(&x, &y, |x, y| {
                    // In 64 bits nothing overflows.
                    let (x, y) = (i64::from(x), i64::from(y));
                    let rest = if y == 0 { 0 } else { x.rem_euclid(y.abs()) };
                    (if y < 0 && rest > 0 { rest + y } else { rest }) as i32
                }),
            };
            return Value::made_of(Cells::Int(cells), &[a, b]);
        }
        let (a, b) = (widened(a), widened(b));
        let goes_on = match op {
            Binary::Add | Binary::Sub => true,
            Binary::Mul => a.scales(&b) || b.scales(&a),
            Binary::Div | Binary::Rem => false,
        };
        let (a, b) = if goes_on || !self.by_level { (a, b) } else { (self.ended(a), self.ended(b)) };
        let (x, y) = (reals(&a), reals(&b));
        let made = |cells| Value::made_of(Cells::Real(cells), &[&a, &b]);
        let factors = |of: &Value<R>| of.factors.as_ref().map(|both| (reals(&both.0), reals(&both.1)));
        let value = match op {
            Binary::Mul => {
                let factors = self.contract.then(|| Rc::new((a.clone(), b.clone())));
                Value { factors, ..made(zip(&x, &y, |x, y| x * y)) }
            }
            Binary::Div => made(zip(&x, &y, |x, y| x / y)),
            Binary::Rem => made(zip(&x, &y, real::remainder)),
            Binary::Add | Binary::Sub => {
                let minus = op == Binary::Sub;
                let signed = |x: R| if minus { -x } else { x };
                // Of two products the right one is fused.
                made(match (factors(&a), factors(&b)) {
                    (_, Some((p, q))) => (0..x.len()).map(|n| signed(p[n]).fused(q[n], x[n])).collect(),
                    (Some((p, q)), None) => (0..x.len()).map(|n| p[n].fused(q[n], signed(y[n]))).collect(),
                    (None, None) => zip(&x, &y, |x, y| if minus { x - y } else { x + y }),
                })
            }
        };
        let of = || [a.clone(), b.clone()];
        match op {
            Binary::Add | Binary::Sub if self.by_level => {
                with(value, Written::Sum { minus: op == Binary::Sub, of: of() })
            }
            Binary::Mul if self.by_level => with(value, Written::Product(of())),
            _ => value,
        }
    }

    /// A value of which no sum is made any more, but which is still written as it was.
    fn ended<R: Real>(self, value: Value<R>) -> Value<R> {
        if value.is_sum() { self.settled(value) } else { value }
    }

    /// `-a`
    pub fn negated<R: Real>(self, a: &Value<R>) -> Value<R> {
        let cells = match &a.cells {
            Cells::Int(cells) => Cells::Int(map(cells, i32::wrapping_neg)),
            Cells::Real(_) | Cells::Bool(_) => Cells::Real(map(&reals(a), |x| -x)),
        };
        let value = rounded(Value::made_of(cells, &[a]), met(&[a]).1);
        if self.by_level { with(value, Written::Negated(a.clone())) } else { value }
    }

    /// `a < b` and its like.
    pub fn compared<R: Real>(self, relation: Relation, a: &Value<R>, b: &Value<R>) -> Value<R> {
        let (of, _) = met(&[a, b]);
        let (a, b) = (&self.settled(of[0].clone()), &self.settled(of[1].clone()));
        fn holds<T: PartialOrd>(relation: Relation, a: T, b: T) -> bool {
            match relation {
                Relation::Lt => a < b,
                Relation::Le => a <= b,
                Relation::Gt => a > b,
                Relation::Ge => a >= b,
                Relation::Eq => a == b,
                Relation::Ne => a != b,
            }
        }
        let cells = match (&a.cells, &b.cells) {
            (Cells::Bool(a), Cells::Bool(b)) => zip(a, b, |a, b| holds(relation, a, b)),
            (Cells::Int(a), Cells::Int(b)) => zip(a, b, |a, b| holds(relation, a, b)),
            _ => zip(&reals(a), &reals(b), |a, b| holds(relation, a, b)),
        };
        Value::made_of(Cells::Bool(cells), &[a, b])
    }

    /// `!a`
    pub fn not<R: Real>(self, a: &Value<R>) -> Value<R> {
        let decided = self.each_level(|number| a.decided(self.domain, number).map(|truth| !truth));
        Value { decided, ..Value::made_of(Cells::Bool(map(&truths(a), |a| !a)), &[a]) }
    }

    fn each_level<T>(self, of: impl Fn(usize) -> T) -> Option<Rc<[T]>> {
        Some((0..self.domain.levels()).map(of).collect())
    }

    /// `a && b`, or `a || b`: what decides the one is false, what decides the other is true.
    pub fn logic<R: Real>(self, decider: bool, a: &Value<R>, b: &Value<R>) -> Value<R> {
        let cells = zip(&truths(a), &truths(b), |a, b| if a == decider { a } else { b });
        let decided = |number| {
            let (a, b) = (a.decided(self.domain, number), b.decided(self.domain, number));
            if a == Some(decider) || b == Some(decider) {
                Some(decider)
            } else if a.is_some() && b.is_some() {
                Some(!decider)
            } else {
                None
            }
        };
        // The right side counts where the left lets it be reached.
        let inside =
            |number| a.is_inside(number) && (a.decided(self.domain, number) == Some(decider) || b.is_inside(number));
        let value = Value::made_of(Cells::Bool(cells), &[a, b]);
        let levels = value.levels.is_some().then(|| self.each_level(inside)).flatten();
        Value { decided: self.each_level(decided), levels, ..value }
    }

    /// `if condition { yes } else { no }`
    pub fn chosen<R: Real>(self, condition: &Value<R>, yes: &Value<R>, no: &Value<R>) -> Value<R> {
        let (of, is_single) = met(&[yes, no]);
        let has_real = of.iter().any(|own| matches!(own.cells, Cells::Real(_)) && own.rounding == Rounding::Real);
        let value = rounded(self.chosen_of(condition, &of[0], &of[1]), is_single);
        // The branch that is not chosen has its say, too.
        if has_real { Value { rounding: Rounding::Real, ..value } } else { value }
    }

    fn chosen_of<R: Real>(self, condition: &Value<R>, yes: &Value<R>, no: &Value<R>) -> Value<R> {
        let (yes, no) = (&self.settled(yes.clone()), &self.settled(no.clone()));
        fn select<T: Copy>(truths: &[bool], yes: &[T], no: &[T]) -> Rc<[T]> {
            truths.iter().enumerate().map(|(n, &truth)| if truth { yes[n] } else { no[n] }).collect()
        }
        let truth = truths(condition);
        if condition.constant {
            // The other branch is as if it were not written, but for its kind.
            let (branch, other) = if truth[0] { (yes, no) } else { (no, yes) };
            let branch = if is_whole(branch) && !is_whole(other) { widened(branch) } else { branch.clone() };
            let range = joined(condition.range, joined(yes.range, no.range));
            return Value { factors: None, range, ..branch };
        }
        let cells = match (&yes.cells, &no.cells) {
            (Cells::Bool(yes), Cells::Bool(no)) => Cells::Bool(select(&truth, yes, no)),
            (Cells::Int(yes), Cells::Int(no)) => Cells::Int(select(&truth, yes, no)),
            _ => Cells::Real(select(&truth, &reals(yes), &reals(no))),
        };
        // Only the branch that a known condition chooses counts; of an open one both do.
        let inside = |number| {
            let known = condition.decided(self.domain, number);
            condition.is_inside(number)
                && (known == Some(false) || yes.is_inside(number))
                && (known == Some(true) || no.is_inside(number))
        };
        let value = Value::made_of(cells, &[condition, yes, no]);
        let levels = value.levels.is_some().then(|| self.each_level(inside)).flatten();
        Value { levels, ..value }
    }

    /// A function of the language, of one value for each of its arguments.
    pub fn function<R: Real>(self, name: &str, of: &[&Value<R>]) -> Option<Value<R>> {
        let of: Vec<Value<R>> = of.iter().map(|value| self.settled((*value).clone())).collect();
        if ["min", "max"].contains(&name) {
            // Two by two.
            return self.function_of(name, &of.iter().collect::<Vec<_>>());
        }
        let (of, is_single) = met(&of.iter().collect::<Vec<_>>());
        Some(rounded(self.function_of(name, &of.iter().collect::<Vec<_>>())?, is_single))
    }

    fn function_of<R: Real>(self, name: &str, of: &[&Value<R>]) -> Option<Value<R>> {
        let whole = of.iter().all(|value| is_whole(value));
        let cells = match (name, of) {
            ("min" | "max", [first, rest @ ..]) => {
                let mut value = (*first).clone();
                for next in rest {
                    value = self.extreme(name == "max", &value, next);
                }
                return Some(value);
            }
            ("abs", [a]) if whole => Cells::Int(map(&wholes(a), i32::wrapping_abs)),
            ("sign", [a]) if whole => Cells::Int(map(&wholes(a), i32::signum)),
            ("abs", [a]) => Cells::Real(map(&reals(a), R::magnitude)),
            ("sign", [a]) => Cells::Real(map(&reals(a), real::sign)),
            ("sqrt", [a]) => Cells::Real(map(&reals(a), R::root)),
            ("floor", [a]) => Cells::Real(map(&reals(a), R::down)),
            ("ceil", [a]) => Cells::Real(map(&reals(a), R::up)),
            ("copysign", [a, b]) => Cells::Real(zip(&reals(a), &reals(b), R::signed_like)),
            ("fma", [a, b, c]) => {
                let (a, b, c) = (reals(a), reals(b), reals(c));
                Cells::Real((0..a.len()).map(|n| a[n].fused(b[n], c[n])).collect())
            }
            (name, [a]) => {
                let function = own_function(name)?;
                Cells::Real(map(&reals(a), |a| R::own(function, a, a)))
            }
            (name, [a, b]) => {
                let function = own_function(name)?;
                Cells::Real(zip(&reals(a), &reals(b), |a, b| R::own(function, a, b)))
            }
            _ => return None,
        };
        Some(Value::made_of(cells, of))
    }

    /// The smaller or the larger of two numbers.
    pub fn extreme<R: Real>(self, larger: bool, a: &Value<R>, b: &Value<R>) -> Value<R> {
        let (of, is_single) = met(&[a, b]);
        rounded(self.extreme_of(larger, &of[0], &of[1]), is_single)
    }

    fn extreme_of<R: Real>(self, larger: bool, a: &Value<R>, b: &Value<R>) -> Value<R> {
        let (a, b) = (&self.settled(a.clone()), &self.settled(b.clone()));
        let cells = if is_whole(a) && is_whole(b) {
            let pick = if larger { i32::max } else { i32::min };
            Cells::Int(zip(&wholes(a), &wholes(b), pick))
        } else {
            let pick = if larger { real::most } else { real::least };
            Cells::Real(zip(&reals(a), &reals(b), pick))
        };
        Value::made_of(cells, &[a, b])
    }
}

/// The algorithms of the language's own have one text, and their accuracy has tests of its own; here is their use alone.
fn own_function(name: &str) -> Option<Function> {
    Function::named(name).filter(|function| function.is_inexact())
}

/// Columns and levels where each of several values can be computed.
pub fn everywhere<'a, R: Real>(values: impl Iterator<Item = &'a Value<R>>) -> (Mask, Mask) {
    values.fold((None, None), |(columns, levels), value| (both(&columns, &value.columns), both(&levels, &value.levels)))
}
