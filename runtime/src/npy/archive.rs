//! Archives of arrays, NumPy's `.npz` files: each array is an entry `NAME.npy`.

use std::io::{self, Read, Seek};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Whole, read, read_whole, write};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::files;

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
        let archive = ZipArchive::new(file)
            .map_err(|_| Error::input("it is no archive as .npz files are, or was not written to its end"))?;
        match archive.len() {
            0..=ENTRIES => Ok(Self(archive)),
            count => Err(Error::input(format!("it holds {count} arrays: at most {ENTRIES} are read"))),
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

    /// An array of whole numbers, as [`read_whole`] has it.
    ///
    /// # Errors
    /// As [`Self::array`].
    pub(crate) fn whole(&mut self, name: &str) -> Result<Whole> {
        self.unpacked(name, |bytes, length| read_whole(bytes, length))
    }

    /// What `read` makes of one array.
    fn unpacked<T>(&mut self, name: &str, read: impl FnOnce(&mut Checked, u64) -> Result<T>) -> Result<T> {
        let about = |message: String| format!("`{name}`: {message}");
        let mut entry = self
            .0
            .by_name(&format!("{name}{ENDING}"))
            .map_err(|error| Error::input(about(format!("it cannot be unpacked: {error}"))))?;
        let length = entry.size();
        if length > entry.compressed_size().saturating_mul(DENSEST) {
            let message = format!("{length} bytes are said to be packed into {}", entry.compressed_size());
            return Err(Error::input(about(message)).help("the file is damaged; write it again"));
        }
        let mut bytes: Checked = (&mut entry as &mut dyn Read).take(length.saturating_add(1));
        let result = read(&mut bytes, length);
        // Only at the end the archive compares its checksum.
        let end = io::copy(&mut bytes, &mut io::sink());
        let failed = |Error { fault, message, help }| Error { fault, message: about(message), help };
        match (result, end) {
            (Ok(_), Err(error)) => {
                Err(Error::input(about(error.to_string())).help("the file is damaged; write it again"))
            }
            (result, _) => result.map_err(failed),
        }
    }
}

/// Writes arrays with their names to the file at `path`, all of it or nothing, as NumPy reads it. The same arrays make the
/// same bytes.
///
/// # Errors
/// Those of [`files::write_atomic`].
pub(crate) fn save_archive(path: &Path, arrays: impl Iterator<Item = (String, Array)>) -> Result<()> {
    files::write_atomic(path, |out| {
        let mut archive = ZipWriter::new_stream(out);
        for (name, array) in arrays {
            let is_large = array.data.len() * array.data.element().bytes() >= 1 << 31;
            archive.start_file(format!("{name}{ENDING}"), SimpleFileOptions::default().large_file(is_large))?;
            write(&mut archive, &array)?;
        }
        archive.finish()?;
        Ok(())
    })
}
