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

use super::{MeshProblem, MeshScript};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::machine::Machine;
use crate::{Error, Result};
pub use arrays::Array;
use arrays::Pool;
use prepare::{Key, Prepared};
pub use renumbered::Renumbered;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use stencilc_compiler::ir::{MapId, SetId, VariableId};
use stencilc_compiler::mesh::{Chain, MeshChoices};
pub use work::{Work, Works};

/// Makes a kernel of a text.
pub type Load<'a, M> = dyn Fn(&str, &str) -> Result<<M as Machine>::Kernel> + 'a;

/// Computes on a machine.
pub struct Kernels<'a, M: Machine> {
    problem: &'a MeshProblem,
    script: MeshScript<'a>,
    /// Whether launches of loops are recorded.
    records: bool,
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
            script: MeshScript::new(problem, &|chain| renumbered.merges(problem, chain, choices)),
            records: true,
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

    /// The same, but each kernel is started by itself, and not those of many steps at once.
    pub fn unrecorded(self) -> Self {
        Self { records: false, ..self }
    }

    /// Whether the calls of a chain are computed by one kernel.
    pub fn merges(&self, chain: &Chain) -> bool {
        self.renumbered.merges(self.problem, chain, self.choices)
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &'a M {
        self.machine
    }
}

impl<M: Machine> Backend for Kernels<'_, M> {
    type Buffer = Array<M>;
    type Recording = M::Recording;

    fn script(&self) -> &dyn Script {
        &self.script
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<Array<M>> {
        let own = &self.problem.program.program.variables[variable];
        let array = self.array(data.element(), data.len())?;
        let mut bytes = self.packed(own.place, own.stored, data);
        bytes.resize(array.bytes, 0);
        self.machine.write(array.buffer()?, &bytes)?;
        Ok(array)
    }

    fn read(&self, variable: VariableId, array: &Array<M>) -> Result<Data> {
        let own = &self.problem.program.program.variables[variable];
        let bytes = self.intact(array, &own.name)?;
        let len = self.len(own.place) * array.element.bytes();
        Ok(self.unpacked(own.place, own.stored, array.element, &bytes[..len]))
    }

    fn copy(&self, from: &Array<M>, to: &Array<M>) -> Result<()> {
        self.machine.copy(from.buffer()?, to.buffer()?)
    }

    fn compute(&self, computed: &Computed, arrays: Arrays<Array<M>>) -> Result<()> {
        self.call(&self.script.stage(computed.stage).call, &computed.params, arrays)
    }

    fn wait(&self) -> Result<()> {
        self.machine.wait()
    }

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<M::Recording>> {
        // What a reduction over nothing comes to is written from here.
        let has_empty = self.problem.program.mesh.sets.handles().any(|set| self.renumbered.bound.size(set) == 0);
        if self.records && !has_empty { self.machine.record(work) } else { Ok(None) }
    }

    fn replay(&self, recording: &M::Recording) -> Result<()> {
        self.machine.replay(recording)
    }
}

fn narrow(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::input("the mesh is too large for indices of 32 bits"))
}
