//! The body of a kernel that walks along k.

use super::super::flow::Source;
use super::super::lower::{Frame, Lowering, circled};
use super::Queue;
use super::flow::{Flow, Home};
use super::layout::{Layout, Tile};
use super::load::Copies;
use super::order::{Column, Columns, Item};
use super::read::Held;
use super::values::width;
use crate::ir::{DefId, FieldId, Relation};
use crate::kernel::build::{Builder, Computing, Making};
use crate::kernel::{ArrayId, Axis, Coordinate, Routine, Type, ValueId};
use std::collections::BTreeMap;

/// Makes one kernel.
pub struct Walk<'a> {
    /// How the stencil is walked through.
    pub(super) layout: &'a Layout<'a>,
    /// Arguments and bodies.
    pub(super) lowering: Lowering<'a>,
    /// Of each field in shared memory its planes.
    pub(super) tiles: BTreeMap<FieldId, ArrayId>,
    /// Where copies come from, by how many elements they have.
    pub(super) copies: BTreeMap<usize, Copies>,
    /// Where the block begins.
    pub(super) first_column: ValueId,
    pub(super) first_row: ValueId,
    /// Where the thread is: its column, its first row, and its first cell in a plane of shared memory.
    pub(super) column: ValueId,
    pub(super) row: ValueId,
    pub(super) here: ValueId,
    /// Where that cell is in the planes so many before the present one.
    pub(super) at: Vec<ValueId>,
    /// The values of fields that are read at the cell alone: those on their way, and the present ones.
    pub(super) registers: BTreeMap<FieldId, [ArrayId; 2]>,
    /// The values of fields on no levels.
    pub(super) flat: BTreeMap<FieldId, ArrayId>,
    /// What is kept of fields and definitions, the youngest first.
    pub(super) kept: BTreeMap<Kept, Vec<ArrayId>>,
    /// The present values of definitions.
    pub(super) now: BTreeMap<(DefId, i32), ArrayId>,
    /// What has been read of planes in shared memory.
    pub(super) held: BTreeMap<Column, Held>,
}

/// What is kept for later planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    Field(FieldId),
    Def(DefId, i32),
}

/// What a block does when.
pub(super) struct Steps {
    /// How many planes it computes.
    pub planes: ValueId,
    /// All steps.
    pub count: ValueId,
}

impl Making for Walk<'_> {
    fn own(&mut self) -> &mut Builder {
        &mut self.lowering.own
    }
}

impl<'a> Walk<'a> {
    /// The beginning of a kernel of a layout.
    pub fn new(layout: &'a Layout<'a>) -> Self {
        let ([i, j], stages, rows) = (layout.tile, layout.shape.stages, layout.rows);
        let (ending, queue) = match layout.request.queue {
            Queue::Output => ("swic", "outputs"),
            Queue::Input => ("queue", "values of fields"),
        };
        let how = format!(
            "a block walks along k through {} planes of {i}x{j} cells, a thread has {rows} rows, {queue} wait in \
             registers; {stages} planes at once are in {} bytes of shared memory",
            layout.planes, layout.memory.bytes
        );
        let frame = Frame { ending, threads: layout.threads, aliased: false, math: layout.request.math, how };
        let mut lowering = Lowering::new(layout.task, &layout.flow.sources(), frame);
        lowering.walk_levels(layout.request.computed[2].start);
        let none = lowering.own.int(0);
        Self {
            layout,
            lowering,
            tiles: BTreeMap::new(),
            copies: BTreeMap::new(),
            first_column: none,
            first_row: none,
            column: none,
            row: none,
            here: none,
            at: Vec::new(),
            registers: BTreeMap::new(),
            flat: BTreeMap::new(),
            kept: BTreeMap::new(),
            now: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// The kernel with all that it does.
    pub fn lower(mut self) -> Lowering<'a> {
        let (layout, stages) = (self.layout, self.layout.shape.stages);
        let (first_plane, steps) = self.begin();
        self.memory();
        self.copies = self.copies();
        self.registers(first_plane);
        self.prologue(first_plane);
        let own = self.own();
        let slot = own.variable("slot", 0);
        own.gap();
        self.repeated("step", (0, steps.count, 1), |walk, step| {
            let own = walk.own();
            let k = own.name("k", first_plane.plus(step));
            walk.lowering.at_level(k);
            let has_tiles = !walk.tiles.is_empty();
            let slot_now = walk.own().get(slot);
            if has_tiles {
                let own = walk.own();
                own.perform(Routine::CopyAsyncWait(stages - 2), Vec::new());
                own.barrier();
                walk.find(slot_now);
            }
            walk.advance();
            walk.items(&layout.order.items, step, &steps, slot_now);
            walk.keep();
            if has_tiles {
                let own = walk.own();
                let next = slot_now.plus(1);
                let is_last = own.term(slot_now.is(Relation::Eq, layout.memory.slots - 1));
                own.assign(slot, is_last.picks(0, next));
            }
        });
        self.lowering
    }

    /// Where the block and the thread are. Returns the plane of the first step, and how many steps there are.
    fn begin(&mut self) -> (ValueId, Steps) {
        let layout = self.layout;
        let ([columns, rows], [along_i, along_j]) = (layout.tile, layout.tiles);
        let [computed_i, computed_j, levels] = &layout.request.computed;
        let own = &mut self.lowering.own;
        let block = own.name("block", Coordinate::Block.along(Axis::X));
        let number = |own: &mut Builder, by: usize, count: usize| own.term(block.over(by).rem(count));
        let tile_i = number(own, 1, along_i);
        self.first_column = own.name("first_column", tile_i.times(columns).plus(computed_i.start));
        let tile_j = number(own, along_i, along_j);
        let begin = tile_j.times(rows);
        // The last one stands back onto the one before it: the same bits are written twice.
        let begin = if computed_j.len() < rows || computed_j.len().is_multiple_of(rows) {
            begin
        } else {
            begin.at_most(computed_j.len() - rows)
        };
        self.first_row = own.name("first_row", begin.plus(computed_j.start));
        let part = own.term(block.over(along_i * along_j));
        let first = own.name("first_level", part.times(layout.planes).plus(levels.start));
        let planes = match levels.len().is_multiple_of(layout.planes) {
            true => own.int(layout.planes as i64),
            false => own.name("planes", levels.end.minus(first).at_most(layout.planes)),
        };
        let across = own.name("across", Coordinate::Thread.along(Axis::X));
        let down = own.name("down", Coordinate::Thread.along(Axis::Y).times(layout.rows));
        self.column = own.name("i", self.first_column.plus(across));
        self.row = own.name("j", self.first_row.plus(down));
        let [before, above] = layout.memory.before;
        self.here = own.term(down.plus(above).times(layout.memory.pitch).plus(across).plus(before));
        own.note("NVRTC 13.0 can lose the end of a loop whose length it knows; a launch has one block along y.");
        let blocks = own.name("blocks", Coordinate::Blocks.along(Axis::Y));
        let count = own.name("count", planes.plus(layout.flow.span).plus(blocks).minus(1));
        let first_plane = own.name("first_plane", first.minus(layout.flow.before));
        (first_plane, Steps { planes, count })
    }

    /// Names the planes in shared memory.
    fn memory(&mut self) {
        let memory = &self.layout.memory;
        if memory.homes.is_empty() {
            return;
        }
        let dynamic = self.own().dynamic("memory", memory.bytes);
        for (&field, tile) in &memory.homes {
            let wish = format!("{}_planes", self.lowering.read_name(field));
            let slots = if tile.is_walked { memory.slots } else { 1 };
            let part = (tile.offset, slots * memory.plane());
            let array = self.own().part(&wish, dynamic, tile.element, part);
            self.tiles.insert(field, array);
        }
    }

    /// What a thread holds from step to step.
    fn registers(&mut self, first_plane: ValueId) {
        let (layout, rows) = (self.layout, self.layout.rows);
        let Flow { fields, instances, .. } = layout.flow;
        self.own().gap();
        let zeros = |walk: &mut Self, wish: String, kind: Type, width: usize, count: usize| -> Vec<ArrayId> {
            (0..count).map(|_| walk.own().zeros(&wish, kind, width)).collect()
        };
        for (&field, own) in fields {
            let (name, kind) = (self.lowering.read_name(field).to_owned(), layout.task.stored(field));
            let kept = match own.home {
                Home::Memory if layout.task.stencil.fields[field].place.horizontal => {
                    let here = self.own().local(&format!("{name}_here"), kind, rows);
                    self.flat.insert(field, here);
                    self.lowering.at_level(first_plane);
                    self.loads(field, here, 0);
                    continue;
                }
                Home::Memory => continue,
                Home::Registers { kept } => {
                    let coming = self.own().local(&format!("{name}_coming"), kind, rows);
                    self.registers.insert(field, [coming; 2]);
                    self.lowering.at_level(first_plane);
                    self.loads(field, coming, -own.lag);
                    kept
                }
                Home::Shared { back, kept, .. } => kept.saturating_sub(back),
            };
            let kept = zeros(self, format!("{name}_kept"), kind, rows, kept);
            self.kept.insert(Kept::Field(field), kept);
        }
        for (&(def, i), own) in instances {
            let (name, kind) =
                (self.lowering.name(Source::Def(def, 0)).to_owned(), layout.task.kind(Source::Def(def, 0)));
            let kept = zeros(self, format!("{name}_kept"), kind, width(own.rows, rows), own.kept);
            self.kept.insert(Kept::Def(def, i), kept);
        }
    }

    /// Starts the copies of the first planes.
    fn prologue(&mut self, first_plane: ValueId) {
        let layout = self.layout;
        if self.tiles.is_empty() {
            return;
        }
        self.own().gap();
        self.lowering.at_level(first_plane);
        for stage in 0..layout.shape.stages - 1 {
            for (&field, tile) in &layout.memory.homes {
                if tile.is_walked {
                    let slot = self.own().int(stage as i64);
                    self.copy(field, *tile, stage as i32 - self.lag(field), Some(slot));
                } else if stage == 0 {
                    self.copy(field, *tile, 0, None);
                }
            }
            self.own().perform(Routine::CopyAsyncCommit, Vec::new());
        }
    }

    fn lag(&self, field: FieldId) -> i32 {
        self.layout.flow.fields[&field].lag
    }

    /// Finds where the thread's cell is in the planes that are looked at.
    fn find(&mut self, slot: ValueId) {
        let memory = &self.layout.memory;
        let (back, here) = (memory.slots - self.layout.shape.stages, self.here);
        let own = &mut self.lowering.own;
        self.at = (0..=back)
            .map(|age| {
                let slot = match age {
                    0 => slot.into(),
                    _ => own.term(slot.less(age)).picks(slot.plus(memory.slots - age), slot.minus(age)),
                };
                own.name("at", slot.times(memory.plane()).plus(here))
            })
            .collect();
    }

    /// Makes what was on its way to registers the present values, and loads the next.
    fn advance(&mut self) {
        let rows = self.layout.rows;
        for (field, [coming, _]) in self.registers.clone() {
            let (name, kind) = (self.lowering.read_name(field).to_owned(), self.layout.task.stored(field));
            let now = self.own().local(&format!("{name}_now"), kind, rows);
            self.unrolled("r", (0, rows), |walk, r| walk.own().store(now, r, coming.at(r)));
            self.registers.insert(field, [coming, now]);
            self.loads(field, coming, 1 - self.lag(field));
        }
    }

    /// Loads a thread's own values of a plane.
    fn loads(&mut self, field: FieldId, to: ArrayId, shift: i32) {
        let rows = self.layout.rows;
        let Some(from) = self.lowering.view_from(Source::Field(field, shift), 0) else { return };
        self.unrolled("r", (0, rows), |walk, r| {
            let cell = walk.cell(r);
            walk.own().store(to, r, from.at(cell));
        });
    }

    /// Where a cell of the thread is in a plane of memory. One that is not computed is another one of the plane.
    pub(super) fn cell(&mut self, r: ValueId) -> ValueId {
        let Layout { task, request, tile, tiles, .. } = self.layout;
        let computed = &request.computed;
        let kind = task.index();
        let [ni, nj, _] = task.extents;
        let is_whole = [0, 1].map(|axis| tile[axis] * tiles[axis] == computed[axis].len() || axis == 1 && tiles[1] > 1);
        let i = if is_whole[0] { self.column.into() } else { self.column.at_most(ni - 1) };
        let j = self.row.plus(r);
        let j = if is_whole[1] { j } else { circled(j, nj) };
        self.own().term(j.to(kind).times(task.rows.row).plus(i.to(kind)))
    }

    /// Computes all items of a step, and starts the copies of a plane to come, spread over them.
    fn items(&mut self, items: &[(Item, Columns)], step: ValueId, steps: &Steps, slot: ValueId) {
        let (layout, stages) = (self.layout, self.layout.shape.stages);
        let slots = layout.memory.slots;
        let walked: Vec<(FieldId, Tile)> = layout
            .memory
            .homes
            .iter()
            .filter(|(_, tile)| tile.is_walked)
            .map(|(&field, &tile)| (field, tile))
            .collect();
        let to = (!walked.is_empty()).then(|| {
            let own = self.own();
            let ahead = slot.plus(stages - 1);
            let wraps = own.term(slot.is(Relation::Ge, slots - (stages - 1)));
            own.name("slot_to", wraps.picks(slot.minus(slots - (stages - 1)), ahead))
        });
        let is_more = to.map(|_| self.own().name("has_more", step.plus(stages - 1).less(steps.count)));
        let mut copies = walked.iter().enumerate().peekable();
        for (number, (item, columns)) in items.iter().enumerate() {
            while let Some((_, &own)) = copies.next_if(|(copy, _)| number * walked.len() >= copy * items.len()) {
                self.copy_ahead(own, to, is_more);
            }
            self.read(columns);
            match *item {
                Item::Def(def, i) => self.define(def, i),
                Item::Store(number) => self.store(number, step, steps),
            }
        }
        copies.for_each(|(_, &own)| self.copy_ahead(own, to, is_more));
        if !walked.is_empty() {
            self.own().perform(Routine::CopyAsyncCommit, Vec::new());
        }
    }

    /// Starts the copies of the next plane of a field, if there is one.
    fn copy_ahead(&mut self, (field, tile): (FieldId, Tile), to: Option<ValueId>, is_more: Option<ValueId>) {
        let shift = self.layout.shape.stages as i32 - 1 - self.lag(field);
        self.when_if(is_more, |walk| walk.copy(field, tile, shift, to));
    }
}
