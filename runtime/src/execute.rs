//! Runs one kernel on a machine, a GPU or the emulator, and looks at every byte around it.

use crate::array::Data;
use crate::error::{Error, Result};
use crate::machine::{Arg, Launch, Machine};
use crate::memory;
use crate::pack::{PADDING, Packing};
use crate::problem::{Problem, element_of};
use crate::same::Same;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use stencilc_compiler::cells::checked::{self, REPORT};
use stencilc_compiler::cuda::Kernel;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{FieldId, Handle, Kind, Precision};
use stencilc_compiler::kernel::{Meaning, Size};
use stencilc_compiler::plan::{KnownGrid, Plan};
use stencilc_compiler::storage::Layout;
use stencilc_compiler::storage::fields::{FieldSlot, Fields};

/// What came of running a kernel.
#[derive(Debug)]
pub struct Execution {
    /// By field: what outputs hold afterwards, in the user's order.
    pub outputs: Vec<Option<Data>>,
    /// What was written that should not have been: guards, padding, inputs.
    pub damage: Vec<String>,
    /// Of each launch its duration in microseconds, by the machine's clock.
    pub launches: Vec<f64>,
    /// Sets of buffers that the launches rotated over.
    pub sets: usize,
    /// Bytes of one set.
    pub set_bytes: usize,
    /// Seconds that everything else took.
    pub timings: Timings,
}

/// Seconds of the parts of a run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Timings {
    /// Packing fields into the storage.
    pub pack: f64,
    /// Copying to the device.
    pub upload: f64,
    /// Copying back.
    pub download: f64,
    /// Unpacking, and looking for damage.
    pub unpack: f64,
}

/// How often a kernel is launched, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Launches before those that are timed: the first ones of a kernel are not like the others.
    pub warmups: usize,
    /// Launches that are timed.
    pub runs: usize,
    /// What they rotate over.
    pub rotation: Rotation,
}

/// Sets of buffers that launches rotate over, so that one launch does not find its data in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// At least so many sets.
    pub least: usize,
    /// All sets together have at least so many bytes, if possible.
    pub bytes: usize,
    /// They have at most so many bytes, unless one set alone has more.
    pub room: usize,
}

impl Rotation {
    /// The same buffers each time.
    pub const SAME: Self = Self { least: 1, bytes: 0, room: usize::MAX };

    /// The most sets: beyond, reserving memory would take longer than what is measured.
    const MOST: usize = 512;

    /// How many sets there are, if one has so many bytes.
    pub fn sets(self, bytes: usize) -> usize {
        let bytes = bytes.max(1);
        let wanted = self.bytes.div_ceil(bytes).min(Self::MOST).max(self.least);
        wanted.min(self.room / bytes).max(1)
    }
}

impl Repeat {
    /// Once; or, after a first launch that is not timed, several times over three sets of buffers.
    pub fn usual(runs: usize) -> Self {
        match runs {
            0 | 1 => Self { warmups: 0, runs: 1, rotation: Rotation::SAME },
            _ => Self { warmups: 1, runs, rotation: Rotation { least: 3, ..Rotation::SAME } },
        }
    }
}

/// Fields and tables on a machine, in one layout: every kernel of that layout can run on them.
pub struct DeviceArrays<M: Machine> {
    layout: Arc<Layout>,
    fields: Fields,
    slots: BTreeMap<(FieldId, bool), FieldSlot>,
    residents: Vec<Resident<M>>,
    tables: Vec<M::Buffer>,
    /// Sets of buffers that launches rotate over.
    pub sets: usize,
    /// Bytes of one set.
    pub set_bytes: usize,
    /// Copies on the machine that make it quick to look at further kernels.
    kept: Option<Kept<M>>,
    timings: Timings,
}

/// What is kept on the machine beside the sets.
struct Kept<M: Machine> {
    /// Of each resident that is written what it held before any kernel.
    fresh: Vec<M::Buffer>,
    /// What residents and tables of the first set hold after a kernel that is right.
    right: Vec<M::Buffer>,
}

/// Fields on the device that lie together.
struct Resident<M: Machine> {
    group: usize,
    members: Vec<Member>,
    packed: Vec<u8>,
    /// One a set.
    buffers: Vec<M::Buffer>,
}

impl<M: Machine> Resident<M> {
    fn is_written(&self) -> bool {
        self.members.iter().any(|member| member.written)
    }
}

/// One of them.
struct Member {
    field: FieldId,
    written: bool,
    slot: FieldSlot,
}

/// What a checked kernel works with.
struct Watch<M: Machine> {
    report: M::Buffer,
    columns: M::Buffer,
}

impl<M: Machine> Watch<M> {
    fn new(machine: &M, plan: &Plan, known_grid: &KnownGrid) -> Result<Self> {
        let report = machine.upload(bytemuck::cast_slice(&[0u64; REPORT]))?;
        let columns = machine.upload(bytemuck::cast_slice(&checked::columns(plan, known_grid)))?;
        Ok(Self { report, columns })
    }

    /// The first fault, if there was one.
    fn fault(&self, machine: &M, plan: &Plan, known_grid: &KnownGrid, kernel: &Kernel) -> Result<Option<String>> {
        let (bytes, _) = machine.download(&self.report)?;
        let mut report = [0u64; REPORT];
        bytemuck::cast_slice_mut(&mut report).copy_from_slice(&bytes);
        Ok(crate::checked::fault(plan, known_grid, kernel, &report))
    }
}

/// Runs `kernel`, which the machine has loaded as `loaded`.
///
/// # Errors
/// The machine has too little memory, or the launch fails.
pub fn execute<M: Machine>(
    machine: &M,
    plan: &Plan,
    kernel: &Kernel,
    loaded: &M::Kernel,
    problem: &Problem,
    repeat: Repeat,
) -> Result<Execution> {
    let stage = DeviceArrays::new(machine, plan, kernel, problem, repeat.rotation)?;
    let launched = stage.launch(machine, plan, kernel, loaded, problem, repeat)?;
    stage.inspect(machine, problem, launched)
}

/// What came of launching a kernel.
pub struct Launched {
    /// Of each launch its duration in microseconds, by the machine's clock.
    pub times: Vec<f64>,
    /// The first wrong index that a checked kernel told.
    pub fault: Option<String>,
}

fn known_grid(plan: &Plan) -> Result<&KnownGrid> {
    plan.known_grid.as_ref().ok_or_else(|| {
        Error::call("a kernel for any grid cannot run by itself").help("compile it for the grid at hand")
    })
}

impl<M: Machine> DeviceArrays<M> {
    /// Packs the fields of a problem, and copies them to the machine.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(machine: &M, plan: &Plan, kernel: &Kernel, problem: &Problem, rotation: Rotation) -> Result<Self> {
        let known_grid = known_grid(plan)?;
        let mut timings = Timings::default();
        let start = Instant::now();
        let mut residents = residents::<M>(plan, known_grid, kernel, problem)?;
        timings.pack = start.elapsed().as_secs_f64();
        let set_bytes = residents.iter().map(|resident| resident.packed.len()).sum();
        let sets = rotation.sets(set_bytes);
        let start = Instant::now();
        for resident in &mut residents {
            for _ in 0..sets {
                resident.buffers.push(machine.upload(&resident.packed)?);
            }
        }
        let tables = known_grid.layout.tables.iter().map(|table| machine.upload(bytemuck::cast_slice(table)));
        let tables = tables.collect::<Result<Vec<M::Buffer>>>()?;
        timings.upload = start.elapsed().as_secs_f64();
        Ok(Self {
            layout: Arc::clone(&known_grid.layout),
            fields: plan.choices.fields,
            slots: plan.slots.clone(),
            residents,
            tables,
            sets,
            set_bytes,
            kept: None,
            timings,
        })
    }

    /// Whether the kernel of a plan for the same problem can run on it.
    pub fn suits(&self, plan: &Plan) -> bool {
        let has_layout = plan.known_grid.as_ref().is_some_and(|known_grid| known_grid.layout == self.layout);
        has_layout && plan.choices.fields == self.fields && plan.slots == self.slots
    }

    /// Makes outputs of the first set what they were before any kernel.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn renew(&self, machine: &M) -> Result<()> {
        let written: Vec<&Resident<M>> = self.residents.iter().filter(|own| own.is_written()).collect();
        match &self.kept {
            Some(kept) => {
                kept.fresh.iter().zip(written).try_for_each(|(fresh, own)| machine.copy(fresh, &own.buffers[0]))
            }
            None => written.into_iter().try_for_each(|own| machine.write(&own.buffers[0], &own.packed)),
        }
    }

    /// Launches a kernel.
    ///
    /// # Errors
    /// The launch fails.
    pub fn launch(
        &self,
        machine: &M,
        plan: &Plan,
        kernel: &Kernel,
        loaded: &M::Kernel,
        problem: &Problem,
        repeat: Repeat,
    ) -> Result<Launched> {
        let known_grid = known_grid(plan)?;
        let watch = if plan.choices.checked { Some(Watch::new(machine, plan, known_grid)?) } else { None };
        let launch = Launch::of(plan, known_grid, machine, loaded)?;
        let arguments: Vec<Vec<Arg>> = (0..self.sets)
            .map(|set| self.arguments(machine, plan, known_grid, kernel, problem, watch.as_ref(), set))
            .collect();
        let start = |run: usize| machine.launch(loaded, &launch, &arguments[run % self.sets]);
        (0..repeat.warmups).try_for_each(start)?;
        // The first that is timed goes on where the last of the others stopped. At least one launch is on the first set.
        let times = machine.time_each(repeat.runs.max(1), |run| start(repeat.warmups + run))?;
        let fault = watch.map(|watch| watch.fault(machine, plan, known_grid, kernel)).transpose()?.flatten();
        Ok(Launched { times, fault })
    }

    /// Looks at what kernels left on the first set: at every byte.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn inspect(&self, machine: &M, problem: &Problem, launched: Launched) -> Result<Execution> {
        let mut timings = self.timings;
        let mut outputs: Vec<Option<Data>> = problem.outputs.iter().map(|_| None).collect();
        let mut damage: Vec<String> = launched.fault.into_iter().collect();
        for resident in &self.residents {
            let start = Instant::now();
            let (packed, guards) = machine.download(&resident.buffers[0])?;
            timings.download += start.elapsed().as_secs_f64();
            let start = Instant::now();
            let names = |resident: &Resident<M>| {
                let names = resident.members.iter().map(|own| format!("`{}`", problem.stencil.fields[own.field].name));
                names.collect::<Vec<_>>().join(", ")
            };
            if !guards.intact() {
                damage.push(format!("{}: guard bytes were overwritten, {guards}", names(resident)));
            }
            // What the buffer should hold: what was there, but for the outputs.
            let mut expected = resident.packed.clone();
            for member in resident.members.iter().filter(|member| member.written) {
                let output = self.packing(member, problem).unpack(&packed);
                self.packing(member, problem).pack(&output, &mut expected);
                outputs[member.field.index()] = Some(output);
            }
            // All at once is quicker than byte by byte.
            if packed != expected
                && let Some(byte) = (0..packed.len()).find(|&byte| packed[byte] != expected[byte])
            {
                let input = resident.members.iter().find(|member| self.packing(member, problem).holds(byte));
                damage.push(match input {
                    Some(member) => {
                        format!("`{}`: an input was overwritten", problem.stencil.fields[member.field].name)
                    }
                    None if !resident.is_written() => {
                        format!("{}: an input was overwritten, at byte {byte} of its buffer", names(resident))
                    }
                    None => format!("{}: padding was overwritten at byte {byte} of its buffer", names(resident)),
                });
            }
            timings.unpack += start.elapsed().as_secs_f64();
        }
        for (number, table) in self.tables.iter().enumerate() {
            let (bytes, guards) = machine.download(table)?;
            if !guards.intact() || bytes != bytemuck::cast_slice::<i32, u8>(&self.layout.tables[number]) {
                damage.push(format!("the storage's table {number} was overwritten"));
            }
        }
        let (sets, set_bytes) = (self.sets, self.set_bytes);
        Ok(Execution { outputs, damage, launches: launched.times, sets, set_bytes, timings })
    }

    /// Keeps what the first set holds as what every kernel has to leave there. Without the memory for it, each kernel is
    /// inspected.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn remember(&mut self, machine: &M) -> Result<()> {
        let written = self.residents.iter().filter(|own| own.is_written());
        let fresh = written.map(|own| machine.upload(&own.packed)).collect::<Result<Vec<M::Buffer>>>();
        let mut right = Vec::new();
        for buffer in self.first_set().map(|(buffer, _)| buffer) {
            right.push(machine.upload(&machine.download(buffer)?.0));
        }
        let right = right.into_iter().collect::<Result<Vec<M::Buffer>>>();
        self.kept = fresh.ok().zip(right.ok()).map(|(fresh, right)| Kept { fresh, right });
        Ok(())
    }

    /// Whether the kernel left every byte as the one did that is remembered. If not, [`DeviceArrays::inspect`] says why, unless it
    /// is only one NaN in another's place.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn is_as_remembered(&self, machine: &M, same: &Same<M>, launched: &Launched) -> Result<bool> {
        let Some(kept) = self.kept.as_ref().filter(|_| launched.fault.is_none()) else { return Ok(false) };
        same.all(machine, self.first_set().zip(&kept.right).map(|((buffer, length), right)| (buffer, right, length)))
    }

    /// The buffers of the first set, tables among them, and how many bytes each has.
    fn first_set(&self) -> impl Iterator<Item = (&M::Buffer, usize)> {
        let residents = self.residents.iter().map(|own| (&own.buffers[0], own.packed.len()));
        let tables = self.layout.tables.iter().map(|table| size_of_val(&table[..]));
        residents.chain(self.tables.iter().zip(tables))
    }

    fn packing<'a>(&'a self, member: &Member, problem: &Problem) -> Packing<'a> {
        packing(&self.layout, self.fields, problem, member.field, member.slot)
    }

    #[allow(clippy::too_many_arguments, reason = "each is one thing that an argument may come from")]
    fn arguments(
        &self,
        machine: &M,
        plan: &Plan,
        known_grid: &KnownGrid,
        kernel: &Kernel,
        problem: &Problem,
        watch: Option<&Watch<M>>,
        set: usize,
    ) -> Vec<Arg> {
        let pointer = |field: FieldId, written: bool| {
            let found = self.residents.iter().find_map(|resident| {
                let member = resident.members.iter().find(|own| own.field == field && own.written == written)?;
                Some(machine.address(&resident.buffers[set], self.packing(member, problem).pointer()))
            });
            Arg::Pointer(found.unwrap_or(0))
        };
        let argument = |meaning: &Meaning| match meaning {
            Meaning::Input(field) => pointer(*field, false),
            Meaning::Output(field) => pointer(*field, true),
            Meaning::Documented | Meaning::Param(_) | Meaning::Size(_) | Meaning::Mesh(_) | Meaning::Step(_) => {
                plain_argument(plan, known_grid, &problem.params, meaning).unwrap_or(Arg::Pointer(0))
            }
            Meaning::Table(number) => Arg::Pointer(machine.address(&self.tables[*number], 0)),
            Meaning::Report => Arg::Pointer(watch.map_or(0, |watch| machine.address(&watch.report, 0))),
            Meaning::Columns => Arg::Pointer(watch.map_or(0, |watch| machine.address(&watch.columns, 0))),
        };
        kernel.parameters.iter().map(|parameter| argument(&parameter.meaning)).collect()
    }
}

/// An argument that is no address: a parameter of the stencil, or a size. Nothing of what is one.
pub(crate) fn plain_argument(plan: &Plan, known_grid: &KnownGrid, params: &[Value], meaning: &Meaning) -> Option<Arg> {
    let whole = |value: usize, wide: bool| if wide { Arg::I64(value as i64) } else { Arg::I32(value as i32) };
    let columns = || plan.storage.columns(&known_grid.region, &known_grid.layout);
    Some(match meaning {
        Meaning::Param(param) => {
            let kind = plan.stencil.params[*param].kind;
            number(*params.get(param.index())?, kind, plan.choices.precision)
        }
        Meaning::Size(size) => match size {
            Size::ColumnFirst(axis) => whole(columns()[*axis].start, false),
            Size::ColumnEnd(axis) => whole(columns()[*axis].end, false),
            Size::LevelFirst => whole(known_grid.region.k.start, false),
            Size::LevelEnd => whole(known_grid.region.k.end, false),
            Size::Levels => whole(known_grid.grid.nk, false),
            Size::Own(number) => whole(known_grid.layout.sizes[*number], plan.wide),
        },
        Meaning::Documented | Meaning::Input(_) | Meaning::Output(_) => return None,
        Meaning::Table(_) | Meaning::Report | Meaning::Columns | Meaning::Mesh(_) | Meaning::Step(_) => return None,
    })
}

fn residents<M: Machine>(
    plan: &Plan,
    known_grid: &KnownGrid,
    kernel: &Kernel,
    problem: &Problem,
) -> Result<Vec<Resident<M>>> {
    let mut residents: Vec<Resident<M>> = Vec::new();
    for parameter in &kernel.parameters {
        let (field, written, data) = match parameter.meaning {
            Meaning::Input(field) => (field, false, &problem.inputs[field.index()]),
            Meaning::Output(field) => (field, true, &problem.outputs[field.index()]),
            Meaning::Documented | Meaning::Param(_) | Meaning::Size(_) => continue,
            Meaning::Table(_) | Meaning::Report | Meaning::Columns | Meaning::Mesh(_) | Meaning::Step(_) => continue,
        };
        let Some(data) = data else { continue };
        let slot = plan.slots[&(field, written)];
        let packing = packing(&known_grid.layout, plan.choices.fields, problem, field, slot);
        let at = match residents.iter().position(|own| own.group == slot.group) {
            Some(at) => at,
            None => {
                let packed = memory::filled(PADDING, packing.bytes(), "the fields as the kernel has them")?;
                residents.push(Resident { group: slot.group, members: Vec::new(), packed, buffers: Vec::new() });
                residents.len() - 1
            }
        };
        packing.pack(data, &mut residents[at].packed);
        residents[at].members.push(Member { field, written, slot });
    }
    Ok(residents)
}

/// Where the cells of a field are.
fn packing<'a>(layout: &'a Layout, fields: Fields, problem: &Problem, field: FieldId, slot: FieldSlot) -> Packing<'a> {
    let declared = &problem.stencil.fields[field];
    let element = element_of(declared.stored, problem.precision);
    Packing::new(layout, problem.grid, declared.place, element, fields, slot)
}

fn number(value: Value, kind: Kind, precision: Precision) -> Arg {
    match (kind, precision) {
        (Kind::Real, Precision::F32) => Arg::F32(value.real() as f32),
        (Kind::Real, Precision::F64) => Arg::F64(value.real()),
        (Kind::Int, _) => Arg::I32(value.int()),
        (Kind::Bool, _) => Arg::U8(u8::from(value.truth())),
    }
}
