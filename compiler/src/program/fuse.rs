//! Calls that follow each other become one stage, and steps of a loop one step, where that changes no bit.
//!
//! A stage may take in the one before it if each value that it reads of it is computed there: where it looks beyond an
//! edge, the axis is a circle, so that what lies there is what the stage before computes at the other end; all that it
//! reads is a circle then. Where values are read beside the cell, they are computed as often as they are read, unless
//! the kernel keeps them.

use super::{Beyond, Loop, Stage, Staged, Step, Unrolled, region};
use crate::analysis::extents::reaches;
use crate::fuse::Fusion;
use crate::grid::Region;
use crate::ir::program::{Call, GridAxis, Side};
use crate::ir::scalar::Value;
use crate::ir::{Field, Handle, Node, Role, Stencil, VariableId, Verify, fold, share_invariants};
use crate::text::FreeText;
use std::collections::{BTreeMap, BTreeSet};

/// Which calls become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuse {
    /// None: a stage a call.
    Nothing,
    /// Those that read no neighbour of each other's results.
    Pointwise,
    /// All that can.
    Everything,
}

/// How a program is fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fusing {
    /// Which calls become one.
    pub fuse: Fuse,
    /// Steps of a loop that become one, if a step is a single stage.
    pub times: usize,
    /// Whether stages fetch what lies beyond an edge from the other end, so that they need no halo.
    pub wraps: bool,
    /// Whether a loop becomes one stage, if a step is one.
    pub whole: bool,
}

impl Staged {
    /// The same program with fewer stages. Parameters have become numbers.
    pub fn fused(&self, fusing: Fusing) -> Staged {
        let mut fused = Fuser { staged: self, fusing, stages: Vec::new(), edges: self.edges.clone() };
        let steps = fused.steps(&self.steps);
        let Fuser { stages, edges, .. } = fused;
        // Where nobody looks at what any call computes, all are left as they are.
        if stages.is_empty() {
            return self.clone();
        }
        let mut own = Staged { stages, edges, steps, ..self.clone() };
        own.widen();
        own
    }

    /// Gives the halo the widths that its stages need, and moves their regions along.
    fn widen(&mut self) {
        let before = self.halo;
        let mut halo = super::Halo::default();
        // Levels are numbered in the bodies, and stay.
        for side in Side::BOTH {
            halo.widen(GridAxis::K, side, before.width(GridAxis::K, side));
        }
        for stage in self.stages.iter().filter(|stage| !stage.wraps) {
            let reaches = reaches(&stage.stencil);
            for (field, variable) in stage.reads() {
                let Some(reach) = reaches[field.index()] else { continue };
                let edges = &self.edges[variable.index()];
                for (axis, side) in GridAxis::ends() {
                    if axis != GridAxis::K && edges.has(axis, side) {
                        halo.widen(axis, side, super::beyond(reach, axis, side));
                    }
                }
            }
        }
        for stage in &mut self.stages {
            stage.region = stage.region.map(|axis, cells| {
                let at = |n: usize| n + halo.width(axis, Side::Low) - before.width(axis, Side::Low);
                at(cells.start)..at(cells.end)
            });
        }
        self.halo = halo;
        self.grid = halo.around(self.domain);
    }
}

/// Makes stages of stages.
struct Fuser<'a> {
    staged: &'a Staged,
    fusing: Fusing,
    stages: Vec<Stage>,
    edges: Vec<super::EdgeValues>,
}

/// Stages that become one.
struct Group {
    fusion: Fusion,
    /// Variables that were computed, each with the region where.
    computed: BTreeMap<VariableId, Region>,
    /// Variables that were read as they were before the group.
    read: BTreeSet<VariableId>,
    /// Variables that have the value of another from before the group.
    aliases: BTreeMap<VariableId, VariableId>,
    /// Axes along which the group is a circle.
    circles: BTreeSet<GridAxis>,
    /// What it does, one after the other, without loops.
    steps: Vec<Step>,
}

impl Group {
    /// The stages in it.
    fn stages(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().filter_map(|step| match step {
            Step::Stage(stage) => Some(*stage),
            Step::Rename(..) | Step::Number(..) | Step::Repeat(_) => None,
        })
    }
}

impl Fuser<'_> {
    fn steps(&mut self, steps: &[Step]) -> Vec<Step> {
        let mut done = Vec::new();
        let mut waiting: Vec<Step> = Vec::new();
        for step in steps {
            match step {
                Step::Stage(_) | Step::Rename(..) => waiting.push(step.clone()),
                Step::Number(..) => {
                    self.flush(&mut waiting, &mut done);
                    done.push(step.clone());
                }
                Step::Repeat(own) => {
                    self.flush(&mut waiting, &mut done);
                    let turns: Vec<Vec<Step>> = own.turns.iter().map(|turn| self.steps(turn)).collect();
                    // What comes again and again.
                    let last = own.turns.len().checked_sub(1).filter(|&last| own.again == last);
                    // Turns that have numbers are done one by one.
                    let last = last.filter(|_| own.counter.is_none());
                    let unrolled = last.and_then(|last| self.unrolled(&own.turns[last]));
                    let whole = last.and_then(|last| self.whole(&turns[last]));
                    done.push(Step::Repeat(Loop { turns, unrolled, whole, ..own.clone() }));
                }
            }
        }
        self.flush(&mut waiting, &mut done);
        done
    }

    /// Several steps of a loop as one stage, if they can be.
    fn unrolled(&mut self, steps: &[Step]) -> Option<Unrolled> {
        if self.fusing.times < 2 || self.fusing.fuse != Fuse::Everything {
            return None;
        }
        let mut group = self.new_group();
        for _ in 0..self.fusing.times {
            for step in steps {
                let has_stage = group.stages().next().is_some();
                let is_taken = match *step {
                    Step::Rename(from, to) if has_stage || group.aliases.contains_key(&from) => {
                        self.renames_inside(&mut group, from, to)
                    }
                    _ => self.takes(&mut group, step),
                };
                if !is_taken {
                    return None;
                }
            }
        }
        // What one time takes from before the first, the next has to take from the first.
        if group.aliases.keys().any(|&variable| self.is_wanted(&group, variable, None)) {
            return None;
        }
        let steps = self.finish(group);
        Some(Unrolled { times: self.fusing.times, steps })
    }

    /// The stage that a loop is, if it is one whose outputs are what it begins with the next time.
    fn whole(&mut self, steps: &[Step]) -> Option<usize> {
        let (true, [Step::Stage(only)]) = (self.fusing.whole, steps) else { return None };
        let stage = &mut self.stages[*only];
        let written: Vec<_> = stage.writes().collect();
        let mut carry = Vec::new();
        for (input, variable) in stage.reads() {
            carry.extend(written.iter().filter(|(_, own)| *own == variable).map(|(output, _)| (*output, input)));
        }
        // What keeps a plane while it goes on knows nothing of levels that come one after the other, and reads and writes fields that are
        // apart, as they are in a stage that was fused.
        if carry.is_empty() || !stage.is_whole || is_alone(stage) {
            return None;
        }
        stage.carry = carry;
        Some(*only)
    }

    /// Makes stages of what waits, as few as can be.
    fn flush(&mut self, waiting: &mut Vec<Step>, done: &mut Vec<Step>) {
        let mut group = self.new_group();
        for step in std::mem::take(waiting) {
            if !self.takes(&mut group, &step) {
                let full = std::mem::replace(&mut group, self.new_group());
                done.extend(self.finish(full));
                // Alone, every stage can be.
                self.takes(&mut group, &step);
            }
        }
        done.extend(self.finish(group));
    }

    fn new_group(&self) -> Group {
        Group {
            fusion: Fusion::new(&self.staged.program.name, self.staged.precision),
            computed: BTreeMap::new(),
            read: BTreeSet::new(),
            aliases: BTreeMap::new(),
            circles: BTreeSet::new(),
            steps: Vec::new(),
        }
    }

    /// Adds a stage, or a name that changes, to a group, if it can be.
    fn takes(&mut self, group: &mut Group, step: &Step) -> bool {
        match *step {
            Step::Stage(stage) => {
                if !group.steps.is_empty() && !self.fits(group, stage) {
                    return false;
                }
                let own = &self.staged.stages[stage];
                if !is_alone(own) {
                    group.fusion.call(&with_numbers(&own.stencil, &own.params), &own.call.fields);
                }
                for (_, variable) in own.reads() {
                    if !group.computed.contains_key(&variable) {
                        group.read.insert(variable);
                    }
                }
                for (_, variable) in own.writes() {
                    group.aliases.remove(&variable);
                    group.computed.insert(variable, own.region.clone());
                }
            }
            Step::Rename(from, to) => {
                // It is done before the group, or its value is one of the group's.
                if group.read.contains(&to) || group.computed.contains_key(&to) && !group.computed.contains_key(&from) {
                    return false;
                }
                match group.computed.get(&from).cloned() {
                    // A call that stands alone stays the stage that it is, with its own results alone.
                    Some(_) if self.stands_alone(group) => return false,
                    // What the group does not compute of one, the other has, too.
                    Some(region) if !self.staged.computes_all(&region, from) => return false,
                    Some(region) => {
                        group.fusion.rename(from, to, &self.field(from));
                        group.computed.insert(to, region);
                    }
                    None if group.stages().next().is_some() => return false,
                    None => {}
                }
            }
            Step::Number(..) | Step::Repeat(_) => return false,
        }
        group.steps.push(step.clone());
        true
    }

    /// Gives a variable the value of another in the midst of a group.
    fn renames_inside(&self, group: &mut Group, from: VariableId, to: VariableId) -> bool {
        if self.stands_alone(group) {
            return false;
        }
        let (source, target) = (&self.edges[from.index()], &self.edges[to.index()]);
        // A field is read beyond its edges by rules of its own; a result is looked at when it is read.
        let has_rules = GridAxis::ALL.into_iter().any(|axis| target.is_ruled(axis));
        if !group.computed.contains_key(&from) && has_rules && source != target {
            return false;
        }
        let computed = group.computed.get(&from).cloned();
        if computed.as_ref().is_some_and(|region| !self.staged.computes_all(region, from)) {
            return false;
        }
        group.fusion.rename(from, to, &self.field(from));
        match computed {
            Some(region) => {
                group.aliases.remove(&to);
                group.computed.insert(to, region);
            }
            None => {
                group.computed.remove(&to);
                group.aliases.insert(to, from);
                group.read.insert(from);
            }
        }
        group.steps.push(Step::Rename(from, to));
        true
    }

    /// Whether a call of a group is one that stands alone; then it is the only one.
    fn stands_alone(&self, group: &Group) -> bool {
        group.stages().any(|stage| is_alone(&self.staged.stages[stage]))
    }

    /// Whether a stage may join a group.
    fn fits(&mut self, group: &mut Group, stage: usize) -> bool {
        let own = &self.staged.stages[stage];
        if self.fusing.fuse == Fuse::Nothing || is_alone(own) || self.stands_alone(group) {
            return false;
        }
        if !group.fusion.takes(&own.stencil, &own.call.fields) {
            return false;
        }
        // What a group gives, it gives on the same cells: what it computes on others is looked at by its own stages alone.
        let mut others = group.computed.iter().filter(|(_, region)| **region != own.region);
        if others.any(|(&variable, _)| self.is_wanted(group, variable, Some(stage))) {
            return false;
        }
        let reaches = reaches(&own.stencil);
        let mut circles = group.circles.clone();
        for (field, variable) in own.reads() {
            let (Some(region), Some(reach)) = (group.computed.get(&variable), reaches[field.index()]) else { continue };
            if (reach.low.k, reach.high.k) != (0, 0) {
                return false;
            }
            let beside = [reach.low.i, reach.high.i, reach.low.j, reach.high.j] != [0; 4];
            if beside && self.fusing.fuse == Fuse::Pointwise {
                return false;
            }
            if region.cells.is_some() && (beside || region.cells != own.region.cells) {
                return false;
            }
            for axis in GridAxis::ALL {
                let (there, cells) = (region.along(axis), own.region.along(axis));
                if region::within(cells, there, reach.along(axis)) != *cells {
                    let is_circle = axis != GridAxis::K && self.edges[variable.index()].is_circle(axis);
                    if !is_circle || !region::covers(there, cells) {
                        return false;
                    }
                    circles.insert(axis);
                }
            }
        }
        // All that is read becomes a circle, too, if nothing else lies beyond its edges.
        let read: BTreeSet<VariableId> = group.read.iter().copied().chain(own.reads().map(|(_, read)| read)).collect();
        let variables = &self.staged.program.variables;
        let on = |axis: GridAxis| read.iter().filter(move |&&variable| axis.is_of(variables[variable].place));
        let is_other = |axis: GridAxis, variable: &VariableId| {
            let edges = &self.edges[variable.index()];
            !edges.is_circle(axis) && edges.is_ruled(axis)
        };
        if circles.iter().any(|&axis| on(axis).any(|variable| is_other(axis, variable))) {
            return false;
        }
        for &axis in &circles {
            on(axis).for_each(|variable| self.edges[variable.index()].set_circle(axis));
        }
        group.circles = circles;
        true
    }

    /// Whether a variable is looked at outside of the stages that compute it here, of which `next` may become one: by the
    /// user, or by another stage.
    fn is_wanted(&self, group: &Group, variable: VariableId, next: Option<usize>) -> bool {
        let inside: BTreeSet<usize> = group.stages().chain(next).collect();
        let is_read = |(number, stage): (usize, &Stage)| {
            !inside.contains(&number) && stage.reads().any(|(_, read)| read == variable)
        };
        // What the next time begins with is wanted, too.
        self.staged.program.variables[variable].is_looked_at()
            || group.read.contains(&variable)
            || self.staged.stages.iter().enumerate().any(is_read)
            || is_renamed(&self.staged.steps, variable)
    }

    /// A variable as a field.
    fn field(&self, variable: VariableId) -> Field {
        Field { doc: FreeText::default(), ..self.staged.program.variables[variable].field(Role::In) }
    }

    /// The steps of a group: names that change, and one stage.
    fn finish(&mut self, group: Group) -> Vec<Step> {
        // A name that changes before the first stage is what the group begins with.
        let begins = |step: &&Step| matches!(step, Step::Rename(..));
        let mut steps: Vec<Step> = group.steps.iter().take_while(begins).cloned().collect();
        let stages: Vec<usize> = group.stages().collect();
        let Some(&last) = stages.last() else { return steps };
        // Of calls whose results nobody looks at there is no stage.
        if !group.computed.keys().any(|&variable| self.is_wanted(&group, variable, None)) {
            return steps;
        }
        let stage = match stages.as_slice() {
            [only] if is_alone(&self.staged.stages[*only]) => self.staged.stages[*only].clone(),
            _ => self.stage(group, &stages, last),
        };
        self.stages.push(stage);
        steps.push(Step::Stage(self.stages.len() - 1));
        steps
    }

    fn stage(&self, group: Group, stages: &[usize], last: usize) -> Stage {
        let own = &self.staged.stages[last];
        let outputs: Vec<VariableId> =
            group.computed.keys().copied().filter(|&variable| self.is_wanted(&group, variable, None)).collect();
        let (mut stencil, fields) = group.fusion.finish(&outputs);
        stencil.name = match stages {
            [only] => self.staged.stages[*only].stencil.name.clone(),
            _ => self.staged.program.name.clone(),
        };
        stencil.file = self.staged.program.file.clone();
        let folded = fold(&stencil, self.staged.precision).verified("folding");
        let stencil = share_invariants(&folded).verified("sharing of invariants");
        let call = Call { stencil: own.call.stencil, fields, params: Vec::new(), span: own.call.span };
        let (params, carry, stands) = Default::default();
        Stage { stencil, params, wraps: self.fusing.wraps, carry, stands, call, ..own.clone() }
    }
}

/// Whether a stage becomes one with no other: it sweeps over the levels, or says where it is computed, or its parameters change, and stay
/// parameters.
fn is_alone(stage: &Stage) -> bool {
    !stage.stencil.sweeps.is_empty() || !stage.stencil.within.is_empty() || stage.changes
}

/// Whether steps give another variable the value of this one.
fn is_renamed(steps: &[Step], variable: VariableId) -> bool {
    steps.iter().any(|step| match step {
        Step::Stage(_) | Step::Number(..) => false,
        Step::Rename(from, _) => *from == variable,
        Step::Repeat(own) => own.turns.iter().any(|turn| is_renamed(turn, variable)),
    })
}

/// A stencil whose parameters are numbers.
fn with_numbers(stencil: &Stencil, params: &[Value]) -> Stencil {
    let mut own = stencil.map_bodies(|body| {
        body.map_nodes(|node| match node {
            Node::Param(param) => params.get(param.index()).map_or(node.clone(), |&value| Node::literal(value)),
            node => node.clone(),
        })
    });
    own.params = crate::ir::Arena::new();
    own.prints.clear();
    own.verified("putting numbers for parameters")
}

impl super::EdgeValues {
    /// Whether an axis is a circle.
    pub fn is_circle(&self, axis: GridAxis) -> bool {
        Side::BOTH.into_iter().all(|side| self.beyond(axis, side) == Some(Beyond::Periodic))
    }

    /// Whether anything lies beyond an edge of an axis.
    fn is_ruled(&self, axis: GridAxis) -> bool {
        Side::BOTH.into_iter().any(|side| self.has(axis, side))
    }
}
