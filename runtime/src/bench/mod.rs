//! Measures kernels: how long each takes, beside what this machine takes to copy the same fields.
//!
//! A [`Case`] is a problem, what the interpreter makes of it, and the limit. A [`Candidate`] is one of its kernels. Each is
//! compiled ahead, on as many cores as there are, then measured by itself and compared with the interpreter in the same
//! go, so that no time is that of a wrong result. Kernels of one layout do so on the same fields. [`rows`] keeps what came of it.

pub mod limit;
pub mod log;
mod platform;
pub mod rows;
pub mod statistics;
pub mod sweep;
#[cfg(test)]
pub(crate) mod tests;

use crate::build::Build;
use crate::cache::Built;
use crate::cuda::Gpu;
use crate::device::Platform;
use crate::emulate::Emulator;
use crate::error::{Error, Result};
use crate::execute::{DeviceArrays, Repeat};
use crate::interpreter::interpret;
use crate::machine::Machine;
use crate::problem::Problem;
use crate::same::Same;
use crate::verify::{self, Expected, Mismatch, Verdict, expect, plan_among};
use limit::{Limit, Streams};
use rows::{KernelFacts, Measured, Method, Occupancy, Outcome, Row, Subject};
use statistics::Statistics;
use std::time::{Instant, SystemTime};
use stencilc_compiler::analysis::cost::cost;
use stencilc_compiler::analysis::levels::{Known, candidates};
use stencilc_compiler::analysis::reached::classes;
use stencilc_compiler::analysis::reuse::{Evaluation, evaluate};
use stencilc_compiler::cells::lookups::{Work, work};
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::plan::estimate::estimate;
use stencilc_compiler::plan::{Choices, Plan, plan};
use stencilc_compiler::storage::layouts::Layouts;

/// What is said of a result that nobody looked at.
const NOT_COMPARED: &str = "not compared";

/// One problem, prepared for its kernels to be measured.
pub struct Case {
    /// What is computed.
    pub problem: Problem,
    /// What the interpreter makes of it, if kernels are compared with it.
    pub expected: Option<Expected>,
    /// How fast a copy of its fields is; nothing of the interpreter.
    pub limit: Option<Limit>,
    /// What the cells of a column evaluate, each with how many cells do.
    column: Vec<(Evaluation, usize)>,
    compulsory_bytes: usize,
    /// Layouts that kernels have between them.
    layouts: Layouts,
}

/// One kernel.
pub struct Candidate {
    /// What there is to say about it.
    pub facts: KernelFacts,
    kernel: Option<cuda::Kernel>,
    image: Vec<u8>,
}

/// A hash of several parts; their lengths keep `ab`, `c` apart from `a`, `bc`.
pub fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// A hash of which cells are neighbours.
pub fn hash_of_neighbours(adjacency: &Adjacency) -> String {
    hash(&adjacency.neighbours().each_ref().map(|list| bytemuck::cast_slice(list)))
}

/// Now, in UTC.
pub fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

impl Case {
    /// Prepares a problem: computes what is expected, and measures the limit.
    ///
    /// # Errors
    /// A comparison would prove nothing ([`expect`]); the limit cannot be measured.
    pub fn new(problem: Problem, platform: &Platform, method: Method) -> Result<Self> {
        let expected = match method.verify {
            true => Some(expect(&problem, &|_| {}).map_err(|error| {
                let help = error.help.clone().unwrap_or_default();
                error.help(format!("{help}; or give --no-verify, which compares nothing"))
            })?),
            false => None,
        };
        let Problem { stencil, precision, grid, region, params, .. } = &problem;
        let known = Known::new(stencil, *precision, grid.nk, params);
        let classes = classes(stencil, &known, candidates(stencil, 0..grid.nk).end);
        let here = classes.iter().map(|class| (evaluate(stencil, &class.reached), class.levels_in(&region.k)));
        let column = here.filter(|(_, levels)| *levels > 0).collect();
        let compulsory_bytes = cost(stencil, *precision).bytes;
        let limit = limit(platform, &problem, method)?;
        Ok(Self { problem, expected, limit, column, compulsory_bytes, layouts: Layouts::default() })
    }

    /// Plans one of its kernels.
    fn plan(&self, choices: &Choices) -> Result<Plan> {
        plan_among(&self.problem, choices, Some(&self.layouts))
    }

    /// What a kernel moves, in bytes from memory a cell that would take as long: one that moves less should be faster. The
    /// grid's layout is not made for it, and so its tables are left out.
    ///
    /// # Errors
    /// The kernel makes no sense.
    pub fn estimate(&self, choices: &Choices, platform: &Platform) -> Result<f64> {
        let Problem { stencil, region, .. } = &self.problem;
        // Some make sense for a known grid only.
        let plan = plan(stencil, choices, None).or_else(|_| self.plan(choices))?;
        let levels = region.k.len();
        let table_loads = self.work(&plan, levels).table_loads;
        let estimate = estimate(&plan, levels, self.compulsory_bytes as f64, table_loads);
        Ok(estimate.bytes(region.cells(), platform.room()))
    }

    fn work(&self, plan: &Plan, levels: usize) -> Work {
        let column: Vec<(&Evaluation, usize)> = self.column.iter().map(|(own, cells)| (own, *cells)).collect();
        work(plan, levels, &column)
    }

    /// What there is to say about it; `file` is how the stencil's file was named, `source` its text, `grid` how the grid
    /// was named.
    pub fn subject(&self, file: &str, source: &str, grid: String, seed: u64) -> Subject {
        let Problem { stencil, precision, region, adjacency, .. } = &self.problem;
        Subject {
            file: file.to_owned(),
            source: hash(&[source.as_bytes()]),
            text: Some(source.to_owned()),
            stencil: stencil.name.clone(),
            precision: *precision,
            grid,
            extents: self.problem.grid,
            neighbours: adjacency.as_deref().map(hash_of_neighbours),
            region: region.clone(),
            cells: region.cells(),
            parameters: self.problem.settings(),
            seed,
        }
    }
}

/// How fast a copy of a problem's fields is.
fn limit(platform: &Platform, problem: &Problem, method: Method) -> Result<Option<Limit>> {
    let streams = Streams::of(problem);
    let repeat = platform.repeat(method)?;
    match platform {
        Platform::Cpu => Ok(None),
        Platform::Emulator(emulator) => limit::measure(&**emulator, &streams, repeat),
        Platform::Gpu(gpu) => limit::measure(&**gpu, &streams, repeat),
    }
}

impl Candidate {
    /// The kernel of a case that is chosen, printed.
    ///
    /// # Errors
    /// It makes no sense for the case.
    pub fn new(case: &Case, choices: &Choices) -> Result<Self> {
        let plan = case.plan(choices)?;
        let kernel = cuda::print(&plan)?;
        let levels = case.problem.region.k.len();
        // What is looked up is told by offsets, which say nothing about a grid without rows.
        let work = case.problem.adjacency.is_none().then(|| case.work(&plan, levels));
        let tables = plan
            .known_grid
            .iter()
            .flat_map(|known_grid| &known_grid.layout.tables)
            .map(|table| size_of_val(&table[..]));
        let tables: usize = tables.sum();
        let facts = KernelFacts {
            options: choices.words(),
            choices: Some(choices.clone()),
            name: Some(kernel.name.to_string()),
            plan: Some(hash(&[kernel.text.as_bytes()])),
            least_bytes: case.compulsory_bytes as f64 + tables as f64 / case.problem.region.cells().max(1) as f64,
            table_loads: work.map(|work| work.table_loads),
            ..KernelFacts::interpreter(case)
        };
        Ok(Self { facts, kernel: Some(kernel), image: Vec::new() })
    }

    /// The interpreter in the place of a kernel.
    pub fn interpreter(case: &Case) -> Self {
        Self { facts: KernelFacts::interpreter(case), kernel: None, image: Vec::new() }
    }

    /// Bytes of its text.
    pub fn bytes(&self) -> usize {
        self.kernel.as_ref().map_or(0, |kernel| kernel.text.len())
    }

    /// Compiles it for a machine, or reads it from the cache. Returns the seconds that the compiler took.
    ///
    /// # Errors
    /// The compiler is missing, or refuses it.
    pub fn compile(&mut self, platform: &Platform) -> Result<f64> {
        let Some(kernel) = &self.kernel else { return Ok(0.0) };
        let Built { compiled, cached, seconds } = platform.compile(&kernel.name, &kernel.text)?;
        self.facts.resources = compiled.resources.into_iter().find(|own| own.kernel == *kernel.name);
        self.image = compiled.image;
        Ok(if cached { 0.0 } else { seconds })
    }

    /// Measures it, once compiled, and completes its row. A result that differs from the interpreter's has failed.
    ///
    /// # Errors
    /// It cannot be launched, or it ends with an error.
    pub fn measure(&self, platform: &Platform, case: &Case, stages: &mut Stages, row: &mut Row) -> Result<()> {
        row.kernel = self.facts.clone();
        row.date = date();
        let Some((kernel, choices)) = self.kernel.as_ref().zip(self.facts.choices.as_ref()) else {
            row.outcome = Outcome::Measured(interpreted(case, platform.repeat(row.method)?)?);
            return Ok(());
        };
        let plan = case.plan(choices)?;
        let how = (platform, row.method);
        match platform {
            Platform::Cpu => return Err(Error::call("the interpreter takes no kernels")),
            Platform::Emulator(emulator) => {
                let loaded = emulator.bring(&self.image, &kernel.name, &kernel.text)?;
                let ready = stages.emulator.with_same(&**emulator)?;
                row.outcome = launched(&**emulator, ready, &plan, kernel, &loaded, case, how)?;
            }
            Platform::Gpu(gpu) => {
                let loaded = gpu.bring(&self.image, &kernel.name, &kernel.text)?;
                let threads = choices.block.iter().product();
                let blocks = loaded.blocks_at_once(threads, 0)?;
                let part = f64::from(blocks * threads) / f64::from(gpu.threads_at_once().max(1));
                row.kernel.occupancy = Some(Occupancy { blocks, part });
                let ready = stages.gpu.with_same(&**gpu)?;
                row.outcome = launched(&**gpu, ready, &plan, kernel, &loaded, case, how)?;
            }
        }
        Ok(())
    }
}

impl KernelFacts {
    fn interpreter(case: &Case) -> Self {
        Self {
            options: "interpreter".to_owned(),
            choices: None,
            name: None,
            plan: None,
            compulsory_bytes: case.compulsory_bytes,
            least_bytes: case.compulsory_bytes as f64,
            table_loads: None,
            resources: None,
            occupancy: None,
        }
    }
}

/// Fields on a machine that kernels of one layout are measured on, one after the other: most of the time that measuring a
/// kernel takes would go into packing them and looking at what it computed.
#[derive(Default)]
pub struct Stages {
    emulator: Ready<Emulator>,
    gpu: Ready<Gpu>,
}

/// What stands ready on a machine.
struct Ready<M: Machine> {
    stage: Option<DeviceArrays<M>>,
    same: Option<Same<M>>,
}

impl<M: Machine> Default for Ready<M> {
    fn default() -> Self {
        Self { stage: None, same: None }
    }
}

impl<M: Build> Ready<M> {
    /// The same, with what compares results.
    fn with_same(&mut self, machine: &M) -> Result<&mut Self> {
        if self.same.is_none() {
            self.same = Some(Same::new(machine)?);
        }
        Ok(self)
    }
}

/// Runs a kernel, compares what it computed, and takes the times.
fn launched<M: Machine>(
    machine: &M,
    ready: &mut Ready<M>,
    plan: &Plan,
    kernel: &cuda::Kernel,
    loaded: &M::Kernel,
    case: &Case,
    (platform, method): (&Platform, Method),
) -> Result<Outcome> {
    let problem = &case.problem;
    // Whoever fails leaves none: what is on it cannot be trusted any more.
    let mut own = match ready.stage.take().filter(|own| own.suits(plan)) {
        Some(own) => {
            if case.expected.is_some() {
                own.renew(machine)?;
            }
            own
        }
        None => DeviceArrays::new(machine, plan, kernel, problem, platform.repeat(method)?.rotation)?,
    };
    let launched = own.launch(machine, plan, kernel, loaded, problem, platform.repeat(method)?)?;
    let mut measured = Measured { sets: own.sets, set_bytes: own.set_bytes, ..measured(case, &launched.times)? };
    if let Some(expected) = &case.expected {
        measured.result = "equal".to_owned();
        let is_right = ready.same.as_ref().map(|same| own.is_as_remembered(machine, same, &launched)).transpose()?;
        if is_right != Some(true) {
            let execution = own.inspect(machine, problem, launched)?;
            match verify::verdict(plan, problem, expected, &execution) {
                Verdict::Equal { .. } => own.remember(machine)?,
                Verdict::Different { .. } => measured.result = "different as expected".to_owned(),
                Verdict::Compiled | Verdict::Skipped | Verdict::Within { .. } => {
                    measured.result = NOT_COMPARED.to_owned()
                }
                Verdict::Refused { reason } => return Ok(Outcome::Failed { reason }),
                Verdict::Failed { mismatches, damage, .. } => {
                    return Ok(Outcome::Failed { reason: failure(&mismatches, &damage) });
                }
            }
        }
    }
    ready.stage = Some(own);
    Ok(Outcome::Measured(measured))
}

/// What is wrong with a result, in a line.
fn failure(mismatches: &[Mismatch], damage: &[String]) -> String {
    let differs = mismatches.iter().map(|Mismatch { field, cell, cells, expected, found, .. }| {
        format!("`{field}` differs in {cells} cells, first at {cell}: {found:?} instead of {expected:?}")
    });
    differs.chain(damage.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// Times the interpreter, whose result is right by definition.
fn interpreted(case: &Case, repeat: Repeat) -> Result<Measured> {
    let mut outputs = case.problem.outputs.clone();
    let inputs = case.problem.inputs();
    let job = case.problem.job(&inputs);
    let mut times = Vec::new();
    for _ in 0..repeat.warmups + repeat.runs {
        let start = Instant::now();
        interpret(&job, &mut outputs, &|_| {})?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let result = "equal".to_owned();
    Ok(Measured { result, ..measured(case, &times[repeat.warmups..])? })
}

fn measured(case: &Case, times: &[f64]) -> Result<Measured> {
    let statistics = Statistics::of(times).ok_or_else(|| Error::call("nothing was launched").help("give --runs 1"))?;
    let bytes = case.compulsory_bytes * case.problem.region.cells();
    let of_limit = case.limit.as_ref().map(|limit| limit.statistics.median_us / statistics.median_us);
    Ok(Measured {
        result: NOT_COMPARED.to_owned(),
        sets: 1,
        set_bytes: 0,
        gb_per_s: bytes as f64 / (statistics.median_us * 1e3),
        limit: case.limit.clone(),
        of_limit: of_limit.filter(|part| part.is_finite()),
        statistics,
        times_us: times.to_vec(),
    })
}
