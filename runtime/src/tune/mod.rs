//! Finds the fastest kernel of a problem, and remembers it.
//!
//! ```text
//! search: which kernels are worth a try -> Kernels: compiled and timed -> the fastest, measured as `bench` does, compared
//! with the interpreter -> database: one entry a stencil, precision and grid
//! ```

pub mod database;
pub mod search;
#[cfg(test)]
mod tests;

use crate::bench::rows::{Method, Outcome, Row};
use crate::bench::sweep::{Sweep, Swept, layout};
use crate::bench::{Candidate, Stages, date};
use crate::clock::Budget;
use crate::error::{Error, Fault, Result};
use rayon::prelude::*;
use search::{Found, Trial, search};
use stencilc_compiler::plan::Choices;

/// Kernels that are compiled together, a core.
const TOGETHER: usize = 2;

/// Launches that say roughly how long a kernel takes, after one that says whether it is worth them.
const ROUGHLY: usize = 7;

/// So many of the fastest kernels are measured again, exactly, if by the rough times they are close.
const FINALISTS: usize = 8;

/// What is close, as a multiple of the fastest time.
const CLOSE: f64 = 1.05;

/// How often finalists take turns: clocks change while they are measured.
const TURNS: usize = 2;

/// A problem to be tuned.
pub struct Tuner<'a> {
    /// What is measured, and how the finalists are.
    pub sweep: Sweep<'a>,
    /// The time for the search. Finalists are measured after it.
    pub budget: Budget<'a>,
}

/// What came of tuning.
#[derive(Debug)]
pub struct Tuned {
    /// The finalists, exactly measured; and what failed or makes no sense.
    pub swept: Swept,
    /// What the search found.
    pub found: Found,
}

impl Tuner<'_> {
    /// Searches among kernels; `progress` is called after each that was tried.
    ///
    /// # Errors
    /// The machine cannot be used any more, or no kernel works.
    pub fn run(&self, kernels: &[Choices], progress: &(dyn Fn() + Sync)) -> Result<Tuned> {
        let mut trial = Kernels { tuner: self, stages: Stages::default(), swept: Swept::default(), progress };
        let found = search(kernels, &mut trial)?;
        let best = found.times.first().map_or(0.0, |&(_, time)| time);
        let close = found.times.iter().take_while(|&&(_, time)| time <= CLOSE * best);
        let finalists: Vec<&Choices> = close.take(FINALISTS).map(|&(kernel, _)| &kernels[kernel]).collect();
        trial.finish(&finalists)?;
        Ok(Tuned { swept: trial.swept, found })
    }
}

/// Kernels as they are timed.
struct Kernels<'a> {
    tuner: &'a Tuner<'a>,
    stages: Stages,
    swept: Swept,
    progress: &'a (dyn Fn() + Sync),
}

impl Trial for Kernels<'_> {
    fn estimates(&mut self, kernels: &[&Choices]) -> Result<Vec<Option<f64>>> {
        let Sweep { case, platform, .. } = &self.tuner.sweep;
        let estimates: Vec<Result<f64>> = kernels.par_iter().map(|choices| case.estimate(choices, platform)).collect();
        Ok(estimates.into_iter().map(|own| own.inspect_err(|error| self.swept.refuse(error)).ok()).collect())
    }

    fn times(&mut self, kernels: &[&Choices], enough: f64) -> Result<Vec<Option<f64>>> {
        let mut times = vec![None; kernels.len()];
        let mut ready = self.compiled(kernels, Some(self.tuner.budget))?;
        // Kernels of one layout run on the same fields.
        ready.sort_by_cached_key(|(kernel, _)| layout(kernels[*kernel]));
        for (kernel, candidate) in ready {
            (self.progress)();
            if self.is_over() {
                break;
            }
            let mut time = self.time(&candidate, 1)?;
            if time.is_some_and(|time| time <= enough) {
                time = self.time(&candidate, ROUGHLY)?;
            }
            times[kernel] = time;
        }
        Ok(times)
    }

    fn together(&self) -> usize {
        TOGETHER * rayon::current_num_threads()
    }

    fn is_over(&self) -> bool {
        self.tuner.budget.is_over()
    }
}

impl Kernels<'_> {
    /// Those of the kernels that can be compiled, as long as there is time if a budget says how much there is, each with its place.
    ///
    /// # Errors
    /// The machine does not allow it, whichever kernel it is: its disk is full.
    fn compiled(&mut self, kernels: &[&Choices], budget: Option<Budget>) -> Result<Vec<(usize, Candidate)>> {
        let (Sweep { case, platform, .. }, progress) = (&self.tuner.sweep, self.progress);
        let compile = |choices: &&Choices| -> Option<Result<Candidate>> {
            let is_late = budget.is_some_and(|budget| budget.is_over());
            let candidate = (!is_late).then(|| {
                let mut candidate = Candidate::new(case, choices)?;
                candidate.compile(platform).map(|()| candidate)
            });
            progress();
            candidate
        };
        let compiled: Vec<Option<Result<Candidate>>> = kernels.par_iter().map(compile).collect();
        let mut ready = Vec::new();
        for (kernel, candidate) in compiled.into_iter().enumerate() {
            match candidate {
                Some(Ok(candidate)) => ready.push((kernel, candidate)),
                Some(Err(error)) if error.fault == Fault::Machine => return Err(error),
                Some(Err(error)) => self.swept.refuse(&error),
                None => {}
            }
        }
        Ok(ready)
    }

    /// Microseconds of a launch, whatever it computes.
    fn time(&mut self, candidate: &Candidate, runs: usize) -> Result<Option<f64>> {
        let method = Method { runs, warmups: 1, verify: false, ..self.tuner.sweep.method };
        Ok(self.measure(candidate, method)?.and_then(|row| Some(row.measured()?.statistics.median_us)))
    }

    /// A row for a kernel; nothing if it cannot be launched.
    fn measure(&mut self, candidate: &Candidate, method: Method) -> Result<Option<Row>> {
        let Sweep { platform, machine, case, subject, .. } = self.tuner.sweep;
        let mut row = Row::new(subject, machine, candidate.facts.clone(), method);
        match candidate.measure(platform, case, &mut self.stages, &mut row) {
            Ok(()) => Ok(Some(row)),
            Err(error) => {
                if let Err(broken) = platform.check() {
                    let (what, cause) = (&broken.message, &error.message);
                    let message = format!("nothing more can be measured: {what}; before that, {cause}");
                    return Err(Error::check(message).help("`stencilc verify` finds the kernel that is wrong"));
                }
                if error.fault == Fault::Machine {
                    return Err(error);
                }
                if error.fault == Fault::Check {
                    row.date = date();
                    row.outcome = Outcome::Failed { reason: error.message };
                    self.swept.rows.push(row);
                } else {
                    self.swept.refuse(&error);
                }
                Ok(None)
            }
        }
    }

    /// Measures the finalists exactly, those of one layout in turns, and compares each with the interpreter.
    fn finish(&mut self, finalists: &[&Choices]) -> Result<()> {
        let mut ready = self.compiled(finalists, None)?;
        ready.sort_by_cached_key(|(finalist, _)| layout(finalists[*finalist]));
        for ready in ready.chunk_by(|a, b| layout(finalists[a.0]) == layout(finalists[b.0])) {
            let mut best: Vec<Option<Row>> = vec![None; ready.len()];
            for turn in 0..TURNS {
                for ((_, candidate), best) in ready.iter().zip(&mut best) {
                    let has_failed = turn > 0 && best.as_ref().is_none_or(|row| row.measured().is_none());
                    let row = if has_failed { None } else { self.measure(candidate, self.tuner.sweep.method)? };
                    let time = |row: &Row| row.measured().map(|measured| measured.statistics.median_us);
                    if let Some(row) = row
                        && best.as_ref().and_then(time).is_none_or(|before| time(&row).is_none_or(|now| now < before))
                    {
                        *best = Some(row);
                    }
                }
            }
            self.swept.rows.extend(best.into_iter().flatten());
        }
        Ok(())
    }
}
