//! Files: what is written is whole or not there, what is read and written is known before, and nothing is left behind.
//!
//! - here: a file is written aside and renamed;
//! - `call`: all files of a call, compared before anything is computed;
//! - `pattern`: names with the number of a step;
//! - `together`: a file that several processes write, each some of it;
//! - `unfinished`: files and folders that are there for a while, and who removes them;
//! - `trust`: whether what lies in a folder may be executed.

mod call;
mod pattern;
mod together;
pub mod trust;
mod unfinished;

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use stencilc_compiler::text::ShellWord;

pub use call::{Kind, begin, reads, will_append, will_write, will_write_each, will_write_inside, will_write_into};
pub use pattern::{Pattern, no_place};
pub(crate) use together::{Begun, Places, part_of};
pub(crate) use unfinished::sweep_files;
pub use unfinished::{Scratch, Unfinished, exit, leave_nothing, remove_at_signals};

/// Bytes gathered before they go to the file system.
const BUFFER: usize = 1 << 20;

/// Writes the file at `path` through `write`, all of it or nothing.
///
/// The bytes go to a fresh file in the same directory, which takes the name only once they are all
/// on the disk; until then, and for good if anything fails, a file that had the name stays as it
/// is. A new file has the permissions that the umask gives, a replaced one keeps its own, and a
/// symbolic link is followed, also to a file that is not there yet. Devices and pipes (`/dev/null`)
/// are written to directly. What processes that were killed have left unfinished in the directory is
/// removed.
///
/// # Errors
///
/// Nobody told that the file will be written ([`will_write`]), where a call has begun; the directory
/// does not exist, cannot be written to or is none; `path` is a directory or a write-protected file;
/// the disk is full; `write` fails.
pub fn write_atomic(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    check_told(path)?;
    write_own(path, write)
}

/// Whether somebody told that a file will be written; makes its folder where that was told, too.
fn check_told(path: &Path) -> Result<()> {
    if call::check(path)? {
        let folder = directory_of(path);
        fs::create_dir_all(folder).map_err(|error| no_folder(folder, &error))?;
    }
    Ok(())
}

/// Removes a file that was told of as one that is written.
///
/// # Errors
/// Nobody told; it is a link by now, or cannot be removed.
pub fn remove(path: &Path) -> Result<()> {
    call::check(path)?;
    fs::remove_file(path).map_err(|error| Error::input(format!("cannot remove `{}`: {error}", path.display())))
}

/// As [`write_atomic`], of what this program keeps for itself, which is no file of the call.
///
/// # Errors
/// Those of [`write_atomic`].
pub(crate) fn write_own(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let failed = |error: io::Error| write_error(path, &error);
    match destination(path)? {
        Destination::Stream => {
            let stream = File::options().write(true).open(path).map_err(failed)?;
            write_through(&stream, write).map_err(failed)
        }
        Destination::File { target, replaced } => {
            let aside = create_aside(&target)?;
            write_through(aside.file(), write).map_err(failed)?;
            finish(aside, &target, replaced.as_ref()).map_err(failed)
        }
    }
}

/// Gives a file that was written its name, and the permissions of the one that it replaces.
fn finish(aside: Unfinished, target: &Path, replaced: Option<&Metadata>) -> io::Result<()> {
    if let Some(replaced) = replaced {
        aside.file().set_permissions(replaced.permissions())?;
    }
    // Some file systems report a full disk only here, so this has to come before the rename.
    aside.file().sync_all()?;
    aside.finish(target)
}

/// Checks that a file could be written now.
fn probe(path: &Path) -> Result<()> {
    match destination(path)? {
        // Opening a pipe would wait for its reader.
        Destination::Stream => Ok(()),
        Destination::File { target, .. } => create_aside(&target).map(|_| ()),
    }
}

/// As [`probe`], of a file in a folder that is made when it is written.
fn probe_inside(path: &Path) -> Result<()> {
    let folder = directory_of(path);
    match folder.symlink_metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Ok(_) | Err(_) => return probe(path),
    }
    let above = folder.ancestors().skip(1).map(|above| if above == OsStr::new("") { Path::new(".") } else { above });
    let above = above.into_iter().find(|above| above.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    let fails = |error: io::Error| no_folder(folder, &error);
    if !fs::metadata(above).map_err(fails)?.is_dir() {
        return Err(fails(io::Error::from(ErrorKind::NotADirectory)));
    }
    Unfinished::new(above, 0o666).map(|_| ()).map_err(fails)
}

/// The error of a folder that cannot be made.
fn no_folder(folder: &Path, error: &io::Error) -> Error {
    Error::input(format!("cannot make the folder `{}`: {error}", folder.display())).help("name another folder")
}

/// Who has named a file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The caller, who may have meant a link.
    Follow,
    /// This program, in a folder that somebody else may have made: a link there leads to what nobody has named.
    Refuse,
}

/// Opens a file to be read, which is one: what waits for somebody, or has no end, is not opened.
///
/// # Errors
///
/// It is no file, but a folder, a pipe, a device or, where that is refused, a link; it cannot be read.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let refused = |what: &str| io::Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a file"));
    let link = if links == Links::Refuse { libc::O_NOFOLLOW } else { 0 };
    // Opening a pipe would wait for its writer.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | link).open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) && path.is_symlink() => return Err(refused("a link")),
        opened => opened?,
    };
    let found = file.metadata()?;
    match (found.is_file(), found.is_dir()) {
        (true, _) => Ok(file),
        (false, true) => Err(refused("a directory")),
        (false, false) => Err(refused("a device or a pipe")),
    }
}

/// Opens a file that the caller has named, or a pipe that a shell has made for it: `/dev/stdin`, and what `<(...)` becomes.
///
/// # Errors
///
/// It is a directory or a device; a pipe that has a name, which may wait for its writer for ever, or the one that this program
/// writes to; it cannot be read.
pub fn open_given(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    let is_of_shell = path.starts_with("/dev") || path.starts_with("/proc");
    if found.file_type().is_fifo() && is_of_shell && !is_own_stream(&found) {
        return File::open(path);
    }
    open(path, Links::Follow)
}

/// The bytes of a file that has at most so many.
///
/// # Errors
///
/// It has more, or those of [`open`].
pub fn read_at_most(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, links)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        false => Ok(bytes),
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes"))),
    }
}

/// Whether a file is the one that this program's own results or messages go to: `... > res.npy`.
/// Replacing it would lose them, and writing to it would mix both.
fn is_own_stream(found: &Metadata) -> bool {
    let same = |stream: io::Result<std::os::fd::OwnedFd>| {
        let own = stream.and_then(|stream| File::from(stream).metadata());
        own.is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
    };
    same(io::stdout().as_fd().try_clone_to_owned()) || same(io::stderr().as_fd().try_clone_to_owned())
}

/// What a path that is to be written stands for.
enum Destination {
    /// A device or a pipe, whose name must stay its own.
    Stream,
    /// An ordinary file: the name to give to it, links resolved, and what has that name now.
    File { target: PathBuf, replaced: Option<Metadata> },
}

/// Says what `path` stands for and refuses what cannot become a file.
fn destination(path: &Path) -> Result<Destination> {
    if path.as_os_str().is_empty() {
        return Err(Error::input("cannot write a file without a name").help("name a file"));
    }
    let shown = path.display();
    let is_directory = || {
        Error::input(format!("cannot write `{shown}`: it is a directory, not a file"))
            .help("name a file in that directory")
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(is_directory()),
        Ok(found) if !found.is_file() => Ok(Destination::Stream),
        Ok(found) if is_own_stream(&found) => {
            Err(Error::input(format!("cannot write `{shown}`: this program's own output goes to that file"))
                .help("name another file, or send the program's output elsewhere"))
        }
        Ok(found) if found.permissions().readonly() => {
            Err(Error::input(format!("cannot write `{shown}`: the file exists and is write-protected"))
                .help(format!("name another file, or run `chmod u+w {}` to allow replacing it", ShellWord::path(path))))
        }
        Ok(found) => Ok(Destination::File {
            target: fs::canonicalize(path).map_err(|error| write_error(path, &error))?,
            replaced: Some(found),
        }),
        Err(_) if path.as_os_str().as_encoded_bytes().ends_with(b"/") => Err(is_directory()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A link to a file that is not there yet is followed, too.
            let target = if path.is_symlink() { call::resolved(path) } else { path.to_owned() };
            check_directory(&target)?;
            Ok(Destination::File { target, replaced: None })
        }
        Err(error) => {
            // A directory at fault is the more telling message.
            check_directory(path)?;
            Err(write_error(path, &error))
        }
    }
}

/// The directory that `path` is in.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != OsStr::new("") => directory,
        Some(_) | None => Path::new("."),
    }
}

/// Checks that the directory of `path` is there.
fn check_directory(path: &Path) -> Result<()> {
    let directory = directory_of(path);
    let (shown, folder) = (path.display(), directory.display());
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(not_a_directory(path, directory)),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(not_a_directory(path, directory)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::input(format!("cannot write `{shown}`: the directory `{folder}` does not exist"))
                .help(format!("create it first: `mkdir -p {}`", ShellWord::path(directory))))
        }
        Err(error) => {
            Err(Error::input(format!("cannot write `{shown}`: the directory `{folder}` cannot be looked at: {error}"))
                .help("write to a directory of your own"))
        }
    }
}

/// The error of a path that goes through a file as if it were a directory.
fn not_a_directory(path: &Path, directory: &Path) -> Error {
    let (shown, folder) = (path.display(), directory.display());
    Error::input(format!("cannot write `{shown}`: `{folder}` is not a directory"))
        .help("name a file in an existing directory")
}

/// Creates the file that is written in place of `target`, in the same directory, since a rename
/// cannot cross file systems. It vanishes when dropped.
fn create_aside(target: &Path) -> Result<Unfinished> {
    Unfinished::new(directory_of(target), 0o666).map_err(|error| write_error(target, &error))
}

/// Runs `write` on a buffered `file` and hands everything over to the file system.
fn write_through(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(BUFFER, file);
    write(&mut buffered)?;
    buffered.flush()
}

/// What a failure to write `path` means to the user.
fn write_error(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    let folder = directory_of(path).display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::machine(format!("cannot write `{shown}`: no space is left in `{folder}`"))
                .help("free some space, or write to another disk; nothing was replaced")
        }
        ErrorKind::FileTooLarge => Error::input(format!("cannot write `{shown}`: it is larger than files may be here"))
            .help("see `ulimit -f`, and the file system's limit; nothing was replaced"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Error::input(format!("cannot write `{shown}`: the directory `{folder}` is not writable"))
                .help("write to a directory of your own")
        }
        ErrorKind::InvalidFilename => {
            Error::input(format!("cannot write `{shown}`: the file system does not accept this name"))
                .help("choose a shorter name")
        }
        _ => Error::input(format!("cannot write `{shown}`: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_written_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        write_atomic(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_atomic(&path, |out| out.write_all(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(entries(directory.path()), 1, "nothing is left aside");
    }

    #[test]
    fn a_failure_keeps_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        fs::write(&path, b"old").unwrap();
        let result = write_atomic(&path, |out| {
            out.write_all(&vec![1; 3 * BUFFER])?;
            Err(io::Error::from(ErrorKind::StorageFull))
        });
        assert!(message(result).contains("no space is left"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(entries(directory.path()), 1, "nothing is left aside");
    }

    #[test]
    fn what_is_suggested_is_the_command_that_it_looks_like() {
        let directory = tempfile::tempdir().unwrap();
        let hostile = directory.path().join("q'; touch PWNED; '");
        let help = probe(&hostile.join("a.npy")).unwrap_err().help.unwrap();
        // Run as one would copy it: it makes the folder, and nothing else.
        let command = help.split('`').nth(1).unwrap();
        let ran =
            std::process::Command::new("sh").arg("-c").arg(command).current_dir(directory.path()).status().unwrap();
        assert!(ran.success() && hostile.is_dir(), "{help}");
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("read");
        fs::write(&path, b"four").unwrap();
        let read = |path: &Path, most, links| read_at_most(path, most, links).map_err(|error| error.kind());
        assert_eq!(read(&path, 4, Links::Refuse).unwrap(), b"four");
        assert_eq!(read(&path, 3, Links::Follow), Err(ErrorKind::FileTooLarge));
        let (link, pipe) = (directory.path().join("link"), directory.path().join("pipe"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read(&link, 4, Links::Follow).unwrap(), b"four");
        assert_eq!(read(&link, 4, Links::Refuse), Err(ErrorKind::InvalidInput));
        for none in [directory.path(), &pipe, Path::new("/dev/zero")] {
            assert_eq!(read(none, 1 << 20, Links::Follow), Err(ErrorKind::InvalidInput), "{}", none.display());
        }
        assert_eq!(read(&directory.path().join("none"), 3, Links::Follow), Err(ErrorKind::NotFound));
    }

    #[test]
    fn a_folder_that_is_not_there_is_looked_at_from_above() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), b"kept").unwrap();
        probe_inside(&at("new/deep/a.cu")).unwrap();
        assert_eq!(entries(directory.path()), 1, "it is not made yet");
        assert!(message(probe_inside(&at("file/new/a.cu"))).contains("cannot make the folder"));
        assert!(message(probe_inside(&at("file/a.cu"))).contains("is not a directory"));
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_ordinary_or_kept() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let ordinary = directory.path().join("ordinary");
        fs::write(&ordinary, b"").unwrap();
        let fresh = directory.path().join("fresh");
        write_atomic(&fresh, |out| out.write_all(b"x")).unwrap();
        assert_eq!(mode(&fresh), mode(&ordinary));

        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o751)).unwrap();
        write_atomic(&fresh, |out| out.write_all(b"y")).unwrap();
        assert_eq!(mode(&fresh), 0o751);

        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(message(probe(&fresh)).contains("write-protected"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomic(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.is_symlink());

        let null = Path::new("/dev/null");
        write_atomic(null, |out| out.write_all(b"gone")).unwrap();
        assert!(!fs::metadata(null).unwrap().is_file());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named() {
        let result = write_atomic(Path::new("/dev/full"), |out| out.write_all(b"x"));
        assert!(message(result).contains("no space is left"));
    }

    #[test]
    fn impossible_paths_are_refused_before_anything_is_computed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), b"kept").unwrap();
        for (path, expected) in [
            (at("missing/a.npy"), "does not exist"),
            (at("file/a.npy"), "is not a directory"),
            (at("file/below/a.npy"), "is not a directory"),
            (at("new/"), "it is a directory"),
            (directory.path().to_owned(), "it is a directory"),
            (at(&"x".repeat(300)), "does not accept this name"),
            (PathBuf::new(), "without a name"),
        ] {
            let checked = message(probe(&path));
            assert!(checked.contains(expected), "{}: {checked}", path.display());
            assert!(checked.contains("help: "), "{checked}");
            let written = message(write_atomic(&path, |_| panic!("must not be asked")));
            assert_eq!(written, checked);
        }
        assert_eq!(entries(directory.path()), 1);
        probe(&at("b.npy")).unwrap();
        assert_eq!(entries(directory.path()), 1, "the check leaves nothing");
    }
}
