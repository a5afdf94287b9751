//! The plans of a program, as candidates.
//!
//! One plan of each sort is tried before the others, in the order in which they should be fast by the model ([`super::estimate`]):
//! the model compares sorts badly, and the plans of one sort not at all.

use super::ProgramProblem;
use super::estimate::estimate;
use super::kernels::Planned;
use super::measure::{Compiled, Outcome, ProgramMethod, Ready, compiled};
use super::plan::ProgramPlan;
use crate::bench::statistics::Statistics;
use crate::clock::Budget;
use crate::device::Platform;
use crate::error::Result;
use crate::tune::search::{self, Kind, Space, Trial, Tried, search};
use crate::verify::program::Reference;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use stencilc_compiler::plan::Choices;

/// A plan is not tried if by the model it takes more than so many times the best time.
const HOPELESS: f64 = 1.5;

/// Measurements that say roughly how long a plan takes, after one that says whether it is worth them.
const ROUGHLY: usize = 5;

/// Plans that are compiled together, a core.
const TOGETHER: usize = 2;

/// What a search found among plans.
#[derive(Debug)]
pub struct Found {
    /// The plans, by their place in the list of all.
    pub plans: search::Found,
    /// Why plans cannot compute the program, and how many.
    pub refused: BTreeMap<String, usize>,
}

/// Plans of a program, and what they are measured on.
pub struct Tuner<'a> {
    /// The program on its grid.
    pub problem: &'a ProgramProblem,
    /// What the interpreter makes of some steps.
    pub reference: Option<&'a Reference>,
    /// What measures.
    pub platform: &'a Platform,
    /// How finalists are measured.
    pub method: ProgramMethod,
    /// The time for the search, once what is usual was measured. Finalists are measured after it.
    pub budget: Budget<'a>,
}

impl Tuner<'_> {
    /// Searches among plans, of which `usual` is the number of the one that is taken where nobody tunes, and `is_asked` tells which were
    /// asked for; `progress` is called after each that was compiled or tried.
    ///
    /// # Errors
    /// The machine or a compiler cannot be used any more.
    pub fn run(
        &self,
        plans: &[ProgramPlan],
        usual: usize,
        is_asked: &dyn Fn(usize) -> bool,
        progress: &(dyn Fn() + Sync),
    ) -> Result<Found> {
        let own = self.problem.with_times(self.method.times);
        let estimates: Vec<Result<f64>> =
            plans.par_iter().map(|plan| Ok(estimate(&Planned::new(&own, plan)?, plan.kind))).collect();
        let mut refused = BTreeMap::new();
        for error in estimates.iter().filter_map(|estimate| estimate.as_ref().err()) {
            *refused.entry(error.message.clone()).or_default() += 1;
        }
        let estimates: Vec<Option<f64>> = estimates.into_iter().map(Result::ok).collect();
        let leads = leads(plans, &estimates);
        let known = estimates.iter().enumerate().filter_map(|(plan, estimate)| Some((plan, (*estimate)?)));
        let kind =
            |(plan, estimate): (usize, f64)| Kind { begin: vec![plan], estimate, turn: usize::from(!leads[plan]) };
        let space = Space {
            usual,
            is_asked,
            kinds: known.map(kind).collect(),
            kind_of: (0..plans.len()).collect(),
            beside: &|_, _| false,
            hopeless: HOPELESS,
            together: TOGETHER * rayon::current_num_threads(),
            budget: self.budget,
        };
        let mut trial = Plans { tuner: self, plans, ready: BTreeMap::new(), wrong: Vec::new(), progress };
        let mut found = search(space, &mut trial)?;
        found.wrong.extend(trial.wrong);
        Ok(Found { plans: found, refused })
    }
}

/// Which plans are the first of their sort that can be made.
fn leads(plans: &[ProgramPlan], estimates: &[Option<f64>]) -> Vec<bool> {
    let mut seen = BTreeSet::new();
    let sort = |plan: &ProgramPlan| {
        let Choices { storage, access, .. } = &plan.choices;
        (plan.kind.name(), plan.steps, storage.clone(), access.clone())
    };
    plans.iter().zip(estimates).map(|(plan, estimate)| estimate.is_some() && seen.insert(sort(plan))).collect()
}

/// Plans as they are timed.
struct Plans<'a> {
    tuner: &'a Tuner<'a>,
    plans: &'a [ProgramPlan],
    ready: BTreeMap<usize, Box<Ready>>,
    wrong: Vec<(usize, String)>,
    progress: &'a (dyn Fn() + Sync),
}

impl Plans<'_> {
    /// Microseconds of a step, whatever it computes.
    fn time(&mut self, plan: usize, runs: usize) -> Result<Option<f64>> {
        let Some(ready) = self.ready.get(&plan) else { return Ok(None) };
        let method = ProgramMethod { runs, ..self.tuner.method };
        Ok(match ready.measured(self.tuner.platform, None, method)? {
            Outcome::Measured(statistics) => Some(statistics.median_us),
            Outcome::Refused(_) => None,
            Outcome::Differs(why) => {
                self.wrong.push((plan, why));
                None
            }
        })
    }
}

impl Trial for Plans<'_> {
    fn times(&mut self, batch: &[usize], enough: f64, budget: Option<Budget>) -> Result<Vec<Tried>> {
        let Tuner { problem, platform, method, .. } = *self.tuner;
        let (all, progress) = (self.plans, self.progress);
        let compile = |&plan: &usize| -> Result<Option<Compiled>> {
            if budget.is_some_and(|budget| budget.is_over()) {
                return Ok(None);
            }
            let made = compiled(problem, &all[plan], platform, method.times);
            progress();
            made.map(Some)
        };
        let made: Vec<Option<Compiled>> = batch.par_iter().map(compile).collect::<Result<_>>()?;
        let mut tried = Vec::new();
        // What is compiled is measured, whatever the time: that takes next to nothing.
        for (&plan, made) in batch.iter().zip(made) {
            let Some(made) = made else {
                tried.push(Tried::Not);
                continue;
            };
            match made {
                Compiled::Ready(ready) => drop(self.ready.insert(plan, ready)),
                Compiled::Not(Outcome::Differs(why)) => self.wrong.push((plan, why)),
                Compiled::Not(Outcome::Refused(_) | Outcome::Measured(_)) => {}
            }
            let mut time = self.time(plan, 1)?;
            if time.is_some_and(|time| time <= enough) {
                time = self.time(plan, ROUGHLY)?;
            }
            (self.progress)();
            tried.push(time.map_or(Tried::Failed, Tried::Took));
        }
        Ok(tried)
    }

    fn exact(&mut self, plan: usize) -> Result<std::result::Result<Statistics, String>> {
        let Tuner { platform, reference, method, .. } = *self.tuner;
        let Some(ready) = self.ready.get(&plan) else { return Ok(Err("it was not compiled".to_owned())) };
        Ok(match ready.measured(platform, reference, method)? {
            Outcome::Measured(statistics) => Ok(statistics),
            Outcome::Refused(why) | Outcome::Differs(why) => Err(why),
        })
    }
}
