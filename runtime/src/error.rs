//! One error type for the whole runtime: what is wrong, and what to do about it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Who has to act, which is also the command line's exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The input (a stencil, an array, a file, the machine) does not allow it: status 1.
    Input,
    /// The machine does not allow it now, whatever the input: its disk is full, its memory, or there is no folder for temporary
    /// files. Another try of the same kind fares no better. Status 1.
    Machine,
    /// The call contradicts itself or names what does not exist: status 2.
    Call,
    /// A check failed: a number is wrong, a guard byte was overwritten: status 3.
    Check,
}

impl Fault {
    /// The exit status that says so.
    pub fn status(self) -> u8 {
        match self {
            Fault::Input | Fault::Machine => 1,
            Fault::Call => 2,
            Fault::Check => 3,
        }
    }
}

/// What is wrong, and what mends it. Printed by `Display` and `Debug` alike, so that a `main` which returns it tells it as it is
/// meant to be read.
///
/// Advice names options of the command line. For callers of the crate these are methods of [`Job`](crate::job::Job): `--in` is `array`,
/// `--set` is `set`, `--grid`, `--mesh` and `--levels` are `on`, `--draw` is `drawing`, `--fuse` and `--steps` are `plan`; `--storage`,
/// `--access`, `--block` and their kin are `choices`, over meshes, as `--strategy` and `--order`, `over_mesh`; `--stencil` and
/// `--program` are the name that [`Job::new`](crate::job::Job::new) takes. What `--out` and `--checkpoint` write a
/// [`Run`](crate::job::Run) hands out by `get` and `save`. `--precision`, `--device`, `--seed` and `--cast` are called alike.
#[derive(Clone)]
pub struct Error {
    /// Who has to act.
    pub fault: Fault,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What mends it.
    pub help: Option<String>,
}

impl Error {
    /// The input does not allow it.
    pub fn input(message: impl Into<String>) -> Self {
        Self { fault: Fault::Input, message: message.into(), help: None }
    }

    /// The machine does not allow it now.
    pub fn machine(message: impl Into<String>) -> Self {
        Self { fault: Fault::Machine, message: message.into(), help: None }
    }

    /// The call contradicts itself.
    pub fn call(message: impl Into<String>) -> Self {
        Self { fault: Fault::Call, message: message.into(), help: None }
    }

    /// A check failed.
    pub fn check(message: impl Into<String>) -> Self {
        Self { fault: Fault::Check, message: message.into(), help: None }
    }

    /// The same error with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Why an error came to be, in the words of its cause where it has one: that a library could not be opened says little,
/// and the loader's reason much.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
