//! From a job to a problem, with what its stencils print.

use super::{Domain, Job};
use crate::error::{Error, Result};
use crate::mesh::program::{self as over, MeshProblem, Outline};
use crate::print::Print;
use crate::problem::{Problem, Request};
use crate::program::{ProgramProblem, of_program};
use crate::rows::Part;
use std::ops::Range;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::program::{Action, Call};
use stencilc_compiler::ir::{MeshProgram, Program, ShownPrint, VariableId};
use stencilc_compiler::program::Staged;

/// A problem, the prints of its calls, and the variables that hold what these show: none of a print that is computed nowhere.
pub(super) struct Made<P> {
    pub problem: P,
    pub prints: Vec<(Option<VariableId>, Print)>,
}

pub(super) fn on_grid(job: Job, program: &Program) -> Result<Made<ProgramProblem>> {
    let Job { domain, how, arrays, files, ranks, settings, seed, cast, drawing, has_prints, .. } = job;
    let (grid, adjacency) = match domain {
        None => (None, None),
        Some(Domain::Rows(grid)) => (Some(grid), None),
        Some(Domain::Cells { adjacency, levels }) => {
            (levels.map(|levels| Grid::cells(adjacency.cells(), levels)), Some(adjacency))
        }
        Some(Domain::Mesh { .. }) => {
            return Err(Error::call(format!("`{}` runs on a grid, not over a mesh", program.name)));
        }
    };
    let (precision, contract) = (how.choices.precision, how.choices.contract);
    let facade = program.facade();
    let request =
        Request { stencil: &facade, precision, contract, grid, adjacency, arrays, settings, seed, cast, drawing };
    let part = ranks.map(|own| Part { number: own.rank(), parts: own.ranks() });
    let outer = Problem::partly(request, files, part).map_err(|error| of_program(program, error))?;
    if !has_prints || !program.prints() {
        return Ok(Made { problem: ProgramProblem::of(program, outer, contract)?, prints: Vec::new() });
    }
    let staged = |program: &Program| {
        Staged::new(program, precision, contract, outer.grid, outer.adjacency.as_deref(), &outer.params)
    };
    // What is wrong without any print is told as such.
    staged(program)?;
    let (all, found) = program.with_prints(&|_| true);
    // A print that cannot be computed leaves the others alone.
    let why: Vec<Option<String>> = match staged(&all) {
        Ok(_) => vec![None; found.len()],
        Err(_) => {
            let alone = |number: usize| program.with_prints(&|own| own == number).0;
            (0..found.len()).map(|number| staged(&alone(number)).err().map(|refusal| refusal.message)).collect()
        }
    };
    let (program, wanted) = program.with_prints(&|number| why[number].is_none());
    let problem = ProgramProblem::of(&program, outer, contract)?;
    let mut wanted = wanted.into_iter();
    let mut one = |(own, why): (ShownPrint, Option<String>)| {
        let variable = why.is_none().then(|| wanted.next()).flatten().map(|wanted| wanted.variable);
        let region = variable.map(|variable| problem.staged.computed_of(variable)).ok_or(why.unwrap_or_default());
        (variable, Print::of(&own, problem.staged.domain, region))
    };
    let prints = found.into_iter().zip(why).map(&mut one).collect();
    Ok(Made { problem, prints })
}

pub(super) fn on_mesh(job: Job, program: &MeshProgram) -> Result<Made<MeshProblem>> {
    let Some(Domain::Mesh { mesh, levels }) = job.domain else {
        return Err(Error::call(format!("`{}` runs over a mesh", program.program.name))
            .help("give one: `Domain::Mesh { mesh, levels }`"));
    };
    let contract = job.how.choices.contract;
    let mut arrays = job.arrays;
    for (name, file) in job.files {
        arrays.insert(name, file.whole()?);
    }
    let problem = MeshProblem::new(over::Request {
        program,
        precision: job.how.choices.precision,
        contract,
        mesh,
        levels,
        arrays,
        settings: job.settings,
        seed: job.seed,
        cast: job.cast,
        drawing: job.drawing,
    })?;
    if !job.has_prints || !program.program.prints() {
        return Ok(Made { problem, prints: Vec::new() });
    }
    let (all, found) = program.with_prints(&|_| true);
    let outline = Outline::new(&all, problem.precision, contract);
    let (known, params) = (problem.levels, problem.params.clone());
    let levels_of = |own: &ShownPrint| {
        let call = call_of(&all.program.actions, own.variable);
        let call = call.ok_or_else(|| Error::check("a print is computed by no call"))?;
        outline.computed(call, known, &params)
    };
    let computed: Vec<Result<Range<usize>>> = found.iter().map(levels_of).collect();
    let why: Vec<Option<String>> =
        computed.iter().map(|own| own.as_ref().err().map(|error| error.message.clone())).collect();
    let (program, wanted) = program.with_prints(&|number| why[number].is_none());
    let problem = problem.with_program(&program, contract);
    let mut wanted = wanted.into_iter();
    let mut one = |(own, levels): (ShownPrint, Result<Range<usize>>)| {
        let set = all.program.variables[own.variable].place.home.map(|home| home.set);
        let elements = set.map_or(0, |set| problem.bound.size(set));
        let variable = levels.is_ok().then(|| wanted.next()).flatten().map(|wanted| wanted.variable);
        let zones = call_of(&all.program.actions, own.variable).and_then(|call| {
            let stencil = &all.stencils[call.stencil];
            Some((stencil.set(), stencil.stencil.zones?))
        });
        let cells = zones.map(|(set, zones)| {
            let is_in = |element: &u32| zones.contain(problem.bound.zone(set, *element as usize));
            (0..elements as u32).filter(is_in).collect()
        });
        let region = |levels| Region { cells, ..Region::rows(0..elements, 0..1, levels) };
        let region = levels.map(region).map_err(|error| error.message);
        let set = set.map(|set| all.mesh.sets[set].name.clone());
        (variable, Print { set, ..Print::of(&own, Grid::cells(elements, known), region) })
    };
    let prints = found.into_iter().zip(computed).map(&mut one).collect();
    Ok(Made { problem, prints })
}

/// The call that computes a variable.
fn call_of(actions: &[Action], variable: VariableId) -> Option<&Call> {
    actions.iter().find_map(|action| match action {
        Action::Call(call) => Some(call).filter(|call| call.writes().any(|id| id == variable)),
        Action::Repeat(repeat) => call_of(&repeat.actions, variable),
        Action::Rename(_) | Action::Number(_) => None,
    })
}
