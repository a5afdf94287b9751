//! What a program does, as far as no mesh is needed: its stencils, prepared, the calls that one kernel can compute, and in which order
//! they come.

use super::live::{Step, chained, steps};
use super::numbers::Scope;
use super::request::bodies;
use super::{MeshProblem, computed_by, prepared};
use crate::Result;
use std::ops::Range;
use stencilc_compiler::ir::mesh::MeshProgram;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::{Value, apply};
use stencilc_compiler::ir::{FieldId, Handle, Kind, MeshStencil, Precision, Role, contract_body};
use stencilc_compiler::mesh::Chain;
use stencilc_compiler::plan::folded;

/// A program over meshes, prepared.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The program; its stencils are contracted and folded.
    pub program: MeshProgram,
    /// What it does, and which variables nobody looks at after that.
    pub(crate) steps: Vec<Step>,
    /// Calls that one kernel can compute. Their numbers come after those of the program's stencils.
    pub chains: Vec<Chain>,
    /// What `real` is.
    pub precision: Precision,
}

impl Outline {
    /// A program as it was lowered, prepared.
    pub fn new(program: &MeshProgram, precision: Precision, contract: bool) -> Self {
        let mut program = program.clone();
        for (inner, stencil) in program.program.stencils.iter_mut().zip(&mut program.stencils) {
            *stencil = prepared(stencil, precision, contract);
            *inner = stencil.stencil.clone();
        }
        program.program.numbers = folded(&program.program.numbers, precision, contract);
        if contract {
            bodies(&mut program.program.actions, &mut |body| *body = contract_body(body));
        }
        let mut chains = Vec::new();
        let steps = chained(&program, precision, steps(&program.program), &mut chains);
        Self { program, steps, chains, precision }
    }

    /// The calls in their order, those of loops once; for those of a chain that is one kernel, the call that stands for them.
    pub fn calls(&self, merges: &dyn Fn(&Chain) -> bool) -> Vec<&Call> {
        let mut calls = Vec::new();
        let mut left: Vec<&Step> = self.steps.iter().rev().collect();
        while let Some(step) = left.pop() {
            match step {
                Step::Call { call, .. } => calls.push(call),
                Step::Chain { call, .. } if self.chain(call.stencil).is_some_and(merges) => calls.push(call),
                Step::Chain { apart: steps, .. } | Step::Repeat { steps, .. } => left.extend(steps.iter().rev()),
                Step::Rename { .. } | Step::Number { .. } => {}
            }
        }
        calls
    }

    /// The chain of a number.
    pub fn chain(&self, number: usize) -> Option<&Chain> {
        self.chains.get(number.checked_sub(self.program.stencils.len())?)
    }

    /// The stencils of a call, which have fields and parameters in common: one, or those of a chain.
    pub fn stages(&self, call: &Call) -> &[MeshStencil] {
        match self.chain(call.stencil) {
            Some(chain) => &chain.stages,
            None => std::slice::from_ref(&self.program.stencils[call.stencil]),
        }
    }

    /// By field, whether a call adds to it from 0 on.
    pub fn from_zero(&self, call: &Call) -> Vec<bool> {
        let fields = self.stages(call)[0].stencil.fields.iter();
        fields.map(|(id, own)| own.role == Role::Inc && call.fields[id.index()].read.is_none()).collect()
    }

    /// The levels that a call computes of so many, by the parameters of the program.
    ///
    /// # Errors
    /// There are none.
    pub fn computed(&self, call: &Call, levels: usize, params: &[Value]) -> Result<Range<usize>> {
        let stages = self.stages(call);
        let scope = Scope { program: &self.program, precision: self.precision, levels, params };
        computed_by(stages, self.precision, levels, &scope.params_of(&stages[0], call))
    }
}

impl Scope<'_> {
    /// The parameters of a call before anything is computed. What depends on numbers that are computed on the way counts as 1.
    pub fn params_of(&self, stencil: &MeshStencil, call: &Call) -> Vec<Value> {
        let known = |(param, given): (&stencilc_compiler::ir::Param, &Option<_>)| {
            let value = match given {
                Some(body) if self.reads(body).is_empty() => self.value(body, &mut |_| Ok(Value::Int(1))).ok(),
                Some(_) => None,
                None => {
                    let node = param.default.as_ref().and_then(|body| body.literal());
                    node.and_then(|node| apply(self.precision, node, &[]))
                }
            };
            let any = || match param.kind {
                Kind::Real => Value::Real(1.0),
                Kind::Int => Value::Int(1),
                Kind::Bool => Value::Bool(true),
            };
            value.unwrap_or_else(any).rounded(self.precision)
        };
        stencil.stencil.params.iter().map(|(_, param)| param).zip(&call.params).map(known).collect()
    }
}

impl MeshProblem {
    /// What its program does.
    pub fn outline(&self) -> Outline {
        let Self { program, steps, chains, precision, .. } = self;
        Outline { program: program.clone(), steps: steps.clone(), chains: chains.clone(), precision: *precision }
    }

    /// The parameters of a call before anything is computed.
    pub fn params_of(&self, call: &Call) -> Vec<Value> {
        let Self { program, precision, levels, params, .. } = self;
        let scope = Scope { program, precision: *precision, levels: *levels, params };
        scope.params_of(&self.stages(call.stencil)[0], call)
    }
}

/// Whether a field of a chain has no array; of other calls none is such.
pub fn is_internal(chain: Option<&Chain>, field: FieldId) -> bool {
    chain.is_some_and(|chain| chain.internal.contains(&field))
}
