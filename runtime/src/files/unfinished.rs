//! Files and folders that are there only for a while: the one place where such are made.
//!
//! Whatever way the process ends, nobody has to clean up behind it:
//!
//! - where it ends by itself, they are removed when they are dropped;
//! - at a signal that can be caught, a thread removes them, and then lets the signal end the process
//!   ([`remove_at_signals`]);
//! - after `kill -9` the next process that makes such a file in the same folder removes them. Who makes one holds a lock on it
//!   as long as it lives, so one without a lock is nobody's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use super::trust;
use crate::{Error, Result, threads};

/// How their names begin and end. Between stand what started this machine last, the number of the process, and a random number.
const NAME: (&str, &str) = (".stencilc-", ".part");

/// Where locks say nothing, as on file systems without them and of processes of other machines, one that was not touched for so
/// long is nobody's.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Of a name that is taken, or was removed at once by somebody who found it not locked yet, another one is tried so often.
const ATTEMPTS: usize = 256;

/// What this process has to remove. Whoever makes, names or removes one holds this lock, so that at a signal nothing comes
/// after what is removed.
static LIVE: Mutex<Live> = Mutex::new(Live::new());

type Live = BTreeMap<PathBuf, Kind>;

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that has no name of its own yet. Dropped, it is removed.
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    /// Makes one in a folder, with the permissions that `mode` and the umask give.
    ///
    /// # Errors
    /// The folder is none, or cannot be written to.
    pub fn new(folder: &Path, mode: u32) -> io::Result<Self> {
        sweep_once(folder, Kind::File);
        // Read, too: some file systems lock nothing else for good.
        let create = |path: &Path| File::options().read(true).write(true).create_new(true).mode(mode).open(path);
        let (path, file) = made(folder, Kind::File, create)?;
        Ok(Self { file, path })
    }

    /// The file, to be written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What it is called until then.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, in the same folder; a file of that name is replaced.
    ///
    /// # Errors
    /// It cannot have that name. Then it is removed.
    pub fn finish(self, target: &Path) -> io::Result<()> {
        let mut live = live();
        fs::rename(&self.path, target)?;
        live.remove(&self.path);
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        drop_live(&self.path);
    }
}

/// A folder that nobody else can look into, in the folder for temporary files. Dropped, it is removed with all that is in it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes one.
    ///
    /// # Errors
    /// There is no folder for temporary files, it is full, or it lets others replace what is in it.
    pub fn new() -> Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    fn within(folder: &Path) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::machine(format!(
                "nothing can be written to the folder for temporary files, `{}`: {error}",
                folder.display()
            ))
            .help("it must be there and have room; the variable TMPDIR names another")
        };
        // Links are followed once: whoever can change one must not lead elsewhere what comes later.
        let parent = fs::canonicalize(folder).map_err(|error| failed(&error))?;
        let (path, lock) = made(&parent, Kind::Folder, new_folder).map_err(|error| failed(&error))?;
        let scratch = Self { path, _lock: lock };
        // What is compiled there is executed.
        let resolved = trust::check_folder(&scratch.path, &scratch.path).map_err(|error| {
            Error { fault: crate::Fault::Machine, ..error }
                .help("the variable TMPDIR names another folder for temporary files")
        })?;
        if resolved != scratch.path {
            return Err(failed(&"somebody else moves folders there"));
        }
        // Only now, when nobody else can give a folder of this user's another name.
        sweep_once(&parent, Kind::Folder);
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop_live(&self.path);
    }
}

/// Makes a folder for its owner alone, and opens it.
fn new_folder(path: &Path) -> io::Result<File> {
    DirBuilder::new().mode(0o700).create(path)?;
    // Whoever sweeps here has found it before it was locked, and another name is tried.
    File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => ErrorKind::AlreadyExists.into(),
        _ => error,
    })
}

/// Removes one that is not needed any more, unless it has got its name.
fn drop_live(path: &Path) {
    let mut live = live();
    if let Some(kind) = live.remove(path) {
        remove(path, kind);
    }
}

/// Makes something under a fresh name, and locks it.
fn made(folder: &Path, kind: Kind, create: impl Fn(&Path) -> io::Result<File>) -> io::Result<(PathBuf, File)> {
    let mut live = live();
    for _ in 0..ATTEMPTS {
        let random = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{}{}-{}-{random:016x}{}", NAME.0, boot(), std::process::id(), NAME.1));
        match create(&path) {
            // Between being made and being locked it was nobody's.
            Ok(file) if is_claimed(&file, &path) => {
                live.insert(path.clone(), kind);
                return Ok((path, file));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Locks what was made, and says whether it is still there.
fn is_claimed(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        // Without locks its age has to say that it is somebody's.
        Ok(()) | Err(TryLockError::Error(_)) => is_at(file, path),
        Err(TryLockError::WouldBlock) => false,
    }
}

/// Whether this file still has that name.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: Metadata| (found.dev(), found.ino());
    file.metadata().ok().map(id).is_some_and(|own| fs::symlink_metadata(path).ok().map(id) == Some(own))
}

/// What tells since when this machine runs, which is the same for all whose locks are seen here. Empty if nothing does.
fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.chars().filter(char::is_ascii_hexdigit).take(8).collect()
    })
}

/// What is unfinished. Folders are made only where nobody else can rename one: whoever gave a full folder of this user's such a
/// name would else have it removed. A file that others can rename they can remove as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
}

/// Removes what processes that were killed have left in a folder, the first time that this process is asked to.
fn sweep_once(folder: &Path, kind: Kind) {
    static SWEPT: Mutex<BTreeSet<(PathBuf, Kind)>> = Mutex::new(BTreeSet::new());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert((folder.to_owned(), kind)) {
        sweep(folder, kind);
    }
}

/// Removes the files that processes that were killed have left in a folder.
pub(crate) fn sweep_files(folder: &Path) {
    sweep(folder, Kind::File);
}

fn sweep(folder: &Path, kind: Kind) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let middle = name.to_str().and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1));
        if let Some(middle) = middle
            && let Some(_lock) = abandoned(&entry.path(), middle, kind)
        {
            // Locked by this process, so that nobody else takes it for abandoned meanwhile.
            remove(&entry.path(), kind);
        }
    }
}

/// The file or folder, if it is one of this user's and nobody's any more. It is locked as long as it is held.
fn abandoned(path: &Path, middle: &str, kind: Kind) -> Option<File> {
    // A link or a pipe of that name is not ours.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).write(kind == Kind::File).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_meant = match kind {
        Kind::File => found.is_file(),
        Kind::Folder => found.is_dir(),
    };
    if !is_meant || found.uid() != trust::user() {
        return None;
    }
    // A time in the future has no age: such a file stays.
    let is_old = || found.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > ABANDONED);
    let is_seen = !boot().is_empty() && middle.split('-').next() == Some(boot());
    match file.try_lock() {
        Ok(()) if is_seen || is_old() => Some(file),
        Err(TryLockError::Error(_)) if is_old() => Some(file),
        Ok(()) | Err(TryLockError::Error(_) | TryLockError::WouldBlock) => None,
    }
}

/// Removes a file; or a folder with all that is in it, into which a compiler that goes on for a moment may put something more. What
/// is of another kind by now was put there by somebody else, and stays.
fn remove(path: &Path, kind: Kind) {
    for _ in 0..3 {
        let removed = match kind {
            Kind::File => fs::remove_file(path),
            Kind::Folder => fs::remove_dir_all(path),
        };
        if removed.is_ok() || kind == Kind::File {
            return;
        }
    }
}

/// Removes all that this process has made; until what is returned is dropped, nothing new is.
fn remove_all() -> MutexGuard<'static, Live> {
    let mut live = live();
    std::mem::take(&mut *live).iter().for_each(|(path, &kind)| remove(path, kind));
    live
}

/// Ends the process at once, as `std::process::exit`, and leaves nothing unfinished behind.
pub fn exit(status: i32) -> ! {
    let _live = remove_all();
    std::process::exit(status)
}

/// Removes all that this process has made and not finished, as before its end.
pub fn leave_nothing() {
    drop(remove_all());
}

/// From now on, a signal that asks this process to end removes what is unfinished before it does. Signals that whoever started
/// the process has turned off, as `nohup` does, stay so; a second one ends the process at once.
pub fn remove_at_signals() {
    let wanted: Vec<i32> =
        [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    // While this is so, a signal ends the process at once: until there is somebody who removes, and from the second signal on.
    let is_plain = Arc::new(AtomicBool::new(true));
    for &signal in &wanted {
        let _ = flag::register_conditional_default(signal, Arc::clone(&is_plain));
    }
    let Ok(mut signals) = Signals::new(&wanted) else { return };
    let of_thread = Arc::clone(&is_plain);
    // From here on a signal waits until the thread looks.
    is_plain.store(false, Ordering::SeqCst);
    let thread = threads::spawn("signals", 256 << 10, move || {
        if let Some(signal) = signals.forever().next() {
            of_thread.store(true, Ordering::SeqCst);
            let _live = remove_all();
            // It ends the process, so that whoever started it sees which signal did.
            let _ = low_level::emulate_default_handler(signal);
        }
    });
    if thread.is_err() {
        is_plain.store(true, Ordering::SeqCst);
    }
}

/// Whether a signal does nothing.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is a valid one, and without a new action this only reads the present one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_nobody_holds_is_removed_and_what_somebody_holds_stays() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let now = std::time::SystemTime::now();
        let (here, hour) = (boot(), Duration::from_secs(3600));
        for (name, modified) in [
            // Of this machine: its lock tells.
            (format!(".stencilc-{here}-1-a.part"), now),
            (format!(".stencilc-{here}-2-future.part"), now + 2 * hour),
            // Of another, or of before: its age tells.
            (".stencilc-00000000-3-old.part".to_owned(), now - 2 * hour),
            (".stencilc-00000000-4-new.part".to_owned(), now),
            (".stencilc-00000000-5-future.part".to_owned(), now + 2 * hour),
            // Another's.
            ("mine.part".to_owned(), now - 2 * hour),
            (format!(".stencilc-{here}-6-mine"), now - 2 * hour),
        ] {
            File::create(at(&name)).unwrap().set_modified(modified).unwrap();
        }
        std::os::unix::fs::symlink("mine.part", at(&format!(".stencilc-{here}-7-link.part"))).unwrap();
        fs::create_dir(at(&format!(".stencilc-{here}-8-folder.part"))).unwrap();
        File::create(at(&format!(".stencilc-{here}-8-folder.part/kernels.so"))).unwrap();
        let held = Unfinished::new(folder.path(), 0o666).unwrap();
        sweep(folder.path(), Kind::File);
        // Folders stay, where files are written: somebody else may have given one that name.
        assert!(at(&format!(".stencilc-{here}-8-folder.part/kernels.so")).exists());
        sweep(folder.path(), Kind::Folder);
        let mut left = vec![
            ".stencilc-00000000-4-new.part".to_owned(),
            ".stencilc-00000000-5-future.part".to_owned(),
            format!(".stencilc-{here}-6-mine"),
            format!(".stencilc-{here}-7-link.part"),
            held.path.file_name().unwrap().to_str().unwrap().to_owned(),
            "mine.part".to_owned(),
        ];
        left.sort();
        assert_eq!(names(folder.path()), left);
        held.finish(&at("whole")).unwrap();
        sweep(folder.path(), Kind::File);
        assert!(at("whole").exists());
    }

    #[test]
    fn whoever_sweeps_takes_nothing_that_is_being_made() {
        let folder = tempfile::tempdir().unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::SeqCst) {
                    sweep(folder.path(), Kind::Folder);
                }
            });
            let made: Vec<io::Result<(PathBuf, File)>> =
                (0..500).map(|_| made(folder.path(), Kind::Folder, new_folder)).collect();
            is_done.store(true, Ordering::SeqCst);
            for own in made {
                let (path, _lock) = own.unwrap();
                assert!(path.exists());
                drop_live(&path);
            }
        });
    }

    /// What makes this test a process that writes a file and never comes to its end.
    const CHILD: &str = "STENCILC_TEST_UNFINISHED";

    #[test]
    fn whoever_is_ended_in_the_middle_leaves_nothing_for_long() {
        use std::io::{BufRead, BufReader, Read, Write};
        use std::os::unix::process::ExitStatusExt;
        use std::process::{Child, Command, Stdio};
        if let Some(path) = std::env::var_os(CHILD) {
            remove_at_signals();
            let waits = |out: &mut dyn Write| {
                out.write_all(&[0; 3 << 20])?;
                // Only now somebody ends it, or stops listening.
                eprintln!("unfinished");
                io::stdin().read_exact(&mut [0])
            };
            let _ = crate::files::write_atomic(Path::new(&path), waits);
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let start = |name: &str| -> Child {
            // Whoever runs the tests may ignore signals, as `nohup` does, and a child would go on so.
            let mut command = Command::new("env");
            command.arg("--default-signal").arg(std::env::current_exe().unwrap());
            let own = "files::unfinished::tests::whoever_is_ended_in_the_middle_leaves_nothing_for_long";
            command.args(["--exact", own, "--test-threads=1", "--nocapture"]).env(CHILD, at(name));
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(io::Result::ok);
            assert!(said.into_iter().any(|line| line.contains("unfinished")));
            child
        };
        let ended = |child: &mut Child, signal: i32| {
            // `wait` would close it, and the child come to its end by itself.
            let _input = child.stdin.take();
            // SAFETY: the child has not been waited for, so the number is still its own.
            assert_eq!(unsafe { libc::kill(i32::try_from(child.id()).unwrap(), signal) }, 0);
            assert_eq!(child.wait().unwrap().signal(), Some(signal));
        };
        fs::write(at("res"), "old").unwrap();
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            let mut child = start("res");
            assert_eq!(names(folder.path()).len(), 2, "the one that is being written, and the old one");
            ended(&mut child, signal);
            assert_eq!(names(folder.path()), ["res"], "signal {signal}");
        }
        // That one cannot be caught; another process is at work meanwhile.
        let (mut killed, mut other) = (start("res"), start("other"));
        ended(&mut killed, libc::SIGKILL);
        assert_eq!(names(folder.path()).len(), 3);
        crate::files::write_atomic(&at("new"), |out| out.write_all(b"new")).unwrap();
        let left = names(folder.path());
        let own = format!("-{}-", other.id());
        assert!(left.len() == 3 && left.iter().any(|name| name.contains(&own)), "{left:?}");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(fs::read(at("res")).unwrap(), b"old");
    }

    #[test]
    fn a_folder_is_this_users_alone_and_goes_with_what_is_in_it() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        File::create(path.join("kernels.so")).unwrap();
        // It is locked, so nobody takes it.
        assert!(abandoned(&path, &format!("{}-1-a", boot()), Kind::Folder).is_none());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_took_the_place_of_a_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = Unfinished::new(folder.path(), 0o666).unwrap();
        let path = file.path.clone();
        fs::rename(&path, folder.path().join("away")).unwrap();
        fs::create_dir(&path).unwrap();
        File::create(path.join("thesis")).unwrap();
        drop(file);
        assert!(path.join("thesis").exists());
    }

    #[test]
    fn a_link_to_the_folder_for_temporary_files_is_followed_once() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        std::os::unix::fs::symlink(at("inner"), at("link")).unwrap();
        let scratch = Scratch::within(&at("link")).unwrap();
        assert_eq!(scratch.path().parent().unwrap(), fs::canonicalize(at("inner")).unwrap());
        fs::write(scratch.path().join("kernels.cpp"), "").unwrap();
        // Whoever may change the link changes nothing of what comes then.
        fs::remove_file(at("link")).unwrap();
        assert!(scratch.path().join("kernels.cpp").exists());
    }
}
