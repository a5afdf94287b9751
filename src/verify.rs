//! `stencilc verify`: compares every kernel, and every plan of programs, with the interpreter, bit for bit.

mod mesh;
mod mesh_program;
mod outcome;
mod program;

use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::args::{self, ARCH, Chosen, Device, GridArg, LaunchArgs, PRECISIONS, Pair, ShareArgs, VariantArgs};
use crate::drawn::{Drawn, refuse_of_grids};
use crate::input::{self, Input};
use crate::terminal::{self, Progress};
use outcome::{Outcome, Totals, refusals, told};
use serde::Serialize;
use stencilc_compiler::cuda;
use stencilc_compiler::diagnostic::Diagnostic;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{MeshProgram, MeshStencil, Precision, Program, Stencil};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Span;
use stencilc_compiler::storage::fields::Fields;
use stencilc_compiler::storage::neighbors::Neighbors;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::nvrtc::Arch;
use stencilc_runtime::problem::Problem;
use stencilc_runtime::verify::{self, Verdict, expect, plan_for, verify_emulated};
use stencilc_runtime::{Error, Fault, Result, nvrtc};

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

/// One problem, and what came of all its kernels.
#[derive(Serialize)]
struct Case {
    file: String,
    stencil: String,
    precision: Precision,
    grid: Grid,
    region: Region,
    seed: u64,
    /// Why nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Sides of conditions that were never taken.
    untaken: Vec<Untaken>,
    combinations: Vec<Combination>,
}

#[derive(Clone, PartialEq, Eq, Serialize)]
struct Untaken {
    /// In the whole text.
    #[serde(skip)]
    place: Span,
    /// The file, where it is an imported one.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    span: Span,
    line: usize,
    column: usize,
    side: bool,
}

/// One kernel.
#[derive(Serialize)]
struct Combination {
    storage: String,
    access: String,
    neighbors: Neighbors,
    layout: String,
    fields: Fields,
    /// The options that choose it.
    options: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// What kernels are compiled by and run on.
struct Bench {
    device: Device,
    gpu: Option<Gpu>,
    emulator: Option<Compiler>,
    arch: String,
    /// Whether there is an NVRTC.
    has_nvrtc: bool,
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
                let case = verify_one(args, &bench, &progress, input, stencil, precision, grid)?;
                if !json {
                    progress.aside(|| terminal::print(&case.text(args)))?;
                }
                cases.push(case);
            }
        }
        progress.aside(|| warn(input, &cases[first..]));
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

impl Combination {
    fn new(choices: Choices, outcome: Outcome) -> Self {
        let options = choices.words();
        let Choices { storage, access, neighbors, layout, fields, .. } = choices;
        Self { storage, access, neighbors, layout, fields, options, outcome }
    }

    /// `compressed storage, naive access`, and what is not usual.
    fn name(&self) -> String {
        let usual = Choices::default();
        let mut name = format!("{} storage, {} access", self.storage, self.access);
        if self.neighbors != usual.neighbors {
            name.push_str(&format!(", {} neighbours", self.neighbors.name()));
        }
        if self.layout != usual.layout {
            name.push_str(&format!(", {} layout", self.layout));
        }
        if self.fields != usual.fields {
            name.push_str(&format!(", {}", self.fields.name()));
        }
        name
    }
}

impl Bench {
    fn new(args: &Args) -> Result<Self> {
        let (device, emulator) = match Device::choose(args.device) {
            (Device::Emulate, _) => (Device::Emulate, Some(Compiler::find()?)),
            // Without a GPU, kernels run on the emulator, unless the user wants them not to run.
            (Device::Cpu, Some(_)) => match Compiler::find() {
                Ok(compiler) => (Device::Emulate, Some(compiler)),
                Err(_) => (Device::Cpu, None),
            },
            (device, _) => (device, None),
        };
        let gpu = match device {
            Device::Cuda(ordinal) => Some(Gpu::open(ordinal)?),
            Device::Cpu | Device::Emulate => None,
        };
        let nvrtc = nvrtc::find();
        let has_nvrtc = nvrtc.is_ok();
        match (&nvrtc, &emulator) {
            (Err(error), None) => terminal::note(&format!("kernels are neither compiled nor run: {}", error.message)),
            (Err(error), Some(_)) => terminal::note(&format!("kernels are not compiled for GPUs: {}", error.message)),
            (Ok(_), _) => {}
        }
        match (&emulator, args.device) {
            (Some(compiler), given) => terminal::note(&format!(
                "{}kernels run on the CPU, compiled by {}, in three orders of threads",
                if given.is_none() { "no GPU: " } else { "" },
                compiler.version
            )),
            (None, _) if gpu.is_some() || !has_nvrtc => {}
            (None, Some(_)) => terminal::note("kernels are compiled, not run: --device cpu"),
            (None, None) => terminal::note("no GPU, and no C++ compiler to do without: kernels are compiled, not run"),
        }
        let arch = gpu.as_ref().map_or(args.arch.to_string(), Gpu::arch);
        Ok(Self { device, gpu, emulator, arch, has_nvrtc })
    }

    /// What comes of every choice, in their order.
    fn try_all(
        &self,
        problem: &Problem,
        expected: &verify::Expected,
        choices: &[Choices],
        progress: &Progress,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for choices in choices {
            outcomes.push(self.try_one(problem, expected, choices)?);
            progress.advance(usize::from(self.emulator.is_none()));
        }
        let Some(compiler) = &self.emulator else { return Ok(outcomes) };
        let verdicts = emulated(problem, expected, choices, compiler)?;
        for (outcome, verdict) in outcomes.iter_mut().zip(verdicts) {
            // What NVRTC does not take has failed, wherever else it runs.
            if !matches!(outcome, Outcome::Done(Verdict::Failed { .. })) {
                *outcome = Outcome::Done(verdict);
            }
        }
        progress.advance(choices.len());
        Ok(outcomes)
    }

    /// What comes of a choice through NVRTC, and on a GPU where there is one.
    fn try_one(&self, problem: &Problem, expected: &verify::Expected, choices: &Choices) -> Result<Outcome> {
        if self.has_nvrtc {
            return match verify::verify(problem, expected, choices, self.gpu.as_ref(), &self.arch) {
                Ok(verdict) => Ok(Outcome::Done(verdict)),
                Err(error) if error.fault == Fault::Check => Ok(Outcome::Done(failed(error))),
                Err(error) => Err(error),
            };
        }
        match plan_for(problem, choices) {
            Err(error) => Ok(Outcome::Done(Verdict::Refused { reason: error.message })),
            Ok(plan) => {
                cuda::print(&plan)?;
                Ok(Outcome::Skipped { status: "skipped" })
            }
        }
    }
}

/// What comes of every choice on the emulator.
fn emulated(
    problem: &Problem,
    expected: &verify::Expected,
    choices: &[Choices],
    compiler: &Compiler,
) -> Result<Vec<Verdict>> {
    let settings = Settings { optimise: 1, ..Settings::default() };
    let together = verify_emulated(problem, expected, choices, compiler, &settings);
    let Err(error) = &together else { return together };
    if error.fault != Fault::Check {
        return together;
    }
    // One that does not compile is no reason to know nothing of the others.
    let alone = |one: &Choices| match verify_emulated(problem, expected, std::slice::from_ref(one), compiler, &settings)
    {
        Err(error) if error.fault == Fault::Check => Ok(vec![failed(error)]),
        verdicts => verdicts,
    };
    Ok(choices.iter().map(alone).collect::<Result<Vec<_>>>()?.concat())
}

fn failed(error: Error) -> Verdict {
    Verdict::Failed { order: None, mismatches: Vec::new(), damage: vec![error.message] }
}

/// Verifies every kernel of one problem.
fn verify_one(
    args: &Args,
    bench: &Bench,
    progress: &Progress,
    input: &Input,
    stencil: &Stencil,
    precision: Precision,
    grid: &Chosen,
) -> Result<Case> {
    let (share, set, seed) = (&args.shared.share[..], &args.set[..], args.seed);
    let contract = args.launch.code.contract;
    let problem = Drawn { stencil, precision, contract, grid, share, set, seed }.problem(input)?;
    let mut case = Case {
        file: input.source.name.clone(),
        stencil: stencil.name.clone(),
        precision,
        grid: problem.grid,
        region: problem.region.clone(),
        seed: args.seed,
        error: None,
        untaken: Vec::new(),
        combinations: Vec::new(),
    };
    let expected = match expect(&problem, &|_| {}) {
        Ok(expected) => expected,
        Err(error) if error.fault == Fault::Check => {
            case.error = Some(error.to_string());
            progress.advance(args.combinations(precision).len());
            return Ok(case);
        }
        Err(error) => return Err(error),
    };
    let choices = args.combinations(precision);
    let outcomes = bench.try_all(&problem, &expected, &choices, progress)?;
    let combinations = choices.into_iter().zip(outcomes);
    case.combinations.extend(combinations.map(|(choices, outcome)| Combination::new(choices, outcome)));
    let untaken = expected.untaken.iter().map(|&(span, side)| {
        let source = &input.source;
        let (line, column) = source.position(span.start);
        let file = (!source.is_own(span)).then(|| source.file_name(span.start).to_owned());
        Untaken { place: span, file, span: source.local(span), line, column, side }
    });
    case.untaken = untaken.collect();
    Ok(case)
}

/// Tells of the sides of conditions that no case of a stencil took: equal says nothing about them.
fn warn(input: &Input, cases: &[Case]) {
    let Some((first, others)) = cases.split_first() else { return };
    let never = first.untaken.iter().filter(|side| others.iter().all(|case| case.untaken.contains(side)));
    let warnings = never.map(|untaken| {
        Diagnostic::warning(untaken.place, "one branch was never taken, so nothing is known about it")
            .label(format!("the condition was {} everywhere", !untaken.side))
            .help("declare ranges for the inputs that decide it, as in `in rho = 0.5..1.5`, or give --set or --seed")
    });
    terminal::diagnostics(&warnings.collect::<Vec<_>>(), &input.source);
}

/// What came of everything.
#[derive(Serialize)]
struct All {
    cases: Vec<Case>,
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
            let mut reasons = refusals(cases.iter().flat_map(Case::outcomes));
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

impl Case {
    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.combinations.iter().map(|combination| &combination.outcome)
    }

    /// `laplap f64 37x29x9: 8 equal`, and what failed.
    fn text(&self, args: &Args) -> String {
        let Case { file, stencil, precision, grid, .. } = self;
        let mut totals = Totals::default();
        totals.add(self.outcomes(), self.error.is_some());
        let mut text = format!("{stencil} {} {grid}: {totals}\n", precision.name());
        if let Some(error) = &self.error {
            text.push_str(&format!("  {error}\n"));
        }
        let differences = self.combinations.iter().filter_map(|combination| match combination.outcome {
            Outcome::Done(Verdict::Different { cells, differing, units }) => Some((units, differing, cells)),
            Outcome::Done(_) | Outcome::Skipped { .. } => None,
        });
        if let Some((units, differing, cells)) = differences.max() {
            let units = match units {
                u64::MAX => "NaN beside a number".to_owned(),
                units => format!("by up to {} in the last place", terminal::count(units as usize, "unit")),
            };
            text.push_str(&format!("  the device's functions differ in {differing} of {cells} values, {units}\n"));
        }
        for combination in &self.combinations {
            let Some(failure) = combination.outcome.failure(&combination.name()) else { continue };
            text.push_str(&failure);
            let mut again = format!(
                "stencilc verify {} --stencil {stencil} {} --grid {grid} --seed {}",
                ShellWord::path(file),
                combination.options,
                self.seed
            );
            args.set.iter().for_each(|pair| again.push_str(&format!(" --set {}", ShellWord::new(pair.to_string()))));
            text.push_str(&format!("    again: {again}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use stencilc_runtime::verify::Mismatch;

    #[derive(Parser)]
    struct Call {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_mismatch_is_told_with_its_bits_and_the_call_that_shows_it_again() {
        let call = "verify,my file.stn,--block,32x1x1,--index,64,--set,dt=0.5";
        let Call { args } = Call::try_parse_from(call.split(',')).unwrap();
        let mismatch = Mismatch {
            field: "res".into(),
            cell: "i=3, j=4, k=0".into(),
            cells: 2,
            expected: 1.0,
            expected_bits: "0x3f800000".into(),
            found: 1.5,
            found_bits: "0x3fc00000".into(),
        };
        let failed = Verdict::Failed {
            order: None,
            mismatches: vec![mismatch],
            damage: vec!["`res`: padding was overwritten".into()],
        };
        let case = Case {
            file: args.files[0].clone(),
            stencil: "laplap".into(),
            precision: Precision::F32,
            grid: GRIDS[0],
            region: Region::rows(2..35, 2..27, 0..9),
            seed: 0,
            error: None,
            untaken: Vec::new(),
            combinations: vec![Combination::new(
                args.launch.choices(
                    Choices { storage: "compressed".into(), access: "naive".into(), ..Choices::default() },
                    Precision::F32,
                ),
                Outcome::Done(failed),
            )],
        };
        insta::assert_snapshot!(case.text(&args), @"
        laplap f32 37x29x9: 1 failed
          compressed storage, naive access:
            res differs first at i=3, j=4, k=0, in all in 2 cells:
              interpreter 0x3f800000 1.0
              kernel      0x3fc00000 1.5
            `res`: padding was overwritten
            again: stencilc verify 'my file.stn' --stencil laplap --access naive --storage compressed --precision f32 --block 32x1x1 --index 64 --grid 37x29x9 --seed 0 --set dt=0.5
        ");
    }
}
