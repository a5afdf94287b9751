//! Devices: what computes, and how it is named.

use crate::cuda::{self, Gpu};
use crate::emulate::{Compiler, Emulator, Settings};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The architecture that kernels are made for where no GPU says which.
pub const ARCH: &str = "sm_90";

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The interpreter.
    Cpu,
    /// Kernels on the CPU.
    Emulate,
    /// A GPU, by its number.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match (text, text.strip_prefix("cuda:").map(str::parse)) {
            ("cpu", _) => Ok(Device::Cpu),
            ("emulate", _) => Ok(Device::Emulate),
            ("cuda", _) => Ok(Device::Cuda(0)),
            (_, Some(Ok(ordinal))) => Ok(Device::Cuda(ordinal)),
            _ => Err("a device is cpu, emulate, cuda (the first GPU) or, say, cuda:1".to_owned()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Emulate => f.write_str("emulate"),
            Device::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl Device {
    /// The device asked for; else the first GPU; else the CPU, and why there is no GPU.
    pub fn choose(given: Option<Device>) -> (Device, Option<Error>) {
        match given {
            Some(device) => (device, None),
            None => match cuda::availability() {
                Ok(_) => (Device::Cuda(0), None),
                Err(error) => (Device::Cpu, Some(error)),
            },
        }
    }

    /// The device, ready to compute. On the emulator, kernels are optimised so much, 0 to 3.
    ///
    /// # Errors
    /// There is no such GPU, or no C++ compiler for the emulator.
    pub fn open(self, optimise: u8) -> Result<Platform> {
        Ok(match self {
            Device::Cpu => Platform::Cpu,
            Device::Emulate => {
                let settings = Settings { optimise, ..Settings::default() };
                Platform::Emulator(Arc::new(Emulator::new(Compiler::find()?, settings)))
            }
            Device::Cuda(ordinal) => Platform::Gpu(Arc::new(Gpu::open(ordinal)?)),
        })
    }
}

/// A device that is ready to compute.
pub enum Platform {
    /// The interpreter.
    Cpu,
    /// Kernels on the CPU. Their times say nothing about a GPU.
    Emulator(Arc<Emulator>),
    /// Kernels on a GPU.
    Gpu(Arc<Gpu>),
}
