//! Jobs: what is computed, where, with which numbers and on which device. This is the way into the crate for other programs.
//!
//! A [`Job`] is a program or a stencil of a text, and all that it is given. Once it is started it is a [`Run`], which holds its
//! fields on the device, goes on by steps, and hands out what they hold.
//!
//! ```
//! use stencilc_compiler::{grid::Grid, source::Source};
//! use stencilc_runtime::{Array, Data, Device, job::{Domain, Job}};
//!
//! let text = "stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }";
//! let a = Array { shape: vec![1, 1, 4], data: Data::F64(vec![1.0, 2.0, 4.0, 8.0]) };
//! let job = Job::new(&Source::new("mean.stn", text), None)?.on(Domain::Rows(Grid::rows(4, 1, 1))).array("a", a);
//! let mut run = job.device(Device::Cpu).start()?;
//! run.finish()?;
//! let Data::F64(b) = run.get("b")?.data else { unreachable!("`real` is f64") };
//! assert_eq!(b[1..3], [2.5, 5.0]);
//! # Ok::<(), stencilc_runtime::Error>(())
//! ```
//!
//! Programs go on step by step, on grids and over meshes alike:
//!
//! ```
//! # use stencilc_compiler::source::Source;
//! # use stencilc_runtime::{Device, Drawing, job::{Domain, Job}, mesh::made::airfoil};
//! let text = "
//!     mesh plane { set edge, cell; map edge.cells -> cell[2] }
//!     stencil flux over plane.edge {
//!         in heat on cell; inc change on cell
//!         let f = 0.1 * (heat[cells.1] - heat[cells.0])
//!         change[cells.0] += f
//!         change[cells.1] -= f
//!     }
//!     program spread over plane { inout heat on cell; param n: int; repeat n { heat = flux(heat, heat) } }
//! ";
//! let job = Job::new(&Source::new("spread.stn", text), None)?.on(Domain::Mesh { mesh: airfoil(12, 6)?, levels: None });
//! let mut run = job.set("n", 100).drawing(Drawing::Inputs).device(Device::Cpu).start()?;
//! while run.step(10)? > 0 {
//!     let heat = run.get("heat")?;
//!     assert_eq!(heat.shape, [72]);
//! }
//! assert_eq!(run.done(), 100);
//! # Ok::<(), stencilc_runtime::Error>(())
//! ```
//!
//! A program that depends on this crate says where it is. Profiles are always those of the program that is built, so what this project's own
//! `Cargo.toml` does to be built sooner has to be said there, too:
//!
//! ```toml
//! [dependencies]
//! stencilc-compiler = { path = "stencilc/compiler" }
//! stencilc-runtime = { path = "stencilc/runtime" }
//!
//! [profile.release.package]
//! stencilc-compiler = { opt-level = 1 }
//! stencilc-runtime = { opt-level = 2 }
//! plotters = { opt-level = 1 }
//! tera = { opt-level = 1 }
//! ```
//!
//! What errors advise is said in the options of the command line: `--grid` is [`Job::on`], `--in` [`Job::array`], `--set` [`Job::set`],
//! `--draw` [`Job::drawing`], `--precision` and the choice of a kernel [`Job::choices`].

mod by_rows;
mod call;
mod elsewhere;
mod kernel;
mod lending;
mod parts;
mod prints;
mod ready;
mod run;
pub mod scaling;

use crate::array::Array;
use crate::checkpoint::{Checkpoint, OfText};
use crate::device::{Device, Platform};
use crate::drawing::Drawing;
use crate::error::{Error, Result};
use crate::given::Cast;
use crate::mesh::Mesh;
use crate::mesh::order::Ordering;
use crate::mesh::program as over;
use crate::npy::Stored;
use crate::program::plan::ProgramPlan;
use crate::ranks::Ranks;
pub use by_rows::{ByRows, Piece};
pub use call::{Call, Lacking};
pub use elsewhere::Elsewhere;
pub use kernel::Sought;
pub use lending::Arrays;
pub use ready::{Checked, Ready};
pub use run::Run;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use stencilc_compiler::diagnostic::{Failure, Severity, guess};
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_compiler::ir::program::Variable;
use stencilc_compiler::ir::{Handle, MeshProgram, Param, Precision, Program, Role, called};
use stencilc_compiler::mesh::MeshChoices;
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::source::Source;

/// What is computed. A stencil is a program that calls it once.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program on a grid.
    Grid(Program),
    /// A program over a mesh.
    Mesh(MeshProgram),
}

/// Where it is computed.
#[derive(Clone, Debug)]
pub enum Domain {
    /// On a grid whose columns stand in rows.
    Rows(Grid),
    /// On a grid of cells, each of which says which its neighbours are.
    Cells {
        /// The neighbours.
        adjacency: Arc<Adjacency>,
        /// How many levels there are, if it does not follow from the arrays.
        levels: Option<usize>,
    },
    /// Over a mesh.
    Mesh {
        /// The mesh.
        mesh: Mesh,
        /// How many levels there are, if it does not follow from the arrays.
        levels: Option<usize>,
    },
}

/// What is computed, and all that it is given.
#[derive(Clone, Debug)]
pub struct Job {
    subject: Subject,
    /// The text that it stands in.
    text: OfText,
    domain: Option<Domain>,
    device: Option<Device>,
    /// The stream of the caller's that all work goes into, as the driver calls it.
    stream: Option<usize>,
    /// The processes that compute it together.
    ranks: Option<Arc<Ranks>>,
    how: How,
    arrays: BTreeMap<String, Array>,
    /// Arrays that are in files.
    files: BTreeMap<String, Stored>,
    settings: BTreeMap<String, String>,
    seed: u64,
    cast: Cast,
    drawing: Drawing,
    resumed: Option<Checkpoint>,
    has_prints: bool,
}

/// Which kernels compute it.
#[derive(Clone, Debug, Default)]
struct How {
    choices: Choices,
    /// How much of the choices is left open.
    open: Open,
    plan: Option<ProgramPlan>,
    over_mesh: Option<MeshChoices>,
    ordering: Option<Ordering>,
    is_unrecorded: bool,
    /// On how many devices, each of which has some rows of the grid or a part of the mesh; on one if it is 0.
    parts: usize,
}

impl Job {
    /// The program or stencil of a text that has this name; or the only program, or the only stencil, that it has.
    ///
    /// # Errors
    /// The text is wrong, which is told with places and guesses; or it has several, or none of that name.
    pub fn new(source: &Source, name: Option<&str>) -> Result<Self> {
        let lowered = stencilc_compiler::check(source);
        if lowered.diagnostics.iter().any(|told| told.severity == Severity::Error) {
            return Err(Error::input(Failure::wrong(lowered.diagnostics, source).to_string()));
        }
        let programs = lowered.programs.into_iter().map(Subject::Grid);
        let programs: Vec<Subject> = programs.chain(lowered.mesh_programs.into_iter().map(Subject::Mesh)).collect();
        let stencils = lowered.stencils.iter().map(|own| Subject::Grid(called::once(own, false).0));
        let stencils = stencils.chain(lowered.mesh_stencils.iter().map(|own| Subject::Mesh(over::alone(own))));
        let subject = chosen(programs, stencils.collect(), name)?;
        Ok(Self::of(subject).standing_in(source))
    }

    /// What was lowered already.
    pub fn of(subject: Subject) -> Self {
        Self {
            subject,
            text: OfText::default(),
            domain: None,
            device: None,
            stream: None,
            ranks: None,
            how: How::default(),
            arrays: BTreeMap::new(),
            files: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 0,
            cast: Cast::Exact,
            drawing: Drawing::Nothing,
            resumed: None,
            has_prints: false,
        }
    }

    /// The text that it stands in: what it holds on its way is that of no other text.
    pub fn standing_in(self, source: &Source) -> Self {
        Self { text: OfText::of(source), ..self }
    }

    /// Where it is computed. On a grid in rows this may be left out where arrays tell its extents.
    pub fn on(self, domain: Domain) -> Self {
        Self { domain: Some(domain), ..self }
    }

    /// What computes; if nothing is said, the first GPU, or else the interpreter.
    pub fn device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// On how many devices: each computes some rows of a grid, or a part of a mesh. The bits are the same on any number. GPUs are the one
    /// that was chosen and those with the next numbers; on the CPU there are as many parts.
    ///
    /// ```
    /// # use stencilc_compiler::{grid::Grid, source::Source};
    /// # use stencilc_runtime::{Device, Drawing, job::{Domain, Job}};
    /// let text = "
    ///     stencil spread { in a; out b; b = 0.5 * a + 0.25 * (a[j-1] + a[j+1]) }
    ///     program warm { inout heat; boundary { j: periodic }; repeat 9 { heat = spread(heat) } }
    /// ";
    /// let on = |devices: usize| {
    ///     let job = Job::new(&Source::new("warm.stn", text), Some("warm"))?.on(Domain::Rows(Grid::rows(4, 24, 1)));
    ///     let mut run = job.drawing(Drawing::Everything).device(Device::Cpu).devices(devices).start()?;
    ///     run.finish()?;
    ///     run.get("heat")
    /// };
    /// assert_eq!(on(1)?.data, on(3)?.data);
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    pub fn devices(self, number: usize) -> Self {
        Self { how: How { parts: number, ..self.how }, ..self }
    }

    /// The processes that compute it together: this one has the part of its rank, on one device. All of them are asked the same in the same
    /// order, of the job and of what it becomes; what a field holds each of them is told, and the first one writes files.
    ///
    /// ```
    /// # use stencilc_compiler::{grid::Grid, source::Source};
    /// # use stencilc_runtime::{Device, Drawing, job::{Domain, Job}, ranks::threads::together};
    /// let text = "
    ///     stencil spread { in a; out b; b = 0.5 * a + 0.25 * (a[j-1] + a[j+1]) }
    ///     program warm { inout heat; boundary { j: periodic }; repeat 9 { heat = spread(heat) } }
    /// ";
    /// let heat = together(3, |ranks| {
    ///     let job = Job::new(&Source::new("warm.stn", text), Some("warm"))?.on(Domain::Rows(Grid::rows(4, 24, 1)));
    ///     let mut run = job.drawing(Drawing::Everything).device(Device::Cpu).ranks(ranks).start()?;
    ///     run.finish()?;
    ///     run.get("heat")
    /// })?;
    /// assert_eq!(heat[0].data, heat[2].data);
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    pub fn ranks(self, ranks: Arc<Ranks>) -> Self {
        Self { ranks: Some(ranks), ..self }
    }

    /// A stream of the caller's that all work goes into (`CUstream`, which is `cudaStream_t`), in the order of whatever else is in it. On
    /// the CPU it says nothing.
    ///
    /// # Safety
    /// The stream is one of the primary context of the GPU that is chosen, and is there as long as what is started or called.
    pub unsafe fn stream(self, stream: *mut c_void) -> Self {
        Self { stream: Some(stream.expose_provenance()), ..self }
    }

    /// What `real` is.
    pub fn precision(self, precision: Precision) -> Self {
        let choices = Choices { precision, ..self.how.choices };
        Self { how: How { choices, ..self.how }, ..self }
    }

    /// What an input holds before the first step: on a grid of shape (nk, nj, ni), over a mesh (levels, elements, slots, parts), of
    /// which a field has some.
    pub fn array(mut self, name: &str, array: Array) -> Self {
        self.arrays.insert(name.to_owned(), array);
        self
    }

    /// The same, of an array that is in a file: of what several processes compute on a grid, each reads the rows that it computes, and nothing else.
    pub fn file(mut self, name: &str, file: Stored) -> Self {
        self.files.insert(name.to_owned(), file);
        self
    }

    /// The value of a parameter.
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.insert(name.to_owned(), value.to_string());
        self
    }

    /// Which inputs are drawn at random; none if nothing is said.
    pub fn drawing(self, drawing: Drawing) -> Self {
        Self { drawing, ..self }
    }

    /// The seed of random numbers.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Whether numbers of arrays may lose precision to fit their fields; they may not if nothing is said.
    pub fn cast(self, cast: Cast) -> Self {
        Self { cast, ..self }
    }

    /// Which kernels compute it on a grid: storage, strategy and what belongs to them; the usual ones if nothing is said. Their
    /// precision is that of all.
    pub fn choices(self, choices: Choices) -> Self {
        Self { how: How { choices, open: Open::Nothing, ..self.how }, ..self }
    }

    /// Which calls of a program on a grid become one kernel; the usual plan if nothing is said.
    pub fn plan(self, plan: ProgramPlan) -> Self {
        Self { how: How { choices: plan.choices.clone(), plan: Some(plan), ..self.how }, ..self }
    }

    /// Which kernels compute it over a mesh, and in which order its elements stand on the device: as they are if nothing is said.
    pub fn over_mesh(self, choices: MeshChoices, ordering: Option<Ordering>) -> Self {
        Self { how: How { over_mesh: Some(choices), ordering, ..self.how }, ..self }
    }

    /// Computes what its stencils print, too, for [`Run::printed`]; it does not if nothing is said.
    ///
    /// ```
    /// # use stencilc_compiler::{grid::Grid, source::Source};
    /// # use stencilc_runtime::{Array, Data, Device, job::{Domain, Job}};
    /// let text = "
    ///     stencil halve { in a; out b; let half = 0.5 * a; print(half); b = half }
    ///     program cool { inout heat; repeat 3 { heat = halve(heat) } }
    /// ";
    /// let heat = Array { shape: vec![1, 1, 2], data: Data::F64(vec![8.0, 80.0]) };
    /// let job = Job::new(&Source::new("cool.stn", text), Some("cool"))?.on(Domain::Rows(Grid::rows(2, 1, 1)));
    /// let mut run = job.array("heat", heat).device(Device::Cpu).printing().start()?;
    /// run.step(2)?;
    /// let printed = run.printed(&|_| vec![[1, 0, 0]])?;
    /// assert_eq!((printed[0].print.label.as_told(), printed[0].values[0].as_ref().unwrap().number), ("half", 20.0));
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    pub fn printing(self) -> Self {
        Self { has_prints: true, ..self }
    }

    /// Goes on from a checkpoint of the same text, whose fields it has.
    pub fn resume(self, checkpoint: Checkpoint) -> Self {
        Self { resumed: Some(checkpoint), ..self }
    }

    /// Checks all against each other. Which kernels compute it can still be chosen afterwards.
    ///
    /// # Errors
    /// Names that do not exist, arrays of the wrong shape or type, inputs and parameters without a value, a domain that is missing or
    /// does not suit; a checkpoint of something else.
    pub fn ready(self) -> Result<Ready> {
        Ready::new(self)
    }

    /// The same, compiles what is needed, and brings the fields to the device.
    ///
    /// # Errors
    /// Those of [`Job::ready`] and [`Ready::start`].
    pub fn start(self) -> Result<Run> {
        self.ready()?.start()
    }
}

/// A device for so many cells, whose work goes into a stream if one is given.
fn opened(device: Device, cells: u64, stream: Option<usize>) -> Result<Platform> {
    let platform = device.open(cells)?;
    in_stream(&platform, stream);
    Ok(platform)
}

/// Lets the work of a GPU go into a stream, if one is given.
fn in_stream(platform: &Platform, stream: Option<usize>) {
    if let (Platform::Gpu(gpu), Some(stream)) = (platform, stream) {
        // SAFETY: whoever gave the stream saw to it that it is one of this GPU, and there as long.
        unsafe { gpu.use_stream(std::ptr::with_exposed_provenance_mut(stream)) };
    }
}

impl Subject {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.program().name
    }

    /// What it declares as fields and numbers, and what each is to whoever runs it.
    pub fn fields(&self) -> impl Iterator<Item = (&Variable, Role)> {
        self.program().variables.iter().filter_map(|(_, own)| Some((own, own.role?)))
    }

    /// The parameters that are set. How many elements a mesh has is none of them.
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        let sizes: Vec<usize> = match self {
            Subject::Mesh(program) => program.sizes.iter().map(|(id, _)| id.index()).collect(),
            Subject::Grid(_) => Vec::new(),
        };
        let all = self.program().numbers.params.iter();
        all.filter(move |(id, _)| !sizes.contains(&id.index())).map(|(_, own)| own)
    }

    /// The program, wherever it runs.
    pub fn program(&self) -> &Program {
        match self {
            Subject::Grid(program) => program,
            Subject::Mesh(program) => &program.program,
        }
    }
}

/// What is meant: what has the name; or the only program, or else the only stencil.
fn chosen(mut programs: Vec<Subject>, mut stencils: Vec<Subject>, name: Option<&str>) -> Result<Subject> {
    let names: Vec<String> = programs.iter().chain(&stencils).map(|own| own.name().to_owned()).collect();
    let list = names.join(", ");
    if names.is_empty() {
        return Err(Error::call("the text has no stencil: what it has is there for texts that import it")
            .help("give one that imports it, or write one: `stencil copy { in a; out b; b = a }`"));
    }
    match name {
        None if programs.len() == 1 => Ok(programs.remove(0)),
        None if programs.is_empty() && stencils.len() == 1 => Ok(stencils.remove(0)),
        None => Err(Error::call(format!("the text has several: {list}")).help("name one of them")),
        Some(name) => programs.into_iter().chain(stencils).find(|own| own.name() == name).ok_or_else(|| {
            let error = Error::call(format!("the text has no stencil or program `{name}`"));
            match guess(name, names.iter().map(String::as_str)) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("it has {list}")),
            }
        }),
    }
}
