//! Finding the NVRTC of this machine by file names, without opening it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::cuda;
use crate::files::trust;
use crate::{Error, Result};
use stencilc_compiler::text::ShellWord;

/// The variable that names the NVRTC to use: the library itself or its folder.
pub const VARIABLE: &str = "STENCILC_NVRTC";

/// An NVRTC that was found on this machine but not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The library's file, links resolved.
    pub path: PathBuf,
    /// Differs between any two builds of NVRTC: a hash of the file's size, start (the build number that the linker
    /// writes is there) and end. It is the same wherever and whenever that build was installed.
    pub identity: [u8; 32],
}

/// The folder for what is kept between runs, kernels and NVRTC itself: `STENCILC_HOME`, or `stencilc` in the user's
/// cache folder. `None` where the environment names neither.
pub fn home() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("STENCILC_HOME")
        .or_else(|| {
            // The XDG specification wants relative paths to be ignored.
            let cache = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            cache.or_else(|| Some(variable("HOME")?.join(".cache"))).map(|cache| cache.join("stencilc"))
        })
        .and_then(|path| std::path::absolute(path).ok())
}

/// Folders that somebody else named.
static FURTHER: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Looks for NVRTC, and for NCCL, in this folder, too, before those of the loader: of an environment that brings its own. It has to be said before
/// they are looked for.
pub fn look_in(folder: PathBuf) {
    FURTHER.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
}

/// The folders that were named.
pub(crate) fn further() -> Vec<PathBuf> {
    FURTHER.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Finds NVRTC without opening it; the answer is that of the first call.
///
/// The order is: `STENCILC_NVRTC`, folders that were [named](look_in), the loader's folders, the CUDA toolkits, and the folder `nvrtc` of [`home`], unless others
/// could have put something there.
///
/// # Errors
///
/// When there is none, or when `STENCILC_NVRTC` names none.
pub fn locate() -> Result<&'static Located> {
    static LOCATED: OnceLock<Result<Located>> = OnceLock::new();
    let located = LOCATED.get_or_init(|| {
        let path = match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(named) => named_library(Path::new(&named))?,
            None => further()
                .into_iter()
                .chain(loader_folders())
                .chain(toolkits().iter().flat_map(|toolkit| {
                    [toolkit.join("lib64"), toolkit.join("targets/x86_64-linux/lib"), toolkit.join("lib")]
                }))
                .find_map(|folder| library_in(&folder))
                .or_else(|| trusted(library_below(&home()?.join("nvrtc"), 4)?, &home()?))
                .ok_or_else(|| {
                    Error::input("NVRTC, NVIDIA's run-time compiler, is not on this machine").help(remedy())
                })?,
        };
        let path = path.canonicalize().unwrap_or(path);
        let identity = identify(&path)
            .map_err(|error| Error::input(format!("{} cannot be read: {error}", path.display())).help(remedy()))?;
        Ok(Located { path, identity })
    });
    located.as_ref().map_err(Error::clone)
}

/// How to get NVRTC.
pub(super) fn remedy() -> String {
    let target = match home() {
        Some(home) => format!(" --target {}", ShellWord::path(home.join("nvrtc"))),
        None => String::new(),
    };
    format!(
        "`pip install{target} {}` or a CUDA toolkit brings it, {VARIABLE} names a copy elsewhere, and `stencilc doctor` says what is \
         found",
        package(cuda::driver_version().ok())
    )
}

/// The package of pip that brings an NVRTC that is not newer than a driver; without one, any may do.
pub(crate) fn package(driver: Option<(i32, i32)>) -> String {
    match driver {
        Some((major, minor)) => {
            let suffix = if major < 13 { format!("-cu{major}") } else { String::new() };
            format!("'nvidia-cuda-nvrtc{suffix}=={major}.{minor}.*'")
        }
        None => "nvidia-cuda-nvrtc".to_owned(),
    }
}

/// The library, if nobody but this user can have put it there, nor what stands beside it and is opened with it. Otherwise it is
/// told that it is not taken.
pub(super) fn trusted(library: PathBuf, home: &Path) -> Option<PathBuf> {
    let is_part = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc"));
    let parts = library.parent()?.read_dir().ok()?.flatten().map(|entry| entry.path()).filter(is_part);
    let checked: Result<Vec<PathBuf>> = parts.map(|part| trust::check_file(&part, home)).collect();
    checked.inspect_err(|error| trust::refuse("NVRTC is not taken from there", error)).ok()?;
    Some(library)
}

/// The library that `STENCILC_NVRTC` names. Naming the wrong thing is an error, lest another copy be used unnoticed.
pub(super) fn named_library(named: &Path) -> Result<PathBuf> {
    if named.is_file() {
        return Ok(named.to_path_buf());
    }
    library_below(named, 4).ok_or_else(|| {
        Error::input(format!("{VARIABLE} is '{}', where there is no libnvrtc.so", named.display()))
            .help("set it to the library or to the folder that holds it, or unset it")
    })
}

/// The version in the name of an NVRTC library: `libnvrtc.so.13` gives `[13]`, any other file nothing.
pub(super) fn library_version(name: &str) -> Option<Vec<u32>> {
    let rest = name.strip_prefix("libnvrtc.so")?;
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect()
}

/// The newest NVRTC of a folder.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let entries = folder.read_dir().ok()?.flatten();
    let libraries = entries.filter_map(|entry| Some((library_version(entry.file_name().to_str()?)?, entry.path())));
    libraries.filter(|(_, path)| path.is_file()).max().map(|(_, path)| path)
}

/// The newest NVRTC of a folder, or else of the folders below it down to `depth`.
pub(super) fn library_below(folder: &Path, depth: usize) -> Option<PathBuf> {
    if let Some(library) = library_in(folder) {
        return Some(library);
    }
    let mut folders: Vec<PathBuf> = match depth {
        0 => return None,
        _ => folder.read_dir().ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect(),
    };
    folders.sort();
    // From the back: `cu13` and `cuda_nvrtc` of two wheels in one folder are answered with the same one every time.
    folders.iter().rev().find_map(|folder| library_below(folder, depth - 1))
}

/// The folders where the dynamic loader looks: `LD_LIBRARY_PATH`, those that its cache names, and the usual ones.
fn loader_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = match std::env::var_os("LD_LIBRARY_PATH") {
        Some(paths) => std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => Vec::new(),
    };
    // The cache ends with the paths of the libraries, each closed by a zero byte: its format need not be known.
    if let Ok(cache) = std::fs::read("/etc/ld.so.cache") {
        let paths = cache.split(|&byte| byte == 0).filter_map(|path| std::str::from_utf8(path).ok()).map(Path::new);
        let libraries = paths.filter(|path| {
            path.is_absolute() && path.file_name().and_then(|name| library_version(name.to_str()?)).is_some()
        });
        folders.extend(libraries.filter_map(Path::parent).map(Path::to_path_buf));
    }
    folders.extend(
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"].map(PathBuf::from),
    );
    folders
}

/// The CUDA toolkits of this machine: those that the environment names, then those below `/usr/local`, the one that
/// the administrator chose first and then from the newest.
pub(crate) fn toolkits() -> Vec<PathBuf> {
    let variables = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    let mut toolkits: Vec<PathBuf> = variables.filter(|value| !value.is_empty()).map(PathBuf::from).collect();
    let version = |name: &str| -> Option<Vec<u32>> {
        match name.strip_prefix("cuda")? {
            "" => Some(vec![u32::MAX]),
            rest => rest.strip_prefix('-')?.split('.').map(|part| part.parse().ok()).collect(),
        }
    };
    let entries = Path::new("/usr/local").read_dir().into_iter().flatten().flatten();
    let mut installed: Vec<(Vec<u32>, PathBuf)> =
        entries.filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path()))).collect();
    installed.sort();
    toolkits.extend(installed.into_iter().rev().map(|(_, path)| path));
    toolkits
}

/// A hash of a library's size, start and end.
fn identify(path: &Path) -> io::Result<[u8; 32]> {
    const SAMPLE: u64 = 64 << 10;
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut sample = size.to_le_bytes().to_vec();
    (&mut file).take(SAMPLE).read_to_end(&mut sample)?;
    file.seek(SeekFrom::Start(size.saturating_sub(SAMPLE)))?;
    file.take(SAMPLE).read_to_end(&mut sample)?;
    Ok(*blake3::hash(&sample).as_bytes())
}
