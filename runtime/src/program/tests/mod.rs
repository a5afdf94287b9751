//! Programs on grids: the interpreter against results by hand, and kernels against the interpreter.

mod boundaries;
mod calls;
mod fusing;

use super::cpu::Interpreter;
use super::kernels::Kernels;
use super::plan::{PlanKind, ProgramPlan, usual_shape};
use super::planned::{Planned, Text};
use super::*;
use crate::cache::library_cached;
use crate::checkpoint;
use crate::emulate::{Compiler, Emulator, Settings, Source as Kernel};
use crate::grid::in_rows;
use crate::random;
pub(crate) use fusing::fusible;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::program::{Fuse, Fusing};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::fields::Fields;

pub(crate) fn program(text: &str) -> Program {
    let lowered = stencilc_compiler::check(&Source::new("own", text));
    assert!(lowered.is_ok(), "{text}: {:?}", lowered.diagnostics);
    lowered.programs.into_iter().next().unwrap()
}

pub(crate) fn problem(
    program: &Program,
    grid: Grid,
    precision: Precision,
    settings: &[(&str, &str)],
) -> Result<ProgramProblem> {
    let facade = program.facade();
    let settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    ProgramProblem::new(
        program,
        Request {
            stencil: &facade,
            precision,
            contract: false,
            grid: Some(grid),
            adjacency: None,
            arrays: BTreeMap::new(),
            settings,
            seed: 0,
            cast: crate::Cast::Exact,
            drawing: crate::Drawing::Inputs,
        },
    )
}

/// What the interpreter makes of it.
pub(crate) fn interpreted(problem: &ProgramProblem) -> Vec<Option<Data>> {
    let backend = Interpreter::new(problem.clone());
    let mut driver = Driver::new(&backend).given().unwrap();
    driver.finish().unwrap();
    results(problem, &driver).unwrap()
}

/// What kernels make of it on the emulator.
pub(crate) fn emulated(problem: &ProgramProblem, choices: &Choices) -> Result<Vec<Option<Data>>> {
    let plan = ProgramPlan {
        kind: PlanKind::Separate,
        steps: 1,
        choices: choices.clone(),
        shape: usual_shape(1, choices.precision),
        tile: None,
        resident: 0,
        graph: true,
    };
    planned(problem, &plan)
}

/// What the kernels of a plan make of it on the emulator.
fn planned(problem: &ProgramProblem, plan: &ProgramPlan) -> Result<Vec<Option<Data>>> {
    let planned = Planned::new(problem, plan)?;
    let compiler = Compiler::find()?;
    let mut loaded = Vec::new();
    // Two stages may call the same stencil, so each text is a library of its own.
    for Text { name, text } in planned.texts().unwrap() {
        let settings = Settings { strict: true, ..Settings::default() };
        loaded.extend(library_cached(&compiler, &[Kernel { name: &name, text: &text }], &settings)?);
    }
    let fused = planned.problem.clone();
    let mut driver = Driver::new(Kernels::new(Arc::new(Emulator::default()), planned, loaded)?).given()?;
    driver.finish()?;
    results(&fused, &driver)
}

/// Asserts that arrays are the same to the last bit.
pub(crate) fn same(a: &[Option<Data>], b: &[Option<Data>], about: &str) {
    assert_eq!(a.len(), b.len(), "{about}");
    for (a, b) in a.iter().zip(b) {
        match (a, b) {
            (Some(a), Some(b)) => {
                let differing = (0..a.len()).find(|&n| a.bits(n) != b.bits(n));
                assert_eq!((differing, a.len()), (None, b.len()), "{about}");
            }
            (a, b) => assert_eq!(a.is_some(), b.is_some(), "{about}"),
        }
    }
}
