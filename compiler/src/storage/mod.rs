//! Storages: which address a neighbour has. Device expressions and host packing stand side by side, one file a storage.
//!
//! A storage arranges the columns of a grid in a plane; levels follow each other at a distance of one plane, so that a
//! cell's index is its column's place plus `k * plane`. Access strategies decide where and when the expressions below are
//! computed.

mod compressed;
mod regular;

use crate::grid::{Grid, Region};
use crate::ir::Offset;
use crate::names::Names;
use std::ops::Range;

/// Every storage, in the order that lists show.
pub const STORAGES: &[&dyn Storage] = &[&regular::Regular, &compressed::Compressed];

/// Bytes to which the first computed value of a row, or of the inner cells, is aligned: a memory transaction of a warp.
pub const ALIGNMENT: usize = 128;

/// A way to store a grid.
pub trait Storage: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// The sizes that its expressions use, beside `plane`, and what they mean.
    fn sizes(&self) -> &'static [(&'static str, &'static str)];

    /// The tables that its expressions use, and what they mean.
    fn tables(&self) -> &'static [(&'static str, &'static str)];

    /// How a thread finds its column.
    fn coordinates(&self, names: &mut Names, block: [u32; 3]) -> Coordinates;

    /// The place in the plane of a neighbour, from nothing but the thread's coordinates.
    fn column_of(&self, names: &mut Names, neighbour: Neighbour) -> String;

    /// What must be looked up once before [`Storage::offset_of`].
    fn prepare(&self, names: &mut Names) -> Vec<String>;

    /// The distance of a neighbour's place from the thread's own.
    fn offset_of(&self, names: &mut Names, neighbour: Neighbour) -> String;

    /// How `grid` is laid out for a stencil that computes `region` and reads the columns at `neighbours`. Elements are of
    /// `smallest` bytes or more.
    fn layout(&self, grid: Grid, region: &Region, neighbours: &[Offset], smallest: usize) -> Layout;

    /// Names of the first and the end of the columns along the x (and y) of threads.
    fn bounds(&self) -> &'static [(&'static str, &'static str)];

    /// Values of [`Storage::bounds`].
    fn columns(&self, region: &Region, layout: &Layout) -> Vec<Range<usize>>;
}

/// A horizontal neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    /// Where it is, where steps commute.
    pub offset: Offset,
    /// Its number among the neighbours of the stencil, which is its row in a table.
    pub relation: usize,
}

/// How a thread finds its column: C++ texts.
#[derive(Clone, Debug)]
pub struct Coordinates {
    /// Declarations.
    pub lines: Vec<String>,
    /// True for a thread that has nothing to compute.
    pub outside: String,
    /// The place of its column in the plane.
    pub column: String,
    /// True for the thread of the first column.
    pub first: String,
}

/// A laid out grid. Counts are in elements.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Where the columns are.
    pub columns: Columns,
    /// Distance from a level to the next.
    pub plane: usize,
    /// The first computed place of the plane, which is aligned.
    pub lead: usize,
    /// Values of [`Storage::sizes`].
    pub sizes: Vec<usize>,
    /// Values of [`Storage::tables`].
    pub tables: Vec<Vec<i32>>,
}

/// Places of columns in the plane.
#[derive(Clone, Debug)]
pub enum Columns {
    /// Row after row, `row` apart.
    Rows {
        /// Distance from a row to the next.
        row: usize,
    },
    /// Any order: the place of column `j * ni + i`.
    Places(Vec<u32>),
}

impl Layout {
    /// The place of a column in the plane.
    pub fn place(&self, grid: Grid, i: usize, j: usize) -> usize {
        match &self.columns {
            Columns::Rows { row } => j * row + i,
            Columns::Places(places) => places[j * grid.ni + i] as usize,
        }
    }

    /// Elements before the first one, so that the first computed place is aligned.
    pub fn origin(&self, bytes: usize) -> usize {
        let unit = ALIGNMENT / bytes;
        (unit - self.lead % unit) % unit
    }
}

/// The smallest multiple of the alignment that holds `count` elements of `smallest` bytes or more.
fn padded(count: usize, smallest: usize) -> usize {
    count.next_multiple_of(ALIGNMENT / smallest)
}

/// The storage called `name`.
///
/// # Errors
/// There is none: a message with a guess.
pub fn find(name: &str) -> Result<&'static dyn Storage, String> {
    crate::registry::find(STORAGES, |storage| storage.name(), name, "storage")
}
