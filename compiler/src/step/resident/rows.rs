//! The text of a step: rows that are received, loaded, fetched from other lanes and computed.

use super::super::Rows;
use super::super::flow::{Source, Use, Window};
use super::super::write::{each, width};
use super::Shape;
use super::print::{Printer, plus};
use super::spans::{Part, window};
use crate::cuda::expression::read_as;
use crate::ir::{Body, FieldId, Levels, Store};
use crate::plan::stored_type;
use std::collections::BTreeMap;

/// How a row comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Making {
    /// A neighbour has sent it.
    Received,
    /// It is computed, loaded, or widened by columns of neighbouring lanes.
    Made,
}

/// Which rows a part of a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Those that a warp's own rows suffice for.
    Inner,
    /// Those above; or all, if none is computed before neighbours' rows have come.
    Top,
    /// Those below.
    Bottom,
}

impl Printer<'_> {
    /// Takes row `r` of what the neighbours have sent, less its lag.
    fn receive(&mut self, place: usize, turn: &str) -> Vec<String> {
        let Shape { rows, warps, .. } = self.shape;
        let (ni, row) = (self.writer.subject.extents[0], &self.flow.rows[place]);
        let [lane, warp] = self.writer.names.internals(["lane", "warp"]);
        let window = window(self.flow, self.field(place));
        let (before, after, lag) = (window.before() as i32, window.after() as i32, row.lag);
        let base = self.writer.name(row.source).to_owned();
        let (own, sent) = (self.rows(&base), self.writer.names.internal(&format!("{base}_sent")));
        // First those from above, then those from below.
        let (above, below) = (plus(&self.r, before - lag), plus(&self.r, before - rows as i32 - lag));
        let slot = match (before, after) {
            (_, 0) => above,
            (0, _) => below,
            _ => format!("({} < {lag} ? {above} : {below})", self.r),
        };
        let count = before + after;
        let to = plus(&self.r, before - lag);
        vec![format!(
            "pull_row({own}[{to}], {sent} + (({turn} % 2 * {warps} + {warp}) * {count} + {slot}) * {ni}, {lane});"
        )]
    }

    /// The rows that a stage makes of a value, or store: received, and computed, loaded or fetched from other lanes.
    fn made_in(&self, number: usize, stage: Stage) -> Vec<(Making, i32, i32)> {
        let span = self.spans[number];
        let rows = self.shape.rows as i32;
        let range = |inner: [i32; 2], last: i32| match stage {
            Stage::Inner => (inner[0], inner[1]),
            Stage::Top => (span.first, inner[0]),
            Stage::Bottom => (inner[1].max(last), span.end),
        };
        let mut made = Vec::new();
        if let Some(Part::State(_)) = self.parts.get(number) {
            match (stage, self.shape.early) {
                (Stage::Inner, _) | (Stage::Bottom, false) => {}
                (Stage::Top, true) => made.push((Making::Received, span.first, 0)),
                (Stage::Bottom, true) => made.push((Making::Received, rows, span.end)),
                (Stage::Top, false) => {
                    made.push((Making::Received, span.first, 0));
                    made.push((Making::Received, rows, span.end));
                }
            }
            if self.widened.contains_key(&number) {
                let (first, end) = range(span.inner, span.first);
                made.push((Making::Made, first, end));
            }
        } else {
            let (first, end) = range(span.inner, span.first);
            made.push((Making::Made, first, end));
        }
        made.retain(|(_, first, end)| first < end);
        made
    }

    /// Everything that can be computed in a stage: a loop over rows, in which each value is as far behind as it lags.
    pub fn stage(&mut self, stage: Stage, step: &str, turn: &str, steps: &str) -> Vec<String> {
        let count = self.parts.len() + self.writer.subject.stencil.stores.len();
        let mut made: Vec<(usize, Making, i32, i32)> = Vec::new();
        for number in 0..count {
            let lag = self.flow.rows.get(number).map_or(self.flow.lag, |row| row.lag);
            let own = self.made_in(number, stage).into_iter();
            made.extend(own.map(|(making, first, end)| (number, making, first + lag, end + lag)));
        }
        let bounds = (made.iter().map(|own| own.2).min(), made.iter().map(|own| own.3).max());
        let (Some(first), Some(end)) = bounds else { return Vec::new() };
        let mut lines =
            vec!["#pragma unroll".to_owned(), format!("for (int {0} = {first}; {0} < {end}; ++{0}) {{", self.r)];
        for (number, making, from, to) in made {
            let own = match (making, self.parts.get(number)) {
                (Making::Received, _) => self.receive(number, turn),
                (Making::Made, Some(_)) => self.value(number),
                (Making::Made, None) => self.store(number - self.parts.len(), step, steps),
            };
            let mut guards = Vec::new();
            if from > first {
                guards.push(format!("{} >= {from}", self.r));
            }
            if to < end {
                guards.push(format!("{} < {to}", self.r));
            }
            let head = if guards.is_empty() { "{".to_owned() } else { format!("if ({}) {{", guards.join(" && ")) };
            lines.push(format!("    {head}"));
            lines.extend(own.into_iter().map(|line| format!("        {line}")));
            lines.push("    }".into());
        }
        lines.push("}".into());
        lines
    }

    /// Where the row of a value `on` rows from row `r` of the loop is.
    fn row_of(&mut self, place: usize, on: i32) -> String {
        let first = self.spans[place].first;
        let name = match self.parts[place] {
            Part::State(_) if !self.widened.contains_key(&place) => {
                let base = self.writer.name(self.flow.rows[place].source).to_owned();
                self.rows(&base)
            }
            _ => self.made(place),
        };
        format!("{name}[{}]", plus(&self.r, on - first))
    }

    /// Makes row `r`, less its lag, of a value.
    fn value(&mut self, place: usize) -> Vec<String> {
        let flow = self.flow;
        let row = &flow.rows[place];
        let lane = self.lane();
        let [lane_name, e] = self.writer.names.internals(["lane", "e"]);
        let to = self.row_of(place, -row.lag);
        let wide = self.widened.get(&place).copied();
        match (self.parts[place], row.source) {
            (Part::State(_), _) => {
                let [before, after] = wide.unwrap_or_default();
                let base = self.writer.name(row.source).to_owned();
                let first = self.spans[place].first;
                let from = format!("{}[{}]", self.rows(&base), plus(&self.r, -row.lag - first));
                vec![format!("widen_row<{before}, {after}>({to}, {from}, {lane_name});")]
            }
            (Part::Constant(field), _) => self.load(place, field, &to),
            (Part::Def, Source::Def(def, shift)) => {
                let (mut lines, element) = self.looked_at(row.lag, &row.uses);
                let body: &Body = &self.writer.subject.stencil.defs[def].body;
                let text = self.writer.expression(body, shift, &element);
                match wide {
                    None => lines.extend(each(&e, lane, &format!("{to}[{e}] = {text};"))),
                    Some([before, after]) => {
                        let own = self.writer.names.internal(&format!("{}_own", self.writer.name(row.source)));
                        lines.push(format!("{} {own}[{lane}];", self.writer.c_type(row.source)));
                        lines.extend(each(&e, lane, &format!("{own}[{e}] = {text};")));
                        lines.push(format!("widen_row<{before}, {after}>({to}, {own}, {lane_name});"));
                    }
                }
                lines
            }
            (Part::Def, Source::Field(..)) => Vec::new(),
        }
    }

    /// Loads a row of what stays as it is.
    fn load(&mut self, place: usize, field: FieldId, to: &str) -> Vec<String> {
        let subject = self.writer.subject;
        let row = &self.flow.rows[place];
        let declared = &subject.stencil.fields[field];
        let Rows { first, row: stride, plane } = subject.rows;
        let [lane_name, first_row] = self.writer.names.internals(["lane", "first_row"]);
        let base = self.writer.name(row.source).to_owned();
        let [from, own] = ["from", "loaded"].map(|what| self.writer.names.internal(&format!("{base}_{what}")));
        let at = [first, stride, if declared.place.levels == Levels::None { 0 } else { plane }];
        let many = width(declared.stored.bytes(subject.precision), self.lane(), &at);
        let nj = subject.extents[1] as i32;
        let span = self.spans[place];
        let index = match (span.first, span.end) {
            (0, end) if end == self.shape.rows as i32 => format!("({first_row} + {})", plus(&self.r, -row.lag)),
            _ => format!("(({first_row} + {}) % {nj})", plus(&self.r, nj - row.lag)),
        };
        let stored = stored_type(declared.stored, subject.precision);
        let call = match self.widened.get(&place) {
            None => format!("copy_row({to}, {own});"),
            Some([before, after]) => format!("widen_row<{before}, {after}>({to}, {own}, {lane_name});"),
        };
        vec![
            format!("{stored} {own}[{}];", self.lane()),
            format!("load_row<{many}>({own}, {from} + {index} * {stride});"),
            call,
        ]
    }

    /// What a user that lags so much looks at: what is fetched for it from neighbouring lanes, and its texts.
    fn looked_at(&mut self, lag: i32, uses: &[Use]) -> (Vec<String>, impl Fn(Use) -> Option<String> + use<>) {
        let lane = self.lane();
        let [lane_name, e] = self.writer.names.internals(["lane", "e"]);
        let mut lines = Vec::new();
        let mut windows: BTreeMap<(usize, i32), Window> = BTreeMap::new();
        for used in uses {
            if let Some(place) = self.flow.place(used.source) {
                let window = windows.entry((place, used.j)).or_default();
                *window = Window { low: window.low.min(used.i), high: window.high.max(used.i) };
            }
        }
        let mut texts: BTreeMap<(Source, i32), (String, usize, bool)> = BTreeMap::new();
        for ((place, j), window) in windows {
            let source = self.flow.rows[place].source;
            let row = self.row_of(place, j - lag);
            let is_stored = matches!(self.parts[place], Part::State(_)) && !self.widened.contains_key(&place);
            let text = match (self.widened.get(&place), window == Window::default()) {
                (Some([before, _]), _) => (row, *before, false),
                (None, true) => (row, 0, is_stored),
                (None, false) => {
                    let wide = self.writer.names.internal(&format!("{}_wide", self.writer.name(source)));
                    let (before, after) = (window.before(), window.after());
                    lines.push(format!("{} {wide}[{}];", self.writer.c_type(source), before + lane + after));
                    lines.push(format!("widen_row<{before}, {after}>({wide}, {row}, {lane_name});"));
                    (wide, before, false)
                }
            };
            texts.insert((source, j), text);
        }
        let (stencil, precision) = (self.writer.subject.stencil, self.writer.subject.precision);
        let stored: BTreeMap<FieldId, _> = stencil.fields.iter().map(|(id, field)| (id, field.stored)).collect();
        let element = move |used: Use| {
            let (name, before, is_stored) = texts.get(&(used.source, used.j))?;
            let text = format!("{name}[{}]", plus(&e, *before as i32 + used.i));
            match used.source {
                Source::Field(field, _) if *is_stored => Some(read_as(text, stored[&field], precision)),
                Source::Field(..) | Source::Def(..) => Some(text),
            }
        };
        (lines, element)
    }

    /// Makes row `r`, less its lag, of an output.
    fn store(&mut self, number: usize, step: &str, steps: &str) -> Vec<String> {
        let (subject, flow) = (self.writer.subject, self.flow);
        let store: &Store = &subject.stencil.stores[number];
        let [e] = self.writer.names.internals(["e"]);
        let lane = self.lane();
        let (mut lines, element) = self.looked_at(flow.lag, &flow.stores[number]);
        let text = self.writer.stored(store, &element);
        if self.is_carried(store.field) {
            let to = format!("{}[{}]", self.new_rows(store.field), plus(&self.r, -flow.lag));
            lines.extend(each(&e, lane, &format!("{to}[{e}] = {text};")));
            return lines;
        }
        // What is not looked at again is written once.
        let declared = &subject.stencil.fields[store.field];
        let Rows { first, row, plane } = subject.rows;
        let [k, first_row, column] = self.writer.names.internals(["k", "first_row", "column"]);
        let output = self.writer.output(store.field).to_owned();
        let made = self.writer.names.internal(&format!("{output}_row"));
        let stored = stored_type(declared.stored, subject.precision);
        let has_levels = declared.place.levels != Levels::None;
        let many =
            width(declared.stored.bytes(subject.precision), lane, &[first, row, if has_levels { plane } else { 0 }]);
        lines.push(format!("{stored} {made}[{lane}];"));
        lines.extend(each(&e, lane, &format!("{made}[{e}] = {text};")));
        let own = if has_levels { String::new() } else { format!(" && {k} == 0") };
        let plane = subject.plane(declared.place.levels, 0, &k);
        let at = format!("{output} + {plane} + ({first_row} + {}) * {row}LL + {column}", plus(&self.r, -flow.lag));
        lines.push(format!("if ({step} == {steps} - 1{own}) put_row<{many}>({at}, {made});"));
        lines
    }
}
