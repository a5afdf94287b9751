//! A thread an element: what a stencil writes at its own elements, and what is to be folded.

use super::writer::Writer;
use super::writer::numbers::part_name;
use super::writer::values::level_name;
use super::{Kernel, MeshChoices, MeshTask, changed_in_place};
use crate::analysis::footprint::Footprint;
use crate::gpu::AT_ONCE;
use crate::ir::mesh::How;
use crate::ir::{FieldId, Levels, MeshStencil, Path, Relation, Role, SetId};
use crate::kernel::build::{Computing, Making};
use crate::kernel::cost::Cost;
use crate::kernel::{Meaning, MeshData, Step, Unroll, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a stencil writes at its own elements.
#[derive(Default)]
pub struct Written {
    /// By field, all its numbers on each level of the thread.
    assigned: BTreeMap<FieldId, Vec<Vec<ValueId>>>,
    /// What is folded, on each level of the thread, and into which fields.
    folded: Vec<(FieldId, Vec<ValueId>)>,
}

/// Words that may wait in a thread that computes several levels: with more there are too few threads for the latency of memory.
const MOST_WAITING: usize = 64;

/// The kernel of what a stencil writes at its own elements.
pub fn kernel(task: &MeshTask, choices: &MeshChoices) -> Kernel {
    let of_levels = |levels: usize| {
        let mut writer = Writer::new(task, choices, &task.stencil.stencil.name);
        writer.levels = levels;
        writer.in_place = changed_in_place(task.stencil);
        let (element, items) = writer.thread_of_own();
        writer.find_level();
        writer.set_index(&[], element);
        let written = Written::of(&mut writer, task.stencil);
        written.store(&mut writer, element, &|_| true);
        let in_place = writer.in_place.iter().copied().collect();
        writer.finish("a thread an element", items, in_place)
    };
    match slice(task, choices) {
        1 => with_levels(task, choices, of_levels),
        slice => through_slice(task, choices, slice),
    }
}

/// How many threads that follow each other have the levels of an element where these lie together: with fewer, what a load brings is used
/// in part.
const THREADS_OF_COLUMN: usize = 16;

/// So many threads hide the latency of memory.
const MANY_THREADS: usize = 1 << 20;

/// Words without levels that a thread can hold while it goes through levels.
const MOST_HELD: usize = 96;

/// How many levels a thread goes through one after the other: as many as is asked for, or as pays. Looking up what has no levels once for
/// several of them saves the more, the more there is of it. Where the levels of an element lie together, neighbouring threads share it
/// anyway, so it has to be most of what is read.
fn slice(task: &MeshTask, choices: &MeshChoices) -> usize {
    let levels = task.computed.len();
    if choices.is_for_cpu {
        return if choices.layout.is_by_column() && task.stencil.mesh.levels { levels } else { 1 };
    }
    if choices.threads.slice > 0 {
        return (choices.threads.slice as usize).min(levels).max(1);
    }
    let [once, each] = words(task);
    if once == 0 || once > MOST_HELD {
        return 1;
    }
    if choices.layout.is_by_column() {
        return if once >= 2 * each { levels.div_ceil(THREADS_OF_COLUMN) } else { 1 };
    }
    let elements = task.counts.elements(task.stencil.set());
    levels.div_ceil(3).min(levels * elements / MANY_THREADS).max(1)
}

/// Words that an element reads: without levels, and on each level.
fn words(task: &MeshTask) -> [usize; 2] {
    let own = task.stencil;
    let footprint = Footprint::new(own, own_stores(own));
    let mut words = [footprint.ways().filter(|hops| !hops.is_empty()).collect::<BTreeSet<_>>().len(), 0];
    for (place, parts) in &footprint.reads {
        let field = &own.stencil.fields[place.0];
        let number = parts.len() * field.stored.bytes(task.precision).div_ceil(4);
        match (field.place.levels, footprint.shifts.get(place)) {
            (Levels::None, _) => words[0] += number,
            (_, shifts) => words[1] += number * shifts.map_or(1, BTreeSet::len),
        }
    }
    words
}

/// The kernel whose threads go through several levels, one after the other: what has no levels, numbers of elements among it, is looked up
/// once for all of them.
fn through_slice(task: &MeshTask, choices: &MeshChoices, slice: usize) -> Kernel {
    let mut writer = Writer::new(task, choices, &task.stencil.stencil.name);
    writer.slice = slice;
    writer.in_place = changed_in_place(task.stencil);
    let (element, items) = writer.thread_of_own();
    writer.set_index(&[], element);
    writer.look_up_what_has_no_levels(own_stores(task.stencil));
    let (first, end, step) = writer.levels_of_thread();
    let unroll = if choices.is_for_cpu { Unroll::SideBySide } else { Unroll::Times(2) };
    writer.each("k", (first, end, Step::By(step)), unroll, |writer, k| {
        writer.at_computed(k);
        Written::of(writer, task.stencil).store(writer, element, &|_| true);
    });
    let in_place = writer.in_place.iter().copied().collect();
    writer.finish("a thread an element, which goes through some levels", items, in_place)
}

/// A kernel whose threads compute as many levels as one instruction moves, or half of them, if the first level that is computed, the one
/// behind the last, and the number of levels are multiples of that, and there are registers for them.
pub fn with_levels(task: &MeshTask, choices: &MeshChoices, of_levels: impl Fn(usize) -> Kernel) -> Kernel {
    let Range { start, end } = *task.computed;
    let fits = |levels: usize| {
        let is_whole = [start, end, task.levels].iter().all(|level| level.is_multiple_of(levels));
        let is_moved = !choices.is_for_cpu && choices.layout.is_by_column();
        is_moved && is_whole && levels * task.precision.bytes() <= AT_ONCE
    };
    let several = [4, 2].into_iter().filter(|&levels| fits(levels)).map(&of_levels);
    let mut fitting = several.filter(|kernel| Cost::of(&kernel.code).waiting <= MOST_WAITING);
    fitting.next().unwrap_or_else(|| of_levels(1))
}

/// The stores of what a stencil writes at its own elements, by their numbers.
fn own_stores(stencil: &MeshStencil) -> impl Iterator<Item = usize> {
    let is_own = |how: &How| !matches!(how, How::Add(_));
    stencil.writes.iter().enumerate().filter(move |(_, write)| is_own(&write.how)).map(|(store, _)| store)
}

impl Written {
    /// What the writer's stencil writes, or a part of it.
    pub fn of(writer: &mut Writer, stencil: &MeshStencil) -> Self {
        let mut own = Self::default();
        for (store, write) in stencil.stores() {
            if matches!(write.how, How::Add(_)) || writer.field(store.field).role == Role::Carried {
                continue;
            }
            let levels = 0..writer.levels as i32;
            let values: Vec<ValueId> =
                levels.map(|level| writer.body(&store.body, &Path::levels_only(level))).collect();
            if matches!(write.how, How::Reduce(_)) {
                own.folded.push((store.field, values));
            } else {
                let all = own.assigned.entry(store.field).or_insert_with(|| vec![Vec::new(); values.len()]);
                all.iter_mut().zip(values).for_each(|(level, value)| level.push(value));
            }
        }
        own
    }

    /// Whether it writes to any field that is wanted.
    pub fn has(&self, is_wanted: &dyn Fn(FieldId) -> bool) -> bool {
        !self.folded.is_empty() || self.assigned.keys().any(|&field| is_wanted(field))
    }

    /// What it writes to a field that has one number, on the thread's own level.
    pub fn number(&self, field: FieldId) -> Option<ValueId> {
        self.assigned.get(&field)?.first()?.first().copied()
    }

    /// Computes everything here, and says that what is assigned is what is read of the element at hand: as it would be read again.
    pub fn remember(&mut self, writer: &mut Writer) {
        let scalar = writer.scalar();
        for (&field, levels) in &mut self.assigned {
            let own = writer.field(field);
            for (level, values) in levels.iter_mut().enumerate() {
                let width = values.len();
                let at = Path::levels_only(level as i32);
                let name = format!("{}{}", own.name, level_name(level as i32));
                for (part, value) in values.iter_mut().enumerate() {
                    let stored = scalar.stored(&mut writer.own, *value, own.stored);
                    let read = scalar.read(&mut writer.own, stored, own.stored);
                    *value = writer.own.name(&part_name(&name, width, part), read);
                    writer.remember((field, at.clone(), part as u32), *value);
                }
            }
        }
        for (field, values) in &mut self.folded {
            for (level, value) in values.iter_mut().enumerate() {
                let wish = format!("{}_here{}", writer.field(*field).name, level_name(level as i32));
                *value = writer.own.name(&wish, *value);
            }
        }
    }

    /// Writes it to the fields that are wanted.
    pub fn store(&self, writer: &mut Writer, element: ValueId, is_wanted: &dyn Fn(FieldId) -> bool) {
        let task = writer.task;
        let (stencil, set) = (task.stencil, task.stencil.set());
        for (field, values) in &self.folded {
            let at = leaf_of(writer, set, element);
            let own = writer.field(*field);
            let kind = writer.computing(own.stored.kind());
            let leaves = writer.array(&own.name, kind, true, Meaning::Mesh(MeshData::Leaves(*field)));
            for (level, &value) in values.iter().enumerate() {
                writer.own.store(leaves, at.plus(level), value);
            }
        }
        for (&field, levels) in self.assigned.iter().filter(|(field, _)| is_wanted(**field)) {
            let array = writer.output(field);
            let declared = writer.field(field);
            let once = stencil.mesh.levels && declared.place.levels == Levels::None;
            let is_first = once.then(|| writer.level_number().is(Relation::Eq, 0));
            let scalar = writer.scalar();
            writer.when_if(is_first, |writer| {
                let mut stored = |value: ValueId| scalar.stored(&mut writer.own, value, declared.stored);
                let levels = levels.iter().take(if once { 1 } else { levels.len() });
                let levels: Vec<Vec<ValueId>> =
                    levels.map(|values| values.iter().map(|&value| stored(value)).collect()).collect();
                writer.store_levels(array, field, element, &levels);
            });
        }
    }
}

/// Where the number of an element stands that is to be folded: in the user's order, level after level.
fn leaf_of(writer: &mut Writer, set: SetId, element: ValueId) -> ValueId {
    let (name, zones) = (&writer.task.stencil.mesh.sets[set].name, writer.task.stencil.stencil.zones);
    let users = writer.table(&format!("{name}_user"), MeshData::Users(set, zones));
    let user = users.at(element);
    writer.own.term(match writer.task.computed.len() {
        1 => user,
        levels => user.times(levels).plus(writer.level_number()),
    })
}
