//! The rows of a step: loaded, fetched from neighbouring lanes, computed, written and kept.

use super::super::flow::{Source, Use};
use super::super::lower::width;
use super::kernel::{Coming, Here, Maker, View};
use super::tiling::{Held, Tiling};
use super::{LANES, computed};
use crate::ir::{FieldId, Levels, Relation};
use crate::kernel::build::Making;
use crate::kernel::{ArrayId, Binary, Operand, Routine, Step, Type, Unroll, ValueId};
use std::collections::BTreeMap;

impl Maker<'_> {
    /// The present turn among so many: `q % 2`.
    pub(super) fn turned(&mut self, turn: ValueId, of: usize) -> ValueId {
        let unrolled = self.tiling.unrolled;
        let own = self.own();
        match of {
            1 => own.int(0),
            _ if of == unrolled => turn,
            _ => {
                let of = own.int(of as i64);
                own.binary(Binary::Rem, turn, of)
            }
        }
    }

    /// Where the row of so many steps before is kept.
    fn slot(&mut self, turn: ValueId, place: usize, age: usize) -> ValueId {
        let slots = self.held[place].slots;
        match (slots, age.next_multiple_of(slots) - age) {
            (1, _) => self.own().int(0),
            (_, 0) => self.turned(turn, slots),
            (_, on) => {
                let own = self.own();
                let (on, slots) = (own.int(on as i64), own.int(slots as i64));
                let later = own.add(turn, on);
                own.binary(Binary::Rem, later, slots)
            }
        }
    }

    /// An index that is so many rows further on.
    fn rows_on(&mut self, row: ValueId) -> ValueId {
        let task = self.lower.task;
        let is_wide = task.rows.row.saturating_mul(task.extents[1]) > i32::MAX as usize;
        let kind = if is_wide { Type::I64 } else { Type::I32 };
        let own = self.own();
        let (row, stride) = (own.convert(row, kind), own.literal(task.rows.row as i64, kind));
        own.mul(row, stride)
    }

    /// How many elements of a field one instruction moves.
    fn at_once(&self, field: FieldId) -> usize {
        let task = self.lower.task;
        let own = &task.stencil.fields[field];
        let plane = if own.place.levels == Levels::None { 0 } else { task.rows.plane };
        width(own.stored.bytes(task.precision), self.tiling.lane, &[task.rows.first, task.rows.row, plane])
    }

    /// Loads the next row of each field.
    pub(super) fn loads(&mut self, here: &Here, to: ValueId) {
        for (place, Coming { from, rows, beyond }) in self.coming.clone() {
            let Source::Field(field, _) = self.flow.rows[place].source else { continue };
            let row = here.rows[&self.lead(place)];
            let row = self.own().get(row);
            let at_row = self.rows_on(row);
            let at_once = self.at_once(field);
            let own = self.own();
            let kind = own.kind(at_row);
            let column = own.convert(here.column, kind);
            let at = own.add(at_row, column);
            own.perform(Routine::LoadRow(at_once), vec![Operand::Place(rows, to), Operand::Place(from, at)]);
            let (Some(beyond), Some([at_edge, edge])) = (beyond, here.edge) else { continue };
            // The same columns for all fields: those next to the strip are the last at its left and the first at its right.
            let skip = self.beyond() - self.held[place].halo.into_iter().max().unwrap_or(0);
            let own = self.own();
            let edge = own.convert(edge, kind);
            let mut at = own.add(at_row, edge);
            if skip > 0 {
                let zero = own.int(0);
                let is_first = own.compare(Relation::Eq, here.lane, zero);
                let (skip, none) = (own.literal(skip as i64, kind), own.literal(0, kind));
                let skipped = own.choose(is_first, skip, none);
                at = own.add(at, skipped);
            }
            let operands = vec![Operand::Place(beyond, to), Operand::Place(from, at), Operand::Value(at_edge)];
            own.perform(Routine::LoadRowWhere, operands);
        }
        let nj = self.lower.task.extents[1];
        for &row in here.rows.values() {
            let own = self.own();
            let [zero, one, last] = [0, 1, nj - 1].map(|number| own.int(number as i64));
            let now = own.get(row);
            let next = own.add(now, one);
            let next = match nj.is_power_of_two() {
                true => own.binary(Binary::BitAnd, next, last),
                false => {
                    let is_last = own.compare(Relation::Eq, now, last);
                    own.choose(is_last, zero, next)
                }
            };
            own.assign(row, next);
        }
    }

    /// Takes the row of each field that has come.
    pub(super) fn takes(&mut self, here: &Here, turn: ValueId) {
        for (place, Coming { rows, beyond, .. }) in self.coming.clone() {
            let source = self.flow.rows[place].source;
            let Held { halo, .. } = self.held[place];
            let turn = self.turned(turn, self.shape.ahead);
            let now = self.row(&format!("{}_now", self.lower.name(source)), source, halo);
            let row = Operand::Place(rows, turn);
            match beyond {
                None => self.widened(here, now, row, halo),
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
        let (kind, lane) = (self.lower.kind(source), self.tiling.lane);
        self.own().local(wish, kind, halo[0] + lane + halo[1])
    }

    /// Fetches the columns beside a lane's own from the neighbouring lanes.
    fn widened(&mut self, here: &Here, wide: ArrayId, row: Operand, halo: [usize; 2]) {
        match halo {
            [0, 0] => self.own().perform(Routine::CopyRow, vec![Operand::Row(wide), row]),
            [before, after] => {
                let operands = vec![Operand::Row(wide), row, Operand::Value(here.lane)];
                self.own().perform(Routine::WidenRow(before, after), operands);
            }
        }
    }

    /// Names the rows of steps before.
    pub(super) fn look_back(&mut self, turn: ValueId) {
        let keys: Vec<(usize, usize)> = self.wanted.keys().copied().filter(|&(_, age)| age > 0).collect();
        for (place, age) in keys {
            let wish = format!("{}_back{age}", self.lower.name(self.flow.rows[place].source));
            let slot = self.slot(turn, place, age);
            let Some(kept) = self.kept.get(&place).copied() else { continue };
            let row = self.own().row(&wish, kept, slot);
            self.views.insert((place, age), View { row, halo: self.held[place].halo });
        }
    }

    /// Fetches from the neighbouring lanes what these uses look at beyond a row's own columns, where nobody has yet.
    fn widen(&mut self, here: &Here, lag: i32, uses: &[Use]) {
        for &used in uses {
            let Some(key) = self.flow.age(lag, used) else { continue };
            let Some(View { row, halo }) = self.views.get(&key).copied() else { continue };
            let window = self.wanted[&key];
            if window.before() <= halo[0] && window.after() <= halo[1] || self.held[key.0].computed {
                continue;
            }
            let halo = [window.before(), window.after()];
            let wish = format!("{}_wide", self.lower.own.kernel().arrays[row].name);
            let wide = self.row(&wish, used.source, halo);
            self.widened(here, wide, Operand::Row(row), halo);
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
            let Held { halo, computed, .. } = self.held[place];
            let name = self.lower.name(row.source).to_owned();
            let is_fetched = !computed && halo != [0, 0];
            let (wish, made_halo) = if is_fetched { ("own", [0, 0]) } else { ("now", halo) };
            let made = self.row(&format!("{name}_{wish}"), row.source, made_halo);
            let count = made_halo[0] + self.tiling.lane + made_halo[1];
            self.elements(made, count, |maker, e| {
                let looked_at = maker.looked_at(row.lag, &row.uses, made_halo[0], e);
                maker.lower.value(&stencil.defs[def].body, shift, &|used| looked_at.get(&used).copied())
            });
            let mut now = made;
            if is_fetched {
                now = self.row(&format!("{name}_now"), row.source, halo);
                self.widened(here, now, Operand::Row(made), halo);
            }
            self.views.insert((place, 0), View { row: now, halo });
            self.now.insert(place, now);
        }
    }

    /// Computes each element of a row.
    fn elements(&mut self, row: ArrayId, count: usize, value: impl FnOnce(&mut Self, ValueId) -> ValueId) {
        let [zero, one, count] = [0, 1, count].map(|number| self.own().int(number as i64));
        self.each("e", (zero, count, Step::By(one)), Unroll::Whole, |maker, e| {
            let value = value(maker, e);
            maker.own().store(row, e, value);
        });
    }

    /// What a user that lags so much looks at from column `e` of a row that begins `before` columns before the lane's own.
    fn looked_at(&mut self, lag: i32, uses: &[Use], before: usize, e: ValueId) -> BTreeMap<Use, ValueId> {
        let mut found = BTreeMap::new();
        for &used in uses {
            let view = self.flow.age(lag, used).and_then(|key| self.views.get(&key).copied());
            let Some(View { row, halo }) = view else { continue };
            let own = self.own();
            let on = own.int(halo[0] as i64 - before as i64 + i64::from(used.i));
            let at = own.add(e, on);
            found.insert(used, own.load(row, at));
        }
        found
    }

    /// Computes and writes a row of each output.
    pub(super) fn stores(&mut self, here: &Here, row: ValueId) {
        let (task, flow) = (self.lower.task, self.flow);
        let Tiling { halo, lane, .. } = self.tiling;
        let [columns, _] = computed(task, flow);
        for (number, store) in task.stencil.stores.iter().enumerate() {
            let field = &task.stencil.fields[store.field];
            let wish = format!("{}_row", self.written_name(store.field));
            let made = self.own().local(&wish, Type::stored(field.stored, task.precision), lane);
            self.elements(made, lane, |maker, e| {
                let looked_at = maker.looked_at(flow.lag, &flow.stores[number], 0, e);
                maker.lower.stored(store, &|used| looked_at.get(&used).copied())
            });
            let Some(to) = self.to.get(&store.field).copied() else { continue };
            let at = self.rows_on(row);
            let at_once = self.at_once(store.field);
            let mut guards = Vec::new();
            if halo != [0, 0] || task.extents[0] / lane < LANES {
                guards.extend(here.is_own);
            }
            let own = self.own();
            if field.place.levels == Levels::None {
                let zero = own.int(0);
                guards.push(own.compare(Relation::Eq, here.k, zero));
            }
            let guard = guards.into_iter().reduce(|all, guard| own.and(all, guard));
            let whole = [Operand::Place(to, at), Operand::Row(made)];
            let (routine, operands) = match columns.len() == task.extents[0] {
                true => (Routine::PutRow(at_once), whole.to_vec()),
                // Lanes at the edges hold columns that are not computed.
                false => {
                    let bounds = [columns.start, columns.end].map(|bound| {
                        let bound = own.int(bound as i64);
                        Operand::Value(own.sub(bound, here.column))
                    });
                    (Routine::PutBetween(at_once), whole.into_iter().chain(bounds).collect())
                }
            };
            self.when_if(guard, |maker| maker.own().perform(routine, operands));
        }
    }

    /// Keeps the present rows for the steps to come.
    pub(super) fn keep(&mut self, turn: ValueId) {
        for (place, kept) in self.kept.clone() {
            let slot = self.turned(turn, self.held[place].slots);
            let Some(now) = self.now.get(&place).copied() else { continue };
            self.own().perform(Routine::CopyRow, vec![Operand::Place(kept, slot), Operand::Row(now)]);
        }
    }
}
