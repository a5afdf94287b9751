//! Handles: numbers that look like pointers. None leads anywhere by itself, so one that was freed, or never given out, is an error and
//! nothing worse.

use crate::call::Bound;
use crate::stencil::Stencil;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use stencilc_runtime::Error;

/// What a handle stands for.
#[derive(Clone)]
pub enum Held {
    /// A stencil.
    Stencil(Arc<Stencil>),
    /// A stencil that is bound to arrays.
    Call(Arc<Bound>),
}

impl Held {
    fn what(&self) -> &'static str {
        match self {
            Self::Stencil(_) => "a stencil",
            Self::Call(_) => "a call",
        }
    }
}

#[derive(Default)]
struct Table {
    last: usize,
    held: HashMap<usize, Held>,
}

fn table() -> MutexGuard<'static, Table> {
    static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);
    // What is kept there is whole at any time.
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives out a handle.
pub fn give<T>(held: Held) -> *mut T {
    let mut table = table();
    // No address of anything, and none that was given out before.
    table.last += 2;
    let number = table.last + 1;
    table.held.insert(number, held);
    std::ptr::without_provenance_mut(number)
}

/// What a handle stands for.
///
/// # Errors
/// It is null, or was freed, or is none.
fn held<T>(handle: *const T, wanted: &str) -> Result<Held, Error> {
    if handle.is_null() {
        return Err(Error::call(format!("the handle is null, and one of {wanted} is needed"))
            .help("look at the status of the call that should have made it"));
    }
    table().held.get(&handle.addr()).cloned().ok_or_else(|| {
        Error::call(format!("the handle is none of {wanted} that is there: it was freed, or never made"))
            .help("use what stencilc_compile, stencilc_load and stencilc_bind have made, until it is freed")
    })
}

fn other(held: &Held, wanted: &str) -> Error {
    Error::call(format!("the handle is one of {}, and one of {wanted} is needed", held.what()))
}

/// The stencil of a handle.
///
/// # Errors
/// It is none of one.
pub fn stencil<T>(handle: *const T) -> Result<Arc<Stencil>, Error> {
    match held(handle, "a stencil")? {
        Held::Stencil(own) => Ok(own),
        held @ Held::Call(_) => Err(other(&held, "a stencil")),
    }
}

/// The call of a handle.
///
/// # Errors
/// It is none of one.
pub fn call<T>(handle: *const T) -> Result<Arc<Bound>, Error> {
    match held(handle, "a call")? {
        Held::Call(own) => Ok(own),
        held @ Held::Stencil(_) => Err(other(&held, "a call")),
    }
}

/// Takes back a handle, if it is of the right kind; null is none. What it stands for goes when nobody uses it any more.
///
/// # Errors
/// It is none, or of the other kind.
pub fn free<T>(handle: *mut T, is_right: fn(&Held) -> bool, wanted: &str) -> Result<(), Error> {
    if handle.is_null() {
        return Ok(());
    }
    let own = held(handle, wanted)?;
    if !is_right(&own) {
        return Err(other(&own, wanted));
    }
    let taken = table().held.remove(&handle.addr());
    // Outside of the lock: a call waits for its GPU.
    drop(taken);
    Ok(())
}
