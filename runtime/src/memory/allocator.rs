//! What is behind everything that asks for memory.
//!
//! Most of a program asks without a way to hear no: a list that grows, a library. Rust would then abort, by a signal and with a
//! trace of calls. Here whoever built the program says how it ends instead.

use super::available::{Available, available};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes from which it is looked whether the machine has so much, and not only whether it gives so much out. Filling them
/// takes a hundred times as long as looking.
const LARGE: usize = 64 << 20;

/// The memory of the system, and an end for when there is none left.
pub struct Allocator {
    /// Ends the program. It must not ask for memory.
    pub end: fn(Exhausted) -> !,
}

/// What was asked for in vain.
#[derive(Clone, Copy, Debug)]
pub struct Exhausted {
    /// Bytes.
    pub bytes: usize,
    /// What there is, where that is known to be less.
    pub there: Option<Available>,
}

thread_local! {
    /// Whether who asks on this thread can do without.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Does what asks for memory and can do without.
pub(crate) fn asking<T>(ask: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ASKING.set(self.0);
        }
    }
    let _before = Before(ASKING.replace(true));
    ask()
}

impl Allocator {
    /// What `ask` gives, for so many bytes more; null only to who can do without.
    #[inline]
    fn given(&self, bytes: usize, ask: impl FnOnce() -> *mut u8) -> *mut u8 {
        let there = if bytes < LARGE { None } else { too_little(bytes) };
        let memory = if there.is_none() { ask() } else { std::ptr::null_mut() };
        if memory.is_null() && !ASKING.get() {
            (self.end)(Exhausted { bytes, there });
        }
        memory
    }
}

/// What there is, if that is less than so many bytes.
#[cold]
fn too_little(bytes: usize) -> Option<Available> {
    available().filter(|there| (bytes as u64) > there.bytes)
}

// SAFETY: memory comes from the system's allocator, or is null. Looking how much there is asks for little, which is given
// without a look.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as of the caller.
        self.given(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as of the caller.
        self.given(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as of the caller; the memory is the system's.
        unsafe { System.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = size.saturating_sub(layout.size());
        // SAFETY: as of the caller; the memory is the system's.
        self.given(more, || unsafe { System.realloc(memory, layout, size) })
    }
}
