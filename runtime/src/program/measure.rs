//! How long a step of a program takes by a plan, and whether it leaves the interpreter's bits.

use super::kernels::{Kernels, Planned, Text};
use super::plan::{PlanKind, ProgramPlan, usual_shape};
use super::{ProgramProblem, results};
use crate::bench::limit::{self, Limit, Streams};
use crate::bench::statistics::Statistics;
use crate::build::Build;
use crate::cache::Built;
use crate::device::Platform;
use crate::driver::{Driver, Position};
use crate::error::{Error, Fault, Result};
use crate::execute::{Repeat, Rotation};
use crate::verify::program::Reference;
use rayon::prelude::*;
use std::sync::Arc;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Staged, Step, Times};
use stencilc_compiler::step::stream::{Shape, Strip};
use stencilc_compiler::step::tiled;

/// How a program is measured.
#[derive(Clone, Copy, Debug)]
pub struct ProgramMethod {
    /// How often each outermost loop is run in one measurement.
    pub times: usize,
    /// How many measurements there are.
    pub runs: usize,
    /// How many steps are compared with the interpreter; 0 if none is.
    pub compared: usize,
}

/// What came of a plan.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Times of a step, in microseconds.
    Measured(Statistics),
    /// It cannot compute this program, and why.
    Refused(String),
    /// It computes something else, or its kernels do not compile or run: the first field that differs, or why.
    Differs(String),
}

impl ProgramProblem {
    /// The same with this many times of each outermost loop, or as many as one can be done that computes fewer cells each time.
    /// What follows a loop computes the cells that it computes after all its times.
    pub fn with_times(&self, times: usize) -> Self {
        let mut own = self.clone();
        set_times(&mut own.staged, times);
        own
    }
}

fn set_times(staged: &mut Staged, times: usize) {
    for step in &mut staged.steps {
        if let Step::Repeat(own) = step {
            own.times = Times::Known(own.at_most(times));
        }
    }
}

/// Outermost steps of a program; 1 if it has no loop.
pub(super) fn steps(staged: &Staged) -> u64 {
    staged.steps.iter().map(Step::times).sum::<u64>().max(1)
}

/// The copy of all that a step reads and writes, in place each time, as the program's fields are.
///
/// # Errors
/// It cannot be compiled or launched.
pub fn copy(problem: &ProgramProblem, platform: &Platform, runs: usize) -> Result<Option<Limit>> {
    let fields = problem.outer.stencil.fields.iter().zip(&problem.outer.inputs).zip(&problem.outer.outputs);
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for (((_, field), input), output) in fields {
        reads.extend(input.as_ref().filter(|_| field.role.is_read()));
        writes.extend(output.as_ref().filter(|_| field.role.is_written()));
    }
    let streams = Streams { reads, writes };
    let repeat = Repeat { warmups: 3, runs, rotation: Rotation::SAME };
    match platform {
        Platform::Cpu => Ok(None),
        Platform::Emulator(_) => Ok(None),
        Platform::Gpu(gpu) => limit::measure(&**gpu, &streams, repeat),
    }
}

/// A plan whose kernels are compiled.
pub struct Ready {
    plan: ProgramPlan,
    planned: Arc<Planned>,
    /// By text: the kernel's name, the text, and what the compiler makes of it.
    images: Vec<(Text, Built)>,
}

/// What comes of a plan before it is run.
pub enum Compiled {
    /// Its kernels.
    Ready(Box<Ready>),
    /// It cannot compute this program, or its kernels do not compile.
    Not(Outcome),
}

/// Compiles the kernels of a plan. Any number of threads may do so at once.
///
/// # Errors
/// The compiler cannot be used.
pub fn compiled(problem: &ProgramProblem, plan: &ProgramPlan, platform: &Platform, times: usize) -> Result<Compiled> {
    let planned = match Planned::new(&problem.with_times(times), plan) {
        Ok(planned) => Arc::new(planned),
        Err(error) => return Ok(Compiled::Not(Outcome::Refused(error.message))),
    };
    let build = |text: Text| platform.compile(&text.name, &text.text).map(|built| (text, built));
    let images: Result<Vec<(Text, Built)>> = planned.texts()?.into_par_iter().map(build).collect();
    let images = match images {
        Err(error) if error.fault == Fault::Check => return Ok(Compiled::Not(Outcome::Differs(error.message))),
        images => images?,
    };
    Ok(Compiled::Ready(Box::new(Ready { plan: plan.clone(), planned, images })))
}

impl Ready {
    /// Measures the plan, and compares some steps with the interpreter.
    ///
    /// # Errors
    /// The machine fails. That what is computed is wrong is no error.
    pub fn measured(
        &self,
        platform: &Platform,
        reference: Option<&Reference>,
        method: ProgramMethod,
    ) -> Result<Outcome> {
        let done = match platform {
            Platform::Cpu => Err(Error::call("the interpreter has no plans")),
            Platform::Emulator(emulator) => self.on(emulator, reference, method),
            Platform::Gpu(gpu) => self.on(gpu, reference, method),
        };
        match done {
            Err(error) if error.fault == Fault::Check => {
                platform.check().map_err(|broken| {
                    let (what, cause) = (&broken.message, &error.message);
                    Error::check(format!("nothing more can be measured: {what}; before that, {}: {cause}", self.plan))
                        .help("`stencilc verify` finds the plan that is wrong")
                })?;
                Ok(Outcome::Differs(error.message))
            }
            done => done,
        }
    }

    fn on<M: Build>(&self, machine: &Arc<M>, reference: Option<&Reference>, method: ProgramMethod) -> Result<Outcome> {
        let Self { plan, planned, images } = self;
        let load = |(text, built): &(Text, Built)| machine.bring(&built.compiled.image, &text.name, &text.text);
        let backend =
            Kernels::new(Arc::clone(machine), Arc::clone(planned), images.iter().map(load).collect::<Result<_>>()?)?;
        if let Some(reference) = reference {
            let own = Planned::new(&reference.problem, plan)?;
            // The same kernels: only the number of steps differs.
            let script = Arc::<ProgramProblem>::clone(&own.problem);
            let mut driver = Driver::of(script, &backend).given()?;
            driver.finish()?;
            let found = results(&own.problem, &driver)?;
            if let Some(mismatch) = reference.mismatches(&found).first() {
                return Ok(Outcome::Differs(mismatch.to_string()));
            }
        }
        let staged = &planned.problem.staged;
        let times = {
            let mut driver = Driver::new(&backend).given()?;
            driver.finish()?;
            machine.time_each(method.runs, |_| {
                driver.position = Position::default();
                driver.finish()
            })?
        };
        let steps = steps(staged) as f64;
        let each: Vec<f64> = times.iter().map(|time| time / steps).collect();
        Statistics::of(&each).map(Outcome::Measured).ok_or_else(|| Error::check("nothing was measured"))
    }
}

/// The most ways to hold a plane in registers that are worth a look.
const RESIDENT: usize = 6;

/// Plans worth a look: those of these kinds, with as many steps at once, kernels that are a thread a cell as chosen.
pub fn candidates(kinds: &[PlanKind], steps: &[usize], choices: &[Choices], graph: bool) -> Vec<ProgramPlan> {
    let plan = |kind, steps, choices: &Choices, shape, resident| ProgramPlan {
        kind,
        steps,
        choices: choices.clone(),
        shape,
        tile: None,
        resident,
        graph,
    };
    // Rows are walked down in one storage.
    let rows = choices.iter().find(|choices| choices.storage == "regular");
    let mut plans = Vec::new();
    for &kind in kinds {
        match kind {
            PlanKind::Separate | PlanKind::Merged => {
                plans
                    .extend(choices.iter().map(|choices| plan(kind, 1, choices, usual_shape(1, choices.precision), 0)));
            }
            PlanKind::Recomputed => {
                // Beyond two steps the work done again is more than what is saved.
                for &steps in steps.iter().filter(|&&steps| steps <= 2) {
                    plans.extend(
                        choices.iter().map(|choices| plan(kind, steps, choices, usual_shape(1, choices.precision), 0)),
                    );
                }
            }
            PlanKind::Streamed => {
                for &steps in steps {
                    let of = |choices| shapes(steps).map(move |shape| plan(kind, steps, choices, shape, 0));
                    plans.extend(rows.into_iter().flat_map(of));
                }
            }
            PlanKind::Tiled => {
                let each = steps.iter().flat_map(|&steps| TILES.map(|tile| (steps, tile)));
                plans.extend(rows.into_iter().flat_map(|choices| {
                    each.clone().map(|(steps, tile)| {
                        let shape = usual_shape(steps, choices.precision);
                        ProgramPlan { tile, ..plan(kind, steps, choices, shape, 0) }
                    })
                }));
            }
            PlanKind::Persistent => {
                let of = |choices| shapes(1).map(move |shape| plan(kind, 1, choices, shape, 0));
                plans.extend(rows.into_iter().flat_map(of));
            }
            PlanKind::Resident => {
                let of = |choices| {
                    (0..RESIDENT).map(move |number| plan(kind, 1, choices, usual_shape(1, choices.precision), number))
                };
                plans.extend(rows.into_iter().flat_map(of));
            }
        }
    }
    plans
}

/// Tiles worth a look: the one that should be fastest, and others around it.
const TILES: [Option<tiled::Shape>; 7] = [
    None,
    tile([64, 16], 128, 4),
    tile([64, 32], 256, 4),
    tile([64, 32], 256, 8),
    tile([128, 32], 512, 4),
    tile([64, 64], 512, 4),
    tile([64, 64], 512, 8),
];

const fn tile(tile: [usize; 2], threads: usize, rows: usize) -> Option<tiled::Shape> {
    Some(tiled::Shape { tile, threads, rows })
}

/// Rows that a warp walks down: as many as fill whole waves, or these.
const ROWS: [Option<usize>; 4] = [None, Some(32), Some(64), Some(128)];

/// Shapes of streams worth a look.
fn shapes(steps: usize) -> impl Iterator<Item = Shape> {
    let is_one = steps == 1;
    let strips: &[Strip] = if is_one { &[Strip::Aligned, Strip::Overlapping] } else { &[Strip::Overlapping] };
    // Rows ahead cost registers, of which several steps leave none.
    let ahead: &[usize] = if is_one { &[2, 4] } else { &[2] };
    let each = strips.iter().flat_map(move |&strip| ahead.iter().map(move |&ahead| (strip, ahead)));
    each.flat_map(|(strip, ahead)| {
        [16, 32]
            .into_iter()
            .flat_map(move |lane| ROWS.map(|rows| Shape { lane, ahead, strip, rows, ..Shape::default() }))
    })
}
