//! Results as they come: a file with one row of JSON a line, each of which says all about one kernel, so that rows of
//! several files can be put together and a sweep that was interrupted goes on where it stopped.

use super::limit::Limit;
use super::log::{self, Record};
use super::statistics::Statistics;
use crate::error::{Error, Result};
use crate::nvrtc::Resources;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;

/// What every row begins with. A new meaning of what is in a row takes a new number.
pub const FORMAT: &str = "stencilc bench 1";

/// One kernel, measured or failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// [`FORMAT`].
    pub format: String,
    /// A hash of all that the times depend on: measured again it would be the same row.
    pub key: String,
    /// When, in UTC.
    pub date: String,
    /// What is computed.
    pub subject: Subject,
    /// On what.
    pub machine: MachineFacts,
    /// By which kernel.
    pub kernel: KernelFacts,
    /// How it is measured.
    pub method: Method,
    /// What came of it.
    pub outcome: Outcome,
}

/// What is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The file, as it was named.
    pub file: String,
    /// A hash of its text.
    pub source: String,
    /// Its text, so that a kernel can be printed again. Older rows lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The stencil.
    pub stencil: String,
    /// What `real` is.
    pub precision: Precision,
    /// The grid, as it was named.
    pub grid: String,
    /// Its extents.
    pub extents: Grid,
    /// A hash of which cells are neighbours, if they stand in no rows.
    pub neighbours: Option<String>,
    /// What is computed of it.
    pub region: Region,
    /// How many cells that are.
    pub cells: usize,
    /// Values of the parameters.
    pub parameters: BTreeMap<String, String>,
    /// Of the random numbers in the fields.
    pub seed: u64,
}

/// What computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// `cuda`, `emulate` or `cpu`.
    pub device: String,
    /// What it is called.
    pub name: String,
    /// Its architecture, as `sm_90`.
    pub arch: Option<String>,
    /// The CUDA version that its driver is for.
    pub driver: Option<String>,
    /// What compiles for it.
    pub compiler: Option<String>,
    /// Bytes of its second-level cache.
    pub l2_bytes: Option<usize>,
    /// The version of this program.
    pub stencilc: String,
}

/// A kernel: how it was chosen, and what it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// The options that choose it; `interpreter` if there is none.
    pub options: String,
    /// What is chosen.
    pub choices: Option<Choices>,
    /// What its function is called.
    pub name: Option<String>,
    /// A hash of its text, which is all of its plan.
    pub plan: Option<String>,
    /// Bytes a cell that must be moved if every field passes once.
    pub compulsory_bytes: usize,
    /// Bytes a cell that are moved at least, with the storage's tables, each once.
    pub least_bytes: f64,
    /// Entries of tables a cell that threads load, be it from a cache.
    pub table_loads: Option<f64>,
    /// What it takes of the GPU, by its compiler.
    pub resources: Option<Resources>,
    /// How many blocks are at work at once.
    pub occupancy: Option<Occupancy>,
}

/// How many threads are at work at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Blocks of a multiprocessor.
    pub blocks: u32,
    /// Their threads, of all that a multiprocessor has room for.
    pub part: f64,
}

/// How is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// Launches that are timed.
    pub runs: usize,
    /// Launches before them that are not.
    pub warmups: usize,
    /// Whether all launches are on the same buffers.
    pub hot: bool,
    /// Whether the result is compared with the interpreter's.
    pub verify: bool,
}

/// What came of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// It has times.
    Measured(Measured),
    /// It has none that count.
    Failed {
        /// What is wrong.
        reason: String,
    },
}

/// Times of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// `equal` to the interpreter's result; with a device's own functions `different as expected`; `not compared`.
    pub result: String,
    /// Sets of buffers that the launches rotated over.
    pub sets: usize,
    /// Bytes of one set.
    pub set_bytes: usize,
    /// The median and its kin.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// 10^9 compulsory bytes a second, by the median.
    pub gb_per_s: f64,
    /// The limit, of the same run.
    pub limit: Option<Limit>,
    /// The limit's median, of the kernel's: 1 is as fast as the copy.
    pub of_limit: Option<f64>,
    /// Microseconds of every launch, in their order.
    pub times_us: Vec<f64>,
}

impl Row {
    /// A row of this kernel, to be completed by what comes of it.
    pub fn new(subject: &Subject, machine: &MachineFacts, kernel: KernelFacts, method: Method) -> Self {
        // Not the file's name: only its text counts, and that by its hash.
        let nameless = Subject { file: String::new(), grid: String::new(), text: None, ..subject.clone() };
        let identity = (FORMAT, &nameless, machine, &kernel.options, &kernel.plan, method);
        let identity = serde_json::to_vec(&identity).unwrap_or_default();
        Self {
            format: FORMAT.to_owned(),
            key: super::hash(&[&identity]),
            date: String::new(),
            subject: subject.clone(),
            machine: machine.clone(),
            kernel,
            method,
            outcome: Outcome::Failed { reason: "not measured".to_owned() },
        }
    }

    /// Its times, if there are any that count.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed { .. } => None,
        }
    }
}

impl Record for Row {
    const FORMAT: &'static str = FORMAT;

    fn format(&self) -> &str {
        &self.format
    }

    fn key(&self) -> &str {
        &self.key
    }
}

/// What `stencilc bench --json` prints, as far as it is read.
#[derive(Deserialize)]
struct Printed {
    cases: Vec<PrintedCase>,
}

#[derive(Deserialize)]
struct PrintedCase {
    fastest: Vec<Row>,
    failed: Vec<Row>,
}

/// The rows of a file that `stencilc bench -o` wrote, or of what it printed with `--json`, and how many bytes behind them are of one
/// that was not written whole.
///
/// # Errors
/// The bytes hold something else; the message begins with what stands behind the file's name.
pub fn read(bytes: &[u8]) -> Result<(Vec<Row>, usize)> {
    let reason = match log::parse(bytes) {
        Ok(parsed) => return Ok(parsed),
        Err(reason) => reason,
    };
    if let Ok(Printed { cases }) = serde_json::from_slice::<Printed>(bytes) {
        let rows: Vec<Row> = cases.into_iter().flat_map(|case| case.fastest.into_iter().chain(case.failed)).collect();
        if let Some(other) = rows.iter().find(|row| row.format != FORMAT) {
            let format = &other.format;
            return Err(Error::input(format!("holds rows in the format `{format}`, not `{FORMAT}`"))
                .help("measure again with this version"));
        }
        return Ok((rows, 0));
    }
    let error = Error::input(format!("cannot be shown: {reason}"));
    Err(if bytes.starts_with(b"{\"format\":\"stencilc bench") {
        error.help("take that line out if the others are to be shown")
    } else {
        error.help("name a file that `stencilc bench -o` wrote")
    })
}

/// A file of rows.
pub type Log = super::log::Log<Row>;

/// Rows as a table of comma-separated values: a column for each number of a row, with names such as
/// `outcome.median_us`. Lists are numbers with blanks between them. The stencil's text, which is the same in all, is left out.
///
/// # Errors
/// A row cannot be written as JSON, or the writer fails.
pub fn csv(rows: &[Row], to: &mut dyn Write) -> std::io::Result<()> {
    let mut columns: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for row in rows {
        let mut cells = BTreeMap::new();
        let subject = Subject { text: None, ..row.subject.clone() };
        let row = Row { subject, ..row.clone() };
        flatten(String::new(), &serde_json::to_value(&row)?, &mut |name, cell| {
            if !columns.contains(&name) {
                columns.push(name.clone());
            }
            cells.insert(name, cell);
        });
        lines.push(cells);
    }
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(&columns)?;
    for cells in &lines {
        writer.write_record(columns.iter().map(|column| cells.get(column).map_or("", String::as_str)))?;
    }
    writer.flush()
}

/// Tells every number, text and list within a value, with its name.
fn flatten(name: String, value: &Value, tell: &mut dyn FnMut(String, String)) {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Object(parts) => parts.iter().for_each(|(part, value)| {
            let name = if name.is_empty() { part.clone() } else { format!("{name}.{part}") };
            flatten(name, value, tell);
        }),
        Value::Array(values) => tell(name, values.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Null => tell(name, String::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => tell(name, plain(value)),
    }
}
