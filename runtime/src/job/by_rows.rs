//! A field of which each of several processes has some rows: what becomes of it without any of them having all of it.

#[cfg(test)]
mod tests;

use super::{Checked, Run};
use crate::array::{Data, Element};
use crate::error::{Error, Result};
use crate::ranks::{About, Awaited, Parcel, Ranks};
use crate::rows::{Part, Slab};
use crate::{files, npy};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use stencilc_compiler::ir::{Handle, VariableId};

/// What a field holds, of which this process has some rows.
pub struct ByRows {
    ranks: Arc<Ranks>,
    variable: VariableId,
    shape: Vec<usize>,
    /// By rank.
    slabs: Vec<Slab>,
    own: Data,
}

/// Some rows of a level.
pub struct Piece<'a> {
    /// Which level.
    pub level: usize,
    /// Which rows.
    pub rows: Range<usize>,
    /// Their numbers.
    pub data: &'a Data,
}

impl Run {
    /// What a declared field holds now, where each of several processes has some of its rows. Nothing where one has all of it, or it has no value
    /// yet: then [`Run::held`] knows it. Whoever asks this, all processes have to ask the same.
    ///
    /// # Errors
    /// There is no such field, or a kernel has failed.
    pub fn by_rows(&self, name: &str) -> Result<Option<ByRows>> {
        let variable = self.declared(name)?;
        if !self.has_value(variable) {
            return Ok(None);
        }
        self.driver.own(variable)?.map_or(Ok(None), |own| self.rows_of(variable, own))
    }

    /// Some rows of a variable as those that this process has.
    pub(super) fn rows_of(&self, variable: VariableId, own: Data) -> Result<Option<ByRows>> {
        let (Some(ranks), Checked::Grid(problem)) = (&self.ranks, &self.checked) else { return Ok(None) };
        let (grid, place) = (problem.staged.domain, self.script.program().variables[variable].place);
        let parts = ranks.ranks();
        let slabs = (0..parts).map(|number| Slab::new(grid, place, Part { number, parts }.rows(grid.nj)));
        let Some(slabs) = slabs.collect::<Option<Vec<Slab>>>() else { return Ok(None) };
        if own.len() != slabs[ranks.rank()].len() {
            return Err(Error::check(format!(
                "this process has {} numbers of a variable, not as many as it has rows of",
                own.len()
            )));
        }
        Ok(Some(ByRows { ranks: Arc::clone(ranks), variable, shape: self.script.shape(variable), slabs, own }))
    }
}

impl ByRows {
    /// Lengths of the axes of all of it, slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of its numbers.
    pub fn element(&self) -> Element {
        self.own.element()
    }

    /// Hands all numbers to the first process, in the user's order, some rows of a level at a time; others hand it theirs.
    ///
    /// # Errors
    /// Another process has ended; on the first one also those of `take`.
    pub fn each(&self, take: &mut dyn FnMut(Piece) -> Result<()>) -> Result<()> {
        let (ranks, own) = (&*self.ranks, self.ranks.rank());
        for level in 0..self.slabs[own].levels() {
            for (rank, slab) in self.slabs.iter().enumerate().filter(|(_, slab)| slab.level() > 0) {
                let of_level = || self.own.part(level * slab.level()..(level + 1) * slab.level());
                let sent =
                    (rank == own && rank > 0).then(|| Parcel { to: 0, tag: 0, bytes: of_level().bytes().to_vec() });
                let count = slab.level() * self.element().bytes();
                let awaited = (ranks.is_first() && rank > 0).then_some(Awaited { from: rank, tag: 0, count });
                let about = About::Variable(self.variable.index());
                let came = ranks.swap(about, sent.into_iter().collect(), awaited.as_slice())?;
                if ranks.is_first() {
                    let data = match came.first() {
                        Some(bytes) => Data::of_bytes(self.element(), bytes)?,
                        None => of_level(),
                    };
                    take(Piece { level, rows: slab.rows(), data: &data })?;
                }
            }
        }
        Ok(())
    }

    /// Writes all numbers, from the first process, as those of an array that its head precedes; others hand it theirs, and write nothing.
    pub(super) fn write(&self, out: &mut dyn Write) -> std::result::Result<(), Failed> {
        let mut broken = None;
        let done = self.each(&mut |piece| {
            npy::write_data(out, piece.data).map_err(|error| {
                broken = Some(error);
                Error::check("what a field holds cannot be written")
            })
        });
        match (broken, done) {
            (Some(error), _) => Err(Failed::File(error)),
            (None, done) => done.map_err(Failed::Ranks),
        }
    }

    /// Writes all of it to the file at `path`: each process its own rows, at their places, where all of them see the folder; otherwise the first
    /// one does, of what all hand it.
    ///
    /// # Errors
    /// It cannot be written, or another process has ended.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut head = Vec::new();
        npy::write_head(&mut head, self.element(), &self.shape).map_err(|error| Error::check(error.to_string()))?;
        let bytes = self.element().bytes();
        let numbers: usize = self.shape.iter().product();
        let length = (head.len() + numbers * bytes) as u64;
        let begun = match self.ranks.is_first() {
            true => files::Begun::new(path, length, |out| out.write_all(&head))?,
            false => None,
        };
        // What the first one has begun, if several can write there.
        let aside = begun.as_ref().map(|own| own.aside().as_os_str().as_bytes().to_vec());
        let told = self.ranks.gather(About::Agreement, &aside.unwrap_or_default())?;
        let aside = told.first().filter(|aside| !aside.is_empty()).map(|aside| Path::new(OsStr::from_bytes(aside)));
        let part = aside.filter(|_| begun.is_none()).and_then(|aside| files::part_of(path, aside));
        let can = begun.is_some() || part.is_some();
        if !self.ranks.gather(About::Agreement, &[u8::from(can)])?.iter().all(|can| can == &[1]) {
            drop(begun);
            return self.save_from_first(path);
        }
        let slab = &self.slabs[self.ranks.rank()];
        let rows = |places: &mut files::Places| {
            (0..slab.levels()).filter(|_| slab.level() > 0).try_for_each(|level| {
                let own = self.own.part(level * slab.level()..(level + 1) * slab.level());
                let place = (head.len() + slab.first_of(level) * bytes) as u64;
                places(place, &mut |out| npy::write_data(out, &own))
            })
        };
        match (&begun, part) {
            (Some(begun), _) => begun.write(rows)?,
            (None, Some(part)) => part.write(rows)?,
            (None, None) => {}
        }
        // Once all have written.
        self.ranks.gather(About::Agreement, &[])?;
        begun.map_or(Ok(()), files::Begun::finish)
    }

    /// Writes all of it from the first process, of what all hand it.
    fn save_from_first(&self, path: &Path) -> Result<()> {
        if !self.ranks.is_first() {
            return self.each(&mut |_| Ok(()));
        }
        let mut failed = None;
        let written = files::write_atomic(path, |out| {
            npy::write_head(out, self.element(), &self.shape)?;
            self.write(out).map_err(|error| error.kept(&mut failed))
        });
        failed.map_or(written, Err)
    }
}

/// Why numbers of all processes are not written.
pub(super) enum Failed {
    /// The file cannot be written.
    File(io::Error),
    /// Another process has ended.
    Ranks(Error),
}

impl Failed {
    /// As an error of files; what is no such is kept.
    pub fn kept(self, failed: &mut Option<Error>) -> io::Error {
        match self {
            Failed::File(error) => error,
            Failed::Ranks(error) => {
                let told = io::Error::other(error.message.clone());
                *failed = Some(error);
                told
            }
        }
    }
}
