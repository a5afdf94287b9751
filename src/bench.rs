//! `stencilc bench`: measures which storage, strategy and block is the fastest for a stencil on a grid.

mod shapes;
mod table;

use crate::args::{self, Chosen, CodeArgs, Device, GridArg, PRECISIONS, Pair, ShareArgs, Tile, VariantArgs};
use crate::input::{self, Input};
use crate::output;
use crate::terminal::{self, Progress};
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use shapes::{Shapes, blocks};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use stencilc_compiler::access::{self, LevelsPerThread};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::{Choices, Math};
use stencilc_runtime::bench::rows::{self, Log, MachineFacts, Method, Row, Subject};
use stencilc_runtime::bench::sweep::{STEPS, Sweep, Swept};
use stencilc_runtime::bench::{Bed, Case};
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::Compiler;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::{Error, Result, files, nvrtc};

/// The grid if none is given: larger than any cache.
const GRID: Grid = Grid::rows(512, 512, 64);

/// The grid of the emulator if none is given, for which the other would take minutes a kernel.
const SMALL: Grid = Grid::rows(64, 48, 8);

/// Launches of a kernel that are not timed, for clocks and caches to come to rest.
const WARMUPS: usize = 5;

/// The word for every precision.
const BOTH: &str = "both";

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: String,
    /// Which stencil of the file
    #[arg(long, value_name = "NAME")]
    stencil: Option<String>,
    #[command(flatten)]
    variants: VariantArgs,
    #[command(flatten)]
    shared: ShareArgs,
    /// Blocks of threads: usual (the strategy's own), few (four more), thesis (powers of two, 32 along x and more, 32 to 512
    /// threads), all (any powers of two), or shapes; several with commas between them
    #[arg(long, value_name = "SHAPES", value_delimiter = ',', default_value = "few")]
    blocks: Vec<Shapes>,
    /// Levels a thread, for strategies that slice; several with commas between them
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [Choices::default().slice])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    slices: Vec<u32>,
    /// Cells a thread along i and j, for strategies that tile; several with commas between them. 2x2 if not given, 4x2 in
    /// f32
    #[arg(long, value_name = "IxJ,...", value_delimiter = ',')]
    tiles: Vec<Tile>,
    #[command(flatten)]
    code: CodeArgs,
    /// What `real` is
    #[arg(long, value_name = "P", value_parser = precisions(), default_value = Choices::default().precision.name())]
    precision: String,
    /// Extents of grids, halo included, or .npz files that say which cells are neighbours; several with commas between them.
    /// If not given, 512x512x64, and 64x48x8 on the emulator
    #[arg(long = "grid", value_name = "NIxNJxNK|FILE,...", value_delimiter = ',')]
    grids: Vec<GridArg>,
    /// Levels of grids from files; 64 if not given
    #[arg(long, value_name = "N", value_parser = args::grid::levels, requires = "grids")]
    levels: Option<usize>,
    /// A parameter; those without a value or a default are drawn at random
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    set: Vec<Pair>,
    /// How many launches of each kernel are timed
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Launch on the same buffers each time: what fits into the cache is found there. Otherwise launches rotate over so many
    /// buffers that nothing is
    #[arg(long)]
    hot: bool,
    /// Do not compare results with the interpreter
    #[arg(long)]
    no_verify: bool,
    /// Of the random numbers in the fields
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = args::seed)]
    seed: u64,
    /// cuda, cuda:N, emulate to try the call without a GPU, or cpu for the interpreter; if not given, the first GPU or else
    /// the cpu
    #[arg(long)]
    device: Option<Device>,
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

fn precisions() -> PossibleValuesParser {
    PossibleValuesParser::new(PRECISIONS.map(Precision::name).into_iter().chain([BOTH]))
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
    let input = input::load(&args.file)?;
    let stencil = input.stencil(args.stencil.as_deref())?;
    if let Some(path) = &args.csv {
        output::check("--csv", path, "csv")?;
    }
    let bed = bed(args)?;
    let machine = bed.facts();
    let mut log = args.output.as_deref().map(Log::open).transpose()?;
    if let Some(dropped) = log.as_ref().map(|log| log.dropped).filter(|&dropped| dropped > 0) {
        terminal::note(&format!("the last row of the file was not written whole: its {dropped} bytes were dropped"));
    }
    let grids = args.grids(&bed)?;
    let of_each: Vec<(Precision, Vec<Choices>)> =
        args.precisions().into_iter().map(|precision| (precision, args.choices(precision))).collect();
    let kernels = |choices: &[Choices]| if matches!(bed, Bed::Cpu) { 1 } else { choices.len() };
    let all: usize = of_each.iter().map(|(_, choices)| kernels(choices) * grids.len()).sum();
    let progress = Progress::new(all * STEPS, "measuring");
    let (mut done, mut told) = (Vec::new(), BTreeSet::new());
    for (precision, choices) in &of_each {
        progress.aside(|| input.warn_of_numbers(stencil, *precision));
        for (name, grid) in &grids {
            let problem = problem(args, &input, stencil, *precision, grid)?;
            progress.aside(|| tell_drawn(args, &problem, &mut told));
            let case = Case::new(problem, &bed, args.method())?;
            let subject = case.subject(&args.file, &input.source.text, name.clone(), args.seed);
            let sweep = Sweep { bed: &bed, machine: &machine, case: &case, subject: &subject, method: args.method() };
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

impl Args {
    fn method(&self) -> Method {
        Method { runs: self.runs as usize, warmups: WARMUPS, hot: self.hot, verify: !self.no_verify }
    }

    fn precisions(&self) -> Vec<Precision> {
        PRECISIONS.into_iter().filter(|own| self.precision == BOTH || self.precision == own.name()).collect()
    }

    /// The grids, and how each is named.
    fn grids(&self, bed: &Bed) -> Result<Vec<(String, Chosen)>> {
        let usual = GridArg::Rows(if matches!(bed, Bed::Emulator(_)) { SMALL } else { GRID });
        let grids = if self.grids.is_empty() { std::slice::from_ref(&usual) } else { &self.grids };
        let no_file = !grids.iter().any(|grid| matches!(grid, GridArg::File(_)));
        let chosen = |grid: &GridArg| match grid {
            GridArg::File(_) => {
                let levels = self.levels.unwrap_or(GRID.nk);
                Ok((format!("{grid} x {levels}"), Chosen::new(Some(grid), Some(levels))?))
            }
            // Where none has a file, it is told what --levels is for.
            GridArg::Rows(_) => Ok((grid.to_string(), Chosen::new(Some(grid), self.levels.filter(|_| no_file))?)),
        };
        grids.iter().map(chosen).collect()
    }

    /// Every kernel that is asked for, in one precision.
    fn choices(&self, precision: Precision) -> Vec<Choices> {
        let mut all = Vec::new();
        for variant in self.variants.choices() {
            let Ok(access) = access::find(&variant.access) else { continue };
            // A strategy that makes no use of a choice is not measured for each.
            let usual = Choices::default();
            let slices = |&slice: &u32| matches!(access.levels(slice), LevelsPerThread::Slice(_));
            let slices = if self.slices.iter().any(slices) { &self.slices[..] } else { &[usual.slice] };
            let usual_tile = [Tile(Choices::usual_tile(precision))];
            let tiles = if access.tiles() && !self.tiles.is_empty() { &self.tiles[..] } else { &usual_tile };
            for block in blocks(&self.blocks, access) {
                for &slice in slices {
                    for &Tile(tile) in tiles {
                        let share = self.shared.share.clone();
                        let choices = Choices { block, slice, tile, share, ..variant.clone() };
                        all.push(self.code.choices(choices, precision));
                    }
                }
            }
        }
        let mut seen = BTreeSet::new();
        all.retain(|choices| seen.insert(choices.words()));
        all
    }
}

/// What measures; what there is to know about it is told.
fn bed(args: &Args) -> Result<Bed> {
    let (device, no_gpu) = Device::choose(args.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("no kernel is measured: {}; --device emulate tries the call", error.message));
    }
    if args.code.math == Math::Device {
        terminal::note("--math device: results may differ from the interpreter in the last bits");
    }
    match device {
        Device::Cpu => {
            terminal::note("the interpreter is measured, which has neither storages nor strategies");
            Ok(Bed::Cpu)
        }
        Device::Emulate => {
            let compiler = Compiler::find()?;
            terminal::note("kernels run on the CPU, emulated: their times say nothing about a GPU");
            Ok(Bed::Emulator(compiler))
        }
        Device::Cuda(ordinal) => {
            let gpu = Gpu::open(ordinal)?;
            nvrtc::find()?;
            Ok(Bed::Gpu(Box::new(gpu)))
        }
    }
}

fn problem(args: &Args, input: &Input, stencil: &Stencil, precision: Precision, grid: &Chosen) -> Result<Problem> {
    let mut problem = Problem::new(Request {
        stencil,
        precision,
        contract: args.code.contract,
        grid: grid.grid,
        adjacency: grid.adjacency.clone(),
        arrays: BTreeMap::new(),
        settings: args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: false,
        draw_all: true,
    })?;
    if let Some(stencils) = input.sharing(&args.shared.share)? {
        problem.share(&stencils, args.code.contract);
    }
    Ok(problem)
}

/// Tells which parameters have values at random, once: times may depend on them.
fn tell_drawn(args: &Args, problem: &Problem, told: &mut BTreeSet<String>) {
    let params = problem.stencil.params.iter().map(|(_, param)| &param.name);
    let drawn: Vec<&str> = params
        .filter(|name| problem.drawn.contains(name) && told.insert((*name).clone()))
        .map(String::as_str)
        .collect();
    if !drawn.is_empty() {
        terminal::note(&format!("drawn at random, with seed {}: {}", args.seed, drawn.join(", ")));
    }
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
