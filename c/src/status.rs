//! What goes wrong: a status, and a message of the thread. Nothing else crosses into C, panics included. And processes that were forked
//! from one that computes, which have none of its threads.

use crate::text::c_text;
use crate::words::in_c;
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use stencilc_runtime::cuda::keeping_current;
use stencilc_runtime::{Error, Fault, threads};

/// What came of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StencilcStatus {
    /// It went well.
    Ok = 0,
    /// The input, a text or an array, or the machine does not allow it.
    Input = 1,
    /// The call contradicts itself, or names what does not exist.
    Call = 2,
    /// A check failed, or there is a mistake in the library.
    Check = 3,
}

/// The version of the library, as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// What was wrong with the last call of this thread that failed, and what mends it; empty if none has. It is there until another call of
/// this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_message() -> *const c_char {
    MESSAGE.with(|own| own.try_borrow().map_or(c"".as_ptr(), |own| own.as_ptr()))
}

/// Whether threads were started, which a fork does not take along.
static HAS_THREADS: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    if HAS_THREADS.load(Ordering::Relaxed) {
        IS_FORKED.store(true, Ordering::Relaxed);
    }
}

/// Starts the threads that share the work, before anything is computed for the first time.
///
/// # Errors
/// They are those of another process.
pub fn begin() -> Result<(), Error> {
    static STARTED: Once = Once::new();
    if IS_FORKED.load(Ordering::Relaxed) {
        return Err(Error::call(
            "this process was forked from one that had computed with libstencilc, whose threads and GPU it has not",
        )
        .help("start processes afresh (fork and exec), or fork before anything is computed"));
    }
    STARTED.call_once(|| {
        // SAFETY: what is called in the child sets a number, which is allowed there.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        HAS_THREADS.store(true, Ordering::Relaxed);
        threads::start();
    });
    Ok(())
}

/// Does something for C. What goes wrong, or panics, is a status and a message; other libraries of CUDA's find their context as it was.
pub fn guarded(work: impl FnOnce() -> Result<(), Error>) -> StencilcStatus {
    let (status, message) = match catch_unwind(AssertUnwindSafe(|| keeping_current(work))) {
        Ok(Ok(())) => return StencilcStatus::Ok,
        Ok(Err(error)) => (status_of(error.fault), told(&error)),
        Err(panic) => (StencilcStatus::Check, mistake(&*panic)),
    };
    // Where a thread ends, nobody is left to be told.
    let _ = MESSAGE.try_with(|own| *own.borrow_mut() = c_text(&message));
    status
}

/// What C asks for, or `none` where something is wrong, which a message says.
pub fn answered<T>(none: T, find: impl FnOnce() -> Result<T, Error>) -> T {
    let mut answer = none;
    guarded(|| {
        answer = find()?;
        Ok(())
    });
    answer
}

fn status_of(fault: Fault) -> StencilcStatus {
    match fault {
        Fault::Input | Fault::Machine => StencilcStatus::Input,
        Fault::Call => StencilcStatus::Call,
        Fault::Check => StencilcStatus::Check,
    }
}

fn told(Error { message, help, .. }: &Error) -> String {
    let message = in_c(message);
    help.as_ref().map_or_else(|| message.clone(), |help| format!("{message}\nhelp: {}", in_c(help)))
}

fn mistake(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("nothing is known of it");
    format!("a mistake in stencilc: {said}\nhelp: nothing is wrong with the call; the mistake is worth a report")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn message() -> String {
        // SAFETY: it ends with a zero byte, and no call of this thread fails meanwhile.
        unsafe { CStr::from_ptr(stencilc_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn no_panic_leaves_the_library() {
        assert_eq!(guarded(|| panic!("a test asked for it")), StencilcStatus::Check);
        assert!(message().starts_with("a mistake in stencilc: a test asked for it\nhelp: "), "{}", message());
        assert_eq!(guarded(|| panic!("{}", "and again")), StencilcStatus::Check);
        assert!(message().contains("and again"));
    }

    #[test]
    fn messages_are_those_of_a_thread() {
        std::thread::spawn(|| {
            assert_eq!(message(), "");
            assert_eq!(guarded(|| Err(Error::call("here\0there").help("do"))), StencilcStatus::Call);
            // A zero byte would end it, and what a screen would take for an order is none.
            assert_eq!(message(), "here\\u{0}there\nhelp: do");
            assert_eq!(guarded(|| Ok(())), StencilcStatus::Ok);
            assert_eq!(message(), "here\\u{0}there\nhelp: do");
            std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
        })
        .join()
        .unwrap();
    }
}
