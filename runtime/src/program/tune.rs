//! The fastest plan of a program, found by a model and by measuring.
//!
//! Plans are tried in the order in which they should be fast by the model ([`super::estimate`]). One that could not win even if
//! the model flattered it as much as it did the best so far is not tried; one that is far off after one short measurement gets
//! no second one. At the end the fastest few are measured in turns, and compared with the interpreter: one that differs is
//! never chosen, and the next takes its place.

use super::ProgramProblem;
use super::estimate::estimate;
use super::kernels::Planned;
use super::measure::{Compiled, Outcome, ProgramMethod, Ready, compiled};
use super::plan::ProgramPlan;
use super::verify::Reference;
use crate::bench::Platform;
use crate::bench::statistics::Statistics;
use crate::clock::Budget;
use crate::error::Result;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use stencilc_compiler::plan::Choices;

/// A plan is not tried if by the model it takes more than so many times the best time.
const HOPELESS: f64 = 1.5;

/// Finalists take at most so many times the best time, and there are at most so many.
const CLOSE: f64 = 1.1;
const FINALISTS: usize = 6;

/// How often finalists take turns: clocks change while they are measured.
const TURNS: usize = 2;

/// Measurements that say roughly how long a plan takes, after one that says whether it is worth them.
const ROUGHLY: usize = 5;

/// Plans that are compiled together, a core.
const TOGETHER: usize = 2;

/// What measures.
pub trait Trial {
    /// Microseconds of a step by each of these plans; nothing of those that fail, or, once the time is over, were not tried.
    /// Times of more than `enough` need not be exact.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn times(&mut self, plans: &[usize], enough: f64) -> Result<Vec<Option<f64>>>;

    /// Exact times of a plan that leaves the interpreter's bits.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn exact(&mut self, plan: usize) -> Result<std::result::Result<Statistics, String>>;

    /// How many plans are compiled together.
    fn together(&self) -> usize;

    /// Whether the time for trying is over.
    fn is_over(&self) -> bool;
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// Plans, by their place in the list of all, that are right, the fastest first.
    pub fastest: Vec<(usize, Statistics)>,
    /// Those that are wrong, and how.
    pub wrong: Vec<(usize, String)>,
    /// Why plans cannot compute the program, and how many.
    pub refused: BTreeMap<String, usize>,
    /// How many were tried.
    pub tried: usize,
    /// How many were not, since the model says that they are too slow.
    pub hopeless: usize,
    /// Whether there was time for all that was worth it.
    pub is_complete: bool,
}

/// Searches among plans of which the model says these times; nothing of those that cannot be made. Those that lead, one of each
/// sort, are tried first: the model compares sorts badly, and the plans of one sort not at all.
///
/// # Errors
/// Those of the trial.
pub fn search(estimates: &[Option<f64>], leads: &[bool], trial: &mut dyn Trial) -> Result<Found> {
    let known = estimates.iter().enumerate().filter_map(|(plan, estimate)| Some((plan, (*estimate)?)));
    let mut waiting: Vec<(usize, f64)> = known.collect();
    waiting.sort_by(|a, b| leads[b.0].cmp(&leads[a.0]).then(a.1.total_cmp(&b.1)));
    let mut found = Found { is_complete: true, ..Found::default() };
    let mut rough: Vec<(usize, f64)> = Vec::new();
    // By how much the model flatters: as little as it did so far.
    let mut flattery = f64::INFINITY;
    while !waiting.is_empty() {
        let best = rough.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        let before = waiting.len();
        waiting.retain(|(_, estimate)| best.is_infinite() || estimate * flattery <= HOPELESS * best);
        found.hopeless += before - waiting.len();
        if waiting.is_empty() {
            break;
        }
        if trial.is_over() {
            found.is_complete = false;
            break;
        }
        let batch: Vec<(usize, f64)> = waiting.drain(..waiting.len().min(trial.together().max(1))).collect();
        let plans: Vec<usize> = batch.iter().map(|(plan, _)| *plan).collect();
        for ((plan, estimate), time) in batch.iter().zip(trial.times(&plans, HOPELESS * best)?) {
            match time {
                Some(time) => {
                    rough.push((*plan, time));
                    flattery = flattery.min(time / estimate);
                    found.tried += 1;
                }
                None if trial.is_over() => found.is_complete = false,
                None => found.tried += 1,
            }
        }
    }
    rough.sort_by(|a, b| a.1.total_cmp(&b.1));
    finish(&rough, &mut found, trial)?;
    Ok(found)
}

/// Measures the fastest of those that are right.
fn finish(rough: &[(usize, f64)], found: &mut Found, trial: &mut dyn Trial) -> Result<()> {
    let mut first = None;
    for &(plan, time) in rough {
        if first.is_some_and(|first| time > CLOSE * first) || found.fastest.len() == FINALISTS {
            break;
        }
        match trial.exact(plan)? {
            Ok(statistics) => {
                first.get_or_insert(time);
                found.fastest.push((plan, statistics));
            }
            Err(why) => found.wrong.push((plan, why)),
        }
    }
    for _ in 1..TURNS {
        for at in 0..found.fastest.len() {
            let (plan, before) = &found.fastest[at];
            match trial.exact(*plan)? {
                Ok(again) if again.median_us < before.median_us => found.fastest[at].1 = again,
                Ok(_) => {}
                Err(why) => found.wrong.push((*plan, why)),
            }
        }
    }
    found.fastest.retain(|(plan, _)| found.wrong.iter().all(|(wrong, _)| wrong != plan));
    found.fastest.sort_by(|a, b| a.1.median_us.total_cmp(&b.1.median_us));
    Ok(())
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
    /// The time for the search. Finalists are measured after it.
    pub budget: Budget<'a>,
}

impl Tuner<'_> {
    /// Searches among plans; `progress` is called after each that was compiled or tried.
    ///
    /// # Errors
    /// The machine or a compiler cannot be used any more.
    pub fn run(&self, plans: &[ProgramPlan], progress: &(dyn Fn() + Sync)) -> Result<Found> {
        let own = self.problem.with_times(self.method.times);
        let estimates: Vec<Result<f64>> =
            plans.par_iter().map(|plan| Ok(estimate(&Planned::new(&own, plan)?, plan.kind))).collect();
        let mut refused = BTreeMap::new();
        for error in estimates.iter().filter_map(|estimate| estimate.as_ref().err()) {
            *refused.entry(error.message.clone()).or_default() += 1;
        }
        let estimates: Vec<Option<f64>> = estimates.into_iter().map(Result::ok).collect();
        let mut trial = Plans { tuner: self, plans, ready: BTreeMap::new(), wrong: Vec::new(), progress };
        let leads = leads(plans, &estimates);
        let mut found = search(&estimates, &leads, &mut trial)?;
        found.wrong.extend(trial.wrong);
        found.refused = refused;
        Ok(found)
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
    fn times(&mut self, plans: &[usize], enough: f64) -> Result<Vec<Option<f64>>> {
        let Tuner { problem, platform, method, budget, .. } = *self.tuner;
        let (all, progress) = (self.plans, self.progress);
        let compile = |&plan: &usize| -> Result<Option<Compiled>> {
            if budget.is_over() {
                return Ok(None);
            }
            let made = compiled(problem, &all[plan], platform, method.times);
            progress();
            made.map(Some)
        };
        let made: Vec<Option<Compiled>> = plans.par_iter().map(compile).collect::<Result<_>>()?;
        let mut times = Vec::new();
        for (&plan, made) in plans.iter().zip(made) {
            match made {
                Some(Compiled::Ready(ready)) => drop(self.ready.insert(plan, ready)),
                Some(Compiled::Not(Outcome::Differs(why))) => self.wrong.push((plan, why)),
                Some(Compiled::Not(Outcome::Refused(_) | Outcome::Measured(_))) | None => {}
            }
            if self.is_over() {
                times.push(None);
                continue;
            }
            let mut time = self.time(plan, 1)?;
            if time.is_some_and(|time| time <= enough) {
                time = self.time(plan, ROUGHLY)?;
            }
            (self.progress)();
            times.push(time);
        }
        Ok(times)
    }

    fn exact(&mut self, plan: usize) -> Result<std::result::Result<Statistics, String>> {
        let Tuner { platform, reference, method, .. } = *self.tuner;
        let Some(ready) = self.ready.get(&plan) else { return Ok(Err("it was not compiled".to_owned())) };
        Ok(match ready.measured(platform, reference, method)? {
            Outcome::Measured(statistics) => Ok(statistics),
            Outcome::Refused(why) | Outcome::Differs(why) => Err(why),
        })
    }

    fn together(&self) -> usize {
        TOGETHER * rayon::current_num_threads()
    }

    fn is_over(&self) -> bool {
        self.tuner.budget.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans that take these times; some are wrong. The time is over after so many.
    struct Recorded {
        times: Vec<f64>,
        wrong: Vec<usize>,
        measured: usize,
        most: usize,
    }

    impl Trial for Recorded {
        fn times(&mut self, plans: &[usize], _: f64) -> Result<Vec<Option<f64>>> {
            let time = |&plan: &usize| {
                self.measured += 1;
                (self.measured <= self.most).then(|| self.times[plan])
            };
            Ok(plans.iter().map(time).collect())
        }

        fn exact(&mut self, plan: usize) -> Result<std::result::Result<Statistics, String>> {
            Ok(match self.wrong.contains(&plan) {
                true => Err("one bit".to_owned()),
                false => Ok(Statistics::of(&[self.times[plan]]).unwrap()),
            })
        }

        fn together(&self) -> usize {
            2
        }

        fn is_over(&self) -> bool {
            self.measured >= self.most
        }
    }

    fn found(times: &[f64], estimates: &[Option<f64>], wrong: &[usize], most: usize) -> Found {
        let leads = vec![true; estimates.len()];
        search(estimates, &leads, &mut Recorded { times: times.to_vec(), wrong: wrong.to_vec(), measured: 0, most })
            .unwrap()
    }

    const TIMES: [f64; 6] = [40.0, 10.0, 10.5, 30.0, 12.0, 200.0];

    fn estimates() -> Vec<Option<f64>> {
        // The model flatters by four times.
        TIMES.iter().map(|time| Some(time / 4.0)).collect()
    }

    #[test]
    fn the_fastest_is_found_and_hopeless_ones_are_not_tried() {
        let found = found(&TIMES, &estimates(), &[], usize::MAX);
        assert_eq!(found.fastest.iter().map(|(plan, _)| *plan).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((found.tried, found.hopeless, found.is_complete), (3, 3, true));
    }

    #[test]
    fn one_of_each_sort_is_tried_first() {
        // The model is wrong about the last one.
        let estimates = [1.0, 1.0, 1.0, 9.0].map(Some);
        let leads = [true, false, false, true];
        let times = vec![20.0, 20.0, 20.0, 10.0];
        let mut trial = Recorded { times, wrong: Vec::new(), measured: 0, most: 2 };
        let found = search(&estimates, &leads, &mut trial).unwrap();
        assert_eq!((found.fastest[0].0, found.tried), (3, 2));
    }

    #[test]
    fn a_plan_that_is_wrong_is_never_chosen() {
        let found = found(&TIMES, &estimates(), &[1, 2], usize::MAX);
        assert_eq!(found.fastest[0].0, 4);
        assert_eq!(found.wrong.iter().map(|(plan, _)| *plan).collect::<Vec<_>>(), [1, 2]);
        let none = self::found(&TIMES, &estimates(), &[0, 1, 2, 3, 4, 5], usize::MAX);
        assert!(none.fastest.is_empty());
    }

    #[test]
    fn the_search_ends_when_the_time_is_over() {
        let found = found(&TIMES, &estimates(), &[], 2);
        assert_eq!((found.tried, found.is_complete, found.fastest[0].0), (2, false, 1));
        let none = self::found(&TIMES, &estimates(), &[], 0);
        assert_eq!((none.tried, none.is_complete, none.fastest.len()), (0, false, 0));
    }

    #[test]
    fn what_cannot_be_made_is_left_out() {
        let mut estimates = estimates();
        estimates[1] = None;
        assert_eq!(found(&TIMES, &estimates, &[], usize::MAX).fastest[0].0, 2);
    }
}
