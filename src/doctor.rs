//! `stencilc doctor`: what this machine has of all that is needed.

use crate::terminal;
use stencilc_runtime::Result;
use stencilc_runtime::doctor::{Finding, State, examine};

/// Prints what was found. Nothing that is missing is an error: most of it is only needed for something.
///
/// # Errors
/// It cannot be printed.
pub fn doctor(json: bool) -> Result<()> {
    let findings = examine();
    if json {
        return terminal::json(&findings);
    }
    let mut rows = Vec::new();
    for Finding { what, state, detail, remedy } in findings {
        let state = match state {
            State::Good => "good",
            State::Missing => "missing",
            State::Old => "old",
        };
        rows.push(vec![what.to_owned(), state.to_owned(), detail]);
        rows.extend(remedy.map(|remedy| vec![String::new(), String::new(), format!("-> {remedy}")]));
    }
    terminal::print(&terminal::table(&rows, &[]))
}
