//! Every program that comes along, by every plan that can compute it, on the emulator: bit for bit what the interpreter makes.

use crate::common::simulation::programs;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::driver::{Backend, Driver};
use stencilc_runtime::emulate::{Compiler, Emulator, Settings};
use stencilc_runtime::problem::Request;
use stencilc_runtime::program::cpu::Interpreter;
use stencilc_runtime::program::kernels::Kernels;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan, usual_shape};
use stencilc_runtime::program::planned::Planned;
use stencilc_runtime::program::{ProgramProblem, results};
use stencilc_runtime::{Data, Error, Result};

/// As wide as streaming asks for: whole lanes of 16 bytes.
const GRID: Grid = Grid::rows(128, 12, 5);

/// No multiple of the steps that a kernel computes.
const STEPS: &str = "7";

fn problem(program: &Program, precision: Precision) -> ProgramProblem {
    let facade = program.facade();
    // What has no steps is computed once.
    let steps = facade.params.iter().filter(|(_, param)| param.name == "steps");
    let request = Request {
        stencil: &facade,
        precision,
        contract: true,
        grid: Some(GRID),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings: steps.map(|(_, param)| (param.name.clone(), STEPS.to_owned())).collect(),
        seed: 3,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Inputs,
    };
    ProgramProblem::new(program, request).unwrap_or_else(|error| panic!("{}: {error}", program.name))
}

fn outputs<B: Backend>(problem: &ProgramProblem, driver: Result<Driver<B>>) -> Result<Vec<Option<Data>>> {
    let mut driver = driver?;
    driver.finish()?;
    results(problem, &driver)
}

/// What the kernels of a plan make, or why there are none.
fn emulated(problem: &ProgramProblem, plan: &ProgramPlan) -> Result<std::result::Result<Vec<Option<Data>>, Error>> {
    let planned = match Planned::new(problem, plan) {
        Ok(planned) => planned,
        Err(refused) => return Ok(Err(refused)),
    };
    let settings = Settings { strict: true, ..Settings::default() };
    let machine = Emulator::new(Compiler::find()?, settings);
    let fused = Arc::clone(&planned.problem);
    outputs(&fused, Driver::new(Kernels::built(Arc::new(machine), planned)?).given()).map(Ok)
}

/// The plans that compute a program, each of which makes what the interpreter makes.
fn check(number: usize, program: &Program) -> String {
    let mut computed = Vec::new();
    let plans = PlanKind::ALL.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]);
    for (plan, (kind, steps)) in plans.enumerate() {
        // In turn, so that each plan meets both.
        let precision = [Precision::F64, Precision::F32][(number + plan / 2) % 2];
        let problem = problem(program, precision);
        let interpreter = Interpreter::new(problem.clone());
        let expected = outputs(&problem, Driver::new(&interpreter).given()).unwrap();
        let is_finite = |data: &Data| (0..data.len()).all(|cell| data.get(cell).is_finite());
        assert!(expected.iter().flatten().all(is_finite), "{}", program.name);
        let choices = Choices { precision, block: [8, 2, 1], ..Choices::default() };
        let shape = usual_shape(steps, precision);
        let plan = ProgramPlan { kind, steps, choices, shape, tile: None, resident: 0, graph: true };
        let about = format!("{} {plan} {}", program.name, precision.name());
        let Ok(found) = emulated(&problem, &plan).unwrap_or_else(|error| panic!("{about}: {error}")) else { continue };
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            let (Some(found), Some(expected)) = (found, expected) else {
                assert!(found.is_none() && expected.is_none(), "{about}");
                continue;
            };
            let differing = (0..expected.len()).find(|&cell| found.bits(cell) != expected.bits(cell));
            assert_eq!((differing, found.len()), (None, expected.len()), "{about}");
        }
        computed.push(format!("{} {steps}", kind.name()));
    }
    format!("{}: {}", program.name, computed.join(", "))
}

/// The list says what can be fused, so that a plan which is refused all of a sudden shows.
#[test]
fn every_plan_of_every_program_equals_the_interpreter() {
    let found: Vec<String> =
        programs().par_iter().enumerate().map(|(number, program)| check(number, program)).collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    rigid_box: separate 1, merged 1, recomputed 1
    diffusion4: separate 1, merged 1, recomputed 1, recomputed 2, streamed 1, streamed 2, tiled 1, tiled 2, walked 1, persistent 1, resident 1
    grad_div: separate 1, merged 1, recomputed 1, walked 1
    patterns: separate 1, merged 1, recomputed 1, recomputed 2, streamed 1, streamed 2, tiled 1, tiled 2, walked 1, persistent 1, resident 1
    heat_periodic: separate 1, merged 1, recomputed 1, recomputed 2, streamed 1, streamed 2, tiled 1, tiled 2, walked 1, persistent 1, resident 1
    heat_walls: separate 1, merged 1, recomputed 1
    heat_insulated: separate 1, merged 1, recomputed 1
    heat_rim: separate 1, merged 1, recomputed 1
    shallow_water: separate 1, merged 1, recomputed 1, recomputed 2, streamed 1, streamed 2, tiled 1, tiled 2, walked 1, persistent 1, resident 1
    ");
}
