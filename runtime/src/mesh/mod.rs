//! Meshes: sets of elements, maps between them, and the fields that came with them.
//!
//! A mesh here is data. What a stencil says of a mesh is `stencilc_compiler::ir::Mesh`; the two meet by the names of sets
//! and maps.

pub mod blocks;
mod bound;
mod cells;
mod check;
pub mod colour;
mod file;
mod gmsh;
pub mod inverse;
pub mod lists;
pub mod made;
mod named;
mod npz;
mod op2;
pub mod order;
mod picture;
pub mod program;
#[cfg(test)]
mod sample;
mod sides;
pub mod slots;
pub mod statistics;
#[cfg(test)]
mod tests;
pub mod tiles;
mod vtu;
mod zone;

pub use bound::Bound;
pub use check::MOST;
pub use file::{load, read, save, save_fields, will_save, write};
pub use picture::{View, picture};
pub use vtu::{check_vtu, has_place_in_vtu, write_vtu};
pub use zone::ZONE;

use crate::array::Data;

/// Where a map leads nowhere.
pub const HOLE: i32 = -1;

/// A mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Where it comes from, for messages: a file, or how it was made.
    pub origin: String,
    /// Its sets.
    pub sets: Vec<Set>,
    /// Its maps.
    pub maps: Vec<Map>,
    /// What else is known of its elements: coordinates, areas, marks.
    pub fields: Vec<Field>,
}

/// A set of elements, which have the numbers from 0 to `size` - 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its name: `cell`.
    pub name: String,
    /// How many elements there are.
    pub size: usize,
}

/// For each element of a set, some elements of another (or of the same).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its name, without that of the set: `nodes`.
    pub name: String,
    /// The number of the set whose elements it is of.
    pub from: usize,
    /// The number of the set where it leads.
    pub to: usize,
    /// How many elements it leads to, from each: its slots.
    pub arity: usize,
    /// `from.size` rows of `arity` numbers of elements of `to`, or [`HOLE`].
    pub table: Vec<i32>,
}

/// Numbers of each element of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name: `x`.
    pub name: String,
    /// The number of its set.
    pub set: usize,
    /// Where it has a number for each element and each slot of a map: the map's number.
    pub map: Option<usize>,
    /// How many numbers there are each time: 2 for points of the plane. 1 is a plain number.
    pub parts: usize,
    /// Element after element, slot after slot, part after part.
    pub data: Data,
}

impl Mesh {
    /// The number of the set called `name`.
    pub fn set_named(&self, name: &str) -> Option<usize> {
        self.sets.iter().position(|set| set.name == name)
    }

    /// The number of the map `set.name`.
    pub fn map_named(&self, set: usize, name: &str) -> Option<usize> {
        self.maps.iter().position(|map| map.from == set && map.name == name)
    }

    /// The first field called `name`; others may have that name on other sets or maps.
    pub fn field_named(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field called `name` on a set, or on the slots of one of its maps.
    pub fn field_on(&self, name: &str, set: usize, map: Option<usize>) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name && field.set == set && field.map == map)
    }

    /// A map's name with that of its set: `edge.nodes`.
    pub fn full_name(&self, map: &Map) -> String {
        format!("{}.{}", self.sets[map.from].name, map.name)
    }
}

impl Mesh {
    /// A field with what it is on: `x on node`, `orientation on cell.edges`.
    pub fn field_place(&self, field: &Field) -> String {
        let place = field.map.map_or(self.sets[field.set].name.clone(), |map| self.full_name(&self.maps[map]));
        format!("{} on {place}", field.name)
    }

    /// Adds a set; gives its number.
    fn add_set(&mut self, name: &str, size: usize) -> usize {
        self.sets.push(Set { name: name.to_owned(), size });
        self.sets.len() - 1
    }

    /// Adds a map from a set to another; gives its number.
    fn add_map(&mut self, from: usize, name: &str, to: usize, arity: usize, table: Vec<i32>) -> usize {
        self.maps.push(Map { name: name.to_owned(), from, to, arity, table });
        self.maps.len() - 1
    }

    /// Adds a field with `parts` numbers for each element of a set.
    fn add_field(&mut self, name: &str, set: usize, parts: usize, data: Data) {
        self.fields.push(Field { name: name.to_owned(), set, map: None, parts, data });
    }

    /// Adds a field with a number for each element and slot of a map.
    fn add_slot_field(&mut self, name: &str, map: usize, data: Data) {
        let set = self.maps[map].from;
        self.fields.push(Field { name: name.to_owned(), set, map: Some(map), parts: 1, data });
    }
}

impl Map {
    /// The slots of an element.
    pub fn row(&self, element: usize) -> &[i32] {
        &self.table[element * self.arity..(element + 1) * self.arity]
    }

    /// How many slots lead nowhere.
    pub fn holes(&self) -> usize {
        self.table.iter().filter(|&&to| to == HOLE).count()
    }
}
