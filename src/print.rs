//! What `run` shows of a stencil's prints.

use crate::args::At;
use crate::line::Line;
use crate::terminal;
use serde_json::{Value, json};
use std::ops::Range;
use stencilc_compiler::grid::{Form, Grid};
use stencilc_compiler::ir::Stencil;
use stencilc_compiler::source::Source;
use stencilc_runtime::print::{Compute, Printed, Shown, printed};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::{Error, Result};

/// Prints at cells.
pub struct Prints {
    cells: Vec<[usize; 3]>,
    form: Form,
    printed: Vec<Printed>,
    bits: bool,
}

/// Where prints are shown: at the cells asked for, or in the middle of the computed ones.
///
/// # Errors
/// A cell lies outside the grid, or there is nothing to show.
pub fn cells(given: &[At], bits: bool, problem: &Problem) -> Result<Vec<[usize; 3]>> {
    let Problem { stencil, grid, region, .. } = problem;
    if stencil.prints.is_empty() && (bits || !given.is_empty()) {
        let option = if bits { "--bits" } else { "--at" };
        let read = stencil.fields.iter().find(|(_, field)| field.role.is_read());
        let name = read.map_or("phi", |(_, field)| field.name.as_str());
        return Err(Error::call(format!(
            "stencil `{}` prints nothing, and {option} is for what it prints",
            stencil.name
        ))
        .help(format!("write `print({name})` into the stencil")));
    }
    if given.is_empty() {
        let middle = |range: &Range<usize>| range.start + range.len() / 2;
        let [i, j] = match &region.cells {
            Some(cells) => [cells.get(cells.len() / 2).map_or(0, |&cell| cell as usize), 0],
            None => [middle(&region.i), middle(&region.j)],
        };
        return Ok(vec![[i, j, middle(&region.k)]]);
    }
    given.iter().map(|at| cell(at, *grid)).collect()
}

/// A cell of the grid.
fn cell(At(parts): &At, grid: Grid) -> Result<[usize; 3]> {
    let last = [grid.ni - 1, grid.nj - 1, grid.nk - 1];
    let (cell, kind, last) = match grid.form {
        Form::Rows => {
            let cell = match *parts.as_slice() {
                [i, j, k] => Some([i, j, k]),
                [i, j] => Some([i, j, 0]),
                _ => None,
            };
            (cell, "three numbers along i, j and k, as in 3,4,5", text(&last))
        }
        Form::Cells => {
            let cell = match *parts.as_slice() {
                [cell, k] => Some([cell, 0, k]),
                [cell] => Some([cell, 0, 0]),
                _ => None,
            };
            (cell, "two numbers, its own and that of its level, as in 17,5", text(&[last[0], last[2]]))
        }
    };
    let Some(cell) = cell else {
        let why = format!("`{}` is no cell of the grid {grid}", text(parts));
        return Err(Error::call(why).help(format!("there a cell is {kind}")));
    };
    if cell[0] >= grid.ni || cell[1] >= grid.nj || cell[2] >= grid.nk {
        let first = if grid.form == Form::Rows { "0,0,0" } else { "0,0" };
        return Err(Error::call(format!("the cell {} lies outside the grid {grid}", shown(&cell, grid.form)))
            .help(format!("cells count from {first} to {last}")));
    }
    Ok(cell)
}

/// A cell as it is written on a grid of some form.
fn shown(&[i, j, k]: &[usize; 3], form: Form) -> String {
    match form {
        Form::Rows => text(&[i, j, k]),
        Form::Cells => text(&[i, k]),
    }
}

fn text(parts: &[usize]) -> String {
    parts.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

impl Prints {
    /// Computes the prints.
    ///
    /// # Errors
    /// Those of [`printed`].
    pub fn new(problem: &mut Problem, cells: Vec<[usize; 3]>, bits: bool, compute: &mut Compute) -> Result<Self> {
        let printed = printed(problem, &cells, compute)?;
        Ok(Self { cells, form: problem.grid.form, printed, bits })
    }

    /// A table: a line for each print and cell.
    pub fn text(&self, stencil: &Stencil, source: &Source) -> String {
        let mut rows = Vec::new();
        for Printed { number, values, .. } in &self.printed {
            let Some(print) = stencil.prints.get(*number) else { continue };
            let line = Line::of(source, print.span);
            for (cell, value) in self.cells.iter().zip(values) {
                let at = format!("at {}", shown(cell, self.form));
                let mut row = vec![format!("line {line}"), print.label.as_told().to_owned(), at];
                match value {
                    Some(Shown { text, bits, .. }) => {
                        row.push(text.clone());
                        row.extend(self.bits.then(|| format!("{bits:#x}")));
                    }
                    None => row.push("not computed here".to_owned()),
                }
                rows.push(row);
            }
        }
        terminal::table(&rows, &[])
    }

    /// Says why a print is computed nowhere.
    pub fn tell(&self, stencil: &Stencil, source: &Source) {
        for Printed { number, region, .. } in &self.printed {
            if let (Some(print), Err(why)) = (stencil.prints.get(*number), region) {
                let line = Line::of(source, print.span);
                terminal::note(&format!(
                    "the print at line {line} is computed nowhere: {}",
                    about(why, stencil, *number)
                ));
            }
        }
    }

    /// The same as data.
    pub fn json(&self, stencil: &Stencil, source: &Source) -> Value {
        let of_print = |printed: &Printed| {
            let print = stencil.prints.get(printed.number)?;
            let (line, column) = source.position(print.span.start);
            let cells = self.cells.iter().zip(&printed.values).map(|([i, j, k], value)| {
                json!({
                    "i": i,
                    "j": j,
                    "k": k,
                    "computed": value.is_some(),
                    "value": value.as_ref().map(|shown| shown.number),
                    "text": value.as_ref().map(|shown| &shown.text),
                    "bits": value.as_ref().map(|shown| format!("{:#x}", shown.bits)),
                })
            });
            Some(json!({
                "label": print.label.as_told(),
                "line": line,
                "column": column,
                "region": printed.region.as_ref().ok(),
                "cells": cells.collect::<Vec<_>>(),
            }))
        };
        Value::Array(self.printed.iter().filter_map(of_print).collect())
    }
}

/// A refusal, told of what the print reads instead of the stencil that computes it.
fn about(why: &str, stencil: &Stencil, number: usize) -> String {
    why.replace(&format!("stencil `{}`", Stencil::name_of_print(&stencil.name, number)), "what it reads")
}
