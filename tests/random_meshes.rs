//! Random stencils over random meshes, each computed by the evaluator and by the interpreter.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use stencilc_runtime::emulate::Compiler;
use stencilc_testing::device::Device;
use stencilc_testing::over::case::{Case, Outcome};
use stencilc_testing::over::program::case::Case as Program;

/// How many stencils there are.
const STENCILS: u64 = 500;

/// So many failures are shown.
const SHOWN: usize = 5;

/// Names a number of stencils, and the seed of the first.
const VARIABLE: &str = "STENCILC_RANDOM_MESHES";

/// How many of them are computed by kernels, each of which is compiled.
const BY_KERNELS: u64 = 60;

/// Names a number of them, and the seed of the first.
const VARIABLE_OF_KERNELS: &str = "STENCILC_RANDOM_MESH_KERNELS";

/// How many programs there are; of every so many, kernels are computed, those of several calls among them.
const PROGRAMS: u64 = 1000;
const OF_KERNELS: u64 = 20;

/// Names a number of programs, and the seed of the first.
const VARIABLE_OF_PROGRAMS: &str = "STENCILC_RANDOM_MESH_PROGRAMS";

/// How long a program that fails is made smaller.
const SHRINKING: Duration = Duration::from_secs(20);

#[test]
fn kernels_compute_what_the_interpreter_does() {
    let given = std::env::var(VARIABLE_OF_KERNELS).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (stencils, first) = (given.next().unwrap_or(BY_KERNELS), given.next().unwrap_or(0));
    let device = Device::Emulator(Compiler::find().expect("there is a C++ compiler"));
    let one = |seed: u64| (seed, Case::new(seed).compute_by_kernels(&device).expect("there is memory"));
    let all: Vec<_> = (first..first + stencils).into_par_iter().map(one).collect();
    let equal = all.iter().filter(|(_, outcome)| *outcome == Outcome::Equal).count();
    let failed = all.into_iter().filter_map(|(seed, outcome)| match outcome {
        Outcome::Failed(message) => Some(format!("seed {seed}: {message}")),
        Outcome::Equal | Outcome::Nothing => None,
    });
    let failed: Vec<String> = failed.collect();
    println!("{equal} of {stencils} equal");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed[..failed.len().min(SHOWN)].join("\n"));
    assert!(stencils < BY_KERNELS || equal > stencils as usize * 2 / 3);
}

/// What became of a program.
#[derive(Default)]
struct Tally {
    equal: usize,
    by_kernels: usize,
    chains: usize,
    has: BTreeMap<&'static str, usize>,
    failed: Vec<String>,
}

impl Tally {
    fn joined(mut self, other: Tally) -> Tally {
        self.equal += other.equal;
        self.by_kernels += other.by_kernels;
        self.chains += other.chains;
        for (what, times) in other.has {
            *self.has.entry(what).or_default() += times;
        }
        self.failed.extend(other.failed);
        self
    }
}

fn program(seed: u64, device: &Device) -> Tally {
    let case = Program::new(seed);
    let mut tally = Tally::default();
    let fail = |message: String, by: Option<&Device>| {
        let small = case.shrunk(by, Instant::now() + SHRINKING).expect("it works");
        format!("seed {seed}: {message}\n{}", small.text())
    };
    match case.compute().expect("there is memory") {
        Outcome::Equal => {
            tally.equal = 1;
            case.has().for_each(|what| *tally.has.entry(what).or_default() += 1);
        }
        Outcome::Nothing => return tally,
        Outcome::Failed(message) => tally.failed.push(fail(message, None)),
    }
    if seed.is_multiple_of(OF_KERNELS) {
        let (outcome, chains) = case.compute_by_kernels(device).expect("the emulator works");
        match outcome {
            Outcome::Equal => (tally.by_kernels, tally.chains) = (1, chains),
            Outcome::Nothing => {}
            Outcome::Failed(message) => tally.failed.push(fail(message, Some(device))),
        }
    }
    tally
}

#[test]
fn programs_over_meshes_mean_the_same_in_every_way() {
    let given = std::env::var(VARIABLE_OF_PROGRAMS).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (programs, first) = (given.next().unwrap_or(PROGRAMS), given.next().unwrap_or(0));
    let device = Device::Emulator(Compiler::find().expect("there is a C++ compiler"));
    let all = (first..first + programs).into_par_iter().map(|seed| program(seed, &device));
    let Tally { equal, by_kernels, chains, has, failed } = all.reduce(Tally::default, Tally::joined);
    println!("{equal} of {programs} equal: {has:?}; {by_kernels} by kernels, with {chains} chains");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed[..failed.len().min(SHOWN)].join("\n"));
    if programs >= PROGRAMS {
        let programs = programs as usize;
        assert!(equal > programs * 9 / 10 && by_kernels > programs / 30 && chains > programs / 40);
        assert!(has.len() == 9 && has.values().all(|&times| times > programs / 20), "{has:?}");
    }
}

#[test]
fn stencils_over_meshes_mean_the_same_to_both() {
    let given = std::env::var(VARIABLE).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (stencils, first) = (given.next().unwrap_or(STENCILS), given.next().unwrap_or(0));
    let one = |seed: u64| {
        let case = Case::new(seed);
        (seed, case.compute().expect("there is memory"), case.has().collect::<Vec<_>>())
    };
    let all: Vec<_> = (first..first + stencils).into_par_iter().map(one).collect();
    let (mut equal, mut failed, mut has) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    for (seed, outcome, own) in all {
        match outcome {
            Outcome::Equal => {
                equal += 1;
                own.into_iter().for_each(|what| *has.entry(what).or_default() += 1);
            }
            Outcome::Nothing => {}
            Outcome::Failed(message) => failed.push(format!("seed {seed}: {message}")),
        }
    }
    println!("{equal} of {stencils} equal: {has:?}");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed[..failed.len().min(SHOWN)].join("\n"));
    if stencils >= STENCILS {
        let stencils = stencils as usize;
        assert!(equal > stencils * 9 / 10);
        assert!(has.len() == 7 && has.values().all(|&times| times > stencils / 20), "{has:?}");
    }
}
