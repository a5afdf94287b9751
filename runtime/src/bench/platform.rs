//! What differs between a GPU, the emulator and the interpreter where kernels are measured.

use super::rows::{MachineFacts, Method};
use crate::build::Build;
use crate::cache::Built;
use crate::device::{Platform, processor};
use crate::error::{Error, Result};
use crate::execute::{Repeat, Rotation};
use crate::nvrtc;

/// All sets of buffers together are so many times as large as the cache: when a set's turn comes again, nothing of it is
/// left there.
const CACHES: usize = 4;

impl Platform {
    /// What there is to say about it.
    pub fn facts(&self) -> MachineFacts {
        let version = |(major, minor): (i32, i32)| format!("{major}.{minor}");
        let stencilc = env!("CARGO_PKG_VERSION").to_owned();
        let none = MachineFacts {
            device: "cpu".to_owned(),
            name: processor(),
            arch: None,
            driver: None,
            compiler: None,
            l2_bytes: None,
            stencilc,
        };
        match self {
            Platform::Cpu => none,
            Platform::Emulator(emulator) => {
                let compiler = emulator.compiler().ok().map(|(compiler, _)| compiler.version.clone());
                let device = if emulator.is_native() { "native" } else { "emulate" }.to_owned();
                MachineFacts { device, compiler, ..none }
            }
            Platform::Gpu(gpu) => MachineFacts {
                device: "cuda".to_owned(),
                name: gpu.name().to_owned(),
                arch: Some(gpu.arch()),
                driver: Some(version(gpu.driver_version())),
                compiler: nvrtc::find().ok().map(|nvrtc| format!("NVRTC {}", version(nvrtc.version))),
                l2_bytes: Some(gpu.l2_bytes()),
                ..none
            },
        }
    }

    /// How often a kernel is launched, and on what.
    ///
    /// # Errors
    /// The GPU does not tell its free memory.
    pub(super) fn repeat(&self, method: Method) -> Result<Repeat> {
        let rotation = match self {
            _ if method.hot => Rotation::SAME,
            Platform::Cpu => Rotation::SAME,
            Platform::Emulator(_) => Rotation { least: 2, ..Rotation::SAME },
            // Something is left for the kernels themselves and for tables.
            Platform::Gpu(gpu) => Rotation { least: 3, bytes: CACHES * gpu.l2_bytes(), room: gpu.memory()?.0 / 10 * 9 },
        };
        Ok(Repeat { warmups: method.warmups, runs: method.runs, rotation })
    }

    /// Compiles a kernel. Any number of threads may compile at once.
    pub(crate) fn compile(&self, name: &str, text: &str) -> Result<Built> {
        match self {
            Platform::Cpu => Err(Error::call("the interpreter takes no kernels")),
            Platform::Emulator(emulator) => emulator.compile(name, text),
            Platform::Gpu(gpu) => gpu.compile(name, text),
        }
    }

    /// How many threads are at work at once at most; nothing is known of a CPU.
    pub(super) fn room(&self) -> Option<u32> {
        match self {
            Platform::Cpu | Platform::Emulator(_) => None,
            Platform::Gpu(gpu) => Some(gpu.multiprocessors() * gpu.threads_at_once()),
        }
    }

    /// Whether it can still be used, as it cannot once a kernel has read beyond all memory of a GPU.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self) -> Result<()> {
        match self {
            Platform::Cpu | Platform::Emulator(_) => Ok(()),
            Platform::Gpu(gpu) => gpu.synchronize(),
        }
    }
}
