//! A thread an element, which adds to its targets: by atomic operations, or, where no two elements of a launch lead to the
//! same target, as any other sum.

use super::emit::{At, Emitter};
use super::group::Group;
use super::owner::added;
use super::{Choices, Items, Kernel, Strategy, Subject, Table, What};
use crate::cuda::expression::{read_as, stored_as};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{Kind, Stored};

/// The kernel of a group.
///
/// # Errors
/// What is added to is rounded in a way that no atomic operation has.
pub fn kernel(subject: &Subject, choices: &Choices, group: &Group, number: usize) -> Result<Kernel, Refusal> {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    let is_atomic = choices.strategy == Strategy::Atomic;
    let mut emitter = Emitter::new(subject, choices);
    let element = emitter.names.internal(&stencil.mesh.sets[set].name);
    let items = if is_atomic {
        let n = emitter.size(set);
        emitter.line(format!("const int {element} = blockIdx.x * {} + threadIdx.x;", choices.block));
        emitter.line(format!("if ({element} >= {n}) return;"));
        Items::Set(set)
    } else {
        let n = emitter.parameter("items", "int", What::Items);
        let first = emitter.parameter("first", "int", What::First);
        let coloured = emitter.parameter("coloured", "const int*", What::Table(number, Table::Coloured));
        let item = emitter.names.internal("item");
        emitter.line(format!("const int {item} = blockIdx.x * {} + threadIdx.x;", choices.block));
        emitter.line(format!("if ({item} >= {n}) return;"));
        emitter.line(format!("const int {element} = {coloured}[{first} + {item}];"));
        Items::Colours(number)
    };
    emitter.level_line();
    emitter.set_index(&[], &element);
    // Values come first, so that loads need not wait for what is added.
    let mut values = Vec::new();
    for add in &group.adds {
        let body = &stencil.stencil.stores[add.store].body;
        let text = emitter.body(body, &At::default());
        let (wish, c_type) =
            (format!("{}_add_{}", stencil.stencil.fields[add.field].name, add.part), emitter.c_type(body.kind()));
        let name = emitter.names.fresh(&wish);
        emitter.line(format!("const {c_type} {name} = {text};"));
        values.push(name);
    }
    for (number, path) in group.paths.iter().enumerate() {
        let can_miss = path.hops().iter().any(|hop| stencil.mesh.maps[hop.map].missing != Missing::Never);
        let to = emitter.raw(path.hops());
        if can_miss {
            emitter.open(&format!("if ({to} >= 0)"));
        }
        for (add, value) in group.adds.iter().zip(&values).filter(|(add, _)| add.path == number) {
            let field = &stencil.stencil.fields[add.field];
            let array = emitter.output(add.field);
            let place = emitter.number_at(&array, add.field, &to, 0, add.part);
            if is_atomic {
                let same = match (field.stored, subject.precision) {
                    (Stored::F32, crate::ir::Precision::F64) | (Stored::F64, crate::ir::Precision::F32) => false,
                    _ => field.stored.kind() != Kind::Bool,
                };
                if !same {
                    let what = format!("`{}` is not stored in the precision in which one computes", field.name);
                    return Err(Refusal::new(format!("{what}, and no atomic operation rounds"))
                        .help("choose another strategy, or store it as `real`"));
                }
                emitter.line(format!("atomicAdd(&{place}, {value});"));
            } else {
                let before = read_as(place.clone(), field.stored, subject.precision);
                let total = added(&before, value, field.stored, subject.precision);
                emitter.line(format!("{place} = {};", stored_as(total, field.stored, subject.precision)));
            }
        }
        if can_miss {
            emitter.close();
        }
    }
    let name = emitter.names.fresh(&format!("{}_scatter", stencil.stencil.name));
    let how =
        if is_atomic { "a thread an element, which adds atomically" } else { "a thread an element of one colour" };
    let (text, parameters) = emitter.text(&name, how, &[]);
    Ok(Kernel { name, text, parameters, items, block: choices.block, in_place: group.fields() })
}
