//! Tiles: a block of threads owns consecutive targets. It computes what every element that leads to one of them adds, once, into
//! shared memory; then each target adds its own, in the order in which the user numbers the elements.
//!
//! Nothing races, and nothing is computed twice but at the rims of tiles: elements that lead into several are computed by each.

use super::{Additions, Strategy, signed};
use crate::diagnostic::Refusal;
use crate::ir::{Path, Relation};
use crate::kernel::build::Making;
use crate::kernel::{
    ArrayId, Axis, Binary, Coordinate, Meaning, MeshData, MeshTable, PieceTable, Step, Type, Unroll, ValueId,
};
use crate::mesh::gather::{ends_of, entry};
use crate::mesh::group::{Add, Group};
use crate::mesh::rows::{is_row, row};
use crate::mesh::shared::{Shared, bytes, fitting};
use crate::mesh::sums::Sums;
use crate::mesh::writer::Writer;
use crate::mesh::{Cut, Items, Kernel, MeshChoices, MeshTask, NOWHERE};

/// Blocks of targets compute the contributions of all elements that lead to them into shared memory, and gather them.
pub struct Tiled;

impl Strategy for Tiled {
    fn name(&self) -> &'static str {
        "tiled"
    }

    fn summary(&self) -> &'static str {
        "blocks of targets have what is added to them computed into shared memory, and gather it"
    }

    fn additions(&self) -> Additions {
        Additions::InOrder
    }

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(task, choices, group)?])
    }
}

/// The kernel of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ, or what is added to a single target does not fit into shared memory.
fn kernel(task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Kernel, Refusal> {
    group.check_order(task)?;
    let stencil = task.stencil;
    let degrees = task.degrees(group);
    let is_sparse = degrees.share < 0.5;
    let set_name = &stencil.mesh.sets[group.target].name;
    let columns = Columns::new(task, group);
    let of_tile = |targets: usize| {
        let largest = task.counts.largest(group, Cut::Tiles { targets, is_sparse })?;
        Some(columns.bytes(largest.elements))
    };
    let targets = fitting(choices.block as usize, &of_tile, Tiled.name())?;
    let cut = Cut::Tiles { targets, is_sparse };
    let elements = task.counts.largest(group, cut).map_or(0, |largest| largest.elements);

    let mut writer = Writer::new(task, choices, &format!("{}_tiled", stencil.stencil.name));
    let (arrays, shared) = columns.declared(&mut writer, elements);
    let own = Tile::find(&mut writer);
    writer.find_level();
    // Threads without a target of their own do as the last one does, but for the end.
    let target = writer.own.add(own.rows[0], own.thread);
    let target = writer.own.binary(Binary::Min, target, own.last_row);
    let (target, row_of) = if is_sparse {
        let table = MeshData::Table(group.number, MeshTable::Targets);
        let led_to = writer.table(&format!("{set_name}_led_to"), table);
        let item = writer.own.name("item", target);
        let target = writer.own.load(led_to, item);
        (writer.own.name(set_name, target), item)
    } else {
        let target = writer.own.name(set_name, target);
        (target, target)
    };
    let sums = Sums::stored(&mut writer, &group.fields(), target, is_sparse);
    let entries = writer.table("entries", MeshData::Piece(PieceTable::Entries));
    let in_rows = is_row(degrees);
    let here = if in_rows { row(&mut writer, entries, degrees.max.div_ceil(2), row_of) } else { entries };
    own.compute(&mut writer, &columns, &arrays);
    writer.own.barrier();
    if in_rows {
        let [zero, one, width, two, bits, nowhere] =
            [0, 1, degrees.max as i64, 2, 16, i64::from(NOWHERE)].map(|number| writer.own.int(number));
        writer.each("place", (zero, width, Step::By(one)), Unroll::Whole, |writer, place| {
            // Two stand in one number.
            let [word, half] = [Binary::Div, Binary::Rem].map(|own| writer.own.binary(own, place, two));
            let pair = writer.own.load(here, word);
            let by = writer.own.mul(bits, half);
            let [pair, by] = [pair, by].map(|bits| writer.own.convert(bits, Type::U32));
            let mask = writer.own.literal(i64::from(NOWHERE), Type::U32);
            let entry = writer.own.binary(Binary::ShiftRight, pair, by);
            let entry = writer.own.binary(Binary::BitAnd, entry, mask);
            let entry = writer.own.convert(entry, Type::I32);
            let entry = writer.own.name("entry_here", entry);
            let is_taken = writer.own.compare(Relation::Ne, entry, nowhere);
            writer.when(is_taken, |writer| columns.gather(writer, &arrays, &sums, entry));
        });
    } else {
        let offsets = writer.table("offsets", MeshData::Table(group.number, MeshTable::Offsets));
        let ([first, end], one) = (ends_of(&mut writer, offsets, row_of), writer.own.int(1));
        writer.each("place", (first, end, Step::By(one)), Unroll::Free, |writer, place| {
            let entry = writer.own.load(here, place);
            let entry = writer.own.name("entry_here", entry);
            columns.gather(writer, &arrays, &sums, entry);
        });
    }
    let count = writer.own.sub(own.rows[1], own.rows[0]);
    let has_target = writer.own.less(own.thread, count);
    writer.when(has_target, |writer| sums.store_stored(writer, target));

    let code = writer.finish(&format!("a block of threads a tile, of {set_name} at most {targets}"));
    let starts_from_zero = |field: &crate::ir::FieldId| !is_sparse && (task.from_zero)(*field);
    let in_place = group.fields().into_iter().filter(|field| !starts_from_zero(field)).collect();
    let items = Items::Pieces { group: group.number, cut, shared };
    Ok(Kernel { code, items, in_place })
}

/// What a block of threads works on.
struct Tile {
    thread: ValueId,
    /// Where its rows of targets begin and end.
    rows: [ValueId; 2],
    last_row: ValueId,
    /// Where its elements do.
    elements: [ValueId; 2],
}

impl Tile {
    /// Finds the tile of the block.
    fn find(writer: &mut Writer) -> Self {
        let tiles = writer.array("tiles", Type::WIDEST, false, Meaning::Mesh(MeshData::Piece(PieceTable::Ranges)));
        let [thread, block] = [Coordinate::Thread, Coordinate::Block].map(|own| writer.own.coordinate(own, Axis::X));
        let thread = writer.own.name("thread", thread);
        let tile = writer.own.load(tiles, block);
        let tile = writer.own.name("tile", tile);
        let [x, y, z, w] = [0, 1, 2, 3].map(|lane| writer.own.lane(tile, lane));
        let one = writer.own.int(1);
        Self { thread, rows: [x, y], last_row: writer.own.sub(y, one), elements: [z, w] }
    }

    /// Computes what the elements of the tile add.
    fn compute(&self, writer: &mut Writer, columns: &Columns, arrays: &[ArrayId]) {
        let [first, end] = self.elements;
        let begin = writer.own.add(first, self.thread);
        let step = writer.own.int(i64::from(writer.choices.block));
        writer.each("at", (begin, end, Step::By(step)), Unroll::Free, |writer, at| {
            let place = writer.own.sub(at, first);
            let place = writer.own.name("place", place);
            writer.in_piece = Some(at);
            columns.store(writer, arrays, place);
            writer.in_piece = None;
        });
    }
}

/// What lies in shared memory.
struct Columns {
    paths: usize,
    /// By path, what is added along it, and in which column it lies.
    along: Vec<Vec<(Add, usize)>>,
    /// Whether the same is added to along every path, so that it does not matter which one it was.
    are_alike: bool,
    columns: Vec<Column>,
}

/// Values of each element of a tile.
struct Column {
    wish: String,
    kind: Type,
    /// Whether there is one for each path, and not one for all.
    by_path: bool,
    /// By path, whether it is the negative that is added.
    is_negative: Vec<bool>,
}

impl Columns {
    /// What the elements of a tile add to the targets of a group.
    fn new(task: &MeshTask, group: &Group) -> Self {
        let stencil = &task.stencil.stencil;
        let kind = |add: &Add| stencil.stores[add.store].body.kind();
        let paths = group.paths.len();
        let by_path: Vec<Vec<Add>> = (0..paths).map(|path| group.along(path)).collect();
        let same = |a: &Add, b: &Add| (a.field, a.part, kind(a)) == (b.field, b.part, kind(b));
        let is_alike =
            |own: &Vec<Add>| own.len() == by_path[0].len() && own.iter().zip(&by_path[0]).all(|(a, b)| same(a, b));
        let are_alike = by_path.iter().all(is_alike);
        let mut own = Self { paths, along: vec![Vec::new(); paths], are_alike, columns: Vec::new() };
        let column = |add: &Add, signs: Option<Vec<bool>>| Column {
            wish: format!("{}_added_{}", stencil.fields[add.field].name, add.part),
            kind: Type::computing(kind(add), task.precision),
            by_path: are_alike && paths > 1 && signs.is_none(),
            is_negative: signs.unwrap_or_else(|| vec![false; paths]),
        };
        if are_alike {
            for (n, first) in by_path[0].iter().enumerate() {
                for (path, adds) in by_path.iter().enumerate() {
                    own.along[path].push((adds[n], own.columns.len()));
                }
                own.columns.push(column(first, group.signs(task.stencil, n)));
            }
        } else {
            for (path, adds) in by_path.iter().enumerate() {
                for add in adds {
                    own.along[path].push((*add, own.columns.len()));
                    own.columns.push(column(add, None));
                }
            }
        }
        own
    }

    /// How many numbers a column has, for so many elements.
    fn count(&self, column: &Column, elements: usize) -> usize {
        elements * if column.by_path { self.paths } else { 1 }
    }

    /// The shared memory of tiles of so many elements, in bytes.
    fn bytes(&self, elements: usize) -> usize {
        self.columns.iter().map(|own| bytes(own.kind, self.count(own, elements))).sum()
    }

    /// The arrays, one a column, for so many elements, and their bytes.
    fn declared(&self, writer: &mut Writer, elements: usize) -> (Vec<ArrayId>, usize) {
        let mut shared = Shared::default();
        let all = self.columns.iter();
        let arrays = all.map(|own| shared.array(writer, &own.wish, own.kind, self.count(own, elements))).collect();
        (arrays, shared.bytes())
    }

    /// Computes what the element at hand adds, and keeps it at its place.
    fn store(&self, writer: &mut Writer, arrays: &[ArrayId], place: ValueId) {
        let stores = &writer.task.stencil.stencil.stores;
        // Values come first, so that loads need not wait for what is written.
        let mut values = Vec::new();
        for (path, adds) in self.along.iter().enumerate() {
            for (add, column) in adds {
                let is_needed = path == 0 || !self.are_alike || self.columns[*column].by_path;
                if is_needed {
                    values.push((path, *column, writer.body(&stores[add.store].body, &Path::default())));
                }
            }
        }
        for (path, column, value) in values {
            let mut index = place;
            if self.columns[column].by_path {
                let [paths, path] = [self.paths, path].map(|number| writer.own.int(number as i64));
                let first = writer.own.mul(paths, place);
                index = writer.own.add(first, path);
            }
            writer.own.store(arrays[column], index, value);
        }
    }

    /// Adds what lies at an entry.
    fn gather(&self, writer: &mut Writer, arrays: &[ArrayId], sums: &Sums, at: ValueId) {
        let element = entry(writer, at, self.paths, Binary::Div);
        let element = if self.paths == 1 { element } else { writer.own.name("at", element) };
        let path = entry(writer, at, self.paths, Binary::Rem);
        let path = if self.paths == 1 { path } else { writer.own.name("path", path) };
        for number in 0..if self.are_alike { 1 } else { self.paths } {
            let own = writer.own.int(number as i64);
            let is_own = (!self.are_alike).then(|| writer.own.compare(Relation::Eq, path, own));
            writer.when_if(is_own, |writer| {
                // Loads first, so that none waits for a sum.
                let mut values = Vec::new();
                for (_, column) in &self.along[number] {
                    let own = &self.columns[*column];
                    let value = writer.own.load(arrays[*column], if own.by_path { at } else { element });
                    let value = writer.own.name("value", value);
                    values.push(signed(writer, value, path, &own.is_negative));
                }
                for ((add, _), value) in self.along[number].iter().zip(values) {
                    sums.add_stored(writer, add.field, add.part, value);
                }
            });
        }
    }
}
