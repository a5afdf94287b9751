//! The text of a resident kernel: what stands around the rows of a step.

use super::super::flow::{Flow, Source, Window};
use super::super::write::{Writer, functions, width};
use super::super::{LANES, Rows};
use super::rows::Stage;
use super::spans::{Part, Span, sent, window};
use super::{Carry, Shape, field_bytes};
use crate::cuda::{prelude, render};
use crate::device;
use crate::diagnostic::Refusal;
use crate::ir::FieldId;
use crate::plan::stored_type;
use crate::text::Comment;
use serde::Serialize;
use std::collections::BTreeMap;

/// The skeleton of the kernel.
const TEMPLATE: &str = "step_resident.cu.tera";

#[derive(Serialize)]
struct Texts {
    comment: Vec<Comment>,
    prelude: Vec<String>,
    threads: usize,
    name: String,
    signature: Vec<String>,
    setup: Vec<String>,
    planes: String,
    turn: String,
    segment: Vec<String>,
    state: Vec<String>,
    step: String,
    first_step: String,
    last_step: String,
    body: Vec<String>,
    finish: Vec<String>,
    last: Vec<String>,
}

/// Prints one kernel.
pub struct Printer<'a> {
    pub writer: Writer<'a>,
    pub flow: &'a Flow,
    pub shape: Shape,
    pub carry: &'a [Carry],
    pub parts: Vec<Part>,
    /// Of each row, then of each store.
    pub spans: Vec<Span>,
    /// Of rows whose neighbouring columns are kept beside their own: how many before and after.
    pub widened: BTreeMap<usize, [usize; 2]>,
    /// The row of a loop.
    pub r: String,
}

impl Printer<'_> {
    /// `for (int r = 0; r < 4; ++r)`
    pub fn over(&self, count: usize) -> String {
        format!("for (int {0} = 0; {0} < {count}; ++{0})", self.r)
    }

    /// Columns of a lane.
    pub fn lane(&self) -> usize {
        self.writer.subject.extents[0] / LANES
    }

    /// The rows whose neighbours along i several others look at.
    pub fn kept_wide(&self) -> BTreeMap<usize, [usize; 2]> {
        let mut looks: BTreeMap<usize, (Window, usize)> = BTreeMap::new();
        let users = self.flow.rows.iter().map(|row| &row.uses).chain(&self.flow.stores);
        for uses in users {
            let mut rows: BTreeMap<(usize, i32), Window> = BTreeMap::new();
            for used in uses {
                if let Some(place) = self.flow.place(used.source).filter(|_| used.i != 0) {
                    let window = rows.entry((place, used.j)).or_default();
                    *window = Window { low: window.low.min(used.i), high: window.high.max(used.i) };
                }
            }
            for ((place, _), window) in rows {
                let (known, count) = looks.entry(place).or_default();
                *known = Window { low: known.low.min(window.low), high: known.high.max(window.high) };
                *count += 1;
            }
        }
        let several = looks.into_iter().filter(|(_, (_, count))| *count > 1);
        several.map(|(place, (window, _))| (place, [window.before(), window.after()])).collect()
    }

    pub fn print(&mut self, name: &str, steps: &str, flags: &str) -> Result<(String, usize), Refusal> {
        let subject = self.writer.subject;
        let Shape { rows, warps, blocks, .. } = self.shape;
        let lane = self.lane();
        let [lane_name, warp, rank, k, first_row, column] =
            self.writer.names.internals(["lane", "warp", "rank", "k", "first_row", "column"]);
        let [above, below, above_rank, below_rank, arrived, sent_name] =
            self.writer.names.internals(["above", "below", "above_rank", "below_rank", "arrived", "sent"]);
        let [step, first_step, last_step, turn] =
            self.writer.names.internals(["step", "first_step", "last_step", "turn"]);
        let mut setup = vec![
            format!("const int {lane_name} = threadIdx.x % 32, {warp} = threadIdx.x / 32;"),
            match blocks {
                1 => format!("const int {rank} = 0;"),
                _ => format!("const int {rank} = cluster_rank();"),
            },
            format!("const int {first_row} = ({rank} * {warps} + {warp}) * {rows}, {column} = {lane_name} * {lane};"),
        ];
        let offsets = self.offsets();
        let sends = offsets.values().any(|(_, rows)| *rows > 0);
        let bytes: usize =
            offsets.iter().map(|(&field, (_, rows))| rows * subject.extents[0] * field_bytes(subject, field)).sum();
        if sends {
            setup.push("// The warps with the rows above and below: the ends of a plane meet.".into());
            setup.push(format!(
                "const int {above} = ({warp} + {}) % {warps}, {below} = ({warp} + 1) % {warps};",
                warps - 1
            ));
            setup.push(format!(
                "const unsigned {above_rank} = {warp} > 0 ? {rank} : ({rank} + {}) % {blocks};",
                blocks - 1
            ));
            setup.push(format!(
                "const unsigned {below_rank} = {warp} < {} ? {rank} : ({rank} + 1) % {blocks};",
                warps - 1
            ));
            setup.push(format!("STENCILC_DYNAMIC_SHARED(unsigned char, {sent_name});"));
            setup.push(format!("STENCILC_SHARED(unsigned long long, {arrived}, [2][{warps}]);"));
            setup.push(format!("if (threadIdx.x < {}) {{", 2 * warps));
            setup.push(format!("    mbarrier_init(&{arrived}[0][0] + threadIdx.x, 1);"));
            setup.push("    mbarrier_fence();".into());
            setup.push("}".into());
            setup.push("cluster_arrive();".into());
            setup.push("cluster_wait();".into());
        }
        let mut shared = 0;
        for (&field, &(offset, count)) in &offsets {
            let base = self.writer.input(field).to_owned();
            let stored = stored_type(subject.stencil.fields[field].stored, subject.precision);
            if count > 0 {
                let own = self.writer.names.internal(&format!("{base}_sent"));
                let from = match offset {
                    0 => sent_name.clone(),
                    _ => format!("{sent_name} + {offset}"),
                };
                setup.push(format!("{stored}* const {own} = reinterpret_cast<{stored}*>({from});"));
            }
            shared = shared.max(offset + 2 * warps * count * subject.extents[0] * field_bytes(subject, field));
        }
        let (share, planes, first_line) = self.shares(&k, &first_step, &last_step, steps);
        setup.extend(share);
        let (mut segment, mut state) = self.begin(&k, &first_row, &column, &first_step);
        segment.insert(0, first_line);
        state.insert(0, format!("if ({first_step} > 0) flag_wait(&{flags}[blockIdx.x]);"));
        let body = self.step(&step, &turn, steps, sends.then_some(bytes));
        let mut finish = self.end(&first_row, &column, &k);
        finish.push(format!("if ({last_step} < {steps}) flag_raise(&{flags}[blockIdx.x + {blocks}]);"));
        let mut last = Vec::new();
        if sends {
            last.push("// No block ends while others send to it.".into());
            last.push("cluster_arrive();".into());
            last.push("cluster_wait();".into());
        }
        let mut lines = prelude::functions(&self.writer.helpers, subject.precision);
        lines.extend(functions(&[&state, &body, &finish]));
        let how = format!(
            "a plane stays in the registers of {blocks} blocks of {warps} warps of {rows} rows, step after step"
        );
        let mut texts = Texts {
            comment: Vec::new(),
            prelude: lines,
            threads: warps * LANES,
            name: name.to_owned(),
            signature: self.writer.signature(false),
            setup,
            planes,
            turn,
            segment,
            state,
            step,
            first_step,
            last_step,
            body,
            finish,
            last,
        };
        // What a comment says is no use of it.
        let operations = device::lines(&render(TEMPLATE, &texts)?);
        texts.prelude.splice(0..0, operations);
        texts.comment = self.writer.comment(how);
        Ok((render(TEMPLATE, &texts)?, shared))
    }

    /// Where the rows that are sent of each field are in shared memory, in bytes, and how many a warp gets.
    pub fn offsets(&self) -> BTreeMap<FieldId, (usize, usize)> {
        let subject = self.writer.subject;
        let mut at = 0;
        let mut offsets = BTreeMap::new();
        for &(_, field) in self.carry {
            let count = sent(self.flow, field);
            offsets.insert(field, (at, count));
            at += 2 * self.shape.warps * count * subject.extents[0] * field_bytes(subject, field);
        }
        offsets
    }

    /// The rows of a state or of a value in registers.
    pub fn rows(&mut self, base: &str) -> String {
        self.writer.names.internal(&format!("{base}_rows"))
    }

    /// Where a plane of the arrays is, and the state before its first step here: what is given, or what another cluster has
    /// left in the outputs.
    pub fn begin(&mut self, k: &str, first_row: &str, column: &str, first_step: &str) -> (Vec<String>, Vec<String>) {
        let subject = self.writer.subject;
        let Rows { first, row, plane } = subject.rows;
        let lane = self.lane();
        let (mut lines, mut state) = (Vec::new(), Vec::new());
        for place in 0..self.parts.len() {
            let (Part::Constant(field), Source::Field(_, shift)) = (self.parts[place], self.flow.rows[place].source)
            else {
                continue;
            };
            let declared = &subject.stencil.fields[field];
            let from = self.writer.names.internal(&format!("{}_from", self.writer.name(self.flow.rows[place].source)));
            let stored = stored_type(declared.stored, subject.precision);
            let (base, plane) = (self.writer.input(field), subject.plane(declared.place.levels, shift, k));
            lines.push(format!("const {stored}* const {from} = {base} + {plane} + {column};"));
        }
        lines.extend(self.writer.uniforms(self.flow));
        for &(output, field) in self.carry {
            let declared = &subject.stencil.fields[field];
            let (base, output) = (self.writer.input(field).to_owned(), self.writer.output(output).to_owned());
            let stored = stored_type(declared.stored, subject.precision);
            let (rows, before) = (self.rows(&base), self.writer.names.internal(&format!("{base}_before")));
            let window = window(self.flow, field);
            let count = window.before() + self.shape.rows + window.after();
            let many = width(declared.stored.bytes(subject.precision), lane, &[first, row, plane]);
            let from = subject.plane(declared.place.levels, 0, k);
            state.push(format!("const {stored}* const {before} = ({first_step} > 0 ? {output} : {base}) + {from};"));
            state.push(format!("{stored} {rows}[{count}][{lane}];"));
            state.push("#pragma unroll".into());
            state.push(format!("for (int {0} = 0; {0} < {1}; ++{0}) {{", self.r, self.shape.rows));
            let at = format!("{before} + ({first_row} + {}) * {row}LL + {column}", self.r);
            let into = plus(&self.r, window.before() as i32);
            state.push(format!("    load_row<{many}>({rows}[{into}], {at});"));
            state.push("}".into());
        }
        (lines, state)
    }

    /// Writes the state after the last step.
    pub fn end(&mut self, first_row: &str, column: &str, k: &str) -> Vec<String> {
        let subject = self.writer.subject;
        let Rows { first, row, plane } = subject.rows;
        let mut lines = Vec::new();
        for &(to, from) in self.carry {
            let declared = &subject.stencil.fields[to];
            let (base, output) = (self.writer.input(from).to_owned(), self.writer.output(to).to_owned());
            let rows = self.rows(&base);
            let before = window(self.flow, from).before() as i32;
            let many = width(declared.stored.bytes(subject.precision), self.lane(), &[first, row, plane]);
            let plane = subject.plane(declared.place.levels, 0, k);
            let at = format!("{output} + {plane} + ({first_row} + {}) * {row}LL + {column}", self.r);
            lines.push("#pragma unroll".into());
            lines.push(self.over(self.shape.rows));
            lines.push(format!("    put_row<{many}>({at}, {rows}[{}]);", plus(&self.r, before)));
        }
        lines
    }

    /// One step, whose number among all that the cluster computes is `turn`.
    pub fn step(&mut self, step: &str, turn: &str, steps: &str, bytes: Option<usize>) -> Vec<String> {
        let subject = self.writer.subject;
        let lane = self.lane();
        let mut lines = Vec::new();
        if let Some(bytes) = bytes {
            lines.extend(self.send(turn, bytes));
        }
        // Values of all rows; of what is computed and of what is fetched from neighbouring lanes.
        for place in 0..self.parts.len() {
            let source = self.flow.rows[place].source;
            let is_made = self.parts[place] != Part::State(self.field(place)) || self.widened.contains_key(&place);
            if is_made {
                let (name, count) = (self.made(place), self.spans[place].end - self.spans[place].first);
                let [before, after] = self.widened.get(&place).copied().unwrap_or_default();
                lines.push(format!("{} {name}[{count}][{}];", self.writer.c_type(source), before + lane + after));
            }
        }
        for store in &subject.stencil.stores {
            if self.is_carried(store.field) {
                let stored = stored_type(subject.stencil.fields[store.field].stored, subject.precision);
                let name = self.new_rows(store.field);
                lines.push(format!("{stored} {name}[{}][{lane}];", self.shape.rows));
            }
        }
        lines.extend(self.stage(Stage::Inner, step, turn, steps));
        if bytes.is_some() {
            let [warp, arrived] = self.writer.names.internals(["warp", "arrived"]);
            lines.push(format!("mbarrier_wait_cluster(&{arrived}[{turn} % 2][{warp}], {turn} / 2 % 2);"));
        }
        lines.extend(self.stage(Stage::Top, step, turn, steps));
        lines.extend(self.stage(Stage::Bottom, step, turn, steps));
        for &(to, from) in self.carry {
            let base = self.writer.input(from).to_owned();
            let (rows, new) = (self.rows(&base), self.new_rows(to));
            let before = window(self.flow, from).before() as i32;
            lines.push("#pragma unroll".into());
            lines.push(self.over(self.shape.rows));
            lines.push(format!("    copy_row({rows}[{}], {new}[{}]);", plus(&self.r, before), self.r));
        }
        lines
    }

    pub fn is_carried(&self, output: FieldId) -> bool {
        self.carry.iter().any(|&(to, _)| to == output)
    }

    pub fn new_rows(&mut self, output: FieldId) -> String {
        let base = self.writer.output(output).to_owned();
        self.writer.names.internal(&format!("{base}_made"))
    }

    /// The field of a row; any if it is a definition's.
    pub fn field(&self, place: usize) -> FieldId {
        match self.flow.rows[place].source {
            Source::Field(field, _) => field,
            Source::Def(..) => crate::ir::Handle::new(0),
        }
    }

    /// What is made of a row in each step: computed, loaded, or fetched from neighbouring lanes.
    pub fn made(&mut self, place: usize) -> String {
        let base = self.writer.name(self.flow.rows[place].source).to_owned();
        match self.parts[place] {
            Part::State(_) => self.writer.names.internal(&format!("{base}_wide_rows")),
            Part::Constant(_) | Part::Def => self.rows(&base),
        }
    }

    /// Sends the outermost rows.
    pub fn send(&mut self, turn: &str, bytes: usize) -> Vec<String> {
        let subject = self.writer.subject;
        let Shape { rows, warps, .. } = self.shape;
        let ni = subject.extents[0];
        let [lane, warp, above, below, above_rank, below_rank, arrived] =
            self.writer.names.internals(["lane", "warp", "above", "below", "above_rank", "below_rank", "arrived"]);
        let mut lines = vec![format!("if ({lane} == 0) mbarrier_expect(&{arrived}[{turn} % 2][{warp}], {bytes});")];
        for &(_, field) in self.carry {
            let window = window(self.flow, field);
            let (before, after) = (window.before(), window.after());
            let count = before + after;
            if count == 0 {
                continue;
            }
            let base = self.writer.input(field).to_owned();
            let (own, sent) = (self.rows(&base), self.writer.names.internal(&format!("{base}_sent")));
            let r = self.r.clone();
            let over = |count: usize| self.over(count);
            let mut send = |number: usize, to: &str, rank: &str, slot: usize, from: usize| {
                let place =
                    format!("{sent} + (({turn} % 2 * {warps} + {to}) * {count} + {}) * {ni}", plus(&r, slot as i32));
                let row = plus(&r, from as i32);
                lines.push("#pragma unroll".into());
                lines.push(over(number));
                lines.push(format!(
                    "    push_row({place}, {own}[{row}], {lane}, {rank}, &{arrived}[{turn} % 2][{to}]);"
                ));
            };
            // What is below a warp's last row is the first of the next, and the other way round.
            if after > 0 {
                send(after, &above, &above_rank, before, before);
            }
            if before > 0 {
                send(before, &below, &below_rank, 0, rows);
            }
        }
        lines
    }
}

/// `r + 3`
pub fn plus(name: &str, by: i32) -> String {
    match by {
        0 => name.to_owned(),
        1.. => format!("{name} + {by}"),
        _ => format!("{name} - {}", by.unsigned_abs()),
    }
}
