//! The rows of a step: sent, received, loaded, fetched from other lanes and computed.

use super::super::flow::{Flow, Source, Use, Window};
use super::exchange::place_of_barrier;
use super::kernel::{Here, Maker, Neighbours, Now};
use super::spans::{Part, window};
use crate::ir::{FieldId, Levels, Relation};
use crate::kernel::build::Making;
use crate::kernel::{ArrayId, Binary, Contents, Operand, Routine, Step, Unroll, ValueId};
use std::collections::BTreeMap;

/// How a row comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A neighbour has sent it.
    Received,
    /// It is computed, loaded, or widened by columns of neighbouring lanes.
    Made,
}

/// Which rows a part of a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// Those that a warp's own rows suffice for.
    Inner,
    /// Those above; or all, if none is computed before neighbours' rows have come.
    Top,
    /// Those below.
    Bottom,
}

/// A row that is looked at.
struct Looked {
    row: ArrayId,
    /// Columns before the lane's own.
    before: usize,
    /// Whether its elements are as they are stored.
    is_stored: bool,
}

/// The rows whose neighbours along i several others look at: how many columns before and after.
pub(super) fn kept_wide(flow: &Flow) -> BTreeMap<usize, [usize; 2]> {
    let mut looks: BTreeMap<usize, (Window, usize)> = BTreeMap::new();
    let users = flow.rows.iter().map(|row| &row.uses).chain(&flow.stores);
    for uses in users {
        let mut rows: BTreeMap<(usize, i32), Window> = BTreeMap::new();
        for used in uses {
            if let Some(place) = flow.place(used.source).filter(|_| used.i != 0) {
                let window = rows.entry((place, used.j)).or_default();
                *window = window.union(Window { low: used.i, high: used.i });
            }
        }
        for ((place, _), window) in rows {
            let (known, count) = looks.entry(place).or_default();
            *known = known.union(window);
            *count += 1;
        }
    }
    let several = looks.into_iter().filter(|(_, (_, count))| *count > 1);
    several.map(|(place, (window, _))| (place, [window.before(), window.after()])).collect()
}

impl Maker<'_> {
    /// One step, and how its end is known.
    pub(super) fn step(&mut self, here: &Here, neighbours: Option<&Neighbours>, now: Now, parity: ValueId) {
        if let Some(neighbours) = neighbours {
            self.send(here, neighbours, now);
        }
        self.arrays();
        self.stage(Section::Inner, here, now);
        if let Some(neighbours) = neighbours {
            let warps = self.shape.warps;
            let own = self.own();
            let barrier = place_of_barrier(own, neighbours.arrived, (now.half, here.warp), warps);
            own.perform(Routine::BarrierWaitCluster, vec![barrier, Operand::Value(parity)]);
        }
        self.stage(Section::Top, here, now);
        self.stage(Section::Bottom, here, now);
        for &(to, from) in self.carry {
            let (Some(&rows), Some(&new)) = (self.state.get(&from), self.new.get(&to)) else { continue };
            let before = window(self.flow, from).before() as i32;
            self.each_row((0, self.shape.rows as i32), |maker, r| {
                let to = maker.on(r, before);
                maker.own().perform(Routine::CopyRow, vec![Operand::Place(rows, to), Operand::Place(new, r)]);
            });
        }
    }

    /// Rows of values: of what is computed and of what is fetched from neighbouring lanes.
    fn arrays(&mut self) {
        for place in 0..self.parts.len() {
            let source = self.flow.rows[place].source;
            let ending = match self.parts[place] {
                Part::State(_) if self.widened.contains_key(&place) => "wide_rows",
                Part::State(_) => continue,
                Part::Constant(_) | Part::Def => "rows",
            };
            let count = (self.spans[place].end - self.spans[place].first).max(0) as usize;
            let [before, after] = self.widened.get(&place).copied().unwrap_or_default();
            let (wish, kind) = (format!("{}_{ending}", self.lower.name(source)), self.lower.kind(source));
            let width = before + self.lane() + after;
            let made = self.own().rows(&wish, kind, (count, width), Contents::Unset);
            self.made.insert(place, made);
        }
        for &(to, _) in self.carry {
            let wish = format!("{}_made", self.array_name(self.lower.output(to)));
            let (kind, size) = (self.stored(to), (self.shape.rows, self.lane()));
            let new = self.own().rows(&wish, kind, size, Contents::Unset);
            self.new.insert(to, new);
        }
    }

    /// The rows that a stage makes of a value, or store: received, and computed, loaded or fetched from other lanes.
    fn made_in(&self, number: usize, stage: Section) -> Vec<(Origin, i32, i32)> {
        let span = self.spans[number];
        let rows = self.shape.rows as i32;
        let range = |inner: [i32; 2], last: i32| match stage {
            Section::Inner => (inner[0], inner[1]),
            Section::Top => (span.first, inner[0]),
            Section::Bottom => (inner[1].max(last), span.end),
        };
        let mut made = Vec::new();
        let is_state = matches!(self.parts.get(number), Some(Part::State(_)));
        if is_state {
            match (stage, self.shape.early) {
                (Section::Inner, _) | (Section::Bottom, false) => {}
                (Section::Top, true) => made.push((Origin::Received, span.first, 0)),
                (Section::Bottom, true) => made.push((Origin::Received, rows, span.end)),
                (Section::Top, false) => {
                    made.push((Origin::Received, span.first, 0));
                    made.push((Origin::Received, rows, span.end));
                }
            }
        }
        if !is_state || self.widened.contains_key(&number) {
            let (first, end) = range(span.inner, span.first);
            made.push((Origin::Made, first, end));
        }
        made.retain(|(_, first, end)| first < end);
        made
    }

    /// Everything that can be computed in a stage: a loop over rows, in which each value is as far behind as it lags.
    fn stage(&mut self, stage: Section, here: &Here, now: Now) {
        let count = self.parts.len() + self.lower.task.stencil.stores.len();
        let mut made: Vec<(usize, Origin, i32, i32)> = Vec::new();
        for number in 0..count {
            let lag = self.flow.rows.get(number).map_or(self.flow.lag, |row| row.lag);
            let own = self.made_in(number, stage).into_iter();
            made.extend(own.map(|(origin, first, end)| (number, origin, first + lag, end + lag)));
        }
        let bounds = (made.iter().map(|own| own.2).min(), made.iter().map(|own| own.3).max());
        let (Some(first), Some(end)) = bounds else { return };
        self.each_row((first, end), |maker, r| {
            for (number, origin, from, to) in made {
                let own = maker.own();
                let [from_row, to_row] = [from, to].map(|row| own.int(i64::from(row)));
                let mut guards = Vec::new();
                if from > first {
                    guards.push(own.compare(Relation::Ge, r, from_row));
                }
                if to < end {
                    guards.push(own.less(r, to_row));
                }
                let guard = guards.into_iter().reduce(|all, guard| own.and(all, guard));
                maker.when_if(guard, |maker| match (origin, maker.parts.get(number)) {
                    (Origin::Received, _) => maker.receive(number, here, now, r),
                    (Origin::Made, Some(_)) => maker.value(number, here, r),
                    (Origin::Made, None) => maker.store(number - maker.parts.len(), here, now, r),
                });
            }
        });
    }

    /// Where the row of a value `on` rows from row `r` of the loop is.
    fn row_of(&mut self, place: usize, r: ValueId, on: i32) -> Option<Operand> {
        let rows = match self.parts[place] {
            Part::State(field) if !self.widened.contains_key(&place) => self.state.get(&field),
            _ => self.made.get(&place),
        };
        let rows = rows.copied()?;
        let number = self.on(r, on - self.spans[place].first);
        Some(Operand::Place(rows, number))
    }

    /// Makes row `r`, less its lag, of a value.
    fn value(&mut self, place: usize, here: &Here, r: ValueId) {
        let flow = self.flow;
        let row = &flow.rows[place];
        let wide = self.widened.get(&place).copied();
        let Some(to) = self.row_of(place, r, -row.lag) else { return };
        match (self.parts[place], row.source) {
            (Part::State(field), _) => {
                let Some(rows) = self.state.get(&field).copied() else { return };
                let number = self.on(r, -row.lag - self.spans[place].first);
                self.widened_row(here, to, Operand::Place(rows, number), wide);
            }
            (Part::Constant(field), _) => self.load(place, field, here, r, to),
            (Part::Def, Source::Def(def, shift)) => {
                let body = &self.lower.task.stencil.defs[def].body;
                let looked = self.looked_at(here, r, row.lag, &row.uses);
                let name = self.lower.name(row.source).to_owned();
                let (kind, lane) = (self.lower.kind(row.source), self.lane());
                let made = match (wide, to) {
                    (None, Operand::Place(rows, number)) => {
                        self.own().row_to_write(&format!("{name}_row"), rows, number)
                    }
                    _ => self.own().local(&format!("{name}_own"), kind, lane),
                };
                self.elements(made, |maker, e| {
                    let elements = maker.elements_of(&looked, &row.uses, e);
                    maker.lower.value(body, shift, &|used| elements.get(&used).copied())
                });
                if wide.is_some() {
                    self.widened_row(here, to, Operand::Row(made), wide);
                }
            }
            (Part::Def, Source::Field(..)) => {}
        }
    }

    /// A row as it is, or with columns of the neighbouring lanes.
    fn widened_row(&mut self, here: &Here, to: Operand, from: Operand, halo: Option<[usize; 2]>) {
        match halo {
            None => self.own().perform(Routine::CopyRow, vec![to, from]),
            Some([before, after]) => {
                let operands = vec![to, from, Operand::Value(here.lane)];
                self.own().perform(Routine::WidenRow(before, after), operands);
            }
        }
    }

    /// Loads a row of what stays as it is.
    fn load(&mut self, place: usize, field: FieldId, here: &Here, r: ValueId, to: Operand) {
        let task = self.lower.task;
        let lag = self.flow.rows[place].lag;
        let Some(&from) = self.from.get(&place) else { return };
        let wish = format!("{}_loaded", self.lower.name(self.flow.rows[place].source));
        let (kind, lane, at_once, span) = (self.stored(field), self.lane(), self.at_once(field), self.spans[place]);
        let nj = task.extents[1] as i32;
        let is_inside = (span.first, span.end) == (0, self.shape.rows as i32);
        let row = self.on(r, if is_inside { -lag } else { nj - lag });
        let own = self.own();
        let row = own.add(here.first_row, row);
        let (nj, stride) = (own.int(i64::from(nj)), own.int(task.rows.row as i64));
        let row = if is_inside { row } else { own.binary(Binary::Rem, row, nj) };
        let at = own.mul(row, stride);
        let loaded = own.local(&wish, kind, lane);
        own.perform(Routine::LoadRow(at_once), vec![Operand::Row(loaded), Operand::Place(from, at)]);
        let wide = self.widened.get(&place).copied();
        self.widened_row(here, to, Operand::Row(loaded), wide);
    }

    /// Computes each element of a lane's row.
    fn elements(&mut self, row: ArrayId, value: impl FnOnce(&mut Self, ValueId) -> ValueId) {
        let lane = self.lane() as i64;
        let [zero, one, count] = [0, 1, lane].map(|number| self.own().int(number));
        self.each("e", (zero, count, Step::By(one)), Unroll::Whole, |maker, e| {
            let value = value(maker, e);
            maker.own().store(row, e, value);
        });
    }

    /// The rows that a user that lags so much looks at, with what is fetched for it from neighbouring lanes.
    fn looked_at(&mut self, here: &Here, r: ValueId, lag: i32, uses: &[Use]) -> BTreeMap<(Source, i32), Looked> {
        let mut windows: BTreeMap<(usize, i32), Window> = BTreeMap::new();
        for used in uses {
            if let Some(place) = self.flow.place(used.source) {
                let window = windows.entry((place, used.j)).or_default();
                *window = window.union(Window { low: used.i, high: used.i });
            }
        }
        let mut rows = BTreeMap::new();
        for ((place, j), window) in windows {
            let source = self.flow.rows[place].source;
            let Some(Operand::Place(of, number)) = self.row_of(place, r, j - lag) else { continue };
            let name = self.lower.name(source).to_owned();
            let is_state = matches!(self.parts[place], Part::State(_));
            let kept = self.widened.get(&place).copied();
            let looked = match (kept, window == Window::default()) {
                (None, false) => {
                    let halo = [window.before(), window.after()];
                    let (kind, width) = (self.lower.kind(source), halo[0] + self.lane() + halo[1]);
                    let row = self.own().local(&format!("{name}_wide"), kind, width);
                    self.widened_row(here, Operand::Row(row), Operand::Place(of, number), Some(halo));
                    Looked { row, before: halo[0], is_stored: false }
                }
                _ => {
                    let ending = match j {
                        0 => "here".to_owned(),
                        1.. => format!("below{j}"),
                        _ => format!("above{}", j.unsigned_abs()),
                    };
                    let row = self.own().row(&format!("{name}_{ending}"), of, number);
                    let before = kept.map_or(0, |halo| halo[0]);
                    Looked { row, before, is_stored: is_state && kept.is_none() }
                }
            };
            rows.insert((source, j), looked);
        }
        rows
    }

    /// What is looked at from column `e`.
    fn elements_of(
        &mut self,
        rows: &BTreeMap<(Source, i32), Looked>,
        uses: &[Use],
        e: ValueId,
    ) -> BTreeMap<Use, ValueId> {
        let mut found = BTreeMap::new();
        for &used in uses {
            let Some(looked) = rows.get(&(used.source, used.j)) else { continue };
            let at = self.on(e, looked.before as i32 + used.i);
            let element = self.own().load(looked.row, at);
            let element = if looked.is_stored { self.lower.element(used.source, element) } else { element };
            found.insert(used, element);
        }
        found
    }

    /// Makes row `r`, less its lag, of an output.
    fn store(&mut self, number: usize, here: &Here, now: Now, r: ValueId) {
        let (task, flow) = (self.lower.task, self.flow);
        let store = &task.stencil.stores[number];
        let looked = self.looked_at(here, r, flow.lag, &flow.stores[number]);
        let of_warp = self.on(r, -flow.lag);
        let (name, kind, lane) =
            (self.array_name(self.lower.output(store.field)), self.stored(store.field), self.lane());
        let made = match self.new.get(&store.field).copied() {
            Some(new) => self.own().row_to_write(&format!("{name}_row"), new, of_warp),
            None => self.own().local(&format!("{name}_row"), kind, lane),
        };
        self.elements(made, |maker, e| {
            let elements = maker.elements_of(&looked, &flow.stores[number], e);
            maker.lower.stored(store, &|used| elements.get(&used).copied())
        });
        let Some(output) = self.lower.output(store.field).filter(|_| !self.new.contains_key(&store.field)) else {
            return;
        };
        // What is not looked at again is written once.
        let levels = task.stencil.fields[store.field].place.levels;
        let (plane, at) = (self.lower.plane(levels, 0), self.at_row(here, of_warp));
        let at_once = self.at_once(store.field);
        let own = self.own();
        let [zero, one] = [0, 1].map(|number| own.int(number));
        let last = own.sub(here.steps, one);
        let mut guard = own.compare(Relation::Eq, now.step, last);
        if levels == Levels::None {
            let is_first = own.compare(Relation::Eq, now.k, zero);
            guard = own.and(guard, is_first);
        }
        let at = own.add(plane, at);
        let operands = vec![Operand::Place(output, at), Operand::Row(made)];
        own.when(guard, |own| own.perform(Routine::PutRow(at_once), operands));
    }
}
