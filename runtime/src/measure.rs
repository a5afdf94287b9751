//! Measures whatever can be computed in several ways: kernels of a stencil and plans of a program on a grid, strategies over a mesh.
//!
//! ```text
//! ways -> planned and compiled, on all cores -> timed, one after the other: each of them, or those that a search asks for
//! ```
//!
//! A [`Subject`] knows its ways by their numbers. What came of them is its state, which only the thread that measures has.

use crate::bench::statistics::Statistics;
use crate::clock::Budget;
use crate::device::Platform;
use crate::error::{Error, Fault, Result};
use crate::tune::search::{self, Found, Kind, Space, Trial, Tried};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Ways that are compiled together, a core, where all are measured: so many wait in memory, and results come before all are compiled;
const TOGETHER: usize = 16;

/// and where a search says after each few which are worth a try.
const SEARCHED: usize = 2;

/// How far a way is, when each is told to be so: compiled, and timed.
pub const STEPS: usize = 2;

/// Times, or what is wrong with what was computed.
pub type Timed = std::result::Result<Statistics, String>;

/// How well a time is to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By so many measurements, whatever is computed.
    Roughly(usize),
    /// As was asked for, and what is computed is compared with the interpreter.
    Exactly,
}

/// What can be computed in several ways, each of which has a number.
pub trait Subject: Sync {
    /// A way with all that is known of it before it is timed.
    type Planned: Send;

    /// What came of the ways, and what they are timed on.
    type State;

    /// Measurements that tell roughly how long a way takes, after one that tells whether it is worth them. Nothing where one that is exact
    /// takes not much longer.
    const ROUGHLY: Option<usize>;

    /// A way is not tried if by the estimate it takes more than so many times the best time.
    const HOPELESS: f64;

    /// What measures.
    fn platform(&self) -> &Platform;

    /// Plans a way. Any number of threads may do so at once.
    ///
    /// # Errors
    /// It makes no sense.
    fn plan(&self, way: usize) -> Result<Self::Planned>;

    /// Bytes of the texts of its kernels.
    fn bytes(&self, planned: &Self::Planned) -> usize;

    /// Compiles its kernels. Any number of threads may do so at once. Returns the seconds that the compiler took.
    ///
    /// # Errors
    /// The compiler is missing, or refuses them.
    fn compile(&self, planned: &mut Self::Planned) -> Result<f64>;

    /// Takes times, and keeps what came of it.
    ///
    /// # Errors
    /// It cannot be run. That what is computed is wrong is no error.
    fn time(&self, state: &mut Self::State, way: usize, planned: &Self::Planned, how: How) -> Result<Timed>;

    /// Keeps why a way has no time, as long as the others may have.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn failed(&self, state: &mut Self::State, way: usize, error: Error) -> Result<()>;

    /// What helps where a way has left the machine useless.
    fn rescue(&self) -> String {
        "`stencilc verify` finds what is wrong".to_owned()
    }

    /// Ways of one number run on the same fields, and are timed one after the other.
    fn stage(&self, _way: usize) -> usize {
        0
    }

    /// The kinds of those ways that can be made, with what they may take; and of each way the number of its kind.
    fn kinds(&self, state: &mut Self::State) -> (Vec<Kind>, Vec<usize>);

    /// Whether a search moves on from one way to the other.
    fn are_beside(&self, _one: usize, _other: usize) -> bool {
        false
    }
}

/// What there is to search among.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// What `run` takes where nobody tunes.
    pub usual: usize,
    /// Whether a way was asked for; what is usual may not have been.
    pub is_asked: &'a dyn Fn(usize) -> bool,
}

/// Is told how many more steps are done.
pub type Progress<'a> = dyn Fn(usize) + Sync + 'a;

/// Measures ways exactly; `progress` is told of [`STEPS`] for each. Returns those that have times, the fastest first.
///
/// # Errors
/// The machine or a compiler cannot be used any more.
pub fn each<S: Subject>(
    subject: &S,
    state: &mut S::State,
    mut ways: Vec<usize>,
    progress: &Progress,
) -> Result<Vec<(usize, Statistics)>> {
    ways.sort_by_key(|&way| subject.stage(way));
    let mut meter = Meter::new(subject, state, progress);
    let mut found = Vec::new();
    for ways in ways.chunks(TOGETHER * rayon::current_num_threads()) {
        for (&way, planned) in ways.iter().zip(meter.compiled(ways, None)) {
            let timed = match planned {
                Some(Ok(planned)) => meter.time(way, &planned, How::Exactly)?.ok(),
                Some(Err(error)) => meter.failed(way, error).map(|()| None)?,
                None => None,
            };
            found.extend(timed.map(|statistics| (way, statistics)));
            progress(1);
        }
    }
    found.sort_by(|a, b| a.1.median_us.total_cmp(&b.1.median_us));
    Ok(found)
}

/// Searches for the fastest way, as long as a budget allows. `progress` is called after each that was compiled or timed.
///
/// # Errors
/// The machine or a compiler cannot be used any more.
pub fn search<S: Subject>(
    subject: &S,
    state: &mut S::State,
    asked: Asked,
    budget: Budget,
    progress: &Progress,
) -> Result<Found> {
    let (kinds, kind_of) = subject.kinds(state);
    let space = Space {
        usual: asked.usual,
        is_asked: asked.is_asked,
        kinds,
        kind_of,
        beside: &|one, other| subject.are_beside(one, other),
        hopeless: S::HOPELESS,
        together: SEARCHED * rayon::current_num_threads(),
        budget,
    };
    search::search(space, &mut Meter::new(subject, state, progress))
}

/// Ways as they are timed.
struct Meter<'a, S: Subject> {
    subject: &'a S,
    state: &'a mut S::State,
    /// Those that a search has tried.
    ready: BTreeMap<usize, S::Planned>,
    /// Seconds that a byte of a kernel's text took to compile, at most.
    pace: Mutex<f64>,
    progress: &'a Progress<'a>,
}

impl<'a, S: Subject> Meter<'a, S> {
    fn new(subject: &'a S, state: &'a mut S::State, progress: &'a Progress<'a>) -> Self {
        Self { subject, state, ready: BTreeMap::new(), pace: Mutex::new(0.0), progress }
    }

    /// Compiles ways on all cores, before anything is measured: the thread that launches kernels should not wait for one. Of a budget,
    /// not those for which there is no time left.
    fn compiled(&self, ways: &[usize], budget: Option<Budget>) -> Vec<Option<Result<S::Planned>>> {
        let Self { subject, pace, progress, .. } = self;
        let longest = || pace.lock().map_or(0.0, |pace| *pace);
        let compile = |&way: &usize| -> Option<Result<S::Planned>> {
            let left = budget.map(|budget| budget.left());
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let mut planned = match subject.plan(way) {
                Ok(planned) => planned,
                Err(error) => return Some(Err(error)),
            };
            let bytes = subject.bytes(&planned) as f64;
            // A compiler that is at work cannot be stopped.
            if left.is_some_and(|left: Duration| longest() * bytes > left.as_secs_f64()) {
                return None;
            }
            let compiled = subject.compile(&mut planned);
            Some(compiled.map(|seconds| {
                if let Ok(mut pace) = pace.lock() {
                    *pace = pace.max(seconds / bytes.max(1.0));
                }
                planned
            }))
        };
        let told = |way| {
            let compiled = compile(way);
            progress(1);
            compiled
        };
        ways.par_iter().map(told).collect()
    }

    fn failed(&mut self, way: usize, error: Error) -> Result<()> {
        match error.fault {
            // The others would fare no better.
            Fault::Machine => Err(error),
            Fault::Input | Fault::Check | Fault::Call => self.subject.failed(self.state, way, error),
        }
    }

    fn time(&mut self, way: usize, planned: &S::Planned, how: How) -> Result<Timed> {
        let error = match self.subject.time(self.state, way, planned, how) {
            Ok(timed) => return Ok(timed),
            Err(error) => error,
        };
        if let Err(broken) = self.subject.platform().check() {
            let message = format!("nothing more can be measured: {}; before that, {}", broken.message, error.message);
            return Err(Error::check(message).help(self.subject.rescue()));
        }
        let why = error.message.clone();
        self.failed(way, error)?;
        Ok(Err(why))
    }
}

impl<S: Subject> Trial for Meter<'_, S> {
    fn times(&mut self, ways: &[usize], enough: f64, budget: Option<Budget>) -> Result<Vec<Tried>> {
        let mut tried = vec![Tried::Failed; ways.len()];
        let mut ready = Vec::new();
        for (place, planned) in self.compiled(ways, budget).into_iter().enumerate() {
            match planned {
                Some(Ok(planned)) => ready.push((place, planned)),
                Some(Err(error)) => self.failed(ways[place], error)?,
                None => tried[place] = Tried::Not,
            }
        }
        ready.sort_by_key(|(place, _)| self.subject.stage(ways[*place]));
        for (place, planned) in ready {
            (self.progress)(1);
            let way = ways[place];
            let timed = match S::ROUGHLY {
                None if budget.is_some_and(|budget| budget.is_over()) => {
                    tried[place] = Tried::Not;
                    continue;
                }
                None => self.time(way, &planned, How::Exactly)?,
                // What is compiled is timed, whatever the time: that takes next to nothing.
                Some(runs) => match self.time(way, &planned, How::Roughly(1))? {
                    Ok(once) if once.median_us <= enough => self.time(way, &planned, How::Roughly(runs))?,
                    once => once,
                },
            };
            tried[place] = timed.map_or(Tried::Failed, |statistics| Tried::Took(statistics.median_us));
            self.ready.insert(way, planned);
        }
        Ok(tried)
    }

    fn exact(&mut self, way: usize) -> Result<Timed> {
        let Some(planned) = self.ready.remove(&way) else { return Ok(Err("it was not compiled".to_owned())) };
        let timed = self.time(way, &planned, How::Exactly);
        self.ready.insert(way, planned);
        timed
    }
}
