//! Programs on the CPU: the interpreter, which says what they mean.

use super::ProgramProblem;
use super::halo;
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::interpreter::{Job, interpret};
use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::Arc;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::program::Staged;

/// Computes stages with the interpreter.
pub struct Interpreter {
    problem: Arc<ProgramProblem>,
}

impl Interpreter {
    /// For a problem.
    pub fn new(problem: impl Into<Arc<ProgramProblem>>) -> Self {
        Self { problem: problem.into() }
    }

    /// The program where it is computed.
    pub(super) fn staged(&self) -> &Staged {
        &self.problem.staged
    }
}

impl Backend for Interpreter {
    type Buffer = RefCell<Data>;
    type Recording = Infallible;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<ProgramProblem>::clone(&self.problem)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer> {
        let place = self.staged().program.variables[variable].place;
        Ok(RefCell::new(halo::widened(self.staged(), place, data)))
    }

    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data> {
        let place = self.staged().program.variables[variable].place;
        Ok(halo::narrowed(self.staged(), place, &buffer.borrow()))
    }

    fn fill_halo(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<()> {
        halo::fill(self.staged(), variable, &mut buffer.borrow_mut());
        Ok(())
    }

    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()> {
        to.borrow_mut().clone_from(&from.borrow());
        Ok(())
    }

    fn compute(&self, computed: &Computed, arrays: Arrays<Self::Buffer>) -> Result<()> {
        if computed.times != 1 {
            return Err(Error::check("the interpreter computes step after step"));
        }
        let staged = self.staged();
        let stage = &staged.stages[computed.stage];
        arrays.lend(stage.stencil.fields.len(), |inputs, outputs| {
            let job = Job {
                stencil: &stage.stencil,
                precision: staged.precision,
                grid: staged.grid,
                adjacency: self.problem.adjacency.as_deref(),
                region: &stage.region,
                params: &computed.params,
                inputs,
            };
            interpret(&job, outputs, &|_| {})
        })
    }

    fn replay(&self, recording: &Infallible) -> Result<()> {
        match *recording {}
    }
}
