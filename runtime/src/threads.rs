//! The threads that share the work.
//!
//! The pool of rayon panics where a thread cannot be had, as under `ulimit -u` and `ulimit -v`. So threads are started before
//! there is a pool, and it is made of those that came.
//!
//! Rust ends the whole program where a thread that has started finds no memory for the stack on which it handles signals. So
//! `spawn` starts none that would, and `room` says whether there is enough for one.

use crate::memory::addresses;
use rayon::{ThreadBuilder, ThreadPoolBuilder};
use std::io;
use std::num::NonZero;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Of the addresses that are left under a limit, stacks take at most one part in so many.
const PART: u64 = 4;

/// Bytes of a thread's stack, as many as Rust gives one.
const STACK: usize = 2 << 20;

/// Addresses that a thread's own heap reserves.
const HEAP: u64 = 64 << 20;

/// Addresses that a thread takes beside its stack before it does anything, and several times more.
const BESIDE: u64 = 1 << 20;

/// Whether there is room for a thread with a stack of so many bytes.
///
/// # Errors
/// A limit leaves less.
pub(crate) fn room(stack: usize) -> io::Result<()> {
    let wanted = BESIDE.saturating_add(stack as u64);
    match addresses() {
        Some(left) if left < wanted => Err(io::ErrorKind::OutOfMemory.into()),
        _ => Ok(()),
    }
}

/// Starts a thread with a stack of so many bytes that is never waited for, and returns once it runs: until then nothing else
/// takes the memory that it needs.
///
/// # Errors
/// There is no room for it, or the system starts no more.
pub(crate) fn spawn(name: &str, stack: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    room(stack)?;
    let (send, receive) = sync_channel(1);
    thread::Builder::new().name(name.into()).stack_size(stack).spawn(move || {
        // Whoever started it waits for this.
        let _ = send.send(());
        work();
    })?;
    let _ = receive.recv();
    Ok(())
}

/// Starts as many threads as the machine has cores, or `RAYON_NUM_THREADS` says, or as many as there can be; with none, all is
/// computed where it is asked for. What computes does so on these from then on.
pub fn start() {
    let left = addresses();
    let given = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = given.filter(|&threads| threads > 0).unwrap_or_else(cores);
    if left.is_some_and(|left| (wanted as u64).saturating_mul(PART * HEAP) > left) {
        share_heap();
    }
    let (send, receive) = channel::<ThreadBuilder>();
    let receive = Arc::new(Mutex::new(receive));
    let work = || {
        let receive = Arc::clone(&receive);
        move || {
            let own = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
            // Nothing comes where there is no pool.
            if let Ok(own) = own {
                own.run();
            }
        }
    };
    let start = |_: &usize| spawn("worker", STACK, work()).is_ok();
    let threads = (0..wanted.min(left.map_or(usize::MAX, few))).take_while(start).count();
    let pool = match threads {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
        _ => {
            let hand_over = move |own| send.send(own).map_err(|_| std::io::Error::other("the threads have ended"));
            ThreadPoolBuilder::new().num_threads(threads).spawn_handler(hand_over).build_global()
        }
    };
    // There is a pool already only where somebody else has begun to compute.
    drop(pool);
}

/// How many threads there may be where so many addresses are left, of which they leave something to compute with.
fn few(left: u64) -> usize {
    usize::try_from(left / (PART * STACK as u64)).unwrap_or(usize::MAX).max(1)
}

/// All threads take memory from one heap. One each would reserve 64 MiB of addresses, which a limit counts as if they were
/// used.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_heap() {
    // SAFETY: it sets a number.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other systems have other heaps.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn share_heap() {}
