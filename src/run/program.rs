//! `stencilc run` of a program: steps in time, output on the way, checkpoints.

use super::animate::{self, AnimateArgs, Animation};
use super::kept::Kept;
use super::picture::{draw, level};
use super::{Args, Steps, note_replaced, problem_request, targets};
use crate::args::program::PlanArgs;
use crate::args::{ARCH, KernelArgs, Pair};
use crate::input::Input;
use crate::summary::Summary;
use crate::terminal::{self, Progress};
use crate::tuned::Sought;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use stencilc_compiler::ir::{FieldId, Handle, Program, VariableId};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::Step;
use stencilc_runtime::bench::{hash, hash_of_neighbours};
use stencilc_runtime::build::Build;
use stencilc_runtime::checkpoint::About;
use stencilc_runtime::device::Platform;
use stencilc_runtime::driver::{Backend, Driver};
use stencilc_runtime::files::{Pattern, no_place};
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::cpu::Interpreter;
use stencilc_runtime::program::kernels::{Kernels, Planned};
use stencilc_runtime::program::plan::ProgramPlan;
use stencilc_runtime::tune::database::EMULATOR;
use stencilc_runtime::{Array, Data, Device, Error, Result, npy};

/// Options of `run` that are about programs.
#[derive(clap::Args)]
pub struct ProgramArgs {
    /// Which program of the file
    #[arg(long, value_name = "NAME", conflicts_with = "stencil")]
    pub program: Option<String>,
    /// Of a program: write outputs, pictures and the checkpoint every so many steps, too. `{step}` in a file's name is the
    /// number of the step, `{step:06}` with zeros before it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Of a program: start each kernel by itself, and not those of many steps at once, as a CUDA graph
    #[arg(long)]
    pub no_graph: bool,
    /// Of a program: where to keep all that it holds, so that it can go on from there; every minute if --every says nothing.
    /// With `{step}` in its name each is kept, and otherwise the last
    #[arg(long, value_name = "FILE.npz")]
    pub checkpoint: Option<PathBuf>,
    /// Of a program: go on from a checkpoint
    #[arg(long, value_name = "FILE.npz")]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub animate: AnimateArgs,
}

/// A field that is written on the way.
struct Target {
    variable: VariableId,
    field: FieldId,
    pattern: Pattern,
    /// The level to draw, if it is a picture.
    level: Option<usize>,
}

/// What happens after each step.
struct Way<'a> {
    args: &'a Args,
    problem: &'a ProgramProblem,
    targets: &'a [Target],
    animations: &'a [Animation],
    about: &'a About,
    kept: &'a Kept<'a>,
    progress: &'a Progress,
    total: u64,
}

/// Runs a program.
///
/// # Errors
/// Something is wrong with the call, the arrays, the checkpoint or the device, or nothing can be written.
pub fn run(args: &Args, input: &Input, program: &Program, json: bool, start: Instant) -> Result<()> {
    refuse_options(args, program)?;
    let kept = Kept::new(args, false)?;
    let facade = program.facade();
    // To whoever runs it, it is no stencil.
    let of_program = |error: Error| {
        let (seen, own) = (format!("stencil `{}`", program.name), format!("program `{}`", program.name));
        Error { message: error.message.replace(&seen, &own), ..error }
    };
    let outputs =
        targets(&args.outputs, "--out", &facade, |field| field.role.is_written(), Steps::Each).map_err(of_program)?;
    let plots = targets(&args.plot, "--plot", &facade, |_| true, Steps::Each).map_err(of_program)?;
    let animate = &args.of_program.animate;
    let animated = animate.targets(args.of_program.every, &facade).map_err(of_program)?;
    let is_silent =
        outputs.is_empty() && plots.is_empty() && animated.is_empty() && args.of_program.checkpoint.is_none();
    if args.of_program.every.is_some() && is_silent {
        return Err(Error::call("--every says how often something is written, and nothing is")
            .help("add --out NAME=FILE.npy, --plot NAME=FILE.png or --checkpoint FILE.npz, or leave it out"));
    }
    let (device, no_gpu) = Device::choose(args.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("running on the cpu: {}", error.message));
    }
    let choices = args.kernel.args.choices();
    input.warn_of_program(program, choices.precision);
    args.kernel.refuse_idle(&choices)?;
    let since = Instant::now();
    let mut request = problem_request(args, &facade, &choices, kept.drawing(true))?;
    request.grid = request.grid.or(kept.resumed().and_then(|resumed| resumed.about.grid));
    let problem = Arc::new(ProgramProblem::new(program, request)?);
    let problem_seconds = since.elapsed().as_secs_f64();
    let hash = hash(&[input.source.text.as_bytes()]);
    let about = About::new(&problem, &hash, choices.contract);
    let before = kept.before(&about, &*problem)?;
    let variables: Vec<VariableId> = program.outer().collect();
    let mut all = Vec::new();
    for (field, path) in outputs {
        let pattern = Pattern::new(&path);
        all.push(Target { variable: variables[field.index()], field, pattern, level: None });
    }
    for (field, path) in plots {
        let pattern = Pattern::new(&path);
        let level = Some(level(args.level, &problem.outer, field)?);
        all.push(Target { variable: variables[field.index()], field, pattern, level });
    }
    let total: u64 = problem.staged.steps.iter().map(Step::times).sum();
    let frames = args.of_program.every.map_or(0, |every| (total - before).div_ceil(every) + 1);
    let mut animations = Vec::new();
    for (field, path) in animated {
        let level = level(args.level, &problem.outer, field)?;
        animations.push(Animation::new(variables[field.index()], field, level, path));
    }
    animate::check_room(&problem.outer, animations.len(), total - before, frames)?;
    problem.staged.rims.iter().for_each(|rim| terminal::note(&rim.told(&problem.staged)));
    let progress = Progress::steps((total - before.min(total)) as usize, "running");
    let way = Way {
        args,
        problem: &problem,
        targets: &all,
        animations: &animations,
        about: &about,
        kept: &kept,
        progress: &progress,
        total,
    };
    let since = Instant::now();
    let planned = |name: &str, arch: &str| {
        let tuned = tuned(args, input, &problem, &choices, name);
        planned(args, &problem, &choices, tuned, arch)
    };
    let results = match device.open(2)? {
        Platform::Cpu => way.run(Interpreter::new(Arc::clone(&problem)), &problem)?,
        Platform::Emulator(emulator) => way.on(emulator, planned(EMULATOR, ARCH)?)?,
        Platform::Gpu(gpu) => {
            let planned = planned(gpu.name(), &gpu.arch())?;
            way.on(gpu, planned)?
        }
    };
    let seconds = since.elapsed().as_secs_f64();
    drop(progress);
    animate::save(&animations, animate.fps)?;
    let outer = &problem.outer;
    let summaries: Vec<Summary> = outer
        .stencil
        .fields
        .iter()
        .zip(&results)
        .filter_map(|((_, field), data)| data.as_ref().map(|data| Summary::new(field, data, outer.grid, &outer.region)))
        .collect();
    let steps = total - before.min(total);
    let drawn = if kept.resumed().is_some() { Vec::new() } else { outer.drawn.clone() };
    if json {
        return terminal::json(&json!({
            "program": program.name,
            "device": device.to_string(),
            "grid": outer.grid,
            "precision": outer.precision,
            "steps": { "total": total, "done": steps },
            "outputs": summaries,
            "drawn": drawn,
            "seed": args.seed,
            "timings": {
                "parse": input.parse_seconds,
                "lower": input.lower_seconds,
                "problem": problem_seconds,
                "run": seconds,
                "total": start.elapsed().as_secs_f64(),
            },
        }));
    }
    if !drawn.is_empty() {
        terminal::note(&format!("drawn at random, with seed {}: {}", args.seed, drawn.join(", ")));
    }
    let mut text = format!("{} on {device}, {}, grid {}", program.name, outer.precision.name(), outer.grid);
    if total > 0 {
        text.push_str(&format!(", {}", terminal::count(steps as usize, "step")));
        if before > 0 {
            text.push_str(&format!(" after the {before} of the checkpoint"));
        }
        text.push_str(&format!(", {} steps a second", rate(steps as f64 / seconds)));
    }
    text.push('\n');
    let rows: Vec<Vec<String>> = summaries.iter().map(Summary::row).collect();
    text.push_str(&terminal::table(&rows, &Summary::NUMBERS));
    terminal::print(&text)
}

/// The plan that was tuned for a GPU, program and grid, where the options leave open which.
fn tuned(args: &Args, input: &Input, problem: &ProgramProblem, choices: &Choices, gpu: &str) -> Option<ProgramPlan> {
    let own = &args.of_program;
    if args.tuned.untuned || own.plan.is_given() || args.kernel.is_given_beside(&KernelArgs::OPEN) {
        return None;
    }
    let stencil = &problem.staged.program.name;
    let neighbours = problem.adjacency.as_deref().map(hash_of_neighbours);
    let extents = problem.outer.grid;
    let sought = Sought { source: &input.source.text, stencil, choices, extents, neighbours };
    sought.plan_on(gpu, |plan| plan.check(problem))
}

/// The plan that is asked for, that was tuned, or the usual one.
fn planned(
    args: &Args,
    problem: &ProgramProblem,
    choices: &Choices,
    tuned: Option<ProgramPlan>,
    arch: &str,
) -> Result<Planned> {
    let own = &args.of_program;
    if let Some(tuned) = tuned {
        return Planned::new(problem, &ProgramPlan { graph: !own.no_graph, ..tuned });
    }
    let mut plan = own.plan.plan(problem, choices, arch)?;
    plan.graph = !own.no_graph;
    Planned::new(problem, &plan)
}

impl Way<'_> {
    /// Runs the program by the kernels of a plan.
    fn on<M: Build>(&self, machine: Arc<M>, planned: Planned) -> Result<Vec<Option<Data>>> {
        let fused = Arc::clone(&planned.problem);
        self.run(Kernels::built(machine, planned)?, &fused)
    }

    /// Runs the program, fused or not, on a backend, and returns what the outputs hold, by field of the facade.
    fn run<B: Backend>(&self, backend: B, problem: &ProgramProblem) -> Result<Vec<Option<Data>>> {
        let mut driver = self.kept.driver(backend)?;
        if self.args.of_program.every.is_some() && self.kept.resumed().is_none() {
            self.write(&driver, 0)?;
        }
        driver.run(self.args.of_program.every, &mut |driver, times| self.after(driver, times))?;
        self.write(&driver, self.total)?;
        self.kept.keep(self.about, &driver)?;
        stencilc_runtime::program::results(problem, &driver)
    }

    /// After a step, or several.
    fn after<B: Backend>(&self, driver: &Driver<B>, times: u64) -> Result<()> {
        let done = driver.done();
        self.progress.advance(times as usize);
        // What the end holds is written there.
        if self.args.of_program.every.is_some_and(|every| done.is_multiple_of(every)) && done < self.total {
            self.write(driver, done)?;
        }
        self.kept.after(self.about, driver)
    }

    /// Writes the fields that are asked for.
    fn write<B: Backend>(&self, driver: &Driver<B>, step: u64) -> Result<()> {
        let outer = &self.problem.outer;
        for target in self.targets {
            let Some(data) = driver.get(target.variable)? else { continue };
            let field = &outer.stencil.fields[target.field];
            let path = target.pattern.at(step);
            match target.level {
                Some(level) => draw(&path, field, &data, outer, level)?,
                None => {
                    note_replaced(&self.args.inputs, &field.name, &path);
                    npy::save(Path::new(&path), &Array { shape: outer.grid.shape(field.place), data })?;
                }
            }
        }
        for animation in self.animations {
            if let Some(data) = driver.get(animation.variable)? {
                animation.take(&data, outer, step)?;
            }
        }
        Ok(())
    }
}

/// Refuses options that are about one stencil.
fn refuse_options(args: &Args, program: &Program) -> Result<()> {
    let given = [("--at", !args.at.is_empty()), ("--bits", args.bits), ("--runs", args.runs != 1)];
    let own = &args.of_program;
    let values =
        |option, pairs: &[Pair]| pairs.iter().map(|pair| (option, PathBuf::from(pair.value()))).collect::<Vec<_>>();
    let files = values("--out", &args.outputs).into_iter().chain(values("--plot", &args.plot));
    for (option, path) in files.chain(own.checkpoint.clone().map(|path| ("--checkpoint", path))) {
        if own.every.is_some() && Pattern::new(&path).at(0).as_os_str().as_encoded_bytes().contains(&b'{') {
            return Err(no_place(option, &path));
        }
    }
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Error::call(format!("{option} is for stencils, and `{}` is a program", program.name))
            .help("run one of its stencils: --stencil NAME")),
        None => Ok(()),
    }
}

/// A rate in a width that reads well.
pub fn rate(per_second: f64) -> String {
    match per_second {
        ..100.0 => format!("{per_second:.1}"),
        ..1e4 => format!("{per_second:.0}"),
        _ => format!("{:.0} thousand", per_second / 1e3),
    }
}
