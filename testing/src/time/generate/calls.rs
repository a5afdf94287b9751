//! Calls of stencils, and names for what they leave.

use super::super::tree::{Action, End, Number, Shape, Stencil, Stored, Within};
use super::{Generator, Kind};

impl Generator {
    /// Variables of a shape that `fits` accepts.
    pub(super) fn fitting(&self, shape: Shape, fits: impl Fn(&Self, usize) -> bool) -> Vec<usize> {
        let all = 0..self.timed.variables.len();
        all.filter(|&own| self.timed.variables[own].shape == shape && fits(self, own)).collect()
    }

    /// What may be given a new value: declared outputs, and names of the program that are visible.
    fn is_target(&self, own: usize) -> bool {
        match self.timed.variables[own].role {
            Some(role) => role.is_written(),
            None => self.visible.contains(&own),
        }
    }

    /// A call of some stencil, if there is one for which there are fields.
    pub(super) fn call(&mut self) -> Option<Action> {
        for _ in 0..6 {
            let number = self.rng.usize(0..self.timed.stencils.len());
            let stencil = self.timed.stencils[number].clone();
            if let Some(action) = self.call_of(number, &stencil) {
                return Some(action);
            }
        }
        None
    }

    fn call_of(&mut self, number: usize, stencil: &Stencil) -> Option<Action> {
        let mut reads = Vec::new();
        for (role, shape) in &stencil.fields {
            if role.is_read() {
                let fitting = self.fitting(*shape, |own, variable| own.visible.contains(&variable));
                let recent = if self.chance(50) { fitting.len().saturating_sub(2) } else { 0 };
                reads.push(*fitting.get(self.rng.usize(recent..fitting.len().max(recent + 1)))?);
            }
        }
        let outputs = || stencil.fields.iter().filter(|(role, _)| role.is_written()).map(|(_, shape)| *shape);
        let fresh = self.chance(35);
        let mut targets = Vec::new();
        for shape in outputs() {
            if fresh {
                targets.push(usize::MAX);
                continue;
            }
            let fitting = self.fitting(shape, |own, variable| own.is_target(variable) && !targets.contains(&variable));
            if fitting.is_empty() {
                return None;
            }
            targets.push(self.pick(&fitting));
        }
        if fresh {
            targets = outputs().map(|shape| self.variable(shape, None)).collect();
        }
        for &target in &targets {
            if !self.visible.contains(&target) {
                self.visible.push(target);
            }
        }
        let params = stencil
            .params
            .iter()
            .map(|default| (default.is_none() || self.chance(60)).then(|| self.real_number()))
            .collect();
        let often = if self.kind == Kind::Circles { 12 } else { 35 };
        let within = if self.chance(often) {
            // What sweeps goes through all levels; what writes at interfaces alone may go on behind the last one.
            let mut written = stencil.fields.iter().filter(|(role, _)| role.is_written());
            self.within(stencil.sweeps.is_empty() && written.any(|(_, shape)| !shape.interfaces))
        } else {
            Vec::new()
        };
        Some(Action::Call { stencil: number, reads, params, targets, fresh, within })
    }

    /// Where a call is computed: on which columns, perhaps, and on which levels.
    fn within(&mut self, levels: bool) -> Vec<Within> {
        let mut all = Vec::new();
        for axis in 0..if levels { 3 } else { 2 } {
            if !self.chance(45) {
                continue;
            }
            let wholes = self.numbers.iter().filter(|(_, whole)| *whole).map(|(own, _)| own.clone());
            let said: Vec<Number> = wholes.collect();
            let first = match self.rng.u32(0..100) {
                0..75 => End::After(self.rng.i64(0..3)),
                75..95 => End::Before(self.rng.i64(1..4)),
                _ => said.first().map_or(End::After(0), |own| End::Said(own.clone())),
            };
            let end = match self.rng.u32(0..100) {
                0..25 => None,
                25..45 => Some(End::After(self.rng.i64(3..5))),
                45..95 => Some(End::Before(self.rng.i64(0..3))),
                _ => said.last().map(|own| End::Said(own.clone())),
            };
            all.push(Within { axis, first, end });
        }
        all
    }

    /// Another name for what a variable holds.
    pub(super) fn rename(&mut self) -> Option<Action> {
        let from = self.visible[self.rng.usize(0..self.visible.len())];
        let shape = self.timed.variables[from].shape;
        if shape.stored == Stored::Levels {
            return None;
        }
        if self.chance(50) {
            let to = self.variable(shape, None);
            return Some(Action::Rename { from, to, fresh: true });
        }
        let fitting = self.fitting(shape, |own, variable| own.is_target(variable) && variable != from);
        if fitting.is_empty() {
            return None;
        }
        let to = self.pick(&fitting);
        if !self.visible.contains(&to) {
            self.visible.push(to);
        }
        Some(Action::Rename { from, to, fresh: false })
    }
}
