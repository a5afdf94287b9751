//! On which levels a stencil can be computed.
//!
//! A level read counts only where it can be reached: a condition made of `k`, `nk`, numbers, parameters and definitions
//! of these is *known* on each level; any other is open, and then both branches count. The rules stand here once
//! (`Rules::inside`) and are read by two [`Judge`]s: one decides a given level, the other (in `cuda::levels`) writes the
//! decision down as C++, for kernels that are built before the grid is known.

use super::bounds;
use super::moving::{There, check_said};
use super::reached::leaving;
use super::runs::runs;
use crate::depth::needed_first;
use crate::diagnostic::Refusal;
use crate::grid::{Form, Grid};
use crate::ir::program::GridAxis;
use crate::ir::scalar::{Value, apply};
use crate::ir::{
    Body, Bound, DefId, FieldId, Handle, Levels, Node, NodeId, Path, Precision, Stencil, known_defs, known_nodes,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Whether there may be levels that a stencil does not compute.
pub fn leaves_levels(stencil: &Stencil) -> bool {
    let leaves = |path: &Path| path.levels() != 0;
    let shifts = |body: &Body| body.reads().any(|(_, path)| leaves(path)) || body.uses().any(|(_, path)| leaves(path));
    // Of interfaces there is one more than of levels.
    let mut written = stencil.own_fields().filter(|(_, field)| field.role.is_written());
    let is_below = written.any(|(_, field)| field.place.levels == Levels::Interfaces);
    stencil.says(GridAxis::K) || is_below || stencil.bodies().any(shifts)
}

/// Decides, or writes down, truths about one level.
pub trait Judge {
    /// A truth.
    type Truth: Clone;
    /// A truth that does not depend on the level.
    fn constant(&mut self, truth: bool) -> Self::Truth;
    /// Both.
    fn and(&mut self, a: &Self::Truth, b: &Self::Truth) -> Self::Truth;
    /// Either.
    fn or(&mut self, a: &Self::Truth, b: &Self::Truth) -> Self::Truth;
    /// Not.
    fn not(&mut self, a: &Self::Truth) -> Self::Truth;
    /// Whether the level `shift` away exists in a field, which has these levels.
    fn exists(&mut self, field: FieldId, shift: i32, levels: Levels) -> Self::Truth;
    /// Whether the level lies on the right side of a bound of levels.
    fn bound(&mut self, bound: &Bound) -> Self::Truth;
    /// The value of a known condition, `shift` levels away.
    fn condition(&mut self, body: &Body, node: NodeId, shift: i32) -> Self::Truth;
    /// Whether a level that the text says by its number exists in a field, which has these levels: it is read `shift` levels away, and as
    /// many more as a known node says. As a rule such a read decides nothing.
    fn said(&mut self, _field: FieldId, _levels: Levels, _shift: i32, _by: (&Body, NodeId, i32)) -> Self::Truth {
        self.constant(true)
    }
    /// Called with what was found out about a definition, which may be asked for again.
    fn found(&mut self, _def: DefId, _shift: i32, truth: Self::Truth) -> Self::Truth {
        truth
    }
}

/// The level rules of one stencil.
pub struct Rules<'a, J: Judge> {
    stencil: &'a Stencil,
    known: Vec<bool>,
    judge: J,
    found: HashMap<(DefId, i32), J::Truth>,
}

impl<'a, J: Judge> Rules<'a, J> {
    /// Rules of `stencil`, judged by `judge`.
    pub fn new(stencil: &'a Stencil, judge: J) -> Self {
        Self { stencil, known: known_defs(stencil), judge, found: HashMap::new() }
    }

    /// The judge, with what it wrote down.
    pub fn into_judge(self) -> J {
        self.judge
    }

    /// Whether every output can be computed, and is.
    pub fn computed(&mut self) -> J::Truth {
        let stencil = self.stencil;
        let all = self.judge.constant(true);
        let wanted = stencil.bounds(GridAxis::K).fold(all, |all, bound| {
            let own = self.judge.bound(bound);
            self.judge.and(&all, &own)
        });
        stencil.outputs().fold(wanted, |all, body| {
            let inside = self.inside(body, 0);
            self.judge.and(&all, &inside)
        })
    }

    /// Whether a body, evaluated `shift` levels away, reads no level outside the grid.
    fn inside(&mut self, body: &Body, shift: i32) -> J::Truth {
        let stencil = self.stencil;
        let needed =
            needed_first(self.unknown(body, shift), |(def, shift)| self.unknown(&stencil.defs[*def].body, *shift));
        for (def, shift) in needed {
            let truth = self.inside_body(&stencil.defs[def].body, shift);
            let truth = self.judge.found(def, shift, truth);
            self.found.insert((def, shift), truth);
        }
        self.inside_body(body, shift)
    }

    /// The definitions that a body uses, and where, of which nothing is found out yet.
    fn unknown(&self, body: &Body, shift: i32) -> Vec<(DefId, i32)> {
        let uses = body.uses().map(|(def, path)| (def, shift.saturating_add(path.levels())));
        uses.filter(|key| !self.found.contains_key(key)).collect()
    }

    /// The same of a body of whose definitions it is found out.
    fn inside_body(&mut self, body: &Body, shift: i32) -> J::Truth {
        let known = known_nodes(body, &self.known);
        // Of each node: whether evaluating it stays inside, and when it is known to be true or false.
        let mut inside: Vec<J::Truth> = Vec::with_capacity(body.len());
        let mut truths: Vec<Option<(J::Truth, J::Truth)>> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            truths.push(self.truth(body, id, node, shift, &known, &truths));
            // When a condition is known to have a truth value.
            let decided = |condition: &NodeId, truth: bool| {
                let (is_true, is_false) = truths[condition.index()].clone()?;
                Some(if truth { is_true } else { is_false })
            };
            let reached = match node {
                Node::Read { field, path, by: Some(by), .. } if known[by.index()] => {
                    let levels = self.stencil.fields[*field].place.levels;
                    self.judge.said(*field, levels, shift.saturating_add(path.levels()), (body, *by, shift))
                }
                Node::Read { by: Some(by), .. } => inside[by.index()].clone(),
                Node::Read { field, path, .. } => match self.stencil.fields[*field].place.levels {
                    Levels::None => self.judge.constant(true),
                    levels => self.judge.exists(*field, shift.saturating_add(path.levels()), levels),
                },
                Node::Use { def, path } => self.found[&(*def, shift.saturating_add(path.levels()))].clone(),
                Node::And(a, b) | Node::Or(a, b) => {
                    let right = self.unless(decided(a, matches!(node, Node::Or(..))), &inside[b.index()]);
                    self.judge.and(&inside[a.index()], &right)
                }
                Node::Choose { condition, yes, no } => {
                    let yes = self.unless(decided(condition, false), &inside[yes.index()]);
                    let no = self.unless(decided(condition, true), &inside[no.index()]);
                    let branches = self.judge.and(&yes, &no);
                    self.judge.and(&inside[condition.index()], &branches)
                }
                _ => {
                    let mut all = self.judge.constant(true);
                    for operand in node.operands() {
                        all = self.judge.and(&all, &inside[operand.index()]);
                    }
                    all
                }
            };
            inside.push(reached);
        }
        inside.pop().unwrap_or_else(|| self.judge.constant(true))
    }

    /// `reached`, which does not matter where `decided` holds.
    fn unless(&mut self, decided: Option<J::Truth>, reached: &J::Truth) -> J::Truth {
        match decided {
            Some(decided) => self.judge.or(&decided, reached),
            None => reached.clone(),
        }
    }

    /// When a condition is known to be true, and when to be false; nothing if it is open on every level.
    fn truth(
        &mut self,
        body: &Body,
        id: NodeId,
        node: &Node,
        shift: i32,
        known: &[bool],
        truths: &[Option<(J::Truth, J::Truth)>],
    ) -> Option<(J::Truth, J::Truth)> {
        if body.kind_of(id) != crate::ir::Kind::Bool {
            return None;
        }
        if known[id.index()] {
            let holds = self.judge.condition(body, id, shift);
            let fails = self.judge.not(&holds);
            return Some((holds, fails));
        }
        let (a, b, is_and) = match node {
            Node::And(a, b) => (a, b, true),
            Node::Or(a, b) => (a, b, false),
            Node::Not(a) => return truths[a.index()].clone().map(|(is_true, is_false)| (is_false, is_true)),
            _ => return None,
        };
        let never = self.judge.constant(false);
        let open = (never.clone(), never);
        let (a, b) = (truths[a.index()].clone().unwrap_or(open.clone()), truths[b.index()].clone().unwrap_or(open));
        Some(if is_and {
            (self.judge.and(&a.0, &b.0), self.judge.or(&a.1, &b.1))
        } else {
            (self.judge.or(&a.0, &b.0), self.judge.and(&a.1, &b.1))
        })
    }
}

/// Which nodes of a body may be known on a level: beside those made of what is known, an `&&` or `||` of which one side decides,
/// and what is made of such.
pub fn knowable_nodes(body: &Body, known_defs: &[bool]) -> Vec<bool> {
    body.of_nodes(|_, node, knowable| match node {
        Node::Read { .. } | Node::Present { .. } | Node::InZone(_) => false,
        Node::Use { def, .. } => known_defs[def.index()],
        Node::And(a, b) | Node::Or(a, b) => knowable[a.index()] || knowable[b.index()],
        _ => node.operands().iter().all(|operand| knowable[operand.index()]),
    })
}

/// Whether the levels that `stencil` computes depend on its parameters.
pub fn depend_on_params(stencil: &Stencil) -> bool {
    let with_params = stencil.of_defs(|body, with_params| body.any(with_params, is_param));
    matches!(Rules::new(stencil, Dependence { with_params }).computed(), Depends::On { params: true })
}

fn is_param(node: &Node) -> bool {
    matches!(node, Node::Param(_))
}

/// Finds out what a truth depends on.
struct Dependence {
    with_params: Vec<bool>,
}

/// A truth that is the same always, or depends on the level and perhaps on parameters.
#[derive(Clone, Copy, PartialEq)]
enum Depends {
    Never(bool),
    On { params: bool },
}

impl Dependence {
    fn join(a: &Depends, b: &Depends, decides: bool) -> Depends {
        match (*a, *b) {
            (Depends::Never(truth), _) | (_, Depends::Never(truth)) if truth == decides => Depends::Never(decides),
            (Depends::Never(_), other) | (other, Depends::Never(_)) => other,
            (Depends::On { params: a }, Depends::On { params: b }) => Depends::On { params: a || b },
        }
    }
}

impl Judge for Dependence {
    type Truth = Depends;
    fn constant(&mut self, truth: bool) -> Depends {
        Depends::Never(truth)
    }
    fn and(&mut self, a: &Depends, b: &Depends) -> Depends {
        Self::join(a, b, false)
    }
    fn or(&mut self, a: &Depends, b: &Depends) -> Depends {
        Self::join(a, b, true)
    }
    fn not(&mut self, a: &Depends) -> Depends {
        match *a {
            Depends::Never(truth) => Depends::Never(!truth),
            open => open,
        }
    }
    fn exists(&mut self, _: FieldId, shift: i32, levels: Levels) -> Depends {
        let always = shift == 0 || shift == 1 && levels == Levels::Interfaces;
        if always { Depends::Never(true) } else { Depends::On { params: false } }
    }
    fn bound(&mut self, bound: &Bound) -> Depends {
        Depends::On { params: bound.body.any(&self.with_params, is_param) }
    }
    fn condition(&mut self, body: &Body, node: NodeId, _: i32) -> Depends {
        Depends::On { params: body.rooted(node).any(&self.with_params, is_param) }
    }
}

/// Known values on the levels of one grid.
pub struct Known<'a> {
    stencil: &'a Stencil,
    defs: Vec<bool>,
    precision: Precision,
    nk: usize,
    /// How many columns there are along i and j, where they stand in rows, and that is known.
    columns: Option<[usize; 2]>,
    params: &'a [Value],
    /// Values of definitions found so far, so that a chain of them costs its length.
    found: Mutex<Found>,
}

impl<'a> Known<'a> {
    /// For a grid of `nk` levels and one value a parameter.
    pub fn new(stencil: &'a Stencil, precision: Precision, nk: usize, params: &'a [Value]) -> Self {
        Self { stencil, defs: known_defs(stencil), precision, nk, columns: None, params, found: Mutex::default() }
    }

    /// The same on a grid, whose columns bounds may count.
    pub fn on(self, grid: Grid) -> Self {
        Self { columns: (grid.form == Form::Rows).then_some([grid.ni, grid.nj]), ..self }
    }

    /// How many cells there are along an axis, if that is known.
    pub(super) fn extent(&self, axis: GridAxis) -> Option<usize> {
        match axis {
            GridAxis::I => self.columns.map(|[ni, _]| ni),
            GridAxis::J => self.columns.map(|[_, nj]| nj),
            GridAxis::K => Some(self.nk),
        }
    }

    /// Of which stencil.
    pub fn stencil(&self) -> &'a Stencil {
        self.stencil
    }

    /// How many levels there are.
    pub(super) fn levels(&self) -> usize {
        self.nk
    }

    /// Of every node of a body the value at `level`, where it is known: of a condition also where one side of an `&&` or
    /// `||` decides it.
    pub fn values(&self, body: &Body, level: i64) -> Vec<Option<Value>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(body.iter().map(|(_, node)| node), level, &mut found);
        self.of(body, level, &found)
    }

    /// The same on another level, given what they are on one, for the nodes that differ: operands before those made of them.
    pub fn change(&self, body: &Body, level: i64, differing: &[NodeId], values: &mut [Option<Value>]) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(differing.iter().map(|&id| &body[id]), level, &mut found);
        for &id in differing {
            values[id.index()] = self.value(&body[id], level, values, &found);
        }
    }
}

/// The values of definitions on levels.
type Found = HashMap<(DefId, i64), Option<Value>>;

impl Known<'_> {
    /// What `real` is.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Finds the values of the known definitions that some nodes use, and of those that these use.
    fn find<'n>(&self, nodes: impl Iterator<Item = &'n Node>, level: i64, found: &mut Found) {
        let needed = needed_first(self.unknown(nodes, level, found), |(def, level)| {
            self.unknown(self.stencil.defs[*def].body.iter().map(|(_, node)| node), *level, found)
        });
        for (def, level) in needed {
            let value = self.of(&self.stencil.defs[def].body, level, found).pop().flatten();
            found.insert((def, level), value);
        }
    }

    /// The known definitions that some nodes use, and on which levels, whose values are not found yet.
    fn unknown<'n>(&self, nodes: impl Iterator<Item = &'n Node>, level: i64, found: &Found) -> Vec<(DefId, i64)> {
        let known = nodes.filter_map(Node::used).filter(|(def, _)| self.defs[def.index()]);
        known
            .map(|(def, path)| (def, level + i64::from(path.levels())))
            .filter(|key| !found.contains_key(key))
            .collect()
    }

    /// The values of a body whose definitions' values are found.
    fn of(&self, body: &Body, level: i64, found: &Found) -> Vec<Option<Value>> {
        body.of_nodes(|_, node, values| self.value(node, level, values, found))
    }

    /// The value of a node, given those of its operands and of the definitions that it uses.
    fn value(&self, node: &Node, level: i64, values: &[Option<Value>], found: &Found) -> Option<Value> {
        match node {
            Node::Read { .. } => None,
            Node::Param(param) => Some(self.params[param.index()].rounded(self.precision)),
            Node::Level => Some(Value::Int(level as i32)),
            Node::Count(axis) => self.extent(*axis).map(|count| Value::Int(count as i32)),
            Node::Use { def, path } if self.defs[def.index()] => found[&(*def, level + i64::from(path.levels()))],
            Node::Use { .. } => None,
            Node::And(a, b) | Node::Or(a, b) => {
                let decides = Some(Value::Bool(matches!(node, Node::Or(..))));
                let (a, b) = (values[a.index()], values[b.index()]);
                if a == decides || b == decides { decides } else { a.and(b) }
            }
            _ => {
                let operands: Option<Vec<Value>> =
                    node.operands().iter().map(|operand| values[operand.index()]).collect();
                operands.and_then(|operands| apply(self.precision, node, &operands))
            }
        }
    }
}

/// Decides one level.
struct AtLevel<'a> {
    known: &'a Known<'a>,
    level: i64,
    /// By field: the levels that may be read; if nothing is said, those that it has.
    there: Option<&'a [Range<usize>]>,
    /// Whether levels that are said by their numbers count as well.
    with_said: bool,
    /// The values of the body that was looked at last, by its address and level: its conditions follow each other.
    last: Option<(*const Body, i64, Vec<Option<Value>>)>,
}

impl Judge for AtLevel<'_> {
    type Truth = bool;
    fn constant(&mut self, truth: bool) -> bool {
        truth
    }
    fn and(&mut self, a: &bool, b: &bool) -> bool {
        *a && *b
    }
    fn or(&mut self, a: &bool, b: &bool) -> bool {
        *a || *b
    }
    fn not(&mut self, a: &bool) -> bool {
        !a
    }
    fn exists(&mut self, field: FieldId, shift: i32, levels: Levels) -> bool {
        let level = self.level + i64::from(shift);
        let all = 0..levels.count(self.known.nk);
        let there = self.there.map_or(&all, |there| &there[field.index()]);
        (there.start as i64..there.end as i64).contains(&level)
    }
    fn bound(&mut self, bound: &Bound) -> bool {
        bounds::number(self.known, bound).is_some_and(|number| bound.is.holds(self.level, number))
    }
    fn condition(&mut self, body: &Body, node: NodeId, shift: i32) -> bool {
        let (place, level) = (std::ptr::from_ref(body), self.level + i64::from(shift));
        let values = match self.last.take() {
            Some((known, at, values)) if (known, at) == (place, level) => values,
            _ => self.known.values(body, level),
        };
        let holds = values[node.index()] == Some(Value::Bool(true));
        self.last = Some((place, level, values));
        holds
    }
    fn said(&mut self, field: FieldId, levels: Levels, shift: i32, (body, by, at): (&Body, NodeId, i32)) -> bool {
        if !self.with_said || levels == Levels::None {
            return true;
        }
        let by = self.known.values(body, self.level + i64::from(at))[by.index()];
        by.is_some_and(|by| self.exists(field, shift.saturating_add(by.int()), levels))
    }
}

/// Those of `levels` on which every level read that counts lies in what is there of its field, or, if nothing is said, in the
/// field.
pub fn readable(known: &Known, levels: Range<usize>, there: Option<&[Range<usize>]>) -> Vec<usize> {
    judged(known, levels, there, false)
}

/// The same where a level that is said by its number counts as well: of what is computed for nobody but who looks at it.
pub fn readable_with_said(known: &Known, levels: Range<usize>, there: Option<&[Range<usize>]>) -> Vec<usize> {
    judged(known, levels, there, true)
}

fn judged(known: &Known, levels: Range<usize>, there: Option<&[Range<usize>]>, with_said: bool) -> Vec<usize> {
    let at = |level: usize| AtLevel { known, level: level as i64, there, with_said, last: None };
    let runs = runs(known, levels, there);
    runs.into_iter().filter(|run| Rules::new(known.stencil, at(run.start)).computed()).flatten().collect()
}

/// Whether a stencil may go on to the last interface, behind the last level: it says which levels it computes, and writes at interfaces alone.
pub fn goes_on(stencil: &Stencil) -> bool {
    stencil.says(GridAxis::K) && may_go_on(stencil)
}

/// Whether a stencil may go on to the last interface once it says which levels it computes.
pub fn may_go_on(stencil: &Stencil) -> bool {
    let mut written = stencil.own_fields().filter(|(_, field)| field.role.is_written());
    written.all(|(_, field)| field.place.levels == Levels::Interfaces)
}

/// The levels among which those are that a stencil computes, where these are the grid's.
pub fn candidates(stencil: &Stencil, levels: Range<usize>) -> Range<usize> {
    levels.start..levels.end + usize::from(goes_on(stencil))
}

/// How many levels the sweeps of a stencil go through, on a grid of `nk`.
pub fn swept(stencil: &Stencil, nk: usize) -> usize {
    candidates(stencil, 0..nk).len()
}

/// The first level that is missing between others.
pub fn gap(levels: &[usize]) -> Option<usize> {
    levels.windows(2).find(|pair| pair[1] != pair[0] + 1).map(|pair| pair[0] + 1)
}

/// The levels that `stencil` computes.
///
/// # Errors
/// No level can be computed, or the levels that can have a gap, or a level that is said by its number is none of its field's.
pub fn computed(stencil: &Stencil, precision: Precision, nk: usize, params: &[Value]) -> Result<Range<usize>, Refusal> {
    let known = Known::new(stencil, precision, nk, params);
    bounds::check(&known, GridAxis::K)?;
    let levels = readable(&known, candidates(stencil, 0..nk), None);
    let refused = |what: &str, help: &str| {
        let leaving = leaving(stencil, &known, nk);
        Err(Refusal::new(format!("stencil `{}` {what} {nk} levels: {leaving}", stencil.told())).help(help))
    };
    let said = bounds::within(&known, GridAxis::K, candidates(stencil, 0..nk));
    let (Some(&first), Some(&last)) = (levels.first(), levels.last()) else {
        if said.is_empty() {
            let help = match &stencil.part {
                None => "levels are counted from 0: look at its `levels`, and at the parameters in them",
                Some(_) => "levels are counted from 0: look at those of the call, and at `levels` in the stencil",
            };
            let name = stencil.told();
            let what = format!("stencil `{name}` computes none of the {nk} levels, since it says others");
            return Err(Refusal::new(what).help(help));
        }
        let help = "give a grid with more levels, or guard the read, as in `if k > 0 { a[k-1] } else { a }`";
        return refused("can compute none of the", help);
    };
    if !stencil.sweeps.is_empty() && levels.len() != swept(stencil, nk) {
        let help = "guard the read, as in `if k == 0 { a } else { a[k-1] }`";
        return refused("has a sweep, which goes through all of the", help);
    }
    if let Some(gap) = gap(&levels) {
        return Err(Refusal::new(format!(
            "the levels that stencil `{}` can compute have a gap: {first} and {last} can be computed, {gap} cannot",
            stencil.told()
        ))
        .help("every level between the first and the last must be computable: guard the reads on the levels between"));
    }
    let why = || format!(": {}", leaving(stencil, &known, nk));
    bounds::check_all(stencil, (GridAxis::K, nk), [&said, &(first..last + 1)], why)?;
    check_said(stencil, (&known, true), first..last + 1, There::default())?;
    Ok(first..last + 1)
}
