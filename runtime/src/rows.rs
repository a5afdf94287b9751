//! Rows of a grid: which of them a process has, of a program that several compute, and where these stand in the arrays of all.

use crate::array::Data;
use std::ops::Range;
use stencilc_compiler::grid::{Form, Grid};
use stencilc_compiler::ir::Place;
use stencilc_compiler::program::rows_of_part;

/// One of some parts, of each of which a process has the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub number: usize,
    /// Of how many.
    pub parts: usize,
}

impl Part {
    /// Its rows, of so many along j.
    pub fn rows(self, nj: usize) -> Range<usize> {
        rows_of_part(nj, self.parts, self.number)
    }

    /// The one after it; after the last comes the first.
    pub fn next(self) -> Self {
        Self { number: (self.number + 1) % self.parts, ..self }
    }
}

/// Some rows of a field, in the user's order: level after level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slab {
    ni: usize,
    nj: usize,
    levels: usize,
    rows: Range<usize>,
}

impl Slab {
    /// Some rows of a field at a place; nothing of one that has none.
    pub fn new(grid: Grid, place: Place, rows: Range<usize>) -> Option<Self> {
        let has_rows = place.horizontal && grid.form == Form::Rows;
        has_rows.then(|| Self { ni: grid.ni, nj: grid.nj, levels: place.levels.count(grid.nk), rows })
    }

    /// Which rows.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// How many numbers they have.
    pub fn len(&self) -> usize {
        self.levels * self.level()
    }

    /// Whether they have none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many numbers they have on a level.
    pub fn level(&self) -> usize {
        self.rows.len() * self.ni
    }

    /// How many numbers the whole field has.
    pub fn whole(&self) -> usize {
        self.levels * self.nj * self.ni
    }

    /// Where the first number of a level stands in the whole field.
    pub fn first_of(&self, level: usize) -> usize {
        (level * self.nj + self.rows.start) * self.ni
    }

    /// Where a number of these rows stands in the whole field.
    pub fn index(&self, number: usize) -> usize {
        match self.level() {
            0 => 0,
            level => self.first_of(number / level) + number % level,
        }
    }

    /// The same rows of the whole field's numbers.
    pub fn of(&self, whole: &Data) -> Data {
        let mut own = Data::fresh(whole.element(), self.len());
        let runs = (0..self.levels).map(|level| [self.first_of(level), level * self.level()]);
        whole.copy_runs(&mut own, self.level(), runs);
        own
    }
}
