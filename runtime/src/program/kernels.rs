//! Programs on a machine: a kernel a call, and one that fills halos.

use super::ProgramProblem;
use super::driver::Backend;
use super::fill::{self, Filling};
use super::halo;
use crate::array::{Data, Element};
use crate::error::{Error, Result};
use crate::execute::plain_argument;
use crate::machine::{Arg, Launch, Machine};
use crate::pack::{PADDING, Packing};
use crate::problem::element_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stencilc_compiler::cuda::{self, What};
use stencilc_compiler::ir::{FieldId, Handle, VariableId};
use stencilc_compiler::plan::{self, Choices, Fixed, Plan, Target};
use stencilc_compiler::storage::Layout;
use stencilc_compiler::storage::fields::{Fields, Seat};
use stencilc_compiler::storage::sharing::Sharing;

/// A text to compile.
pub struct Text {
    /// The name of the kernel in it.
    pub name: String,
    /// CUDA C++.
    pub text: String,
}

/// The kernels of a program: a plan and a text for each of its stages.
pub struct Planned {
    plans: Vec<(Plan, cuda::Kernel)>,
    layout: Arc<Layout>,
    /// The types of elements whose halos are filled.
    fills: BTreeSet<&'static str>,
    elements: Vec<Element>,
}

impl Planned {
    /// Plans a kernel for each stage.
    ///
    /// # Errors
    /// A choice makes no sense for one of them.
    pub fn new(problem: &ProgramProblem, choices: &Choices) -> Result<Self> {
        if choices.fields != Fields::Soa {
            return Err(Error::call("the fields of a program lie each by itself").help("leave out --fields"));
        }
        if choices.checked {
            return Err(
                Error::call("--checked is for single stencils").help("run the stencil that is wrong: --stencil NAME")
            );
        }
        let staged = &problem.staged;
        let mut choices = choices.clone();
        // Rows start aligned where all stages compute the same columns.
        let first = staged.stages.first().map(|stage| (&stage.region.i, &stage.region.j, &stage.region.cells));
        let are_alike =
            staged.stages.iter().all(|stage| Some((&stage.region.i, &stage.region.j, &stage.region.cells)) == first);
        if !are_alike {
            choices.share = vec![staged.program.name.clone()];
        }
        let computed = staged.stages.iter().map(|stage| stage.region.column_numbers(staged.grid).into()).collect();
        let smallest = staged.stages.iter().map(|stage| stage.stencil.smallest(staged.precision)).min().unwrap_or(8);
        let sharing = Sharing { computed, smallest };
        let mut plans = Vec::new();
        for stage in &staged.stages {
            let target = Target {
                grid: staged.grid,
                adjacency: problem.adjacency.as_deref(),
                region: &stage.region,
                levels_known: true,
                sharing: Some(&sharing),
                layouts: None,
            };
            let plan = plan::plan(&stage.stencil, &choices, Some(target))?;
            let kernel = cuda::print(&plan)?;
            plans.push((plan, kernel));
        }
        let layouts = plans.iter().filter_map(|(plan, _)| plan.fixed.as_ref()).map(|fixed| &fixed.layout);
        let layout = layouts.clone().next().cloned();
        let layout = layout.ok_or_else(|| Error::input(format!("program `{}` calls nothing", staged.program.name)))?;
        if layouts.clone().any(|own| own.columns != layout.columns || own.plane != layout.plane) {
            return Err(Error::check("the stages of a program have different layouts"));
        }
        let needing = staged.program.variables.iter().filter(|(id, _)| staged.needs_halo(*id));
        let elements: Vec<Element> = needing.map(|(_, own)| element_of(own.stored, staged.precision)).collect();
        let fills = elements.iter().map(|element| element.name()).collect();
        Ok(Self { plans, layout, fills, elements })
    }

    /// The texts to compile.
    pub fn texts(&self) -> Vec<Text> {
        let kernels =
            self.plans.iter().map(|(_, kernel)| Text { name: kernel.name.clone(), text: kernel.text.clone() });
        let fills = self.fill_elements().map(|element| Text { name: fill::name(element), text: fill::text(element) });
        kernels.chain(fills).collect()
    }

    /// Each type of elements whose halos are filled, once.
    fn fill_elements(&self) -> impl Iterator<Item = Element> {
        let mut seen = BTreeSet::new();
        self.elements
            .iter()
            .copied()
            .filter(move |element| self.fills.contains(element.name()) && seen.insert(element.name()))
    }
}

/// A kernel of a stage on a machine.
struct Loaded<M: Machine> {
    kernel: M::Kernel,
    launch: Launch,
    tables: Vec<M::Buffer>,
}

/// Computes stages with kernels.
pub struct Kernels<'a, M: Machine> {
    machine: &'a M,
    problem: &'a ProgramProblem,
    planned: &'a Planned,
    stages: Vec<Loaded<M>>,
    fillings: BTreeMap<VariableId, Filling<M>>,
    fills: BTreeMap<&'static str, M::Kernel>,
}

impl<'a, M: Machine> Kernels<'a, M> {
    /// On a machine that has loaded the kernels of [`Planned::texts`], in this order.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(
        machine: &'a M,
        problem: &'a ProgramProblem,
        planned: &'a Planned,
        loaded: Vec<M::Kernel>,
    ) -> Result<Self> {
        let mut loaded = loaded.into_iter();
        let missing = || Error::check("fewer kernels were compiled than there are");
        let mut stages = Vec::new();
        for (plan, _) in &planned.plans {
            let fixed = fixed(plan)?;
            let tables = fixed.layout.tables.iter().map(|table| machine.upload(bytemuck::cast_slice(table)));
            stages.push(Loaded {
                kernel: loaded.next().ok_or_else(missing)?,
                launch: Launch::new(plan.launch(fixed)?, plan.choices.block),
                tables: tables.collect::<Result<Vec<M::Buffer>>>()?,
            });
        }
        let mut fills = BTreeMap::new();
        for element in planned.fill_elements() {
            fills.insert(element.name(), loaded.next().ok_or_else(missing)?);
        }
        let mut fillings = BTreeMap::new();
        for (id, _) in problem.staged.program.variables.iter() {
            if let Some(filling) = Filling::new(machine, problem, &planned.layout, id)? {
                fillings.insert(id, filling);
            }
        }
        Ok(Self { machine, problem, planned, stages, fillings, fills })
    }

    fn packing(&self, variable: VariableId) -> Packing<'_> {
        let staged = &self.problem.staged;
        let own = &staged.program.variables[variable];
        let element = element_of(own.stored, staged.precision);
        let seat = Seat { group: 0, number: 0, fields: 1 };
        Packing::new(&self.planned.layout, staged.grid, own.place, element, Fields::Soa, seat)
    }

    fn arguments(
        &self,
        stage: usize,
        reads: &[(FieldId, &M::Buffer)],
        writes: &[(FieldId, &M::Buffer)],
    ) -> Result<Vec<Arg>> {
        let (plan, kernel) = &self.planned.plans[stage];
        let own = &self.problem.staged.stages[stage];
        let pointer = |field: FieldId, among: &[(FieldId, &M::Buffer)], seat: Option<VariableId>| {
            let (_, buffer) = among.iter().find(|(id, _)| *id == field)?;
            Some(Arg::Pointer(self.machine.address(buffer, self.packing(seat?).pointer())))
        };
        let fixed = fixed(plan)?;
        let argument = |what: What| match what {
            What::Input(field) => pointer(field, reads, own.call.fields[field.index()].read),
            What::Output(field) => pointer(field, writes, own.call.fields[field.index()].written),
            What::Table(number) => Some(Arg::Pointer(self.machine.address(&self.stages[stage].tables[number], 0))),
            What::Param(_) | What::Size(_) | What::Report | What::Columns => {
                plain_argument(plan, fixed, &own.params, what)
            }
        };
        let arguments = kernel.parameters.iter().map(|parameter| argument(parameter.what));
        let missing = || Error::check(format!("an argument of the kernel `{}` is missing", kernel.name));
        arguments.collect::<Option<Vec<Arg>>>().ok_or_else(missing)
    }
}

fn fixed(plan: &Plan) -> Result<&Fixed> {
    plan.fixed.as_ref().ok_or_else(|| Error::check("a kernel for any grid has no layout"))
}

impl<M: Machine> Backend for Kernels<'_, M> {
    type Buffer = M::Buffer;

    fn load(&self, variable: VariableId, data: &Data) -> Result<M::Buffer> {
        let place = self.problem.staged.program.variables[variable].place;
        let packing = self.packing(variable);
        let mut packed = vec![PADDING; packing.bytes()];
        packing.pack(&halo::widened(&self.problem.staged, place, data), &mut packed);
        self.machine.upload(&packed)
    }

    fn read(&self, variable: VariableId, buffer: &M::Buffer) -> Result<Data> {
        let own = &self.problem.staged.program.variables[variable];
        let (packed, guards) = self.machine.download(buffer)?;
        if !guards.intact() {
            return Err(Error::check(format!("the kernel is wrong: `{}`: {guards}", own.name))
                .help("this is a fault of the compiler; please report it"));
        }
        Ok(halo::narrowed(&self.problem.staged, own.place, &self.packing(variable).unpack(&packed)))
    }

    fn fill_halo(&self, variable: VariableId, buffer: &M::Buffer) -> Result<()> {
        let Some(filling) = self.fillings.get(&variable) else { return Ok(()) };
        let kernel = self.fills.get(filling.element.name());
        let kernel = kernel.ok_or_else(|| Error::check("there is no kernel that fills halos"))?;
        filling.fill(self.machine, kernel, buffer, &self.packing(variable))
    }

    fn copy(&self, from: &M::Buffer, to: &M::Buffer) -> Result<()> {
        self.machine.copy(from, to)
    }

    fn compute(&self, stage: usize, reads: &[(FieldId, &M::Buffer)], writes: &[(FieldId, &M::Buffer)]) -> Result<()> {
        let own = &self.stages[stage];
        self.machine.launch(&own.kernel, &own.launch, &self.arguments(stage, reads, writes)?)
    }
}
