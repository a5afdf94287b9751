//! Threads of this process build a kernel one after the other, so that it is built once: kernels of many variants have the same
//! text.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The keys of what is being built.
static BUILDING: Mutex<Option<HashSet<blake3::Hash>>> = Mutex::new(None);

/// Wakes those who wait for a key.
static BUILT: Condvar = Condvar::new();

fn building() -> MutexGuard<'static, Option<HashSet<blake3::Hash>>> {
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as it lives, no other thread has one of the same key.
pub struct Turn(blake3::Hash);

impl Turn {
    /// Waits until nobody else builds what has this key.
    pub fn wait(key: &blake3::Hash) -> Self {
        let is_built = |keys: &mut Option<HashSet<_>>| keys.as_ref().is_some_and(|keys| keys.contains(key));
        let mut keys = BUILT.wait_while(building(), is_built).unwrap_or_else(PoisonError::into_inner);
        keys.get_or_insert_default().insert(*key);
        Self(*key)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        building().get_or_insert_default().remove(&self.0);
        BUILT.notify_all();
    }
}
