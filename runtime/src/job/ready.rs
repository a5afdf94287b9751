//! A job that was checked.

use super::prints::{Made, on_grid, on_mesh};
use super::{Domain, How, Job, Run, Subject, in_stream};
use crate::build::Build;
use crate::checkpoint::{About, Checkpoint};
use crate::device::{ARCH, Device, Platform};
use crate::drawing::Drawing;
use crate::driver::{Backend, Driver, Script, knows_total, total};
use crate::error::{Error, Result};
use crate::mesh::order::Ordering;
use crate::mesh::program::kernels::{self as over_mesh, Reader, Renumbered};
use crate::mesh::program::{self as over, MeshProblem, MeshScript};
use crate::print::Print;
use crate::program::kernels::Kernels;
use crate::program::plan::{ProgramPlan, has_clusters};
use crate::program::planned::Planned;
use crate::program::{ProgramProblem, cpu};
use crate::ranks::Ranks;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::mesh::MeshChoices;
use stencilc_compiler::plan::{Choices, Open};

/// What is computed, with all that it is given.
#[derive(Clone)]
pub enum Checked {
    /// On a grid.
    Grid(Arc<ProgramProblem>),
    /// Over a mesh.
    Mesh(Arc<MeshProblem>),
}

/// A job that was checked, before anything is compiled.
#[derive(Clone)]
pub struct Ready {
    /// What is computed.
    pub checked: Checked,
    /// What its stencils print, if that is computed, and the variables that hold it.
    prints: Vec<(Option<VariableId>, Print)>,
    pub(super) about: About,
    pub(super) resumed: Option<Checkpoint>,
    before: u64,
    device: Option<Device>,
    pub(super) stream: Option<usize>,
    /// What is asked of it once it is started.
    pub(super) asked: String,
    ranks: Option<Arc<Ranks>>,
    pub(super) how: How,
    pub(super) reader: Option<Rc<Reader>>,
}

impl Checked {
    /// What it does.
    pub fn script(&self) -> Arc<dyn Script> {
        match self {
            Checked::Grid(problem) => Arc::<ProgramProblem>::clone(problem),
            Checked::Mesh(problem) => Arc::new(MeshScript::new(problem, &|_| false)),
        }
    }

    /// How many cells, or elements on a level, its calls compute about, if it is run as often as is known.
    pub fn cells(&self) -> u64 {
        let (calls, each) = match self {
            Checked::Grid(problem) => (problem.staged.stages.len(), problem.outer.grid.count()),
            Checked::Mesh(problem) => {
                let elements = problem.mesh.sets.iter().map(|own| own.size).max().unwrap_or(0);
                (problem.program.stencils.len(), (elements as u64).saturating_mul(problem.levels as u64))
            }
        };
        let repeated = total(&*self.script()).unwrap_or(1).max(1);
        each.saturating_mul(calls as u64).saturating_mul(repeated)
    }

    /// The same, whose outermost loops are run so often, or as often as they can be.
    pub(super) fn with_times(&self, times: usize) -> Self {
        match self {
            Checked::Grid(problem) => Checked::Grid(Arc::new(problem.with_times(times))),
            Checked::Mesh(problem) => {
                let times = i32::try_from(times).unwrap_or(i32::MAX);
                Checked::Mesh(Arc::new(MeshProblem::clone(problem).with_times(times)))
            }
        }
    }

    /// The names of inputs that were drawn at random.
    pub fn drawn(&self) -> &[String] {
        match self {
            Checked::Grid(problem) => &problem.outer.drawn,
            Checked::Mesh(problem) => &problem.drawn,
        }
    }
}

impl Ready {
    pub(super) fn new(mut job: Job) -> Result<Self> {
        let (device, stream, how) = (job.device, job.stream, job.how.clone());
        let (text, resumed, ranks) = (std::mem::take(&mut job.text), job.resumed.take(), job.ranks.clone());
        if let Some(checkpoint) = &resumed {
            checkpoint.suits(matches!(job.subject, Subject::Mesh(_)))?;
            if let Some(name) = job.arrays.keys().chain(job.files.keys()).next() {
                return Err(Error::call(format!("`{name}` is given, and the checkpoint has all fields"))
                    .help("leave out one of the two"));
            }
            go_on_from(&mut job, &checkpoint.about);
        }
        let (checked, prints) = match job.subject.clone() {
            Subject::Grid(program) => {
                let Made { problem, prints } = on_grid(job, &program)?;
                (Checked::Grid(Arc::new(problem)), prints)
            }
            Subject::Mesh(program) => {
                let Made { problem, prints } = on_mesh(job, &program)?;
                (Checked::Mesh(Arc::new(problem)), prints)
            }
        };
        let about = match &checked {
            Checked::Grid(problem) => About::new(problem, &text, how.choices.contract),
            Checked::Mesh(problem) => About::over_mesh(problem, &text, how.choices.contract),
        };
        let mut before = 0;
        if let Some(checkpoint) = &resumed {
            let script = checked.script();
            checkpoint.check(&about, &*script)?;
            before = checkpoint.done(&*script)?;
        }
        Ok(Self {
            checked,
            prints,
            about,
            resumed,
            before,
            device,
            stream,
            asked: String::new(),
            ranks,
            how,
            reader: None,
        })
    }

    /// What its stencils print, in the order of their calls, if that is computed.
    pub fn prints(&self) -> impl Iterator<Item = &Print> {
        self.prints.iter().map(|(_, print)| print)
    }

    /// How often outermost loops were run before, by what the checkpoint is of.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// How often they are run in all, as far as that is known before.
    ///
    /// # Errors
    /// A number of repetitions is negative.
    pub fn total(&self) -> Result<u64> {
        total(&*self.checked.script())
    }

    /// Whether it is known before: numbers that a program computes can say how often a loop is run.
    pub fn knows_total(&self) -> bool {
        knows_total(&*self.checked.script())
    }

    /// Whether the job leaves it open which kernels compute it.
    pub fn is_open(&self) -> bool {
        let How { open, plan, over_mesh, .. } = &self.how;
        *open == Open::Kernel && plan.is_none() && over_mesh.is_none()
    }

    /// On how many devices it is computed, those of all processes.
    pub fn parts(&self) -> usize {
        self.ranks.as_ref().map_or(self.how.parts.max(1), |ranks| ranks.ranks())
    }

    /// What is chosen of its kernels.
    pub fn choices(&self) -> &Choices {
        &self.how.choices
    }

    /// Another plan of a program on a grid than the job had.
    pub fn plan(&mut self, plan: ProgramPlan) {
        self.how = How { choices: plan.choices.clone(), plan: Some(plan), ..std::mem::take(&mut self.how) };
    }

    /// Other kernels over a mesh than the job had.
    pub fn over_mesh(&mut self, choices: MeshChoices, ordering: Ordering) {
        self.how = How { over_mesh: Some(choices), ordering: Some(ordering), ..std::mem::take(&mut self.how) };
    }

    /// On how many devices, as [`Job::devices`] says it.
    pub fn devices(&mut self, number: usize) {
        self.how.parts = number;
    }

    /// Says what is asked of it once it is started, in some words: all processes that compute it together have to ask the same.
    pub fn will_be_asked(&mut self, asked: String) {
        self.asked = asked;
    }

    /// Starts each kernel by itself, and not those of many steps at once, as a CUDA graph.
    pub fn unrecorded(&mut self) {
        self.how.is_unrecorded = true;
    }

    /// Lets somebody read each kernel over a mesh before it is built.
    pub fn read_by(&mut self, reader: Rc<Reader>) {
        self.reader = Some(reader);
    }

    /// Compiles what is needed, and brings the fields to the device.
    ///
    /// # Errors
    /// A device that is not there, or that cannot take what was chosen; there is not enough memory.
    pub fn start(self) -> Result<Run> {
        let platform = self.open()?;
        self.start_on(platform)
    }

    /// The device that computes it; of several, the first of them.
    ///
    /// # Errors
    /// It is not there.
    pub fn open(&self) -> Result<Platform> {
        let (device, _) = Device::choose(self.device);
        let device = self.ranks.as_ref().map_or(Ok(device), |ranks| ranks.device(device))?;
        device.open(self.checked.cells())
    }

    /// The same on a device that was opened already; on several, it is the first of them.
    ///
    /// # Errors
    /// As [`Ready::start`].
    pub fn start_on(self, platform: Platform) -> Result<Run> {
        in_stream(&platform, self.stream);
        if let Some(ranks) = self.ranks.clone() {
            return self.start_as_rank(ranks, platform);
        }
        if self.how.parts > 1 {
            return self.start_by_parts(platform);
        }
        match self.checked.clone() {
            Checked::Grid(problem) => match platform {
                Platform::Cpu => self.begun(cpu::Interpreter::new(problem)),
                Platform::Emulator(emulator) => self.kernels(emulator, &problem, ARCH),
                Platform::Gpu(gpu) => {
                    let arch = gpu.arch();
                    self.kernels(gpu, &problem, &arch)
                }
            },
            Checked::Mesh(problem) => match platform {
                Platform::Cpu => self.begun(over::cpu::Interpreter::new(problem)),
                Platform::Emulator(emulator) => self.kernels_over_mesh(emulator, problem),
                Platform::Gpu(gpu) => self.kernels_over_mesh(gpu, problem),
            },
        }
    }

    fn kernels<M: Build + 'static>(mut self, machine: Arc<M>, problem: &ProgramProblem, arch: &str) -> Result<Run> {
        let How { choices, open, plan, is_unrecorded, .. } = std::mem::take(&mut self.how);
        let (choices, open) = if machine.is_cpu() { choices.on_cpu(open) } else { (choices, open) };
        let usual = || ProgramPlan::usual(problem, &problem.on_cells(choices, open), has_clusters(arch));
        let mut plan = plan.unwrap_or_else(usual);
        plan.graph &= !is_unrecorded;
        self.begun(Kernels::built(machine, Planned::new(problem, &plan)?)?)
    }

    fn kernels_over_mesh<M: Build + 'static>(mut self, machine: Arc<M>, problem: Arc<MeshProblem>) -> Result<Run> {
        let How { over_mesh, ordering, is_unrecorded, .. } = std::mem::take(&mut self.how);
        let ordering = ordering.unwrap_or_else(|| Ordering::kept(&problem.mesh));
        let renumbered = Rc::new(Renumbered::new(&problem, &ordering)?);
        let choices = over_mesh.unwrap_or_else(|| MeshChoices::usual(problem.program.mesh.levels));
        let mut kernels = over_mesh::Kernels::new(Arc::clone(&problem), machine, choices, renumbered);
        if let Some(reader) = self.reader.take() {
            kernels = kernels.read_by(reader);
        }
        if is_unrecorded {
            kernels = kernels.unrecorded();
        }
        let merged = problem.chains.iter().filter(|chain| kernels.merges(chain));
        let merged = merged.map(|chain| chain.stages.iter().map(|own| own.stencil.name.clone()).collect());
        let merged = merged.collect();
        let mut run = self.begun(kernels)?;
        run.merged = merged;
        Ok(run)
    }

    /// At the beginning, or where the checkpoint was.
    pub(super) fn begun<B: Backend + 'static>(self, backend: B) -> Result<Run> {
        let mut driver = Driver::new(backend);
        let is_resumed = self.resumed.is_some();
        match &self.resumed {
            Some(checkpoint) => checkpoint.restore(&mut driver)?,
            None => driver = driver.given()?,
        }
        let run = Run::new(Box::new(driver), self.checked, self.about, self.prints).of(self.ranks);
        Ok(if is_resumed { run.resumed() } else { run })
    }
}

/// What is left open of where a job is computed is as it was. All that it holds comes from the checkpoint: what is drawn has only the
/// right shape.
fn go_on_from(job: &mut Job, about: &About) {
    job.drawing = Drawing::Inputs;
    match (&mut job.domain, &job.subject) {
        (place @ None, _) => *place = about.grid.map(Domain::Rows),
        (Some(Domain::Cells { levels, .. }), _) => *levels = levels.or(about.grid.map(|own| own.nk)),
        (Some(Domain::Mesh { levels, .. }), Subject::Mesh(program)) if program.mesh.levels => {
            *levels = levels.or(about.mesh.as_ref().map(|own| own.levels));
        }
        _ => {}
    }
}
