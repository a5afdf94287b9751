//! Grids whose columns stand in no rows: each has up to four neighbours.

use crate::diagnostic::Refusal;
use crate::ir::{Axis, Step};
use crate::text::FreeText;

/// The directions of single steps, in the order of tables.
pub const DIRECTIONS: [(&str, Step); 4] = [
    ("left", Step { axis: Axis::I, by: -1 }),
    ("right", Step { axis: Axis::I, by: 1 }),
    ("top", Step { axis: Axis::J, by: -1 }),
    ("bottom", Step { axis: Axis::J, by: 1 }),
];

/// The most columns of a plane.
pub const MOST: usize = 1 << 30;

/// Which cells of a plane are neighbours: of each cell the one to its left (i-1), right (i+1), top (j-1) and bottom (j+1).
#[derive(Clone, Debug, PartialEq)]
pub struct Adjacency {
    /// What the grid is called: the file that it came from.
    pub name: FreeText,
    neighbours: [Vec<i32>; 4],
    positions: Option<[Vec<f64>; 2]>,
}

impl Adjacency {
    /// The grid of these neighbours: of each cell the number of the one in each of [`DIRECTIONS`], -1 where there is none.
    /// `positions` are the cells' centres along i and j, in any unit, if they are known.
    ///
    /// # Errors
    /// Lists of different lengths, numbers that are no cell's, positions that are no numbers.
    pub fn new(name: &str, neighbours: [Vec<i32>; 4], positions: Option<[Vec<f64>; 2]>) -> Result<Self, Refusal> {
        let cells = neighbours[0].len();
        if cells == 0 || cells > MOST {
            return Err(Refusal::new(format!("the grid `{name}` has {cells} cells: 1 to 2^30 are possible")));
        }
        for ((direction, _), list) in DIRECTIONS.iter().zip(&neighbours) {
            if list.len() != cells {
                return Err(Refusal::new(format!(
                    "the grid `{name}` has {cells} cells by its `left`, and {} by its `{direction}`",
                    list.len()
                ))
                .help("each of left, right, top and bottom has one number a cell"));
            }
            if let Some(cell) = list.iter().position(|&other| other < -1 || i64::from(other) >= cells as i64) {
                return Err(Refusal::new(format!(
                    "the grid `{name}`: `{direction}` of cell {cell} is {}, and cells are numbered from 0 to {}",
                    list[cell],
                    cells - 1
                ))
                .help("-1 says that there is no neighbour"));
            }
        }
        for list in positions.iter().flatten() {
            if list.len() != cells {
                return Err(Refusal::new(format!("the grid `{name}` has {cells} cells, and {} positions", list.len())));
            }
            if let Some(cell) = list.iter().position(|position| !position.is_finite()) {
                return Err(Refusal::new(format!("the grid `{name}`: the position of cell {cell} is no number")));
            }
        }
        Ok(Self { name: FreeText::new(name), neighbours, positions })
    }

    /// How many cells a plane has.
    pub fn cells(&self) -> usize {
        self.neighbours[0].len()
    }

    /// The neighbour in a direction, if there is one.
    pub fn step(&self, cell: usize, step: Step) -> Option<usize> {
        let direction = 2 * usize::from(step.axis == Axis::J) + usize::from(step.by > 0);
        usize::try_from(self.neighbours[direction][cell]).ok()
    }

    /// The neighbours of every cell in each of [`DIRECTIONS`].
    pub fn neighbours(&self) -> &[Vec<i32>; 4] {
        &self.neighbours
    }

    /// The cells' centres along i and j, if they are known.
    pub fn centres(&self) -> Option<&[Vec<f64>; 2]> {
        self.positions.as_ref()
    }

    /// Where each cell is, along i and j: its centre, or where the steps from the first cell lead.
    pub fn positions(&self) -> [Vec<f64>; 2] {
        if let Some(positions) = &self.positions {
            return positions.clone();
        }
        let cells = self.cells();
        let mut found: [Vec<f64>; 2] = [vec![f64::NAN; cells], vec![f64::NAN; cells]];
        let mut start = 0.0;
        for first in 0..cells {
            if !found[0][first].is_nan() {
                continue;
            }
            // Parts that nothing links lie side by side.
            (found[0][first], found[1][first]) = (start, 0.0);
            let mut queue = std::collections::VecDeque::from([first]);
            while let Some(cell) = queue.pop_front() {
                start = f64::max(start, found[0][cell] + 1.0);
                for (_, step) in DIRECTIONS {
                    let Some(next) = self.step(cell, step).filter(|&next| found[0][next].is_nan()) else { continue };
                    let along = |axis| if step.axis == axis { f64::from(step.by) } else { 0.0 };
                    found[0][next] = found[0][cell] + along(Axis::I);
                    found[1][next] = found[1][cell] + along(Axis::J);
                    queue.push_back(next);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three cells in a row.
    fn row() -> [Vec<i32>; 4] {
        [vec![-1, 0, 1], vec![1, 2, -1], vec![-1; 3], vec![-1; 3]]
    }

    #[test]
    fn steps_lead_to_neighbours() {
        let grid = Adjacency::new("row", row(), None).unwrap();
        let [(_, left), (_, right), (_, top), _] = DIRECTIONS;
        assert_eq!((grid.step(1, left), grid.step(1, right)), (Some(0), Some(2)));
        assert_eq!((grid.step(0, left), grid.step(1, top)), (None, None));
        assert_eq!(grid.positions(), [vec![0.0, 1.0, 2.0], vec![0.0; 3]]);
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let refused = |neighbours, positions| Adjacency::new("g.npz", neighbours, positions).unwrap_err().message;
        assert!(refused([vec![3], vec![-1], vec![-1], vec![-1]], None).contains("`left` of cell 0 is 3"));
        assert!(refused([vec![-1], vec![-2], vec![-1], vec![-1]], None).contains("`right` of cell 0 is -2"));
        assert!(refused([vec![-1], vec![], vec![-1], vec![-1]], None).contains("0 by its `right`"));
        assert!(refused([vec![], vec![], vec![], vec![]], None).contains("0 cells"));
        let nowhere = Some([vec![0.0, f64::NAN, 1.0], vec![0.0; 3]]);
        assert!(refused(row(), nowhere).contains("position of cell 1"));
    }
}
