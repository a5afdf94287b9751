//! Cells that are squares, as those of a quadtree: how large each is, of which a file says nothing but where its centre lies.

use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::grid::adjacency::DIRECTIONS;
use stencilc_compiler::ir::Axis;

/// What two numbers may differ by, of the larger one, and still be the same.
const SAME: f64 = 1e-6;

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs())
}

/// Two squares with a common side, one of which begins or ends where the other does, as where a square was divided: the centres'
/// distance across the side is the sum of both half sides, and along it their difference.
struct Pair {
    cells: [usize; 2],
    /// The half sides, of which nobody knows which is whose.
    halves: [f64; 2],
}

/// The half side of each cell, if all are squares that stand like that.
pub fn half_sides(adjacency: &Adjacency, [x, y]: &[Vec<f64>; 2]) -> Option<Vec<f64>> {
    let pairs = pairs(adjacency, x, y)?;
    let count = x.len();
    let mut of_cell: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (number, pair) in pairs.iter().enumerate() {
        pair.cells.iter().for_each(|&cell| of_cell[cell].push(number));
    }
    // What more neighbours agree with than with anything else.
    let mut known: Vec<Option<f64>> = of_cell.iter().map(|own| most_likely(own.iter().map(|&at| &pairs[at]))).collect();
    // A cell between others that are all half its size, or twice, may be either: what is known of those decides.
    for cell in 0..count {
        if known[cell].is_none() {
            known[cell] = of_cell[cell].iter().find_map(|&at| {
                let Pair { cells: [a, b], halves: [small, large] } = pairs[at];
                let other = known[if a == cell { b } else { a }]?;
                Some(if is_same(other, small) { large } else { small })
            });
        }
    }
    let halves: Vec<f64> = known.into_iter().collect::<Option<_>>()?;
    let fits = |pair: &Pair| {
        let [small, large] = pair.halves;
        let [a, b] = pair.cells.map(|cell| halves[cell]);
        is_same(a.min(b), small) && is_same(a.max(b), large)
    };
    pairs.iter().all(fits).then_some(halves)
}

/// All pairs of neighbours; nothing if two cannot be squares with a common side, or a cell has no neighbour.
fn pairs(adjacency: &Adjacency, x: &[f64], y: &[f64]) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    for cell in 0..x.len() {
        for (_, step) in DIRECTIONS {
            let Some(other) = adjacency.step(cell, step) else { continue };
            let (di, dj) = ((x[other] - x[cell]).abs(), (y[other] - y[cell]).abs());
            let (across, along) = if step.axis == Axis::I { (di, dj) } else { (dj, di) };
            if along >= across {
                return None;
            }
            pairs.push(Pair { cells: [cell, other], halves: [(across - along) / 2.0, (across + along) / 2.0] });
        }
    }
    Some(pairs)
}

/// The half side that most of a cell's pairs allow; nothing if another one is as likely.
fn most_likely<'a>(pairs: impl Iterator<Item = &'a Pair>) -> Option<f64> {
    let mut votes: Vec<(f64, usize)> = Vec::new();
    for pair in pairs {
        let [small, large] = pair.halves;
        let halves = if is_same(small, large) { vec![small] } else { vec![small, large] };
        for half in halves {
            match votes.iter_mut().find(|(own, _)| is_same(*own, half)) {
                Some((_, count)) => *count += 1,
                None => votes.push((half, 1)),
            }
        }
    }
    let most = votes.iter().map(|(_, count)| *count).max()?;
    let mut best = votes.iter().filter(|(_, count)| *count == most);
    let half = best.next()?.0;
    best.next().is_none().then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Quadtree, Refinement, in_rows};

    #[test]
    fn squares_are_as_large_as_they_were_made() {
        for refinement in [Refinement::Circle, Refinement::Noise { seed: 3 }] {
            let quadtree = Quadtree { ni: 7, nj: 5, depth: 3, refinement };
            let (grid, counts) = quadtree.adjacency("tree").unwrap();
            let halves = half_sides(&grid, grid.centres().unwrap()).unwrap();
            for (level, count) in counts.iter().enumerate() {
                let half = 0.5 / f64::from(1 << level);
                assert_eq!(halves.iter().filter(|own| is_same(**own, half)).count(), *count, "level {level}");
            }
        }
        let rows = in_rows("rows", 4, 3).unwrap();
        assert_eq!(half_sides(&rows, rows.centres().unwrap()), Some(vec![0.5; 12]));
    }

    #[test]
    fn what_are_no_squares_is_seen() {
        let grid = |x: [f64; 3], y: [f64; 3]| {
            let lists = [vec![-1, 0, 1], vec![1, 2, -1], vec![-1; 3], vec![-1; 3]];
            Adjacency::new("three", lists, Some([x.to_vec(), y.to_vec()])).unwrap()
        };
        let of = |grid: Adjacency| half_sides(&grid, grid.centres().unwrap());
        assert_eq!(of(grid([0.0, 1.0, 2.0], [0.0; 3])), Some(vec![0.5; 3]));
        // Centres that drift apart, cells above each other called left and right, two at one place.
        assert_eq!(of(grid([0.0, 1.0, 2.0], [0.0, 0.1, 0.3])), None);
        assert_eq!(of(grid([0.0, 0.0, 0.0], [0.0, 1.0, 2.0])), None);
        assert_eq!(of(grid([0.0, 0.0, 1.0], [0.0; 3])), None);
    }
}
