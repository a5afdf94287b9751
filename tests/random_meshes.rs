//! Random stencils over random meshes, each computed by the evaluator and by the interpreter.

use rayon::prelude::*;
use std::collections::BTreeMap;
use stencilc_runtime::emulate::Compiler;
use stencilc_testing::over::case::{Case, Outcome};
use stencilc_testing::over::programs::Program;

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

/// How many programs are computed by kernels of several calls.
const BY_CHAINS: u64 = 40;

/// Names a number of them, and the seed of the first.
const VARIABLE_OF_CHAINS: &str = "STENCILC_RANDOM_MESH_PROGRAMS";

#[test]
fn kernels_compute_what_the_interpreter_does() {
    let given = std::env::var(VARIABLE_OF_KERNELS).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (stencils, first) = (given.next().unwrap_or(BY_KERNELS), given.next().unwrap_or(0));
    let compiler = Compiler::find().expect("there is a C++ compiler");
    let one = |seed: u64| (seed, Case::new(seed).compute_by_kernels(&compiler).expect("there is memory"));
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

#[test]
fn chains_compute_what_their_calls_do() {
    let given = std::env::var(VARIABLE_OF_CHAINS).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (programs, first) = (given.next().unwrap_or(BY_CHAINS), given.next().unwrap_or(0));
    let compiler = Compiler::find().expect("there is a C++ compiler");
    let one = |seed: u64| (seed, Program::new(seed).compute(&compiler).expect("there is memory"));
    let all: Vec<_> = (first..first + programs).into_par_iter().map(one).collect();
    let equal = all.iter().filter(|(_, (outcome, _))| *outcome == Outcome::Equal).count();
    let chains: usize = all.iter().map(|(_, (_, chains))| chains).sum();
    let failed = all.into_iter().filter_map(|(seed, (outcome, _))| match outcome {
        Outcome::Failed(message) => Some(format!("seed {seed}: {message}")),
        Outcome::Equal | Outcome::Nothing => None,
    });
    let failed: Vec<String> = failed.collect();
    println!("{equal} of {programs} equal, with {chains} chains");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed[..failed.len().min(SHOWN)].join("\n"));
    assert!(programs < BY_CHAINS || (equal > programs as usize * 2 / 3 && chains > programs as usize / 2));
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
