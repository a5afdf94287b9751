//! What compiles kernels, and what they run on.

use super::library::Known;
use crate::cuda::Gpu;
use crate::device::Device;
use crate::emulate::{Compiler, Settings};
use crate::error::{Error, Result};
use crate::nvrtc::{self, Arch};
use std::sync::Arc;

/// What compiles kernels, and what they run on: a GPU, the emulator, or nothing.
#[derive(Clone, Default)]
pub struct Tools {
    /// A GPU, if they run on one.
    pub gpu: Option<Arc<Gpu>>,
    /// GPUs beside it, for parts.
    pub others: Vec<Arc<Gpu>>,
    /// What compiles them for the emulator, and how, if they run there.
    pub emulator: Option<(Compiler, Settings)>,
    /// The architecture that NVRTC compiles for, where there is one.
    pub arch: Option<String>,
    /// Whether what was compiled for the emulator is kept for later.
    pub keeps: bool,
    /// Kernels whose texts were known only when something was computed.
    pub late: Known,
}

/// What a cell that is verified comes to: several orders of threads, many of which wait for each other, and kernels that are compiled
/// together take less time each. Measured with hdiff: 46 kernels are verified sooner without optimising
/// at 2,000 cells, and later at 17,000.
const AS_MANY: u64 = 80;

impl Tools {
    /// What there is on this machine, or was asked for; without a GPU, kernels run on the emulator. Where no GPU says which, NVRTC compiles
    /// for `arch`. `cells` is how many a kernel computes at once, as far as that is known, and `parts`
    /// how many GPUs compute at once. And the device that it came to, and why there is no
    /// NVRTC.
    ///
    /// # Errors
    /// What was asked for cannot be used.
    pub fn choose(
        given: Option<Device>,
        arch: &Arch,
        cells: u64,
        parts: usize,
    ) -> Result<(Self, Device, Option<Error>)> {
        let (device, no_gpu) = Device::choose(given);
        let (device, compiler) = match (device, no_gpu) {
            (Device::Emulate | Device::Native, _) => (device, Some(Compiler::find()?)),
            // Unless the user wants them not to run.
            (Device::Cpu, Some(_)) => match Compiler::find() {
                Ok(compiler) => (Device::Emulate, Some(compiler)),
                Err(_) => (Device::Cpu, None),
            },
            (device, _) => (device, None),
        };
        let gpu = match device {
            Device::Cuda(ordinal) => Some(Arc::new(Gpu::open(ordinal)?)),
            Device::Cpu | Device::Emulate | Device::Native => None,
        };
        let others = match &gpu {
            Some(first) => first.beside(parts)?,
            None => Vec::new(),
        };
        let nvrtc = nvrtc::find();
        let arch = gpu.as_ref().map_or(arch.to_string(), |gpu| gpu.arch());
        let settings = match device {
            Device::Native => Settings::native(),
            Device::Cpu | Device::Emulate | Device::Cuda(_) => Settings::suiting(cells.saturating_mul(AS_MANY)),
        };
        let emulator = compiler.map(|compiler| (compiler, settings));
        Ok((
            Self { gpu, others, emulator, arch: nvrtc.is_ok().then_some(arch), keeps: true, late: Known::default() },
            device,
            nvrtc.err(),
        ))
    }

    /// A GPU alone.
    pub fn on_gpu(gpu: Arc<Gpu>) -> Self {
        Self { arch: Some(gpu.arch()), gpu: Some(gpu), ..Self::default() }
    }

    /// The emulator alone.
    pub fn emulated(compiler: &Compiler, settings: Settings) -> Self {
        Self { emulator: Some((compiler.clone(), settings)), ..Self::default() }
    }
}
