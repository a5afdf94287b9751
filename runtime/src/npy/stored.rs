//! Files of which some rows are read, and nothing else: of a field that is too large for one process, or that it has no use for.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::header::{Header, read_header};
use super::read::{about, check_length, decoded, opened};
use super::refusal::broken;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::rows::Part;

/// An array that is in a file. Its rows are those along its last axis but one.
#[derive(Clone)]
pub struct Stored {
    path: PathBuf,
    file: Arc<File>,
    header: Header,
    /// Where its numbers begin, in bytes.
    start: u64,
    shape: Vec<usize>,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.path.display(), self.shape)
    }
}

impl Stored {
    /// Opens the file at `path`, and looks at its header.
    ///
    /// # Errors
    /// Those of [`load`](super::load), but for numbers that are too large for their type: these are found when they are read.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, length) = opened(path)?;
        let of_file = |error| about(path, error);
        let (header, start) = read_header(&mut BufReader::new(&file), length).map_err(of_file)?;
        // Of a type that is none of ours not even no numbers are read.
        let none = Header { shape: vec![0], ..header.clone() };
        decoded(&mut io::empty(), &none, 0).map_err(of_file)?;
        check_length(&header, length - start, header.element.size_field() as usize).map_err(of_file)?;
        let shape = header.shape.iter().map(|&length| length as usize).collect();
        Ok(Self { path: path.to_owned(), file: Arc::new(file), header, start, shape })
    }

    /// Lengths of the axes, slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All numbers.
    ///
    /// # Errors
    /// It cannot be read, one is too large for its type, or there is not enough memory.
    pub fn whole(&self) -> Result<Array> {
        let rows = self.shape.len().checked_sub(2).map_or(1, |axis| self.shape[axis]);
        self.rows(0..rows)
    }

    /// The numbers of some rows, as an array that has no others. One without rows is read whole.
    ///
    /// # Errors
    /// As [`Stored::whole`]; or there are fewer rows.
    pub fn rows(&self, rows: Range<usize>) -> Result<Array> {
        let (header, runs) = runs_of(&self.header, rows)?;
        let mut read = InFile { file: &self.file, start: self.start, left: Left { runs, at: 0 } };
        let data = decoded(&mut read, &header, runs.end).map_err(|error| about(&self.path, error))?;
        Ok(Array { shape: header.shape.iter().map(|&length| length as usize).collect(), data })
    }
}

/// Reads an array from its bytes, one after the other, of which the rows of a part are kept: lengths of the axes of all of it, the numbers of these
/// rows, and a hash of all bytes. One without rows is kept whole.
///
/// # Errors
/// As [`read`](super::read); or what follows is damaged.
pub(crate) fn read_rows(file: &mut impl Read, length: u64, part: Part) -> Result<(Array, [u8; 32])> {
    let mut all = Hashed { file, hasher: blake3::Hasher::new() };
    let (header, start) = read_header(&mut all, length)?;
    check_length(&header, length - start, header.element.size_field() as usize)?;
    let shape: Vec<usize> = header.shape.iter().map(|&length| length as usize).collect();
    let rows = if let [.., nj, _] = shape[..] { part.rows(nj) } else { 0..1 };
    let (header, runs) = runs_of(&header, rows)?;
    let mut read = InTurn { file: &mut all, before: 0, left: Left { runs, at: 0 } };
    let data = decoded(&mut read, &header, runs.end)?;
    // What is damaged is known at the end.
    io::copy(&mut all, &mut io::sink()).map_err(broken)?;
    Ok((Array { shape, data }, *all.hasher.finalize().as_bytes()))
}

/// Bytes of an array's numbers in runs of one length, the same distance apart.
#[derive(Clone, Copy)]
struct Runs {
    /// Where the first begins.
    first: u64,
    run: u64,
    apart: u64,
    /// How many bytes there are in all.
    end: u64,
}

/// Where the numbers of some rows are, and what the header would be of an array that has no others.
fn runs_of(header: &Header, rows: Range<usize>) -> Result<(Header, Runs)> {
    let mut header = header.clone();
    let [outer, all, inner] = match &header.shape[..] {
        // Beside an axis without length others may be as long as they like.
        [outer @ .., all, inner] => [outer.iter().copied().fold(1, u64::saturating_mul), *all, *inner],
        [inner] => [1, 1, *inner],
        [] => [1, 1, 1],
    };
    let (first, count) = match header.shape.len() {
        0 | 1 => (0, 1),
        axes => {
            let (first, count) = (rows.start as u64, rows.len() as u64);
            if rows.end as u64 > all {
                return Err(Error::check(format!("rows {rows:?} are asked for of {all}")));
            }
            header.shape[axes - 2] = count;
            (first, count)
        }
    };
    // In the order of Fortran the axes before that of rows are faster, and the last is the slowest.
    let [each, runs] = if header.fortran { [outer, inner] } else { [inner, outer] };
    let row = each.saturating_mul(header.element.size_field());
    let [first, run, apart] = [first, count, all].map(|rows| rows.saturating_mul(row));
    Ok((header, Runs { first, run, apart, end: runs.saturating_mul(run) }))
}

/// What is left of runs.
struct Left {
    runs: Runs,
    /// How many bytes of all runs were read.
    at: u64,
}

impl Left {
    /// Where the next bytes are, and how many of them follow each other, at most so many; nothing at the end.
    fn next(&self, most: usize) -> Option<(u64, usize)> {
        let Runs { first, run, apart, end } = self.runs;
        (self.at < end).then(|| {
            let (number, within) = (self.at / run, self.at % run);
            (first + number * apart + within, most.min(usize::try_from(run - within).unwrap_or(usize::MAX)))
        })
    }
}

/// Runs of a file, each read where it is.
struct InFile<'a> {
    file: &'a File,
    /// Where the numbers begin.
    start: u64,
    left: Left,
}

impl Read for InFile<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some((place, count)) = self.left.next(into.len()) else { return Ok(0) };
        let count = self.file.read_at(&mut into[..count], self.start + place)?;
        self.left.at += count as u64;
        Ok(count)
    }
}

/// Runs of bytes that come one after the other: what stands between them is read, too.
struct InTurn<'a, R> {
    file: &'a mut R,
    /// How many bytes were read of all.
    before: u64,
    left: Left,
}

impl<R: Read> Read for InTurn<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some((place, count)) = self.left.next(into.len()) else { return Ok(0) };
        let skipped = io::copy(&mut self.file.by_ref().take(place - self.before), &mut io::sink())?;
        self.before += skipped;
        let count = if self.before == place { self.file.read(&mut into[..count])? } else { 0 };
        self.before += count as u64;
        self.left.at += count as u64;
        Ok(count)
    }
}

/// Bytes that are hashed as they are read.
struct Hashed<'a, R> {
    file: &'a mut R,
    hasher: blake3::Hasher,
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.hasher.update(&into[..count]);
        Ok(count)
    }
}
