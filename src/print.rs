//! What `run` shows of prints.

use crate::args::At;
use crate::line::Line;
use crate::terminal;
use serde_json::{Value, json};
use std::ops::Range;
use stencilc_compiler::grid::{Form, Grid, Region};
use stencilc_compiler::ir::Field;
use stencilc_compiler::source::Source;
use stencilc_runtime::print::{Print, Printed, Shown};
use stencilc_runtime::{Error, Result};

/// The cells where prints are shown.
pub struct Cells {
    given: Vec<At>,
    middle: Option<Region>,
    bits: bool,
}

/// Something whose prints are to be shown.
pub struct Printing<'a> {
    /// `stencil laplap`.
    pub what: String,
    /// A field of it, for an example.
    pub field: Option<&'a Field>,
    /// Where its prints have values: on which grids, or over which sets.
    pub places: Vec<(Grid, Option<&'a str>)>,
    /// Where they are shown if nothing is said: in the middle of this; of a set, if nothing is there, in the middle of its elements.
    pub middle: Option<Region>,
}

impl Cells {
    /// The cells asked for.
    ///
    /// # Errors
    /// A cell lies outside the grid, or outside all sets, or there is nothing to show.
    pub fn new(given: &[At], bits: bool, of: Printing) -> Result<Self> {
        let Printing { what, field, places, middle } = of;
        if places.is_empty() && (bits || !given.is_empty()) {
            let option = if bits { "--bits" } else { "--at" };
            let name = field.map_or("phi", |field| field.name.as_str());
            return Err(Error::call(format!("{what} prints nothing, and {option} is for what it prints"))
                .help(format!("write `print({name})` into the stencil")));
        }
        let largest = places.iter().copied().max_by_key(|(grid, _)| grid.ni);
        for at in given {
            let is_somewhere = places.iter().any(|&(grid, set)| wrong_at(at, grid, set).is_none());
            if let Some(error) = largest.filter(|_| !is_somewhere).and_then(|(grid, set)| wrong_at(at, grid, set)) {
                return Err(error);
            }
        }
        Ok(Self { given: given.to_vec(), middle, bits })
    }

    /// Those of a print, some of which its set may not have.
    pub fn of(&self, print: &Print) -> Vec<[usize; 3]> {
        if !self.given.is_empty() {
            return self.given.iter().filter_map(|at| numbers(at, print.grid.form)).collect();
        }
        let middle = |range: &Range<usize>| range.start + range.len() / 2;
        let Grid { ni, nj, nk, .. } = print.grid;
        let all = Region::rows(0..ni, 0..nj, 0..nk);
        let region = self.middle.as_ref().or(print.region.as_ref().ok()).unwrap_or(&all);
        let [i, j] = match &region.cells {
            Some(cells) => [cells.get(cells.len() / 2).map_or(0, |&cell| cell as usize), 0],
            None => [middle(&region.i), middle(&region.j)],
        };
        vec![[i, j, middle(&region.k)]]
    }
}

/// The numbers of a cell along i, j and k; nothing if there are too few or too many.
fn numbers(At(parts): &At, form: Form) -> Option<[usize; 3]> {
    match (form, parts.as_slice()) {
        (Form::Rows, &[i, j, k]) => Some([i, j, k]),
        (Form::Rows, &[i, j]) => Some([i, j, 0]),
        (Form::Cells, &[cell, k]) => Some([cell, 0, k]),
        (Form::Cells, &[cell]) => Some([cell, 0, 0]),
        _ => None,
    }
}

/// Why a cell is none of a grid, or no element of a set.
fn wrong_at(at: &At, grid: Grid, set: Option<&str>) -> Option<Error> {
    // A set may have no element.
    let last = shown(&[grid.ni, grid.nj, grid.nk].map(|extent| extent.saturating_sub(1)), grid, set);
    let kind = match (grid.form, set) {
        (Form::Rows, _) => "there a cell is three numbers along i, j and k, as in 3,4,5",
        (Form::Cells, None) => "there a cell is two numbers, its own and that of its level, as in 17,5",
        (Form::Cells, Some(_)) if grid.nk == 1 => "over a mesh without levels an element is its number, as in 17",
        (Form::Cells, Some(_)) => "over a mesh an element is two numbers, its own and that of its level, as in 17,5",
    };
    let (one, whole) = match set {
        None => ("cell", format!("grid {grid}")),
        Some(set) => ("element", format!("set `{set}` of {} elements", grid.ni)),
    };
    let Some(cell) = numbers(at, grid.form) else {
        return Some(Error::call(format!("`{}` is no {one} of the {whole}", text(&at.0))).help(kind));
    };
    (!has(grid, &cell)).then(|| {
        let [first, cell] = [[0; 3], cell].map(|cell| shown(&cell, grid, set));
        let error = Error::call(format!("the {one} {cell} lies outside the {whole}"));
        if grid.ni == 0 { error } else { error.help(format!("{one}s count from {first} to {last}")) }
    })
}

fn has(grid: Grid, &[i, j, k]: &[usize; 3]) -> bool {
    i < grid.ni && j < grid.nj && k < grid.nk
}

/// A cell as it is written on a grid, or an element of a set.
fn shown(&[i, j, k]: &[usize; 3], grid: Grid, set: Option<&str>) -> String {
    match grid.form {
        Form::Rows => text(&[i, j, k]),
        // What lies beyond the only level is shown with its level.
        Form::Cells if set.is_some() && grid.nk == 1 && k == 0 => text(&[i]),
        Form::Cells => text(&[i, k]),
    }
}

fn text(parts: &[usize]) -> String {
    parts.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// A table: a line for each print and cell; of a program after a step, if that is told.
pub fn table(printed: &[Printed], cells: &Cells, source: &Source, step: Option<u64>) -> String {
    let mut rows = Vec::new();
    for Printed { print, cells: own, values } in printed {
        let is_once = printed.iter().filter(|other| other.print.span == print.span).count() < 2;
        for (cell, value) in own.iter().zip(values) {
            let mut row: Vec<String> = step.iter().map(|step| format!("{step:>8}")).collect();
            row.push(format!("line {}", Line::of(source, print.span)));
            if let Some(call) = print.call.filter(|_| !is_once) {
                row.push(format!("called at line {}", Line::of(source, call)));
            }
            row.push(print.label.as_told().to_owned());
            row.push(format!("at {}", shown(cell, print.grid, print.set.as_deref())));
            match value {
                Some(Shown { text, bits, .. }) => {
                    row.push(text.clone());
                    row.extend(cells.bits.then(|| format!("{bits:#x}")));
                }
                None => row.push(match &print.set {
                    Some(set) if !has(print.grid, cell) => format!("no element of `{set}`"),
                    _ => "not computed here".to_owned(),
                }),
            }
            rows.push(row);
        }
    }
    terminal::table(&rows, &[])
}

/// Says why prints are computed nowhere.
pub fn tell<'a>(prints: impl Iterator<Item = &'a Print>, source: &Source) {
    for print in prints {
        if let Err(why) = &print.region {
            let line = Line::of(source, print.span);
            terminal::note(&format!("the print at line {line} is computed nowhere: {why}"));
        }
    }
}

/// The same as data.
pub fn json(printed: &[Printed], source: &Source) -> Value {
    let of_print = |Printed { print, cells, values }: &Printed| {
        let (line, column) = source.position(print.span.start);
        let cells = cells.iter().zip(values).map(|([i, j, k], value)| {
            let value = json!({
                "computed": value.is_some(),
                "value": value.as_ref().map(|shown| shown.number),
                "text": value.as_ref().map(|shown| &shown.text),
                "bits": value.as_ref().map(|shown| format!("{:#x}", shown.bits)),
            });
            let place = match &print.set {
                None => json!({ "i": i, "j": j, "k": k }),
                Some(_) => json!({ "element": i, "k": k }),
            };
            joined(place, value)
        });
        let cells = cells.collect::<Vec<_>>();
        let own = json!({
            "label": print.label.as_told(),
            "line": line,
            "column": column,
            "region": print.region.as_ref().ok(),
            "cells": cells,
        });
        let of_call = print.call.map_or(json!({}), |call| {
            let (line, column) = source.position(call.start);
            let called_at = json!({ "line": line, "column": column });
            json!({ "stencil": print.stencil, "set": print.set, "called_at": called_at })
        });
        joined(own, of_call)
    };
    Value::Array(printed.iter().map(of_print).collect())
}

/// What two objects have.
fn joined(a: Value, b: Value) -> Value {
    let [a, b] = [a, b].map(|own| own.as_object().cloned().unwrap_or_default());
    Value::Object(a.into_iter().chain(b).collect())
}
