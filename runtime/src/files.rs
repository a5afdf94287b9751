//! Files that are either written whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Bytes gathered before they go to the file system.
const BUFFER: usize = 1 << 20;

/// How the names of unfinished files begin and end.
const UNFINISHED: (&str, &str) = (".stencilc-", ".part");

/// After so long an unfinished file is nobody's any more: who wrote it was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Writes the file at `path` through `write`, all of it or nothing.
///
/// The bytes go to a fresh file in the same directory, which takes the name only once they are all
/// on the disk; until then, and for good if anything fails, a file that had the name stays as it
/// is. A new file has the permissions that the umask gives, a replaced one keeps its own, and a
/// symbolic link is followed. Devices and pipes (`/dev/null`) are written to directly. What a
/// process that was killed an hour ago or earlier left unfinished in the directory is removed.
///
/// # Errors
///
/// The directory does not exist, cannot be written to or is none; `path` is a directory or a
/// write-protected file; the disk is full; `write` fails.
pub fn write_atomic(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let failed = |error: io::Error| write_error(path, &error);
    match destination(path)? {
        Destination::Stream => {
            let stream = File::options().write(true).open(path).map_err(failed)?;
            write_through(&stream, write).map_err(failed)
        }
        Destination::File { target, replaced } => {
            let aside = create_aside(&target)?;
            write_through(aside.as_file(), write).map_err(failed)?;
            if let Some(replaced) = replaced {
                aside.as_file().set_permissions(replaced.permissions()).map_err(failed)?;
            }
            // Some file systems report a full disk only here, so this has to come before the
            // rename.
            aside.as_file().sync_all().map_err(failed)?;
            aside.persist(&target).map_err(|error| failed(error.error))?;
            sweep(directory_of(&target));
            Ok(())
        }
    }
}

/// Checks that [`write_atomic`] could write `path` now; asked before a long computation starts.
/// Gives the file that it would write, links resolved, so that two names of one file can be told;
/// for a device or a pipe, which takes any number of outputs one after the other, nothing.
///
/// # Errors
///
/// Those of [`write_atomic`] that can be foreseen: all but a disk that fills up.
pub fn check_writable(path: &Path) -> Result<Option<PathBuf>> {
    match destination(path)? {
        // Opening a pipe would wait for its reader.
        Destination::Stream => Ok(None),
        Destination::File { target, .. } => {
            create_aside(&target)?;
            let directory = fs::canonicalize(directory_of(&target)).map_err(|error| write_error(path, &error))?;
            Ok(Some(directory.join(target.file_name().unwrap_or_default())))
        }
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

/// Removes unfinished files of processes that were killed. They may be another user's, or gone.
fn sweep(directory: &Path) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_unfinished = name.as_encoded_bytes().starts_with(UNFINISHED.0.as_bytes())
            && name.as_encoded_bytes().ends_with(UNFINISHED.1.as_bytes());
        // A time in the future has no age: such a file stays.
        let age = || entry.metadata().ok().filter(Metadata::is_file)?.modified().ok()?.elapsed().ok();
        if is_unfinished && age().is_some_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
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
                .help(format!("name another file, or run `chmod u+w '{shown}'` to allow replacing it")))
        }
        Ok(found) => Ok(Destination::File {
            target: fs::canonicalize(path).map_err(|error| write_error(path, &error))?,
            replaced: Some(found),
        }),
        Err(_) if path.as_os_str().as_encoded_bytes().ends_with(b"/") => Err(is_directory()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            check_directory(path)?;
            Ok(Destination::File { target: path.to_owned(), replaced: None })
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
                .help(format!("create it first: `mkdir -p '{folder}'`")))
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
fn create_aside(target: &Path) -> Result<NamedTempFile> {
    let directory = directory_of(target);
    tempfile::Builder::new()
        .prefix(UNFINISHED.0)
        .suffix(UNFINISHED.1)
        // The crate's own way of creating the file lets nobody but the owner read it.
        .make_in(directory, |aside| File::options().write(true).create_new(true).open(aside))
        .map_err(|error| write_error(target, &error))
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
            Error::input(format!("cannot write `{shown}`: no space is left in `{folder}`"))
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
    fn what_the_killed_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let now = std::time::SystemTime::now();
        let hour = Duration::from_secs(3600);
        for (name, modified) in [
            (".stencilc-old.part", now - 2 * hour),
            (".stencilc-running.part", now),
            (".stencilc-future.part", now + 2 * hour),
            ("mine.part", now - 2 * hour),
            (".stencilc-mine", now - 2 * hour),
        ] {
            let file = File::create(directory.path().join(name)).unwrap();
            file.set_modified(modified).unwrap();
        }
        write_atomic(&directory.path().join("a"), |out| out.write_all(b"x")).unwrap();
        assert!(!directory.path().join(".stencilc-old.part").exists());
        assert_eq!(entries(directory.path()), 5);
    }

    #[test]
    fn two_names_of_a_file_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("folder"), at("link")).unwrap();
        let file = |name: &str| check_writable(&at(name)).unwrap();
        assert!(file("folder/a").is_some());
        assert_eq!(file("folder/a"), file("link/a"));
        assert_eq!(file("folder/a"), file("link/../folder/./a"));
        assert_ne!(file("folder/a"), file("a"));
        assert_eq!(check_writable(Path::new("/dev/null")).unwrap(), None);
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
        assert!(message(check_writable(&fresh)).contains("write-protected"));
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
            let checked = message(check_writable(&path));
            assert!(checked.contains(expected), "{}: {checked}", path.display());
            assert!(checked.contains("help: "), "{checked}");
            let written = message(write_atomic(&path, |_| panic!("must not be asked")));
            assert_eq!(written, checked);
        }
        assert_eq!(entries(directory.path()), 1);
        check_writable(&at("b.npy")).unwrap();
        assert_eq!(entries(directory.path()), 1, "the check leaves nothing");
    }
}
