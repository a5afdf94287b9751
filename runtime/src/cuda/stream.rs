//! Streams: orders of work on a GPU that do not wait for each other.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUstream, CUstream_flags};

use super::Gpu;
use super::context::Context;
use super::driver::{cuStreamCreate, cuStreamDestroy_v2, cuStreamSynchronize};
use crate::Result;

/// An order of work that others need not wait for. When it is dropped, what is in it is still done.
pub struct Stream {
    context: Arc<Context>,
    handle: CUstream,
}

impl Stream {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self> {
        context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current, and the handle goes into a pointer that is there.
        let answer = unsafe { cuStreamCreate(&mut handle, CUstream_flags::CU_STREAM_NON_BLOCKING as u32) };
        context.succeed(answer, "make a stream")?;
        Ok(Self { context: Arc::clone(context), handle })
    }

    /// What the driver calls it (`CUstream`, which is `cudaStream_t`).
    pub fn handle(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// Waits until all that is in it is done.
    ///
    /// # Errors
    ///
    /// When a kernel has failed.
    pub fn wait(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the stream was made above.
        self.context.succeed(unsafe { cuStreamSynchronize(self.handle) }, "finish its work")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is not used again. A failure to free has no remedy.
        let _ = unsafe { cuStreamDestroy_v2(self.handle) };
    }
}

impl Gpu {
    /// A stream of its own on this GPU.
    ///
    /// # Errors
    ///
    /// When the driver cannot make one.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(&self.context)
    }
}
