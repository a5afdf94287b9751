//! Many kernels of one case: what was measured before is taken as it is, and what comes is kept at once. `tune` searches among them.

use super::rows::{Log, MachineFacts, Method, Outcome, Row, Subject};
use super::{Candidate, Case, Platform, Stages};
use crate::error::{Error, Fault, Result};
pub use crate::measure::STEPS;
use crate::measure::{self, How, Progress, Timed};
use crate::tune::kernels::{are_beside, kind_of, kinds};
use crate::tune::search::Kind;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use stencilc_compiler::plan::Choices;

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

/// What says which kernels run on the same fields, and tables: those of patches depend on how large they are.
pub(crate) fn layout(choices: &Choices) -> [String; 6] {
    let Choices { storage, layout, neighbors, fields, fastest, .. } = choices;
    let patch = choices.settings().find(|(knob, _)| knob.name == "patch");
    let patch = patch.map_or_else(String::new, |(_, setting)| setting.to_string());
    [storage, layout, neighbors.name(), fields.name(), fastest.name(), &patch].map(str::to_owned)
}

/// Kernels that are measured.
pub(crate) struct Kernels<'a> {
    sweep: &'a Sweep<'a>,
    /// Nothing but the interpreter on a CPU.
    kernels: &'a [Choices],
    /// Of each the number of its layout.
    stages: Vec<usize>,
    log: Option<Mutex<&'a mut Log>>,
    is_search: bool,
}

/// What came of them until now.
#[derive(Default)]
pub(crate) struct Came {
    stages: Stages,
    swept: Swept,
    /// The best row of each, or the one that says why it failed.
    rows: BTreeMap<usize, Row>,
}

/// A kernel, and what came of it if it is known already.
pub(crate) struct Planned {
    candidate: Candidate,
    row: Row,
    is_known: bool,
}

impl Sweep<'_> {
    /// Measures the kernels that are chosen; `progress` is told of [`STEPS`] for each.
    ///
    /// # Errors
    /// The machine cannot be used any more, as where its disk is full, or a row cannot be written. Rows that were written stay.
    pub fn run(&self, choices: &[Choices], log: &mut Option<Log>, progress: &Progress) -> Result<Swept> {
        let (kernels, mut came) = (Kernels::new(self, choices, log.as_mut(), false), Came::default());
        let number = if let Platform::Cpu = self.platform { 1 } else { choices.len() };
        measure::each(&kernels, &mut came, (0..number).collect(), progress)?;
        // Those of one layout after each other, as they were measured.
        let mut rows: Vec<(usize, Row)> = came.rows.into_iter().collect();
        rows.sort_by_key(|(kernel, _)| kernels.stages.get(*kernel).copied());
        Ok(Swept { rows: rows.into_iter().map(|(_, row)| row).collect(), ..came.swept })
    }
}

impl<'a> Kernels<'a> {
    pub(crate) fn new(sweep: &'a Sweep<'a>, kernels: &'a [Choices], log: Option<&'a mut Log>, is_search: bool) -> Self {
        let layouts: BTreeSet<_> = kernels.iter().map(layout).collect();
        let stage = |own: &Choices| layouts.range(..layout(own)).count();
        Self { sweep, kernels, stages: kernels.iter().map(stage).collect(), log: log.map(Mutex::new), is_search }
    }

    /// Keeps a row, unless a better one is there.
    fn keep(&self, came: &mut Came, kernel: usize, row: Row) -> Result<()> {
        if let Some(Ok(mut log)) = self.log.as_ref().map(Mutex::lock) {
            // Nothing that comes later could be kept either.
            log.append(&row).map_err(|error| Error { fault: Fault::Machine, ..error })?;
        }
        let median = |row: &Row| row.measured().map_or(0.0, |own| own.statistics.median_us);
        if came.rows.get(&kernel).is_none_or(|before| median(&row) < median(before)) {
            came.rows.insert(kernel, row);
        }
        Ok(())
    }
}

impl measure::Subject for Kernels<'_> {
    type Planned = Planned;
    type State = Came;
    const ROUGHLY: Option<usize> = Some(7);
    const HOPELESS: f64 = 1.2;

    fn platform(&self) -> &Platform {
        self.sweep.platform
    }

    fn plan(&self, kernel: usize) -> Result<Planned> {
        let Sweep { platform, machine, case, subject, method } = *self.sweep;
        let candidate = match platform {
            Platform::Cpu => Candidate::interpreter(case),
            Platform::Emulator(_) | Platform::Gpu(_) => Candidate::new(case, &self.kernels[kernel])?,
        };
        let row = Row::new(subject, machine, candidate.facts.clone(), method);
        let log = self.log.as_ref().and_then(|log| log.lock().ok());
        let known = log.and_then(|log| log.get(&row.key).cloned());
        Ok(Planned { candidate, is_known: known.is_some(), row: known.unwrap_or(row) })
    }

    fn bytes(&self, planned: &Planned) -> usize {
        planned.candidate.bytes()
    }

    fn compile(&self, planned: &mut Planned) -> Result<f64> {
        if planned.is_known { Ok(0.0) } else { planned.candidate.compile(self.sweep.platform) }
    }

    fn time(&self, came: &mut Came, kernel: usize, planned: &Planned, how: How) -> Result<Timed> {
        let Sweep { platform, case, method, .. } = *self.sweep;
        let timed = |row: &Row| -> Timed {
            match &row.outcome {
                Outcome::Measured(measured) => Ok(measured.statistics),
                Outcome::Failed { reason } => Err(reason.clone()),
            }
        };
        if planned.is_known {
            came.swept.found += 1;
            came.rows.insert(kernel, planned.row.clone());
            return Ok(timed(&planned.row));
        }
        let method = match how {
            How::Exactly => method,
            How::Roughly(runs) => Method { runs, warmups: 1, verify: false, ..method },
        };
        let mut row = Row { method, ..planned.row.clone() };
        let done = planned.candidate.measure(platform, case, &mut came.stages, &mut row);
        match &done {
            Err(error) if error.fault == Fault::Check => {
                row.date = super::date();
                row.outcome = Outcome::Failed { reason: error.message.clone() };
            }
            Err(error) => return Err(error.clone()),
            Ok(()) => {}
        }
        let timed = timed(&row);
        if how == How::Exactly || timed.is_err() {
            self.keep(came, kernel, row)?;
        }
        done.map(|()| timed)
    }

    fn failed(&self, came: &mut Came, kernel: usize, error: Error) -> Result<()> {
        match error.fault {
            // What ran has a row that says so.
            Fault::Check if came.rows.contains_key(&kernel) => Ok(()),
            Fault::Check => {
                let outcome = Outcome::Failed { reason: error.message };
                let row = self.plan(kernel)?.row;
                self.keep(came, kernel, Row { date: super::date(), outcome, ..row })
            }
            Fault::Input | Fault::Call | Fault::Machine => {
                came.swept.refuse(&error);
                Ok(())
            }
        }
    }

    fn rescue(&self) -> String {
        let help = match (&self.log, self.is_search) {
            (_, true) => "`stencilc verify` finds the kernel that is wrong",
            (Some(_), false) => "what was measured is in the file: the same call goes on behind it",
            (None, false) => "with -o FILE what was measured would be kept, and the same call go on behind it",
        };
        help.to_owned()
    }

    fn stage(&self, kernel: usize) -> usize {
        self.stages.get(kernel).copied().unwrap_or_default()
    }

    fn kinds(&self, came: &mut Came) -> (Vec<Kind>, Vec<usize>) {
        let names: Vec<String> = self.kernels.iter().map(kind_of).collect();
        let Sweep { case, platform, .. } = *self.sweep;
        kinds(self.kernels, &names, |leaders| {
            let all: Vec<Result<f64>> = leaders.par_iter().map(|own| case.estimate(own, platform)).collect();
            all.into_iter().map(|own| own.inspect_err(|error| came.swept.refuse(error)).ok()).collect()
        })
    }

    fn are_beside(&self, one: usize, other: usize) -> bool {
        are_beside(&self.kernels[one], &self.kernels[other])
    }
}

impl Came {
    /// The rows, and what makes no sense.
    pub(crate) fn swept(self) -> Swept {
        Swept { rows: self.rows.into_values().collect(), ..self.swept }
    }
}

impl Swept {
    fn refuse(&mut self, error: &Error) {
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
