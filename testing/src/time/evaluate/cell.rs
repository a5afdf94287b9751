//! What a cell comes to: values, and what is read where.

use super::place::{Place, place};
use super::{Arrays, Evaluation, added, extents_of, swept_value};
use crate::time::tree::{Op, Stencil, Stored, Swept, Term};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Two whole numbers up to here are combined by real numbers of any precision as by whole ones.
const SMALL: f64 = 4096.0;

/// A stencil that is computed, cell by cell.
pub(super) struct Cell<'a> {
    pub(super) evaluation: &'a Evaluation<'a>,
    pub(super) stencil: &'a Stencil,
    pub(super) variables: BTreeMap<usize, usize>,
    pub(super) params: Vec<f64>,
    pub(super) arrays: &'a Arrays,
    /// What sweeps have come to.
    pub(super) known: RefCell<BTreeMap<(Swept, [i64; 3]), f64>>,
}

impl Cell<'_> {
    /// A field on a level by its number; where there is no such level, nothing is computed.
    fn on_level(&self, field: usize, [i, j]: [i64; 2], level: f64) -> f64 {
        let of = self.evaluation;
        let variable = self.variables[&field];
        let count = extents_of(of.timed.variables[variable].shape, of.extents)[2] as f64;
        match (0.0..count).contains(&level) {
            true => of.rounded(self.read(variable, [i, j, level as i64])),
            false => f64::NAN,
        }
    }

    pub(super) fn value(&self, term: &Term, at: [i64; 3]) -> f64 {
        let of = self.evaluation;
        match term {
            Term::Number(x) => *x,
            Term::Whole(x) => *x as f64,
            Term::Param(n) => self.params[*n],
            Term::Level => at[2] as f64,
            Term::Read(field, by) => {
                let read = self.read(self.variables[field], of.moved(at, *by));
                if is_whole(self.stencil, term) { read } else { of.rounded(read) }
            }
            Term::Moved([field, levels], [[i, j, k], by]) => {
                let number = self.read(self.variables[levels], of.moved(at, *by));
                let [own_i, own_j, level] = of.moved(at, [*i, *j, *k]);
                self.on_level(*field, [own_i, own_j], level as f64 + number)
            }
            Term::ByNumber([field, levels], [[i, j, k], by]) => {
                let number = self.read(self.variables[levels], of.moved(at, *by));
                let [own_i, own_j, _] = of.moved(at, [*i, *j, 0]);
                self.on_level(*field, [own_i, own_j], *k as f64 + number)
            }
            Term::OnLevel(field, [i, j], level) => {
                let [own_i, own_j, _] = of.moved(at, [*i, *j, 0]);
                let level = if *level < 0 { of.extents[2] as i64 + level } else { *level };
                self.on_level(*field, [own_i, own_j], level as f64)
            }
            Term::Use(own, by) => self.value(&self.stencil.lets[*own], of.moved(at, *by)),
            Term::Swept(own, by) => self.swept(*own, added(at, [0, 0, *by])),
            Term::Binary(op, a, b) => {
                let (a, b, are_whole) = self.operands(a, b, at);
                let exact = match op {
                    Op::Add if are_whole => f64::from((a as i32).wrapping_add(b as i32)),
                    Op::Sub if are_whole => f64::from((a as i32).wrapping_sub(b as i32)),
                    Op::Mul if are_whole => f64::from((a as i32).wrapping_mul(b as i32)),
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a * b,
                    Op::Min if a < b || a.is_nan() => a,
                    Op::Max if a > b || a.is_nan() => a,
                    Op::Min | Op::Max => b,
                };
                if are_whole { exact } else { of.rounded(exact) }
            }
            Term::Above(..) | Term::Below(..) => self.value(of.chosen(term, at[2]), at),
            Term::Greater(four) => {
                let [a, b, yes, no] = &**four;
                let (a, b, _) = self.operands(a, b, at);
                let chosen = if a > b { yes } else { no };
                self.value(chosen, at)
            }
        }
    }

    /// Two values that are combined, and whether they are as whole numbers of 32 bits are: both are, and beyond those
    /// that real numbers combine alike. A whole one beside a real one becomes real.
    fn operands(&self, a: &Term, b: &Term, at: [i64; 3]) -> (f64, f64, bool) {
        let (x, y) = (self.value(a, at), self.value(b, at));
        match x.abs().max(y.abs()) > SMALL && is_whole(self.stencil, a) && is_whole(self.stencil, b) {
            true => (x, y, true),
            false => (self.evaluation.rounded(x), self.evaluation.rounded(y), false),
        }
    }

    /// A value of a sweep: of a field, what is stored.
    fn swept(&self, own: Swept, at: [i64; 3]) -> f64 {
        if let Some(&known) = self.known.borrow().get(&(own, at)) {
            return known;
        }
        let value = self.value(swept_value(self.stencil, own), at);
        let value = match own {
            Swept::Let(_) => value,
            Swept::Field(field) => {
                self.evaluation.rounded(self.evaluation.stored(value, self.stencil.fields[field].1.stored))
            }
        };
        self.known.borrow_mut().insert((own, at), value);
        value
    }

    /// What a variable holds there, or what lies beyond its edge: where several axes say a number, i comes before j before k.
    fn read(&self, variable: usize, at: [i64; 3]) -> f64 {
        let shape = self.evaluation.timed.variables[variable].shape;
        let extents = extents_of(shape, self.evaluation.extents);
        let (mut cell, mut is_negated) = ([0; 3], false);
        // As a whole number a zero has no sign.
        let signed = |x: f64, is_negated: bool| match (is_negated, shape.stored) {
            (false, _) => x,
            (true, Stored::Int | Stored::Levels) => f64::from((x as i32).wrapping_neg()),
            (true, Stored::Real | Stored::Single | Stored::Double) => -x,
        };
        for axis in 0..3 {
            let index = if shape.has(axis) { at[axis] } else { 0 };
            match place(self.evaluation.rules[variable][axis], index, extents[axis]) {
                Place::Cell(own) => cell[axis] = own,
                Place::Negated(own) => (cell[axis], is_negated) = (own, !is_negated),
                Place::Number(x) => return signed(self.evaluation.rounded(x), is_negated),
                Place::Nothing => return f64::NAN,
            }
        }
        let [i, j, k] = cell;
        signed(self.arrays[&variable][(k * extents[1] + j) * extents[0] + i], is_negated)
    }
}

/// Whether a value is a whole number.
fn is_whole(stencil: &Stencil, term: &Term) -> bool {
    match term {
        Term::Whole(_) | Term::Level => true,
        Term::Number(_) | Term::Param(_) | Term::Swept(Swept::Let(_), _) => false,
        Term::Moved(..) | Term::ByNumber(..) | Term::OnLevel(..) => false,
        Term::Read(field, _) | Term::Swept(Swept::Field(field), _) => stencil.fields[*field].1.stored == Stored::Int,
        Term::Use(own, _) => is_whole(stencil, &stencil.lets[*own]),
        Term::Binary(_, a, b) | Term::Above(_, a, b) | Term::Below(_, a, b) => {
            is_whole(stencil, a) && is_whole(stencil, b)
        }
        Term::Greater(four) => is_whole(stencil, &four[2]) && is_whole(stencil, &four[3]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::tree::Timed;

    /// As the whole numbers of the language do; real ones, as which small whole numbers may be combined, do not.
    #[test]
    fn whole_numbers_wrap_at_32_bits() {
        let (stencils, variables, params, boundaries, actions) = Default::default();
        let timed = Timed { stencils, variables, params, boundaries, actions };
        let evaluation = Evaluation::new(&timed, ([1; 3], None), true, Vec::new()).unwrap();
        let (fields, params, lets, sweeps, outputs) = Default::default();
        let stencil = Stencil { fields, params, lets, sweeps, outputs };
        let arrays = Arrays::new();
        let (variables, params, known) = Default::default();
        let cell = Cell { evaluation: &evaluation, stencil: &stencil, variables, params, arrays: &arrays, known };
        let value = |op: Op, a: Term, b: Term| cell.value(&Term::Binary(op, Box::new(a), Box::new(b)), [0; 3]);
        let most = i64::from(i32::MAX);
        let whole = |op: Op, a: i64, b: i64| value(op, Term::Whole(a), Term::Whole(b));
        assert_eq!(whole(Op::Add, most, 1), f64::from(i32::MIN));
        assert_eq!(whole(Op::Sub, -most, 2), f64::from(i32::MAX));
        assert_eq!(whole(Op::Mul, 1 << 16, 1 << 16), 0.0);
        assert_eq!(whole(Op::Mul, 46_341, 46_341), f64::from(46_341i32.wrapping_mul(46_341)));
        assert_eq!(whole(Op::Add, 2, 3), 5.0);
        // A whole number beside a real one is one, in single precision.
        assert_eq!(value(Op::Add, Term::Whole(most), Term::Number(1.0)), 2_147_483_648.0);
    }
}
