//! About how long a step of a program takes by a plan, before anything is compiled.
//!
//! A roofline with launches: what a kernel moves from memory, or from caches, or computes, whichever takes longest, and what it
//! costs to start it. Where a thread computes cells, what it moves is what the model of a stencil's kernels says
//! ([`stencilc_compiler::plan::estimate`]). It says in which order plans are worth a try; what is fast, measuring says.

use super::measure::steps;
use super::plan::PlanKind;
use super::planned::Planned;
use crate::problem::element_of;
use stencilc_compiler::analysis::extents::demand;
use stencilc_compiler::analysis::roofline::Limits;
use stencilc_compiler::gpu::{Gpu, LAUNCH_US};
use stencilc_compiler::ir::{FieldId, VariableId};
use stencilc_compiler::plan::estimate::estimate as of_cells;
use stencilc_compiler::program::{Loop, Staged, Step};

/// Microseconds of a step inside a kernel: blocks wait for each other, or for rows that others send.
const TURN: f64 = 1.5;

/// How often the bytes of memory pass the second-level cache in the same time.
const CACHE: f64 = 2.0;

/// The part of the second-level cache that a step finds as the last one left it.
const KEPT: f64 = 0.6;

/// Microseconds of a step by a plan, on a machine of these limits.
pub fn estimate(planned: &Planned, kind: PlanKind, limits: Limits) -> f64 {
    let staged = &planned.problem.staged;
    let own = Estimate { planned, staged, kind, limits };
    own.all(&staged.steps) / steps(staged) as f64
}

struct Estimate<'a> {
    planned: &'a Planned,
    staged: &'a Staged,
    kind: PlanKind,
    limits: Limits,
}

impl Estimate<'_> {
    fn all(&self, steps: &[Step]) -> f64 {
        steps.iter().map(|step| self.step(step)).sum()
    }

    fn step(&self, step: &Step) -> f64 {
        match step {
            Step::Stage(stage) => LAUNCH_US + self.stage(*stage),
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
                (Some(stage), _) => LAUNCH_US + left as f64 * (TURN + self.turn(stage)),
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
        let bytes = if self.held() < KEPT * Gpu::SM_90.cache as f64 { bytes / CACHE } else { bytes };
        let moved = match self.planned.cells_of(number) {
            Some(plan) => {
                let (cells, levels) = (stage.region.cells().max(1), stage.region.k.len());
                of_cells(plan, levels, bytes / cells as f64, 0.0).bytes(cells, None) * cells as f64
            }
            None => bytes,
        };
        halos as f64 * LAUNCH_US + (moved / self.rate()).max(self.computed(number))
    }

    /// Bytes from and to memory in a microsecond.
    fn rate(&self) -> f64 {
        self.limits.gb_per_s * 1e3
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
        (bytes / (CACHE * self.rate())).max(self.computed(number))
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

    /// Operations: those of values beside a cell as often as they are needed, unless warps keep them.
    fn computed(&self, number: usize) -> f64 {
        let stage = &self.staged.stages[number];
        let cells = (self.staged.domain.columns() * self.staged.domain.nk) as f64;
        let needed = demand(&stage.stencil).defs;
        let defs = needed.iter().map(|(def, at)| {
            let times = if stage.wraps { 1 } else { at.len() };
            stage.stencil.defs[*def].body.len() * times
        });
        let stores = stage.stencil.stores.iter().map(|store| store.body.len());
        let operations = cells * defs.chain(stores).sum::<usize>() as f64;
        self.limits.bound(0.0, operations).arithmetic_us
    }
}
