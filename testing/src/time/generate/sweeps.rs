//! Sweeps of random stencils: what is known of them where something is written, and reads of other levels, which are all guarded.

use super::{Generator, quarter};
use crate::time::tree::{Op, Role, Stencil, Stored, Sweep, Swept, Term};

/// What of the sweeps of a stencil is known where something is written.
#[derive(Default)]
pub(super) struct Known {
    /// Values of sweeps that are over.
    pub(super) before: Vec<Swept>,
    /// Those of the one at hand that stand above.
    pub(super) above: Vec<Swept>,
    /// All those of the one at hand, and whether it goes up: they are known at the levels before.
    own: Vec<Swept>,
    is_up: bool,
}

/// A value of a sweep as a real number.
pub(super) fn real_of(stencil: &Stencil, name: Swept, by: i64) -> Term {
    let value = Term::Swept(name, by);
    match name {
        Swept::Field(field) if stencil.fields[field].1.stored == Stored::Int => quarter(value),
        Swept::Field(_) | Swept::Let(_) => value,
    }
}

impl Generator {
    /// Sweeps, which assign some of the outputs that are left to be written.
    pub(super) fn sweep(&mut self, stencil: &mut Stencil, written: &mut Vec<usize>, reaches: bool) {
        let mut lets = 0;
        for _ in 0..self.pick(&[1, 1, 2, 2, 3]) {
            let is_up = self.chance(50);
            let mut own: Vec<Swept> = Vec::new();
            for _ in 0..self.rng.usize(1..4) {
                if !written.is_empty() && self.chance(40) {
                    own.push(Swept::Field(written.swap_remove(self.rng.usize(0..written.len()))));
                } else {
                    own.push(Swept::Let(lets));
                    lets += 1;
                }
            }
            // To read an `inout` means its value before.
            let is_named = |name: &Swept| match name {
                Swept::Let(_) => true,
                Swept::Field(field) => stencil.fields[*field].0 == Role::Out,
            };
            if let Some(known) = &mut self.sweeps {
                (known.own, known.is_up) = (own.iter().copied().filter(is_named).collect(), is_up);
            }
            let mut values = Vec::new();
            for name in own {
                let size = self.rng.usize(1..5);
                let term = match name {
                    // What is no value of a sweep is an ordinary let.
                    Swept::Let(_) => self.going_on(stencil, size, reaches),
                    Swept::Field(field) => match stencil.fields[field].1.stored {
                        Stored::Int | Stored::Levels => self.whole(stencil, size, reaches),
                        Stored::Real | Stored::Single | Stored::Double if self.chance(70) => {
                            self.going_on(stencil, size, reaches)
                        }
                        Stored::Real | Stored::Single | Stored::Double => self.real(stencil, size, reaches),
                    },
                };
                values.push((name, term));
                if let Some(known) = self.sweeps.as_mut().filter(|_| is_named(&name)) {
                    known.above.push(name);
                }
            }
            stencil.sweeps.push(Sweep { is_up, values });
            if let Some(known) = &mut self.sweeps {
                known.before.append(&mut known.above);
                known.own.clear();
            }
        }
    }

    /// A value that is made of what a sweep came to before.
    fn going_on(&mut self, stencil: &Stencil, size: usize, reaches: bool) -> Term {
        let is_up = self.sweeps.as_ref().is_some_and(|known| known.is_up);
        let n = self.rng.i64(0..3).max(i64::from(!is_up));
        let (first, next) = (self.real(stencil, size, reaches), self.real(stencil, size, reaches));
        let back = self.guarded(stencil, n, is_up).unwrap_or(Term::Number(0.5));
        let factor = self.pick(&[Term::Number(0.5), Term::Number(-0.75), Term::Number(1.0)]);
        let back = Term::Binary(Op::Mul, Box::new(factor), Box::new(back));
        let next = Box::new(Term::Binary(self.pick(&[Op::Add, Op::Sub]), Box::new(next), Box::new(back)));
        if is_up { Term::Above(n, next, Box::new(first)) } else { Term::Below(n, next, Box::new(first)) }
    }

    /// A read of another level, where it is known that there are so many levels above or below.
    pub(super) fn guarded(&mut self, stencil: &Stencil, n: i64, is_above: bool) -> Option<Term> {
        let most = if is_above { n + 1 } else { n };
        let by = if self.chance(70) { 1 } else { self.rng.i64(1..most + 1) };
        let by = if is_above { -by } else { by };
        let Some(known) = &self.sweeps else {
            let (field, _) = self.readable(stencil, false).filter(|(_, shape)| shape.has(2))?;
            return Some(Term::Read(field, [0, 0, if is_above { -1 } else { 1 }]));
        };
        let mut names = known.before.clone();
        if known.is_up == is_above {
            // Most of all its own.
            names.extend(known.own.iter().chain(&known.own));
        }
        if !names.is_empty() && self.chance(75) {
            let name = self.pick(&names);
            return Some(real_of(stencil, name, by));
        }
        // What an `inout` was at a level that a sweep has been at is not known any more.
        let (field, shape) = self.readable(stencil, false).filter(|(_, shape)| shape.has(2))?;
        let is_known = stencil.fields[field].0 == Role::In && shape.stored != Stored::Int;
        is_known.then_some(Term::Read(field, [0, 0, by]))
    }
}
