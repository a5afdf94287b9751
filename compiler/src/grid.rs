//! The extents of a grid and the part of it that a stencil computes.

use crate::ir::{Levels, Place};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// A grid of ni x nj columns of nk levels, halo included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grid {
    /// Cells along i.
    pub ni: usize,
    /// Cells along j.
    pub nj: usize,
    /// Levels.
    pub nk: usize,
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
}

impl Grid {
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
            shape.extend([self.nj, self.ni]);
        }
        shape
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.ni, self.nj, self.nk)
    }
}

impl Region {
    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.i.len() * self.j.len() * self.k.len()
    }

    /// The cells of a field on `place` that are computed, by their number in the user's order.
    pub fn numbers(&self, grid: Grid, place: Place) -> impl Iterator<Item = usize> + use<> {
        let levels = if place.levels == Levels::None { 0..1 } else { self.k.clone() };
        let (rows, columns) = if place.horizontal { (self.j.clone(), self.i.clone()) } else { (0..1, 0..1) };
        let (row, level) = if place.horizontal { (grid.ni, grid.columns()) } else { (1, 1) };
        levels.flat_map(move |k| {
            let columns = columns.clone();
            rows.clone().flat_map(move |j| columns.clone().map(move |i| k * level + j * row + i))
        })
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { i, j, k } = self;
        write!(f, "i {}..{}, j {}..{}, k {}..{}", i.start, i.end, j.start, j.end, k.start, k.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_users_order() {
        let (grid, region) = (Grid { ni: 5, nj: 4, nk: 3 }, Region { i: 3..5, j: 1..3, k: 1..3 });
        let numbers = |horizontal, levels| region.numbers(grid, Place { horizontal, levels }).collect::<Vec<_>>();
        assert_eq!(numbers(true, Levels::Full), [28, 29, 33, 34, 48, 49, 53, 54]);
        assert_eq!(numbers(true, Levels::None), [8, 9, 13, 14]);
        assert_eq!(numbers(false, Levels::Interfaces), [1, 2]);
        assert_eq!(numbers(false, Levels::None), [0]);
    }
}
