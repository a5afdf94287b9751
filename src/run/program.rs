//! `stencilc run` of a program, on a grid or over a mesh, or of a stencil over a mesh: steps in time, output on the way, checkpoints.

use super::animate::{self, AnimateArgs, Animation};
use super::idle;
use super::kept::{Kept, resumed};
use super::outputs::{self, Target};
use super::picture::{Look, SIDE};
use super::texts::Texts;
use super::together::Together;
use super::way::{Done, Pace, Way, Written};
use super::{Args, Declared, DeclaredField, PICTURE, Steps, arrays, grid, mesh, stored, targets};
use crate::args::grid::of_cells;
use crate::args::program::PlanArgs;
use crate::args::{self, Pair};
use crate::input::Input;
use crate::print::{self, Cells, Printing};
use crate::summary::Summary;
use crate::terminal::{self, Progress};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;
use stencilc_compiler::grid::Region;
use stencilc_runtime::device::Platform;
use stencilc_runtime::files::{Pattern, no_place};
use stencilc_runtime::job::{Checked, Domain, Job, Ready, Run, Subject};
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::{Device, Error, Result};

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
    /// Of a program: on so many GPUs, each with some rows of a grid or a part of a mesh, from that of --device on; the bits are those of
    /// one. With --device cpu or native it is cut into as many parts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub gpus: Option<u16>,
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

/// Points along the longer side of a frame of an animation over a mesh.
const FRAME_SIDE: usize = 600;

/// What the outputs hold at the end.
#[derive(Default)]
struct Results {
    fields: Vec<Summary>,
    /// Values of numbers; nothing of one that never got any.
    numbers: Vec<(String, Option<f64>)>,
}

/// Runs a program.
///
/// # Errors
/// Something is wrong with the call, the arrays, the checkpoint or the device, or nothing can be written.
pub fn run(
    args: &Args,
    input: &Input,
    subject: Subject,
    (json, start): (bool, Instant),
    others: &Together,
) -> Result<()> {
    let own = &args.of_program;
    match &subject {
        Subject::Grid(program) => grid::refuse_options(args, program)?,
        Subject::Mesh(program) => mesh::refuse_options(args, input, program)?,
    }
    refuse_patterns(args)?;
    let texts = Texts::new(args.texts.as_deref().filter(|_| others.writes()))?;
    let kept = Kept::new(args)?;
    let is_over_mesh = matches!(subject, Subject::Mesh(_));
    let resumed = resumed(args, is_over_mesh, others)?;
    let declared = declared(&subject, input);
    let files = outputs::targets(args, &declared, is_over_mesh)?;
    let plots = targets(&args.plot, "--plot", &declared, PICTURE, Steps::Each)?;
    let animated = own.animate.targets(own.every, &declared)?;
    let numbers = declared.fields.iter().filter(|own| own.is_number && own.is_written);
    let numbers: Vec<String> = numbers.map(|own| own.name.clone()).collect();
    let given = declared.fields.iter().filter(|own| own.is_read).map(|own| own.name.clone()).collect();
    let is_silent = files.is_empty()
        && plots.is_empty()
        && animated.is_empty()
        && numbers.is_empty()
        && own.checkpoint.is_none()
        && !subject.program().prints();
    if own.every.is_some() && is_silent {
        return Err(Error::call("--every says how often something is written, and nothing is")
            .help("add --out NAME=FILE.npy, --plot NAME=FILE.png or --checkpoint FILE.npz, or leave it out"));
    }
    let device = others.device(idle::device(args))?;
    idle::tell_of_steps(args, subject.program());
    mesh::refuse_texts(args, device)?;
    let choices = args.kernel.args.choices();
    input.warn_of_program(subject.program(), choices.precision);

    let since = Instant::now();
    let job = others.ranks().cloned().into_iter().fold(job(args, input, subject, others)?.printing(), Job::ranks);
    let mut ready = resumed.into_iter().fold(job, Job::resume).ready()?;
    let problem_seconds = since.elapsed().as_secs_f64();
    let cells = cells(args, &declared, &ready)?;
    print::tell(ready.prints(), &input.source);
    let mut written = Written { files, pictures: Vec::new(), animations: Vec::new(), numbers, given };
    if let Checked::Mesh(problem) = &ready.checked {
        outputs::check(&mut written.files, args.vtu.as_deref(), problem)?;
        args.of_mesh.leading_set(problem)?;
    }
    for (name, path) in plots {
        written.pictures.push((Look::new(&ready.checked, &name, args.level, SIDE)?, Pattern::new(&path)));
    }
    for (name, path) in animated {
        written.animations.push(Animation::new(Look::new(&ready.checked, &name, args.level, FRAME_SIDE)?, path));
    }
    let (total, before) = (ready.total()?, ready.before());
    let known = ready.knows_total().then_some(total);
    let left = total.saturating_sub(before);
    let frames = own.every.map_or(0, |every| left.div_ceil(every) + 1);
    animate::check_room(&written.animations, left, frames)?;
    match &ready.checked {
        Checked::Grid(problem) => {
            problem.staged.rims.iter().for_each(|rim| terminal::note(&rim.told(&problem.staged)));
        }
        Checked::Mesh(problem) => problem.unwritten().iter().for_each(|read| terminal::note(read.told())),
    }

    let progress = Progress::steps(left as usize, "running");
    let since = Instant::now();
    let platform = device.open(ready.checked.cells())?;
    let order = choose(args, input, &mut ready, device, &platform)?;
    if own.no_graph {
        ready.unrecorded();
    }
    ready.read_by(Rc::new(move |name, text| texts.keep(name, text)));
    let checked = ready.checked.clone();
    let drawn = if own.resume.is_some() { &[] } else { checked.drawn() };
    if !json && !drawn.is_empty() {
        progress.aside(|| terminal::note(&format!("drawn at random, with seed {}: {}", args.seed, drawn.join(", "))));
    }
    ready.will_be_asked(asked(args, &written));
    others.agree()?;
    let mut run = ready.start_on(platform)?;
    others.agree()?;
    let way = Way {
        args,
        checked: &checked,
        written: &written,
        kept: &kept,
        cells: &cells,
        source: &input.source,
        progress: &progress,
        json,
        total: known,
        since,
        others,
    };
    let Done { steps, told, printed: printed_before, has_shown_end, pace } = way.run(&mut run)?;
    let seconds = since.elapsed().as_secs_f64();
    drop(progress);
    if others.writes() {
        animate::save(&written.animations, own.animate.fps)?;
    }

    let Results { fields: summaries, numbers } = results(&checked, &run, &written.numbers)?;
    let printed = run.printed(&|print| cells.of(print))?;
    let name = checked.script().program().name.clone();
    if json {
        let all = json!({
            "program": name,
            "device": device.to_string(),
            "processes": others.ranks().map_or(1, |ranks| ranks.ranks()),
            "precision": choices.precision,
            "pace": pace,
            "outputs": summaries,
            "prints": print::json(&printed, &input.source),
            "printed_on_the_way": printed_before,
            "drawn": drawn,
            "seed": args.seed,
            "timings": {
                "parse": input.parse_seconds,
                "lower": input.lower_seconds,
                "problem": problem_seconds,
                "run": seconds,
                "total": start.elapsed().as_secs_f64(),
            },
        });
        let special = match &checked {
            Checked::Grid(problem) => {
                json!({ "grid": problem.outer.grid, "steps": { "total": total, "done": steps } })
            }
            Checked::Mesh(problem) => json!({
                "mesh": mesh::sizes(problem),
                "steps": steps,
                "resumed_after": own.resume.as_ref().map(|_| before),
                "order": order,
                "numbers": numbers.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<String, Value>>(),
                "on_the_way": told,
                "one_kernel": run.merged,
                "of_the_mesh": problem.came_along,
            }),
        };
        let [all, special] = [all, special].map(|own| own.as_object().cloned().unwrap_or_default());
        return terminal::json(&Value::Object(all.into_iter().chain(special).collect()));
    }
    let place = match &checked {
        Checked::Grid(problem) => format!("grid {}", problem.outer.grid),
        Checked::Mesh(problem) => mesh::sizes_text(problem),
    };
    let mut text = format!("{name} on {device}, {}, {place}", choices.precision.name());
    if let Some(ranks) = others.ranks() {
        text.push_str(&format!(", {} processes", ranks.ranks()));
    }
    if pace.is_some() || total > 0 {
        text.push_str(&format!(", {}", terminal::count(steps as usize, "step")));
        if before > 0 {
            text.push_str(&format!(" after the {before} of the checkpoint"));
        }
    }
    if let Some(Pace { first_steps, first_seconds, steps_per_second: Some(later) }) = pace {
        let (first, later) = (if first_steps > 1 { format!(" {first_steps}") } else { String::new() }, rate(later));
        text.push_str(&format!(", {later} steps a second after the first{first}, which took {first_seconds:.2} s"));
    }
    text.push('\n');
    for (name, value) in &numbers {
        match value {
            Some(value) => text.push_str(&format!("{name} = {value:?}\n")),
            None => text.push_str(&format!("{name} never got a value\n")),
        }
    }
    let rows: Vec<Vec<String>> = summaries.iter().map(Summary::row).collect();
    text.push_str(&terminal::table(&rows, &Summary::NUMBERS));
    if !has_shown_end {
        text.push_str(&print::table(&printed, &cells, &input.source, None));
    }
    terminal::print(&text)
}

/// What is asked of a run on its way and at its end, in this order.
fn asked(args: &Args, written: &Written) -> String {
    let own = &args.of_program;
    let files: Vec<&str> = written.files.iter().flat_map(Target::fields).collect();
    let pictures: Vec<&str> = written.pictures.iter().map(|(look, _)| look.field.as_str()).collect();
    let animations: Vec<&str> = written.animations.iter().map(Animation::field).collect();
    format!("{files:?} {pictures:?} {animations:?} {:?} {}", own.every, own.checkpoint.is_some())
}

/// Refuses files of steps that would all have one name.
fn refuse_patterns(args: &Args) -> Result<()> {
    let own = &args.of_program;
    let values =
        |option, pairs: &[Pair]| pairs.iter().map(|pair| (option, PathBuf::from(pair.value()))).collect::<Vec<_>>();
    let files = values("--out", &args.outputs).into_iter().chain(values("--plot", &args.plot));
    let files = files.chain(args.vtu.clone().map(|path| ("--vtu", PathBuf::from(path))));
    for (option, path) in files.chain(own.checkpoint.clone().map(|path| ("--checkpoint", path))) {
        if own.every.is_some() && Pattern::new(&path).at(0).as_os_str().as_encoded_bytes().contains(&b'{') {
            return Err(no_place(option, &path));
        }
    }
    Ok(())
}

fn declared(subject: &Subject, input: &Input) -> Declared {
    let program = subject.program();
    let is_number = |id| matches!(subject, Subject::Mesh(own) if own.numbers.contains(&id));
    let field = |(id, own): (_, &stencilc_compiler::ir::program::Variable)| {
        own.role.map(|role| DeclaredField {
            name: own.name.clone(),
            is_read: role.is_read(),
            is_written: role.is_written(),
            is_number: is_number(id),
        })
    };
    let is_stencil = matches!(subject, Subject::Mesh(_)) && !mesh::is_program(input, &program.name);
    let what = if is_stencil { "stencil" } else { "program" };
    Declared {
        what: format!("{what} `{}`", program.name),
        fields: program.variables.iter().filter_map(field).collect(),
        has_parts: matches!(subject, Subject::Mesh(_)),
    }
}

/// Where prints are shown.
fn cells(args: &Args, declared: &Declared, ready: &Ready) -> Result<Cells> {
    let (middle, fields) = match &ready.checked {
        Checked::Grid(problem) => (Some(problem.outer.region.clone()), problem.staged.program.stencils.as_slice()),
        Checked::Mesh(problem) => (None, problem.program.program.stencils.as_slice()),
    };
    let field = fields.iter().flat_map(|own| own.fields.iter()).map(|(_, field)| field);
    let field = field.into_iter().find(|field| field.role.is_read());
    let places = ready.prints().map(|print| (print.grid, print.set.as_deref())).collect();
    Cells::new(&args.at, args.bits, Printing { what: declared.what.clone(), field, places, middle })
}

/// What is asked for: arrays, parameters, where it is computed.
fn job(args: &Args, input: &Input, subject: Subject, others: &Together) -> Result<Job> {
    let mut files = BTreeMap::new();
    let choices = args.kernel.args.choices();
    let (domain, arrays, is_program) = match &subject {
        Subject::Grid(program) => {
            let cells = of_cells(args.grid.as_ref(), args.levels);
            args.kernel.refuse_idle(&args.kernel.choices_of(program, cells))?;
            let domain = grid::domain(args)?;
            let is_in_rows = !matches!(domain, Some(Domain::Cells { .. }));
            let place = |name: &str| program.declared(name).map(|id| program.variables[id].place);
            let place = |name: &str| place(name).filter(|_| is_in_rows);
            // Of several processes each reads its rows.
            if others.ranks().is_some() {
                files = stored(&args.inputs, place)?;
                (domain, BTreeMap::new(), true)
            } else {
                (domain, arrays(&args.inputs, place)?, true)
            }
        }
        Subject::Mesh(program) => {
            let domain = mesh::domain(args, program)?;
            (Some(domain), arrays(&args.inputs, |_| None)?, mesh::is_program(input, &program.program.name))
        }
    };
    let mut job = Job::of(subject).standing_in(&input.source).choices(choices).seed(args.seed).cast(args.casting());
    job = job.drawing(args.drawing(is_program));
    job = domain.into_iter().fold(job, Job::on);
    job = arrays.into_iter().fold(job, |job, (name, array)| job.array(&name, array));
    job = files.into_iter().fold(job, |job, (name, file)| job.file(&name, file));
    let settings = args::by_name(&args.set, "--set")?;
    Ok(settings.into_iter().fold(job, |job, (name, value)| job.set(&name, value)))
}

/// Chooses kernels on a device: those asked for, those tuned, or the usual ones. Returns the order of the elements of a mesh.
fn choose(args: &Args, input: &Input, ready: &mut Ready, device: Device, platform: &Platform) -> Result<Option<Value>> {
    ready.devices(args.of_program.gpus.map_or(1, usize::from));
    let parts = ready.parts();
    match ready.checked.clone() {
        Checked::Grid(problem) => {
            let cells = problem.outer.grid.levels_of_cells();
            let (choices, open) = args.kernel.open_on(device);
            let choices = choices.on_cells(&problem.staged.program.stencils, cells, open);
            let plan = grid::plan(args, input, &problem, &choices, platform)?;
            // What is fast on one may suit no part; what was asked for is refused with a reason.
            let is_asked = args.of_program.plan.is_given();
            if let Some(plan) = plan.filter(|plan| parts == 1 || is_asked || plan.suits_parts()) {
                ready.plan(plan);
            }
            Ok(None)
        }
        Checked::Mesh(problem) => {
            let Some((choices, order)) = mesh::how(args, input, &problem, platform)? else { return Ok(None) };
            let told = json!({ "method": order.name, "why": order.why });
            ready.over_mesh(choices, order.ordering);
            Ok(Some(told))
        }
    }
}

/// Where a program on a grid computes what is declared by a name.
fn region_of(problem: &ProgramProblem, name: &str) -> Region {
    let own = problem.staged.program.declared(name);
    own.map_or_else(|| problem.outer.region.clone(), |variable| problem.region_of(variable))
}

/// What the outputs hold: fields, and numbers.
fn results(checked: &Checked, run: &Run, numbers: &[String]) -> Result<Results> {
    let mut results = Results::default();
    for name in run.outputs() {
        if let (Checked::Grid(problem), Some(rows)) = (checked, run.by_rows(&name)?) {
            let field = problem.outer.stencil.field_named(&name).map(|id| &problem.outer.stencil.fields[id]);
            let summary = field.map(|field| Summary::of_rows(field, &rows, &region_of(problem, &name)));
            results.fields.extend(summary.transpose()?);
            continue;
        }
        let held = run.held(&name)?;
        match (held, checked) {
            (held, _) if numbers.contains(&name) => results.numbers.push((name, held.map(|own| own.data.get(0)))),
            (Some(array), Checked::Grid(problem)) if let Some(id) = problem.outer.stencil.field_named(&name) => {
                let (outer, region) = (&problem.outer, region_of(problem, &name));
                results.fields.push(Summary::new(&outer.stencil.fields[id], &array.data, outer.grid, &region));
            }
            (Some(array), Checked::Mesh(problem)) => {
                let variables = problem.program.program.variables.iter();
                let own = variables.filter(|(_, own)| own.name == name && own.role.is_some());
                let written = own.map(|(id, _)| problem.written(id)).next();
                let is_computed = |index: usize| written.as_ref().is_none_or(|written| written.holds(index));
                results.fields.push(Summary::of_those(&name, array.shape, &array.data, is_computed));
            }
            (Some(array), Checked::Grid(_)) => {
                results.fields.push(Summary::of_those(&name, array.shape, &array.data, |_| true));
            }
            (None, _) => {}
        }
    }
    Ok(results)
}

/// A rate in a width that reads well.
fn rate(per_second: f64) -> String {
    match per_second {
        ..100.0 => format!("{per_second:.1}"),
        ..1e4 => format!("{per_second:.0}"),
        _ => format!("{:.0} thousand", per_second / 1e3),
    }
}
