//! Results as they come: a file with one row of JSON a line, each of which says all about one kernel, so that rows of
//! several files can be put together and a sweep that was interrupted goes on where it stopped.

use super::limit::Limit;
use super::statistics::Statistics;
use crate::error::{Error, Result};
use crate::nvrtc::Resources;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;

/// What every row begins with. A new meaning of what is in a row takes a new number.
pub const FORMAT: &str = "stencilc bench 1";

/// How a row begins.
const BEGINNING: &str = "{\"format\":\"stencilc bench";

/// How long another process may keep the file that is to be written to.
const PATIENCE: Duration = Duration::from_secs(1);

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
        // Not the file's name: only its text counts.
        let nameless = Subject { file: String::new(), grid: String::new(), ..subject.clone() };
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

/// A file of rows that only this process writes to.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    rows: BTreeMap<String, Row>,
    /// Bytes of a row at the end that was not written whole, and was dropped.
    pub dropped: usize,
}

impl Log {
    /// Opens a file of rows, or makes one. A row at its end that was cut off, by a kill or a full disk, is dropped.
    ///
    /// # Errors
    /// Another process writes to it; it holds something else; it cannot be written to.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let failed = |error: std::io::Error| Error::input(format!("cannot write `{shown}`: {error}"));
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Error::input(format!("cannot write rows to `{shown}`: it is not a file")).help("name a file"));
        }
        let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::input(format!("another `stencilc bench` writes to `{shown}`"))
                    .help("wait for it, or name another file; rows of several files can be put together with `cat`"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let (lines, rest) = bytes.split_at(whole);
        let other = |number: usize, why: &str| {
            Err(Error::input(format!("`{shown}` holds something else: line {number} is no row of results{why}"))
                .help("name another file, which may be new"))
        };
        let mut rows = BTreeMap::new();
        let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        for (line, number) in lines.zip(1..) {
            match serde_json::from_slice::<Row>(line) {
                Ok(row) if row.format == FORMAT => drop(rows.insert(row.key.clone(), row)),
                Ok(row) => return other(number, &format!(" as this program writes them, but `{}`", row.format)),
                Err(error) => return other(number, &format!(" ({error})")),
            }
        }
        let common = rest.len().min(BEGINNING.len());
        if rest[..common] != BEGINNING.as_bytes()[..common] {
            return other(rows.len() + 1, "");
        }
        if !rest.is_empty() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok(Self { file, path: path.to_owned(), rows, dropped: rest.len() })
    }

    /// The row that was there, or has been added, under a key.
    pub fn get(&self, key: &str) -> Option<&Row> {
        self.rows.get(key)
    }

    /// Adds a row at the end of the file.
    ///
    /// # Errors
    /// It cannot be written. What is left of it will be dropped when the file is opened again.
    pub fn append(&mut self, row: &Row) -> Result<()> {
        let failed = |error: String| Error::input(format!("cannot write `{}`: {error}", self.path.display()));
        let mut line = serde_json::to_vec(row).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.flush());
        written.map_err(|error| failed(error.to_string()))?;
        self.rows.insert(row.key.clone(), row.clone());
        Ok(())
    }
}

/// Locks a file for this process. One that was killed just now may keep it for a moment more.
fn lock(file: &File) -> std::result::Result<(), TryLockError> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 20),
            answer => return answer,
        }
    }
}

/// Rows as a table of comma-separated values: a column for each number of a row, with names such as
/// `outcome.median_us`. Lists are numbers with blanks between them.
///
/// # Errors
/// A row cannot be written as JSON, or the writer fails.
pub fn csv(rows: &[Row], to: &mut dyn Write) -> std::io::Result<()> {
    let mut columns: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for row in rows {
        let mut cells = BTreeMap::new();
        flatten(String::new(), &serde_json::to_value(row)?, &mut |name, cell| {
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
