//! What a program on a grid does, as a driver follows it.

use super::ProgramProblem;
use crate::array::{Data, Element};
use crate::driver::{Before, NumberOf, Script, Uses, Write};
use crate::error::{Error, Result};
use crate::problem::element_of;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Handle, Program, VariableId};
use stencilc_compiler::program::Step;

impl Script for ProgramProblem {
    fn program(&self) -> &Program {
        &self.staged.program
    }

    fn steps(&self) -> &[Step] {
        &self.staged.steps
    }

    fn initial(&self) -> Result<Vec<(VariableId, &Data)>> {
        self.staged.program.outer().map(|id| Ok((id, self.held_before(id)?))).collect()
    }

    fn shape(&self, variable: VariableId) -> Vec<usize> {
        self.staged.domain.shape(self.staged.program.variables[variable].place)
    }

    fn element(&self, variable: VariableId) -> Element {
        element_of(self.staged.program.variables[variable].stored, self.staged.precision)
    }

    fn check_levels(&self, variable: VariableId, data: &Data) -> Result<()> {
        self.check_levels(variable, data)
    }

    fn uses(&self, stage: usize) -> Uses {
        let stage = &self.staged.stages[stage];
        // Cells that it does not compute hold what the variable holds now.
        let write = |(field, variable)| Write { field, variable, before: Before::Kept(Some(variable)) };
        Uses { reads: stage.reads().collect(), writes: stage.writes().map(write).collect(), ends: Vec::new() }
    }

    fn params(&self, stage: usize, number: &mut NumberOf) -> Result<Vec<Value>> {
        let own = &self.staged.stages[stage];
        let given = own.call.params.iter().zip(&own.params);
        match own.changes {
            false => Ok(own.params.clone()),
            true => {
                given.map(|(given, known)| given.as_ref().map_or(Ok(*known), |body| self.value(body, number))).collect()
            }
        }
    }

    fn region(&self, stage: usize, _: &[Value], variable: VariableId) -> Result<Option<u64>> {
        let stages = &self.staged.stages;
        let region = &stages[stage].region;
        if self.staged.computes_all(region, variable) {
            return Ok(None);
        }
        // The first stage that computes the same.
        Ok(Some(stages.iter().position(|own| own.region == *region).unwrap_or(stage) as u64))
    }

    fn needs_halo(&self, stage: usize, variable: VariableId) -> bool {
        !self.staged.stages[stage].wraps && self.staged.needs_halo(variable)
    }

    fn has_same_edges(&self, a: VariableId, b: VariableId) -> bool {
        a == b || self.staged.edges[a.index()] == self.staged.edges[b.index()]
    }

    fn is_number(&self, variable: VariableId) -> bool {
        self.staged.program.changing.contains(&variable)
    }

    fn numbers_in(&self, body: &Body) -> Vec<VariableId> {
        let program = &self.staged.program;
        let fields = program.numbers_in(body).into_iter();
        fields.filter_map(|field| program.changing.get(field.index()).copied()).collect()
    }

    fn reads_numbers(&self, stage: usize) -> bool {
        self.staged.stages[stage].changes
    }

    fn value(&self, body: &Body, number: &mut NumberOf) -> Result<Value> {
        let changing = &self.staged.program.changing;
        self.staged.numbers.value_of(body, &mut |field| match changing.get(field.index()) {
            Some(&variable) => number(variable),
            None => Err(Error::check("a field stands for no number of the program")),
        })
    }
}
