//! What a stencil says of where it is computed: `levels 1..nk`, `i 2..ni - 2`.

use super::levels::{Known, may_go_on};
use crate::diagnostic::Refusal;
use crate::grid::{Form, Grid, Region};
use crate::ir::program::GridAxis;
use crate::ir::scalar::Value;
use crate::ir::{Bound, Bounding, Node, Stencil};
use std::ops::Range;

/// The number of a bound, where it is known.
pub(crate) fn number(known: &Known, bound: &Bound) -> Option<i64> {
    match known.values(&bound.body, 0).pop().flatten() {
        Some(Value::Int(number)) => Some(i64::from(number)),
        Some(Value::Real(_) | Value::Bool(_)) | None => None,
    }
}

/// Those of the places along an axis that lie within its bounds.
pub fn within(known: &Known, axis: GridAxis, all: Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (all.start as i64, all.end as i64);
    for bound in known.stencil().bounds(axis) {
        let Some(number) = number(known, bound) else { continue };
        if bound.is != Bounding::End {
            start = start.max(number);
        }
        match bound.is {
            Bounding::Only => end = end.min(number + 1),
            Bounding::First => {}
            Bounding::End => end = end.min(number),
        }
    }
    let start = start.min(all.end as i64) as usize;
    start..(end.max(start as i64) as usize)
}

/// The columns of a region that lie within what is said of i and j.
///
/// # Errors
/// A bound lies outside the grid, none is left, or what is said goes further than the region; or the columns stand in no rows.
pub fn columns(known: &Known, grid: Grid, region: Region) -> Result<Region, Refusal> {
    check_form(known.stencil(), grid)?;
    for axis in GridAxis::ACROSS {
        check(known, axis)?;
    }
    let own = region.map(|axis, all| if axis == GridAxis::K { all.clone() } else { within(known, axis, all.clone()) });
    if let Some(axis) = GridAxis::ACROSS.into_iter().find(|&axis| own.along(axis).is_empty()) {
        return Err(nothing(known, axis, region.along(axis)));
    }
    for axis in GridAxis::ACROSS {
        let count = known.extent(axis).unwrap_or_default();
        check_all(known.stencil(), (axis, count), [&within(known, axis, 0..count), own.along(axis)], String::new)?;
    }
    Ok(own)
}

/// Refuses to compute less along an axis, of so many cells, than a stencil says that it computes: who says where means all of it.
/// `why` says more of why it is less.
///
/// # Errors
/// Less can be computed.
pub(crate) fn check_all(
    stencil: &Stencil,
    (axis, count): (GridAxis, usize),
    [said, can]: [&Range<usize>; 2],
    why: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    let is_less = can.start > said.start || can.end < said.end;
    if !is_less || !stencil.says(axis) {
        return Ok(());
    }
    let what = if axis == GridAxis::K { "levels" } else { axis.name() };
    let end = match count.checked_sub(can.end) {
        Some(0) => format!("n{axis}"),
        Some(less) => format!("n{axis} - {less}"),
        None => format!("n{axis} + {}", can.end - count),
    };
    let guard = if axis == GridAxis::K { ", guard the read, as in `if k > 0 { a[k-1] } else { a }`" } else { "" };
    Err(Refusal::new(format!(
        "`{}` says that it computes {what} {said:?}, and what it reads lets it compute {can:?} alone{}",
        stencil.told(),
        why()
    ))
    .help(format!(
        "say `{what} {}..{end}`{guard}, or say nothing of {axis}: then all is computed that can be",
        can.start
    )))
}

/// Why nothing is computed of what can be along i or j.
pub(crate) fn nothing(known: &Known, axis: GridAxis, can: &Range<usize>) -> Refusal {
    let (name, Range { start, end }) = (known.stencil().told(), can);
    let said: Vec<String> = known.stencil().bounds(axis).map(|bound| bound.is.words(bound.text.as_told())).collect();
    Refusal::new(format!(
        "`{name}` computes no column: along {axis} it can compute {start}..{end}, and {}",
        said.join(", ")
    ))
    .help(format!("columns are counted from 0: look at what is said of `{axis}`, and at what is read beside a cell"))
}

/// Refuses bounds along i and j where columns stand in no rows.
///
/// # Errors
/// There are some.
pub fn check_form(stencil: &Stencil, grid: Grid) -> Result<(), Refusal> {
    let said = GridAxis::ACROSS.into_iter().find(|&axis| stencil.says(axis));
    match said.filter(|_| grid.form == Form::Cells) {
        Some(axis) => Err(Refusal::new(format!(
            "`{}` says which part of {axis} it computes, and the cells of this grid stand in no rows: none has an {axis}",
            stencil.told()
        ))
        .help("give a grid in rows; or pass a field `on (i, j)` that says where, and choose by it: `if inner > 0 { ... } else { ... }`")),
        None => Ok(()),
    }
}

/// Refuses bounds along an axis that lie outside of it.
///
/// # Errors
/// One does.
pub fn check(known: &Known, axis: GridAxis) -> Result<(), Refusal> {
    let stencil = known.stencil();
    let Some(count) = known.extent(axis) else { return Ok(()) };
    let (count, what) = match axis {
        GridAxis::I | GridAxis::J => (count, format!("columns along {axis}")),
        GridAxis::K if may_go_on(stencil) => (count + 1, "interfaces".to_owned()),
        GridAxis::K => (count, "levels".to_owned()),
    };
    for bound in stencil.bounds(axis) {
        let Some(number) = number(known, bound) else { continue };
        // Where something begins or ends there need be nothing.
        let last = if bound.is == Bounding::Only { count.saturating_sub(1) } else { count };
        if usize::try_from(number).is_ok_and(|number| number <= last) {
            continue;
        }
        let (name, text) = (stencil.told(), bound.text.as_told());
        let told = if text == number.to_string() { text.to_owned() } else { format!("{number}, which is `{text}`") };
        let (place, counted) = match axis {
            GridAxis::I | GridAxis::J => (format!("{axis} = {told}"), "columns"),
            GridAxis::K => (format!("level {told}"), "levels"),
        };
        return Err(Refusal::new(format!("`{name}` {}, and there are {count} {what}", bound.is.words(&place)))
            .help(format!("{counted} are counted from 0: give 0 to {last}, or `n{axis}` and what is taken from it")));
    }
    Ok(())
}

/// Whether parameters say which columns are computed.
pub fn columns_depend_on_params(stencil: &Stencil) -> bool {
    let is_param = |node: &Node| matches!(node, Node::Param(_));
    let with_params = stencil.of_defs(|body, with_params| body.any(with_params, is_param));
    GridAxis::ACROSS.into_iter().flat_map(|axis| stencil.bounds(axis)).any(|own| own.body.any(&with_params, is_param))
}

impl Bounding {
    /// `begins at 3`
    fn words(self, place: &str) -> String {
        match self {
            Bounding::Only => format!("is computed on {place}"),
            Bounding::First => format!("begins at {place}"),
            Bounding::End => format!("ends before {place}"),
        }
    }
}
