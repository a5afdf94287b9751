//! Kernels of stencils over meshes.
//!
//! ```text
//! stencil -> group: what is written where -> one or more kernels, by a strategy -> writer: what each thread does
//! ```
//!
//! What a stencil writes at its own elements is one kernel, a thread an element. What it adds to the elements of another set
//! is a matter of the [`Strategy`], since several elements may lead to the same one: each target gathers, the hardware adds, elements of
//! one colour are launched together, or values go through memory, through the shared memory of tiles of targets or of blocks of elements.
//!
//! A kernel says what it takes ([`kernel::MeshData`]); tables that depend on the mesh are made by whoever runs it, from the paths that a
//! [`kernel::MeshTable`] names. So nothing here knows a mesh, but for how many elements lead to one ([`Degrees`]) and how many a block has
//! ([`Largest`]).

mod chain;
mod chained;
mod dictionary;
mod ends;
mod footprint;
mod gather;
mod group;
mod mirror;
mod once;
mod own;
pub mod quotient;
mod rows;
mod shared;
pub mod strategy;
mod sums;
mod sweep;
mod threads;
mod vector_layout;
mod writer;

pub use chain::{Chain, Link};
pub use chained::kernels as kernels_of_chain;

use crate::analysis::footprint::Footprint;
use crate::analysis::levels::leaves_levels;
use crate::diagnostic::Refusal;
use crate::ir::mesh::{How, Zones};
use crate::ir::{FieldId, Levels, MeshStencil, Path, Precision, Role, SetId};
use crate::kernel;
pub use dictionary::Dictionary;
pub use group::{Group, groups};
use std::collections::BTreeSet;
use std::ops::Range;
pub use strategy::{Additions, STRATEGIES, Strategy};
pub use threads::Threads;
pub use vector_layout::{Chunks, VectorLayout};

/// How a stencil is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshChoices {
    /// How races are avoided.
    pub strategy: &'static dyn Strategy,
    /// How vectors lie in memory.
    pub layout: VectorLayout,
    /// How many threads a block has, and what each goes through.
    pub threads: Threads,
    /// Which calls of a program become one kernel, of those that can: with a thread a target.
    pub merge: Merge,
    /// Whether kernels are for a CPU: a thread has the items of a block, one after the other, and each with all its levels where these
    /// lie together, so that compilers make vectors of them.
    pub is_for_cpu: bool,
}

/// Which calls become one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// None.
    Never,
    /// Those that save enough, or are over so few elements that launches count.
    WherePays,
    /// All that can.
    #[default]
    Always,
}

/// On a mesh without levels; [`MeshChoices::usual`] knows of both.
impl Default for MeshChoices {
    fn default() -> Self {
        Self {
            strategy: STRATEGIES[0],
            layout: VectorLayout::Pairs,
            threads: Threads::default(),
            merge: Merge::Always,
            is_for_cpu: false,
        }
    }
}

/// A launch takes as long as so many elements.
const FEW: usize = 1 << 17;

/// Calls that share a kernel hold more registers, so that fewer threads are at once. On an H200, a program that saves an eighth of the
/// bytes of its fields is slower then, and one that saves a third is faster.
const ENOUGH: f64 = 0.2;

impl MeshChoices {
    /// What is taken where nobody chooses, on a mesh with levels or without.
    pub fn usual(has_levels: bool) -> Self {
        let usual = Self::default();
        Self { layout: usual.strategy.usual_layout(has_levels), ..usual }
    }

    /// The same for kernels on a CPU.
    pub fn on_cpu(self) -> Self {
        Self { is_for_cpu: true, ..self }
    }

    /// Whether the calls of a chain become one kernel, over so many elements and levels.
    pub fn merges(self, chain: &Chain, precision: Precision, elements: usize) -> bool {
        let pays = || elements < FEW || chain.saved(precision) >= ENOUGH;
        match self.merge {
            _ if !self.strategy.has_a_thread_a_target() => false,
            Merge::Never => false,
            Merge::WherePays => pays(),
            Merge::Always => true,
        }
    }
}

/// How many elements lead to a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Degrees {
    /// On average.
    pub mean: f64,
    /// At most.
    pub max: usize,
    /// The share of targets to which any leads.
    pub share: f64,
}

/// How elements are cut into pieces, each of which a block of threads works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// So many targets at most, with the elements that lead to them.
    Tiles {
        /// How many.
        targets: usize,
        /// Whether only targets count to which any element leads.
        is_sparse: bool,
    },
    /// So many elements at most, with the targets that they lead to.
    Blocks {
        /// How many.
        elements: usize,
    },
}

/// What the largest pieces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Elements, of the piece that has the most.
    pub elements: usize,
    /// Targets, of the piece that has the most.
    pub targets: usize,
}

/// The fields that get new values in the arrays of the old ones: those that a stencil leaves as they are at some elements or levels, and
/// reads at the element at hand alone. So nothing is copied for what stays.
pub fn changed_in_place(stencil: &MeshStencil) -> BTreeSet<FieldId> {
    let own = &stencil.stencil;
    let leaves = own.zones.is_some() || leaves_levels(own);
    // Others would look at it between two kernels, or from level to level.
    let is_one_kernel = own.sweeps.is_empty() && stencil.writes.iter().all(|write| write.how == How::Assign);
    if !leaves || !is_one_kernel {
        return BTreeSet::new();
    }
    let footprint = Footprint::new(stencil, 0..own.stores.len());
    let is_here = |id: FieldId| {
        if footprint.is_moved(id) {
            return false;
        }
        let mut reads = footprint.shifts.iter().filter(|((field, _), _)| *field == id);
        reads.all(|((_, hops), shifts)| hops.is_empty() && shifts.iter().all(|&shift| shift == 0))
    };
    let fields = own.fields.iter().filter(|(id, field)| {
        // What has no levels is read by the threads of all.
        let is_alone = field.place.levels != Levels::None || !stencil.mesh.levels;
        field.role == Role::InOut && is_alone && is_here(*id)
    });
    fields.map(|(id, _)| id).collect()
}

/// What is known of a mesh before there are kernels.
pub trait Counts {
    /// How many elements a set has.
    fn elements(&self, set: SetId) -> usize;

    /// How many elements of the group's set lead to a target.
    fn degrees(&self, group: &Group) -> Degrees;

    /// What pieces of those who lead to the targets have at most. Nothing if a piece has too many for numbers of 16 bits.
    fn largest(&self, group: &Group, cut: Cut) -> Option<Largest>;

    /// Whether any element leads to one target along several paths.
    fn repeats(&self, group: &Group) -> bool;

    /// How many different elements those who lead to a target lead on to along other paths, at most.
    fn distinct_ends(&self, group: &Group, ends: &[Path]) -> usize;
}

/// What is to be computed.
#[derive(Clone, Copy)]
pub struct MeshTask<'a> {
    /// The stencil, prepared.
    pub stencil: &'a MeshStencil,
    /// What `real` is.
    pub precision: Precision,
    /// How many levels there are.
    pub levels: usize,
    /// Those that are computed.
    pub computed: &'a Range<usize>,
    /// Fields that are incremented and start from 0: what was there is not read.
    pub from_zero: &'a dyn Fn(FieldId) -> bool,
    /// What is known of the mesh.
    pub counts: &'a dyn Counts,
}

impl MeshTask<'_> {
    /// Those of some fields whose sums start from what is there before: all of them, if it is not known that others are written too.
    fn in_place(&self, fields: Vec<FieldId>, all: bool) -> Vec<FieldId> {
        fields.into_iter().filter(|&field| all || !(self.from_zero)(field)).collect()
    }
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// What each thread does.
    pub code: kernel::Kernel,
    /// What its threads go through.
    pub items: Items,
    /// How many threads that follow each other have the levels of one item. If it is none, they have items of one level, and a launch has
    /// a block along y for each.
    pub threads_of_column: Option<usize>,
    /// How many levels a thread goes through one after the other, of a kernel that has a block along y for some levels.
    pub slice: usize,
    /// How many items a thread goes through one after the other.
    pub items_of_thread: usize,
    /// Fields whose arrays hold, before the launch, what is added to: zeros, or what was there.
    pub in_place: Vec<FieldId>,
}

/// What the threads of a kernel go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Items {
    /// The elements of a set, or of some of its zones.
    Set(SetId, Option<Zones>),
    /// The elements to which any leads along the paths of a group.
    Targets(usize),
    /// The elements of the stencil, launched colour by colour: no two of a colour lead to one target of the group.
    Colours(usize),
    /// Not threads but blocks, one for each piece of a group. Pieces of elements are launched colour by colour: no two of a
    /// colour lead to one target.
    Pieces {
        /// Which group.
        group: usize,
        /// How it is cut.
        cut: Cut,
    },
}

/// The place of a hole.
pub const NOWHERE: u16 = u16::MAX;

/// The kernels of a stencil, in the order in which they are launched.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// What is added to which targets: what tables are made of.
    pub groups: Vec<Group>,
}

/// Returns the kernels of a stencil.
///
/// # Errors
/// The strategy cannot compute it.
pub fn kernels(task: &MeshTask, choices: &MeshChoices) -> Result<Kernels, Refusal> {
    let groups = group::groups(task.stencil);
    let mut kernels = Vec::new();
    if group::has_own(task.stencil) {
        kernels.push(match task.stencil.stencil.sweeps.is_empty() {
            true => own::kernel(task, choices),
            false => sweep::kernel(task, choices),
        });
    }
    for group in &groups {
        kernels.extend(choices.strategy.kernels(task, choices, group)?);
    }
    Ok(Kernels { kernels, groups })
}
