//! Tiles: a block of threads owns consecutive targets. It computes what every element that leads to one of them adds, once, into
//! shared memory; then each target adds its own, in the order in which the user numbers the elements.
//!
//! Nothing races, and nothing is computed twice but at the rims of tiles: elements that lead into several are computed by each.

use super::{Additions, Strategy, signed};
use crate::diagnostic::Refusal;
use crate::ir::{Path, Relation};
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Binary, MeshData, PieceTable, Step, Type, Unroll, ValueId};
use crate::mesh::gather::entry;
use crate::mesh::group::{Add, Group};
use crate::mesh::rows::{Places, is_row, led_to, row};
use crate::mesh::shared::{Shared, bytes, fitting, piece};
use crate::mesh::sums::Sums;
use crate::mesh::writer::Writer;
use crate::mesh::{Cut, Items, Kernel, MeshChoices, MeshTask, NOWHERE, VectorLayout};

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

    /// Blocks are of pieces, on one level.
    fn usual_layout(&self, _has_levels: bool) -> VectorLayout {
        VectorLayout::Pairs
    }

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        group.check_order(task)?;
        let stencil = task.stencil;
        let degrees = task.counts.degrees(group);
        let is_sparse = degrees.share < 0.5;
        let set_name = &stencil.mesh.sets[group.target].name;
        let columns = Columns::new(task, group);
        let of_tile = |targets: usize| {
            let largest = task.counts.largest(group, Cut::Tiles { targets, is_sparse })?;
            Some(columns.bytes(largest.elements))
        };
        let targets = fitting(choices.threads.block as usize, &of_tile, self.name())?;
        let cut = Cut::Tiles { targets, is_sparse };
        let elements = task.counts.largest(group, cut).map_or(0, |largest| largest.elements);

        let mut writer = Writer::new(task, choices, &format!("{}_tiled", stencil.stencil.name));
        let arrays = columns.declared(&mut writer, elements);
        let own = Tile::find(&mut writer);
        writer.find_level_of_block();
        // Threads without a target of their own do as the last one does, but for the end.
        let target = own.rows[0].plus(own.thread).at_most(own.rows[1].minus(1));
        let (target, row_of) = if is_sparse {
            let item = writer.own.name("item", target);
            (led_to(&mut writer, group, item), item)
        } else {
            let target = writer.own.name(set_name, target);
            (target, target)
        };
        let sums = Sums::new(&mut writer, &group.fields(), target, is_sparse, true);
        let entries = writer.table("entries", MeshData::Piece(PieceTable::Entries));
        // Two stand in one number of a row.
        let row_width = is_row(degrees).then_some(degrees.max);
        let here = row_width.map_or(entries, |width| row(&mut writer, entries, width.div_ceil(2), row_of));
        own.compute(&mut writer, &columns, &arrays);
        writer.own.barrier();
        let places = Places::new(&mut writer, group, row_width, row_of, (Relation::Ne, i64::from(NOWHERE)));
        let entry_here = |writer: &mut Writer, place: ValueId| {
            let entry = if row_width.is_some() { half(here, place) } else { here.at(place) };
            writer.own.name("entry_here", entry)
        };
        places.each(&mut writer, entry_here, |writer, _, entry| columns.gather(writer, &arrays, &sums, entry));
        let has_target = own.thread.less(own.rows[1].minus(own.rows[0]));
        writer.when(has_target, |writer| sums.store(writer, target, &|_| true));

        let what = format!("a block of threads a tile, of {set_name} at most {targets}");
        let in_place = task.in_place(group.fields(), is_sparse);
        let items = Items::Pieces { group: group.number, cut };
        Ok(vec![writer.finish(&what, items, in_place)])
    }
}

/// The number of 16 bits at a place, of which an array holds two in each of its own.
fn half(array: ArrayId, place: ValueId) -> Term {
    let (pair, by) = (array.at(place.over(2)), 16.times(place.rem(2)));
    let entry = pair.to(Type::U32).by(Binary::ShiftRight, by.to(Type::U32)).by(Binary::BitAnd, u32::from(NOWHERE));
    entry.to(Type::I32)
}

/// What a block of threads works on.
struct Tile {
    thread: ValueId,
    /// Where its rows of targets begin and end.
    rows: [ValueId; 2],
    /// Where its elements do.
    elements: [ValueId; 2],
}

impl Tile {
    /// Finds the tile of the block.
    fn find(writer: &mut Writer) -> Self {
        let (thread, [x, y, z, w]) = piece(writer, ["tiles", "tile"], false);
        Self { thread, rows: [x, y], elements: [z, w] }
    }

    /// Computes what the elements of the tile add.
    fn compute(&self, writer: &mut Writer, columns: &Columns, arrays: &[ArrayId]) {
        let [first, end] = self.elements;
        let step = Step::By(writer.own.term(writer.choices.threads.block));
        writer.each("at", (first.plus(self.thread), end, step), Unroll::Free, |writer, at| {
            let place = writer.own.name("place", at.minus(first));
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
        let (paths, are_alike) = (group.paths.len(), group.is_alike());
        let mut own = Self { paths, along: vec![Vec::new(); paths], are_alike, columns: Vec::new() };
        for path in 0..paths {
            for (n, add) in group.along(path).into_iter().enumerate() {
                if are_alike && path > 0 {
                    own.along[path].push((add, n));
                    continue;
                }
                let signs = if are_alike { group.signs(task.stencil, n) } else { None };
                own.along[path].push((add, own.columns.len()));
                own.columns.push(Column {
                    wish: format!("{}_added_{}", stencil.fields[add.field].name, add.part),
                    kind: Type::computing(stencil.fields[add.field].stored.kind(), task.precision),
                    by_path: are_alike && paths > 1 && signs.is_none(),
                    is_negative: signs.unwrap_or_default(),
                });
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

    /// The arrays, one a column, for so many elements.
    fn declared(&self, writer: &mut Writer, elements: usize) -> Vec<ArrayId> {
        let mut shared = Shared::default();
        let all = self.columns.iter();
        all.map(|own| shared.array(writer, &own.wish, own.kind, self.count(own, elements))).collect()
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
            let index = match self.columns[column].by_path {
                true => self.paths.times(place).plus(path),
                false => place.into(),
            };
            writer.own.store(arrays[column], index, value);
        }
    }

    /// Adds what lies at an entry.
    fn gather(&self, writer: &mut Writer, arrays: &[ArrayId], sums: &Sums, at: ValueId) {
        let [element, path] = [("at", Binary::Div), ("path", Binary::Rem)].map(|(name, operation)| {
            let part = writer.own.term(entry(at, self.paths, operation));
            if self.paths == 1 { part } else { writer.own.name(name, part) }
        });
        for number in 0..if self.are_alike { 1 } else { self.paths } {
            let is_own = (!self.are_alike).then(|| path.is(Relation::Eq, number));
            writer.when_if(is_own, |writer| {
                // Loads first, so that none waits for a sum.
                let mut values = Vec::new();
                for (_, column) in &self.along[number] {
                    let own = &self.columns[*column];
                    let value = arrays[*column].at(if own.by_path { at } else { element });
                    let value = writer.own.name("value", value);
                    values.push(signed(writer, value, path, &own.is_negative));
                }
                for ((add, _), value) in self.along[number].iter().zip(values) {
                    sums.add(writer, add, 0, value);
                }
            });
        }
    }
}
