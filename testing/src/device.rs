//! Kernels of many cases, compiled together, and each compared with the interpreter.

use crate::case::{Case, Failure, Ready};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::{Compiler, Emulator, Order, Settings, Source};
use stencilc_runtime::nvrtc::{self, Kind};
use stencilc_runtime::verify::{Verdict, judge};
use stencilc_runtime::{Fault, Result};

/// What became of a kernel.
#[derive(Clone, Debug)]
pub enum Compared {
    /// So many cells are equal, to the last bit.
    Equal(usize),
    /// Something is wrong.
    Failed(Failure),
}

/// What kernels are compiled for and run on.
pub enum Device {
    /// No device: interpreter and evaluator alone.
    None,
    /// The emulator.
    Emulator(Compiler),
    /// A GPU.
    Gpu(Arc<Gpu>),
}

impl Device {
    /// Compiles the kernels of all cases into one library and runs each. The answers are in the order of the cases.
    ///
    /// # Errors
    /// The device itself fails.
    pub fn compare(&self, cases: &[Ready]) -> Result<Vec<Compared>> {
        match self {
            Device::None => Ok(cases.iter().map(|_| Compared::Equal(0)).collect()),
            Device::Emulator(compiler) => emulate(compiler, cases),
            Device::Gpu(gpu) => on_gpu(gpu, cases),
        }
    }
}

fn emulate(compiler: &Compiler, cases: &[Ready]) -> Result<Vec<Compared>> {
    let sources: Vec<Source> = cases.iter().map(|ready| Source::from(&ready.kernel)).collect();
    let kernels = match compiler.build(&sources, &Settings::default()) {
        Ok(kernels) => kernels,
        Err(error) if error.fault == Fault::Check => {
            return halved(cases, error.message, &|part| emulate(compiler, part));
        }
        Err(error) => return Err(error),
    };
    let judged = cases.iter().zip(&kernels).map(|(ready, kernel)| {
        // Kernels without barriers do the same in every order, if they are right; each is tried at times.
        let order = Order::ALL[ready.case.seed as usize % Order::ALL.len()];
        judge(&Emulator::default().in_order(order), &ready.plan, &ready.kernel, kernel, &ready.problem, &ready.expected)
            .map(compared)
    });
    judged.collect()
}

fn on_gpu(gpu: &Gpu, cases: &[Ready]) -> Result<Vec<Compared>> {
    let image = match nvrtc::compile(&text(cases), "random.cu", &gpu.arch(), Kind::Cubin) {
        Ok(compiled) => compiled.image,
        Err(error) if error.fault == Fault::Check => return halved(cases, error.message, &|part| on_gpu(gpu, part)),
        Err(error) => return Err(error),
    };
    let module = gpu.load(&image)?;
    let judged = cases.iter().enumerate().map(|(number, ready)| {
        let kernel = module.kernel(&own_name(number))?;
        judge(gpu, &ready.plan, &ready.kernel, &kernel, &ready.problem, &ready.expected).map(compared)
    });
    judged.collect()
}

/// Finds out which of several kernels do not compile.
fn halved(
    cases: &[Ready],
    message: String,
    compare: &dyn Fn(&[Ready]) -> Result<Vec<Compared>>,
) -> Result<Vec<Compared>> {
    if cases.len() < 2 {
        return Ok(cases.iter().map(|_| Compared::Failed(Failure::Kernel(message.clone()))).collect());
    }
    let (left, right) = cases.split_at(cases.len() / 2);
    let mut answers = compare(left)?;
    answers.extend(compare(right)?);
    Ok(answers)
}

fn own_name(number: usize) -> String {
    format!("random_kernel_{number}")
}

/// One CUDA text of all kernels, each under a name of its own.
pub fn text(cases: &[Ready]) -> String {
    let mut text = String::new();
    for (number, Ready { kernel, .. }) in cases.iter().enumerate() {
        // C linkage knows no namespaces. Writing to a string cannot fail.
        let own = own_name(number);
        let _ = writeln!(
            text,
            "#define {0} {own}\nnamespace space_{number} {{\n{1}\n}}\n#undef {0}",
            kernel.name, kernel.text
        );
    }
    text
}

fn compared(verdict: Verdict) -> Compared {
    match verdict {
        Verdict::Equal { cells } => Compared::Equal(cells),
        Verdict::Failed { order, mismatches, damage } => {
            Compared::Failed(Failure::Device(format!("{order:?} {mismatches:?} {damage:?}")))
        }
        // `judge` compiles nothing and refuses nothing, and every case has the language's own functions.
        Verdict::Compiled
        | Verdict::Skipped
        | Verdict::Refused { .. }
        | Verdict::Different { .. }
        | Verdict::Within { .. } => Compared::Failed(Failure::Kernel("it was not run".into())),
    }
}

/// How many of the cases chose each storage, strategy, precision and so on.
pub fn knobs<'a>(cases: impl Iterator<Item = &'a Case>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for case in cases {
        let Choices { access, storage, neighbors, layout, run_width, short_last, fields, constant, .. } = &case.choices;
        let Choices { precision, contract, block, wide, checked, math, .. } = &case.choices;
        let chosen = [
            format!("storage {storage}"),
            format!("access {access}"),
            format!("neighbors {}", neighbors.name()),
            format!("layout {layout}"),
            format!("run width {run_width}"),
            format!("short last {short_last}"),
            format!("fields {}", fields.name()),
            format!("constant {constant}"),
            format!("precision {}", precision.name()),
            format!("contract {contract}"),
            format!("block {block:?}"),
            format!("wide {wide}"),
            format!("checked {checked}"),
            format!("math {}", math.name()),
        ];
        let settings = case.choices.settings().map(|(knob, setting)| format!("{} {setting}", knob.name));
        for chosen in chosen.into_iter().chain(settings) {
            *counts.entry(chosen).or_insert(0) += 1;
        }
    }
    counts
}
