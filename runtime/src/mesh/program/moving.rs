//! Levels that are data: whether the numbers that say them lead to levels that there are.

use super::MeshProgram;
use crate::mesh::{Bound, HOLE};
use crate::{Data, Error, Result};
use std::collections::BTreeMap;
use stencilc_compiler::analysis::moving::{Allowed, allowed};
use stencilc_compiler::ir::program::{Action, Call, Variable};
use stencilc_compiler::ir::{Handle, Levels, Precision, VariableId};

/// What the numbers of inputs may be that say which levels are read.
pub struct Moving {
    /// By input, and by the level that a number stands on, if it has levels; and the name of what is read where it leads.
    allowed: BTreeMap<(VariableId, Option<usize>), (Allowed, String)>,
}

impl Moving {
    /// Of all calls of a program, whose stencils are prepared, on so many levels.
    pub fn new(program: &MeshProgram, precision: Precision, levels: usize) -> Self {
        let mut own = Self { allowed: BTreeMap::new() };
        let known: Vec<_> =
            program.stencils.iter().map(|stencil| allowed(&stencil.stencil, precision, levels)).collect();
        for call in calls(&program.program.actions) {
            for (&(field, level), new) in &known[call.stencil] {
                if let Some(variable) = call.fields[field.index()].read {
                    let name = &program.stencils[call.stencil].stencil.fields[new.read].name;
                    own.allow((variable, level), *new, name);
                }
            }
        }
        own
    }

    fn allow(&mut self, key: (VariableId, Option<usize>), new: Allowed, name: &str) {
        let (known, read) = self.allowed.entry(key).or_insert_with(|| (new, name.to_owned()));
        if new.low > known.low || new.high < known.high {
            name.clone_into(read);
        }
        (known.low, known.high) = (known.low.max(new.low), known.high.min(new.high));
    }

    /// Whether the numbers of an input lead to levels that there are. Those of slots that lead nowhere are looked at by nobody.
    ///
    /// # Errors
    /// One does not.
    pub fn check(&self, id: VariableId, variable: &Variable, data: &Data, bound: &Bound) -> Result<()> {
        let Data::I32(numbers) = data else { return Ok(()) };
        let (size, width) = extents(variable, bound);
        for (level, (own, read)) in self.of(id, variable, numbers.len() / (size * width).max(1)) {
            let first = level * size * width;
            for (at, &number) in numbers[first..first + size * width].iter().enumerate() {
                let is_fine = (own.low..=own.high).contains(&i64::from(number));
                if is_fine || leads_nowhere(variable, bound, at, (size, width)) {
                    continue;
                }
                let name = &variable.name;
                let on = if variable.place.levels == Levels::None { String::new() } else { format!(", level {level}") };
                let what = format!("`{name}` is {number} at element {}{on}: `{read}` has no such level", at / width);
                return Err(Error::input(what).help(format!(
                    "there it may be {} to {}; where nothing is meant to be read on another level, it is 0",
                    own.low, own.high
                )));
            }
        }
        Ok(())
    }

    /// Drawn numbers, those that would lead to no level brought to the nearest that does.
    pub fn fit(&self, id: VariableId, variable: &Variable, data: &mut Data, bound: &Bound) {
        let Data::I32(numbers) = data else { return };
        let (size, width) = extents(variable, bound);
        for (level, (own, _)) in self.of(id, variable, numbers.len() / (size * width).max(1)) {
            for number in &mut numbers[level * size * width..(level + 1) * size * width] {
                *number = i64::from(*number).min(own.high).max(own.low) as i32;
            }
        }
    }

    /// What numbers may be, level by level of an input with so many.
    fn of(
        &self,
        id: VariableId,
        variable: &Variable,
        levels: usize,
    ) -> impl Iterator<Item = (usize, &(Allowed, String))> {
        let has_levels = variable.place.levels != Levels::None;
        let key = move |level: usize| (id, has_levels.then_some(level));
        (0..levels).filter_map(move |level| Some((level, self.allowed.get(&key(level))?)))
    }
}

/// How many elements an input has, and how many numbers at each.
fn extents(variable: &Variable, bound: &Bound) -> (usize, usize) {
    variable.place.home.map_or((1, 1), |home| (bound.size(home.set), home.width as usize))
}

/// Whether a number of an input on a map is that of a slot that leads nowhere.
fn leads_nowhere(variable: &Variable, bound: &Bound, at: usize, (_, width): (usize, usize)) -> bool {
    let Some((home, map)) = variable.place.home.and_then(|home| Some((home, home.map?))) else { return false };
    let (table, arity) = bound.map(map);
    table[at / width * arity + at % width / home.parts as usize] == HOLE
}

/// Every call, those of loops too.
fn calls(actions: &[Action]) -> Vec<&Call> {
    let mut all = Vec::new();
    for action in actions {
        match action {
            Action::Call(call) => all.push(call),
            Action::Repeat(repeat) => all.extend(calls(&repeat.actions)),
            Action::Rename(_) | Action::Number(_) => {}
        }
    }
    all
}
