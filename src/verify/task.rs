//! What is verified at once: a stencil or a program, on a grid or a mesh, in one precision, by all ways to compute it.

use super::case::{Case, Tried, Ways};
use super::label::Label;
use super::plans::plans;
use super::{Args, On};
use crate::args;
use crate::drawn::Drawn;
use crate::input::Input;
use crate::terminal::Progress;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::ir::{MeshProgram, MeshStencil, Precision, Program, Stencil};
use stencilc_compiler::mesh::{Merge, MeshChoices, Threads};
use stencilc_runtime::Device;
use stencilc_runtime::mesh::program::kernels::Renumbered;
use stencilc_runtime::mesh::program::parts::Owners;
use stencilc_runtime::mesh::program::ways::Variant;
use stencilc_runtime::mesh::program::{MeshProblem, Request, measure};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::verify::mesh::{self as over, OverMesh};
use stencilc_runtime::verify::mesh_parts::OverMeshInParts;
use stencilc_runtime::verify::parts::InParts;
use stencilc_runtime::verify::program::Reference;
use stencilc_runtime::verify::{OfStencil, Subject, Tools, expect, verify};
use stencilc_runtime::{Cast, Drawing, Error, Result, mesh};

/// What is verified at once.
pub struct Task<'a> {
    pub input: &'a Input,
    pub what: What<'a>,
    pub precision: Precision,
}

/// A stencil or a program, and what it runs on.
#[derive(Clone, Copy)]
pub enum What<'a> {
    Stencil(&'a Stencil, &'a On),
    Program(&'a Program, &'a On),
    /// And whether what is added to starts from 0.
    MeshStencil(&'a MeshStencil, bool),
    MeshProgram(&'a MeshProgram),
}

/// What tasks have in common.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    pub args: &'a Args,
    pub tools: &'a Tools,
    pub progress: &'a Progress,
}

/// Threads of a block: few, so that a small mesh has several. Where there are levels, some threads have one, and some go through several.
const THREADS: [Threads; 2] =
    [Threads { block: 64, at_once: 0, slice: 1 }, Threads { block: 64, at_once: 0, slice: 3 }];

/// The orders that are verified if none is named: as it is, one that ties neighbours together, and one that does not.
const ORDERS: [&str; 3] = ["none", "hilbert", "random"];

/// Whether calls of a program over a mesh share a kernel.
const KINDS: [(PlanKind, Merge); 2] = [(PlanKind::Merged, Merge::Always), (PlanKind::Separate, Merge::Never)];

/// Whether what is added to starts from 0: both ways, if anything is added to.
pub fn starts(stencil: &MeshStencil) -> &'static [bool] {
    if stencil.incremented().next().is_some() { &[false, true] } else { &[false] }
}

impl What<'_> {
    /// How it is computed over a mesh.
    fn over_mesh(&self, args: &Args) -> Vec<MeshChoices> {
        let own = &args.over;
        let is_chosen = |kind: PlanKind| args.of_programs.fuse.is_empty() || args.of_programs.fuse.contains(&kind);
        let chosen = KINDS.iter().filter(|(kind, _)| is_chosen(*kind)).map(|(_, merge)| *merge);
        let (strategies, merges, has_levels) = match self {
            What::Stencil(..) | What::Program(..) => return Vec::new(),
            What::MeshStencil(stencil, _) => (own.strategies_for(stencil), vec![Merge::Never], stencil.mesh.levels),
            What::MeshProgram(program) => (own.ordered_strategies(), chosen.collect(), program.mesh.levels),
        };
        // A thread of a CPU has all levels.
        let is_for_cpu = args.device == Some(Device::Native);
        let kinds_of_threads = if has_levels && !is_for_cpu { 2 } else { 1 };
        let mut all = Vec::new();
        for strategy in strategies {
            for layout in own.layouts_for(has_levels) {
                for threads in own.threads(&THREADS[..kinds_of_threads]) {
                    // Others have no thread a target.
                    let merges = merges.iter().filter(|own| **own != Merge::Always || strategy.has_a_thread_a_target());
                    all.extend(merges.map(|&merge| MeshChoices { strategy, layout, threads, merge, is_for_cpu }));
                }
            }
        }
        all
    }
}

impl Task<'_> {
    /// How many ways there are.
    pub fn count(&self, args: &Args) -> usize {
        match self.what {
            What::Stencil(..) => args.combinations(self.precision).len(),
            What::Program(..) => plans(args, self.precision).len(),
            What::MeshStencil(..) | What::MeshProgram(_) => {
                self.what.over_mesh(args).len() * args.over.orders(&ORDERS).len()
            }
        }
    }

    /// Compares every way with the interpreter.
    ///
    /// # Errors
    /// Something is wrong with the call, the grid, the mesh or the device.
    pub fn verify(&self, means: Means) -> Result<Case> {
        let case = self.case(means.args);
        let case = match self.what {
            What::Stencil(stencil, on) => self.stencil(means, case, stencil, on),
            What::Program(program, on) => self.program(means, case, program, on),
            What::MeshStencil(stencil, from_zero) => self.over_mesh(means, case, &measure::program(stencil, from_zero)),
            What::MeshProgram(program) => self.over_mesh(means, case, program),
        }?;
        if case.error.is_some() {
            means.progress.advance(self.count(means.args));
        }
        Ok(case)
    }

    /// What is known before anything is computed.
    fn case(&self, args: &Args) -> Case {
        let (mut stencil, mut program, mut from_zero) = (None, None, None);
        match self.what {
            What::Stencil(own, _) => stencil = Some(own.name.clone()),
            What::Program(own, _) => program = Some(own.name.clone()),
            What::MeshStencil(own, start) => (stencil, from_zero) = (Some(own.stencil.name.clone()), Some(start)),
            What::MeshProgram(own) => program = Some(own.program.name.clone()),
        }
        let is_over_mesh = matches!(self.what, What::MeshStencil(..) | What::MeshProgram(_));
        Case {
            file: self.input.source.name.clone(),
            times: program.is_some().then_some(args.of_programs.times),
            gpus: Some(args.of_programs.parts()).filter(|parts| *parts > 1),
            mesh: args.over.mesh.as_ref().filter(|_| is_over_mesh).map(|path| path.display().to_string()),
            precision: self.precision,
            grid: None,
            grid_words: String::new(),
            region: None,
            seed: args.seed,
            error: None,
            untaken: None,
            ways: Ways { tried: Vec::new(), are_plans: matches!(self.what, What::Program(..)) },
            stencil,
            program,
            from_zero,
        }
    }

    /// A problem on a grid.
    fn on_grid(&self, args: &Args, stencil: &Stencil, on: &On) -> Result<Problem> {
        let (share, set, seed) = (&args.shared.share[..], &args.set[..], args.seed);
        let (precision, contract, grid) = (self.precision, args.launch.code.contract, &on.chosen);
        Drawn { stencil, precision, contract, grid, share, set, seed }.problem(self.input)
    }

    fn stencil(&self, means: Means, mut case: Case, stencil: &Stencil, on: &On) -> Result<Case> {
        let problem = self.on_grid(means.args, stencil, on)?;
        case.grid = Some(problem.grid);
        case.grid_words = on.words(problem.grid);
        case.region = Some(problem.region.clone());
        case.untaken = Some(Vec::new());
        let Some(expected) = case.worth(expect(&problem, &|_| {}))? else { return Ok(case) };
        case.note_untaken(self.input, &expected.untaken);
        let choices = means.args.combinations(self.precision);
        let labels = choices.iter().map(Label::of_kernel).collect();
        tried(means, case, &OfStencil { problem: &problem, expected: &expected }, &choices, labels)
    }

    fn program(&self, means: Means, mut case: Case, program: &Program, on: &On) -> Result<Case> {
        let problem = self.on_grid(means.args, &program.facade(), on).map_err(|error| of_program(program, error))?;
        let problem = ProgramProblem::of(program, problem, means.args.launch.code.contract)?;
        case.grid = Some(problem.outer.grid);
        case.grid_words = on.words(problem.outer.grid);
        let reference = Reference::new(problem.with_times(means.args.of_programs.times as usize), &|_| {})?;
        let Some(()) = case.worth(reference.check_worth())? else { return Ok(case) };
        let plans = plans(means.args, self.precision);
        let labels = plans.iter().map(Label::of_plan).collect();
        match case.gpus {
            Some(parts) => tried(means, case, &InParts { reference: &reference, parts }, &plans, labels),
            None => tried(means, case, &reference, &plans, labels),
        }
    }

    fn over_mesh(&self, means: Means, mut case: Case, program: &MeshProgram) -> Result<Case> {
        let (args, name) = (means.args, &program.program.name);
        let choices = self.what.over_mesh(args);
        if choices.is_empty() {
            return Err(Error::call(format!("there is no way to verify `{name}` by what is named")).help(
                "over a mesh there are --fuse merged,separate, and strategies that add in order: owner, two-step, tiled",
            ));
        }
        let problem = MeshProblem::new(Request {
            program,
            precision: self.precision,
            contract: args.launch.code.contract,
            mesh: mesh::load(args.over.file(name, &program.mesh.name)?)?,
            levels: args.levels,
            arrays: BTreeMap::new(),
            settings: args::by_name(&args.set, "--set")?,
            seed: args.seed,
            cast: Cast::Rounded,
            drawing: Drawing::Everything,
        })?;
        let loops = if case.times.is_some() { problem.times() } else { Vec::new() };
        let problem = Arc::new(match case.times {
            Some(times) => problem.with_times(times as i32),
            None => problem,
        });
        let expected = over::Expected::new(&problem);
        let worth = expected.and_then(|expected| expected.check_worth(&problem).map(|()| expected));
        let worth = worth.map_err(|error| of_times(error, &loops, case.times.unwrap_or_default()));
        let Some(expected) = case.worth(worth)? else { return Ok(case) };
        let (mut ways, mut labels) = (Vec::new(), Vec::new());
        let layouts: Vec<_> = choices.iter().map(|own| own.layout).collect();
        for order in args.over.orders(&ORDERS) {
            // Without coordinates there is another one that ties neighbours together.
            let ordered = match args.over.ordering(&problem, order, &layouts) {
                Err(_) if !args.over.has_order() && order == "hilbert" => {
                    args.over.ordering(&problem, "rcm", &layouts)?
                }
                ordered => ordered?,
            };
            let renumbered = Arc::new(Renumbered::new(&problem, &ordered.ordering)?);
            for &choices in &choices {
                let kind = KINDS.iter().find(|(_, merge)| *merge == choices.merge).map(|(kind, _)| *kind);
                let fuse = kind.filter(|_| case.program.is_some());
                labels.push(Label::OverMesh { fuse, variant: Variant::new(choices, ordered.name) });
                ways.push(over::Way { renumbered: Arc::clone(&renumbered), choices });
            }
        }
        match case.gpus {
            Some(parts) => {
                let owners = Owners::new(&problem, parts)?;
                tried(means, case, &OverMeshInParts { problem: &problem, expected: &expected, owners }, &ways, labels)
            }
            None => tried(means, case, &OverMesh { problem, expected }, &ways, labels),
        }
    }
}

/// What is wrong with a program whose outermost loops are run `times` times, told with that where the program would run one less often.
fn of_times(error: Error, loops: &[Option<i64>], times: u32) -> Error {
    let fewest = loops.iter().flatten().copied().min().filter(|&own| own < i64::from(times));
    let told = match fewest {
        Some(own) if own > 0 => {
            format!(
                "verify runs outermost loops {times} times, and one that the program runs {own} times: give --times {own}"
            )
        }
        None if loops.iter().all(Option::is_some) => return error,
        Some(_) | None => format!("verify runs outermost loops {times} times, whatever the program says: give --times"),
    };
    let help = error.help.as_ref().map_or(told.clone(), |help| format!("{told}; or {help}"));
    error.help(help)
}

/// The case with what came of all ways.
fn tried<S: Subject>(means: Means, mut case: Case, subject: &S, ways: &[S::Way], labels: Vec<Label>) -> Result<Case> {
    let verdicts = verify(subject, ways, means.tools, &|ways| means.progress.advance(ways))?;
    let both = labels.into_iter().zip(verdicts);
    case.ways.tried = both.map(|(label, verdict)| Tried { label, verdict }).collect();
    Ok(case)
}
