//! Where something is written, for people.

use serde::Serialize;
use std::fmt;
use stencilc_compiler::source::{Source, Span};

/// A line of a file, or of one that it imports.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// Of the file itself.
    Own(usize),
    /// `library.stn:7`
    Imported(String),
}

impl Line {
    /// The line where a place begins.
    pub fn of(source: &Source, span: Span) -> Self {
        let number = source.position(span.start).0;
        match source.is_own(span) {
            true => Self::Own(number),
            false => Self::Imported(format!("{}:{number}", source.file_name(span.start))),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(number) => number.fmt(f),
            Self::Imported(place) => place.fmt(f),
        }
    }
}
