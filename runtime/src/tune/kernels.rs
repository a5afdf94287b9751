//! The kernels of a stencil, as candidates: those that differ in their blocks and knobs alone are a kind, and the search moves on
//! from one to those that have half or twice as much of one extent. To lay fields out anew takes as long as many kernels, so one
//! layout comes after the other.

use super::search::{Found, Kind, Space, Trial, Tried, search};
use crate::bench::rows::{Method, Outcome, Row};
use crate::bench::statistics::Statistics;
use crate::bench::sweep::{Sweep, Swept, layout};
use crate::bench::{Candidate, Stages, date};
use crate::clock::Budget;
use crate::error::{Error, Fault, Result};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use stencilc_compiler::plan::Choices;

/// Kernels that are compiled together, a core.
const TOGETHER: usize = 2;

/// Launches that say roughly how long a kernel takes, after one that says whether it is worth them.
const ROUGHLY: usize = 7;

/// Blocks beside a strategy's own that each kind is begun with.
const BEGIN: [[u32; 3]; 1] = [[32, 4, 1]];

/// A kind is not begun if by the model it takes more than so many times the best time.
const HOPELESS: f64 = 1.2;

/// A problem to be tuned.
pub struct Tuner<'a> {
    /// What is measured, and how the finalists are.
    pub sweep: Sweep<'a>,
    /// The time for the search, once what is usual was measured. Finalists are measured after it.
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
    /// Searches among kernels, of which `usual` is the number of the one that is taken where nobody tunes, and `is_asked` tells which
    /// were asked for; `progress` is called after each that was tried.
    ///
    /// # Errors
    /// The machine cannot be used any more.
    pub fn run(
        &self,
        kernels: &[Choices],
        usual: usize,
        is_asked: &dyn Fn(usize) -> bool,
        progress: &(dyn Fn() + Sync),
    ) -> Result<Tuned> {
        let mut swept = Swept::default();
        let names: Vec<String> = kernels.iter().map(kind_of).collect();
        let estimate = |leaders: &[&Choices]| -> Vec<Option<f64>> {
            let Sweep { case, platform, .. } = &self.sweep;
            let all: Vec<Result<f64>> = leaders.par_iter().map(|own| case.estimate(own, platform)).collect();
            all.into_iter().map(|own| own.inspect_err(|error| swept.refuse(error)).ok()).collect()
        };
        let (kinds, kind_of) = kinds(kernels, &names, estimate);
        let beside = |one: usize, other: usize| are_beside(&kernels[one], &kernels[other]);
        let together = TOGETHER * rayon::current_num_threads();
        let space = Space {
            usual,
            is_asked,
            kinds,
            kind_of,
            beside: &beside,
            hopeless: HOPELESS,
            together,
            budget: self.budget,
        };
        let mut trial = Kernels {
            tuner: self,
            kernels,
            stages: Stages::default(),
            swept,
            ready: BTreeMap::new(),
            exact: BTreeMap::new(),
            pace: Mutex::new(0.0),
            progress,
        };
        let found = search(space, &mut trial)?;
        let Kernels { mut swept, exact, .. } = trial;
        swept.rows.extend(exact.into_values());
        Ok(Tuned { swept, found })
    }
}

/// Everything but the block and the numbers of knobs.
pub(super) fn kind_of(choices: &Choices) -> String {
    Choices { block: Choices::usual_block(&choices.access), ..choices.clone() }.words()
}

/// The kinds of kernels, of which `estimate` says what the first of each may take; and the number of each kernel's.
pub(super) fn kinds(
    kernels: &[Choices],
    names: &[String],
    estimate: impl FnOnce(&[&Choices]) -> Vec<Option<f64>>,
) -> (Vec<Kind>, Vec<usize>) {
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (kernel, name) in names.iter().enumerate() {
        members.entry(name).or_default().push(kernel);
    }
    let numbers: BTreeMap<&str, usize> = members.keys().enumerate().map(|(at, &name)| (name, at)).collect();
    let kind_of = names.iter().map(|name| numbers[name.as_str()]).collect();
    let begins: Vec<Vec<usize>> = members.values().map(|members| first_of(kernels, members)).collect();
    let leaders: Vec<&Choices> = begins.iter().map(|begin| &kernels[begin[0]]).collect();
    let known = estimate(&leaders).into_iter().zip(begins);
    let mut known: Vec<(f64, Vec<usize>)> = known.filter_map(|(own, begin)| Some((own?, begin))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The layout of the most promising kind comes first.
    let mut layouts = Vec::new();
    let kinds = known.into_iter().map(|(estimate, begin)| {
        let own = layout(&kernels[begin[0]]);
        let turn = layouts.iter().position(|known| *known == own).unwrap_or_else(|| {
            layouts.push(own);
            layouts.len() - 1
        });
        Kind { begin, estimate, turn }
    });
    (kinds.collect(), kind_of)
}

/// The kernels that a kind is begun with: those of the usual blocks, or whatever there is.
fn first_of(kernels: &[Choices], members: &[usize]) -> Vec<usize> {
    let own = Choices::usual_block(&kernels[members[0]].access);
    let with = |block| members.iter().copied().find(|&kernel| kernels[kernel].block == block);
    let mut first: Vec<usize> = std::iter::once(own).chain(BEGIN).filter_map(with).collect();
    first.dedup();
    if first.is_empty() { members[members.len() / 2..][..1].to_vec() } else { first }
}

/// Whether two kernels differ by a factor of two in one extent of the block, or one number of a knob; or in two of the block, which has as
/// many threads all the same.
pub(super) fn are_beside(one: &Choices, other: &Choices) -> bool {
    let extents = |own: &Choices| -> Vec<u32> {
        let settings = own.settings().flat_map(|(_, setting)| setting.numbers().to_vec());
        own.block.into_iter().chain(settings).collect()
    };
    let (from, to) = (extents(one), extents(other));
    let steps: Vec<f64> = from.iter().zip(to).map(|(&from, to)| (f64::from(to) / f64::from(from)).log2()).collect();
    let distance: f64 = steps.iter().map(|step| step.abs()).sum();
    let turned = distance == 2.0 && steps[..3].iter().sum::<f64>() == 0.0 && steps[3..].iter().all(|&step| step == 0.0);
    if !(distance == 1.0 || turned) {
        return false;
    }
    let same = Choices { block: one.block, knobs: one.knobs.clone(), ..other.clone() };
    same == *one
}

/// Kernels as they are timed.
struct Kernels<'a> {
    tuner: &'a Tuner<'a>,
    kernels: &'a [Choices],
    stages: Stages,
    swept: Swept,
    /// Finalists as they are compiled, and the best row of each.
    ready: BTreeMap<usize, Candidate>,
    exact: BTreeMap<usize, Row>,
    /// Seconds that a byte of a kernel's text took to compile, at most.
    pace: Mutex<f64>,
    progress: &'a (dyn Fn() + Sync),
}

impl Trial for Kernels<'_> {
    fn times(&mut self, batch: &[usize], enough: f64, budget: Option<Budget>) -> Result<Vec<Tried>> {
        let mut tried = vec![Tried::Failed; batch.len()];
        let mut ready = Vec::new();
        for (place, candidate) in self.compiled(batch, budget).into_iter().enumerate() {
            match candidate {
                Some(Ok(candidate)) => ready.push((place, candidate)),
                Some(Err(error)) if error.fault == Fault::Machine => return Err(error),
                Some(Err(error)) => self.swept.refuse(&error),
                None => tried[place] = Tried::Not,
            }
        }
        // Kernels of one layout run on the same fields.
        ready.sort_by_cached_key(|(place, _)| layout(&self.kernels[batch[*place]]));
        // What is compiled is measured, whatever the time: that takes next to nothing.
        for (place, candidate) in ready {
            (self.progress)();
            let mut time = self.time(&candidate, 1)?;
            if time.is_some_and(|time| time <= enough) {
                time = self.time(&candidate, ROUGHLY)?;
            }
            tried[place] = time.map_or(Tried::Failed, Tried::Took);
        }
        Ok(tried)
    }

    fn exact(&mut self, kernel: usize) -> Result<std::result::Result<Statistics, String>> {
        let candidate = match self.ready.remove(&kernel) {
            Some(candidate) => candidate,
            // It was compiled before, and lies in the cache.
            None => match self.compiled(&[kernel], None).pop().flatten() {
                Some(Ok(candidate)) => candidate,
                Some(Err(error)) if error.fault == Fault::Machine => return Err(error),
                Some(Err(error)) => return Ok(Err(error.message)),
                None => return Ok(Err("it was not compiled".to_owned())),
            },
        };
        let measured = self.measure(&candidate, self.tuner.sweep.method)?;
        self.ready.insert(kernel, candidate);
        let (row, statistics) = match measured {
            Ok(measured) => measured,
            Err(why) => {
                self.exact.remove(&kernel);
                return Ok(Err(why));
            }
        };
        let before = self.exact.get(&kernel).and_then(Row::measured).map(|own| own.statistics.median_us);
        if before.is_none_or(|before| statistics.median_us < before) {
            self.exact.insert(kernel, row);
        }
        Ok(Ok(statistics))
    }
}

impl Kernels<'_> {
    /// Compiles kernels on all cores; of a budget, not those for which there is no time left.
    fn compiled(&self, batch: &[usize], budget: Option<Budget>) -> Vec<Option<Result<Candidate>>> {
        let Self { tuner, kernels, pace, progress, .. } = self;
        let Sweep { case, platform, .. } = &tuner.sweep;
        let longest = || pace.lock().map_or(0.0, |pace| *pace);
        let compile = |&kernel: &usize| -> Option<Result<Candidate>> {
            let left = budget.map(|budget| budget.left());
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let mut candidate = match Candidate::new(case, &kernels[kernel]) {
                Ok(candidate) => candidate,
                Err(error) => return Some(Err(error)),
            };
            let bytes = candidate.bytes() as f64;
            // A compiler that is at work cannot be stopped.
            if left.is_some_and(|left| longest() * bytes > left.as_secs_f64()) {
                return None;
            }
            let compiled = candidate.compile(platform);
            progress();
            Some(compiled.map(|seconds| {
                if let Ok(mut pace) = pace.lock() {
                    *pace = pace.max(seconds / bytes);
                }
                candidate
            }))
        };
        batch.par_iter().map(compile).collect()
    }

    /// Microseconds of a launch, whatever it computes.
    fn time(&mut self, candidate: &Candidate, runs: usize) -> Result<Option<f64>> {
        let method = Method { runs, warmups: 1, verify: false, ..self.tuner.sweep.method };
        Ok(self.measure(candidate, method)?.ok().map(|(_, statistics)| statistics.median_us))
    }

    /// A row for a kernel and its times, or why it has none: it cannot be launched, or differs from the interpreter, which is kept.
    fn measure(
        &mut self,
        candidate: &Candidate,
        method: Method,
    ) -> Result<std::result::Result<(Row, Statistics), String>> {
        let Sweep { platform, machine, case, subject, .. } = self.tuner.sweep;
        let mut row = Row::new(subject, machine, candidate.facts.clone(), method);
        match candidate.measure(platform, case, &mut self.stages, &mut row) {
            Ok(()) => match &row.outcome {
                Outcome::Measured(measured) => {
                    let statistics = measured.statistics;
                    Ok(Ok((row, statistics)))
                }
                Outcome::Failed { reason } => {
                    let reason = reason.clone();
                    self.swept.rows.push(row);
                    Ok(Err(reason))
                }
            },
            Err(error) => {
                if let Err(broken) = platform.check() {
                    let (what, cause) = (&broken.message, &error.message);
                    let message = format!("nothing more can be measured: {what}; before that, {cause}");
                    return Err(Error::check(message).help("`stencilc verify` finds the kernel that is wrong"));
                }
                if error.fault == Fault::Machine {
                    return Err(error);
                }
                let reason = error.message.clone();
                if error.fault == Fault::Check {
                    row.date = date();
                    row.outcome = Outcome::Failed { reason: error.message };
                    self.swept.rows.push(row);
                } else {
                    self.swept.refuse(&error);
                }
                Ok(Err(reason))
            }
        }
    }
}
