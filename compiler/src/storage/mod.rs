//! Storages: which address a neighbour has. What kernels compute and how the host packs stand side by side, one file a storage.
//!
//! A storage arranges the columns of a grid in a plane; levels follow each other at a distance of one plane, so that a
//! cell's index is its column's place plus `k * plane`. Access strategies decide where and when the values below are
//! computed. What else can be chosen is independent of the storage: which neighbours tables hold ([`neighbors`]), the order
//! of the columns ([`order`]), and how several fields lie in memory ([`fields`]).

mod compressed;
pub mod fields;
pub mod layouts;
pub mod neighbors;
pub mod order;
mod regular;
pub mod sharing;
pub mod statistics;
pub mod tables;
mod uncompressed;

use crate::grid::{Grid, Region, Topology};
use crate::ir::{Offset, Path};
use crate::kernel::build::Builder;
use crate::kernel::{ArrayId, Type, ValueId};
use neighbors::Hop;
use order::Order;
use sharing::Sharing;
use std::ops::Range;

/// Every storage, in the order that lists show.
pub const STORAGES: &[&dyn Storage] = &[&regular::Regular, &uncompressed::Uncompressed, &compressed::Compressed];

/// Bytes to which the first computed value of a row, or of the inner cells, is aligned: a memory transaction of a warp.
pub const ALIGNMENT: usize = 128;

/// A way to store a grid.
pub trait Storage: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// The sizes that its addresses are made of, beside `plane`, and what they mean.
    fn sizes(&self) -> &'static [(&'static str, &'static str)];

    /// The tables that its addresses are looked up in, and what they mean. Without tables, neighbours' addresses are arithmetic, and
    /// columns stand in rows.
    fn tables(&self) -> &'static [(&'static str, &'static str)];

    /// The table that can be in constant memory, by its number.
    fn constant(&self) -> Option<usize> {
        None
    }

    /// How a thread finds its column.
    fn coordinates(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Coordinates;

    /// The place in the plane of a neighbour, from nothing but the thread's coordinates: the end of a chain of hops.
    fn place_of(&self, own: &mut Builder, sizes: &Sizes, from: &Coordinates, chain: &[&Hop]) -> ValueId;

    /// The distance that a hop goes, from the place where it starts.
    fn distance(&self, own: &mut Builder, sizes: &Sizes, hop: &Hop, from: &Origin) -> ValueId;

    /// The index of a value on a level of a column, by the column's place.
    fn index(&self, own: &mut Builder, sizes: &Sizes, place: ValueId, level: ValueId) -> ValueId {
        let level = own.convert(level, sizes.index);
        let above = own.mul(level, sizes.plane);
        own.add(place, above)
    }

    /// The distance between the indices of two levels that are so many apart.
    fn levels_apart(&self, own: &mut Builder, sizes: &Sizes, levels: u32) -> ValueId {
        let levels = own.literal(i64::from(levels), sizes.index);
        own.mul(levels, sizes.plane)
    }

    /// How a grid is laid out.
    fn layout(&self, request: &LayoutRequest) -> Layout;

    /// Names of the first and the end of the columns along the x (and y) of threads.
    fn bounds(&self) -> &'static [(&'static str, &'static str)];

    /// Values of [`Storage::bounds`].
    fn columns(&self, region: &Region, layout: &Layout) -> Vec<Range<usize>>;
}

/// The numbers and tables that addresses are made of, in a kernel.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// The first of the columns to compute and one past the last, along each axis of [`Storage::bounds`].
    pub bounds: Vec<[ValueId; 2]>,
    /// The first level to compute and one past the last.
    pub levels: [ValueId; 2],
    /// How many levels there are.
    pub level_count: ValueId,
    /// The distance from a level to the next.
    pub plane: ValueId,
    /// Those of [`Storage::sizes`].
    pub own: Vec<ValueId>,
    /// Those of [`Storage::tables`], and after them the list of columns that are [`Placement::Listed`].
    pub tables: Vec<ArrayId>,
    /// The type of indices.
    pub index: Type,
}

/// Where a hop starts.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The place in the plane.
    pub place: ValueId,
    /// The path from the cell.
    pub path: Path,
}

/// How threads are spread over the computed columns.
#[derive(Clone, Debug)]
pub struct Threads {
    /// Threads of a block.
    pub block: [u32; 3],
    /// How the columns stand in the plane.
    pub placement: Placement,
    /// The columns of a thread, where they stand in rows.
    pub tile: Tile,
}

/// The columns of a thread, where they stand in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// How many along i and j.
    pub columns: [u32; 2],
    /// Whether those that are computed are whole tiles, along i and j.
    pub whole: [bool; 2],
}

impl Tile {
    /// The ways to the tile's columns from its first.
    pub fn paths(&self) -> Vec<Path> {
        let [i, j] = self.columns.map(|columns| columns as i32);
        let columns = (0..j).flat_map(|j| (0..i).map(move |i| Offset { i, j, k: 0 }));
        columns.map(Path::from_offset).collect()
    }
}

/// How a thread finds its column.
#[derive(Clone, Debug)]
pub struct Coordinates {
    /// Its coordinates: along i and j, or the cell.
    pub axes: Vec<ValueId>,
    /// True for a thread that has nothing to compute.
    pub outside: ValueId,
    /// The place of its column in the plane.
    pub column: ValueId,
    /// True for the thread of the first column.
    pub first: ValueId,
}

/// What a layout is made for.
#[derive(Clone, Copy)]
pub struct LayoutRequest<'a> {
    /// Which columns are neighbours.
    pub topology: Topology<'a>,
    /// What is computed.
    pub region: &'a Region,
    /// The stencils that have the same layout, this one among them; none if it has one of its own.
    pub sharing: Option<&'a Sharing>,
    /// Of each relation in the tables the path that it stands for.
    pub relations: &'a [Path],
    /// Whether hops start at inner columns alone, or at others too.
    pub inner_only: bool,
    /// The order of the inner columns.
    pub order: &'static dyn Order,
    /// Columns that follow each other along i in orders that are curves.
    pub run_width: u32,
    /// Whether runs along i that are shorter stand behind all others, which are then aligned.
    pub short_last: bool,
    /// Bytes of the smallest elements.
    pub smallest: usize,
}

/// A laid out grid. Counts are in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the columns are.
    pub columns: Columns,
    /// Distance from a level to the next.
    pub plane: usize,
    /// A computed place of the plane, which is aligned: the first, or, of a layout that is shared, the first that is
    /// computed by each stencil of the longest chain.
    pub lead: usize,
    /// How the computed columns stand in the plane.
    pub placement: Placement,
    /// Values of [`Storage::sizes`].
    pub sizes: Vec<usize>,
    /// Values of [`Storage::tables`]; of columns that are listed the list after them.
    pub tables: Vec<Vec<i32>>,
}

/// How the computed columns stand in the plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Together, from [`Layout::lead`] on.
    #[default]
    Aligned,
    /// Together, from some place on.
    From(usize),
    /// Anywhere: a table lists their places.
    Listed,
}

/// The table of places for columns that are [`Placement::Listed`], and what it means.
pub const LIST: (&str, &str) = ("cells", "the places of the cells to compute");

/// Places of columns in the plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Row after row, `row` apart.
    Rows {
        /// Distance from a row to the next.
        row: usize,
    },
    /// Any order: the place of each column, by its number in the user's order.
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
