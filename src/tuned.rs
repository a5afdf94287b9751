//! The kernel that `run` and `build` take where none is asked for: the one that was tuned, if there is one.

use crate::args::mesh::MeshArgs;
use crate::args::program::PlanArgs;
use crate::run::mesh::way;
use crate::terminal;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Source;
use stencilc_runtime::bench::{hash, hash_of_neighbours};
use stencilc_runtime::cuda::devices;
use stencilc_runtime::device::processor;
use stencilc_runtime::job::{Checked, Ready};
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::measure::candidates;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan};
use stencilc_runtime::tune::database::{Database, EMULATOR, For, Hit, Wanted};
use stencilc_runtime::{Device, Error, Result};

/// What the device is called for which something was tuned; the interpreter has nothing to tune.
pub fn name_of_device(device: Device) -> Option<String> {
    match device {
        Device::Cpu => None,
        Device::Emulate => Some(EMULATOR.to_owned()),
        Device::Native => Some(processor()),
        Device::Cuda(ordinal) => Some(devices().into_iter().find(|device| device.ordinal == ordinal)?.name),
    }
}

/// The most steps of a loop that one kernel computes.
const STEPS: usize = 16;

/// `--untuned`.
#[derive(clap::Args)]
pub struct TunedArgs {
    /// Take the usual kernel where no option chooses one, not the one that `stencilc tune` found
    #[arg(long)]
    pub untuned: bool,
}

/// For what a kernel is sought.
pub struct Sought<'a> {
    /// The file's text.
    pub source: &'a str,
    /// The stencil.
    pub stencil: &'a str,
    /// What is chosen but for storage, strategy and block.
    pub choices: &'a Choices,
    /// The grid.
    pub extents: Grid,
    /// A hash of which cells are neighbours, if they stand in no rows; over a mesh, of the mesh.
    pub neighbours: Option<String>,
}

impl Sought<'_> {
    /// The choices that were tuned on GPUs of one name, if `fits` accepts them. It is told that they are taken.
    pub fn on(&self, gpu: &str, fits: impl Fn(&Choices) -> Result<()>) -> Option<Choices> {
        let hits = self.hits(|database, wanted| Ok(database.find(gpu, wanted)?.into_iter().collect()));
        self.take(hits, fits)
    }

    /// The plan of a program that was tuned on GPUs of one name, if `fits` accepts it. It is told that it is taken.
    pub fn plan_on(&self, gpu: &str, fits: impl Fn(&ProgramPlan) -> Result<()>) -> Option<ProgramPlan> {
        let hits = self.hits(|database, wanted| Ok(database.find(gpu, wanted)?.into_iter().collect()));
        let Hit { gpu, entry } = hits.into_iter().next()?;
        let choices = self.own(&entry.choices);
        // Of a stencil by itself there is a kernel, and no plan.
        let known = entry.plan.as_ref()?;
        let steps: Vec<usize> = (1..=STEPS).collect();
        let plans = candidates(&PlanKind::ALL, &steps, std::slice::from_ref(&choices), true);
        let named = |plan: &ProgramPlan| *known == plan.to_string();
        let Some(plan) = plans.into_iter().find(named) else {
            let error = Error::input(format!("this program has no plan `{}` any more", entry.options));
            not_taken(&error.help("tune again"));
            return None;
        };
        if let Err(error) = fits(&plan) {
            not_taken(&error);
            return None;
        }
        terminal::note(&format!("tuned for {gpu} and {}: {plan} (--untuned takes the usual plan)", entry.grid));
        Some(plan)
    }

    /// How what runs over a mesh is computed, as it was tuned on GPUs of one name. It is told that it is taken.
    pub fn over_mesh_on(&self, gpu: &str) -> Option<(MeshArgs, PlanArgs)> {
        let hits = self.hits(|database, wanted| Ok(database.find(gpu, wanted)?.into_iter().collect()));
        let Hit { gpu, entry } = hits.into_iter().next()?;
        match MeshArgs::of_words(&entry.options) {
            Ok(tuned) => {
                let (mesh, options) = (&entry.grid, &entry.options);
                terminal::note(&format!("tuned for {gpu} and {mesh}: {options} (--untuned takes the usual way)"));
                Some(tuned)
            }
            Err(error) => {
                not_taken(&error);
                None
            }
        }
    }

    /// The choices that were tuned on GPUs of an architecture: those of this machine, or of the only model that there is
    /// something for.
    pub fn on_any(&self, arch: &str, fits: impl Fn(&Choices) -> Result<()>) -> Option<Choices> {
        let mut hits = self.hits(|database, wanted| database.find_for(arch, wanted));
        if hits.len() > 1 {
            let names: Vec<String> = hits.iter().map(|hit| hit.gpu.clone()).collect();
            let own = devices();
            hits.retain(|hit| own.first().is_some_and(|device| device.name == hit.gpu));
            if hits.is_empty() {
                let (stencil, names) = (self.stencil, names.join(", "));
                terminal::note(&format!(
                    "`{stencil}` was tuned for {names}: none of these is in this machine, so the kernel is the usual one"
                ));
            }
        }
        self.take(hits, fits)
    }

    /// What the database holds. One that is damaged keeps nobody from computing.
    fn hits(&self, find: impl FnOnce(&Database, &Wanted) -> Result<Vec<Hit>>) -> Vec<Hit> {
        let Some(database) = Database::usual() else { return Vec::new() };
        let source = hash(&[self.source.as_bytes()]);
        let wanted = Wanted {
            source: &source,
            stencil: self.stencil,
            precision: self.choices.precision,
            extents: self.extents,
            neighbours: self.neighbours.as_deref(),
        };
        find(&database, &wanted).unwrap_or_else(|error| {
            not_taken(&error);
            Vec::new()
        })
    }

    fn take(&self, hits: Vec<Hit>, fits: impl Fn(&Choices) -> Result<()>) -> Option<Choices> {
        let Hit { gpu, entry } = hits.into_iter().next()?;
        let choices = self.own(&entry.choices);
        if let Err(error) = fits(&choices) {
            not_taken(&error);
            return None;
        }
        // Not the entry's own options: what decides the results is this call's.
        let (options, grid) = (choices.words(), &entry.grid);
        terminal::note(&format!("tuned for {gpu} and {grid}: {options} (--untuned takes the usual kernel)"));
        Some(choices)
    }
}

/// The plan of a program on a grid that was tuned on GPUs of one name. It is told that it is taken.
pub fn plan(source: &Source, problem: &ProgramProblem, choices: &Choices, gpu: &str) -> Option<ProgramPlan> {
    let stencil = &problem.staged.program.name;
    let neighbours = problem.adjacency.as_deref().map(hash_of_neighbours);
    let sought = Sought { source: &source.text, stencil, choices, extents: problem.outer.grid, neighbours };
    sought.plan_on(gpu, |plan| plan.check(problem))
}

/// How what runs over a mesh is computed, as it was tuned on GPUs of one name. It is told that it is taken.
pub fn over_mesh(source: &Source, problem: &MeshProblem, gpu: &str) -> Option<(MeshArgs, PlanArgs)> {
    let For { stencil, precision, extents, neighbours, .. } = For::mesh(problem, String::new());
    let choices = Choices { precision, ..Choices::default() };
    Sought { source: &source.text, stencil: &stencil, choices: &choices, extents, neighbours }.over_mesh_on(gpu)
}

/// Lets a job be computed as it was tuned on GPUs of one name, if it was.
///
/// # Errors
/// The mesh lacks what that needs.
pub fn take(source: &Source, ready: &mut Ready, gpu: &str) -> Result<()> {
    match ready.checked.clone() {
        Checked::Grid(problem) => {
            let plan = plan(source, &problem, ready.choices(), gpu);
            // What is fast on one may suit no part.
            if let Some(plan) = plan.filter(|plan| ready.parts() == 1 || plan.suits_parts()) {
                ready.plan(plan);
            }
        }
        Checked::Mesh(problem) => {
            if let Some((of_mesh, plan)) = over_mesh(source, &problem, gpu) {
                let (choices, ordered) = way(&of_mesh, &plan, &problem)?;
                ready.over_mesh(choices, ordered.ordering);
            }
        }
    }
    Ok(())
}

impl Sought<'_> {
    /// What was tuned, but for what decides the results: that is this call's.
    fn own(&self, tuned: &Choices) -> Choices {
        let Choices { precision, contract, wide, checked, math, .. } = *self.choices;
        Choices { precision, contract, wide, checked, math, ..tuned.clone() }
    }
}

fn not_taken(error: &Error) {
    let help = error.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
    terminal::note(&format!("what was tuned is not taken: {}{help}", error.message));
}
