//! Cells in rows, as an adjacency.

use crate::error::Result;
use crate::memory;
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::grid::adjacency::MOST;

/// ni x nj cells in rows, numbered along i, then along j; each is a square of length 1.
///
/// # Errors
/// There are none, or too many.
pub fn in_rows(name: &str, ni: usize, nj: usize) -> Result<Adjacency> {
    let cells = ni.checked_mul(nj).filter(|&cells| cells <= MOST);
    let Some(cells) = cells else {
        return Err(Refusal::new(format!("a plane of {ni}x{nj} cells: at most 2^30 are possible")).into());
    };
    // Four neighbours and a place.
    let bytes = cells as u128 * (4 * size_of::<i32>() + 2 * size_of::<f64>()) as u128;
    memory::check(bytes, &format!("a grid of {ni}x{nj} cells takes"), "give a smaller --size")?;
    let neighbours = |is_there: &dyn Fn(usize, usize) -> bool, by: isize| -> Vec<i32> {
        let to = |cell: usize| if is_there(cell % ni, cell / ni) { (cell as isize + by) as i32 } else { -1 };
        (0..cells).map(to).collect()
    };
    let lists = [
        neighbours(&|i, _| i > 0, -1),
        neighbours(&|i, _| i + 1 < ni, 1),
        neighbours(&|_, j| j > 0, -(ni as isize)),
        neighbours(&|_, j| j + 1 < nj, ni as isize),
    ];
    let centres = |number: &dyn Fn(usize) -> usize| (0..cells).map(|cell| number(cell) as f64 + 0.5).collect();
    let positions = [centres(&|cell| cell % ni), centres(&|cell| cell / ni)];
    Ok(Adjacency::new(name, lists, Some(positions))?)
}
