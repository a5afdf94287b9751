//! How the cells of a picture are made pixels along an axis.

use super::scale::round_step;
use super::{LONG_SIDE, Picture, SHORT_SIDE, SIDE};
use std::ops::Range;

/// How the cells of one axis become pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    /// How many cells there are.
    pub(super) cells: usize,
    /// How many cells are averaged into one block.
    pub(super) block: usize,
    /// How many pixels a block takes.
    pub(super) magnification: usize,
}

impl Axis {
    /// The axes of a picture of `ni` by `nj` cells, neither of them 0.
    pub(super) fn pair(ni: usize, nj: usize) -> (Self, Self) {
        let longer = ni.max(nj);
        let block = longer.div_ceil(LONG_SIDE);
        let blocks = longer.div_ceil(block);
        let magnification = ((SIDE + blocks / 2) / blocks).max(1);
        let axis = |cells: usize| {
            // The short side is averaged less, and stretched if that does not do.
            let block = block.min((cells / SHORT_SIDE).max(1));
            Self { cells, block, magnification: magnification.max(SHORT_SIDE.div_ceil(cells.div_ceil(block))) }
        };
        (axis(ni), axis(nj))
    }

    /// How many blocks there are.
    pub(super) fn blocks(self) -> usize {
        self.cells.div_ceil(self.block)
    }

    /// Pixels from one end to the other.
    pub(super) fn pixels(self) -> usize {
        self.blocks() * self.magnification
    }

    /// The cells of a block.
    pub(super) fn cells_of(self, block: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(self.cells)
    }

    /// The cells that get a tick, about `wanted` of them.
    pub(super) fn ticks(self, wanted: usize) -> impl Iterator<Item = usize> {
        let last = self.cells - 1;
        let step = round_step((last as f64 / wanted.max(1) as f64).max(1.0)).unwrap_or(1.0);
        (0..=last).step_by(step as usize)
    }

    /// The pixel in the middle of a cell.
    pub(super) fn middle(self, cell: usize) -> usize {
        (2 * cell + 1) * self.magnification / (2 * self.block)
    }
}

/// The mean over a block of cells; not finite if one of them is not.
pub(super) fn mean(picture: &Picture<'_>, rows: Range<usize>, columns: Range<usize>) -> f64 {
    let count = (rows.len() * columns.len()) as f64;
    rows.flat_map(|j| &picture.values[j * picture.ni..][columns.clone()]).map(|value| value / count).sum()
}
