//! `stencilc explain`: what a stencil reads, computes and costs, before it is run.

mod facts;
mod kernels;
mod level_facts;
mod mesh;
mod mesh_program;
mod parts;
mod picture;
mod program;
mod text;
mod walks;

use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::args::{self, ARCH, GridArg, LaunchArgs, Pair};
use crate::build::program::ProgramArgs;
use crate::input::{self, Input};
use crate::{kernel, terminal};
use facts::{Bounds, Explained, Explanation, Planned};
use serde::Serialize;
use serde_json::Value;
use stencilc_compiler::analysis::roofline::Limits;
use stencilc_compiler::cuda;
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::gpu::{SHEETS, Sheet};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{self, Choices};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::cuda::devices;
use stencilc_runtime::nvrtc::{Arch, Kind};
use stencilc_runtime::{Error, Result, problem};

/// The grid that figures are for where none is given.
const GRID: Grid = Grid::rows(512, 512, 64);

/// Arguments of `explain`.
#[derive(clap::Args)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: String,
    /// Which stencil of the file
    #[arg(long, value_name = "NAME")]
    stencil: Option<String>,
    /// The grid that figures are for, halo included; 512x512x64 if not given. A program needs one
    #[arg(long, value_name = "NIxNJxNK")]
    grid: Option<GridArg>,
    #[command(flatten)]
    of_program: ProgramArgs,
    /// Levels of a mesh, if it has any
    #[arg(long, value_name = "N", value_parser = args::grid::levels)]
    levels: Option<usize>,
    #[command(flatten)]
    over: MeshArgs,
    /// A parameter: it may decide which branches and levels are computed
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    set: Vec<Pair>,
    /// What `real` is
    #[arg(long, value_name = "P", value_parser = args::precision(), default_value = Choices::default().precision.name())]
    precision: Precision,
    #[command(flatten)]
    launch: LaunchArgs,
    /// The GPU to bound the time for; if not given, this machine's, or else each that is known
    #[arg(long, value_name = "NAME", value_parser = args::gpus())]
    gpu: Option<String>,
    /// Of a program: what so many GPUs, or processes, bring from each other in a step, if each computes a part
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=4096))]
    gpus: Option<u16>,
    /// Instead of the GPU's: 10^9 bytes a second from and to memory
    #[arg(long, value_name = "GB/S", value_parser = positive)]
    bandwidth: Option<f64>,
    /// Instead of the GPU's: 10^9 floating-point operations a second
    #[arg(long, value_name = "GFLOP/S", value_parser = positive)]
    flops: Option<f64>,
    /// Compile every kernel, and tell its registers
    #[arg(long)]
    registers: bool,
    /// The architecture that --registers compiles for
    #[arg(long, value_name = "ARCH", default_value = ARCH)]
    arch: Arch,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number above 0 is needed, such as 900".to_owned()),
    }
}

/// Explains a stencil.
///
/// # Errors
/// The stencil has errors, or no cell of it can be computed, which is told after all that can be.
pub fn explain(args: &Args, json: bool) -> Result<()> {
    let input = input::load(&args.file)?;
    let (told, refusal) = told(args, &input, json)?;
    match told {
        Told::Data(data) => terminal::json(&data)?,
        Told::Text(text) => terminal::print(&text)?,
    }
    refusal.map_or(Ok(()), |refusal| Err(refusal.into()))
}

/// What there is to tell.
pub enum Told {
    /// As data.
    Data(Value),
    /// To be read.
    Text(String),
}

impl Told {
    fn new(explanation: &impl Serialize, json: bool, text: impl FnOnce() -> String) -> Result<Self> {
        let failed = |error| Error::input(format!("the results cannot be written as JSON: {error}"));
        Ok(if json { Told::Data(serde_json::to_value(explanation).map_err(failed)?) } else { Told::Text(text()) })
    }
}

/// Explains what is meant of a text that was read; and why no cell of it can be computed, if none can.
///
/// # Errors
/// Something is wrong with the call.
pub fn told(args: &Args, input: &Input, json: bool) -> Result<(Told, Option<Refusal>)> {
    let program = args.of_program.program.as_deref();
    if let Some(program) = program.map(|name| input.mesh_program(name)).transpose()?.flatten() {
        return Ok((mesh_program::explain(args, input, program, json)?, None));
    }
    if let Some(program) = program.map(|name| input.program(Some(name), None)).transpose()?.flatten() {
        args.over.refuse()?;
        return Ok((program::explain(args, input, program, json)?, None));
    }
    args.of_program.refuse()?;
    if args.gpus.is_some() {
        return Err(Error::call("--gpus cuts a program into parts, and none is named")
            .help("add --program NAME, or leave it out"));
    }
    if let Some(stencil) = input.mesh_stencil(args.stencil.as_deref())? {
        return Ok((mesh::explain(args, stencil, json)?, None));
    }
    args.over.refuse()?;
    if args.levels.is_some() {
        return Err(Error::call("--levels is for meshes, and this one runs over a grid")
            .help("give its extents: --grid NIxNJxNK"));
    }
    let GridArg::Rows(grid) = args.grid.clone().unwrap_or(GridArg::Rows(GRID)) else {
        return Err(Error::call("`explain` counts what is read on grids of columns in rows")
            .help(format!("give extents: --grid NIxNJxNK; of a grid from a file, `stencilc grid info {} --grid FILE` tells which cells are computed, tables of neighbours, and patches", ShellWord::path(&args.file))));
    };
    let (grid, bounds) = (problem::checked(grid)?, bounds(args)?);
    let stencil = input.stencil(args.stencil.as_deref())?;
    input.tell_of_programs(args.stencil.as_deref(), "explain", &stencil.name);
    let prepared = plan::prepare(stencil, args.precision, args.launch.code.contract);
    let settings = args::by_name(&args.set, "--set")?;
    let (params, drawn) = kernel::parameters(&prepared, args.precision, args.launch.code.contract, settings, true)?;

    // Every combination is planned for any grid: what it looks up is the same, whatever the grid.
    // Not every strategy goes through a column, as sweeps need, and of those that could some may have no room for it.
    // Those that walk along k look nothing up, and have a section of their own.
    let is_idle = |choices: &Choices| !choices.suits(&prepared) || choices.walks();
    args.launch.given.refuse_idle(&args.launch.every(args.precision).collect::<Vec<_>>())?;
    let choices = args.launch.every(args.precision).filter(|choices| !is_idle(choices));
    let planned: Vec<_> = choices.map(|choices| (choices.clone(), plan::plan(&prepared, &choices, None))).collect();
    let kernels = planned.iter().map(|(choices, planned)| match planned {
        Ok(plan) if args.registers => {
            Ok(Planned::Kernel(plan, registers(args, &plan.stencil.name, &cuda::print(plan)?.text)?))
        }
        Ok(plan) => Ok(Planned::Kernel(plan, None)),
        Err(refusal) => Ok(Planned::Refused(choices, refusal)),
    });
    let kernels = kernels.collect::<Result<Vec<_>>>()?;
    // Where there is nothing else to tell of kernels, why there is none is the answer.
    if !planned.iter().any(|(_, planned)| planned.is_ok())
        && let Some(refusal) = planned.iter().find_map(|(_, planned)| planned.as_ref().err())
    {
        return Err(refusal.clone().into());
    }
    let subject = Explained { source: &input.source, stencil: &prepared, params: &params, drawn: &drawn };
    let (mut explanation, refusal) = Explanation::new(&subject, args.precision, grid, &bounds, &kernels);
    explanation.walks = walks::WalkFacts::new(stencil, &prepared, args.precision, args.launch.code.contract);
    Ok((Told::new(&explanation, json, || text::write(&explanation, &args.arch))?, refusal))
}

/// Returns the registers of a thread of a kernel, by its name and its text.
fn registers(args: &Args, name: &str, text: &str) -> Result<Option<u32>> {
    let built = compile_cached(text, &format!("{name}.cu"), &args.arch, Kind::Cubin)?;
    Ok(built.compiled.resources.first().map(|taken| taken.registers))
}

/// What the time is bounded by: the machine that is asked for, the one that is here, or each that is known.
fn bounds(args: &Args) -> Result<Vec<Bounds>> {
    let of_gpu = |gpu: &Sheet| {
        let Limits { gb_per_s, gflops } = gpu.limits(args.precision);
        let limits = Limits { gb_per_s: args.bandwidth.unwrap_or(gb_per_s), gflops: args.flops.unwrap_or(gflops) };
        let given = args.bandwidth.is_some() || args.flops.is_some();
        let source = if given { format!("{}, and what is given", gpu.source) } else { gpu.source.to_owned() };
        Bounds { machine: gpu.name.to_owned(), limits, source }
    };
    if let Some(name) = &args.gpu {
        return Ok(SHEETS.iter().filter(|gpu| gpu.name == name).map(of_gpu).collect());
    }
    if let (Some(gb_per_s), Some(gflops)) = (args.bandwidth, args.flops) {
        let limits = Limits { gb_per_s, gflops };
        return Ok(vec![Bounds { machine: "as given".to_owned(), limits, source: "what is given".to_owned() }]);
    }
    let here = devices().into_iter().next();
    match here.as_ref().map(|device| (device, Sheet::by_driver_name(&device.name))) {
        Some((_, Some(gpu))) => return Ok(vec![of_gpu(gpu)]),
        Some((device, None)) => terminal::note(&format!(
            "this machine's {} is not in the table of GPUs: give --bandwidth and --flops",
            device.name
        )),
        None => {}
    }
    if args.bandwidth.is_some() || args.flops.is_some() {
        return Err(Error::call("--bandwidth and --flops are given alone").help("give both, or one of them and --gpu"));
    }
    Ok(SHEETS.iter().map(of_gpu).collect())
}
