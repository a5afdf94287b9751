//! Kernels for CPUs: a thread computes a row of columns, in loops whose turns have nothing to do with each other.

use super::body::{self, Writer};
use super::carried::{COLUMNS, COMING, Carried, LINE, columns_side_by_side};
use super::checked::Site;
use super::levels::{cell, column, find_neighbours};
use super::{Elements, Frame, Given};
use crate::ir::{Direction, FieldId, Path, Relation};
use crate::kernel::build::{Builder, Computing, Making};
use crate::kernel::{Step, Unroll, ValueId};
use crate::plan::Plan;
use crate::plan::phases::Phase;
use crate::storage::{Row, Threads};
use std::collections::BTreeMap;

/// The row of a thread.
struct OwnRow<'a> {
    plan: &'a Plan,
    given: &'a Given,
    threads: Threads,
    row: Row,
}

impl<'a> OwnRow<'a> {
    fn new(given: &'a Given, own: &mut Builder, plan: &'a Plan) -> Self {
        let threads = plan.threads();
        let row = plan.storage.row(own, &given.sizes, &threads);
        Self { plan, given, threads, row }
    }

    /// A loop over some of its columns, `by` at a time: each has a frame and a place.
    fn each(
        &self,
        own: &mut Builder,
        ([start, stop], by): ([ValueId; 2], usize),
        unroll: Unroll,
        mut write: impl FnMut(&mut Builder, Frame, ValueId, ValueId),
    ) {
        let by = Step::By(own.int(by as i64));
        own.each(self.row.name, (start, stop, by), unroll, |own, at| {
            let storage = &self.plan.storage;
            let coordinates = storage.column_of_row(own, &self.given.sizes, &self.threads, &self.row, at);
            let frame = Frame::of(self.plan, self.given, coordinates);
            let column = column(&frame, own);
            write(own, frame, column, at);
        });
    }
}

/// A thread for a row of columns, on one level.
pub(super) fn on_one_level(given: &Given, own: &mut Builder, sites: &mut Vec<Site>, plan: &Plan) {
    let [first, end] = given.sizes.levels;
    let row = OwnRow::new(given, own, plan);
    let thread = plan.levels_along().number(own, plan.choices.block);
    let k = own.name("k", first.plus(thread));
    let is_above = own.term(k.is(Relation::Ge, end));
    own.leave_if(row.row.outside.map_or(is_above.into(), |outside| outside.or(is_above)));
    row.each(own, (row.row.range, 1), Unroll::SideBySide, |own, mut frame, column, _| {
        let cell = cell(&frame, own, column, k);
        find_neighbours(&mut frame, own, None, cell);
        own.gap();
        for phase in &plan.phases {
            Writer::new(&frame, phase, own, sites, cell, Elements::new()).write();
        }
    });
}

/// A thread for a row of columns, on all levels: loop after loop, from level to level with as many columns as find room in the caches.
pub(super) fn through_levels(given: &Given, own: &mut Builder, sites: &mut Vec<Site>, plan: &Plan) {
    let row = OwnRow::new(given, own, plan);
    if let Some(outside) = row.row.outside {
        own.leave_if(outside);
    }
    let nk = plan.known_grid.as_ref().map_or(0, |known_grid| known_grid.grid.nk);
    let columns = columns_side_by_side(&plan.stencil, &plan.kept, nk, plan.choices.precision);
    let carried = Carried::of_columns(own, (&plan.stencil, &plan.kept), (nk, columns), plan.choices.precision);
    let [start, stop] = row.row.range;
    if columns == COLUMNS {
        return plan.phases.iter().for_each(|phase| row.phase(own, sites, phase, ([start, stop], columns, &carried)));
    }
    let step = Step::By(own.int(columns as i64));
    own.each("some", (start, stop, step), Unroll::Times(1), |own, start| {
        let stop = own.name("end_of_some", start.plus(columns).at_most(stop));
        plan.phases.iter().for_each(|phase| row.phase(own, sites, phase, ([start, stop], columns, &carried)));
    });
}

impl OwnRow<'_> {
    /// A phase of some columns, of so many at most.
    fn phase(
        &self,
        own: &mut Builder,
        sites: &mut Vec<Site>,
        phase: &Phase,
        (some, columns, carried): ([ValueId; 2], usize, &Carried),
    ) {
        let [first, end] = self.given.sizes.levels;
        let is_down = phase.direction == Some(Direction::Down);
        let (from, to) = if is_down { (end.minus(1), first) } else { (first.into(), end) };
        let one = own.int(1);
        let step = if is_down { Step::Down(one) } else { Step::By(one) };
        own.each("k", (from, to, step), Unroll::Times(1), |own, k| {
            self.prefetch(own, phase, k, some);
            self.each(own, (some, 1), Unroll::SideBySide, |own, mut frame, column, at| {
                let number = own.term(at.minus(some[0]));
                frame.carried = carried.of_column(own, number, columns);
                let cell = cell(&frame, own, column, k);
                find_neighbours(&mut frame, own, None, cell);
                Writer::new(&frame, phase, own, sites, cell, Elements::new()).write();
            });
        });
    }

    /// Lets what a phase will read a few levels further come to the caches.
    fn prefetch(&self, own: &mut Builder, phase: &Phase, k: ValueId, some: [ValueId; 2]) {
        let coming: BTreeMap<FieldId, Path> = body::loaded_ahead(self.plan, phase).into_iter().collect();
        if coming.is_empty() {
            return;
        }
        let [first, end] = self.given.sizes.levels;
        let is_down = phase.direction == Some(Direction::Down);
        let further = if is_down { k.minus(COMING) } else { k.plus(COMING) };
        let further = own.name("k_further", further);
        let is_level = if is_down { further.is(Relation::Ge, first) } else { further.less(end) };
        own.when(is_level, |own| {
            self.each(own, (some, LINE), Unroll::Times(1), |own, frame, column, _| {
                let cell = cell(&frame, own, column, further);
                for (field, at) in &coming {
                    body::prefetch(&frame, own, cell, *field, at);
                }
            });
        });
    }
}
