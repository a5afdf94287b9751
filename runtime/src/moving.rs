//! Levels that are data, on grids: whether the numbers that say them lead to levels that there are.

use crate::problem::Problem;
use crate::program::halo;
use crate::{Data, Error, Result};
use std::collections::BTreeMap;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::analysis::moving::{Allowed, Stand, There, allowed_on_grid};
use stencilc_compiler::grid::{Adjacency, Form, Grid, Region, Topology};
use stencilc_compiler::ir::program::{GridAxis, Side};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Field, FieldId, Handle, Levels, Place, Precision, Role, Stencil, VariableId};
use stencilc_compiler::program::{Source, Stage, Staged};

/// The advice where no number would be right.
const IMPOSSIBLE: &str = "no number leads to levels that there are wherever it is looked at: guard the read, as in `if k > 0 { ... } else { ... }`, or give a grid with more levels";

/// Whether an error says that no number of a field would be right.
pub fn is_impossible(error: &Error) -> bool {
    error.help.as_deref() == Some(IMPOSSIBLE)
}

/// Whether an error says that a level which the text says by its number is not there.
pub fn is_no_level(error: &Error) -> bool {
    error.message.contains("` needs level ")
}

/// What is wrong with a number that says a level: it leads to none. `places` are those of the number.
pub fn no_such_level(name: &str, number: i64, places: &[String], read: &str, allowed: &Allowed) -> Error {
    let level = allowed.more.map_or("such level".to_owned(), |more| format!("level {}", number + more));
    let what = format!("`{name}` is {number} at {}: `{read}` has no {level}", places.join(", "));
    Error::input(what).help(match allowed.low > allowed.high {
        true => IMPOSSIBLE.to_owned(),
        false if allowed.low == allowed.high => format!("there no number but {} leads to a level", allowed.low),
        false if allowed.more.is_some() => {
            format!("there it may be {} to {}: levels are counted from 0, the highest", allowed.low, allowed.high)
        }
        false => format!(
            "there it may be {} to {}; where nothing is meant to be read on another level, it is 0",
            allowed.low, allowed.high
        ),
    })
}

/// The numbers of a field that are looked at: where they stand, and which they may be.
type Stands<'a> = dyn Iterator<Item = (&'a Stand, &'a Allowed)> + 'a;

/// An array whose numbers are looked at, with a halo of cells around it.
struct Looked<'a> {
    name: &'a str,
    place: Place,
    numbers: &'a [i32],
    /// With the halo, as the region is.
    grid: Grid,
    /// The same without it.
    domain: Grid,
    /// Cells of the halo before the first along each axis.
    before: [usize; 3],
    adjacency: Option<&'a Adjacency>,
    region: &'a Region,
}

impl Looked<'_> {
    /// Whether all numbers that some stands have lead to levels that there are; `read` names what is read where they lead.
    fn check<'s>(&self, stands: &mut Stands<'s>, read: impl Fn(FieldId) -> &'s str) -> Result<()> {
        for (stand, allowed) in stands {
            let first = stand.level.unwrap_or(0) * self.plane();
            for column in self.columns(stand) {
                let number = i64::from(self.numbers[first + column]);
                if !(allowed.low..=allowed.high).contains(&number) {
                    let places = self.places(column, stand.level);
                    return Err(no_such_level(self.name, number, &places, read(allowed.read), allowed));
                }
            }
        }
        Ok(())
    }

    /// Numbers of a level.
    fn plane(&self) -> usize {
        if self.place.horizontal { self.grid.columns() } else { 1 }
    }

    /// The columns of a stand, by their numbers: of all cells that are computed, where its path leads.
    fn columns(&self, stand: &Stand) -> Vec<usize> {
        let Grid { ni, .. } = self.grid;
        match (self.place.horizontal, self.adjacency) {
            (false, _) => vec![0],
            (true, None) => {
                let offset = stand.column.offset();
                let along = |cells: &std::ops::Range<usize>, by: i32| {
                    let at = |n: usize| (n as i64 + i64::from(by)).max(0) as usize;
                    at(cells.start)..at(cells.end)
                };
                let (i, j) = (along(&self.region.i, offset.i), along(&self.region.j, offset.j));
                j.flat_map(|j| i.clone().map(move |i| j * ni + i)).collect()
            }
            (true, Some(adjacency)) => {
                let grid = Topology::Adjacent(adjacency);
                let computed = self.region.column_numbers(self.grid);
                computed.into_iter().filter_map(|column| grid.walk(column as usize, &stand.column)).collect()
            }
        }
    }

    /// Where a number stands, as messages say it: what lies beyond an edge has coordinates below 0, or as many as there are cells.
    fn places(&self, column: usize, level: Option<usize>) -> Vec<String> {
        let from = |n: usize, axis: GridAxis| n as i64 - self.before[axis as usize] as i64;
        let mut all = Vec::new();
        if self.place.horizontal {
            all.push(match self.grid.form {
                Form::Rows => {
                    let (i, j) = (column % self.grid.ni, column / self.grid.ni);
                    let (i, j) = (from(i, GridAxis::I), from(j, GridAxis::J));
                    let is_beyond = |at: i64, n: usize| !(0..n as i64).contains(&at);
                    let is_outside = is_beyond(i, self.domain.ni) || is_beyond(j, self.domain.nj);
                    format!("(i, j) = ({i}, {j}){}", if is_outside { ", beyond an edge" } else { "" })
                }
                Form::Cells => format!("cell {column}"),
            });
        }
        all.extend(level.map(|level| format!("level {}", from(level, GridAxis::K))));
        if all.is_empty() { vec!["all cells".to_owned()] } else { all }
    }
}

/// Brings the numbers of an array that would lead to no level to the nearest that does, by their levels.
fn fit(numbers: &mut [i32], plane: usize, allowed: impl Iterator<Item = (usize, Allowed)>) {
    for (level, own) in allowed {
        for number in numbers.iter_mut().skip(level * plane).take(plane) {
            *number = i64::from(*number).min(own.high).max(own.low).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        }
    }
}

/// Where numbers of a stencil on a grid say which levels it reads, and which they may be.
pub fn stands(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    region: &Region,
    params: &[Value],
) -> BTreeMap<Stand, Allowed> {
    let known = Known::new(stencil, precision, grid.nk, params);
    allowed_on_grid(stencil, (&known, true), (grid.form, region.k.clone()), There::default())
}

/// Whether the numbers of a stencil's arrays lead to levels that there are.
///
/// # Errors
/// One does not.
pub fn check(
    stencil: &Stencil,
    stands: &BTreeMap<Stand, Allowed>,
    (grid, adjacency, region): (Grid, Option<&Adjacency>, &Region),
    data: impl Fn(FieldId) -> Option<Data>,
) -> Result<()> {
    for field in fields(stands) {
        let Some(Data::I32(numbers)) = data(field) else { continue };
        let Field { name, place, .. } = &stencil.fields[field];
        let place = *place;
        let looked = Looked { name, place, numbers: &numbers, grid, domain: grid, before: [0; 3], adjacency, region };
        let mut own = stands.iter().filter(|(stand, _)| stand.field == field);
        looked.check(&mut own, |read| &stencil.fields[read].name)?;
    }
    Ok(())
}

/// The fields whose numbers stand anywhere.
fn fields(stands: &BTreeMap<Stand, Allowed>) -> Vec<FieldId> {
    let mut all: Vec<FieldId> = stands.keys().map(|stand| stand.field).collect();
    all.dedup();
    all
}

impl Problem {
    /// Brings drawn numbers that would lead to no level to the nearest that there is, and looks at all.
    ///
    /// # Errors
    /// A number leads to no level.
    pub(crate) fn look_at_levels(&mut self) -> Result<()> {
        let Problem { stencil, precision, grid, region, params, .. } = self;
        let stands = stands(stencil, *precision, *grid, region, params);
        for field in fields(&stands) {
            let Field { name, place, .. } = &stencil.fields[field];
            let plane = if place.horizontal { grid.columns() } else { 1 };
            if let (true, Some(Data::I32(numbers))) = (self.drawn.contains(name), &mut self.inputs[field.index()]) {
                let own = stands.iter().filter(|(stand, _)| stand.field == field);
                fit(numbers, plane, own.map(|(stand, allowed)| (stand.level.unwrap_or(0), *allowed)));
            }
        }
        let Problem { stencil, grid, adjacency, region, drawn, inputs, .. } = &*self;
        for field in fields(&stands) {
            let own = stands.iter().filter(|(stand, _)| stand.field == field);
            let own = own.map(|(stand, allowed)| (stand.clone(), *allowed)).collect();
            let data = |_| inputs[field.index()].clone();
            check(stencil, &own, (*grid, adjacency.as_deref(), region), data)
                .map_err(|error| of_drawn(error, drawn, &stencil.fields[field].name))?;
        }
        Ok(())
    }
}

/// What is wrong with a number, if it is one of a field that may have been drawn: the nearest level was not enough.
pub fn of_drawn(error: Error, drawn: &[String], name: &str) -> Error {
    if drawn.iter().any(|own| own == name) { error.help(IMPOSSIBLE) } else { error }
}

/// The calls of a program that read levels by the numbers of a variable, and as which field.
fn readers(staged: &Staged, variable: VariableId) -> impl Iterator<Item = (&Stage, FieldId)> {
    staged.stages.iter().flat_map(move |stage| {
        let own = fields(&stage.stands).into_iter();
        own.filter(move |field| stage.call.fields[field.index()].read == Some(variable))
            .map(move |field| (stage, field))
    })
}

/// Brings drawn numbers of a program's variable that would lead to no level to the nearest that there is.
pub fn fit_variable(staged: &Staged, variable: VariableId, data: &mut Data) {
    let Data::I32(numbers) = data else { return };
    let (place, edges) = (staged.program.variables[variable].place, &staged.edges[variable.index()]);
    let plane = if place.horizontal { staged.domain.columns() } else { 1 };
    let before = staged.halo.width(GridAxis::K, Side::Low);
    let count = if place.levels == Levels::None { 1 } else { place.levels.count(staged.domain.nk) };
    for (stage, field) in readers(staged, variable) {
        let own = stage.stands.iter().filter(|(stand, _)| stand.field == field);
        let levels = own.filter_map(|(stand, allowed)| {
            let Some(level) = stand.level else { return Some((0, *allowed)) };
            match edges.source(GridAxis::K, level as i64 - before as i64, count) {
                Source::Cell(level) => Some((level, *allowed)),
                Source::Negated(level) => Some((level, Allowed { low: -allowed.high, high: -allowed.low, ..*allowed })),
                Source::Value(_) | Source::Nothing => None,
            }
        });
        fit(numbers, plane, levels);
    }
}

/// Whether the numbers of a program's variable lead to levels that there are, in all its calls.
///
/// # Errors
/// One does not.
pub fn check_variable(staged: &Staged, adjacency: Option<&Adjacency>, variable: VariableId, data: &Data) -> Result<()> {
    if readers(staged, variable).next().is_none() {
        return Ok(());
    }
    let own = &staged.program.variables[variable];
    // As calls see them, with what lies beyond edges.
    let mut wide = halo::widened(staged, own.place, data);
    halo::fill(staged, variable, &mut wide);
    let Data::I32(numbers) = &wide else { return Ok(()) };
    let before = GridAxis::ALL.map(|axis| staged.halo.width(axis, Side::Low));
    for (stage, field) in readers(staged, variable) {
        let looked = Looked {
            name: &own.name,
            place: own.place,
            numbers,
            grid: staged.grid,
            domain: staged.domain,
            before,
            adjacency,
            region: &stage.region,
        };
        let mut stands = stage.stands.iter().filter(|(stand, _)| stand.field == field);
        looked.check(&mut stands, |read| &stage.stencil.fields[read].name)?;
    }
    Ok(())
}

/// The variables of a program that are given, and whose numbers say which levels are read.
pub fn variables(staged: &Staged) -> Vec<VariableId> {
    let variables = staged.program.variables.iter();
    let given = variables.filter(|(_, own)| own.role.is_some_and(Role::is_read)).map(|(id, _)| id);
    given.filter(|&id| readers(staged, id).next().is_some()).collect()
}
