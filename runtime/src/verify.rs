//! Verification: every kernel against the interpreter, bit for bit.

use crate::array::Data;
use crate::cache::compile_cached;
use crate::cuda::Gpu;
use crate::emulate::{Compiler, Emulator, Order, Settings, Source};
use crate::error::{Error, Fault, Result};
use crate::execute::{Execution, Repeat, execute};
use crate::interpreter::{self, Coverage};
use crate::machine::Machine;
use crate::nvrtc::Kind as Image;
use crate::problem::Problem;
use serde::Serialize;
use std::fmt;
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Form;
use stencilc_compiler::ir::{Handle, Place};
use stencilc_compiler::plan::{self, Choices, Math, Plan, Target};
use stencilc_compiler::source::Span;
use stencilc_compiler::storage::layouts::Layouts;

/// Of computed values, at most this part may be no finite numbers: else a comparison says nothing.
const NOT_FINITE: f64 = 0.01;

/// What the interpreter computed, and what makes it worth comparing with.
#[derive(Debug)]
pub struct Expected {
    /// By field: outputs in the user's order.
    pub outputs: Vec<Option<Data>>,
    /// Branches that were never taken: the condition's place, and the side.
    pub untaken: Vec<(Span, bool)>,
}

/// Where a kernel and the interpreter differ.
#[derive(Clone, Debug, Serialize)]
pub struct Mismatch {
    /// The output.
    pub field: String,
    /// The first cell that differs, as (i, j, k) where the field has these axes.
    pub cell: String,
    /// How many cells differ.
    pub cells: usize,
    /// The interpreter's value.
    pub expected: f64,
    /// The interpreter's value's bits.
    pub expected_bits: String,
    /// The kernel's value.
    pub found: f64,
    /// The kernel's value's bits.
    pub found_bits: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, cell, cells, expected, found, .. } = self;
        let cells = if *cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
        write!(f, "`{field}` differs on {cells}, first at {cell}: {found} instead of {expected}")
    }
}

/// What came of one combination.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Verdict {
    /// Equal, to the last bit.
    Equal {
        /// Cells that were compared.
        cells: usize,
    },
    /// Not equal, as is to be expected of a device's own functions.
    Different {
        /// Cells that were compared.
        cells: usize,
        /// How many of them differ.
        differing: usize,
        /// The largest difference in units in the last place: how many numbers further on in the order of all numbers.
        /// NaN is beyond all others.
        units: u64,
    },
    /// Compiled by NVRTC, but there is no GPU to run it.
    Compiled,
    /// The combination makes no sense.
    Refused {
        /// Why.
        reason: String,
    },
    /// Something differs or was damaged.
    Failed {
        /// On the emulator: the order of threads in which it happened.
        #[serde(skip_serializing_if = "Option::is_none")]
        order: Option<Order>,
        /// Values that differ.
        mismatches: Vec<Mismatch>,
        /// Bytes that should not have been written, or why it did not run.
        damage: Vec<String>,
    },
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
            check_worth(problem, &field.name, field.place, data)?;
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

/// Whether a comparison of what an output holds would prove something.
///
/// # Errors
/// It would not: too much of it is not finite, or all the same.
pub(crate) fn check_worth(problem: &Problem, name: &str, place: Place, data: &Data) -> Result<()> {
    let (mut count, mut not_finite, mut first, mut constant) = (0usize, 0usize, None, true);
    for index in problem.region.numbers(problem.grid, place) {
        let bits = data.bits(index);
        count += 1;
        not_finite += usize::from(!data.get(index).is_finite());
        constant &= *first.get_or_insert(bits) == bits;
    }
    if not_finite as f64 > NOT_FINITE * count as f64 {
        return Err(Error::check(format!("{not_finite} of the {count} values of `{name}` are not finite"))
            .help("declare a range for the inputs that need one, as in `in rho = 0.5..1.5`, or set parameters"));
    }
    if constant && count > 1 {
        return Err(Error::check(format!("all {count} values of `{name}` are the same"))
            .help("a comparison would prove nothing: declare ranges for the inputs, or set parameters"));
    }
    Ok(())
}

/// Where two arrays differ.
pub fn compare(problem: &Problem, name: &str, expected: &Data, found: &Data) -> Option<Mismatch> {
    let differing = |index: &usize| expected.bits(*index) != found.bits(*index);
    let first = (0..expected.len()).find(differing)?;
    let cells = (first..expected.len()).filter(differing).count();
    let place = problem.stencil.field_named(name).map(|id| problem.stencil.fields[id].place);
    let shape = place.map(|place| problem.grid.shape(place)).unwrap_or_default();
    let cell = match shape.as_slice() {
        [.., cells] if problem.grid.form == Form::Cells && place.is_some_and(|place| place.horizontal) => {
            format!("cell {}, k={}", first % cells, first / cells)
        }
        [_, nj, ni] => format!("i={}, j={}, k={}", first % ni, first / ni % nj, first / ni / nj),
        [_, ni] => format!("i={}, j={}", first % ni, first / ni),
        _ => format!("k={first}"),
    };
    let hex = |data: &Data| match data {
        Data::F64(v) => format!("{:#018x}", v[first].to_bits()),
        Data::F32(v) => format!("{:#010x}", v[first].to_bits()),
        Data::I32(v) => format!("{:#010x}", v[first]),
        Data::Bool(v) => format!("{:#04x}", v[first]),
    };
    Some(Mismatch {
        field: name.to_owned(),
        cell,
        cells,
        expected: expected.get(first),
        expected_bits: hex(expected),
        found: found.get(first),
        found_bits: hex(found),
    })
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

/// Compiles one combination with NVRTC, runs it where there is a GPU, and compares every cell with the interpreter.
///
/// # Errors
/// NVRTC or the GPU is missing or fails.
pub fn verify(
    problem: &Problem,
    expected: &Expected,
    choices: &Choices,
    gpu: Option<&Gpu>,
    arch: &str,
) -> Result<Verdict> {
    let plan = match plan_for(problem, choices) {
        Ok(plan) => plan,
        Err(error) => return Ok(Verdict::Refused { reason: error.message }),
    };
    let kernel = cuda::print(&plan).map_err(Error::from)?;
    let built = compile_cached(&kernel.text, &format!("{}.cu", problem.stencil.name), arch, Image::Cubin)?;
    let Some(gpu) = gpu else { return Ok(Verdict::Compiled) };
    let loaded = gpu.load(&built.compiled.image)?.kernel(&kernel.name)?;
    judge(gpu, &plan, &kernel, &loaded, problem, expected)
}

/// Compiles several combinations into one library for the emulator, runs each in every order of threads, and compares
/// every cell with the interpreter. The verdicts are in the order of the choices.
///
/// # Errors
/// The C++ compiler fails.
pub fn verify_emulated(
    problem: &Problem,
    expected: &Expected,
    choices: &[Choices],
    compiler: &Compiler,
    settings: &Settings,
) -> Result<Vec<Verdict>> {
    let mut kernels = Vec::new();
    for choices in choices {
        kernels.push(match plan_for(problem, choices) {
            Ok(plan) => {
                let kernel = cuda::print(&plan).map_err(Error::from)?;
                Ok((plan, kernel))
            }
            Err(error) => Err(Verdict::Refused { reason: error.message }),
        });
    }
    let sources: Vec<Source> = kernels.iter().flatten().map(|(_, kernel)| Source::from(kernel)).collect();
    let mut loaded = compiler.build(&sources, settings)?.into_iter();
    let mut verdicts = Vec::new();
    for kernel in kernels {
        let (plan, kernel) = match kernel {
            Ok(kernel) => kernel,
            Err(refused) => {
                verdicts.push(refused);
                continue;
            }
        };
        let loaded = loaded.next().ok_or_else(|| Error::check("the compiler made fewer kernels than it was given"))?;
        let mut verdict = Verdict::Equal { cells: 0 };
        for order in Order::ALL {
            verdict = judge(&Emulator::default().in_order(order), &plan, &kernel, &loaded, problem, expected)?;
            if let Verdict::Failed { order: failed, .. } = &mut verdict {
                *failed = Some(order);
                break;
            }
        }
        verdicts.push(verdict);
    }
    Ok(verdicts)
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
        Err(error) if error.fault == Fault::Check => {
            return Ok(Verdict::Failed { order: None, mismatches: Vec::new(), damage: vec![error.message] });
        }
        Err(error) => return Err(error),
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
                differing += usize::from(expected.bits(index) != found.bits(index));
                units = units.max(expected.distance(found, index));
            }
            mismatches.extend(compare(problem, &field.name, expected, found));
        }
    }
    // A device's own functions excuse what is computed with them, and no cell that should not have been written.
    let is_device = plan.choices.math == Math::Device && problem.stencil.is_inexact();
    let excused = is_device && mismatches.iter().map(|mismatch| mismatch.cells).sum::<usize>() == differing;
    if mismatches.is_empty() && execution.damage.is_empty() {
        Verdict::Equal { cells }
    } else if excused && execution.damage.is_empty() {
        Verdict::Different { cells, differing, units }
    } else {
        Verdict::Failed { order: None, mismatches, damage: execution.damage.clone() }
    }
}
