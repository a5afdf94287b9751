//! `--grid`: extents, or a file; and `--levels`, which a file does not tell.

use super::extents;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_runtime::{Error, Result, grid};

/// A grid as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridArg {
    /// Columns in rows: `512x512x64`.
    Rows(Grid),
    /// Columns that a file links: `quad.npz`.
    File(PathBuf),
}

impl FromStr for GridArg {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if Path::new(text).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
            return Ok(Self::File(PathBuf::from(text)));
        }
        // Two numbers are a grid of one level.
        let three = if text.matches(['x', 'X']).count() == 1 { format!("{text}x1") } else { text.to_owned() };
        let example = "a grid is three numbers of cells along i, j and k, as in 512x512x64, or a file, as quad.npz";
        let [ni, nj, nk] = extents(&three, example)?;
        Ok(Self::Rows(Grid::rows(ni, nj, nk)))
    }
}

impl fmt::Display for GridArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(grid) => write!(f, "{grid}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// What `--grid` and `--levels` say of a grid.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Its extents, if they are known.
    pub grid: Option<Grid>,
    /// Its neighbours, if it has no rows.
    pub adjacency: Option<Arc<Adjacency>>,
}

/// Levels of a grid from a file, if nobody says.
pub const LEVELS: usize = 64;

/// The levels of a grid whose cells stand in no rows, if it is one.
pub fn of_cells(grid: Option<&GridArg>, levels: Option<usize>) -> Option<usize> {
    matches!(grid, Some(GridArg::File(_))).then(|| levels.unwrap_or(LEVELS))
}

impl Chosen {
    /// Reads the grid's file, if it has one.
    ///
    /// # Errors
    /// The file is none; levels are given of a grid whose extents tell them.
    pub fn new(given: Option<&GridArg>, levels: Option<usize>) -> Result<Self> {
        match (given, levels) {
            (Some(GridArg::File(path)), levels) => {
                let adjacency = Arc::new(grid::load(path)?);
                let grid = levels.map(|nk| Grid::cells(adjacency.cells(), nk));
                Ok(Self { grid, adjacency: Some(adjacency) })
            }
            (Some(GridArg::Rows(grid)), None) => Ok(Self { grid: Some(*grid), adjacency: None }),
            (None, None) => Ok(Self::default()),
            (Some(GridArg::Rows(_)) | None, Some(_)) => {
                Err(Error::call("--levels is for grids that a file holds, as in --grid quad.npz")
                    .help("extents tell the levels themselves: --grid NIxNJxNK"))
            }
        }
    }
}

/// The grids that are named; those from files have so many levels, or the usual ones.
///
/// # Errors
/// As [`Chosen::new`].
pub fn all(given: &[GridArg], levels: Option<usize>, usual: usize) -> Result<Vec<Chosen>> {
    let is_file = |grid: &GridArg| matches!(grid, GridArg::File(_));
    // Where none has a file, it is told what --levels is for.
    let no_file = !given.iter().any(is_file);
    let of_rows = levels.filter(|_| no_file);
    let levels = |grid: &GridArg| if is_file(grid) { levels.or(Some(usual)) } else { of_rows };
    given.iter().map(|grid| Chosen::new(Some(grid), levels(grid))).collect()
}

/// A number of levels.
pub fn levels(text: &str) -> std::result::Result<usize, String> {
    match text.trim().parse() {
        Ok(levels @ 1..) => Ok(levels),
        _ => Err("a number of levels is at least 1, as in --levels 64".to_owned()),
    }
}
