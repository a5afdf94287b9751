//! What can be read off a stencil: pure functions from the IR to a table.

pub mod bounds;
pub mod columns;
pub mod cost;
pub mod extents;
pub mod footprint;
pub mod guards;
pub mod levels;
pub mod moving;
pub mod numbers;
pub mod operations;
pub mod reached;
pub mod reuse;
pub mod roofline;
pub mod runs;
pub mod surely;
pub mod sweeps;
pub mod traffic;
pub mod values;

use crate::diagnostic::Refusal;
use crate::grid::{Adjacency, Form, Grid, Region};
use crate::ir::program::GridAxis;
use crate::ir::{Precision, Stencil, scalar::Value};
use std::ops::Range;

/// The most levels of a grid: which of them are computed is decided level by level.
pub const LEVELS: usize = 1 << 20;

/// The cells that `stencil` computes on `grid`, whose columns `adjacency` links if they stand in no rows.
///
/// # Errors
/// The grid is smaller than the stencil's reach, no column has all the neighbours that are read, no level can be computed,
/// or the levels have a gap; what it says of where it is computed lies outside the grid, or leaves nothing.
pub fn region(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    adjacency: Option<&Adjacency>,
    params: &[Value],
) -> Result<Region, Refusal> {
    if grid.nk > LEVELS {
        return Err(Refusal::new(format!("the grid {grid} has {} levels: at most {LEVELS} are possible", grid.nk))
            .help("lay the long axis along i"));
    }
    let columns = columns_of(stencil, grid, adjacency)?;
    let known = levels::Known::new(stencil, precision, grid.nk, params).on(grid);
    let columns = bounds::columns(&known, grid, columns)?;
    Ok(Region { k: levels::computed(stencil, precision, grid.nk, params)?, ..columns })
}

/// The columns that `stencil` can compute on `grid`, whatever it says of them, with all levels.
///
/// # Errors
/// The grid is smaller than the stencil's reach, or no column has all the neighbours that are read.
pub fn columns_of(stencil: &Stencil, grid: Grid, adjacency: Option<&Adjacency>) -> Result<Region, Refusal> {
    match (grid.form, adjacency) {
        (Form::Rows, _) => {
            let [i, j] = rows(stencil, grid)?;
            Ok(Region::rows(i, j, 0..grid.nk))
        }
        (Form::Cells, Some(adjacency)) if adjacency.cells() == grid.columns() => {
            let cells = Some(columns::columns(stencil, adjacency)?);
            Ok(Region { i: 0..grid.ni, j: 0..grid.nj, k: 0..grid.nk, cells })
        }
        (Form::Cells, _) => {
            Err(Refusal::new(format!("which of the grid's {} cells are neighbours is not known", grid.ni)))
        }
    }
}

/// The columns along i and j of a grid in rows.
fn rows(stencil: &Stencil, grid: Grid) -> Result<[Range<usize>; 2], Refusal> {
    let reach = extents::extents(stencil);
    let along = |n: usize, axis: GridAxis| {
        let [low, high] = reach.along(axis);
        let (start, end) = (i64::from(low).unsigned_abs() as usize, n as i64 - i64::from(high));
        if end > start as i64 {
            return Ok(start..end as usize);
        }
        let needed = 1 + start as i64 + i64::from(high);
        Err(Refusal::new(format!(
            "the grid {grid} is smaller than stencil `{}`: it has {n} cells along {axis}, at least {needed} are needed",
            stencil.told()
        ))
        .help(format!("the stencil reads from {axis}{low:+} to {axis}{high:+}; give a larger --grid")))
    };
    Ok([along(grid.ni, GridAxis::I)?, along(grid.nj, GridAxis::J)?])
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

    #[test]
    fn what_only_one_side_decides_is_known_where_it_decides() {
        let levels = |value: &str| {
            let text = format!("stencil own {{ in a; out b; b = {value} }}");
            let stencil = &crate::check(&Source::new("own", text)).stencils[0];
            region(stencil, Precision::F64, Grid::rows(2, 2, 5), None, &[]).unwrap().k
        };
        assert_eq!(levels("if k == nk - 1 || a > 0 { a } else { a[k+1] }"), 0..5);
        assert_eq!(levels("if k == 0 || a > 0 { a[k+1] } else { a }"), 0..4);
        assert_eq!(levels("if k < nk - 1 && a > 0 { a[k+1] } else { a }"), 0..5);
        assert_eq!(levels("if k > 0 && a > 0 { a } else { a[k+1] }"), 0..4);
    }
}
