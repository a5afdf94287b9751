//! Whether a C++ compiler takes what stands around a built kernel: its header, as C and as C++, and its launcher.
//!
//! CUDA's own headers need not be there: what launchers call of them is declared here, and kernels are started as functions are
//! called.

use super::Compiler;
use super::compiler::cannot;
use crate::files::Scratch;
use crate::{Result, doctor};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a launcher needs of CUDA's own headers.
const RUNTIME: &str = "
#ifndef RUNTIME
#define RUNTIME
#include <stddef.h>
typedef struct CUstream_st* cudaStream_t;
typedef enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorNotSupported = 801 } cudaError_t;
#define cudaHostAllocDefault 0x00
#ifdef __cplusplus
#define __global__
#define __shared__
#define __constant__ static
#define __align__(bytes)
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
static struct { int x, y, z; } blockIdx, blockDim, gridDim, threadIdx;
void __syncthreads();
template <class T> T __shfl_sync(unsigned, T, int, int = 32);
template <class T> T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T> T min(T, T);
template <class T> T max(T, T);
size_t __cvta_generic_to_shared(const void*);
struct dim3 { dim3(unsigned, unsigned = 1, unsigned = 1) {} };
template <class T> cudaError_t cudaGetSymbolAddress(void**, const T&) { return cudaSuccess; }
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
cudaError_t cudaGetDevice(int*);
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int);
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class T> cudaError_t cudaFuncSetAttribute(T, cudaFuncAttribute, int) { return cudaSuccess; }
template <class T> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, T, int, size_t) { return cudaSuccess; }
#endif
#endif
";

/// A launcher whose kernel is called like a function.
fn without_launches(source: &str) -> String {
    let mut parts = source.split("<<<blocks, block, ");
    let begin = parts.next().unwrap_or_default().to_owned();
    parts.fold(begin, |text, part| text + part.split_once(", stream>>>").map_or(part, |(_, call)| call))
}

/// The files of a kernel that others compile.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// The header's name, without its ending.
    pub stem: &'a str,
    /// The header.
    pub header: &'a str,
    /// The kernel with its launcher.
    pub source: &'a str,
}

impl Compiler {
    /// Looks whether this compiler takes a header in dialects of C and of C++, and the launcher as C++. `options` are for all.
    ///
    /// # Errors
    /// It does not, or it cannot work.
    pub fn check_host(&self, host: &Host, c: &[&str], cpp: &[&str], options: &[&str]) -> Result<()> {
        let folder = Scratch::new()?;
        let header = format!("{}.h", host.stem);
        let calls = without_launches(host.source);
        let launcher = format!("#include <math.h>\n#include <cuda_runtime_api.h>\n{calls}");
        let user = format!("#include \"{header}\"\n");
        for (name, text) in [
            ("cuda_runtime_api.h", RUNTIME),
            (header.as_str(), host.header),
            ("user.c", user.as_str()),
            ("launcher.cpp", launcher.as_str()),
        ] {
            std::fs::write(folder.path().join(name), text)
                .map_err(|error| cannot("the header cannot be written", &error))?;
        }
        let dialects = c.iter().map(|dialect| ("c", dialect)).chain(cpp.iter().map(|dialect| ("c++", dialect)));
        for (language, dialect) in dialects {
            let dialect = format!("-std={dialect}");
            self.check_syntax(folder.path(), &["-x", language, &dialect, "user.c"], options, host)?;
        }
        let lenient = ["-Wno-unknown-pragmas", "-Wno-unused", "-Wno-maybe-uninitialized"];
        self.check_syntax(
            folder.path(),
            &["-x", "c++", "-std=gnu++17", "launcher.cpp"],
            &[options, &lenient].concat(),
            host,
        )
    }

    /// Looks whether this compiler takes what launches a stencil on the CPU, beside its header.
    ///
    /// # Errors
    /// It does not, or it cannot work.
    pub fn check_on_cpu(&self, host: &Host) -> Result<()> {
        let folder = Scratch::new()?;
        for (name, text) in [(format!("{}.h", host.stem).as_str(), host.header), ("on_cpu.cpp", host.source)] {
            std::fs::write(folder.path().join(name), text)
                .map_err(|error| cannot("the header cannot be written", &error))?;
        }
        self.check_syntax(folder.path(), &["-x", "c++", "-std=c++17", "on_cpu.cpp"], &["-Wno-unknown-pragmas"], host)
    }

    fn check_syntax(&self, folder: &Path, own: &[&str], options: &[&str], host: &Host) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("-fsyntax-only").args(options).arg("-I.").args(own).current_dir(folder);
        command.env("LC_ALL", "C").env("TMPDIR", folder).env_remove("LD_PRELOAD").stdin(Stdio::null());
        let output = command.output();
        let output = output.map_err(|error| cannot(&format!("{} cannot be run", self.program.display()), &error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(self.failure(&format!("the header and launcher of {}", host.stem), &said, output.status))
    }
}

/// Has the Fortran compiler, `$FC` or else gfortran, look at a module; nothing if there is none.
///
/// # Errors
/// It does not take it, or it cannot work.
pub fn check_fortran(name: &str, text: &str) -> Result<Option<String>> {
    let given = std::env::var("FC").ok().filter(|given| !given.trim().is_empty());
    let given = given.unwrap_or_else(|| "gfortran".to_owned());
    let mut words = given.split_whitespace();
    let Some((program, version)) = words.next().and_then(doctor::program) else { return Ok(None) };
    // What options others have for this is not known.
    if !version.to_ascii_lowercase().contains("gnu") {
        return Ok(None);
    }
    let folder = Scratch::new()?;
    std::fs::write(folder.path().join("module.f90"), text)
        .map_err(|error| cannot("the module cannot be written", &error))?;
    let mut command = Command::new(&program);
    command.args(words).args(["-fsyntax-only", "-std=f2018", "-Wall", "module.f90"]).current_dir(folder.path());
    command.env("LC_ALL", "C").env("TMPDIR", folder.path()).env_remove("LD_PRELOAD").stdin(Stdio::null());
    let output = command.output().map_err(|error| cannot(&format!("{} cannot be run", program.display()), &error))?;
    if output.status.success() {
        return Ok(Some(version));
    }
    let compiler = Compiler { program, version, options: Vec::new(), given: None };
    let said = String::from_utf8_lossy(&output.stderr);
    Err(compiler.failure(&format!("the module of {name}"), &said, output.status))
}
