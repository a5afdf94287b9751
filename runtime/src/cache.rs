//! Kernels that were compiled before, kept on disk.
//!
//! An entry's name is a hash of everything that its content depends on, so that entries never go stale and are never
//! replaced by different ones. Any number of processes may share a cache: an entry is written aside and renamed, and
//! one that was cut short or altered is told by its checksum and compiled again.
//!
//! What is read from a cache is executed, and anybody can make a checksum. So a cache into which others could put something is
//! not used, which is told once ([`crate::files::trust`]); folders and entries are made for this user alone; and an entry is judged
//! once it is open, before it is read.
//!
//! A cache that cannot be read or written is no error; kernels are then compiled every time.

mod turn;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::device::told_of_processor;
use crate::emulate;
use crate::files::{self, Unfinished, trust};
use crate::nvrtc::{self, Compiled, Kind, Resources};
use crate::{Error, Result};
use turn::Turn;

/// The variable that, set to `off`, keeps the cache from being read and written, and set to a size, as `4G`, says how large it may grow.
pub const VARIABLE: &str = "STENCILC_CACHE";

/// Marks a file as an entry, in the layout described at `encode`. A new layout takes a new number.
const MAGIC: &[u8; 8] = b"STNCLK01";

/// The most that the cache may grow to, in bytes, if nobody says.
///
/// Entries spread evenly over 256 folders, and each folder keeps to its share, so a store looks at one folder only.
const LIMIT: u64 = 512 << 20;

/// Folders that entries are spread over.
const FOLDERS: u64 = 256;

/// How the names of entries end. A file with another name is one that is being written.
const ENDING: &str = ".bin";

/// By so much clocks may differ.
const CLOCKS: Duration = Duration::from_secs(3600);

/// A kernel, and how it was come by.
#[derive(Clone, Debug)]
pub struct Built {
    /// What the compiler made.
    pub compiled: Compiled,
    /// Whether it was there already.
    pub cached: bool,
    /// Seconds that it took to compile or to read.
    pub seconds: f64,
}

/// What the cache holds.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The cache's folder; it may not be there yet.
    pub path: PathBuf,
    /// How many kernels are kept.
    pub entries: usize,
    /// Bytes they take.
    pub bytes: u64,
    /// Why it is not used, and what mends that.
    pub refused: Option<Error>,
}

/// What is kept beside an image.
#[derive(Serialize, Deserialize)]
struct Notes {
    resources: Vec<Resources>,
    log: String,
}

/// As [`nvrtc::compile`], but what was compiled before is read from the cache, without opening NVRTC.
///
/// # Errors
///
/// As [`nvrtc::compile`]; never because of the cache.
pub fn compile_cached(source: &str, name: &str, arch: &str, kind: Kind) -> Result<Built> {
    let key = nvrtc_key(source, arch, kind, &nvrtc::locate()?.identity)?;
    through(trusted(), &key, || nvrtc::compile(source, name, arch, kind))
}

/// As [`Compiler::compile`](emulate::Compiler::compile) for one kernel, but what was compiled before is read from the cache.
///
/// # Errors
///
/// As [`Compiler::compile`](emulate::Compiler::compile); never because of the cache.
pub fn emulated_cached(
    compiler: &emulate::Compiler,
    source: emulate::Source,
    settings: &emulate::Settings,
) -> Result<Built> {
    emulated_through(compiler, &[source], settings)
}

/// As [`Compiler::build`](emulate::Compiler::build), but what was compiled before is read from the cache.
///
/// # Errors
///
/// As [`Compiler::build`](emulate::Compiler::build); never because of the cache.
pub fn library_cached(
    compiler: &emulate::Compiler,
    sources: &[emulate::Source],
    settings: &emulate::Settings,
) -> Result<Vec<emulate::Kernel>> {
    emulate::load(&emulated_through(compiler, sources, settings)?.compiled.image, sources)
}

/// As [`Compiler::compile_machine`](emulate::Compiler::compile_machine), but once in a process, and read from the cache where it is kept.
///
/// # Errors
///
/// As [`Compiler::compile_machine`](emulate::Compiler::compile_machine); never because of the cache.
pub fn machine_cached(compiler: &emulate::Compiler, settings: &emulate::Settings) -> Result<Arc<[u8]>> {
    static MADE: Mutex<BTreeMap<[u8; 32], Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    let settings = &settings.of_machine();
    let key = emulated_key(compiler, &[&emulate::machine_text()], settings);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made.get(key.as_bytes()) {
        return Ok(Arc::clone(known));
    }
    let built = through(trusted(), &key, || compiler.compile_machine(settings).map(without_notes))?;
    let image: Arc<[u8]> = built.compiled.image.into();
    made.insert(*key.as_bytes(), Arc::clone(&image));
    Ok(image)
}

/// A library that another compiler makes of a text, as it was made before by a program that calls what it called then: its bytes.
///
/// # Errors
/// Those of `compile`; never because of the cache.
pub(crate) fn shim_cached(
    compiler: &Path,
    calls: &str,
    text: &str,
    compile: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let program = compiler.to_string_lossy();
    let key = key(["shim", &*program, calls, text].into_iter().map(str::as_bytes));
    Ok(through(trusted(), &key, || compile().map(without_notes))?.compiled.image)
}

fn emulated_through(
    compiler: &emulate::Compiler,
    sources: &[emulate::Source],
    settings: &emulate::Settings,
) -> Result<Built> {
    // What is linked to them is a part of them.
    let key = emulated_key(compiler, &[&emulate::text(sources, settings), &emulate::machine_text()], settings);
    through(trusted(), &key, || compiler.compile(sources, settings).map(without_notes))
}

fn without_notes(image: Vec<u8>) -> Compiled {
    Compiled { image, resources: Vec::new(), log: String::new() }
}

/// What an entry of the emulator's depends on.
fn emulated_key(compiler: &emulate::Compiler, texts: &[&str], settings: &emulate::Settings) -> blake3::Hash {
    let (program, version) = (compiler.program.to_string_lossy(), &compiler.version);
    let options = compiler.arguments(settings);
    // What is made for this processor others may not understand.
    let processor = if settings.native {
        ["model name", "flags", "CPU implementer", "CPU part", "Features"].map(told_of_processor).concat()
    } else {
        String::new()
    };
    let parts = ["emulator", &program, version, &processor].into_iter().chain(options.iter().map(String::as_str));
    key(parts.chain(texts.iter().copied()).map(str::as_bytes))
}

/// What the cache holds, or `None` where there is no cache: it is turned off, or the environment names no folder.
pub fn usage() -> Option<Usage> {
    let path = folder()?;
    let files = subfolders(&path).flat_map(|folder| files(&folder));
    let (entries, bytes) = files.fold((0, 0), |(entries, bytes), file| (entries + 1, bytes + file.bytes));
    let refused = if path.exists() { trust::check_folder(&path, whole(&path)).err() } else { None };
    Some(Usage { path, entries, bytes, refused })
}

/// The cache's folder, unless it is turned off.
fn folder() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(value) if value == "off" => None,
        Some(_) | None => Some(nvrtc::home()?.join("kernels")),
    }
}

/// The most that the cache may grow to, in bytes. A variable that says something else than it can is told.
fn limit() -> u64 {
    static LIMITED: OnceLock<u64> = OnceLock::new();
    *LIMITED.get_or_init(|| match std::env::var_os(VARIABLE) {
        Some(value) if value != "off" => size(&value.to_string_lossy()).unwrap_or_else(|| {
            let why = Error::input(format!("{VARIABLE}={} is no size", value.to_string_lossy()));
            trust::refuse("the cache of kernels may grow as usual", &why.help(format!("{VARIABLE}=4G, 800M or off")));
            LIMIT
        }),
        Some(_) | None => LIMIT,
    })
}

/// The bytes of a size as in `800M` or `4G`.
fn size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let shift = match unit {
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    let number: u64 = number.parse().ok().filter(|&number| number > 0)?;
    number.checked_mul(1 << shift)
}

/// The cache's folder, made if it is not there, unless others could put something into it.
fn trusted() -> Option<&'static Path> {
    static TRUSTED: OnceLock<Option<PathBuf>> = OnceLock::new();
    TRUSTED.get_or_init(|| open(&folder()?)).as_deref()
}

/// The folder of a cache with all links resolved. One that is not used since others could put something into it is told.
fn open(folder: &Path) -> Option<PathBuf> {
    let told = |error: &Error| trust::refuse(NOT_USED, error);
    trust::check_above(folder, whole(folder)).inspect_err(told).ok()?;
    trust::make_folder(folder).ok()?;
    trust::check_folder(folder, whole(folder)).inspect_err(told).ok()
}

/// What this program keeps, of which the cache is a part.
fn whole(folder: &Path) -> &Path {
    folder.parent().unwrap_or(folder)
}

/// How it is told that there is no cache.
const NOT_USED: &str = "the cache of kernels is not used";

/// The key of what the NVRTC of this identity makes of a source.
fn nvrtc_key(source: &str, arch: &str, kind: Kind, identity: &[u8]) -> Result<blake3::Hash> {
    // What a kernel needs is read off what NVRTC says, and kept with it.
    let reader = include_str!("nvrtc/resources.rs").as_bytes();
    let parts = [source.as_bytes(), arch.as_bytes(), kind.name().as_bytes(), identity, reader];
    let options = nvrtc::options(arch, kind)?;
    Ok(key(parts.into_iter().chain(options.iter().map(String::as_bytes))))
}

/// The hash of a list of parts; their lengths keep `ab`, `c` apart from `a`, `bc`.
fn key<'a>(parts: impl Iterator<Item = &'a [u8]>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(MAGIC);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize()
}

/// Reads an entry of the cache in `root`, or builds and stores it.
fn through(root: Option<&Path>, key: &blake3::Hash, build: impl FnOnce() -> Result<Compiled>) -> Result<Built> {
    let mut start = Instant::now();
    let path = root.map(|root| entry_path(root, key));
    let load = || path.as_deref().and_then(|path| load(path, key));
    let mut found = load();
    // Another thread may be building it. Where nothing is kept, waiting would gain nothing.
    let turn = (found.is_none() && path.is_some()).then(|| Turn::wait(key));
    if turn.is_some() {
        start = Instant::now();
        found = load();
    }
    let cached = found.is_some();
    let compiled = match found {
        Some(compiled) => compiled,
        None => {
            let compiled = build()?;
            if let Some(path) = &path {
                // A folder that cannot be written costs the next run some time and this one nothing.
                let _ = store(path, key, &compiled);
            }
            compiled
        }
    };
    Ok(Built { compiled, cached, seconds: start.elapsed().as_secs_f64() })
}

/// Where an entry is kept: in one of 256 folders, named by the first two digits of the key.
fn entry_path(root: &Path, key: &blake3::Hash) -> PathBuf {
    let digits = key.to_hex();
    root.join(&digits[..2]).join(format!("{}{ENDING}", &digits[2..]))
}

/// Reads an entry; anything amiss is as if it were not there.
fn load(path: &Path, key: &blake3::Hash) -> Option<Compiled> {
    let folder = path.parent()?;
    if let Err(error) = trust::check_inner(folder, whole(whole(folder))) {
        if path.exists() {
            trust::refuse(NOT_USED, &error);
        }
        return None;
    }
    let file = trust::open(path)?;
    // No entry is larger than the whole cache.
    let length = file.metadata().ok()?.len();
    if length > limit() {
        return None;
    }
    let mut bytes = Vec::new();
    (&file).take(length).read_to_end(&mut bytes).ok()?;
    let compiled = decode(&bytes, key.as_bytes())?;
    // What is used stays: the oldest go first. Where the time cannot be set the entry only goes sooner.
    let _ = file.set_modified(SystemTime::now());
    Some(compiled)
}

/// Writes an entry aside, and puts it in its place in one step.
fn store(path: &Path, key: &blake3::Hash, compiled: &Compiled) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    trust::make_folder(folder)?;
    trust::check_inner(folder, whole(whole(folder))).map_err(io::Error::other)?;
    let entry = Unfinished::new(folder, 0o600)?;
    entry.file().write_all(&encode(compiled, key.as_bytes())?)?;
    entry.finish(path)?;
    prune(folder, limit() / FOLDERS);
    Ok(())
}

/// The bytes of an entry: the magic number, a checksum of all that follows, the length of the notes (8 bytes, little
/// end first), the notes as JSON, and the image.
///
/// The checksum is keyed with the entry's key, so that an entry under another's name is not taken for it either.
///
/// # Errors
/// The notes cannot be written as JSON.
pub fn encode(compiled: &Compiled, key: &[u8; 32]) -> io::Result<Vec<u8>> {
    let notes = Notes { resources: compiled.resources.clone(), log: compiled.log.clone() };
    let notes = serde_json::to_vec(&notes)?;
    let mut body = (notes.len() as u64).to_le_bytes().to_vec();
    body.extend(&notes);
    body.extend(&compiled.image);
    Ok(sealed(&body, key))
}

/// The bytes of an entry of which all that follows the checksum is given.
pub fn sealed(body: &[u8], key: &[u8; 32]) -> Vec<u8> {
    [MAGIC.as_slice(), blake3::keyed_hash(key, body).as_bytes(), body].concat()
}

/// Reads the bytes of an entry, if they are what was written under this key.
pub fn decode(bytes: &[u8], key: &[u8; 32]) -> Option<Compiled> {
    let (checksum, body) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
    if blake3::keyed_hash(key, body) != *checksum {
        return None;
    }
    let (length, rest) = body.split_first_chunk::<8>()?;
    let (notes, image) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let Notes { resources, log } = serde_json::from_slice(notes).ok()?;
    Some(Compiled { image: image.to_vec(), resources, log })
}

/// A file of the cache.
struct Kept {
    modified: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// The folders of the cache that entries are in.
fn subfolders(root: &Path) -> impl Iterator<Item = PathBuf> {
    root.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// The files of a folder. One that another process removes meanwhile is passed over.
fn files(folder: &Path) -> Vec<Kept> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let kept = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Kept { modified: metadata.modified().ok()?, bytes: metadata.len(), path: entry.path() })
    };
    entries.filter_map(kept).collect()
}

/// Removes what processes that were killed left behind, and then the oldest files of a folder until the rest take no more
/// than `limit` bytes. The newest stays whatever its size, for it is in use.
fn prune(folder: &Path, limit: u64) {
    files::sweep_files(folder);
    let now = SystemTime::now();
    let mut files = files(folder);
    for file in &mut files {
        // A clock that was wrong must not keep an entry for ever: what comes from the future is the oldest.
        if file.modified > now + CLOCKS {
            file.modified = SystemTime::UNIX_EPOCH;
        }
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.modified));
    let mut total = 0u64;
    for (index, file) in files.iter().enumerate() {
        total = total.saturating_add(file.bytes);
        if index > 0 && total > limit {
            // Another process may have been quicker.
            let _ = fs::remove_file(&file.path);
        }
    }
}

#[cfg(test)]
mod tests;
