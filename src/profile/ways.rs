//! `stencilc profile` of a program, and of what runs over a mesh: the kernels of one way to compute it, each counted by itself.

use super::{Args, Counting, table};
use crate::args::ARCH;
use crate::args::kernels::Named;
use crate::args::program::PlanArgs;
use crate::bench::mesh::{Subject, check_right};
use crate::bench::open;
use crate::build::mesh_program::merge;
use crate::drawn::refuse_of_grids;
use crate::input::Input;
use crate::kernel::words_over_meshes;
use crate::terminal::{self, Progress, bar};
use serde::Serialize;
use serde_json::{Value, json};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::bench::rows::MachineFacts;
use stencilc_runtime::device::Platform;
use stencilc_runtime::measure::STEPS;
use stencilc_runtime::mesh::program::ways::{Asked, MERGES, Meter, Ways};
use stencilc_runtime::profile::metrics::Counters;
use stencilc_runtime::program::measure::Plans;
use stencilc_runtime::program::{ProgramProblem, of_program};
use stencilc_runtime::{Error, Fault, Result};

/// Options of `profile` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Which program of the file
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    #[command(flatten)]
    plan: PlanArgs,
    /// Of a program: steps of its loop in one measurement
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    times: u32,
}

/// A way to compute something, and what was counted in its kernels.
#[derive(Serialize)]
pub struct Case {
    /// The program or stencil.
    #[serde(skip)]
    pub name: String,
    /// What `real` is.
    pub precision: Precision,
    /// The grid, or the file of the mesh.
    pub place: String,
    /// Which way.
    pub way: String,
    /// The options of `run` that choose it.
    pub options: String,
    /// Microseconds of a step, without the profiler.
    pub us: f64,
    /// The time of a copy, of that.
    pub of_copy: Option<f64>,
    /// What was counted in each of its kernels.
    pub kernels: Vec<Kernel>,
}

/// A kernel.
#[derive(Serialize)]
pub struct Kernel {
    /// Its name.
    pub kernel: String,
    /// Whether it was launched: a way may have kernels for numbers of steps other than those that are done.
    pub launched: bool,
    /// What was counted in one launch.
    pub counters: Counters,
    /// Why nothing could be.
    pub failed: Option<String>,
}

/// Counts in the kernels of a program on grids.
///
/// # Errors
/// As [`profile`](super::profile); several kernels are named where one is meant.
pub fn of_a_program(args: &Args, input: &Input, program: &Program, json: bool) -> Result<()> {
    let name = &program.name;
    if args.output.is_some() {
        return Err(Error::call(format!("--output is for kernels of stencils, and `{name}` is a program"))
            .help("--json has all that is counted"));
    }
    let mut counting = Counting::new(args)?;
    let (platform, own) = (open(counting.device)?, &args.of_program);
    let arch = if let Platform::Gpu(gpu) = &platform { gpu.arch() } else { ARCH.to_owned() };
    let facade = program.facade();
    let mut cases = Vec::new();
    for precision in args.kernels.precisions() {
        for grid in args.kernels.grids(&platform)? {
            let choices = one_kernel(args, program, &grid, precision)?;
            let problem = args.kernels.problem(input, &facade, precision, &grid);
            let problem = problem.map_err(|error| of_program(program, error))?;
            let problem = ProgramProblem::of(program, problem, choices.contract)?;
            let plan = own.plan.plan(&problem, &choices, &arch)?;
            plan.check(&problem)?;
            let times = own.times as usize;
            let plans = Plans::new(&problem, &platform, args.method(), times, vec![plan], bar("interpreting"))?;
            let progress = Progress::new(STEPS, "measuring");
            let (found, came) = plans.bench(&|steps| progress.advance(steps))?;
            drop(progress);
            let Some((_, times)) = found.first() else {
                let why = came.wrong.into_values().chain(came.refused.into_values()).next().unwrap_or_default();
                return Err(Error::check(format!("{}: {why}", plans.plans[0])));
            };
            let mut options = format!("{}{} --no-graph", choices.words(), own.plan.words());
            for (name, value) in problem.outer.settings() {
                options.push_str(&format!(" --set {}", ShellWord::new(format!("{name}={value}"))));
            }
            options.extend(grid.words.iter().map(|word| format!(" {}", ShellWord::new(word))));
            cases.push(Case {
                name: name.clone(),
                precision,
                place: grid.name.clone(),
                way: plans.plans[0].to_string(),
                us: times.median_us,
                of_copy: plans.of_copy(times),
                kernels: counting.kernels(args, ["--program", name], &options, plans.kernels(0)?)?,
                options,
            });
        }
    }
    report("program", &counting, &platform.facts(), &cases, json)
}

/// What computes the calls of a program: what is named, or what is taken where nobody chooses.
fn one_kernel(args: &Args, program: &Program, grid: &Named, precision: Precision) -> Result<Choices> {
    let mut all = args.kernels.choices(&args.blocks, precision)?;
    let cells = grid.chosen.grid.and_then(Grid::levels_of_cells);
    let usual = Choices::default().on_cells(&program.stencils, cells, Open::Kernel);
    if args.kernels.is_open() {
        all.retain(|own| own.storage == usual.storage && own.access == usual.access);
    }
    match all.as_slice() {
        [one] => Ok(one.clone()),
        all => {
            let why = format!(
                "`profile` looks into one way to compute `{}`, and these options name {}",
                program.name,
                all.len()
            );
            let Choices { storage, access, .. } = usual;
            Err(Error::call(why).help(format!("name one: --storage {storage} --access {access}")))
        }
    }
}

/// Counts in the kernels of what runs over a mesh.
///
/// # Errors
/// As [`profile`](super::profile); several ways are named where one is meant.
pub fn over_a_mesh(args: &Args, subject: &Subject, json: bool) -> Result<()> {
    let (name, over, plan) = (&subject.program.program.name, &args.over, &args.of_program.plan);
    let options: &[&str] = match subject.is_stencil {
        true => &["runs", "ncu", "timeout"],
        false => &["runs", "ncu", "timeout", "program", "fuse", "times"],
    };
    refuse_of_grids(&args.names, options, name)?;
    let has_levels = subject.program.mesh.levels;
    let choices = over.choices(has_levels)?;
    let merge = merge(plan, over, name)?;
    let mut counting = Counting::new(args)?;
    let platform = open(counting.device)?;
    let mut ways = Ways::new(subject.problem(&args.kernels, over, args.of_program.times)?);
    let ordered = over.one_ordering(&ways.problem, &[choices.layout])?;
    ways.place(ordered.name, &ordered.ordering, true)?;
    let asked = Asked {
        strategies: vec![choices.strategy],
        layouts: vec![choices.layout],
        threads: vec![choices.threads],
        merges: MERGES.into_iter().filter(|(_, own)| *own == merge).collect(),
    };
    ways.add(&asked, false, &|_| {})?;
    let meter = Meter::new(&platform, args.method().runs, &ways, None)?;
    let progress = Progress::new(STEPS, "measuring");
    ways.measure(&meter, &|steps| progress.advance(steps))?;
    drop(progress);
    check_right(&ways)?;
    let Some(row) = ways.rows().next() else { return Err(Error::check("nothing was measured")) };
    let (precision, kernels) = (ways.problem.precision, &args.kernels);
    let words_of_mesh = words_over_meshes(precision, kernels.code.contract, kernels.levels, &kernels.set);
    let graph = if subject.is_stencil { "" } else { " --no-graph" };
    let options = format!("{words_of_mesh}{}{graph} {}", plan.words(), over.words(has_levels)?);
    let case = Case {
        name: name.clone(),
        precision,
        place: over.mesh.as_deref().map(|file| file.display().to_string()).unwrap_or_default(),
        way: row.variant.words(),
        us: row.measured.statistics.median_us,
        of_copy: Some(row.of_copy),
        kernels: counting.kernels(args, [&format!("--{}", subject.what()), name], &options, ways.kernels(0)?)?,
        options,
    };
    report(subject.what(), &counting, &platform.facts(), &[case], json)
}

impl Counting {
    /// Counts in each kernel of what `run` computes with these options.
    fn kernels(&mut self, args: &Args, of: [&str; 2], options: &str, names: Vec<String>) -> Result<Vec<Kernel>> {
        let (file, seed, device) = (&args.kernels.file, args.kernels.seed.to_string(), self.device.to_string());
        let fixed = ["run", file, of[0], of[1], "--draw", "--seed", &seed, "--untuned", "--device", &device, "--json"];
        let words = fixed.into_iter().map(str::to_owned).chain(shlex::split(options).unwrap_or_default());
        let words: Vec<String> = words.collect();
        let progress = Progress::new(names.len(), "counting");
        let mut kernels = Vec::new();
        for kernel in names {
            let (launched, counters, failed) = match self.count(words.clone(), &kernel) {
                Ok(Some(counters)) => (true, counters, None),
                Ok(None) => (false, Counters::new(), None),
                Err(error) if error.fault == Fault::Check => (true, Counters::new(), Some(error.message)),
                Err(error) => return Err(error),
            };
            kernels.push(Kernel { kernel, launched, counters, failed });
            progress.advance(1);
        }
        drop(progress);
        match kernels.iter().any(|own| own.launched) {
            true => Ok(kernels),
            false => {
                let names: Vec<String> = kernels.iter().map(|own| format!("`{}`", own.kernel)).collect();
                Err(Error::check(format!("Nsight Compute saw no launch on a GPU of {}", names.join(", "))))
            }
        }
    }
}

fn report(what: &str, counting: &Counting, machine: &MachineFacts, cases: &[Case], json: bool) -> Result<()> {
    let all = cases.iter().flat_map(|case| &case.kernels).filter(|own| own.launched);
    let (failed, count) = (all.clone().filter(|own| own.failed.is_some()).count(), all.count());
    if json {
        let case = |case: &Case| -> Result<Value> {
            let mut own = serde_json::to_value(case).map_err(|error| Error::check(error.to_string()))?;
            own[what] = case.name.clone().into();
            Ok(own)
        };
        let cases: Vec<Value> = cases.iter().map(case).collect::<Result<_>>()?;
        let totals = json!({ "counted": count - failed, "failed": failed });
        let all = json!({ "machine": machine, "profiler": counting.ncu, "cases": cases, "totals": totals });
        terminal::json(&all)?;
    } else {
        cases.iter().try_for_each(|case| terminal::print(&table::of_way(case, machine, &counting.ncu)))?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Error::check(format!("{failed} of {} failed", terminal::count(count, "kernel")))),
    }
}
