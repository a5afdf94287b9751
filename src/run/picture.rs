//! Pictures of one level of a field.

use std::path::Path;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::ir::{Field, FieldId, Levels};
use stencilc_runtime::grid::Raster;
use stencilc_runtime::plot::{Picture, Scattered, save_png};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::{Data, Error, Result};

/// The error of a picture of cells of which nobody says where they lie.
fn no_places(adjacency: &Adjacency) -> Error {
    Error::input(format!(
        "there is no picture of the grid `{}`: it does not say where its cells lie",
        adjacency.name.as_told()
    ))
    .help("add their centres to the file: `numpy.savez(..., x=x, y=y)`; or write the numbers with --out")
}

/// The level of a field that is drawn.
pub fn level(given: Option<usize>, problem: &Problem, id: FieldId) -> Result<usize> {
    let Field { name, place, .. } = &problem.stencil.fields[id];
    if let Some(adjacency) = problem.adjacency.as_ref().filter(|adjacency| adjacency.centres().is_none()) {
        return Err(no_places(adjacency));
    }
    if !place.horizontal {
        return Err(Error::call(format!("`{name}` cannot be drawn: it has no axes i and j"))
            .help("only fields on columns can; write the numbers with --out"));
    }
    let levels = place.levels.count(problem.grid.nk);
    let middle = problem.region.k.start + problem.region.k.len() / 2;
    match (place.levels, given) {
        (Levels::None, _) => Ok(0),
        (_, None) => Ok(middle),
        (_, Some(level)) if level < levels => Ok(level),
        (_, Some(level)) => {
            Err(Error::call(format!("`{name}` has no level {level}"))
                .help(format!("its levels are 0 to {}", levels - 1)))
        }
    }
}

pub fn draw(path: &Path, field: &Field, data: &Data, problem: &Problem, level: usize) -> Result<()> {
    save_png(path, &Shown::new(field, data, problem, level)?.picture())
}

/// One level of a field, as a picture shows it.
pub struct Shown {
    pub title: String,
    values: Vec<f64>,
    ni: usize,
    nj: usize,
    scattered: Option<usize>,
}

impl Shown {
    pub fn new(field: &Field, data: &Data, problem: &Problem, level: usize) -> Result<Self> {
        let grid = problem.grid;
        let columns = grid.columns();
        let values: Vec<f64> = (level * columns..(level + 1) * columns).map(|index| data.get(index)).collect();
        let title = match field.place.levels {
            Levels::None => field.name.clone(),
            Levels::Full => format!("{}, level {level} of {}", field.name, grid.nk),
            Levels::Interfaces => format!("{}, interface {level} of {}", field.name, grid.nk + 1),
        };
        let Some(adjacency) = &problem.adjacency else {
            return Ok(Self { title, values, ni: grid.ni, nj: grid.nj, scattered: None });
        };
        let Raster { ni, nj, cells } = Raster::new(adjacency).ok_or_else(|| no_places(adjacency))?;
        let values: Vec<f64> = cells.iter().map(|cell| cell.map_or(f64::NAN, |cell| values[cell])).collect();
        Ok(Self { title, values, ni, nj, scattered: Some(columns) })
    }

    pub fn picture(&self) -> Picture<'_> {
        Picture {
            title: &self.title,
            values: &self.values,
            ni: self.ni,
            nj: self.nj,
            scattered: self.scattered.map(Scattered::cells),
        }
    }
}
