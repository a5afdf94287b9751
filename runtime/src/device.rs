//! Devices: what computes, and how it is named.

use crate::cuda::{self, Gpu};
use crate::emulate::{Compiler, Emulator, Settings};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use stencilc_compiler::plan::{Choices, Open};

/// The architecture that kernels are made for where no GPU says which.
pub const ARCH: &str = "sm_90";

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The interpreter.
    Cpu,
    /// Kernels on the CPU, as a GPU would run them, which is looked at: threads in any order, memory between guards.
    Emulate,
    /// Kernels on the CPU, as fast as it can: on all cores, vectors where it has them.
    Native,
    /// A GPU, by its number.
    Cuda(usize),
}

/// How many devices there can be: more are a slip.
pub const MOST_DEVICES: usize = 1024;

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let number = text.strip_prefix("cuda:");
        // Of more digits than a number has, too.
        let is_number = number.is_some_and(|own| !own.is_empty() && own.bytes().all(|digit| digit.is_ascii_digit()));
        match (text, number.map(str::parse)) {
            ("cpu", _) => Ok(Device::Cpu),
            ("emulate", _) => Ok(Device::Emulate),
            ("native", _) => Ok(Device::Native),
            ("cuda", _) => Ok(Device::Cuda(0)),
            (_, Some(Ok(ordinal))) if ordinal < MOST_DEVICES => Ok(Device::Cuda(ordinal)),
            _ if is_number => Err(format!("GPUs have the numbers 0 to {}", MOST_DEVICES - 1)),
            _ => Err("a device is cpu, native, emulate, cuda (the first GPU) or, say, cuda:1".to_owned()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Emulate => f.write_str("emulate"),
            Device::Native => f.write_str("native"),
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

    /// The device, ready to compute so many cells in all, each step counted: where they are few, the emulator's kernels are compiled quickly,
    /// and else to be fast.
    ///
    /// # Errors
    /// There is no such GPU, or no C++ compiler for kernels on the CPU.
    pub fn open(self, cells: u64) -> Result<Platform> {
        Ok(match self {
            Device::Cpu => Platform::Cpu,
            Device::Emulate => Platform::Emulator(Arc::new(Emulator::new(Compiler::find()?, Settings::suiting(cells)))),
            Device::Native => Platform::Emulator(Arc::new(Emulator::new(Compiler::find()?, Settings::native()))),
            Device::Cuda(ordinal) => Platform::Gpu(Arc::new(Gpu::open(ordinal)?)),
        })
    }
}

impl Platform {
    /// Choices, with what they leave open as it usually is here; and what is still open.
    pub fn usual(&self, choices: Choices, open: Open) -> (Choices, Open) {
        match self {
            Platform::Emulator(emulator) if emulator.is_native() => choices.on_cpu(open),
            Platform::Cpu | Platform::Emulator(_) | Platform::Gpu(_) => (choices, open),
        }
    }
}

/// A device that is ready to compute.
#[derive(Clone)]
pub enum Platform {
    /// The interpreter.
    Cpu,
    /// Kernels on the CPU. Their times say nothing about a GPU.
    Emulator(Arc<Emulator>),
    /// Kernels on a GPU.
    Gpu(Arc<Gpu>),
}

/// This machine's processor, and how many threads compute on it.
pub fn processor() -> String {
    format!("{}, {} threads", told_of_processor("model name"), rayon::current_num_threads())
}

/// What Linux tells of this machine's processor by a name.
pub(crate) fn told_of_processor(name: &str) -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
    line.map_or("a CPU", |(_, text)| text.trim()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::Device;

    #[test]
    fn gpus_have_numbers() {
        assert_eq!("cuda:1023".parse(), Ok(Device::Cuda(1023)));
        for text in ["cuda:1024", "cuda:99999999999", "cuda:99999999999999999999999"] {
            assert_eq!(text.parse::<Device>().unwrap_err(), "GPUs have the numbers 0 to 1023", "{text}");
        }
        for text in ["cuda:", "cuda:x", "cuda:-1", "gpu", ""] {
            assert!(text.parse::<Device>().unwrap_err().starts_with("a device is cpu"), "{text}");
        }
    }
}
