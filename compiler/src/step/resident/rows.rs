//! The rows of a step: sent, received, loaded, fetched from other lanes and computed.

use super::super::flow::{Flow, Row, Source, Use, Window};
use super::super::lower::Look;
use super::kernel::{Here, Maker, Neighbours, Now};
use super::spans::{Part, Span, window};
use crate::ir::{FieldId, Relation};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{Contents, Operand, Routine, ValueId};

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

/// How many neighbouring columns each row is kept with: those that several others look at.
pub(super) fn halos(flow: &Flow) -> Vec<[usize; 2]> {
    let mut looks: Vec<Vec<Window>> = vec![Vec::new(); flow.rows.len()];
    for uses in flow.rows.iter().map(|row| &row.uses).chain(&flow.stores) {
        flow.windows(uses).into_iter().for_each(|((place, _), window)| looks[place].push(window));
    }
    looks.into_iter().map(|windows| Window::of_several(windows.into_iter()).sides()).collect()
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
            let barrier = self.barrier(neighbours, now, here.warp);
            self.own().perform(Routine::BarrierWaitCluster, vec![barrier, Operand::Value(parity)]);
        }
        self.stage(Section::Top, here, now);
        self.stage(Section::Bottom, here, now);
        for &(to, from) in self.carry {
            let (Some(&rows), Some(&new)) = (self.state.get(&from), self.new.get(&to)) else { continue };
            let before = window(self.flow, from).before();
            self.unrolled("r", (0, self.shape.rows), |maker, r| {
                let to = maker.own().place(rows, r.plus(before));
                maker.own().perform(Routine::CopyRow, vec![to, Operand::Place(new, r)]);
            });
        }
    }

    /// Rows of values: of what is computed and of what is fetched from neighbouring lanes.
    fn arrays(&mut self) {
        for place in 0..self.parts.len() {
            let source = self.flow.rows[place].source;
            let is_state = matches!(self.parts[place], Part::State(_));
            let [before, after] = self.halos[place];
            if is_state && before + after == 0 {
                continue;
            }
            let ending = if is_state { "wide_rows" } else { "rows" };
            let count = (self.spans[place].end - self.spans[place].first).max(0) as usize;
            let (wish, kind) = (format!("{}_{ending}", self.lower.name(source)), self.lower.task.kind(source));
            let width = before + self.lane() + after;
            let made = self.own().rows(&wish, kind, (count, width), Contents::Unset);
            self.made.insert(place, made);
        }
        for &(to, _) in self.carry {
            let wish = format!("{}_made", self.lower.written_name(to));
            let (kind, size) = (self.lower.task.stored(to), (self.shape.rows, self.lane()));
            let new = self.own().rows(&wish, kind, size, Contents::Unset);
            self.new.insert(to, new);
        }
    }

    /// The rows that a stage makes of a value, or store: received, and computed, loaded or fetched from other lanes.
    fn made_in(&self, number: usize, stage: Section) -> Vec<(Origin, i32, i32)> {
        let Span { first, end, inner } = self.spans[number];
        let made = match stage {
            Section::Inner => (inner[0], inner[1]),
            Section::Top => (first, inner[0]),
            Section::Bottom => (inner[1].max(first), end),
        };
        // If nothing is computed early, all that is received is there at once.
        let below = if self.shape.early { Section::Bottom } else { Section::Top };
        let is_state = matches!(self.parts.get(number), Some(Part::State(_)));
        let received = [(Section::Top, first, 0), (below, self.shape.rows as i32, end)];
        let received = received.into_iter().filter(|own| is_state && own.0 == stage);
        let received = received.map(|(_, first, end)| (Origin::Received, first, end));
        let made = (!is_state || self.halos[number] != [0, 0]).then_some((Origin::Made, made.0, made.1));
        received.chain(made).filter(|(_, first, end)| first < end).collect()
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
        self.unrolled("r", (first, end), |maker, r| {
            for (number, origin, from, to) in made {
                let guard = maker.own().in_range(r, from.into()..to.into(), first.into()..end.into());
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
            Part::State(field) if self.halos[place] == [0, 0] => self.state.get(&field),
            _ => self.made.get(&place),
        };
        let (rows, first) = (rows.copied()?, self.spans[place].first);
        Some(self.own().place(rows, r.plus(on - first)))
    }

    /// Makes row `r`, less its lag, of a value.
    fn value(&mut self, place: usize, here: &Here, r: ValueId) {
        let (task, row) = (self.lower.task, &self.flow.rows[place]);
        let halo = self.halos[place];
        let Some(to) = self.row_of(place, r, -row.lag) else { return };
        let from = match (self.parts[place], row.source) {
            (Part::State(field), _) => {
                let Some(rows) = self.state.get(&field).copied() else { return };
                let first = self.spans[place].first;
                self.own().place(rows, r.plus(-row.lag - first))
            }
            (Part::Constant(field), _) => {
                let Some(loaded) = self.loaded(place, field, here, r) else { return };
                loaded
            }
            (Part::Def, Source::Def(def, shift)) => {
                let body = &task.stencil.defs[def].body;
                let looks = self.looks(here, r, row.lag, &row.uses);
                let name = self.lower.name(row.source).to_owned();
                let (kind, lane, own) = (task.kind(row.source), self.lane(), self.own());
                let made = match (halo, to) {
                    ([0, 0], Operand::Place(rows, number)) => own.row(&format!("{name}_row"), rows, number, true),
                    _ => own.local(&format!("{name}_own"), kind, lane),
                };
                self.lower.elements(made, lane, &looks, |lower, looks| lower.value(body, shift, looks));
                if halo == [0, 0] {
                    return;
                }
                Operand::Row(made)
            }
            (Part::Def, Source::Field(..)) => return,
        };
        self.lower.widened(here.lane, to, from, halo);
    }

    /// A row of what stays as it is, loaded.
    fn loaded(&mut self, place: usize, field: FieldId, here: &Here, r: ValueId) -> Option<Operand> {
        let (task, lane, span) = (self.lower.task, self.lane(), self.spans[place]);
        let Row { source, lag, .. } = self.flow.rows[place];
        let from = *self.from.get(&place)?;
        let wish = format!("{}_loaded", self.lower.name(source));
        let nj = task.extents[1] as i32;
        let row = match (span.first, span.end) == (0, self.shape.rows as i32) {
            true => here.first_row.plus(r.plus(-lag)),
            false => here.first_row.plus(r.plus(nj - lag)).rem(nj),
        };
        let own = self.own();
        let from = own.place(from, row.times(task.rows.row));
        let loaded = own.local(&wish, task.stored(field), lane);
        let routine = Routine::LoadRow(task.at_once(field, lane, &[]));
        own.perform(routine, vec![Operand::Row(loaded), from]);
        Some(Operand::Row(loaded))
    }

    /// What a user that lags so much looks at, with what is fetched for it from neighbouring lanes.
    fn looks(&mut self, here: &Here, r: ValueId, lag: i32, uses: &[Use]) -> Vec<Look> {
        let (task, flow) = (self.lower.task, self.flow);
        let mut looks = Vec::new();
        for ((place, j), window) in flow.windows(uses) {
            let source = flow.rows[place].source;
            let Some(Operand::Place(of, number)) = self.row_of(place, r, j - lag) else { continue };
            let name = self.lower.name(source);
            let is_state = matches!(self.parts[place], Part::State(_));
            let kept = self.halos[place];
            let (row, before, is_stored) = match kept {
                [0, 0] if window != Window::default() => {
                    let halo = window.sides();
                    let (wish, width) = (format!("{name}_wide"), halo[0] + self.lane() + halo[1]);
                    let row = self.own().local(&wish, task.kind(source), width);
                    self.lower.widened(here.lane, Operand::Row(row), Operand::Place(of, number), halo);
                    (row, halo[0], false)
                }
                _ => {
                    let ending = match j {
                        0 => "here".to_owned(),
                        1.. => format!("below{j}"),
                        _ => format!("above{}", j.unsigned_abs()),
                    };
                    let wish = format!("{name}_{ending}");
                    let row = self.own().row(&wish, of, number, false);
                    (row, kept[0], is_state && kept == [0, 0])
                }
            };
            let own = uses.iter().filter(|used| (used.source, used.j) == (source, j));
            looks.extend(own.map(|&used| Look { used, row, on: before as i64 + i64::from(used.i), is_stored }));
        }
        looks
    }

    /// Makes row `r`, less its lag, of an output.
    fn store(&mut self, number: usize, here: &Here, now: Now, r: ValueId) {
        let (task, flow, lane) = (self.lower.task, self.flow, self.lane());
        let store = &task.stencil.stores[number];
        let looks = self.looks(here, r, flow.lag, &flow.stores[number]);
        let wish = format!("{}_row", self.lower.written_name(store.field));
        let new = self.new.get(&store.field).copied();
        let own = self.own();
        let of_warp = own.term(r.plus(-flow.lag));
        let made = match new {
            Some(new) => own.row(&wish, new, of_warp, true),
            None => own.local(&wish, task.stored(store.field), lane),
        };
        self.lower.elements(made, lane, &looks, |lower, looks| lower.stored(store, 0, looks));
        let output = self.lower.outputs.get(&store.field).copied().filter(|_| new.is_none());
        let Some(output) = output else { return };
        // What is not looked at again is written once.
        let at = self.lower.plane(store.field, 0).plus(self.at_row(here, of_warp));
        let is_last = self.own().term(now.step.is(Relation::Eq, here.steps.minus(1)));
        let guard = self.lower.guard(store.field, 0, [is_last]);
        let routine = Routine::PutRow(task.at_once(store.field, lane, &[]));
        let operands = vec![self.own().place(output, at), Operand::Row(made)];
        self.when_if(guard, |maker| maker.own().perform(routine, operands));
    }
}
