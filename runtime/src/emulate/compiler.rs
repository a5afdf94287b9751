//! The machine's C++ compiler, and what it is given.

use super::{Kernel, load};
use crate::files::Scratch;
use crate::{Error, Result, cache, doctor};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use stencilc_compiler::{cuda, device};

/// The variable that names the C++ compiler, possibly with options.
pub const VARIABLE: &str = "CXX";

/// What is tried where the variable is not set.
const NAMES: [&str; 3] = ["c++", "g++", "clang++"];

/// Without this GCC makes `0.0 - double(n)` to `-double(n)`, which is -0 where n is 0, unless a function makes the real number of the whole one
/// ([`converting`]). With it, it makes few vectors.
const ROUNDING: &str = "-frounding-math";

/// A kernel whose real numbers are made of whole ones by functions.
fn converting(text: &str) -> String {
    let mut converting = String::new();
    let mut rest = text;
    while let Some((at, word)) = ["double(", "float("].iter().filter_map(|word| Some((rest.find(word)?, word))).min() {
        let before = &rest[..at];
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        converting.push_str(before);
        converting.push_str(match (is_word, *word) {
            (true, "double(") => "converted<double>(",
            (true, _) => "converted<float>(",
            (false, word) => word,
        });
        rest = &rest[at + word.len()..];
    }
    converting.push_str(rest);
    converting
}

/// What kernels know of the emulated GPU, in the order in which its parts need each other.
const HEADERS: [(&str, &str); 5] = [
    ("machine.h", MACHINE),
    ("cpu.h", device::CPU),
    ("entry.h", include_str!("entry.h")),
    ("cuda.h", include_str!("cuda.h")),
    ("device.h", device::HEADER),
];

/// The emulated GPU itself.
const PARTS: [(&str, &str); 4] = [
    ("machine.h", MACHINE),
    ("machine.cpp", include_str!("machine.cpp")),
    ("waits.cpp", include_str!("waits.cpp")),
    ("scheduler.cpp", include_str!("scheduler.cpp")),
];

const MACHINE: &str = include_str!("machine.h");

/// A C++ compiler of this machine.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The program's file.
    pub program: PathBuf,
    /// The first line that it says of its version.
    pub version: String,
    /// Options that it is always given.
    pub(super) options: Vec<String>,
    /// What [`VARIABLE`] says, if it names this one.
    pub(super) given: Option<String>,
}

/// A kernel to be compiled: its name, and a text that defines it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name of the `extern "C" __global__` function.
    pub name: &'a str,
    /// CUDA C++.
    pub text: &'a str,
}

impl<'a> From<&'a cuda::Kernel> for Source<'a> {
    fn from(kernel: &'a cuda::Kernel) -> Self {
        Self { name: &kernel.name, text: &kernel.text }
    }
}

/// How kernels are compiled.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How much the compiler optimises, 0 to 3. With 0 it is quickest to compile, with 1 kernels run about five times
    /// as fast.
    pub optimise: u8,
    /// Whether AddressSanitizer and UndefinedBehaviorSanitizer watch. They end the process where they find something, and
    /// the process has to have AddressSanitizer's library loaded before all others (`LD_PRELOAD`).
    pub sanitise: bool,
    /// Whether a warning is an error.
    pub strict: bool,
    /// Whether kernels are for this very processor, and as fast as it can: launches are shared among its cores.
    pub native: bool,
    /// Whether fibres are those of the C library, as they are on processors that the emulator has none of its own for.
    pub ucontext: bool,
}

impl Settings {
    /// What takes the least time, that of compiling included, where kernels compute so many cells in all. Measured with laplap and hdiff: a
    /// kernel is compiled 0.2 to 0.3 s sooner with each level less, and a million cells take 0.07 s longer without any.
    pub fn suiting(cells: u64) -> Self {
        let optimise = match cells {
            ..1_000_000 => 0,
            1_000_000..8_000_000 => 1,
            8_000_000.. => 2,
        };
        Self { optimise, ..Self::default() }
    }

    /// How the device itself is compiled for such kernels: always well, since it runs between any two of their threads, and is compiled once.
    pub(crate) fn of_machine(&self) -> Self {
        Self { optimise: 2, ..self.clone() }
    }

    /// As fast as this processor can.
    pub fn native() -> Self {
        Self { optimise: 3, native: true, ..Self::default() }
    }
}

impl Compiler {
    /// Finds the machine's C++ compiler: `$CXX`, or else c++, g++ or clang++.
    ///
    /// # Errors
    /// There is none that answers.
    pub fn find() -> Result<Self> {
        let remedy = "install one: `apt install g++`, `dnf install gcc-c++`; the variable CXX names another";
        if let Some(given) = std::env::var(VARIABLE).ok().filter(|given| !given.trim().is_empty()) {
            let mut words = given.split_whitespace().map(str::to_owned);
            let name = words.next().unwrap_or_default();
            let (program, version) = doctor::program(&name).ok_or_else(|| {
                Error::input(format!("`{name}`, which the variable {VARIABLE} names, is no C++ compiler")).help(remedy)
            })?;
            return Ok(Self { program, version, options: words.collect(), given: Some(given) });
        }
        let (program, version) = NAMES
            .iter()
            .find_map(|name| doctor::program(name))
            .ok_or_else(|| Error::input("there is no C++ compiler on this machine").help(remedy))?;
        Ok(Self { program, version, options: Vec::new(), given: None })
    }

    /// Compiles kernels into one library and loads it. The kernels are in the order of the sources.
    ///
    /// # Errors
    /// As [`Compiler::compile`] and [`load`].
    pub fn build(&self, sources: &[Source], settings: &Settings) -> Result<Vec<Kernel>> {
        load(&self.compile(sources, settings)?, sources)
    }

    /// Compiles kernels into one library: its bytes.
    ///
    /// # Errors
    /// The compiler does not take a text, or cannot work: as on a full disk.
    pub fn compile(&self, sources: &[Source], settings: &Settings) -> Result<Vec<u8>> {
        let machine = cache::machine_cached(self, settings)?;
        let folder = Scratch::new()?;
        let object = folder.path().join("machine.o");
        std::fs::write(&object, &machine[..]).map_err(|error| cannot("the kernels cannot be written", &error))?;
        let mut options = Vec::new();
        if !settings.sanitise {
            // Kernels and the device need none of what compilers link to every library, which takes longer than half of all linking: neither
            // what runs initialisers, for there are none, nor C++'s library. The C library comes with that of mathematics.
            options.push("-nostdlib".as_ref());
        }
        options.extend([object.as_os_str(), "-lm".as_ref(), "-lgcc".as_ref()]);
        self.made(&folder, &text(sources, settings), settings, &options)
    }

    /// Compiles the device itself, which is linked to all kernels: the bytes of an object file.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_machine(&self, settings: &Settings) -> Result<Vec<u8>> {
        self.made(&Scratch::new()?, &machine_text(), settings, &["-c".as_ref()])
    }

    /// What the compiler makes of a text in a folder, with more options after those of the settings.
    fn made(&self, folder: &Scratch, text: &str, settings: &Settings, options: &[&OsStr]) -> Result<Vec<u8>> {
        let (file, made) = (folder.path().join("kernels.cpp"), folder.path().join("kernels.so"));
        std::fs::write(&file, text).map_err(|error| cannot("the kernels cannot be written", &error))?;
        let mut command = Command::new(&self.program);
        command.args(self.arguments(settings)).arg("-o").arg(&made).arg(&file).args(options);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        // Its own temporary files go with the folder, however both end.
        command.env("TMPDIR", folder.path());
        // What is preloaded for the kernels is not for the compiler.
        let output = command.env_remove("LD_PRELOAD").output();
        let output = output.map_err(|error| cannot(&format!("{} cannot be run", self.program.display()), &error))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(self.failure("the kernels", &said, output.status));
        }
        std::fs::read(&made)
            .map_err(|error| self.is_none().unwrap_or_else(|| cannot("the compiled kernels cannot be read", &error)))
    }

    /// That the variable names what compiles nothing at all, be it for the options that stand there: found out once something has failed.
    fn is_none(&self) -> Option<Error> {
        let given = self.given.as_deref()?;
        let folder = Scratch::new().ok()?;
        let [file, made] = ["nothing.cpp", "nothing.o"].map(|name| folder.path().join(name));
        std::fs::write(&file, "int stencilc_nothing() { return 0; }\n").ok()?;
        let mut command = Command::new(&self.program);
        command.args(&self.options).arg("-c").arg("-o").arg(&made).arg(&file);
        command.env("LC_ALL", "C").env("TMPDIR", folder.path()).env_remove("LD_PRELOAD").stdin(Stdio::null());
        let output = command.output().ok()?;
        if output.status.success() && made.is_file() {
            return None;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().map_or_else(|| format!("{}", output.status), str::to_owned);
        let message = format!("`{given}`, which the variable {VARIABLE} says, compiles no C++: {said}");
        Some(
            Error::input(message).help(
                "give a C++ compiler, with options that it knows; without the variable it is c++, g++ or clang++",
            ),
        )
    }

    /// What the compiler is told.
    pub fn arguments(&self, settings: &Settings) -> Vec<String> {
        let mut arguments = self.options.clone();
        let level = format!("-O{}", settings.optimise.min(3));
        // As on the GPU: what is not written as fma is none.
        arguments.push("-ffp-contract=off".to_owned());
        if !settings.native {
            arguments.push(ROUNDING.to_owned());
        }
        // GCC 12, putting two sums side by side, leaves out that each is rounded to single precision before the next is added.
        arguments.push("-fno-tree-slp-vectorize".into());
        arguments.extend(["-std=c++17", &level, "-shared", "-fPIC"].map(str::to_owned));
        arguments.extend(["-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"].map(str::to_owned));
        if settings.native {
            arguments.extend(["-march=native", "-DSTENCILC_NATIVE"].map(str::to_owned));
            // Nobody asks which square roots there are none of, so they are instructions, and of several numbers at once.
            arguments.push("-fno-math-errno".into());
            // What is the same for all turns of a loop is asked before it, in loops of usual kernels, too: GCC makes no vectors of others.
            arguments.push("--param=max-unswitch-insns=400".into());
        }
        // Processors of the years before were slowed down by their widest vectors.
        #[cfg(target_arch = "x86_64")]
        if settings.native && std::arch::is_x86_feature_detected!("avx512vbmi2") {
            arguments.push("-mprefer-vector-width=512".into());
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("fma") {
            // So that fma is an instruction and no call.
            arguments.push("-mfma".into());
        }
        if settings.strict {
            let flags = "-Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-unused-variable -Wno-unused-but-set-variable";
            arguments.extend(flags.split(' ').map(str::to_owned));
            // That a level of an array was stored before it is read follows from guards, which g++ does not see through.
            arguments.push("-Wno-maybe-uninitialized".into());
        } else {
            arguments.push("-w".into());
        }
        if settings.sanitise {
            let flags = "-g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer";
            arguments.extend(flags.split(' ').map(str::to_owned));
            if self.version.contains("clang") {
                arguments.push("-shared-libsan".into());
            }
        }
        if settings.ucontext {
            arguments.push("-DSTENCILC_UCONTEXT".into());
        }
        arguments
    }

    /// Why it has not compiled something.
    pub(super) fn failure(&self, what: &str, said: &str, status: ExitStatus) -> Error {
        if let Some(why) = trouble(said, status) {
            return cannot(&format!("{what} cannot be compiled"), &why);
        }
        if let Some(error) = self.is_none() {
            return error;
        }
        const LINES: usize = 12;
        let lines: String = said.lines().take(LINES).map(|line| format!("\n    {line}")).collect();
        Error::check(format!("{} does not compile {what} ({status}){lines}", self.program.display()))
            .help(format!("this is a mistake in stencilc or in the compiler ({}): please report it", self.version))
    }
}

/// What the machine has no room for.
pub(super) fn cannot(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::machine(format!("{what}: {error}"))
        .help("it is compiled in the folder for temporary files, which must have room: TMPDIR names another")
}

/// Why a compiler has failed, if that is no matter of what it was given: the machine has no room, or has ended it.
fn trouble(said: &str, status: ExitStatus) -> Option<String> {
    const SIGNS: [(&str, &str); 9] = [
        ("No space left on device", "the disk is full"),
        ("Disk quota exceeded", "the disk is full, as far as this user may use it"),
        ("File too large", "files may not be as large here"),
        ("Read-only file system", "nothing can be written to the disk"),
        ("Input/output error", "the disk cannot be read or written"),
        ("Cannot allocate memory", "there is not enough memory"),
        ("virtual memory exhausted", "there is not enough memory"),
        ("out of memory", "there is not enough memory"),
        ("Killed signal", "the compiler was ended, as where there is not enough memory"),
    ];
    let sign = SIGNS.iter().find(|(sign, _)| said.contains(sign)).map(|(_, why)| (*why).to_owned());
    sign.or_else(|| status.signal().map(|signal| format!("the compiler was ended by signal {signal}")))
}

fn joined(parts: &[(&str, &str)]) -> String {
    parts.iter().map(|(name, part)| format!("#line 1 \"{name}\"\n{part}\n")).collect()
}

/// The text of the device itself.
pub(crate) fn machine_text() -> String {
    joined(&PARTS)
}

/// The whole text that is compiled of kernels.
pub(crate) fn text(sources: &[Source], settings: &Settings) -> String {
    let mut text = joined(&HEADERS);
    // Writing to a string cannot fail.
    for (number, Source { name, text: own }) in sources.iter().enumerate() {
        let in_turns = meets(own) || has_rows(own) || asks_elsewhere(own);
        let (run, kind) = match settings.native && !waits(own) {
            false => ("fibres", ""),
            true if in_turns => ("turns", ""),
            true => ("side_by_side", "STENCILC_PART"),
        };
        let own = match settings.native {
            true if has_rows(own) => converting(own).replace("#pragma unroll\n", "STENCILC_UNROLLED\n"),
            true => converting(own),
            false => (*own).to_owned(),
        };
        // Kernels of one stencil share their name, and C linkage knows no namespaces.
        let _ = writeln!(
            text,
            "#undef __global__\n#define __global__ {kind}\n\
             #define {name}(...) stencilc_kernel_{number}(STENCILC_WHERE, __VA_ARGS__)\nnamespace space_{number} {{\n\
             #line 1 \"{name}.cu\"\n{own}\n}}\n#undef {name}\n\
             STENCILC_ENTRY({}, \"{name}\", space_{number}::stencilc_kernel_{number}, {run})",
            symbol(number)
        );
    }
    text
}

/// What texts have in them where blocks of a launch may have to do with each other.
const TOGETHER: [&str; 4] = ["atomic", "flag_", "grid_barrier", "cluster"];

/// What texts have in them where threads of a block may wait for each other, beside operations of the hardware.
const WAITING: [&str; 6] = ["__sync", "__shfl", "__any", "__all", "__ballot", "__threadfence"];

/// The operations of the hardware that are a thread's own affair.
const ALONE: [&str; 2] = ["STENCILC_SIDE_BY_SIDE", "prefetch"];

/// Whether blocks of a kernel may have to do with each other.
pub(super) fn meets(text: &str) -> bool {
    TOGETHER.iter().any(|word| text.contains(word))
}

/// Whether each thread of a kernel computes a row, side by side.
fn has_rows(text: &str) -> bool {
    text.contains("    STENCILC_SIDE_BY_SIDE")
}

/// Whether functions that stand before a kernel ask which thread calls them.
fn asks_elsewhere(text: &str) -> bool {
    let before = text.split("__global__").next().unwrap_or(text);
    ["threadIdx", "blockIdx", "blockDim", "gridDim"].iter().any(|word| before.contains(word))
}

/// Whether threads of a kernel may wait for each other.
fn waits(text: &str) -> bool {
    let hardware = device::operations().into_iter().filter(|own| !ALONE.contains(own));
    WAITING.into_iter().chain(hardware).any(|word| text.contains(word))
}

/// What a kernel's entry is called in the library.
pub(super) fn symbol(number: usize) -> String {
    format!("stencilc_entry_{number}")
}
