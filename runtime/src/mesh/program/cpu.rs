//! The interpreter, as what computes the calls of a program over a mesh.

use super::{MeshProblem, MeshScript};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::interpreter::mesh::{MeshJob, interpret_mesh, len};
use crate::problem::element_of;
use crate::{Element, Result};
use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::{Handle, Role, VariableId};

/// Computes on the CPU.
pub struct Interpreter {
    problem: Arc<MeshProblem>,
    script: Arc<MeshScript>,
    /// Whether it leaves the numbers that it would fold.
    leaves: bool,
}

impl Interpreter {
    /// For a problem.
    pub fn new(problem: impl Into<Arc<MeshProblem>>) -> Self {
        let problem = problem.into();
        Self { script: Arc::new(MeshScript::new(&problem, &|_| false)), problem, leaves: false }
    }

    /// The same, but a reduction leaves the numbers that it would fold, in their order.
    pub(crate) fn leaving(self) -> Self {
        Self { leaves: true, ..self }
    }

    /// What it computes.
    pub(super) fn problem(&self) -> &MeshProblem {
        &self.problem
    }

    /// The call of a stage.
    pub(super) fn call(&self, stage: usize) -> &Call {
        &self.script.stage(stage).call
    }
}

impl Backend for Interpreter {
    type Buffer = RefCell<Data>;
    type Recording = Infallible;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<MeshScript>::clone(&self.script)
    }

    fn load(&self, _: VariableId, data: &Data) -> Result<RefCell<Data>> {
        Ok(RefCell::new(data.clone()))
    }

    fn read(&self, _: VariableId, buffer: &RefCell<Data>) -> Result<Data> {
        Ok(buffer.borrow().clone())
    }

    fn copy(&self, from: &RefCell<Data>, to: &RefCell<Data>) -> Result<()> {
        to.borrow_mut().clone_from(&from.borrow());
        Ok(())
    }

    fn compute(&self, computed: &Computed, arrays: Arrays<RefCell<Data>>) -> Result<()> {
        let (call, params) = (&self.script.stage(computed.stage).call, &computed.params);
        let stencil = &self.problem.program.stencils[call.stencil];
        let MeshProblem { precision, levels, bound, .. } = &*self.problem;
        let levels_computed = self.problem.computed(call.stencil, params)?;
        arrays.lend(stencil.stencil.fields.len(), |inputs, outputs| {
            // What is changed in place is read as it was.
            let before: Vec<Option<Data>> = stencil
                .stencil
                .fields
                .iter()
                .map(|(id, own)| {
                    let is_given = inputs[id.index()].is_some();
                    outputs[id.index()].clone().filter(|_| own.role == Role::InOut && !is_given)
                })
                .collect();
            let inputs: Vec<Option<&Data>> =
                inputs.iter().zip(&before).map(|(own, before)| own.or(before.as_ref())).collect();
            let inputs = &inputs[..];
            for (id, own) in stencil.stencil.fields.iter().filter(|(_, own)| own.role.is_written()) {
                // What is added to and left out begins with 0; and nobody looks at what has no buffer.
                let is_zero = own.role == Role::Inc && call.fields[id.index()].read.is_none();
                if is_zero || outputs[id.index()].is_none() {
                    let element = element_of(own.stored, *precision);
                    outputs[id.index()] = Some(zero(element, len(own.place, bound, *levels)));
                }
            }
            let job = MeshJob {
                stencil,
                precision: *precision,
                mesh: bound,
                levels: *levels,
                computed: &levels_computed,
                params,
                inputs,
                leaves: self.leaves,
            };
            interpret_mesh(&job, outputs, None, &|_| {})
        })
    }

    fn replay(&self, recording: &Infallible) -> Result<()> {
        match *recording {}
    }
}

/// An array of zeros.
pub fn zero(element: Element, len: usize) -> Data {
    match element {
        Element::F32 => Data::F32(vec![0.0; len]),
        Element::F64 => Data::F64(vec![0.0; len]),
        Element::I32 => Data::I32(vec![0; len]),
        Element::Bool => Data::Bool(vec![0; len]),
    }
}
