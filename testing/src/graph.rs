//! Grids whose cells stand in no rows, each made by a few numbers.

use std::fmt;
use std::sync::Arc;
use stencilc_compiler::grid::Adjacency;
use stencilc_runtime::grid::{Quadtree, Refinement, in_rows};

/// What a graph is before any neighbour is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Cells in rows, with nothing beyond the edges.
    Plane,
    /// Cells in rows that are circles, both ways.
    Torus,
    /// Squares, some of which are divided into four.
    Quadtree,
}

/// A grid whose cells stand in no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// What it is at first.
    pub shape: Shape,
    /// Cells along i, or squares before they are divided.
    pub ni: usize,
    /// The same along j.
    pub nj: usize,
    /// How many neighbours are any other cell instead, or none.
    pub twists: usize,
    /// Whether cells are numbered at random.
    pub shuffled: bool,
    /// Of all that is random.
    pub seed: u64,
}

impl Graph {
    /// A graph at random.
    pub fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let shape = [Shape::Plane, Shape::Torus, Shape::Torus, Shape::Quadtree][rng.usize(0..4)];
        let most = if shape == Shape::Quadtree { 5 } else { 10 };
        // Now and then a single row, column or cell.
        let mut along = || if rng.u8(0..10) == 0 { 1 } else { rng.usize(2..=most) };
        let (ni, nj) = (along(), along());
        let twists = [0, 0, 1, 3, 12][rng.usize(0..5)];
        Self { shape, ni, nj, twists, shuffled: rng.bool(), seed }
    }

    /// Of each cell the number of the one to the left, right, top and bottom; -1 where there is none.
    fn neighbours(&self) -> [Vec<i32>; 4] {
        let Self { ni, nj, seed, .. } = *self;
        match self.shape {
            Shape::Plane => in_rows("plane", ni, nj).expect("a small plane").neighbours().clone(),
            Shape::Torus => [[ni - 1, 0], [1, 0], [0, nj - 1], [0, 1]].map(|[i, j]| {
                let to = |cell: usize| ((cell / ni + j) % nj * ni + (cell % ni + i) % ni) as i32;
                (0..ni * nj).map(to).collect()
            }),
            Shape::Quadtree => {
                let tree = Quadtree { ni, nj, depth: 2, refinement: Refinement::Noise { seed } };
                tree.adjacency("tree").expect("a small quadtree").0.neighbours().clone()
            }
        }
    }

    /// Which cells are neighbours.
    pub fn adjacency(&self) -> Arc<Adjacency> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut lists = self.neighbours();
        let cells = lists[0].len();
        for _ in 0..self.twists {
            lists[rng.usize(0..4)][rng.usize(0..cells)] = rng.i32(-1..cells as i32);
        }
        if self.shuffled {
            let mut numbers: Vec<i32> = (0..cells as i32).collect();
            rng.shuffle(&mut numbers);
            lists = lists.map(|list| {
                let mut own = vec![-1; cells];
                for (cell, &to) in list.iter().enumerate() {
                    own[numbers[cell] as usize] = usize::try_from(to).map_or(-1, |to| numbers[to]);
                }
                own
            });
        }
        Arc::new(Adjacency::new("graph.npz", lists, None).expect("numbers of cells"))
    }

    /// Graphs that are one step smaller.
    pub fn smaller(&self) -> Vec<Self> {
        let Self { ni, nj, twists, .. } = *self;
        let own = || self.clone();
        let all = [
            Self { twists: 0, ..own() },
            Self { twists: twists.saturating_sub(1), ..own() },
            Self { shuffled: false, ..own() },
            Self { shape: Shape::Plane, ..own() },
            Self { ni: ni.div_ceil(2), ..own() },
            Self { nj: nj.div_ceil(2), ..own() },
            Self { ni: (ni - 1).max(1), ..own() },
            Self { nj: (nj - 1).max(1), ..own() },
        ];
        all.into_iter().filter(|new| new != self).collect()
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["left", "right", "top", "bottom"];
        let adjacency = self.adjacency();
        let lists = names.iter().zip(adjacency.neighbours());
        write!(f, "{:?} of {}x{}, {} twists", self.shape, self.ni, self.nj, self.twists)?;
        lists.into_iter().try_for_each(|(name, list)| write!(f, "; {name} {list:?}"))
    }
}
