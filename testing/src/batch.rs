//! Many cases after each other, by one process: what a worker of `random-programs` does, and what the tests do.

use crate::subject::{Case, Failure, Outcome, shrink};
use crate::{case, over, time};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use stencilc_runtime::Result;
use stencilc_runtime::verify::{Tools, Verdict};

/// The longest that a failing program is made smaller.
const SHRINKING: Duration = Duration::from_secs(60);

/// What random programs are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// All that follow, by turns: six stencils, two programs and two over a mesh.
    All,
    /// Stencils on grids.
    Stencils,
    /// Programs on grids.
    Programs,
    /// Programs over meshes, those of one call among them.
    Meshes,
}

/// What became of many cases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Programs that were written.
    pub programs: u64,
    /// Programs on which interpreter and evaluator agree.
    pub agreed: u64,
    /// Programs whose kernels equal the interpreter.
    pub kernels: u64,
    /// Values of outputs that were compared between kernels and the interpreter.
    pub cells: u64,
    /// Programs of which both say that no cell can be computed.
    pub nothing: u64,
    /// Programs for which the choices make no sense.
    pub refused: u64,
    /// Programs that the checker rejected.
    pub rejected: u64,
    /// Programs that failed, those that were rejected among them.
    pub failures: u64,
    /// Seconds of all workers together: interpreter and evaluator, kernels, making smaller.
    pub seconds: [f64; 3],
    /// Of those that agree, how many have what.
    pub has: BTreeMap<String, u64>,
    /// How many kernels that are equal computed in which way.
    pub ways: BTreeMap<String, u64>,
    /// Each failing program as it was and made small: a name for it, and the text, headed by what failed.
    pub failed: Vec<(String, String)>,
}

impl Tally {
    /// What became of these cases and of others.
    pub fn and(mut self, other: Tally) -> Self {
        let Tally {
            programs,
            agreed,
            kernels,
            cells,
            nothing,
            refused,
            rejected,
            failures,
            seconds,
            has,
            ways,
            failed,
        } = other;
        self.programs += programs;
        self.agreed += agreed;
        self.kernels += kernels;
        self.cells += cells;
        self.nothing += nothing;
        self.refused += refused;
        self.rejected += rejected;
        self.failures += failures;
        self.seconds.iter_mut().zip(seconds).for_each(|(own, more)| *own += more);
        has.into_iter().for_each(|(what, count)| *self.has.entry(what).or_default() += count);
        ways.into_iter().for_each(|(way, count)| *self.ways.entry(way).or_default() += count);
        self.failed.extend(failed);
        self
    }

    fn fail<C: Case>(&mut self, case: &C, failure: &Failure, word: &str) {
        let (name, seed) = (C::NAME, case.seed());
        let mut text = format!("// random-programs --subject {name} --seed {seed} --programs 1\n");
        failure.to_string().lines().for_each(|line| text += &format!("// {line}\n"));
        self.failed.push((format!("{name}_{seed}{word}"), text + &case.text()));
    }
}

impl Subject {
    /// What each of these seeds is about.
    fn parts(self, seeds: &[u64]) -> [(Subject, Vec<u64>); 3] {
        let of = |seed: u64| match (self, seed % 10) {
            (Subject::All, 0..6) => Subject::Stencils,
            (Subject::All, 6..8) => Subject::Programs,
            (Subject::All, _) => Subject::Meshes,
            (own, _) => own,
        };
        [Subject::Stencils, Subject::Programs, Subject::Meshes]
            .map(|part| (part, seeds.iter().copied().filter(|&seed| of(seed) == part).collect()))
    }

    /// Computes the cases of some seeds in every way. What fails is made small.
    ///
    /// # Errors
    /// The device itself fails.
    pub fn run(self, seeds: impl IntoIterator<Item = u64>, tools: &Tools) -> Result<Tally> {
        let mut tally = Tally::default();
        for (part, seeds) in self.parts(&seeds.into_iter().collect::<Vec<_>>()) {
            tally = tally.and(match part {
                Subject::Programs => compute(seeds.into_iter().map(time::case::Case::new).collect(), tools)?,
                Subject::Meshes => compute(seeds.into_iter().map(over::case::Case::new).collect(), tools)?,
                Subject::All | Subject::Stencils => compute(seeds.into_iter().map(case::Case::new).collect(), tools)?,
            });
        }
        Ok(tally)
    }

    /// What is to be said of a program over which a process ended.
    pub fn crashed(self, seed: u64) -> Tally {
        fn fail<C: Case>(seed: u64) -> Tally {
            let mut tally = Tally { programs: 1, failures: 1, ..Tally::default() };
            tally.fail(&C::new(seed), &Failure::Kernel("the process that ran it ended".to_owned()), "_crash");
            tally
        }
        let parts = self.parts(&[seed]);
        match parts.iter().find(|(_, seeds)| !seeds.is_empty()) {
            Some((Subject::Programs, _)) => fail::<time::case::Case>(seed),
            Some((Subject::Meshes, _)) => fail::<over::case::Case>(seed),
            _ => fail::<case::Case>(seed),
        }
    }
}

/// Computes cases in every way. What fails is made small.
///
/// # Errors
/// The device itself fails.
pub fn compute<C: Case>(cases: Vec<C>, tools: &Tools) -> Result<Tally> {
    let mut tally = Tally { programs: cases.len() as u64, ..Tally::default() };
    let (mut of, mut ready, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let start = Instant::now();
    for case in cases {
        match case.prepare()? {
            Outcome::Ready(own) => {
                C::has(&own).into_iter().for_each(|what| *tally.has.entry(what).or_default() += 1);
                of.push(case);
                ready.push(own);
            }
            Outcome::Nothing => tally.nothing += 1,
            Outcome::Failed(failure) => failed.push((case, failure)),
        }
    }
    tally.agreed = ready.len() as u64;
    tally.seconds[0] = start.elapsed().as_secs_f64();
    let start = Instant::now();
    for (verdict, (ready, case)) in C::compare(&ready, tools)?.iter().zip(ready.iter().zip(of)) {
        match verdict {
            Verdict::Equal { .. } | Verdict::Within { .. } => {
                tally.kernels += 1;
                *tally.ways.entry(C::way(ready)).or_default() += 1;
            }
            Verdict::Refused { .. } => tally.refused += 1,
            Verdict::Compiled | Verdict::Skipped | Verdict::Different { .. } | Verdict::Failed { .. } => {}
        }
        if let Verdict::Equal { cells } = verdict {
            tally.cells += *cells as u64;
        }
        failed.extend(Failure::of(verdict).map(|failure| (case, failure)));
    }
    tally.seconds[1] = start.elapsed().as_secs_f64();
    let start = Instant::now();
    for (case, failure) in failed {
        tally.failures += 1;
        tally.rejected += u64::from(matches!(failure, Failure::Rejected(_)));
        tally.fail(&case, &failure, "");
        let (small, failure) = shrink(case, failure, tools, Some(Instant::now() + SHRINKING))?;
        tally.fail(&small, &failure, "_small");
    }
    tally.seconds[2] = start.elapsed().as_secs_f64();
    Ok(tally)
}
