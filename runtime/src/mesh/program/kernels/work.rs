//! What the kernels of a call look at, move and compute: counted on the mesh, without a machine.
//!
//! Two sizes of neighbourhoods are looked at, each at some places that are spread evenly. A *block* of threads says how often
//! what is loaded once is used. A *window* is as many threads that follow each other as fill a cache: what they
//! touch comes from memory once, in pieces of 64 bytes; what the next window touches comes again.

mod arrays;
mod count;

use super::super::tables::InverseMap;
use super::super::{MeshProblem, MeshScript};
use super::Renumbered;
use super::prepare::Key;
use crate::program::planned::Text;
use crate::{Error, Result};
use count::Threads;
use serde::Serialize;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::analysis::footprint::Footprint;
use stencilc_compiler::analysis::operations::Operation;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::{FieldId, Handle, MeshStencil, Path, Role, SetId};
use stencilc_compiler::kernel::cost::Counter;
use stencilc_compiler::kernel::{Meaning, MeshData, MeshTable};
use stencilc_compiler::mesh::{
    self as printed, Chain, Counts, Cut, Degrees, Group, Items, Kernel, Largest, MeshChoices, MeshTask,
};

/// An operation that hardware takes many instructions for counts as so many.
const SLOW: u64 = 10;

/// What one kernel comes to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// How often it is launched.
    pub launches: usize,
    /// Bytes that a block looks at through maps, counted for each thread that does, added up over the blocks that were looked at.
    pub used: f64,
    /// The same, counted once a block.
    pub loaded: f64,
    /// Bytes from and to memory.
    pub memory_bytes: f64,
    /// Bytes of the tables and maps that it takes.
    pub table_bytes: usize,
    /// Floating-point instructions.
    pub instructions: f64,
    /// Additions by atomic operations.
    pub atomics: f64,
}

/// What the kernels of a call come to.
#[derive(Clone, Debug, Serialize)]
pub struct Works {
    /// Kernel by kernel, in the order of their launches.
    pub kernels: Vec<Work>,
    /// Colours, of strategies that have them.
    pub colours: Option<usize>,
    /// How many elements are added to, or computed if nothing is added.
    pub targets: usize,
}

impl Works {
    /// How often an average datum of a block's working set is used; nothing if nothing is reached through maps.
    pub fn reuse(&self) -> Option<f64> {
        let sum = |of: fn(&Work) -> f64| self.kernels.iter().map(of).sum::<f64>();
        let loaded = sum(|work| work.loaded);
        (loaded > 0.0).then(|| sum(|work| work.used) / loaded)
    }

    /// Bytes of tables and maps for each target.
    pub fn table_bytes(&self) -> f64 {
        self.kernels.iter().map(|work| work.table_bytes).sum::<usize>() as f64 / self.targets.max(1) as f64
    }

    /// Bytes from and to memory.
    pub fn memory_bytes(&self) -> f64 {
        self.kernels.iter().map(|work| work.memory_bytes).sum()
    }
}

impl Renumbered {
    /// The texts of the kernels of a call, and who leads to what in its groups.
    pub(super) fn printed(
        &self,
        problem: &MeshProblem,
        (number, computed, from_zero): &Key,
        choices: &MeshChoices,
    ) -> Result<(printed::Kernels, Vec<Arc<InverseMap>>)> {
        let counted = Counted { renumbered: self, failed: RefCell::new(None) };
        let from_zero = |field: FieldId| from_zero[field.index()];
        let subject = |stencil| MeshTask {
            stencil,
            precision: problem.precision,
            levels: problem.levels,
            computed,
            from_zero: &from_zero,
            counts: &counted,
        };
        let stages = problem.stages(*number);
        let printed = if stages.len() == 1 {
            printed::kernels(&subject(&stages[0]), choices)
        } else {
            let subjects: Vec<MeshTask> = stages.iter().map(subject).collect();
            printed::kernels_of_chain(&subjects, &|field| problem.is_internal(*number, field), choices)
        };
        if let Some(error) = counted.failed.take() {
            return Err(error);
        }
        let printed = printed?;
        let groups = printed.groups.iter().map(|group| self.inverse(group)).collect::<Result<_>>()?;
        Ok((printed, groups))
    }

    /// Whether the calls of a chain become one kernel.
    pub fn merges(&self, problem: &MeshProblem, chain: &Chain, choices: MeshChoices) -> bool {
        let set = chain.stages.last().map(|own| self.bound.size(own.set()));
        choices.merges(chain, problem.precision, set.unwrap_or(0) * problem.levels)
    }

    /// The texts of the kernels of a call.
    ///
    /// # Errors
    /// The strategy cannot compute it.
    pub fn kernels(&self, problem: &MeshProblem, call: &Call, choices: &MeshChoices) -> Result<Vec<Kernel>> {
        Ok(self.printed(problem, &key(problem, call)?, choices)?.0.kernels)
    }

    /// The texts of all kernels of a program that are known before anything is computed.
    ///
    /// # Errors
    /// The strategy cannot compute it.
    pub fn texts(&self, problem: &Arc<MeshProblem>, choices: &MeshChoices) -> Result<Vec<Text>> {
        let merges = |chain: &_| self.merges(problem, chain, *choices);
        let mut texts = Vec::new();
        for call in MeshScript::new(problem, &merges).calls() {
            for kernel in self.kernels(problem, call, choices)? {
                texts.push(Text { name: kernel.code.name.to_string(), text: cuda::text(&kernel.code)? });
            }
        }
        Ok(texts)
    }

    /// What the kernels of a call come to.
    ///
    /// # Errors
    /// The strategy cannot compute it.
    pub fn works(&self, problem: &MeshProblem, call: &Call, choices: &MeshChoices) -> Result<Works> {
        let stencil = &problem.program.stencils[call.stencil];
        let key = key(problem, call)?;
        let (printed, groups) = self.printed(problem, &key, choices)?;
        let view = View { problem, renumbered: self, stencil, key: &key, choices, groups: &printed.groups };
        let mut kernels = Vec::new();
        let mut colours = None;
        for kernel in &printed.kernels {
            let own = view.kernel(kernel, &groups)?;
            let by_colour = match &kernel.items {
                Items::Colours(_) | Items::Pieces { cut: Cut::Blocks { .. }, .. } => true,
                Items::Set(..) | Items::Targets(_) | Items::Pieces { cut: Cut::Tiles { .. }, .. } => false,
            };
            if by_colour {
                colours = Some(colours.unwrap_or(0) + own.launches);
            }
            kernels.push(own);
        }
        let targets = groups.iter().map(|group| group.targets()).sum();
        let own = self.bound.range(stencil.set(), stencil.stencil.zones).len();
        let targets = if groups.is_empty() { own } else { targets };
        Ok(Works { kernels, colours, targets })
    }
}

/// What compilers ask of a mesh; what went wrong meanwhile.
struct Counted<'a> {
    renumbered: &'a Renumbered,
    failed: RefCell<Option<Error>>,
}

impl Counted<'_> {
    fn or<T>(&self, result: Result<T>, otherwise: T) -> T {
        result.unwrap_or_else(|error| {
            self.failed.replace(Some(error));
            otherwise
        })
    }
}

impl Counts for Counted<'_> {
    fn elements(&self, set: SetId) -> usize {
        self.renumbered.bound.size(set)
    }

    fn degrees(&self, group: &Group) -> Degrees {
        let nothing = Degrees { mean: 0.0, max: 0, share: 0.0 };
        self.or(self.renumbered.inverse(group).map(|inverse| inverse.degrees()), nothing)
    }

    fn largest(&self, group: &Group, cut: Cut) -> Option<Largest> {
        self.or(self.renumbered.pieces(group, cut), None).map(|pieces| pieces.largest())
    }

    fn repeats(&self, group: &Group) -> bool {
        self.or(self.renumbered.inverse(group).map(|inverse| inverse.repeats()), true)
    }

    fn distinct_ends(&self, group: &Group, ends: &[Path]) -> usize {
        self.or(self.renumbered.inverse(group).map(|inverse| inverse.distinct_ends(&self.renumbered.bound, ends)), 0)
    }
}

/// What the kernels of a call that is made once depend on.
fn key(problem: &MeshProblem, call: &Call) -> Result<Key> {
    let computed = problem.computed(call.stencil, &problem.params_of(call))?;
    let fields = problem.stages(call.stencil)[0].stencil.fields.iter();
    let from_zero = fields.map(|(id, own)| own.role == Role::Inc && call.fields[id.index()].read.is_none());
    Ok((call.stencil, computed, from_zero.collect()))
}

/// The call that is looked at.
struct View<'a> {
    problem: &'a MeshProblem,
    renumbered: &'a Renumbered,
    stencil: &'a MeshStencil,
    key: &'a Key,
    choices: &'a MeshChoices,
    groups: &'a [Group],
}

impl View<'_> {
    fn kernel(&self, kernel: &Kernel, groups: &[Arc<InverseMap>]) -> Result<Work> {
        let whats = || kernel.code.meanings();
        let walked = whats().find_map(|what| match what {
            Meaning::Mesh(MeshData::Table(
                group,
                MeshTable::Entries | MeshTable::Others | MeshTable::Leaf(_) | MeshTable::Offsets,
            )) => Some(*group),
            _ => None,
        });
        let between = whats()
            .find_map(|what| if let Meaning::Mesh(MeshData::Between(group)) = what { Some(*group) } else { None });
        let pieces = match &kernel.items {
            Items::Pieces { group, cut, .. } => self.renumbered.pieces(&self.groups[*group], *cut)?,
            Items::Set(..) | Items::Targets(_) | Items::Colours(_) => None,
        };
        let all = |count: usize| std::iter::once(0..count).collect::<Vec<Range<usize>>>();
        let (threads, ranges) = match (&kernel.items, walked) {
            (Items::Targets(group), _) => {
                let led_to = groups[*group].led_to();
                let ranges = all(led_to.len());
                (Threads::Targets(&groups[*group], Some(led_to)), ranges)
            }
            (Items::Set(set, _), Some(group)) => (Threads::Targets(&groups[group], None), all(self.size(*set))),
            (Items::Set(set, zones), None) => (Threads::Elements, vec![self.renumbered.bound.range(*set, *zones)]),
            (Items::Colours(group), _) => {
                let colours = groups[*group].colours()?;
                let ranges = colours.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).collect();
                (Threads::Coloured(colours.elements), ranges)
            }
            (Items::Pieces { group, cut, .. }, _) => {
                let pieces = pieces.as_deref().ok_or_else(|| Error::input("the mesh cannot be cut into pieces"))?;
                let is_sparse = matches!(cut, Cut::Tiles { is_sparse: true, .. });
                let ranges = pieces.launches();
                (Threads::Pieces(pieces, is_sparse.then(|| groups[*group].led_to())), ranges)
            }
        };
        let scattered = self.groups.iter().position(|group| group.fields() == kernel.in_place);
        let group = match (&kernel.items, walked.or(between)) {
            (Items::Targets(group) | Items::Colours(group) | Items::Pieces { group, .. }, _) => Some(*group),
            (Items::Set(..), Some(group)) => Some(group),
            (Items::Set(..), None) if kernel.in_place.is_empty() => None,
            (Items::Set(..), None) => scattered,
        };
        let is_gather = walked.is_some() && between.is_some();
        let footprint = match group {
            _ if is_gather => Footprint::default(),
            Some(group) => Footprint::new(self.stencil, self.groups[group].adds.iter().map(|add| add.store)),
            None => Footprint::new(self.stencil, self.own_stores()),
        };
        let arrays = self.arrays(kernel, &footprint, group, between, threads.gather());
        let levels = self.key.1.len() as f64;
        // Threads that follow each other look at what all levels of an element have in common once.
        let passes = if kernel.threads_of_column.is_some() { 1.0 } else { levels };
        let visits = threads.visits(ranges.iter().map(Range::len).sum()) as f64;
        let (used, loaded) = self.reuse(kernel, &threads, &arrays, &ranges);
        let streams = self.tables(kernel, groups, &threads);
        let mut instructions = footprint.operations.instructions();
        for (operation, count) in footprint.operations.iter() {
            instructions += if Operation::is_slow(operation) { (SLOW - 1) * count } else { 0 };
        }
        // A thread that adds is of one level.
        let atomics = Counter::new(&kernel.code).of_block(&kernel.code.body).atomics;
        // Arrays that are added to in place and start from 0 are set to that before.
        let cleared: usize =
            kernel.in_place.iter().filter(|field| self.key.2[field.index()]).map(|field| self.bytes(*field)).sum();
        Ok(Work {
            name: kernel.code.name.to_string(),
            launches: ranges.iter().filter(|range| !range.is_empty()).count(),
            used,
            loaded,
            memory_bytes: (self.memory(&threads, &arrays, &ranges) + streams as f64) * passes + cleared as f64,
            table_bytes: streams + self.map_bytes(kernel),
            instructions: instructions as f64 * visits * levels,
            atomics: atomics as f64 * visits * levels,
        })
    }

    fn size(&self, set: SetId) -> usize {
        self.renumbered.bound.size(set)
    }
}
