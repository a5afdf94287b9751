//! `stencilc tune` of a stencil over a mesh: strategies, layouts and orders by a model, and the best of them by measuring.

use super::Args;
use crate::args::mesh::{Ordered, Threads};
use crate::bench::mesh::{Meter, Row, Variant};
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::input::Input;
use crate::terminal::{self, Progress};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use stencilc_compiler::analysis::roofline::{GPUS, Gpu as Sheet, Limits};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::MeshStencil;
use stencilc_compiler::mesh::{MeshChoices, VectorLayout};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::Device;
use stencilc_runtime::bench::rows::MachineFacts;
use stencilc_runtime::bench::statistics::Statistics;
use stencilc_runtime::bench::{date, hash};
use stencilc_runtime::build::Build;
use stencilc_runtime::clock::{Budget, Watch};
use stencilc_runtime::device::Platform;
use stencilc_runtime::mesh::order::auto;
use stencilc_runtime::mesh::program::kernels::Renumbered;
use stencilc_runtime::mesh::program::{Binding, MeshProblem, measure};
use stencilc_runtime::tune::database::{Entry, name_of};
use stencilc_runtime::tune::search::{Found, Kind, Space, Trial, Tried, search};
use stencilc_runtime::verify::mesh::Expected;
use stencilc_runtime::{Error, Fault, Result};

/// The GPU that the model predicts for where there is none.
const GPU: &str = "h200";

/// What a copy comes to of the bandwidth that a data sheet tells.
const OF_SHEET: f64 = 0.83;

/// Variants are measured that should take at most so many times what the best should.
const HOPELESS: f64 = 2.0;

/// Threads that are tried of what is fast with the usual ones.
const THREADS: [Threads; 4] = [
    Threads { block: 64, at_once: 0 },
    Threads { block: 256, at_once: 0 },
    Threads { block: 128, at_once: 6 },
    Threads { block: 128, at_once: 8 },
];

/// A way to compute the stencil, and what is known of it.
#[derive(Serialize)]
struct Candidate {
    #[serde(flatten)]
    variant: Variant,
    /// By the model.
    predicted_us: f64,
    bound_by: Binding,
    memory_bytes: f64,
    /// The options of `run` that choose it.
    options: String,
    /// What was measured, if it was.
    measured: Option<Row>,
    /// Which order it is on.
    #[serde(skip)]
    place: usize,
    /// Variants of one kind differ in their threads alone.
    #[serde(skip)]
    kind: usize,
    #[serde(skip)]
    is_asked: bool,
}

/// A mesh in some order.
struct Place {
    ordered: Ordered,
    renumbered: Rc<Renumbered>,
}

/// What is tuned.
struct Tuned<'a> {
    args: &'a Args,
    problem: Arc<MeshProblem>,
    bytes: usize,
    places: Vec<Place>,
    candidates: Vec<Candidate>,
    /// How it is computed where nobody chooses.
    usual: Variant,
    found: Found,
    /// The file that remembers it.
    kept: Option<PathBuf>,
}

/// Tunes a stencil over a mesh.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device, no strategy can compute it, or a kernel differs from the interpreter.
pub fn tune(args: &Args, input: &Input, stencil: &MeshStencil, json: bool) -> Result<()> {
    let kernels = &args.search.0;
    refuse_of_grids(&args.names, &["budget", "runs", "forget"], &stencil.stencil.name)?;
    let source = hash(&[input.source.text.as_bytes()]);
    let problem = DrawnOver {
        stencil,
        precision: kernels.precisions().first().copied().unwrap_or_default(),
        contract: kernels.code.contract,
        over: &args.of_mesh,
        levels: kernels.levels,
        set: &kernels.set,
        seed: kernels.seed,
        from_zero: false,
    };
    let problem = Arc::new(problem.problem()?);
    let [bytes, _] = measure::bytes(&problem)?;
    let (places, candidates, found) = (Vec::new(), Vec::new(), Found::default());
    let usual = Variant::new(MeshChoices::default(), "none");
    let mut tuned = Tuned { args, problem, bytes, places, candidates, usual, found, kept: None };
    tuned.place()?;
    let (device, no_gpu) = Device::choose(kernels.device);
    // Of a GPU that is in no table, arithmetic is as that of the one that is usual.
    let usual = GPUS.iter().find(|gpu| gpu.name == GPU).unwrap_or(&GPUS[0]);
    let platform = device.open(2)?;
    let machine = platform.facts();
    let database = if device == Device::Cpu { None } else { args.database()? };
    if let Some(database) = &database {
        database.check(name_of(&machine), &stencil.stencil.name, &source)?;
    }
    let keep = |tuned: &mut Tuned| -> Result<()> {
        if let (Some(database), Some(entry)) = (&database, tuned.entry(&machine)?) {
            tuned.kept = Some(database.keep(name_of(&machine), machine.arch.as_deref(), &source, entry)?);
        }
        Ok(())
    };
    match platform {
        Platform::Cpu => {
            let why = no_gpu.map_or_else(|| "--device cpu".to_owned(), |error| error.message);
            terminal::note(&format!("nothing is measured, and kernels stand as the model ranks them: {why}"));
            tuned.predict(&tuned.limits(usual, None))?;
            tuned.report(usual.name, json)
        }
        Platform::Emulator(emulator) => {
            terminal::note("times of the emulator say nothing of a GPU: the call is tried");
            tuned.predict(&tuned.limits(usual, None))?;
            tuned.measure(&Meter::new(&emulator, args.method.method().runs, tuned.bytes)?)?;
            keep(&mut tuned)?;
            tuned.report(usual.name, json)
        }
        Platform::Gpu(gpu) => {
            let meter = Meter::new(&gpu, args.method.method().runs, tuned.bytes)?;
            let sheet = Sheet::by_driver_name(gpu.name()).unwrap_or(usual);
            tuned.predict(&tuned.limits(sheet, Some(meter.copy)))?;
            tuned.measure(&meter)?;
            keep(&mut tuned)?;
            tuned.report(gpu.name(), json)
        }
    }
}

impl Tuned<'_> {
    /// Puts the mesh in the orders that are searched among, and in the one that is usual.
    fn place(&mut self) -> Result<()> {
        let own = &self.args.of_mesh;
        let mut names = own.orders(&["none", "rcm", "hilbert"]);
        let asked = names.clone();
        let is_asked = |name: &str| asked.contains(&name);
        if !names.contains(&auto::AUTO) {
            names.push(auto::AUTO);
        }
        for name in names {
            match own.ordering(&self.problem, name) {
                Ok(ordered) => {
                    if name == auto::AUTO {
                        self.usual.order = ordered.name;
                        ordered.tell();
                    }
                    if self.places.iter().all(|place| place.ordered.name != ordered.name) {
                        let renumbered = Rc::new(Renumbered::new(&self.problem, &ordered.ordering)?);
                        self.places.push(Place { ordered, renumbered });
                    }
                }
                // A mesh without coordinates has other orders.
                Err(error) if own.has_order() && is_asked(name) => return Err(error),
                Err(error) => terminal::note(&format!("--order {name} is left out: {}", error.message)),
            }
        }
        Ok(())
    }

    fn limits(&self, sheet: &Sheet, copy: Option<f64>) -> Limits {
        let limits = sheet.limits(self.problem.precision);
        Limits { gb_per_s: copy.unwrap_or(OF_SHEET * limits.gb_per_s), ..limits }
    }

    /// Ranks all by the model.
    fn predict(&mut self, limits: &Limits) -> Result<()> {
        let own = &self.args.of_mesh;
        let call = measure::only_call(&self.problem)?;
        let stencil = &self.problem.program.stencils[call.stencil];
        let (strategies, layouts) = (own.strategies_for(stencil), own.layouts(&VectorLayout::ALL));
        let asked = own.orders(&self.places.iter().map(|place| place.ordered.name).collect::<Vec<_>>());
        let mut kinds = Vec::new();
        for (place, Place { ordered, .. }) in self.places.iter().enumerate() {
            let is_asked = asked.iter().any(|name| *name == ordered.name || *name == auto::AUTO);
            let each = strategies.iter().flat_map(|&strategy| layouts.iter().map(move |&layout| (strategy, layout)));
            kinds.extend(each.filter(|_| is_asked).map(|(strategy, layout)| (place, strategy, layout)));
        }
        let asked = kinds.len();
        // The usual one is measured, whatever is asked for.
        let MeshChoices { strategy, layout, block, .. } = self.usual.choices;
        if let Some(place) = self.places.iter().position(|place| place.ordered.name == self.usual.order)
            && kinds.iter().all(|kind| (kind.0, kind.1.name(), kind.2) != (place, strategy.name(), layout))
        {
            kinds.push((place, strategy, layout));
        }
        let progress = Progress::new(kinds.len(), "predicting");
        let mut refused = BTreeMap::new();
        for (kind, (place, strategy, layout)) in kinds.into_iter().enumerate() {
            let Place { ordered, renumbered } = &self.places[place];
            let mut threads = own.threads(&[block]);
            threads.extend(THREADS.iter().filter(|_| !own.has_threads()));
            for Threads { block, at_once } in threads {
                let choices =
                    MeshChoices { strategy, layout, block, blocks_at_once: at_once, ..MeshChoices::default() };
                match renumbered.works(&self.problem, call, &choices) {
                    Ok(works) => {
                        let variant = Variant::new(choices, ordered.name);
                        let (predicted_us, bound_by) = works.predicted(limits);
                        let (options, memory_bytes) = (variant.words(), works.memory_bytes());
                        let measured = None;
                        self.candidates.push(Candidate {
                            variant,
                            predicted_us,
                            bound_by,
                            memory_bytes,
                            options,
                            measured,
                            place,
                            kind,
                            is_asked: kind < asked,
                        });
                    }
                    Err(error) if error.fault == Fault::Input => {
                        refused.entry(strategy.name()).or_insert(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            progress.advance(1);
        }
        drop(progress);
        if self.candidates.iter().all(|own| !own.is_asked)
            && let Some((_, error)) = refused.pop_first()
        {
            return Err(error);
        }
        for (strategy, error) in &refused {
            terminal::note(&format!("{strategy} is left out: {}", error.message));
        }
        self.candidates.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
        Ok(())
    }

    /// Measures what is usual, and those that may be faster, as many as the budget allows.
    fn measure<M: Build>(&mut self, meter: &Meter<M>) -> Result<()> {
        let (watch, time) = (Watch::start(), Duration::from_secs_f64(self.args.budget));
        let expected = Expected::new(&self.problem)?;
        let options = self.usual.words();
        // Where that cannot be made, what the model ranks first is.
        let usual = self.candidates.iter().position(|own| own.options == options).unwrap_or(0);
        let kind_of: Vec<usize> = self.candidates.iter().map(|own| own.kind).collect();
        let mut kinds: BTreeMap<usize, Kind> = BTreeMap::new();
        for (number, own) in self.candidates.iter().enumerate() {
            let first = || Kind { begin: vec![number], estimate: own.predicted_us, turn: 0 };
            kinds.entry(own.kind).or_insert_with(first);
        }
        let asked: Vec<bool> = self.candidates.iter().map(|own| own.is_asked).collect();
        let (is_asked, beside) = (|own: usize| asked[own], |one: usize, other: usize| kind_of[one] == kind_of[other]);
        // The rest of the budget is for those that are measured again.
        let budget = Budget::new(&watch, time.mul_f64(super::SEARCHING));
        let kinds = kinds.into_values().collect();
        let kind_of = kind_of.clone();
        let space = Space {
            usual,
            is_asked: &is_asked,
            kinds,
            kind_of,
            beside: &beside,
            hopeless: HOPELESS,
            together: 1,
            budget,
        };
        let Self { problem, bytes, places, candidates, .. } = self;
        let row =
            |own: &Candidate| meter.row(problem, &expected, &places[own.place].renumbered, own.variant.clone(), *bytes);
        self.found = search(space, &mut Variants { candidates, row: &row })?;
        self.candidates.sort_by(|a, b| a.us().total_cmp(&b.us()).then(a.predicted_us.total_cmp(&b.predicted_us)));
        Ok(())
    }

    /// The fastest way that adds in the order of elements: what is taken without being asked for leaves the bits as they are.
    fn in_order(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|own| own.variant.choices.strategy.is_ordered())
    }

    /// What is remembered: nothing, if what was asked for is not what would be taken where nothing is.
    fn entry(&self, machine: &MachineFacts) -> Result<Option<Entry>> {
        let own = &self.args.of_mesh;
        let Some((best, row)) = self.in_order().and_then(|own| Some((own, own.measured.as_ref()?))) else {
            return Ok(None);
        };
        if !own.is_open() || row.is_wrong() {
            return Ok(None);
        }
        let problem = &self.problem;
        let set = problem.program.stencils[measure::only_call(problem)?.stencil].set();
        let choices = Choices { precision: problem.precision, ..Choices::default() };
        Ok(Some(Entry {
            stencil: problem.program.program.name.clone(),
            precision: problem.precision,
            grid: own.mesh.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
            extents: Grid::cells(problem.bound.size(set), problem.levels),
            neighbours: Some(problem.bound.hash()),
            options: best.options.clone(),
            choices,
            plan: None,
            median_us: row.measured.statistics.median_us,
            of_limit: Some(row.of_copy),
            among: self.candidates.len(),
            tried: self.found.tried,
            date: date(),
            driver: machine.driver.clone(),
            compiler: machine.compiler.clone(),
            stencilc: machine.stencilc.clone(),
        }))
    }

    fn report(&self, gpu: &str, json: bool) -> Result<()> {
        let program = &self.problem.program.program;
        let ordered = self.in_order();
        let keeps = |own: &&Candidate| !own.variant.choices.strategy.is_ordered();
        let fastest = self.candidates.first();
        // Of what was not measured, threads say nothing.
        let mut shown = BTreeSet::new();
        let rows = self.candidates.iter().filter(|own| shown.insert(own.kind) || own.measured.is_some());
        let rows: Vec<&Candidate> = rows.collect();
        let wrong = self.candidates.iter().filter_map(|own| own.measured.as_ref()).filter(|row| row.is_wrong()).count();
        if json {
            terminal::json(&json!({
                "stencil": program.name,
                "precision": self.problem.precision,
                "gpu": gpu,
                "fastest": fastest.map(|own| &own.options),
                "fastest_in_order": ordered.map(|own| &own.options),
                "tried": self.found.tried,
                "hopeless": self.found.hopeless,
                "left": self.found.left,
                "kept": self.kept,
                "rows": rows,
            }))?;
        } else {
            let measured = self.candidates.iter().any(|own| own.measured.is_some());
            let mut head = vec!["strategy", "vectors", "order", "threads", "MB", "bound by", "predicted"];
            head.extend(measured.then_some(["measured", "result"]).into_iter().flatten());
            let mut cells = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
            cells.extend(rows.into_iter().map(Candidate::cells));
            let mut text = format!("{}, {}, on {gpu}: microseconds\n", program.name, self.problem.precision.name());
            text.push_str(&terminal::table(&cells, &[3, 4, 6, 7]));
            if let Some(fastest) = fastest {
                let how = if measured { "the fastest" } else { "the fastest by the model" };
                text.push_str(&format!(
                    "{how}: run {}{}\n",
                    fastest.options,
                    super::left(&self.found, self.args.budget)
                ));
                if let (true, Some(ordered)) = (keeps(&fastest), ordered) {
                    text.push_str(&format!(
                        "it adds in another order; with the interpreter's bits: run {}\n",
                        ordered.options
                    ));
                }
            }
            if let Some(path) = &self.kept {
                text.push_str(&format!(
                    "remembered in {}: `run` of {} on this mesh takes what keeps the bits\n",
                    path.display(),
                    program.name
                ));
            }
            terminal::print(&text)?;
        }
        match wrong {
            0 => Ok(()),
            _ => Err(Error::check(format!("{} differ from the interpreter", terminal::count(wrong, "kernel")))),
        }
    }
}

/// Variants as they are measured.
struct Variants<'a> {
    candidates: &'a mut [Candidate],
    row: &'a dyn Fn(&Candidate) -> Result<Row>,
}

impl Trial for Variants<'_> {
    fn times(&mut self, batch: &[usize], _: f64, budget: Option<Budget>) -> Result<Vec<Tried>> {
        let mut tried = Vec::new();
        for &number in batch {
            if budget.is_some_and(|budget| budget.is_over()) {
                tried.push(Tried::Not);
                continue;
            }
            let candidate = &mut self.candidates[number];
            candidate.measured = Some((self.row)(candidate)?);
            tried.push(Tried::Took(candidate.us()));
        }
        Ok(tried)
    }

    fn exact(&mut self, number: usize) -> Result<std::result::Result<Statistics, String>> {
        let candidate = &mut self.candidates[number];
        let again = (self.row)(candidate)?;
        if again.is_wrong() {
            let why = again.verdict();
            candidate.measured = Some(again);
            return Ok(Err(why));
        }
        let statistics = again.measured.statistics;
        if statistics.median_us < candidate.us() {
            candidate.measured = Some(again);
        }
        Ok(Ok(statistics))
    }
}

impl Candidate {
    /// Microseconds that were measured; what was not, or is wrong, comes after all that was.
    fn us(&self) -> f64 {
        self.measured
            .as_ref()
            .filter(|row| !row.is_wrong())
            .map_or(f64::INFINITY, |row| row.measured.statistics.median_us)
    }

    fn cells(&self) -> Vec<String> {
        let Variant { strategy, vectors, order, .. } = &self.variant;
        let mut cells =
            vec![(*strategy).to_owned(), (*vectors).to_owned(), (*order).to_owned(), self.variant.threads()];
        let megabytes = self.memory_bytes / 1e6;
        cells.push(if megabytes < 10.0 { format!("{megabytes:.3}") } else { format!("{megabytes:.1}") });
        cells.push(self.bound_by.name().to_owned());
        cells.push(format!("{:.1}", self.predicted_us));
        if let Some(row) = &self.measured {
            cells.extend([format!("{:.1}", self.us()), row.verdict()]);
        }
        cells
    }
}
