//! What can be read off a stencil: pure functions from the IR to a table.

pub mod cost;
pub mod extents;
pub mod guards;
pub mod levels;
pub mod numbers;
pub mod operations;
pub mod reached;
pub mod reuse;
pub mod roofline;
pub mod traffic;

use crate::diagnostic::Refusal;
use crate::grid::{Grid, Region};
use crate::ir::{Precision, Stencil, scalar::Value};

/// The most levels of a grid: which of them are computed is decided level by level.
pub const LEVELS: usize = 1 << 20;

/// The cells that `stencil` computes on `grid`.
///
/// # Errors
/// The grid is smaller than the stencil's reach, no level can be computed, or the levels have a gap.
pub fn region(stencil: &Stencil, precision: Precision, grid: Grid, params: &[Value]) -> Result<Region, Refusal> {
    if grid.nk > LEVELS {
        return Err(Refusal::new(format!("the grid {grid} has {} levels: at most {LEVELS} are possible", grid.nk))
            .help("lay the long axis along i"));
    }
    let reach = extents::extents(stencil);
    let along = |n: usize, low: i32, high: i32, axis: &str| {
        let (start, end) = (i64::from(low).unsigned_abs() as usize, n as i64 - i64::from(high));
        if end > start as i64 {
            return Ok(start..end as usize);
        }
        let needed = 1 + start as i64 + i64::from(high);
        Err(Refusal::new(format!(
            "the grid {grid} is smaller than stencil `{}`: it has {n} cells along {axis}, at least {needed} are needed",
            stencil.name
        ))
        .help(format!("the stencil reads from {axis}{low:+} to {axis}{high:+}; give a larger --grid")))
    };
    let i = along(grid.ni, reach.low.i, reach.high.i, "i")?;
    let j = along(grid.nj, reach.low.j, reach.high.j, "j")?;
    let k = levels::computed(stencil, precision, grid.nk, params)?;
    Ok(Region::rows(i, j, k))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn levels_depend_on_parameters_where_these_guard_a_level_that_may_be_missing() {
        let depend = |value: &str| {
            let text = format!("stencil own {{ in a; in w on (k+1); out b; param n: int; b = a * n + {value} }}");
            levels::depend_on_params(&crate::check(&Source::new("own", text)).stencils[0])
        };
        assert!(depend("if k < n { a } else { a[k-1] }"));
        assert!(depend("if k < n && a > 0 { w[k+2] } else { w[k+1] }"));
        assert!(!depend("if k > 0 { a[k-1] } else { a }"));
        assert!(!depend("if k < n { w[k+1] } else { a[i+1] }"));
    }
}
