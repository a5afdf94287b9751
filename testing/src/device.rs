//! Kernels of many cases, compiled together, and each compared with the interpreter.

use crate::case::{Case, Failure, Ready};
use std::collections::BTreeMap;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::emulate::{Compiler, Emulator, Order, Settings, Source};
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
        }
    }
}

fn emulate(compiler: &Compiler, cases: &[Ready]) -> Result<Vec<Compared>> {
    let sources: Vec<Source> = cases.iter().map(|ready| Source::from(&ready.kernel)).collect();
    let kernels = match compiler.build(&sources, &Settings::default()) {
        Ok(kernels) => kernels,
        // One of them does not compile: which?
        Err(error) if error.fault == Fault::Check && cases.len() == 1 => {
            return Ok(vec![Compared::Failed(Failure::Kernel(error.message))]);
        }
        Err(error) if error.fault == Fault::Check => {
            let (left, right) = cases.split_at(cases.len() / 2);
            let mut answers = emulate(compiler, left)?;
            answers.extend(emulate(compiler, right)?);
            return Ok(answers);
        }
        Err(error) => return Err(error),
    };
    cases
        .iter()
        .zip(&kernels)
        .map(|(ready, kernel)| {
            // Kernels without barriers do the same in every order, if they are right; each is tried at times.
            let order = Order::ALL[ready.case.seed as usize % Order::ALL.len()];
            let verdict =
                judge(&Emulator { order }, &ready.plan, &ready.kernel, kernel, &ready.problem, &ready.expected)?;
            Ok(compared(verdict))
        })
        .collect()
}

fn compared(verdict: Verdict) -> Compared {
    match verdict {
        Verdict::Equal { cells } => Compared::Equal(cells),
        Verdict::Failed { order, mismatches, damage } => {
            Compared::Failed(Failure::Device(format!("{order:?} {mismatches:?} {damage:?}")))
        }
        // `judge` compiles nothing and refuses nothing.
        Verdict::Compiled | Verdict::Refused { .. } => Compared::Failed(Failure::Kernel("it was not run".into())),
    }
}

/// How many of the cases chose each storage, strategy, precision and so on.
pub fn knobs<'a>(cases: impl Iterator<Item = &'a Case>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for case in cases {
        let Choices { access, storage, precision, contract, block, slice, wide, checked } = &case.choices;
        let chosen = [
            format!("storage {storage}"),
            format!("access {access}"),
            format!("precision {}", precision.name()),
            format!("contract {contract}"),
            format!("block {block:?}"),
            format!("slice {slice}"),
            format!("wide {wide}"),
            format!("checked {checked}"),
        ];
        for chosen in chosen {
            *counts.entry(chosen).or_insert(0) += 1;
        }
    }
    counts
}
