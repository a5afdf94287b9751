//! The body of a kernel of tiles.

use super::super::flow::{Flow, Source, Use, Window};
use super::super::lower::{Frame, Lowering};
use super::load::loads;
use super::loops::{Area, Loop, Loops, ReadFrom};
use super::memory::Memory;
use super::{Shape, StepTask, Tiling};
use crate::ir::{Levels, Relation, Store};
use crate::kernel::{ArrayId, Axis, Binary, Coordinate, Routine, Step, Type, Unroll, ValueId};
use std::collections::BTreeMap;

/// Makes one kernel.
pub struct Tile<'a> {
    /// Arguments and bodies.
    pub lowering: Lowering<'a>,
    /// The rows.
    pub flow: &'a Flow,
    /// What is computed when.
    pub loops: &'a Loops,
    /// Where values are.
    pub memory: &'a Memory,
    /// Where tiles are.
    pub tiling: &'a Tiling,
    shape: &'a Shape,
    /// Of each row its tile, with the slot, and of a field its plane.
    pub tiles: Vec<Option<(usize, ArrayId)>>,
    pub planes: Vec<Option<ArrayId>>,
    /// Of each store the plane that is written.
    outputs: Vec<Option<ArrayId>>,
    /// The plane at hand, and where the tile begins in it.
    k: ValueId,
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
    /// How many rows a thread has, and how many have as many, if some have one less.
    rows: usize,
    longer: usize,
}

impl<'a> Tile<'a> {
    /// The beginning of a kernel of these loops.
    pub fn new(
        task: &'a StepTask<'a>,
        flow: &'a Flow,
        loops: &'a Loops,
        memory: &'a Memory,
        tiling: &'a Tiling,
        shape: &'a Shape,
    ) -> Self {
        let [i, j] = tiling.tile;
        let how = format!(
            "a block computes a tile of {i}x{j} cells, {} loops over it and what they look at around it, with {} bytes of \
             shared memory",
            loops.loops.len(),
            memory.bytes()
        );
        let frame = Frame { ending: "tiled", threads: shape.threads, aliased: false, how };
        let mut lowering = Lowering::new(task, flow, frame);
        let none = lowering.own.int(0);
        let mut made = Self {
            lowering,
            flow,
            loops,
            memory,
            tiling,
            shape,
            tiles: vec![None; flow.rows.len()],
            planes: vec![None; flow.rows.len()],
            outputs: Vec::new(),
            k: none,
            first_column: none,
            first_row: none,
        };
        made.place();
        made.arrays();
        made.lowering.uniforms(flow);
        made
    }

    /// The kernel with all that it does.
    pub fn lower(mut self) -> Lowering<'a> {
        let is_async = loads(&mut self);
        for number in 0..self.loops.loops.len() {
            self.computed(number, is_async);
        }
        self.lowering
    }

    /// Where the block's tile is.
    fn place(&mut self) {
        let Tiling { tile, tiles, computed } = self.tiling;
        let columns = self.lowering.task.extents[0];
        let number = self.lowering.own.coordinate(Coordinate::Block, Axis::X);
        let number = self.lowering.own.name("block", number);
        self.first_column = self.begin("first_column", number, (tile[0], tiles[0]), (0, columns));
        let own = &mut self.lowering.own;
        let [along_i, both] = [tiles[0], tiles[0] * tiles[1]].map(|tiles| own.int(tiles as i64));
        let row = own.binary(Binary::Div, number, along_i);
        let k = own.binary(Binary::Div, number, both);
        self.first_row = self.begin("first_row", row, (tile[1], tiles[1]), (computed[1].start, computed[1].len()));
        self.k = self.lowering.own.name("k", k);
        self.lowering.at_level(self.k);
    }

    /// Where a tile begins along an axis. The last one stands back onto the one before it: the same bits are written twice.
    fn begin(
        &mut self,
        wish: &str,
        number: ValueId,
        (size, tiles): (usize, usize),
        (first, extent): (usize, usize),
    ) -> ValueId {
        let own = &mut self.lowering.own;
        let [length, count, first, last] = [size, tiles, first, extent - size].map(|number| own.int(number as i64));
        if tiles == 1 {
            return first;
        }
        let number = own.binary(Binary::Rem, number, count);
        let mut begin = own.mul(number, length);
        if !extent.is_multiple_of(size) {
            begin = own.binary(Binary::Min, begin, last);
        }
        let begin = own.add(begin, first);
        own.name(wish, begin)
    }

    /// Where the block reads and writes.
    fn arrays(&mut self) {
        let task = self.lowering.task;
        let has_memory = !self.memory.slots.is_empty();
        let memory = has_memory.then(|| self.lowering.own.dynamic("memory", self.memory.bytes()));
        for (place, row) in self.flow.rows.iter().enumerate() {
            let name = self.lowering.name(row.source).to_owned();
            if let (Some(slot), Some(memory)) = (self.memory.homes[place], memory) {
                let (own, count) = (&self.memory.slots[slot], self.memory.elements(slot));
                let tile = self.lowering.own.part(&format!("{name}_tile"), memory, own.element, (own.offset, count));
                self.tiles[place] = Some((slot, tile));
            }
            if let Source::Field(field, shift) = row.source
                && let Some(array) = self.lowering.input(field)
            {
                let plane = self.lowering.plane(task.stencil.fields[field].place.levels, shift);
                self.planes[place] = Some(self.lowering.own.view(&format!("{name}_from"), array, plane));
            }
        }
        for store in &task.stencil.stores {
            let view = self.lowering.output(store.field).map(|array| {
                let wish = format!("{}_to", self.lowering.own.kernel().arrays[array].name);
                let plane = self.lowering.plane(task.stencil.fields[store.field].place.levels, 0);
                self.lowering.own.view(&wish, array, plane)
            });
            self.outputs.push(view);
        }
    }

    /// Does something for each of so many items of a block, which stand in columns: the threads take them in turn.
    pub fn each_item(&mut self, items: usize, columns: usize, write: impl FnOnce(&mut Self, ValueId, ValueId)) {
        let own = &mut self.lowering.own;
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let first = own.convert(thread, Type::U32);
        let [end, step, columns] = [items, self.shape.threads, columns].map(|n| own.literal(n as i64, Type::U32));
        let (counter, item) = own.counter("item", first);
        let body = own.open();
        let before = own.enter(body);
        let (column, row) = (own.binary(Binary::Rem, item, columns), own.binary(Binary::Div, item, columns));
        write(self, column, row);
        let own = &mut self.lowering.own;
        own.enter(before);
        own.repeat(counter, (first, end, Step::By(step)), Unroll::Times(1), body);
    }

    /// A number of items as one that is computed with.
    pub fn whole(&mut self, wish: &str, value: ValueId) -> ValueId {
        let value = self.lowering.own.convert(value, Type::I32);
        self.lowering.own.name(wish, value)
    }

    /// A column of the plane: so many from the tile's first.
    pub fn column(&mut self, column: ValueId, by: i32, extent: usize, is_inside: bool) -> ValueId {
        let column = self.lowering.own.add(self.first_column, column);
        let i = self.around(column, (by, extent, is_inside));
        self.lowering.own.name("i", i)
    }

    /// Where a cell is in its plane, by its column, and by its row as one that may be a little outside.
    pub fn cell(&mut self, i: ValueId, row: ValueId, outside: (i32, usize, bool)) -> ValueId {
        let j = self.around(row, outside);
        let task = self.lowering.task;
        let is_wide = task.rows.row.saturating_mul(task.extents[1]) > i32::MAX as usize;
        let kind = if is_wide { Type::I64 } else { Type::I32 };
        let own = &mut self.lowering.own;
        let j = own.name("j", j);
        let [i, j] = [i, j].map(|index| own.convert(index, kind));
        let pitch = own.literal(task.rows.row as i64, kind);
        let before = own.mul(j, pitch);
        let cell = own.add(before, i);
        own.name("cell", cell)
    }

    /// A column or row of the plane that may be so much before one of the tile's, and then, beyond the last, is the first again.
    fn around(&mut self, index: ValueId, (by, extent, is_inside): (i32, usize, bool)) -> ValueId {
        let own = &mut self.lowering.own;
        if is_inside {
            let by = own.int(i64::from(by));
            return own.add(index, by);
        }
        let by = own.int(i64::from(by).rem_euclid(extent as i64));
        let sum = own.add(index, by);
        let (sum, extent) = (own.convert(sum, Type::U32), own.literal(extent as i64, Type::U32));
        let rest = own.binary(Binary::Rem, sum, extent);
        own.convert(rest, Type::I32)
    }

    /// Where a cell is in a tile.
    pub fn in_tile(&mut self, row: ValueId, column: ValueId, by: i64) -> ValueId {
        let own = &mut self.lowering.own;
        let [pitch, by] = [self.memory.pitch as i64, by].map(|number| own.int(number));
        let before = own.mul(row, pitch);
        let index = own.add(before, column);
        own.add(index, by)
    }

    /// Where a cell is in a tile, from the place of one so many rows before it.
    fn rows_on(&mut self, at: ValueId, rows: ValueId) -> ValueId {
        let own = &mut self.lowering.own;
        let pitch = own.int(self.memory.pitch as i64);
        let below = own.mul(rows, pitch);
        own.add(at, below)
    }

    /// What is looked at in a loop, at the present cell.
    fn looks(&mut self, number: usize, here: ValueId, cell: ValueId) -> BTreeMap<Use, ValueId> {
        let Area { i, j } = self.loops.loops[number].area;
        let mut looks = BTreeMap::new();
        for (place, used) in self.loops.uses(self.flow, number) {
            let (array, index) = match (self.loops.homes[place], self.tiles[place], self.planes[place]) {
                (ReadFrom::Tile(_), Some((slot, tile)), _) => {
                    let by = self.lowering.own.int(self.memory.index(slot, i.low + used.i, j.low + used.j));
                    (tile, self.lowering.own.add(here, by))
                }
                (ReadFrom::Array, _, Some(plane)) => (plane, cell),
                (ReadFrom::Tile(_) | ReadFrom::Array | ReadFrom::Register, ..) => continue,
            };
            let element = self.lowering.own.load(array, index);
            let value = self.lowering.element(used.source, element);
            looks.insert(used, value);
        }
        looks
    }

    /// A loop over the cells of an area, some rows a thread.
    fn computed(&mut self, number: usize, is_async: bool) {
        let Loop { area, values, .. } = self.loops.loops[number].clone();
        let is_last = number + 1 == self.loops.loops.len();
        let [columns, all_rows] = area.cells(self.tiling.tile);
        // Parts of a column are as long as each other, but for a row.
        let parts = all_rows.div_ceil(self.shape.rows);
        let (rows, longer) = (all_rows.div_ceil(parts), all_rows % parts);
        self.wait(number, is_async);
        let names: Vec<&str> = values.iter().map(|&place| self.lowering.name(self.flow.rows[place].source)).collect();
        let what = if is_last { "The outputs".to_owned() } else { names.join(", ") };
        self.lowering.own.gap();
        self.lowering.own.note(format!("{what}: {columns}x{all_rows} cells."));
        self.each_item(columns * parts, columns, |own, column, part| {
            let (column, part) = (own.whole("column", column), own.whole("part", part));
            let row = own.first_of(part, rows, longer);
            own.rows_of_thread(number, Cells { column, row, part, rows, longer });
        });
    }

    /// The first row of a part of a column.
    fn first_of(&mut self, part: ValueId, rows: usize, longer: usize) -> ValueId {
        let own = &mut self.lowering.own;
        let row = match longer {
            0 => {
                let rows = own.int(rows as i64);
                own.mul(part, rows)
            }
            _ => {
                let [fewer, longer] = [rows - 1, longer].map(|number| own.int(number as i64));
                let (before, more) = (own.mul(part, fewer), own.binary(Binary::Min, part, longer));
                own.add(before, more)
            }
        };
        own.name("row", row)
    }

    /// What a thread computes in a loop.
    fn rows_of_thread(&mut self, number: usize, cells: Cells) {
        let [ni, nj, _] = self.lowering.task.extents;
        let Loop { area, values, .. } = self.loops.loops[number].clone();
        let is_last = number + 1 == self.loops.loops.len();
        let is_inside = |window: Window| window.low >= 0 && window.high <= 0;
        let at = self.in_tile(cells.row, cells.column, 0);
        let at = self.lowering.own.name("at", at);
        let i = self.column(cells.column, area.i.low, ni, is_inside(area.i));
        let kept = values.iter().filter_map(|&place| {
            let (slot, tile) = self.tiles[place]?;
            let array = self.lowering.local(self.flow.rows[place].source, cells.rows);
            Some((place, (slot, tile, array)))
        });
        let kept: BTreeMap<usize, (usize, ArrayId, ArrayId)> = kept.collect();
        self.each_row(&cells, |own, r| {
            let here = own.rows_on(at, r);
            let here = own.lowering.own.name("here", here);
            let row = own.lowering.own.add(own.first_row, cells.row);
            let row = own.lowering.own.add(row, r);
            let cell = own.cell(i, row, (area.j.low, nj, is_inside(area.j)));
            let mut looks = own.looks(number, here, cell);
            for &place in &values {
                let source = own.flow.rows[place].source;
                let Source::Def(def, shift) = source else { continue };
                let body = &own.lowering.task.stencil.defs[def].body;
                let value = own.lowering.value(body, shift, &|used| looks.get(&used).copied());
                match kept.get(&place) {
                    None => {
                        let value = own.lowering.named(source, value);
                        looks.insert(Use { source, i: 0, j: 0 }, value);
                    }
                    Some((_, _, array)) => own.lowering.own.store(*array, r, value),
                }
            }
            if is_last {
                for (number, store) in own.lowering.task.stencil.stores.iter().enumerate() {
                    own.store(number, store, &looks, (i, cell));
                }
            }
        });
        // Once everything has been looked at that it might replace.
        if !kept.is_empty() {
            self.each_row(&cells, |own, r| {
                for &(slot, tile, array) in kept.values() {
                    let by = own.memory.index(slot, area.i.low, area.j.low);
                    let (by, here) = (own.lowering.own.int(by), own.rows_on(at, r));
                    let index = own.lowering.own.add(here, by);
                    let value = own.lowering.own.load(array, r);
                    own.lowering.own.store(tile, index, value);
                }
            });
        }
    }

    /// Does something for each row of a thread.
    fn each_row(&mut self, cells: &Cells, write: impl FnOnce(&mut Self, ValueId)) {
        let own = &mut self.lowering.own;
        let [zero, one, rows, last, longer] =
            [0, 1, cells.rows, cells.rows - 1, cells.longer].map(|number| own.int(number as i64));
        let (counter, r) = own.counter("r", zero);
        let body = own.open();
        let before = own.enter(body);
        if cells.longer > 0 {
            // Some parts have a row less.
            let (is_last, is_short) =
                (own.compare(Relation::Eq, r, last), own.compare(Relation::Ge, cells.part, longer));
            let is_over = own.and(is_last, is_short);
            own.break_if(is_over);
        }
        write(self, r);
        let own = &mut self.lowering.own;
        own.enter(before);
        own.repeat(counter, (zero, rows, Step::By(one)), Unroll::Whole, body);
    }

    /// Waits for what a loop looks at.
    fn wait(&mut self, number: usize, is_async: bool) {
        let is_first = self.loops.first_reader(self.flow) == Some(number);
        if is_first && is_async {
            self.lowering.own.perform(Routine::CopyAsyncWait(0), Vec::new());
        }
        if is_first || self.loops.waits(number) {
            self.lowering.own.barrier();
        }
    }

    /// Stores an output.
    fn store(&mut self, number: usize, store: &Store, looks: &BTreeMap<Use, ValueId>, (i, cell): (ValueId, ValueId)) {
        let task = self.lowering.task;
        let Some(to) = self.outputs[number] else { return };
        let columns = &self.tiling.computed[0];
        let has_levels = task.stencil.fields[store.field].place.levels != Levels::None;
        let own = &mut self.lowering.own;
        let mut guards = Vec::new();
        if columns.start > 0 {
            let start = own.int(columns.start as i64);
            guards.push(own.compare(Relation::Ge, i, start));
        }
        if columns.end < task.extents[0] {
            let end = own.int(columns.end as i64);
            guards.push(own.less(i, end));
        }
        if !has_levels {
            let zero = own.int(0);
            guards.push(own.compare(Relation::Eq, self.k, zero));
        }
        let guard = guards.into_iter().reduce(|all, guard| own.and(all, guard));
        let inside = own.open();
        let before = own.enter(inside);
        let value = self.lowering.stored(store, &|used| looks.get(&used).copied());
        let own = &mut self.lowering.own;
        own.store(to, cell, value);
        own.enter(before);
        match guard {
            None => own.append(inside),
            Some(guard) => {
                let outside = own.open();
                own.branch(guard, inside, outside);
            }
        }
    }
}
