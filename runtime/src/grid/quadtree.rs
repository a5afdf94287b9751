//! Planes of squares, some of which are divided into four, and these again.

use crate::Element;
use crate::array::{Array, Data};
use crate::error::{Error, Result};
use crate::memory;
use crate::random;
use std::ops::Range;
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::grid::Adjacency;

/// How often a square can be divided.
pub const DEEPEST: u32 = 12;

/// The most squares that there would be if all were divided.
const FINEST: usize = 1 << 28;

/// A plane of `ni` x `nj` squares, each divided up to `depth` times where `refinement` wants it.
///
/// Cells are numbered base square by base square, along i and then along j; within a divided one the four quarters
/// follow each other, left before right and top before bottom, each with all that is in it. Cells with a common side
/// differ by one division at most: where they would not, the larger is divided, too. Towards a larger cell the neighbour is
/// that one, towards smaller ones the lowest-numbered of those that touch the side.
#[derive(Debug)]
pub struct Quadtree {
    /// Base squares along i.
    pub ni: usize,
    /// Base squares along j.
    pub nj: usize,
    /// How often a square is divided at most.
    pub depth: u32,
    /// Which squares are divided.
    pub refinement: Refinement,
}

/// Which squares are divided.
#[derive(Debug)]
pub enum Refinement {
    /// Those that the rim of a circle in the middle runs through; its radius is 0.3 of the shorter side.
    Circle,
    /// Those where smooth noise is high: the higher, the more often.
    Noise {
        /// Of the random numbers.
        seed: u64,
    },
    /// By an array of shape (rows, columns) that is laid over the plane. Of whole numbers: how often squares that touch
    /// its cells are divided. Of real ones, heights: those within which heights differ by more than a twentieth of what
    /// they do in all.
    Array(Array),
}

/// Squares of the finest level along i and j.
type Square = [Range<usize>; 2];

/// The plane at the resolution of the finest squares.
struct Plane<'a> {
    quadtree: &'a Quadtree,
    /// Finest squares along i and j.
    width: usize,
    height: usize,
    /// By finest square: how often the cell that it lies in was divided.
    levels: Vec<u8>,
    noise: Noise,
    /// Of heights: by how much they differ within an undivided square at most.
    tolerance: f64,
}

impl Quadtree {
    /// The grid, which is called `name`, and how many cells were divided how often. Positions are centres; base squares
    /// have length 1.
    ///
    /// # Errors
    /// There is no cell, or there could be too many; an array has not two axes, or no finite number.
    pub fn adjacency(&self, name: &str) -> Result<(Adjacency, Vec<usize>)> {
        let Self { ni, nj, depth, .. } = *self;
        let finest = ni.checked_mul(nj).and_then(|cells| cells.checked_mul(1 << (2 * depth.min(DEEPEST))));
        let Some(finest) = finest.filter(|&finest| depth <= DEEPEST && finest > 0 && finest <= FINEST) else {
            return Err(Refusal::new(format!(
                "a quadtree of {ni}x{nj} squares and depth {depth}: at least one, and at most 2^28 squares of the finest \
                 size are possible, and a depth of {DEEPEST}"
            ))
            .help("give a smaller --size or --depth")
            .into());
        };
        // Of each finest square how often it was divided, and at last the number of its cell.
        let bytes = finest as u128 * (size_of::<u8>() + size_of::<i32>()) as u128;
        memory::check(bytes, &format!("a plane of {finest} finest squares takes"), "give a smaller --size or --depth")?;
        let mut plane = Plane {
            quadtree: self,
            width: ni << depth,
            height: nj << depth,
            levels: vec![0; finest],
            noise: Noise::new(&self.refinement),
            tolerance: tolerance(&self.refinement)?,
        };
        for level in 0..depth {
            for square in plane.cells() {
                if plane.level(&square) == level && plane.is_refined(level, &square) {
                    plane.divide(&square);
                }
            }
        }
        plane.balance();
        plane.adjacency(name)
    }
}

impl Plane<'_> {
    fn level(&self, [i, j]: &Square) -> u32 {
        self.levels[j.start * self.width + i.start].into()
    }

    fn divide(&mut self, [i, j]: &Square) {
        for j in j.clone() {
            self.levels[j * self.width + i.start..j * self.width + i.end].iter_mut().for_each(|level| *level += 1);
        }
    }

    /// The cells in the order of their numbers.
    fn cells(&self) -> Vec<Square> {
        let side = 1 << self.quadtree.depth;
        let mut cells = Vec::new();
        // A stack, whose top is what comes next.
        let mut left = Vec::new();
        for j in (0..self.height).step_by(side) {
            for i in (0..self.width).step_by(side) {
                left.push((0, [i..i + side, j..j + side]));
                while let Some((level, square)) = left.pop() {
                    if self.level(&square) == level {
                        cells.push(square);
                        continue;
                    }
                    let [i, j] = &square;
                    let (across, down) = ((i.start + i.end) / 2, (j.start + j.end) / 2);
                    for j in [down..j.end, j.start..down] {
                        left.push((level + 1, [across..i.end, j.clone()]));
                        left.push((level + 1, [i.start..across, j]));
                    }
                }
            }
        }
        cells
    }

    /// The finest squares along each side of a cell, from outside, in the order left, right, top, bottom.
    fn sides(&self, [i, j]: &Square) -> [Vec<usize>; 4] {
        let at = |i: usize, j: usize| j * self.width + i;
        let column = |i: Option<usize>| i.map_or(Vec::new(), |i| j.clone().map(|j| at(i, j)).collect());
        let row = |j: Option<usize>| j.map_or(Vec::new(), |j| i.clone().map(|i| at(i, j)).collect());
        let within = |end: usize, of: usize| Some(end).filter(|&end| end < of);
        [
            column(i.start.checked_sub(1)),
            column(within(i.end, self.width)),
            row(j.start.checked_sub(1)),
            row(within(j.end, self.height)),
        ]
    }

    /// Divides cells whose neighbours are divided twice more often, until there is none.
    fn balance(&mut self) {
        loop {
            let is_large = |square: &Square| {
                let finer = self.sides(square).into_iter().flatten().map(|at| u32::from(self.levels[at])).max();
                finer.is_some_and(|finer| finer > self.level(square) + 1)
            };
            let large: Vec<Square> = self.cells().into_iter().filter(is_large).collect();
            if large.is_empty() {
                return;
            }
            large.iter().for_each(|square| self.divide(square));
        }
    }

    fn adjacency(&self, name: &str) -> Result<(Adjacency, Vec<usize>)> {
        let cells = self.cells();
        let mut numbers = vec![0i32; self.levels.len()];
        let mut counts = vec![0; self.quadtree.depth as usize + 1];
        for (number, square) in cells.iter().enumerate() {
            counts[self.level(square) as usize] += 1;
            let [i, j] = square;
            for j in j.clone() {
                numbers[j * self.width + i.start..j * self.width + i.end].fill(number as i32);
            }
        }
        let mut lists: [Vec<i32>; 4] = Default::default();
        for square in &cells {
            for (list, side) in lists.iter_mut().zip(self.sides(square)) {
                list.push(side.into_iter().map(|at| numbers[at]).min().unwrap_or(-1));
            }
        }
        let side = f64::from(1 << self.quadtree.depth);
        let centres = |axis: usize| {
            let centre = |square: &Square| (square[axis].start + square[axis].end) as f64 / (2.0 * side);
            cells.iter().map(centre).collect()
        };
        Ok((Adjacency::new(name, lists, Some([centres(0), centres(1)]))?, counts))
    }

    fn is_refined(&self, level: u32, square: &Square) -> bool {
        let (width, height) = (self.width as f64, self.height as f64);
        match &self.quadtree.refinement {
            Refinement::Circle => {
                let radius = 0.3 * width.min(height);
                // How near to the centre, and how far from it, points of the square are along an axis.
                let along = |range: &Range<usize>, of: f64| {
                    let (low, high) = (range.start as f64 - of / 2.0, range.end as f64 - of / 2.0);
                    (low.max(-high).max(0.0), high.max(-low))
                };
                let ((near_i, far_i), (near_j, far_j)) = (along(&square[0], width), along(&square[1], height));
                near_i * near_i + near_j * near_j <= radius * radius && radius * radius <= far_i * far_i + far_j * far_j
            }
            Refinement::Noise { .. } => {
                let centre = |range: &Range<usize>| (range.start + range.end) as f64 / 2.0 / width.max(height);
                let wanted = self.noise.at(centre(&square[0]), centre(&square[1]));
                wanted * f64::from(self.quadtree.depth + 1) > f64::from(level + 1)
            }
            Refinement::Array(array) => {
                let [rows, columns] = lengths(array).unwrap_or([1, 1]);
                let under = |range: &Range<usize>, of: usize, cells: usize| {
                    range.start * cells / of..(range.end * cells).div_ceil(of).max(range.start * cells / of + 1)
                };
                let (i, j) = (under(&square[0], self.width, columns), under(&square[1], self.height, rows));
                let values = j.flat_map(|j| i.clone().map(move |i| j * columns + i)).map(|at| array.data.get(at));
                let (low, high) = span(values);
                match array.data {
                    Data::I32(_) | Data::Bool(_) => high > f64::from(level),
                    Data::F32(_) | Data::F64(_) => high - low > self.tolerance,
                }
            }
        }
    }
}

/// The least and the greatest number.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Rows and columns of an array of two axes; a first one of length 1 may come before them.
fn lengths(array: &Array) -> Option<[usize; 2]> {
    match array.shape.as_slice() {
        &[rows, columns] | &[1, rows, columns] => Some([rows, columns]),
        _ => None,
    }
}

/// By how much heights differ within an undivided square at most.
fn tolerance(refinement: &Refinement) -> Result<f64> {
    let Refinement::Array(array) = refinement else { return Ok(0.0) };
    let cells = array.data.len();
    if lengths(array).is_none() || cells == 0 {
        return Err(Error::input(format!("the array to refine by has {} axes and {cells} numbers", array.shape.len()))
            .help("it has two axes, rows and columns: whole numbers of divisions, or heights as real numbers"));
    }
    match span((0..cells).map(|at| array.data.get(at))) {
        (low, high) if low <= high => Ok((high - low) / 20.0),
        _ => Err(Error::input("the array to refine by holds nothing but NaN and infinities")
            .help("heights that are not known may be NaN, but not all of them")),
    }
}

/// Smooth noise between 0 and 1: random numbers on a lattice, and a smooth surface through them.
struct Noise(Data);

/// Points of the lattice along the longer side.
const LATTICE: usize = 8;

impl Noise {
    fn new(refinement: &Refinement) -> Self {
        let seed = if let Refinement::Noise { seed } = refinement { *seed } else { 0 };
        Self(random::fill(Element::F64, (LATTICE + 1) * (LATTICE + 1), 0.0, 1.0, seed, "quadtree"))
    }

    /// At a point of which neither coordinate is below 0 or above 1.
    fn at(&self, x: f64, y: f64) -> f64 {
        let along = |position: f64| {
            let position = position * LATTICE as f64;
            let low = (position as usize).min(LATTICE - 1);
            let between = position - low as f64;
            (low, between * between * (3.0 - 2.0 * between))
        };
        let ((i, right), (j, down)) = (along(x), along(y));
        let lattice = |i: usize, j: usize| self.0.get(j * (LATTICE + 1) + i);
        let row = |j: usize| lattice(i, j) * (1.0 - right) + lattice(i + 1, j) * right;
        row(j) * (1.0 - down) + row(j + 1) * down
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilc_compiler::grid::adjacency::DIRECTIONS;

    fn levels(rows: usize, data: Vec<i32>) -> Refinement {
        Refinement::Array(Array { shape: vec![rows, data.len() / rows], data: Data::I32(data) })
    }

    #[test]
    fn a_divided_square_has_its_quarters_in_its_place() {
        let quadtree = Quadtree { ni: 2, nj: 2, depth: 1, refinement: levels(2, vec![0, 1, 0, 0]) };
        let (grid, counts) = quadtree.adjacency("small").unwrap();
        assert_eq!(counts, [3, 4]);
        //  0 | 1 2
        //    | 3 4
        //  ---------
        //  5 | 6
        assert_eq!(
            grid.neighbours(),
            &[
                vec![-1, 0, 1, 0, 3, -1, 5],
                // To the right of 0, and above 6, two cells touch: the lower number counts.
                vec![1, 2, -1, 4, -1, 6, -1],
                vec![-1, -1, -1, 1, 2, 0, 3],
                vec![5, 3, 4, 6, 6, -1, -1],
            ]
        );
        assert_eq!(grid.positions()[0], [0.5, 1.25, 1.75, 1.25, 1.75, 0.5, 1.5]);
        assert_eq!(grid.positions()[1], [0.5, 0.25, 0.25, 0.75, 0.75, 1.5, 1.5]);
    }

    #[test]
    fn neighbours_touch_and_differ_by_one_division() {
        let height = |at: usize| ((at % 40) as f64 * 0.3).sin() * ((at / 40) as f64 * 0.2).cos();
        let heights = Array { shape: vec![30, 40], data: Data::F64((0..1200).map(height).collect()) };
        let corner = (0..64).map(|at| if at == 9 { 4 } else { 0 }).collect();
        for refinement in
            [Refinement::Circle, Refinement::Noise { seed: 5 }, levels(8, corner), Refinement::Array(heights)]
        {
            let quadtree = Quadtree { ni: 8, nj: 6, depth: 4, refinement };
            let (grid, counts) = quadtree.adjacency("tree").unwrap();
            assert!(counts.iter().filter(|&&count| count > 0).count() >= 3, "{counts:?} of {:?}", quadtree.refinement);
            // The area tells how often each was divided.
            let area: f64 = counts.iter().zip(0..).map(|(&count, level)| count as f64 * 0.25f64.powi(level)).sum();
            assert_eq!(area, 48.0);
            assert_eq!(counts.iter().sum::<usize>(), grid.cells());
            let [x, y] = grid.positions();
            // Twice the distance of centres across a side is the sum of both lengths: 3/2 of the longer, if they differ.
            for (list, (_, step)) in grid.neighbours().iter().zip(DIRECTIONS) {
                for (cell, &other) in list.iter().enumerate() {
                    let Ok(other) = usize::try_from(other) else { continue };
                    let by = [x[other] - x[cell], y[other] - y[cell]];
                    let across = usize::from(step.axis == stencilc_compiler::ir::Axis::J);
                    let distance = by[across] * f64::from(step.by);
                    assert!(distance > 0.0 && by[1 - across].abs() < distance, "{cell} and {other}");
                    let ways_back = grid.neighbours().iter().filter(|list| list[other] == cell as i32).count();
                    let is_even = (distance.log2()).fract() == 0.0;
                    assert!(ways_back > 0 || !is_even, "cells of one size know each other: {cell}, {other}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_plane_is_refused() {
        let refused =
            |ni, depth, refinement| Quadtree { ni, nj: 2, depth, refinement }.adjacency("none").unwrap_err().message;
        assert!(refused(0, 1, Refinement::Circle).contains("at least one"));
        assert!(refused(1 << 20, 12, Refinement::Circle).contains("2^28"));
        assert!(refused(1, 40, Refinement::Circle).contains("a depth of 12"));
        assert!(refused(2, 1, levels(1, Vec::new())).contains("0 numbers"));
    }
}
