//! Messages for a program that asked for something in this process: what a command line would say on stderr.

use std::cell::RefCell;
use stencilc_compiler::diagnostic::Diagnostic;

/// What was said while something was done.
#[derive(Default)]
pub struct Heard {
    /// Notes, and what failed beside the error that ended it.
    pub notes: Vec<String>,
    /// What there is to tell of places in the text.
    pub diagnostics: Vec<Diagnostic>,
}

thread_local! {
    /// What this thread says, if somebody hears it.
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// Ends the hearing, also where the work panics, and gives back what was said before.
struct Hearing {
    before: Option<Heard>,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        HEARD.set(self.before.take());
    }
}

/// Does something, and hears what this thread says meanwhile.
pub fn hearing<T>(work: impl FnOnce() -> T) -> (T, Heard) {
    let _hearing = Hearing { before: HEARD.replace(Some(Heard::default())) };
    let done = work();
    (done, HEARD.take().unwrap_or_default())
}

/// Hands what is said to whoever hears this thread; whether anybody does.
pub fn hears(say: impl FnOnce(&mut Heard)) -> bool {
    HEARD.with_borrow_mut(|heard| heard.as_mut().map(say).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn say(note: &str) -> bool {
        hears(|heard| heard.notes.push(note.to_owned()))
    }

    #[test]
    fn what_is_said_is_heard_by_whoever_asked_last() {
        assert!(!say("nobody hears this"));
        let ((inner, last), outer) = hearing(|| {
            say("one");
            let (_, inner) = hearing(|| say("two"));
            (inner, say("three"))
        });
        assert!(last);
        assert_eq!((outer.notes, inner.notes), (vec!["one".to_owned(), "three".to_owned()], vec!["two".to_owned()]));
        assert!(catch_unwind(AssertUnwindSafe(|| hearing(|| panic!("a test panics")))).is_err());
        assert!(!say("nobody hears this"));
    }
}
