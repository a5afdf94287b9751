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
use crate::array::Array;
use crate::error::{Error, Result};

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
        let of_file = |error| about(&self.path, error);
        let bytes = self.header.element.size_field();
        let mut header = self.header.clone();
        let [outer, all, inner] = match &self.header.shape[..] {
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
        let row = each.saturating_mul(bytes);
        let [first, run, apart] = [first, count, all].map(|rows| rows.saturating_mul(row));
        let end = runs.saturating_mul(run);
        let mut read = Runs { file: &self.file, first: self.start.saturating_add(first), run, apart, at: 0, end };
        let data = decoded(&mut read, &header, end).map_err(of_file)?;
        Ok(Array { shape: header.shape.iter().map(|&length| length as usize).collect(), data })
    }
}

/// Bytes of a file in runs of one length, the same distance apart.
struct Runs<'a> {
    file: &'a File,
    /// Where the first begins.
    first: u64,
    run: u64,
    apart: u64,
    /// How many bytes of all runs were read.
    at: u64,
    end: u64,
}

impl Read for Runs<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.end {
            return Ok(0);
        }
        let (number, within) = (self.at / self.run, self.at % self.run);
        let most = into.len().min(usize::try_from(self.run - within).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut into[..most], self.first + number * self.apart + within)?;
        self.at += count as u64;
        Ok(count)
    }
}
