//! `stencilc verify`: compares every kernel, and every plan of programs, with the interpreter, bit for bit.

mod case;
mod label;
mod plans;
mod task;
mod totals;

use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::args::{self, ARCH, Chosen, GridArg, LaunchArgs, PRECISIONS, Pair, ShareArgs, VariantArgs};
use crate::audience::Audience;
use crate::drawn::refuse_of_grids;
use crate::input::{self, Input};
use crate::terminal::{self, Progress};
use case::{Case, warn};
use serde::Serialize;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{MeshProgram, MeshStencil, Precision, Program, Stencil};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::nvrtc::Arch;
use stencilc_runtime::verify::Tools;
use stencilc_runtime::{Device, Error, Result};
use task::{Means, Task, What, starts};
use totals::{Totals, refusals, told};

/// Grids that are verified on if none is given: no extent is a multiple of a warp, one has less than a block and the
/// other more, and the second has levels enough for what happens only further down.
const GRIDS: [Grid; 2] = [Grid::rows(37, 29, 9), Grid::rows(70, 41, 20)];

/// One more of programs, on which whole rows lie in the registers of warps.
const ROWS: Grid = Grid::rows(128, 32, 5);

/// Levels of a grid from a file, if nothing is said: those of the first of these.
const LEVELS: usize = GRIDS[0].nk;

/// Arguments of `verify`.
#[derive(clap::Args)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    /// Stencil files, or names of stencils that come along
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// Only this stencil of the files
    #[arg(long, value_name = "NAME")]
    stencil: Option<String>,
    #[command(flatten)]
    of_programs: plans::ProgramArgs,
    #[command(flatten)]
    variants: VariantArgs,
    #[command(flatten)]
    shared: ShareArgs,
    /// What `real` is; each if not given
    #[arg(long, value_name = "P", value_parser = args::precision())]
    precision: Option<Precision>,
    /// Extents of a grid, halo included, or a .npz file that says which cells are neighbours; two that suit most stencils
    /// if not given
    #[arg(long = "grid", value_name = "NIxNJxNK|FILE")]
    grids: Vec<GridArg>,
    /// Levels of grids from files, and of meshes
    #[arg(long, value_name = "N", value_parser = args::grid::levels)]
    levels: Option<usize>,
    #[command(flatten)]
    over: MeshArgs,
    /// A parameter; those without a value or a default are drawn at random
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    set: Vec<Pair>,
    #[command(flatten)]
    launch: LaunchArgs,
    /// Of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// cuda, cuda:N, emulate to run kernels on the CPU in any order of threads, native to run them there at speed, or cpu to
    /// compile them without running them; if not given, the first GPU, or else emulate where there is a C++ compiler
    #[arg(long)]
    device: Option<Device>,
    /// The architecture to compile for where no GPU says which
    #[arg(long, value_name = "ARCH", default_value = ARCH)]
    arch: Arch,
}

/// Verifies files.
///
/// # Errors
/// A kernel differs from the interpreter; or something is wrong with a file, the call or the device.
pub fn verify(args: &Args, json: bool) -> Result<()> {
    let inputs = args.files.iter().map(|file| input::load(file)).collect::<Result<Vec<Input>>>()?;
    verified(args, &inputs, &mut Audience::of_stdout(json))
}

/// Verifies what is meant of texts that were read.
///
/// # Errors
/// As [`verify`].
pub fn verified(args: &Args, inputs: &[Input], audience: &mut Audience) -> Result<()> {
    let subjects = args.subjects(inputs)?;
    args.check(&subjects)?;
    let [of_stencils, of_programs] = args.grids()?;
    let cells = of_programs.iter().map(|own| own.chosen.grid.map_or(0, Grid::count)).max().unwrap_or(0);
    let (tools, device, no_nvrtc) = Tools::choose(args.device, &args.arch, cells, args.of_programs.parts())?;
    tell(&tools, args.device, no_nvrtc);
    let tasks = args.tasks(&subjects, &of_stencils, &of_programs);
    let progress = Progress::new(tasks.iter().flatten().map(|task| task.count(args)).sum(), "verifying");
    let means = Means { args, tools: &tools, progress: &progress };
    let mut cases = Vec::new();
    for tasks in &tasks {
        let (first, mut precision) = (cases.len(), None);
        for task in tasks {
            if let What::Stencil(stencil, _) = task.what
                && precision.replace(task.precision) != Some(task.precision)
            {
                progress.aside(|| task.input.warn_of_numbers(stencil, task.precision));
            }
            let case = task.verify(means)?;
            progress.aside(|| audience.text(|| case.text(args)))?;
            cases.push(case);
        }
        if let Some(task) = tasks.first() {
            progress.aside(|| warn(task.input, &cases[first..]));
        }
    }
    drop(progress);
    report(&cases, device, audience)
}

/// Says what kernels are compiled by and run on, where that is not a GPU.
fn tell(tools: &Tools, given: Option<Device>, no_nvrtc: Option<Error>) {
    match (&no_nvrtc, &tools.emulator) {
        (Some(error), None) => terminal::note(&format!("kernels are neither compiled nor run: {}", error.message)),
        (Some(error), Some(_)) => terminal::note(&format!("kernels are not compiled for GPUs: {}", error.message)),
        (None, _) => {}
    }
    match (&tools.emulator, given) {
        (Some((compiler, settings)), given) => terminal::note(&format!(
            "{}kernels run on the CPU, compiled by {}, {}",
            if given.is_none() { "no GPU: " } else { "" },
            compiler.version,
            if settings.native { "on all cores" } else { "in three orders of threads" }
        )),
        (None, _) if tools.gpu.is_some() || no_nvrtc.is_some() => {}
        (None, Some(_)) => terminal::note("kernels are compiled, not run: --device cpu"),
        (None, None) => terminal::note("no GPU, and no C++ compiler to do without: kernels are compiled, not run"),
    }
}

/// Stencils, or programs, each with its file.
type Of<'a, T> = Vec<(&'a Input, &'a T)>;

/// What is verified.
#[derive(Default)]
struct Subjects<'a> {
    stencils: Of<'a, Stencil>,
    programs: Of<'a, Program>,
    /// Stencils over meshes.
    over: Of<'a, MeshStencil>,
    /// Programs over meshes.
    programs_over: Of<'a, MeshProgram>,
}

impl Args {
    /// What is verified: what is named, or all that the files have.
    fn subjects<'a>(&self, inputs: &'a [Input]) -> Result<Subjects<'a>> {
        let program = self.of_programs.program.as_deref();
        let Subjects { mut stencils, mut programs, mut over, mut programs_over } = Subjects::default();
        for input in inputs {
            match (self.stencil.as_deref(), program) {
                (Some(name), _) => match input.mesh_stencil(Some(name))? {
                    Some(stencil) => over.push((input, stencil)),
                    None => stencils.push((input, input.stencil(Some(name))?)),
                },
                (None, Some(name)) => match input.mesh_program(name)? {
                    Some(program) => programs_over.push((input, program)),
                    None => programs.extend(input.program(program, None)?.map(|program| (input, program))),
                },
                (None, None) => {
                    over.extend(input.mesh_stencils.iter().map(|stencil| (input, stencil)));
                    programs_over.extend(input.mesh_programs.iter().map(|program| (input, program)));
                    stencils.extend(input.stencils.iter().map(|stencil| (input, stencil)));
                    programs.extend(input.programs.iter().map(|program| (input, program)));
                }
            }
        }
        if programs.is_empty() && programs_over.is_empty() {
            self.of_programs.refuse()?;
        }
        if self.of_programs.parts() > 1 {
            // A stencil by itself is computed on one.
            stencils.clear();
            over.clear();
        }
        let stencil = over.first().map(|(_, first)| (&first.stencil.name, &first.mesh.name));
        let program = programs_over.first().map(|(_, first)| (&first.program.name, &first.mesh.name));
        match stencil.or(program) {
            None => self.over.refuse()?,
            Some((name, mesh)) if stencils.is_empty() && programs.is_empty() => {
                self.over.file(name, mesh)?;
                refuse_of_grids(&self.names, &["arch", "program", "fuse", "times", "gpus"], name)?;
            }
            Some((name, _)) if self.over.mesh.is_none() => {
                terminal::note(&format!("what runs over a mesh, such as `{name}`, is left out: give --mesh FILE"));
                over.clear();
                programs_over.clear();
            }
            Some(_) => {}
        }
        Ok(Subjects { stencils, programs, over, programs_over })
    }

    /// Refuses options that make no difference, or leave nothing to compare.
    fn check(&self, Subjects { stencils, programs, over, programs_over }: &Subjects) -> Result<()> {
        if !stencils.is_empty() || !programs.is_empty() {
            self.names.refuse_idle(&self.combinations(Precision::F64))?;
        }
        let names = stencils.iter().map(|(_, own)| &own.name).chain(over.iter().map(|(_, own)| &own.stencil.name));
        if let (Some(name), true) = (names.into_iter().next(), programs.is_empty() && programs_over.is_empty()) {
            self.names.refuse_of_programs(name)?;
        }
        if programs.is_empty() { Ok(()) } else { plans::check(self) }
    }

    /// What is verified, one thing after the other, each in every precision and on every grid.
    fn tasks<'a>(&self, subjects: &Subjects<'a>, of_stencils: &'a [On], of_programs: &'a [On]) -> Vec<Vec<Task<'a>>> {
        let all = |input: &'a Input, on: Vec<What<'a>>| -> Vec<Task<'a>> {
            let each = self.precisions().iter().flat_map(|&precision| on.iter().map(move |&what| (precision, what)));
            each.map(|(precision, what)| Task { input, what, precision }).collect()
        };
        let Subjects { stencils, programs, over, programs_over } = subjects;
        let stencils = stencils
            .iter()
            .map(|&(input, own)| all(input, of_stencils.iter().map(|on| What::Stencil(own, on)).collect()));
        let programs = programs
            .iter()
            .map(|&(input, own)| all(input, of_programs.iter().map(|on| What::Program(own, on)).collect()));
        let over = over
            .iter()
            .map(|&(input, own)| all(input, starts(own).iter().map(|&zero| What::MeshStencil(own, zero)).collect()));
        let programs_over = programs_over.iter().map(|&(input, own)| all(input, vec![What::MeshProgram(own)]));
        stencils.chain(programs).chain(over).chain(programs_over).collect()
    }

    fn precisions(&self) -> &[Precision] {
        self.precision.as_ref().map_or(&PRECISIONS, std::slice::from_ref)
    }

    /// The grids of stencils, and those of programs.
    fn grids(&self) -> Result<[Vec<On>; 2]> {
        if self.grids.is_empty() {
            if self.levels.is_some() && self.over.mesh.is_none() {
                return Err(Error::call("--levels is for grids from files and for meshes, and none is given")
                    .help("give one: --grid FILE, or --mesh FILE"));
            }
            let on = |grid| On { chosen: Chosen { grid: Some(grid), adjacency: None }, file: None };
            return Ok([GRIDS.map(on).to_vec(), GRIDS.into_iter().chain([ROWS]).map(on).collect()]);
        }
        let chosen = args::grid::all(&self.grids, self.levels, LEVELS)?.into_iter();
        let on = |(chosen, given): (Chosen, &GridArg)| {
            let file = chosen.adjacency.is_some().then(|| given.to_string());
            On { chosen, file }
        };
        let on: Vec<On> = chosen.zip(&self.grids).map(on).collect();
        Ok([on.clone(), on])
    }

    /// Every kernel that is asked for, in one precision.
    fn combinations(&self, precision: Precision) -> Vec<Choices> {
        let all = self.variants.choices();
        let all = all.into_iter().map(|variant| Choices { share: self.shared.share.clone(), ..variant });
        all.map(|variant| self.launch.choices(variant, precision)).collect()
    }
}

/// A grid that something is verified on.
#[derive(Clone)]
pub struct On {
    chosen: Chosen,
    /// The file that it is from.
    file: Option<String>,
}

impl On {
    /// The options that choose it, as the problem on it knows it.
    fn words(&self, grid: Grid) -> String {
        match &self.file {
            Some(file) => format!(" --grid {} --levels {}", ShellWord::path(file), grid.nk),
            None => format!(" --grid {grid}"),
        }
    }
}

/// Tells what came of everything.
///
/// # Errors
/// Something failed, or nothing was compared.
fn report(cases: &[Case], device: Device, audience: &mut Audience) -> Result<()> {
    let mut totals = Totals::default();
    cases.iter().for_each(|case| totals.add(case.ways.verdicts(), case.error.is_some()));
    #[derive(Serialize)]
    struct Report<'a> {
        device: String,
        cases: Vec<&'a Case>,
        programs: Vec<&'a Case>,
        meshes: Vec<&'a Case>,
        programs_over_meshes: Vec<&'a Case>,
        totals: &'a Totals,
    }
    let of = |over_mesh: bool, is_program: bool| -> Vec<&Case> {
        let own = |case: &&Case| (case.mesh.is_some(), case.program.is_some()) == (over_mesh, is_program);
        cases.iter().filter(own).collect()
    };
    audience.data(|| Report {
        device: device.to_string(),
        cases: of(false, false),
        programs: of(false, true),
        meshes: of(true, false),
        programs_over_meshes: of(true, true),
        totals: &totals,
    })?;
    audience.text(|| {
        // Why there is no such plan is told with the program, where somebody asked.
        let told_here = cases.iter().filter(|case| !case.ways.are_plans);
        let reasons = refusals(told_here.flat_map(|case| case.ways.verdicts()));
        format!("in all: {totals}\n{}", told(&reasons))
    })?;
    let sum = terminal::count(totals.sum(), "combination");
    match totals.failed {
        0 if totals.has_only_refusals() => Err(Error::check(format!("nothing was compared: {sum}, all refused"))
            .help("leave out options that choose a kernel: what they allow is tried as far as it makes sense")),
        0 => Ok(()),
        failed => Err(Error::check(format!("{failed} of {sum} failed"))),
    }
}
