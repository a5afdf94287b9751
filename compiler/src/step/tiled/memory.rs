//! Where the values of a tile are in shared memory.
//!
//! A value needs room from the loop that computes it, or from the start if it is loaded, to the last loop that looks at it. So
//! a scan over the loops in their order gives each value the first slot that is free by then, as a register allocator does
//! along a line (Poletto and Sarkar, "Linear scan register allocation", 1999). Of a chain of values, two slots are left.
//!
//! All slots have the same columns, so that a cell is as far from its neighbours in each of them.

use super::super::flow::{Flow, Source};
use super::loops::{Area, Loops, ReadFrom};
use super::{StepTask, TOGETHER, Tiling};
use crate::kernel::Type;

/// An array in shared memory, for some values one after the other.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The type of its elements.
    pub element: Type,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// The first row, from the tile's own.
    pub first_row: i32,
    last_row: i32,
    /// The last loop that looks at its present value.
    busy_until: usize,
    /// Whether that loop alone looks there, at the cell itself: then it may leave a value of its own there.
    may_replace: bool,
}

/// The shared memory of a block.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The slots.
    pub slots: Vec<Slot>,
    /// Elements from a row to the next.
    pub pitch: usize,
    /// Columns before the tile's own.
    pub before: usize,
    /// Of each row of the flow its slot, if it has one.
    pub homes: Vec<Option<usize>>,
    rows: usize,
}

/// Where slots begin, for the widest accesses.
const ALIGNED: usize = 16;

impl Memory {
    /// Room for the values of a tile.
    pub fn new(task: &StepTask, flow: &Flow, loops: &Loops, tiling: &Tiling) -> Self {
        let areas =
            || loops.homes.iter().filter_map(|home| if let ReadFrom::Tile(area) = home { Some(area) } else { None });
        let before = areas().map(|area| area.i.before()).max().unwrap_or(0).next_multiple_of(TOGETHER);
        let after = areas().map(|area| area.i.after()).max().unwrap_or(0);
        let pitch = (before + tiling.tile[0] + after).next_multiple_of(TOGETHER);
        let homes = vec![None; flow.rows.len()];
        let mut memory = Self { slots: Vec::new(), pitch, before, homes, rows: tiling.tile[1] };
        let tiles = |number: Option<usize>| {
            let values: Vec<usize> = match number {
                Some(number) => loops.loops[number].values.clone(),
                None => {
                    (0..flow.rows.len()).filter(|&row| matches!(flow.rows[row].source, Source::Field(..))).collect()
                }
            };
            values.into_iter().filter_map(|place| match loops.homes[place] {
                ReadFrom::Tile(area) => Some((place, area)),
                ReadFrom::Array | ReadFrom::Register => None,
            })
        };
        let numbers = (0..loops.loops.len()).map(Some);
        for number in [None].into_iter().chain(numbers) {
            for (place, area) in tiles(number) {
                memory.take(task, flow, loops, place, area, number);
            }
        }
        let mut offset = 0;
        for slot in &mut memory.slots {
            slot.offset = offset;
            offset += slot_bytes(slot, pitch, memory.rows);
        }
        memory
    }

    /// Gives a value the first slot that is free when a loop computes it, or before all loops.
    fn take(&mut self, task: &StepTask, flow: &Flow, loops: &Loops, place: usize, area: Area, number: Option<usize>) {
        let looks = |number: usize| loops.uses(flow, number).filter(|(other, _)| *other == place);
        let readers: Vec<usize> = (0..loops.loops.len()).filter(|&number| looks(number).count() > 0).collect();
        let Some(&last) = readers.last() else { return };
        let rank = |number: usize| loops.loops[number].rank;
        let is_alone = readers.iter().filter(|&&number| rank(number) == rank(last)).count() == 1;
        let may_replace = is_alone && looks(last).all(|(_, used)| (used.i, used.j) == (0, 0));
        let element = element(task, flow.rows[place].source);
        let is_free = |slot: &Slot| {
            let free = number.is_some_and(|number| {
                rank(slot.busy_until) > rank(number) || slot.may_replace && slot.busy_until == number
            });
            free && slot.element == element
        };
        let slot = self.slots.iter().position(is_free).unwrap_or_else(|| {
            let (first_row, last_row) = (area.j.low, area.j.high);
            let slot = Slot { element, offset: 0, first_row, last_row, busy_until: 0, may_replace: false };
            self.slots.push(slot);
            self.slots.len() - 1
        });
        let own = &mut self.slots[slot];
        own.first_row = own.first_row.min(area.j.low);
        own.last_row = own.last_row.max(area.j.high);
        (own.busy_until, own.may_replace) = (last, may_replace);
        self.homes[place] = Some(slot);
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot_bytes(slot, self.pitch, self.rows)).sum()
    }

    /// How many elements a slot has.
    pub fn elements(&self, slot: usize) -> usize {
        elements(&self.slots[slot], self.pitch, self.rows)
    }

    /// How far a cell is from the beginning of a slot, of which so many columns and rows of a tile come before it.
    pub fn index(&self, slot: usize, i: i32, j: i32) -> i64 {
        let row = i64::from(j) - i64::from(self.slots[slot].first_row);
        row * self.pitch as i64 + i64::from(i) + self.before as i64
    }
}

fn elements(slot: &Slot, pitch: usize, rows: usize) -> usize {
    rows.saturating_add_signed((slot.last_row - slot.first_row) as isize).saturating_mul(pitch)
}

fn slot_bytes(slot: &Slot, pitch: usize, rows: usize) -> usize {
    elements(slot, pitch, rows).saturating_mul(slot.element.bytes()).next_multiple_of(ALIGNED)
}

/// The type of a value's elements. Fields stay as they are stored, for then they can be copied as they are.
pub fn element(task: &StepTask, source: Source) -> Type {
    let (stencil, precision) = (task.stencil, task.precision);
    match source {
        Source::Field(field, _) => Type::stored(stencil.fields[field].stored, precision),
        Source::Def(def, _) => Type::computing(stencil.defs[def].body.kind(), precision),
    }
}
