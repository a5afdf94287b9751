//! `run` as one of several processes that `mpirun` or `srun` has started: each computes a part, and the first one speaks and writes for all.
//!
//! What is wrong before anything is computed, each has to find: then all of them end with one message. Later it may be one alone, which says
//! so and ends the others.

use crate::terminal;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use stencilc_runtime::cuda::nccl;
use stencilc_runtime::ranks::{Ranks, mpi};
use stencilc_runtime::{Device, Error, Result, files};

/// How often all agree that each can go on: once everything is checked, and once it has begun.
const TIMES: u32 = 2;

/// What becomes of the others where this one fails.
static OTHERS: Mutex<Option<Others>> = Mutex::new(None);

/// The others, at the end.
enum Others {
    /// They have the same error, which the first one is to tell before any of them is gone: `mpirun` ends those that are left.
    Wait(Arc<Ranks>),
    /// They know nothing of it, and are ended.
    End(Arc<Ranks>),
}

fn keep(others: Option<Others>) -> Option<Others> {
    std::mem::replace(&mut *OTHERS.lock().unwrap_or_else(PoisonError::into_inner), others)
}

/// This process and the others; or this one alone.
pub struct Together {
    ranks: Option<Arc<Ranks>>,
    /// How often all have agreed.
    agreed: Cell<u32>,
    /// Whether all have ended with the same error.
    is_over: Cell<bool>,
}

/// Lets a process do its part, if several were started together, and otherwise all.
///
/// # Errors
/// That of the work; there is no MPI that could be used.
pub fn together(work: impl FnOnce(&Together) -> Result<()>) -> Result<()> {
    if mpi::started().is_some_and(|[_, rank]| rank > 0) {
        terminal::silence(true);
    }
    if let Some(value) = std::env::var_os(mpi::VARIABLE).filter(|value| *value != "off") {
        let value = value.to_string_lossy();
        terminal::note(&format!("{}={value} changes nothing: `off` is what it can say", mpi::VARIABLE));
    }
    let joined = mpi::joined().inspect_err(|_| terminal::silence(false))?;
    let own = Together { ranks: joined.map(Arc::new), agreed: Cell::new(0), is_over: Cell::new(false) };
    own.ranks.iter().for_each(|ranks| ranks.tell_first_alone());
    let done = work(&own);
    let Some(ranks) = &own.ranks else { return done };
    match done {
        Ok(()) => {
            // Nobody leaves before the first has written all: some MPIs cannot end who has left.
            let done = ranks.first_says(true).map(drop);
            keep(None);
            done
        }
        Err(error) if own.is_over.get() || own.agreed.get() < TIMES => {
            let told = if own.is_over.get() { error } else { ranks.agree(Some(&error)).err().unwrap_or(error) };
            keep(Some(Others::Wait(Arc::clone(ranks))));
            Err(told)
        }
        Err(error) => {
            terminal::silence(false);
            Err(Error { message: format!("on rank {} of {}: {}", ranks.rank(), ranks.ranks(), error.message), ..error })
        }
    }
}

/// Ends beside the other processes, if there are some, once it is told why.
pub fn end(status: u8) {
    match keep(None) {
        // Who cannot be reached any more need not be waited for.
        Some(Others::Wait(ranks)) => _ = ranks.first_says(true),
        Some(Others::End(ranks)) => {
            files::leave_nothing();
            ranks.end_all(status);
        }
        None => {}
    }
}

impl Together {
    /// The processes that compute with this one.
    pub fn ranks(&self) -> Option<&Arc<Ranks>> {
        self.ranks.as_ref()
    }

    /// Whether it is this one that writes.
    pub fn writes(&self) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.is_first())
    }

    /// Goes on once all others can, too.
    ///
    /// # Errors
    /// One of them cannot.
    pub fn agree(&self) -> Result<()> {
        let Some(ranks) = &self.ranks else { return Ok(()) };
        ranks.agree(None).inspect_err(|_| self.is_over.set(true))?;
        self.agreed.set(self.agreed.get() + 1);
        if self.agreed.get() == TIMES {
            keep(Some(Others::End(Arc::clone(ranks))));
            if let Some(Error { message, help, .. }) = ranks.detour().filter(|_| !nccl::is_off()) {
                let help = help.map_or(String::new(), |help| format!("; {help}"));
                terminal::note(&format!(
                    "what GPUs bring of each other goes through the memory of hosts: {message}{help}"
                ));
            }
        }
        Ok(())
    }

    /// What the process that writes decides.
    ///
    /// # Errors
    /// Another one has ended.
    pub fn decided(&self, truth: bool) -> Result<bool> {
        self.ranks.as_ref().map_or(Ok(truth), |ranks| ranks.first_says(truth))
    }

    /// The device of this process.
    ///
    /// # Errors
    /// Its host has fewer GPUs than processes.
    pub fn device(&self, device: Device) -> Result<Device> {
        self.ranks.as_ref().map_or(Ok(device), |ranks| ranks.device(device))
    }
}
