//! The ways to compute what runs over a mesh: strategies, layouts, orders, threads, and of programs whether calls share a kernel.
//! `bench` measures all that are asked for; `tune` ranks them by a model, and measures those that a search picks.

use super::kernels::{Kernels, Reader, Renumbered, Works};
use super::measure::{self, Measured, Reference};
use super::{Binding, MeshProblem};
use crate::bench::rows::MachineFacts;
use crate::bench::statistics::Statistics;
use crate::build::{Build, Usage};
use crate::clock::{Budget, Watch};
use crate::device::Platform;
use crate::mesh::order::Ordering;
use crate::tune::database::{Entry, For, Tried as Came};
use crate::tune::search::{Found, Kind, Space, Trial, Tried, budget, search};
use crate::verify::Verdict;
use crate::{Error, Fault, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::analysis::roofline::{GPUS, Gpu, Limits};
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::mesh::{Chain, Merge, MeshChoices, Strategy, VectorLayout};
use stencilc_compiler::plan::Choices;

/// The GPU that the model predicts for where there is none.
const GPU: &str = "h200";

/// What a copy comes to of the bandwidth that a data sheet tells.
const OF_SHEET: f64 = 0.83;

/// Ways are measured that should take at most so many times what the best should.
const HOPELESS: f64 = 2.0;

/// Orders that are searched among, beside the one that is chosen by itself.
pub const ORDERS: [&str; 3] = ["none", "rcm", "hilbert"];

/// Threads of a block, and blocks at once, that are tried of what is fast with the usual ones.
const THREADS: [(u32, u32); 4] = [(64, 0), (256, 0), (128, 6), (128, 8)];

/// One way to compute something.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// How elements that add to the same place are kept apart.
    pub strategy: &'static str,
    /// How the parts of vectors lie.
    pub vectors: &'static str,
    /// The order of elements.
    pub order: &'static str,
    /// Of a program: whether calls share a kernel, if that is not left open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<&'static str>,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that have to fit on a multiprocessor.
    pub at_once: u32,
    /// All but the order.
    #[serde(skip)]
    pub choices: MeshChoices,
}

impl Variant {
    /// A way to compute a stencil, or a program whose calls share kernels or not as `choices` say without an option for it.
    pub fn new(choices: MeshChoices, order: &'static str) -> Self {
        let MeshChoices { strategy, layout, block: threads, blocks_at_once: at_once, .. } = choices;
        Self { strategy: strategy.name(), vectors: layout.name(), order, fuse: None, threads, at_once, choices }
    }

    /// `128x8`
    pub fn threads(&self) -> String {
        match self.at_once {
            0 => self.threads.to_string(),
            at_once => format!("{}x{at_once}", self.threads),
        }
    }

    /// The options that choose it.
    pub fn words(&self) -> String {
        let Self { strategy, vectors, order, .. } = self;
        let fuse = self.fuse.map_or(String::new(), |fuse| format!(" --fuse {fuse}"));
        format!("--strategy {strategy} --vectors {vectors} --order {order} --threads {}{fuse}", self.threads())
    }

    /// A part of a file's name.
    fn name(&self) -> String {
        let fuse = self.fuse.map_or(String::new(), |fuse| format!("-{fuse}"));
        format!("{}-{}-{}-{}x{}{fuse}", self.strategy, self.vectors, self.order, self.threads, self.at_once)
    }
}

/// What a thread of a kernel takes.
#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    /// Which kernel.
    pub kernel: String,
    /// What it takes.
    #[serde(flatten)]
    pub usage: Usage,
}

/// What came of a way.
#[derive(Clone, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub variant: Variant,
    /// Of each kernel of a stencil, in the order of their launches; nothing on the emulator, or of a program.
    pub taken: Vec<Taken>,
    /// Gigabytes a second, as [`measure::bytes`] counts.
    pub gb_per_s: f64,
    /// That, of a copy's.
    pub of_copy: f64,
    /// How often an average datum of a block's working set is used.
    pub reuse: Option<f64>,
    /// Launches, one a colour.
    pub colours: Option<usize>,
    /// Bytes of tables and maps for each target.
    pub table_bytes: f64,
    /// Times, of a step of a program, and how the results compare.
    #[serde(flatten)]
    pub measured: Measured,
}

impl Row {
    /// Whether what came out is wrong.
    pub fn is_wrong(&self) -> bool {
        measure::wrong(&self.measured.verdict).is_some()
    }

    /// How what came out compares.
    pub fn verdict(&self) -> String {
        match (&self.measured.verdict, measure::wrong(&self.measured.verdict)) {
            (_, Some(what)) => format!("WRONG: {what}"),
            (Verdict::Within { share }, None) => format!("within {share:.2} of the bound"),
            (_, None) => "equal".to_owned(),
        }
    }
}

/// A way, and what is known of it.
#[derive(Serialize)]
pub struct Candidate {
    /// Which.
    #[serde(flatten)]
    pub variant: Variant,
    /// By the model.
    pub predicted_us: f64,
    /// By what, in the kernel that takes the longest.
    pub bound_by: Binding,
    /// Bytes from and to memory.
    pub memory_bytes: f64,
    /// The options of `run` that choose it.
    pub options: String,
    /// What was measured, if it was.
    pub measured: Option<Row>,
    /// Which order it is on.
    #[serde(skip)]
    place: usize,
    /// Ways of one kind differ in their threads alone.
    #[serde(skip)]
    pub kind: usize,
    #[serde(skip)]
    is_asked: bool,
    /// What each call comes to, and how often it is made in a step.
    #[serde(skip)]
    works: Vec<(Works, f64)>,
}

impl Candidate {
    /// Microseconds that were measured; what was not, or is wrong, comes after all that was.
    pub fn us(&self) -> f64 {
        let right = self.measured.as_ref().filter(|row| !row.is_wrong());
        right.map_or(f64::INFINITY, |row| row.measured.statistics.median_us)
    }

    fn sum(&self, of: impl Fn(&Works) -> f64) -> f64 {
        self.works.iter().map(|(works, times)| times * of(works)).sum()
    }
}

/// What is asked for: each combination is a way.
pub struct Asked {
    /// Strategies.
    pub strategies: Vec<&'static dyn Strategy>,
    /// Layouts of vectors.
    pub layouts: Vec<VectorLayout>,
    /// Threads of a block, and blocks at once; the usual ones, and in a search others, if none is.
    pub threads: Vec<(u32, u32)>,
    /// Of a program: whether calls share a kernel.
    pub merges: Vec<(Option<&'static str>, Merge)>,
}

/// Whether calls of a program share a kernel, as options say it: first what is taken where none does.
pub const MERGES: [(Option<&str>, Merge); 3] =
    [(None, Merge::WherePays), (Some("merged"), Merge::Always), (Some("separate"), Merge::Never)];

/// A mesh in some order.
struct Place {
    name: &'static str,
    is_asked: bool,
    renumbered: Rc<Renumbered>,
}

/// What measures.
pub struct Meter<'a> {
    platform: &'a Platform,
    reference: Reference,
    runs: usize,
    reader: Option<Rc<Reader>>,
    /// Gigabytes a second of a copy of so many bytes.
    pub copy: f64,
    /// How many.
    pub copied: usize,
}

impl<'a> Meter<'a> {
    /// Measures the copy; `reader` is told the texts of all kernels.
    ///
    /// # Errors
    /// There is not enough memory, a kernel has failed, or the interpreter finds nothing to compare with.
    pub fn new(platform: &'a Platform, runs: usize, ways: &Ways, reader: Option<Rc<Reader>>) -> Result<Self> {
        let copied = if ways.bytes[0] > 64 << 20 { 1 << 30 } else { 1 << 20 };
        let copy = match platform {
            Platform::Cpu => return Err(Error::call("the interpreter has no strategies to measure")),
            Platform::Emulator(emulator) => measure::copy_rate(&**emulator, copied, runs)?,
            Platform::Gpu(gpu) => measure::copy_rate(&**gpu, copied, runs)?,
        };
        let reference = Reference::new(&ways.problem)?;
        Ok(Self { platform, reference, runs, reader, copy, copied })
    }

    fn row(&self, ways: &Ways, number: usize) -> Result<Row> {
        match self.platform {
            Platform::Cpu => Err(Error::call("the interpreter has no strategies to measure")),
            Platform::Emulator(emulator) => self.on(emulator, ways, number),
            Platform::Gpu(gpu) => self.on(gpu, ways, number),
        }
    }

    fn on<M: Build>(&self, machine: &Arc<M>, ways: &Ways, number: usize) -> Result<Row> {
        let own = &ways.all[number];
        let placed = Rc::clone(&ways.places[own.place].renumbered);
        let mut kernels = Kernels::new(Arc::clone(&ways.problem), Arc::clone(machine), own.variant.choices, placed);
        if let Some(reader) = &self.reader {
            let (reader, variant) = (Rc::clone(reader), own.variant.name());
            kernels = kernels.read_by(Rc::new(move |name, text| reader(&format!("{name}-{variant}"), text)));
        }
        let measured = self.reference.measured(&ways.problem, &kernels, self.runs)?;
        let gb_per_s = ways.bytes[0] as f64 / measured.statistics.median_us / 1e3;
        let works: Vec<&Works> = own.works.iter().map(|(works, _)| works).collect();
        let all = Works {
            kernels: works.iter().flat_map(|works| works.kernels.clone()).collect(),
            colours: works.iter().filter_map(|works| works.colours).reduce(|a, b| a + b),
            targets: works.iter().map(|works| works.targets).sum(),
        };
        let is_own = |kernel: &str| works.len() == 1 && all.kernels.iter().any(|work| work.name == kernel);
        let taken = kernels.usages().into_iter().filter(|(kernel, _)| is_own(kernel));
        Ok(Row {
            variant: own.variant.clone(),
            taken: taken.map(|(kernel, usage)| Taken { kernel, usage }).collect(),
            gb_per_s,
            of_copy: gb_per_s / self.copy,
            reuse: all.reuse(),
            colours: all.colours,
            table_bytes: all.table_bytes(),
            measured,
        })
    }
}

/// The ways to compute a stencil or program.
pub struct Ways {
    /// What is computed.
    pub problem: Arc<MeshProblem>,
    /// Bytes that a step has to move, and those of maps among them.
    pub bytes: [usize; 2],
    calls: Vec<(Call, f64)>,
    places: Vec<Place>,
    /// The ways.
    pub all: Vec<Candidate>,
    /// Strategies that cannot compute it, and why.
    pub refused: BTreeMap<&'static str, Error>,
    kinds: usize,
}

impl Ways {
    /// None yet.
    pub fn new(problem: Arc<MeshProblem>) -> Self {
        let (bytes, calls) = (measure::bytes(&problem), measure::calls(&problem));
        Self { problem, bytes, calls, places: Vec::new(), all: Vec::new(), refused: BTreeMap::new(), kinds: 0 }
    }

    /// Puts the mesh in an order, unless it stands in it already.
    ///
    /// # Errors
    /// The order is not one of the mesh.
    pub fn place(&mut self, name: &'static str, ordering: &Ordering, is_asked: bool) -> Result<()> {
        match self.places.iter_mut().find(|place| place.name == name) {
            Some(place) => place.is_asked |= is_asked,
            None => {
                let renumbered = Rc::new(Renumbered::new(&self.problem, ordering)?);
                self.places.push(Place { name, is_asked, renumbered });
            }
        }
        Ok(())
    }

    /// How many ways there may be of what is asked for.
    pub fn most(&self, asked: &Asked) -> usize {
        let places = self.places.iter().filter(|place| place.is_asked).count();
        places * asked.strategies.len() * asked.layouts.len() * asked.threads.len().max(1) * asked.merges.len()
    }

    /// Adds the ways that are asked for; in a search, also those with other threads if none are given. `progress` is told of each
    /// kind.
    ///
    /// # Errors
    /// No strategy can compute it.
    pub fn add(&mut self, asked: &Asked, is_search: bool, progress: &dyn Fn(usize)) -> Result<()> {
        for place in 0..self.places.len() {
            if !self.places[place].is_asked {
                continue;
            }
            for &strategy in &asked.strategies {
                for &layout in &asked.layouts {
                    let mut known: Vec<Vec<bool>> = Vec::new();
                    for &(fuse, merge) in &asked.merges {
                        let choices = MeshChoices { strategy, layout, merge, ..MeshChoices::default() };
                        let placed = &self.places[place].renumbered;
                        let merges = |chain: &Chain| placed.merges(&self.problem, chain, choices);
                        let merges: Vec<bool> = self.problem.chains.iter().map(merges).collect();
                        // Others have no thread a target; and what one has already is no other way.
                        let has_none = merge == Merge::Always && fuse.is_some() && !strategy.has_a_thread_a_target();
                        if !has_none && !known.contains(&merges) {
                            self.add_kind(place, choices, fuse, &asked.threads, (is_search, true))?;
                            known.push(merges);
                        }
                    }
                    progress(1);
                }
            }
        }
        match self.all.is_empty() {
            true => self.refused.pop_first().map_or(Ok(()), |(_, error)| Err(error)),
            false => Ok(()),
        }
    }

    /// Adds what is taken where nobody chooses, if it was not asked for: it is measured, too.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn add_usual(&mut self, usual: &Variant) -> Result<()> {
        let options = usual.words();
        let place = self.places.iter().position(|place| place.name == usual.order);
        match place.filter(|_| self.all.iter().all(|own| own.options != options)) {
            Some(place) => self.add_kind(place, usual.choices, None, &[], (false, false)),
            None => Ok(()),
        }
    }

    fn add_kind(
        &mut self,
        place: usize,
        choices: MeshChoices,
        fuse: Option<&'static str>,
        threads: &[(u32, u32)],
        (is_search, is_asked): (bool, bool),
    ) -> Result<()> {
        let usual = (choices.block, choices.blocks_at_once);
        let others = THREADS.iter().filter(|_| is_search && threads.is_empty());
        let threads = if threads.is_empty() { std::slice::from_ref(&usual) } else { threads };
        let kind = self.kinds;
        self.kinds += 1;
        for &(block, blocks_at_once) in threads.iter().chain(others) {
            let choices = MeshChoices { block, blocks_at_once, ..choices };
            let renumbered = &self.places[place].renumbered;
            let works = |(call, times): &(Call, f64)| Ok((renumbered.works(&self.problem, call, &choices)?, *times));
            let works: Vec<(Works, f64)> = match self.calls.iter().map(works).collect::<Result<_>>() {
                Err(error) if error.fault == Fault::Input => {
                    self.refused.entry(choices.strategy.name()).or_insert(error);
                    return Ok(());
                }
                works => works?,
            };
            let variant = Variant { fuse, ..Variant::new(choices, self.places[place].name) };
            let (options, bound_by) = (variant.words(), Binding::Memory);
            let own = Candidate {
                variant,
                predicted_us: 0.0,
                bound_by,
                memory_bytes: 0.0,
                options,
                measured: None,
                place,
                kind,
                is_asked,
                works,
            };
            self.all.push(Candidate { memory_bytes: own.sum(Works::memory_bytes), ..own });
        }
        Ok(())
    }

    /// Measures all, the fastest first. `progress` is called after each.
    ///
    /// # Errors
    /// None can be computed; there is not enough memory, or a kernel has failed.
    pub fn measure(&mut self, meter: &Meter, progress: &dyn Fn(usize)) -> Result<()> {
        for number in 0..self.all.len() {
            match meter.row(self, number) {
                Ok(row) => self.all[number].measured = Some(row),
                // What a strategy cannot do is no reason not to measure the others.
                Err(error) if error.fault == Fault::Input => {
                    self.refused.entry(self.all[number].variant.strategy).or_insert(error);
                }
                Err(error) => return Err(error),
            }
            progress(1);
        }
        if self.rows().next().is_none()
            && let Some((_, error)) = self.refused.pop_first()
        {
            return Err(error);
        }
        let us = |own: &Candidate| own.measured.as_ref().map_or(f64::INFINITY, |row| row.measured.statistics.median_us);
        self.all.sort_by(|a, b| us(a).total_cmp(&us(b)));
        Ok(())
    }

    /// What was measured.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.all.iter().filter_map(|own| own.measured.as_ref())
    }

    /// Ranks all by the model: of a GPU, or of the usual one where there is none, and with the rate of a copy that was measured.
    pub fn rank(&mut self, gpu: &str, copy: Option<f64>) {
        // Of a GPU that is in no table, arithmetic is as that of the one that is usual.
        let sheet = Gpu::by_driver_name(gpu).unwrap_or_else(usual_gpu);
        let limits = sheet.limits(self.problem.precision);
        let limits = Limits { gb_per_s: copy.unwrap_or(OF_SHEET * limits.gb_per_s), ..limits };
        for own in &mut self.all {
            own.predicted_us = own.sum(|works| works.predicted(&limits).0);
            let each = own.works.iter().map(|(works, times)| (times * works.predicted(&limits).0, works));
            let longest = each.max_by(|a, b| a.0.total_cmp(&b.0));
            own.bound_by = longest.map_or(Binding::Memory, |(_, works)| works.predicted(&limits).1);
        }
        self.all.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
    }

    /// Measures what is usual, and those that may be faster, as many as a budget of so many seconds allows.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    pub fn search(&mut self, meter: &Meter, usual: &Variant, seconds: f64) -> Result<Found> {
        let watch = Watch::start();
        let options = usual.words();
        // Where that cannot be made, what the model ranks first is.
        let usual = self.all.iter().position(|own| own.options == options).unwrap_or(0);
        let mut kinds: BTreeMap<usize, Kind> = BTreeMap::new();
        for (number, own) in self.all.iter().enumerate() {
            let first = || Kind { begin: vec![number], estimate: own.predicted_us, turn: 0 };
            kinds.entry(own.kind).or_insert_with(first);
        }
        let kind_of: Vec<usize> = self.all.iter().map(|own| own.kind).collect();
        let asked: Vec<bool> = self.all.iter().map(|own| own.is_asked).collect();
        let (is_asked, kind) = (|own: usize| asked[own], kind_of.clone());
        let beside = |one: usize, other: usize| kind[one] == kind[other];
        let space = Space {
            usual,
            is_asked: &is_asked,
            kinds: kinds.into_values().collect(),
            kind_of,
            beside: &beside,
            hopeless: HOPELESS,
            together: 1,
            budget: budget(&watch, seconds),
        };
        let found = search(space, &mut Trials { ways: self, meter })?;
        self.all.sort_by(|a, b| a.us().total_cmp(&b.us()).then(a.predicted_us.total_cmp(&b.predicted_us)));
        Ok(found)
    }

    /// The fastest way that adds in the order of elements: what is taken without being asked for leaves the bits as they are.
    pub fn in_order(&self) -> Option<&Candidate> {
        self.all.iter().find(|own| own.variant.choices.strategy.is_ordered())
    }

    /// What is remembered, for a mesh whose file was named so; nothing where nothing right was measured.
    pub fn entry(&self, mesh: String, machine: &MachineFacts, tried: usize) -> Option<Entry> {
        let best = self.in_order()?;
        let row = best.measured.as_ref().filter(|row| !row.is_wrong())?;
        let choices = Choices { precision: self.problem.precision, ..Choices::default() };
        let median_us = row.measured.statistics.median_us;
        let found = Came { median_us, of_limit: Some(row.of_copy), among: self.all.len(), tried };
        let entry = Entry::new(For::mesh(&self.problem, mesh), machine, choices, None, found);
        Some(Entry { options: best.options.clone(), ..entry })
    }
}

/// The GPU that the model predicts for where there is none.
pub fn usual_gpu() -> &'static Gpu {
    GPUS.iter().find(|gpu| gpu.name == GPU).unwrap_or(&GPUS[0])
}

/// Ways as they are measured.
struct Trials<'a, 'b> {
    ways: &'a mut Ways,
    meter: &'a Meter<'b>,
}

impl Trial for Trials<'_, '_> {
    fn times(&mut self, batch: &[usize], _: f64, budget: Option<Budget>) -> Result<Vec<Tried>> {
        let mut tried = Vec::new();
        for &number in batch {
            if budget.is_some_and(|budget| budget.is_over()) {
                tried.push(Tried::Not);
                continue;
            }
            self.ways.all[number].measured = Some(self.meter.row(self.ways, number)?);
            tried.push(Tried::Took(self.ways.all[number].us()));
        }
        Ok(tried)
    }

    fn exact(&mut self, number: usize) -> Result<std::result::Result<Statistics, String>> {
        let again = self.meter.row(self.ways, number)?;
        let candidate = &mut self.ways.all[number];
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
