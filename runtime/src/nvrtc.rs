//! Turns CUDA C++ into images for the GPU with NVRTC, NVIDIA's compiler in a library. No GPU is needed.
//!
//! NVRTC is opened at run time and by its full path, so that this program starts without it and everyone can tell
//! which copy was used. Only the calls that are needed are looked up, and a library that lacks one is an
//! error like any other.
//!
//! [`locate`] only looks at file names, [`find`] opens the library, which is large. A run that finds its kernels
//! in [`crate::cache`] never gets beyond the first.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The variable that names the NVRTC to use: the library itself or its folder.
pub const VARIABLE: &str = "STENCILC_NVRTC";

/// The front end recurses over expressions, and on a stack of the usual 2 to 8 MiB a long generated sum ends the
/// process. The memory is only reserved; what is not touched costs nothing.
const STACK: usize = 256 << 20;

/// Static shared memory of a block, in bytes, on every architecture.
const STATIC_SHARED: u32 = 48 << 10;

/// What the compiler is to produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Assembly text for a virtual architecture, which the driver translates when it is loaded.
    Ptx,
    /// Machine code for one architecture.
    Cubin,
}

impl Kind {
    /// The name that file names and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ptx => "ptx",
            Kind::Cubin => "cubin",
        }
    }
}

/// What the compiler made of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// PTX text that ends with a zero byte, or the bytes of a cubin: what [`crate::cuda::Gpu::load`] takes.
    pub image: Vec<u8>,
    /// What each kernel takes of the GPU, in the compiler's order; empty for PTX, where nobody knows yet.
    pub resources: Vec<Resources>,
    /// What the compiler said.
    pub log: String,
}

/// What one kernel takes of the GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Name of the kernel in the image.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes a thread stores for want of registers.
    pub spill_stores: u32,
    /// Bytes a thread loads for want of registers.
    pub spill_loads: u32,
    /// Bytes of a thread's stack, calls included.
    pub stack: u32,
    /// Bytes of a block's static shared memory.
    pub shared: u32,
    /// Bytes of constant memory, over all banks.
    pub constant: u32,
}

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

/// Finds NVRTC without opening it; the answer is that of the first call.
///
/// The order is: `STENCILC_NVRTC`, the loader's folders, the CUDA toolkits, and the folder `nvrtc` of [`home`].
///
/// # Errors
///
/// When there is none, or when `STENCILC_NVRTC` names none.
pub fn locate() -> Result<&'static Located> {
    static LOCATED: OnceLock<Result<Located>> = OnceLock::new();
    let located = LOCATED.get_or_init(|| {
        let path = match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(named) => named_library(Path::new(&named))?,
            None => loader_folders()
                .into_iter()
                .chain(toolkits().iter().flat_map(|toolkit| {
                    [toolkit.join("lib64"), toolkit.join("targets/x86_64-linux/lib"), toolkit.join("lib")]
                }))
                .find_map(|folder| library_in(&folder))
                .or_else(|| library_below(&home()?.join("nvrtc"), 4))
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
pub(crate) fn remedy() -> String {
    let target = match home() {
        Some(home) => format!(" --target {}", home.join("nvrtc").display()),
        None => String::new(),
    };
    format!(
        "`pip install{target} nvidia-cuda-nvrtc` or a CUDA toolkit brings it, {VARIABLE} names a copy elsewhere, and \
         `stencilc doctor` says what is found"
    )
}

/// The library that `STENCILC_NVRTC` names. Naming the wrong thing is an error, lest another copy be used unnoticed.
fn named_library(named: &Path) -> Result<PathBuf> {
    if named.is_file() {
        return Ok(named.to_path_buf());
    }
    library_below(named, 4).ok_or_else(|| {
        Error::input(format!("{VARIABLE} is '{}', where there is no libnvrtc.so", named.display()))
            .help("set it to the library or to the folder that holds it, or unset it")
    })
}

/// The version in the name of an NVRTC library: `libnvrtc.so.13` gives `[13]`, any other file nothing.
fn library_version(name: &str) -> Option<Vec<u32>> {
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
fn library_below(folder: &Path, depth: usize) -> Option<PathBuf> {
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

type Program = *mut c_void;

/// A table of C functions that return a status: the fields, and a loader that looks each up.
macro_rules! calls {
    ($($field:ident: $symbol:literal ($($argument:ty),*);)*) => {
        struct Calls {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Calls {
            /// Looks up every call.
            ///
            /// # Safety
            ///
            /// The library has to be NVRTC, and the calls must not outlive it.
            unsafe fn load(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the types are those of `nvrtc.h`, which have not changed since they came to be.
                unsafe { Ok(Self { $($field: *library.get($symbol)?,)* }) }
            }
        }
    };
}

calls! {
    version: "nvrtcVersion"(*mut c_int, *mut c_int);
    count_archs: "nvrtcGetNumSupportedArchs"(*mut c_int);
    archs: "nvrtcGetSupportedArchs"(*mut c_int);
    create: "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    destroy: "nvrtcDestroyProgram"(*mut Program);
    compile: "nvrtcCompileProgram"(Program, c_int, *const *const c_char);
    log_size: "nvrtcGetProgramLogSize"(Program, *mut usize);
    log: "nvrtcGetProgramLog"(Program, *mut c_char);
    ptx_size: "nvrtcGetPTXSize"(Program, *mut usize);
    ptx: "nvrtcGetPTX"(Program, *mut c_char);
    cubin_size: "nvrtcGetCUBINSize"(Program, *mut usize);
    cubin: "nvrtcGetCUBIN"(Program, *mut c_char);
}

/// The statuses of `nvrtcResult` that are told apart.
mod status {
    use std::ffi::c_int;

    pub const SUCCESS: c_int = 0;
    pub const OUT_OF_MEMORY: c_int = 1;
    pub const COMPILATION: c_int = 6;
    pub const BUILTINS: c_int = 7;
}

/// An open NVRTC. It may be used from many threads at once.
pub struct Nvrtc {
    /// CUDA version: (13, 0).
    pub version: (i32, i32),
    /// The library's file.
    pub path: PathBuf,
    calls: Calls,
    /// The architectures that machine code can be made for, as numbers: 90 for `sm_90`.
    archs: Vec<i32>,
    /// Kept open, as `calls` points into it. NVRTC itself opens the second by its bare name, which the loader answers
    /// with the copy that is open already.
    _libraries: (Library, Option<Library>),
}

/// Opens NVRTC; the answer is that of the first call.
///
/// # Errors
///
/// When there is none ([`locate`]), or when it cannot be opened or is too old to have every call.
pub fn find() -> Result<&'static Nvrtc> {
    static FOUND: OnceLock<Result<Nvrtc>> = OnceLock::new();
    FOUND.get_or_init(|| Nvrtc::open(&locate()?.path)).as_ref().map_err(Error::clone)
}

/// Compiles CUDA C++ with the NVRTC of [`find`].
///
/// `name` is the file name in messages and `arch` the GPU architecture, such as `sm_90`; for PTX its virtual namesake
/// is taken.
///
/// # Errors
///
/// When there is no NVRTC, when it does not know the architecture, when a kernel wants more shared memory than there
/// is, and when it refuses the source, which is then a mistake of whoever wrote that.
pub fn compile(source: &str, name: &str, arch: &str, kind: Kind) -> Result<Compiled> {
    find()?.compile(source, name, arch, kind)
}

/// The options that a source is compiled with.
///
/// Multiplications and additions are never contracted: a stencil's numbers do not depend on where it runs, and `fma`
/// stands in the source where it is wanted.
///
/// # Errors
///
/// When `arch` is not spelled like an architecture.
pub fn options(arch: &str, kind: Kind) -> Result<Vec<String>> {
    let number = arch_number(arch)?.1;
    let mut options = vec!["--std=c++17".to_owned(), "--fmad=false".to_owned()];
    match kind {
        Kind::Ptx => options.push(format!("--gpu-architecture=compute_{number}")),
        Kind::Cubin => {
            options.push(format!("--gpu-architecture=sm_{number}"));
            options.push("--ptxas-options=-v".to_owned());
        }
    }
    Ok(options)
}

/// The number of an architecture, without and with the letter of a variant: `sm_90a` is 90 and `90a`.
fn arch_number(arch: &str) -> Result<(i32, &str)> {
    let whole = arch.strip_prefix("sm_").unwrap_or_default();
    let digits = whole.strip_suffix(['a', 'f']).unwrap_or(whole);
    // `parse` would take a sign.
    let number = if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    number.map(|number| (number, whole)).ok_or_else(|| {
        Error::call(format!("'{arch}' is not a GPU architecture")).help("architectures are spelled like sm_90")
    })
}

impl Nvrtc {
    /// Opens the library at `path`.
    fn open(path: &Path) -> Result<Self> {
        let refuse =
            |why: String| Error::input(format!("NVRTC at {} cannot be used: {why}", path.display())).help(remedy());
        // SAFETY: opening runs the library's initialisers; it is NVIDIA's, or what the user named in its place.
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| refuse(error.to_string()))?;
        // SAFETY: the library lives as long as the calls, in the same struct.
        let calls = unsafe { Calls::load(&library) }.map_err(|error| refuse(error.to_string()))?;

        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: both write through pointers to integers that are there.
        let answers = unsafe { ((calls.version)(&mut major, &mut minor), (calls.count_archs)(&mut count)) };
        if answers != (status::SUCCESS, status::SUCCESS) {
            return Err(refuse("it does not tell its version".to_owned()));
        }
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the list has room for as many numbers as the library announced.
        if unsafe { (calls.archs)(archs.as_mut_ptr()) } != status::SUCCESS {
            return Err(refuse("it does not tell its architectures".to_owned()));
        }

        let builtins = path.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
        // SAFETY: as above. When it is missing the loader's own search may still find it; compiling tells.
        let builtins = unsafe { Library::open(Some(builtins), RTLD_NOW | RTLD_GLOBAL) }.ok();
        Ok(Self { version: (major, minor), path: path.to_path_buf(), calls, archs, _libraries: (library, builtins) })
    }

    /// The architectures that this NVRTC compiles for: `sm_90` and so on.
    pub fn architectures(&self) -> Vec<String> {
        self.archs.iter().map(|arch| format!("sm_{arch}")).collect()
    }

    /// Whether this NVRTC compiles for an architecture.
    ///
    /// # Errors
    ///
    /// When it does not; the message lists those it knows.
    pub fn check_arch(&self, arch: &str) -> Result<()> {
        if self.archs.contains(&arch_number(arch)?.0) {
            return Ok(());
        }
        let (major, minor) = self.version;
        let mut error =
            Error::input(format!("NVRTC {major}.{minor} at {} does not compile for {arch}", self.path.display()));
        error.help = Some(format!("it knows {}; another release may know more", self.architectures().join(", ")));
        Err(error)
    }

    /// Compiles CUDA C++; see [`compile`].
    ///
    /// # Errors
    ///
    /// As [`compile`].
    pub fn compile(&self, source: &str, name: &str, arch: &str, kind: Kind) -> Result<Compiled> {
        self.check_arch(arch)?;
        let text = |what: &str, text: &str| {
            CString::new(text).map_err(|_| Error::input(format!("the {what} of the CUDA code contains a zero byte")))
        };
        let (source, file) = (text("text", source)?, text("name", name)?);
        let options: Vec<CString> =
            options(arch, kind)?.iter().map(|option| text("options", option)).collect::<Result<_>>()?;

        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("nvrtc".to_owned()).stack_size(STACK);
            let work = thread.spawn_scoped(scope, || self.compile_here(&source, &file, &options, kind));
            let work = work.map_err(|error| {
                Error::input(format!("no thread for the CUDA compiler: {error}"))
                    .help("raise the limits on processes and on memory (ulimit -u, ulimit -v)")
            })?;
            work.join().unwrap_or_else(|_| Err(Error::check("the CUDA compiler's thread ended early")))
        })
    }

    /// Compiles on this thread's stack.
    fn compile_here(&self, source: &CStr, file: &CStr, options: &[CString], kind: Kind) -> Result<Compiled> {
        let mut program = OpenProgram { nvrtc: self, handle: std::ptr::null_mut() };
        // SAFETY: both texts end with a zero byte and live longer than the program; there are no headers.
        let created = unsafe {
            (self.calls.create)(
                &mut program.handle,
                source.as_ptr(),
                file.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        self.succeed(created, file)?;

        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program was created above, and there are `count` options, each with a zero byte at its end.
        let compiled = unsafe { (self.calls.compile)(program.handle, count, pointers.as_ptr()) };

        let mut log = program.bytes(self.calls.log_size, self.calls.log, file)?;
        log.truncate(log.iter().position(|&byte| byte == 0).unwrap_or(log.len()));
        let log = String::from_utf8_lossy(&log).into_owned();
        if compiled != status::SUCCESS {
            return Err(self.refusal(compiled, file, &log));
        }
        Ok(match kind {
            Kind::Ptx => Compiled {
                image: program.bytes(self.calls.ptx_size, self.calls.ptx, file)?,
                resources: Vec::new(),
                log,
            },
            Kind::Cubin => Compiled {
                image: program.bytes(self.calls.cubin_size, self.calls.cubin, file)?,
                resources: read_resources(&log),
                log,
            },
        })
    }

    /// An error unless a call succeeded.
    fn succeed(&self, answer: c_int, file: &CStr) -> Result<()> {
        match answer {
            status::SUCCESS => Ok(()),
            _ => Err(self.refusal(answer, file, "")),
        }
    }

    /// Why a call failed.
    fn refusal(&self, answer: c_int, file: &CStr, log: &str) -> Error {
        let (file, (major, minor)) = (file.to_string_lossy(), self.version);
        match answer {
            status::OUT_OF_MEMORY => Error::input(format!("not enough memory to compile {file}")),
            status::BUILTINS => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                Error::input(format!(
                    "NVRTC lacks libnvrtc-builtins.so.{major}.{minor} beside it in {}",
                    folder.display()
                ))
                .help(remedy())
            }
            // The assembler leaves no word about too much shared memory, only the size.
            status::COMPILATION if !log.contains("error") => {
                match read_resources(log).into_iter().find(|kernel| kernel.shared > STATIC_SHARED) {
                    Some(Resources { kernel, shared, .. }) => Error::input(format!(
                        "kernel {kernel} wants {shared} bytes of shared memory a block, and {STATIC_SHARED} is the most"
                    ))
                    .help("choose a smaller --block"),
                    None => refused_source(&file, log),
                }
            }
            status::COMPILATION => refused_source(&file, log),
            answer => {
                Error::input(format!("NVRTC {major}.{minor} failed on {file} with status {answer}{}", indented(log)))
                    .help("`stencilc doctor` says which NVRTC this is")
            }
        }
    }
}

/// NVRTC did not take a source. Users do not write CUDA, so it is no fault of theirs.
fn refused_source(file: &str, log: &str) -> Error {
    Error::check(format!("the CUDA code generated as {file} does not compile{}", indented(log)))
        .help("this is a mistake in stencilc: please report it with the stencil and the options")
}

/// The first lines of a log, to go under a message.
fn indented(log: &str) -> String {
    const LINES: usize = 12;
    let lines = || log.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("ptxas info"));
    let mut text: String = lines().take(LINES).map(|line| format!("\n    {line}")).collect();
    let more = lines().count().saturating_sub(LINES);
    if more > 0 {
        text.push_str(&format!("\n    and {more} more lines"));
    }
    text
}

/// A program of NVRTC, destroyed on every way out.
struct OpenProgram<'a> {
    nvrtc: &'a Nvrtc,
    handle: Program,
}

impl OpenProgram<'_> {
    /// The bytes that a pair of calls yields: one tells how many, the other writes them.
    fn bytes(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        read: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
        file: &CStr,
    ) -> Result<Vec<u8>> {
        let mut count = 0;
        // SAFETY: the program is open, and the size goes into an integer that is there.
        self.nvrtc.succeed(unsafe { size(self.handle, &mut count) }, file)?;
        let mut bytes = vec![0; count];
        // SAFETY: there is room for as many bytes as were announced.
        self.nvrtc.succeed(unsafe { read(self.handle, bytes.as_mut_ptr().cast()) }, file)?;
        Ok(bytes)
    }
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the program was created and is not used again. A failure to free has no remedy.
            unsafe { (self.nvrtc.calls.destroy)(&mut self.handle) };
        }
    }
}

/// Reads what each kernel takes from the words of the assembler, `ptxas -v`:
///
/// ```text
/// ptxas info    : Compiling entry function 'lap' for 'sm_90'
/// ptxas info    : Function properties for lap
/// ptxas         .     880 bytes stack frame, 2000 bytes spill stores, 2000 bytes spill loads
/// ptxas info    : Used 32 registers, used 1 barriers, 880 bytes cumulative stack size, 1200 bytes smem
/// ```
///
/// The properties of functions that a kernel calls stand between the lines of the kernels and are passed over.
fn read_resources(log: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    let mut described = "";
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Resources { kernel, ..Resources::default() });
        } else if let Some((_, function)) = line.split_once("Function properties for ") {
            described = function.trim();
        } else if let Some(kernel) = kernels.last_mut() {
            let of_kernel = described == kernel.kernel;
            for part in line.rsplit(": ").next().unwrap_or_default().split(',') {
                let Some((number, what)) = amount(part) else { continue };
                match what {
                    "registers" => kernel.registers = number,
                    "bytes stack frame" if of_kernel => kernel.stack = kernel.stack.max(number),
                    "bytes cumulative stack size" => kernel.stack = kernel.stack.max(number),
                    "bytes spill stores" if of_kernel => kernel.spill_stores = number,
                    "bytes spill loads" if of_kernel => kernel.spill_loads = number,
                    "bytes smem" => kernel.shared = number,
                    _ if what.starts_with("bytes cmem") => kernel.constant = kernel.constant.saturating_add(number),
                    _ => {}
                }
            }
        }
    }
    kernels
}

/// The first number of a phrase and what is said of it: `Used 32 registers` gives 32 and `registers`.
fn amount(phrase: &str) -> Option<(u32, &str)> {
    let digits = phrase.find(|letter: char| letter.is_ascii_digit())?;
    let (number, what) = phrase[digits..].split_once(' ')?;
    Some((number.parse().ok()?, what.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;

    /// The NVRTC of this machine; tests of it are skipped where there is none.
    fn nvrtc() -> Option<&'static Nvrtc> {
        find().inspect_err(|_| println!("skipped: no NVRTC")).ok()
    }

    const SCALE: &str = r#"extern "C" __global__ void scale(double* a, double f) {
        __shared__ double t[128];
        t[threadIdx.x] = a[threadIdx.x];
        __syncthreads();
        a[threadIdx.x] = f * t[127 - threadIdx.x] + 1.0;
    }"#;

    #[test]
    fn a_cubin_knows_its_resources() {
        let Some(nvrtc) = nvrtc() else { return };
        let compiled = nvrtc.compile(SCALE, "scale.cu", "sm_90", Kind::Cubin).unwrap();
        assert!(compiled.image.starts_with(b"\x7fELF"));
        let [kernel] = &compiled.resources[..] else { panic!("one kernel: {:?}", compiled.resources) };
        assert_eq!((kernel.kernel.as_str(), kernel.shared, kernel.spill_stores), ("scale", 1024, 0));
        assert!(kernel.registers > 0);
    }

    #[test]
    fn nothing_is_contracted() {
        let Some(nvrtc) = nvrtc() else { return };
        let compiled = nvrtc.compile(SCALE, "scale.cu", "sm_90", Kind::Ptx).unwrap();
        let text = CStr::from_bytes_with_nul(&compiled.image).unwrap().to_str().unwrap();
        assert!(text.contains(".target sm_90") && !text.contains("fma."), "{text}");
        assert!(compiled.resources.is_empty());
    }

    #[test]
    fn refusals_are_errors() {
        let Some(nvrtc) = nvrtc() else { return };
        let fault = |source, arch| {
            let error = nvrtc.compile(source, "k.cu", arch, Kind::Cubin).unwrap_err();
            (error.fault, error.to_string())
        };
        let (broken, text) = fault("extern \"C\" __global__ void k(float* a) { a[0] = zz; }", "sm_90");
        assert_eq!(broken, Fault::Check);
        assert!(text.contains("k.cu(1): error: identifier \"zz\" is undefined"), "{text}");

        let (arch, text) = fault(SCALE, "sm_20");
        assert_eq!(arch, Fault::Input);
        assert!(text.contains("sm_20") && text.contains("sm_90,"), "{text}");
        assert_eq!(fault(SCALE, "sm_").0, Fault::Call);
        assert_eq!(fault(SCALE, "sm_+90").0, Fault::Call);
        assert_eq!(fault(SCALE, "gfx90a").0, Fault::Call);
        assert!(fault("a\0b", "sm_90").1.contains("zero byte"));

        let greedy = SCALE.replace("128", "20000");
        assert!(fault(&greedy, "sm_90").1.contains("wants 160000 bytes of shared memory"));
    }

    #[test]
    fn long_expressions_do_not_overflow_the_stack() {
        let Some(nvrtc) = nvrtc() else { return };
        let sum = format!("{}a[1]{}", "(".repeat(10_000), " + 1.0f)".repeat(10_000));
        let source = format!("extern \"C\" __global__ void k(float* a) {{ a[0] = {sum}; }}");
        nvrtc.compile(&source, "k.cu", "sm_90", Kind::Cubin).unwrap();
    }

    #[test]
    fn many_threads_compile_at_once() {
        let Some(nvrtc) = nvrtc() else { return };
        std::thread::scope(|scope| {
            let compile = || nvrtc.compile(SCALE, "scale.cu", "sm_80", Kind::Cubin).unwrap().image;
            let images: Vec<_> = (0..4).map(|_| scope.spawn(compile)).collect();
            let images: Vec<Vec<u8>> = images.into_iter().map(|image| image.join().unwrap()).collect();
            assert!(images.iter().all(|image| *image == images[0]));
        });
    }

    #[test]
    fn resources_are_read_from_the_log() {
        let log = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'c' for 'sm_90'
ptxas info    : Function properties for c
ptxas         .     880 bytes stack frame, 2000 bytes spill stores, 1996 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 912 bytes cumulative stack size, 1200 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 79.961 ms
ptxas info    : Function properties for _Z1gf
ptxas         .     64 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'd' for 'sm_90'
ptxas info    : Used 8 registers, used 0 barriers";
        let c = Resources {
            kernel: "c".to_owned(),
            registers: 32,
            spill_stores: 2000,
            spill_loads: 1996,
            stack: 912,
            shared: 1200,
            constant: 368,
        };
        let d = Resources { kernel: "d".to_owned(), registers: 8, ..Resources::default() };
        assert_eq!(read_resources(log), [c, d]);
    }

    #[test]
    fn libraries_are_told_by_their_names() {
        assert_eq!(library_version("libnvrtc.so"), Some(vec![]));
        assert_eq!(library_version("libnvrtc.so.13.0.88"), Some(vec![13, 0, 88]));
        for other in ["libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.so.old", "libnvrtc.sox", ""] {
            assert_eq!(library_version(other), None, "{other}");
        }
    }

    #[test]
    fn the_newest_library_of_an_unpacked_wheel_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let lib = folder.path().join("nvidia/cu13/lib");
        std::fs::create_dir_all(&lib).unwrap();
        assert_eq!(library_below(folder.path(), 4), None);
        for name in ["libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.13", "libnvrtc.alt.so.14"] {
            std::fs::write(lib.join(name), "").unwrap();
        }
        assert_eq!(library_below(folder.path(), 4), Some(lib.join("libnvrtc.so.13")));
        assert_eq!(library_below(&lib, 0), Some(lib.join("libnvrtc.so.13")));
        assert_eq!(library_below(folder.path(), 2), None);
    }

    #[test]
    fn a_file_that_is_no_library_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.13");
        std::fs::write(&path, "not a library").unwrap();
        let Err(error) = Nvrtc::open(&path) else { panic!("text was opened as a library") };
        assert!(error.message.contains("cannot be used"));
        assert!(named_library(&folder.path().join("nothing")).is_err());
        assert_eq!(named_library(folder.path()).unwrap(), path);
    }
}
