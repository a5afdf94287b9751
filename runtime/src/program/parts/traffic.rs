//! What parts of a program bring from each other, step by step.

use super::messages::messages;
use super::{Cut, Rows};
use crate::driver::dry::asked;
use crate::error::Result;
use crate::peers::PartsScript;
use crate::problem::element_of;
use serde::Serialize;
use std::collections::BTreeMap;
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

/// What each part brings in a turn of the outermost loop.
pub struct Turn {
    /// By variable, in the order in which they are brought first.
    pub brought: Vec<Traffic>,
    /// How often parts bring something, at once of all variables that a call reads.
    pub exchanges: usize,
    /// How many steps it is; none of a program that repeats nothing, of which all is told.
    pub steps: u64,
    /// The most bytes that come to a part.
    pub to_a_part: usize,
    /// The most bytes that come to a part from one other.
    pub over_a_link: usize,
}

/// What each part brings in a turn of the outermost loop.
///
/// # Errors
/// A number of repetitions is negative.
pub fn traffic(cut: &Cut) -> Result<Turn> {
    let staged = &cut.whole.staged;
    let brought = staged.is_shared_by_parts();
    let script = PartsScript { whole: Arc::clone(&cut.whole), brought: Rows(brought.clone()) };
    let messages = messages(staged, &cut.parts);
    let row_of = |variable: VariableId| {
        let own = &staged.program.variables[variable];
        let count = staged.domain.ni * own.place.levels.count(staged.domain.nk);
        count * element_of(own.stored, staged.precision).bytes()
    };
    let of = |variable: VariableId, times: usize| {
        let counts = |side| messages.iter().filter(move |own| own.side == side && cut.brings(variable, own));
        let rows = Side::BOTH.map(|side| counts(side).map(|own| own.count).max().unwrap_or(0));
        let bytes = rows.map(|rows| rows * row_of(variable));
        Traffic { variable: staged.program.variables[variable].name.clone(), times, rows, bytes }
    };
    let asked = asked(Arc::new(script))?;
    let (exchanges, all) = asked.exchanges(|own| brought[own.index()]);
    let (mut parts, mut links): (BTreeMap<usize, usize>, BTreeMap<[usize; 2], usize>) = Default::default();
    for &(variable, times) in &all {
        for message in messages.iter().filter(|own| cut.brings(variable, own)) {
            let bytes = times * message.count * row_of(variable);
            *parts.entry(message.to).or_default() += bytes;
            *links.entry([message.to, message.from]).or_default() += bytes;
        }
    }
    let to_a_part = parts.into_values().max().unwrap_or(0);
    let over_a_link = links.into_values().max().unwrap_or(0);
    let all = all.into_iter().map(|(variable, times)| of(variable, times)).filter(|own| own.rows != [0, 0]);
    Ok(Turn { brought: all.collect(), exchanges, steps: asked.steps, to_a_part, over_a_link })
}
