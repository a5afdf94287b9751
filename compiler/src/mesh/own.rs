//! A thread an element: what a stencil writes at its own elements, and what is to be folded.

use super::emit::Emitter;
use super::{Choices, Items, Kernel, Subject, What};
use crate::cuda::expression::{read_as, stored_as};
use crate::ir::mesh::How;
use crate::ir::{FieldId, Kind, Levels};
use std::collections::BTreeMap;

/// What a stencil writes at its own elements: texts.
#[derive(Default)]
pub struct Written {
    /// By field, all its numbers.
    assigned: BTreeMap<FieldId, Vec<String>>,
    /// What is folded, and into which fields.
    folded: Vec<(FieldId, Kind, String)>,
}

/// The kernel of what a stencil writes at its own elements.
pub fn kernel(subject: &Subject, choices: &Choices) -> Kernel {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    let mut emitter = Emitter::new(subject, choices);
    let element = emitter.thread_of(set);
    emitter.level_line();
    emitter.set_index(&[], &element);
    let written = Written::new(&mut emitter);
    written.store(&mut emitter, &element, &|_| true);
    let name = emitter.names.declared(&stencil.stencil.name);
    let (text, parameters) = emitter.text(&name, "a thread an element", &[]);
    Kernel { name, text, parameters, items: Items::Set(set), block: choices.block, in_place: Vec::new() }
}

impl Written {
    /// What the emitter's stencil writes.
    pub fn new(emitter: &mut Emitter) -> Self {
        let mut own = Self::default();
        let subject = emitter.subject;
        for (store, write) in subject.stencil.stores() {
            if matches!(write.how, How::Add(_)) {
                continue;
            }
            let text = emitter.body(&store.body, &Default::default());
            if matches!(write.how, How::Reduce(_)) {
                own.folded.push((store.field, store.body.kind(), text));
            } else {
                own.assigned.entry(store.field).or_default().push(text);
            }
        }
        own
    }

    /// Computes everything, and gives it names, by which what is assigned is known where its element is at hand: as it would be
    /// read again.
    pub fn remember(&mut self, emitter: &mut Emitter) {
        let subject = emitter.subject;
        for (&field, texts) in &mut self.assigned {
            let own = &subject.stencil.stencil.fields[field];
            let c_type = emitter.c_type(own.stored.kind());
            let is_one = texts.len() == 1;
            for (part, text) in texts.iter_mut().enumerate() {
                let value =
                    read_as(stored_as(text.clone(), own.stored, subject.precision), own.stored, subject.precision);
                let wish = if is_one { own.name.clone() } else { format!("{}_{part}", own.name) };
                let name = emitter.names.fresh(&wish);
                emitter.line(format!("const {c_type} {name} = {value};"));
                emitter.remember((field, Default::default(), part as u32), &name);
                *text = name;
            }
        }
        for (field, kind, text) in &mut self.folded {
            let name = emitter.names.fresh(&format!("{}_here", subject.stencil.stencil.fields[*field].name));
            emitter.line(format!("const {} {name} = {text};", emitter.c_type(*kind)));
            *text = name;
        }
    }

    /// Writes it to the fields that are wanted.
    pub fn store(&self, emitter: &mut Emitter, element: &str, is_wanted: &dyn Fn(FieldId) -> bool) {
        let subject = emitter.subject;
        let (stencil, set) = (subject.stencil, subject.stencil.set());
        for (field, kind, text) in &self.folded {
            let users = emitter.parameter(&format!("{element}_user"), "const int*", What::Users(set));
            let c_type = format!("{}*", emitter.c_type(*kind));
            let leaves = emitter.parameter(&stencil.stencil.fields[*field].name, &c_type, What::Leaves(*field));
            let at = format!("{users}[{element}]");
            let levels = subject.computed.len();
            let at = if levels == 1 { at } else { format!("{at} * {levels} + blockIdx.y") };
            emitter.line(format!("{leaves}[{at}] = {text};"));
        }
        for (&field, texts) in self.assigned.iter().filter(|(field, _)| is_wanted(**field)) {
            let array = emitter.output(field);
            let once = stencil.mesh.levels && stencil.stencil.fields[field].place.levels == Levels::None;
            if once {
                emitter.open("if (blockIdx.y == 0)");
            }
            let stored = stencil.stencil.fields[field].stored;
            let texts: Vec<String> =
                texts.iter().map(|text| stored_as(text.clone(), stored, subject.precision)).collect();
            emitter.store_all(&array, field, element, &texts);
            if once {
                emitter.close();
            }
        }
    }
}
