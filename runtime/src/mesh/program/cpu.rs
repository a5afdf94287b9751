//! The interpreter, as what computes the calls of a program over a mesh.

use super::MeshProblem;
use super::driver::{Backend, Given};
use crate::array::Data;
use crate::interpreter::mesh::{MeshJob, interpret_mesh, len};
use crate::problem::element_of;
use crate::{Element, Result};
use std::rc::Rc;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Handle, Role, VariableId};
use stencilc_compiler::mesh::Chain;

/// Computes on the CPU.
pub struct Interpreter<'a> {
    problem: &'a MeshProblem,
}

impl<'a> Interpreter<'a> {
    /// For a problem.
    pub fn new(problem: &'a MeshProblem) -> Self {
        Self { problem }
    }
}

impl Backend for Interpreter<'_> {
    type Array = Data;

    fn upload(&self, _: VariableId, data: &Data) -> Result<Data> {
        Ok(data.clone())
    }

    fn download(&self, _: VariableId, array: &Data) -> Result<Data> {
        Ok(array.clone())
    }

    fn number(&self, array: &Data) -> Result<Value> {
        Ok(match array {
            Data::I32(all) => Value::Int(all[0]),
            Data::Bool(all) => Value::Bool(all[0] != 0),
            Data::F32(_) | Data::F64(_) => Value::Real(array.get(0)),
        })
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn merges(&self, _: &Chain) -> bool {
        false
    }

    fn call(&self, call: &Call, params: &[Value], mut given: Given<Data>) -> Result<Given<Data>> {
        let stencil = &self.problem.program.stencils[call.stencil];
        let computed = self.problem.computed(call.stencil, params)?;
        let MeshProblem { precision, levels, bound, .. } = self.problem;
        let mut outputs = Vec::new();
        for (id, field) in stencil.stencil.fields.iter() {
            let element = element_of(field.stored, *precision);
            let fresh = || len(field.place, bound, *levels);
            outputs.push(match (field.role, &mut given[id.index()]) {
                (Role::In | Role::Carried, _) => None,
                // What is added to may be written in place, if nobody else looks at it.
                (Role::Inc, before @ Some(_)) => before.take().map(Rc::unwrap_or_clone),
                (Role::Inc, None) => Some(zero(element, fresh())),
                // Levels that are not computed keep what was there.
                (Role::Out, before @ Some(_)) => before.take().map(Rc::unwrap_or_clone),
                (Role::InOut, Some(before)) => Some((**before).clone()),
                (Role::Out | Role::InOut | Role::Reduce, _) => Some(Data::fresh(element, fresh())),
            });
        }
        let inputs: Vec<Option<&Data>> = given.iter().map(Option::as_deref).collect();
        let job = MeshJob {
            stencil,
            precision: *precision,
            mesh: bound,
            levels: *levels,
            computed: &computed,
            params,
            inputs: &inputs,
        };
        interpret_mesh(&job, &mut outputs, None, &|_| {})?;
        Ok(outputs.into_iter().map(|data| data.map(Rc::new)).collect())
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
