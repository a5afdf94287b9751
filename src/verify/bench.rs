//! What kernels are compiled by and run on.

use super::Args;
use crate::terminal;
use std::sync::Arc;
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::Compiler;
use stencilc_runtime::{Device, Result, nvrtc};

/// What kernels are compiled by and run on.
pub struct Bench {
    /// What was asked for, or what there is.
    pub device: Device,
    /// A GPU, if kernels run on one.
    pub gpu: Option<Arc<Gpu>>,
    /// The compiler of the emulator, if they run there.
    pub emulator: Option<Compiler>,
    /// The architecture that NVRTC compiles for.
    pub arch: String,
    /// Whether there is an NVRTC.
    pub has_nvrtc: bool,
}

impl Bench {
    /// What there is on this machine, or was asked for.
    ///
    /// # Errors
    /// What was asked for cannot be used.
    pub fn new(args: &Args) -> Result<Self> {
        let (device, emulator) = match Device::choose(args.device) {
            (Device::Emulate, _) => (Device::Emulate, Some(Compiler::find()?)),
            // Without a GPU, kernels run on the emulator, unless the user wants them not to run.
            (Device::Cpu, Some(_)) => match Compiler::find() {
                Ok(compiler) => (Device::Emulate, Some(compiler)),
                Err(_) => (Device::Cpu, None),
            },
            (device, _) => (device, None),
        };
        let gpu = match device {
            Device::Cuda(ordinal) => Some(Arc::new(Gpu::open(ordinal)?)),
            Device::Cpu | Device::Emulate => None,
        };
        let nvrtc = nvrtc::find();
        let has_nvrtc = nvrtc.is_ok();
        match (&nvrtc, &emulator) {
            (Err(error), None) => terminal::note(&format!("kernels are neither compiled nor run: {}", error.message)),
            (Err(error), Some(_)) => terminal::note(&format!("kernels are not compiled for GPUs: {}", error.message)),
            (Ok(_), _) => {}
        }
        match (&emulator, args.device) {
            (Some(compiler), given) => terminal::note(&format!(
                "{}kernels run on the CPU, compiled by {}, in three orders of threads",
                if given.is_none() { "no GPU: " } else { "" },
                compiler.version
            )),
            (None, _) if gpu.is_some() || !has_nvrtc => {}
            (None, Some(_)) => terminal::note("kernels are compiled, not run: --device cpu"),
            (None, None) => terminal::note("no GPU, and no C++ compiler to do without: kernels are compiled, not run"),
        }
        let arch = gpu.as_ref().map_or(args.arch.to_string(), |gpu| gpu.arch());
        Ok(Self { device, gpu, emulator, arch, has_nvrtc })
    }
}
