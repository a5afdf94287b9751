//! A thread an element: what a stencil writes at its own elements, and what is to be folded.

use super::emit::Emitter;
use super::{Choices, Items, Kernel, Subject, What};
use crate::cuda::expression::stored_as;
use crate::ir::mesh::How;
use crate::ir::{FieldId, Levels};
use std::collections::BTreeMap;

/// The kernel of what a stencil writes at its own elements.
pub fn kernel(subject: &Subject, choices: &Choices) -> Kernel {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    let mut emitter = Emitter::new(subject, choices);
    let element = emitter.thread_of(set);
    emitter.level_line();
    emitter.set_index(&[], &element);
    let mut outputs: BTreeMap<FieldId, Vec<String>> = BTreeMap::new();
    for (number, (store, write)) in stencil.stores().enumerate() {
        let field = &stencil.stencil.fields[store.field];
        match write.how {
            How::Assign => {
                let text = emitter.body(&store.body, &Default::default());
                outputs.entry(store.field).or_default().push(stored_as(text, field.stored, subject.precision));
            }
            How::Reduce(_) => {
                let text = emitter.body(&store.body, &Default::default());
                let users = emitter.parameter(&format!("{element}_user"), "const int*", What::Users);
                let c_type = format!("{}*", emitter.c_type(store.body.kind()));
                let leaves = emitter.parameter(&field.name, &c_type, What::Leaves(number));
                let at = format!("{users}[{element}]");
                let levels = subject.computed.len();
                let at = if levels == 1 { at } else { format!("{at} * {levels} + blockIdx.y") };
                emitter.line(format!("{leaves}[{at}] = {text};"));
            }
            How::Add(_) => {}
        }
    }
    for (field, texts) in outputs {
        let array = emitter.output(field);
        let once = subject.stencil.mesh.levels && stencil.stencil.fields[field].place.levels == Levels::None;
        if once {
            emitter.open("if (blockIdx.y == 0)");
        }
        emitter.store_all(&array, field, &element, &texts);
        if once {
            emitter.close();
        }
    }
    let name = emitter.names.fresh(&stencil.stencil.name);
    let (text, parameters) = emitter.text(&name, "a thread an element", &[]);
    Kernel { name, text, parameters, items: Items::Set(set), block: choices.block, in_place: Vec::new() }
}
