//! Stencils on grids: every kernel against the interpreter.

use super::compare::{self, differs};
use super::{Mismatch, Site, Sites, Subject, Verdict};
use crate::array::Data;
use crate::build::Build;
use crate::emulate::Source;
use crate::error::{Error, Result};
use crate::execute::{Execution, Repeat, execute};
use crate::interpreter::{self, Coverage};
use crate::machine::Machine;
use crate::problem::Problem;
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Form;
use stencilc_compiler::ir::Handle;
use stencilc_compiler::plan::{self, Choices, Math, Plan, Target};
use stencilc_compiler::source::Span;
use stencilc_compiler::storage::layouts::Layouts;

/// What the interpreter computed, and what makes it worth comparing with.
#[derive(Debug)]
pub struct Expected {
    /// By field: outputs in the user's order.
    pub outputs: Vec<Option<Data>>,
    /// Branches that were never taken: the condition's place, and the side.
    pub untaken: Vec<(Span, bool)>,
}

/// What the interpreter computes for `problem`.
///
/// # Errors
/// Too many values are not finite, or an output is the same everywhere: then a comparison would prove nothing.
pub fn expect(problem: &Problem, progress: &(dyn Fn(usize) + Sync)) -> Result<Expected> {
    let mut outputs = problem.outputs.clone();
    let inputs = problem.inputs();
    let job = problem.job(&inputs);
    interpreter::interpret(&job, &mut outputs, progress)?;
    for (id, field) in problem.stencil.fields.iter() {
        if let Some(data) = &outputs[id.index()] {
            let numbers = problem.region.numbers(problem.grid, field.place);
            compare::check_worth(&field.name, data, numbers)?;
        }
    }
    let Coverage { choices } = interpreter::cover(&job)?;
    let mut untaken = Vec::new();
    for choice in choices {
        match (choice.taken, choice.not_taken) {
            (0, 1..) => untaken.push((choice.span, true)),
            (1.., 0) => untaken.push((choice.span, false)),
            _ => {}
        }
    }
    Ok(Expected { outputs, untaken })
}

/// Where two arrays on a problem's grid differ.
pub fn compare(problem: &Problem, name: &str, expected: &Data, found: &Data) -> Option<Mismatch> {
    let place = problem.stencil.field_named(name).map(|id| problem.stencil.fields[id].place);
    let shape = place.map(|place| problem.grid.shape(place)).unwrap_or_default();
    let cell = |first: usize| match shape.as_slice() {
        [.., cells] if problem.grid.form == Form::Cells && place.is_some_and(|place| place.horizontal) => {
            format!("cell {}, k={}", first % cells, first / cells)
        }
        [_, nj, ni] => format!("i={}, j={}, k={}", first % ni, first / ni % nj, first / ni / nj),
        [_, ni] => format!("i={}, j={}", first % ni, first / ni),
        _ => format!("k={first}"),
    };
    Mismatch::of(name, [expected, found], |index| differs(expected, found, index), cell)
}

/// Plans a kernel for the problem at hand.
///
/// # Errors
/// The combination makes no sense for it.
pub fn plan_for(problem: &Problem, choices: &Choices) -> Result<Plan> {
    plan_among(problem, choices, None)
}

/// Plans one of many kernels for the problem at hand, which have `layouts` between them.
///
/// # Errors
/// The combination makes no sense for it.
pub fn plan_among(problem: &Problem, choices: &Choices, layouts: Option<&Layouts>) -> Result<Plan> {
    let Problem { grid, region, adjacency, sharing, .. } = problem;
    let (adjacency, sharing) = (adjacency.as_deref(), sharing.as_ref());
    let target = Target { grid: *grid, adjacency, region, levels_known: true, sharing, layouts };
    Ok(plan::plan(&problem.stencil, choices, Some(target))?)
}

/// A stencil on a grid, and what the interpreter computes of it.
#[derive(Clone, Copy)]
pub struct OfStencil<'a> {
    /// The stencil, the grid and the numbers.
    pub problem: &'a Problem,
    /// What the interpreter computes.
    pub expected: &'a Expected,
}

/// A stencil is no program that calls it once: programs know neither checked kernels, nor fields that lie together, nor a device's own
/// functions; and here the bytes around outputs and inputs are compared at once.
impl Subject for OfStencil<'_> {
    type Way = Choices;
    type Planned = (Plan, cuda::Kernel);

    fn plan(&self, choices: &Choices) -> Result<(Plan, cuda::Kernel)> {
        let plan = plan_for(self.problem, choices)?;
        // What can be planned can be printed.
        let kernel = cuda::print(&plan).map_err(|refusal| Error::check(refusal.message))?;
        Ok((plan, kernel))
    }

    fn texts<'a>(&self, (_, kernel): &'a (Plan, cuda::Kernel)) -> Vec<Source<'a>> {
        vec![Source::from(kernel)]
    }

    fn run<M: Build>(
        &self,
        (plan, kernel): &(Plan, cuda::Kernel),
        Sites { first: Site { machine, maker }, .. }: &Sites<M>,
    ) -> Result<Verdict> {
        let loaded = maker(&kernel.name, &kernel.text)?;
        judge(&**machine, plan, kernel, &loaded, self.problem, self.expected)
    }
}

/// Runs a kernel on a machine and compares every cell with the interpreter.
///
/// # Errors
/// The machine fails; what the kernel does wrong is no error.
pub fn judge<M: Machine>(
    machine: &M,
    plan: &Plan,
    kernel: &cuda::Kernel,
    loaded: &M::Kernel,
    problem: &Problem,
    expected: &Expected,
) -> Result<Verdict> {
    let execution = match execute(machine, plan, kernel, loaded, problem, Repeat::usual(1)) {
        Ok(execution) => execution,
        Err(error) => return Verdict::of_failure(error),
    };
    Ok(verdict(plan, problem, expected, &execution))
}

/// Compares every cell that a kernel computed with the interpreter.
pub fn verdict(plan: &Plan, problem: &Problem, expected: &Expected, execution: &Execution) -> Verdict {
    let mut mismatches = Vec::new();
    let (mut cells, mut differing, mut units) = (0, 0, 0);
    for (id, field) in problem.stencil.fields.iter() {
        if let (Some(expected), Some(found)) = (&expected.outputs[id.index()], &execution.outputs[id.index()]) {
            for index in problem.region.numbers(problem.grid, field.place) {
                cells += 1;
                differing += usize::from(differs(expected, found, index));
                units = units.max(expected.distance(found, index));
            }
            mismatches.extend(compare(problem, &field.name, expected, found));
        }
    }
    // A device's own functions excuse what is computed with them, and no cell that should not have been written.
    let is_device = plan.choices.math == Math::Device && problem.stencil.is_inexact();
    let excused = is_device && mismatches.iter().map(|mismatch| mismatch.cells).sum::<usize>() == differing;
    if excused && differing > 0 && execution.damage.is_empty() {
        return Verdict::Different { cells, differing, units };
    }
    Verdict::of(cells, mismatches, execution.damage.clone())
}
