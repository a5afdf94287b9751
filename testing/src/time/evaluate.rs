//! What a program in time means, cell by cell: `docs/language.md`, "Programs".
//!
//! There are no halos and no fusing: a read beyond an edge is looked up where the rule says that its value is. On which
//! cells a call is computed is found out first, each time that it is done: loops are written out. Then everything is done.

use super::kept::kept;
use super::tree::{Action, Number, Op, Rule, Shape, Stencil, Stored, Swept, Term, Timed};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// A call, as far as it is known before anything is computed.
struct Known {
    stencil: usize,
    params: Vec<f64>,
    /// Values of sweeps that are there on every level.
    kept: BTreeSet<Swept>,
}

/// Two whole numbers up to here are combined by real numbers of any precision as by whole ones.
const SMALL: f64 = 4096.0;

/// What is read of a sweep at a level that there is not.
const NO_FIELD: usize = usize::MAX;

/// Where a read leads along one axis.
#[derive(Clone, Copy)]
enum Place {
    Cell(usize),
    /// The cell with the other sign.
    Negated(usize),
    Number(f64),
    Nothing,
}

/// The place at `index` of `n` cells.
fn place([low, high]: [Rule; 2], index: i64, n: usize) -> Place {
    let last = n as i64 - 1;
    let (rule, by) = match index {
        ..0 => (low, -1 - index),
        _ if index > last => (high, index - n as i64),
        _ => return Place::Cell(index as usize),
    };
    let inward = |by: i64| Place::Cell(if index < 0 { by } else { last - by } as usize);
    match rule {
        Rule::Halo => Place::Nothing,
        Rule::Periodic => Place::Cell(index.rem_euclid(n as i64) as usize),
        Rule::Copy => inward(0),
        Rule::Mirror if by <= last => inward(by),
        Rule::OddMirror if by <= last => Place::Negated(if index < 0 { by } else { last - by } as usize),
        Rule::Mirror | Rule::OddMirror => Place::Nothing,
        Rule::Value(x) => Place::Number(x),
    }
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
    pub fn new(timed: &'a Timed, extents: Extents, single: bool, params: Vec<f64>) -> Result<Self, Refused> {
        let rules = (0..timed.variables.len()).map(|variable| rules_of(timed, variable)).collect();
        let mut own = Self { timed, extents, single, params, rules, regions: VecDeque::new(), named: BTreeMap::new() };
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

    fn find_regions(&mut self, actions: &[Action], there: &mut Vec<Option<Cells>>) -> Result<(), Refused> {
        for action in actions {
            match action {
                Action::Call { stencil, reads, targets, fresh, params } => {
                    let kept = kept(&self.timed.stencils[*stencil]);
                    let at = Known { stencil: *stencil, params: self.given(*stencil, params), kept };
                    let region = self.region(&at, reads, targets, there)?;
                    for &target in targets {
                        let before = if *fresh { None } else { there[target].take() };
                        let own = self.cells_of(target, &region);
                        there[target] = Some(before.map_or(own.clone(), |before| joined(before, own)));
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

    /// The cells of a region that a variable has.
    fn cells_of(&self, variable: usize, region: &Cells) -> Cells {
        let shape = self.timed.variables[variable].shape;
        let mut own = [0, 1, 2].map(|axis| if shape.has(axis) { region[axis].clone() } else { vec![true] });
        // The lowest interface is above no level.
        own[2].extend(shape.interfaces.then_some(false));
        own
    }

    /// The cells for which each read finds a value.
    fn region(
        &self,
        of: &Known,
        reads: &[usize],
        targets: &[usize],
        there: &[Option<Cells>],
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
        let (mut all, mut needed) = (Vec::new(), BTreeSet::new());
        for (_, term) in sorted_outputs(stencil) {
            self.all_reads(of, term, [0; 3], &mut needed, &mut all);
        }
        // What is kept is made on every level, wherever it is read.
        needed.retain(|own| of.kept.contains(own));
        self.check_reach(&variables, &all)?;
        for &(field, by) in &all {
            for axis in [0, 1] {
                for (at, is_in) in region[axis].iter_mut().enumerate() {
                    *is_in &= finds(field, axis, at as i64 + by[axis]);
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
        for (axis, cells) in region.iter().enumerate() {
            let (Some(first), Some(last)) = (cells.iter().position(|&own| own), cells.iter().rposition(|&own| own))
            else {
                return Err(Refused(format!("s{number} computes nothing along axis {axis}")));
            };
            if !cells[first..=last].iter().all(|&own| own) {
                return Err(Refused(format!("s{number} leaves a gap along axis {axis}")));
            }
            // Where one of its fields has a rule, every cell is computed.
            for &variable in variables.values().chain(targets) {
                let [low, high] = self.rules[variable][axis];
                let has_axis = self.timed.variables[variable].shape.has(axis);
                if has_axis && (low != Rule::Halo && first > 0 || high != Rule::Halo && last + 1 < cells.len()) {
                    return Err(Refused(format!(
                        "v{variable} has a rule along axis {axis}, and s{number} stops before"
                    )));
                }
            }
        }
        Ok(region)
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

    /// Every read, in whatever branch that no constant rules out.
    fn all_reads(
        &self,
        of: &Known,
        term: &Term,
        at: [i64; 3],
        seen: &mut BTreeSet<Swept>,
        reads: &mut Vec<(usize, [i64; 3])>,
    ) {
        match term {
            Term::Read(field, by) => reads.push((*field, added(at, *by))),
            Term::Use(own, by) => self.all_reads(of, self.named_value(of, *own), added(at, *by), seen, reads),
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
            Term::Read(..) | Term::Swept(..) => false,
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
            Stored::Int => f64::from(x as i64 as i32),
        }
    }

    fn call(&self, action: &Action, region: &Cells, arrays: &mut Arrays) {
        let Action::Call { stencil, reads, params, targets, fresh } = action else { return };
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

/// Whether a value is a whole number.
fn is_whole(stencil: &Stencil, term: &Term) -> bool {
    match term {
        Term::Whole(_) | Term::Level => true,
        Term::Number(_) | Term::Param(_) | Term::Swept(Swept::Let(_), _) => false,
        Term::Read(field, _) | Term::Swept(Swept::Field(field), _) => stencil.fields[*field].1.stored == Stored::Int,
        Term::Use(own, _) => is_whole(stencil, &stencil.lets[*own]),
        Term::Binary(_, a, b) | Term::Above(_, a, b) | Term::Below(_, a, b) => {
            is_whole(stencil, a) && is_whole(stencil, b)
        }
        Term::Greater(four) => is_whole(stencil, &four[2]) && is_whole(stencil, &four[3]),
    }
}

fn added(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// What has values after more was computed: of two boxes of which neither holds the other, the one with more cells.
fn joined(before: Cells, more: Cells) -> Cells {
    let within = |a: &Cells, b: &Cells| a.iter().zip(b).all(|(a, b)| a.iter().zip(b).all(|(a, b)| !a || *b));
    let count = |own: &Cells| own.iter().map(|axis| axis.iter().filter(|own| **own).count()).product::<usize>();
    if within(&before, &more) || !within(&more, &before) && count(&more) > count(&before) { more } else { before }
}

/// Every cell of a box.
fn cells(of: &Cells) -> Vec<(usize, usize, usize)> {
    let along = |axis: usize| (0..of[axis].len()).filter(move |&at| of[axis][at]);
    along(2).flat_map(|k| along(1).flat_map(move |j| along(0).map(move |i| (k, j, i)))).collect()
}

/// A stencil that is computed, cell by cell.
struct Cell<'a> {
    evaluation: &'a Evaluation<'a>,
    stencil: &'a Stencil,
    variables: BTreeMap<usize, usize>,
    params: Vec<f64>,
    arrays: &'a Arrays,
    /// What sweeps have come to.
    known: RefCell<BTreeMap<(Swept, [i64; 3]), f64>>,
}

impl Cell<'_> {
    fn value(&self, term: &Term, at: [i64; 3]) -> f64 {
        let of = self.evaluation;
        match term {
            Term::Number(x) => *x,
            Term::Whole(x) => *x as f64,
            Term::Param(n) => self.params[*n],
            Term::Level => at[2] as f64,
            Term::Read(field, by) => {
                let read = self.read(self.variables[field], added(at, *by));
                if is_whole(self.stencil, term) { read } else { of.rounded(read) }
            }
            Term::Use(own, by) => self.value(&self.stencil.lets[*own], added(at, *by)),
            Term::Swept(own, by) => self.swept(*own, added(at, [0, 0, *by])),
            Term::Binary(op, a, b) => {
                let (a, b, are_whole) = self.operands(a, b, at);
                let exact = match op {
                    Op::Add if are_whole => f64::from((a as i32).wrapping_add(b as i32)),
                    Op::Sub if are_whole => f64::from((a as i32).wrapping_sub(b as i32)),
                    Op::Mul if are_whole => f64::from((a as i32).wrapping_mul(b as i32)),
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a * b,
                    Op::Min if a < b || a.is_nan() => a,
                    Op::Max if a > b || a.is_nan() => a,
                    Op::Min | Op::Max => b,
                };
                if are_whole { exact } else { of.rounded(exact) }
            }
            Term::Above(..) | Term::Below(..) => self.value(of.chosen(term, at[2]), at),
            Term::Greater(four) => {
                let [a, b, yes, no] = &**four;
                let (a, b, _) = self.operands(a, b, at);
                let chosen = if a > b { yes } else { no };
                self.value(chosen, at)
            }
        }
    }

    /// Two values that are combined, and whether they are as whole numbers of 32 bits are: both are, and beyond those
    /// that real numbers combine alike. A whole one beside a real one becomes real.
    fn operands(&self, a: &Term, b: &Term, at: [i64; 3]) -> (f64, f64, bool) {
        let (x, y) = (self.value(a, at), self.value(b, at));
        match x.abs().max(y.abs()) > SMALL && is_whole(self.stencil, a) && is_whole(self.stencil, b) {
            true => (x, y, true),
            false => (self.evaluation.rounded(x), self.evaluation.rounded(y), false),
        }
    }

    /// A value of a sweep: of a field, what is stored.
    fn swept(&self, own: Swept, at: [i64; 3]) -> f64 {
        if let Some(&known) = self.known.borrow().get(&(own, at)) {
            return known;
        }
        let value = self.value(swept_value(self.stencil, own), at);
        let value = match own {
            Swept::Let(_) => value,
            Swept::Field(field) => {
                self.evaluation.rounded(self.evaluation.stored(value, self.stencil.fields[field].1.stored))
            }
        };
        self.known.borrow_mut().insert((own, at), value);
        value
    }

    /// What a variable holds there, or what lies beyond its edge: where several axes say a number, i comes before j before k.
    fn read(&self, variable: usize, at: [i64; 3]) -> f64 {
        let shape = self.evaluation.timed.variables[variable].shape;
        let extents = extents_of(shape, self.evaluation.extents);
        let (mut cell, mut is_negated) = ([0; 3], false);
        // As a whole number a zero has no sign.
        let signed = |x: f64, is_negated: bool| match (is_negated, shape.stored) {
            (false, _) => x,
            (true, Stored::Int) => f64::from((x as i32).wrapping_neg()),
            (true, Stored::Real | Stored::Single | Stored::Double) => -x,
        };
        for axis in 0..3 {
            let index = if shape.has(axis) { at[axis] } else { 0 };
            match place(self.evaluation.rules[variable][axis], index, extents[axis]) {
                Place::Cell(own) => cell[axis] = own,
                Place::Negated(own) => (cell[axis], is_negated) = (own, !is_negated),
                Place::Number(x) => return signed(self.evaluation.rounded(x), is_negated),
                Place::Nothing => return f64::NAN,
            }
        }
        let [i, j, k] = cell;
        signed(self.arrays[&variable][(k * extents[1] + j) * extents[0] + i], is_negated)
    }
}
