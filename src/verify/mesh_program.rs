//! `stencilc verify` of programs over meshes: strategies that keep the order of additions, calls by themselves and in one kernel,
//! against the interpreter.

use super::Args;
use super::bench::Bench;
use super::mesh::{ORDERS, Outcome, Reference, THREADS, ordered};
use super::outcome::Totals;
use crate::args;
use crate::input::Input;
use crate::terminal::{self, Progress};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::ir::{MeshProgram, Precision};
use stencilc_compiler::mesh::{Kernel, Merge, MeshChoices, VectorLayout};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::build::Build;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{self, Results, is_nothing};
use stencilc_runtime::mesh::program::ways::Variant;
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::{Cast, Drawing, Error, Result, mesh};

/// A program on a mesh in one precision, and what came of all ways to compute it.
#[derive(Serialize)]
pub struct Case {
    file: String,
    program: String,
    mesh: String,
    precision: Precision,
    seed: u64,
    /// How often each outermost loop is run.
    times: u32,
    /// Why nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    combinations: Vec<Combination>,
}

/// One way to compute it.
#[derive(Serialize)]
struct Combination {
    /// `merged` or `separate`.
    fuse: &'static str,
    #[serde(flatten)]
    variant: Variant,
    #[serde(flatten)]
    outcome: Outcome,
}

/// A program, and what the interpreter makes of it.
struct OfProgram {
    problem: Arc<MeshProblem>,
    expected: Results,
}

impl Reference for OfProgram {
    fn problem(&self) -> &Arc<MeshProblem> {
        &self.problem
    }

    fn compared<M: Build>(&self, kernels: &Kernels<M>, _: MeshChoices) -> Result<Outcome> {
        let found = measure::results(&self.problem, kernels)?;
        Ok(measure::difference(&self.expected, &found).map_or(Outcome::Equal, |what| Outcome::Failed { what }))
    }

    /// Which there are depends on numbers that are computed on the way.
    fn kernels(&self, _: &Renumbered, _: &MeshChoices) -> Result<Option<Vec<Kernel>>> {
        Ok(None)
    }
}

/// Whether calls share a kernel.
const KINDS: [(PlanKind, Merge); 2] = [(PlanKind::Merged, Merge::Always), (PlanKind::Separate, Merge::Never)];

/// Strategies, with and without calls in one kernel.
fn ways(args: &Args) -> Vec<MeshChoices> {
    let own = &args.over;
    let is_chosen = |kind: PlanKind| args.of_programs.fuse.is_empty() || args.of_programs.fuse.contains(&kind);
    let mut all = Vec::new();
    for strategy in own.ordered_strategies() {
        for layout in own.layouts(&VectorLayout::ALL) {
            for threads in own.threads(&[THREADS]) {
                for (kind, merge) in KINDS {
                    // Others have no thread a target.
                    if is_chosen(kind) && (merge == Merge::Never || strategy.has_a_thread_a_target()) {
                        let (block, blocks_at_once) = (threads.block, threads.at_once);
                        all.push(MeshChoices { strategy, layout, block, blocks_at_once, merge });
                    }
                }
            }
        }
    }
    all
}

/// How many ways there are to compute a program, in one precision.
pub fn count(args: &Args) -> usize {
    ways(args).len() * args.over.orders(&ORDERS).len()
}

/// Verifies every way to compute a program on a mesh.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device.
pub fn verify(
    args: &Args,
    bench: &Bench,
    progress: &Progress,
    (input, program): (&Input, &MeshProgram),
    precision: Precision,
) -> Result<Case> {
    let own = &args.over;
    let (name, times) = (&program.program.name, args.of_programs.times);
    let ways = ways(args);
    if ways.is_empty() {
        return Err(Error::call(format!("there is no way to verify `{name}` by what is named")).help(
            "over a mesh there are --fuse merged,separate, and strategies that add in order: owner, two-step, tiled",
        ));
    }
    let problem = MeshProblem::new(Request {
        program,
        precision,
        contract: args.launch.code.contract,
        mesh: mesh::load(own.file(name, &program.mesh.name)?)?,
        levels: args.levels,
        arrays: BTreeMap::new(),
        settings: args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: Cast::Rounded,
        drawing: Drawing::Everything,
    })?;
    let problem = Arc::new(problem.with_times(times as i32));
    let expected = measure::results(&problem, Interpreter::new(Arc::clone(&problem)))?;
    let mut case = Case {
        file: input.source.name.clone(),
        program: name.clone(),
        mesh: own.mesh.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        precision,
        seed: args.seed,
        times,
        error: expected.iter().find(|(_, data)| is_nothing(data)).map(|(name, _)| {
            format!("every number of `{name}` is NaN, so nothing is known: give the mesh fields, or declare ranges")
        }),
        combinations: Vec::new(),
    };
    if case.error.is_some() {
        progress.advance(count(args));
        return Ok(case);
    }
    let reference = OfProgram { problem, expected };
    for (order, placed) in ordered(own, &reference.problem)? {
        for &choices in &ways {
            let outcome = bench.try_on_mesh(&reference, &placed, choices)?;
            let fuse = KINDS.iter().find(|(_, merge)| *merge == choices.merge).map_or("", |(kind, _)| kind.name());
            case.combinations.push(Combination { fuse, variant: Variant::new(choices, order), outcome });
            progress.advance(1);
        }
    }
    Ok(case)
}

impl Case {
    /// What came of all ways.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.combinations.iter().map(|combination| &combination.outcome)
    }

    /// `airfoil_flow f64 on airfoil.npz, 7 times: 36 equal`, and what failed.
    pub fn text(&self, args: &Args) -> String {
        let Case { file, program, precision, mesh, seed, times, .. } = self;
        let mut totals = Totals::default();
        totals.add_of_meshes(self.outcomes(), self.error.is_some());
        let often = terminal::count(*times as usize, "time");
        let mut text = format!("{program} {} on {mesh}, {often}: {totals}\n", precision.name());
        if let Some(error) = &self.error {
            text.push_str(&format!("  {error}\n"));
        }
        for Combination { fuse, variant, outcome } in &self.combinations {
            let Outcome::Failed { what } = outcome else { continue };
            let Variant { strategy, vectors, order, .. } = variant;
            text.push_str(&format!("  {fuse}, {strategy}, {vectors}, order {order}: {what}\n"));
            let again = format!(
                "stencilc verify {} --program {program} --mesh {} --precision {} --fuse {fuse} {} --times {times} --seed {seed}",
                ShellWord::path(file),
                ShellWord::path(mesh),
                precision.name(),
                variant.words()
            );
            text.push_str(&format!("    again: {again}{}\n", args.beside()));
        }
        text
    }
}
