//! Cells that calls do not compute since nothing says what lies beyond edges: what is told about them.

use super::Staged;
use super::region::There;
use crate::diagnostic::Refusal;
use crate::grid::{Form, Region};
use crate::ir::program::{Call, GridAxis, Side};
use crate::ir::{Role, VariableId};
use std::ops::Range;

/// No cells along any axis.
const NONE: [[usize; 2]; 3] = [[0; 2]; 3];

/// The outer cells of a field that no call computes, though nobody said that they stay as they are; or that only earlier turns of
/// a loop computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rim {
    /// The field, one of those declared.
    pub variable: VariableId,
    /// By axis and side: how many cells. None where `halo` was said.
    pub cells: [[usize; 2]; 3],
    /// By axis and side: how many cells hold what earlier turns of a loop computed, and the last one did not.
    pub old: [[usize; 2]; 3],
    /// The same two of whole columns, where they stand in no rows.
    pub columns: [usize; 2],
    /// Whether the outer cells keep what was given; else they end as nothing.
    pub is_kept: bool,
}

impl Rim {
    /// Of a field of which calls computed some cells, and some have values in the end; and what a call of a loop computed in any
    /// turn, and in the last one, where that was less.
    pub(super) fn of(
        staged: &Staged,
        variable: VariableId,
        [made, ends]: [&There; 2],
        lost: Option<[&There; 2]>,
    ) -> Option<Self> {
        let own = &staged.program.variables[variable];
        let inner = staged.inner();
        // What somebody left out by saying where something is computed is nothing to tell of.
        let writers = staged.stages.iter().filter(|stage| stage.call.writes().any(|id| id == variable));
        let said: Vec<GridAxis> = writers.flat_map(|stage| &stage.stencil.within).map(|bound| bound.axis).collect();
        let is_open = |axis: GridAxis| {
            let is_there = axis == GridAxis::K || staged.domain.form == Form::Rows;
            is_there && axis.is_of(own.place) && !said.contains(&axis)
        };
        let rim = |there: &There| {
            GridAxis::ALL.map(|axis| {
                let [low, high] = outside(inner.along(axis), there.along(axis));
                [(Side::Low, low), (Side::High, high)]
                    .map(|(side, cells)| if is_open(axis) && !own.edges.is_said(axis, side) { cells } else { 0 })
            })
        };
        let old = lost.map_or([[0; 2]; 3], |[any, last]| {
            GridAxis::ALL.map(|axis| if is_open(axis) { outside(any.along(axis), last.along(axis)) } else { [0; 2] })
        });
        let is_said = GridAxis::ends().all(|(axis, side)| axis == GridAxis::K || own.edges.is_said(axis, side));
        let missing = |there: &There| if is_said { 0 } else { there.columns_outside() };
        let old_columns = lost.map_or(0, |[any, last]| last.columns_outside().saturating_sub(any.columns_outside()));
        let own = Self {
            variable,
            cells: rim(made),
            old,
            columns: [missing(made), old_columns],
            is_kept: rim(ends) == NONE && missing(ends) == 0,
        };
        (own.is_uncomputed() || own.is_old()).then_some(own)
    }

    /// Whether no call computes some cells.
    fn is_uncomputed(&self) -> bool {
        self.cells != NONE || self.columns[0] > 0
    }

    /// Whether some cells are older than others.
    pub(super) fn is_old(&self) -> bool {
        self.old != NONE || self.columns[1] > 0
    }

    /// What there is to say about it.
    pub fn told(&self, staged: &Staged) -> String {
        let own = &staged.program.variables[self.variable];
        let (name, program) = (&own.name, &staged.program.name);
        let [columns, old_columns] = self.columns;
        let said = |cells, columns| {
            let columns = (columns > 0).then(|| format!("{columns} of the {} columns", staged.domain.columns()));
            along(cells).into_iter().chain(columns).collect::<Vec<_>>().join(" and ")
        };
        let (what, how) = match (self.is_kept, own.role) {
            (true, Some(Role::Out)) | (false, _) => ("have no value", "leaves them out"),
            (true, _) => ("keep what is given", "leaves them so"),
        };
        let mut parts = Vec::new();
        if self.is_uncomputed() {
            let mut told = format!(
                "the outer cells of `{name}` {what}: program `{program}` computes all but {}; ",
                said(self.cells, columns)
            );
            if self.cells != NONE {
                let rules = rules(self.cells);
                told.push_str(&format!(
                    "`boundary {{ {rules} }}` says what lies beyond the edges, and `halo` there {how}"
                ));
            }
            // Along i and j, such a grid has no edge that a rule could be for.
            if columns > 0 {
                let and = if self.cells == NONE { "" } else { "; " };
                told.push_str(&format!(
                    "{and}from these columns some neighbour is missing, and `boundary {{ i: halo, j: halo }}` {how}"
                ));
            }
            parts.push(told);
        }
        if self.is_old() {
            parts.push(format!(
                "some cells of `{name}` are older than others: a loop of program `{program}` computes fewer in each turn, and {} of \
                 those that it computed at first hold what earlier turns computed; a `boundary` of what it reads keeps them all",
                said(self.old, old_columns),
            ));
        }
        parts.join("; ")
    }
}

/// How many cells of a range lie before a part of it, and after it.
fn outside(whole: &Range<usize>, part: &Range<usize>) -> [usize; 2] {
    [part.start.saturating_sub(whole.start), whole.end.saturating_sub(part.end)]
}

/// `the first 2 and the last of i`: of each axis that has any.
fn along(cells: [[usize; 2]; 3]) -> Vec<String> {
    let each =
        |which: &str, count: usize| if count == 1 { format!("the {which}") } else { format!("the {which} {count}") };
    let axes = GridAxis::ALL.into_iter().zip(cells).filter(|(_, cells)| *cells != [0, 0]);
    axes.map(|(axis, cells)| {
        let text = match cells {
            [low, 0] => each("first", low),
            [0, high] => each("last", high),
            [low, high] => format!("{} and {}", each("first", low), each("last", high)),
        };
        format!("{text} of {axis}")
    })
    .collect()
}

/// `i: periodic, k: copy`: what could be said of the edges.
fn rules(cells: [[usize; 2]; 3]) -> String {
    let axes = GridAxis::ALL.into_iter().zip(cells).filter(|(_, cells)| *cells != [0, 0]);
    let rule = |(axis, _)| format!("{axis}: {}", if axis == GridAxis::K { "copy" } else { "periodic" });
    axes.map(rule).collect::<Vec<_>>().join(", ")
}

/// Why a call computes no cell after so many turns of a loop: what it computed became less each time. Nothing if it did not.
pub(super) fn refusal(
    staged: &Staged,
    call: &Call,
    there: &[Option<There>],
    regions: &[&Region],
    done: usize,
) -> Option<Refusal> {
    let lost = Lost::new(staged, regions)?;
    let (inner, variables) = (staged.inner(), &staged.program.variables);
    let mut reads = call.fields.iter().zip(there).filter_map(|(binding, there)| Some((binding.read?, there.as_ref()?)));
    let short = reads.find(|(id, there)| !there.has_all(variables[*id].place, &inner))?.0;
    let turns = if done == 1 { "one turn".to_owned() } else { format!("{done} turns") };
    let what = format!("after {turns} none is left where `{}` has values", variables[short].name);
    Some(lost.refusal(staged, call, &what))
}

/// Why a loop has no further turn: what a call computes became less in each of so many.
pub(super) fn endless(staged: &Staged, call: &Call, regions: &[&Region], done: usize) -> Option<Refusal> {
    let what = format!("{done} turns have kernels of their own by now");
    Some(Lost::new(staged, regions)?.refusal(staged, call, &what))
}

/// What a turn of a loop computes less than the one before.
struct Lost {
    cells: [[usize; 2]; 3],
    columns: usize,
}

impl Lost {
    /// By the regions of a call, turn by turn; nothing if the last is no smaller.
    fn new(staged: &Staged, regions: &[&Region]) -> Option<Self> {
        let inner = staged.inner();
        let (last, before) = regions.split_last()?;
        let before = before.last().copied().unwrap_or(&inner);
        let cells = GridAxis::ALL.map(|axis| outside(before.along(axis), last.along(axis)));
        let columns = match (&before.cells, &last.cells) {
            (Some(before), Some(last)) => before.len().saturating_sub(last.len()),
            (_, None) | (None, _) => 0,
        };
        (columns > 0 || cells != NONE).then_some(Self { cells, columns })
    }

    fn refusal(&self, staged: &Staged, call: &Call, what: &str) -> Refusal {
        let stencil = &staged.program.stencils[call.stencil].name;
        let mut less = along(self.cells);
        less.extend((self.columns > 0).then(|| format!("{} columns", self.columns)));
        let boundary = match rules(self.cells) {
            rules if rules.is_empty() => String::new(),
            rules => format!("say what lies beyond the edges: `boundary {{ {rules} }}`; or "),
        };
        Refusal::new(format!(
            "`{stencil}` computes fewer cells in each turn of a loop of program `{}`: the last one lost {}, and {what}",
            staged.program.name,
            less.join(" and ")
        ))
        .help(format!(
            "{boundary}let a field that has values everywhere take the result, as in `u = {stencil}(...)`: it keeps the values of \
             cells that are not computed, and a name made by `let` has none there"
        ))
    }
}
