//! A file that several processes write, each its own bytes of it: one begins it, all write, and that one gives it its name.

use super::{Destination, Unfinished, check_told, create_aside, destination, finish, write_error, write_through};
use crate::error::Result;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that was begun, as whoever has begun it sees it.
pub(crate) struct Begun {
    path: PathBuf,
    aside: Unfinished,
    target: PathBuf,
    replaced: Option<Metadata>,
}

impl Begun {
    /// Begins the file at `path`, of so many bytes, with what `head` writes; nothing of a device or a pipe, where only one can write.
    ///
    /// # Errors
    /// Those of [`write_atomic`](super::write_atomic).
    pub fn new(path: &Path, length: u64, head: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Option<Self>> {
        check_told(path)?;
        let Destination::File { target, replaced } = destination(path)? else { return Ok(None) };
        let aside = create_aside(&target)?;
        let failed = |error: io::Error| write_error(path, &error);
        write_through(aside.file(), head).map_err(failed)?;
        aside.file().set_len(length).map_err(failed)?;
        Ok(Some(Self { path: path.to_owned(), aside, target, replaced }))
    }

    /// Where others write to until it has its name, as seen from the folder that all of them are in.
    pub fn aside(&self) -> &Path {
        self.aside.path()
    }

    /// Writes bytes from several places on, as [`Part::write`].
    ///
    /// # Errors
    /// The disk is full, or broken.
    pub fn write(&self, each: impl FnOnce(&mut Places) -> io::Result<()>) -> Result<()> {
        written(self.aside.file(), each).map_err(|error| write_error(&self.path, &error))
    }

    /// Gives it its name, once all have written.
    ///
    /// # Errors
    /// The disk is full, or the name cannot be had.
    pub fn finish(self) -> Result<()> {
        let Self { path, aside, target, replaced } = self;
        finish(aside, &target, replaced.as_ref()).map_err(|error| write_error(&path, &error))
    }
}

/// A file that another process has begun.
pub(crate) struct Part {
    path: PathBuf,
    file: File,
}

/// Opens what another process has begun; nothing where that is not to be seen from here, as on another host.
pub(crate) fn part_of(path: &Path, aside: &Path) -> Option<Part> {
    // Whoever put a link there does not lead elsewhere what is written.
    let file = File::options().write(true).custom_flags(libc::O_NOFOLLOW).open(aside).ok()?;
    file.metadata().ok()?.is_file().then(|| Part { path: path.to_owned(), file })
}

impl Part {
    /// Writes bytes from several places on, and sees to it that they are on the disk.
    ///
    /// # Errors
    /// The disk is full, or broken.
    pub fn write(&self, each: impl FnOnce(&mut Places) -> io::Result<()>) -> Result<()> {
        let done = written(&self.file, each).and_then(|()| self.file.sync_all());
        done.map_err(|error| write_error(&self.path, &error))
    }
}

/// Who writes from several places of a file on.
pub(crate) type Places<'a> = dyn FnMut(u64, &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> + 'a;

fn written(mut file: &File, each: impl FnOnce(&mut Places) -> io::Result<()>) -> io::Result<()> {
    each(&mut |place, write| {
        file.seek(SeekFrom::Start(place))?;
        let mut buffered = BufWriter::with_capacity(super::BUFFER, file);
        write(&mut buffered)?;
        buffered.flush()
    })
}
