//! The numbers of a target that are added to, while they are in registers.

use super::emit::Emitter;
use crate::cuda::expression::{read_as, stored_as};
use crate::ir::{FieldId, Kind, Precision, Stored};
use crate::plan::stored_type;

/// Sums: names, by field and part.
pub struct Sums(Vec<(FieldId, Vec<String>)>);

impl Sums {
    /// Those of a target, as one computes with them. They start from 0 where fields do, or else from what is there.
    pub fn new(emitter: &mut Emitter, fields: &[FieldId], target: &str, in_place: bool) -> Self {
        Self::begun(emitter, fields, target, in_place, false)
    }

    /// The same as they are stored.
    pub fn stored(emitter: &mut Emitter, fields: &[FieldId], target: &str, in_place: bool) -> Self {
        Self::begun(emitter, fields, target, in_place, true)
    }

    fn begun(emitter: &mut Emitter, fields: &[FieldId], target: &str, in_place: bool, as_stored: bool) -> Self {
        let mut all = Vec::new();
        for &field in fields {
            let own = &emitter.subject.stencil.stencil.fields[field];
            let (name, stored) = (own.name.clone(), own.stored);
            let width = own.place.home.map_or(1, |home| home.width as usize);
            let c_type =
                if as_stored { stored_type(stored, emitter.subject.precision) } else { emitter.c_type(stored.kind()) };
            let starts = if (emitter.subject.from_zero)(field) && !in_place {
                let zero = match c_type {
                    "int" => "0",
                    "float" => "0.0f",
                    _ => "0.0",
                };
                vec![zero.to_owned(); width]
            } else {
                let (array, wish) = (emitter.output(field), format!("{name}_before"));
                match as_stored {
                    true => emitter.load_stored(&array, field, target, 0, &wish),
                    false => emitter.load(&array, field, target, 0, &wish),
                }
            };
            let mut names = Vec::new();
            for (part, start) in starts.into_iter().enumerate() {
                let wish = if width == 1 { format!("{name}_sum") } else { format!("{name}_sum_{part}") };
                let sum = emitter.names.fresh(&wish);
                emitter.line(format!("{c_type} {sum} = {start};"));
                names.push(sum);
            }
            all.push((field, names));
        }
        Self(all)
    }

    /// The name of a sum.
    pub fn of(&self, field: FieldId, part: u32) -> String {
        let names = self.0.iter().find(|(own, _)| *own == field).and_then(|(_, names)| names.get(part as usize));
        names.cloned().unwrap_or_default()
    }

    /// All of them, by field.
    pub fn iter(&self) -> impl Iterator<Item = (FieldId, &[String])> {
        self.0.iter().map(|(field, names)| (*field, names.as_slice()))
    }

    /// Adds a value to one of them.
    pub fn add(&self, emitter: &mut Emitter, field: FieldId, part: u32, value: &str) {
        let (sum, stored) = (self.of(field, part), emitter.subject.stencil.stencil.fields[field].stored);
        let total = added(&sum, value, stored, emitter.subject.precision);
        emitter.line(format!("{sum} = {total};"));
    }

    /// Says that they are what is read of the element at hand.
    pub fn remember(&self, emitter: &mut Emitter) {
        for (field, names) in self.iter() {
            for (part, name) in names.iter().enumerate() {
                emitter.remember((field, Default::default(), part as u32), name);
            }
        }
    }

    /// Writes those that are wanted to their target. What has more bits than sums are computed in stays as it was where nothing is added to it.
    pub fn store(&self, emitter: &mut Emitter, target: &str, is_wanted: &dyn Fn(FieldId) -> bool, is_led_to: &str) {
        for (field, names) in self.iter().filter(|(field, _)| is_wanted(*field)) {
            let (stored, precision) = (emitter.subject.stencil.stencil.fields[field].stored, emitter.subject.precision);
            let texts: Vec<String> = names.iter().map(|name| stored_as(name.clone(), stored, precision)).collect();
            let array = emitter.output(field);
            let is_wide = stored.bytes(precision) > precision.bytes() && !(emitter.subject.from_zero)(field);
            if is_wide {
                emitter.open(&format!("if ({is_led_to})"));
            }
            emitter.store_all(&array, field, target, &texts);
            if is_wide {
                emitter.close();
            }
        }
    }
}

/// A sum and one value more, as it would be read after it was stored. Whole numbers wrap.
pub fn added(sum: &str, value: &str, stored: Stored, precision: Precision) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let value = if value.chars().all(is_name) { value.to_owned() } else { format!("({value})") };
    let text = match stored.kind() {
        Kind::Int => format!("int(unsigned({sum}) + unsigned({value}))"),
        Kind::Real | Kind::Bool => format!("{sum} + {value}"),
    };
    let as_stored = stored_as(text.clone(), stored, precision);
    if as_stored == text { text } else { read_as(as_stored, stored, precision) }
}
