//! Random programs in time, each computed by the evaluator, by the interpreter, fused in every way, and some of them by
//! kernels.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use stencilc_runtime::emulate::Compiler;
use stencilc_runtime::program::plan::PlanKind;
use stencilc_testing::device::Device;
use stencilc_testing::time::case::{Case, Outcome};
use stencilc_testing::time::generate::Kind;
use stencilc_testing::time::shrink::shrink;

/// How many programs there are; of every so many, plans are computed, too.
const PROGRAMS: u64 = 3000;
const OF_PLANS: u64 = 200;

/// One program more for every so many is such that warps can walk down its rows; of all these plans are computed.
const CIRCLES: u64 = 100;

/// So many failures are shown.
const SHOWN: usize = 10;

/// Names a number of programs, and the seed of the first.
const VARIABLE: &str = "STENCILC_RANDOM_TIMES";

/// What became of a program, and of its plans.
#[derive(Default)]
struct Tally {
    equal: usize,
    nothing: usize,
    /// Programs of which fusing makes fewer stages.
    fused: usize,
    plans: BTreeMap<&'static str, usize>,
    failed: Vec<String>,
}

impl Tally {
    fn joined(mut self, other: Tally) -> Tally {
        self.equal += other.equal;
        self.nothing += other.nothing;
        self.fused += other.fused;
        for (plan, times) in other.plans {
            *self.plans.entry(plan).or_default() += times;
        }
        self.failed.extend(other.failed);
        self
    }
}

fn one(seed: u64, kind: Kind, device: &Device) -> Tally {
    let case = Case::new(seed, kind);
    let mut tally = Tally::default();
    let failure = match case.compute().expect("there is memory") {
        Outcome::Nothing => {
            tally.nothing = 1;
            None
        }
        Outcome::Failed(failure) => Some(failure),
        Outcome::Equal { reference, saved } => {
            tally.equal = 1;
            tally.fused = usize::from(saved > 0);
            match case.compare(&reference, device).expect("the emulator works") {
                Ok(plans) => {
                    plans.iter().for_each(|plan| *tally.plans.entry(plan.name()).or_default() += 1);
                    None
                }
                Err(failure) => Some(failure),
            }
        }
    };
    if let Some(failure) = failure {
        let deadline = Instant::now() + Duration::from_secs(20);
        let (small, failure) = shrink(case, failure, deadline, &|case| case.failure(device)).expect("it works");
        tally.failed.push(format!("seed {seed}: {failure}\n{}", small.text()));
    }
    tally
}

#[test]
fn programs_in_time_mean_the_same_in_every_way() {
    let given = std::env::var(VARIABLE).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (programs, first) = (given.next().unwrap_or(PROGRAMS), given.next().unwrap_or(0));
    let emulator = Device::Emulator(Compiler::find().expect("a C++ compiler is needed: install g++"));
    let any = |seed: u64| one(seed, Kind::Any, if seed.is_multiple_of(OF_PLANS) { &emulator } else { &Device::None });
    let circles = |seed: u64| one(seed, Kind::Circles, &emulator);
    let all = (first..first + programs).into_par_iter();
    let of = |seed: u64| match seed.is_multiple_of(CIRCLES) {
        true => any(seed).joined(circles(seed)),
        false => any(seed),
    };
    let total = all.map(of).reduce(Tally::default, Tally::joined);
    let Tally { equal, nothing, fused, plans, failed } = total;
    println!("{equal} equal, {fused} of them fused, {plans:?}, {nothing} have no meaning");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed[..failed.len().min(SHOWN)].join("\n"));
    if programs >= PROGRAMS {
        let programs = programs as usize;
        assert!(equal > programs / 2 && fused > programs / 5);
        for plan in PlanKind::ALL {
            assert!(plans.get(plan.name()).is_some_and(|&times| times > 2), "{}: {plans:?}", plan.name());
        }
    }
}
