//! What arguments of kernels mean to who launches them.

use crate::ir::mesh::Zones;
use crate::ir::{FieldId, MapId, ParamId, Path, SetId};

/// What an argument means to who launches the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// What the kernel's documentation says: of kernels that no plan makes.
    Documented,
    /// A field that is read: the value of the first cell.
    Input(FieldId),
    /// A field that is written: the value of the first cell.
    Output(FieldId),
    /// A parameter of the stencil.
    Param(ParamId),
    /// A table of the storage, by its number.
    Table(usize),
    /// Where a checked kernel writes what went wrong: 0 before the launch.
    Report,
    /// Of a checked kernel, the column of each place.
    Columns,
    /// A size.
    Size(Size),
    /// What kernels over meshes alone take.
    Mesh(MeshData),
    /// What a kernel of many steps takes beside fields and parameters.
    Step(StepData),
}

impl Meaning {
    /// Whether it is an array of numbers that lead to others: a table of a storage or a mesh.
    pub fn is_table(&self) -> bool {
        match self {
            Meaning::Table(_) | Meaning::Columns => true,
            Meaning::Mesh(data) => match data {
                MeshData::Map(_) | MeshData::Table(..) | MeshData::Piece(_) | MeshData::Users(..) => true,
                MeshData::Size(_) | MeshData::Zone(..) | MeshData::Items | MeshData::First => false,
                MeshData::Leaves(_) | MeshData::Between(_) => false,
            },
            Meaning::Documented | Meaning::Input(_) | Meaning::Output(_) | Meaning::Param(_) => false,
            Meaning::Report | Meaning::Size(_) | Meaning::Step(_) => false,
        }
    }
}

/// A size that a kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The first column along an axis of threads.
    ColumnFirst(usize),
    /// One past the last column along an axis of threads.
    ColumnEnd(usize),
    /// The first level computed.
    LevelFirst,
    /// One past the last level computed.
    LevelEnd,
    /// The number of levels.
    Levels,
    /// A size of the storage, by its number.
    Own(usize),
}

/// What a kernel of many steps takes beside fields and parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepData {
    /// How many steps are computed.
    Count,
    /// An array as that of an output, for what some of the steps write.
    Spare(FieldId),
    /// A number that is 0 before the first launch, for the blocks of a launch to wait for each other.
    Barrier,
    /// So many numbers that are 0 before the first launch, for blocks of a launch to wait for one another.
    Flags(usize),
}

/// What kernels over meshes take, besides fields and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshData {
    /// The table of a map.
    Map(MapId),
    /// How many elements a set has.
    Size(SetId),
    /// The first element of a zone of a set, by the zone's number.
    Zone(SetId, u8),
    /// How many items there are.
    Items,
    /// The first of the items of a launch.
    First,
    /// A table of a group of increments.
    Table(usize, MeshTable),
    /// A table of the pieces that blocks of threads work on.
    Piece(PieceTable),
    /// For each element and level a number that is to be folded, in the user's order: into which field.
    Leaves(FieldId),
    /// The user's numbers of the elements of a set; if zones are named, counted among their elements alone.
    Users(SetId, Option<Zones>),
    /// What elements add, between two steps: which group.
    Between(usize),
}

/// A table of numbers, made of a mesh, for a group of increments. Each target has a row with a place for each element and
/// path that leads to it, in the order in which they are added; -1 is a place that nobody takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MeshTable {
    /// An element's number times the number of paths, plus the number of the path.
    Entries,
    /// Of two paths: where the other leads, x, if the target stands at the first; -2 - x if it stands at the second.
    Others,
    /// Where a path leads from the element.
    Leaf(Path),
    /// The different elements to which paths lead from any of a target's elements, as they come: so many for each target.
    Dictionary(Vec<Path>),
    /// Which of these they are: words of so many places, each the number of an entry for each path.
    Codes(Vec<Path>),
    /// The targets to which any element leads.
    Targets,
    /// Where the row of each target begins, and at last where all end; then rows have no empty places.
    Offsets,
    /// The elements, colour after colour.
    Coloured,
}

/// A table of the pieces of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PieceTable {
    /// Of each piece four numbers: of a tile where its rows of targets begin and end, and where its elements do; of a block
    /// where its elements begin and end, and where its targets do. Blocks stand colour after colour.
    Ranges,
    /// The elements of each piece; those of a block by their colours.
    Elements,
    /// The rows of a map, in the order of [`PieceTable::Elements`].
    Rows(MapId),
    /// Of tiles, as [`MeshTable::Entries`], but with the places of elements among those of the tile instead of their numbers. In
    /// rows of places, two numbers of 16 bits in one of 32, the first below, and [`crate::mesh::NOWHERE`] where nobody stands.
    Entries,
    /// Of blocks, the targets of each.
    Targets,
    /// Of blocks, for each element its colour, and for each path its target's place among those of the block;
    /// [`crate::mesh::NOWHERE`] in a hole. Numbers of 16 bits.
    Places,
}
