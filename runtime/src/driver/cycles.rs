//! Loops whose launches are recorded once and then started many at once, so that there is no gap between them.
//!
//! Buffers rotate, so after some times of a loop a driver has everything where it had it before: then it launches what it has
//! launched since. A recording takes the driver from one such state to another, and is good wherever the first is met again.

use super::Driver;
use super::script::Backend;
use super::slots::Frame;
use crate::error::Result;
use std::rc::Rc;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::program::{Loop, Step};

/// The most times of a loop in a recording.
const TIMES: usize = 64;

/// The most launches in a recording.
const LAUNCHES: u64 = 4096;

/// So few times left of a loop are not worth a recording.
const FEW: usize = 4;

/// The most states of a loop that are remembered: who has not come back to one of them never will.
const STATES: usize = 16;

/// All that decides what a driver launches next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// By variable: the slot that it is bound to.
    pub bound: Vec<Option<usize>>,
    /// By slot: what is known of its content.
    pub slots: Vec<(Option<VariableId>, Option<Frame>)>,
    /// By number: the slot that a reduction left it in.
    pub numbers: Vec<(VariableId, Option<usize>)>,
}

/// What has become of a loop so far.
pub(super) struct Cycle<R> {
    /// Which loop.
    number: usize,
    /// Whether what it launches depends on nothing that has to be waited for.
    is_blind: bool,
    /// How often it was done.
    times: usize,
    /// States that it was in since somebody last looked at a number, how often it had been done by then, and how much had been launched in all.
    seen: Vec<(State, usize, u64)>,
    looks: u64,
    recorded: Option<Recorded<R>>,
}

struct Recorded<R> {
    /// Where it begins, and ends.
    state: State,
    times: usize,
    launches: u64,
    recording: R,
}

/// Whether a loop, or one in it, is a single launch already. All its blocks are there at once, and such a launch cannot be
/// recorded.
fn is_one_launch(own: &Loop) -> bool {
    let mut steps = own.turns.iter().flatten();
    own.whole.is_some() || steps.any(|step| matches!(step, Step::Repeat(inner) if is_one_launch(inner)))
}

impl<B: Backend> Driver<B> {
    /// Does a loop once, or several times at once, at most `left` times, after `before` times. Returns how often.
    pub(super) fn times(&mut self, own: &Loop, before: usize, left: usize) -> Result<usize> {
        if !self.records || is_one_launch(own) || left < FEW || !own.is_steady(before) {
            return self.some(own, before, left);
        }
        // A loop is where it is in the program.
        let number = std::ptr::from_ref(own) as usize;
        let mut cycle = match self.cycles.iter().position(|cycle| cycle.number == number) {
            Some(place) => self.cycles.swap_remove(place),
            None => {
                let is_blind = self.is_blind(own);
                Cycle { number, is_blind, times: 0, seen: Vec::new(), looks: 0, recorded: None }
            }
        };
        let done = self.cycled(&mut cycle, own, before, left);
        cycle.times += *done.as_ref().unwrap_or(&0);
        self.cycles.push(cycle);
        done
    }

    /// Whether what a loop launches depends on nothing that it computes.
    fn is_blind(&self, own: &Loop) -> bool {
        // A launch that is recorded is given the same numbers each time.
        own.counter.is_none()
            && own.turns.iter().flatten().all(|step| match step {
                Step::Stage(stage) => !self.script.reads_numbers(*stage),
                Step::Rename(..) => true,
                Step::Number(..) => false,
                Step::Repeat(inner) => self.script.is_known(inner) && self.is_blind(inner),
            })
    }

    fn cycled(&mut self, cycle: &mut Cycle<B::Recording>, own: &Loop, before: usize, left: usize) -> Result<usize> {
        // Between two looks a number may need one buffer more than there were.
        if self.looks.get() != cycle.looks {
            cycle.seen.clear();
            cycle.looks = self.looks.get();
        }
        if !cycle.is_blind || (cycle.recorded.is_none() && cycle.seen.len() == STATES) {
            return self.some(own, before, left);
        }
        let now = self.state();
        if let Some(known) = &cycle.recorded {
            if known.times > left || known.state != now {
                return self.some(own, before, left);
            }
            self.backend.replay(&known.recording)?;
            self.launches += known.launches;
            return Ok(known.times);
        }
        if let Some((_, times, launches)) = cycle.seen.iter().find(|(state, ..)| *state == now) {
            let (period, launches) = (cycle.times - times, self.launches - launches);
            let periods = (left.min(TIMES) / period.max(1)).min((LAUNCHES / launches.max(1)) as usize);
            if periods * period >= FEW {
                return self.record(cycle, own, before, periods * period, now);
            }
        } else {
            cycle.seen.push((now, cycle.times, self.launches));
        }
        self.some(own, before, left)
    }

    /// Records so many times of a loop, and does them.
    fn record(
        &mut self,
        cycle: &mut Cycle<B::Recording>,
        own: &Loop,
        done: usize,
        most: usize,
        state: State,
    ) -> Result<usize> {
        let (backend, before) = (Rc::clone(&self.backend), self.launches);
        let mut times = 0;
        // Loops in the loop are launched one by one.
        self.records = false;
        let recorded = backend.record(&mut || {
            while times < most {
                times += self.some(own, done + times, most - times)?;
            }
            Ok(())
        })?;
        let Some(recording) = recorded else {
            // Who has no use for it is not asked again.
            return self.some(own, done, most);
        };
        self.records = true;
        backend.replay(&recording)?;
        // It serves again if it leads to where it began.
        if self.state() == state {
            cycle.recorded = Some(Recorded { state, times, launches: self.launches - before, recording });
        }
        Ok(times)
    }
}
