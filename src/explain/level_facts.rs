//! Which levels are not computed, and which reads of other levels count where.

use super::facts::Explained;
use crate::line::Line;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use stencilc_compiler::analysis::reached::{Class, Guard, LevelRead};
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::{Bound, FieldId};

/// What there is to tell about levels.
#[derive(Serialize)]
pub struct LevelFacts {
    /// Where the stencil says which levels it computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
    /// Reads that keep levels from being computed.
    pub left_out: Vec<LeftOut>,
    /// Reads of other levels.
    pub reads: Vec<ShiftedRead>,
}

/// Which part of an axis a stencil says that it computes.
#[derive(Serialize)]
pub struct Said {
    pub text: String,
    /// Where it is written.
    pub line: Line,
}

impl Said {
    /// Of a stencil along an axis, if it says any.
    pub fn of(subject: &Explained, axis: GridAxis) -> Option<Self> {
        let &Bound { span, .. } = subject.stencil.bounds(axis).next()?;
        Some(Self { text: subject.source.slice(span).to_owned(), line: Line::of(subject.source, span) })
    }
}

/// Levels that are not computed, since a read would leave the grid.
#[derive(Serialize)]
pub struct LeftOut {
    pub levels: Vec<Range<usize>>,
    /// The field, and the level read, counted from the one that is computed.
    pub field: String,
    pub shift: i32,
    /// Where it is written.
    pub lines: BTreeSet<Line>,
    /// The conditions on the level that let it be reached all the same; none if some way to it has none.
    pub guards: Vec<GuardFacts>,
}

/// A read of another level than the one that is computed.
#[derive(Serialize)]
pub struct ShiftedRead {
    pub field: String,
    pub shift: i32,
    /// Where it counts.
    pub levels: Vec<Range<usize>>,
    pub guards: Vec<GuardFacts>,
}

/// A condition on the level.
#[derive(Serialize)]
pub struct GuardFacts {
    pub text: String,
    /// Where it is written.
    pub lines: BTreeSet<Line>,
    /// Whether it holds where the read counts.
    pub holds: bool,
}

/// The longest guard that is shown whole.
const LONGEST: usize = 48;

/// What was found of one read of a field at a shift.
#[derive(Default)]
struct Found {
    levels: Vec<Range<usize>>,
    lines: BTreeSet<Line>,
    guards: BTreeSet<Guard>,
    /// Whether some way to it has no guard, so that those of the others say nothing.
    unguarded: bool,
}

impl Found {
    fn add(&mut self, levels: impl Iterator<Item = Range<usize>>, line: Line, guards: &BTreeSet<Guard>) {
        self.levels.extend(levels);
        self.lines.insert(line);
        self.guards.extend(guards);
        self.unguarded |= guards.is_empty();
    }

    fn guards(&self, subject: &Explained) -> Vec<GuardFacts> {
        if self.unguarded { Vec::new() } else { guard_facts(subject, &self.guards) }
    }
}

impl LevelFacts {
    /// Of the levels of a grid with `nk`.
    pub fn new(subject: &Explained, nk: usize, classes: &[Class]) -> Self {
        let mut left_out: BTreeMap<(FieldId, i32), Found> = BTreeMap::new();
        let mut reads: BTreeMap<(FieldId, i32), Found> = BTreeMap::new();
        for class in classes {
            for LevelRead { field, shift, span, guards } in class.level_reads(subject.stencil) {
                let line = Line::of(subject.source, span);
                if shift != 0 {
                    let found = reads.entry((field, shift)).or_default();
                    found.add(class.levels.iter().cloned(), line.clone(), &guards);
                }
                let count = subject.stencil.fields[field].place.levels.count(nk);
                let outside = outside(shift, count, nk);
                let here = class.levels.iter().flat_map(|run| outside.iter().map(|range| common(run, range)));
                let mut here = here.filter(|run| !run.is_empty()).peekable();
                if here.peek().is_some() {
                    left_out.entry((field, shift)).or_default().add(here, line, &guards);
                }
            }
        }
        let name = |field: FieldId| subject.stencil.fields[field].name.clone();
        let missing = |((field, shift), found): ((FieldId, i32), Found)| LeftOut {
            field: name(field),
            shift,
            guards: found.guards(subject),
            lines: found.lines,
            levels: merged(found.levels),
        };
        let shifted = |((field, shift), found): ((FieldId, i32), Found)| ShiftedRead {
            field: name(field),
            shift,
            guards: found.guards(subject),
            levels: merged(found.levels),
        };
        let said = Said::of(subject, GridAxis::K);
        let (left_out, reads) = (left_out.into_iter().map(missing), reads.into_iter().map(shifted));
        Self { said, left_out: left_out.collect(), reads: reads.collect() }
    }
}

/// The levels of `nk` from which the one `shift` away is none of `count`.
fn outside(shift: i32, count: usize, nk: usize) -> [Range<usize>; 2] {
    let within = |level: i64| level.clamp(0, nk as i64) as usize;
    let shift = i64::from(shift);
    [0..within(-shift), within(count as i64 - shift)..nk]
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// The same levels as runs that do not touch.
fn merged(mut runs: Vec<Range<usize>>) -> Vec<Range<usize>> {
    runs.sort_by_key(|run| run.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for run in runs {
        match merged.last_mut() {
            Some(last) if last.end >= run.start => last.end = last.end.max(run.end),
            _ => merged.push(run),
        }
    }
    merged
}

/// The guards by their text.
fn guard_facts(subject: &Explained, guards: &BTreeSet<Guard>) -> Vec<GuardFacts> {
    let mut facts: Vec<GuardFacts> = Vec::new();
    for guard in guards {
        let span = guard.span;
        let words: Vec<&str> = subject.source.slice(span).split_whitespace().collect();
        let mut text = words.join(" ");
        if text.chars().count() > LONGEST {
            text = text.chars().take(LONGEST - 3).chain("...".chars()).collect();
        }
        let line = Line::of(subject.source, span);
        match facts.iter_mut().find(|known| known.text == text && known.holds == guard.holds) {
            Some(known) => {
                known.lines.insert(line);
            }
            None => facts.push(GuardFacts { text, lines: BTreeSet::from([line]), holds: guard.holds }),
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_have_one_level_more() {
        assert_eq!(outside(1, 4, 4), [0..0, 3..4]);
        assert_eq!(outside(1, 5, 4), [0..0, 4..4]);
        assert_eq!(outside(-2, 4, 4), [0..2, 4..4]);
        assert_eq!(outside(i32::MIN, 4, 4)[0], 0..4);
    }

    #[test]
    fn runs_that_touch_are_one() {
        assert_eq!(merged(vec![3..4, 0..2, 1..3, 6..7]), [0..4, 6..7]);
    }
}
