//! Levels that are data: whether the numbers that say them lead to levels that there are.

use super::MeshProgram;
use crate::mesh::{Bound, HOLE};
use crate::moving::no_such_level;
use crate::{Data, Result};
use std::collections::BTreeMap;
use stencilc_compiler::analysis::footprint::Footprint;
use stencilc_compiler::analysis::moving::{Allowed, allowed};
use stencilc_compiler::ir::mesh::Zones;
use stencilc_compiler::ir::program::{Action, Call, Variable};
use stencilc_compiler::ir::{FieldId, Handle, Levels, MeshStencil, Precision, VariableId};

/// What the numbers of inputs may be that say which levels are read.
pub struct Moving {
    /// By input, by the level that a number stands on, if it has levels, and by the zones of its set whose numbers are looked at; and the
    /// name of what is read where it leads.
    allowed: BTreeMap<Key, (Allowed, String)>,
}

type Key = (VariableId, Option<usize>, Option<Zones>);

impl Moving {
    /// Of all calls of a program, whose stencils are prepared, on so many levels.
    pub fn new(program: &MeshProgram, precision: Precision, levels: usize) -> Self {
        let mut own = Self { allowed: BTreeMap::new() };
        let known: Vec<_> =
            program.stencils.iter().map(|stencil| allowed(&stencil.stencil, precision, levels)).collect();
        for call in calls(&program.program.actions) {
            let stencil = &program.stencils[call.stencil];
            for (&(field, level), new) in &known[call.stencil] {
                if let Some(variable) = call.fields[field.index()].read {
                    let fields = &stencil.stencil.fields;
                    // Of its own set, those of its zones; what is reached from there may be any.
                    let is_own = fields[field].place.home.is_some_and(|home| home.set == stencil.set());
                    let zones = stencil.stencil.zones.filter(|_| is_own && reads_at_itself(stencil, field));
                    own.allow((variable, level, zones), *new, &fields[new.read].name);
                }
            }
        }
        own
    }

    fn allow(&mut self, key: Key, new: Allowed, name: &str) {
        let (known, read) = self.allowed.entry(key).or_insert_with(|| (new, name.to_owned()));
        if new.low > known.low || new.high < known.high {
            name.clone_into(read);
        }
        (known.low, known.high) = (known.low.max(new.low), known.high.min(new.high));
    }

    /// Whether the numbers of an input lead to levels that there are. Those of slots that lead nowhere, and of zones that are not computed,
    /// are looked at by nobody.
    ///
    /// # Errors
    /// One does not.
    pub fn check(
        &self,
        id: VariableId,
        variable: &Variable,
        data: &Data,
        program: &MeshProgram,
        bound: &Bound,
    ) -> Result<()> {
        let Data::I32(numbers) = data else { return Ok(()) };
        let (size, width) = extents(variable, bound);
        for (level, zones, (own, read)) in self.of(id, variable, numbers.len() / (size * width).max(1)) {
            let first = level * size * width;
            for (at, &number) in numbers[first..first + size * width].iter().enumerate() {
                let is_fine = (own.low..=own.high).contains(&i64::from(number));
                let is_seen = is_in(variable, bound, at / width, zones) && !leads_nowhere(variable, bound, at, width);
                if is_fine || !is_seen {
                    continue;
                }
                let (name, mut at_what) = (&variable.name, Vec::new());
                if let Some(home) = variable.place.home {
                    at_what.push(format!("{} {}", program.mesh.sets[home.set].name, at / width));
                    at_what.extend(home.map.map(|_| format!("slot {}", at % width / home.parts as usize)));
                }
                at_what.extend((variable.place.levels != Levels::None).then(|| format!("level {level}")));
                return Err(no_such_level(name, number.into(), &at_what, read, own));
            }
        }
        Ok(())
    }

    /// Drawn numbers, those that would lead to no level brought to the nearest that does.
    pub fn fit(&self, id: VariableId, variable: &Variable, data: &mut Data, bound: &Bound) {
        let Data::I32(numbers) = data else { return };
        let (size, width) = extents(variable, bound);
        for (level, _, (own, _)) in self.of(id, variable, numbers.len() / (size * width).max(1)) {
            for number in &mut numbers[level * size * width..(level + 1) * size * width] {
                *number = i64::from(*number).min(own.high).max(own.low) as i32;
            }
        }
    }

    /// What numbers may be, level by level of an input with so many.
    fn of<'a>(
        &'a self,
        id: VariableId,
        variable: &Variable,
        levels: usize,
    ) -> impl Iterator<Item = (usize, Option<Zones>, &'a (Allowed, String))> {
        let has_levels = variable.place.levels != Levels::None;
        let own = move |level: usize| {
            let (at, last) = (has_levels.then_some(level), Zones { first: u8::MAX, last: u8::MAX });
            let own = self.allowed.range((id, at, None)..=(id, at, Some(last)));
            own.map(move |((_, _, zones), allowed)| (level, *zones, allowed))
        };
        (0..levels).flat_map(own)
    }
}

/// Whether a stencil reads a field at the element at hand alone.
fn reads_at_itself(stencil: &MeshStencil, field: FieldId) -> bool {
    let footprint = Footprint::new(stencil, 0..stencil.stencil.stores.len());
    let mut reads = footprint.reads.keys().filter(|(own, _)| *own == field);
    reads.all(|(_, hops)| hops.is_empty())
}

/// Whether an element of an input's set is in some zones.
fn is_in(variable: &Variable, bound: &Bound, element: usize, zones: Option<Zones>) -> bool {
    let home = variable.place.home.zip(zones);
    home.is_none_or(|(home, zones)| zones.contain(bound.zone(home.set, element)))
}

/// How many elements an input has, and how many numbers at each.
fn extents(variable: &Variable, bound: &Bound) -> (usize, usize) {
    variable.place.home.map_or((1, 1), |home| (bound.size(home.set), home.width as usize))
}

/// Whether a number of an input on a map is that of a slot that leads nowhere.
fn leads_nowhere(variable: &Variable, bound: &Bound, at: usize, width: usize) -> bool {
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
