//! What the numbers of a program are worth.

use crate::Result;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::ir::scalar::{Value, apply};
use stencilc_compiler::ir::{Body, Handle, MeshProgram, Node, Precision, VariableId};

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
        let reads = body.iter().filter_map(|(_, node)| match node {
            Node::Read { field, .. } => self.program.numbers.get(field.index()).copied(),
            _ => None,
        });
        reads.collect()
    }

    /// The value of a body, whose numbers are given.
    pub fn value(&self, body: &Body, number: &mut dyn FnMut(VariableId) -> Result<Value>) -> Result<Value> {
        let numbers = &self.program.program.numbers;
        let known = Known::new(numbers, self.precision, self.levels, self.params).values(body, 0);
        let mut values: Vec<Value> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let value = match (known[id.index()], node) {
                (Some(value), _) => value,
                (None, Node::Read { field, .. }) => match self.program.numbers.get(field.index()) {
                    Some(&variable) => number(variable)?.rounded(self.precision),
                    None => Value::Real(f64::NAN),
                },
                (None, Node::Choose { condition, yes, no }) => {
                    values[if values[condition.index()] == Value::Bool(true) { yes } else { no }.index()]
                }
                (None, _) => {
                    let operands: Vec<Value> = node.operands().iter().map(|operand| values[operand.index()]).collect();
                    apply(self.precision, node, &operands).unwrap_or(Value::Real(f64::NAN))
                }
            };
            values.push(value);
        }
        Ok(values.pop().unwrap_or(Value::Int(0)))
    }
}
