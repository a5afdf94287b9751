//! The ways to compute what runs over a mesh: strategies, layouts, orders, threads, and of programs whether calls share a kernel.
//! `bench` measures all that are asked for; `tune` ranks them by a model, and measures those that a search picks.

mod meter;
mod variant;

use super::kernels::{Renumbered, Works};
use super::{Binding, MeshProblem, measure};
use crate::bench::rows::MachineFacts;
use crate::build::Build;
use crate::device::Platform;
use crate::mesh::order::Ordering;
use crate::tune::database::{Entry, For, Tried};
use crate::{Error, Fault, Result};
pub use meter::{Meter, Row, Taken};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::gpu::Sheet;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::mesh::{Chain, Merge, MeshChoices, Threads};
use stencilc_compiler::plan::Choices;
pub use variant::{Asked, MERGES, Variant};

/// Orders that are searched among, beside the one that is chosen by itself.
pub const ORDERS: [&str; 3] = ["none", "rcm", "hilbert"];

/// Threads that are tried of what is fast with the usual ones; the last two where there are levels.
const THREADS: [Threads; 6] = [
    Threads { block: 64, at_once: 0, slice: 0 },
    Threads { block: 256, at_once: 0, slice: 0 },
    Threads { block: 128, at_once: 6, slice: 0 },
    Threads { block: 128, at_once: 8, slice: 0 },
    Threads { block: 128, at_once: 0, slice: 1 },
    Threads { block: 128, at_once: 0, slice: 8 },
];

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

/// A mesh in some order.
struct Place {
    name: &'static str,
    is_asked: bool,
    renumbered: Arc<Renumbered>,
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
    /// Ways whose kernels cannot be compiled or launched, by the options that choose them, and why.
    pub failed: Vec<(String, Error)>,
    kinds: usize,
    /// Whether they are measured on a CPU.
    is_for_cpu: bool,
}

impl Ways {
    /// None yet.
    pub fn new(problem: Arc<MeshProblem>) -> Self {
        let (bytes, calls) = (measure::bytes(&problem), measure::calls(&problem));
        let (places, all, refused, failed) = (Vec::new(), Vec::new(), BTreeMap::new(), Vec::new());
        Self { problem, bytes, calls, places, all, refused, failed, kinds: 0, is_for_cpu: false }
    }

    /// The same, those that are added from here on for a platform.
    pub fn on(self, platform: &Platform) -> Self {
        Self { is_for_cpu: matches!(platform, Platform::Emulator(own) if own.is_cpu()), ..self }
    }

    /// Puts the mesh in an order, unless it stands in it already.
    ///
    /// # Errors
    /// The order is not one of the mesh.
    pub fn place(&mut self, name: &'static str, ordering: &Ordering, is_asked: bool) -> Result<()> {
        match self.places.iter_mut().find(|place| place.name == name) {
            Some(place) => place.is_asked |= is_asked,
            None => {
                let renumbered = Arc::new(Renumbered::new(&self.problem, ordering)?);
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
        threads: &[Threads],
        (is_search, is_asked): (bool, bool),
    ) -> Result<()> {
        let usual = choices.threads;
        let choices = if self.is_for_cpu { choices.on_cpu() } else { choices };
        // A thread of a CPU has all levels.
        let has_levels = self.problem.program.mesh.levels && !self.is_for_cpu;
        let others =
            THREADS.iter().filter(|own| is_search && threads.is_empty() && (has_levels || own.slice == usual.slice));
        let threads = if threads.is_empty() { std::slice::from_ref(&usual) } else { threads };
        let kind = self.kinds;
        self.kinds += 1;
        for &threads in threads.iter().chain(others) {
            let choices = MeshChoices { threads, ..choices };
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

    /// What was measured.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.all.iter().filter_map(|own| own.measured.as_ref())
    }

    /// Ranks all by the model: of a GPU, or of the usual one where there is none, and with the rate of a copy that was measured.
    pub fn rank(&mut self, gpu: &str, copy: Option<f64>) {
        let limits = Sheet::reached(gpu, self.problem.precision, copy);
        for own in &mut self.all {
            own.predicted_us = own.sum(|works| works.predicted(&limits).0);
            let each = own.works.iter().map(|(works, times)| (times * works.predicted(&limits).0, works));
            let longest = each.max_by(|a, b| a.0.total_cmp(&b.0));
            own.bound_by = longest.map_or(Binding::Memory, |(_, works)| works.predicted(&limits).1);
        }
        self.all.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
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
        let found = Tried { median_us, of_limit: Some(row.of_copy), among: self.all.len(), tried };
        let entry = Entry::new(For::mesh(&self.problem, mesh), machine, choices, None, found);
        Some(Entry { options: best.options.clone(), ..entry })
    }
}
