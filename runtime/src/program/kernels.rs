//! Programs on a machine: a kernel a call, and one that fills halos.

use super::ProgramProblem;
use super::fill::{Fill, Filling};
use super::halo;
use super::parts::exchange::Exchange;
use super::planned::{Planned, StageKernel, known_grid};
use crate::array::Data;
use crate::build::Build;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::execute::plain_argument;
use crate::machine::{Arg, Launch, Machine};
use crate::memory;
use crate::pack::{PADDING, Packing};
use crate::problem::element_of;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::ir::{FieldId, Handle, VariableId};
use stencilc_compiler::kernel::{Meaning, StepData};
use stencilc_compiler::step;
use stencilc_compiler::storage::Layout;

/// A kernel of a stage on a machine.
struct Loaded<M: Machine> {
    kernel: M::Kernel,
    launch: Launch,
    tables: Vec<M::Buffer>,
    /// Arrays for what some of the steps of a loop write.
    spares: Vec<(FieldId, M::Buffer)>,
    /// What blocks wait at: a barrier or flags.
    signals: Option<M::Buffer>,
}

/// Computes stages with kernels.
pub struct Kernels<M: Machine> {
    machine: Arc<M>,
    planned: Arc<Planned>,
    stages: Vec<Loaded<M>>,
    fillings: BTreeMap<VariableId, Filling<M>>,
    fills: BTreeMap<Fill, M::Kernel>,
    pub(super) exchanges: BTreeMap<Fill, M::Kernel>,
    pub(super) exchange: Exchange<M>,
    /// Whether what is read is looked at byte by byte.
    watched: bool,
}

impl<M: Machine> Kernels<M> {
    /// On a machine that has loaded the kernels of [`Planned::texts`], in this order.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(machine: Arc<M>, planned: impl Into<Arc<Planned>>, loaded: Vec<M::Kernel>) -> Result<Self> {
        let planned = planned.into();
        let problem = &*planned.problem;
        let mut loaded = loaded.into_iter();
        let missing = || Error::check("fewer kernels were compiled than there are");
        let mut stages = Vec::new();
        for (number, stage) in planned.stages.iter().enumerate() {
            let kernel = loaded.next().ok_or_else(missing)?;
            stages.push(match stage {
                StageKernel::Cells(plan, _) => {
                    let known_grid = known_grid(plan)?;
                    let tables =
                        known_grid.layout.tables.iter().map(|table| machine.upload(bytemuck::cast_slice(table)));
                    let launch = Launch::of(plan, known_grid, &*machine, &kernel)?;
                    let tables = tables.collect::<Result<Vec<M::Buffer>>>()?;
                    Loaded { kernel, launch, tables, spares: Vec::new(), signals: None }
                }
                StageKernel::Rows(own) => {
                    let step::Launch { grid, block, cluster, shared, cooperative } = own.launch;
                    let mut launch = Launch { grid, block, cluster, shared, cooperative };
                    if cooperative {
                        // Fewer blocks do as well, if all of them are there.
                        let most = machine.blocks_at_once(&kernel, &launch)?.unwrap_or(u32::MAX);
                        if most < cluster[0] {
                            let name = &own.name;
                            return Err(Error::input(format!("the GPU has no room for a block of kernel {name}"))
                                .help("--fuse streamed and --fuse merged need less"));
                        }
                        launch.grid[0] = launch.grid[0].min(most);
                    }
                    let mut spares = Vec::new();
                    let mut signals = None;
                    for parameter in &own.parameters {
                        let Meaning::Step(data) = parameter.meaning else { continue };
                        match data {
                            StepData::Spare(field) => {
                                let variable = problem.staged.stages[number].call.fields[field.index()].written;
                                let variable = variable.ok_or_else(missing)?;
                                let bytes = planned.packing(variable).bytes();
                                spares.push((field, machine.upload(&vec![PADDING; bytes])?));
                            }
                            StepData::Barrier => signals = Some(machine.upload(&[0; 4])?),
                            StepData::Flags(count) => signals = Some(machine.upload(&vec![0; 4 * count])?),
                            StepData::Count => {}
                        }
                    }
                    Loaded { kernel, launch, tables: Vec::new(), spares, signals }
                }
            });
        }
        let mut fills = BTreeMap::new();
        for &fill in &planned.fills {
            fills.insert(fill, loaded.next().ok_or_else(missing)?);
        }
        let mut exchanges = BTreeMap::new();
        for &fill in &planned.exchanges {
            exchanges.insert(fill, loaded.next().ok_or_else(missing)?);
        }
        let mut fillings = BTreeMap::new();
        for (id, _) in problem.staged.program.variables.iter() {
            if let Some(filling) = Filling::new(&*machine, problem, &planned.layout, id)? {
                fillings.insert(id, filling);
            }
        }
        let exchange = Exchange::new(&machine);
        Ok(Self { machine, planned, stages, fillings, fills, exchanges, exchange, watched: false })
    }

    /// The same, on a machine that builds the kernels.
    ///
    /// # Errors
    /// One cannot be compiled, or the machine has too little memory.
    pub fn built(machine: Arc<M>, planned: Planned) -> Result<Self>
    where
        M: Build,
    {
        let loaded = planned.texts()?.iter().map(|own| machine.build(&own.name, &own.text)).collect::<Result<_>>()?;
        Self::new(machine, planned, loaded)
    }

    pub(super) fn problem(&self) -> &ProgramProblem {
        &self.planned.problem
    }

    pub(super) fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    /// Whether launches of loops are recorded.
    pub(super) fn has_graph(&self) -> bool {
        self.planned.graph
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.planned.layout
    }

    /// The same, but what is read must be whole, the bytes between rows and planes among it.
    pub fn watched(self) -> Self {
        Self { watched: true, ..self }
    }

    /// What is wrong with the tables of the kernels, if anything is.
    ///
    /// # Errors
    /// The machine fails.
    pub fn damage(&self) -> Result<Option<String>> {
        for (stage, loaded) in self.planned.stages.iter().zip(&self.stages) {
            let StageKernel::Cells(plan, _) = stage else { continue };
            for (number, (table, buffer)) in known_grid(plan)?.layout.tables.iter().zip(&loaded.tables).enumerate() {
                let (bytes, guards) = self.machine.download(buffer)?;
                if !guards.intact() || bytes != bytemuck::cast_slice::<i32, u8>(table) {
                    return Ok(Some(format!("the storage's table {number} was overwritten")));
                }
            }
        }
        Ok(None)
    }

    pub(super) fn packing(&self, variable: VariableId) -> Packing<'_> {
        self.planned.packing(variable)
    }

    fn arguments(&self, computed: &Computed, Arrays { reads, writes }: Arrays<M::Buffer>) -> Result<Vec<Arg>> {
        let &Computed { stage, times, ref params } = computed;
        let own = &self.problem().staged.stages[stage];
        let read = |field: FieldId| {
            let (_, buffer) = reads.iter().find(|(id, _)| *id == field)?;
            Some((own.call.fields[field.index()].read?, *buffer))
        };
        let written = |field: FieldId| {
            let (_, buffer) = writes.iter().find(|(id, _)| *id == field)?;
            Some((own.call.fields[field.index()].written?, *buffer))
        };
        let (name, arguments): (&str, Option<Vec<Arg>>) = match &self.planned.stages[stage] {
            StageKernel::Cells(plan, kernel) => {
                let known_grid = known_grid(plan)?;
                let pointer = |(variable, buffer): (VariableId, &M::Buffer)| {
                    Arg::Pointer(self.machine.address(buffer, self.packing(variable).pointer()))
                };
                let argument = |meaning: &Meaning| match meaning {
                    Meaning::Input(field) => read(*field).map(pointer),
                    Meaning::Output(field) => written(*field).map(pointer),
                    Meaning::Table(number) => {
                        Some(Arg::Pointer(self.machine.address(&self.stages[stage].tables[*number], 0)))
                    }
                    other => plain_argument(plan, known_grid, params, other),
                };
                let arguments = kernel.parameters.iter().map(|parameter| argument(&parameter.meaning));
                (&kernel.name, arguments.collect())
            }
            StageKernel::Rows(kernel) => {
                let pointer = |(variable, buffer): (VariableId, &M::Buffer)| {
                    Arg::Pointer(self.machine.address(buffer, self.first_cell(variable)))
                };
                let argument = |meaning: &Meaning| match meaning {
                    Meaning::Input(field) => read(*field).map(pointer),
                    Meaning::Output(field) => written(*field).map(pointer),
                    Meaning::Step(StepData::Count) => i32::try_from(times).ok().map(Arg::I32),
                    Meaning::Step(StepData::Spare(field)) => {
                        let (_, spare) = self.stages[stage].spares.iter().find(|(id, _)| id == field)?;
                        own.call.fields[field.index()].written.map(|variable| pointer((variable, spare)))
                    }
                    Meaning::Step(StepData::Barrier | StepData::Flags(_)) => {
                        let signals = self.stages[stage].signals.as_ref()?;
                        Some(Arg::Pointer(self.machine.address(signals, 0)))
                    }
                    // Parameters have become numbers, and nothing else is taken.
                    Meaning::Documented | Meaning::Param(_) | Meaning::Size(_) | Meaning::Table(_) => None,
                    Meaning::Report | Meaning::Columns | Meaning::Mesh(_) => None,
                };
                let arguments = kernel.parameters.iter().map(|parameter| argument(&parameter.meaning));
                (&kernel.name, arguments.collect())
            }
        };
        arguments.ok_or_else(|| Error::check(format!("an argument of the kernel `{name}` is missing")))
    }

    /// Bytes before the first cell of a variable's array, its halo left out.
    fn first_cell(&self, variable: VariableId) -> usize {
        let staged = &self.problem().staged;
        let own = &staged.program.variables[variable];
        let [i, j, k] = staged.inner_of(own.place).map(|range| range.start);
        let layout = &self.planned.layout;
        let element = match own.place.horizontal {
            true => layout.index(layout.place(staged.grid, i, j), k),
            false => k,
        };
        self.packing(variable).pointer() + element * element_of(own.stored, staged.precision).bytes()
    }
}

impl<M: Machine> Backend for Kernels<M> {
    type Buffer = M::Buffer;
    type Recording = M::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<ProgramProblem>::clone(&self.planned.problem)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<M::Buffer> {
        let place = self.problem().staged.program.variables[variable].place;
        let packing = self.packing(variable);
        let mut packed = memory::filled(PADDING, packing.bytes(), "a field as kernels have it")?;
        packing.pack(&halo::widened(&self.problem().staged, place, data), &mut packed);
        self.machine.upload(&packed)
    }

    fn read(&self, variable: VariableId, buffer: &M::Buffer) -> Result<Data> {
        let own = &self.problem().staged.program.variables[variable];
        let (packed, guards) = self.machine.download(buffer)?;
        if !guards.intact() {
            return Err(Error::check(format!("the kernel is wrong: `{}`: {guards}", own.name))
                .help("this is a fault of the compiler; please report it"));
        }
        let packing = self.packing(variable);
        let wide = packing.unpack(&packed);
        if self.watched {
            let mut expected = vec![PADDING; packed.len()];
            packing.pack(&wide, &mut expected);
            if let Some(byte) = (0..packed.len()).find(|&byte| packed[byte] != expected[byte]) {
                let what = format!("`{}`: padding was overwritten at byte {byte} of its buffer", own.name);
                return Err(Error::check(what).help("this is a fault of the compiler; please report it"));
            }
        }
        Ok(halo::narrowed(&self.problem().staged, own.place, &wide))
    }

    fn fill_halo(&self, variable: VariableId, buffer: &M::Buffer) -> Result<()> {
        let Some(filling) = self.fillings.get(&variable) else { return Ok(()) };
        let kernel = self.fills.get(&filling.fill);
        let kernel = kernel.ok_or_else(|| Error::check("there is no kernel that fills halos"))?;
        filling.fill(&*self.machine, kernel, buffer, &self.packing(variable))
    }

    fn copy(&self, from: &M::Buffer, to: &M::Buffer) -> Result<()> {
        self.machine.copy(from, to)
    }

    fn compute(&self, computed: &Computed, arrays: Arrays<M::Buffer>) -> Result<()> {
        let own = &self.stages[computed.stage];
        self.machine.launch(&own.kernel, &own.launch, &self.arguments(computed, arrays)?)
    }

    fn wait(&self) -> Result<()> {
        self.machine.wait()
    }

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<M::Recording>> {
        if self.planned.graph { self.machine.record(work) } else { Ok(None) }
    }

    fn replay(&self, recording: &M::Recording) -> Result<()> {
        self.machine.replay(recording)
    }
}
