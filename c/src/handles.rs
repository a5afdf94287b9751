//! Handles: numbers that look like pointers. None leads anywhere by itself, so one that was freed, or never given out, is an error and
//! nothing worse.

use crate::status::{StencilcStatus, guarded};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use stencilc_runtime::Error;

/// What a handle stands for.
pub trait Held: Any + Send + Sync {
    /// What messages call it: `a stencil`.
    const WHAT: &'static str;
}

/// What one handle stands for, of whatever kind.
#[derive(Clone)]
struct Entry {
    what: &'static str,
    own: Arc<dyn Any + Send + Sync>,
}

#[derive(Default)]
struct Table {
    last: usize,
    entries: HashMap<usize, Entry>,
}

fn table() -> MutexGuard<'static, Table> {
    static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
    // What is kept there is whole at any time.
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives out a handle.
fn give<H: Held, T>(own: H) -> *mut T {
    let mut table = table();
    // No address of anything, and none that was given out before.
    table.last += 2;
    let number = table.last + 1;
    table.entries.insert(number, Entry { what: H::WHAT, own: Arc::new(own) });
    std::ptr::without_provenance_mut(number)
}

/// Hands out what was made, or nothing.
///
/// # Safety
/// There is room for a pointer, or it is null.
pub unsafe fn made<H: Held, T>(out: *mut *mut T, make: impl FnOnce() -> Result<H, Error>) -> StencilcStatus {
    guarded(|| {
        if out.is_null() {
            return Err(Error::call("the place for the handle is a null pointer").help("give the address of a pointer"));
        }
        // SAFETY: the caller's.
        unsafe { out.write(std::ptr::null_mut()) };
        let own = make()?;
        // SAFETY: as above.
        unsafe { out.write(give(own)) };
        Ok(())
    })
}

/// What a handle stands for.
///
/// # Errors
/// It is null, or was freed, or is none, or one of something else.
pub fn held<H: Held, T>(handle: *const T) -> Result<Arc<H>, Error> {
    let wanted = H::WHAT;
    if handle.is_null() {
        return Err(Error::call(format!("the handle is null, and one of {wanted} is needed"))
            .help("look at the status of the call that should have made it"));
    }
    let entry = table().entries.get(&handle.addr()).cloned().ok_or_else(|| {
        Error::call(format!("the handle is none of {wanted} that is there: it was freed, or never made"))
            .help("use what functions of this library have made, until it is freed")
    })?;
    entry
        .own
        .downcast()
        .map_err(|_| Error::call(format!("the handle is one of {}, and one of {wanted} is needed", entry.what)))
}

/// Takes back a handle; null is none. What it stands for goes when nobody uses it any more.
///
/// # Errors
/// It is none, or of another kind.
pub fn free<H: Held, T>(handle: *mut T) -> StencilcStatus {
    guarded(|| {
        if handle.is_null() {
            return Ok(());
        }
        let own = held::<H, T>(handle)?;
        let taken = table().entries.remove(&handle.addr());
        // Outside of the lock: a call waits for its GPU.
        drop((taken, own));
        Ok(())
    })
}
