//! Where the values of a tile are in shared memory.
//!
//! A value needs room from the loop that computes it, or from the start if it is loaded, to the last loop that looks at it. So
//! a scan over the loops in their order gives each value the first slot that is free by then, as a register allocator does
//! along a line (Poletto and Sarkar, "Linear scan register allocation", 1999). Of a chain of values, two slots are left.
//!
//! All slots have the same columns, so that a cell is as far from its neighbours in each of them.

use super::super::flow::{Area, Flow, Source, Window};
use super::loops::Loops;
use super::{StepTask, TOGETHER};
use crate::gpu::AT_ONCE;
use crate::kernel::Type;

/// An array in shared memory, for some values one after the other.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The type of its elements.
    pub element: Type,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// How many elements it has.
    pub elements: usize,
    /// The rows that it has around a tile's own.
    rows: Window,
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
    /// Bytes of all slots.
    pub bytes: usize,
}

impl Memory {
    /// Room for the values of a tile.
    pub fn new(task: &StepTask, flow: &Flow, loops: &Loops, [columns, rows]: [usize; 2]) -> Self {
        let tile = |place: usize| Some((place, loops.kept[place]?));
        let all = || (0..flow.rows.len()).filter_map(tile);
        let before = all().map(|(_, area)| area.i.before()).max().unwrap_or(0).next_multiple_of(TOGETHER);
        let after = all().map(|(_, area)| area.i.after()).max().unwrap_or(0);
        let pitch = (before + columns + after).next_multiple_of(TOGETHER);
        let homes = vec![None; flow.rows.len()];
        let mut memory = Self { slots: Vec::new(), pitch, before, homes, bytes: 0 };
        for tile in flow.fields().filter_map(|(place, _)| tile(place)) {
            memory.take(task, flow, loops, tile, None);
        }
        for (number, own) in loops.loops.iter().enumerate() {
            for tile in own.values.iter().filter_map(|&place| tile(place)) {
                memory.take(task, flow, loops, tile, Some(number));
            }
        }
        for slot in &mut memory.slots {
            slot.offset = memory.bytes;
            slot.elements = rows.saturating_add_signed((slot.rows.high - slot.rows.low) as isize).saturating_mul(pitch);
            memory.bytes += slot.elements.saturating_mul(slot.element.bytes()).next_multiple_of(AT_ONCE);
        }
        memory
    }

    /// Gives a value the first slot that is free when a loop computes it, or before all loops.
    fn take(
        &mut self,
        task: &StepTask,
        flow: &Flow,
        loops: &Loops,
        (place, area): (usize, Area),
        number: Option<usize>,
    ) {
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
            let slot = Slot { element, offset: 0, elements: 0, rows: area.j, busy_until: 0, may_replace: false };
            self.slots.push(slot);
            self.slots.len() - 1
        });
        let own = &mut self.slots[slot];
        own.rows = own.rows.union(area.j);
        (own.busy_until, own.may_replace) = (last, may_replace);
        self.homes[place] = Some(slot);
    }

    /// How far a cell is from the beginning of a slot, of which so many columns and rows of a tile come before it.
    pub fn index(&self, slot: usize, i: i32, j: i32) -> i64 {
        let row = i64::from(j) - i64::from(self.slots[slot].rows.low);
        row * self.pitch as i64 + i64::from(i) + self.before as i64
    }
}

/// The type of a value's elements. Fields stay as they are stored, for then they can be copied as they are.
pub fn element(task: &StepTask, source: Source) -> Type {
    match source {
        Source::Field(field, _) => task.stored(field),
        Source::Def(..) => task.kind(source),
    }
}
