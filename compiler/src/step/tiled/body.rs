//! The body of a kernel of tiles.

use super::super::flow::{Source, Use, Window};
use super::super::lower::{Frame, Lowering};
use super::Layout;
use super::loops::{Loop, Parts};
use crate::ir::{Relation, Store};
use crate::kernel::build::{Builder, Computing, Making, Term};
use crate::kernel::{ArrayId, Axis, Coordinate, Math, Routine, Type, ValueId};
use std::collections::BTreeMap;

/// Makes one kernel.
pub struct Tile<'a> {
    /// What is computed when, and where values are.
    pub layout: &'a Layout<'a>,
    /// Arguments and bodies.
    lowering: Lowering<'a>,
    /// Of each row its tile, with the slot, and of a field its plane.
    pub tiles: Vec<Option<(usize, ArrayId)>>,
    pub planes: Vec<Option<ArrayId>>,
    /// Of each store the plane that is written.
    outputs: Vec<Option<ArrayId>>,
    /// Where the tile begins.
    first_column: ValueId,
    pub first_row: ValueId,
}

/// Where the cells of a thread are.
struct Cells {
    /// The column and the first row, from the first of the loop.
    column: ValueId,
    row: ValueId,
    /// The number of the thread's part of the column.
    part: ValueId,
    /// How all parts are.
    parts: Parts,
}

impl Making for Tile<'_> {
    fn own(&mut self) -> &mut Builder {
        &mut self.lowering.own
    }
}

impl<'a> Tile<'a> {
    /// The beginning of a kernel of a layout.
    pub fn new(layout: &'a Layout<'a>) -> Self {
        let [i, j] = layout.tile;
        let how = format!(
            "a block computes a tile of {i}x{j} cells, {} loops over it and what they look at around it, with {} bytes of \
             shared memory",
            layout.loops.loops.len(),
            layout.memory.bytes
        );
        let frame = Frame { ending: "tiled", threads: layout.shape.threads, aliased: false, math: Math::Own, how };
        let mut lowering = Lowering::new(layout.task, &layout.flow.sources(), frame);
        let none = lowering.own.int(0);
        let rows = layout.flow.rows.len();
        let mut made = Self {
            layout,
            lowering,
            tiles: vec![None; rows],
            planes: vec![None; rows],
            outputs: Vec::new(),
            first_column: none,
            first_row: none,
        };
        made.begin();
        made.arrays();
        made.lowering.uniforms(layout.flow);
        made
    }

    /// The kernel with all that it does.
    pub fn lower(mut self) -> Lowering<'a> {
        let is_async = self.loads();
        for number in 0..self.layout.loops.loops.len() {
            self.computed(number, is_async);
        }
        self.lowering
    }

    /// Where the block's tile is.
    fn begin(&mut self) {
        let Layout { task, tiles, computed, .. } = self.layout;
        let own = self.own();
        let block = own.name("block", Coordinate::Block.along(Axis::X));
        self.first_column = self.first("first_column", block.into(), 0, (0, task.extents[0]));
        self.first_row = self.first("first_row", block.over(tiles[0]), 1, (computed[1].start, computed[1].len()));
        let k = self.own().name("k", block.over(tiles[0] * tiles[1]));
        self.lowering.at_level(k);
    }

    /// Where a tile begins along an axis. The last one stands back onto the one before it: the same bits are written twice.
    fn first(&mut self, wish: &str, number: Term, axis: usize, (first, extent): (usize, usize)) -> ValueId {
        let (size, count) = (self.layout.tile[axis], self.layout.tiles[axis]);
        let own = self.own();
        if count == 1 {
            return own.term(first);
        }
        let begin = number.rem(count).times(size);
        let begin = if extent.is_multiple_of(size) { begin } else { begin.at_most(extent - size) };
        own.name(wish, begin.plus(first))
    }

    /// Where the block reads and writes.
    fn arrays(&mut self) {
        let Layout { task, flow, memory: slots, .. } = self.layout;
        let memory = (!slots.slots.is_empty()).then(|| self.own().dynamic("memory", slots.bytes));
        for (place, row) in flow.rows.iter().enumerate() {
            if let (Some(slot), Some(memory)) = (slots.homes[place], memory) {
                let (own, wish) = (&slots.slots[slot], format!("{}_tile", self.lowering.name(row.source)));
                let tile = self.own().part(&wish, memory, own.element, (own.offset, own.elements));
                self.tiles[place] = Some((slot, tile));
            }
            self.planes[place] = self.lowering.view_from(row.source, 0);
        }
        self.outputs = task.stencil.stores.iter().map(|store| self.lowering.view_to(store.field, 0, 0)).collect();
    }

    /// Does something for each of so many items of a block, which stand in columns: the threads take them in turn.
    pub fn each_item(&mut self, items: usize, columns: usize, write: impl FnOnce(&mut Self, ValueId, ValueId)) {
        let threads = self.layout.shape.threads;
        let first = Coordinate::Thread.along(Axis::X).to(Type::U32);
        self.repeated("item", (first, items, threads), |own, item| {
            let (column, row) = (own.own().term(item.rem(columns)), own.own().term(item.over(columns)));
            write(own, column, row);
        });
    }

    /// A number of items as one that is computed with.
    pub fn whole(&mut self, wish: &str, value: impl Into<Term>) -> ValueId {
        self.own().name(wish, value.to(Type::I32))
    }

    /// A column of the plane, from one of an area that is so much wider than the tile.
    pub fn column(&mut self, column: ValueId, window: Window) -> ValueId {
        let i = around(self.first_column.plus(column), window, self.layout.task.extents[0]);
        self.own().name("i", i)
    }

    /// Where a cell is in its plane, by its column, and by its row as one of such an area.
    pub fn cell(&mut self, i: ValueId, row: Term, window: Window) -> ValueId {
        let task = self.layout.task;
        let (kind, own) = (task.index(), self.own());
        let j = own.name("j", around(row, window, task.extents[1]));
        own.name("cell", j.to(kind).times(task.rows.row).plus(i.to(kind)))
    }

    /// What is looked at in a loop, at the present cell.
    fn looks(&mut self, number: usize, here: ValueId, cell: ValueId) -> BTreeMap<Use, ValueId> {
        let Layout { flow, loops, memory, .. } = self.layout;
        let area = loops.loops[number].area;
        let mut looks = BTreeMap::new();
        for (place, used) in loops.uses(flow, number) {
            let element = match (self.tiles[place], self.planes[place]) {
                (Some((slot, tile)), _) => {
                    tile.at(here.plus(memory.index(slot, area.i.low + used.i, area.j.low + used.j)))
                }
                (None, Some(plane)) => plane.at(cell),
                // It is in a register.
                (None, None) => continue,
            };
            let element = self.own().term(element);
            looks.insert(used, self.lowering.element(used.source, element));
        }
        looks
    }

    /// A loop over the cells of an area, some rows a thread.
    fn computed(&mut self, number: usize, is_async: bool) {
        let Layout { flow, loops, tile, shape, .. } = self.layout;
        let own = &loops.loops[number];
        let parts = own.parts(*tile, shape.rows);
        let [columns, all_rows] = parts.cells;
        self.wait(number, is_async);
        let names: Vec<&str> = own.values.iter().map(|&place| self.lowering.name(flow.rows[place].source)).collect();
        let is_last = number + 1 == loops.loops.len();
        let what = if is_last { "The outputs".to_owned() } else { names.join(", ") };
        self.own().gap();
        self.own().note(format!("{what}: {columns}x{all_rows} cells."));
        self.each_item(columns * parts.count, columns, |own, column, part| {
            let (column, part) = (own.whole("column", column), own.whole("part", part));
            let own_rows = match parts.longer {
                0 => part.times(parts.rows),
                longer => part.times(parts.rows - 1).plus(part.at_most(longer)),
            };
            let row = own.own().name("row", own_rows);
            own.rows_of_thread(number, Cells { column, row, part, parts });
        });
    }

    /// What a thread computes in a loop.
    fn rows_of_thread(&mut self, number: usize, cells: Cells) {
        let Layout { task, flow, loops, memory, .. } = self.layout;
        let Loop { area, values, .. } = &loops.loops[number];
        let is_last = number + 1 == loops.loops.len();
        let at = self.own().name("at", cells.row.times(memory.pitch).plus(cells.column));
        let i = self.column(cells.column, area.i);
        let kept = values.iter().filter_map(|&place| {
            let (slot, tile) = self.tiles[place]?;
            Some((place, (slot, tile, self.lowering.local(flow.rows[place].source, cells.parts.rows))))
        });
        let kept: BTreeMap<usize, (usize, ArrayId, ArrayId)> = kept.collect();
        self.each_row(&cells, |own, r| {
            let here = own.own().name("here", at.plus(r.times(memory.pitch)));
            let row = own.first_row.plus(cells.row).plus(r);
            let cell = own.cell(i, row, area.j);
            let mut looks = own.looks(number, here, cell);
            for &place in values {
                let source = flow.rows[place].source;
                let Source::Def(def, shift) = source else { continue };
                let body = &task.stencil.defs[def].body;
                let value = own.lowering.value(body, shift, &|used| looks.get(&used).copied());
                match kept.get(&place) {
                    None => {
                        let value = own.lowering.named(source, value);
                        looks.insert(Use { source, i: 0, j: 0 }, value);
                    }
                    Some((_, _, array)) => own.own().store(*array, r, value),
                }
            }
            if is_last {
                for (number, store) in task.stencil.stores.iter().enumerate() {
                    own.store(number, store, &looks, (i, cell));
                }
            }
        });
        // Once everything has been looked at that it might replace.
        if !kept.is_empty() {
            self.each_row(&cells, |own, r| {
                for &(slot, tile, array) in kept.values() {
                    let by = memory.index(slot, area.i.low, area.j.low);
                    own.own().store(tile, at.plus(r.times(memory.pitch)).plus(by), array.at(r));
                }
            });
        }
    }

    /// Does something for each row of a thread.
    fn each_row(&mut self, cells: &Cells, write: impl FnOnce(&mut Self, ValueId)) {
        let Parts { rows, longer, .. } = cells.parts;
        self.unrolled("r", (0, rows), |own, r| {
            if longer > 0 {
                // Some parts have a row less.
                own.own().break_if(r.is(Relation::Eq, rows - 1).and(cells.part.is(Relation::Ge, longer)));
            }
            write(own, r);
        });
    }

    /// Waits for what a loop looks at.
    fn wait(&mut self, number: usize, is_async: bool) {
        let Layout { flow, loops, .. } = self.layout;
        let reader = loops.first_reader(flow);
        let has_barrier = |number: usize| reader == Some(number) || loops.waits(number);
        // Behind the first barrier others see what was copied, whoever looks at it first.
        if is_async && (0..=number).find(|&own| has_barrier(own)) == Some(number) {
            self.own().perform(Routine::CopyAsyncWait(0), Vec::new());
        }
        if has_barrier(number) {
            self.own().barrier();
        }
    }

    /// Stores an output.
    fn store(&mut self, number: usize, store: &Store, looks: &BTreeMap<Use, ValueId>, (i, cell): (ValueId, ValueId)) {
        let Layout { task, computed: [columns, _], .. } = self.layout;
        let Some(to) = self.outputs[number] else { return };
        let is_computed = self.own().in_range(i, columns.start as i64..columns.end as i64, 0..task.extents[0] as i64);
        let guard = self.lowering.guard(store.field, 0, is_computed);
        self.when_if(guard, |own| {
            let value = own.lowering.stored(store, 0, &|used| looks.get(&used).copied());
            own.own().store(to, cell, value);
        });
    }
}

/// A column or row of the plane, from one of an area that is so much wider than a tile: beyond the last is the first again.
fn around(index: Term, window: Window, extent: usize) -> Term {
    if window.low >= 0 && window.high <= 0 {
        return index.plus(window.low);
    }
    let by = i64::from(window.low).rem_euclid(extent as i64);
    index.plus(by).to(Type::U32).rem(extent).to(Type::I32)
}
