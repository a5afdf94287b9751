//! A thread an element: what a stencil writes at its own elements, and what is to be folded.

use super::writer::Writer;
use super::writer::numbers::part_name;
use super::{Items, Kernel, MeshChoices, MeshTask};
use crate::ir::mesh::How;
use crate::ir::{FieldId, Levels, Relation, SetId};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{Meaning, MeshData, ValueId};
use std::collections::BTreeMap;

/// What a stencil writes at its own elements.
#[derive(Default)]
pub struct Written {
    /// By field, all its numbers.
    assigned: BTreeMap<FieldId, Vec<ValueId>>,
    /// What is folded, and into which fields.
    folded: Vec<(FieldId, ValueId)>,
}

/// The kernel of what a stencil writes at its own elements.
pub fn kernel(task: &MeshTask, choices: &MeshChoices) -> Kernel {
    let (stencil, set) = (task.stencil, task.stencil.set());
    let mut writer = Writer::new(task, choices, &stencil.stencil.name);
    let element = writer.thread_of(set);
    writer.find_level();
    writer.set_index(&[], element);
    let written = Written::new(&mut writer);
    written.store(&mut writer, element, &|_| true);
    writer.finish("a thread an element", Items::Set(set), Vec::new())
}

impl Written {
    /// What the writer's stencil writes.
    pub fn new(writer: &mut Writer) -> Self {
        let mut own = Self::default();
        let task = writer.task;
        for (store, write) in task.stencil.stores() {
            if matches!(write.how, How::Add(_)) {
                continue;
            }
            let value = writer.body(&store.body, &Default::default());
            if matches!(write.how, How::Reduce(_)) {
                own.folded.push((store.field, value));
            } else {
                own.assigned.entry(store.field).or_default().push(value);
            }
        }
        own
    }

    /// Computes everything here, and says that what is assigned is what is read of the element at hand: as it would be read again.
    pub fn remember(&mut self, writer: &mut Writer) {
        let scalar = writer.scalar();
        for (&field, values) in &mut self.assigned {
            let own = writer.field(field);
            let width = values.len();
            for (part, value) in values.iter_mut().enumerate() {
                let stored = scalar.stored(&mut writer.own, *value, own.stored);
                let read = scalar.read(&mut writer.own, stored, own.stored);
                *value = writer.own.name(&part_name(&own.name, width, part), read);
                writer.remember((field, Default::default(), part as u32), *value);
            }
        }
        for (field, value) in &mut self.folded {
            let wish = format!("{}_here", writer.field(*field).name);
            *value = writer.own.name(&wish, *value);
        }
    }

    /// Writes it to the fields that are wanted.
    pub fn store(&self, writer: &mut Writer, element: ValueId, is_wanted: &dyn Fn(FieldId) -> bool) {
        let task = writer.task;
        let (stencil, set) = (task.stencil, task.stencil.set());
        for (field, value) in &self.folded {
            let at = leaf_of(writer, set, element);
            let own = writer.field(*field);
            let kind = writer.computing(own.stored.kind());
            let leaves = writer.array(&own.name, kind, true, Meaning::Mesh(MeshData::Leaves(*field)));
            writer.own.store(leaves, at, *value);
        }
        for (&field, values) in self.assigned.iter().filter(|(field, _)| is_wanted(**field)) {
            let array = writer.output(field);
            let declared = writer.field(field);
            let once = stencil.mesh.levels && declared.place.levels == Levels::None;
            let is_first = once.then(|| writer.level_number().is(Relation::Eq, 0));
            let scalar = writer.scalar();
            writer.when_if(is_first, |writer| {
                let stored = values.iter().map(|&value| scalar.stored(&mut writer.own, value, declared.stored));
                let stored: Vec<ValueId> = stored.collect();
                writer.store_all(array, field, element, &stored);
            });
        }
    }
}

/// Where the number of an element stands that is to be folded: in the user's order, level after level.
fn leaf_of(writer: &mut Writer, set: SetId, element: ValueId) -> ValueId {
    let name = &writer.task.stencil.mesh.sets[set].name;
    let users = writer.table(&format!("{name}_user"), MeshData::Users(set));
    let user = users.at(element);
    writer.own.term(match writer.task.computed.len() {
        1 => user,
        levels => user.times(levels).plus(writer.level_number()),
    })
}
