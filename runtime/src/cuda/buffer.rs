//! Memory of the GPU between guard bytes.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::Context;
use super::driver::{cuMemFree_v2, cuMemcpyDtoH_v2, cuMemcpyHtoD_v2};
use crate::machine::GUARD;
use crate::{Error, Result};

/// Memory of the GPU: raw bytes between guards that show a stray write. Freed when dropped.
pub struct Buffer {
    pub(super) context: Arc<Context>,
    /// Where the guard before the bytes begins. The driver's addresses are multiples of 256.
    pub(super) base: CUdeviceptr,
    pub(super) length: usize,
}

impl Buffer {
    /// How many bytes there are, guards aside.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address of a byte. That of the first is a multiple of 256.
    pub fn pointer(&self, offset_bytes: usize) -> u64 {
        self.base.wrapping_add((GUARD as u64).wrapping_add(offset_bytes as u64))
    }

    /// Copies bytes to an address within the buffer, guards included; the context has to be current.
    pub(super) fn put(&self, address: CUdeviceptr, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the callers keep within the buffer, and the driver has read the bytes when it returns.
        let copy = || unsafe { cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()) };
        self.context.copy(copy, "be written to")
    }

    /// Copies bytes from an address within the buffer, guards included; the context has to be current.
    pub(super) fn get(&self, address: CUdeviceptr, length: usize) -> Result<Vec<u8>> {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| {
            Error::input(format!("this machine's memory does not suffice for {} from the GPU", in_bytes(length)))
                .help("choose a smaller grid, or store fields as f32")
        })?;
        if length > 0 {
            // SAFETY: the callers keep within the buffer, and the list has the room.
            let copy = || unsafe { cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, length) };
            self.context.copy(copy, "be read from")?;
            // SAFETY: the driver has written all of them.
            unsafe { bytes.set_len(length) };
        }
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the memory was reserved here and is not used again. A failure to free has no remedy.
            let _ = unsafe { cuMemFree_v2(self.base) };
        }
    }
}

/// A size in the unit that suits it.
pub(super) fn in_bytes(bytes: usize) -> String {
    let bytes = bytes as f64;
    match bytes {
        _ if bytes >= 1e9 => format!("{:.2} GB", bytes / 1e9),
        _ if bytes >= 1e6 => format!("{:.2} MB", bytes / 1e6),
        _ => format!("{bytes} bytes"),
    }
}
