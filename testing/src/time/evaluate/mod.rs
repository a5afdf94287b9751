//! What a program in time means, cell by cell: `docs/language.md`, "Programs".
//!
//! There are no halos and no fusing: a read beyond an edge is looked up where the rule says that its value is. On which
//! cells a call is computed is found out first, each time that it is done: loops are written out. Then everything is done.
//! Cells that stand in no rows are numbered along i, and j has one cell.

mod cell;
mod kept;
mod place;
mod regions;

use super::tree::{Action, Number, Rule, Shape, Stencil, Stored, Swept, Term, Timed};
use cell::Cell;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use stencilc_compiler::grid::Adjacency;

/// Cells along i, j and k.
pub type Extents = [usize; 3];

/// Why a program has no meaning on a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// What each variable holds, by its number: numbers of a program hold all that is stored.
pub type Arrays = BTreeMap<usize, Vec<f64>>;

/// A box of cells: along each axis which.
type Cells = [Vec<bool>; 3];

/// A program that is evaluated.
pub struct Evaluation<'a> {
    timed: &'a Timed,
    extents: Extents,
    /// Which cells are neighbours, if they stand in no rows.
    links: Option<Arc<Adjacency>>,
    /// Whether `real` is f32.
    single: bool,
    /// Values of the parameters.
    params: Vec<f64>,
    /// By variable, axis and side.
    rules: Vec<[[Rule; 2]; 3]>,
    /// Where each call is computed, in the order in which they are done.
    regions: VecDeque<Cells>,
    named: BTreeMap<usize, f64>,
}

/// Cells of an array along each axis.
fn extents_of(shape: Shape, extents: Extents) -> Extents {
    let along = |axis: usize| match (shape.has(axis), axis) {
        (true, 2) => extents[2] + usize::from(shape.interfaces),
        (true, _) => extents[axis],
        (false, _) => 1,
    };
    [along(0), along(1), along(2)]
}

impl<'a> Evaluation<'a> {
    /// Finds out which cells are computed.
    ///
    /// # Errors
    /// The program has no meaning on this grid.
    pub fn new(
        timed: &'a Timed,
        (extents, links): (Extents, Option<Arc<Adjacency>>),
        single: bool,
        params: Vec<f64>,
    ) -> Result<Self, Refused> {
        let rules = (0..timed.variables.len()).map(|variable| rules_of(timed, variable)).collect();
        let mut own =
            Self { timed, extents, links, single, params, rules, regions: VecDeque::new(), named: BTreeMap::new() };
        let mut there: Vec<Option<Cells>> = timed
            .variables
            .iter()
            .map(|variable| {
                let is_given = variable.role.is_some_and(|role| role.is_read());
                is_given.then(|| extents_of(variable.shape, extents).map(|n| vec![true; n]))
            })
            .collect();
        own.find_regions(&timed.actions, &mut there)?;
        Ok(own)
    }

    /// Where an offset leads. Where cells stand in no rows, along i first, each step to a neighbour; -1 is none, and has no neighbours.
    fn moved(&self, at: [i64; 3], by: [i64; 3]) -> [i64; 3] {
        let Some(links) = &self.links else { return added(at, by) };
        let [left, right, top, bottom] = links.neighbours();
        let go = |from: i64, [back, forth]: [&Vec<i32>; 2], by: i64| {
            let list = if by < 0 { back } else { forth };
            (0..by.abs()).fold(from, |cell, _| usize::try_from(cell).map_or(-1, |cell| i64::from(list[cell])))
        };
        let cell = go(go(at[0], [left, right], by[0]), [top, bottom], by[1]);
        [cell, 0, at[2] + by[2]]
    }

    /// The cells of a region that a variable has.
    fn cells_of(&self, variable: usize, region: &Cells) -> Cells {
        let shape = self.timed.variables[variable].shape;
        let mut own = [0, 1, 2].map(|axis| if shape.has(axis) { region[axis].clone() } else { vec![true] });
        // The lowest interface is above no level.
        own[2].extend(shape.interfaces.then_some(false));
        own
    }

    /// What the parameters of a call are.
    fn given(&self, stencil: usize, params: &[Option<Number>]) -> Vec<f64> {
        let both = params.iter().zip(&self.timed.stencils[stencil].params);
        both.map(|(given, default)| given.as_ref().map_or(default.unwrap_or(f64::NAN), |number| self.number(number)))
            .collect()
    }

    /// The branch that is taken on a level, of a choice that is known.
    fn chosen<'t>(&self, term: &'t Term, level: i64) -> &'t Term {
        match term {
            Term::Above(n, a, b) => {
                if level > *n {
                    a
                } else {
                    b
                }
            }
            Term::Below(n, a, b) => {
                if level < self.extents[2] as i64 - n {
                    a
                } else {
                    b
                }
            }
            other => other,
        }
    }

    /// Does everything. Arrays of declared variables are given; what they hold in the end is returned.
    pub fn run(mut self, mut arrays: Arrays) -> Arrays {
        let all = &self.timed.actions;
        self.done(all, &mut arrays);
        arrays
    }

    fn done(&mut self, actions: &[Action], arrays: &mut Arrays) {
        for action in actions {
            match action {
                Action::Call { .. } => {
                    let region = self.regions.pop_front().expect("it was found for each time");
                    self.call(action, &region, arrays);
                }
                Action::Rename { from, to, .. } => {
                    let value = arrays.get(from).cloned().unwrap_or_default();
                    arrays.insert(*to, value);
                }
                Action::Let(n, number) => {
                    let value = self.number(number);
                    self.named.insert(*n, value);
                }
                Action::Repeat(times, inner) => {
                    for _ in 0..self.number(times) as i64 {
                        self.done(inner, arrays);
                    }
                }
            }
        }
    }

    fn number(&self, own: &Number) -> f64 {
        match own {
            Number::Literal(x) => *x,
            Number::Whole(x) => *x as f64,
            Number::Param(n) => self.params[*n],
            // A name that is not there the compiler refuses, too.
            Number::Named(n) => self.named.get(n).copied().unwrap_or(f64::NAN),
            Number::Sum(a, b) => self.rounded(self.number(a) + self.number(b)),
        }
    }

    /// A result of one operation: of two singles, a double rounded to single is the right single.
    fn rounded(&self, x: f64) -> f64 {
        if self.single { f64::from(x as f32) } else { x }
    }

    fn stored(&self, x: f64, stored: Stored) -> f64 {
        match stored {
            Stored::Single => f64::from(x as f32),
            Stored::Real | Stored::Double => x,
            Stored::Int | Stored::Levels => f64::from(x as i64 as i32),
        }
    }

    fn call(&self, action: &Action, region: &Cells, arrays: &mut Arrays) {
        let Action::Call { stencil, reads, params, targets, fresh, .. } = action else { return };
        let own = &self.timed.stencils[*stencil];
        let given = self.given(*stencil, params);
        let variables = read_variables(own, reads);
        let at = Cell { evaluation: self, stencil: own, variables, params: given, arrays, known: RefCell::default() };
        let mut results = Vec::new();
        for (&target, (_, term)) in targets.iter().zip(sorted_outputs(own)) {
            let shape = self.timed.variables[target].shape;
            let [ni, nj, nk] = extents_of(shape, self.extents);
            let before = if *fresh { None } else { at.arrays.get(&target).cloned() };
            let empty = if shape.stored == Stored::Int { 0.0 } else { f64::NAN };
            let mut array = before.unwrap_or_else(|| vec![empty; ni * nj * nk]);
            for (k, j, i) in cells(&self.cells_of(target, region)) {
                let value = at.value(term, [i as i64, j as i64, k as i64]);
                array[(k * nj + j) * ni + i] = self.stored(value, shape.stored);
            }
            results.push((target, array));
        }
        arrays.extend(results);
    }
}

/// What is said of the edges of a variable: what names it goes before what is for all.
fn rules_of(timed: &Timed, variable: usize) -> [[Rule; 2]; 3] {
    let shape = timed.variables[variable].shape;
    let said = |of: Option<usize>, axis: usize, side: usize| {
        let own = timed.boundaries.iter().filter(move |boundary| boundary.of == of);
        own.filter_map(|boundary| boundary.rules[axis][side]).next()
    };
    let rule = |axis: usize, side: usize| match shape.has(axis) {
        true => said(Some(variable), axis, side).or_else(|| said(None, axis, side)).unwrap_or(Rule::Halo),
        false => Rule::Halo,
    };
    [0, 1, 2].map(|axis| [rule(axis, 0), rule(axis, 1)])
}

/// By fields of the stencil: the variables that are read.
fn read_variables(stencil: &Stencil, reads: &[usize]) -> BTreeMap<usize, usize> {
    let fields = stencil.fields.iter().enumerate().filter(|(_, (role, _))| role.is_read());
    fields.map(|(field, _)| field).zip(reads.iter().copied()).collect()
}

/// Values of outputs in the order in which they are declared.
fn sorted_outputs(stencil: &Stencil) -> Vec<(usize, &Term)> {
    let swept = stencil.sweeps.iter().flat_map(|sweep| &sweep.values).filter_map(|(own, term)| match own {
        Swept::Let(_) => None,
        Swept::Field(field) => Some((*field, term)),
    });
    let mut outputs: Vec<(usize, &Term)> =
        stencil.outputs.iter().map(|(field, term)| (*field, term)).chain(swept).collect();
    outputs.sort_by_key(|(field, _)| *field);
    outputs
}

/// What a value of a sweep is made of. One that there is not the compiler refuses, too.
fn swept_value(stencil: &Stencil, own: Swept) -> &Term {
    let all = stencil.sweeps.iter().flat_map(|sweep| &sweep.values);
    all.filter(|(name, _)| *name == own).map(|(_, term)| term).next().unwrap_or(&Term::Number(f64::NAN))
}

fn added(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// Every cell of a box.
fn cells(of: &Cells) -> Vec<(usize, usize, usize)> {
    let along = |axis: usize| (0..of[axis].len()).filter(move |&at| of[axis][at]);
    along(2).flat_map(|k| along(1).flat_map(move |j| along(0).map(move |i| (k, j, i)))).collect()
}
