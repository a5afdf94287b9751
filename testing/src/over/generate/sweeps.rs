//! Sweeps along the levels, and the values of theirs that are known where something is written.

use super::super::tree::{Cond, Expr, Kind, Levels, Sweep, Write};
use super::Writer;

/// Values of sweeps that are known.
#[derive(Clone, Copy)]
pub(super) struct Known {
    done: usize,
    here: usize,
    end: usize,
    is_down: bool,
}

impl Writer {
    /// Sweeps: values that are made of those at the levels before, and outputs.
    pub(super) fn write_sweeps(&mut self) {
        for _ in 0..self.sweeps.unwrap_or(0) {
            let (done, is_down) = (self.stencil.swept.len(), self.rng.bool());
            let end = done + self.rng.usize(1..4);
            // Known before they are written: a value may be read above its line.
            let kinds: Vec<Kind> = (done..end).map(|_| self.kind()).collect();
            self.stencil.swept.extend(kinds.iter().map(|&kind| (kind, Expr::Int(0))));
            for (here, &kind) in (done..).zip(&kinds) {
                self.reads = Some(Known { done, here, end, is_down });
                // What it begins with says of which kind it is.
                let start = if kind == Kind::Int { Expr::Int(self.rng.i32(-3..4)) } else { Expr::Real(0.5) };
                let (has_before, value) = (self.has_level(if is_down { 1 } else { -1 }), self.expr(kind, 1, 3));
                let value = Expr::Choose(Box::new(has_before), Box::new(value), Box::new(start));
                self.stencil.swept[here].1 = value;
            }
            self.reads = Some(Known { done, here: end, end, is_down });
            let mut writes = Vec::new();
            for _ in 0..self.rng.usize(0..2) {
                let write = self.out();
                let Write::Out(field) = &write else { continue };
                let levels = if self.goes_on() { Levels::Interfaces } else { Levels::All };
                if field.parts > 1 || field.levels != levels {
                    continue;
                }
                let value = self.expr(field.stored.kind(), 1, 3);
                writes.push(self.stencil.writes.len());
                self.stencil.writes.push((write, value));
            }
            self.stencil.sweeps.push(Sweep { is_down, end, writes });
            self.reads = Some(Known { done: end, here: end, end, is_down: false });
        }
    }

    /// A value of a sweep that is known.
    pub(super) fn swept(&mut self, wanted: Kind) -> Option<Expr> {
        let known = self.reads?;
        let number = self.rng.usize(0..known.end.max(1));
        if number >= known.end || self.stencil.swept[number].0 != wanted {
            return None;
        }
        let is_here = number < known.here;
        let before = if known.is_down { 1 } else { -1 };
        let k = match (number < known.done, self.rng.usize(0..3)) {
            (true, 0) => self.rng.i32(-2..3),
            (true, _) => 0,
            (false, 0) if is_here => 0,
            (false, _) => before * self.rng.i32(1..3),
        };
        let value = Expr::Swept { number, k };
        if k == 0 {
            return Some(value);
        }
        let otherwise = if wanted == Kind::Int { Expr::Int(2) } else { Expr::Real(0.25) };
        Some(Expr::Choose(Box::new(self.has_level(k)), Box::new(value), Box::new(otherwise)))
    }

    /// That there is a value of a sweep so many levels away.
    fn has_level(&self, k: i32) -> Cond {
        Cond::HasLevel(if k > 0 && self.goes_on() { k - 1 } else { k })
    }
}
