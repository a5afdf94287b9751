//! A thread an element of one colour: no two elements of a launch lead to the same target, and each adds as to any other number.

use super::{Additions, Strategy, values};
use crate::cuda::expression::{read_as, stored_as};
use crate::diagnostic::Refusal;
use crate::mesh::emit::Emitter;
use crate::mesh::group::Group;
use crate::mesh::sums::added;
use crate::mesh::{Choices, Items, Kernel, Subject, Table, What};

/// Elements are launched colour by colour; no two of a colour lead to the same target.
pub struct GlobalColouring;

impl Strategy for GlobalColouring {
    fn name(&self) -> &'static str {
        "global-colouring"
    }

    fn summary(&self) -> &'static str {
        "elements of one colour, of which no two add to the same target, at once"
    }

    fn additions(&self) -> Additions {
        Additions::SameEveryTime
    }

    fn kernels(&self, subject: &Subject, choices: &Choices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(subject, choices, group)])
    }
}

/// The kernel of a group.
fn kernel(subject: &Subject, choices: &Choices, group: &Group) -> Kernel {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    let mut emitter = Emitter::new(subject, choices);
    let element = emitter.element_of(set);
    let n = emitter.parameter("items", "int", What::Items);
    let first = emitter.parameter("first", "int", What::First);
    let coloured = emitter.parameter("coloured", "const int*", What::Table(group.number, Table::Coloured));
    let item = emitter.names.internal("item");
    emitter.line(format!("const int {item} = blockIdx.x * {} + threadIdx.x;", choices.block));
    emitter.line(format!("if ({item} >= {n}) return;"));
    emitter.line(format!("const int {element} = {coloured}[{first} + {item}];"));
    emitter.level_line();
    emitter.set_index(&[], &element);
    let values = values(&mut emitter, group);
    for (number, path) in group.paths.iter().enumerate() {
        let to = emitter.raw(path.hops());
        let can_miss = emitter.can_miss(path.hops());
        if can_miss {
            emitter.open(&format!("if ({to} >= 0)"));
        }
        for (add, value) in group.adds.iter().zip(&values).filter(|(add, _)| add.path == number) {
            let stored = stencil.stencil.fields[add.field].stored;
            let array = emitter.output(add.field);
            let place = emitter.number_at(&array, add.field, &to, 0, add.part);
            let before = read_as(place.clone(), stored, subject.precision);
            let total = added(&before, value, stored, subject.precision);
            emitter.line(format!("{place} = {};", stored_as(total, stored, subject.precision)));
        }
        if can_miss {
            emitter.close();
        }
    }
    let name = emitter.names.declared(&format!("{}_scatter", stencil.stencil.name));
    let (text, parameters) = emitter.text(&name, "a thread an element of one colour", &[]);
    Kernel {
        name,
        text,
        parameters,
        items: Items::Colours(group.number),
        block: choices.block,
        in_place: group.fields(),
    }
}
