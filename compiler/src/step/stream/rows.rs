//! The rows of a step: loaded, fetched from neighbouring lanes, computed, written and kept.

use super::super::flow::{Source, Use};
use super::super::lower::Look;
use super::kernel::{Coming, Here, Maker, View};
use super::tiling::{Held, Tiling};
use crate::gpu::WARP;
use crate::ir::Relation;
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Binary, Operand, Routine, ValueId};

impl Maker<'_> {
    /// The present turn among so many: `q % 2`.
    pub(super) fn turned(&mut self, turn: ValueId, of: usize) -> ValueId {
        match of {
            1 => self.own().int(0),
            _ if of == self.tiling.unrolled => turn,
            _ => self.own().term(turn.rem(of)),
        }
    }

    /// Where the row of so many steps before is kept.
    fn slot(&mut self, turn: ValueId, place: usize, age: usize) -> ValueId {
        let slots = self.tiling.held[place].slots;
        match (slots, age.next_multiple_of(slots) - age) {
            (1, _) => self.own().int(0),
            (_, 0) => self.turned(turn, slots),
            (_, on) => self.own().term(turn.plus(on).rem(slots)),
        }
    }

    /// How far it is in a plane to a row that is so many further on.
    fn rows_on(&self, row: impl Into<Term>) -> Term {
        row.into().to(self.lower.task.index()).times(self.lower.task.rows.row)
    }

    /// Loads the next row of each field.
    pub(super) fn loads(&mut self, here: &Here, to: ValueId) {
        let (task, all_beyond) = (self.lower.task, self.beyond());
        for (place, Coming { from, rows, beyond }) in self.coming.clone() {
            let Source::Field(field, _) = self.flow.rows[place].source else { continue };
            let at_row = self.rows_on(here.rows[&self.lead(place)]);
            let at_once = task.at_once(field, self.tiling.lane, &[]);
            let [before, after] = self.tiling.held[place].halo;
            let own = self.own();
            let at_row = own.term(at_row);
            let at = own.place(from, at_row.plus(here.column.to(task.index())));
            own.perform(Routine::LoadRow(at_once), vec![Operand::Place(rows, to), at]);
            let (Some(beyond), Some([at_edge, edge])) = (beyond, here.edge) else { continue };
            let mut at = at_row.plus(edge.to(task.index()));
            // The same columns for all fields: those next to the strip are the last at its left and the first at its right.
            let skip = all_beyond - before.max(after);
            if skip > 0 {
                at = at.plus(here.lane.is(Relation::Eq, 0).picks(skip.to(task.index()), 0.to(task.index())));
            }
            let operands = vec![Operand::Place(beyond, to), own.place(from, at), Operand::Value(at_edge)];
            own.perform(Routine::LoadRowWhere, operands);
        }
        let nj = task.extents[1];
        for &row in here.rows.values() {
            let own = self.own();
            let next = own.term(row.plus(1));
            own.assign(
                row,
                match nj.is_power_of_two() {
                    true => next.by(Binary::BitAnd, nj - 1),
                    false => row.is(Relation::Eq, nj - 1).picks(0, next),
                },
            );
        }
    }

    /// Takes the row of each field that has come.
    pub(super) fn takes(&mut self, here: &Here, turn: ValueId) {
        for (place, Coming { rows, beyond, .. }) in self.coming.clone() {
            let source = self.flow.rows[place].source;
            let Held { halo, .. } = self.tiling.held[place];
            let turn = self.turned(turn, self.shape.ahead);
            let now = self.row(&format!("{}_now", self.lower.name(source)), source, halo);
            let row = Operand::Place(rows, turn);
            match beyond {
                None => self.lower.widened(here.lane, Operand::Row(now), row, halo),
                Some(beyond) => {
                    let operands =
                        vec![Operand::Row(now), row, Operand::Place(beyond, turn), Operand::Value(here.lane)];
                    self.own().perform(Routine::JoinRows(halo[0], halo[1]), operands);
                }
            }
            self.views.insert((place, 0), View { row: now, halo });
            self.now.insert(place, now);
        }
    }

    /// A row of a value, with columns before and after the lane's own.
    fn row(&mut self, wish: &str, source: Source, halo: [usize; 2]) -> ArrayId {
        let count = halo[0] + self.tiling.lane + halo[1];
        self.lower.own.local(wish, self.lower.task.kind(source), count)
    }

    /// Names the rows of steps before.
    pub(super) fn look_back(&mut self, turn: ValueId) {
        let keys: Vec<(usize, usize)> = self.wanted.keys().copied().filter(|&(_, age)| age > 0).collect();
        for (place, age) in keys {
            let wish = format!("{}_back{age}", self.lower.name(self.flow.rows[place].source));
            let slot = self.slot(turn, place, age);
            let Some(kept) = self.kept.get(&place).copied() else { continue };
            let row = self.own().row(&wish, kept, slot, false);
            self.views.insert((place, age), View { row, halo: self.tiling.held[place].halo });
        }
    }

    /// Fetches from the neighbouring lanes what these uses look at beyond a row's own columns, where nobody has yet.
    fn widen(&mut self, here: &Here, lag: i32, uses: &[Use]) {
        for &used in uses {
            let Some(key) = self.flow.age(lag, used) else { continue };
            let Some(View { row, halo }) = self.views.get(&key).copied() else { continue };
            let window = self.wanted[&key];
            if window.before() <= halo[0] && window.after() <= halo[1] || self.tiling.held[key.0].computed {
                continue;
            }
            let halo = window.sides();
            let wish = format!("{}_wide", self.lower.own.kernel().arrays[row].name);
            let wide = self.row(&wish, used.source, halo);
            self.lower.widened(here.lane, Operand::Row(wide), Operand::Row(row), halo);
            self.views.insert(key, View { row: wide, halo });
        }
    }

    /// The same for all outputs.
    pub(super) fn widen_of_stores(&mut self, here: &Here) {
        let flow = self.flow;
        flow.stores.iter().for_each(|uses| self.widen(here, flow.lag, uses));
    }

    /// Computes the present rows of all definitions.
    pub(super) fn values(&mut self, here: &Here) {
        let (flow, stencil) = (self.flow, self.lower.task.stencil);
        for (place, row) in flow.rows.iter().enumerate() {
            let Source::Def(def, shift) = row.source else { continue };
            self.widen(here, row.lag, &row.uses);
            let Held { halo, computed, .. } = self.tiling.held[place];
            let name = self.lower.name(row.source).to_owned();
            let is_fetched = !computed && halo != [0, 0];
            let (wish, made_halo) = if is_fetched { ("own", [0, 0]) } else { ("now", halo) };
            let made = self.row(&format!("{name}_{wish}"), row.source, made_halo);
            let count = made_halo[0] + self.tiling.lane + made_halo[1];
            let looks = self.looks(row.lag, &row.uses, made_halo[0]);
            let body = &stencil.defs[def].body;
            self.lower.elements(made, count, &looks, |lower, looks| lower.value(body, shift, looks));
            let mut now = made;
            if is_fetched {
                now = self.row(&format!("{name}_now"), row.source, halo);
                self.lower.widened(here.lane, Operand::Row(now), Operand::Row(made), halo);
            }
            self.views.insert((place, 0), View { row: now, halo });
            self.now.insert(place, now);
        }
    }

    /// What a user that lags so much looks at from elements of a row that begins `before` columns before the lane's own.
    fn looks(&self, lag: i32, uses: &[Use], before: usize) -> Vec<Look> {
        let looks = uses.iter().filter_map(|&used| {
            let &View { row, halo } = self.views.get(&self.flow.age(lag, used)?)?;
            let on = halo[0] as i64 - before as i64 + i64::from(used.i);
            Some(Look { used, row, on, is_stored: false })
        });
        looks.collect()
    }

    /// Computes and writes a row of each output.
    pub(super) fn stores(&mut self, here: &Here, row: ValueId) {
        let (task, flow) = (self.lower.task, self.flow);
        let Tiling { halo, lane, .. } = self.tiling;
        let columns = self.tiling.computed[0].clone();
        for (number, store) in task.stencil.stores.iter().enumerate() {
            let wish = format!("{}_row", self.lower.written_name(store.field));
            let made = self.own().local(&wish, task.stored(store.field), lane);
            let looks = self.looks(flow.lag, &flow.stores[number], 0);
            self.lower.elements(made, lane, &looks, |lower, looks| lower.stored(store, 0, looks));
            let Some(to) = self.to.get(&store.field).copied() else { continue };
            let at = self.rows_on(row);
            let at_once = task.at_once(store.field, lane, &[]);
            let has_others = halo != [0, 0] || task.extents[0] / lane < WARP;
            let guard = self.lower.guard(store.field, 0, here.is_own.filter(|_| has_others));
            let own = self.own();
            let mut operands = vec![own.place(to, at), Operand::Row(made)];
            let routine = match columns.len() == task.extents[0] {
                true => Routine::PutRow(at_once),
                // Lanes at the edges hold columns that are not computed.
                false => {
                    let bounds = [columns.start, columns.end];
                    operands.extend(bounds.map(|bound| Operand::Value(own.term(bound.minus(here.column)))));
                    Routine::PutBetween(at_once)
                }
            };
            self.when_if(guard, |maker| maker.own().perform(routine, operands));
        }
    }

    /// Keeps the present rows for the steps to come.
    pub(super) fn keep(&mut self, turn: ValueId) {
        for (place, kept) in self.kept.clone() {
            let slot = self.turned(turn, self.tiling.held[place].slots);
            let Some(now) = self.now.get(&place).copied() else { continue };
            self.own().perform(Routine::CopyRow, vec![Operand::Place(kept, slot), Operand::Row(now)]);
        }
    }
}
