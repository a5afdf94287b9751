//! The order of sums, where a stencil says `sums by level`: what was added is remembered, and added again once all of it is known.

use super::arithmetic::Arithmetic;
use super::real::Real;
use super::value::Value;
use std::rc::Rc;
use stencilc_compiler::ir::Binary;

/// How a value was written, as far as sums are made of it.
#[derive(Clone, Debug)]
pub enum Written<R> {
    /// A sum of two, or a difference.
    Sum { minus: bool, of: [Value<R>; 2] },
    /// With the other sign.
    Negated(Value<R>),
    /// A product.
    Product([Value<R>; 2]),
}

/// Something that is added.
#[derive(Clone)]
struct Term<R> {
    minus: bool,
    factors: Vec<Value<R>>,
    value: Value<R>,
}

impl<R: Real> Term<R> {
    /// The level on which it is added.
    fn level(&self) -> i64 {
        self.value.range.map_or(i64::MIN, |[_, high]| high)
    }
}

impl<R: Real> Value<R> {
    fn reads_several(&self) -> bool {
        self.range.is_some_and(|[low, high]| low < high)
    }

    /// Whether it is a sum that reads several levels.
    pub fn is_sum(&self) -> bool {
        let Some(written) = self.written.as_deref().filter(|_| self.reads_several()) else { return false };
        match written {
            Written::Sum { .. } => true,
            Written::Negated(a) => a.is_sum(),
            Written::Product([a, b]) => a.scales(b) || b.scales(a),
        }
    }

    /// Whether it is a factor of each term of a sum.
    pub fn scales(&self, sum: &Value<R>) -> bool {
        self.range.is_none() && sum.is_sum()
    }
}

impl Arithmetic<'_> {
    /// A value whose sum has come to its end: in order, where an order is asked for.
    pub fn settled<R: Real>(self, value: Value<R>) -> Value<R> {
        if !value.is_sum() {
            return Value { written: None, ..value };
        }
        let mut terms = terms(self, &value);
        terms.sort_by_key(Term::level);
        let first = terms[0].level();
        let (lowest, others) = terms.split_at(terms.partition_point(|term| term.level() == first));
        let mut sum = self.added(None, lowest);
        if !others.is_empty() {
            sum.factors = None;
        }
        let sum = self.added(Some(sum), others);
        // Where it can be computed does not depend on the order.
        Value { cells: sum.cells, written: None, factors: sum.factors, ..value }
    }

    fn added<R: Real>(self, sum: Option<Value<R>>, terms: &[Term<R>]) -> Value<R> {
        let own = Arithmetic { by_level: false, ..self };
        let total = terms.iter().fold(sum, |sum, Term { minus, factors, value }| {
            let is_first = sum.is_none();
            let signed = |value: &Value<R>| if *minus && is_first { own.negated(value) } else { value.clone() };
            let mut factors = factors.iter();
            let product = factors.next().map(|first| {
                let product = factors.fold(signed(first), |product, factor| own.binary(Binary::Mul, &product, factor));
                own.binary(Binary::Mul, &product, value)
            });
            let term = product.unwrap_or_else(|| signed(value));
            Some(match sum {
                None => term,
                Some(sum) => own.binary(if *minus { Binary::Sub } else { Binary::Add }, &sum, &term),
            })
        });
        total.unwrap_or_else(|| unreachable!("a sum has terms"))
    }
}

fn turned<R: Real>(terms: Vec<Term<R>>, is_turned: bool) -> Vec<Term<R>> {
    terms.into_iter().map(|term| Term { minus: term.minus != is_turned, ..term }).collect()
}

/// What a value adds to a sum.
fn terms<R: Real>(own: Arithmetic<'_>, value: &Value<R>) -> Vec<Term<R>> {
    if !value.is_sum() {
        return alone(value, false, Vec::new());
    }
    match value.written.as_deref() {
        Some(Written::Sum { minus, of: [a, b] }) => {
            let mut all = terms(own, a);
            all.extend(turned(terms(own, b), *minus));
            all
        }
        Some(Written::Negated(a)) => turned(terms(own, a), true),
        Some(Written::Product([a, b])) => {
            let (factor, sum) = if a.scales(b) { (a, b) } else { (b, a) };
            scaled(own, factor, terms(own, sum))
        }
        None => Vec::new(),
    }
}

/// A factor times a sum: what each level has, as one value.
fn scaled<R: Real>(own: Arithmetic<'_>, factor: &Value<R>, mut terms: Vec<Term<R>>) -> Vec<Term<R>> {
    terms.sort_by_key(Term::level);
    let of_level = |level: &[Term<R>]| match level {
        [one] => one.clone(),
        several => {
            let minus = several[0].minus;
            let value = own.added(None, &turned(several.to_vec(), minus));
            Term { minus, factors: Vec::new(), value: Value { factors: None, written: None, ..value } }
        }
    };
    let with_factor = |term: Term<R>| Term { factors: [vec![factor.clone()], term.factors].concat(), ..term };
    terms.chunk_by(|a, b| a.level() == b.level()).map(of_level).map(with_factor).collect()
}

/// What a value adds that reads one level, or is no sum.
fn alone<R: Real>(value: &Value<R>, minus: bool, factors: Vec<Value<R>>) -> Vec<Term<R>> {
    match value.written.as_deref().filter(|_| value.range.is_some()) {
        Some(Written::Sum { minus: other, of: [a, b] }) if factors.is_empty() => {
            [alone(a, minus, Vec::new()), alone(b, minus != *other, Vec::new())].concat()
        }
        Some(Written::Negated(a)) => alone(a, !minus, factors),
        Some(Written::Product([a, b])) if a.range.is_none() => alone(b, minus, [factors, vec![a.clone()]].concat()),
        Some(Written::Product([a, b])) if b.range.is_none() => alone(a, minus, [factors, vec![b.clone()]].concat()),
        Some(Written::Sum { .. } | Written::Product(_)) | None => {
            let value = Value { factors: None, written: None, ..value.clone() };
            vec![Term { minus, factors, value }]
        }
    }
}

/// The levels that values read.
pub fn joined(a: Option<[i64; 2]>, b: Option<[i64; 2]>) -> Option<[i64; 2]> {
    match (a, b) {
        (Some([low, high]), Some([other_low, other_high])) => Some([low.min(other_low), high.max(other_high)]),
        (one, other) => one.or(other),
    }
}

/// A value, and how it was written.
pub fn with<R: Real>(value: Value<R>, written: Written<R>) -> Value<R> {
    Value { written: Some(Rc::new(written)), ..value }
}
