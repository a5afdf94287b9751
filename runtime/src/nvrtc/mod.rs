//! Turns CUDA C++ into images for the GPU with NVRTC, NVIDIA's compiler in a library. No GPU is needed.
//!
//! NVRTC is opened at run time and by its full path, so that this program starts without it and everyone can tell
//! which copy was used. Only the calls that are needed are looked up, and a library that lacks one is an
//! error like any other.
//!
//! [`locate`] only looks at file names, [`find`] opens the library, which is large. A run that finds its kernels
//! in [`crate::cache`] never gets beyond the first.

mod arch;
mod library;
mod resources;
mod search;
#[cfg(test)]
mod tests;
mod together;

pub use arch::Arch;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use stencilc_compiler::gpu;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

pub use resources::Resources;
pub(crate) use search::further;
pub use search::{Located, VARIABLE, home, locate, look_in};
pub(crate) use search::{package, toolkits};
pub use together::{compile_together, name_among};

use crate::error::reason;
use crate::{Error, Result, threads};
use library::{Calls, Program, status};
use resources::read_resources;
use search::remedy;

/// The front end recurses over expressions, and on a stack of the usual 2 to 8 MiB a long generated sum ends the
/// process. The memory is only reserved; what is not touched costs nothing.
const STACK: usize = 256 << 20;

/// Static shared memory of a block, in bytes, on every architecture.
const STATIC_SHARED: u32 = gpu::SHARED as u32;

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
    options.push(NO_CACHE.to_owned());
    Ok(options)
}

/// The last option keeps NVRTC from a cache of its own, which newer ones share with the driver: of a kernel that it finds
/// there it says nothing, so that registers and spills would be unknown.
const NO_CACHE: &str = "--no-cache";

/// The number of an architecture, without and with the letter of a variant: `sm_90a` is 90 and `90a`.
fn arch_number(arch: &str) -> Result<(i32, &str)> {
    arch::number(arch).ok_or_else(|| {
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
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| refuse(reason(&error)))?;
        // SAFETY: the library lives as long as the calls, in the same struct.
        let calls = unsafe { Calls::load(&library) }.map_err(|symbol| refuse(format!("it lacks {symbol}")))?;

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
            let start = || thread.spawn_scoped(scope, || self.compile_here(&source, &file, &options, kind));
            let work = threads::room(STACK).and_then(|()| start()).map_err(|error| {
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

        let compile = |options: &[*const c_char]| {
            let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
            // SAFETY: the program was created above, and there are `count` options, each with a zero byte at its end.
            unsafe { (self.calls.compile)(program.handle, count, options.as_ptr()) }
        };
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let compiled = match (compile(&pointers), pointers.split_last()) {
            // It is older than the last option, and keeps nothing.
            (status::INVALID_OPTION, Some((_, older))) => compile(older),
            (compiled, _) => compiled,
        };

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
