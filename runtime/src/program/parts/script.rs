//! What a program in parts does: the same, and the rows of neighbours are brought.

use crate::array::{Data, Element};
use crate::driver::{NumberOf, Script, Uses};
use crate::error::Result;
use crate::program::ProgramProblem;
use std::sync::Arc;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Handle, Program, VariableId};
use stencilc_compiler::program::Step;

/// A program on a grid, of which parts look at each other's rows.
pub struct PartsScript {
    whole: Arc<ProgramProblem>,
    /// By variable: whether rows of it are brought.
    brought: Vec<bool>,
}

impl PartsScript {
    /// Of the program as one device would compute it.
    pub fn new(whole: Arc<ProgramProblem>) -> Self {
        Self { brought: whole.staged.is_shared_by_parts(), whole }
    }

    /// Whether rows of a variable are brought from part to part.
    pub fn is_brought(&self, variable: VariableId) -> bool {
        self.brought[variable.index()]
    }
}

impl Script for PartsScript {
    fn program(&self) -> &Program {
        self.whole.program()
    }

    fn steps(&self) -> &[Step] {
        self.whole.steps()
    }

    fn initial(&self) -> Result<Vec<(VariableId, &Data)>> {
        self.whole.initial()
    }

    fn shape(&self, variable: VariableId) -> Vec<usize> {
        self.whole.shape(variable)
    }

    fn element(&self, variable: VariableId) -> Element {
        self.whole.element(variable)
    }

    fn uses(&self, stage: usize) -> Uses {
        self.whole.uses(stage)
    }

    fn params(&self, stage: usize, number: &mut NumberOf) -> Result<Vec<Value>> {
        self.whole.params(stage, number)
    }

    fn region(&self, stage: usize, params: &[Value], variable: VariableId) -> Result<Option<u64>> {
        self.whole.region(stage, params, variable)
    }

    fn needs_halo(&self, stage: usize, variable: VariableId) -> bool {
        self.is_brought(variable) || self.whole.needs_halo(stage, variable)
    }

    fn has_same_edges(&self, a: VariableId, b: VariableId) -> bool {
        self.is_brought(a) == self.is_brought(b) && self.whole.has_same_edges(a, b)
    }

    fn is_number(&self, variable: VariableId) -> bool {
        self.whole.is_number(variable)
    }

    fn numbers_in(&self, body: &Body) -> Vec<VariableId> {
        self.whole.numbers_in(body)
    }

    fn reads_numbers(&self, stage: usize) -> bool {
        self.whole.reads_numbers(stage)
    }

    fn value(&self, body: &Body, number: &mut NumberOf) -> Result<Value> {
        self.whole.value(body, number)
    }
}
