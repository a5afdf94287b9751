//! The values of a step: what a thread computes, from what it looks at, and what it keeps for later planes.

use super::super::flow::{Source, Use, Window, used};
use super::body::{Kept, Steps, Walk};
use super::flow::Home;
use super::layout::Layout;
use super::order::Column;
use crate::ir::{Body, DefId, Handle, Relation};
use crate::kernel::ValueId;
use crate::kernel::build::{Computing, Making, Term};
use std::collections::{BTreeMap, BTreeSet};

/// A row of a thread: a counter, and so many rows on.
#[derive(Clone, Copy)]
struct Row {
    counter: ValueId,
    on: i32,
}

impl Row {
    fn on(self, by: i32) -> Self {
        Self { on: self.on + by, ..self }
    }

    /// Its number in an array that begins at a row.
    fn of(self, first: i32) -> Term {
        self.counter.plus(self.on - first)
    }
}

impl Walk<'_> {
    /// Computes a definition for the rows of a thread.
    pub(super) fn define(&mut self, def: DefId, i: i32) {
        let layout = self.layout;
        let Some(own) = layout.flow.instances.get(&(def, i)).copied() else { return };
        let source = Source::Def(def, 0);
        let width = width(own.rows, layout.rows);
        let name = self.lowering.name(source).to_owned();
        let array = self.own().local(&name, layout.task.kind(source), width);
        let body = &layout.task.stencil.defs[def].body;
        let shift = -layout.flow.lags[def.index()];
        self.unrolled("r", (0, width), |walk, r| {
            let value = walk.value(body, shift, i, Row { counter: r, on: own.rows.low });
            walk.own().store(array, r, value);
        });
        self.now.insert((def, i), array);
    }

    /// The value of a body that is evaluated some levels and columns away.
    fn value(&mut self, body: &Body, shift: i32, i: i32, row: Row) -> ValueId {
        let looks = self.looks(body, shift, i, row);
        self.lowering.value(body, shift, &|used| looks.get(&used).copied())
    }

    /// What a body looks at.
    fn looks(&mut self, body: &Body, shift: i32, i: i32, row: Row) -> BTreeMap<Use, ValueId> {
        let stencil = self.layout.task.stencil;
        let uses = body.iter().filter_map(|(_, node)| used(stencil, node, shift));
        let uses: BTreeSet<Use> = uses.collect();
        uses.into_iter().filter_map(|used| Some((used, self.look(used, i, row)?))).collect()
    }

    /// What is looked at from a row.
    fn look(&mut self, used: Use, i: i32, row: Row) -> Option<ValueId> {
        let (flow, memory) = (self.layout.flow, &self.layout.memory);
        let (i, row, age) = (i + used.i, row.on(used.j), flow.age_of(used.source));
        match used.source {
            Source::Field(field, _) => {
                let stencil = self.layout.task.stencil;
                let element = match flow.fields.get(&field)?.home {
                    Home::Memory => match self.flat.get(&field) {
                        Some(here) => here.at(row.of(0)),
                        None => return self.lowering.uniform(used.source),
                    },
                    Home::Registers { .. } => match age {
                        0 => self.registers.get(&field)?[1].at(row.of(0)),
                        _ => self.kept.get(&Kept::Field(field))?.get(age - 1)?.at(row.of(0)),
                    },
                    Home::Shared { back, .. } if !flow.is_shared(stencil, field, age) => {
                        self.kept.get(&Kept::Field(field))?.get(age - back - 1)?.at(row.of(0))
                    }
                    Home::Shared { .. } => match self.held.get(&Column { field, i, age }) {
                        Some(held) => held.array.at(row.of(held.first)),
                        None => {
                            let index = self.place(field, age)?.plus(row.of(0).times(memory.pitch)).plus(i);
                            self.tiles.get(&field)?.at(index)
                        }
                    },
                };
                let element = self.own().term(element);
                Some(self.lowering.element(used.source, element))
            }
            Source::Def(def, shift) => match flow.instances.get(&(def, i)) {
                Some(own) => {
                    let array = match age {
                        0 => *self.now.get(&(def, i))?,
                        _ => *self.kept.get(&Kept::Def(def, i))?.get(age - 1)?,
                    };
                    Some(self.own().term(array.at(row.of(own.rows.low))))
                }
                None => {
                    let body = &self.layout.task.stencil.defs[def].body;
                    Some(self.value(body, shift, i, row))
                }
            },
        }
    }

    /// Computes and stores an output.
    pub(super) fn store(&mut self, number: usize, step: ValueId, steps: &Steps) {
        let layout = self.layout;
        let Layout { task, request, tile, tiles, flow, .. } = layout;
        let computed = &request.computed;
        let store = &task.stencil.stores[number];
        let lag = flow.stores[number];
        let first = flow.before.saturating_add(lag);
        let last = flow.stores.iter().copied().max().unwrap_or(lag);
        let own = self.own();
        let is_late = (first > 0).then(|| own.term(step.is(Relation::Ge, first)));
        let is_inside = (lag < last).then(|| own.term(step.less(steps.planes.plus(first))));
        let (i, end) = (self.column, computed[0].end);
        let is_column = (tile[0] * tiles[0] > computed[0].len()).then(|| self.own().term(i.less(end)));
        let guard = self.lowering.guard(store.field, -lag, is_late.into_iter().chain(is_inside).chain(is_column));
        let has_more_rows = computed[1].len() < tile[1];
        self.when_if(guard, |walk| {
            let Some(to) = walk.lowering.view_to(store.field, -lag, 0) else { return };
            walk.unrolled("r", (0, layout.rows), |walk, r| {
                let row = walk.row;
                let is_row = has_more_rows.then(|| walk.own().term(row.plus(r).less(computed[1].end)));
                walk.when_if(is_row, |walk| {
                    let looks = walk.looks(&store.body, -lag, 0, Row { counter: r, on: 0 });
                    let value = walk.lowering.stored(store, -lag, &|used| looks.get(&used).copied());
                    let cell = walk.cell(r);
                    walk.own().store(to, cell, value);
                });
            });
        });
    }

    /// Keeps the present values for the planes to come.
    pub(super) fn keep(&mut self) {
        let layout = self.layout;
        for (what, kept) in self.kept.clone() {
            let Some(&youngest) = kept.first() else { continue };
            let count = match what {
                Kept::Field(_) => layout.rows,
                Kept::Def(def, i) => width(layout.flow.instances[&(def, i)].rows, layout.rows),
            };
            self.unrolled("r", (0, count), |walk, r| {
                for pair in kept.windows(2).rev() {
                    walk.own().store(pair[1], r, pair[0].at(r));
                }
                if let Some(value) = walk.present(what, r) {
                    walk.own().store(youngest, r, value);
                }
            });
        }
        self.now.clear();
        self.held.clear();
    }

    /// The value that comes next to those that are kept.
    fn present(&mut self, what: Kept, r: ValueId) -> Option<Term> {
        match what {
            Kept::Def(def, i) => Some(self.now.get(&(def, i))?.at(r)),
            Kept::Field(field) => match self.layout.flow.fields[&field].home {
                Home::Memory => None,
                Home::Registers { .. } => Some(self.registers.get(&field)?[1].at(r)),
                Home::Shared { back, .. } => {
                    let held = self.held.get(&Column { field, i: 0, age: back });
                    if let Some(held) = held.filter(|held| held.has(0..self.layout.rows as i32)) {
                        return Some(held.array.at(r.minus(held.first)));
                    }
                    let index = self.at.get(back)?.plus(r.times(self.layout.memory.pitch));
                    Some(self.tiles.get(&field)?.at(index))
                }
            },
        }
    }
}

/// Values of the rows that are read, of threads of so many.
pub(super) fn width(rows: Window, of_thread: usize) -> usize {
    of_thread.saturating_add_signed((rows.high - rows.low) as isize)
}
