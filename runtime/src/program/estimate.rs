//! About how long a step of a program takes by a plan, before anything is compiled.
//!
//! A roofline with launches: what a kernel moves from memory, or from caches, or computes, whichever takes longest, and what it
//! costs to start it. The numbers are round ones of large GPUs of today. They say in which order plans are worth a try; what is
//! fast, measuring says.

use super::kernels::Planned;
use super::measure::steps;
use super::plan::PlanKind;
use crate::problem::element_of;
use stencilc_compiler::analysis::extents::demand;
use stencilc_compiler::ir::{FieldId, Handle, VariableId};
use stencilc_compiler::program::{Loop, Stage, Staged, Step};

/// Microseconds from one launch to the next.
const LAUNCH: f64 = 2.5;

/// Microseconds of a step inside a kernel: blocks wait for each other, or for rows that others send.
const TURN: f64 = 1.5;

/// Bytes a microsecond: from memory, from the level 2 cache, and from the first-level caches.
const MEMORY: f64 = 3e6;
const CACHE: f64 = 6e6;
const NEAR: f64 = 25e6;

/// Bytes that the level 2 cache keeps from one step to the next.
const KEPT: f64 = 30e6;

/// Operations a microsecond.
const OPERATIONS: f64 = 15e6;

/// Microseconds of a step by a plan.
pub fn estimate(planned: &Planned, kind: PlanKind) -> f64 {
    let staged = &planned.problem.staged;
    let own = Estimate { staged, kind };
    own.all(&staged.steps) / steps(staged) as f64
}

struct Estimate<'a> {
    staged: &'a Staged,
    kind: PlanKind,
}

impl Estimate<'_> {
    fn all(&self, steps: &[Step]) -> f64 {
        steps.iter().map(|step| self.step(step)).sum()
    }

    fn step(&self, step: &Step) -> f64 {
        match step {
            Step::Stage(stage) => LAUNCH + self.stage(*stage),
            Step::Rename(..) | Step::Number(..) => 0.0,
            Step::Repeat(own) => self.repeated(own),
        }
    }

    fn repeated(&self, own: &Loop) -> f64 {
        let first = own.turns.len().saturating_sub(1).min(own.times.known());
        let before: f64 = (0..first).map(|time| self.all(own.turn(time))).sum();
        let left = own.times.known() - first;
        // All turns that come again take about the same.
        before
            + match (own.whole, &own.unrolled) {
                (Some(stage), _) => LAUNCH + left as f64 * (TURN + self.turn(stage)),
                (None, Some(wide)) => {
                    let (many, few) = (left / wide.times, left % wide.times);
                    many as f64 * self.all(&wide.steps) + few as f64 * self.all(own.turn(first))
                }
                (None, None) => left as f64 * self.all(own.turn(first)),
            }
    }

    /// A stage that is launched, and what fills the halos that it reads.
    fn stage(&self, number: usize) -> f64 {
        let stage = &self.staged.stages[number];
        let halos = stage.reads().filter(|(_, variable)| !stage.wraps && self.staged.needs_halo(*variable)).count();
        let bytes: f64 = stage.reads().chain(stage.writes()).map(|(_, variable)| self.bytes(variable)).sum();
        // A program whose fields all fit finds there what the last kernel left.
        let moved = bytes / if self.held() < KEPT { CACHE } else { MEMORY };
        halos as f64 * LAUNCH + moved.max(self.near(stage)).max(self.computed(stage))
    }

    /// One time of a stage that is a whole loop.
    fn turn(&self, number: usize) -> f64 {
        let stage = &self.staged.stages[number];
        if self.kind != PlanKind::Resident {
            return self.stage(number);
        }
        // What changes stays in registers.
        let is_constant = |field: FieldId| !stage.carry.iter().any(|(_, input)| *input == field);
        let constant = stage.reads().filter(|(field, _)| is_constant(*field));
        let bytes: f64 = constant.map(|(_, variable)| self.bytes(variable)).sum();
        (bytes / CACHE).max(self.computed(stage))
    }

    /// Bytes of all that a step reads and writes.
    fn held(&self) -> f64 {
        let variables = self.staged.program.variables.handles();
        variables.filter(|&id| self.staged.program.variables[id].role.is_some()).map(|id| self.bytes(id)).sum()
    }

    fn bytes(&self, variable: VariableId) -> f64 {
        let own = &self.staged.program.variables[variable];
        let cells: usize = self.staged.inner_of(own.place).iter().map(ExactSizeIterator::len).product();
        (cells * element_of(own.stored, self.staged.precision).bytes()) as f64
    }

    /// Reads of neighbours where a thread computes a cell: all go through the first-level cache.
    fn near(&self, stage: &Stage) -> f64 {
        if stage.wraps {
            return 0.0;
        }
        let reads = demand(&stage.stencil).reads;
        let variable = |field: FieldId| stage.call.fields[field.index()].read;
        let bytes = reads.iter().filter_map(|(field, at)| Some(at.len() as f64 * self.bytes(variable(*field)?)));
        bytes.sum::<f64>() / NEAR
    }

    /// Operations: those of values beside a cell as often as they are needed, unless warps keep them.
    fn computed(&self, stage: &Stage) -> f64 {
        let cells = (self.staged.domain.columns() * self.staged.domain.nk) as f64;
        let needed = demand(&stage.stencil).defs;
        let defs = needed.iter().map(|(def, at)| {
            let times = if stage.wraps { 1 } else { at.len() };
            stage.stencil.defs[*def].body.len() * times
        });
        let stores = stage.stencil.stores.iter().map(|store| store.body.len());
        cells * defs.chain(stores).sum::<usize>() as f64 / OPERATIONS
    }
}
