//! Kernels in a loaded library, and how they are called.

use super::compiler::{meets, symbol};
use super::{Order, Source};
use crate::error::reason;
use crate::files::Scratch;
use crate::machine::{Arg, Launch};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

/// A launch as `machine.h` takes it.
#[repr(C)]
struct RawLaunch {
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    shared: u32,
    cooperative: c_int,
    order: c_int,
    seed: u64,
    first: u64,
    end: u64,
}

/// What `STENCILC_ENTRY` defines: launch, addresses of the arguments, their sizes and number, room for a message.
type Entry = unsafe extern "C" fn(*const RawLaunch, *mut *mut c_void, *const usize, usize, *mut c_char, usize) -> c_int;

/// A kernel that can be launched. It keeps its library loaded; copies are cheap.
#[derive(Clone)]
pub struct Kernel {
    name: Arc<str>,
    entry: Entry,
    /// Whether its blocks have nothing to do with each other.
    is_free: bool,
    _library: Arc<libloading::Library>,
}

/// Loads the library that [`Compiler::compile`](super::Compiler::compile) made of `sources`.
///
/// # Errors
/// It cannot be written to the folder for temporary files, or cannot be loaded.
pub fn load(image: &[u8], sources: &[Source]) -> Result<Vec<Kernel>> {
    let refuse = |error: &dyn std::fmt::Display| {
        Error::machine(format!("the compiled kernels cannot be loaded: {error}")).help(
            "they are loaded from the folder for temporary files, which must have room and allow to execute: \
                   TMPDIR names another",
        )
    };
    let folder = Scratch::new()?;
    let file = folder.path().join("kernels.so");
    std::fs::write(&file, image).map_err(|error| refuse(&error))?;
    // SAFETY: the library has no initialisers. Once loaded, its file is not needed any more.
    let library = Arc::new(unsafe { libloading::Library::new(&file) }.map_err(|error| refuse(&reason(&error)))?);
    let kernel = |(number, source): (usize, &Source)| {
        // SAFETY: what the compiler was given defines this symbol with this signature.
        let entry = *unsafe { library.get::<Entry>(symbol(number)) }.map_err(|error| refuse(&reason(&error)))?;
        let is_free = !meets(source.text);
        Ok(Kernel { name: source.name.into(), entry, is_free, _library: Arc::clone(&library) })
    };
    sources.iter().enumerate().map(kernel).collect()
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it to its end, on all cores.
    pub(super) fn run_shared(&self, launch: &Launch, args: &[Arg]) -> Result<()> {
        let blocks = blocks(launch);
        let shares = (rayon::current_num_threads() as u64 * SHARES).min(blocks);
        if !self.is_free || launch.cooperative || shares < 2 {
            return self.run(launch, Order::Forward, args, 0..blocks);
        }
        let bound = |share: u64| (u128::from(blocks) * u128::from(share) / u128::from(shares)) as u64;
        (0..shares)
            .into_par_iter()
            .try_for_each(|share| self.run(launch, Order::Forward, args, bound(share)..bound(share + 1)))
    }

    /// Runs all of its blocks to their end, in an order.
    pub(super) fn run_in_order(&self, launch: &Launch, order: Order, args: &[Arg]) -> Result<()> {
        self.run(launch, order, args, 0..blocks(launch))
    }

    /// Runs some of its blocks to their end.
    fn run(&self, launch: &Launch, order: Order, args: &[Arg], blocks: Range<u64>) -> Result<()> {
        let Launch { grid, block, cluster, shared, cooperative } = *launch;
        let (order, seed) = match order {
            Order::Forward => (0, 0),
            Order::Reverse => (1, 0),
            Order::Shuffled(seed) => (2, seed),
        };
        let (cooperative, Range { start: first, end }) = (c_int::from(cooperative), blocks);
        let launch = RawLaunch { grid, block, cluster, shared, cooperative, order, seed, first, end };
        let (mut values, sizes): (Vec<u64>, Vec<usize>) = args.iter().map(in_memory).unzip();
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let mut message: [c_char; 1024] = [0; 1024];
        // SAFETY: there are as many arguments as sizes, the callee compares these with the kernel's own, and writes a
        // message with a zero byte into the room that there is. What addresses lead to is the caller's.
        let answer = unsafe {
            (self.entry)(
                &launch,
                pointers.as_mut_ptr(),
                sizes.as_ptr(),
                sizes.len(),
                message.as_mut_ptr(),
                message.len(),
            )
        };
        match answer {
            0 => Ok(()),
            1 => {
                // SAFETY: the callee ended it with a zero byte, and it was full of them before.
                let message = unsafe { CStr::from_ptr(message.as_ptr()) };
                Err(Error::check(message.to_string_lossy()))
            }
            _ => {
                let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
                Err(Error::call(format!(
                    "kernel {} does not take arguments of {} bytes, which it is given",
                    self.name,
                    sizes.join(", ")
                )))
            }
        }
    }
}

/// Into how many shares a launch is cut for each core: more than one, lest all wait for the slowest.
const SHARES: u64 = 4;

/// How many blocks a launch has.
fn blocks(launch: &Launch) -> u64 {
    launch.grid.iter().map(|&blocks| u64::from(blocks)).product()
}

/// The bytes of an argument at the front of eight, and how many.
fn in_memory(arg: &Arg) -> (u64, usize) {
    fn front<const N: usize>(bytes: [u8; N]) -> (u64, usize) {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&bytes);
        (u64::from_ne_bytes(all), N)
    }
    match *arg {
        Arg::Pointer(value) => front(value.to_ne_bytes()),
        Arg::F32(value) => front(value.to_ne_bytes()),
        Arg::F64(value) => front(value.to_ne_bytes()),
        Arg::I32(value) => front(value.to_ne_bytes()),
        Arg::I64(value) => front(value.to_ne_bytes()),
        Arg::U8(value) => front(value.to_ne_bytes()),
    }
}
