//! `stencilc run` of a stencil on a grid.

use super::idle;
use super::picture::{draw, level};
use super::timings::{KernelTimings, Timings};
use super::{ARRAY, Args, Declared, PICTURE, Steps, arrays, note_replaced, targets};
use crate::args::{self, Chosen, KernelArgs};
use crate::input::Input;
use crate::print::{self, Cells, Printing};
use crate::summary::Summary;
use crate::terminal::{self, Progress};
use crate::tuned::{Sought, name_of_device};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use stencilc_compiler::analysis::cost;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{FieldId, Handle, Stencil};
use stencilc_compiler::plan::{Choices, Math, Plan};
use stencilc_compiler::source::Source;
use stencilc_runtime::bench::hash_of_neighbours;
use stencilc_runtime::build::Build;
use stencilc_runtime::cache::Built;
use stencilc_runtime::device::Platform;
use stencilc_runtime::execute::{Repeat, execute};
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::machine::Machine;
use stencilc_runtime::print::{Printed, printed};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::verify::plan_for;
use stencilc_runtime::{Array, Data, Device, Error, Result, npy};

/// Runs a stencil.
///
/// # Errors
/// Something is wrong with the call, the arrays or the device, or nothing can be written.
pub fn run(args: &Args, input: &Input, json: bool, start: Instant) -> Result<()> {
    let stencil = input.stencil(args.stencil.as_deref())?;
    args.names.refuse_of_programs(&stencil.name)?;
    let declared = Declared::of_stencil(stencil);
    let named = |all: Vec<(String, PathBuf)>| -> Vec<(FieldId, PathBuf)> {
        all.into_iter().filter_map(|(name, path)| Some((stencil.field_named(&name)?, path))).collect()
    };
    let outputs = named(targets(&args.outputs, "--out", &declared, ARRAY, Steps::None)?);
    let plots = named(targets(&args.plot, "--plot", &declared, PICTURE, Steps::None)?);

    let device = idle::device(args);
    let choices = args.kernel.choices_on(device, stencil, args::grid::of_cells(args.grid.as_ref(), args.levels));
    args.kernel.refuse_idle(&choices)?;
    input.warn_of_numbers(stencil, choices.precision);
    if choices.math == Math::Device && stencil.is_inexact() {
        terminal::note(match device {
            Device::Cpu => "--math device changes nothing on the cpu: the interpreter has the language's own functions",
            Device::Emulate | Device::Native => {
                "--math device: results are those of the C library, and may differ in the last bits"
            }
            Device::Cuda(_) => "--math device: results may differ in the last bits from those of other devices",
        });
    }
    let since = Instant::now();
    let mut problem = problem(args, stencil, &choices)?;
    if let Some(stencils) = input.sharing(&choices.share)? {
        problem.share(&stencils, choices.contract);
    }
    // How many levels there are arrays may have told.
    let choices = args.kernel.choices_on(device, stencil, problem.grid.levels_of_cells());
    let choices = tuned(args, &input.source, &problem, device, &choices).unwrap_or(choices);
    let mut timings = Timings {
        parse: input.parse_seconds,
        lower: input.lower_seconds,
        problem: since.elapsed().as_secs_f64(),
        ..Timings::default()
    };
    let pictures = plots.iter().map(|(id, path)| Ok((*id, path, level(args.level, &problem, *id)?)));
    let pictures = pictures.collect::<Result<Vec<_>>>()?;
    let cells = cells(args, &problem)?;

    let since = Instant::now();
    let platform = device.open(problem.grid.count().saturating_mul(args.runs.into()))?;
    let how = How { platform, startup_seconds: since.elapsed().as_secs_f64(), choices: &choices, start };
    let (computed, spent) = how.compute(&mut problem, args.runs)?;
    match spent {
        Spent::Interpreter(seconds) => timings.compute = Some(seconds),
        Spent::Kernel(seconds) => timings.kernel = Some(seconds),
    }
    let field = |id: FieldId| &problem.stencil.fields[id];
    for (id, path) in &outputs {
        if let Some(data) = &computed[id.index()] {
            note_replaced(&args.inputs, &field(*id).name, path);
            npy::save(path, &Array { shape: problem.grid.shape(field(*id).place), data: data.clone() })?;
        }
    }
    for (id, path, level) in pictures {
        if let Some(data) = computed[id.index()].as_ref().or(problem.inputs[id.index()].as_ref()) {
            draw(path, field(id), data, &problem, level)?;
        }
    }
    let summaries = problem.stencil.fields.iter().zip(&computed).filter_map(|((_, field), data)| {
        data.as_ref().map(|data| Summary::new(field, data, problem.grid, &problem.region))
    });
    let summaries: Vec<Summary> = summaries.collect();
    let prints = printed(&mut problem, &|print| cells.of(print), &mut |problem| Ok(how.compute(problem, 1)?.0))?;
    timings.total = start.elapsed().as_secs_f64();
    print::tell(prints.iter().map(|own| &own.print), &input.source);
    let results = Results { summaries: &summaries, prints: &prints, cells: &cells, source: &input.source };
    report(args, &problem, device, &choices, &results, &timings, json)
}

/// The kernel that was tuned for this GPU, stencil and grid, where the options leave open which.
fn tuned(args: &Args, source: &Source, problem: &Problem, device: Device, choices: &Choices) -> Option<Choices> {
    if args.tuned.untuned || args.kernel.is_given_beside(&KernelArgs::OPEN) {
        return None;
    }
    let gpu = name_of_device(device)?;
    let (stencil, neighbours) = (&problem.stencil.name, problem.adjacency.as_deref().map(hash_of_neighbours));
    let sought = Sought { source: &source.text, stencil, choices, extents: problem.grid, neighbours };
    sought.on(&gpu, |own| plan_for(problem, own).map(|_| ()))
}

/// Where its prints are shown.
fn cells(args: &Args, problem: &Problem) -> Result<Cells> {
    let stencil = &problem.stencil;
    let field = stencil.fields.iter().map(|(_, field)| field).find(|field| field.role.is_read());
    let places = stencil.prints.iter().map(|_| (problem.grid, None)).collect();
    let middle = Some(problem.region.clone());
    Cells::new(&args.at, args.bits, Printing { what: format!("stencil `{}`", stencil.name), field, places, middle })
}

fn problem(args: &Args, stencil: &Stencil, choices: &Choices) -> Result<Problem> {
    let Chosen { grid, adjacency } = Chosen::new(args.grid.as_ref(), args.levels)?;
    let place = |name: &str| stencil.field_named(name).map(|id| stencil.fields[id].place);
    let arrays = arrays(&args.inputs, |name| place(name).filter(|_| adjacency.is_none()))?;
    Problem::new(Request {
        stencil,
        precision: choices.precision,
        contract: choices.contract,
        grid,
        adjacency,
        arrays,
        settings: args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: args.casting(),
        drawing: args.drawing(false),
    })
}

/// Computes on the CPU, and takes the median time.
fn interpreted(problem: &mut Problem, runs: u32) -> Result<(Vec<Option<Data>>, f64)> {
    let mut outputs = std::mem::take(&mut problem.outputs);
    let inputs = problem.inputs();
    let job = problem.job(&inputs);
    let rows = problem.region.j.len() * problem.region.k.len();
    let progress = Progress::new(rows.saturating_mul(runs as usize), "computing");
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        interpret(&job, &mut outputs, &|rows| progress.advance(rows))?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok((outputs, median(&mut times)))
}

/// What computes a stencil, and by which kernel.
struct How<'a> {
    platform: Platform,
    /// Seconds that it took to be there.
    startup_seconds: f64,
    choices: &'a Choices,
    /// When the program started.
    start: Instant,
}

/// What was spent on computing.
enum Spent {
    /// Seconds.
    Interpreter(f64),
    Kernel(KernelTimings),
}

impl How<'_> {
    /// What the outputs hold, and what that took.
    fn compute(&self, problem: &mut Problem, runs: u32) -> Result<(Vec<Option<Data>>, Spent)> {
        let (outputs, timings) = match &self.platform {
            Platform::Cpu => {
                let (outputs, seconds) = interpreted(problem, runs)?;
                return Ok((outputs, Spent::Interpreter(seconds)));
            }
            Platform::Emulator(emulator) => self.launched(&**emulator, self.startup_seconds, problem, runs)?,
            Platform::Gpu(gpu) => {
                let (outputs, mut timings) = self.launched(&**gpu, gpu.startup_seconds, problem, runs)?;
                let bytes = cost::cost(&problem.stencil, problem.precision).bytes * problem.region.cells();
                timings.kernel_gb_per_s = Some(bytes as f64 / (timings.kernel_median_us * 1e3));
                (outputs, timings)
            }
        };
        Ok((outputs, Spent::Kernel(timings)))
    }

    /// The same by a kernel on a machine, which took so many seconds to be there.
    fn launched<M: Build>(
        &self,
        machine: &M,
        startup_seconds: f64,
        problem: &Problem,
        runs: u32,
    ) -> Result<(Vec<Option<Data>>, KernelTimings)> {
        let written = Written::new(problem, self.choices, self.start, startup_seconds)?;
        let built = machine.compile(&written.kernel.name, &written.kernel.text)?;
        let since = Instant::now();
        let loaded = machine.bring(&built.compiled.image, &written.kernel.name, &written.kernel.text)?;
        ran(machine, written, &built, &loaded, since, problem, runs)
    }
}

/// A kernel, and what it took to come by it so far.
struct Written {
    plan: Plan,
    kernel: cuda::Kernel,
    /// When the program started.
    start: Instant,
    startup_seconds: f64,
    plan_seconds: f64,
    print_seconds: f64,
}

impl Written {
    fn new(problem: &Problem, choices: &Choices, start: Instant, startup_seconds: f64) -> Result<Self> {
        let since = Instant::now();
        let plan = plan_for(problem, choices)?;
        let plan_seconds = since.elapsed().as_secs_f64();
        let since = Instant::now();
        let kernel = cuda::print(&plan)?;
        let print_seconds = since.elapsed().as_secs_f64();
        Ok(Self { plan, kernel, start, startup_seconds, plan_seconds, print_seconds })
    }
}

/// Runs a kernel on a machine, which has begun to load it at `since`.
fn ran<M: Machine>(
    machine: &M,
    written: Written,
    built: &Built,
    loaded: &M::Kernel,
    since: Instant,
    problem: &Problem,
    runs: u32,
) -> Result<(Vec<Option<Data>>, KernelTimings)> {
    let load = since.elapsed().as_secs_f64();
    let before = written.start.elapsed().as_secs_f64() - written.startup_seconds;
    let mut execution =
        execute(machine, &written.plan, &written.kernel, loaded, problem, Repeat::usual(runs as usize))?;
    if let Some(damage) = execution.damage.first() {
        return Err(Error::check(format!("the kernel is wrong: {damage}"))
            .help("this is a fault of the compiler; please report it"));
    }
    let timings = KernelTimings {
        startup: written.startup_seconds,
        plan: written.plan_seconds,
        print: written.print_seconds,
        compile: built.seconds,
        compile_cached: built.cached,
        load,
        kernel_median_us: median(&mut execution.launches),
        kernel_min_us: execution.launches.first().copied().unwrap_or_default(),
        kernel_gb_per_s: None,
        first_launch_overhead: before + execution.timings.pack + execution.timings.upload,
        execution: execution.timings,
    };
    Ok((execution.outputs, timings))
}

/// The median; sorts the numbers.
fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    match times {
        [] => 0.0,
        times if times.len() % 2 == 1 => times[middle],
        times => 0.5 * (times[middle - 1] + times[middle]),
    }
}

/// What came out.
struct Results<'a> {
    summaries: &'a [Summary],
    prints: &'a [Printed],
    cells: &'a Cells,
    source: &'a Source,
}

fn report(
    args: &Args,
    problem: &Problem,
    device: Device,
    choices: &Choices,
    results: &Results,
    timings: &Timings,
    json: bool,
) -> Result<()> {
    let Results { summaries, prints, cells, source } = results;
    let Problem { stencil, grid, region, drawn, .. } = problem;
    if json {
        return terminal::json(&json!({
            "stencil": stencil.name,
            "device": device.to_string(),
            "grid": grid,
            "region": region,
            "precision": problem.precision,
            "choices": choices,
            "outputs": summaries,
            "prints": print::json(prints, source),
            "drawn": drawn,
            "seed": args.seed,
            "timings": timings,
        }));
    }
    if !drawn.is_empty() {
        terminal::note(&format!("drawn at random, with seed {}: {}", args.seed, drawn.join(", ")));
    }
    let how = match device {
        Device::Cpu => "interpreter".to_owned(),
        Device::Emulate | Device::Native | Device::Cuda(_) => {
            format!("{} access, {} storage", choices.access, choices.storage)
        }
    };
    let mut text =
        format!("{} on {device} ({how}), {}, grid {grid}, computed {region}\n", stencil.name, problem.precision.name());
    let rows: Vec<Vec<String>> = summaries.iter().map(Summary::row).collect();
    text.push_str(&terminal::table(&rows, &Summary::NUMBERS));
    text.push_str(&print::table(prints, cells, source, None));
    if args.timings {
        text.push_str(&terminal::table(&timings.rows(device), &[1]));
    }
    terminal::print(&text)
}
