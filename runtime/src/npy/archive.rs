//! Archives of arrays, NumPy's `.npz` files: each array is an entry `NAME.npy`.

use std::io::{self, Read, Seek, Write};
use std::path::Path;

use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Whole, read, read_count, read_rows, read_whole, write};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::files;
use crate::rows::Part;

/// The most entries of an archive: each costs memory before it is looked at.
const ENTRIES: usize = 1000;

/// No entry becomes more than so many times as long when it is unpacked: what DEFLATE can do at best.
const DENSEST: u64 = 1032;

/// How the names of entries end.
const ENDING: &str = ".npy";

/// An archive that is read.
pub(crate) struct Archive<F>(ZipArchive<F>);

/// The bytes of one array, of which there are no more than the archive says, and one.
type Checked<'a> = io::Take<&'a mut dyn Read>;

impl<F: Read + Seek> Archive<F> {
    /// Looks at what an archive holds.
    ///
    /// # Errors
    /// It is no archive, or holds more than a thousand arrays; neither error has a help.
    pub(crate) fn new(file: F) -> Result<Self> {
        let archive = Self::of_any(file)?;
        match archive.0.len() {
            0..=ENTRIES => Ok(archive),
            count => Err(Error::input(format!("it holds {count} arrays: at most {ENTRIES} are read"))),
        }
    }

    /// How many numbers an array has, as its header says: what it takes is judged before any of them is read.
    ///
    /// # Errors
    /// There is none, or it has no header; the message names the array.
    pub(crate) fn count(&mut self, name: &str) -> Result<usize> {
        let mut entry = self.entry(name)?;
        let length = entry.size();
        read_count(&mut entry, length).map_err(|error| about(name, error))
    }

    /// An entry that may be what it says that it is: no more is packed into it than can be.
    fn entry(&mut self, name: &str) -> Result<ZipFile<'_, F>> {
        let entry = self.0.by_name(&format!("{name}{ENDING}"));
        let entry = entry.map_err(|error| about(name, Error::input(format!("it cannot be unpacked: {error}"))))?;
        let (length, packed) = (entry.size(), entry.compressed_size());
        match length > packed.saturating_mul(DENSEST) {
            false => Ok(entry),
            true => {
                let error = Error::input(format!("{length} bytes are said to be packed into {packed}"));
                Err(about(name, error.help("the file is damaged; write it again")))
            }
        }
    }

    /// What an archive holds, of as many entries as there are.
    ///
    /// # Errors
    /// It is no archive.
    pub(crate) fn of_any(file: F) -> Result<Self> {
        let archive = ZipArchive::new(file);
        archive.map(Self).map_err(|_| Error::input("it is no archive as .npz files are, or was not written to its end"))
    }

    /// An entry that is text, of at most so many bytes; nothing if there is none.
    ///
    /// # Errors
    /// It is longer, or cannot be read.
    pub(crate) fn text(&mut self, name: &str, most: u64) -> Result<Option<String>> {
        let Ok(entry) = self.0.by_name(name) else { return Ok(None) };
        let mut text = String::new();
        let read = entry.take(most + 1).read_to_string(&mut text);
        let read = read.map_err(|error| about(name, Error::input(error.to_string())))?;
        match read as u64 > most {
            true => Err(about(name, Error::input(format!("it has more than {most} bytes")))),
            false => Ok(Some(text)),
        }
    }

    /// The names of its arrays, in the order of the file.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.0.file_names().filter_map(|name| Some(name.ok()?.strip_suffix(ENDING)?.to_owned()));
        names.collect()
    }

    /// Whether there is an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.index_for_name(&format!("{name}{ENDING}")).is_some()
    }

    /// An array, as [`read`] has it.
    ///
    /// # Errors
    /// There is none, or it cannot be read; the message names the array.
    pub(crate) fn array(&mut self, name: &str) -> Result<Array> {
        self.unpacked(name, |bytes, length| read(bytes, length))
    }

    /// The rows of a part of an array, as [`read_rows`] has them.
    ///
    /// # Errors
    /// As [`Self::array`].
    pub(crate) fn rows(&mut self, name: &str, part: Part) -> Result<(Array, [u8; 32])> {
        self.unpacked(name, |bytes, length| read_rows(bytes, length, part))
    }

    /// An array of whole numbers, as [`read_whole`] has it.
    ///
    /// # Errors
    /// As [`Self::array`].
    pub(crate) fn whole(&mut self, name: &str) -> Result<Whole> {
        self.unpacked(name, |bytes, length| read_whole(bytes, length))
    }

    /// What `read` makes of one array.
    fn unpacked<T>(&mut self, name: &str, read: impl FnOnce(&mut Checked, u64) -> Result<T>) -> Result<T> {
        let mut entry = self.entry(name)?;
        let length = entry.size();
        let mut bytes: Checked = (&mut entry as &mut dyn Read).take(length.saturating_add(1));
        let result = read(&mut bytes, length);
        // Only at the end the archive compares its checksum.
        let end = io::copy(&mut bytes, &mut io::sink());
        let damaged =
            |message: String| Err(about(name, Error::input(message).help("the file is damaged; write it again")));
        match (result, end) {
            (Ok(_), Err(error)) => damaged(error.to_string()),
            (Ok(_), Ok(_)) if bytes.limit() == 0 => {
                damaged(format!("more than the {length} bytes that it says are packed"))
            }
            (result, _) => result.map_err(|error| about(name, error)),
        }
    }
}

/// An error of one array.
fn about(name: &str, Error { fault, message, help }: Error) -> Error {
    Error { fault, message: format!("`{name}`: {message}"), help }
}

/// Writes arrays with their names to the file at `path`, all of it or nothing, as NumPy reads it. The same arrays make the
/// same bytes.
///
/// # Errors
/// Those of [`files::write_atomic`].
pub(crate) fn save_archive(path: &Path, arrays: impl Iterator<Item = (String, Array)>) -> Result<()> {
    files::write_atomic(path, |out| write_archive(out, arrays))
}

/// Writes the bytes that [`save_archive`] puts into a file.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_archive(out: &mut dyn Write, arrays: impl Iterator<Item = (String, Array)>) -> io::Result<()> {
    let mut archive = ZipWriter::new_stream(out);
    for (name, array) in arrays {
        let is_large = array.data.len() * array.data.element().bytes() >= 1 << 31;
        archive.start_file(format!("{name}{ENDING}"), SimpleFileOptions::default().large_file(is_large))?;
        write(&mut archive, &array)?;
    }
    archive.finish()?;
    Ok(())
}
