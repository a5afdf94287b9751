//! The file of a checkpoint: an archive that NumPy reads, with an array for each value, called by a name that the program has for it, and
//! `about.json`, which says what it is a checkpoint of.

use super::Checkpoint;
use super::about::{About, FORMAT, Held};
use crate::array::{Array, Data};
use crate::driver::{Backend, Driver};
use crate::error::{Error, Result};
use crate::npy::Archive;
use crate::problem::of_part;
use crate::rows::Part;
use crate::{files, memory, npy};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;
use stencilc_compiler::ir::{Handle, VariableId};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// The entry that says what the file is.
const ABOUT: &str = "about.json";

/// More bytes than it ever has.
const ABOUT_BYTES: u64 = 1 << 24;

/// Reads the checkpoint in the file at `path`.
///
/// # Errors
/// There is no such file, it is no checkpoint, or it is damaged.
pub fn load(path: &Path) -> Result<Checkpoint> {
    load_rows(path, None)
}

/// The same of one on a grid, of which the rows of a part are kept, if one is named.
///
/// # Errors
/// As [`load`].
pub fn load_rows(path: &Path, part: Option<Part>) -> Result<Checkpoint> {
    let shown = path.display();
    let failed = |error: &dyn std::fmt::Display| {
        Error::input(format!("cannot read the checkpoint `{shown}`: {error}"))
            .help("a checkpoint is written by `run --checkpoint FILE`; without one, leave out --resume")
    };
    files::reads(files::Kind::Checkpoint, path)?;
    let file = files::open(path, files::Links::Follow).map_err(|error| failed(&error))?;
    read_part(BufReader::new(file), part).map_err(|error| failed(&error.message))
}

/// Reads a checkpoint from the bytes of a file.
///
/// # Errors
/// As [`load`], but messages do not name the file.
pub fn read(file: impl Read + Seek) -> Result<Checkpoint> {
    read_part(file, None)
}

fn read_part(file: impl Read + Seek, part: Option<Part>) -> Result<Checkpoint> {
    let failed = |error: &dyn std::fmt::Display| Error::input(error.to_string());
    let archive = Archive::of_any(file);
    let mut archive = archive.map_err(|_| failed(&"it is no checkpoint, or was not written to its end"))?;
    let text = archive.text(ABOUT, ABOUT_BYTES).map_err(|error| failed(&error.message))?;
    let text = text.ok_or_else(|| failed(&"it does not say what it is a checkpoint of"))?;
    let about: About = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if about.format != FORMAT {
        return Err(failed(&format!("it is a `{}`, and this version reads `{FORMAT}`", about.format)));
    }
    let names: BTreeSet<&str> = about.values.iter().chain(&about.numbers).map(|held| held.array.as_str()).collect();
    let mut bytes = 0;
    for name in &names {
        if !archive.has(name) {
            return Err(failed(&format!("it holds no array `{name}`")));
        }
        let count = archive.count(name).map_err(|error| failed(&error.message))?;
        // The least that a number takes; each array is judged again, by its type, when it is read.
        bytes += count as u128;
    }
    let part = part.filter(|_| about.mesh.is_none());
    let bytes = about.grid.map_or(bytes, |grid| of_part(bytes, part, grid));
    memory::check(bytes, "the arrays of the checkpoint take", memory::HELP)?;
    let (mut arrays, mut hashes) = (BTreeMap::new(), BTreeMap::new());
    for name in names {
        let array = match part {
            None => archive.array(name),
            Some(part) => archive.rows(name, part).map(|(array, hash)| {
                hashes.insert(name.to_owned(), hash);
                array
            }),
        };
        arrays.insert(name.to_owned(), array.map_err(|error| failed(&error.message))?);
    }
    Ok(Checkpoint { about, arrays, rows: BTreeMap::new(), hashes })
}

impl Checkpoint {
    /// What a program holds.
    ///
    /// # Errors
    /// The machine fails.
    pub fn of<B: Backend>(driver: &Driver<B>, about: &About) -> Result<Self> {
        let script = driver.script();
        let variables = &script.program().variables;
        let (mut arrays, mut rows) = (BTreeMap::new(), BTreeMap::new());
        let fresh = |arrays: &BTreeMap<String, Array>, own: &str| {
            let numbered = (2..).map(|n| format!("{own}_{n}"));
            let mut all = std::iter::once(own.to_owned()).chain(numbered);
            all.find(|name| !arrays.contains_key(name)).unwrap_or_default()
        };
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        let (mut values, mut numbers) = (Vec::new(), Vec::new());
        // What prints show is computed anew.
        for (variable, slot) in driver.bound().into_iter().filter(|(variable, _)| !variables[*variable].is_shown) {
            let array = match names.entry(slot) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let own = driver.own(variable)?;
                    let has_some = own.is_some();
                    let Some(data) = own.map_or_else(|| driver.get(variable), |own| Ok(Some(own)))? else { continue };
                    let name = fresh(&arrays, &variables[variable].name);
                    rows.extend(has_some.then(|| (name.clone(), variable)));
                    arrays.insert(name.clone(), Array { shape: script.shape(variable), data });
                    place.insert(name)
                }
            };
            values.push(Held { variable: variable.index(), array: array.clone() });
        }
        for (variable, value) in driver.numbers()? {
            let name = fresh(&arrays, &variables[variable].name);
            arrays
                .insert(name.clone(), Array { shape: Vec::new(), data: Data::single(script.element(variable), value) });
            numbers.push(Held { variable: variable.index(), array: name });
        }
        let (done, repeats) = match about.mesh {
            Some(_) => (Some(driver.done()), driver.repeats()),
            None => (None, None),
        };
        let about = About { position: driver.position_in_text(), done, repeats, values, numbers, ..about.clone() };
        Ok(Self { about, arrays, rows, hashes: BTreeMap::new() })
    }

    /// Writes it to the file at `path`, all of it or nothing.
    ///
    /// # Errors
    /// Those of [`files::write_atomic`].
    pub fn save(&self, path: &Path) -> Result<()> {
        files::write_atomic(path, |out| self.write(out))
    }

    /// Takes out the arrays of which this process has some rows alone, with the variables that they are of: whoever writes it has to know the others.
    pub(crate) fn take_rows(&mut self) -> BTreeMap<String, (VariableId, Data)> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let taken = rows.filter_map(|(name, variable)| {
            let array = self.arrays.get_mut(&name)?;
            let none = Data::fresh(array.data.element(), 0);
            Some((name, (variable, std::mem::replace(&mut array.data, none))))
        });
        taken.collect()
    }

    /// Writes the bytes that [`Checkpoint::save`] puts into a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_by(out, &mut |_, array, out| npy::write(out, array))
    }

    /// The same, where somebody writes each array, which may have been taken out.
    ///
    /// # Errors
    /// Those of `out`, and of whoever writes.
    pub(crate) fn write_by(
        &self,
        out: &mut dyn Write,
        write: &mut dyn FnMut(&str, &Array, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut archive = ZipWriter::new_stream(out);
        archive.start_file(ABOUT, SimpleFileOptions::default())?;
        serde_json::to_writer_pretty(&mut archive, &self.about)?;
        for (name, array) in &self.arrays {
            let is_large = array.shape.iter().product::<usize>() * array.data.element().bytes() >= 1 << 31;
            let options =
                SimpleFileOptions::default().large_file(is_large).compression_method(zip::CompressionMethod::Stored);
            archive.start_file(format!("{name}.npy"), options)?;
            write(name, array, &mut archive)?;
        }
        archive.finish()?;
        Ok(())
    }
}
