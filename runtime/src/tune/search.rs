//! Which of many candidates is the fastest, found by measuring few of them: kernels of a stencil, plans of a program, strategies
//! over a mesh.
//!
//! What would be taken without a search is measured first, whatever the time: so what is found is never slower. Candidates are of
//! kinds. Of each kind a few are measured, those kinds first that should be the fastest by a model. Kinds that could not win even if
//! the model flattered them are left out. Then the search moves on from the fastest candidates to those beside them, until none of
//! them is left. Last, the fastest few are measured exactly, in turns, and compared with the interpreter: one that differs is
//! never chosen.

use crate::bench::statistics::Statistics;
use crate::clock::{Budget, Clock};
use crate::error::Result;
use std::time::Duration;

/// From so many of the fastest candidates the search moves on,
const BEST: usize = 4;

/// and from the best of each kind that takes at most so many times the best time.
const BESIDE: f64 = 1.15;

/// Finalists take at most so many times the best rough time, and there are at most so many, beside what is usual.
const CLOSE: f64 = 1.1;
const FINALISTS: usize = 8;

/// How often finalists take turns: clocks change while they are measured.
const TURNS: usize = 2;

/// The part of the time after which nothing more is tried: the rest is for what is under way, and for the finalists.
const SEARCHING: f64 = 0.7;

/// The budget of a search that may take so many seconds in all.
pub fn budget(clock: &dyn Clock, seconds: f64) -> Budget<'_> {
    Budget::new(clock, Duration::from_secs_f64(seconds * SEARCHING))
}

/// What is searched among: candidates, by their numbers.
pub struct Space<'a> {
    /// What would be taken without a search.
    pub usual: usize,
    /// Whether a candidate was asked for; what is usual may not have been.
    pub is_asked: &'a dyn Fn(usize) -> bool,
    /// The kinds of those that can be made.
    pub kinds: Vec<Kind>,
    /// Of each candidate a number that those of its kind have, too.
    pub kind_of: Vec<usize>,
    /// Whether the search moves on from one to the other.
    pub beside: &'a dyn Fn(usize, usize) -> bool,
    /// A kind is not begun if by the model it takes more than so many times the best time.
    pub hopeless: f64,
    /// How many candidates are prepared together.
    pub together: usize,
    /// The time for the search, once what is usual was measured. Finalists are measured after it.
    pub budget: Budget<'a>,
}

/// A kind of candidates.
pub struct Kind {
    /// Those that it is begun with.
    pub begin: Vec<usize>,
    /// What they may take by the model, in any unit that is the same for all.
    pub estimate: f64,
    /// All kinds of a lower turn come before: to change between turns takes as long as many candidates.
    pub turn: usize,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tried {
    /// There was no time for it.
    Not,
    /// It cannot be measured.
    Failed,
    /// So many microseconds.
    Took(f64),
}

/// What measures.
pub trait Trial {
    /// Tries candidates, as long as a budget leaves time to prepare them, or whatever the time. Times of more than `enough` need
    /// not be exact.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn times(&mut self, candidates: &[usize], enough: f64, budget: Option<Budget>) -> Result<Vec<Tried>>;

    /// Exact times of a candidate whose results are right, or what is wrong.
    ///
    /// # Errors
    /// There is no sense in going on.
    fn exact(&mut self, candidate: usize) -> Result<std::result::Result<Statistics, String>>;
}

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// Candidates that are right, exactly measured, the fastest first. What is usual is among them, and one that was asked for,
    /// unless they fail.
    pub fastest: Vec<(usize, Statistics)>,
    /// Whether one of them was asked for.
    pub has_asked: bool,
    /// Those that are wrong, and how.
    pub wrong: Vec<(usize, String)>,
    /// The rough times of those that have one, the fastest first.
    pub times: Vec<(usize, f64)>,
    /// How many were tried.
    pub tried: usize,
    /// Kinds that were not begun, since the model says that they are too slow.
    pub hopeless: usize,
    /// How many were worth a try and had none, for the time was over: at least so many, since each may lead to others.
    pub left: usize,
}

impl Found {
    /// Whether there was time for everything that was worth it.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Whether none of those that were asked for can be taken, though there was time for them.
    pub fn has_none(&self) -> bool {
        self.is_complete() && !self.has_asked
    }

    /// The budget of a search that leaves nothing, if this one had so many seconds.
    pub fn longer(&self, seconds: f64) -> f64 {
        let all = seconds.max(1.0) * (self.tried + self.left) as f64 / self.tried.max(1) as f64;
        // Two digits say enough.
        let digit = 10_f64.powf(all.log10().floor() - 1.0).max(1.0);
        (all / digit).ceil() * digit
    }

    /// What there was no time for in so many seconds, if anything, and what would do.
    pub fn advice(&self, seconds: f64) -> String {
        let longer = self.longer(seconds);
        match self.left {
            0 => String::new(),
            1 => format!("; one more was worth a try: --budget {longer} may find better"),
            left => format!("; {left} more at least were worth a try: --budget {longer} may find better"),
        }
    }
}

/// Searches among candidates.
///
/// # Errors
/// Those of the trial.
pub fn search(space: Space, trial: &mut dyn Trial) -> Result<Found> {
    let mut kinds: Vec<&Kind> = space.kinds.iter().collect();
    kinds.sort_by(|a, b| a.turn.cmp(&b.turn).then(a.estimate.total_cmp(&b.estimate)));
    let tried = vec![Tried::Not; space.kind_of.len()];
    let mut search = Search { space: &space, budget: space.budget, tried, flattery: None, hopeless: 0 };
    let left = search.run(kinds, trial)?;
    let mut found = Found {
        times: search.sorted(),
        tried: search.tried.iter().filter(|own| **own != Tried::Not).count(),
        hopeless: search.hopeless,
        left,
        ..Found::default()
    };
    search.finish(&mut found, trial)?;
    Ok(found)
}

struct Search<'a> {
    space: &'a Space<'a>,
    budget: Budget<'a>,
    tried: Vec<Tried>,
    /// By how much the model flatters: as little as it did so far, once several kinds have told.
    flattery: Option<f64>,
    hopeless: usize,
}

impl Search<'_> {
    /// Searches one turn after the other. Returns how many had to be left.
    fn run(&mut self, kinds: Vec<&Kind>, trial: &mut dyn Trial) -> Result<usize> {
        self.measure(&[self.space.usual], None, trial)?;
        self.budget = self.budget.anew();
        let mut left = 0;
        for kinds in kinds.chunk_by(|a, b| a.turn == b.turn) {
            left += self.begin(kinds, trial)?;
            left += self.go_on(trial)?;
        }
        Ok(left)
    }

    /// Measures a few candidates of each kind of one turn that is not hopeless.
    fn begin(&mut self, mut kinds: &[&Kind], trial: &mut dyn Trial) -> Result<usize> {
        let mut left = 0;
        while !kinds.is_empty() {
            let (mut batch, mut taken) = (Vec::new(), Vec::new());
            while let Some((kind, rest)) = kinds.split_first()
                && batch.len() < self.space.together
            {
                kinds = rest;
                let new = kind.begin.iter().copied().filter(|&own| self.tried[own] == Tried::Not);
                let new: Vec<usize> = new.collect();
                if !new.is_empty() && self.is_hopeless(kind) {
                    self.hopeless += 1;
                    continue;
                }
                batch.extend(new);
                taken.push(kind);
            }
            if self.budget.is_over() {
                left += batch.len();
                continue;
            }
            left += self.measure(&batch, Some(self.budget), trial)?;
            for kind in taken {
                let times = kind.begin.iter().filter_map(|&own| self.time(own));
                self.flattery = times.map(|time| time / kind.estimate).chain(self.flattery).min_by(f64::total_cmp);
            }
        }
        Ok(left)
    }

    /// Whether a kind could not win even if the model flattered it.
    fn is_hopeless(&self, kind: &Kind) -> bool {
        let known = self.flattery.zip(self.best());
        known.is_some_and(|(flattery, best)| kind.estimate * flattery > self.space.hopeless * best)
    }

    /// Moves on from the fastest candidates until all beside them were tried.
    fn go_on(&mut self, trial: &mut dyn Trial) -> Result<usize> {
        loop {
            let mut next = self.beside_the_best();
            if next.is_empty() || self.budget.is_over() {
                return Ok(next.len());
            }
            next.truncate(self.space.together);
            let left = self.measure(&next, Some(self.budget), trial)?;
            if left > 0 {
                return Ok(left);
            }
        }
    }

    /// Candidates that were not tried, beside the fastest ones; those beside the very fastest first.
    fn beside_the_best(&self) -> Vec<usize> {
        let (sorted, kind_of) = (self.sorted(), &self.space.kind_of);
        let Some(&(_, best)) = sorted.first() else { return Vec::new() };
        let (mut kinds, mut next): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for (place, (candidate, time)) in sorted.into_iter().enumerate() {
            let is_first = !kinds.contains(&kind_of[candidate]);
            if place < BEST || (is_first && time <= BESIDE * best) {
                let untried = (0..kind_of.len()).filter(|&other| self.tried[other] == Tried::Not);
                let beside = untried.filter(|&other| (self.space.beside)(candidate, other));
                let new: Vec<usize> = beside.filter(|other| !next.contains(other)).collect();
                next.extend(new);
            }
            kinds.push(kind_of[candidate]);
        }
        next
    }

    /// Tries some. Returns for how many there was no time.
    fn measure(&mut self, batch: &[usize], budget: Option<Budget>, trial: &mut dyn Trial) -> Result<usize> {
        let enough = self.best().map_or(f64::INFINITY, |best| self.space.hopeless * best);
        let tried = trial.times(batch, enough, budget)?;
        for (&candidate, tried) in batch.iter().zip(&tried) {
            self.tried[candidate] = *tried;
        }
        Ok(tried.iter().filter(|own| **own == Tried::Not).count())
    }

    /// Measures the fastest exactly, of those that are right, the fastest that was asked for, and what is usual: those of one turn
    /// after each other.
    fn finish(&self, found: &mut Found, trial: &mut dyn Trial) -> Result<()> {
        let Space { usual, is_asked, .. } = *self.space;
        let mut first = None;
        let mut waiting = found.times.clone();
        while !waiting.is_empty() {
            let is_enough = |&(_, time): &(usize, f64)| {
                first.is_some_and(|first| time > CLOSE * first) || found.fastest.len() >= FINALISTS
            };
            let any_asked = found.fastest.iter().any(|own| is_asked(own.0));
            let is_due = |own: &(usize, f64)| own.0 == usual || (!any_asked && is_asked(own.0)) || !is_enough(own);
            let place = waiting.iter().position(is_due);
            let Some(place) = place else { break };
            let (candidate, time) = waiting.remove(place);
            match trial.exact(candidate)? {
                Ok(statistics) => {
                    first.get_or_insert(time);
                    found.fastest.push((candidate, statistics));
                }
                Err(why) => found.wrong.push((candidate, why)),
            }
        }
        found.fastest.sort_by_key(|(candidate, _)| self.turn(*candidate));
        for _ in 1..TURNS {
            for (candidate, before) in &mut found.fastest {
                match trial.exact(*candidate)? {
                    Ok(again) if again.median_us < before.median_us => *before = again,
                    Ok(_) => {}
                    Err(why) => found.wrong.push((*candidate, why)),
                }
            }
        }
        found.fastest.retain(|(own, _)| found.wrong.iter().all(|(wrong, _)| wrong != own));
        found.fastest.sort_by(|a, b| a.1.median_us.total_cmp(&b.1.median_us));
        found.has_asked = found.fastest.iter().any(|own| is_asked(own.0));
        Ok(())
    }

    fn turn(&self, candidate: usize) -> usize {
        let kind_of = &self.space.kind_of;
        let is_own = |kind: &&Kind| kind.begin.first().is_some_and(|&own| kind_of[own] == kind_of[candidate]);
        self.space.kinds.iter().find(is_own).map_or(usize::MAX, |kind| kind.turn)
    }

    fn time(&self, candidate: usize) -> Option<f64> {
        match self.tried[candidate] {
            Tried::Took(time) => Some(time),
            Tried::Not | Tried::Failed => None,
        }
    }

    /// Those that have a time, the fastest first.
    fn sorted(&self) -> Vec<(usize, f64)> {
        let known = (0..self.tried.len()).filter_map(|own| Some((own, self.time(own)?)));
        let mut known: Vec<(usize, f64)> = known.collect();
        known.sort_by(|a, b| a.1.total_cmp(&b.1));
        known
    }

    fn best(&self) -> Option<f64> {
        (0..self.tried.len()).filter_map(|own| self.time(own)).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::tests::Counted;

    /// Candidates that take these times; some are wrong. Each costs a second to try.
    struct Recorded<'a> {
        times: &'a [f64],
        wrong: &'a [usize],
        clock: &'a Counted,
    }

    impl Trial for Recorded<'_> {
        fn times(&mut self, candidates: &[usize], _: f64, budget: Option<Budget>) -> Result<Vec<Tried>> {
            let time = |&own: &usize| {
                if budget.is_some_and(|budget| budget.is_over()) {
                    return Tried::Not;
                }
                self.clock.advance(1);
                if self.times[own].is_nan() { Tried::Failed } else { Tried::Took(self.times[own]) }
            };
            Ok(candidates.iter().map(time).collect())
        }

        fn exact(&mut self, candidate: usize) -> Result<std::result::Result<Statistics, String>> {
            Ok(match self.wrong.contains(&candidate) {
                true => Err("one bit".to_owned()),
                false => Ok(Statistics::of(&[self.times[candidate]]).unwrap()),
            })
        }
    }

    /// Time for so many candidates, beside the usual one.
    fn budget(clock: &Counted, most: u64) -> Budget<'_> {
        Budget::new(clock, Duration::from_secs(most))
    }

    /// Searches among candidates of which each is a kind of its own; all but the usual one were asked for.
    fn found(usual: usize, times: &[f64], estimates: &[Option<f64>], wrong: &[usize], most: u64) -> Found {
        let clock = Counted::default();
        let known = estimates.iter().enumerate().filter_map(|(own, estimate)| Some((own, (*estimate)?)));
        let kinds = known.map(|(own, estimate)| Kind { begin: vec![own], estimate, turn: 0 }).collect();
        let kind_of = (0..times.len()).collect();
        let (is_asked, beside, budget) = (&|own| own != usual, &|_, _| false, budget(&clock, most));
        let space = Space { usual, is_asked, kinds, kind_of, beside, hopeless: 1.5, together: 2, budget };
        search(space, &mut Recorded { times, wrong, clock: &clock }).unwrap()
    }

    const TIMES: [f64; 6] = [40.0, 10.0, 10.5, 30.0, 12.0, 200.0];

    fn estimates() -> Vec<Option<f64>> {
        // The model flatters by four times.
        TIMES.iter().map(|time| Some(time / 4.0)).collect()
    }

    fn winners(found: &Found) -> Vec<usize> {
        found.fastest.iter().map(|(own, _)| *own).collect()
    }

    #[test]
    fn the_fastest_is_found_and_hopeless_ones_are_not_tried() {
        let found = found(3, &TIMES, &estimates(), &[], u64::MAX);
        // The usual one is measured as exactly as those that are close to the best.
        assert_eq!(winners(&found), [1, 2, 3]);
        assert_eq!((found.tried, found.hopeless, found.is_complete()), (4, 2, true));
    }

    #[test]
    fn what_is_usual_is_measured_whatever_the_time_and_whatever_the_model_says() {
        let found = found(5, &TIMES, &estimates(), &[], 0);
        assert_eq!((winners(&found), found.tried, found.left), (vec![5], 1, 5));
        assert_eq!(found.longer(10.0), 60.0);
        // Even if by the model it cannot be made.
        let found = self::found(5, &TIMES, &[None; 6], &[], u64::MAX);
        assert_eq!((winners(&found), found.left), (vec![5], 0));
    }

    #[test]
    fn without_the_usual_one_others_are_found() {
        let times = [f64::NAN, 9.5, 9.0];
        let found = found(0, &times, &[None, Some(1.0), Some(1.0)], &[], u64::MAX);
        assert_eq!((winners(&found), found.tried), (vec![2, 1], 3));
    }

    #[test]
    fn what_is_wrong_is_never_chosen() {
        let found = found(0, &TIMES, &estimates(), &[1, 2], u64::MAX);
        assert_eq!(winners(&found), [4, 0]);
        assert_eq!(found.wrong.iter().map(|(own, _)| *own).collect::<Vec<_>>(), [1, 2]);
        let none = self::found(0, &TIMES, &estimates(), &[0, 1, 2, 3, 4, 5], u64::MAX);
        assert!(none.fastest.is_empty());
    }

    #[test]
    fn what_was_asked_for_is_measured_exactly_however_slow_it_is() {
        // The fastest that was asked for takes three times as long as the usual one, or four, if the other is wrong.
        let times = [10.0, 30.0, 40.0];
        for (wrong, right) in [(vec![], vec![0, 1]), (vec![1], vec![0, 2])] {
            let found = found(0, &times, &[Some(1.0); 3], &wrong, u64::MAX);
            assert_eq!((winners(&found), found.has_none()), (right, false));
        }
        assert!(found(0, &times, &[Some(1.0); 3], &[1, 2], u64::MAX).has_none());
    }

    #[test]
    fn the_search_ends_when_the_time_is_over() {
        let found = found(0, &TIMES, &estimates(), &[], 2);
        assert_eq!((found.tried, found.is_complete(), winners(&found)), (3, false, vec![1, 2, 0]));
    }

    #[test]
    fn a_turn_comes_before_another_and_the_search_moves_on_from_the_best() {
        // Two kinds: the first three, and the others, which the model puts in front.
        let kinds =
            vec![Kind { begin: vec![0], estimate: 9.0, turn: 0 }, Kind { begin: vec![3], estimate: 1.0, turn: 1 }];
        let next_to = |a: usize, b: usize| a.abs_diff(b) == 1 && a / 3 == b / 3;
        let (clock, kind_of) = (Counted::default(), vec![0, 0, 0, 1, 1, 1]);
        let (beside, budget) = (&next_to, budget(&clock, 2));
        let space = Space { usual: 0, is_asked: &|_| true, kinds, kind_of, beside, hopeless: 1e9, together: 2, budget };
        let times = &[10.0, 8.0, 6.0, 9.0, 5.0, 7.0];
        let found = search(space, &mut Recorded { times, wrong: &[], clock: &clock }).unwrap();
        // The first kind to its end, before the other is begun.
        assert_eq!((found.times, found.left), (vec![(2, 6.0), (1, 8.0), (0, 10.0)], 1));
    }
}
