//! `stencilc run`: computes a stencil or a program on arrays, or on random numbers.

pub mod animate;
mod kept;
pub mod mesh;
mod outputs;
pub mod program;

use crate::args::given::{Given, Names};
use crate::args::{self, At, Chosen, GridArg, KernelArgs, Pair};
use crate::input;
use crate::output;
use crate::print::{self, Prints};
use crate::summary::Summary;
use crate::terminal::{self, Progress};
use crate::tuned::{Sought, TunedArgs};
use clap::ArgGroup;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stencilc_compiler::analysis::cost;
use stencilc_compiler::cuda;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::ir::{Field, FieldId, Handle, Levels, Place, Stencil};
use stencilc_compiler::plan::{Choices, Math, Plan};
use stencilc_compiler::source::Source;
use stencilc_runtime::build::Build;
use stencilc_runtime::cache::Built;
use stencilc_runtime::cuda::devices;
use stencilc_runtime::device::Platform;
use stencilc_runtime::execute::{self, Repeat, execute};
use stencilc_runtime::files::Kind;
use stencilc_runtime::grid::Raster;
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::machine::Machine;
use stencilc_runtime::plot::{Picture, Scattered, save_png};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::tune::database::EMULATOR;
use stencilc_runtime::verify::plan_for;
use stencilc_runtime::{Array, Cast, Data, Device, Drawing, Error, Result, npy};

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("pictures").multiple(true).args(["plot", "animate"])))]
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
    /// Extents of the grid, halo included; not needed where arrays tell them. Or a .npz file that says which cells are
    /// neighbours
    #[arg(long, value_name = "NIxNJxNK|FILE")]
    grid: Option<GridArg>,
    /// Levels of a grid from a file; not needed where arrays tell them
    #[arg(long, value_name = "N", value_parser = args::grid::levels)]
    levels: Option<usize>,
    /// An input, from a .npy file of shape (nk, nj, ni). A stencil of which none is given computes random numbers; otherwise, and
    /// of a program, all have to be given, or --draw says which are not
    #[arg(long = "in", value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--in phi=phi.npy"))]
    inputs: Vec<Pair>,
    /// Draw inputs at random: those that are neither given nor come with a mesh, or those that are named
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    draw: Option<Vec<String>>,
    /// Where to write an output, as a .npy file; of what runs over a mesh, or as a .vtu file for ParaView, several in one
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--out res=res.npy"))]
    outputs: Vec<Pair>,
    /// A parameter
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    set: Vec<Pair>,
    /// Where to draw one level of a field, as a .png file
    #[arg(long, value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--plot res=res.png"))]
    plot: Vec<Pair>,
    /// The level to draw, from 0; if not given, the middle of those computed
    #[arg(long, value_name = "K", requires = "pictures")]
    level: Option<usize>,
    /// A cell to print at; it may be given again. If not given, the middle of the computed cells
    #[arg(long, value_name = "I,J,K")]
    at: Vec<At>,
    /// Show the bits of printed values, too
    #[arg(long)]
    bits: bool,
    /// cpu, emulate, cuda or cuda:N; if not given, the first GPU or else the cpu
    #[arg(long)]
    device: Option<Device>,
    #[command(flatten)]
    kernel: Given<KernelArgs>,
    #[command(flatten)]
    tuned: TunedArgs,
    #[command(flatten)]
    of_mesh: args::mesh::MeshArgs,
    /// On a mesh: a .vtu file for all outputs that it has a place for
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    vtu: Option<String>,
    /// On a mesh: a folder for the texts of the kernels that are launched
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    texts: Option<PathBuf>,
    #[command(flatten)]
    of_program: program::ProgramArgs,
    /// How often to compute; times are those of the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Of the random numbers in inputs that are drawn: another seed, other numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = args::seed)]
    seed: u64,
    /// Let numbers lose precision to fit their field: reals are rounded, or lose their fractions. What is beyond the field's type,
    /// as NaN is of an `int`, stays an error
    #[arg(long)]
    cast: bool,
    /// Show what took how long
    #[arg(long)]
    timings: bool,
}

/// What took how long, in seconds where nothing else is said.
#[derive(Default, Serialize)]
struct Timings {
    parse: f64,
    lower: f64,
    /// Reading arrays, drawing numbers, and checking both.
    problem: f64,
    /// On the CPU: the interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    compute: Option<f64>,
    /// On a GPU or the emulator.
    #[serde(flatten)]
    kernel: Option<KernelTimings>,
    total: f64,
}

#[derive(Serialize)]
struct KernelTimings {
    /// The driver's start, or the search for a C++ compiler.
    startup: f64,
    plan: f64,
    print: f64,
    compile: f64,
    /// Whether the kernel had been compiled before.
    compile_cached: bool,
    load: f64,
    #[serde(flatten)]
    execution: execute::Timings,
    /// Microseconds of a launch.
    kernel_median_us: f64,
    kernel_min_us: f64,
    /// Bytes that must move, by the median time. Of an emulated kernel it would say nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_gb_per_s: Option<f64>,
    /// From the program's start to the first launch, without `startup`.
    first_launch_overhead: f64,
}

/// Notes that an output takes the place of the file that another field was read from.
fn note_replaced(inputs: &[Pair], output: &str, path: &Path) {
    let Ok(written) = path.canonicalize() else { return };
    let is_read =
        |pair: &&Pair| pair.name() != output && Path::new(pair.value()).canonicalize().ok().as_ref() == Some(&written);
    if let Some(pair) = inputs.iter().find(is_read) {
        terminal::note(&format!("`{}` held the input `{}`; now it holds `{output}`", path.display(), pair.name()));
    }
}

/// Runs a stencil.
///
/// # Errors
/// Something is wrong with the stencil, the call, the arrays or the device, or nothing can be written.
pub fn run(args: &Args, json: bool, start: Instant) -> Result<()> {
    let input = input::load(&args.file)?;
    if let Some(program) = input.over_mesh(args.of_program.program.as_deref(), args.stencil.as_deref())? {
        return mesh::run(args, &input, &program, json, start);
    }
    args.of_mesh.refuse()?;
    if args.vtu.is_some() {
        return Err(Error::call("--vtu is for what runs over a mesh, and this runs over a grid")
            .help("--out NAME=FILE.npy writes a field, and --plot NAME=FILE.png draws one"));
    }
    if args.texts.is_some() {
        return Err(Error::call("--texts is for what runs over a mesh, and this runs over a grid")
            .help("`stencilc build` writes the kernel of a stencil"));
    }
    if let Some(program) = input.program(args.of_program.program.as_deref(), args.stencil.as_deref())? {
        return program::run(args, &input, program, json, start);
    }
    let stencil = input.stencil(args.stencil.as_deref())?;
    args.names.refuse_of_programs(&stencil.name)?;
    let outputs = targets(&args.outputs, "--out", stencil, |field| field.role.is_written(), Steps::None)?;
    let plots = targets(&args.plot, "--plot", stencil, |_| true, Steps::None)?;

    let (device, no_gpu) = Device::choose(args.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("running on the cpu: {}", error.message));
    }
    let choices = args.kernel.choices_for(stencil);
    args.kernel.refuse_idle(&choices)?;
    input.warn_of_numbers(stencil, choices.precision);
    if choices.math == Math::Device && stencil.is_inexact() {
        terminal::note(match device {
            Device::Cpu => "--math device changes nothing on the cpu: the interpreter has the language's own functions",
            Device::Emulate => "--math device: results are those of the C library, and may differ in the last bits",
            Device::Cuda(_) => "--math device: results may differ in the last bits from those of other devices",
        });
    }
    let since = Instant::now();
    let mut problem = problem(args, stencil, &choices)?;
    if let Some(stencils) = input.sharing(&choices.share)? {
        problem.share(&stencils, choices.contract);
    }
    let choices = tuned(args, &input.source, &problem, device, &choices).unwrap_or(choices);
    let mut timings = Timings {
        parse: input.parse_seconds,
        lower: input.lower_seconds,
        problem: since.elapsed().as_secs_f64(),
        ..Timings::default()
    };
    let pictures = plots.iter().map(|(id, path)| Ok((*id, path, level(args.level, &problem, *id)?)));
    let pictures = pictures.collect::<Result<Vec<_>>>()?;
    let cells = print::cells(&args.at, args.bits, &problem)?;

    let since = Instant::now();
    let platform = device.open(2)?;
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
    let prints = Prints::new(&mut problem, cells, args.bits, &mut |problem| Ok(how.compute(problem, 1)?.0))?;
    timings.total = start.elapsed().as_secs_f64();
    prints.tell(&problem.stencil, &input.source);
    let results = Results { summaries: &summaries, prints: &prints, source: &input.source };
    report(args, &problem, device, &choices, &results, &timings, json)
}

/// The kernel that was tuned for this GPU, stencil and grid, where the options leave open which.
fn tuned(args: &Args, source: &Source, problem: &Problem, device: Device, choices: &Choices) -> Option<Choices> {
    if args.tuned.untuned || args.kernel.is_given_beside(&KernelArgs::OPEN) {
        return None;
    }
    let gpu = match device {
        Device::Cpu => return None,
        Device::Emulate => EMULATOR.to_owned(),
        Device::Cuda(ordinal) => devices().into_iter().find(|device| device.ordinal == ordinal)?.name,
    };
    let (stencil, adjacency) = (&problem.stencil.name, problem.adjacency.as_deref());
    let sought = Sought { source: &source.text, stencil, choices, extents: problem.grid, adjacency };
    sought.on(&gpu, |own| plan_for(problem, own).map(|_| ()))
}

/// Whether there are files of several steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    None,
    Each,
}

/// The fields and paths of an option, once it is sure that they can be written and are those of nothing else.
fn targets(
    pairs: &[Pair],
    option: &str,
    stencil: &Stencil,
    suits: impl Fn(&Field) -> bool,
    steps: Steps,
) -> Result<Vec<(FieldId, PathBuf)>> {
    let mut targets: Vec<(FieldId, PathBuf)> = Vec::new();
    for (name, path) in args::by_name(pairs, option)? {
        let suiting = || stencil.fields.iter().filter(|(_, field)| suits(field));
        let Some((id, _)) = suiting().find(|(_, field)| field.name == name) else {
            let names: Vec<&str> = suiting().map(|(_, field)| field.name.as_str()).collect();
            let what = if option == "--plot" { "field" } else { "output" };
            let error = Error::call(format!("stencil `{}` has no {what} `{name}`", stencil.name));
            return Err(match guess(&name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("it has {}", names.join(", "))),
            });
        };
        let path = PathBuf::from(path);
        let (ending, kind) = if option == "--out" { ("npy", Kind::Array) } else { ("png", Kind::Picture) };
        match steps {
            Steps::None => output::check(option, &path, ending, kind)?,
            Steps::Each => output::check_each(option, &path, ending, kind)?,
        }
        targets.push((id, path));
    }
    Ok(targets)
}

impl Args {
    /// What is drawn at random. A stencil by itself computes random numbers if none are given, so that it runs at once. Who gives
    /// some means to give all, and a program starts from something: there, only what --draw says is drawn.
    fn drawing(&self, is_program: bool) -> Drawing {
        match self.draw.as_deref() {
            Some([]) => Drawing::Inputs,
            Some(names) => Drawing::Named(names.to_vec()),
            None if is_program || !self.inputs.is_empty() => Drawing::Nothing,
            None => Drawing::Inputs,
        }
    }

    /// What may happen to numbers on their way into fields.
    fn casting(&self) -> Cast {
        if self.cast { Cast::Allowed } else { Cast::Exact }
    }
}

fn problem(args: &Args, stencil: &Stencil, choices: &Choices) -> Result<Problem> {
    Problem::new(problem_request(args, stencil, choices, args.drawing(false))?)
}

/// What is asked for: arrays, parameters, the grid.
fn problem_request<'a>(args: &Args, stencil: &'a Stencil, choices: &Choices, drawing: Drawing) -> Result<Request<'a>> {
    let chosen = Chosen::new(args.grid.as_ref(), args.levels)?;
    let mut arrays = BTreeMap::new();
    for (name, path) in args::by_name(&args.inputs, "--in")? {
        let array = npy::load(path.as_ref())?;
        let field = stencil.fields.iter().map(|(_, field)| field).find(|field| field.name == name);
        if let (Some(Field { place: Place { horizontal: true, levels: Levels::Full, .. }, .. }), [nj, ni]) =
            (field, array.shape.as_slice())
            && chosen.adjacency.is_none()
        {
            terminal::note(&format!("`{path}` has the shape ({nj}, {ni}): taken as one level, (1, {nj}, {ni})"));
        }
        arrays.insert(name, array);
    }
    Ok(Request {
        stencil,
        precision: choices.precision,
        contract: choices.contract,
        grid: chosen.grid,
        adjacency: chosen.adjacency,
        arrays,
        settings: args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: args.casting(),
        drawing,
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
        let printed = Printed::new(problem, self.choices, self.start, startup_seconds)?;
        let built = machine.compile(&printed.kernel.name, &printed.kernel.text)?;
        let since = Instant::now();
        let loaded = machine.bring(&built.compiled.image, &printed.kernel.name, &printed.kernel.text)?;
        ran(machine, printed, &built, &loaded, since, problem, runs)
    }
}

/// A kernel, and what it took to come by it so far.
struct Printed {
    plan: Plan,
    kernel: cuda::Kernel,
    /// When the program started.
    start: Instant,
    startup_seconds: f64,
    plan_seconds: f64,
    print_seconds: f64,
}

impl Printed {
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
    printed: Printed,
    built: &Built,
    loaded: &M::Kernel,
    since: Instant,
    problem: &Problem,
    runs: u32,
) -> Result<(Vec<Option<Data>>, KernelTimings)> {
    let load = since.elapsed().as_secs_f64();
    let before = printed.start.elapsed().as_secs_f64() - printed.startup_seconds;
    let mut execution =
        execute(machine, &printed.plan, &printed.kernel, loaded, problem, Repeat::usual(runs as usize))?;
    if let Some(damage) = execution.damage.first() {
        return Err(Error::check(format!("the kernel is wrong: {damage}"))
            .help("this is a fault of the compiler; please report it"));
    }
    let timings = KernelTimings {
        startup: printed.startup_seconds,
        plan: printed.plan_seconds,
        print: printed.print_seconds,
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

/// The error of a picture of cells of which nobody says where they lie.
fn no_places(adjacency: &Adjacency) -> Error {
    Error::input(format!(
        "there is no picture of the grid `{}`: it does not say where its cells lie",
        adjacency.name.as_told()
    ))
    .help("add their centres to the file: `numpy.savez(..., x=x, y=y)`; or write the numbers with --out")
}

/// The level of a field that is drawn.
fn level(given: Option<usize>, problem: &Problem, id: FieldId) -> Result<usize> {
    let Field { name, place, .. } = &problem.stencil.fields[id];
    if let Some(adjacency) = problem.adjacency.as_ref().filter(|adjacency| adjacency.centres().is_none()) {
        return Err(no_places(adjacency));
    }
    if !place.horizontal {
        return Err(Error::call(format!("`{name}` cannot be drawn: it has no axes i and j"))
            .help("only fields on columns can; write the numbers with --out"));
    }
    let levels = place.levels.count(problem.grid.nk);
    let middle = problem.region.k.start + problem.region.k.len() / 2;
    match (place.levels, given) {
        (Levels::None, _) => Ok(0),
        (_, None) => Ok(middle),
        (_, Some(level)) if level < levels => Ok(level),
        (_, Some(level)) => {
            Err(Error::call(format!("`{name}` has no level {level}"))
                .help(format!("its levels are 0 to {}", levels - 1)))
        }
    }
}

fn draw(path: &Path, field: &Field, data: &Data, problem: &Problem, level: usize) -> Result<()> {
    save_png(path, &Shown::new(field, data, problem, level)?.picture())
}

/// One level of a field, as a picture shows it.
struct Shown {
    title: String,
    values: Vec<f64>,
    ni: usize,
    nj: usize,
    scattered: Option<usize>,
}

impl Shown {
    fn new(field: &Field, data: &Data, problem: &Problem, level: usize) -> Result<Self> {
        let grid = problem.grid;
        let columns = grid.columns();
        let values: Vec<f64> = (level * columns..(level + 1) * columns).map(|index| data.get(index)).collect();
        let title = match field.place.levels {
            Levels::None => field.name.clone(),
            Levels::Full => format!("{}, level {level} of {}", field.name, grid.nk),
            Levels::Interfaces => format!("{}, interface {level} of {}", field.name, grid.nk + 1),
        };
        let Some(adjacency) = &problem.adjacency else {
            return Ok(Self { title, values, ni: grid.ni, nj: grid.nj, scattered: None });
        };
        let Raster { ni, nj, cells } = Raster::new(adjacency).ok_or_else(|| no_places(adjacency))?;
        let values: Vec<f64> = cells.iter().map(|cell| cell.map_or(f64::NAN, |cell| values[cell])).collect();
        Ok(Self { title, values, ni, nj, scattered: Some(columns) })
    }

    fn picture(&self) -> Picture<'_> {
        Picture {
            title: &self.title,
            values: &self.values,
            ni: self.ni,
            nj: self.nj,
            scattered: self.scattered.map(Scattered::cells),
        }
    }
}

/// What came out.
struct Results<'a> {
    summaries: &'a [Summary],
    prints: &'a Prints,
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
    let Results { summaries, prints, source } = results;
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
            "prints": prints.json(stencil, source),
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
        Device::Emulate | Device::Cuda(_) => format!("{} access, {} storage", choices.access, choices.storage),
    };
    let mut text =
        format!("{} on {device} ({how}), {}, grid {grid}, computed {region}\n", stencil.name, problem.precision.name());
    let rows: Vec<Vec<String>> = summaries.iter().map(Summary::row).collect();
    text.push_str(&terminal::table(&rows, &Summary::NUMBERS));
    text.push_str(&prints.text(stencil, source));
    if args.timings {
        text.push_str(&terminal::table(&timings.rows(device), &[1]));
    }
    terminal::print(&text)
}

impl Timings {
    /// Rows of a table.
    fn rows(&self, device: Device) -> Vec<Vec<String>> {
        let row = |what: &str, number: String, unit: &str| vec![what.to_owned(), number, unit.to_owned()];
        let time = |what: &str, seconds: f64| row(what, format!("{:.3}", seconds * 1e3), "ms");
        let mut rows = vec![time("parse", self.parse), time("lower", self.lower), time("problem", self.problem)];
        rows.extend(self.compute.map(|seconds| time("compute", seconds)));
        if let Some(kernel) = &self.kernel {
            let execute::Timings { pack, upload, download, unpack } = kernel.execution;
            let compile = if kernel.compile_cached { "ms, read from the cache" } else { "ms" };
            let startup = if device == Device::Emulate { "search for a compiler" } else { "driver's start" };
            rows.extend([
                time(startup, kernel.startup),
                time("plan", kernel.plan),
                time("print", kernel.print),
                row("compile", format!("{:.3}", kernel.compile * 1e3), compile),
                time("load", kernel.load),
                time("pack", pack),
                time("upload", upload),
                row("kernel, median", format!("{:.2}", kernel.kernel_median_us), "us"),
                row("kernel, minimum", format!("{:.2}", kernel.kernel_min_us), "us"),
            ]);
            let traffic = kernel.kernel_gb_per_s.map(|speed| row("compulsory traffic", format!("{speed:.0}"), "GB/s"));
            rows.extend(traffic);
            rows.extend([
                time("download", download),
                time("unpack", unpack),
                row(
                    "to first launch",
                    format!("{:.3}", kernel.first_launch_overhead * 1e3),
                    &format!("ms, without the {startup}"),
                ),
            ]);
        }
        rows.push(time("total", self.total));
        rows
    }
}
