//! How planes of fields come from memory.

use super::super::lower::circled;
use super::super::{Edge, StepTask};
use super::Request;
use super::body::Walk;
use super::layout::Tile;
use crate::gpu::AT_ONCE;
use crate::ir::FieldId;
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Axis, Coordinate, Routine, ValueId};
use std::collections::BTreeMap;

/// How many elements of a field are copied at once: as many as are aligned wherever a block's plane begins.
pub fn at_once(task: &StepTask, request: &Request, field: FieldId, (tile, before): (usize, usize)) -> usize {
    let Some(aligned) = request.aligned else { return 1 };
    let begins = request.computed[0].start;
    let [ni, nj, _] = task.extents;
    let rows = task.rows;
    let mut many = (AT_ONCE / task.stored(field).bytes()).max(1);
    let is_aligned = |many: usize| {
        [tile, rows.row, rows.plane].iter().all(|at| at.is_multiple_of(many))
            && (begins + rows.first).abs_diff(aligned).is_multiple_of(many)
    };
    // Where a row ends within a copy, what it reads beyond is not looked at; but it has to be there.
    let is_there = |many: usize| match task.edges[0] {
        Edge::Periodic => ni.is_multiple_of(many),
        Edge::Open => {
            let begins_inside = before.next_multiple_of(many) <= begins || aligned == begins;
            begins_inside && (rows.plane >= rows.row * nj + many || many == 1)
        }
    };
    while !(is_aligned(many) && is_there(many)) {
        many /= 2;
    }
    many
}

/// Where the copies of a thread come from: fields of which as many elements are copied at once.
#[derive(Clone, Copy)]
pub struct Copies {
    /// Elements that are copied at once.
    many: usize,
    /// Columns of copies, rows that a thread's copies are apart, and how often it copies.
    columns: usize,
    apart: usize,
    times: usize,
    /// Of each copy the cell that it comes from.
    cells: ArrayId,
    /// Where the first one goes to in a plane.
    to: ValueId,
    /// Whether the thread has any, and whether it has the last one.
    is_own: Option<ValueId>,
    has_last: Option<ValueId>,
}

/// The number of a thread in its block, which has so many along x.
fn thread_of(along_x: usize) -> Term {
    let [x, y] = [Axis::X, Axis::Y].map(|axis| Coordinate::Thread.along(axis));
    y.times(along_x).plus(x)
}

impl Walk<'_> {
    /// Finds where the copies of a thread come from, before all steps.
    pub(super) fn copies(&mut self) -> BTreeMap<usize, Copies> {
        let homes = &self.layout.memory.homes;
        let widths: std::collections::BTreeSet<usize> = homes.values().map(|tile| tile.many).collect();
        widths.into_iter().map(|many| (many, self.copies_of(many))).collect()
    }

    fn copies_of(&mut self, many: usize) -> Copies {
        let layout = self.layout;
        let (task, memory, threads) = (layout.task, &layout.memory, layout.threads);
        let [ni, nj, _] = task.extents;
        let (kind, first_row, first_column) = (task.index(), self.first_row, self.first_column);
        // More columns than threads: some copy several.
        let columns = memory.pitch / many;
        let apart = (threads / columns).max(1);
        let is_wide = columns > threads;
        let times = if is_wide { memory.rows * columns.div_ceil(threads) } else { memory.rows.div_ceil(apart) };
        let own = self.own();
        let thread = own.term(thread_of(layout.shape.block[0]));
        own.note(format!("Copies of {many} elements: where they come from in a plane."));
        let cells = own.local("copied", kind, times);
        let (column, row) = match is_wide {
            false => {
                let column = own.name("copied_column", thread.rem(columns));
                (column, own.name("copied_row", thread.over(columns)))
            }
            true => (thread, own.int(0)),
        };
        let to = own.name("copied_to", row.times(memory.pitch).plus(column.times(many)));
        let is_own = (!is_wide && !threads.is_multiple_of(columns)).then(|| own.name("copies", row.less(apart)));
        let has_last = (!is_wide && !memory.rows.is_multiple_of(apart))
            .then(|| own.name("copies_last", row.plus((times - 1) * apart).less(memory.rows)));
        let [before, above] = memory.before;
        let across = columns.div_ceil(threads);
        self.unrolled("copy", (0, times), |walk, copy| {
            let own = walk.own();
            let (column, row) = match is_wide {
                false => (column.into(), row.plus(copy.times(apart))),
                true => (column.plus(copy.rem(across).times(threads)), copy.over(across)),
            };
            let i = first_column.plus(column.times(many)).minus(before);
            let i = match task.edges[0] {
                Edge::Periodic => circled(i, ni),
                Edge::Open => {
                    let begins = layout.request.computed[0].start;
                    let last = begins + (ni - 1 - begins) / many * many;
                    i.at_most(last)
                }
            };
            let j = circled(first_row.plus(row).minus(above), nj);
            let cell = j.to(kind).times(task.rows.row).plus(i.to(kind));
            own.store(cells, copy, cell);
        });
        Copies { many, columns, apart, times, cells, to, is_own, has_last }
    }

    /// Starts to copy a plane of a field, some levels away from that at hand, to a slot.
    pub(super) fn copy(&mut self, field: FieldId, tile: Tile, shift: i32, slot: Option<ValueId>) {
        let layout = self.layout;
        let (Some(&array), Some(&input)) = (self.tiles.get(&field), self.lowering.inputs.get(&field)) else { return };
        let (memory, threads) = (&layout.memory, layout.threads);
        let Some(Copies { many, columns, apart, times, cells, to, is_own, has_last }) =
            self.copies.get(&tile.many).copied()
        else {
            return;
        };
        let plane = self.lowering.plane(field, shift);
        let wish = format!("{}_from", self.lowering.read_name(field));
        let from = self.own().view(&wish, input, plane);
        let to = match slot {
            Some(slot) => self.own().term(slot.times(memory.plane()).plus(to)),
            None => to,
        };
        let routine = match many * tile.element.bytes() {
            bytes @ (4 | 8 | 16) => Routine::CopyAsync(bytes),
            _ => Routine::CopyRun(many),
        };
        let is_wide = columns > threads;
        let across = columns.div_ceil(threads);
        self.when_if(is_own, |walk| {
            walk.unrolled("copy", (0, times), |walk, copy| {
                let own = walk.own();
                let by = match is_wide {
                    false => copy.times(apart * memory.pitch),
                    true => copy.over(across).times(memory.pitch).plus(copy.rem(across).times(threads * many)),
                };
                let to = own.place(array, to.plus(by));
                let from = own.place(from, cells.at(copy));
                let is_copied = match has_last {
                    Some(has_last) => Some(own.term(copy.less(times - 1).or(has_last))),
                    None if is_wide => {
                        let thread = thread_of(layout.shape.block[0]);
                        Some(own.term(thread.plus(copy.rem(across).times(threads)).less(columns)))
                    }
                    None => None,
                };
                walk.when_if(is_copied, |walk| walk.own().perform(routine, vec![to, from]));
            });
        });
    }
}
