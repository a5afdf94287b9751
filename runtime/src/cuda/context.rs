//! The context of a GPU, which everything on it needs: failures with the kernels' names, waiting, and events.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{CUcontext, CUdevice, CUevent, CUevent_flags, CUresult, CUstream, CUstream_st};

use super::driver::{
    Driver, cuCtxGetCurrent, cuCtxSetCurrent, cuCtxSynchronize, cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRetain,
    cuEventCreate, cuEventDestroy_v2, cuEventRecord, cuStreamSynchronize, cuStreamWaitEvent, driver, succeed, words,
};
use crate::{Error, Result};

/// The primary context of a GPU, released with the last thing that needs it.
pub(super) struct Context {
    pub(super) handle: CUcontext,
    pub(super) device: CUdevice,
    pub(super) driver: &'static Driver,
    /// The kernels launched since the last time that all were known to have ended well. The driver reports a kernel's
    /// failure at some later call, which can then say whose it may be.
    running: Mutex<Vec<Arc<str>>>,
    /// The stream that launches and copies go into: [`Context::own`], or one that records them.
    pub(super) stream: AtomicPtr<CUstream_st>,
    /// The stream of whoever uses the GPU: the default one, if nothing else was said.
    own: AtomicPtr<CUstream_st>,
}

// SAFETY: the driver's calls may come from any thread, as long as the context is current there; `bind` sees to it.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn open(device: CUdevice) -> Result<Self> {
        let driver = driver()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the device is the driver's, and the handle goes into a pointer that is there.
        succeed(unsafe { cuDevicePrimaryCtxRetain(&mut handle, device) }, "be opened").map_err(|error| {
            error.help("another program may have it for itself or fill its memory: see `nvidia-smi`")
        })?;
        Ok(Self {
            handle,
            device,
            driver,
            running: Mutex::default(),
            stream: AtomicPtr::default(),
            own: AtomicPtr::default(),
        })
    }

    /// Makes the context that of this thread, as every call that concerns it needs.
    pub(super) fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained until `self` is dropped.
        succeed(unsafe { cuCtxSetCurrent(self.handle) }, "be used from this thread")
    }

    pub(super) fn running(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        // A list of names is fit for use whatever became of the thread that held it.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a kernel was started.
    pub(super) fn started(&self, kernel: &Arc<str>) {
        let mut running = self.running();
        if !running.iter().any(|name| Arc::ptr_eq(name, kernel)) {
            running.push(Arc::clone(kernel));
        }
    }

    /// As [`succeed`], but the failure of a kernel is told as such, and with its name.
    pub(super) fn succeed(&self, answer: CUresult, doing: &str) -> Result<()> {
        let by_kernel = matches!(
            answer,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | CUresult::CUDA_ERROR_ASSERT
                | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUresult::CUDA_ERROR_INVALID_PC
                | CUresult::CUDA_ERROR_LAUNCH_FAILED
        );
        if !by_kernel {
            return succeed(answer, doing);
        }
        let who = match &self.running()[..] {
            [] => "a kernel".to_owned(),
            [one] => format!("kernel {one}"),
            many => format!("one of the kernels {}", many.join(", ")),
        };
        Err(Error::check(format!("{who} failed on the GPU: {}", words(answer)))
            .help("`compute-sanitizer` before the same command shows where"))
    }

    /// The stream of whoever uses the GPU.
    pub(super) fn own(&self) -> CUstream {
        self.own.load(Ordering::Relaxed)
    }

    /// Lets all further work go into a stream.
    pub(super) fn set_own(&self, stream: CUstream) {
        self.own.store(stream, Ordering::Relaxed);
        self.stream.store(stream, Ordering::Relaxed);
    }

    /// Waits until all work has ended; of a stream that somebody gave, the work in it alone.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.bind()?;
        let own = self.own();
        // SAFETY: the context is current, and whoever gave the stream sees to it that it is there.
        let answer = unsafe { if own.is_null() { cuCtxSynchronize() } else { cuStreamSynchronize(own) } };
        self.succeed(answer, "finish its work")?;
        self.running().clear();
        Ok(())
    }

    /// Copies between the host and the GPU, after all work before and before all work behind. The driver does so in its default
    /// stream, which others need not wait for, nor it for them.
    pub(super) fn copy(&self, copy: impl FnOnce() -> CUresult, doing: &str) -> Result<()> {
        if self.own().is_null() {
            return self.succeed(copy(), doing);
        }
        self.synchronize()?;
        self.succeed(copy(), doing)?;
        // SAFETY: the context is current, and the null pointer its default stream.
        self.succeed(unsafe { cuStreamSynchronize(std::ptr::null_mut()) }, doing)
    }
}

/// Does something, after which the context is this thread's that was it before: libraries of CUDA's take a thread's context for the device
/// that is to be used.
pub fn keeping_current<T>(work: impl FnOnce() -> T) -> T {
    let mut before = std::ptr::null_mut();
    // SAFETY: the driver is there, and the context goes into a pointer that is there.
    let is_known = driver().is_ok() && unsafe { cuCtxGetCurrent(&mut before) } == CUresult::CUDA_SUCCESS;
    let done = work();
    if is_known {
        // SAFETY: it was this thread's context, or none. If it has gone meanwhile, nobody can use it anyway.
        unsafe { cuCtxSetCurrent(before) };
    }
    done
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing that needs it is left. A failure to release has no remedy.
        let _ = unsafe { cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A mark in the GPU's work that knows when it was passed.
pub(super) struct Event<'a> {
    context: &'a Context,
    handle: CUevent,
}

impl<'a> Event<'a> {
    pub(super) fn new(context: &'a Context) -> Result<Self> {
        Self::of(context, CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// One that others wait for, and that tells no time.
    pub(super) fn mark(context: &'a Context) -> Result<Self> {
        Self::of(context, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn of(context: &'a Context, flags: CUevent_flags) -> Result<Self> {
        context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current, and the handle goes into a pointer that is there.
        let answer = unsafe { cuEventCreate(&mut handle, flags as c_uint) };
        context.succeed(answer, "make an event")?;
        Ok(Self { context, handle })
    }

    pub(super) fn record(&self) -> Result<()> {
        self.record_in(self.context.own())
    }

    /// The same in the stream that launches go into, which may be one that records them.
    pub(super) fn record_among_launches(&self) -> Result<()> {
        self.record_in(self.context.stream.load(Ordering::Relaxed))
    }

    fn record_in(&self, stream: CUstream) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the context is current, the event its own, and the stream one of the context's.
        self.context.succeed(unsafe { cuEventRecord(self.handle, stream) }, "record an event")
    }

    /// Lets what is launched from now on, on whatever GPU, wait until the event was passed.
    pub(super) fn hold_back(&self, waiting: &Context) -> Result<()> {
        waiting.bind()?;
        let stream = waiting.stream.load(Ordering::Relaxed);
        // SAFETY: the context is current, the stream its own, and the event was recorded and is there.
        waiting.succeed(unsafe { cuStreamWaitEvent(stream, self.handle, 0) }, "wait for another GPU")
    }

    /// Microseconds between two events that have both been passed.
    pub(super) fn microseconds_to(&self, later: &Self) -> Result<f64> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are the context's, and the time goes into a number that is there.
        let answer = unsafe { (self.context.driver.elapsed)(&mut milliseconds, self.handle, later.handle) };
        self.context.succeed(answer, "tell the time between events")?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: the event is not used again. A failure to free has no remedy.
        let _ = unsafe { cuEventDestroy_v2(self.handle) };
    }
}
