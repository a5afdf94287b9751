//! What the numbers of a program are worth.

use crate::Result;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Handle, MeshProgram, Precision, VariableId};
use stencilc_compiler::program::evaluate;

/// What is known of all numbers.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub program: &'a MeshProgram,
    pub precision: Precision,
    pub levels: usize,
    pub params: &'a [Value],
}

impl Scope<'_> {
    /// The numbers that a body reads.
    pub fn reads(&self, body: &Body) -> Vec<VariableId> {
        let fields = self.program.program.numbers_in(body).into_iter();
        fields.filter_map(|field| self.program.numbers.get(field.index()).copied()).collect()
    }

    /// The value of a body, whose numbers are given.
    pub fn value(&self, body: &Body, number: &mut dyn FnMut(VariableId) -> Result<Value>) -> Result<Value> {
        let numbers = &self.program.program.numbers;
        let known = Known::new(numbers, self.precision, self.levels, self.params);
        evaluate(&known, body, &mut |field| match self.program.numbers.get(field.index()) {
            Some(&variable) => number(variable),
            None => Ok(Value::Real(f64::NAN)),
        })
    }
}
