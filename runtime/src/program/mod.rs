//! Programs: calls of stencils in time, on the CPU and on machines.
//!
//! A [`Driver`] does what a program says. What it asks to be computed, a [`Backend`] computes: the interpreter ([`cpu`]), which is
//! the meaning, or kernels ([`kernels`]).

mod candidates;
pub mod cpu;
pub mod estimate;
mod fill;
#[cfg(test)]
mod found;
pub(crate) mod halo;
pub mod kernels;
pub mod measure;
pub mod parts;
pub mod plan;
pub mod planned;
#[cfg(test)]
mod recorded;
mod script;
#[cfg(test)]
pub(crate) mod tests;

use crate::array::Data;
use crate::driver::{Backend, Driver};
use crate::error::{Error, Result};
use crate::memory;
use crate::moving;
use crate::problem::{Problem, Request, element_of, of_part};
use crate::rows::Part;
use std::sync::Arc;
use stencilc_compiler::grid::{Adjacency, Region};
use stencilc_compiler::ir::{FieldId, Handle, Program, VariableId};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::program::Staged;

/// A program, a grid, and the numbers to compute with, all checked.
#[derive(Clone, Debug)]
pub struct ProgramProblem {
    /// The program on its grid.
    pub staged: Staged,
    /// What is given to it and taken from it: a stencil that computes nothing. Its inputs are what is given, its outputs
    /// what they hold before the first step. Plans share it.
    pub outer: Arc<Problem>,
    /// Which columns are neighbours, if they stand in no rows.
    pub adjacency: Option<Arc<Adjacency>>,
    /// If numbers of its variables say which levels its calls read: these calls, before they were fused.
    pub levels_said: Option<Arc<Staged>>,
}

impl ProgramProblem {
    /// Whether there is a kernel to build or to measure.
    ///
    /// # Errors
    /// There is none: the program calls nothing, or all that it calls stands in loops that are run no time.
    pub fn has_kernels(&self) -> Result<()> {
        match self.staged.stages.is_empty() {
            false => Ok(()),
            true => Err(Error::call(format!("program `{}` calls nothing: it has no kernel", self.staged.program.name))
                .help("`run` does it: its fields get other names")),
        }
    }

    /// Checks a request, whose stencil is the program's facade, and fills in what it leaves open.
    ///
    /// # Errors
    /// Those of [`Problem::new`], and of the program on the grid.
    pub fn new(program: &Program, request: Request) -> Result<Self> {
        let contract = request.contract;
        let outer = Problem::new(request).map_err(|error| of_program(program, error))?;
        Self::of(program, outer, contract)
    }

    /// A program, given what its facade is given.
    ///
    /// # Errors
    /// The program does not fit the grid.
    pub fn of(program: &Program, mut outer: Problem, contract: bool) -> Result<Self> {
        let adjacency = outer.adjacency.clone();
        let (precision, grid) = (outer.precision, outer.grid);
        let staged = Staged::new(program, precision, contract, grid, adjacency.as_deref(), &outer.params)?;
        check_memory(&staged, outer.part)?;
        outer.region = staged.computed.clone();
        let saying = moving::variables(&staged);
        let levels_said = (!saying.is_empty()).then(|| Arc::new(staged.clone()));
        for (field, variable) in staged.program.outer().enumerate().filter(|(_, own)| saying.contains(own)) {
            let Some(data) = &mut outer.inputs[field] else { continue };
            if outer.drawn.contains(&staged.program.variables[variable].name) {
                moving::fit_variable(&staged, variable, data);
            }
            moving::check_variable(&staged, adjacency.as_deref(), variable, data)
                .map_err(|error| moving::of_drawn(error, &outer.drawn, &staged.program.variables[variable].name))?;
        }
        outer.keep_rows();
        Ok(Self { staged, outer: Arc::new(outer), adjacency, levels_said })
    }

    /// Whether the numbers of a variable lead to levels that there are, if they say which levels calls read.
    ///
    /// # Errors
    /// One does not.
    pub fn check_levels(&self, variable: VariableId, data: &Data) -> Result<()> {
        match &self.levels_said {
            Some(staged) => moving::check_variable(staged, self.adjacency.as_deref(), variable, data),
            None => Ok(()),
        }
    }

    /// The choices, where this much is left open, as they usually are on the grid.
    pub fn on_cells(&self, choices: Choices, open: Open) -> Choices {
        choices.on_cells(&self.staged.program.stencils, self.outer.grid.levels_of_cells(), open)
    }

    /// Where a declared variable is computed: where all of them are, and on the last interface if it is computed there.
    pub fn region_of(&self, variable: VariableId) -> Region {
        let (mut region, own) = (self.outer.region.clone(), self.staged.computed_of(variable).k);
        if own.end > self.outer.grid.nk && own.start < own.end {
            region.k = region.k.start.max(own.start)..own.end;
        }
        region
    }

    /// The field of the facade that a declared variable is.
    pub fn outer_field(&self, variable: VariableId) -> Option<FieldId> {
        let place = self.staged.program.outer().position(|own| own == variable);
        place.map(FieldId::new)
    }

    /// What a declared variable holds before the first step: what is given, or a fresh output.
    ///
    /// # Errors
    /// There is no such array.
    pub fn held_before(&self, variable: VariableId) -> Result<&Data> {
        let field = self.outer_field(variable);
        let data = field
            .and_then(|field| self.outer.inputs[field.index()].as_ref().or(self.outer.outputs[field.index()].as_ref()));
        data.ok_or_else(|| Error::call(format!("`{}` has no array", self.staged.program.variables[variable].name)))
    }
}

/// Refuses a program whose arrays with their halos this machine's memory does not hold.
fn check_memory(staged: &Staged, part: Option<Part>) -> Result<()> {
    let declared = staged.program.outer().map(|id| &staged.program.variables[id]);
    let bytes = declared.map(|own| {
        let shape = staged.grid.shape(own.place);
        let len = shape.into_iter().map(|length| length as u128).fold(1, u128::saturating_mul);
        len.saturating_mul(element_of(own.stored, staged.precision).bytes() as u128)
    });
    let (bytes, grid) = (bytes.fold(0, u128::saturating_add), staged.grid);
    let what = format!("the fields of grid {}, with their halos {grid}, take", staged.domain);
    memory::check(of_part(bytes, part, grid), &what, "give a smaller --grid, or --precision f32")
}

/// What is wrong with the facade of a program: to whoever gives and takes, it is the program.
pub fn of_program(program: &Program, error: Error) -> Error {
    let (seen, own) = (format!("stencil `{}`", program.name), format!("program `{}`", program.name));
    Error { message: error.message.replace(&seen, &own), ..error }
}

/// What the declared variables hold that are written, by the facade's fields.
///
/// # Errors
/// The machine fails.
pub fn results<B: Backend>(problem: &ProgramProblem, driver: &Driver<B>) -> Result<Vec<Option<Data>>> {
    let variables = &problem.staged.program.variables;
    let outer = problem.staged.program.outer();
    outer
        .map(|id| if variables[id].role.is_some_and(|role| role.is_written()) { driver.get(id) } else { Ok(None) })
        .collect()
}
