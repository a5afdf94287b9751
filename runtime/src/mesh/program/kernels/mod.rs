//! Kernels on a machine, as what computes the calls of a program over a mesh.
//!
//! ```text
//! renumbered: the order of elements there; arrays: to the machine and back
//! prepare: texts and tables of a call -> launch: its arrays, its kernels, one after the other
//! bring: where these are parts of one, what goes from part to part
//! work: what they look at and move, counted without a machine
//! ```

mod arrays;
mod bring;
mod carry;
mod launch;
mod prepare;
mod renumbered;
mod work;

use super::fold::Folds;
use super::{MeshProblem, MeshScript};
use crate::array::Data;
use crate::build::{Build, Usage};
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::machine::Machine;
use crate::{Error, Result};
pub use arrays::Array;
use arrays::{Pool, beside};
use bring::Bringing;
use launch::Leaves;
use prepare::{Key, Prepared};
pub use renumbered::Renumbered;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::mesh::Zones;
use stencilc_compiler::ir::{MapId, MeshStencil, SetId, VariableId};
use stencilc_compiler::mesh::{Chain, MeshChoices};
pub use work::{Work, Works};

/// Somebody who is told the name and the text of each kernel before it is built.
pub type Reader = dyn Fn(&str, &str) -> Result<()>;

/// Somebody who makes a kernel of its name and its text.
pub type Maker<M> = dyn Fn(&str, &str) -> Result<<M as Machine>::Kernel>;

/// A set whose elements the user's numbers are of; where zones are named, of theirs alone.
type Numbered = (SetId, Option<Zones>);

/// What kernels read and none of them writes: maps and tables.
struct Constant<M: Machine> {
    what: String,
    buffer: Rc<M::Buffer>,
    bytes: Vec<u8>,
}

/// Computes on a machine.
pub struct Kernels<M: Machine> {
    problem: Arc<MeshProblem>,
    script: Arc<MeshScript>,
    /// Whether launches of loops are recorded.
    records: bool,
    machine: Arc<M>,
    choices: MeshChoices,
    reader: Option<Rc<Reader>>,
    maker: Option<Rc<Maker<M>>>,
    /// Maps and tables, and what they held, if somebody will ask for damage.
    constants: Option<RefCell<Vec<Constant<M>>>>,
    /// What threads of the kernels take that were built.
    usages: RefCell<Vec<(String, Usage)>>,
    renumbered: Box<dyn Deref<Target = Renumbered>>,
    maps: RefCell<HashMap<MapId, Rc<M::Buffer>>>,
    numbers: RefCell<HashMap<Numbered, Rc<M::Buffer>>>,
    pool: Rc<Pool<M>>,
    calls: RefCell<HashMap<Key, Rc<Prepared<M>>>>,
    folds: RefCell<Folders<M>>,
    zero: RefCell<Option<Rc<M::Kernel>>>,
    /// What the last call would have folded, where somebody else does it.
    left: Option<RefCell<Vec<Leaves<M>>>>,
    /// What brings elements of other parts.
    bringing: Bringing<M>,
}

/// Kernels that fold, by what they make one number of, and how.
type Folders<M> = HashMap<(Folds, &'static str), Rc<<M as Machine>::Kernel>>;

impl<M: Build> Kernels<M> {
    /// For a problem whose elements stand in some order on the machine.
    pub fn new(
        problem: impl Into<Arc<MeshProblem>>,
        machine: Arc<M>,
        choices: MeshChoices,
        renumbered: impl Deref<Target = Renumbered> + 'static,
    ) -> Self {
        let problem = problem.into();
        let choices = if machine.is_cpu() { choices.on_cpu() } else { choices };
        let merges = |chain: &Chain| renumbered.merges(&problem, chain, choices);
        Self {
            script: Arc::new(MeshScript::new(&problem, &merges)),
            problem,
            records: true,
            bringing: Bringing::new(&machine),
            machine,
            choices,
            reader: None,
            maker: None,
            constants: None,
            usages: RefCell::default(),
            renumbered: Box::new(renumbered),
            maps: RefCell::default(),
            numbers: RefCell::default(),
            pool: Rc::new(Pool { free: RefCell::default() }),
            calls: RefCell::default(),
            folds: RefCell::default(),
            zero: RefCell::default(),
            left: None,
        }
    }

    /// The same, as a part of a program: what it would fold it leaves.
    pub fn leaving(self) -> Self {
        Self { left: Some(RefCell::default()), ..self }
    }

    /// The same, but somebody reads each kernel before it is built.
    pub fn read_by(self, reader: Rc<Reader>) -> Self {
        Self { reader: Some(reader), ..self }
    }

    /// The same, but somebody else makes the kernels.
    pub fn made_by(self, maker: Rc<Maker<M>>) -> Self {
        Self { maker: Some(maker), ..self }
    }

    /// The same, but what is given stays there to the end, and [`Kernels::damage`] knows what maps and tables held.
    pub fn watched(mut self) -> Self {
        let merges = |chain: &Chain| self.renumbered.merges(&self.problem, chain, self.choices);
        self.script = Arc::new(MeshScript::new(&self.problem, &merges).keeping_inputs());
        Self { constants: Some(RefCell::default()), ..self }
    }

    /// What kernels overwrote beside the arrays of the program: maps, tables, and what lies around arrays that calls share.
    ///
    /// # Errors
    /// The machine fails.
    pub fn damage(&self) -> Result<Vec<String>> {
        let mut damage = Vec::new();
        for Constant { what, buffer, bytes } in self.constants.iter().flat_map(|own| own.take()) {
            let (found, guards) = self.machine.download(&buffer)?;
            if !guards.intact() || found != bytes {
                damage.push(format!("{what} was overwritten"));
            }
        }
        for (&used, buffer) in
            self.pool.free.borrow().iter().flat_map(|(used, all)| all.iter().map(move |own| (used, own)))
        {
            damage.extend(
                beside(&self.machine.download(buffer)?, used).map(|what| format!("an array of a call: {what}")),
            );
        }
        Ok(damage)
    }

    fn build(&self, name: &str, text: &str) -> Result<M::Kernel> {
        if let Some(reader) = &self.reader {
            reader(name, text)?;
        }
        let kernel = match &self.maker {
            Some(maker) => maker(name, text)?,
            None => self.machine.build(name, text)?,
        };
        let usage = self.machine.usage(&kernel).map(|usage| (name.to_owned(), usage));
        self.usages.borrow_mut().extend(usage);
        Ok(kernel)
    }

    /// What threads of the kernels take that were built until now, by the kernels' names.
    pub fn usages(&self) -> Vec<(String, Usage)> {
        self.usages.borrow().clone()
    }

    /// The same, but each kernel is started by itself, and not those of many steps at once.
    pub fn unrecorded(self) -> Self {
        Self { records: false, ..self }
    }

    /// Whether the calls of a chain are computed by one kernel.
    pub fn merges(&self, chain: &Chain) -> bool {
        self.renumbered.merges(&self.problem, chain, self.choices)
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &M {
        &self.machine
    }
}

impl<M: Build> Backend for Kernels<M> {
    type Buffer = Array<M>;
    type Recording = M::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<MeshScript>::clone(&self.script)
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
        let is_empty = |own: &MeshStencil| self.renumbered.bound.range(own.set(), own.stencil.zones).is_empty();
        let has_empty = self.problem.program.stencils.iter().any(is_empty);
        if self.records && !has_empty { self.machine.record(work) } else { Ok(None) }
    }

    fn replay(&self, recording: &M::Recording) -> Result<()> {
        self.machine.replay(recording)
    }
}

fn narrow(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::input("the mesh is too large for indices of 32 bits"))
}
