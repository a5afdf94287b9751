//! What parts of a program bring from each other, step by step.

use super::messages::messages;
use super::{Cut, Rows};
use crate::driver::dry::{Asked, asked};
use crate::error::Result;
use crate::peers::PartsScript;
use crate::problem::element_of;
use serde::Serialize;
use std::sync::Arc;
use stencilc_compiler::ir::program::Side;
use stencilc_compiler::ir::{Handle, VariableId};

/// What a part brings of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// The variable.
    pub variable: String,
    /// How often in a turn of the outermost loop.
    pub times: usize,
    /// Rows from the part before and from the part behind: the most that any part brings.
    pub rows: [usize; 2],
    /// The bytes of these.
    pub bytes: [usize; 2],
}

/// What each part brings in a turn of the outermost loop, in the order in which it is brought first, and how many steps that is; in all, and of no
/// step, of a program that repeats nothing.
///
/// # Errors
/// A number of repetitions is negative.
pub fn traffic(cut: &Cut) -> Result<(Vec<Traffic>, u64)> {
    let staged = &cut.whole.staged;
    let brought = staged.is_shared_by_parts();
    let script = PartsScript { whole: Arc::clone(&cut.whole), brought: Rows(brought.clone()) };
    let messages = messages(staged, &cut.parts);
    let of = |variable: VariableId, times: usize| {
        let own = &staged.program.variables[variable];
        let row = staged.domain.ni * own.place.levels.count(staged.domain.nk);
        let counts = |side| messages.iter().filter(move |own| own.side == side && cut.brings(variable, own));
        let rows = Side::BOTH.map(|side| counts(side).map(|own| own.count).max().unwrap_or(0));
        let bytes = rows.map(|rows| rows * row * element_of(own.stored, staged.precision).bytes());
        Traffic { variable: own.name.clone(), times, rows, bytes }
    };
    let Asked { filled, steps, .. } = asked(Arc::new(script))?;
    let mut all: Vec<(VariableId, usize)> = Vec::new();
    for variable in filled.into_iter().filter(|own| brought[own.index()]) {
        match all.iter_mut().find(|(own, _)| *own == variable) {
            Some((_, times)) => *times += 1,
            None => all.push((variable, 1)),
        }
    }
    let all = all.into_iter().map(|(variable, times)| of(variable, times));
    Ok((all.filter(|own| own.rows != [0, 0]).collect(), steps))
}
