//! Whether a stencil with sweeps can be computed on every level.

use super::levels::{Known, depend_on_params, swept};
use super::reached::outside;
use crate::diagnostic::Diagnostic;
use crate::ir::scalar::Value;
use crate::ir::{Kind, Precision, Stencil, needed};
use crate::source::Span;
use std::collections::BTreeMap;

/// The levels of the grid on which it is tried.
const LEVELS: usize = 64;

/// The reads of a stencil with sweeps that leave the grid on some level, each told once. Where parameters decide that, it is
/// seen when their values are known.
pub fn unguarded(stencil: &Stencil) -> Vec<Diagnostic> {
    if stencil.sweeps.is_empty() || depend_on_params(stencil) {
        return Vec::new();
    }
    let stencil = needed(stencil);
    let params: Vec<Value> = stencil.params.iter().map(|(_, param)| zero(param.kind)).collect();
    let known = Known::new(&stencil, Precision::F64, LEVELS, &params);
    let mut found: BTreeMap<Span, Diagnostic> = BTreeMap::new();
    for (read, levels) in outside(&stencil, &known, LEVELS) {
        let (field, level) = (&stencil.fields[read.field], levels[0]);
        let offset = if read.shift == 0 { String::new() } else { format!("[k{:+}]", read.shift) };
        let (at, guard) = if read.shift < 0 {
            (format!("k = {level}"), first(read.shift.unsigned_abs()))
        } else {
            let beyond = i64::from(read.shift) - (field.place.levels.count(LEVELS) - LEVELS) as i64;
            let at = if level < LEVELS { format!("k = nk - {}", LEVELS - level) } else { "k = nk".to_owned() };
            (at, last(beyond, swept(&stencil, LEVELS) - LEVELS))
        };
        let read_there = format!("`{}{offset}` is outside the grid at `{at}`", field.name);
        found.entry(read.span).or_insert_with(|| {
            Diagnostic::error(read.span, format!("{read_there}, and a sweep goes through every level"))
                .label("not guarded")
                .help(format!("guard it: `if {guard} {{ ... }} else {{ ... }}`"))
        });
    }
    found.into_values().collect()
}

/// The condition on which the first `n` levels are guarded.
fn first(n: u32) -> String {
    if n == 1 { "k == 0".to_owned() } else { format!("k < {n}") }
}

/// The condition on which the levels from `nk - n` on are guarded, of which the last is `nk - 1`, and `more` than that.
fn last(n: i64, more: usize) -> String {
    let is = if n + more as i64 == 1 { "==" } else { ">=" };
    if n == 0 { format!("k {is} nk") } else { format!("k {is} nk-{n}") }
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::Real => Value::Real(0.0),
        Kind::Int => Value::Int(0),
        Kind::Bool => Value::Bool(false),
    }
}
