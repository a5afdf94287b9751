//! `resident`: the time loop is inside the kernel, and a plane stays in the registers of the blocks of one cluster.
//!
//! Each warp holds some full rows of the plane; a lane has as many consecutive columns of each as there are for 32 lanes, and
//! the ends of a row meet. At each step a warp sends its outermost rows to the two warps beside it, wherever in the cluster
//! they are, computes what its own rows suffice for, waits for what its neighbours have sent, and computes the rest.
//!
//! Nobody waits at a barrier. Each warp has two mbarriers, used in turn, which count the bytes that are sent to it. Two are
//! enough: who sends the rows of a step has received those of the step before, which were sent after the rows before
//! these had been read.

use super::flow::{Flow, Source, Use, Window};
use super::write::{Writer, each, functions, register_bytes, width};
use super::{Edge, Gpu, Kernel, LANES, Launch, Parameter, Rows, Subject, What};
use crate::cuda::expression::read_as;
use crate::cuda::{prelude, render};
use crate::device;
use crate::diagnostic::Refusal;
use crate::ir::{Body, FieldId, Levels, Store};
use crate::plan::stored_type;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How a plane lies in the registers of a cluster. `rows * warps * blocks` are the plane's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of a warp.
    pub rows: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Blocks of a cluster: 1 to 16. More than 8 not every GPU takes.
    pub blocks: usize,
    /// Whether a warp computes what its own rows suffice for before its neighbours' rows have come: that hides how long they
    /// take, and needs more registers.
    pub early: bool,
}

/// An output, and the input that it becomes in the next step.
pub type Carry = (FieldId, FieldId);

/// The most bytes of shared memory that a block can have.
const SHARED: usize = 227 << 10;

/// The skeleton of the kernel.
const TEMPLATE: &str = "step_resident.cu.tera";

/// Bytes that a lane sends at once.
const SENT: usize = 16;

#[derive(Serialize)]
struct Texts {
    comment: Vec<String>,
    prelude: Vec<String>,
    threads: usize,
    name: String,
    signature: Vec<String>,
    setup: Vec<String>,
    segment: Vec<String>,
    state: Vec<String>,
    step: String,
    steps: String,
    body: Vec<String>,
    finish: Vec<String>,
}

/// What a row of [`Flow::rows`] is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// An input that an output becomes: in registers all the time, the rows around by sending.
    State(FieldId),
    /// An input that stays as it is, loaded at each step.
    Constant(FieldId),
    /// A definition.
    Def,
}

/// The rows of a value, counted from a warp's first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    /// The first that is needed.
    first: i32,
    /// One past the last.
    end: i32,
    /// Those that a warp's own rows suffice for.
    inner: [i32; 2],
}

/// Shapes that a stencil can have on a subject, those that should be fastest first.
pub fn shapes(subject: &Subject, carry: &[Carry], gpu: &Gpu) -> Vec<Shape> {
    let Ok(flow) = Flow::new(subject) else { return Vec::new() };
    let [_, nj, nk] = subject.extents;
    let mut found = Vec::new();
    for blocks in [1, 2, 4, 8, 16] {
        for warps in [1, 2, 4, 8, 16, 32] {
            if !nj.is_multiple_of(blocks * warps) {
                continue;
            }
            let mut shape = Shape { rows: nj / blocks / warps, warps, blocks, early: true };
            if check(subject, &flow, carry, shape).is_err() {
                continue;
            }
            // Half of the registers of a thread at most are for the state, or other values find no room.
            let most = (gpu.registers as usize / (LANES * warps)).min(255);
            let [state, all] = registers(subject, &flow, carry, shape.rows);
            if 2 * state > most + 8 {
                continue;
            }
            shape.early = all <= most;
            // Clusters that are there at once each compute their planes; a processor works best with about eight warps, and
            // the more rows a warp has, the less it sends and computes twice.
            let at_once = (gpu.processors as usize / blocks).max(1);
            let waves = nk.div_ceil(at_once) as f64;
            let reach = flow.j.before() + flow.j.after();
            let work = (shape.rows + reach) as f64 * (warps.max(8) as f64 / 8.0);
            // A step is never quicker than rows come from another processor.
            let least = if blocks > 1 { 6.0 } else { 3.0 };
            found.push(((waves * (work + least) * 1000.0) as u64, shape));
        }
    }
    found.sort_by_key(|(cost, shape)| (*cost, shape.blocks, shape.warps));
    found.into_iter().map(|(_, shape)| shape).collect()
}

/// A kernel with a time loop in it. It takes the number of steps, and leaves in each output what it is after so many.
///
/// # Errors
/// The stencil reads other levels, an output that is carried is no match for its input, or the shape does not fit the grid.
pub fn resident(subject: &Subject, carry: &[Carry], shape: Shape) -> Result<Kernel, Refusal> {
    let flow = Flow::new(subject)?;
    check(subject, &flow, carry, shape)?;
    let parts: Vec<Part> = flow.rows.iter().map(|row| part(carry, row.source)).collect();
    let mut spans = spans(&flow, &parts, shape);
    let mut shape = shape;
    if spans.iter().any(|span| span.inner[0] > span.inner[1]) {
        // Too few rows for anyone to begin with.
        shape.early = false;
        spans = self::spans(&flow, &parts, shape);
    }
    let mut writer = Writer::new(subject, &flow);
    for &(to, from) in carry {
        // One that nobody reads is still what the first step begins with, if there is none.
        writer.need(from);
        writer.need(to);
    }
    let name = writer.names.fresh(&format!("{}_resident", subject.stencil.name));
    let steps = writer.names.fresh("steps");
    writer.parameters.push(Parameter { name: steps.clone(), c_type: "int".into(), what: What::Steps });
    let r = writer.names.internal("r");
    let mut printer = Printer { writer, flow: &flow, shape, carry, parts, spans, widened: BTreeMap::new(), r };
    printer.widened = printer.kept_wide();
    let (text, shared) = printer.print(&name, &steps)?;
    let launch = Launch {
        grid: [(subject.extents[2] * shape.blocks) as u32, 1, 1],
        block: [(shape.warps * LANES) as u32, 1, 1],
        cluster: [shape.blocks as u32, 1, 1],
        shared: shared as u32,
        cooperative: false,
    };
    Ok(Kernel { name, text, parameters: printer.writer.parameters, launch })
}

fn part(carry: &[Carry], source: Source) -> Part {
    match source {
        Source::Field(field, _) if carry.iter().any(|&(_, from)| from == field) => Part::State(field),
        Source::Field(field, _) => Part::Constant(field),
        Source::Def(..) => Part::Def,
    }
}

/// About how many registers the state takes, and everything if a warp computes early.
fn registers(subject: &Subject, flow: &Flow, carry: &[Carry], rows: usize) -> [usize; 2] {
    let lane = subject.extents[0] / LANES;
    let (mut state, mut others) = (0, 30);
    for row in &flow.rows {
        let around = row.j.before() + row.j.after();
        let words = words(subject, row.source) * lane;
        match part(carry, row.source) {
            Part::State(_) => {
                state += words * rows;
                others += words * around;
            }
            Part::Constant(_) | Part::Def => others += words * (around + 1),
        }
    }
    [state, state + others]
}

fn words(subject: &Subject, source: Source) -> usize {
    let kind = match source {
        Source::Field(field, _) => subject.stencil.fields[field].stored.kind(),
        Source::Def(def, _) => subject.stencil.defs[def].body.kind(),
    };
    register_bytes(kind, subject.precision).div_ceil(4)
}

fn check(subject: &Subject, flow: &Flow, carry: &[Carry], shape: Shape) -> Result<(), Refusal> {
    let stencil = subject.stencil;
    let refuse = |why: String| Err(Refusal::new(format!("stencil `{}` cannot be resident: {why}", stencil.name)));
    let [ni, nj, nk] = subject.extents;
    let Shape { rows, warps, blocks, .. } = shape;
    if subject.edges != [Edge::Periodic; 2] {
        return refuse("its grid is not periodic".into());
    }
    if carry.is_empty() {
        return refuse("no output becomes an input".into());
    }
    if !(1..=32).contains(&warps) || !(1..=16).contains(&blocks) || rows.saturating_mul(warps * blocks) != nj {
        return refuse(format!("{rows} rows in {warps} warps of {blocks} blocks are not the {nj} rows of a plane"));
    }
    if nk > i32::MAX as usize / blocks {
        return refuse(format!("{nk} planes are more than a launch can have"));
    }
    if flow.j.before().max(flow.j.after()) > rows {
        return refuse(format!("it reads {} to {} rows away, and warps have {rows}", flow.j.low, flow.j.high));
    }
    if flow.i.before().max(flow.i.after()) >= ni {
        return refuse(format!("it reads {} to {} columns away", flow.i.low, flow.i.high));
    }
    let mut seen = BTreeSet::new();
    for &(to, from) in carry {
        let (own, next) = (&stencil.fields[to], &stencil.fields[from]);
        let is_pair = own.role.is_written() && next.role.is_read();
        if !is_pair || own.stored != next.stored || own.place != next.place || own.place.levels != Levels::Full {
            return refuse(format!("`{}` cannot become `{}`", own.name, next.name));
        }
        if !seen.insert((true, to)) || !seen.insert((false, from)) {
            return refuse(format!("`{}` or `{}` is carried twice", own.name, next.name));
        }
        let bytes = own.stored.bytes(subject.precision);
        if !ni.is_multiple_of(LANES) || !(ni / LANES * bytes).is_multiple_of(SENT) {
            return refuse(format!("{ni} columns of `{}` are no whole {SENT} bytes a lane", own.name));
        }
    }
    for (id, field) in stencil.fields.iter() {
        let is_carried = carry.iter().any(|&(to, from)| to == id || from == id);
        if field.role.is_read() && field.role.is_written() && !is_carried {
            return refuse(format!("`{}` changes, and nothing says into what", field.name));
        }
    }
    let halo: usize = carry.iter().map(|&(_, from)| sent(flow, from) * ni * field_bytes(subject, from)).sum();
    if 2 * warps * halo > SHARED {
        return refuse(format!("{} bytes of rows are sent to a block, and {SHARED} have room", 2 * warps * halo));
    }
    Ok(())
}

fn field_bytes(subject: &Subject, field: FieldId) -> usize {
    subject.stencil.fields[field].stored.bytes(subject.precision)
}

/// How many rows of a field are sent to each warp.
fn sent(flow: &Flow, field: FieldId) -> usize {
    let window = window(flow, field);
    window.before() + window.after()
}

fn window(flow: &Flow, field: FieldId) -> Window {
    let row = flow.rows.iter().find(|row| matches!(row.source, Source::Field(own, _) if own == field));
    row.map(|row| row.j).unwrap_or_default()
}

/// Which rows of each value there are, and which of them need nobody else's.
fn spans(flow: &Flow, parts: &[Part], shape: Shape) -> Vec<Span> {
    let rows = shape.rows as i32;
    // How far up and down each value reaches into what neighbours send.
    let mut reach: Vec<Option<Window>> = Vec::with_capacity(parts.len());
    for (row, part) in flow.rows.iter().zip(parts) {
        reach.push(match part {
            Part::State(_) => Some(Window::default()),
            Part::Constant(_) => None,
            Part::Def => reached(flow, &row.uses, &reach),
        });
    }
    let span = |first: i32, end: i32, reach: Option<Window>| {
        let inner = reach.map_or([first, end], |reach| [first.max(-reach.low), end.min(rows - reach.high)]);
        Span { first, end, inner }
    };
    let own = flow.rows.iter().zip(&reach).map(|(row, &reach)| match row.source {
        Source::Field(..) => span(row.j.low.min(0), rows + row.j.high.max(0), reach),
        Source::Def(..) => span(row.j.low, rows + row.j.high, reach),
    });
    let stores = flow.stores.iter().map(|uses| span(0, rows, reached(flow, uses, &reach)));
    let mut spans: Vec<Span> = own.chain(stores).collect();
    if !shape.early {
        spans.iter_mut().for_each(|span| span.inner = [span.end; 2]);
    }
    spans
}

/// How far rows reach into those of the state, whose own reach is known.
fn reached(flow: &Flow, uses: &[Use], reach: &[Option<Window>]) -> Option<Window> {
    let windows = uses.iter().filter_map(|used| {
        let own = reach[flow.place(used.source)?]?;
        Some((own.low.saturating_add(used.j), own.high.saturating_add(used.j)))
    });
    windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).map(|(low, high)| Window { low, high })
}

struct Printer<'a> {
    writer: Writer<'a>,
    flow: &'a Flow,
    shape: Shape,
    carry: &'a [Carry],
    parts: Vec<Part>,
    /// Of each row, then of each store.
    spans: Vec<Span>,
    /// Of rows whose neighbouring columns are kept beside their own: how many before and after.
    widened: BTreeMap<usize, [usize; 2]>,
    /// The row of a loop.
    r: String,
}

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
enum Stage {
    /// Those that a warp's own rows suffice for.
    Inner,
    /// Those above; or all, if none is computed before neighbours' rows have come.
    Top,
    /// Those below.
    Bottom,
}

impl Printer<'_> {
    /// `for (int r = 0; r < 4; ++r)`
    fn over(&self, count: usize) -> String {
        format!("for (int {0} = 0; {0} < {count}; ++{0})", self.r)
    }

    /// Columns of a lane.
    fn lane(&self) -> usize {
        self.writer.subject.extents[0] / LANES
    }

    /// The rows whose neighbours along i several others look at.
    fn kept_wide(&self) -> BTreeMap<usize, [usize; 2]> {
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

    fn print(&mut self, name: &str, steps: &str) -> Result<(String, usize), Refusal> {
        let subject = self.writer.subject;
        let Shape { rows, warps, blocks, .. } = self.shape;
        let lane = self.lane();
        let [lane_name, warp, rank, k, first_row, column] =
            self.writer.names.internals(["lane", "warp", "rank", "k", "first_row", "column"]);
        let [above, below, above_rank, below_rank, arrived, sent_name] =
            self.writer.names.internals(["above", "below", "above_rank", "below_rank", "arrived", "sent"]);
        let [step] = self.writer.names.internals(["step"]);
        let mut setup = vec![
            format!("const int {lane_name} = threadIdx.x % 32, {warp} = threadIdx.x / 32;"),
            match blocks {
                1 => format!("const int {rank} = 0;"),
                _ => format!("const int {rank} = cluster_rank();"),
            },
            format!("const int {k} = blockIdx.x / {blocks};"),
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
        let (segment, state) = self.begin(&k, &first_row, &column);
        let body = self.step(&step, steps, sends.then_some(bytes));
        let mut finish = self.end(&first_row, &column, &k);
        if sends {
            finish.push("// No block ends while others send to it.".into());
            finish.push("cluster_arrive();".into());
            finish.push("cluster_wait();".into());
        }
        let mut lines = prelude::functions(&self.writer.helpers, subject.precision);
        lines.extend(functions(&[&state, &body, &finish]));
        let how = format!(
            "a plane stays in the registers of {blocks} blocks of {warps} warps of {rows} rows, step after step"
        );
        let mut texts = Texts {
            comment: self.writer.comment(how),
            prelude: lines,
            threads: warps * LANES,
            name: name.to_owned(),
            signature: self.writer.signature(false),
            setup,
            segment,
            state,
            step,
            steps: steps.to_owned(),
            body,
            finish,
        };
        let operations = device::lines(&render(TEMPLATE, &texts)?);
        texts.prelude.splice(0..0, operations);
        Ok((render(TEMPLATE, &texts)?, shared))
    }

    /// Where the rows that are sent of each field are in shared memory, in bytes, and how many a warp gets.
    fn offsets(&self) -> BTreeMap<FieldId, (usize, usize)> {
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
    fn rows(&mut self, base: &str) -> String {
        self.writer.names.internal(&format!("{base}_rows"))
    }

    /// Where a plane of the arrays is, and the state before the first step.
    fn begin(&mut self, k: &str, first_row: &str, column: &str) -> (Vec<String>, Vec<String>) {
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
        for &(_, field) in self.carry {
            let declared = &subject.stencil.fields[field];
            let base = self.writer.input(field).to_owned();
            let stored = stored_type(declared.stored, subject.precision);
            let rows = self.rows(&base);
            let window = window(self.flow, field);
            let count = window.before() + self.shape.rows + window.after();
            let many = width(declared.stored.bytes(subject.precision), lane, &[first, row, plane]);
            let from = subject.plane(declared.place.levels, 0, k);
            state.push(format!("{stored} {rows}[{count}][{lane}];"));
            state.push("#pragma unroll".into());
            state.push(format!("for (int {0} = 0; {0} < {1}; ++{0}) {{", self.r, self.shape.rows));
            let at = format!("{base} + {from} + ({first_row} + {}) * {row}LL + {column}", self.r);
            let into = plus(&self.r, window.before() as i32);
            state.push(format!("    load_row<{many}>({rows}[{into}], {at});"));
            state.push("}".into());
        }
        (lines, state)
    }

    /// Writes the state after the last step.
    fn end(&mut self, first_row: &str, column: &str, k: &str) -> Vec<String> {
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

    /// One step.
    fn step(&mut self, step: &str, steps: &str, bytes: Option<usize>) -> Vec<String> {
        let subject = self.writer.subject;
        let lane = self.lane();
        let mut lines = Vec::new();
        if let Some(bytes) = bytes {
            lines.extend(self.send(step, bytes));
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
        lines.extend(self.stage(Stage::Inner, step, steps));
        if bytes.is_some() {
            let [warp, arrived] = self.writer.names.internals(["warp", "arrived"]);
            lines.push(format!("mbarrier_wait_cluster(&{arrived}[{step} % 2][{warp}], {step} / 2 % 2);"));
        }
        lines.extend(self.stage(Stage::Top, step, steps));
        lines.extend(self.stage(Stage::Bottom, step, steps));
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

    fn is_carried(&self, output: FieldId) -> bool {
        self.carry.iter().any(|&(to, _)| to == output)
    }

    fn new_rows(&mut self, output: FieldId) -> String {
        let base = self.writer.output(output).to_owned();
        self.writer.names.internal(&format!("{base}_made"))
    }

    /// The field of a row; any if it is a definition's.
    fn field(&self, place: usize) -> FieldId {
        match self.flow.rows[place].source {
            Source::Field(field, _) => field,
            Source::Def(..) => crate::ir::Handle::new(0),
        }
    }

    /// What is made of a row in each step: computed, loaded, or fetched from neighbouring lanes.
    fn made(&mut self, place: usize) -> String {
        let base = self.writer.name(self.flow.rows[place].source).to_owned();
        match self.parts[place] {
            Part::State(_) => self.writer.names.internal(&format!("{base}_wide_rows")),
            Part::Constant(_) | Part::Def => self.rows(&base),
        }
    }

    /// Sends the outermost rows.
    fn send(&mut self, step: &str, bytes: usize) -> Vec<String> {
        let subject = self.writer.subject;
        let Shape { rows, warps, .. } = self.shape;
        let ni = subject.extents[0];
        let [lane, warp, above, below, above_rank, below_rank, arrived] =
            self.writer.names.internals(["lane", "warp", "above", "below", "above_rank", "below_rank", "arrived"]);
        let mut lines = vec![format!("if ({lane} == 0) mbarrier_expect(&{arrived}[{step} % 2][{warp}], {bytes});")];
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
                    format!("{sent} + (({step} % 2 * {warps} + {to}) * {count} + {}) * {ni}", plus(&r, slot as i32));
                let row = plus(&r, from as i32);
                lines.push("#pragma unroll".into());
                lines.push(over(number));
                lines.push(format!(
                    "    push_row({place}, {own}[{row}], {lane}, {rank}, &{arrived}[{step} % 2][{to}]);"
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

    /// Takes row `r` of what the neighbours have sent, less its lag.
    fn receive(&mut self, place: usize, step: &str) -> Vec<String> {
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
            "pull_row({own}[{to}], {sent} + (({step} % 2 * {warps} + {warp}) * {count} + {slot}) * {ni}, {lane});"
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
    fn stage(&mut self, stage: Stage, step: &str, steps: &str) -> Vec<String> {
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
                (Making::Received, _) => self.receive(number, step),
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

/// `r + 3`
fn plus(name: &str, by: i32) -> String {
    match by {
        0 => name.to_owned(),
        1.. => format!("{name} + {by}"),
        _ => format!("{name} - {}", by.unsigned_abs()),
    }
}
