//! Which rows go from which part to which.

use crate::program::ProgramProblem;
use std::sync::Arc;
use stencilc_compiler::ir::program::{GridAxis, Side};
use stencilc_compiler::program::{Beyond, Staged};

/// Rows that a part brings from a neighbour into its halo: all cells along i and k, halos among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// The part that brings them.
    pub to: usize,
    /// The part that has them.
    pub from: usize,
    /// The side of its own beyond which they lie.
    pub side: Side,
    /// The first of them, on its own grid with its halo.
    pub to_row: usize,
    /// The first of them, on the other's.
    pub from_row: usize,
    /// How many.
    pub count: usize,
}

/// By part, which parts lie before and behind it, as far as one of the two brings rows of the other.
pub fn neighbours(messages: &[Message], parts: usize) -> Vec<[Option<usize>; 2]> {
    let mut all = vec![[None; 2]; parts];
    for message in messages.iter().filter(|message| message.count > 0) {
        all[message.to][message.side as usize] = Some(message.from);
        all[message.from][message.side.other() as usize] = Some(message.to);
    }
    all
}

/// All messages, of a program in parts.
pub fn messages(whole: &Staged, parts: &[Arc<ProgramProblem>]) -> Vec<Message> {
    let halo = |part: usize, side: Side| parts[part].staged.halo.width(GridAxis::J, side);
    let len = |part: usize| parts[part].staged.domain.nj;
    // Around a circle of rows, the first part and the last one are neighbours.
    let is_circle = whole.edges.iter().any(|edges| edges.beyond(GridAxis::J, Side::Low) == Some(Beyond::Periodic));
    let before = |part: usize| part.checked_sub(1).or(is_circle.then_some(parts.len() - 1));
    let behind = |part: usize| Some(part + 1).filter(|&part| part < parts.len()).or(is_circle.then_some(0));
    let mut all = Vec::new();
    for to in 0..parts.len() {
        if let Some(from) = before(to) {
            let count = halo(to, Side::Low);
            let from_row = halo(from, Side::Low) + len(from) - count;
            all.push(Message { to, from, side: Side::Low, to_row: 0, from_row, count });
        }
        if let Some(from) = behind(to) {
            let (to_row, from_row) = (halo(to, Side::Low) + len(to), halo(from, Side::Low));
            all.push(Message { to, from, side: Side::High, to_row, from_row, count: halo(to, Side::High) });
        }
    }
    all
}
