//! Whether buffers of a machine hold the same bytes, found out on the machine: to bring them all here takes many times as
//! long as what is measured.

use crate::build::Build;
use crate::error::Result;
use crate::machine::{Arg, GUARD, Launch, Machine};
use stencilc_compiler::gpu::AT_ONCE;
use stencilc_compiler::{cuda, kernel};

/// The name of the kernel that compares.
pub const KERNEL: &str = "same";

/// The kernel: two pieces of memory are compared, 16 bytes at once and then the rest of them one by one.
///
/// # Errors
/// A template is broken, which is a fault of the compiler.
pub fn text() -> Result<String> {
    Ok(cuda::text(&kernel::machine::same(THREADS as u32))?)
}

/// Threads of a block, and what each of them compares if there is enough.
const THREADS: usize = 256;
const EACH: usize = 16;

/// The kernel on a machine.
pub struct Same<M: Machine> {
    kernel: M::Kernel,
    differs: M::Buffer,
}

impl<M: Machine> Same<M> {
    /// The kernel, ready to be launched.
    ///
    /// # Errors
    /// It cannot be compiled or loaded.
    pub fn new(machine: &M) -> Result<Self>
    where
        M: Build,
    {
        Ok(Self { kernel: machine.build(KERNEL, &text()?)?, differs: machine.upload(&0i32.to_ne_bytes())? })
    }

    /// Whether the two buffers of each pair, which have so many bytes, are the same: guards included.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn all<'a>(
        &self,
        machine: &M,
        pairs: impl IntoIterator<Item = (&'a M::Buffer, &'a M::Buffer, usize)>,
    ) -> Result<bool>
    where
        M: 'a,
    {
        machine.write(&self.differs, &0i32.to_ne_bytes())?;
        for (a, b, length) in pairs {
            let bytes = length + 2 * GUARD;
            let (accesses, rest) = (bytes / AT_ONCE, bytes % AT_ONCE);
            let blocks = accesses.div_ceil(THREADS * EACH).clamp(1, u16::MAX.into());
            let from = |buffer| machine.address(buffer, 0).wrapping_sub(GUARD as u64);
            let (a, b) = (from(a), from(b));
            let behind = |start: u64| Arg::Pointer(start.wrapping_add((accesses * AT_ONCE) as u64));
            let differs = Arg::Pointer(machine.address(&self.differs, 0));
            let arguments = [
                Arg::Pointer(a),
                Arg::Pointer(b),
                Arg::I64(accesses as i64),
                behind(a),
                behind(b),
                Arg::I64(rest as i64),
                differs,
            ];
            machine.launch(&self.kernel, &Launch::new([blocks as u32, 1, 1], [THREADS as u32, 1, 1]), &arguments)?;
        }
        let (differs, _) = machine.download(&self.differs)?;
        Ok(differs == 0i32.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Gpu, availability};
    use crate::emulate::{Compiler, Emulator, Settings};
    use crate::nvrtc;

    /// Every single byte that differs is seen, guards included; `stray` writes one at a distance from the first.
    fn sees_every_byte<M: Machine>(machine: &M, same: &Same<M>, stray: impl Fn(&M::Buffer, i32)) {
        for length in [0, 1, 15, 16, 17, 77, 3 * THREADS * EACH * AT_ONCE + 5] {
            let bytes: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            let [a, b] = [(); 2].map(|()| machine.upload(&bytes).unwrap());
            assert!(same.all(machine, [(&a, &b, length), (&b, &a, length)]).unwrap());
            let guard = GUARD as i32;
            let ends = [-guard, -1, 0, length as i32 / 2, length as i32 - 1, length as i32, length as i32 + guard - 1];
            for at in ends.into_iter().filter(|&at| length > 0 || !(0..1).contains(&at)) {
                let [c, d] = [(); 2].map(|()| machine.upload(&bytes).unwrap());
                stray(&d, at);
                assert!(!same.all(machine, [(&a, &b, length), (&c, &d, length)]).unwrap(), "byte {at} of {length}");
                assert!(!same.all(machine, [(&d, &c, length), (&a, &b, length)]).unwrap(), "byte {at} of {length}");
                stray(&c, at);
                assert!(same.all(machine, [(&c, &d, length)]).unwrap(), "byte {at} of {length}");
            }
        }
    }

    const STRAY: &str = "extern \"C\" __global__ void stray(unsigned char* a, int at) { a[at] = 252; }\n";

    fn write<M: Machine>(machine: &M, kernel: &M::Kernel, buffer: &M::Buffer, at: i32) {
        let arguments = [Arg::Pointer(machine.address(buffer, 0)), Arg::I32(at)];
        machine.launch(kernel, &Launch::new([1; 3], [1; 3]), &arguments).unwrap();
    }

    #[test]
    fn the_emulator_sees_every_byte() {
        let emulator = Emulator::new(Compiler::find().unwrap(), Settings::default());
        let same = Same::new(&emulator).unwrap();
        let stray = emulator.build("stray", STRAY).unwrap();
        sees_every_byte(&emulator, &same, |buffer, at| write(&emulator, &stray, buffer, at));
    }

    #[test]
    fn a_gpu_sees_every_byte() {
        let (Ok(_), Ok(_)) = (availability(), nvrtc::find()) else { return println!("skipped: no GPU") };
        let gpu = Gpu::open(0).unwrap();
        let same = Same::new(&gpu).unwrap();
        let stray = gpu.build("stray", STRAY).unwrap();
        sees_every_byte(&gpu, &same, |buffer, at| write(&gpu, &stray, buffer, at));
    }
}
