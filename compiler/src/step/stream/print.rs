//! The text of a kernel that streams.

use super::super::flow::{Flow, Source, Use, Window};
use super::super::write::{Writer, each, functions, width};
use super::tiling::{Held, Tiling, wanted};
use super::turns::{turns, warp_text};
use super::{Carry, LANES, Shape, Strip, Subject, computed};
use crate::cuda::{prelude, render};
use crate::device;
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Levels, Store};
use crate::names::Identifier;
use crate::plan::stored_type;
use crate::text::Comment;
use serde::Serialize;
use std::collections::BTreeMap;

/// The skeleton of the kernel.
const TEMPLATE: &str = "step_stream.cu.tera";

#[derive(Serialize)]
struct Texts {
    comment: Vec<Comment>,
    prelude: Vec<String>,
    head: String,
    name: Identifier,
    signature: Vec<String>,
    setup: Vec<String>,
    kept: Vec<String>,
    coming: Vec<String>,
    ahead: usize,
    steps: String,
    unrolled: usize,
    step: String,
    turn: String,
    first_loads: Vec<String>,
    loads: Vec<String>,
    load_guard: String,
    taken: Vec<String>,
    body: Vec<String>,
    span: usize,
    store_guard: String,
    stores: Vec<String>,
    kept_on: Vec<String>,
    /// What stands after it.
    around: Vec<String>,
}

/// What the text of a warp's rows is.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// A kernel.
    Kernel,
    /// A function of a kernel that takes many steps.
    Turns(&'a [Carry]),
}

/// A row that can be looked at.
#[derive(Clone, Debug)]
struct View {
    name: String,
    /// Columns before and after the lane's own.
    halo: [usize; 2],
}

/// Prints one kernel.
pub struct Printer<'a> {
    /// Names and texts.
    pub writer: Writer<'a>,
    flow: &'a Flow,
    shape: &'a Shape,
    tiling: Tiling,
    held: Vec<Held>,
    /// Of each row, by how many rows back: where it is found.
    views: BTreeMap<(usize, usize), View>,
    wanted: BTreeMap<(usize, usize), Window>,
}

/// Names of a kernel's own variables.
struct Own {
    lane: String,
    k: String,
    column: String,
    edge: String,
    at_edge: String,
    first_row: String,
    is_own: String,
    step: String,
    turn: String,
    element: String,
    /// Of each lead the row that its fields load next.
    rows: BTreeMap<i64, String>,
}

impl<'a> Printer<'a> {
    /// A printer of a kernel of these rows.
    pub fn new(subject: &'a Subject<'a>, flow: &'a Flow, shape: &'a Shape, tiling: Tiling, held: Vec<Held>) -> Self {
        let writer = Writer::new(subject, flow);
        Self { writer, flow, shape, tiling, held, views: BTreeMap::new(), wanted: wanted(flow) }
    }

    /// The kernel's name and text.
    ///
    /// # Errors
    /// A template is broken, which is a fault of the compiler.
    pub fn print(&mut self, warps: u128, frame: Frame) -> Result<(Identifier, String), Refusal> {
        let Tiling { lane, columns, rows, steps, unrolled, .. } = self.tiling;
        let subject = self.writer.subject;
        let ending = match frame {
            Frame::Kernel => "stream",
            Frame::Turns(_) => "rows",
        };
        let name = self.writer.names.declared(&format!("{}_{ending}", subject.stencil.name));
        let own = self.own();
        let mut setup = self.setup(&own, warps, frame);
        // A launch has one block along y.
        let count = self.writer.names.internal("count");
        setup.push("// NVRTC 13.0 can lose the end of a loop whose length it knows.".to_owned());
        setup.push(format!("const int {count} = {steps} + int(gridDim.y) - 1;"));
        let (mut kept, mut coming) = (Vec::new(), Vec::new());
        let (mut first_loads, mut loads, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..self.flow.rows.len() {
            let Held { halo: [before, after], slots, .. } = self.held[place];
            let source = self.flow.rows[place].source;
            let (c_type, wish) = (self.writer.c_type(source), self.writer.name(source).to_owned());
            if slots > 0 {
                let ring = self.ring(place);
                kept.push(format!("{c_type} {ring}[{slots}][{}] = {{}};", before + lane + after));
            }
            if let Source::Field(field, _) = source {
                let rows = self.writer.names.internal(&format!("{wish}_coming"));
                let stored = stored_type(subject.stencil.fields[field].stored, subject.precision);
                coming.push(format!("{stored} {rows}[{}][{lane}];", self.shape.ahead));
                if self.held[place].computed && before + after > 0 {
                    let beyond = self.writer.names.internal(&format!("{wish}_beyond"));
                    coming.push(format!("{stored} {beyond}[{}][{}] = {{}};", self.shape.ahead, before.max(after)));
                }
                first_loads.extend(self.load(&own, place, field, own.turn.clone()));
                loads.extend(self.load(&own, place, field, self.turned(&own, self.shape.ahead)));
                taken.extend(self.take(&own, place));
            }
        }
        let advance = self.advance(&own);
        first_loads.extend(advance.iter().cloned());
        loads.extend(advance);
        let mut body = self.references(&own);
        for place in 0..self.flow.rows.len() {
            if !self.flow.rows[place].uses.is_empty() || matches!(self.flow.rows[place].source, Source::Def(..)) {
                body.extend(self.value(&own, place));
            }
        }
        let mut stores = Vec::new();
        for (number, store) in subject.stencil.stores.iter().enumerate() {
            let (views, lines) = self.store(&own, number, store);
            body.extend(views);
            stores.extend(lines);
        }
        let kept_on = self.keep(&own);
        let mut lines = prelude::functions(&self.writer.helpers, subject.precision);
        let now = format!("{} + {}", own.step, own.turn);
        let span = self.flow.span;
        let mut store_guard: Vec<String> = Vec::new();
        if span > 0 {
            store_guard.push(format!("{now} >= {span}"));
        }
        if !steps.is_multiple_of(unrolled) {
            store_guard.push(format!("{now} < {count}"));
        }
        let how = format!(
            "a warp walks down {rows} rows of {columns} columns, a lane has {lane}; {} rows ahead are on their way",
            self.shape.ahead
        );
        lines.extend(functions(&[&first_loads, &taken, &body, &stores, &kept_on]));
        let how = match frame {
            Frame::Kernel => how,
            Frame::Turns(_) => format!("many steps, and between them all wait for each other; {how}"),
        };
        // Without `restrict`, nothing is taken for unchanged that others write between two steps.
        let mut signature = self.writer.signature(matches!(frame, Frame::Kernel));
        let (head, kernel, around) = match frame {
            Frame::Kernel => {
                let head = format!("extern \"C\" __global__ void __launch_bounds__({})", self.shape.block);
                (head, name.clone(), Vec::new())
            }
            Frame::Turns(carry) => {
                let (kernel, around) = turns(&mut self.writer, &name, carry, self.shape, warps);
                signature.push(format!("const int {}", self.writer.names.internal("warp")));
                ("static __device__ __forceinline__ void".to_owned(), kernel, around)
            }
        };
        let mut texts = Texts {
            comment: self.writer.comment(how),
            prelude: lines,
            head,
            name,
            signature,
            around,
            setup,
            kept,
            coming,
            ahead: self.shape.ahead,
            steps: count.clone(),
            unrolled,
            first_loads,
            loads,
            load_guard: format!("{now} + {} < {count}", self.shape.ahead),
            taken,
            body,
            span,
            store_guard: store_guard.join(" && "),
            stores,
            kept_on,
            step: own.step,
            turn: own.turn,
        };
        let operations = device::lines(&[texts.prelude.join("\n"), texts.around.join("\n")].concat());
        texts.prelude.splice(0..0, operations);
        Ok((kernel, render(TEMPLATE, &texts)?))
    }

    fn own(&mut self) -> Own {
        let [lane, k, column, edge, at_edge, first_row, is_own, step, turn, element] = self.writer.names.internals([
            "lane",
            "k",
            "column",
            "column_beyond",
            "at_edge",
            "first_row",
            "is_own",
            "step",
            "q",
            "e",
        ]);
        let rows = self.leads().into_iter().map(|lead| (lead, self.writer.names.fresh("row"))).collect();
        Own { lane, k, column, edge, at_edge, first_row, is_own, step, turn, element, rows }
    }

    /// Where the warp is, and where it reads and writes.
    fn setup(&mut self, own: &Own, warps: u128, frame: Frame) -> Vec<String> {
        let Tiling { lane, halo, columns, strips, rows, parts, .. } = self.tiling;
        let subject = self.writer.subject;
        let [ni, nj, _] = subject.extents;
        let Own { lane: lane_name, k, column, edge, at_edge, first_row, is_own, .. } = own;
        let [warp, strip, part] = self.writer.names.internals(["warp", "strip", "part"]);
        let warps_of_block = self.shape.block / LANES;
        let mut lines = vec![format!("const int {lane_name} = threadIdx.x % 32;")];
        if matches!(frame, Frame::Kernel) {
            lines.push(format!("const int {warp} = {};", warp_text(warps_of_block)));
            if !warps.is_multiple_of(warps_of_block as u128) {
                lines.push(format!("if ({warp} >= {warps}) return;"));
            }
        }
        // Warps beside each other share what is fastest: rows above each other, or strips side by side.
        let (first, second) = match self.shape.strip {
            Strip::Overlapping => ((&part, parts), (&strip, strips)),
            Strip::Aligned => ((&strip, strips), (&part, parts)),
        };
        lines.push(format!("const int {} = {warp} % {};", first.0, first.1));
        lines.push(format!("const int {} = {warp} / {} % {};", second.0, first.1, second.1));
        lines.push(format!("const int {k} = {warp} / {};", strips * parts));
        // The last strip and the last part stand back onto those before them: the same bits are written twice.
        let back = |name: &str, size: usize, extent: usize| match extent {
            _ if extent <= size => "0".to_owned(),
            _ if extent.is_multiple_of(size) => format!("{name} * {size}"),
            _ => format!("min({name} * {size}, {})", extent - size),
        };
        let start = back(&strip, columns, ni);
        let column_text = match halo[0] * lane {
            0 if halo[1] == 0 && ni >= columns => format!("{start} + {lane_name} * {lane}"),
            0 => format!("({start} + {lane_name} * {lane}) % {ni}"),
            before => format!("({start} + {lane_name} * {lane} + {}) % {ni}", (before.next_multiple_of(ni) - before)),
        };
        lines.push(format!("const int {column} = {column_text};"));
        let [_, j] = computed(subject, self.flow);
        lines.push(match (back(&part, rows, j.len()).as_str(), j.start) {
            (text, 0) => format!("const int {first_row} = {text};"),
            (text, start) => format!("const int {first_row} = {text} + {start};"),
        });
        let mut is_mine: Vec<String> = Vec::new();
        if halo[0] > 0 {
            is_mine.push(format!("{lane_name} >= {}", halo[0]));
        }
        let end = (LANES - halo[1]).min(halo[0] + ni / lane);
        if end < LANES {
            is_mine.push(format!("{lane_name} < {end}"));
        }
        if !is_mine.is_empty() {
            lines.push(format!("const bool {is_own} = {};", is_mine.join(" && ")));
        }
        if self.beyond() > 0 {
            let beyond = self.beyond();
            let (left, right) = ((ni - beyond) % ni, LANES * lane);
            lines.push(format!("const bool {at_edge} = {lane_name} == 0 || {lane_name} == 31;"));
            lines.push(format!(
                "const int {edge} = ({} + ({lane_name} == 0 ? {left} : {right})) % {ni};",
                back(&strip, columns, ni)
            ));
        }
        for (&lead, row) in &own.rows {
            lines.push(match lead {
                0 => format!("int {row} = {first_row};"),
                _ => {
                    let start = lead.rem_euclid(nj as i64);
                    format!("int {row} = ({first_row} + {start}) % {nj};")
                }
            });
        }
        for row in &self.flow.rows {
            if let Source::Field(field, shift) = row.source {
                let field_place = subject.stencil.fields[field].place;
                let wish = format!("{}_from", self.writer.name(row.source));
                let from = self.writer.names.internal(&wish);
                let stored = stored_type(subject.stencil.fields[field].stored, subject.precision);
                let plane = subject.plane(field_place.levels, shift, k);
                let base = self.writer.input(field);
                lines.push(format!("const {stored}* const {from} = {base} + {plane};").replace(" + 0;", ";"));
            }
        }
        for store in &subject.stencil.stores {
            let field = &subject.stencil.fields[store.field];
            let name = self.writer.output(store.field).to_owned();
            let to = self.writer.names.internal(&format!("{name}_to"));
            let stored = stored_type(field.stored, subject.precision);
            let plane = subject.plane(field.place.levels, 0, k);
            let row = subject.rows.row;
            lines.push(format!("{stored}* const {to} = {name} + {plane} + {first_row} * {row}LL + {column};"));
        }
        lines.extend(self.writer.uniforms(self.flow));
        lines
    }

    /// Columns beyond a strip that its outermost lanes load.
    fn beyond(&self) -> usize {
        let computed = self.held.iter().zip(&self.flow.rows).filter(|(held, row)| held.computed && row.uses.is_empty());
        computed.map(|(held, _)| held.halo[0].max(held.halo[1])).max().unwrap_or(0)
    }

    /// How far the first row that each field loads is from the warp's own first row.
    fn lead(&self, place: usize) -> i64 {
        i64::from(self.flow.lag) - i64::from(self.flow.rows[place].lag) - self.flow.span as i64
    }

    fn leads(&self) -> Vec<i64> {
        let fields =
            (0..self.flow.rows.len()).filter(|&place| matches!(self.flow.rows[place].source, Source::Field(..)));
        let mut leads: Vec<i64> = fields.map(|place| self.lead(place)).collect();
        leads.sort_unstable();
        leads.dedup();
        leads
    }

    /// From a row to the next, as a number by which an `int` is multiplied.
    fn stride(&self) -> String {
        let subject = self.writer.subject;
        let wide = subject.rows.row.saturating_mul(subject.extents[1]) > i32::MAX as usize;
        format!("{}{}", subject.rows.row, if wide { "LL" } else { "" })
    }

    /// What is kept of a row.
    fn ring(&mut self, place: usize) -> String {
        let wish = format!("{}_kept", self.writer.name(self.flow.rows[place].source));
        self.writer.names.internal(&wish)
    }

    /// The present turn among so many: `q % 2`.
    fn turned(&self, own: &Own, of: usize) -> String {
        match of {
            1 => "0".to_owned(),
            _ if of == self.tiling.unrolled => own.turn.clone(),
            _ => format!("{} % {of}", own.turn),
        }
    }

    /// Where the row of so many steps before is kept.
    fn slot(&self, own: &Own, place: usize, age: usize) -> String {
        let slots = self.held[place].slots;
        match (slots, age.next_multiple_of(slots) - age) {
            (1, _) => "0".to_owned(),
            (_, 0) => self.turned(own, slots),
            (_, on) => format!("({} + {on}) % {slots}", own.turn),
        }
    }

    /// Loads the next row of a field.
    fn load(&mut self, own: &Own, place: usize, field: FieldId, to: String) -> Vec<String> {
        let subject = self.writer.subject;
        let rows = subject.rows;
        let bytes = subject.stencil.fields[field].stored.bytes(subject.precision);
        let wish = self.writer.name(self.flow.rows[place].source).to_owned();
        let [coming, beyond, from] =
            ["coming", "beyond", "from"].map(|what| self.writer.names.internal(&format!("{wish}_{what}")));
        let row = &own.rows[&self.lead(place)];
        let has_levels = subject.stencil.fields[field].place.levels != Levels::None;
        let at = [rows.first, rows.row, if has_levels { rows.plane } else { 0 }];
        let many = width(bytes, self.tiling.lane, &at);
        let at_row = format!("{from} + {row} * {}", self.stride());
        let mut lines = vec![format!("load_row<{many}>({coming}[{to}], {at_row} + {});", own.column)];
        let Held { halo, computed, .. } = self.held[place];
        let count = halo[0].max(halo[1]);
        if computed && count > 0 {
            // The same columns for all fields: those next to the strip are the last at its left and the first at its right.
            let widest = self.beyond();
            let skip = widest - count;
            let skipped = match skip {
                0 => String::new(),
                _ => format!(" + ({} == 0 ? {skip} : 0)", own.lane),
            };
            let place = format!("{at_row} + {}{skipped}", own.edge);
            lines.push(format!("load_row_where({beyond}[{to}], {place}, {});", own.at_edge));
        }
        lines
    }

    /// Goes on to the next row to load.
    fn advance(&self, own: &Own) -> Vec<String> {
        let last = self.writer.subject.extents[1] - 1;
        let line = |row: &String| match (last + 1).is_power_of_two() {
            true => format!("{row} = ({row} + 1) & {last};"),
            false => format!("{row} = {row} == {last} ? 0 : {row} + 1;"),
        };
        own.rows.values().map(line).collect()
    }

    /// Takes the row of a field that has come.
    fn take(&mut self, own: &Own, place: usize) -> Vec<String> {
        let source = self.flow.rows[place].source;
        let wish = self.writer.name(source).to_owned();
        let [coming, beyond] = ["coming", "beyond"].map(|what| self.writer.names.internal(&format!("{wish}_{what}")));
        let now = self.writer.names.internal(&format!("{wish}_now"));
        let Held { halo: [before, after], computed, .. } = self.held[place];
        let turn = self.turned(own, self.shape.ahead);
        let c_type = self.writer.c_type(source);
        self.views.insert((place, 0), View { name: now.clone(), halo: [before, after] });
        let call = match (before + after, computed) {
            (0, _) => format!("copy_row({now}, {coming}[{turn}]);"),
            (_, false) => format!("widen_row<{before}, {after}>({now}, {coming}[{turn}], {});", own.lane),
            (_, true) => {
                format!("join_rows<{before}, {after}>({now}, {coming}[{turn}], {beyond}[{turn}], {});", own.lane)
            }
        };
        vec![format!("{c_type} {now}[{}];", before + self.tiling.lane + after), call]
    }

    /// Names the rows of steps before.
    fn references(&mut self, own: &Own) -> Vec<String> {
        let mut lines = Vec::new();
        let keys: Vec<(usize, usize)> = self.wanted.keys().copied().filter(|&(_, age)| age > 0).collect();
        for (place, age) in keys {
            let source = self.flow.rows[place].source;
            let wish = self.writer.name(source).to_owned();
            let name = self.writer.names.internal(&format!("{wish}_back{age}"));
            let [before, after] = self.held[place].halo;
            let (ring, slot) = (self.ring(place), self.slot(own, place, age));
            let c_type = self.writer.c_type(source);
            lines.push(format!("const {c_type} (&{name})[{}] = {ring}[{slot}];", before + self.tiling.lane + after));
            self.views.insert((place, age), View { name, halo: [before, after] });
        }
        lines
    }

    /// Fetches from the neighbouring lanes what these uses look at beyond a row's own columns, where nobody has yet.
    fn widen(&mut self, own: &Own, lag: i32, uses: &[Use]) -> Vec<String> {
        let mut lines = Vec::new();
        for &used in uses {
            let Some(key) = self.flow.age(lag, used) else { continue };
            let Some(View { name, halo }) = self.views.get(&key).cloned() else { continue };
            let window = self.wanted[&key];
            if window.before() <= halo[0] && window.after() <= halo[1] || self.held[key.0].computed {
                continue;
            }
            let wide = self.writer.names.internal(&format!("{name}_wide"));
            let c_type = self.writer.c_type(used.source);
            let (before, after) = (window.before(), window.after());
            lines.push(format!("{c_type} {wide}[{}];", before + self.tiling.lane + after));
            lines.push(format!("widen_row<{before}, {after}>({wide}, {name}, {});", own.lane));
            self.views.insert(key, View { name: wide, halo: [before, after] });
        }
        lines
    }

    /// The text of what a user at column `e` of a row that begins `before` columns before the lane's own looks at.
    fn element(&self, own: &Own, lag: i32, before: usize) -> impl Fn(Use) -> Option<String> + use<> {
        let (flow, views, e) = (self.flow.clone(), self.views.clone(), own.element.clone());
        move |used| {
            let key = flow.age(lag, used)?;
            let View { name, halo } = views.get(&key)?;
            Some(match halo[0] as i64 - before as i64 + i64::from(used.i) {
                0 => format!("{name}[{e}]"),
                on @ 1.. => format!("{name}[{e} + {on}]"),
                back => format!("{name}[{e} - {}]", back.unsigned_abs()),
            })
        }
    }

    /// Computes a definition's present row.
    fn value(&mut self, own: &Own, place: usize) -> Vec<String> {
        let flow = self.flow;
        let row = &flow.rows[place];
        let Source::Def(def, shift) = row.source else { return Vec::new() };
        let Held { halo: [before, after], computed, .. } = self.held[place];
        let lane = self.tiling.lane;
        let mut lines = self.widen(own, row.lag, &row.uses);
        let name = self.writer.name(row.source).to_owned();
        let now = self.writer.names.internal(&format!("{name}_now"));
        let c_type = self.writer.c_type(row.source);
        let start = if computed { before } else { 0 };
        let element = self.element(own, row.lag, start);
        let text = self.writer.expression(&self.writer.subject.stencil.defs[def].body, shift, &element);
        let fetched = !computed && before + after > 0;
        let made = if fetched { self.writer.names.internal(&format!("{name}_own")) } else { now.clone() };
        let count = if computed { before + lane + after } else { lane };
        lines.push(format!("{c_type} {made}[{count}];"));
        lines.extend(each(&own.element, count, &format!("{made}[{}] = {text};", own.element)));
        if fetched {
            lines.push(format!("{c_type} {now}[{}];", before + lane + after));
            lines.push(format!("widen_row<{before}, {after}>({now}, {made}, {});", own.lane));
        }
        self.views.insert((place, 0), View { name: now, halo: [before, after] });
        lines
    }

    /// What is fetched for an output, and how it is written.
    fn store(&mut self, own: &Own, number: usize, store: &Store) -> (Vec<String>, Vec<String>) {
        let subject = self.writer.subject;
        let field = &subject.stencil.fields[store.field];
        let flow = self.flow;
        let views = self.widen(own, flow.lag, &flow.stores[number]);
        let element = self.element(own, flow.lag, 0);
        let text = self.writer.stored(store, &element);
        let name = self.writer.output(store.field).to_owned();
        let [made, to] = ["row", "to"].map(|what| self.writer.names.internal(&format!("{name}_{what}")));
        let stored = stored_type(field.stored, subject.precision);
        let lane = self.tiling.lane;
        let mut lines = vec![format!("{stored} {made}[{lane}];")];
        lines.extend(each(&own.element, lane, &format!("{made}[{}] = {text};", own.element)));
        let rows = subject.rows;
        let has_levels = field.place.levels != Levels::None;
        let at = [rows.first, rows.row, if has_levels { rows.plane } else { 0 }];
        let many = width(field.stored.bytes(subject.precision), lane, &at);
        let row = match flow.span {
            0 => format!("({} + {})", own.step, own.turn),
            span => format!("({} + {} - {span})", own.step, own.turn),
        };
        let at = format!("{to} + {row} * {}", self.stride());
        let [i, _] = computed(subject, flow);
        let written = if i.len() == subject.extents[0] {
            format!("put_row<{many}>({at}, {made});")
        } else {
            // Lanes at the edges hold columns that are not computed.
            let column = &own.column;
            format!("put_between<{many}>({at}, {made}, {} - {column}, {} - {column});", i.start, i.end)
        };
        let mut guards: Vec<String> = Vec::new();
        let Tiling { halo, lane, .. } = self.tiling;
        if halo != [0, 0] || subject.extents[0] / lane < LANES {
            guards.push(own.is_own.clone());
        }
        if !has_levels {
            guards.push(format!("{} == 0", own.k));
        }
        lines.push(match guards.is_empty() {
            true => written,
            false => format!("if ({}) {written}", guards.join(" && ")),
        });
        (views, lines)
    }

    /// Keeps the present rows for the steps to come.
    fn keep(&mut self, own: &Own) -> Vec<String> {
        let mut lines = Vec::new();
        for place in 0..self.flow.rows.len() {
            let slots = self.held[place].slots;
            if slots > 0 {
                let wish = format!("{}_now", self.writer.name(self.flow.rows[place].source));
                let (ring, now) = (self.ring(place), self.writer.names.internal(&wish));
                lines.push(format!("copy_row({ring}[{}], {now});", self.turned(own, slots)));
            }
        }
        lines
    }
}
