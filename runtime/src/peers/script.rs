//! What a program in parts does: the same, and what other parts have is brought.

use crate::array::{Data, Element};
use crate::driver::{NumberOf, Script, Uses};
use crate::error::Result;
use std::sync::Arc;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Program, VariableId};
use stencilc_compiler::program::Step;

/// What is brought from part to part.
pub trait Brought<S> {
    /// Whether a stage of a program reads of a variable what other parts have.
    fn is_read(&self, whole: &S, stage: usize, variable: VariableId) -> bool;

    /// Whether the same is brought of two variables.
    fn is_same(&self, _a: VariableId, _b: VariableId) -> bool {
        true
    }
}

/// A program as one device would compute it, of which parts look at what others have.
pub struct PartsScript<S, B> {
    /// The program.
    pub whole: Arc<S>,
    /// What they look at.
    pub brought: B,
}

impl<S: Script, B: Brought<S>> Script for PartsScript<S, B> {
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

    fn check_levels(&self, variable: VariableId, data: &Data) -> Result<()> {
        self.whole.check_levels(variable, data)
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
        self.brought.is_read(&self.whole, stage, variable) || self.whole.needs_halo(stage, variable)
    }

    fn has_same_edges(&self, a: VariableId, b: VariableId) -> bool {
        self.brought.is_same(a, b) && self.whole.has_same_edges(a, b)
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
