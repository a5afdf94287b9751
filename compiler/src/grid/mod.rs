//! Grids: their extents, which columns are neighbours, and the part that a stencil computes.

pub mod adjacency;

use crate::ir::program::GridAxis;
use crate::ir::{Levels, Path, Place};
pub use adjacency::Adjacency;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The extents of a grid: ni x nj columns of nk levels, halo included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grid {
    /// Columns along i; of a grid without rows, all of them.
    pub ni: usize,
    /// Columns along j; of a grid without rows, 1.
    pub nj: usize,
    /// Levels.
    pub nk: usize,
    /// How the columns stand.
    #[serde(default, skip_serializing_if = "Form::is_rows")]
    pub form: Form,
}

/// How the columns of a grid stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// In rows: the neighbours of a column follow from its coordinates.
    #[default]
    Rows,
    /// One after the other: an [`Adjacency`] says which are neighbours.
    Cells,
}

impl Form {
    fn is_rows(&self) -> bool {
        *self == Form::Rows
    }
}

/// Which columns are neighbours. A column goes by its number in the user's order.
#[derive(Clone, Copy, Debug)]
pub enum Topology<'a> {
    /// Columns in rows: horizontal steps commute.
    Rows {
        /// Columns along i.
        ni: usize,
        /// Columns along j.
        nj: usize,
    },
    /// Any: steps need not commute.
    Adjacent(&'a Adjacency),
}

impl Topology<'_> {
    /// How many columns there are.
    pub fn columns(&self) -> usize {
        match self {
            Topology::Rows { ni, nj } => ni * nj,
            Topology::Adjacent(adjacency) => adjacency.cells(),
        }
    }

    /// The column at the end of a path, if it is in the grid.
    pub fn walk(&self, column: usize, path: &Path) -> Option<usize> {
        match *self {
            Topology::Rows { ni, nj } => {
                let (offset, (i, j)) = (path.offset(), (column % ni, column / ni));
                let i = i.checked_add_signed(offset.i as isize).filter(|&i| i < ni)?;
                let j = j.checked_add_signed(offset.j as isize).filter(|&j| j < nj)?;
                Some(j * ni + i)
            }
            Topology::Adjacent(adjacency) => path.units().try_fold(column, |cell, step| adjacency.step(cell, step)),
        }
    }
}

/// The cells that a stencil computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// Along i.
    pub i: Range<usize>,
    /// Along j.
    pub j: Range<usize>,
    /// Along k.
    pub k: Range<usize>,
    /// Of a grid without rows the columns, in ascending order; `i` and `j` then span them all.
    #[serde(skip)]
    pub cells: Option<Arc<[u32]>>,
}

impl Grid {
    /// A grid of columns in rows.
    pub const fn rows(ni: usize, nj: usize, nk: usize) -> Self {
        Self { ni, nj, nk, form: Form::Rows }
    }

    /// A grid of columns that an [`Adjacency`] links.
    pub const fn cells(columns: usize, nk: usize) -> Self {
        Self { ni: columns, nj: 1, nk, form: Form::Cells }
    }

    /// How many cells there are, on all levels; of extents that nobody could have, the most that there can be.
    pub fn count(self) -> u64 {
        [self.ni, self.nj, self.nk].iter().fold(1, |count: u64, extent| count.saturating_mul(*extent as u64))
    }

    /// How many levels there are, where cells stand in no rows.
    pub fn levels_of_cells(self) -> Option<usize> {
        (self.form == Form::Cells).then_some(self.nk)
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.ni * self.nj
    }

    /// Lengths of a field's axes in the user's order, slowest first; a single number for a field without axes.
    pub fn shape(&self, place: Place) -> Vec<usize> {
        let mut shape = Vec::new();
        if place.levels != Levels::None {
            shape.push(place.levels.count(self.nk));
        }
        if place.horizontal {
            match self.form {
                Form::Rows => shape.extend([self.nj, self.ni]),
                Form::Cells => shape.push(self.ni),
            }
        }
        shape
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Rows => write!(f, "{}x{}x{}", self.ni, self.nj, self.nk),
            Form::Cells => write!(f, "{} cells x {}", self.ni, self.nk),
        }
    }
}

impl Region {
    /// Some of the columns that stand in rows.
    pub const fn rows(i: Range<usize>, j: Range<usize>, k: Range<usize>) -> Self {
        Self { i, j, k, cells: None }
    }

    /// The cells along an axis.
    pub fn along(&self, axis: GridAxis) -> &Range<usize> {
        match axis {
            GridAxis::I => &self.i,
            GridAxis::J => &self.j,
            GridAxis::K => &self.k,
        }
    }

    /// The same region with other cells along each axis.
    pub fn map(&self, mut along: impl FnMut(GridAxis, &Range<usize>) -> Range<usize>) -> Region {
        let [i, j, k] = GridAxis::ALL.map(|axis| along(axis, self.along(axis)));
        Region { i, j, k, cells: self.cells.clone() }
    }

    /// The cells that are also those of another region.
    pub fn common(&self, other: &Region) -> Region {
        let mut both = self.map(|axis, own| shared(own, other.along(axis)));
        if let (Some(own), Some(of)) = (&self.cells, &other.cells) {
            both.cells = Some(own.iter().copied().filter(|cell| of.binary_search(cell).is_ok()).collect());
        }
        both
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.cells.as_ref().map_or(self.i.len() * self.j.len(), |cells| cells.len())
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.columns() * self.k.len()
    }

    /// The columns, by their number in the user's order.
    pub fn column_numbers(&self, grid: Grid) -> Vec<u32> {
        match &self.cells {
            Some(cells) => cells.to_vec(),
            None => self.j.clone().flat_map(|j| self.i.clone().map(move |i| (j * grid.ni + i) as u32)).collect(),
        }
    }

    /// The cells of a field on `place` that are computed, by their number in the user's order.
    pub fn numbers(&self, grid: Grid, place: Place) -> impl Iterator<Item = usize> + use<> {
        let levels = if place.levels == Levels::None { 0..1 } else { self.k.clone() };
        let (columns, level) = match place.horizontal {
            true => (self.column_numbers(grid), grid.columns()),
            false => (vec![0], 1),
        };
        let columns = Arc::<[u32]>::from(columns);
        levels.flat_map(move |k| {
            let columns = Arc::clone(&columns);
            (0..columns.len()).map(move |at| k * level + columns[at] as usize)
        })
    }
}

/// What two ranges share.
pub(crate) fn shared(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { i, j, k, cells } = self;
        match cells {
            Some(cells) => write!(f, "{} of {} cells, k {}..{}", cells.len(), i.len(), k.start, k.end),
            None => write!(f, "i {}..{}, j {}..{}, k {}..{}", i.start, i.end, j.start, j.end, k.start, k.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_users_order() {
        let (grid, region) = (Grid::rows(5, 4, 3), Region::rows(3..5, 1..3, 1..3));
        let numbers =
            |horizontal, levels| region.numbers(grid, Place { horizontal, levels, home: None }).collect::<Vec<_>>();
        assert_eq!(numbers(true, Levels::Full), [28, 29, 33, 34, 48, 49, 53, 54]);
        assert_eq!(numbers(true, Levels::None), [8, 9, 13, 14]);
        assert_eq!(numbers(false, Levels::Interfaces), [1, 2]);
        assert_eq!(numbers(false, Levels::None), [0]);
    }
}
