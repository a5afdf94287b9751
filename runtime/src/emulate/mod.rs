//! The emulator: executes the very text of a CUDA kernel on the CPU, as the machine's C++ compiler compiles it.
//!
//! ```text
//! Compiler::find -> build: texts -> a shared library -> kernels -> Emulator: a Machine like a GPU
//! ```
//!
//! The device is compiled once and linked to all kernels: `machine.cpp` (threads, fibres, memory), `waits.cpp` (all that threads wait
//! for), `scheduler.cpp` (runs blocks). The texts get headers before them: `machine.h` (what the device is), `entry.h` (how kernels are
//! called), `cuda.h` (the words of CUDA C++) and the operations of [`stencilc_compiler::device`]. A kernel's fault, such as a barrier that part of the block misses, is an [`Error`] that
//! names kernel, block and thread. Kernels that never end, and reads far outside of any memory, are not caught.
//!
//! All state of a launch is on the stack of its thread: any number of threads may launch kernels of one library at once.

mod buffer;
mod compiler;
mod host;
mod library;
#[cfg(test)]
mod tests;

use buffer::Buffer;
pub use compiler::{Compiler, Settings, Source, VARIABLE};
pub(crate) use compiler::{machine_text, text};
pub use host::{Host, check_fortran};
pub use library::{Kernel, load};
pub use stencilc_compiler::gpu;

use crate::lent::Lent;
use crate::machine::{Arg, Guards, Launch, Machine};
use crate::{Error, Result};
use serde::Serialize;
use std::convert::Infallible;
use std::fmt;
use std::time::Instant;

/// In which order the threads of a block run that could all run, and the blocks. A GPU may choose any, so all of them must
/// give the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By their numbers. Asynchronous copies land as late as they may.
    #[default]
    Forward,
    /// By their numbers, the last first. Asynchronous copies land at once.
    Reverse,
    /// At random, by this seed; asynchronous copies at once or late.
    Shuffled(u64),
}

impl Order {
    /// One of each kind.
    pub const ALL: [Order; 3] = [Order::Forward, Order::Reverse, Order::Shuffled(1)];
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Forward => f.write_str("forward"),
            Order::Reverse => f.write_str("reverse"),
            Order::Shuffled(seed) => write!(f, "shuffled (seed {seed})"),
        }
    }
}

/// An emulated GPU.
#[derive(Clone, Debug, Default)]
pub struct Emulator {
    order: Order,
    /// What makes kernels for it.
    compiler: Option<(Compiler, Settings)>,
}

/// The most threads that are there at once: each that waits takes a stack.
const MOST_THREADS: u64 = 1 << 20;

/// The most shared memory that a block can ask for, in bytes.
const MOST_SHARED: u32 = gpu::MOST_SHARED as u32;

impl Emulator {
    /// One whose kernels this compiler makes.
    pub fn new(compiler: Compiler, settings: Settings) -> Self {
        Self { compiler: Some((compiler, settings)), ..Self::default() }
    }

    /// Copies the elements of an array of the host that is lent to a buffer, where they lie as in the array.
    ///
    /// # Errors
    /// The buffer has less room.
    pub(crate) fn copy_lent(&self, from: &Lent, to: &Buffer) -> Result<()> {
        to.write_lent(from)
    }

    /// The same, with threads and blocks in another order.
    pub fn in_order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// What makes its kernels.
    ///
    /// # Errors
    /// It only runs kernels that others make.
    pub(crate) fn compiler(&self) -> Result<(&Compiler, &Settings)> {
        let (compiler, settings) = self
            .compiler
            .as_ref()
            .ok_or_else(|| Error::call("this emulator has no compiler: its kernels come from elsewhere"))?;
        Ok((compiler, settings))
    }

    /// Whether its kernels are as fast as this processor can.
    pub fn is_native(&self) -> bool {
        self.compiler.as_ref().is_some_and(|(_, settings)| settings.native)
    }

    /// Whether a GPU takes such a launch, and this machine has the memory for it.
    fn check(&self, kernel: &Kernel, launch: &Launch) -> Result<()> {
        let Launch { grid, block, cluster, shared, cooperative } = *launch;
        let product = |extents: [u32; 3]| extents.iter().map(|&extent| u128::from(extent)).product::<u128>();
        let spell = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        let refuse = |why: String| Err(Error::call(format!("kernel {} cannot be started: {why}", kernel.name())));
        if product(grid) == 0 || product(grid) > u128::from(u32::MAX) {
            return refuse(format!("{} blocks", spell(grid)));
        }
        stencilc_compiler::plan::check_block(block)?;
        if product(cluster) == 0 || product(cluster) > 16 || (0..3).any(|axis| grid[axis] % cluster[axis] != 0) {
            return refuse(format!("{} blocks do not make clusters of {}", spell(grid), spell(cluster)));
        }
        if shared > MOST_SHARED {
            return refuse(format!("{shared} bytes of shared memory a block, and {MOST_SHARED} is the most"));
        }
        if cooperative && product(grid) * product(block) > u128::from(MOST_THREADS) {
            return refuse(format!("{} blocks of {} threads cannot all be there at once", spell(grid), spell(block)));
        }
        Ok(())
    }
}

impl Machine for Emulator {
    type Buffer = Buffer;
    type Kernel = Kernel;

    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        Buffer::new(bytes)
    }

    fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        buffer.write(bytes)
    }

    fn copy(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        to.write(from.bytes())
    }

    fn download(&self, buffer: &Buffer) -> Result<(Vec<u8>, Guards)> {
        buffer.read()
    }

    fn address(&self, buffer: &Buffer, offset_bytes: usize) -> u64 {
        buffer.address(offset_bytes)
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn launch(&self, kernel: &Kernel, launch: &Launch, args: &[Arg]) -> Result<()> {
        self.check(kernel, launch)?;
        match self.is_native() {
            true => kernel.run_shared(launch, args),
            false => kernel.run_in_order(launch, self.order, args),
        }
    }

    /// It has no gap between launches to save.
    type Recording = Infallible;

    fn record(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<Option<Infallible>> {
        Ok(None)
    }

    fn replay(&self, recording: &Infallible) -> Result<()> {
        match *recording {}
    }

    fn time_each(&self, runs: usize, mut launch: impl FnMut(usize) -> Result<()>) -> Result<Vec<f64>> {
        let time = |run| {
            let start = Instant::now();
            launch(run)?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        };
        (0..runs).map(time).collect()
    }
}
