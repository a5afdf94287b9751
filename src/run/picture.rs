//! Pictures of one level of a field.

use std::path::Path;
use std::sync::Arc;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::ir::{Field, FieldId, Levels};
use stencilc_runtime::grid::Raster;
use stencilc_runtime::job::Checked;
use stencilc_runtime::mesh::View;
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::plot::{Picture, Scattered, save_png};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::{Data, Error, Result};

/// Points along the longer side of a picture over a mesh.
pub const SIDE: usize = 1200;

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
        (_, Some(level)) => Err(no_level(name, level, levels)),
    }
}

fn no_level(name: &str, level: usize, levels: usize) -> Error {
    Error::call(format!("`{name}` has no level {level}")).help(format!("its levels are 0 to {}", levels - 1))
}

/// Draws a level of a field into the file at `path`.
///
/// # Errors
/// Nobody says where cells lie, or it cannot be written.
pub fn draw(path: &Path, field: &Field, data: &Data, problem: &Problem, level: usize) -> Result<()> {
    save_png(path, &Shown::new(field, data, problem, level)?.picture())
}

/// A field of a program of which one level is drawn, again and again.
pub struct Look {
    /// The field.
    pub field: String,
    /// How many points a picture has.
    pub points: usize,
    level: usize,
    place: Place,
}

/// Where it has its numbers.
enum Place {
    Grid(Arc<Problem>, FieldId),
    Mesh(OverMesh),
}

/// What is drawn over a mesh.
struct OverMesh {
    view: View,
    /// Which part of a vector, as it is called.
    part: Option<usize>,
    /// How many numbers a level, and an element, has.
    strides: [usize; 2],
    levels: Option<usize>,
}

impl Look {
    /// Of what is called `name`: a field, or over a mesh a part of a vector, `q.1`. `side` are the points along the longer side of a mesh.
    ///
    /// # Errors
    /// It has no such level or part, or nobody knows where its elements are.
    pub fn new(checked: &Checked, name: &str, given: Option<usize>, side: usize) -> Result<Self> {
        match checked {
            Checked::Grid(problem) => {
                let outer = Arc::clone(&problem.outer);
                let id = outer.stencil.field_named(name).ok_or_else(|| Error::call(format!("there is no `{name}`")))?;
                let level = level(given, &outer, id)?;
                let raster = outer.adjacency.as_ref().and_then(|adjacency| Raster::new(adjacency));
                let points = raster.map_or(outer.grid.columns(), |raster| raster.cells.len());
                Ok(Self { field: name.to_owned(), points, level, place: Place::Grid(outer, id) })
            }
            Checked::Mesh(problem) => {
                let (field, part) = name.split_once('.').map_or((name, None), |(field, part)| (field, Some(part)));
                let (level, own) = OverMesh::new(problem, field, part, given, side)?;
                let points = own.view.ni * own.view.nj;
                Ok(Self { field: field.to_owned(), points, level, place: Place::Mesh(own) })
            }
        }
    }

    /// What the picture shows.
    ///
    /// # Errors
    /// Nobody says where cells lie.
    pub fn shown(&self, data: &Data) -> Result<Shown> {
        match &self.place {
            Place::Grid(outer, id) => Shown::new(&outer.stencil.fields[*id], data, outer, self.level),
            Place::Mesh(own) => Ok(own.shown(&self.field, self.level, data)),
        }
    }
}

impl OverMesh {
    fn new(
        problem: &MeshProblem,
        name: &str,
        part: Option<&str>,
        level: Option<usize>,
        side: usize,
    ) -> Result<(usize, Self)> {
        let (program, declared) = (&problem.program.program, &problem.program.mesh);
        let place = program.declared(name).map(|id| program.variables[id].place);
        let instead = "write the numbers with --out";
        let Some((place, home)) = place.and_then(|place| Some((place, place.home?))) else {
            return Err(Error::call(format!("`{name}` cannot be drawn: it has no number for each element of a set"))
                .help(instead));
        };
        if home.map.is_some() {
            return Err(
                Error::call(format!("`{name}` cannot be drawn: it has a number for each slot of a map")).help(instead)
            );
        }
        let set = &declared.sets[home.set].name;
        let set = problem.mesh.set_named(set).ok_or_else(|| Error::input(format!("the mesh has no set `{set}`")))?;
        let parts = home.parts as usize;
        let chosen = match part {
            Some(_) if parts == 1 => {
                return Err(Error::call(format!("`{name}` has no parts")).help(format!("give `{name}`")));
            }
            Some(text) => Some(text.parse().ok().filter(|part| *part < parts).ok_or_else(|| {
                Error::call(format!("`{name}` has no part `{text}`")).help(format!("they are 0 to {}", parts - 1))
            })?),
            None if parts > 1 => {
                return Err(Error::call(format!("`{name}` has {parts} parts, and one is drawn"))
                    .help(format!("name it: {name}.0 to {name}.{}", parts - 1)));
            }
            None => None,
        };
        let levels = (place.levels != Levels::None).then(|| place.levels.count(problem.levels));
        let level = match (levels, level) {
            (None, _) => 0,
            (Some(levels), None) => levels / 2,
            (Some(levels), Some(level)) if level < levels => level,
            (Some(levels), Some(level)) => return Err(no_level(name, level, levels)),
        };
        let view = View::new(&problem.mesh, set, side).map_err(|error| match error.help {
            None => error.help(instead),
            Some(_) => error,
        })?;
        let strides = [problem.bound.size(home.set) * parts, parts];
        Ok((level, Self { view, part: chosen, strides, levels }))
    }

    fn shown(&self, name: &str, level: usize, data: &Data) -> Shown {
        let Self { view, part, strides: [each, parts], levels } = self;
        let first = level * each + part.unwrap_or(0);
        let part = part.map_or(String::new(), |part| format!(".{part}"));
        let level = levels.map_or(String::new(), |levels| format!(", level {level} of {levels}"));
        Shown {
            title: format!("{name}{part}{level}"),
            values: view.values(&|element| data.get(first + element * parts)),
            ni: view.ni,
            nj: view.nj,
            scattered: Some((view.count, view.what.clone(), view.axes)),
        }
    }
}

/// One level of a field, as a picture shows it.
pub struct Shown {
    pub title: String,
    values: Vec<f64>,
    ni: usize,
    nj: usize,
    /// How many elements lie anywhere, what they are, and what the axes are called.
    scattered: Option<(usize, String, [&'static str; 2])>,
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
        Ok(Self { title, values, ni, nj, scattered: Some((columns, "cells".to_owned(), ["i", "j"])) })
    }

    pub fn picture(&self) -> Picture<'_> {
        Picture {
            title: &self.title,
            values: &self.values,
            ni: self.ni,
            nj: self.nj,
            scattered: self.scattered.as_ref().map(|(count, what, axes)| Scattered {
                count: *count,
                what,
                axes: *axes,
            }),
        }
    }
}
