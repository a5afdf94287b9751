//! The numbers of a target that are added to, while they are in registers.

use super::writer::Writer;
use super::writer::numbers::part_name;
use crate::ir::{FieldId, Kind, Stored};
use crate::kernel::build::Making;
use crate::kernel::{ArrayId, Function, Type, ValueId, VariableId};

/// Sums, by field and part.
pub struct Sums(Vec<(FieldId, Vec<VariableId>)>);

impl Sums {
    /// Those of a target, as one computes with them. They start from 0 where fields do, or else from what is there.
    pub fn new(writer: &mut Writer, fields: &[FieldId], target: ValueId, in_place: bool) -> Self {
        Self::begun(writer, fields, target, &|_| true, in_place, false)
    }

    /// The same of a chain, which gives some of them alone to anybody.
    pub fn of_chain(
        writer: &mut Writer,
        fields: &[FieldId],
        target: ValueId,
        is_seen: &dyn Fn(FieldId) -> bool,
    ) -> Self {
        Self::begun(writer, fields, target, is_seen, false, false)
    }

    /// The same as they are stored.
    pub fn stored(writer: &mut Writer, fields: &[FieldId], target: ValueId, in_place: bool) -> Self {
        Self::begun(writer, fields, target, &|_| true, in_place, true)
    }

    fn begun(
        writer: &mut Writer,
        fields: &[FieldId],
        target: ValueId,
        is_seen: &dyn Fn(FieldId) -> bool,
        in_place: bool,
        as_stored: bool,
    ) -> Self {
        let mut all = Vec::new();
        for &field in fields {
            let own = &writer.task.stencil.stencil.fields[field];
            let (name, width) = (own.name.clone(), writer.width(field));
            let kind = if as_stored { writer.stored(field) } else { writer.computing(own.stored.kind()) };
            let starts = if (writer.task.from_zero)(field) && !in_place {
                let zero = match kind.is_real() {
                    true => writer.own.real(0.0, kind),
                    false => writer.own.literal(0, kind),
                };
                vec![zero; width]
            } else {
                // What nobody gets is read, and never written.
                let array = writer.added_to(field, is_seen(field));
                let (wish, spot) = (format!("{name}_before"), (Some(target), 0));
                match as_stored {
                    true => writer.load_stored(array, field, spot, &wish),
                    false => writer.load(array, field, spot, &wish),
                }
            };
            let wish = format!("{name}_sum");
            let sums = starts.into_iter().enumerate();
            let sums = sums.map(|(part, start)| writer.own.variable(&part_name(&wish, width, part), start));
            all.push((field, sums.collect()));
        }
        Self(all)
    }

    /// A sum.
    fn of(&self, field: FieldId, part: u32) -> Option<VariableId> {
        let sums = self.0.iter().find(|(own, _)| *own == field).map(|(_, sums)| sums)?;
        sums.get(part as usize).copied()
    }

    /// Adds a value to one of them, as one computes with it.
    pub fn add(&self, writer: &mut Writer, field: FieldId, part: u32, value: ValueId) {
        let Some(sum) = self.of(field, part) else { return };
        let before = writer.own.get(sum);
        let total = added(writer, field, before, value);
        writer.own.assign(sum, total);
    }

    /// The same where they are as they are stored.
    pub fn add_stored(&self, writer: &mut Writer, field: FieldId, part: u32, value: ValueId) {
        let Some(sum) = self.of(field, part) else { return };
        let before = writer.own.get(sum);
        let total = added_stored(writer, field, before, value);
        writer.own.assign(sum, total);
    }

    /// Says that they are what is read of the element at hand.
    pub fn remember(&self, writer: &mut Writer) {
        for (field, sums) in &self.0 {
            for (part, &sum) in sums.iter().enumerate() {
                let sum = writer.own.get(sum);
                writer.remember((*field, Default::default(), part as u32), sum);
            }
        }
    }

    /// Writes them to their target as they are, stored.
    pub fn store_stored(&self, writer: &mut Writer, target: ValueId) {
        for (field, sums) in &self.0 {
            let values: Vec<ValueId> = sums.iter().map(|&sum| writer.own.get(sum)).collect();
            let array = writer.output(*field);
            writer.store_all(array, *field, target, &values);
        }
    }

    /// Writes those that are wanted to their target. What has more bits than sums are computed in stays as it was where nothing is added to it.
    pub fn store(
        &self,
        writer: &mut Writer,
        target: ValueId,
        is_wanted: &dyn Fn(FieldId) -> bool,
        is_led_to: Option<ValueId>,
    ) {
        for (field, sums) in self.0.iter().filter(|(field, _)| is_wanted(*field)) {
            let (stored, precision) = (stored_of(writer, *field), writer.task.precision);
            let is_wide = stored.bytes(precision) > precision.bytes() && !(writer.task.from_zero)(*field);
            writer.when_if(is_led_to.filter(|_| is_wide), |writer| {
                let scalar = writer.scalar();
                let stored = |writer: &mut Writer, &sum: &VariableId| {
                    let sum = writer.own.get(sum);
                    scalar.stored(&mut writer.own, sum, stored)
                };
                let values: Vec<ValueId> = sums.iter().map(|sum| stored(writer, sum)).collect();
                let array = writer.output(*field);
                writer.store_all(array, *field, target, &values);
            });
        }
    }
}

fn stored_of(writer: &Writer, field: FieldId) -> Stored {
    writer.task.stencil.stencil.fields[field].stored
}

/// A sum of a field's number and one value more, as it would be read after it was stored. Whole numbers wrap.
fn added(writer: &mut Writer, field: FieldId, sum: ValueId, value: ValueId) -> ValueId {
    let (stored, scalar) = (stored_of(writer, field), writer.scalar());
    let total = match stored.kind() {
        Kind::Int => writer.own.call(Function::WrappingAdd, vec![sum, value], Type::I32),
        Kind::Real | Kind::Bool => writer.own.add(sum, value),
    };
    let total = scalar.stored(&mut writer.own, total, stored);
    scalar.read(&mut writer.own, total, stored)
}

/// The same as it is stored, of a sum that is as it is stored.
pub fn added_stored(writer: &mut Writer, field: FieldId, sum: ValueId, value: ValueId) -> ValueId {
    let (stored, scalar) = (stored_of(writer, field), writer.scalar());
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
