//! Strategies for what elements add to others: how races are avoided where several lead to the same one. One file a strategy.

mod atomic;
mod global_colouring;
mod hierarchical_colouring;
mod owner;
mod tiled;
mod two_step;

use super::group::{Add, Group};
use super::writer::Writer;
use super::{Kernel, MeshChoices, MeshTask, VectorLayout};
use crate::diagnostic::Refusal;
use crate::ir::{Path, Relation};
use crate::kernel::ValueId;
use crate::kernel::build::Computing;
use std::fmt;

/// Every strategy, in the order that lists show. The first is the one that is taken if none is chosen.
pub const STRATEGIES: &[&dyn Strategy] = &[
    &owner::Owner,
    &atomic::Atomic,
    &global_colouring::GlobalColouring,
    &two_step::TwoStep,
    &hierarchical_colouring::HierarchicalColouring,
    &tiled::Tiled,
];

/// A way to add.
pub trait Strategy: Sync {
    /// What the command line calls it.
    fn name(&self) -> &'static str;

    /// One line about it.
    fn summary(&self) -> &'static str;

    /// In which order values are added.
    fn additions(&self) -> Additions;

    /// Whether each target has a thread, which holds what is added to it in registers: then it can go on with that, and calls
    /// that follow each other can share a kernel.
    fn has_a_thread_a_target(&self) -> bool {
        false
    }

    /// How numbers lie in memory, where nobody says: levels of an element follow each other if its threads do.
    fn usual_layout(&self, has_levels: bool) -> VectorLayout {
        if has_levels { VectorLayout::Columns } else { VectorLayout::Pairs }
    }

    /// The kernels of what is added to one set, in the order in which they are launched.
    ///
    /// # Errors
    /// The strategy cannot compute it, on a mesh as it is known.
    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal>;
}

/// In which order values are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Additions {
    /// In that of the elements' numbers, so that the bits are the interpreter's.
    InOrder,
    /// In another, but the same at each run.
    SameEveryTime,
    /// As they come: the last bits differ from run to run.
    AsTheyCome,
}

impl dyn Strategy {
    /// Whether values are added in the order of the elements' numbers, so that the bits are the interpreter's.
    pub fn is_ordered(&self) -> bool {
        self.additions() == Additions::InOrder
    }
}

/// The strategy called `name`.
pub fn find(name: &str) -> Option<&'static dyn Strategy> {
    STRATEGIES.iter().copied().find(|own| own.name() == name)
}

impl PartialEq for dyn Strategy {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Strategy {}

impl fmt::Debug for dyn Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an element adds, each computed here by a name: first of all, so that loads need not wait for what is written.
fn values(writer: &mut Writer, group: &Group) -> Vec<ValueId> {
    let stencil = writer.task.stencil;
    let named = |add: &Add| {
        let value = writer.body(&stencil.stencil.stores[add.store].body, &Path::default());
        let field = &stencil.stencil.fields[add.field].name;
        writer.own.name(&format!("{field}_add_{}", add.part), value)
    };
    group.adds.iter().map(named).collect()
}

/// What is added of a value along the path with a number in `path`: by path, whether it is the negative.
fn signed(writer: &mut Writer, value: ValueId, path: ValueId, is_negative: &[bool]) -> ValueId {
    let negative = (0..is_negative.len()).filter(|&number| is_negative[number]);
    let is_always = negative.clone().count() == is_negative.len();
    let any = negative.map(|number| path.is(Relation::Eq, number)).reduce(|any, own| any.or(own));
    let Some(is_negative) = any else { return value };
    let negated = writer.own.negate(value);
    if is_always { negated } else { writer.own.term(is_negative.picks(negated, value)) }
}
