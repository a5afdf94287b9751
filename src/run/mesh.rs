//! `stencilc run` of a program or stencil over a mesh.

use super::kept::Kept;
use super::outputs::{self, Target};
use super::program::rate;
use super::{Args, note_replaced};
use crate::args::Pair;
use crate::args::mesh::MeshArgs;
use crate::args::program::PlanArgs;
use crate::build::mesh_program::merge;
use crate::build::{refuse_file, write};
use crate::drawn::refuse_of_grids;
use crate::input::Input;
use crate::summary::Summary;
use crate::terminal::{self, Progress};
use crate::tuned::Sought;
use serde::Serialize;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use stencilc_compiler::ir::{MeshProgram, VariableId};
use stencilc_compiler::mesh::{Chain, MeshChoices};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::bench::hash;
use stencilc_runtime::build::Build;
use stencilc_runtime::checkpoint::About;
use stencilc_runtime::device::Platform;
use stencilc_runtime::driver::{Backend, Driver};
use stencilc_runtime::mesh;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::{MeshProblem, MeshScript, Request, measure};
use stencilc_runtime::tune::database::{EMULATOR, For};
use stencilc_runtime::{Array, Data, Device, Error, Result, files, npy};

/// What a number was after a step.
#[derive(Serialize)]
struct Record {
    step: u64,
    name: String,
    value: f64,
}

/// What happens on the way.
struct Way<'a> {
    args: &'a Args,
    problem: &'a MeshProblem,
    targets: &'a [Target],
    progress: &'a Progress,
    json: bool,
    total: u64,
}

/// Runs a program over a mesh.
///
/// # Errors
/// Something is wrong with the call, the mesh, the arrays or the device, or nothing can be written.
pub fn run(args: &Args, input: &Input, program: &MeshProgram, json: bool, start: Instant) -> Result<()> {
    refuse_options(args, input, program)?;
    let name = &program.program.name;
    merge(&args.of_program.plan, &args.of_mesh, name)?;
    let path = args.of_mesh.file(name, &program.mesh.name)?;
    let texts = Rc::new(Texts::new(args.texts.as_deref())?);
    let kept = Kept::new(args, true)?;
    let mut targets = outputs::targets(&args.outputs, args.vtu.as_deref(), program)?;
    let (device, no_gpu) = Device::choose(args.device);
    let device = match (device, no_gpu) {
        (device, Some(error)) => {
            terminal::note(&format!("running on the cpu: {}", error.message));
            device
        }
        (device, None) => device,
    };
    if device == Device::Cpu && args.texts.is_some() {
        return Err(Error::call("--texts writes the kernels that are launched, and the cpu launches none")
            .help("--device emulate launches them without a GPU"));
    }
    let since = Instant::now();
    let choices = args.kernel.args.choices();
    input.warn_of_program(&program.program, choices.precision);
    let request = Request {
        program,
        precision: choices.precision,
        contract: choices.contract,
        mesh: mesh::load(path)?,
        levels: args.levels.or(kept
            .resumed()
            .and_then(|own| own.about.mesh.as_ref())
            .map(|own| own.levels)
            .filter(|_| program.mesh.levels)),
        arrays: arrays(&args.inputs)?,
        settings: crate::args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: args.casting(),
        drawing: kept.drawing(is_program(input, name)),
    };
    let problem = Arc::new(MeshProblem::new(request)?);
    outputs::check(&mut targets, args.vtu.as_deref(), &problem)?;
    args.of_mesh.leading_set(&problem)?;
    let mut order = None;
    let problem_seconds = since.elapsed().as_secs_f64();
    let since = Instant::now();
    let about = About::over_mesh(&problem, &hash(&[input.source.text.as_bytes()]), choices.contract);
    let before = kept.before(&about, &MeshScript::new(&problem, &|_| false))?;
    let platform = device.open(2)?;
    let tuned = tuned(args, input, &problem, &platform);
    let (of_mesh, plan) = tuned.as_ref().map_or((&args.of_mesh, &args.of_program.plan), |(mesh, plan)| (mesh, plan));
    let merge = merge(plan, of_mesh, name)?;
    let how = MeshChoices { merge, ..of_mesh.choices()? };
    let mut on_machine = || -> Result<Rc<Renumbered>> {
        let ordered = of_mesh.one_ordering(&problem)?;
        let renumbered = Rc::new(Renumbered::new(&problem, &ordered.ordering)?);
        order = Some(ordered);
        Ok(renumbered)
    };
    let call =
        Call { args, problem: &problem, targets: &targets, how, texts, json, kept: &kept, about: &about, before };
    let Done { results, told, steps: total, pace, one_kernel } = match platform {
        Platform::Cpu => call.way(Interpreter::new(Arc::clone(&problem)))?,
        Platform::Emulator(emulator) => call.on(emulator, on_machine()?)?,
        Platform::Gpu(gpu) => call.on(gpu, on_machine()?)?,
    };
    let seconds = since.elapsed().as_secs_f64();
    let own = |id: VariableId| &problem.program.program.variables[id];
    let summaries: Vec<Summary> = results
        .iter()
        .filter(|(id, _)| !problem.is_number(*id))
        .filter_map(|(id, data)| data.as_ref().map(|data| Summary::of_all(&own(*id).name, problem.shape(*id), data)))
        .collect();
    let numbers = results.iter().filter(|(id, _)| problem.is_number(*id));
    let numbers: Vec<(String, Option<f64>)> =
        numbers.map(|(id, data)| (own(*id).name.clone(), data.as_ref().map(|data| data.get(0)))).collect();
    let drawn = if kept.resumed().is_some() { &[] } else { problem.drawn.as_slice() };
    if json {
        let numbers: serde_json::Map<String, serde_json::Value> =
            numbers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        return terminal::json(&json!({
            "program": name,
            "device": device.to_string(),
            "mesh": sizes(&problem),
            "precision": problem.precision,
            "steps": total,
            "resumed_after": kept.resumed().map(|_| before),
            "order": order.as_ref().map(|order| json!({ "method": order.name, "why": order.why })),
            "numbers": numbers,
            "on_the_way": told,
            "pace": pace,
            "one_kernel": one_kernel,
            "outputs": summaries,
            "of_the_mesh": problem.came_along,
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
    let mut text = format!("{name} on {device}, {}, {}", problem.precision.name(), sizes_text(&problem));
    if let Some(Pace { first_seconds, steps_per_second }) = pace {
        text.push_str(&format!(", {}", terminal::count(total as usize, "step")));
        if before > 0 {
            text.push_str(&format!(" after the {before} of the checkpoint"));
        }
        if let Some(later) = steps_per_second {
            text.push_str(&format!(
                ", {} steps a second after the first, which took {first_seconds:.2} s",
                rate(later)
            ));
        }
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
    terminal::print(&text)
}

/// The way to compute it that was tuned for this GPU and mesh, where the options leave open which.
fn tuned(args: &Args, input: &Input, problem: &MeshProblem, platform: &Platform) -> Option<(MeshArgs, PlanArgs)> {
    let gpu = match platform {
        Platform::Cpu => return None,
        Platform::Emulator(_) => EMULATOR,
        Platform::Gpu(gpu) => gpu.name(),
    };
    if args.tuned.untuned || !args.of_mesh.is_open() || args.of_program.plan.is_given() {
        return None;
    }
    let For { stencil, precision, extents, neighbours, .. } = For::mesh(problem, String::new());
    let choices = Choices { precision, ..Choices::default() };
    Sought { source: &input.source.text, stencil: &stencil, choices: &choices, extents, neighbours }.over_mesh_on(gpu)
}

/// The texts of kernels, in a folder if one is given.
pub struct Texts {
    folder: Option<PathBuf>,
    /// Names that are taken, and by which texts.
    names: RefCell<BTreeMap<String, String>>,
}

impl Texts {
    /// Tells of the folder that they are written into, before anything is computed: which kernels there are comes out later.
    ///
    /// # Errors
    /// It is a file, or nothing can be written there.
    pub fn new(folder: Option<&Path>) -> Result<Self> {
        if let Some(folder) = folder {
            refuse_file("--texts", folder)?;
            files::will_write_into(files::Kind::Code, "--texts", folder, "cu")?;
        }
        Ok(Self { folder: folder.map(Path::to_owned), names: RefCell::default() })
    }

    /// Writes a text under a name of its own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, name: &str, text: &str) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut names = self.names.borrow_mut();
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut all = std::iter::once(name.to_owned()).chain(numbered);
        let Some(free) = all.find(|name| names.get(name).is_none_or(|own| own == text)) else { return Ok(()) };
        if names.insert(free.clone(), text.to_owned()).is_none() {
            write(&folder.join(format!("{free}.cu")), text.as_bytes())?;
        }
        Ok(())
    }
}

type Results = Vec<(VariableId, Option<Data>)>;

/// What became of a program.
struct Done {
    /// What the outputs hold.
    results: Results,
    /// What was told on the way.
    told: Vec<Record>,
    steps: u64,
    pace: Option<Pace>,
    /// The calls of each kernel that computes several.
    one_kernel: Vec<Vec<String>>,
}

/// How fast steps of the outermost loops were. The first one waits for tables and kernels to be made.
#[derive(Serialize)]
struct Pace {
    first_seconds: f64,
    /// Of all later ones, with what is written on the way; nothing if there are none.
    steps_per_second: Option<f64>,
}

/// What is run.
struct Call<'a> {
    args: &'a Args,
    problem: &'a Arc<MeshProblem>,
    targets: &'a [Target],
    how: MeshChoices,
    texts: Rc<Texts>,
    json: bool,
    kept: &'a Kept<'a>,
    about: &'a About,
    /// Steps that were done before.
    before: u64,
}

impl Call<'_> {
    /// Runs it by kernels on a machine.
    fn on<M: Build>(&self, machine: Arc<M>, renumbered: Rc<Renumbered>) -> Result<Done> {
        let texts = Rc::clone(&self.texts);
        let kernels = Kernels::new(Arc::clone(self.problem), machine, self.how, renumbered);
        let kernels = kernels.read_by(Rc::new(move |name, text| texts.keep(name, text)));
        let kernels = if self.args.of_program.no_graph { kernels.unrecorded() } else { kernels };
        let calls = |chain: &Chain| chain.stages.iter().map(|own| own.stencil.name.clone()).collect();
        let merged = self.problem.chains.iter().filter(|chain| kernels.merges(chain)).map(calls);
        Ok(Done { one_kernel: merged.collect(), ..self.way(&kernels)? })
    }

    /// Runs it on a backend.
    fn way<B: Backend>(&self, backend: B) -> Result<Done> {
        let &Call { args, problem, targets, json, before, .. } = self;
        let start = Instant::now();
        let mut driver = self.kept.driver(backend)?;
        let total = driver.total()?;
        let progress = Progress::steps(total.saturating_sub(before) as usize, "running");
        let way = Way { args, problem, targets, progress: &progress, json, total };
        let (mut told, mut steps, mut first) = (Vec::new(), 0, None);
        driver.run(args.of_program.every, &mut |driver, times| {
            steps += times;
            if first.is_none() {
                driver.wait()?;
                first = Some((start.elapsed().as_secs_f64(), times));
            }
            way.after(driver, times, &mut told)?;
            self.kept.after(self.about, driver)
        })?;
        driver.wait()?;
        let later = |(seconds, times): (f64, u64)| (steps - times) as f64 / (start.elapsed().as_secs_f64() - seconds);
        let pace = first
            .map(|first| Pace { first_seconds: first.0, steps_per_second: (steps > first.1).then(|| later(first)) });
        way.write(&driver, driver.done())?;
        self.kept.keep(self.about, &driver)?;
        Ok(Done { results: driver.results()?, told, steps, pace, one_kernel: Vec::new() })
    }
}

impl Way<'_> {
    fn after<B: Backend>(&self, driver: &Driver<B>, times: u64, told: &mut Vec<Record>) -> Result<()> {
        let done = driver.done();
        self.progress.advance(times as usize);
        let Some(every) = self.args.of_program.every else { return Ok(()) };
        if !done.is_multiple_of(every) {
            return Ok(());
        }
        let mut line = format!("{done:>8}");
        for id in self.problem.outputs().filter(|id| self.problem.is_number(*id)) {
            if let Some(value) = driver.number(id)? {
                let name = self.problem.program.program.variables[id].name.clone();
                line.push_str(&format!("  {name} {}", scientific(value.real())));
                told.push(Record { step: done, name, value: value.real() });
            }
        }
        if !self.json && line.len() > 8 {
            self.progress.aside(|| terminal::print(&format!("{line}\n")))?;
        }
        // What the end holds is written there; where numbers say how often loops are run, nobody knows when that is.
        if done < self.total || !driver.knows_total() { self.write(driver, done) } else { Ok(()) }
    }

    /// Writes the fields that are asked for.
    fn write<B: Backend>(&self, driver: &Driver<B>, step: u64) -> Result<()> {
        for target in self.targets {
            let path = target.path(step);
            let mut all = Vec::new();
            for &variable in target.variables() {
                let Some(data) = driver.get(variable)? else { continue };
                note_replaced(&self.args.inputs, &self.problem.program.program.variables[variable].name, &path);
                all.push((variable, data));
            }
            if !all.is_empty() {
                target.write(self.problem, &path, all)?;
            }
        }
        Ok(())
    }
}

/// Arrays from files, by the names of their fields.
fn arrays(pairs: &[Pair]) -> Result<BTreeMap<String, Array>> {
    let named = crate::args::by_name(pairs, "--in")?;
    named.into_iter().map(|(name, path)| Ok((name, npy::load(path.as_ref())?))).collect()
}

/// A number as C's `%.5e` writes it.
fn scientific(value: f64) -> String {
    let text = format!("{value:.5e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        None => text,
    }
}

/// Options of `run` that also make sense over meshes, beside those of all commands.
const OPTIONS: [&str; 13] = [
    "inputs",
    "draw",
    "outputs",
    "vtu",
    "texts",
    "cast",
    "program",
    "fuse",
    "every",
    "no_graph",
    "checkpoint",
    "resume",
    "untuned",
];

/// Whether a name is that of a program, and not of a stencil that runs by itself.
fn is_program(input: &Input, name: &str) -> bool {
    input.mesh_programs.iter().any(|own| own.program.name == name)
}

/// Refuses options that are about grids, and those of programs of a stencil.
fn refuse_options(args: &Args, input: &Input, program: &MeshProgram) -> Result<()> {
    let name = &program.program.name;
    refuse_of_grids(&args.names, &OPTIONS, name)?;
    if !is_program(input, name) {
        args.names.refuse_of_programs(name)?;
    }
    Ok(())
}

fn sizes(problem: &MeshProblem) -> serde_json::Value {
    let sets = problem.program.mesh.sets.iter();
    json!(sets.map(|(id, set)| (set.name.clone(), problem.bound.size(id))).collect::<BTreeMap<_, _>>())
}

/// `node: 7381, cell: 7200`: of what the mesh has how much.
fn sizes_text(problem: &MeshProblem) -> String {
    let sets = problem.program.mesh.sets.iter();
    let sets: Vec<String> = sets.map(|(id, set)| format!("{}: {}", set.name, problem.bound.size(id))).collect();
    let mut levels = if problem.program.mesh.levels { format!(", levels: {}", problem.levels) } else { String::new() };
    // Of a stencil by itself it is known before.
    let computed = measure::only_call(problem).and_then(|call| problem.computed(call.stencil, &problem.params));
    if let Ok(Range { start, end }) = computed
        && end - start < problem.levels
    {
        levels.push_str(&format!(", of which {start}..{end} are computed"));
    }
    format!("{}{levels}", sets.join(", "))
}

#[cfg(test)]
mod tests {
    use super::scientific;

    #[test]
    fn numbers_are_written_as_in_c() {
        assert_eq!([4.254_06e-4, 1.0, -2.5e10].map(scientific), ["4.25406e-04", "1.00000e+00", "-2.50000e+10"]);
    }
}
