//! Kernels on a machine, as what computes the calls of a program over a mesh.
//!
//! ```text
//! renumbered: the order of elements there; arrays: to the machine and back
//! prepare: texts and tables of a call -> launch: its arrays, its kernels, one after the other
//! work: what they look at and move, counted without a machine
//! ```

mod arrays;
mod launch;
mod prepare;
mod renumbered;
mod work;

use super::MeshProblem;
use super::driver::{Backend, Given};
use crate::array::Data;
use crate::machine::Machine;
use crate::{Element, Error, Result};
pub use arrays::Array;
use arrays::Pool;
use prepare::{Key, Prepared};
pub use renumbered::Renumbered;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{MapId, SetId, VariableId};
use stencilc_compiler::mesh::{Chain, MeshChoices};
pub use work::{Work, Works};

/// Makes a kernel of a text.
pub type Load<'a, M> = dyn Fn(&str, &str) -> Result<<M as Machine>::Kernel> + 'a;

/// Computes on a machine.
pub struct Kernels<'a, M: Machine> {
    problem: &'a MeshProblem,
    machine: &'a M,
    choices: MeshChoices,
    load: &'a Load<'a, M>,
    renumbered: Rc<Renumbered>,
    maps: RefCell<HashMap<MapId, Rc<M::Buffer>>>,
    numbers: RefCell<HashMap<SetId, Rc<M::Buffer>>>,
    pool: Rc<Pool<M>>,
    calls: RefCell<HashMap<Key, Rc<Prepared<M>>>>,
    folds: RefCell<HashMap<&'static str, Rc<M::Kernel>>>,
    zero: RefCell<Option<Rc<M::Kernel>>>,
}

impl<'a, M: Machine> Kernels<'a, M> {
    /// For a problem whose elements stand in some order on the machine.
    pub fn new(
        problem: &'a MeshProblem,
        machine: &'a M,
        choices: MeshChoices,
        renumbered: Rc<Renumbered>,
        load: &'a Load<'a, M>,
    ) -> Self {
        Self {
            problem,
            machine,
            choices,
            load,
            renumbered,
            maps: RefCell::default(),
            numbers: RefCell::default(),
            pool: Rc::new(Pool { free: RefCell::default() }),
            calls: RefCell::default(),
            folds: RefCell::default(),
            zero: RefCell::default(),
        }
    }

    /// What comes out of a call, and then microseconds that it takes, so many times.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    pub fn timed(
        &self,
        call: &Call,
        params: &[Value],
        given: Given<Array<M>>,
        runs: usize,
        results: &mut dyn FnMut(&Given<Array<M>>) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let opened = self.open(call, params, given)?;
        results(&self.run(&opened, params)?)?;
        self.machine.time_each(runs, |_| self.run(&opened, params).map(|_| ()))
    }
}

impl<M: Machine> Backend for Kernels<'_, M> {
    type Array = Array<M>;

    fn upload(&self, variable: VariableId, data: &Data) -> Result<Array<M>> {
        let own = &self.problem.program.program.variables[variable];
        let array = self.array(data.element(), data.len())?;
        let mut bytes = self.packed(own.place, own.stored, data);
        bytes.resize(array.bytes, 0);
        self.machine.write(array.buffer()?, &bytes)?;
        Ok(array)
    }

    fn download(&self, variable: VariableId, array: &Array<M>) -> Result<Data> {
        let own = &self.problem.program.program.variables[variable];
        let bytes = self.intact(array, &own.name)?;
        let len = self.len(own.place) * array.element.bytes();
        Ok(self.unpacked(own.place, own.stored, array.element, &bytes[..len]))
    }

    fn number(&self, array: &Array<M>) -> Result<Value> {
        let bytes = self.intact(array, "a number")?;
        Ok(match array.element {
            Element::F32 => Value::Real(f64::from(bytemuck::pod_read_unaligned::<f32>(&bytes[..4]))),
            Element::F64 => Value::Real(bytemuck::pod_read_unaligned(&bytes[..8])),
            Element::I32 => Value::Int(bytemuck::pod_read_unaligned(&bytes[..4])),
            Element::Bool => Value::Bool(bytes[0] != 0),
        })
    }

    fn wait(&self) -> Result<()> {
        self.machine.wait()
    }

    fn merges(&self, chain: &Chain) -> bool {
        self.renumbered.merges(self.problem, chain, self.choices)
    }

    fn call(&self, call: &Call, params: &[Value], given: Given<Array<M>>) -> Result<Given<Array<M>>> {
        let opened = self.open(call, params, given)?;
        self.run(&opened, params)
    }
}

fn narrow(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::input("the mesh is too large for indices of 32 bits"))
}
