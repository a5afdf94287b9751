//! Stencils that are bound to arrays: checked and compiled once, and run as often as one likes.

use crate::array::{self, StencilcArray};
use crate::handles::{self, Held};
use crate::status::{StencilcStatus, begin, guarded};
use crate::stencil::{Stencil, StencilcStencil};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};
use stencilc_runtime::cuda::keeping_current;
use stencilc_runtime::job::Call;
use stencilc_runtime::{Device, Error};

/// A stencil that is bound to arrays.
pub struct StencilcCall {
    _nobody_looks_inside: (),
}

/// What a handle of a call stands for.
pub struct Bound {
    stencil: Arc<Stencil>,
    device: Device,
    own: Mutex<Running>,
}

impl Held for Bound {
    const WHAT: &'static str = "a call";
}

/// A call, and the stream of its last run on a GPU.
struct Running {
    call: Call<'static>,
    last: Option<*mut c_void>,
}

// SAFETY: the address of a stream is handed to the driver alone, which takes it from any thread.
unsafe impl Send for Running {}

impl Bound {
    fn running(&self) -> Result<MutexGuard<'_, Running>, Error> {
        self.own
            .lock()
            .map_err(|_| Error::check("a mistake in stencilc has ended this call before").help("bind the arrays again"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.last.is_some() {
            // Its kernel is unloaded, and arrays may be freed, once nothing runs. Who would be told of an error is gone.
            let _ = keeping_current(|| self.call.wait());
        }
    }
}

/// The device that computes, as it is said, or as arrays lie.
///
/// # Errors
/// They lie on another one.
fn device(said: Option<Device>, place: Option<usize>) -> Result<Device, Error> {
    match (said, place) {
        (Some(Device::Cuda(own)), Some(there)) if own != there => {
            Err(Error::call(format!("cuda:{own} is to compute, and the arrays lie on cuda:{there}")))
        }
        (None, Some(there)) => Ok(Device::Cuda(there)),
        (None, None) => Ok(Device::Cpu),
        (Some(own), _) => Ok(own),
    }
}

/// Binds a stencil to arrays, which stay the caller's: checks all that is said, and makes the kernel.
///
/// # Safety
/// There are as many arrays, and room for a handle. The arrays are there until the call is freed, or others are lent to it, and what was
/// started is done; meanwhile nobody else writes them while it runs, or reads those that it writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_bind(
    stencil: *const StencilcStencil,
    arrays: *const StencilcArray,
    count: usize,
    out: *mut *mut StencilcCall,
) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe {
        handles::made(out, || {
            let stencil = handles::held::<Stencil, _>(stencil)?;
            begin()?;
            let (arrays, place) = array::lent(&stencil, arrays, count)?;
            let (job, how) = stencil.job();
            let device = device(how.device, place)?;
            let call = job.device(device).call(arrays)?;
            Ok(Bound { stencil, device, own: Mutex::new(Running { call, last: None }) })
        })
    }
}

/// Lends other arrays to a call, which lie as those did that it was bound to: nothing is compiled again.
///
/// # Safety
/// As of stencilc_bind(); and what was started on the others is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_lend(
    call: *mut StencilcCall,
    arrays: *const StencilcArray,
    count: usize,
) -> StencilcStatus {
    guarded(|| {
        let bound = handles::held::<Bound, _>(call)?;
        // SAFETY: the caller's.
        let (arrays, place) = unsafe { array::lent(&bound.stencil, arrays, count) }?;
        device(Some(bound.device), place)?;
        bound.running()?.call.lend(arrays)
    })
}

/// Computes, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_run(call: *mut StencilcCall) -> StencilcStatus {
    guarded(|| {
        let bound = handles::held::<Bound, _>(call)?;
        begin()?;
        let mut running = bound.running()?;
        running.call.run()
    })
}

/// Starts to compute in a stream, a `cudaStream_t` or null for the default one, and returns at once. On the CPU all is done when it
/// returns.
///
/// # Safety
/// The stream is one of the primary context of the GPU where the arrays lie.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_start(call: *mut StencilcCall, stream: *mut c_void) -> StencilcStatus {
    guarded(|| {
        let bound = handles::held::<Bound, _>(call)?;
        begin()?;
        let mut running = bound.running()?;
        if running.call.updates() && running.last.is_some_and(|last| last != stream) {
            // What is copied aside has one place, which may still be in use.
            running.call.wait()?;
        }
        // SAFETY: the caller's.
        unsafe { running.call.run_in(stream) }?;
        running.last = matches!(bound.device, Device::Cuda(_)).then_some(stream);
        Ok(())
    })
}

/// Waits until all that was started is done.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_wait(call: *mut StencilcCall) -> StencilcStatus {
    guarded(|| handles::held::<Bound, _>(call)?.running()?.call.wait())
}

/// Says which cells are computed, along k, j and i: from `first` on, and before `end`.
///
/// # Safety
/// There is room for three numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_region(call: *const StencilcCall, first: *mut i64, end: *mut i64) -> StencilcStatus {
    guarded(|| {
        let bound = handles::held::<Bound, _>(call)?;
        if first.is_null() || end.is_null() {
            return Err(
                Error::call("the place for the cells is a null pointer").help("give two arrays of three numbers")
            );
        }
        let running = bound.running()?;
        let region = running.call.region();
        for (axis, range) in [&region.k, &region.j, &region.i].into_iter().enumerate() {
            // SAFETY: the caller's.
            unsafe { (first.add(axis).write(range.start as i64), end.add(axis).write(range.end as i64)) };
        }
        Ok(())
    })
}

/// Frees a call, once what it has started is done; null is none. The arrays stay the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_free_call(call: *mut StencilcCall) -> StencilcStatus {
    handles::free::<Bound, _>(call)
}
