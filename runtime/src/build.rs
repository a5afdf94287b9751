//! Makes kernels of texts: for a GPU by NVRTC, for the emulator by the C++ compiler at hand. What was compiled before comes from
//! the [`cache`].

use crate::cache::{self, Built};
use crate::cuda::Gpu;
use crate::emulate::{self, Emulator, Source};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::nvrtc::Kind;
use serde::Serialize;

/// What a thread of a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Registers of 32 bits.
    pub registers: u32,
    /// Bytes of local memory.
    pub local: u32,
}

/// A machine that kernels are made for.
pub trait Build: Machine {
    /// Compiles a text that holds a kernel called `name`. Any number of threads may compile at once.
    ///
    /// # Errors
    /// There is no compiler, or it does not take the text.
    fn compile(&self, name: &str, text: &str) -> Result<Built>;

    /// Brings what was compiled of a text to the machine, ready to be launched.
    ///
    /// # Errors
    /// It was compiled for another machine, or there is no such kernel in it.
    fn bring(&self, image: &[u8], name: &str, text: &str) -> Result<Self::Kernel>;

    /// Whether it is a CPU, whose threads are fast where each has a row of elements.
    fn is_cpu(&self) -> bool {
        false
    }

    /// What a thread of a kernel takes; nothing where that means nothing.
    fn usage(&self, _kernel: &Self::Kernel) -> Option<Usage> {
        None
    }

    /// Compiles a kernel and brings it to the machine.
    ///
    /// # Errors
    /// Those of [`Build::compile`] and [`Build::bring`].
    fn build(&self, name: &str, text: &str) -> Result<Self::Kernel> {
        self.bring(&self.compile(name, text)?.compiled.image, name, text)
    }
}

impl Build for Gpu {
    fn compile(&self, name: &str, text: &str) -> Result<Built> {
        cache::compile_cached(text, &format!("{name}.cu"), &self.arch(), Kind::Cubin)
    }

    fn bring(&self, image: &[u8], name: &str, _: &str) -> Result<Self::Kernel> {
        self.load(image)?.kernel(name)
    }

    fn usage(&self, kernel: &Self::Kernel) -> Option<Usage> {
        Some(Usage { registers: kernel.registers, local: kernel.local })
    }
}

impl Build for Emulator {
    fn is_cpu(&self) -> bool {
        self.is_native()
    }

    fn compile(&self, name: &str, text: &str) -> Result<Built> {
        let (compiler, settings) = self.compiler()?;
        cache::emulated_cached(compiler, Source { name, text }, settings)
    }

    fn bring(&self, image: &[u8], name: &str, text: &str) -> Result<Self::Kernel> {
        let mut loaded = emulate::load(image, &[Source { name, text }])?;
        loaded.pop().ok_or_else(|| Error::check(format!("`{name}` is not in what was compiled")))
    }
}
