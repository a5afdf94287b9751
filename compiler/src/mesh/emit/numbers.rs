//! Numbers of fields: where they lie in arrays, and how they are loaded and stored.

use super::Emitter;
use crate::cuda::expression::read_as;
use crate::ir::{FieldId, Levels};
use crate::mesh::What;
use crate::mesh::layout::at_once;
use crate::plan::stored_type;

impl Emitter<'_> {
    /// The index of a field's number, apart from its part: what stands before it in brackets.
    fn place(&mut self, field: FieldId, element: &str, shift: i32) -> (String, usize) {
        let own = &self.subject.stencil.stencil.fields[field];
        let level = self.level(shift, own.place.levels);
        let Some(home) = own.place.home else { return (level.unwrap_or_else(|| "0".to_owned()), 1) };
        let together = self.choices.layout.together(home, own.stored, self.subject.precision);
        let groups = home.width as usize / together;
        let text = match level {
            None => element.to_owned(),
            Some(level) => {
                let n = self.size(home.set);
                let level = if level.contains(' ') { format!("({level})") } else { level };
                let rows = if groups == 1 { level } else { format!("{level} * {groups}") };
                format!("({rows}) * {n} + {element}")
            }
        };
        (text, together)
    }

    /// The text of a field's number `part` at an element, in the array `array`.
    pub fn number_at(&mut self, array: &str, field: FieldId, element: &str, shift: i32, part: u32) -> String {
        let (place, together) = self.place(field, element, shift);
        let index = self.part_index(field, &place, together, part as usize);
        format!("{array}[{index}]")
    }

    /// The index of a field's number `part` at an element.
    pub fn index_at(&mut self, field: FieldId, element: &str, part: usize) -> String {
        let (place, together) = self.place(field, element, 0);
        self.part_index(field, &place, together, part)
    }

    fn part_index(&mut self, field: FieldId, place: &str, together: usize, part: usize) -> String {
        let own = &self.subject.stencil.stencil.fields[field];
        let (group, part) = (part / together, part % together);
        let Some(home) = own.place.home else { return place.to_owned() };
        let mut text = place.to_owned();
        if group > 0 {
            let n = self.size(home.set);
            text = if group == 1 { format!("{text} + {n}") } else { format!("{text} + {group} * {n}") };
        }
        if together > 1 {
            let simple = !text.contains(' ');
            text = if simple { format!("{together} * {text}") } else { format!("{together} * ({text})") };
        }
        if part > 0 { format!("{text} + {part}") } else { text }
    }

    /// The level `shift` away, kept inside, where there are several.
    fn level(&mut self, shift: i32, levels: Levels) -> Option<String> {
        let last = match levels {
            Levels::None => return None,
            Levels::Full => self.subject.levels as i32 - 1,
            Levels::Interfaces => self.subject.levels as i32,
        };
        let computed = self.subject.computed;
        let k = &self.k;
        // What lies beyond the levels is looked at by nobody.
        Some(match shift {
            0 => k.clone(),
            1.. if computed.end as i32 - 1 + shift > last => format!("min({k} + {shift}, {last})"),
            1.. => format!("{k} + {shift}"),
            _ if (computed.start as i32) < -shift => format!("max({k} - {}, 0)", -shift),
            _ => format!("{k} - {}", -shift),
        })
    }

    /// The pointer to a field that is read.
    pub fn input(&mut self, field: FieldId) -> String {
        let own = &self.subject.stencil.stencil.fields[field];
        let c_type = format!("const {}*", stored_type(own.stored, self.subject.precision));
        let name = own.name.clone();
        self.parameter(&name, &c_type, What::Input(field))
    }

    /// The pointer to a field that is written.
    pub fn output(&mut self, field: FieldId) -> String {
        let own = &self.subject.stencil.stencil.fields[field];
        let c_type = format!("{}*", stored_type(own.stored, self.subject.precision));
        let name = own.name.clone();
        let wish = if own.role == crate::ir::Role::InOut { format!("{name}_new") } else { name };
        self.parameter(&wish, &c_type, What::Output(field))
    }

    /// Numbers of a field at an element, as one computes with them: their names.
    pub fn load(&mut self, array: &str, field: FieldId, element: &str, shift: i32, wish: &str) -> Vec<String> {
        let stored = self.subject.stencil.stencil.fields[field].stored;
        let (c_type, precision) = (self.c_type(stored.kind()), self.subject.precision);
        self.load_as(array, (field, element, shift), wish, c_type, &|text| read_as(text, stored, precision))
    }

    /// Numbers of a field at an element, as they are stored: their names.
    pub fn load_stored(&mut self, array: &str, field: FieldId, element: &str, shift: i32, wish: &str) -> Vec<String> {
        let stored = self.subject.stencil.stencil.fields[field].stored;
        let c_type = stored_type(stored, self.subject.precision);
        self.load_as(array, (field, element, shift), wish, c_type, &|text| text)
    }

    fn load_as(
        &mut self,
        array: &str,
        (field, element, shift): (FieldId, &str, i32),
        wish: &str,
        c_type: &str,
        read: &dyn Fn(String) -> String,
    ) -> Vec<String> {
        let own = &self.subject.stencil.stencil.fields[field];
        let (stored, precision) = (own.stored, self.subject.precision);
        let width = own.place.home.map_or(1, |home| home.width as usize);
        let (place, together) = self.place(field, element, shift);
        let at_once = at_once(together, stored, precision);
        let mut names = Vec::new();
        for first in (0..width).step_by(at_once) {
            let index = self.part_index(field, &place, together, first);
            if at_once == 1 {
                let name = self.names.fresh(&part_name(wish, width, first));
                let text = read(format!("{array}[{index}]"));
                self.line(format!("const {c_type} {name} = {text};"));
                names.push(name);
                continue;
            }
            let vector = format!("{}{at_once}", stored_type(stored, precision));
            let whole = self.names.fresh(&format!("{wish}_{}", if at_once == 2 { "pair" } else { "four" }));
            self.line(format!("const {vector} {whole} = *reinterpret_cast<const {vector}*>({array} + {index});"));
            for (n, component) in ["x", "y", "z", "w"].iter().enumerate().take(at_once) {
                let text = read(format!("{whole}.{component}"));
                let name = self.names.fresh(&part_name(wish, width, first + n));
                self.line(format!("const {c_type} {name} = {text};"));
                names.push(name);
            }
        }
        names
    }

    /// Writes numbers to a field at an element: all of them, as they are stored.
    pub fn store_all(&mut self, array: &str, field: FieldId, element: &str, texts: &[String]) {
        let own = &self.subject.stencil.stencil.fields[field];
        let (stored, precision) = (own.stored, self.subject.precision);
        let (place, together) = self.place(field, element, 0);
        let at_once = at_once(together, stored, precision);
        for (n, some) in texts.chunks(at_once).enumerate() {
            let index = self.part_index(field, &place, together, n * at_once);
            if at_once == 1 {
                self.line(format!("{array}[{index}] = {};", some[0]));
                continue;
            }
            let vector = format!("{}{at_once}", stored_type(stored, precision));
            self.line(format!("*reinterpret_cast<{vector}*>({array} + {index}) = make_{vector}({});", some.join(", ")));
        }
    }
}

fn part_name(wish: &str, width: usize, part: usize) -> String {
    if width == 1 { wish.to_owned() } else { format!("{wish}_{part}") }
}
