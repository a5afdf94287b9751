//! Storages: which address a neighbour has. What kernels compute and how the host packs stand side by side, one file a storage.
//!
//! A storage arranges the columns of a grid: each has a place, and a cell's index is its column's place times one stride plus
//! its level times another ([`Storage::strides`]). Access strategies decide where and when the values below are computed. What
//! else can be chosen is independent of the storage: which axis is fastest ([`fastest`]), which neighbours tables hold
//! ([`neighbors`]), the order of the columns ([`order`]), and how several fields lie in memory ([`fields`]).

mod compressed;
pub mod fastest;
pub mod fields;
pub mod layouts;
pub mod neighbors;
pub mod order;
pub mod patches;
mod regular;
pub mod sharing;
pub mod statistics;
pub mod tables;
mod uncompressed;

use crate::access::LevelsPerThread;
use crate::grid::{Grid, Region, Topology};
use crate::ir::{Offset, Path};
use crate::kernel::build::{Builder, Computing, Term};
use crate::kernel::{ArrayId, Axis, Coordinate, Type, ValueId};
use neighbors::Hop;
use order::Order;
use sharing::Sharing;
use std::ops::Range;

/// Every storage, in the order that lists show.
pub const STORAGES: &[&dyn Storage] = &[&regular::Regular, &uncompressed::Uncompressed, &compressed::Compressed];

/// Bytes to which the first computed value of a row, or of the inner cells, is aligned: a memory transaction of a warp.
pub const ALIGNMENT: usize = 128;

/// The size that levels are apart where they follow each other plane by plane.
const PLANE: (&str, &str) = ("plane", "elements from a level to the next");

/// A way to store a grid: in any order, with tables, unless a storage says otherwise.
pub trait Storage: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// The sizes that its addresses are made of, and what they mean.
    fn sizes(&self) -> &[(&'static str, &'static str)];

    /// The strides of places and of levels: the first of the sizes is how far levels are apart, unless a storage says otherwise.
    fn strides(&self) -> Strides {
        Strides { place: Stride::One, level: Stride::Size(0) }
    }

    /// The tables that its addresses are looked up in, and what they mean. Without tables, neighbours' addresses are arithmetic, and
    /// columns stand in rows.
    fn tables(&self) -> &'static [(&'static str, &'static str)];

    /// Whether addresses are looked up.
    fn has_tables(&self) -> bool {
        !self.tables().is_empty()
    }

    /// The table that can be in constant memory, by its number.
    fn constant(&self) -> Option<usize> {
        None
    }

    /// How a thread finds its column.
    fn coordinates(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Coordinates {
        tables::coordinates(own, sizes, threads)
    }

    /// The columns of a thread that computes a row of them.
    fn row(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Row {
        tables::row(own, sizes, threads)
    }

    /// How that thread finds one of them, by its coordinate.
    fn column_of_row(
        &self,
        own: &mut Builder,
        sizes: &Sizes,
        threads: &Threads,
        _row: &Row,
        at: ValueId,
    ) -> Coordinates {
        tables::column_of_row(own, sizes, threads, at)
    }

    /// The place in the plane of a neighbour, from nothing but the thread's coordinates: the end of a chain of hops.
    fn place_of(&self, own: &mut Builder, sizes: &Sizes, from: &Coordinates, chain: &[&Hop]) -> ValueId;

    /// The distance that a hop goes, from the place where it starts.
    fn distance(&self, own: &mut Builder, sizes: &Sizes, hop: &Hop, from: &Origin) -> ValueId;

    /// The index of a value on a level of a column, by the column's place.
    fn index(&self, own: &mut Builder, sizes: &Sizes, place: ValueId, level: ValueId) -> ValueId {
        let strides = self.strides();
        let [along, above] = [strides.place, strides.level].map(|stride| sizes.stride(own, stride));
        own.term(place.times(along).plus(level.to(sizes.index).times(above)))
    }

    /// The distance between the indices of two levels that are so many apart.
    fn levels_apart(&self, own: &mut Builder, sizes: &Sizes, levels: u32) -> ValueId {
        let stride = sizes.stride(own, self.strides().level);
        own.term(levels.times(stride))
    }

    /// How a grid is laid out.
    fn layout(&self, request: &LayoutRequest) -> Layout;

    /// Where columns are, for the header of a launcher: in a grid that is known, whose places a function of a name tells, or in any.
    fn arrangement(&self, known: Option<(Grid, &Layout)>, place: &str) -> Vec<String> {
        tables::arrangement(known, place)
    }

    /// Names of the first and the end of the columns, along each axis of columns.
    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        &[("cell_first", "cell_end")]
    }

    /// How threads with so many levels go along each axis of columns.
    fn columns_along(&self, _levels: LevelsPerThread) -> &'static [Along] {
        &[Along::XY]
    }

    /// How threads with so many levels go along levels.
    fn levels_along(&self, _levels: LevelsPerThread) -> Along {
        Along::Z
    }

    /// Values of [`Storage::bounds`].
    fn columns(&self, region: &Region, layout: &Layout) -> Vec<Range<usize>> {
        tables::columns(region, layout)
    }
}

/// The columns of a thread that computes a row of them.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the coordinate that counts them is called.
    pub name: &'static str,
    /// The coordinate of the first, and that behind the last.
    pub range: [ValueId; 2],
    /// The other coordinates of all of them.
    pub others: Vec<ValueId>,
    /// True for a thread that has no row.
    pub outside: Option<ValueId>,
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
    /// Those of [`Storage::sizes`].
    pub own: Vec<ValueId>,
    /// Those of [`Storage::tables`], and after them the list of columns that are [`Placement::Listed`].
    pub tables: Vec<ArrayId>,
    /// The type of indices.
    pub index: Type,
}

impl Sizes {
    /// A stride as a value.
    pub fn stride(&self, own: &mut Builder, stride: Stride) -> ValueId {
        match stride {
            Stride::One => own.literal(1, self.index),
            Stride::Size(number) => self.own[number],
        }
    }
}

/// The distances between the indices of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strides {
    /// From a place to the next.
    pub place: Stride,
    /// From a level to the next.
    pub level: Stride,
}

/// A distance between indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stride {
    /// One element.
    One,
    /// As many as one of [`Storage::sizes`] says, by its number.
    Size(usize),
}

/// How threads go along something: along an axis of blocks, and within a block along axes of threads, the fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// The axis of blocks.
    pub blocks: Axis,
    /// The axes of threads.
    pub threads: &'static [Axis],
}

impl Along {
    /// Along the first axis.
    pub const X: Along = Along { blocks: Axis::X, threads: &[Axis::X] };
    /// Along the second.
    pub const Y: Along = Along { blocks: Axis::Y, threads: &[Axis::Y] };
    /// Along the third.
    pub const Z: Along = Along { blocks: Axis::Z, threads: &[Axis::Z] };
    /// Along the first two of threads together, and the first of blocks.
    pub const XY: Along = Along { blocks: Axis::X, threads: &[Axis::X, Axis::Y] };

    /// How many threads of a block there are.
    pub fn threads_of(self, block: [u32; 3]) -> u32 {
        self.threads.iter().map(|&axis| block[axis as usize]).product()
    }

    /// The number of a thread among those of all blocks.
    pub fn number(self, own: &mut Builder, block: [u32; 3]) -> ValueId {
        let axes = self.threads.iter().rev().filter(|&&axis| block[axis as usize] > 1);
        let number = axes.fold(Coordinate::Block.along(self.blocks), |number, &axis| {
            number.times(block[axis as usize]).plus(Coordinate::Thread.along(axis))
        });
        own.term(number)
    }

    /// The share of a thread in the columns from `first` to `end`, which all threads of all blocks share evenly: where it begins, and
    /// where it ends. `name` is what their coordinate is called.
    pub fn share(self, own: &mut Builder, block: [u32; 3], [first, end]: [ValueId; 2], name: &str) -> [ValueId; 2] {
        let number = self.number(own, block);
        let share = own.name("share", number.to(Type::I32));
        let all = Coordinate::Blocks.along(self.blocks).times(self.threads_of(block));
        let shares = own.name("shares", all.to(Type::I32));
        let each = own.name("each", end.minus(first).over(shares));
        let rest = own.name("rest", end.minus(first).rem(shares));
        // Of 64 bits, since the product is large. A minimum would be shorter, and is what compilers do not get right (`docs/trust.md`).
        let before = |share: Term| {
            let share = own.term(share);
            let more = rest.to(Type::I64).times(share.to(Type::I64)).over(shares.to(Type::I64)).to(Type::I32);
            own.term(first.plus(share.times(each)).plus(more))
        };
        let [start, stop] = [share.into(), share.plus(1)].map(before);
        [("start", start), ("stop", stop)].map(|(what, bound)| own.name(&format!("{name}_{what}"), bound))
    }
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
    /// How they go along each axis of columns.
    pub along: &'static [Along],
    /// How the columns stand in the plane.
    pub placement: Placement,
    /// The columns of a thread, where they stand in rows.
    pub tile: Tile,
}

/// The cells of a thread: columns that stand in rows, or as if they did, and levels that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// How many columns along i and j.
    pub columns: [u32; 2],
    /// How many levels.
    pub levels: u32,
    /// Whether those that are computed are whole tiles, along i and j.
    pub whole: [bool; 2],
}

impl Tile {
    /// The ways to the tile's cells from its first.
    pub fn paths(&self) -> Vec<Path> {
        let [i, j] = self.columns.map(|columns| columns as i32);
        let columns = (0..j).flat_map(|j| (0..i).map(move |i| (i, j)));
        let cells = columns.flat_map(|(i, j)| (0..self.levels as i32).map(move |k| Offset { i, j, k }));
        cells.map(Path::from_offset).collect()
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
    /// How many levels the highest field has.
    pub levels: usize,
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
    /// The patches to be found; none if columns are computed one by one.
    pub patches: Option<&'a patches::Wanted>,
}

impl<'a> LayoutRequest<'a> {
    /// Of one level in the usual order, for a stencil of its own that looks nothing up and has elements of 8 bytes.
    pub fn new(topology: Topology<'a>, region: &'a Region) -> Self {
        Self {
            topology,
            levels: 1,
            region,
            sharing: None,
            relations: &[],
            inner_only: true,
            order: order::ORDERS[0],
            run_width: 32,
            short_last: false,
            smallest: 8,
            patches: None,
        }
    }

    /// How a storage lays the grid out.
    pub fn layout(&self, storage: &dyn Storage) -> Layout {
        let layout = storage.layout(self);
        match self.patches {
            Some(wanted) => patches::laid_out(layout, self, wanted),
            None => layout,
        }
    }
}

/// A laid out grid. Counts are in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Where the columns are.
    pub columns: Columns,
    /// How many places there are, padding included.
    pub places: usize,
    /// [`Storage::strides`].
    pub strides: Strides,
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

impl Layout {
    /// Arrays of somebody else's in rows: `row` columns from one to the next, and `outer` elements from a level to the next, or, where
    /// levels are fastest, from a column to the next. `lead` is the first column along i that is computed.
    pub fn of_arrays(strides: Strides, row: usize, outer: usize, nj: usize, lead: usize) -> Self {
        Self {
            columns: Columns::Rows { row },
            places: row.saturating_mul(nj),
            strides,
            lead,
            placement: Placement::Aligned,
            sizes: vec![outer, row],
            tables: Vec::new(),
        }
    }
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
    /// Anywhere: a table has a row for each [patch](patches) of them, and for each lone one.
    Patches {
        /// How many rows the table has.
        rows: usize,
        /// How many of them are lone columns.
        lone: usize,
    },
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

    /// How many elements a stride is.
    pub fn stride(&self, stride: Stride) -> usize {
        match stride {
            Stride::One => 1,
            Stride::Size(number) => self.sizes[number],
        }
    }

    /// The index of a value on a level of the column at a place.
    pub fn index(&self, place: usize, level: usize) -> usize {
        place * self.stride(self.strides.place) + level * self.stride(self.strides.level)
    }

    /// Whether cells have the same indices in another layout.
    pub fn places_cells_like(&self, other: &Layout) -> bool {
        let strides = |layout: &Layout| [layout.strides.place, layout.strides.level].map(|own| layout.stride(own));
        self.columns == other.columns && strides(self) == strides(other)
    }

    /// Elements of an array with so many levels.
    pub fn elements(&self, levels: usize) -> usize {
        // More than fits is the most that fits: nobody makes such an array, and indices of 64 bits are chosen for it.
        let along = (self.places.max(1) - 1).saturating_mul(self.stride(self.strides.place));
        let above = (levels.max(1) - 1).saturating_mul(self.stride(self.strides.level));
        along.saturating_add(above).saturating_add(1)
    }

    /// Elements before the first one, so that the first computed place is aligned.
    pub fn origin(&self, bytes: usize) -> usize {
        let unit = ALIGNMENT / bytes;
        (unit - self.index(self.lead, 0) % unit) % unit
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
