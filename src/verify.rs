//! `stencilc verify`: compares every kernel, and every plan of programs, with the interpreter, bit for bit.

mod bench;
mod mesh;
mod mesh_program;
mod outcome;
mod program;
mod stencil;

use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::args::{self, ARCH, Chosen, GridArg, LaunchArgs, PRECISIONS, Pair, ShareArgs, VariantArgs};
use crate::drawn::refuse_of_grids;
use crate::input::{self, Input};
use crate::terminal::{self, Progress};
use bench::Bench;
use outcome::{Totals, refusals, told};
use serde::Serialize;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{MeshProgram, MeshStencil, Precision, Program, Stencil};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::nvrtc::Arch;
use stencilc_runtime::{Device, Error, Result};

/// Grids that are verified on if none is given: no extent is a multiple of a warp, one has less than a block and the
/// other more, and the second has levels enough for what happens only further down.
const GRIDS: [Grid; 2] = [Grid::rows(37, 29, 9), Grid::rows(70, 41, 20)];

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
    of_programs: program::ProgramArgs,
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
    /// cuda, cuda:N, emulate to run kernels on the CPU, or cpu to compile them without running them; if not given, the
    /// first GPU, or else emulate where there is a C++ compiler
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
    let Subjects { stencils, programs, over, programs_over } = args.subjects(&inputs)?;
    if !stencils.is_empty() || !programs.is_empty() {
        args.names.refuse_idle(&args.combinations(Precision::F64))?;
    }
    let of_stencils = stencils.iter().map(|(_, own)| &own.name).chain(over.iter().map(|(_, own)| &own.stencil.name));
    if let (Some(name), true) = (of_stencils.into_iter().next(), programs.is_empty() && programs_over.is_empty()) {
        args.names.refuse_of_programs(name)?;
    }
    program::check(args, programs.len())?;
    let bench = Bench::new(args)?;
    let grids = args.grids()?;
    let problems = stencils.len() * args.precisions().len() * grids.len();
    let plans = program::count(args, programs.len());
    let of_meshes = over.iter().map(|(_, stencil)| mesh::count(args, stencil)).sum::<usize>();
    let of_meshes = (of_meshes + programs_over.len() * mesh_program::count(args)) * args.precisions().len();
    let progress = Progress::new(problems * args.combinations(Precision::F64).len() + plans + of_meshes, "verifying");
    let mut cases = Vec::new();
    for (input, stencil) in stencils {
        let first = cases.len();
        for &precision in args.precisions() {
            progress.aside(|| input.warn_of_numbers(stencil, precision));
            for grid in &grids {
                let case = stencil::verify(args, &bench, &progress, input, stencil, precision, grid)?;
                if !json {
                    progress.aside(|| terminal::print(&case.text(args)))?;
                }
                cases.push(case);
            }
        }
        progress.aside(|| stencil::warn(input, &cases[first..]));
    }
    let mut of_programs = Vec::new();
    for (input, program) in programs {
        for &precision in args.precisions() {
            for grid in &program::grids(args, &grids) {
                let case = program::verify(args, &bench, &progress, input, program, precision, grid)?;
                if !json {
                    progress.aside(|| terminal::print(&case.text(args)))?;
                }
                of_programs.push(case);
            }
        }
    }
    let mut on_meshes = Vec::new();
    for subject in over {
        for &precision in args.precisions() {
            for &from_zero in mesh::starts(subject.1) {
                let case = mesh::verify(args, &bench, &progress, subject, precision, from_zero)?;
                if !json {
                    progress.aside(|| terminal::print(&case.text(args)))?;
                }
                on_meshes.push(case);
            }
        }
    }
    let mut of_programs_over = Vec::new();
    for subject in programs_over {
        for &precision in args.precisions() {
            let case = mesh_program::verify(args, &bench, &progress, subject, precision)?;
            if !json {
                progress.aside(|| terminal::print(&case.text(args)))?;
            }
            of_programs_over.push(case);
        }
    }
    drop(progress);
    let all = All { cases, programs: of_programs, meshes: on_meshes, programs_over_meshes: of_programs_over };
    all.report(bench.device, json)
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
        let stencil = over.first().map(|(_, first)| (&first.stencil.name, &first.mesh.name));
        let program = programs_over.first().map(|(_, first)| (&first.program.name, &first.mesh.name));
        match stencil.or(program) {
            None => self.over.refuse()?,
            Some((name, mesh)) if stencils.is_empty() && programs.is_empty() => {
                self.over.file(name, mesh)?;
                refuse_of_grids(&self.names, &["arch", "program", "fuse", "times"], name)?;
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

    /// Options beside those that choose a way to compute something over a mesh, to give them again.
    fn beside(&self) -> String {
        let levels = self.levels.map(|levels| format!(" --levels {levels}"));
        let set = self.set.iter().map(|pair| format!(" --set {}", ShellWord::new(pair.to_string())));
        levels.into_iter().chain(set).collect()
    }

    fn precisions(&self) -> &[Precision] {
        self.precision.as_ref().map_or(&PRECISIONS, std::slice::from_ref)
    }

    fn grids(&self) -> Result<Vec<Chosen>> {
        if self.grids.is_empty() {
            if self.levels.is_some() && self.over.mesh.is_none() {
                return Err(Error::call("--levels is for grids from files and for meshes, and none is given")
                    .help("give one: --grid FILE, or --mesh FILE"));
            }
            return Ok(GRIDS.map(|grid| Chosen { grid: Some(grid), adjacency: None }).to_vec());
        }
        args::grid::all(&self.grids, self.levels, LEVELS)
    }

    /// Every kernel that is asked for, in one precision.
    fn combinations(&self, precision: Precision) -> Vec<Choices> {
        let all = self.variants.choices();
        let all = all.into_iter().map(|variant| Choices { share: self.shared.share.clone(), ..variant });
        all.map(|variant| self.launch.choices(variant, precision)).collect()
    }
}

/// What came of everything.
#[derive(Serialize)]
struct All {
    cases: Vec<stencil::Case>,
    programs: Vec<program::Case>,
    meshes: Vec<mesh::Case>,
    programs_over_meshes: Vec<mesh_program::Case>,
}

impl All {
    fn report(&self, device: Device, json: bool) -> Result<()> {
        let Self { cases, programs, meshes, programs_over_meshes } = self;
        let mut totals = Totals::default();
        cases.iter().for_each(|case| totals.add(case.outcomes(), case.error.is_some()));
        programs.iter().for_each(|case| totals.add(case.outcomes(), case.error.is_some()));
        meshes.iter().for_each(|case| totals.add_of_meshes(case.outcomes(), case.error.is_some()));
        programs_over_meshes.iter().for_each(|case| totals.add_of_meshes(case.outcomes(), case.error.is_some()));
        if json {
            #[derive(Serialize)]
            struct Report<'a> {
                device: String,
                #[serde(flatten)]
                all: &'a All,
                totals: &'a Totals,
            }
            terminal::json(&Report { device: device.to_string(), all: self, totals: &totals })?;
        } else {
            let mut reasons = refusals(cases.iter().flat_map(stencil::Case::outcomes));
            let of_programs = programs_over_meshes.iter().flat_map(mesh_program::Case::outcomes);
            for outcome in meshes.iter().flat_map(mesh::Case::outcomes).chain(of_programs) {
                if let mesh::Outcome::Refused { reason } = outcome {
                    *reasons.entry(reason.as_str()).or_default() += 1;
                }
            }
            terminal::print(&format!("in all: {totals}\n{}", told(&reasons)))?;
        }
        let sum = terminal::count(totals.sum(), "combination");
        match totals.failed {
            0 if totals.has_only_refusals() => Err(Error::check(format!("nothing was compared: {sum}, all refused"))
                .help("leave out options that choose a kernel: what they allow is tried as far as it makes sense")),
            0 => Ok(()),
            failed => Err(Error::check(format!("{failed} of {sum} failed"))),
        }
    }
}
