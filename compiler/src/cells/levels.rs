//! How many levels a thread computes: one, a few, or all, loop after loop.

use super::body::{self, Writer};
use super::carried::Carried;
use super::checked::Site;
use super::{Ahead, Elements, Frame};
use crate::access::{Addresses, Cell, Reads, Shape};
use crate::analysis::extents::extents;
use crate::ir::{Direction, FieldId, Path, Relation};
use crate::kernel::build::{Builder, Computing, Making};
use crate::kernel::{ArrayId, Step, Type, Unroll, ValueId};
use crate::names::name_at;
use crate::plan::{Plan, shape_of};
use std::collections::BTreeMap;

/// Levels that a sweep loads at once, while it computes as many before them: sweeps wait long for each level, if only for its divisions, so
/// they do not wait for memory, too.
const AHEAD: usize = 8;

/// Words of registers that wait for the levels at hand, at most, and as many that are on their way.
const WAITING: usize = 64;

/// Looks up the neighbours, where all threads of a block do so together or each for itself.
pub(super) fn distances(frame: &Frame, own: &mut Builder, together: bool) -> Option<Vec<ValueId>> {
    let access = frame.plan.access;
    let is_now = access.is_together() == together && !frame.plan.wanted.is_empty();
    is_now.then(|| access.distances(own, &frame.neighbourhood())).flatten()
}

/// Finds the neighbours of a cell, by distances that all threads of a block looked up together, or else by its own.
pub(super) fn find_neighbours(frame: &mut Frame, own: &mut Builder, handed: Option<Vec<ValueId>>, cell: Cell) {
    let Some(distances) = handed.or_else(|| distances(frame, own, false)) else { return };
    frame.addresses = match frame.plan.access.has_index_variables() {
        true => frame.neighbourhood().index_variables(own, &distances, cell),
        false => Addresses::Distances(distances),
    };
}

/// The place of the thread's column, as a variable where more than its cells' indices are made of it.
pub(super) fn column(frame: &Frame, own: &mut Builder) -> ValueId {
    let plan = frame.plan;
    let is_read = plan.stencil.own_fields().any(|(id, _)| shape_of(&plan.stencil, id) == Some(Shape::Plane));
    match is_read || plan.choices.checked {
        true => own.name("column", frame.coordinates.column),
        false => frame.coordinates.column,
    }
}

/// The cell on a level of the thread's column.
pub(super) fn cell(frame: &Frame, own: &mut Builder, column: ValueId, k: ValueId) -> Cell {
    let c = frame.plan.storage.index(own, &frame.sizes, column, k);
    Cell { k, c: own.name("c", c), column }
}

/// A thread for one level.
pub(super) fn one_level(frame: &mut Frame, own: &mut Builder, sites: &mut Vec<Site>) {
    let plan = frame.plan;
    let [first, end] = frame.sizes.levels;
    let thread = plan.levels_along().number(own, plan.choices.block);
    let k = own.name("k", first.plus(thread));
    let handed = distances(frame, own, true);
    let is_together = plan.access.is_together();
    let mut loaded = Elements::new();
    if is_together {
        let column = frame.coordinates.column;
        let c = plan.storage.index(own, &frame.sizes, column, k);
        loaded = elements(frame, own, Cell { k, c, column });
    }
    own.leave_if(frame.coordinates.outside.or(k.is(Relation::Ge, end)));
    let column = column(frame, own);
    let cell = cell(frame, own, column, k);
    find_neighbours(frame, own, handed, cell);
    own.gap();
    if !is_together {
        loaded = elements(frame, own, cell);
    }
    for phase in &plan.phases {
        Writer::new(frame, phase, own, sites, cell, loaded.clone()).write();
    }
}

/// The elements that the strategy loads by itself.
pub(super) fn elements(frame: &Frame, own: &mut Builder, cell: Cell) -> Elements {
    let plan = frame.plan;
    let reads = Reads {
        sure: &plan.surely_read(),
        arrays: &frame.inputs,
        extents: extents(&plan.stencil),
        levels: plan.tile.levels,
        run_width: &|field| plan.run_width_of(field),
        neighbourhood: frame.neighbourhood(),
        cell,
        index: &|own, field, path| frame.index(own, cell, field, path, true),
    };
    plan.access.elements(own, &reads)
}

/// What stands before a loop over levels: the place of the column.
fn before_levels(frame: &mut Frame, own: &mut Builder) -> ValueId {
    let plan = frame.plan;
    own.leave_if(frame.coordinates.outside);
    let column = column(frame, own);
    if let Some(distances) = distances(frame, own, false) {
        frame.addresses = Addresses::Distances(distances);
    }
    // Sweeps are for threads with a whole column: others keep nothing.
    let nk = plan.known_grid.as_ref().map_or(0, |known_grid| known_grid.grid.nk);
    let choices = &plan.choices;
    frame.carried = Carried::declare(own, (&plan.stencil, &plan.kept), (nk, choices.block), choices.precision, true);
    column
}

/// A thread for a few levels that follow each other.
pub(super) fn slice_of_levels(frame: &mut Frame, own: &mut Builder, sites: &mut Vec<Site>, slice: u32) {
    let plan = frame.plan;
    let column = before_levels(frame, own);
    own.gap();
    let [first, end] = frame.sizes.levels;
    let thread = plan.levels_along().number(own, plan.choices.block);
    let start = own.name("k_start", first.plus(thread.times(slice)));
    let is_whole = plan.has_whole_slices();
    if is_whole {
        own.leave_if(start.is(Relation::Ge, end));
    }
    own.unrolled("k", (start, start.plus(slice)), |own, k| {
        if !is_whole {
            own.break_if(k.is(Relation::Ge, end));
        }
        let cell = cell(frame, own, column, k);
        for phase in &plan.phases {
            Writer::new(frame, phase, own, sites, cell, Elements::new()).write();
        }
    });
}

/// How many levels of these elements are loaded at once.
fn at_once(plan: &Plan, ahead: &Ahead) -> usize {
    let bytes = |field: FieldId| plan.stencil.fields[field].stored.bytes(plan.choices.precision);
    let words: usize = ahead.iter().map(|(field, _)| bytes(*field).div_ceil(4)).sum();
    [AHEAD, 4, 2].into_iter().find(|levels| words * levels <= WAITING).unwrap_or(1)
}

/// A thread for all levels: loop after loop.
pub(super) fn all_levels(frame: &mut Frame, own: &mut Builder, sites: &mut Vec<Site>) {
    let plan = frame.plan;
    let column = before_levels(frame, own);
    own.gap();
    let [first, end] = frame.sizes.levels;
    let one = own.int(1);
    for phase in &plan.phases {
        let is_down = phase.direction == Some(Direction::Down);
        let ahead = body::loaded_ahead(plan, phase);
        let (from, to) = if is_down { (end.minus(1), first) } else { (first.into(), end) };
        let step = if is_down { Step::Down } else { Step::By };
        if ahead.is_empty() {
            own.each("k", (from, to, step(one)), Unroll::Times(4), |own, k| {
                let cell = cell(frame, own, column, k);
                Writer::new(frame, phase, own, sites, cell, Elements::new()).write();
            });
            continue;
        }
        // What is loaded waits in arrays, for the levels at hand and for those after them.
        let at_once = at_once(plan, &ahead);
        // Numbers of a field that are a level apart come to the cache one after the other.
        let to_cache: BTreeMap<FieldId, Path> = ahead.iter().cloned().collect();
        let mut arrays: BTreeMap<_, [ArrayId; 2]> = BTreeMap::new();
        for (field, at) in ahead {
            let declared = &plan.stencil.fields[field];
            let element = Type::stored(declared.stored, plan.choices.precision);
            let array = |end: &str| own.local(&format!("{}_{end}", name_at(&declared.name, &at)), element, at_once);
            arrays.insert((field, at.clone()), ["next", "ahead"].map(array));
        }
        let count = own.int(at_once as i64);
        let levels = |own: &mut Builder, start: ValueId, write: &mut dyn FnMut(&mut Builder, Cell, ValueId)| {
            own.unrolled("n", (0, count), |own, number| {
                let k = own.name("k", if is_down { start.minus(number) } else { start.plus(number) });
                let relation = if is_down { Relation::Lt } else { Relation::Ge };
                own.break_if(k.is(relation, if is_down { first } else { end }));
                let cell = cell(frame, own, column, k);
                write(own, cell, number);
            });
        };
        let load = |own: &mut Builder, start: ValueId| {
            levels(own, start, &mut |own, cell, number| {
                for ((field, at), [next, _]) in &arrays {
                    let element = body::element_ahead(frame, own, cell, *field, at);
                    own.store(*next, number, element);
                }
            });
            if frame.carried.prefetches(plan.choices.precision) {
                let further = own.term(if is_down { start.minus(count) } else { start.plus(count) });
                levels(own, further, &mut |own, cell, _| {
                    for (field, at) in &to_cache {
                        body::prefetch(frame, own, cell, *field, at);
                    }
                });
            }
        };
        let from = own.term(from);
        load(own, from);
        own.each("k_start", (from, to, step(count)), Unroll::Times(1), |own, start| {
            own.unrolled("n", (0, count), |own, number| {
                for [next, here] in arrays.values() {
                    let element = own.load(*next, number);
                    own.store(*here, number, element);
                }
            });
            let after = own.term(if is_down { start.minus(count) } else { start.plus(count) });
            load(own, after);
            levels(own, start, &mut |own, cell, number| {
                let loaded = arrays.iter().map(|(key, [_, here])| (key.clone(), own.load(*here, number)));
                let loaded = loaded.collect();
                Writer::new(frame, phase, own, sites, cell, loaded).write();
            });
        });
    }
}
