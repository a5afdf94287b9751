//! Memory of the GPU between guard bytes, and what has become of the guards.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::Context;
use super::driver::{cuMemFree_v2, cuMemcpyDtoH_v2, cuMemcpyHtoD_v2};
use crate::{Error, Result};

/// Bytes of guard before and after the bytes of a [`Buffer`].
pub const GUARD: usize = 256;

/// What guards are filled with, repeated: as f32 and as f64 not a number, but neither the one that the GPU makes nor
/// the integer -1, so that a stray read shows in the results and a stray write in the guard.
pub(super) const PATTERN: [u8; 4] = [0xc3, 0xa5, 0xfd, 0xff];

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
        let answer = unsafe { cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()) };
        self.context.succeed(answer, "be written to")
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
            let answer = unsafe { cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, length) };
            self.context.succeed(answer, "be read from")?;
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

/// What has become of the guards of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// How far before the first byte the nearest overwritten byte is: 1 is right before it.
    pub before: Option<usize>,
    /// How far after the last byte the nearest overwritten byte is: 1 is right after it.
    pub after: Option<usize>,
}

impl Guards {
    /// Whether no byte was overwritten.
    pub fn intact(self) -> bool {
        self == Self { before: None, after: None }
    }

    pub(super) fn compare(before: &[u8], after: &[u8]) -> Self {
        let overwritten = |guard: &[u8]| -> Vec<bool> {
            guard.iter().zip(PATTERN.iter().cycle()).map(|(byte, original)| byte != original).collect()
        };
        let nearest = |place: Option<usize>| place.map(|place| place + 1);
        Self {
            before: nearest(overwritten(before).into_iter().rev().position(|wrong| wrong)),
            after: nearest(overwritten(after).into_iter().position(|wrong| wrong)),
        }
    }
}

impl fmt::Display for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.before, self.after) {
            (None, None) => f.write_str("guard bytes intact"),
            (Some(before), None) => write!(f, "guard byte {before} before the first element overwritten"),
            (None, Some(after)) => write!(f, "guard byte {after} after the last element overwritten"),
            (Some(before), Some(after)) => {
                write!(f, "guard bytes {before} before the first and {after} after the last element overwritten")
            }
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
