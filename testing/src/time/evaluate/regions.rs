//! On which cells each call is computed: those for which every read that counts finds a value.

use super::cell::Cell;
use super::kept::kept;
use super::place::{Place, place};
use super::{Arrays, Cells, Evaluation, Refused, added, read_variables, sorted_outputs, swept_value};
use crate::time::tree::{Action, End, Rule, Swept, Term, Within};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A call, as far as it is known before anything is computed.
struct Known {
    stencil: usize,
    params: Vec<f64>,
    /// Values of sweeps that are there on every level.
    kept: BTreeSet<Swept>,
}

/// What is read of a sweep at a level that there is not.
const NO_FIELD: usize = usize::MAX;

impl Evaluation<'_> {
    /// Finds the cells of each call, in the order in which they are done; `there` is which cells of each variable hold something.
    ///
    /// # Errors
    /// The program has no meaning on this grid.
    pub(super) fn find_regions(&mut self, actions: &[Action], there: &mut Vec<Option<Cells>>) -> Result<(), Refused> {
        for action in actions {
            match action {
                Action::Call { stencil, reads, targets, fresh, params, within } => {
                    let kept = kept(&self.timed.stencils[*stencil]);
                    let at = Known { stencil: *stencil, params: self.given(*stencil, params), kept };
                    let wanted = self.wanted(*stencil, within)?;
                    let region = self.region(&at, reads, targets, there, &wanted)?;
                    // Who says where means all of it.
                    if let Some(Within { axis, .. }) =
                        within.iter().find(|own| !wanted[own.axis].clone().all(|at| region[own.axis][at]))
                    {
                        return Err(Refused(format!("s{stencil} says more along axis {axis} than it can compute")));
                    }
                    for &target in targets {
                        let before = if *fresh { None } else { there[target].take() };
                        let own = self.cells_of(target, &region);
                        there[target] =
                            Some(before.map_or(own.clone(), |before| joined(before, own, self.links.is_none())));
                    }
                    self.regions.push_back(region);
                }
                Action::Rename { from, to, .. } => there[*to] = there[*from].clone(),
                Action::Let(n, number) => {
                    let value = self.number(number);
                    self.named.insert(*n, value);
                }
                Action::Repeat(times, inner) => {
                    for _ in 0..self.number(times) as i64 {
                        self.find_regions(inner, there)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The cells for which each read finds a value.
    fn region(
        &self,
        of: &Known,
        reads: &[usize],
        targets: &[usize],
        there: &[Option<Cells>],
        wanted: &[Range<usize>; 3],
    ) -> Result<Cells, Refused> {
        let number = of.stencil;
        let stencil = &self.timed.stencils[number];
        let variables = read_variables(stencil, reads);
        let finds = |field: usize, axis: usize, index: i64| {
            let Some(&variable) = variables.get(&field) else { return false };
            let shape = self.timed.variables[variable].shape;
            let Some(there) = &there[variable] else { return false };
            if !shape.has(axis) {
                return true;
            }
            match place(self.rules[variable][axis], index, there[axis].len()) {
                Place::Cell(cell) | Place::Negated(cell) => there[axis][cell],
                Place::Number(_) => true,
                Place::Nothing => false,
            }
        };
        let mut region = self.extents.map(|n| vec![true; n]);
        let (all, mut needed) = self.reads_from(of, [0; 3]);
        // What is kept is made on every level, wherever it is read.
        needed.retain(|own| of.kept.contains(own));
        self.check_reach(&variables, &all)?;
        let [along_i, along_j, _] = &mut region;
        if self.links.is_some() {
            for (cell, is_in) in along_i.iter_mut().enumerate() {
                let (all, _) = self.reads_from(of, [cell as i64, 0, 0]);
                *is_in = all.iter().all(|&(field, at)| finds(field, 0, at[0]));
            }
        } else {
            for &(field, by) in &all {
                for (axis, cells) in [(0, &mut *along_i), (1, &mut *along_j)] {
                    for (at, is_in) in cells.iter_mut().enumerate() {
                        *is_in &= finds(field, axis, at as i64 + by[axis]);
                    }
                }
            }
        }
        for (level, is_in) in region[2].iter_mut().enumerate() {
            let mut counting = Vec::new();
            for (_, term) in sorted_outputs(stencil) {
                self.reads_on(of, term, [0; 3], level as i64, &mut BTreeSet::new(), &mut counting);
            }
            for &own in &needed {
                self.reads_on(of, swept_value(stencil, own), [0; 3], level as i64, &mut BTreeSet::new(), &mut counting);
            }
            *is_in = counting.iter().all(|&(field, by)| finds(field, 2, level as i64 + by[2]));
        }
        if !stencil.sweeps.is_empty() && !region[2].iter().all(|&own| own) {
            return Err(Refused(format!("s{number} has a sweep, and not all levels")));
        }
        for (cells, wanted) in region.iter_mut().zip(wanted) {
            let outside = cells.iter_mut().enumerate().filter(|(at, _)| !wanted.contains(at));
            outside.for_each(|(_, is_in)| *is_in = false);
        }
        for (axis, cells) in region.iter().enumerate() {
            let (Some(first), Some(last)) = (cells.iter().position(|&own| own), cells.iter().rposition(|&own| own))
            else {
                return Err(Refused(format!("s{number} computes nothing along axis {axis}")));
            };
            let has_gap = !cells[first..=last].iter().all(|&own| own);
            if has_gap && (axis == 2 || self.links.is_none()) {
                return Err(Refused(format!("s{number} leaves a gap along axis {axis}")));
            }
            // Where one of its fields has a rule, every cell is computed that should be.
            for &variable in variables.values().chain(targets) {
                let [low, high] = self.rules[variable][axis];
                let has_axis = self.timed.variables[variable].shape.has(axis);
                if has_axis
                    && (low != Rule::Halo && first > wanted[axis].start
                        || high != Rule::Halo && last + 1 < wanted[axis].end)
                {
                    return Err(Refused(format!(
                        "v{variable} has a rule along axis {axis}, and s{number} stops before"
                    )));
                }
            }
        }
        Ok(region)
    }

    /// What a call says of where it is computed.
    fn wanted(&self, stencil: usize, within: &[Within]) -> Result<[Range<usize>; 3], Refused> {
        let mut wanted = self.extents.map(|n| 0..n);
        for Within { axis, first, end } in within {
            let n = self.extents[*axis] as i64;
            let place = |own: &End| match own {
                End::After(by) => *by,
                End::Before(by) => n - by,
                End::Said(number) => self.number(number) as i64,
            };
            let first = place(first);
            let end = end.as_ref().map_or(first + 1, place);
            if self.links.is_some() && *axis < 2 || first < 0 || first > n || end < 0 || end > n {
                return Err(Refused(format!("s{stencil} is computed beyond axis {axis}")));
            }
            wanted[*axis] = first as usize..end as usize;
        }
        Ok(wanted)
    }

    /// Every read of a stencil's outputs from a place, and the values of sweeps that they need.
    fn reads_from(&self, of: &Known, at: [i64; 3]) -> (Vec<(usize, [i64; 3])>, BTreeSet<Swept>) {
        let (mut all, mut needed) = (Vec::new(), BTreeSet::new());
        for (_, term) in sorted_outputs(&self.timed.stencils[of.stencil]) {
            self.all_reads(of, term, at, &mut needed, &mut all);
        }
        (all, needed)
    }

    /// A reach beyond the array's length is an error.
    fn check_reach(&self, variables: &BTreeMap<usize, usize>, reads: &[(usize, [i64; 3])]) -> Result<(), Refused> {
        for (field, by) in reads {
            for ((by, [low, high]), n) in by.iter().zip(self.rules[variables[field]]).zip(self.extents) {
                let rule = if *by < 0 { low } else { high };
                if rule != Rule::Halo && by.unsigned_abs() as usize > n {
                    return Err(Refused("a reach beyond the array's length".into()));
                }
            }
        }
        Ok(())
    }

    /// The reads that count on a level: of a choice that is known there, those of the branch that is taken.
    fn reads_on(
        &self,
        of: &Known,
        term: &Term,
        at: [i64; 3],
        level: i64,
        seen: &mut BTreeSet<(Swept, i64)>,
        reads: &mut Vec<(usize, [i64; 3])>,
    ) {
        match term {
            Term::Read(field, by) => reads.push((*field, added(at, *by))),
            // What is read where it leads decides nothing.
            Term::Moved([_, levels], [_, by]) | Term::ByNumber([_, levels], [_, by]) => {
                reads.push((*levels, added(at, *by)));
            }
            Term::OnLevel(..) => {}
            Term::Use(own, by) => {
                self.reads_on(of, self.named_value(of, *own), added(at, *by), level, seen, reads);
            }
            Term::Swept(own, by) => {
                let is_there = (0..self.extents[2] as i64).contains(&(level + at[2] + by));
                if !is_there && of.kept.contains(own) {
                    reads.push((NO_FIELD, at));
                } else if seen.insert((*own, at[2] + by)) {
                    let value = swept_value(&self.timed.stencils[of.stencil], *own);
                    self.reads_on(of, value, added(at, [0, 0, *by]), level, seen, reads);
                }
            }
            Term::Above(..) | Term::Below(..) => {
                let chosen = self.chosen(term, level + at[2]);
                self.reads_on(of, chosen, at, level, seen, reads);
            }
            Term::Greater(four) if self.is_known(of, &four[0], true) && self.is_known(of, &four[1], true) => {
                self.reads_on(of, self.taken(of, four, level + at[2]), at, level, seen, reads);
            }
            Term::Number(_) | Term::Whole(_) | Term::Param(_) | Term::Level | Term::Binary(..) | Term::Greater(_) => {
                term.children().into_iter().for_each(|child| self.reads_on(of, child, at, level, seen, reads));
            }
        }
    }

    /// Where every read leads, in whatever branch that no constant rules out.
    fn all_reads(
        &self,
        of: &Known,
        term: &Term,
        at: [i64; 3],
        seen: &mut BTreeSet<Swept>,
        reads: &mut Vec<(usize, [i64; 3])>,
    ) {
        match term {
            Term::Read(field, by) => reads.push((*field, self.moved(at, *by))),
            Term::OnLevel(field, [i, j], _) => reads.push((*field, self.moved(at, [*i, *j, 0]))),
            Term::Moved([field, levels], [[i, j, _], by]) | Term::ByNumber([field, levels], [[i, j, _], by]) => {
                reads.extend([(*field, self.moved(at, [*i, *j, 0])), (*levels, self.moved(at, *by))]);
            }
            Term::Use(own, by) => self.all_reads(of, self.named_value(of, *own), self.moved(at, *by), seen, reads),
            // Along the levels, reads of a sweep are within the column; what is read of others is the same on each.
            Term::Swept(own, _) => {
                if seen.insert(*own) {
                    let value = swept_value(&self.timed.stencils[of.stencil], *own);
                    self.all_reads(of, value, at, seen, reads);
                }
            }
            Term::Greater(four) if self.is_known(of, &four[0], false) && self.is_known(of, &four[1], false) => {
                self.all_reads(of, self.taken(of, four, 0), at, seen, reads);
            }
            other => other.children().into_iter().for_each(|child| self.all_reads(of, child, at, seen, reads)),
        }
    }

    fn named_value(&self, of: &Known, own: usize) -> &Term {
        &self.timed.stencils[of.stencil].lets[own]
    }

    /// Whether a value is made of numbers, and, where `open` says so, of parameters and the level.
    fn is_known(&self, of: &Known, term: &Term, open: bool) -> bool {
        match term {
            Term::Number(_) | Term::Whole(_) => true,
            Term::Param(_) | Term::Level => open,
            Term::Above(..) | Term::Below(..) if !open => false,
            // What a sweep makes of the levels before is read from where it is kept.
            Term::Read(..) | Term::Moved(..) | Term::ByNumber(..) | Term::OnLevel(..) | Term::Swept(..) => false,
            Term::Use(own, _) => self.is_known(of, self.named_value(of, *own), open),
            other => other.children().into_iter().all(|child| self.is_known(of, child, open)),
        }
    }

    /// The branch of a known choice that is taken on a level.
    fn taken<'t>(&self, of: &Known, four: &'t [Term; 4], level: i64) -> &'t Term {
        let (stencil, params) = (&self.timed.stencils[of.stencil], of.params.clone());
        let arrays = Arrays::new();
        let cell = Cell {
            evaluation: self,
            stencil,
            variables: BTreeMap::new(),
            params,
            arrays: &arrays,
            known: RefCell::default(),
        };
        let [a, b, yes, no] = four;
        if cell.value(a, [0, 0, level]) > cell.value(b, [0, 0, level]) { yes } else { no }
    }
}

/// What has values after more was computed: of two boxes of which neither holds the other, and which are no box together, the one with
/// more cells. Cells that stand in no rows are beside no other.
fn joined(before: Cells, more: Cells, is_in_rows: bool) -> Cells {
    let differing: Vec<usize> = (0..3).filter(|&axis| before[axis] != more[axis]).collect();
    if let [axis] = differing[..]
        && (is_in_rows || axis == 2)
    {
        let both: Vec<bool> = before[axis].iter().zip(&more[axis]).map(|(a, b)| *a || *b).collect();
        let runs = both.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
        if runs == 1 {
            let mut whole = before;
            whole[axis] = both;
            return whole;
        }
    }
    let within = |a: &Cells, b: &Cells| a.iter().zip(b).all(|(a, b)| a.iter().zip(b).all(|(a, b)| !a || *b));
    let count = |own: &Cells| own.iter().map(|axis| axis.iter().filter(|own| **own).count()).product::<usize>();
    if within(&before, &more) || !within(&more, &before) && count(&more) > count(&before) { more } else { before }
}
