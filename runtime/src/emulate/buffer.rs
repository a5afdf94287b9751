//! Memory of the emulated GPU, between guard bytes.

use crate::lent::Lent;
use crate::machine::{GUARD, Guards, PATTERN};
use crate::{Error, Result, memory};
use libloading::os::unix::Library;
use std::alloc::{self, Layout};
use std::ptr::NonNull;

/// Addresses of buffers are multiples of this, as a GPU's are.
const ALIGNMENT: usize = 256;

/// Memory of the emulated GPU: raw bytes between guards that show a stray write. Freed when dropped.
pub struct Buffer {
    base: NonNull<u8>,
    length: usize,
    layout: Layout,
    /// Where AddressSanitizer is loaded: its way to allow or forbid memory. It then watches the guards, reads included.
    watch: Option<Watch>,
}

// SAFETY: the memory is its own, and whatever thread has it may use and free it.
unsafe impl Send for Buffer {}

type Mark = unsafe extern "C" fn(*const u8, usize);

#[derive(Clone, Copy)]
struct Watch {
    forbid: Mark,
    allow: Mark,
}

impl Watch {
    fn find() -> Option<Self> {
        let process = Library::this();
        // SAFETY: these are AddressSanitizer's functions, which have this signature.
        unsafe {
            let forbid = *process.get::<Mark>(b"__asan_poison_memory_region\0").ok()?;
            let allow = *process.get::<Mark>(b"__asan_unpoison_memory_region\0").ok()?;
            Some(Self { forbid, allow })
        }
    }
}

impl Buffer {
    /// A copy of the bytes, between guards.
    pub(super) fn new(bytes: &[u8]) -> Result<Self> {
        memory::check(bytes.len() as u128, "a field in the emulator's memory takes", memory::HELP)?;
        let too_much = || {
            Error::input(format!("this machine's memory does not suffice for a field of {} bytes", bytes.len()))
                .help("choose a smaller grid, or store fields as f32")
        };
        let total = bytes.len().checked_add(2 * GUARD).ok_or_else(too_much)?;
        let layout = Layout::from_size_align(total, ALIGNMENT).map_err(|_| too_much())?;
        // SAFETY: the size is not 0.
        let base = NonNull::new(memory::asking(|| unsafe { alloc::alloc(layout) })).ok_or_else(too_much)?;
        let buffer = Self { base, length: bytes.len(), layout, watch: Watch::find() };
        let guard = PATTERN.repeat(GUARD / PATTERN.len());
        // SAFETY: the memory has room for both guards and the bytes between them, and is nobody else's.
        unsafe {
            base.copy_from_nonoverlapping(NonNull::from(guard.as_slice()).cast(), GUARD);
            base.add(GUARD).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
            base.add(GUARD + bytes.len()).copy_from_nonoverlapping(NonNull::from(guard.as_slice()).cast(), GUARD);
        }
        buffer.mark(|watch| watch.forbid);
        Ok(buffer)
    }

    /// Tells AddressSanitizer, where it is, about both guards.
    fn mark(&self, how: impl Fn(Watch) -> Mark) {
        if let Some(watch) = self.watch {
            // SAFETY: both guards are within the memory.
            unsafe {
                how(watch)(self.base.as_ptr(), GUARD);
                how(watch)(self.base.as_ptr().add(GUARD + self.length), GUARD);
            }
        }
    }

    /// The bytes, and what has become of the guards.
    pub(super) fn read(&self) -> Result<(Vec<u8>, Guards)> {
        let mut copy = memory::list(self.length, "the bytes of a field from the emulator")?;
        self.mark(|watch| watch.allow);
        // SAFETY: all of it was written when it was made; no kernel runs, for launches end before they return.
        let all = unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.layout.size()) };
        let (before, rest) = all.split_at(GUARD);
        let (bytes, after) = rest.split_at(self.length);
        copy.extend_from_slice(bytes);
        let answer = (copy, Guards::compare(before, after));
        self.mark(|watch| watch.forbid);
        Ok(answer)
    }

    /// The bytes as they are now.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: they were written when it was made; no kernel runs, for launches end before they return.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(GUARD), self.length) }
    }

    /// Writes the bytes anew.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.length {
            let (given, length) = (bytes.len(), self.length);
            return Err(Error::call(format!("{given} bytes cannot be written to a buffer of {length}")));
        }
        // SAFETY: there is room for so many bytes between the guards; no kernel runs, for launches end before they return.
        unsafe { self.base.add(GUARD).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Ok(())
    }

    /// Copies the elements of an array of the host that is lent to the places where they lie in it; what is between stays.
    pub(super) fn write_lent(&self, from: &Lent) -> Result<()> {
        let bytes = from.extent().map_or(usize::MAX, |own| own.saturating_mul(from.element.bytes()));
        if bytes > self.length {
            return Err(Error::call(format!("{bytes} bytes cannot be written to a buffer of {}", self.length)));
        }
        // SAFETY: there is room for so many bytes between the guards; no kernel runs, for launches end before they return.
        unsafe { from.copy_to(self.base.as_ptr().add(GUARD)) };
        Ok(())
    }

    /// The address of a byte.
    pub(super) fn address(&self, offset_bytes: usize) -> u64 {
        (self.base.as_ptr() as u64).wrapping_add((GUARD as u64).wrapping_add(offset_bytes as u64))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.mark(|watch| watch.allow);
        // SAFETY: it was reserved with this layout, and is not used again.
        unsafe { alloc::dealloc(self.base.as_ptr(), self.layout) };
    }
}
