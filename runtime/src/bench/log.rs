//! A file of rows, one of JSON a line, that only grows: what was written stays, whenever and however the program ends.

use crate::error::{Error, Result};
use crate::files;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another process may keep the file that is to be written to.
const PATIENCE: Duration = Duration::from_secs(1);

/// A row of such a file.
pub trait Record: Clone + Serialize + DeserializeOwned {
    /// What every row begins with: the program, what it did, and a number, which a new meaning of what is in a row changes.
    const FORMAT: &'static str;

    /// What this row begins with.
    fn format(&self) -> &str;

    /// A hash of all that the row depends on: made again it would be the same.
    fn key(&self) -> &str;
}

/// What writes such rows: their format without its number.
fn maker<R: Record>() -> &'static str {
    R::FORMAT.rsplit_once(' ').map_or(R::FORMAT, |(maker, _)| maker)
}

/// The rows of a file, and how many bytes there are behind them of one that was not written whole.
///
/// # Errors
/// Something in it is no row: which line, and why.
pub fn parse<R: Record>(bytes: &[u8]) -> std::result::Result<(Vec<R>, usize), String> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let (lines, rest) = bytes.split_at(whole);
    let other = |number: usize, why: &str| Err(format!("line {number} is no row of results{why}"));
    let (mut rows, mut last) = (Vec::new(), 0);
    for (line, number) in lines.split(|&byte| byte == b'\n').zip(1..) {
        last = number;
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice::<R>(line) {
            Ok(row) if row.format() == R::FORMAT => rows.push(row),
            Ok(row) => return other(number, &format!(" as this program writes them, but `{}`", row.format())),
            Err(error) => return other(number, &format!(" ({error})")),
        }
    }
    let beginning = format!("{{\"format\":\"{}", maker::<R>());
    let common = rest.len().min(beginning.len());
    if rest[..common] != beginning.as_bytes()[..common] {
        return other(last, "");
    }
    Ok((rows, rest.len()))
}

/// A file of rows that only this process writes to.
#[derive(Debug)]
pub struct Log<R> {
    file: File,
    path: PathBuf,
    rows: BTreeMap<String, R>,
    /// Bytes of a row at the end that was not written whole, and was dropped.
    pub dropped: usize,
}

impl<R: Record> Log<R> {
    /// Opens a file of rows, or makes one. A row at its end that was cut off, by a kill or a full disk, is dropped.
    ///
    /// # Errors
    /// It is a file that is read, or written otherwise, by the same call; another process writes to it; it holds something else; it cannot be written to.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let maker = maker::<R>();
        let failed = |error: std::io::Error| Error::input(format!("cannot write `{shown}`: {error}"));
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Error::input(format!("cannot write rows to `{shown}`: it is not a file")).help("name a file"));
        }
        files::will_append(files::Kind::Rows, "-o", path)?;
        let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
        match lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::input(format!("another `{maker}` writes to `{shown}`"))
                    .help("wait for it, or name another file; rows of several files can be put together with `cat`"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let other = |why: String| {
            Error::input(format!("`{shown}` holds something else: {why}")).help("name another file, which may be new")
        };
        let (rows, dropped) = parse::<R>(&bytes).map_err(other)?;
        if dropped > 0 {
            file.set_len((bytes.len() - dropped) as u64).map_err(failed)?;
        }
        let rows = rows.into_iter().map(|row| (row.key().to_owned(), row)).collect();
        Ok(Self { file, path: path.to_owned(), rows, dropped })
    }

    /// The row that was there, or has been added, under a key.
    pub fn get(&self, key: &str) -> Option<&R> {
        self.rows.get(key)
    }

    /// Adds a row at the end of the file.
    ///
    /// # Errors
    /// It cannot be written. What is left of it will be dropped when the file is opened again.
    pub fn append(&mut self, row: &R) -> Result<()> {
        let failed = |error: String| Error::input(format!("cannot write `{}`: {error}", self.path.display()));
        let mut line = serde_json::to_vec(row).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.flush());
        written.map_err(|error| failed(error.to_string()))?;
        self.rows.insert(row.key().to_owned(), row.clone());
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
