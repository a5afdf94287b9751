//! Whether what lies in a folder was put there by this user: asked before it is executed.
//!
//! As `ssh` asks it of keys: a file or folder that another user owns, or that its mode lets others write to, is not taken; and
//! neither is one below a folder in which others could put another in its place. Above it, a folder that is sticky, as `/tmp`,
//! will do, for there nobody but its owner renames or removes what this user has made.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{Error, Result};
use stencilc_compiler::text::ShellWord;

/// Who asks, and who counts as root.
#[derive(Clone, Copy, Debug)]
struct Users {
    own: u32,
    /// In a container that knows this user alone, what belongs to root looks as if it was nobody's.
    nobody: Option<u32>,
}

/// What is judged: the thing itself, or a folder above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Itself,
    Above,
}

/// The user that this process runs as.
pub(crate) fn user() -> u32 {
    // SAFETY: it only reads a number, and cannot fail.
    unsafe { libc::geteuid() }
}

fn users() -> Users {
    static NOBODY: OnceLock<Option<u32>> = OnceLock::new();
    let nobody = NOBODY.get_or_init(|| {
        let map = fs::read_to_string("/proc/self/uid_map").ok()?;
        // Each line: the first number inside, the first outside, how many.
        let has_root = map.lines().any(|line| line.split_whitespace().next() == Some("0"));
        let nobody = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        if has_root { None } else { nobody.trim().parse().ok() }
    });
    Users { own: user(), nobody: *nobody }
}

/// What is wrong with an owner and a mode, and what mends it; of a part of `whole`, all parts at once.
fn judge(path: &Path, whole: &Path, (owner, mode): (u32, u32), users: Users, place: Place) -> Result<()> {
    let shown = path.display();
    let is_root = owner == 0 || (place == Place::Above && users.nobody == Some(owner));
    if owner != users.own && !is_root {
        return Err(Error::input(format!("`{shown}` belongs to another user, whose number is {owner}"))
            .help("the variable STENCILC_HOME names a folder of your own"));
    }
    let (is_writable, is_sticky) = (mode & 0o022 != 0, mode & 0o1000 != 0);
    if is_writable && !(place == Place::Above && is_sticky) {
        let mode = mode & 0o7777;
        let (all, mended) = if path.starts_with(whole) { ("-R ", whole) } else { ("", path) };
        return Err(Error::input(format!("others may write to `{shown}`, whose mode is {mode:04o}"))
            .help(format!("keep them out, if what is there is yours: chmod {all}go-w {}", ShellWord::path(mended))));
    }
    Ok(())
}

fn check(path: &Path, whole: &Path, found: &Metadata, place: Place) -> Result<()> {
    judge(path, whole, (found.uid(), found.mode()), users(), place)
}

/// Refuses what is no folder, be it anybody's.
fn refuse_file(path: &Path) -> Result<()> {
    match path.is_dir() {
        true => Ok(()),
        false => Err(Error::input(format!("`{}` is no folder", path.display()))
            .help("the variable STENCILC_HOME names a folder of your own")),
    }
}

/// Checks that nobody but this user, and root, can put anything into a folder, or another in its place. Gives the folder with all
/// links resolved: what is read is to be read from there. `whole` is what this program keeps, of which the folder is a part: it is
/// mended as one.
///
/// # Errors
/// Somebody can; or the folder is not there.
pub fn check_folder(folder: &Path, whole: &Path) -> Result<PathBuf> {
    let failed = |error: io::Error| Error::input(format!("`{}` cannot be looked at: {error}", folder.display()));
    let path = fs::canonicalize(folder).map_err(failed)?;
    let whole = fs::canonicalize(whole).map_err(failed)?;
    refuse_file(&path)?;
    let above = std::iter::repeat(Place::Above);
    for (part, place) in path.ancestors().zip(std::iter::once(Place::Itself).chain(above)) {
        check(part, &whole, &fs::metadata(part).map_err(failed)?, place)?;
    }
    Ok(path)
}

/// Checks the folders that are there above one that is to be made, so that none is made in vain, or for somebody else.
///
/// # Errors
/// As [`check_folder`].
pub fn check_above(folder: &Path, whole: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::input(format!("`{}` cannot be looked at: {error}", folder.display()));
    let Some(there) = folder.ancestors().skip(1).find(|above| above.exists()) else { return Ok(()) };
    let path = fs::canonicalize(there).map_err(failed)?;
    refuse_file(&path)?;
    path.ancestors().try_for_each(|part| check(part, whole, &fs::metadata(part).map_err(failed)?, Place::Above))
}

/// As [`check_folder`], of a file and the folder that it is in.
///
/// # Errors
/// Those of [`check_folder`].
pub fn check_file(file: &Path, whole: &Path) -> Result<PathBuf> {
    let failed = |error: io::Error| Error::input(format!("`{}` cannot be looked at: {error}", file.display()));
    let path = fs::canonicalize(file).map_err(failed)?;
    check_folder(path.parent().unwrap_or(&path), whole)?;
    let whole = fs::canonicalize(whole).map_err(failed)?;
    check(&path, &whole, &fs::metadata(&path).map_err(failed)?, Place::Itself)?;
    Ok(path)
}

/// Checks a folder alone, in one that was checked, both with all links resolved: it is no link, and nobody else can put anything
/// into it.
///
/// # Errors
/// Somebody can; or there is no such folder.
pub fn check_inner(folder: &Path, whole: &Path) -> Result<()> {
    let failed = |error: io::Error| Error::input(format!("`{}` cannot be looked at: {error}", folder.display()));
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    if !found.is_dir() {
        return Err(Error::input(format!("`{}` is no folder", folder.display())).help("remove it"));
    }
    check(folder, whole, &found, Place::Itself)
}

/// Makes a folder, and those above it that are missing, for this user alone.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a file if it is one that nobody else can have written: no link, no pipe, this user's or root's. It is judged once it is
/// open, so that what is judged is what is read.
pub fn open(path: &Path) -> Option<File> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok()?;
    let found = file.metadata().ok().filter(Metadata::is_file)?;
    check(path, path, &found, Place::Itself).ok()?;
    Some(file)
}

/// What was refused so far, and is not told yet.
static REFUSED: Mutex<(Vec<Error>, BTreeSet<String>)> = Mutex::new((Vec::new(), BTreeSet::new()));

/// Remembers that `what` is not taken, to be told once.
pub(crate) fn refuse(what: &str, why: &Error) {
    let message = format!("{what}: {}", why.message);
    let (waiting, known) = &mut *REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    if known.insert(message.clone()) {
        waiting.push(Error { message, ..why.clone() });
    }
}

/// What was refused since this was asked last, each with what mends it: the caller tells it.
pub fn refused() -> Vec<Error> {
    std::mem::take(&mut REFUSED.lock().unwrap_or_else(PoisonError::into_inner).0)
}

/// All that was refused, told or not: tests run at once.
#[cfg(test)]
pub(crate) fn ever_refused() -> Vec<String> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner).1.iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn owners_and_modes_are_judged() {
        let users = Users { own: 1000, nobody: None };
        let contained = Users { nobody: Some(65534), ..users };
        for (owner, mode, users, place, is_taken) in [
            (1000, 0o40700, users, Place::Itself, true),
            (0, 0o40755, users, Place::Itself, true),
            (1000, 0o40775, users, Place::Itself, false),
            (1000, 0o40702, users, Place::Above, false),
            (1001, 0o40700, users, Place::Itself, false),
            (1001, 0o40755, users, Place::Above, false),
            (0, 0o41777, users, Place::Above, true),
            (0, 0o41777, users, Place::Itself, false),
            (1001, 0o41777, users, Place::Above, false),
            (65534, 0o40755, users, Place::Above, false),
            (65534, 0o40755, contained, Place::Above, true),
            (65534, 0o40700, contained, Place::Itself, false),
        ] {
            let judged = judge(Path::new("/a"), Path::new("/a"), (owner, mode), users, place);
            assert_eq!(judged.is_ok(), is_taken, "{owner} {mode:o} {place:?}");
        }
    }

    #[test]
    fn a_folder_is_judged_with_those_above_it_and_behind_links() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let allow = |name: &str, mode| fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        make_folder(&at("open/inner")).unwrap();
        assert_eq!(fs::metadata(at("open")).unwrap().mode() & 0o777, 0o700);
        std::os::unix::fs::symlink(at("open/inner"), at("link")).unwrap();
        assert_eq!(check_folder(&at("link"), root.path()).unwrap(), fs::canonicalize(at("open/inner")).unwrap());
        allow("open", 0o770);
        for (path, whole, mends) in [
            ("open", "open", "chmod -R go-w"),
            ("open/inner", "open/inner", "chmod go-w"),
            ("link", "open", "chmod -R go-w"),
        ] {
            let error = check_folder(&at(path), &at(whole)).unwrap_err();
            let help = error.help.unwrap();
            assert!(
                error.message.contains("0770") && help.contains(mends) && help.ends_with("/open"),
                "{path}: {help}"
            );
        }
        allow("open", 0o1777);
        let folder = |name: &str| check_folder(&at(name), root.path());
        assert!(folder("open/inner").is_ok() && folder("open").is_err());
        assert!(check_above(&at("open/new/newer"), root.path()).is_ok(), "in a sticky one");
        allow("open", 0o777);
        assert!(check_above(&at("open/new/newer"), root.path()).is_err());
        assert!(check_inner(&at("open/inner"), root.path()).is_ok() && check_inner(&at("link"), root.path()).is_err());
    }

    #[test]
    fn what_is_no_folder_is_told_so() {
        let null = Path::new("/dev/null");
        for told in [check_folder(null, null).map(|_| ()), check_above(&null.join("kernels"), null)] {
            let error = told.unwrap_err();
            assert_eq!(error.message, "`/dev/null` is no folder");
            assert!(!error.help.unwrap().contains("chmod"));
        }
    }

    #[test]
    fn a_file_is_judged_when_it_is_open() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("own"), "x").unwrap();
        fs::set_permissions(at("own"), Permissions::from_mode(0o644)).unwrap();
        assert!(open(&at("own")).is_some() && check_file(&at("own"), root.path()).is_ok());
        std::os::unix::fs::symlink(at("own"), at("link")).unwrap();
        assert!(open(&at("link")).is_none() && open(root.path()).is_none() && open(&at("nothing")).is_none());
        for mode in [0o664, 0o646] {
            fs::set_permissions(at("own"), Permissions::from_mode(mode)).unwrap();
            assert!(open(&at("own")).is_none() && check_file(&at("own"), root.path()).is_err(), "{mode:o}");
        }
    }
}
