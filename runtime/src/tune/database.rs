//! What was tuned before: which kernel is the fastest for a stencil, a precision and a grid, on a GPU.
//!
//! A file for each GPU model and source, in readable JSON, so that it can be looked at, copied to other machines and kept
//! beside the source. Files are written aside and renamed, under a lock: readers always find a whole one, and of two that
//! tune at once none loses what the other has found.

use crate::bench::date;
use crate::bench::rows::{MachineFacts, Row, Subject};
use crate::error::{Error, Result};
use crate::mesh::program::MeshProblem;
use crate::{files, nvrtc};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;

/// The variable that names the folder; `off` keeps it from being read and written.
pub const VARIABLE: &str = "STENCILC_TUNED";

/// What every file says of itself. A new meaning of what is in it takes a new number.
const FORMAT: &str = "stencilc tuned 1";

/// What mends a file that cannot be read.
const AGAIN: &str = "delete it, and tune again";

/// An entry serves grids whose extents are at most so many times its own, or as many times smaller.
const NEAR: f64 = 2.0;

/// What the emulator is called.
pub const EMULATOR: &str = "emulator";

/// A folder of what was tuned.
#[derive(Clone, Debug)]
pub struct Database {
    folder: PathBuf,
}

/// One file: all of one source on GPUs of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    format: String,
    gpu: String,
    arch: Option<String>,
    source: String,
    entries: Vec<Entry>,
}

impl Content {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// They are damaged, or of another format; the message begins with what stands behind the file's name.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        match serde_json::from_slice::<Self>(bytes) {
            Ok(content) if content.format == FORMAT => Ok(content),
            Ok(content) => {
                Err(Error::input(format!("is not as this program keeps it, but `{}`", content.format)).help(AGAIN))
            }
            Err(error) => Err(Error::input(format!("is damaged: {error}")).help(AGAIN)),
        }
    }

    /// The text that is kept.
    ///
    /// # Errors
    /// A time is no number.
    pub fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// What is the fastest for one stencil, precision and grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The stencil.
    pub stencil: String,
    /// What `real` is.
    pub precision: Precision,
    /// The grid as it was named.
    pub grid: String,
    /// Its extents.
    pub extents: Grid,
    /// A hash of which cells are neighbours, if they stand in no rows.
    pub neighbours: Option<String>,
    /// The options that choose the kernel.
    pub options: String,
    /// What is chosen.
    pub choices: Choices,
    /// Of a program: the plan, by the options that choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Microseconds of a launch.
    pub median_us: f64,
    /// The time of a copy of as many fields, of the kernel's.
    pub of_limit: Option<f64>,
    /// How many kernels it was chosen from.
    pub among: usize,
    /// How many of them were tried.
    pub tried: usize,
    /// When, in UTC.
    pub date: String,
    /// The driver's version, as that of CUDA.
    pub driver: Option<String>,
    /// What compiled it.
    pub compiler: Option<String>,
    /// The version of this program.
    pub stencilc: String,
}

/// For what a kernel is looked up.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// A hash of the source.
    pub source: &'a str,
    /// The stencil.
    pub stencil: &'a str,
    /// What `real` is.
    pub precision: Precision,
    /// The grid's extents.
    pub extents: Grid,
    /// A hash of which cells are neighbours, if they stand in no rows.
    pub neighbours: Option<&'a str>,
}

/// What a machine is called here: kernels of the emulator are not for the processor that it runs on.
pub fn name_of(machine: &MachineFacts) -> &str {
    if machine.device == "emulate" { EMULATOR } else { &machine.name }
}

/// An entry, and the GPU that it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The GPU's name.
    pub gpu: String,
    /// The entry.
    pub entry: Entry,
}

/// For what something was tuned.
#[derive(Clone, Debug)]
pub struct For {
    /// The stencil or program.
    pub stencil: String,
    /// What `real` is.
    pub precision: Precision,
    /// The grid or mesh as it was named.
    pub grid: String,
    /// Its extents.
    pub extents: Grid,
    /// A hash of which cells are neighbours, if they stand in no rows; over a mesh, of the mesh.
    pub neighbours: Option<String>,
}

impl For {
    /// What a problem over a mesh is kept for, whose file was named so.
    pub fn mesh(problem: &MeshProblem, name: String) -> Self {
        let MeshProblem { program, precision, bound, levels, .. } = problem;
        let elements = program.stencils.first().map_or(0, |stencil| bound.size(stencil.set()));
        Self {
            stencil: program.program.name.clone(),
            precision: *precision,
            grid: name,
            extents: Grid::cells(elements, *levels),
            neighbours: Some(bound.hash()),
        }
    }
}

/// What a search came to.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Microseconds of the fastest.
    pub median_us: f64,
    /// The time of a copy, of the fastest's.
    pub of_limit: Option<f64>,
    /// How many there were,
    pub among: usize,
    /// and how many of them were tried.
    pub tried: usize,
}

impl Entry {
    /// What a machine computes the fastest as these choices say, or a program as these options of its plan.
    pub fn new(of: For, machine: &MachineFacts, choices: Choices, plan: Option<String>, found: Tried) -> Self {
        let For { stencil, precision, grid, extents, neighbours } = of;
        let Tried { median_us, of_limit, among, tried } = found;
        Self {
            stencil,
            precision,
            grid,
            extents,
            neighbours,
            options: plan.clone().unwrap_or_else(|| choices.words()),
            choices,
            plan,
            median_us,
            of_limit,
            among,
            tried,
            date: date(),
            driver: machine.driver.clone(),
            compiler: machine.compiler.clone(),
            stencilc: machine.stencilc.clone(),
        }
    }

    /// The entry of a row that was measured on a machine; nothing of one without times, or of the interpreter.
    pub fn of_row(subject: &Subject, machine: &MachineFacts, row: &Row, among: usize, tried: usize) -> Option<Self> {
        let (measured, choices) = row.measured().zip(row.kernel.choices.clone())?;
        let Subject { stencil, precision, grid, extents, neighbours, .. } = subject.clone();
        let found = Tried { median_us: measured.statistics.median_us, of_limit: measured.of_limit, among, tried };
        Some(Self::new(For { stencil, precision, grid, extents, neighbours }, machine, choices, None, found))
    }

    fn is_of(&self, stencil: &str, precision: Precision, extents: Grid, neighbours: Option<&str>) -> bool {
        self.stencil == stencil
            && self.precision == precision
            && self.extents == extents
            && self.neighbours.as_deref() == neighbours
    }

    /// By how much the extents differ: 0 if they are the same, nothing if by too much, or if the grids are of two kinds.
    fn distance(&self, wanted: &Wanted) -> Option<f64> {
        if self.is_of(wanted.stencil, wanted.precision, wanted.extents, wanted.neighbours) {
            return Some(0.0);
        }
        let in_rows = self.neighbours.is_none() && wanted.neighbours.is_none();
        if !(in_rows && self.stencil == wanted.stencil && self.precision == wanted.precision) {
            return None;
        }
        let extents = |grid: Grid| [grid.ni, grid.nj, grid.nk].map(|extent| extent as f64);
        let pairs = extents(self.extents).into_iter().zip(extents(wanted.extents));
        let factors: Vec<f64> = pairs.map(|(own, wanted)| (own / wanted).log2().abs()).collect();
        factors.iter().all(|&factor| factor <= NEAR.log2()).then(|| factors.iter().sum())
    }
}

impl Database {
    /// The one that [`VARIABLE`] names, or else the one in this user's folder for what this program keeps. Nothing if it is
    /// turned off, or the environment names none.
    pub fn usual() -> Option<Self> {
        match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) if value == "off" => None,
            Some(folder) => Some(Self::at(folder.into())),
            None => Some(Self::at(nvrtc::home()?.join("tuned"))),
        }
    }

    /// The one in a folder, which may not be there yet.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether an entry for a source can be kept: better asked before the search than after it.
    ///
    /// # Errors
    /// The folder cannot be written to, or what is there is no such file.
    pub fn check(&self, gpu: &str, stencil: &str, source: &str) -> Result<()> {
        let (folder, _lock) = self.lock(gpu)?;
        read(&folder.join(file_name(stencil, source))).map(|_| ())
    }

    /// The folder of a GPU model, and what keeps others from writing there.
    fn lock(&self, gpu: &str) -> Result<(PathBuf, File)> {
        let folder = self.folder.join(plain(gpu));
        let failed = |error: std::io::Error| {
            Error::input(format!("cannot keep what was tuned in `{}`: {error}", folder.display()))
                .help(format!("the variable {VARIABLE} names another folder, and `off` none"))
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        // The lock is a file of its own, for the other one is renamed over.
        let lock =
            File::options().create(true).truncate(false).write(true).open(folder.join("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok((folder, lock))
    }

    /// Keeps an entry, in the place of an earlier one for the same. Gives the file's path.
    ///
    /// # Errors
    /// It cannot be written, or what is there is no such file.
    pub fn keep(&self, gpu: &str, arch: Option<&str>, source: &str, entry: Entry) -> Result<PathBuf> {
        let (folder, _lock) = self.lock(gpu)?;
        let path = folder.join(file_name(&entry.stencil, source));
        let mut content = match read(&path)? {
            Some(content) => content,
            None => Content {
                format: FORMAT.to_owned(),
                gpu: gpu.to_owned(),
                arch: arch.map(str::to_owned),
                source: source.to_owned(),
                entries: Vec::new(),
            },
        };
        content
            .entries
            .retain(|own| !own.is_of(&entry.stencil, entry.precision, entry.extents, entry.neighbours.as_deref()));
        content.entries.push(entry);
        let text =
            content.text().map_err(|error| Error::input(format!("cannot write `{}`: {error}", path.display())))?;
        files::write_own(&path, |to| to.write_all(text.as_bytes()))?;
        Ok(path)
    }

    /// The entry that suits best on a GPU: the one for this grid, or else for the nearest of similar extents. Nothing where
    /// there is none, or no folder.
    ///
    /// # Errors
    /// A file is damaged.
    pub fn find(&self, gpu: &str, wanted: &Wanted) -> Result<Option<Hit>> {
        let path = self.folder.join(plain(gpu)).join(file_name(wanted.stencil, wanted.source));
        Ok(read(&path)?.and_then(|content| best(content, wanted)))
    }

    /// As [`Database::find`], on any GPU of an architecture: one of each model that there is something for.
    ///
    /// # Errors
    /// A file is damaged, and the others hold nothing.
    pub fn find_for(&self, arch: &str, wanted: &Wanted) -> Result<Vec<Hit>> {
        let Ok(folders) = fs::read_dir(&self.folder) else { return Ok(Vec::new()) };
        let mut folders: Vec<PathBuf> = folders.flatten().map(|folder| folder.path()).collect();
        folders.sort();
        let (mut hits, mut damaged) = (Vec::new(), None);
        for folder in folders {
            match read(&folder.join(file_name(wanted.stencil, wanted.source))) {
                Ok(content) => {
                    let content = content.filter(|content| content.arch.as_deref() == Some(arch));
                    let is_new = |hit: &Hit| hits.iter().all(|known: &Hit| known.gpu != hit.gpu);
                    let hit = content.and_then(|content| best(content, wanted)).filter(is_new);
                    hits.extend(hit);
                }
                Err(error) => damaged = Some(error),
            }
        }
        match damaged {
            Some(error) if hits.is_empty() => Err(error),
            Some(_) | None => Ok(hits),
        }
    }
}

fn best(content: Content, wanted: &Wanted) -> Option<Hit> {
    let Content { gpu, entries, .. } = content;
    let near = entries.into_iter().filter_map(|entry| Some((entry.distance(wanted)?, entry)));
    let (_, entry) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Hit { gpu, entry })
}

/// More bytes than a file of tuned kernels ever has.
const LARGEST: u64 = 64 << 20;

/// What a file holds; nothing if it is not there.
fn read(path: &Path) -> Result<Option<Content>> {
    // Of a pipe there would be no end.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(Error::input(format!("`{}` is no file", path.display())).help(AGAIN));
    }
    let bytes = match files::read_at_most(path, LARGEST, files::Links::Follow) {
        Ok(bytes) => bytes,
        // Other files, such as a README, may stand beside the folders.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(Error::input(format!("cannot read `{}`: {error}", path.display()))),
    };
    let content = Content::read(&bytes);
    content.map(Some).map_err(|error| Error { message: format!("`{}` {}", path.display(), error.message), ..error })
}

/// `NVIDIA H200` as the name of a folder.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}

fn file_name(stencil: &str, source: &str) -> String {
    format!("{}-{}.json", plain(stencil), &source[..source.len().min(16)])
}
