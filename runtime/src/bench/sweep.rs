//! Many kernels of one case, one after the other: what was measured before is taken as it is, and what comes is kept at
//! once.

use super::rows::{Log, MachineFacts, Method, Outcome, Row, Subject};
use super::{Candidate, Case, Platform, Stages};
use crate::error::{Error, Fault, Result};
use rayon::prelude::*;
use std::collections::BTreeMap;
use stencilc_compiler::plan::Choices;

/// Kernels that are compiled together, a core: so many wait in memory, and results come before all are compiled.
const TOGETHER: usize = 16;

/// What there is to measure.
pub struct Sweep<'a> {
    /// What measures.
    pub platform: &'a Platform,
    /// What there is to say about it.
    pub machine: &'a MachineFacts,
    /// The problem.
    pub case: &'a Case,
    /// What there is to say about it.
    pub subject: &'a Subject,
    /// How it is measured.
    pub method: Method,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Swept {
    /// Every kernel that was measured or failed, now or before.
    pub rows: Vec<Row>,
    /// How many of them were there before.
    pub found: usize,
    /// Why kernels make no sense, and how many.
    pub refused: BTreeMap<String, usize>,
}

/// What says which kernels run on the same fields.
pub(crate) fn layout(choices: &Choices) -> (String, String, &'static str, &'static str) {
    (choices.storage.clone(), choices.layout.clone(), choices.neighbors.name(), choices.fields.name())
}

/// How far a kernel is, when each is told to be so.
pub const STEPS: usize = 2;

impl Sweep<'_> {
    /// Measures the kernels that are chosen; `progress` is told of [`STEPS`] for each.
    ///
    /// # Errors
    /// The machine cannot be used any more, as where its disk is full, or a row cannot be written. Rows that were written stay.
    pub fn run(&self, choices: &[Choices], log: &mut Option<Log>, progress: &(dyn Fn(usize) + Sync)) -> Result<Swept> {
        let (mut swept, mut stages) = (Swept::default(), Stages::default());
        if let Platform::Cpu = self.platform {
            let work = self.missing(vec![Candidate::interpreter(self.case)], &mut swept, log, progress);
            self.measure(work, &mut stages, &mut swept, log, progress)?;
            return Ok(swept);
        }
        let mut choices = choices.to_vec();
        // Fields are packed, and the first result is looked at, once for kernels of one layout that follow each other.
        choices.sort_by_cached_key(layout);
        for choices in choices.chunks(TOGETHER * rayon::current_num_threads()) {
            let printed: Vec<Result<Candidate>> =
                choices.par_iter().map(|choices| Candidate::new(self.case, choices)).collect();
            let mut candidates = Vec::new();
            for candidate in printed {
                match candidate {
                    Ok(candidate) => candidates.push(candidate),
                    Err(error) => {
                        swept.refuse(&error);
                        progress(STEPS);
                    }
                }
            }
            let work = self.missing(candidates, &mut swept, log, progress);
            self.measure(work, &mut stages, &mut swept, log, progress)?;
        }
        Ok(swept)
    }

    /// The candidates that are in no row yet, each with the row to be completed.
    fn missing(
        &self,
        candidates: Vec<Candidate>,
        swept: &mut Swept,
        log: &Option<Log>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Vec<(Candidate, Row)> {
        let mut missing = Vec::new();
        for candidate in candidates {
            let row = Row::new(self.subject, self.machine, candidate.facts.clone(), self.method);
            match log.as_ref().and_then(|log| log.get(&row.key)) {
                Some(found) => {
                    swept.rows.push(found.clone());
                    swept.found += 1;
                    progress(STEPS);
                }
                None => missing.push((candidate, row)),
            }
        }
        missing
    }

    fn measure(
        &self,
        mut work: Vec<(Candidate, Row)>,
        stages: &mut Stages,
        swept: &mut Swept,
        log: &mut Option<Log>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<()> {
        // On all cores, before anything is measured: the thread that launches kernels should not wait for one.
        let compile = |(candidate, _): &mut (Candidate, Row)| {
            let compiled = candidate.compile(self.platform);
            progress(1);
            compiled
        };
        let compiled: Vec<Result<f64>> = work.par_iter_mut().map(compile).collect();
        for ((candidate, mut row), compiled) in work.into_iter().zip(compiled) {
            let done = compiled.and_then(|_| candidate.measure(self.platform, self.case, stages, &mut row));
            progress(1);
            match &done {
                Ok(()) => {}
                Err(error) if error.fault == Fault::Check => {
                    row.date = super::date();
                    row.outcome = Outcome::Failed { reason: error.message.clone() };
                }
                // The others would fare no better.
                Err(error) if error.fault == Fault::Machine => return Err(error.clone()),
                Err(error) => swept.refuse(error),
            }
            if done.as_ref().is_ok() || done.as_ref().is_err_and(|error| error.fault == Fault::Check) {
                if let Some(log) = log {
                    log.append(&row)?;
                }
                swept.rows.push(row);
            }
            if let Err(error) = done {
                self.platform.check().map_err(|broken| lost(&broken, &error, log.is_some()))?;
            }
        }
        Ok(())
    }
}

/// The error of a machine that cannot be used any more.
fn lost(broken: &Error, cause: &Error, is_kept: bool) -> Error {
    let help = match is_kept {
        true => "what was measured is in the file: the same call goes on behind it",
        false => "with -o FILE what was measured would be kept, and the same call go on behind it",
    };
    Error::check(format!("nothing more can be measured: {}; before that, {}", broken.message, cause.message)).help(help)
}

impl Swept {
    pub(crate) fn refuse(&mut self, error: &Error) {
        *self.refused.entry(error.message.clone()).or_default() += 1;
    }

    /// The rows that have times, the fastest first.
    pub fn fastest(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.measured().is_some()).collect();
        let median = |row: &Row| row.measured().map_or(f64::INFINITY, |measured| measured.statistics.median_us);
        rows.sort_by(|a, b| median(a).total_cmp(&median(b)));
        rows
    }

    /// The rows that have none.
    pub fn failed(&self) -> impl Iterator<Item = (&Row, &str)> {
        self.rows.iter().filter_map(|row| match &row.outcome {
            Outcome::Failed { reason } => Some((row, reason.as_str())),
            Outcome::Measured(_) => None,
        })
    }
}
