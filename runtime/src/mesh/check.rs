//! What holds of every mesh, whatever it comes from: names are one each, tables and fields are as long as their sets, and
//! maps lead to elements that there are.

use super::{Field, HOLE, Map, Mesh};
use crate::array::Data;
use crate::error::{Error, Result};
use std::collections::HashSet;

/// The most elements of a set, so that their numbers, and twice these, are 32-bit ones.
pub const MOST: usize = 1 << 30;

impl Mesh {
    /// Whether the mesh is one.
    ///
    /// # Errors
    /// A name is none or is there twice, a set is too large, a table or a field has not the length that its set gives it, a
    /// map leads to an element that there is not, or a position is no number.
    pub fn check(&self) -> Result<()> {
        self.check_numbers()?;
        self.check_names()?;
        if let Some(set) = self.sets.iter().find(|set| set.size > MOST) {
            return Err(Error::input(format!(
                "set `{}` has {} elements: at most 2^30 are possible",
                set.name, set.size
            )));
        }
        self.maps.iter().try_for_each(|map| self.check_map(map))?;
        self.fields.iter().try_for_each(|field| self.check_field(field))
    }

    /// Whether maps and fields are of sets, and of maps, that there are.
    fn check_numbers(&self) -> Result<()> {
        let [sets, maps] = [self.sets.len(), self.maps.len()];
        let refused = |what: &str, name: &str, kind: &str, number: usize, count: usize| {
            let name = name.escape_debug();
            Err(Error::input(format!("the {what} `{name}` is of {kind} {number}, and the mesh has {count}")))
        };
        for map in &self.maps {
            if let Some(&set) = [map.from, map.to].iter().find(|&&set| set >= sets) {
                return refused("map", &map.name, "set", set, sets);
            }
        }
        for field in &self.fields {
            if field.set >= sets {
                return refused("field", &field.name, "set", field.set, sets);
            }
            if let Some(map) = field.map.filter(|&map| map >= maps) {
                return refused("field", &field.name, "map", map, maps);
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        let sets = self.sets.iter().map(|set| ("set", set.name.as_str(), set.name.clone()));
        let maps = self.maps.iter().map(|map| ("map", map.name.as_str(), self.full_name(map)));
        let fields = self.fields.iter().map(|field| ("field", field.name.as_str(), self.field_place(field)));
        let mut seen = HashSet::new();
        for (what, name, full) in sets.chain(maps).chain(fields) {
            if !is_name(name) {
                return Err(Error::input(format!("`{}` is no name of a {what}", name.escape_debug()))
                    .help("a name has letters, digits and `_`, and begins with no digit"));
            }
            if !seen.insert((what, full.clone())) {
                return Err(Error::input(format!("there are two {what}s called `{full}`"))
                    .help("call one of them something else"));
            }
        }
        Ok(())
    }

    fn check_map(&self, map: &Map) -> Result<()> {
        let (name, from, to) = (self.full_name(map), &self.sets[map.from], &self.sets[map.to]);
        let expected = from.size.checked_mul(map.arity);
        if map.arity == 0 || expected != Some(map.table.len()) {
            return Err(Error::input(format!(
                "`{name}` has {} numbers, and {} elements of `{}` with {} each need {}",
                map.table.len(),
                from.size,
                from.name,
                map.arity,
                expected.map_or("too many".to_owned(), |count| count.to_string())
            )));
        }
        let is_there = |&number: &i32| number == HOLE || usize::try_from(number).is_ok_and(|number| number < to.size);
        match map.table.iter().position(|number| !is_there(number)) {
            None => Ok(()),
            Some(at) => Err(self.leads_nowhere(map, at, i64::from(map.table[at]))),
        }
    }

    /// The error of a map whose number at `at` of its table, `number`, is no element's.
    pub(super) fn leads_nowhere(&self, map: &Map, at: usize, number: i64) -> Error {
        let (name, from, to) = (self.full_name(map), &self.sets[map.from].name, &self.sets[map.to]);
        let place =
            format!("`{name}` leads from {from} {}, slot {}, to {} {number}", at / map.arity, at % map.arity, to.name);
        let size = to.size as i64;
        let error = Error::input(match to.size {
            0 => format!("{place}, and there is none"),
            1 => format!("{place}, and there is only {} 0", to.name),
            _ => format!("{place}, and {} are numbered from 0 to {}", plural(&to.name), size - 1),
        });
        let counts_from_one = number == size && !map.table.contains(&0);
        match number {
            _ if counts_from_one => {
                error.help("do its numbers count from 1? numbers of elements count from 0: subtract 1")
            }
            ..0 => error.help("-1 says that there is no element"),
            _ if size > 0 && number < size.saturating_mul(2) => error.help(format!(
                "does it lead to another set, or are there more {} than the file says?",
                plural(&to.name)
            )),
            _ => error.help("does it lead to another set?"),
        }
    }

    fn check_field(&self, field: &Field) -> Result<()> {
        let set = &self.sets[field.set];
        let slots = field.map.map_or(1, |map| self.maps[map].arity);
        let expected = set.size.checked_mul(slots).and_then(|count| count.checked_mul(field.parts));
        let is_own = field.map.is_none_or(|map| self.maps[map].from == field.set);
        if field.parts == 0 || !is_own || expected != Some(field.data.len()) {
            let place = field.map.map_or(set.name.clone(), |map| self.full_name(&self.maps[map]));
            return Err(Error::input(format!(
                "field `{}` on `{place}` has {} numbers, and needs {}",
                field.name,
                field.data.len(),
                expected.map_or("too many".to_owned(), |count| count.to_string())
            )));
        }
        field.data.check_truths(&format!("field `{}`", field.name))?;
        if !self.is_position(field) {
            return Ok(());
        }
        let finite = |at: usize| field.data.get(at).is_finite();
        match (0..field.data.len()).find(|&at| !finite(at)) {
            None => Ok(()),
            Some(at) => Err(Error::input(format!(
                "the position `{}` of {} {} is no number: part {} is {}",
                field.name,
                set.name,
                at / field.parts,
                at % field.parts,
                field.data.get(at)
            ))
            .help("every element has a place; was a missing value written as NaN?")),
        }
    }

    /// Whether a field says where the elements of its set are: it is called `x` and has two or three parts.
    pub fn is_position(&self, field: &Field) -> bool {
        let is_real = matches!(field.data, Data::F32(_) | Data::F64(_));
        field.name == "x" && is_real && field.map.is_none() && matches!(field.parts, 2 | 3)
    }
}

/// Whether the language has such names.
pub(super) fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What several elements of a set are called.
pub(super) fn plural(set: &str) -> String {
    match set.strip_suffix("ex") {
        Some(stem) => format!("{stem}ices"),
        None if set.ends_with('s') => set.to_owned(),
        None => format!("{set}s"),
    }
}
