//! `stencilc bench`: measures which storage, strategy and block is the fastest for a stencil on a grid.

pub mod mesh;
mod program;
mod scaling;
pub mod table;

use crate::args::given::Names;
use crate::args::kernels::KernelsArgs;
use crate::args::method::MethodArgs;
use crate::args::shapes::Shapes;
use crate::input;
use crate::output;
use crate::terminal::{self, Progress};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{Choices, Math};
use stencilc_runtime::Device;
use stencilc_runtime::bench::Case;
use stencilc_runtime::bench::rows::{self, Log, MachineFacts, Row, Subject};
use stencilc_runtime::bench::sweep::{STEPS, Sweep, Swept};
use stencilc_runtime::device::Platform;
use stencilc_runtime::{Error, Result, files, nvrtc};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    kernels: KernelsArgs,
    /// Blocks of threads: usual (the strategy's own), few (four more), thesis (powers of two, 32 along x and more, 32 to 512
    /// threads), all (any powers of two), or shapes; several with commas between them
    #[arg(long, value_name = "SHAPES", value_delimiter = ',', default_value = "few")]
    blocks: Vec<Shapes>,
    #[command(flatten)]
    method: MethodArgs,
    #[command(flatten)]
    of_mesh: mesh::OnMesh,
    #[command(flatten)]
    of_program: program::ProgramArgs,
    /// A file for results as they come, one row of JSON a line; what it holds already is not measured again
    #[arg(short, long = "output", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// A .csv file for the results of this call, at its end
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    csv: Option<PathBuf>,
    /// How many kernels to show of each grid
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
}

/// One stencil on one grid in one precision, and what came of its kernels.
struct Done {
    subject: Subject,
    swept: Swept,
}

/// Measures kernels.
///
/// # Errors
/// A kernel differs from the interpreter; or something is wrong with the file, the call, the grid or the device.
pub fn bench(args: &Args, json: bool) -> Result<()> {
    let input = input::load(&args.kernels.file)?;
    let (program, stencil) = (args.of_program.program.as_deref(), args.kernels.stencil.as_deref());
    if let Some(subject) = mesh::Subject::of(&input, program, stencil, args.of_mesh.from_zero)? {
        return mesh::bench(args, &subject, json);
    }
    args.of_mesh.refuse()?;
    if let Some(program) = input.program(program, stencil)? {
        return program::bench(args, &input, program, json);
    }
    let stencil = input.stencil(args.kernels.stencil.as_deref())?;
    args.names.refuse_of_programs(&stencil.name)?;
    if let Some(path) = &args.csv {
        output::check("--csv", path, "csv", files::Kind::Table)?;
    }
    let platform = platform(args)?;
    let machine = platform.facts();
    let mut log = args.output.as_deref().map(Log::open).transpose()?;
    output::tell_dropped(log.as_ref());
    let grids = args.kernels.grids(&platform)?;
    let of_each: Vec<(Precision, Vec<Choices>)> = args
        .kernels
        .precisions()
        .into_iter()
        .map(|precision| Ok((precision, args.kernels.choices(&args.blocks, precision)?)))
        .collect::<Result<_>>()?;
    let kernels = |choices: &[Choices]| if matches!(platform, Platform::Cpu) { 1 } else { choices.len() };
    let all: usize = of_each.iter().map(|(_, choices)| kernels(choices) * grids.len()).sum();
    let progress = Progress::new(all * STEPS, "measuring");
    let (mut done, mut told) = (Vec::new(), BTreeSet::new());
    for (precision, choices) in &of_each {
        progress.aside(|| input.warn_of_numbers(stencil, *precision));
        for grid in &grids {
            let problem = args.kernels.problem(&input, stencil, *precision, grid)?;
            progress.aside(|| args.kernels.tell_drawn(&problem, &mut told));
            let case = Case::new(problem, &platform, args.method.method())?;
            let subject = case.subject(&args.kernels.file, &input.source.text, grid.name.clone(), args.kernels.seed);
            let sweep = Sweep {
                platform: &platform,
                machine: &machine,
                case: &case,
                subject: &subject,
                method: args.method.method(),
            };
            let swept = sweep.run(choices, &mut log, &|steps| progress.advance(steps))?;
            if !json {
                progress.aside(|| {
                    terminal::print(&table::text(&subject, &machine, case.limit.as_ref(), &swept, args.top))
                })?;
            }
            done.push(Done { subject, swept });
        }
    }
    drop(progress);
    report(args, &machine, &done, json)
}

/// What measures; what there is to know about it is told.
fn platform(args: &Args) -> Result<Platform> {
    let (device, no_gpu) = Device::choose(args.kernels.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("no kernel is measured: {}; --device native measures those of the CPU", error.message));
    }
    if args.kernels.code.math == Math::Device {
        terminal::note("--math device: results may differ from the interpreter in the last bits");
    }
    open(device)
}

/// A device that runs kernels, for a command that does nothing without.
///
/// # Errors
/// It is the CPU.
pub fn with_kernels(given: Option<Device>, command: &str) -> Result<Device> {
    match Device::choose(given) {
        (Device::Cpu, no_gpu) => {
            let why = no_gpu.map_or(String::new(), |error| format!(": {}", error.message));
            Err(Error::call(format!("there is nothing to {command} on the cpu{why}"))
                .help(format!("{command} on a machine with a GPU; --device emulate tries the call without one")))
        }
        (device, _) => Ok(device),
    }
}

/// How many cells are computed where nothing is measured, since kernels are emulated, but every one is compiled.
pub const TRIED: u64 = 0;

/// A device, to measure on.
///
/// # Errors
/// It cannot be used, or what compiles for it is missing.
pub fn open(device: Device) -> Result<Platform> {
    let platform = device.open(TRIED)?;
    match &platform {
        Platform::Cpu => terminal::note("the interpreter is measured, which has neither storages nor strategies"),
        Platform::Emulator(emulator) if emulator.is_native() => {}
        Platform::Emulator(_) => {
            terminal::note("kernels run on the CPU, emulated: their times say nothing about a GPU");
        }
        Platform::Gpu(_) => nvrtc::find().map(|_| ())?,
    }
    Ok(platform)
}

fn report(args: &Args, machine: &MachineFacts, done: &[Done], json: bool) -> Result<()> {
    let sum = |count: &dyn Fn(&Swept) -> usize| -> usize { done.iter().map(|done| count(&done.swept)).sum() };
    let failed = sum(&|swept| swept.failed().count());
    let refused = sum(&|swept| swept.refused.values().sum());
    let found = sum(&|swept| swept.found);
    let rows: Vec<Row> = done.iter().flat_map(|done| done.swept.rows.iter().cloned()).collect();
    if let Some(path) = &args.csv {
        files::write_atomic(path, |to| rows::csv(&rows, to))?;
    }
    if json {
        let cases: Vec<Value> = done.iter().map(case_as_json).collect();
        let totals = json!({ "measured": rows.len() - failed, "found": found, "refused": refused, "failed": failed });
        terminal::json(&json!({ "machine": machine, "cases": cases, "totals": totals }))?;
    } else {
        let parts = [(rows.len() - failed, "measured"), (failed, "failed"), (refused, "left out")];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let mut text: Vec<String> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        if let Some(path) = args.output.as_ref().filter(|_| found > 0) {
            text.push(format!("{} of the rows were in {} before", found, path.display()));
        }
        terminal::print(&format!("in all: {}\n", text.join(", ")))?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Error::check(format!("{failed} of {} failed", terminal::count(rows.len(), "kernel")))),
    }
}

fn case_as_json(done: &Done) -> Value {
    let refused = done.swept.refused.iter().map(|(reason, kernels)| json!({ "reason": reason, "kernels": kernels }));
    json!({
        "subject": done.subject,
        "fastest": done.swept.fastest(),
        "failed": done.swept.failed().map(|(row, _)| row).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}
