//! The numbers that fields are given: from arrays in memory, from files, or drawn; all of them, or the rows of a part.

use super::hash_of;
use crate::array::{Array, Data, Element};
use crate::drawing;
use crate::error::Result;
use crate::given::{self, Cast, Given};
use crate::npy::Stored;
use crate::rows::{Part, Slab};
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Field;

/// What fields are given.
pub(super) struct Fields {
    arrays: BTreeMap<String, Array>,
    files: BTreeMap<String, Stored>,
    /// The part whose rows are wanted, and nothing else; all if there is none.
    pub part: Option<Part>,
    /// Hashes of the rows of the next part.
    pub seen: BTreeMap<String, [u8; 32]>,
}

/// The numbers of a field.
pub(super) struct Numbers {
    pub data: Data,
    pub is_drawn: bool,
}

impl Fields {
    /// What arrays and files hold; of no part, files are read at once.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn new(
        mut arrays: BTreeMap<String, Array>,
        mut files: BTreeMap<String, Stored>,
        part: Option<Part>,
    ) -> Result<Self> {
        if part.is_none() {
            for (name, file) in std::mem::take(&mut files) {
                arrays.insert(name, file.whole()?);
            }
        }
        Ok(Self { arrays, files, part, seen: BTreeMap::new() })
    }

    /// The fields that are given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().chain(self.files.keys()).map(String::as_str)
    }

    /// Whether a field is given.
    pub fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name) || self.files.contains_key(name)
    }

    /// Those that are in memory.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// The lengths of the axes of what a field is given.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.arrays.get(name).map(|own| &own.shape[..]).or_else(|| self.files.get(name).map(Stored::shape))
    }

    /// The rows that are wanted of a field; nothing where that is all of it. Whole numbers may say which levels are read, and whether these are
    /// there is only known where all are looked at: of them [`Problem::keep_rows`](super::Problem::keep_rows) keeps the rows afterwards.
    fn slab(&self, field: &Field, element: Element, grid: Grid, part: impl Fn(Part) -> Part) -> Option<Slab> {
        let says_levels = element == Element::I32 && field.role.is_read();
        let part = self.part.filter(|_| !says_levels).map(part)?;
        Slab::new(grid, field.place, part.rows(grid.nj))
    }

    /// How many numbers are wanted of a field.
    pub fn len(&self, field: &Field, element: Element, grid: Grid) -> usize {
        let slab = self.slab(field, element, grid, |part| part);
        slab.map_or_else(|| grid.shape(field.place).iter().product(), |own| own.len())
    }

    /// Numbers for a field that are drawn by some name.
    ///
    /// # Errors
    /// Its type has no number in its range.
    pub fn drawn(&self, field: &Field, element: Element, grid: Grid, seed: u64, name: &str) -> Result<Data> {
        self.drawn_of(field, element, grid, self.slab(field, element, grid, |part| part), seed, name)
    }

    fn drawn_of(
        &self,
        field: &Field,
        element: Element,
        grid: Grid,
        slab: Option<Slab>,
        seed: u64,
        name: &str,
    ) -> Result<Data> {
        match slab {
            Some(own) => drawing::draw_some(field.range, element, (own.len(), &|at| own.index(at)), seed, name),
            None => drawing::draw(field.range, element, grid.shape(field.place).iter().product(), seed, name),
        }
    }

    /// The numbers of a field that is read.
    ///
    /// # Errors
    /// They do not fit its type, or cannot be read or drawn.
    pub fn read(&mut self, field: &Field, element: Element, grid: Grid, seed: u64, cast: Cast) -> Result<Numbers> {
        let own = self.slab(field, element, grid, |part| part);
        let next = self.slab(field, element, grid, Part::next);
        let about = Given { field: &field.name, holder: "the array" };
        let (array, file) = (self.arrays.remove(&field.name), self.files.remove(&field.name));
        let is_drawn = array.is_none() && file.is_none();
        let of_file = |file: &Stored, slab: &Option<Slab>| {
            let (array, first) = match slab {
                Some(own) => (file.rows(own.rows())?, own.rows().start),
                None => (file.whole()?, 0),
            };
            given::rows(array, first, about, element, cast)
        };
        // What the next part cannot have of it, that one tells by itself.
        let seen = |data: Result<Data>| data.map_or([0; 32], |data| hash_of(&data));
        let (data, seen) = match (array, &file, &own, &next) {
            (Some(array), _, Some(own), Some(next)) => {
                let whole = given::array(array, about, element, cast)?;
                (own.of(&whole), Some(seen(Ok(next.of(&whole)))))
            }
            (Some(array), ..) => (given::array(array, about, element, cast)?, None),
            (None, Some(file), _, _) => {
                let data = of_file(file, &own)?;
                (data, next.as_ref().map(|_| seen(of_file(file, &next))))
            }
            (None, None, _, _) => {
                let drawn = |slab| self.drawn_of(field, element, grid, slab, seed, &field.name);
                let data = drawn(own.clone())?;
                (data, next.clone().map(|next| seen(drawn(Some(next)))))
            }
        };
        self.seen.extend(seen.map(|seen| (field.name.clone(), seen)));
        Ok(Numbers { data, is_drawn })
    }
}
