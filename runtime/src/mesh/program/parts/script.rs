//! What a program in parts does: the same, and what other parts own is brought.

use super::super::MeshScript;
use crate::array::{Data, Element};
use crate::driver::{NumberOf, Script, Uses};
use crate::error::Result;
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, FieldId, Handle, Program, VariableId};
use stencilc_compiler::program::Step;

/// A program over a mesh, whose parts look at each other's elements.
pub struct PartsScript {
    whole: MeshScript,
    /// By stencil or chain: the fields that it reads at elements of other parts.
    foreign: Arc<[BTreeSet<FieldId>]>,
}

impl PartsScript {
    /// Of what a single device does, and the fields that each stencil or chain reads at elements of other parts.
    pub fn new(whole: MeshScript, foreign: Arc<[BTreeSet<FieldId>]>) -> Self {
        Self { whole, foreign }
    }

    /// The call of a stage.
    pub fn call(&self, stage: usize) -> &Call {
        &self.whole.stage(stage).call
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
        let call = self.call(stage);
        self.foreign[call.stencil].iter().any(|field| call.fields[field.index()].read == Some(variable))
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
