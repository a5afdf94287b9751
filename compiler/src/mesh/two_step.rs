//! Two kernels: a thread an element writes what it adds to memory, then a thread a target gathers that, in order.

use super::emit::{At, Emitter};
use super::group::Group;
use super::owner::rounded;
use super::{Choices, Items, Kernel, Subject, Table, What};
use crate::cuda::expression::stored_as;
use crate::diagnostic::Refusal;
use crate::ir::Kind;

/// The kernels of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ, or they are of several kinds.
pub fn kernels(subject: &Subject, choices: &Choices, group: &Group, number: usize) -> Result<[Kernel; 2], Refusal> {
    group.check_order(subject.stencil)?;
    let kinds = group.adds.iter().map(|add| subject.stencil.stencil.stores[add.store].body.kind());
    let kinds: Vec<Kind> = kinds.collect();
    if kinds.iter().any(|kind| *kind != kinds[0]) {
        return Err(Refusal::new("whole and real numbers are added, which two-step keeps in one array")
            .help("choose another strategy, or two stencils"));
    }
    Ok([written(subject, choices, group, number), gathered(subject, choices, group, number)])
}

/// A value of an element between the steps: store after store, each of all elements (and levels).
fn place(emitter: &mut Emitter, group: &Group, number: usize, element: &str, add: &str) -> String {
    let stencil = emitter.subject.stencil;
    let body = &stencil.stencil.stores[group.adds[0].store].body;
    let c_type = format!("{}*", emitter.c_type(body.kind()));
    let between = emitter.parameter("between", &c_type, What::Between(number));
    let n = emitter.size(stencil.set());
    let count = group.adds.len();
    let levels = emitter.subject.computed.len();
    // Those of one element and path stand together.
    if levels == 1 {
        return format!("{between}[{count} * {element} + {add}]");
    }
    format!("{between}[{count} * (blockIdx.y * {n} + {element}) + {add}]")
}

fn written(subject: &Subject, choices: &Choices, group: &Group, number: usize) -> Kernel {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    let mut emitter = Emitter::new(subject, choices);
    let element = emitter.names.internal(&stencil.mesh.sets[set].name);
    let n = emitter.size(set);
    emitter.line(format!("const int {element} = blockIdx.x * {} + threadIdx.x;", choices.block));
    emitter.line(format!("if ({element} >= {n}) return;"));
    emitter.level_line();
    emitter.set_index(&[], &element);
    let mut texts = Vec::new();
    for add in by_path(group) {
        texts.push(emitter.body(&stencil.stencil.stores[group.adds[add].store].body, &At::default()));
    }
    for (seat, text) in texts.iter().enumerate() {
        let place = place(&mut emitter, group, number, &element, &seat.to_string());
        emitter.line(format!("{place} = {text};"));
    }
    let name = emitter.names.fresh(&format!("{}_values", stencil.stencil.name));
    let (text, parameters) = emitter.text(&name, "a thread an element, which writes what it adds", &[]);
    Kernel { name, text, parameters, items: Items::Set(set), block: choices.block, in_place: Vec::new() }
}

/// The adds of a group, those of one path together.
fn by_path(group: &Group) -> Vec<usize> {
    let mut order: Vec<usize> = (0..group.adds.len()).collect();
    order.sort_by_key(|&add| group.adds[add].path);
    order
}

fn gathered(subject: &Subject, choices: &Choices, group: &Group, number: usize) -> Kernel {
    let stencil = subject.stencil;
    let mut emitter = Emitter::new(subject, choices);
    let set_name = &stencil.mesh.sets[group.target].name;
    let target = emitter.names.internal(set_name);
    let n = emitter.size(group.target);
    emitter.line(format!("const int {target} = blockIdx.x * {} + threadIdx.x;", choices.block));
    emitter.line(format!("if ({target} >= {n}) return;"));
    emitter.level_line();
    let mut sums = Vec::new();
    for field in group.fields() {
        let own = &stencil.stencil.fields[field];
        let width = own.place.home.map_or(1, |home| home.width as usize);
        let c_type = emitter.c_type(own.stored.kind());
        let starts = if (subject.from_zero)(field) {
            vec!["0".to_owned(); width]
        } else {
            let array = emitter.output(field);
            emitter.load(&array, field, &target, 0, &format!("{}_before", own.name))
        };
        let mut names = Vec::new();
        for (part, start) in starts.into_iter().enumerate() {
            let sum = emitter.names.fresh(&format!("{}_sum_{part}", own.name));
            emitter.line(format!("{c_type} {sum} = {start};"));
            names.push(sum);
        }
        sums.push((field, names));
    }
    let paths = group.paths.len();
    let offsets = emitter.parameter("offsets", "const int*", What::Table(number, Table::Offsets));
    let entries = emitter.parameter("entries", "const int*", What::Table(number, Table::Entries));
    let (place_name, element, path) =
        (emitter.names.internal("place"), emitter.names.internal("element"), emitter.names.internal("path"));
    emitter.open(&format!(
        "for (int {place_name} = {offsets}[{target}]; {place_name} < {offsets}[{target} + 1]; ++{place_name})"
    ));
    emitter.line(format!(
        "const int {element} = {entries}[{place_name}] / {paths}, {path} = {entries}[{place_name}] % {paths};"
    ));
    let order = by_path(group);
    for number_of_path in 0..paths {
        if paths > 1 {
            emitter.open(&format!("if ({path} == {number_of_path})"));
        }
        for (seat, &add) in order.iter().enumerate().filter(|(_, add)| group.adds[**add].path == number_of_path) {
            let add = group.adds[add];
            let value = place(&mut emitter, group, number, &element, &seat.to_string());
            let names = sums.iter().find(|(field, _)| *field == add.field).map(|(_, names)| names.clone());
            let sum = names.unwrap_or_default().get(add.part as usize).cloned().unwrap_or_default();
            let total = rounded(format!("{sum} + {value}"), stencil.stencil.fields[add.field].stored, &emitter);
            emitter.line(format!("{sum} = {total};"));
        }
        if paths > 1 {
            emitter.close();
        }
    }
    emitter.close();
    for (field, names) in &sums {
        let stored = stencil.stencil.fields[*field].stored;
        let texts: Vec<String> = names.iter().map(|name| stored_as(name.clone(), stored, subject.precision)).collect();
        let array = emitter.output(*field);
        emitter.store_all(&array, *field, &target, &texts);
    }
    let name = emitter.names.fresh(&format!("{}_gathered", stencil.stencil.name));
    let (text, parameters) = emitter.text(&name, &format!("a thread a {set_name}, which gathers"), &[]);
    let in_place = group.fields().into_iter().filter(|&field| !(subject.from_zero)(field)).collect();
    Kernel { name, text, parameters, items: Items::Set(group.target), block: choices.block, in_place }
}
