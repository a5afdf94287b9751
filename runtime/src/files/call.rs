//! All files that a call reads and writes, known and compared before anything is computed.
//!
//! Whoever reads a file tells it here as it opens it, and whoever will write one tells it before the computation begins. Files are
//! told apart by what they are and not by how they are called: links are followed, hard links and mounts are seen by device and
//! number, and a name with the number of a step stands for all that it may become. Of two outputs, none may be the file of the
//! other; and an output takes the place of no input, but where a run goes on from where it was: an array may be written where an
//! array was read from, and a checkpoint where one was.
//!
//! [`begin`] makes this binding: from then on [`super::write_atomic`] refuses every file that nobody has told of before.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::pattern::Pattern;
use super::{directory_of, probe, probe_inside};
use crate::{Error, Result};
use stencilc_compiler::text::ShellWord;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stencils.
    Source,
    /// The numbers of a field.
    Array,
    /// Which cells are neighbours.
    Grid,
    /// A mesh, or fields with theirs.
    Mesh,
    /// All that a program holds.
    Checkpoint,
    /// What was measured, a row a line.
    Rows,
    /// A picture.
    Picture,
    /// A table of results.
    Table,
    /// A page to look at.
    Page,
    /// Generated code.
    Code,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Source => "stencil file",
            Self::Array => "array",
            Self::Grid => "grid",
            Self::Mesh => "mesh",
            Self::Checkpoint => "checkpoint",
            Self::Rows => "file of rows",
            Self::Picture => "picture",
            Self::Table => "table",
            Self::Page => "page",
            Self::Code => "code",
        }
    }

    /// Whether what was read may be replaced by what is written of the same kind: it was read whole, and one goes on from it.
    fn goes_on(self) -> bool {
        match self {
            Self::Array | Self::Checkpoint => true,
            Self::Source
            | Self::Grid
            | Self::Mesh
            | Self::Rows
            | Self::Picture
            | Self::Table
            | Self::Page
            | Self::Code => false,
        }
    }
}

/// A file of the call, or all that a name may become.
#[derive(Debug)]
struct Entry {
    kind: Kind,
    /// The option that it is written for; nothing of what is read.
    option: Option<String>,
    /// As it was named.
    given: Pattern,
    shown: String,
    /// Whether links are followed: where the caller has named the file, and not a folder in which it comes to be.
    follows: bool,
    place: Location,
    /// Of what comes to be in a folder: what was written, since none of it takes the place of another.
    written: BTreeSet<PathBuf>,
}

/// Which files a name stands for.
#[derive(Debug)]
struct Location {
    /// Their names, links resolved.
    names: Vec<Pattern>,
    /// Those that are there, by device and number.
    files: BTreeSet<(u64, u64)>,
}

impl Location {
    /// All files that the number of a step makes of a name.
    fn of_steps(path: &Path) -> Self {
        let name = Pattern::new(Path::new(path.file_name().unwrap_or_default()));
        Self::of_all(directory_of(path), |folder| name.clone().within(folder))
    }

    /// The file of a path, or the pipe; nothing of a device that keeps nothing, which takes anything.
    fn of(path: &Path) -> Option<Self> {
        let files = match fs::metadata(path) {
            Ok(found) if found.is_dir() || keeps_nothing(&found) => return None,
            Ok(found) => BTreeSet::from([(found.dev(), found.ino())]),
            Err(_) => BTreeSet::new(),
        };
        Some(Self { names: vec![Pattern::literal(&resolved(path))], files })
    }

    /// All files in a folder that a pattern may become: also where links of such names lead that are there already.
    fn of_all(folder: &Path, pattern: impl Fn(&Path) -> Pattern) -> Self {
        // A folder that is not there yet is nobody else's either.
        let resolved = fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
        let resolved = resolved.unwrap_or_else(|_| folder.to_owned());
        let name = pattern(&resolved);
        let mut all = Self { names: vec![name.clone()], files: BTreeSet::new() };
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            if name.gives(&resolved.join(entry.file_name()))
                && let Some(own) = Self::of(&entry.path())
            {
                all.names.extend(own.names.into_iter().filter(|_| entry.path().is_symlink()));
                all.files.extend(own.files);
            }
        }
        all
    }

    fn meets(&self, other: &Self) -> bool {
        self.files.intersection(&other.files).next().is_some() || self.is_called_as(other)
    }

    fn is_called_as(&self, other: &Self) -> bool {
        self.names.iter().any(|own| other.names.iter().any(|other| own.meets(other)))
    }
}

/// Whether what is written is gone, as in `/dev/null`: one of the devices of memory.
fn keeps_nothing(found: &Metadata) -> bool {
    found.file_type().is_char_device() && libc::major(found.rdev()) == 1
}

/// Where a path leads, links resolved, whether there is a file or not.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many links as the system follows.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = directory_of(&path).join(target),
            Err(_) => break,
        }
    }
    let folder = fs::canonicalize(directory_of(&path));
    match (fs::canonicalize(&path), folder, path.file_name()) {
        (Ok(whole), _, _) => whole,
        (Err(_), Ok(folder), Some(name)) => folder.join(name),
        (Err(_), _, _) => path,
    }
}

/// The files of a call.
#[derive(Debug, Default)]
struct Call {
    entries: Vec<Entry>,
}

impl Call {
    fn add(&mut self, entry: Entry) -> Result<()> {
        let conflict = |other: &Entry| if other.place.meets(&entry.place) { conflict(other, &entry) } else { None };
        if let Some(error) = self.entries.iter().find_map(conflict) {
            return Err(error);
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Whether a file may be written now: it was told, and no link that has come since leads it elsewhere. Gives whether it comes to
    /// be in a folder that an option names, which is made if it is not there.
    fn check(&mut self, path: &Path) -> Result<bool> {
        let shown = path.display();
        let Some(own) = self.entries.iter().position(|own| own.option.is_some() && own.given.gives(path)) else {
            return Err(Error::check(format!("`{shown}` would be written, and nobody said so before"))
                .help("this is a mistake in stencilc: please report it"));
        };
        let is_inside = !self.entries[own].follows;
        check_link(path, !is_inside)?;
        if is_inside && !self.entries[own].written.insert(path.to_owned()) {
            return Err(Error::check(format!("`{shown}` would be written twice, and hold the later text alone"))
                .help("this is a mistake in stencilc: please report it"));
        }
        let Some(place) = Location::of(path) else { return Ok(is_inside) };
        let others = self.entries.iter().enumerate().filter(|(other, _)| *other != own).map(|(_, other)| other);
        // By their names: the number of a file that was replaced meanwhile may be another's by now.
        let mut met = others.filter(|other| other.place.is_called_as(&place));
        met.find_map(|other| conflict(other, &self.entries[own])).map_or(Ok(is_inside), Err)
    }
}

/// Why two names of one file cannot both be there; nothing if they can.
fn conflict(one: &Entry, other: &Entry) -> Option<Error> {
    match (&one.option, &other.option) {
        (None, None) => None,
        (Some(first), Some(option)) => {
            let of = match (one.shown == other.shown, first == option) {
                (true, true) => String::new(),
                (true, false) => format!(", by {first}"),
                (false, _) => format!(", by {first}, as `{}`", one.shown),
            };
            Some(
                Error::call(format!("{option} names `{}`, which is written already{of}", other.shown))
                    .help("each output needs a file of its own"),
            )
        }
        (None, Some(option)) => replaced(one, option, other),
        (Some(option), None) => replaced(other, option, one),
    }
}

/// Why a file that is read cannot be written, too; nothing if it can.
fn replaced(read: &Entry, option: &str, written: &Entry) -> Option<Error> {
    if read.kind == written.kind && read.kind.goes_on() {
        return None;
    }
    let what = read.kind.name();
    let read_as = if read.shown == written.shown { String::new() } else { format!(", as `{}`", read.shown) };
    Some(
        Error::call(format!("{option} names `{}`, and the {what} is read from there{read_as}", written.shown))
            .help(format!("name another file, so that the {what} is not lost")),
    )
}

/// Refuses a link where none is followed.
fn check_link(path: &Path, follows: bool) -> Result<()> {
    if follows || !path.is_symlink() {
        return Ok(());
    }
    let (shown, target) = (path.display(), resolved(path));
    Err(Error::input(format!(
        "`{shown}` is a link to `{}`, and what is written into a folder stays there",
        target.display()
    ))
    .help(format!("remove it, if the file that it leads to is not meant: rm {}", ShellWord::path(path))))
}

/// The files of this process's call, once it has begun.
static CALL: Mutex<Option<Call>> = Mutex::new(None);

fn with<T>(tell: impl FnOnce(&mut Call) -> Result<T>) -> Result<Option<T>> {
    let mut call = CALL.lock().unwrap_or_else(PoisonError::into_inner);
    call.as_mut().map(tell).transpose()
}

/// From now on, whatever this process reads and writes belongs to one call, and is compared.
pub fn begin() {
    *CALL.lock().unwrap_or_else(PoisonError::into_inner) = Some(Call::default());
}

/// Tells that a file is read.
///
/// # Errors
/// It is one that will be written.
pub fn reads(kind: Kind, path: &Path) -> Result<()> {
    let Some(place) = Location::of(path) else { return Ok(()) };
    let shown = path.display().to_string();
    let entry = Entry {
        kind,
        option: None,
        given: Pattern::literal(path),
        shown,
        follows: true,
        place,
        written: BTreeSet::new(),
    };
    with(|call| call.add(entry)).map(|_| ())
}

/// Tells that `option` will write a file, and checks that it can be written.
///
/// # Errors
/// It is one that is read, or that something else will be written to; its name asks for the number of a step; those of
/// [`super::write_atomic`] that can be foreseen: all but a disk that fills up.
pub fn will_write(kind: Kind, option: &str, path: &Path) -> Result<()> {
    probe(path)?;
    will_append(kind, option, path)
}

/// As [`will_write`], of a file that grows in its place.
///
/// # Errors
/// It is one that is read, or that something else will be written to; its name asks for the number of a step.
pub fn will_append(kind: Kind, option: &str, path: &Path) -> Result<()> {
    refuse_step(option, path)?;
    told(kind, option, Pattern::literal(path), path, true)
}

/// Refuses the number of a step where there are none.
fn refuse_step(option: &str, path: &Path) -> Result<()> {
    // As it is malformed, so it was meant.
    if Pattern::new(path).has_step() || Pattern::of_option(option, path).is_err() {
        return Err(Error::call(format!(
            "{option} names `{}`, and there are no steps whose number could stand there",
            path.display()
        ))
        .help("leave out {step}"));
    }
    Ok(())
}

/// As [`will_write`], of a file for each of some steps, if the number of a step stands in its name.
///
/// # Errors
/// Those of [`will_write`], for any step.
pub fn will_write_each(kind: Kind, option: &str, pattern: &Path) -> Result<()> {
    let steps = Pattern::of_option(option, pattern)?;
    probe(&steps.at(0))?;
    told(kind, option, steps, pattern, true)
}

/// As [`will_write`], of a file in a folder that the caller has named, whose own name the caller has not: it is no link, since what
/// is written into a folder stays there.
///
/// # Errors
/// Those of [`will_write`]; there is a link of that name.
pub fn will_write_inside(kind: Kind, option: &str, path: &Path) -> Result<()> {
    check_link(path, false)?;
    probe_inside(path)?;
    told(kind, option, Pattern::literal(path), path, false)
}

/// As [`will_write_inside`], of files whose names are only known when something is computed, but for how they end.
///
/// # Errors
/// Those of [`will_write_inside`], but for links, which are refused when a file is written; the folder's name asks for the number of
/// a step.
pub fn will_write_into(kind: Kind, option: &str, folder: &Path, ending: &str) -> Result<()> {
    refuse_step(option, folder)?;
    probe_inside(&folder.join(format!("a.{ending}")))?;
    let place = Location::of_all(folder, |folder| Pattern::all_in(folder, ending));
    let (given, shown) = (Pattern::all_in(folder, ending), folder.display().to_string());
    let option = Some(option.to_owned());
    with(|call| call.add(Entry { kind, option, given, shown, follows: false, place, written: BTreeSet::new() }))
        .map(|_| ())
}

fn told(kind: Kind, option: &str, given: Pattern, path: &Path, follows: bool) -> Result<()> {
    let place = match given.has_step() {
        true => Location::of_steps(path),
        false => match Location::of(path) {
            Some(place) => place,
            // Told all the same, so that it may be written.
            None => Location { names: Vec::new(), files: BTreeSet::new() },
        },
    };
    let (option, shown) = (Some(option.to_owned()), path.display().to_string());
    with(|call| call.add(Entry { kind, option, given, shown, follows, place, written: BTreeSet::new() })).map(|_| ())
}

/// Whether a file may be written now, or removed; gives whether its folder is to be made if it is not there.
///
/// # Errors
/// Nobody told that it will be; or it has become a link to one that is read or written otherwise.
pub(super) fn check(path: &Path) -> Result<bool> {
    Ok(with(|call| call.check(path))?.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn entry(kind: Kind, option: Option<&str>, path: &Path) -> Entry {
        let given = Pattern::new(path);
        let place = match given.has_step() {
            true => Location::of_steps(path),
            false => Location::of(path).unwrap(),
        };
        let (option, shown) = (option.map(str::to_owned), path.display().to_string());
        Entry { kind, option, given, shown, follows: true, place, written: BTreeSet::new() }
    }

    /// Whether the two can both be in a call, whichever comes first.
    fn agree(one: (Kind, Option<&str>, &Path), other: (Kind, Option<&str>, &Path)) -> bool {
        let both = |first: (Kind, Option<&str>, &Path), second: (Kind, Option<&str>, &Path)| {
            let mut call = Call::default();
            call.add(entry(first.0, first.1, first.2)).unwrap();
            call.add(entry(second.0, second.1, second.2)).is_ok()
        };
        let (here, there) = (both(one, other), both(other, one));
        assert_eq!(here, there, "{one:?} {other:?}");
        here
    }

    #[test]
    fn one_file_is_one_file_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("a"), "a").unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        for (target, link) in [("a", "link"), ("nothing", "dangling"), ("dangling", "twice"), ("inner", "folder")] {
            symlink(target, at(link)).unwrap();
        }
        symlink("../nothing", at("inner/up")).unwrap();
        symlink("a", at("k_7.npy")).unwrap();
        for (one, other, is_one) in [
            ("a", "a", true),
            ("a", "inner/../a", true),
            ("a", "./folder/../a", true),
            ("a", "link", true),
            ("a", "hard", true),
            ("nothing", "dangling", true),
            ("nothing", "twice", true),
            ("inner/up", "twice", true),
            ("inner/new", "folder/new", true),
            ("new", "inner/new", false),
            ("a", "nothing", false),
            ("k_{step}.npy", "k_1.npy", true),
            ("k_{step}.npy", "inner/../k_{step:03}.npy", true),
            ("k_{step}.npy", "inner/k_{step}.npy", false),
            ("k_{step}.npy", "a", true),
            ("k_{step:02}.npy", "a", false),
        ] {
            let (one, other) = (at(one), at(other));
            let found = agree((Kind::Array, Some("--out"), &one), (Kind::Picture, Some("--plot"), &other));
            assert_eq!(!found, is_one, "{one:?} {other:?}");
        }
    }

    #[test]
    fn arrays_and_checkpoints_are_replaced_by_their_like_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        let all = [Kind::Source, Kind::Array, Kind::Grid, Kind::Mesh, Kind::Checkpoint, Kind::Rows];
        for read in all {
            for written in all.into_iter().chain([Kind::Picture, Kind::Table, Kind::Page, Kind::Code]) {
                let found = agree((read, None, &path), (written, Some("-o"), &path));
                assert_eq!(found, read == written && read.goes_on(), "{read:?} {written:?}");
            }
            assert!(agree((read, None, &path), (Kind::Array, None, &path)), "what is read twice is not lost");
        }
    }

    #[test]
    fn only_what_was_told_is_written_and_where_it_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("grid"), "x").unwrap();
        let mut call = Call::default();
        call.add(entry(Kind::Grid, None, &at("grid"))).unwrap();
        call.add(entry(Kind::Array, Some("--out"), &at("k_{step}.npy"))).unwrap();
        call.add(Entry { follows: false, ..entry(Kind::Code, Some("-o"), &at("code.cu")) }).unwrap();
        assert!(call.check(&at("k_3.npy")).is_ok() && call.check(&at("code.cu")).is_ok());
        let unknown = call.check(&at("k_.npy")).unwrap_err();
        assert!(unknown.message.contains("nobody said so"), "{unknown}");
        assert!(call.check(&at("grid")).is_err(), "it is only read");
        // Links that have come since.
        symlink("grid", at("k_4.npy")).unwrap();
        symlink("elsewhere", at("code.cu")).unwrap();
        let lost = call.check(&at("k_4.npy")).unwrap_err();
        assert!(lost.message.contains("the grid is read from there"), "{lost}");
        fs::remove_file(at("code.cu")).unwrap();
        let twice = call.check(&at("code.cu")).unwrap_err();
        assert!(twice.message.contains("would be written twice"), "{twice}");
        symlink("elsewhere", at("code.cu")).unwrap();
        let away = call.check(&at("code.cu")).unwrap_err();
        assert!(away.message.contains("is a link to"), "{away}");
    }
}
