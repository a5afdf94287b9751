//! The interpreter, as what computes the calls of a program over a mesh.

use super::{MeshProblem, MeshScript};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::interpreter::mesh::{MeshJob, interpret_mesh, len};
use crate::problem::element_of;
use crate::{Element, Error, Result};
use std::cell::{Ref, RefCell};
use std::convert::Infallible;
use stencilc_compiler::ir::{FieldId, Handle, Role, VariableId};

/// Computes on the CPU.
pub struct Interpreter<'a> {
    problem: &'a MeshProblem,
    script: MeshScript<'a>,
}

impl<'a> Interpreter<'a> {
    /// For a problem.
    pub fn new(problem: &'a MeshProblem) -> Self {
        Self { problem, script: MeshScript::new(problem, &|_| false) }
    }
}

impl Backend for Interpreter<'_> {
    type Buffer = RefCell<Data>;
    type Recording = Infallible;

    fn script(&self) -> &dyn Script {
        &self.script
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
        let fields = &stencil.stencil.fields;
        let held: Vec<(FieldId, Ref<Data>)> =
            arrays.reads.iter().map(|(field, buffer)| (*field, buffer.borrow())).collect();
        let mut inputs: Vec<Option<&Data>> = vec![None; fields.len()];
        for (field, data) in &held {
            inputs[field.index()] = Some(data);
        }
        let mut outputs: Vec<Option<Data>> = fields.iter().map(|_| None).collect();
        for (field, buffer) in arrays.writes {
            let mut data = buffer.try_borrow_mut().map_err(|_| Error::check("a stage writes what it reads"))?;
            let is_sum = fields[*field].role == Role::Inc;
            outputs[field.index()] = Some(match is_sum && call.fields[field.index()].read.is_none() {
                true => zero(data.element(), data.len()),
                false => std::mem::replace(&mut data, Data::Bool(Vec::new())),
            });
        }
        for (id, own) in fields.iter() {
            // Nobody looks at what has no buffer.
            if own.role.is_written() && outputs[id.index()].is_none() {
                let element = element_of(own.stored, self.problem.precision);
                outputs[id.index()] = Some(zero(element, len(own.place, &self.problem.bound, self.problem.levels)));
            }
        }
        let job = MeshJob {
            stencil,
            precision: self.problem.precision,
            mesh: &self.problem.bound,
            levels: self.problem.levels,
            computed: &self.problem.computed(call.stencil, params)?,
            params,
            inputs: &inputs,
        };
        let done = interpret_mesh(&job, &mut outputs, None, &|_| {});
        for (field, buffer) in arrays.writes {
            if let Some(data) = outputs[field.index()].take() {
                buffer.replace(data);
            }
        }
        done
    }

    fn record(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<Option<Infallible>> {
        Ok(None)
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
