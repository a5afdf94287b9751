//! Whom the results of a command are for: somebody at a screen, a script, or another program that asked for them in this process.

use crate::terminal;
use serde::Serialize;
use serde_json::Value;
use stencilc_compiler::text::shown;
use stencilc_runtime::{Error, Result};

/// Whom results are for.
pub enum Audience {
    /// Somebody who reads them on stdout as they come.
    Screen,
    /// A script, which reads JSON on stdout.
    Script,
    /// A program that asked for both.
    Caller(Kept),
}

/// Results for whoever asked.
#[derive(Default)]
pub struct Kept {
    /// To be read.
    pub text: String,
    /// The same as data.
    pub data: Value,
}

impl Audience {
    /// Who reads stdout, by whether JSON was asked for.
    pub fn of_stdout(json: bool) -> Self {
        if json { Self::Script } else { Self::Screen }
    }

    /// Tells a result that is text.
    ///
    /// # Errors
    /// Nothing more can be written, as on a full disk.
    pub fn text(&mut self, text: impl FnOnce() -> String) -> Result<()> {
        match self {
            Self::Screen => terminal::print(&text()),
            Self::Script => Ok(()),
            Self::Caller(kept) => {
                kept.text.push_str(&shown(&text()));
                Ok(())
            }
        }
    }

    /// Tells the whole result as data.
    ///
    /// # Errors
    /// As [`Audience::text`].
    pub fn data<T: Serialize>(&mut self, data: impl FnOnce() -> T) -> Result<()> {
        match self {
            Self::Screen => Ok(()),
            Self::Script => terminal::json(&data()),
            Self::Caller(kept) => {
                let failed = |error| Error::check(format!("the results cannot be written as JSON: {error}"));
                kept.data = serde_json::to_value(data()).map_err(failed)?;
                Ok(())
            }
        }
    }
}
