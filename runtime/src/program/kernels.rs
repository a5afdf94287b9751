//! Programs on a machine: a kernel a call, and one that fills halos.

use super::ProgramProblem;
use super::fill::{self, Fill, Filling};
use super::halo;
use super::parts::bring;
use super::plan::{PlanKind, ProgramPlan, walking};
use crate::array::{Data, Element};
use crate::build::Build;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::execute::plain_argument;
use crate::machine::{Arg, Launch, Machine};
use crate::memory;
use crate::pack::{PADDING, Packing};
use crate::problem::element_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stencilc_compiler::access::{self, Access};
use stencilc_compiler::analysis::extents;
use stencilc_compiler::cuda;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{FieldId, Handle, Stencil, VariableId};
use stencilc_compiler::kernel::{self, Meaning, StepData};
use stencilc_compiler::plan::{self, Choices, KnownGrid, Plan, Target};
use stencilc_compiler::program::{Stage, Staged};
use stencilc_compiler::source::Source;
use stencilc_compiler::step::planes::{self, Queue};
use stencilc_compiler::step::stream::{self, Shape, Strip};
use stencilc_compiler::step::{self, Edge, Rows, StepTask, resident, tiled};
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::fields::{FieldSlot, Fields};
use stencilc_compiler::storage::sharing::Sharing;
use stencilc_compiler::storage::{Columns, Layout};

/// A text to compile.
pub struct Text {
    /// The name of the kernel in it.
    pub name: String,
    /// CUDA C++.
    pub text: String,
}

/// The names of kernels, each once.
pub fn names(texts: Vec<Text>) -> Vec<String> {
    let mut known = BTreeSet::new();
    texts.into_iter().map(|own| own.name).filter(|name| known.insert(name.clone())).collect()
}

/// The kernels of a program: a text for each of its stages, and where its fields lie.
pub struct Planned {
    /// The program, fused as the plan says.
    pub problem: Arc<ProgramProblem>,
    stages: Vec<StageKernel>,
    layout: Arc<Layout>,
    /// The kernels that fill halos, each once.
    fills: Vec<Fill>,
    /// The elements of which a neighbour's rows are brought.
    brings: Vec<Element>,
    /// Whether launches of loops are recorded.
    graph: bool,
}

/// The kernel of a stage.
enum StageKernel {
    /// A thread a cell, or for several.
    Cells(Box<Plan>, cuda::Kernel),
    /// Warps that walk down rows, or blocks that compute tiles.
    Rows(Box<step::Kernel>),
}

impl StageKernel {
    fn text(&self) -> Text {
        match self {
            StageKernel::Cells(_, kernel) => Text { name: kernel.name.to_string(), text: kernel.text.clone() },
            StageKernel::Rows(kernel) => Text { name: kernel.name.to_string(), text: kernel.text.clone() },
        }
    }
}

impl Planned {
    /// Plans a kernel for each stage.
    ///
    /// # Errors
    /// A choice makes no sense for one of them.
    pub fn new(problem: &ProgramProblem, plan: &ProgramPlan) -> Result<Self> {
        let choices = &plan.choices;
        if choices.fields != Fields::Soa {
            return Err(Error::call("the fields of a program lie each by itself").help("leave out --fields"));
        }
        if choices.checked {
            return Err(
                Error::call("--checked is for single stencils").help("run the stencil that is wrong: --stencil NAME")
            );
        }
        let problem = plan.fused(problem)?;
        let staged = &problem.staged;
        let by_rows = staged.stages.iter().any(|stage| stage.wraps);
        if by_rows && (!choices.has_rows() || problem.adjacency.is_some()) {
            let kind = plan.kind.name();
            let (why, help) = match choices.fastest {
                Fastest::Levels => ("where levels are fastest there are none", "--fastest columns"),
                Fastest::Columns => ("cells of tables stand in none", "--storage regular"),
            };
            return Err(Error::call(format!("--fuse {kind} works on rows, and {why}"))
                .help(format!("give {help}, or --fuse recomputed")));
        }
        let layouts = Planner::new(&problem, choices);
        let mut stages = Vec::new();
        for stage in &staged.stages {
            stages.push(match stage.wraps && stage.stencil.sweeps.is_empty() {
                _ if stage.region.cells() == 0 => layouts.cells(&copying()?, &staged.inner())?,
                false => layouts.cells(&stage.stencil, &stage.region)?,
                true => layouts.rows(stage, plan)?,
            });
        }
        let layout = layouts.layout(&stages)?;
        let needing = staged.program.variables.iter().filter(|(id, _)| staged.needs_halo(*id));
        let mut fills: Vec<Fill> = Vec::new();
        for fill in needing.map(|(id, _)| Fill::of(staged, id)) {
            if !fills.contains(&fill) {
                fills.push(fill);
            }
        }
        let brings = bring::elements(staged);
        Ok(Self { stages, layout, fills, brings, graph: plan.graph, problem: Arc::new(problem) })
    }

    /// How a thread computes cells of a stage, if it does.
    pub(super) fn cells_of(&self, stage: usize) -> Option<&Plan> {
        match &self.stages[stage] {
            StageKernel::Cells(plan, _) => Some(plan),
            StageKernel::Rows(_) => None,
        }
    }

    /// The texts to compile.
    ///
    /// # Errors
    /// A template is broken, which is a fault of the compiler.
    pub fn texts(&self) -> Result<Vec<Text>> {
        let kernels = self.stages.iter().map(|stage| Ok(stage.text()));
        let fills = self.fills.iter();
        let fills = fills.map(|&own| Ok(Text { name: fill::name(own), text: cuda::text(&fill::code(own))? }));
        let brings = self.brings.iter();
        let brings = brings.map(|&own| Ok(Text { name: bring::name(own), text: cuda::text(&bring::code(own))? }));
        kernels.chain(fills).chain(brings).collect()
    }

    /// The kernels in the kernel IR. None says how it is made again: `stencilc build` makes all of them at once.
    ///
    /// # Errors
    /// A kernel keeps values of sweeps on every level, and how many there are is not known.
    pub fn codes(&self) -> Result<Vec<kernel::Kernel>> {
        let kernels = self.stages.iter().map(|stage| match stage {
            StageKernel::Cells(plan, _) => Ok(kernel::Kernel { made: None, ..cuda::lower(plan)? }),
            StageKernel::Rows(kernel) => Ok(kernel.code.clone()),
        });
        let fills = self.fills.iter().map(|&own| Ok(fill::code(own)));
        kernels.chain(fills).chain(self.brings.iter().map(|&own| Ok(bring::code(own)))).collect()
    }
}

/// A stencil that any cell can compute.
fn copying() -> Result<Stencil> {
    let lowered = stencilc_compiler::check(&Source::new("copy", "stencil copy { in a; out b; b = a }"));
    lowered.stencils.into_iter().next().ok_or_else(|| Error::check("no stencil to copy with"))
}

/// The cells that the kernel of a stage is made for. On some parts of a grid a call computes nothing: there its kernel copies, and nobody
/// launches it.
fn planned_region(staged: &Staged, stage: &Stage) -> Region {
    if stage.region.cells() == 0 { staged.inner() } else { stage.region.clone() }
}

/// Plans stages of one program, whose fields have one layout.
struct Planner<'a> {
    problem: &'a ProgramProblem,
    choices: Choices,
    sharing: Sharing,
}

impl<'a> Planner<'a> {
    fn new(problem: &'a ProgramProblem, choices: &Choices) -> Self {
        let staged = &problem.staged;
        let mut choices = choices.clone();
        // Rows start aligned where all stages compute the same columns.
        let regions: Vec<Region> = staged.stages.iter().map(|stage| planned_region(staged, stage)).collect();
        let computed = regions.iter().map(|region| region.column_numbers(staged.grid).into()).collect();
        let mut regions = regions.iter().map(|region| (&region.i, &region.j, &region.cells));
        let first = regions.next();
        if regions.any(|own| Some(own) != first) {
            choices.share = vec![staged.program.name.clone()];
        }
        let smallest = staged.stages.iter().map(|stage| stage.stencil.smallest(staged.precision)).min().unwrap_or(8);
        // What no stage reads lies in the same layout.
        let highest = staged.program.variables.iter().map(|(_, own)| own.place.levels.count(staged.grid.nk));
        let levels = highest.fold(staged.grid.nk, usize::max);
        Self { problem, choices, sharing: Sharing { computed, smallest, levels } }
    }

    fn plan(&self, stencil: &Stencil, region: &Region) -> Result<Plan> {
        let target = Target {
            grid: self.problem.staged.grid,
            adjacency: self.problem.adjacency.as_deref(),
            region,
            levels_known: true,
            sharing: Some(&self.sharing),
            layouts: None,
        };
        let mut choices = self.choices.clone();
        if !choices.suits(stencil) {
            // Sweeps need whole columns, whatever suits the other calls.
            choices = choices.suiting(stencil);
            choices.block = Choices::usual_block(&choices.access);
        }
        Ok(plan::plan(stencil, &choices, Some(target))?)
    }

    fn cells(&self, stencil: &Stencil, region: &Region) -> Result<StageKernel> {
        let plan = self.plan(stencil, region)?;
        let kernel = cuda::print(&plan)?;
        Ok(StageKernel::Cells(Box::new(plan), kernel))
    }

    fn rows(&self, stage: &Stage, plan: &ProgramPlan) -> Result<StageKernel> {
        let staged = &self.problem.staged;
        let layout = self.in_rows()?;
        let Columns::Rows { row } = layout.columns else {
            return Err(Error::check("rows of cells that stand in none"));
        };
        let Grid { ni, nj, nk, .. } = staged.domain;
        // Warps walk down the rows of the arrays.
        let stencil = staged.without_halo(&stage.stencil);
        let subject = StepTask {
            stencil: &stencil,
            precision: staged.precision,
            extents: [ni, nj, nk],
            rows: Rows { first: 0, row, plane: layout.stride(layout.strides.level) },
            edges: [Edge::Periodic; 2],
        };
        // Where extents do not divide, strips overlap.
        let shape = plan.shape;
        let other = Shape { strip: Strip::Overlapping, lane: 16, ..shape };
        let kernel = match plan.kind {
            PlanKind::Resident if !stage.carry.is_empty() => {
                let shapes = resident::shapes(&subject, &stage.carry, &shape.gpu);
                let Some(&own) = shapes.get(plan.resident) else {
                    let ways = match shapes.len() {
                        0 => "finds no room in registers".to_owned(),
                        ways => format!(
                            "has {ways} ways to lie in registers, and the one with number {} is none",
                            plan.resident
                        ),
                    };
                    return Err(Error::call(format!("--fuse resident: a plane of {ni}x{nj} cells {ways}")).help(
                        "rows are multiples of 128 cells in f32, and of 64 in f64; ways are counted from 0; \
                         --fuse streamed has no such limits",
                    ));
                };
                resident::resident(&subject, &stage.carry, own)?
            }
            PlanKind::Persistent if !stage.carry.is_empty() => stream::persistent(&subject, &stage.carry, &shape)
                .or_else(|_| stream::persistent(&subject, &stage.carry, &other))?,
            PlanKind::Tiled => {
                let own = plan.tile.or_else(|| tiled::shapes(&subject, &shape.gpu).first().copied());
                tiled::tiled(&subject, &own.unwrap_or(tiled::Shape::SMALLEST))?
            }
            PlanKind::Walked => {
                let own = walking(&self.choices);
                let queue = access::find(&own.access).ok().and_then(Access::queue).unwrap_or(Queue::Output);
                let reads_levels = extents::extents(&stencil);
                let edge =
                    if (reads_levels.low.k, reads_levels.high.k) == (0, 0) { Edge::Open } else { Edge::Periodic };
                let request = planes::Request::of(&subject, queue, 0..nk, edge)?;
                planes::planes(&subject, &planes::Request { math: own.math, ..request }, &own.walk(shape.gpu))?
            }
            PlanKind::Separate | PlanKind::Merged | PlanKind::Recomputed => {
                return Err(Error::check("a plan that fills halos has no rows to walk down"));
            }
            PlanKind::Streamed | PlanKind::Resident | PlanKind::Persistent => {
                stream::stream(&subject, &shape).or_else(|_| stream::stream(&subject, &other))?
            }
        };
        Ok(StageKernel::Rows(Box::new(kernel)))
    }

    /// The layout where all that is said is that cells stand in rows.
    fn in_rows(&self) -> Result<Arc<Layout>> {
        self.bare(Choices { precision: self.choices.precision, ..Choices::default() })
    }

    /// The layout where no stage says more of it than these choices do.
    fn bare(&self, choices: Choices) -> Result<Arc<Layout>> {
        let own = Self { problem: self.problem, choices, sharing: self.sharing.clone() };
        let plan = own.plan(&copying()?, &self.problem.staged.inner())?;
        Ok(Arc::clone(&known_grid(&plan)?.layout))
    }

    /// The layout of all stages.
    fn layout(&self, stages: &[StageKernel]) -> Result<Arc<Layout>> {
        let mut found: Option<Arc<Layout>> = None;
        for stage in stages {
            let own = match stage {
                StageKernel::Cells(plan, _) => Arc::clone(&known_grid(plan)?.layout),
                StageKernel::Rows(_) => self.in_rows()?,
            };
            if found.as_ref().is_some_and(|known| !known.places_cells_like(&own)) {
                return Err(Error::check("the stages of a program have different layouts"));
            }
            found.get_or_insert(own);
        }
        // What only gives fields other names has no stages.
        found.map_or_else(|| self.bare(self.choices.clone()), Ok)
    }
}

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
    pub(super) brings: BTreeMap<Element, M::Kernel>,
    /// Which columns of neighbours are brought where.
    pub(super) tables: bring::Tables<M>,
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
                                let bytes = packing_of(&planned, variable).bytes();
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
        let mut brings = BTreeMap::new();
        for &element in &planned.brings {
            brings.insert(element, loaded.next().ok_or_else(missing)?);
        }
        let mut fillings = BTreeMap::new();
        for (id, _) in problem.staged.program.variables.iter() {
            if let Some(filling) = Filling::new(&*machine, problem, &planned.layout, id)? {
                fillings.insert(id, filling);
            }
        }
        let tables = bring::Tables::<M>::default();
        Ok(Self { machine, planned, stages, fillings, fills, brings, tables, watched: false })
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

    pub(super) fn machine(&self) -> &M {
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
        packing_of(&self.planned, variable)
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

/// Where the cells of a variable are.
fn packing_of(planned: &Planned, variable: VariableId) -> Packing<'_> {
    let staged = &planned.problem.staged;
    let own = &staged.program.variables[variable];
    let element = element_of(own.stored, staged.precision);
    let slot = FieldSlot { group: 0, number: 0, fields: 1 };
    Packing::new(&planned.layout, staged.grid, own.place, element, Fields::Soa, slot)
}

fn known_grid(plan: &Plan) -> Result<&KnownGrid> {
    plan.known_grid.as_ref().ok_or_else(|| Error::check("a kernel for any grid has no layout"))
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
