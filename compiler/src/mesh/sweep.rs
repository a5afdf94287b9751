//! A thread an element, which goes through its levels one after the other: what a stencil with sweeps computes.
//!
//! What is carried from level to level is kept as on grids ([`Carried`]). What a level reads does not depend on the levels before it, so it
//! is loaded while those before are computed: for several levels at once (`ahead`), or level by level, to shared memory (`ring`). On a CPU a
//! thread has many columns (`side_by_side`).

mod ahead;
mod ring;
mod side_by_side;

use super::own::Written;
use super::shared::Shared;
use super::writer::Writer;
use super::{Items, Kernel, MeshChoices, MeshTask, Threads};
use crate::analysis::levels::swept;
use crate::cells::carried::Carried;
use crate::gpu::SHARED;
use crate::ir::{Direction, FieldId, MeshStencil, Path, Phase, Relation, Role, Store};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{Step, Type, Unroll, ValueId};
use crate::plan::phases::{Kept, loops};
use ahead::Ahead;
use ring::Ring;
use std::collections::BTreeMap;

/// What a thread knows of the sweep that it is in.
pub struct Sweeping<'a> {
    carried: Carried,
    direction: Option<Direction>,
    /// What the loop at hand stores.
    stores: &'a [Store],
}

/// The column of a thread.
#[derive(Clone, Copy)]
struct Column {
    element: ValueId,
    /// How many items there are, and the first of the block, where all threads of a block go on together: of some there is no column.
    of_block: Option<[ValueId; 2]>,
}

/// Threads of a block: so many that what is carried through all levels finds room in shared memory, or as many as was said where too few
/// do, or where threads load for each other, which takes that room.
fn threads(task: &MeshTask, choices: &MeshChoices, kept: &BTreeMap<FieldId, Kept>) -> u32 {
    let fields = &task.stencil.stencil.fields;
    let bytes = |field: FieldId| {
        let own = &fields[field];
        own.place.levels.count(task.levels) * Type::computing(own.stored.kind(), task.precision).bytes()
    };
    if choices.layout.is_by_column() {
        return choices.threads.block.min(64);
    }
    let each: usize = kept.iter().filter(|(_, own)| own.levels).map(|(&field, _)| bytes(field)).sum();
    let smaller = std::iter::successors(Some(choices.threads.block), |&block| (block % 64 == 0).then_some(block / 2));
    let mut fitting = smaller.filter(|&block| each * block as usize <= SHARED);
    fitting.next().unwrap_or(choices.threads.block)
}

/// The kernel of a stencil with sweeps.
pub fn kernel(task: &MeshTask, choices: &MeshChoices) -> Kernel {
    let own = task.stencil;
    let (loops, kept) = loops(&own.stencil);
    let loops: Vec<(Option<Direction>, MeshStencil)> =
        loops.into_iter().map(|Phase { direction, stencil }| (direction, own.of_stores(stencil))).collect();
    if choices.is_for_cpu {
        return side_by_side::kernel(task, choices, &loops, &kept);
    }
    let threads = Threads { block: threads(task, choices, &kept), ..choices.threads };
    let choices = &MeshChoices { threads, ..*choices };
    let mut writer = Writer::new(task, choices, &own.stencil.name);
    let (column, items) = column(&mut writer);
    writer.set_index(&[], column.element);
    writer.look_up_what_has_no_levels(0..own.stencil.stores.len());
    let block = (task.levels, [choices.threads.block, 1, 1]);
    let may_share = !choices.layout.is_by_column();
    let carried = Carried::declare(&mut writer.own, (&own.stencil, &kept), block, task.precision, may_share);
    writer.sweeping = Some(Sweeping { carried, direction: None, stores: &[] });
    let mut shared = Shared::default();
    for (direction, phase) in &loops {
        if let Some(own) = &mut writer.sweeping {
            (own.direction, own.stores) = (*direction, &phase.stencil.stores);
        }
        through(&mut writer, &mut shared, phase, *direction, column);
    }
    writer.finish("a thread an element, which goes through its levels", items, Vec::new())
}

/// Finds the column of the thread. Where levels of a column follow each other in memory, threads of a block load for each other, so all of
/// them stay.
fn column(writer: &mut Writer) -> (Column, Items) {
    if !writer.choices.layout.is_by_column() {
        let (element, items) = writer.thread_of_own();
        return (Column { element, of_block: None }, items);
    }
    let set = writer.task.stencil.set();
    let range = writer.own_range();
    let n = range.as_ref().map_or_else(|| writer.size(set), |own| own.n);
    let item = writer.own.name("item", writer.item());
    let element = item.at_most(n.minus(1));
    let element = match &range {
        Some(own) => own.first.plus(element),
        None => element,
    };
    let element = writer.own.name(&writer.task.stencil.mesh.sets[set].name, element);
    let first = range.as_ref().map(|own| own.first);
    let zero = writer.own.int(0);
    let items = Items::Set(set, writer.task.stencil.stencil.zones);
    (Column { element, of_block: Some([n, first.unwrap_or(zero)]) }, items)
}

/// How many levels a thread goes through.
fn levels(writer: &Writer) -> usize {
    swept(&writer.task.stencil.stencil, writer.task.levels)
}

/// A loop through all levels.
fn through<'a>(
    writer: &mut Writer<'a>,
    shared: &mut Shared,
    phase: &'a MeshStencil,
    direction: Option<Direction>,
    column: Column,
) {
    let is_down = direction == Some(Direction::Down);
    let levels = levels(writer) as i64;
    let (from, to) = if is_down { (levels - 1, 0) } else { (0, levels) };
    let step = if is_down { Step::Down } else { Step::By };
    let one = writer.own.int(1);
    if let Some(ring) = Ring::new(writer, shared, phase, column) {
        let start = writer.own.int(from);
        ring.fill(writer, start, is_down);
        return writer.each("k", (from, to, step(one)), Unroll::Times(1), |writer, k| {
            ring.enter(writer, k, is_down);
            level(writer, phase, column, None);
        });
    }
    let ahead = Ahead::new(writer, phase, column);
    if ahead.is_empty() {
        return writer.each("k", (from, to, step(one)), Unroll::Times(4), |writer, k| {
            writer.at_level(k);
            level(writer, phase, column, None);
        });
    }
    let count = writer.own.int(ahead.levels as i64);
    let start = writer.own.int(from);
    ahead.load(writer, start, is_down);
    writer.each("k_start", (from, to, step(count)), Unroll::Times(1), |writer, start| {
        ahead.hand_over(writer);
        let next = writer.own.term(if is_down { start.minus(count) } else { start.plus(count) });
        ahead.load(writer, next, is_down);
        writer.unrolled("n", (0, count), |writer, number| {
            let k = writer.own.name("k", if is_down { start.minus(number) } else { start.plus(number) });
            writer.own.break_if(k.is(if is_down { Relation::Lt } else { Relation::Ge }, to));
            writer.at_level(k);
            ahead.remember(writer, number);
            level(writer, phase, column, Some((&ahead, number)));
        });
        ahead.store(writer, start, is_down);
    });
}

/// What is computed on a level, which may have a number among those that are loaded at once.
fn level(writer: &mut Writer, phase: &MeshStencil, column: Column, ahead: Option<(&Ahead, ValueId)>) {
    let is_carried = |store: &&Store| phase.stencil.fields[store.field].role == Role::Carried;
    let written = Written::of(writer, phase);
    if let Some((ahead, number)) = ahead {
        ahead.keep(writer, &written, number);
    }
    let is_direct = |field: FieldId| ahead.is_none_or(|(ahead, _)| !ahead.stores(field));
    let is_there = column.of_block.map(|[n, _]| writer.item().less(n));
    writer.when_if(is_there.filter(|_| written.has(&is_direct)), |writer| {
        written.store(writer, column.element, &is_direct);
    });
    let mut carried = Vec::new();
    for store in phase.stencil.stores.iter().filter(is_carried) {
        carried.push((store.field, writer.body(&store.body, &Path::default())));
    }
    if let (Some(own), Some(k)) = (&writer.sweeping, writer.level_at_hand()) {
        own.carried.keep(&mut writer.own, &carried, k);
    }
}

impl Writer<'_> {
    /// A value of a sweep, so many levels away.
    pub fn carried(&mut self, field: FieldId, shift: i32) -> ValueId {
        let nothing = |writer: &mut Self| writer.own.int(0);
        let Some(own) = &self.sweeping else { return nothing(self) };
        let store = own.stores.iter().find(|store| store.field == field);
        if let (Some(store), Some(direction)) = (store, own.direction) {
            if shift == 0 {
                return self.body(&store.body, &Path::default());
            }
            if let Some(value) = own.carried.before(&mut self.own, field, direction.before(shift)) {
                return value;
            }
        }
        // What lies beyond the levels is looked at by nobody.
        let levels = self.field(field).place.levels;
        let Some(level) = self.level(shift, levels) else { return nothing(self) };
        let Some(own) = &self.sweeping else { return nothing(self) };
        // Whatever is read here is kept.
        own.carried.at(&mut self.own, field, level).unwrap_or(level)
    }
}
