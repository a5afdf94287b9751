//! Which rows of which values a warp has, and which it can compute before its neighbours' rows have come.

use super::super::flow::{Flow, Source, Use, Window};
use super::{Carry, Shape};
use crate::ir::FieldId;

/// What a row of [`Flow::rows`] is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An input that an output becomes: in registers all the time, the rows around by sending.
    State(FieldId),
    /// An input that stays as it is, loaded at each step.
    Constant(FieldId),
    /// A definition.
    Def,
}

/// The rows of a value, counted from a warp's first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first that is needed.
    pub first: i32,
    /// One past the last.
    pub end: i32,
    /// Those that a warp's own rows suffice for.
    pub inner: [i32; 2],
}

/// What a source is to the kernel.
pub fn part(carry: &[Carry], source: Source) -> Part {
    match source {
        Source::Field(field, _) if carry.iter().any(|&(_, from)| from == field) => Part::State(field),
        Source::Field(field, _) => Part::Constant(field),
        Source::Def(..) => Part::Def,
    }
}

/// How many rows of a field are sent to each warp.
pub fn sent(flow: &Flow, field: FieldId) -> usize {
    window(flow, field).sides().iter().sum()
}

/// The rows around its own that a warp needs of a field that is carried.
pub fn window(flow: &Flow, field: FieldId) -> Window {
    let row = flow.rows.iter().find(|row| matches!(row.source, Source::Field(own, _) if own == field));
    row.map(|row| row.area.j).unwrap_or_default()
}

/// Which rows of each value there are, and which of them need nobody else's.
pub fn spans(flow: &Flow, parts: &[Part], shape: Shape) -> Vec<Span> {
    let rows = shape.rows as i32;
    // How far up and down each value reaches into what neighbours send.
    let mut reach: Vec<Option<Window>> = Vec::with_capacity(parts.len());
    for (row, part) in flow.rows.iter().zip(parts) {
        reach.push(match part {
            Part::State(_) => Some(Window::default()),
            Part::Constant(_) => None,
            Part::Def => reached(flow, &row.uses, &reach),
        });
    }
    let span = |first: i32, end: i32, reach: Option<Window>| {
        let inner = reach.map_or([first, end], |reach| [first.max(-reach.low), end.min(rows - reach.high)]);
        Span { first, end, inner }
    };
    let own = flow.rows.iter().zip(&reach).map(|(row, &reach)| {
        let own = Window::default();
        let Window { low, high } = if row.uses.is_empty() { own.union(row.area.j) } else { row.area.j };
        span(low, rows + high, reach)
    });
    let stores = flow.stores.iter().map(|uses| span(0, rows, reached(flow, uses, &reach)));
    let mut spans: Vec<Span> = own.chain(stores).collect();
    if !shape.early {
        spans.iter_mut().for_each(|span| span.inner = [span.end; 2]);
    }
    spans
}

/// How far rows reach into those of the state, whose own reach is known.
fn reached(flow: &Flow, uses: &[Use], reach: &[Option<Window>]) -> Option<Window> {
    let windows = flow.looked(uses).filter_map(|(place, used)| Some(reach[place]?.moved(used.j)));
    windows.reduce(Window::union)
}
