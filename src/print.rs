//! What `run` shows of a stencil's prints.

use crate::terminal;
use serde_json::{Value, json};
use stencilc_compiler::ir::Stencil;
use stencilc_compiler::source::Source;
use stencilc_runtime::print::{Compute, Printed, Shown, printed};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::{Error, Result};

/// Prints at cells.
pub struct Prints {
    cells: Vec<[usize; 3]>,
    printed: Vec<Printed>,
    bits: bool,
}

/// Where prints are shown: at the cells asked for, or in the middle of the computed ones.
///
/// # Errors
/// A cell lies outside the grid, or there is nothing to show.
pub fn cells(given: &[[usize; 3]], bits: bool, problem: &Problem) -> Result<Vec<[usize; 3]>> {
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
    for &[i, j, k] in given {
        if i >= grid.ni || j >= grid.nj || k >= grid.nk {
            return Err(Error::call(format!("the cell {i},{j},{k} lies outside the grid {grid}")).help(format!(
                "cells count from 0,0,0 to {},{},{}",
                grid.ni - 1,
                grid.nj - 1,
                grid.nk - 1
            )));
        }
    }
    let middle = |range: &std::ops::Range<usize>| range.start + range.len() / 2;
    match given {
        [] => Ok(vec![[middle(&region.i), middle(&region.j), middle(&region.k)]]),
        given => Ok(given.to_vec()),
    }
}

impl Prints {
    /// Computes the prints.
    ///
    /// # Errors
    /// Those of [`printed`].
    pub fn new(problem: &mut Problem, cells: Vec<[usize; 3]>, bits: bool, compute: &mut Compute) -> Result<Self> {
        let printed = printed(problem, &cells, compute)?;
        Ok(Self { cells, printed, bits })
    }

    /// A table: a line for each print and cell.
    pub fn text(&self, stencil: &Stencil, source: &Source) -> String {
        let mut rows = Vec::new();
        for Printed { number, values, .. } in &self.printed {
            let Some(print) = stencil.prints.get(*number) else { continue };
            let line = source.position(print.span.start).0;
            for ([i, j, k], value) in self.cells.iter().zip(values) {
                let mut row = vec![format!("line {line}"), print.label.clone(), format!("at {i},{j},{k}")];
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
                let line = source.position(print.span.start).0;
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
                "label": print.label,
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
