//! Where reads lead: within an array, or by the rules of its edges.

use crate::time::tree::Rule;

/// Where a read leads along one axis.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Cell(usize),
    /// The cell with the other sign.
    Negated(usize),
    Number(f64),
    Nothing,
}

/// The place at `index` of `n` cells.
pub(super) fn place([low, high]: [Rule; 2], index: i64, n: usize) -> Place {
    let last = n as i64 - 1;
    let (rule, by) = match index {
        ..0 => (low, -1 - index),
        _ if index > last => (high, index - n as i64),
        _ => return Place::Cell(index as usize),
    };
    let inward = |by: i64| Place::Cell(if index < 0 { by } else { last - by } as usize);
    match rule {
        Rule::Halo => Place::Nothing,
        Rule::Periodic => Place::Cell(index.rem_euclid(n as i64) as usize),
        Rule::Copy => inward(0),
        Rule::Mirror if by <= last => inward(by),
        Rule::OddMirror if by <= last => Place::Negated(if index < 0 { by } else { last - by } as usize),
        Rule::Mirror | Rule::OddMirror => Place::Nothing,
        Rule::Value(x) => Place::Number(x),
    }
}
