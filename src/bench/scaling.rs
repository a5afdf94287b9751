//! `stencilc bench PROGRAM --gpus N`: how a program scales, on grids and over a mesh.

use super::mesh::Subject;
use super::{Args, open};
use crate::args::program::PlanArgs;
use crate::args::shapes::Shapes;
use crate::args::{self, Chosen};
use crate::build::mesh_program::merge;
use crate::input::Input;
use crate::run::mesh::way;
use crate::terminal::{self, Progress};
use serde_json::{Value, json};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_runtime::device::Platform;
use stencilc_runtime::job::scaling::{Asked, Brought, Point, Scaled, Scaling};
use stencilc_runtime::job::{Domain, Job, Subject as Computed};
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan};
use stencilc_runtime::{Cast, Device, Drawing, Error, Result, mesh};

/// Options that also make sense over meshes, beside those of all commands.
pub const OVER_MESHES: [&str; 7] = ["runs", "program", "fuse", "times", "gpus", "no_verify", "texts"];

/// Measures how a program on grids scales.
///
/// # Errors
/// A grid is not cut into so many parts, there are fewer GPUs, what is computed differs from the interpreter; or something is wrong with the
/// call.
pub fn on_grids(args: &Args, input: &Input, program: &Program, gpus: u16, json: bool) -> Result<()> {
    refuse_ranking(args)?;
    let kind = one_kind(&args.of_program.fuse)?;
    let steps = one_number_of_steps(args)?;
    let platform = platform(args)?;
    let mut cases = Vec::new();
    for precision in args.kernels.precisions() {
        let (choices, open) = choices(args, &platform, precision)?;
        for grid in args.kernels.grids(&platform)? {
            let cells = grid.chosen.grid.and_then(Grid::levels_of_cells);
            let own = ProgramPlan::of_parts(choices.clone().on_cells(&program.stencils, cells, open));
            let plan = ProgramPlan { steps, graph: !args.of_program.no_graph, kind: kind.unwrap_or(own.kind), ..own };
            let subject = Computed::Grid(program.clone());
            let job = job(args, Job::of(subject).standing_in(&input.source))?.on(domain(grid.chosen)).plan(plan);
            let is_open = open == Open::Kernel && kind.is_none();
            let scaled = measured(args, job, gpus, &platform, is_open)?;
            let name = format!("{} {} {}", program.name, precision.name(), grid.name);
            if json {
                let facts = json!({ "program": program.name, "precision": precision, "grid": grid.name });
                cases.push(as_json(args, facts, &scaled)?);
            } else {
                terminal::print(&text(args, &platform, &name, &scaled))?;
            }
        }
    }
    if json { terminal::json(&json!({ "machine": platform.facts(), "cases": cases })) } else { Ok(()) }
}

/// Measures how a program over a mesh scales.
///
/// # Errors
/// As on grids.
pub fn over_mesh(args: &Args, subject: &Subject, gpus: u16, json: bool) -> Result<()> {
    let own = &args.of_mesh;
    if own.texts.is_some() {
        return Err(Error::call(
            "--texts writes the kernels of all ways that are measured, and --gpus measures one way",
        )
        .help("`stencilc run --texts` writes those that are launched"));
    }
    let plan = PlanArgs::of(one_kind(&args.of_program.fuse)?);
    let (program, name) = (&*subject.program, &subject.program.program.name);
    // The interpreter has neither, and what makes no sense is refused all the same.
    merge(&plan, &own.over, name)?;
    own.over.choices(program.mesh.levels)?;
    let problem = subject.problem(&args.kernels, &own.over, args.of_program.times)?;
    let platform = platform(args)?;
    let choices = Choices { precision: problem.precision, contract: args.kernels.code.contract, ..Choices::default() };
    let path = own.over.file(name, &program.mesh.name)?;
    let domain = Domain::Mesh { mesh: mesh::load(path)?, levels: args.kernels.levels };
    let mut job = job(args, Job::of(Computed::Mesh(program.clone())).cast(Cast::Rounded))?.on(domain).choices(choices);
    let mut told = Value::Null;
    if !matches!(platform, Platform::Cpu) {
        let (choices, order) = way(&own.over, &plan, &problem)?;
        told = json!({ "method": order.name, "why": order.why });
        job = job.over_mesh(choices, Some(order.ordering));
    }
    let precision = problem.precision;
    drop(problem);
    let scaled = measured(args, job, gpus, &platform, false)?;
    if json {
        let facts = json!({ "program": name, "precision": precision, "mesh": path, "order": told });
        return terminal::json(&json!({ "machine": platform.facts(), "cases": [as_json(args, facts, &scaled)?] }));
    }
    terminal::print(&text(args, &platform, &format!("{name} {} {}", precision.name(), path.display()), &scaled))
}

/// Measures a job on one GPU and on several.
fn measured(args: &Args, job: Job, gpus: u16, platform: &Platform, is_open: bool) -> Result<Scaled> {
    let (devices, times) = (usize::from(gpus), args.of_program.times as usize);
    let scaling = Scaling::new(Asked { job, devices, times, method: args.method.method(), is_open }, platform)?;
    let progress = Progress::new(scaling.steps(), "measuring");
    scaling.measure(&|steps| progress.advance(steps))
}

/// What measures: the interpreter, too, whose parts share the cores.
fn platform(args: &Args) -> Result<Platform> {
    let (device, no_gpu) = Device::choose(args.kernels.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("no GPU is measured: {}", error.message));
    }
    let platform = open(device)?;
    if !matches!(platform, Platform::Gpu(_)) {
        terminal::note("all parts share the cores of this machine: no more are at work at once than for one");
    }
    Ok(platform)
}

/// The kernel that is asked for, or the usual one, of which the rest is open.
fn choices(args: &Args, platform: &Platform, precision: Precision) -> Result<(Choices, Open)> {
    let kernels = &args.kernels;
    let has_block = args.names.among(&["blocks"]).next().is_some();
    let blocks = if has_block { &args.blocks[..] } else { &[Shapes::Usual] };
    // What makes no difference for any is refused.
    let mut named = kernels.choices(blocks, precision)?;
    if kernels.is_open() && !has_block {
        return Ok(platform.usual(kernels.code.choices(Choices::default(), precision), Open::Kernel));
    }
    match (named.pop(), named.len()) {
        (Some(own), 0) => Ok((own, Open::Nothing)),
        (_, more) => Err(Error::call(format!("--gpus measures one kernel, and the options name {}", more + 1))
            .help("name one storage, one strategy and one block: --storage regular --access naive --blocks 32x4x1")),
    }
}

/// The plan that is asked for.
fn one_kind(kinds: &[PlanKind]) -> Result<Option<PlanKind>> {
    match kinds {
        [] => Ok(None),
        [own] => Ok(Some(*own)),
        [own, ..] => Err(Error::call(format!("--gpus measures one plan, and --fuse names {}", kinds.len()))
            .help(format!("give one of them: --fuse {}", own.name()))),
    }
}

/// How many steps one kernel computes.
fn one_number_of_steps(args: &Args) -> Result<usize> {
    match &args.of_program.steps[..] {
        _ if args.names.among(&["steps"]).next().is_none() => Ok(1),
        [own] => Ok(*own),
        all => Err(Error::call(format!("--gpus measures one plan, and --steps names {}", all.len()))
            .help("give one number: --steps 2")),
    }
}

/// Refuses what shows the fastest of several plans, of which one is measured.
fn refuse_ranking(args: &Args) -> Result<()> {
    match args.names.among(&["top", "hot"]).next() {
        None => Ok(()),
        Some(option) => {
            Err(Error::call(format!("--{option} makes no difference here: --gpus measures one plan, step after step"))
                .help("leave it out"))
        }
    }
}

/// A job with the numbers that options give it.
fn job(args: &Args, job: Job) -> Result<Job> {
    let settings = args::by_name(&args.kernels.set, "--set")?;
    let job = job.seed(args.kernels.seed).drawing(Drawing::Everything);
    Ok(settings.into_iter().fold(job, |job, (name, value)| job.set(&name, value)))
}

fn domain(chosen: Chosen) -> Domain {
    let Chosen { grid, adjacency } = chosen;
    let levels = grid.map(|grid| grid.nk);
    match adjacency {
        Some(adjacency) => Domain::Cells { adjacency, levels },
        None => Domain::Rows(grid.unwrap_or(Grid::rows(1, 1, 1))),
    }
}

/// What was measured, as data.
fn as_json(args: &Args, facts: Value, scaled: &Scaled) -> Result<Value> {
    let failed = |error| Error::check(format!("the results cannot be written as JSON: {error}"));
    let scaled = serde_json::to_value(scaled).map_err(failed)?;
    let how = json!({ "times": args.of_program.times, "method": args.method.method() });
    let all = [facts, how, scaled].into_iter().filter_map(|own| own.as_object().cloned()).flatten();
    Ok(Value::Object(all.collect()))
}

/// The same, to be read.
fn text(args: &Args, platform: &Platform, name: &str, scaled: &Scaled) -> String {
    let Scaled { plan, alone, weak, strong } = scaled;
    let plan = plan.as_ref().map_or(String::new(), |plan| format!(", {plan}"));
    let (times, method) = (args.of_program.times, args.method.method());
    let often = terminal::count(method.runs, "measurement");
    let mut text = format!(
        "{name} on {}{plan}; {often} of {} each\n",
        platform.facts().name,
        terminal::count(times as usize, "step")
    );
    match weak {
        Some(points) => text.push_str(&format!("weak, as many rows for each as one has:\n{}", table(points))),
        None => text.push_str("weak: not measured, since a mesh is as large as its file says\n"),
    }
    text.push_str(&format!("strong, the same in all:\n{}", table(strong)));
    if let Some(alone) = alone {
        text.push_str(&format!(
            "one GPU by itself takes {:.2} us a step with {}\n",
            alone.us_a_step.median_us, alone.plan
        ));
    }
    text
}

/// A line for each number of GPUs.
fn table(points: &[Point]) -> String {
    let is_on_grid = points.iter().any(|own| own.grid.is_some());
    let bytes = if is_on_grid { "B over a link" } else { "B to a part" };
    let size = if is_on_grid { "rows" } else { "elements" };
    let heads = ["GPUs", size, "us a step", "quartiles", "efficiency", "exchanges", bytes, "share alone", "not hidden"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for own in points {
        let [least, most] = own.parts;
        let brought =
            |number: &dyn Fn(&Brought) -> f64| own.brought.as_ref().map_or("-".to_owned(), |own| whole(number(own)));
        let us = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.2}"));
        let times = own.us_a_step;
        rows.push(vec![
            own.gpus.to_string(),
            if least == most { most.to_string() } else { format!("{least}..{most}") },
            us(Some(times.median_us)),
            format!("{:.2}..{:.2}", times.lower_quartile_us, times.upper_quartile_us),
            format!("{:.3}", own.efficiency),
            brought(&|own| own.exchanges),
            brought(&|own| own.bytes_over_a_link.unwrap_or(own.bytes_to_a_part + own.bytes_folded)),
            us(own.share.map(|share| share.median_us)),
            us(own.not_hidden_us),
        ]);
    }
    terminal::table(&rows, &[0, 1, 2, 3, 4, 5, 6, 7, 8])
}

/// A number that is whole where all steps do the same.
fn whole(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}
