//! Which of many kernels is the fastest, found by measuring few of them.
//!
//! Kernels that differ in their blocks alone are a kind. Of each kind a few blocks are measured, those first that should be the
//! fastest by the model. Kinds that could not win even if the model flattered them are left out. Then the search moves on from
//! the fastest kernels to those beside them, which have half or twice as much of one extent, until none of them is left.
//! One layout comes after the other, for to lay fields out anew takes as long as many kernels.

use crate::bench::sweep::layout;
use crate::error::Result;
use std::collections::BTreeMap;
use stencilc_compiler::plan::Choices;

/// Blocks beside a strategy's own that each kind is begun with.
const BEGIN: [[u32; 3]; 1] = [[32, 4, 1]];

/// From so many of the fastest kernels the search moves on,
const BEST: usize = 4;

/// and from the best of each kind that takes at most so many times the best time.
const CLOSE: f64 = 1.15;

/// A kind is not begun if by the model it takes more than so many times the best time.
const HOPELESS: f64 = 1.2;

/// What measures.
pub trait Trial {
    /// What kernels may take by the model, in any unit that is the same for all; nothing of those that make no sense.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn estimates(&mut self, kernels: &[&Choices]) -> Result<Vec<Option<f64>>>;

    /// Microseconds that each of these kernels takes; nothing of those that have failed, or, if the time is over, were not
    /// tried. Times of more than `enough` need not be exact.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn times(&mut self, kernels: &[&Choices], enough: f64) -> Result<Vec<Option<f64>>>;

    /// How many kernels are measured together.
    fn together(&self) -> usize;

    /// Whether the time for it is over.
    fn is_over(&self) -> bool;
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// Kernels by their place in the list of all, and the times of those that have one, the fastest first.
    pub times: Vec<(usize, f64)>,
    /// How many were tried.
    pub tried: usize,
    /// Kinds of kernels that were not begun, since the model says that they are too slow.
    pub hopeless: usize,
    /// Whether there was time for everything that was worth it.
    pub is_complete: bool,
}

/// A kind of kernels.
struct Kind {
    /// Those that it is begun with.
    begin: Vec<usize>,
    estimate: f64,
    /// On which fields it runs: the number of their layout, the most promising first.
    layout: usize,
}

/// Searches among `kernels`.
///
/// # Errors
/// Those of the trial.
pub fn search(kernels: &[Choices], trial: &mut dyn Trial) -> Result<Found> {
    let mut search = Search { kernels, kinds: Vec::new(), times: vec![Tried::Not; kernels.len()], hopeless: 0 };
    let is_complete = search.run(trial)?;
    let mut times: Vec<(usize, f64)> = search.known().collect();
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let tried = search.times.iter().filter(|tried| !matches!(tried, Tried::Not)).count();
    Ok(Found { times, tried, hopeless: search.hopeless, is_complete })
}

#[derive(Clone, Copy)]
enum Tried {
    Not,
    Failed,
    Took(f64),
}

struct Search<'a> {
    kernels: &'a [Choices],
    /// Of each kernel its kind.
    kinds: Vec<usize>,
    times: Vec<Tried>,
    hopeless: usize,
}

impl Search<'_> {
    /// Searches one layout after the other. Says whether there was time for it.
    fn run(&mut self, trial: &mut dyn Trial) -> Result<bool> {
        let mut kinds = self.sorted_kinds(trial)?;
        // By how much the model flatters: as little as it did so far.
        let mut flattery = f64::INFINITY;
        while let Some(layout) = kinds.first().map(|kind| kind.layout) {
            while kinds.first().is_some_and(|kind| kind.layout == layout) {
                if trial.is_over() {
                    return Ok(false);
                }
                self.begin(&mut kinds, &mut flattery, trial)?;
            }
            if !self.go_on(trial)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures a few kernels of each of the next kinds of one layout, once those are gone that are hopeless.
    fn begin(&mut self, kinds: &mut Vec<Kind>, flattery: &mut f64, trial: &mut dyn Trial) -> Result<()> {
        let (best, all, layout) = (self.best(), kinds.len(), kinds[0].layout);
        kinds.retain(|kind| best.is_none_or(|best| kind.estimate * *flattery <= HOPELESS * best));
        self.hopeless += all - kinds.len();
        let (mut batch, mut taken) = (Vec::new(), 0);
        while kinds.get(taken).is_some_and(|kind| kind.layout == layout) && batch.len() < trial.together() {
            batch.extend(&kinds[taken].begin);
            taken += 1;
        }
        self.measure(&batch, trial)?;
        for kind in kinds.drain(..taken) {
            let times = kind.begin.iter().filter_map(|&own| self.time(own));
            *flattery = times.map(|time| time / kind.estimate).fold(*flattery, f64::min);
        }
        Ok(())
    }

    /// The kinds, those first that should be the fastest, but those of one layout together.
    fn sorted_kinds(&mut self, trial: &mut dyn Trial) -> Result<Vec<Kind>> {
        let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let names: Vec<String> = self.kernels.iter().map(kind_of).collect();
        for (kernel, name) in names.iter().enumerate() {
            members.entry(name.clone()).or_default().push(kernel);
        }
        let numbers: BTreeMap<&str, usize> = members.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        self.kinds = names.iter().map(|name| numbers[name.as_str()]).collect();
        let begins: Vec<Vec<usize>> = members.values().map(|members| self.first_of(members)).collect();
        let leaders: Vec<&Choices> = begins.iter().map(|begin| &self.kernels[begin[0]]).collect();
        let layouts = leaders.iter().map(|leader| layout(leader));
        let kinds = trial.estimates(&leaders)?.into_iter().zip(layouts).zip(begins);
        let mut kinds: Vec<_> =
            kinds.filter_map(|((estimate, layout), begin)| Some((estimate?, layout, begin))).collect();
        kinds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut layouts = Vec::new();
        let kinds = kinds.into_iter().map(|(estimate, layout, begin)| {
            let known = layouts.iter().position(|own| *own == layout);
            let layout = known.unwrap_or_else(|| {
                layouts.push(layout);
                layouts.len() - 1
            });
            Kind { begin, estimate, layout }
        });
        let mut kinds: Vec<Kind> = kinds.collect();
        kinds.sort_by_key(|kind| kind.layout);
        Ok(kinds)
    }

    /// The kernels that a kind is begun with: those of the usual blocks, or whatever there is.
    fn first_of(&self, members: &[usize]) -> Vec<usize> {
        let own = Choices::usual_block(&self.kernels[members[0]].access);
        let with = |block| members.iter().copied().find(|&kernel| self.kernels[kernel].block == block);
        let mut first: Vec<usize> = std::iter::once(own).chain(BEGIN).filter_map(with).collect();
        first.dedup();
        if first.is_empty() { members[members.len() / 2..][..1].to_vec() } else { first }
    }

    /// Moves on from the fastest kernels until all beside them were tried. Says whether there was time for it.
    fn go_on(&mut self, trial: &mut dyn Trial) -> Result<bool> {
        loop {
            let mut next = self.beside_the_best();
            next.truncate(trial.together());
            if next.is_empty() {
                return Ok(true);
            }
            if trial.is_over() {
                return Ok(false);
            }
            self.measure(&next, trial)?;
        }
    }

    /// Kernels that were not tried, beside the fastest ones; those beside the very fastest first.
    fn beside_the_best(&self) -> Vec<usize> {
        let Some(best) = self.best() else { return Vec::new() };
        let mut sorted: Vec<(usize, f64)> = self.known().collect();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut kinds = Vec::new();
        let mut next = Vec::new();
        for (place, (kernel, time)) in sorted.into_iter().enumerate() {
            let is_first = !kinds.contains(&self.kinds[kernel]);
            if place < BEST || (is_first && time <= CLOSE * best) {
                let untried = (0..self.kernels.len()).filter(|&other| matches!(self.times[other], Tried::Not));
                let beside = untried.filter(|&other| are_beside(&self.kernels[kernel], &self.kernels[other]));
                let new: Vec<usize> = beside.filter(|other| !next.contains(other)).collect();
                next.extend(new);
            }
            kinds.push(self.kinds[kernel]);
        }
        next
    }

    fn measure(&mut self, batch: &[usize], trial: &mut dyn Trial) -> Result<()> {
        let kernels: Vec<&Choices> = batch.iter().map(|&kernel| &self.kernels[kernel]).collect();
        let enough = self.best().map_or(f64::INFINITY, |best| HOPELESS * best);
        for (&kernel, time) in batch.iter().zip(trial.times(&kernels, enough)?) {
            self.times[kernel] = match time {
                Some(time) => Tried::Took(time),
                None if trial.is_over() => Tried::Not,
                None => Tried::Failed,
            };
        }
        Ok(())
    }

    fn time(&self, kernel: usize) -> Option<f64> {
        match self.times[kernel] {
            Tried::Took(time) => Some(time),
            Tried::Not | Tried::Failed => None,
        }
    }

    fn known(&self) -> impl Iterator<Item = (usize, f64)> {
        (0..self.times.len()).filter_map(|kernel| Some((kernel, self.time(kernel)?)))
    }

    fn best(&self) -> Option<f64> {
        self.known().map(|(_, time)| time).min_by(f64::total_cmp)
    }
}

/// Everything but the block.
fn kind_of(choices: &Choices) -> String {
    Choices { block: Choices::usual_block(&choices.access), ..choices.clone() }.words()
}

/// Whether two kernels differ by a factor of two in one extent of the block, or one number of a knob; or in two of the block, which has as
/// many threads all the same.
fn are_beside(one: &Choices, other: &Choices) -> bool {
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
