//! The extents of a grid whose columns stand in no rows, from its adjacency and the shapes of arrays.

use super::extents::{levels_missing, shape_text};
use super::{checked, fields};
use crate::array::Array;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_compiler::ir::{Field, Levels, Stencil};

/// The grid: as many cells as `adjacency` has, and as many levels as `given` or the arrays say.
///
/// # Errors
/// An array has a shape that its field cannot have on this grid; the number of levels is not known.
pub(super) fn find(
    stencil: &Stencil,
    adjacency: &Adjacency,
    given: Option<Grid>,
    arrays: &BTreeMap<String, Array>,
) -> Result<Grid> {
    let cells = adjacency.cells();
    // Who said so is a field, or whoever gave the grid.
    let mut nk: Option<(usize, Option<&Field>)> = given.map(|grid| (grid.nk, None));
    for field in fields(stencil) {
        let Some(array) = arrays.get(&field.name) else { continue };
        let Some(levels) = levels(field, &array.shape, adjacency)? else { continue };
        match &nk {
            Some((known, source)) if *known != levels => {
                let said = source.map_or("the given grid has".to_owned(), |source| format!("`{}` has", source.name));
                // The one on interfaces is the one whose level is easily forgotten.
                let interfaces = |field: &Field| field.place.levels == Levels::Interfaces;
                match source {
                    _ if interfaces(field) && !source.is_some_and(interfaces) => {
                        return Err(levels_missing(field, levels + 1, *known, &said));
                    }
                    Some(source) if interfaces(source) && !interfaces(field) => {
                        return Err(levels_missing(source, known + 1, levels, &format!("`{}` has", field.name)));
                    }
                    _ => {}
                }
                let shape = shape_text(&array.shape);
                return Err(Error::input(format!("`{}` has {levels} levels, {said} {known}", field.name))
                    .help(format!("its shape is {shape}; {}", expected(field, cells))));
            }
            Some(_) => {}
            None => nk = Some((levels, Some(field))),
        }
    }
    let needs_levels = fields(stencil).any(|field| field.place.levels != Levels::None);
    match nk {
        Some((nk, _)) => checked(Grid::cells(cells, nk)),
        // A stencil without levels has one.
        None if !needs_levels => checked(Grid::cells(cells, 1)),
        None => {
            let input = fields(stencil).find(|field| field.role.is_read() && field.place.levels != Levels::None);
            let name = input.map_or("phi", |field| field.name.as_str());
            let why = format!("how many levels the grid `{}` has is not known", adjacency.name.as_told());
            Err(Error::call(why).help(format!("give --levels N, or the inputs as arrays: --in {name}={name}.npy")))
        }
    }
}

/// How many levels a grid has by the shape of a field's array; nothing if the field has none.
fn levels(field: &Field, shape: &[usize], adjacency: &Adjacency) -> Result<Option<usize>> {
    let cells = adjacency.cells();
    let interfaces = usize::from(field.place.levels == Levels::Interfaces);
    let levels = match (field.place.levels, field.place.horizontal, shape) {
        (Levels::None, true, [own] | [1, own]) if *own == cells => return Ok(None),
        (Levels::Full, true, [own]) if *own == cells => 1,
        (Levels::Full | Levels::Interfaces, true, [levels, own]) if *own == cells => *levels,
        (_, false, [levels]) => *levels,
        _ => return Err(wrong_shape(field, shape, adjacency)),
    };
    // Of a single interface, and of none, there is no level between.
    match levels.checked_sub(interfaces) {
        Some(levels) => Ok(Some(levels)),
        None => Err(wrong_shape(field, shape, adjacency)),
    }
}

fn wrong_shape(field: &Field, shape: &[usize], adjacency: &Adjacency) -> Error {
    let (name, cells) = (&field.name, adjacency.cells());
    let expected = expected(field, cells);
    let is_level_count = |&levels: &usize| field.place.levels != Levels::None && levels > 0;
    let reason = format!(
        "`{name}` has the shape {}, and the grid `{}` has {cells} cells",
        shape_text(shape),
        adjacency.name.as_told()
    );
    Error::input(reason).help(match shape {
        [own, levels] if *own == cells && is_level_count(levels) => {
            format!("{expected}: the axes seem to be in the other order; in NumPy, save `array.T`")
        }
        [.., nj, ni] if nj * ni == cells && (2..=3).contains(&shape.len()) => format!(
            "{expected}: one axis for all cells, in the order of the grid's; if they are in rows, in NumPy, save \
             `array.reshape({})`",
            if shape.len() == 3 { format!("-1, {cells}") } else { cells.to_string() }
        ),
        _ => expected,
    })
}

fn expected(field: &Field, cells: usize) -> String {
    let shape = match (field.place.horizontal, field.place.levels) {
        (true, Levels::Full) => format!("(nk, {cells})"),
        (true, Levels::Interfaces) => format!("(nk + 1, {cells})"),
        (true, Levels::None) => format!("({cells})"),
        (false, Levels::Interfaces) => "(nk + 1)".to_owned(),
        (false, Levels::Full | Levels::None) => "(nk)".to_owned(),
    };
    format!("{shape} is expected")
}
