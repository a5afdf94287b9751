//! The cells that calls compute, and those on which variables have values.

use super::narrowing::Rim;
use super::{Source, Stage, Staged, beyond};
use crate::analysis::columns::columns_where;
use crate::analysis::extents::{bounds, reaches};
use crate::analysis::{bounds as said, levels};
use crate::diagnostic::Refusal;
use crate::grid::{Adjacency, Form, Grid, Region, shared};
use crate::ir::program::{Call, GridAxis, Side, Variable};
use crate::ir::scalar::Value;
use crate::ir::{FieldId, Handle, Place, Role, Stencil, VariableId};
use crate::source::Span;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The cells on which a variable has a value, on the grid with its halo.
#[derive(Clone, Debug, PartialEq)]
pub struct There {
    /// Along i, j and k; along an axis that it lacks, what does not matter.
    axes: [Range<usize>; 3],
    /// Of a grid without rows: by column. All if nothing is said.
    columns: Option<Arc<[bool]>>,
}

/// Which variables have values where, at a place of the program.
#[derive(Clone, PartialEq)]
pub struct Known(Vec<Values>);

/// Where a variable has values.
#[derive(Clone, Default, PartialEq)]
struct Values {
    there: Option<There>,
    /// Where calls computed them.
    made: Option<There>,
    /// By call, where it did so at first and at last: in a loop, that may become less.
    turns: Vec<Turns>,
}

/// What a call computed of a variable, the last time and any time.
#[derive(Clone, PartialEq)]
struct Turns {
    call: Span,
    any: There,
    last: There,
}

/// Why a call cannot be computed.
pub enum Wrong {
    /// It computes no cell.
    Empty(Refusal),
    /// Anything else.
    Other(Refusal),
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        Wrong::Other(refusal)
    }
}

/// Whether a range has all of another.
pub(super) fn covers(range: &Range<usize>, other: &Range<usize>) -> bool {
    range.start <= other.start && range.end >= other.end
}

impl Values {
    /// What a call computed in any turn, and in the last one, if that was less.
    fn narrowed(&self) -> Option<[&There; 2]> {
        let turns = self.turns.iter().find(|turns| !turns.last.contains(&turns.any))?;
        Some([&turns.any, &turns.last])
    }
}

impl There {
    /// The cells along an axis.
    pub fn along(&self, axis: GridAxis) -> &Range<usize> {
        &self.axes[axis as usize]
    }

    /// Whether it has all columns and levels of a region, along the axes that it has.
    pub fn has_all(&self, place: Place, region: &Region) -> bool {
        let has = |axis: GridAxis| !axis.is_of(place) || covers(self.along(axis), region.along(axis));
        GridAxis::ALL.into_iter().all(has)
            && self.columns.as_ref().is_none_or(|columns| columns.iter().all(|&there| there))
    }

    /// How many columns there are of which it lacks all; of a grid in rows, none are listed.
    pub fn columns_outside(&self) -> usize {
        self.columns.as_ref().map_or(0, |columns| columns.iter().filter(|&&there| !there).count())
    }

    fn cells(&self) -> usize {
        let columns = self.columns.as_ref().map(|columns| columns.iter().filter(|&&there| there).count());
        let plane = columns.unwrap_or(self.axes[0].len() * self.axes[1].len());
        plane * self.axes[2].len()
    }

    fn contains(&self, other: &There) -> bool {
        let axes = self.axes.iter().zip(&other.axes).all(|(own, other)| covers(own, other));
        let columns = match (&self.columns, &other.columns) {
            (None, _) => true,
            (Some(own), None) => own.iter().all(|&there| there),
            (Some(own), Some(other)) => own.iter().zip(&other[..]).all(|(&own, &other)| own || !other),
        };
        axes && columns
    }

    /// Both areas as one, if they are one: they differ along a single axis, and leave nothing between them there.
    fn side_by_side(&self, other: &There) -> Option<There> {
        let axes: Vec<usize> = (0..3).filter(|&axis| self.axes[axis] != other.axes[axis]).collect();
        let &[axis] = axes.as_slice() else { return None };
        let (own, more) = (&self.axes[axis], &other.axes[axis]);
        let mut both = self.clone();
        both.axes[axis] = own.start.min(more.start)..own.end.max(more.end);
        (self.columns == other.columns && own.start <= more.end && more.start <= own.end).then_some(both)
    }

    /// What there is after more was computed: of two areas of which neither holds the other, and which are none together, the larger one
    /// counts.
    fn joined(self, more: There) -> There {
        if more.contains(&self) {
            return more;
        }
        if self.contains(&more) {
            return self;
        }
        let both = self.side_by_side(&more);
        both.unwrap_or(if more.cells() > self.cells() { more } else { self })
    }
}

impl Known {
    /// Before the first call: what is given has values everywhere, and what its edges give.
    pub fn new(staged: &Staged) -> Self {
        let values = |variable: &Variable| {
            let whole = There { axes: staged.inner_of(variable.place), columns: None };
            Values { there: variable.role.filter(|role| role.is_read()).map(|_| whole), ..Values::default() }
        };
        Self(staged.program.variables.iter().map(|(_, variable)| values(variable)).collect())
    }

    /// Whether a variable was given a value.
    pub fn has(&self, id: VariableId) -> bool {
        self.0[id.index()].there.is_some()
    }

    /// A variable has no value any more.
    pub fn forget(&mut self, id: VariableId) {
        self.0[id.index()] = Values::default();
    }

    /// A variable gets the value of another.
    pub fn rename(&mut self, from: VariableId, to: VariableId) {
        self.0[to.index()] = self.0[from.index()].clone();
    }

    /// By the fields of a call's stencil: what can be read.
    pub fn read_by(&self, staged: &Staged, call: &Call) -> Vec<Option<There>> {
        call.fields.iter().map(|binding| binding.read.map(|read| self.readable(staged, read))).collect()
    }

    /// What can be read of a variable: where it has values, and beyond the edges that it reaches.
    fn readable(&self, staged: &Staged, id: VariableId) -> There {
        let inner = staged.inner_of(staged.program.variables[id].place);
        let nothing = There { axes: [0..0, 0..0, 0..0], columns: None };
        let mut there = self.0[id.index()].there.clone().unwrap_or(nothing);
        let edges = &staged.edges[id.index()];
        for (axis, (own, whole)) in GridAxis::ALL.into_iter().zip(there.axes.iter_mut().zip(inner)) {
            // What lies beyond an edge is made of cells before it, or a number.
            let is_there = |index: i64| match edges.source(axis, index, whole.len()) {
                Source::Cell(cell) | Source::Negated(cell) => own.contains(&(whole.start + cell)),
                Source::Value(_) => true,
                Source::Nothing => false,
            };
            let [low, high] =
                Side::BOTH.map(|side| if edges.has(axis, side) { staged.halo.width(axis, side) } else { 0 });
            let (mut start, mut end) = (own.start, own.end);
            if own.start == whole.start && own.start < own.end {
                start -= (1..=low.min(own.start)).take_while(|&by| is_there(-(by as i64))).count();
            }
            if own.end == whole.end && own.start < own.end {
                end += (0..high).take_while(|&by| is_there((whole.len() + by) as i64)).count();
            }
            *own = start..end;
        }
        there
    }

    /// A call has computed its outputs.
    pub fn write(&mut self, staged: &Staged, call: &Call, region: &Region) {
        for id in call.writes() {
            let place = staged.program.variables[id].place;
            let columns = region.cells.as_ref().filter(|_| place.horizontal).map(|cells| {
                let mut columns = vec![false; region.i.end];
                cells.iter().for_each(|&cell| columns[cell as usize] = true);
                columns.into()
            });
            let mut axes = staged.inner_of(place);
            // Along an axis that it lacks, it is whole.
            for axis in GridAxis::ALL.into_iter().filter(|axis| axis.is_of(place)) {
                axes[axis as usize] = region.along(axis).clone();
            }
            let own = There { axes, columns };
            let Values { there, made, turns } = &mut self.0[id.index()];
            for known in [there, made] {
                let before = known.take();
                *known = Some(before.map_or(own.clone(), |before| before.joined(own.clone())));
            }
            let before = turns.iter().position(|turns| turns.call == call.span).map(|place| turns.remove(place));
            // What others computed there is gone.
            turns.retain(|turns| !own.contains(&turns.any));
            let any = before.map_or(own.clone(), |before| before.any.joined(own.clone()));
            turns.push(Turns { call: call.span, any, last: own });
        }
    }

    /// What a call reads on cells that only earlier turns of a loop computed: where it was computed in any turn, and in the last one.
    pub fn old_read_by(&self, call: &Call, region: &Region) -> Vec<(VariableId, [There; 2])> {
        let read = call.fields.iter().filter_map(|binding| binding.read);
        let old = read.filter_map(|id| {
            let [any, last] = self.0[id.index()].narrowed()?;
            let is_within = GridAxis::ALL.into_iter().all(|axis| covers(last.along(axis), region.along(axis)));
            (!is_within).then(|| (id, [any.clone(), last.clone()]))
        });
        old.collect()
    }

    /// Of a region the cells on which each declared output has values.
    pub fn valued(&self, staged: &Staged, mut region: Region) -> Region {
        for (id, variable) in staged.program.variables.iter() {
            let is_output = variable.role.is_some_and(Role::is_written);
            let Some(there) = self.0[id.index()].there.as_ref().filter(|_| is_output) else { continue };
            region = region.map(|axis, own| match axis.is_of(variable.place) {
                true => shared(own, there.along(axis)),
                false => own.clone(),
            });
            if let (Some(cells), Some(columns)) = (&region.cells, &there.columns) {
                region.cells = Some(cells.iter().copied().filter(|&cell| columns[cell as usize]).collect());
            }
        }
        region
    }

    /// The outer cells of outputs that no call computed.
    pub fn rims(&self, staged: &Staged, old: &BTreeMap<VariableId, [There; 2]>) -> Vec<Rim> {
        let variables = staged.program.variables.iter();
        let outputs = variables.filter(|(_, variable)| variable.role.is_some_and(Role::is_written));
        let mut rims: Vec<Rim> = outputs
            .filter_map(|(id, _)| {
                let values = &self.0[id.index()];
                Rim::of(staged, id, [values.made.as_ref()?, values.there.as_ref()?], values.narrowed())
            })
            .collect();
        for (&id, [any, last]) in old {
            if !rims.iter().any(|rim| rim.variable == id && rim.is_old()) {
                let whole = There { axes: staged.inner_of(staged.program.variables[id].place), columns: None };
                rims.extend(Rim::of(staged, id, [&whole, &whole], Some([any, last])));
            }
        }
        rims
    }
}

/// The cells that a call computes, of whose fields so much is there.
pub fn region(
    staged: &Staged,
    stencil: &Stencil,
    call: &Call,
    params: &[Value],
    adjacency: Option<&Adjacency>,
    there: &[Option<There>],
) -> Result<Region, Wrong> {
    let mut region = staged.inner();
    let program = &staged.program.name;
    let known = levels::Known::new(stencil, staged.precision, staged.grid.nk, params).on(staged.domain);
    let wanted = staged.wanted(&known);
    if staged.domain.form == Form::Rows {
        for (number, reach) in bounds(stencil).into_iter().enumerate() {
            let (Some(reach), Some(there)) = (reach, &there[number]) else { continue };
            if !stencil.fields[FieldId::new(number)].place.horizontal {
                continue;
            }
            region.i = within(&region.i, &there.axes[0], reach.along(GridAxis::I));
            region.j = within(&region.j, &there.axes[1], reach.along(GridAxis::J));
        }
        if region.i.is_empty() || region.j.is_empty() {
            let Grid { ni, nj, .. } = staged.domain;
            let refusal = Refusal::new(format!(
                "`{}` computes no cell in program `{program}`: it reads further than the {ni}x{nj} cells go",
                stencil.told()
            ));
            let help = "give a larger grid, or say what lies beyond its edges: `boundary { i: periodic, j: periodic }`";
            return Err(Wrong::Empty(refusal.help(help)));
        }
        let can = region;
        region = can.map(|axis, own| if axis == GridAxis::K { own.clone() } else { shared(own, wanted.along(axis)) });
        if let Some(axis) = GridAxis::ACROSS.into_iter().find(|&axis| region.along(axis).is_empty()) {
            return Err(Wrong::Empty(said::nothing(&known, axis, staged.without_edges(&can).along(axis))));
        }
    } else if let Some(adjacency) = adjacency {
        let is_there = |field: FieldId, column: usize| {
            let there = there[field.index()].as_ref();
            there.and_then(|there| there.columns.as_ref()).is_none_or(|columns| columns[column])
        };
        region.cells = Some(columns_where(stencil, adjacency, &is_there).map_err(Wrong::Empty)?);
    }
    // What is given nothing is what the call itself computes, on every level that it has.
    let ranges: Vec<Range<usize>> = (stencil.fields.iter().zip(there))
        .map(|((_, field), there)| match there {
            Some(there) => there.axes[2].clone(),
            None => 0..field.place.levels.count(staged.grid.nk),
        })
        .collect();
    let computed = levels::readable(&known, levels::candidates(stencil, region.k.clone()), Some(&ranges));
    let (Some(&first), Some(&last)) = (computed.first(), computed.last()) else {
        let refusal = Refusal::new(format!(
            "`{}` computes none of the {} levels in program `{program}`",
            stencil.told(),
            staged.domain.nk
        ));
        let help = match stencil.says(GridAxis::K) {
            true => "levels are counted from 0: look at those that are said, and at what the stencil reads on them",
            false => {
                "give a grid with more levels, guard the read, as in `if k > 0 { a[k-1] } else { a }`, or say what lies beyond: \
                 `boundary { k: copy }`"
            }
        };
        return Err(Wrong::Empty(refusal.help(help)));
    };
    if let Some(gap) = levels::gap(&computed) {
        let low = staged.halo.width(GridAxis::K, Side::Low);
        return Err(Refusal::new(format!(
            "the levels that `{}` can compute in program `{program}` have a gap: {} and {} can be computed, {} cannot",
            stencil.told(),
            first - low,
            last - low,
            gap - low
        ))
        .help("every level between the first and the last must be computable: guard the reads on the levels between")
        .into());
    }
    let levels = first..last + 1;
    if !stencil.sweeps.is_empty() && levels != levels::candidates(stencil, region.k.clone()) {
        // What a sweep starts from stands at the first level of the grid: on fewer, it would start from nothing.
        let low = staged.halo.width(GridAxis::K, Side::Low);
        return Err(Refusal::new(format!(
            "`{}` sweeps over the levels, and in program `{program}` what it reads has values on levels {}..{} of {} alone",
            stencil.told(),
            first - low,
            last + 1 - low,
            staged.domain.nk
        ))
        .help("a sweep goes through every level: in the calls before it, guard the reads, as in `if k > 0 { a[k-1] } else { a }`")
        .into());
    }
    region.k = levels;
    check_edges(staged, stencil, call, [&wanted, &region], there)?;
    let [said, can] = [&wanted, &region].map(|own| staged.without_edges(own));
    for axis in GridAxis::ALL {
        let count = staged.inner().along(axis).len();
        said::check_all(stencil, (axis, count), [said.along(axis), can.along(axis)], || {
            format!(", in program `{program}`")
        })?;
    }
    Ok(region)
}

/// The cells of `of` for which all from `low` to `high` lie in `there`.
pub(super) fn within(of: &Range<usize>, there: &Range<usize>, [low, high]: [i32; 2]) -> Range<usize> {
    let start = there.start as i64 - i64::from(low);
    let end = there.end as i64 - i64::from(high);
    let start = start.max(of.start as i64);
    let end = end.min(of.end as i64);
    if start < end { start as usize..end as usize } else { 0..0 }
}

/// Where a variable of the call has a rule for an edge, the call computes all cells that it should, up to there.
fn check_edges(
    staged: &Staged,
    stencil: &Stencil,
    call: &Call,
    [wanted, region]: [&Region; 2],
    there: &[Option<There>],
) -> Result<(), Refusal> {
    for (axis, side) in GridAxis::ends() {
        let (whole, computed) = (wanted.along(axis), region.along(axis));
        let reached = match side {
            Side::Low => computed.start == whole.start,
            // Of interfaces there is one more.
            Side::High => computed.end >= whole.end,
        };
        let has_rule = |&id: &VariableId| staged.edges[id.index()].has(axis, side);
        let ruled = call.reads().chain(call.writes()).find(has_rule);
        let (false, Some(ruled)) = (reached, ruled) else { continue };
        let name = |id: VariableId| &staged.program.variables[id].name;
        // What is read further than it is there.
        let read = call.fields.iter().zip(there).zip(reaches(stencil)).find_map(|((binding, there), reach)| {
            let (read, there, by) = (binding.read?, there.as_ref()?, beyond(reach?, axis, side));
            let own = there.along(axis);
            let short = if side == Side::Low { own.start + by > whole.start } else { own.end < whole.end + by };
            (axis.is_of(staged.program.variables[read].place) && short).then_some(read)
        });
        let Some(read) = read else {
            let first = staged.halo.width(axis, Side::Low);
            let (start, end) = (computed.start - first, computed.end - first);
            return Err(Refusal::new(format!(
                "`{}` computes `{axis}` from {start} to {} in program `{}`, and `{}` has a boundary at the {} edge, up to which every \
                 cell is computed",
                stencil.told(),
                end - 1,
                staged.program.name,
                name(ruled),
                side.name()
            ))
            .help(format!("leave out the boundary along `{axis}`, or compute all, and say in the stencil what holds at some: `if {axis} > 0 {{ ... }}`")));
        };
        let what = format!("`{}`", name(read));
        return Err(Refusal::new(format!(
                "{what} is read beyond its {} edge along `{axis}` by `{}` in program `{}`: `{}` has a boundary there, so every \
                 cell is computed, and {what} has none",
                side.name(),
                stencil.told(),
                staged.program.name,
                name(ruled)
            ))
            .help(format!("say what lies there: `boundary {} {{ {axis}: copy }}`, or guard the read", what.trim_matches('`'))));
    }
    Ok(())
}

impl Stage {
    /// What the stage reads, and writes: fields with their variables.
    pub fn reads(&self) -> impl Iterator<Item = (FieldId, VariableId)> {
        self.call.fields.iter().enumerate().filter_map(|(n, binding)| Some((FieldId::new(n), binding.read?)))
    }

    /// What the stage writes.
    pub fn writes(&self) -> impl Iterator<Item = (FieldId, VariableId)> {
        self.call.fields.iter().enumerate().filter_map(|(n, binding)| Some((FieldId::new(n), binding.written?)))
    }
}
