//! The plans of a program, as ways to compute it: how long a step takes by each, and whether it leaves the interpreter's bits.
//!
//! One plan of each sort is tried before the others, in the order in which they should be fast by the model ([`super::estimate`]):
//! the model compares sorts badly, and the plans of one sort not at all.

pub use super::candidates::{candidates, enough};
use super::estimate::estimate;
use super::kernels::Kernels;
use super::plan::ProgramPlan;
use super::planned::{Planned, Text, names};
use super::{ProgramProblem, results};
use crate::bench::limit::{self, Limit, Streams};
use crate::bench::rows::Method;
use crate::bench::statistics::Statistics;
use crate::build::Build;
use crate::cache::Built;
use crate::clock::{Budget, Clock, Watch};
use crate::device::Platform;
use crate::driver::{Driver, Position};
use crate::error::{Error, Fault, Result};
use crate::execute::{Repeat, Rotation};
use crate::measure::{self, Asked, How, Progress, Subject, Timed};
use crate::tune::search::{Found, Kind};
use crate::verify::program::Reference;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stencilc_compiler::gpu::Sheet;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Staged, Step, Times};

/// Steps of each outermost loop that are compared with the interpreter: not a multiple of those that a kernel computes.
pub(crate) const COMPARED: usize = 13;

impl ProgramProblem {
    /// The same with this many times of each outermost loop, or as many as one can be done that computes fewer cells each time.
    /// What follows a loop computes the cells that it computes after all its times.
    pub fn with_times(&self, times: usize) -> Self {
        let mut own = self.clone();
        for step in &mut own.staged.steps {
            if let Step::Repeat(own) = step {
                own.times = Times::Known(own.at_most(times));
            }
        }
        own
    }
}

/// Outermost steps of a program; 1 if it has no loop.
pub(super) fn steps(staged: &Staged) -> u64 {
    staged.steps.iter().map(Step::times).sum::<u64>().max(1)
}

/// The copy of all that a step reads and writes, in place each time, as the program's fields are.
fn copy(problem: &ProgramProblem, platform: &Platform, runs: usize) -> Result<Option<Limit>> {
    let fields = problem.outer.stencil.fields.iter().zip(&problem.outer.inputs).zip(&problem.outer.outputs);
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for (((_, field), input), output) in fields {
        reads.extend(input.as_ref().filter(|_| field.role.is_read()));
        writes.extend(output.as_ref().filter(|_| field.role.is_written()));
    }
    let streams = Streams { reads, writes };
    let repeat = Repeat { warmups: 3, runs, rotation: Rotation::SAME };
    match platform {
        Platform::Cpu => Ok(None),
        Platform::Emulator(emulator) if emulator.is_native() => limit::measure(&**emulator, &streams, repeat),
        Platform::Emulator(_) => Ok(None),
        Platform::Gpu(gpu) => limit::measure(&**gpu, &streams, repeat),
    }
}

/// Plans of a program, and what they are measured on.
pub struct Plans<'a> {
    platform: &'a Platform,
    /// The program, with as many steps as one measurement has.
    problem: ProgramProblem,
    runs: usize,
    /// What the interpreter makes of some steps, if plans are compared with it.
    reference: Option<Reference>,
    /// Seconds that the interpreter took for them.
    pub interpreted: f64,
    /// The copy of all that a step reads and writes.
    pub copy: Option<Limit>,
    /// The plans.
    pub plans: Vec<ProgramPlan>,
}

/// What came of plans, by their numbers.
#[derive(Debug, Default)]
pub struct Came {
    /// Those that cannot compute the program, and why.
    pub refused: BTreeMap<usize, String>,
    /// Those that compute something else, or whose kernels do not compile or run: the first field that differs, or why.
    pub wrong: BTreeMap<usize, String>,
}

impl Came {
    /// Why plans cannot compute the program, and how many.
    pub fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        self.refused.values().for_each(|why| *reasons.entry(why.as_str()).or_default() += 1);
        reasons
    }
}

impl<'a> Plans<'a> {
    /// Plans of a program, each outermost loop of which is run so many times in one measurement. What they are compared with is
    /// interpreted: `interpreting` makes what is told of its steps, of how many there are.
    ///
    /// # Errors
    /// The program calls nothing, the copy cannot be measured, or a comparison with the interpreter would prove nothing.
    pub fn new(
        problem: &ProgramProblem,
        platform: &'a Platform,
        method: Method,
        times: usize,
        plans: Vec<ProgramPlan>,
        interpreting: impl FnOnce(usize) -> Box<Progress<'static>>,
    ) -> Result<Self> {
        problem.has_kernels()?;
        let copy = copy(problem, platform, method.runs)?;
        let start = Watch::start();
        let reference = match method.verify {
            true => {
                let few = problem.with_times(COMPARED);
                let progress = interpreting(steps(&few.staged) as usize);
                Some(Reference::new(few, &*progress)?)
            }
            false => None,
        };
        let interpreted = if method.verify { start.now().as_secs_f64() } else { 0.0 };
        if let Some(reference) = &reference {
            reference.check_worth()?;
        }
        let problem = problem.with_times(times);
        Ok(Self { platform, problem, runs: method.runs, reference, interpreted, copy, plans })
    }

    /// Measures all. Returns the times of those that have some, the fastest first.
    ///
    /// # Errors
    /// The machine or a compiler cannot be used any more.
    pub fn bench(&self, progress: &Progress) -> Result<(Vec<(usize, Statistics)>, Came)> {
        let mut came = Came::default();
        Ok((measure::each(self, &mut came, (0..self.plans.len()).collect(), progress)?, came))
    }

    /// Searches for the fastest; `progress` is called after each that was compiled or tried.
    ///
    /// # Errors
    /// The machine or a compiler cannot be used any more.
    pub fn tune(&self, asked: Asked, budget: Budget, progress: &Progress) -> Result<(Found, Came)> {
        let mut came = Came::default();
        let found = measure::search(self, &mut came, asked, budget, progress)?;
        Ok((found, came))
    }

    /// The names of a plan's kernels.
    ///
    /// # Errors
    /// It cannot compute the program.
    pub fn kernels(&self, plan: usize) -> Result<Vec<String>> {
        Ok(names(Planned::new(&self.problem, &self.plans[plan])?.texts()?))
    }

    /// The time of a copy, of these times.
    pub fn of_copy(&self, statistics: &Statistics) -> Option<f64> {
        self.copy.as_ref().map(|copy| copy.statistics.median_us / statistics.median_us)
    }

    fn on<M: Build>(&self, machine: &Arc<M>, plan: usize, ready: &Ready, how: How) -> Result<Timed> {
        let Ready { planned, texts, images } = ready;
        let load = |(Text { name, text }, built): (&Text, &Built)| machine.bring(&built.compiled.image, name, text);
        let kernels = texts.iter().zip(images).map(load).collect::<Result<_>>()?;
        let backend = Kernels::new(Arc::clone(machine), Arc::clone(planned), kernels)?;
        if let (Some(reference), How::Exactly) = (&self.reference, how) {
            let own = Planned::new(&reference.problem, &self.plans[plan])?;
            // The same kernels: only the number of steps differs.
            let script = Arc::<ProgramProblem>::clone(&own.problem);
            let mut driver = Driver::of(script, &backend).given()?;
            driver.finish()?;
            let found = results(&own.problem, &driver)?;
            if let Some(mismatch) = reference.mismatches(&found).first() {
                return Ok(Err(mismatch.to_string()));
            }
        }
        let runs = if let How::Roughly(runs) = how { runs } else { self.runs };
        let mut driver = Driver::new(&backend).given()?;
        driver.finish()?;
        let times = machine.time_each(runs, |_| {
            driver.position = Position::default();
            driver.finish()
        })?;
        let steps = steps(&planned.problem.staged) as f64;
        let each: Vec<f64> = times.iter().map(|time| time / steps).collect();
        Statistics::of(&each).map(Ok).ok_or_else(|| Error::check("nothing was measured"))
    }

    /// Which plans are the first of their sort that can be made.
    fn leads(&self, estimates: &[Option<f64>]) -> Vec<bool> {
        let mut seen = BTreeSet::new();
        let sort = |plan: &ProgramPlan| {
            let Choices { storage, access, fastest, .. } = &plan.choices;
            (plan.kind.name(), plan.steps, storage.clone(), access.clone(), fastest.name())
        };
        self.plans.iter().zip(estimates).map(|(plan, estimate)| estimate.is_some() && seen.insert(sort(plan))).collect()
    }
}

/// A plan, its texts, and once it is compiled what the compiler makes of each.
pub struct Ready {
    planned: Arc<Planned>,
    texts: Vec<Text>,
    images: Vec<Built>,
}

impl Subject for Plans<'_> {
    type Planned = Ready;
    type State = Came;
    const ROUGHLY: Option<usize> = Some(5);
    const HOPELESS: f64 = 1.5;

    fn platform(&self) -> &Platform {
        self.platform
    }

    fn plan(&self, plan: usize) -> Result<Ready> {
        let planned = Planned::new(&self.problem, &self.plans[plan]);
        let planned = planned.map_err(|error| Error { fault: Fault::Input, ..error })?;
        Ok(Ready { texts: planned.texts()?, planned: Arc::new(planned), images: Vec::new() })
    }

    fn bytes(&self, ready: &Ready) -> usize {
        ready.texts.iter().map(|own| own.text.len()).sum()
    }

    fn compile(&self, ready: &mut Ready) -> Result<f64> {
        let build = |Text { name, text }: &Text| self.platform.compile(name, text);
        ready.images = ready.texts.par_iter().map(build).collect::<Result<_>>()?;
        Ok(ready.images.iter().filter(|own| !own.cached).map(|own| own.seconds).sum())
    }

    fn time(&self, came: &mut Came, plan: usize, ready: &Ready, how: How) -> Result<Timed> {
        let timed = match self.platform {
            Platform::Cpu => Err(Error::call("the interpreter has no plans")),
            Platform::Emulator(emulator) => self.on(emulator, plan, ready, how),
            Platform::Gpu(gpu) => self.on(gpu, plan, ready, how),
        }?;
        Ok(timed.inspect_err(|why| drop(came.wrong.insert(plan, why.clone()))))
    }

    fn failed(&self, came: &mut Came, plan: usize, error: Error) -> Result<()> {
        match error.fault {
            Fault::Input => drop(came.refused.insert(plan, error.message)),
            Fault::Check => drop(came.wrong.insert(plan, error.message)),
            Fault::Call | Fault::Machine => return Err(error),
        }
        Ok(())
    }

    fn rescue(&self) -> String {
        "`stencilc verify` finds the plan that is wrong".to_owned()
    }

    fn kinds(&self, came: &mut Came) -> (Vec<Kind>, Vec<usize>) {
        let Self { problem, plans, .. } = self;
        let name = if let Platform::Gpu(gpu) = self.platform { gpu.name() } else { Sheet::usual().name };
        let copy = self.copy.as_ref().map(|copy| copy.gb_per_s);
        let limits = Sheet::reached(name, problem.outer.precision, copy);
        let own = |plan: &ProgramPlan| Ok(estimate(&Planned::new(problem, plan)?, plan.kind, limits));
        let estimates: Vec<Result<f64>> = plans.par_iter().map(own).collect();
        let mut known = Vec::new();
        for (plan, estimate) in estimates.into_iter().enumerate() {
            let refuse = |error: Error| drop(came.refused.insert(plan, error.message));
            known.push(estimate.map_err(refuse).ok());
        }
        let leads = self.leads(&known);
        let kind = |(plan, estimate): (usize, &Option<f64>)| {
            Some(Kind { begin: vec![plan], estimate: (*estimate)?, turn: usize::from(!leads[plan]) })
        };
        (known.iter().enumerate().filter_map(kind).collect(), (0..plans.len()).collect())
    }
}
