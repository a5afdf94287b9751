//! `stencilc run` of a program or stencil over a mesh.

use super::program::{numbered, rate};
use super::{Args, note_replaced};
use crate::args::{Device, Pair};
use crate::input::Input;
use crate::output;
use crate::summary::Summary;
use crate::terminal::{self, Progress};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::ir::{MeshProgram, Role, VariableId};
use stencilc_compiler::mesh::{Choices, Layout, Strategy};
use stencilc_runtime::cache::{compile_cached, emulated_cached};
use stencilc_runtime::cuda::{self, Gpu};
use stencilc_runtime::emulate::{self, Compiler, Emulator, Settings};
use stencilc_runtime::mesh::order::{self, METHODS, Options, Ordering};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::driver::{Backend, Driver};
use stencilc_runtime::mesh::program::kernels::{Kernels, Placed};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::mesh::{self};
use stencilc_runtime::nvrtc::Kind;
use stencilc_runtime::{Array, Data, Error, Result, npy};

/// Options of `run` that are about meshes.
#[derive(clap::Args)]
pub struct MeshArgs {
    /// The mesh: a .npz file, or the text of OP2's airfoil
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub mesh: Option<PathBuf>,
    #[command(flatten)]
    pub how: HowArgs,
}

/// How stencils over meshes are computed.
#[derive(clap::Args)]
pub struct HowArgs {
    /// On a mesh: how elements that add to the same place are kept apart
    #[arg(long, value_name = "NAME", value_parser = strategies(), default_value = Strategy::default().name())]
    pub strategy: Strategy,
    /// On a mesh: how the parts of vectors lie in memory
    #[arg(long, value_name = "NAME", value_parser = layouts(), default_value = Layout::default().name())]
    pub vectors: Layout,
    /// On a mesh: the order of elements in memory; inputs and outputs stay in the order of the mesh
    #[arg(long, value_name = "METHOD", value_parser = orders(), default_value = "none")]
    pub order: String,
    /// On a mesh: the set whose elements are put in order, which the others follow; if not given, the last that is declared
    #[arg(long, value_name = "SET")]
    pub lead: Option<String>,
    /// On a mesh: threads of a block
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(32..=1024))]
    pub threads: u32,
    /// On a mesh: blocks that have to fit on a multiprocessor, which bounds registers; 0 leaves that to the compiler
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=32))]
    pub at_once: u32,
}

fn strategies() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::ALL.map(|own| PossibleValue::new(own.name()).help(own.summary())))
        .map(|name| Strategy::ALL.into_iter().find(|own| own.name() == name).unwrap_or_default())
}

fn layouts() -> impl TypedValueParser<Value = Layout> {
    PossibleValuesParser::new(Layout::ALL.map(|own| PossibleValue::new(own.name()).help(own.summary())))
        .map(|name| Layout::ALL.into_iter().find(|own| own.name() == name).unwrap_or_default())
}

fn orders() -> PossibleValuesParser {
    PossibleValuesParser::new(METHODS.iter().map(|own| PossibleValue::new(own.name()).help(own.summary())))
}

impl HowArgs {
    /// What they choose of kernels.
    pub fn choices(&self) -> Choices {
        Choices { strategy: self.strategy, layout: self.vectors, block: self.threads, blocks_at_once: self.at_once }
    }

    /// The order of elements in memory.
    ///
    /// # Errors
    /// There is no such set, or the mesh lacks what the method needs.
    pub fn ordering(&self, problem: &MeshProblem) -> Result<Ordering> {
        let sets: Vec<&str> = problem.mesh.sets.iter().map(|set| set.name.as_str()).collect();
        let declared = problem.program.mesh.sets.iter().last().map(|(_, set)| set.name.as_str());
        let name = self.lead.as_deref().or(declared).unwrap_or_default();
        let lead = problem.mesh.set_named(name).ok_or_else(|| {
            Error::call(format!("the mesh has no set `{name}`")).help(format!("its sets are {}", sets.join(", ")))
        })?;
        order::find(&self.order)?.ordering(&problem.mesh, &Options::new(lead))
    }
}

impl MeshArgs {
    /// Refuses what only meshes have.
    ///
    /// # Errors
    /// One of the options was given.
    pub fn refuse(&self) -> Result<()> {
        match self.mesh {
            Some(_) => Err(Error::call("--mesh is for stencils over a mesh, and this one runs over a grid")
                .help("a stencil over a mesh says so: `stencil name over mesh.set`")),
            None => Ok(()),
        }
    }
}

/// A field that is written.
struct Target {
    variable: VariableId,
    pattern: String,
}

/// What a number was after a step.
#[derive(Serialize)]
struct Told {
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
    refuse_options(args, program)?;
    let name = &program.program.name;
    let Some(path) = &args.of_mesh.mesh else {
        return Err(Error::call(format!("`{name}` runs over the mesh `{}`: which file holds it?", program.mesh.name))
            .help("give it: --mesh FILE; `stencilc mesh make` makes one"));
    };
    let mut taken = Vec::new();
    let targets = targets(&args.outputs, program, &mut taken)?;
    let (device, no_gpu) = Device::choose(args.device);
    let device = match (device, no_gpu) {
        (device, Some(error)) => {
            terminal::note(&format!("running on the cpu: {}", error.message));
            device
        }
        (device, None) => device,
    };
    let since = Instant::now();
    let choices = args.kernel.args.choices();
    let request = Request {
        program,
        precision: choices.precision,
        contract: choices.contract,
        mesh: mesh::load(path)?,
        levels: args.levels,
        arrays: arrays(&args.inputs)?,
        settings: crate::args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: args.cast,
    };
    let problem = MeshProblem::new(request)?;
    let problem_seconds = since.elapsed().as_secs_f64();
    let since = Instant::now();
    let (results, told, total) = match device {
        Device::Cpu => way(args, &problem, &targets, json, &Interpreter::new(&problem))?,
        Device::Emulate => {
            let (machine, compiler) = (Emulator::default(), Compiler::find()?);
            let load = |name: &str, text: &str| emulated(&compiler, name, text);
            let ordering = args.of_mesh.how.ordering(&problem)?;
            let placed = Rc::new(Placed::new(&problem, &ordering)?);
            let kernels = Kernels::new(&problem, &machine, args.of_mesh.how.choices(), placed, &load);
            way(args, &problem, &targets, json, &kernels)?
        }
        Device::Cuda(ordinal) => {
            let gpu = Gpu::open(ordinal)?;
            let load = |name: &str, text: &str| compiled(&gpu, name, text);
            let ordering = args.of_mesh.how.ordering(&problem)?;
            let placed = Rc::new(Placed::new(&problem, &ordering)?);
            let kernels = Kernels::new(&problem, &gpu, args.of_mesh.how.choices(), placed, &load);
            way(args, &problem, &targets, json, &kernels)?
        }
    };
    let seconds = since.elapsed().as_secs_f64();
    let own = |id: VariableId| &problem.program.program.variables[id];
    let summaries: Vec<Summary> = results
        .iter()
        .filter(|(id, _)| !problem.is_number(*id))
        .filter_map(|(id, data)| data.as_ref().map(|data| Summary::of_all(&own(*id).name, problem.shape(*id), data)))
        .collect();
    let numbers = results.iter().filter(|(id, _)| problem.is_number(*id));
    let numbers: Vec<(String, f64)> =
        numbers.filter_map(|(id, data)| Some((own(*id).name.clone(), data.as_ref()?.get(0)))).collect();
    if json {
        let numbers: serde_json::Map<String, serde_json::Value> =
            numbers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        return terminal::json(&json!({
            "program": name,
            "device": device.to_string(),
            "mesh": sizes(&problem),
            "precision": problem.precision,
            "steps": total,
            "numbers": numbers,
            "on_the_way": told,
            "outputs": summaries,
            "drawn": problem.drawn,
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
    if !problem.drawn.is_empty() {
        terminal::note(&format!("drawn at random, with seed {}: {}", args.seed, problem.drawn.join(", ")));
    }
    let mut text = format!("{name} on {device}, {}, {}", problem.precision.name(), sizes_text(&problem));
    if total > 0 {
        let rate = rate(total as f64 / seconds);
        text.push_str(&format!(", {}, {rate} steps a second", terminal::count(total as usize, "step")));
    }
    text.push('\n');
    for (name, value) in &numbers {
        text.push_str(&format!("{name} = {value:?}\n"));
    }
    let rows: Vec<Vec<String>> = summaries.iter().map(Summary::row).collect();
    text.push_str(&terminal::table(&rows, &Summary::NUMBERS));
    terminal::print(&text)
}

/// A kernel for the emulator.
pub fn emulated(compiler: &Compiler, name: &str, text: &str) -> Result<emulate::Kernel> {
    let source = emulate::Source { name, text };
    let built = emulated_cached(compiler, source, &Settings { optimise: 2, ..Settings::default() })?;
    let mut loaded = emulate::load(&built.compiled.image, &[source])?;
    loaded.pop().ok_or_else(|| Error::check(format!("`{name}` is not in what was compiled")))
}

/// A kernel for a GPU.
pub fn compiled(gpu: &Gpu, name: &str, text: &str) -> Result<cuda::Kernel> {
    let built = compile_cached(text, &format!("{name}.cu"), &gpu.arch(), Kind::Cubin)?;
    gpu.load(&built.compiled.image)?.kernel(name)
}

type Results = Vec<(VariableId, Option<Data>)>;

/// Runs a problem on a backend: what the outputs hold, what was told on the way, and how many steps there were.
fn way<B: Backend>(
    args: &Args,
    problem: &MeshProblem,
    targets: &[Target],
    json: bool,
    backend: &B,
) -> Result<(Results, Vec<Told>, u64)> {
    let mut driver = Driver::new(problem, backend)?;
    let total = driver.steps()?;
    let progress = Progress::steps(total as usize, "running");
    let way = Way { args, problem, targets, progress: &progress, json, total };
    let (mut told, mut steps) = (Vec::new(), 0);
    driver.run(&mut |driver, done| {
        steps = done;
        way.after(driver, done, &mut told)
    })?;
    way.write(&driver, total)?;
    Ok((driver.results()?, told, steps))
}

impl Way<'_> {
    fn after<B: Backend>(&self, driver: &Driver<B>, done: u64, told: &mut Vec<Told>) -> Result<()> {
        self.progress.advance(1);
        let Some(every) = self.args.of_program.every else { return Ok(()) };
        if !done.is_multiple_of(every) {
            return Ok(());
        }
        let mut line = format!("{done:>8}");
        for id in self.problem.outputs().filter(|id| self.problem.is_number(*id)) {
            if let Some(value) = driver.number(id)? {
                let name = self.problem.program.program.variables[id].name.clone();
                line.push_str(&format!("  {name} {}", scientific(value.real())));
                told.push(Told { step: done, name, value: value.real() });
            }
        }
        if !self.json && line.len() > 8 {
            self.progress.aside(|| terminal::print(&format!("{line}\n")))?;
        }
        // What the end holds is written there.
        if done < self.total { self.write(driver, done) } else { Ok(()) }
    }

    /// Writes the fields that are asked for.
    fn write<B: Backend>(&self, driver: &Driver<B>, step: u64) -> Result<()> {
        for Target { variable, pattern } in self.targets {
            let Some(data) = driver.get(*variable)? else { continue };
            let path = PathBuf::from(numbered(pattern, step));
            let name = &self.problem.program.program.variables[*variable].name;
            note_replaced(&self.args.inputs, name, &path);
            npy::save(Path::new(&path), &Array { shape: self.problem.shape(*variable), data })?;
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

/// The outputs that are to be written.
fn targets(pairs: &[Pair], program: &MeshProgram, taken: &mut Vec<PathBuf>) -> Result<Vec<Target>> {
    let mut all = Vec::new();
    for pair in pairs {
        let variables = || program.program.variables.iter().filter(|(_, own)| own.role.is_some());
        let written = |role: Option<Role>| role.is_some_and(Role::is_written);
        let names: Vec<&str> =
            variables().filter(|(_, own)| written(own.role)).map(|(_, own)| own.name.as_str()).collect();
        let found = variables().find(|(_, own)| own.name == pair.name());
        let Some((variable, _)) = found.filter(|(_, own)| written(own.role)) else {
            let error = Error::call(format!("`{}` has no output `{}`", program.program.name, pair.name()));
            return Err(match guess(pair.name(), names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("its outputs are {}", names.join(", "))),
            });
        };
        let path = PathBuf::from(numbered(pair.value(), 0));
        output::check("--out", &path, "npy")?;
        if taken.contains(&path) {
            return Err(Error::call(format!("two outputs would go to `{}`", path.display())));
        }
        taken.push(path);
        all.push(Target { variable, pattern: pair.value().to_owned() });
    }
    Ok(all)
}

/// Refuses options that are about grids.
fn refuse_options(args: &Args, program: &MeshProgram) -> Result<()> {
    let own = &args.of_program;
    let given = [
        ("--grid", args.grid.is_some()),
        ("--plot", !args.plot.is_empty()),
        ("--level", args.level.is_some()),
        ("--at", !args.at.is_empty()),
        ("--bits", args.bits),
        ("--timings", args.timings),
        ("--fuse", own.fuse.is_some()),
        ("--steps", own.steps.is_some()),
        ("--resident", own.resident.is_some()),
        ("--checkpoint", own.checkpoint.is_some()),
        ("--resume", own.resume.is_some()),
        ("--no-graph", own.no_graph),
        ("--animate", own.animate.is_given()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Error::call(format!("{option} is for grids, and `{}` runs over a mesh", program.program.name))
                .help("leave it out"))
        }
        None => Ok(()),
    }
}

fn sizes(problem: &MeshProblem) -> serde_json::Value {
    let sets = problem.program.mesh.sets.iter();
    json!(sets.map(|(id, set)| (set.name.clone(), problem.bound.size(id))).collect::<BTreeMap<_, _>>())
}

/// `7381 nodes, 7200 cells`: of what the mesh has how much.
fn sizes_text(problem: &MeshProblem) -> String {
    let sets = problem.program.mesh.sets.iter();
    let sets: Vec<String> = sets.map(|(id, set)| format!("{} {}", problem.bound.size(id), set.name)).collect();
    let levels = if problem.program.mesh.levels { format!(", {} levels", problem.levels) } else { String::new() };
    format!("mesh of {}{levels}", sets.join(", "))
}

#[cfg(test)]
mod tests {
    use super::scientific;

    #[test]
    fn numbers_are_written_as_in_c() {
        assert_eq!([4.254_06e-4, 1.0, -2.5e10].map(scientific), ["4.25406e-04", "1.00000e+00", "-2.50000e+10"]);
    }
}
