//! The numbers of a target that are added to, while they are in registers.

use super::group::Add;
use super::writer::Writer;
use super::writer::numbers::part_name;
use super::writer::values::level_name;
use crate::ir::{FieldId, Kind, Path};
use crate::kernel::{ArrayId, Function, Type, ValueId, VariableId};

/// Sums.
pub struct Sums {
    /// By field, level of the thread, and part; and whether they are as they are stored, and not as one computes with them.
    sums: Vec<(FieldId, Vec<Vec<VariableId>>, bool)>,
}

impl Sums {
    /// Those of a target. They start from 0 where fields do, or else from what is there. What is there in more bits than sums are
    /// computed in stays so where nothing is added to it, so it is held as it is stored.
    pub fn new(writer: &mut Writer, fields: &[FieldId], target: ValueId, in_place: bool, as_stored: bool) -> Self {
        let mut all = Vec::new();
        for &field in fields {
            let (name, width) = (&writer.field(field).name, writer.width(field));
            let (stored, precision) = (writer.field(field).stored, writer.task.precision);
            let from_zero = (writer.task.from_zero)(field) && !in_place;
            let as_stored = as_stored || !from_zero && stored.bytes(precision) > precision.bytes();
            let mut levels = Vec::new();
            for level in 0..writer.levels as i32 {
                let starts = if from_zero {
                    let kind = if as_stored { writer.stored(field) } else { writer.computing(stored.kind()) };
                    let zero = match kind.is_real() {
                        true => writer.own.real(0.0, kind),
                        false => writer.own.literal(0, kind),
                    };
                    vec![zero; width]
                } else {
                    let array = writer.output(field);
                    writer.load(array, field, (Some(target), level), &format!("{name}_before"), as_stored)
                };
                let wish = format!("{name}_sum{}", level_name(level));
                let sums = starts.into_iter().enumerate();
                let named = |(part, start)| writer.own.variable(&part_name(&wish, width, part), start);
                levels.push(sums.map(named).collect());
            }
            all.push((field, levels, as_stored));
        }
        Self { sums: all }
    }

    /// Adds a value to one of them on a level of the thread, as one computes with it.
    pub fn add(&self, writer: &mut Writer, add: &Add, level: usize, value: ValueId) {
        let Some((_, sums, as_stored)) = self.sums.iter().find(|(own, ..)| *own == add.field) else { return };
        let Some(&sum) = sums.get(level).and_then(|parts| parts.get(add.part as usize)) else { return };
        let before = writer.own.get(sum);
        let added = if *as_stored { added_stored } else { added };
        let total = added(writer, add.field, before, value);
        writer.own.assign(sum, total);
    }

    /// Says that they are what is read of the element at hand.
    pub fn remember(&self, writer: &mut Writer) {
        for (field, sums, as_stored) in &self.sums {
            for (level, parts) in sums.iter().enumerate() {
                for (part, &sum) in parts.iter().enumerate() {
                    let (mut sum, stored, scalar) = (writer.own.get(sum), writer.field(*field).stored, writer.scalar());
                    if *as_stored {
                        sum = scalar.read(&mut writer.own, sum, stored);
                    }
                    writer.remember((*field, Path::levels_only(level as i32), part as u32), sum);
                }
            }
        }
    }

    /// Writes those that are wanted to their target.
    pub fn store(&self, writer: &mut Writer, target: ValueId, is_wanted: &dyn Fn(FieldId) -> bool) {
        for (field, sums, as_stored) in self.sums.iter().filter(|(field, ..)| is_wanted(*field)) {
            let (stored, scalar) = (writer.field(*field).stored, writer.scalar());
            let mut value = |sum: VariableId| {
                let value = writer.own.get(sum);
                if *as_stored { value } else { scalar.stored(&mut writer.own, value, stored) }
            };
            let levels: Vec<Vec<ValueId>> =
                sums.iter().map(|parts| parts.iter().map(|&sum| value(sum)).collect()).collect();
            let array = writer.output(*field);
            writer.store_levels(array, *field, target, &levels);
        }
    }
}

/// A sum of a field's number and one value more, as it would be read after it was stored. Whole numbers wrap.
fn added(writer: &mut Writer, field: FieldId, sum: ValueId, value: ValueId) -> ValueId {
    let (stored, scalar) = (writer.field(field).stored, writer.scalar());
    let total = match stored.kind() {
        Kind::Int => writer.own.call(Function::WrappingAdd, vec![sum, value], Type::I32),
        Kind::Real | Kind::Bool => writer.own.add(sum, value),
    };
    let total = scalar.stored(&mut writer.own, total, stored);
    scalar.read(&mut writer.own, total, stored)
}

/// The same as it is stored, of a sum that is as it is stored.
fn added_stored(writer: &mut Writer, field: FieldId, sum: ValueId, value: ValueId) -> ValueId {
    let (stored, scalar) = (writer.field(field).stored, writer.scalar());
    let sum = scalar.read(&mut writer.own, sum, stored);
    let total = added(writer, field, sum, value);
    scalar.stored(&mut writer.own, total, stored)
}

/// Adds a value to an element of an array that holds a field's numbers.
pub fn add_to(writer: &mut Writer, field: FieldId, array: ArrayId, index: ValueId, value: ValueId) {
    let before = writer.own.load(array, index);
    let total = added_stored(writer, field, before, value);
    writer.own.store(array, index, total);
}
