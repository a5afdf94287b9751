//! What kernels take, do and need: of programs each for itself, of a stencil side by side.

use super::Args;
use crate::terminal;
use serde::Serialize;
use std::collections::BTreeMap;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{Origin, Stencil};
use stencilc_compiler::kernel::cost::{Cost, Counts, Moved};
use stencilc_compiler::kernel::{ArgumentKind, Kernel, Meaning, Memory};
use stencilc_compiler::source::{Source, Span};
use stencilc_runtime::Result;
use stencilc_runtime::mesh::program::kernels::Work;

/// A kernel.
#[derive(Serialize)]
pub struct KernelFacts {
    name: String,
    /// What its head says.
    does: Vec<String>,
    /// Formulas of the source that it computes, in the source's order.
    formulas: Vec<String>,
    threads: u32,
    /// Of the kernel of a stage, the bytes of all fields that it reads and writes, each once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<usize>,
    /// On the mesh that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_mesh: Option<Work>,
    /// Loads from tables, as the kernel is written.
    table_loads: u64,
    cost: CostFacts,
    /// Registers of a thread, if they were asked for.
    registers: Option<u32>,
    arguments: Vec<ArgumentFacts>,
}

#[derive(Serialize)]
struct ArgumentFacts {
    name: String,
    #[serde(rename = "type")]
    c_type: String,
    means: String,
    /// Of an array, the bytes that a thread reads and writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<[MovedFacts; 2]>,
}

/// What a kernel does and needs, as it is written: at most so much.
#[derive(Serialize)]
pub struct CostFacts {
    /// A thread, but for loops of unknown length.
    thread: CountFacts,
    /// One turn of each of those, added up.
    turn: CountFacts,
    known_loops: usize,
    unknown_loops: usize,
    /// Bytes of shared memory of a block.
    shared_bytes: usize,
    /// Registers of a thread at least: the words of 32 bits that wait at one place.
    registers_at_least: usize,
}

#[derive(Clone, Copy, Serialize)]
struct MovedFacts {
    read: u64,
    written: u64,
}

#[derive(Serialize)]
struct CountFacts {
    global: MovedFacts,
    shared: MovedFacts,
    own: MovedFacts,
    lookups: u64,
    real: u64,
    slow: u64,
    whole: u64,
    exchanges: u64,
    atomics: u64,
    waits: u64,
}

impl MovedFacts {
    fn new(moved: Moved) -> Self {
        Self { read: moved.read, written: moved.written }
    }
}

impl CountFacts {
    fn new(kernel: &Kernel, counts: &Counts) -> Self {
        let moved = |memory| MovedFacts::new(counts.moved_in(kernel, memory));
        let Counts { lookups, real, slow, whole, exchanges, atomics, waits, .. } = *counts;
        let [global, shared, own] = [Memory::Global, Memory::Shared, Memory::Own].map(moved);
        Self { global, shared, own, lookups, real, slow, whole, exchanges, atomics, waits }
    }
}

/// What is counted, in words, and where it stands.
type Counted = (&'static str, fn(&CountFacts) -> u64);

/// All that is counted of a thread.
const COUNTED: [Counted; 13] = [
    ("bytes read from global memory", |own| own.global.read),
    ("bytes written to global memory", |own| own.global.written),
    ("bytes read from shared memory", |own| own.shared.read),
    ("bytes written to shared memory", |own| own.shared.written),
    ("bytes read from its own arrays", |own| own.own.read),
    ("bytes written to its own arrays", |own| own.own.written),
    ("look-ups in tables", |own| own.lookups),
    ("operations on real numbers", |own| own.real),
    ("of them divisions, roots and functions", |own| own.slow),
    ("operations on whole numbers and truths", |own| own.whole),
    ("values handed on between lanes", |own| own.exchanges),
    ("atomic additions", |own| own.atomics),
    ("waits for others, or for copies", |own| own.waits),
];

impl CostFacts {
    /// Of a kernel.
    pub fn new(kernel: &Kernel) -> Self {
        Self::of(kernel, &Cost::of(kernel))
    }

    fn of(kernel: &Kernel, cost: &Cost) -> Self {
        Self {
            thread: CountFacts::new(kernel, &cost.thread),
            turn: CountFacts::new(kernel, &cost.turn),
            known_loops: cost.known_loops,
            unknown_loops: cost.unknown_loops,
            shared_bytes: cost.shared_bytes,
            registers_at_least: cost.waiting,
        }
    }

    /// The rows of a table: what, a thread, and a turn of loops of unknown length, if there are any.
    fn rows(&self) -> Vec<Vec<String>> {
        let turn = |number: u64| if self.unknown_loops > 0 { vec![number.to_string()] } else { Vec::new() };
        let mut head = vec!["  a thread does at most, as written".to_owned(), String::new()];
        head.extend(if self.unknown_loops > 0 { vec!["and a turn".to_owned()] } else { Vec::new() });
        let mut rows = vec![head];
        for (what, of) in COUNTED {
            let [thread, each] = [&self.thread, &self.turn].map(of);
            if thread + each > 0 {
                rows.push([vec![format!("    {what}"), thread.to_string()], turn(each)].concat());
            }
        }
        let mut row = |what: &str, number: usize| rows.push(vec![format!("  {what}"), number.to_string()]);
        if self.known_loops > 0 {
            row("loops whose length is known", self.known_loops);
        }
        if self.unknown_loops > 0 {
            row("loops whose length is not, counted by the turn", self.unknown_loops);
        }
        if self.shared_bytes > 0 {
            row("bytes of shared memory of a block", self.shared_bytes);
        }
        row("registers of a thread at least, as written", self.registers_at_least);
        rows
    }

    /// The same in one row of a table with [`CostFacts::HEAD`].
    pub fn row(&self) -> Vec<String> {
        let count = |of: fn(&CountFacts) -> u64| match [&self.thread, &self.turn].map(of) {
            [thread, 0] => thread.to_string(),
            [0, turn] => format!("{turn}/turn"),
            [thread, turn] => format!("{thread} + {turn}/turn"),
        };
        vec![
            count(|own| own.global.read),
            count(|own| own.global.written),
            count(|own| own.shared.read + own.shared.written),
            count(|own| own.lookups),
            count(|own| own.real),
            count(|own| own.whole),
            count(|own| own.atomics),
            self.shared_bytes.to_string(),
            self.registers_at_least.to_string(),
        ]
    }

    /// What stands in a row.
    pub const HEAD: [&str; 9] = [
        "B read",
        "B written",
        "B in shared",
        "look-ups",
        "real",
        "whole",
        "atomics",
        "shared B a block",
        "registers at least",
    ];

    /// A table of kernels, each after what tells it apart.
    pub fn table(kernels: &[(Vec<String>, &CostFacts)], names: &[&str]) -> String {
        let mut rows = vec![names.iter().chain(&Self::HEAD).map(|own| (*own).to_owned()).collect::<Vec<_>>()];
        rows.extend(kernels.iter().map(|(names, own)| [names.clone(), own.row()].concat()));
        // Columns that hold nothing are left out.
        let is_empty = |column: &usize| *column >= names.len() && rows[1..].iter().all(|row| row[*column] == "0");
        let kept: Vec<usize> = (0..rows[0].len()).filter(|column| !is_empty(column)).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| kept.iter().map(|&column| row[column].clone()).collect()).collect();
        let mut text = terminal::table(&rows, &(names.len()..kept.len()).collect::<Vec<_>>());
        if rows.iter().flatten().any(|cell| cell.ends_with("/turn")) {
            text.push_str("  /turn: in a loop whose length is not known, each time\n");
        }
        text
    }
}

impl KernelFacts {
    /// A kernel that computes some stencils of a source; `means` says what its arguments mean.
    ///
    /// # Errors
    /// It cannot be printed, or not be compiled where registers are asked for.
    pub fn new(
        args: &Args,
        (source, stencils): (&Source, &[&Stencil]),
        code: &Kernel,
        means: &dyn Fn(&Meaning) -> String,
    ) -> Result<Self> {
        let registers = if args.registers { super::registers(args, &code.name, &cuda::text(code)?)? } else { None };
        let cost = Cost::of(code);
        let bytes = |name: &str| {
            let own = code.arguments.iter().find(|(_, own)| *own.name == *name)?.1;
            let ArgumentKind::Array(array) = own.what else { return None };
            let moved = |counts: &Counts| MovedFacts::new(counts.moved.get(&array).copied().unwrap_or_default());
            Some([&cost.thread, &cost.turn].map(moved))
        };
        let argument = |own: cuda::Parameter| ArgumentFacts {
            bytes: bytes(&own.name),
            name: own.name.to_string(),
            means: means(&own.meaning),
            c_type: own.c_type,
        };
        Ok(Self {
            name: code.name.to_string(),
            does: code.doc.iter().map(ToString::to_string).collect(),
            formulas: formulas(source, stencils),
            threads: code.threads,
            memory_bytes: None,
            on_mesh: None,
            table_loads: cost.thread.lookups.saturating_add(cost.turn.lookups),
            cost: CostFacts::of(code, &cost),
            registers,
            arguments: cuda::parameters(code).into_iter().map(argument).collect(),
        })
    }

    /// The same, to be read.
    pub fn text(&self) -> String {
        let mut text = format!("\n{}, {} threads a block\n", self.name, self.threads);
        self.does.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        self.formulas.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |what: &str, number: String| rows.push(vec![format!("  {what}"), number]);
        let million = |bytes: f64| format!("{:.3}", bytes / 1e6);
        if let Some(bytes) = self.memory_bytes {
            row("MB of fields that it reads and writes, each once", million(bytes as f64));
        }
        if let Some(work) = &self.on_mesh {
            row("launches", work.launches.to_string());
            row("MB from and to memory, by the model of `tune`", million(work.memory_bytes));
            row("MB of tables and maps", million(work.table_bytes as f64));
        }
        if let Some(registers) = self.registers {
            row("registers of a thread, compiled", registers.to_string());
        }
        text.push_str(&terminal::table(&rows, &[1]));
        text.push_str(&terminal::table(&self.cost.rows(), &[1, 2]));
        text + &terminal::table(&self.arguments.iter().map(ArgumentFacts::row).collect::<Vec<_>>(), &[])
    }
}

impl ArgumentFacts {
    fn row(&self) -> Vec<String> {
        let told = |bytes: [u64; 2], what: &str| match bytes {
            [0, 0] => None,
            [thread, 0] => Some(format!("{thread} B {what}")),
            [0, turn] => Some(format!("{turn} B {what} a turn")),
            [thread, turn] => Some(format!("{thread} B {what} and {turn} a turn")),
        };
        let bytes = self.bytes.map_or(String::new(), |[thread, turn]| {
            let read = told([thread.read, turn.read], "read");
            read.into_iter().chain(told([thread.written, turn.written], "written")).collect::<Vec<_>>().join(", ")
        });
        vec![format!("  {}", self.name), self.c_type.clone(), self.means.clone(), bytes]
    }
}

/// What is written in the source of the stores of stencils and of the values that they are made of. What is computed of several calls or
/// steps stands there once.
fn formulas(source: &Source, stencils: &[&Stencil]) -> Vec<String> {
    let mut lines: BTreeMap<_, _> = BTreeMap::new();
    for stencil in stencils {
        let lets = stencil.defs.iter().filter(|(_, own)| own.origin == Origin::Let);
        let bodies = lets.map(|(_, own)| &own.body).chain(stencil.stores.iter().map(|own| &own.body));
        // What is only stored has the place where its field is declared.
        let is_field = |span: &Span| {
            stencil.fields.iter().any(|(_, own)| own.span.start <= span.start && span.end <= own.span.end)
        };
        let spans = bodies
            .map(|body| body.span_of(body.root()))
            .filter(|span| !is_field(span) && !source.slice(*span).is_empty());
        lines.extend(spans.map(|span| (span.start, source.lines(span))));
    }
    let mut texts: Vec<String> = Vec::new();
    for lines in lines.into_values() {
        let text = source.text.get(lines).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}
