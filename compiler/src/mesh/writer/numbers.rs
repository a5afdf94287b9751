//! Numbers of fields: where they lie in arrays, and how they are loaded and stored.

use super::Writer;
use crate::ir::{FieldId, Levels, Role};
use crate::kernel::build::Computing;
use crate::kernel::{ArrayId, Binary, Meaning, ValueId};
use crate::mesh::vector_layout::at_once;

/// The element and level that numbers of a field are of: none for a field on levels alone.
pub type Spot = (Option<ValueId>, i32);

impl Writer<'_> {
    /// The index of the first of a field's numbers at a spot, before parts and what stands together count. Level after level, group after
    /// group, element after element; or group after group, element after element, level after level.
    fn place(&mut self, field: FieldId, (element, shift): Spot) -> (ValueId, usize) {
        let level = self.level(shift, self.field(field).place.levels);
        self.place_on(field, element, level)
    }

    /// The same on a level that is there, if the field has some.
    fn place_on(&mut self, field: FieldId, element: Option<ValueId>, level: Option<ValueId>) -> (ValueId, usize) {
        let own = self.field(field);
        let (Some(home), Some(element)) = (own.place.home, element) else {
            return (level.unwrap_or_else(|| self.own.int(0)), 1);
        };
        let together = self.choices.layout.together(home, own.stored, self.task.precision);
        let Some(level) = level else { return (element, together) };
        let place = if self.choices.layout.is_by_column() {
            element.times(own.place.levels.count(self.task.levels)).plus(level)
        } else {
            level.times(home.width as usize / together).times(self.size(home.set)).plus(element)
        };
        (self.own.term(place), together)
    }

    /// The index of a field's number `part` at a spot.
    pub fn index_at(&mut self, field: FieldId, spot: Spot, part: usize) -> ValueId {
        let (place, together) = self.place(field, spot);
        self.part_index(field, place, together, part)
    }

    /// The index of a field's number `part` on a level that is there.
    pub fn index_on(&mut self, field: FieldId, element: Option<ValueId>, level: ValueId, part: usize) -> ValueId {
        let (place, together) = self.place_on(field, element, Some(level));
        self.part_index(field, place, together, part)
    }

    fn part_index(&mut self, field: FieldId, place: ValueId, together: usize, part: usize) -> ValueId {
        let own = self.field(field).place;
        let Some(home) = own.home else { return place };
        let mut group = self.size(home.set).into();
        if self.choices.layout.is_by_column() && own.levels != Levels::None {
            group = own.levels.count(self.task.levels).times(group);
        }
        let place = place.plus((part / together).times(group));
        self.own.term(together.times(place).plus(part % together))
    }

    /// The level `shift` away, kept inside, where there are several.
    pub fn level(&mut self, shift: i32, levels: Levels) -> Option<ValueId> {
        let last = match levels {
            Levels::None => return None,
            Levels::Full => self.task.levels as i32 - 1,
            Levels::Interfaces => self.task.levels as i32,
        };
        let (first, end) = (self.task.computed.start as i32, self.task.computed.end as i32);
        let level = self.k?.plus(shift);
        // What lies beyond the levels is looked at by nobody. Of interfaces there is one more, on which what is read beside them is not.
        Some(self.own.term(if end - self.levels as i32 + shift > last {
            level.at_most(last)
        } else if first + shift < 0 {
            level.by(Binary::Max, 0)
        } else {
            level
        }))
    }

    /// The array of a field that is read.
    pub fn input(&mut self, field: FieldId) -> ArrayId {
        if self.in_place.contains(&field) {
            return self.output(field);
        }
        self.array(&self.field(field).name, self.stored(field), false, Meaning::Input(field))
    }

    /// The array of a field that is written.
    pub fn output(&mut self, field: FieldId) -> ArrayId {
        self.output_if(field, true)
    }

    /// The array of a field that is made, and written if somebody gets it.
    pub fn output_if(&mut self, field: FieldId, is_written: bool) -> ArrayId {
        let own = self.field(field);
        let is_another = own.role == Role::InOut && !self.in_place.contains(&field);
        let wish = if is_another { format!("{}_new", own.name) } else { own.name.clone() };
        self.array(&wish, self.stored(field), is_written, Meaning::Output(field))
    }

    /// How many numbers an element has of a field.
    pub fn width(&self, field: FieldId) -> usize {
        self.field(field).place.home.map_or(1, |home| home.width as usize)
    }

    /// Numbers of a field at a spot, as they are stored, or as one computes with them.
    pub fn load(&mut self, array: ArrayId, field: FieldId, spot: Spot, wish: &str, as_stored: bool) -> Vec<ValueId> {
        let (stored, precision) = (self.field(field).stored, self.task.precision);
        let (width, scalar) = (self.width(field), self.scalar());
        let (place, together) = self.place(field, spot);
        let at_once = at_once(together, stored, precision);
        let mut values = Vec::new();
        for first in (0..width).step_by(at_once) {
            let index = self.part_index(field, place, together, first);
            let mut all = self.own.load_run(array, index, at_once as u8);
            if at_once > 1 {
                all = self.own.name(&format!("{wish}_{}", if at_once == 2 { "pair" } else { "four" }), all);
            }
            let parts = self.lanes_of(all, at_once);
            for (n, part) in parts.into_iter().enumerate() {
                let value = if as_stored { part } else { scalar.read(&mut self.own, part, stored) };
                values.push(self.own.name(&part_name(wish, width, first + n), value));
            }
        }
        values
    }

    /// Each of so many numbers that were moved at once.
    pub fn lanes_of(&mut self, run: ValueId, count: usize) -> Vec<ValueId> {
        match count {
            1 => vec![run],
            _ => (0..count).map(|lane| self.own.lane(run, lane as u8)).collect(),
        }
    }

    /// Numbers that are moved at once.
    pub fn side_by_side(&mut self, numbers: &[ValueId]) -> ValueId {
        if let [one] = numbers { *one } else { self.own.lanes(numbers.to_vec()) }
    }

    /// How many of a field's numbers on levels that follow each other one instruction moves: those that a thread computes, of a field
    /// that has one number on each; else 1.
    pub fn levels_at_once(&self, field: FieldId) -> usize {
        let own = self.field(field);
        let is_one = own.place.home.is_some_and(|home| home.width == 1 && home.map.is_none());
        if is_one && own.place.levels == Levels::Full {
            at_once(self.levels, own.stored, self.task.precision)
        } else {
            1
        }
    }

    /// Numbers of a field on the levels of the thread, from an even one on, as one computes with them.
    pub fn load_levels(
        &mut self,
        array: ArrayId,
        field: FieldId,
        element: ValueId,
        first: i32,
        wish: &str,
    ) -> Vec<ValueId> {
        let (stored, count) = (self.field(field).stored, self.levels_at_once(field));
        let index = self.index_at(field, (Some(element), first), 0);
        let run = self.own.load_run(array, index, count as u8);
        let run = self.own.name(&format!("{wish}_levels"), run);
        let lanes = self.lanes_of(run, count);
        lanes.into_iter().map(|lane| self.scalar().read(&mut self.own, lane, stored)).collect()
    }

    /// Writes numbers to a field at an element, on each level of the thread: all of them, as they are stored.
    pub fn store_levels(&mut self, array: ArrayId, field: FieldId, element: ValueId, values: &[Vec<ValueId>]) {
        let count = self.levels_at_once(field);
        for (number, some) in values.chunks(count).enumerate() {
            let level = (number * count) as i32;
            if let [own] = some {
                self.store_all(array, field, (element, level), own);
                continue;
            }
            let run = self.side_by_side(&some.concat());
            let index = self.index_at(field, (Some(element), level), 0);
            self.own.store(array, index, run);
        }
    }

    /// Writes numbers to a field at an element, on the level that is so far away: all of them, as they are stored.
    pub fn store_all(&mut self, array: ArrayId, field: FieldId, (element, level): (ValueId, i32), values: &[ValueId]) {
        let (stored, precision) = (self.field(field).stored, self.task.precision);
        let (place, together) = self.place(field, (Some(element), level));
        let at_once = at_once(together, stored, precision);
        for (n, some) in values.chunks(at_once).enumerate() {
            let index = self.part_index(field, place, together, n * at_once);
            let value = self.side_by_side(some);
            self.own.store(array, index, value);
        }
    }
}

/// What a part of something is called that has so many.
pub fn part_name(wish: &str, width: usize, part: usize) -> String {
    if width == 1 { wish.to_owned() } else { format!("{wish}_{part}") }
}
