//! Cells at their places, for pictures.

mod squares;

use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::grid::adjacency::DIRECTIONS;
use stencilc_compiler::ir::Step;

/// Points along the longer side of a raster.
const SIDE: usize = 512;

/// Which cell lies at each point of a plane: of cells that are squares the one that it is in, and else the one whose centre is
/// nearest, if that is no further than its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct Raster {
    /// Points along i.
    pub ni: usize,
    /// Points along j.
    pub nj: usize,
    /// Of each point, i fastest, the number of a cell.
    pub cells: Vec<Option<usize>>,
}

impl Raster {
    /// Of a grid that has positions.
    pub fn new(adjacency: &Adjacency) -> Option<Self> {
        let centres = adjacency.centres()?;
        Some(match squares::half_sides(adjacency, centres) {
            Some(halves) => Self::of_squares(centres, &halves),
            None => Self::of_nearest(adjacency, centres),
        })
    }

    fn of_squares([x, y]: &[Vec<f64>; 2], halves: &[f64]) -> Self {
        let ends = |list: &[f64]| {
            let each = list.iter().zip(halves);
            each.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (at, half)| {
                (low.min(at - half), high.max(at + half))
            })
        };
        let ((left, right), (top, bottom)) = (ends(x), ends(y));
        let Points { ni, nj, pixel } = Points::new(right - left, bottom - top);
        let mut cells = vec![None; ni * nj];
        // The points whose middles lie between two places. Where two squares meet, each may be rounded on its own.
        let between = |low: f64, high: f64, count: usize| {
            let first = |at: f64| ((at / pixel - 0.5 - 1e-9).ceil().max(0.0) as usize).min(count);
            first(low)..first(high)
        };
        for (cell, half) in halves.iter().enumerate() {
            let columns = between(x[cell] - half - left, x[cell] + half - left, ni);
            for row in between(y[cell] - half - top, y[cell] + half - top, nj) {
                cells[row * ni + columns.start..row * ni + columns.end].fill(Some(cell));
            }
        }
        Self { ni, nj, cells }
    }

    fn of_nearest(adjacency: &Adjacency, [x, y]: &[Vec<f64>; 2]) -> Self {
        let count = x.len();
        let ends = |list: &[f64]| {
            list.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &at| (low.min(at), high.max(at)))
        };
        let ((left, right), (top, bottom)) = (ends(x), ends(y));
        // Around the outermost centres half of what lies between two.
        let longer = (right - left).max(bottom - top);
        let spacing = match ((right - left) * (bottom - top) / count as f64).sqrt() {
            area if area > 0.0 => area,
            _ if longer > 0.0 => longer / count as f64,
            _ => 1.0,
        };
        let (width, height) = (right - left + spacing, bottom - top + spacing);
        let Points { ni, nj, pixel } = Points::new(width, height);
        let (left, top) = (left - spacing / 2.0, top - spacing / 2.0);

        let buckets = Buckets::new(x, y, [left, top], [width, height], spacing);
        let reach: Vec<f64> = (0..count).map(|cell| reach(adjacency, x, y, cell).unwrap_or(spacing)).collect();
        let at = |point: usize| {
            let place = [left + ((point % ni) as f64 + 0.5) * pixel, top + ((point / ni) as f64 + 0.5) * pixel];
            let (cell, distance) = buckets.nearest(x, y, place)?;
            (distance <= reach[cell]).then_some(cell)
        };
        Self { ni, nj, cells: (0..ni * nj).map(at).collect() }
    }
}

/// How many points a plane has along i and j, and how long the side of one is.
struct Points {
    ni: usize,
    nj: usize,
    pixel: f64,
}

impl Points {
    fn new(width: f64, height: f64) -> Self {
        let pixel = width.max(height) / SIDE as f64;
        let points = |length: f64| ((length / pixel).round() as usize).clamp(1, SIDE);
        Self { ni: points(width), nj: points(height), pixel }
    }
}

/// How far the neighbour of a cell is that is furthest away; nothing if it has none elsewhere.
fn reach(adjacency: &Adjacency, x: &[f64], y: &[f64], cell: usize) -> Option<f64> {
    let to = |step: Step| adjacency.step(cell, step).map(|other| (x[other] - x[cell]).hypot(y[other] - y[cell]));
    DIRECTIONS.iter().filter_map(|(_, step)| to(*step)).filter(|&distance| distance > 0.0).reduce(f64::max)
}

/// Cells by squares of the plane.
struct Buckets {
    origin: [f64; 2],
    side: f64,
    counts: [usize; 2],
    cells: Vec<Vec<usize>>,
}

impl Buckets {
    fn new(x: &[f64], y: &[f64], origin: [f64; 2], size: [f64; 2], spacing: f64) -> Self {
        // A narrow plane has no more squares than others.
        let side = spacing.max(size[0].max(size[1]) / 2048.0);
        let counts = size.map(|length| (length / side) as usize + 1);
        let mut buckets = Self { origin, side, counts, cells: vec![Vec::new(); counts[0] * counts[1]] };
        for cell in 0..x.len() {
            let [i, j] = buckets.of([x[cell], y[cell]]);
            buckets.cells[j * counts[0] + i].push(cell);
        }
        buckets
    }

    fn of(&self, place: [f64; 2]) -> [usize; 2] {
        [0, 1]
            .map(|axis| (((place[axis] - self.origin[axis]) / self.side).max(0.0) as usize).min(self.counts[axis] - 1))
    }

    /// The nearest centre, and how far it is.
    fn nearest(&self, x: &[f64], y: &[f64], place: [f64; 2]) -> Option<(usize, f64)> {
        let [i, j] = self.of(place);
        let mut best: Option<(usize, f64)> = None;
        for ring in 0..self.counts[0].max(self.counts[1]) {
            // What lies in this ring is at least so far away.
            let least = (ring as f64 - 1.0) * self.side;
            if best.is_some_and(|(_, distance)| distance < least) {
                break;
            }
            let rows = j.saturating_sub(ring)..(j + ring + 1).min(self.counts[1]);
            for row in rows {
                let is_whole = row + ring == j || row == j + ring;
                let step = if is_whole { 1 } else { (2 * ring).max(1) };
                for column in (0..=2 * ring).step_by(step) {
                    let Some(column) = (i + column).checked_sub(ring).filter(|&column| column < self.counts[0]) else {
                        continue;
                    };
                    for &cell in &self.cells[row * self.counts[0] + column] {
                        let distance = (x[cell] - place[0]).hypot(y[cell] - place[1]);
                        if best.is_none_or(|(_, least)| distance < least) {
                            best = Some((cell, distance));
                        }
                    }
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Quadtree, Refinement, in_rows};

    #[test]
    fn every_point_shows_the_nearest_cell() {
        // Cells that are wider than high, or the other way round, are no squares.
        for by in [2.0, 0.7] {
            let rows = in_rows("rows", 7, 4).unwrap();
            let [x, y] = rows.positions();
            let positions = [x.iter().map(|x| by * x).collect(), y];
            let grid = Adjacency::new("stretched", rows.neighbours().clone(), Some(positions)).unwrap();
            let raster = Raster::new(&grid).unwrap();
            let [x, y] = grid.positions();
            let pixel = (raster.ni.max(raster.nj) as f64).recip();
            let mut seen = vec![false; grid.cells()];
            for (point, cell) in raster.cells.iter().enumerate() {
                let cell = cell.expect("a plane without holes");
                seen[cell] = true;
                if point % 97 == 0 {
                    let ends = |list: &[f64]| {
                        (list.iter().copied().fold(f64::MAX, f64::min), list.iter().copied().fold(0.0, f64::max))
                    };
                    let ((left, right), (top, bottom)) = (ends(&x), ends(&y));
                    let spacing = ((right - left) * (bottom - top) / grid.cells() as f64).sqrt();
                    let size = (right - left + spacing).max(bottom - top + spacing) * pixel;
                    let place = [
                        left - spacing / 2.0 + ((point % raster.ni) as f64 + 0.5) * size,
                        top - spacing / 2.0 + ((point / raster.ni) as f64 + 0.5) * size,
                    ];
                    let distance = |cell: usize| (x[cell] - place[0]).hypot(y[cell] - place[1]);
                    let least = (0..grid.cells()).map(distance).fold(f64::MAX, f64::min);
                    assert!(distance(cell) <= least + 1e-9, "point {point}");
                }
            }
            assert!(seen.iter().all(|&seen| seen), "every cell is shown");
        }
    }

    #[test]
    fn squares_are_drawn_whole() {
        // The side of a base square is a whole number of points.
        let quadtree = Quadtree { ni: 8, nj: 4, depth: 3, refinement: Refinement::Circle };
        let (grid, counts) = quadtree.adjacency("tree").unwrap();
        let raster = Raster::new(&grid).unwrap();
        assert_eq!((raster.ni, raster.nj), (512, 256));
        let mut points = vec![0usize; grid.cells()];
        raster.cells.iter().for_each(|cell| points[cell.expect("a plane without holes")] += 1);
        for (level, count) in counts.iter().enumerate() {
            let area = (64 >> level) * (64 >> level);
            assert_eq!(points.iter().filter(|own| **own == area).count(), *count, "level {level}");
        }
    }

    #[test]
    fn where_no_cell_is_nothing_is_shown() {
        // Two cells that know each other, and two far away.
        let lists = [vec![-1, 0, -1, 2], vec![1, -1, 3, -1], vec![-1; 4], vec![-1; 4]];
        let positions = [vec![0.0, 1.0, 100.0, 101.0], vec![0.0, 0.0, 50.0, 50.0]];
        let grid = Adjacency::new("two", lists.clone(), Some(positions)).unwrap();
        let raster = Raster::new(&grid).unwrap();
        let shown = raster.cells.iter().flatten().count();
        assert!(shown > 0 && shown < raster.cells.len() / 4, "{shown}");
        assert_eq!(Raster::new(&Adjacency::new("none", lists, None).unwrap()), None);
    }
}
