//! A thread an element, which adds to its targets by atomic operations.
//!
//! Where the numbers of a target stand together, those of one target are added by neighbouring lanes, which is one request
//! to memory: the lanes of a two or a four turn their values round, so that each has one number of all their targets. Targets
//! that follow each other are then added to once. So that they do, an element adds to its smaller target first, and the elements
//! are in the order of these.

use super::{Additions, Strategy, values};
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Kind, Precision, Stored};
use crate::mesh::emit::Emitter;
use crate::mesh::group::{Add, Group};
use crate::mesh::{Choices, Items, Kernel, Subject};

/// Each element adds to its targets by atomic operations, in no order.
pub struct Atomic;

impl Strategy for Atomic {
    fn name(&self) -> &'static str {
        "atomic"
    }

    fn summary(&self) -> &'static str {
        "elements add by atomic operations, in no order: the last bits differ from run to run"
    }

    fn additions(&self) -> Additions {
        Additions::AsTheyCome
    }

    fn kernels(&self, subject: &Subject, choices: &Choices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(subject, choices, group)?])
    }
}

/// The kernel of a group.
///
/// # Errors
/// What is added to is rounded in a way that no atomic operation has.
fn kernel(subject: &Subject, choices: &Choices, group: &Group) -> Result<Kernel, Refusal> {
    let (stencil, set) = (subject.stencil, subject.stencil.set());
    for field in group.fields() {
        let own = &stencil.stencil.fields[field];
        if !has_atomics(own.stored, subject.precision) {
            let what = format!("`{}` is not stored in the precision in which one computes", own.name);
            return Err(Refusal::new(format!("{what}, and no atomic operation rounds"))
                .help("choose another strategy, or store it as `real`"));
        }
    }
    let mut emitter = Emitter::new(subject, choices);
    let parts = Parts::new(subject, choices, group);
    let all_stay = parts.iter().any(|part| part.lanes > 1);
    let (element, is_there) = if all_stay {
        // All lanes take part in turning.
        let element = emitter.element_of(set);
        let (item, is_there) = (emitter.names.internal("item"), emitter.names.internal("is_there"));
        let n = emitter.size(set);
        emitter.line(format!("const int {item} = blockIdx.x * {} + threadIdx.x;", choices.block));
        emitter.line(format!("const bool {is_there} = {item} < {n};"));
        emitter.line(format!("const int {element} = {is_there} ? {item} : {n} - 1;"));
        (element, is_there)
    } else {
        (emitter.thread_of(set), String::new())
    };
    emitter.level_line();
    emitter.set_index(&[], &element);
    let values = values(&mut emitter, group);
    let mut targets: Vec<String> = Vec::new();
    for path in &group.paths {
        let to = emitter.raw(path.hops());
        targets.push(if all_stay {
            let name = emitter.names.fresh(&format!("{to}_or_none"));
            emitter.line(format!("const int {name} = {is_there} ? {to} : -1;"));
            name
        } else {
            to
        });
    }
    let mut values_of: Vec<Vec<String>> = (0..group.paths.len()).map(|path| along(group, &values, path)).collect();
    if all_stay && is_alike(group) {
        smaller_first(&mut emitter, group, &mut targets, &mut values_of);
    }
    for (path, to) in targets.iter().enumerate() {
        let adds: Vec<Add> = group.adds.iter().copied().filter(|add| add.path == path).collect();
        let value_of = |field: FieldId, part: usize| {
            let at = adds.iter().position(|add| add.field == field && add.part as usize == part);
            at.map(|at| values_of[path][at].clone()).unwrap_or_default()
        };
        for own in parts.iter().filter(|own| own.path == path) {
            let array = emitter.output(own.field);
            let place = emitter.index_at(own.field, to, own.first);
            if own.lanes > 1 {
                let texts: Vec<String> =
                    (own.first..own.first + own.lanes).map(|part| value_of(own.field, part)).collect();
                let place = format!("{to} < 0 ? -1 : {place}");
                let index = emitter.names.fresh(&format!("{array}_at"));
                emitter.line(format!("const int {index} = {place};"));
                emitter.line(format!("add_{}({array}, {index}, {});", own.lanes, texts.join(", ")));
            } else {
                let value = &values_of[path][own.add];
                let can_miss = all_stay || emitter.can_miss(group.paths[path].hops());
                let condition = if can_miss { format!("if ({to} >= 0) ") } else { String::new() };
                emitter.line(format!("{condition}atomicAdd({array} + {place}, {value});"));
            }
        }
    }
    let mut functions: Vec<String> = Vec::new();
    for own in parts.iter().filter(|own| own.lanes > 1) {
        let c_type = emitter.c_type(stencil.stencil.fields[own.field].stored.kind());
        let text = turning(own.lanes, c_type);
        if !functions.contains(&text) {
            functions.push(text);
        }
    }
    let name = emitter.names.declared(&format!("{}_scatter", stencil.stencil.name));
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    let (text, parameters) = emitter.text(&name, "a thread an element, which adds atomically", &functions);
    Ok(Kernel { name, text, parameters, items: Items::Set(set), block: choices.block, in_place: group.fields() })
}

/// Whether sums are stored as they are computed.
fn has_atomics(stored: Stored, precision: Precision) -> bool {
    match (stored, precision) {
        (Stored::F32, Precision::F64) | (Stored::F64, Precision::F32) => false,
        _ => stored.kind() != Kind::Bool,
    }
}

/// Numbers of a field that lanes add together.
struct Parts {
    path: usize,
    field: FieldId,
    /// The first of them.
    first: usize,
    /// How many lanes, and numbers: 1, 2 or 4.
    lanes: usize,
    /// Which of the path's increments, of a single one.
    add: usize,
}

impl Parts {
    fn new(subject: &Subject, choices: &Choices, group: &Group) -> Vec<Self> {
        let mut all = Vec::new();
        for path in 0..group.paths.len() {
            let adds: Vec<&Add> = group.adds.iter().filter(|add| add.path == path).collect();
            for field in group.fields() {
                let own = &subject.stencil.stencil.fields[field];
                let together =
                    own.place.home.map_or(1, |home| choices.layout.together(home, own.stored, subject.precision));
                let fits = |lanes: &usize| together.is_multiple_of(*lanes) && choices.block.is_multiple_of(32);
                let lanes = [4, 2].into_iter().find(fits).unwrap_or(1);
                let width = own.place.home.map_or(1, |home| home.width as usize);
                let times =
                    |part: usize| adds.iter().filter(|add| add.field == field && add.part as usize == part).count();
                for first in (0..width).step_by(lanes) {
                    if lanes > 1 && (first..first + lanes).all(|part| times(part) == 1) {
                        all.push(Self { path, field, first, lanes, add: 0 });
                        continue;
                    }
                    for (add, own) in adds.iter().enumerate() {
                        if own.field == field && (first..first + lanes).contains(&(own.part as usize)) {
                            all.push(Self { path, field, first: own.part as usize, lanes: 1, add });
                        }
                    }
                }
            }
        }
        all
    }
}

/// The values that are added along a path.
fn along(group: &Group, values: &[String], path: usize) -> Vec<String> {
    group.adds.iter().zip(values).filter(|(add, _)| add.path == path).map(|(_, value)| value.clone()).collect()
}

/// Whether the same numbers are added to along two paths.
fn is_alike(group: &Group) -> bool {
    let of = |path: usize| {
        let adds = group.adds.iter().filter(move |add| add.path == path);
        adds.map(|add| (add.field, add.part)).collect::<Vec<_>>()
    };
    group.paths.len() == 2 && of(0) == of(1)
}

/// Changes two targets round, and what is added to them, where the second is the smaller.
fn smaller_first(emitter: &mut Emitter, group: &Group, targets: &mut [String], values: &mut [Vec<String>]) {
    let [a, b] = [targets[0].clone(), targets[1].clone()];
    let [is_turned, smaller, larger] = ["is_turned", "smaller", "larger"].map(|name| emitter.names.fresh(name));
    emitter.line(format!("const bool {is_turned} = {b} < {a};"));
    emitter.line(format!("const int {smaller} = {is_turned} ? {b} : {a}, {larger} = {is_turned} ? {a} : {b};"));
    (targets[0], targets[1]) = (smaller, larger);
    let adds = group.adds.iter().filter(|add| add.path == 0);
    for (number, add) in adds.enumerate() {
        let stencil = &emitter.subject.stencil.stencil;
        let c_type = emitter.c_type(stencil.stores[add.store].body.kind());
        let [x, y] = [values[0][number].clone(), values[1][number].clone()];
        for (path, [no, yes]) in [[&x, &y], [&y, &x]].into_iter().enumerate() {
            let name = emitter.names.fresh(&format!("{}_{}", ["smaller", "larger"][path], add.part));
            emitter.line(format!("const {c_type} {name} = {is_turned} ? {yes} : {no};"));
            values[path][number] = name;
        }
    }
}

/// A function that adds a thread's two or four numbers at an index, or nowhere if that is -1. Its lanes turn them round: lane n
/// has then number n of each.
fn turning(lanes: usize, c_type: &str) -> String {
    let numbers: Vec<String> = (0..lanes).map(|n| format!("v{n}")).collect();
    let parameters: Vec<String> = numbers.iter().map(|name| format!("{c_type} {name}")).collect();
    let mut text = format!(
        "static __device__ __forceinline__ void add_{lanes}({c_type}* const to, const int at, {})\n{{\n",
        parameters.join(", ")
    );
    let mut line = |own: &str| text.push_str(&format!("    {own}\n"));
    line(&format!("const int lane = threadIdx.x % {lanes}, first = threadIdx.x % 32 - lane;"));
    // Numbers a distance apart change places with those of the lane as far away: rows become columns.
    for by in (0..lanes.ilog2()).map(|bit| 1 << bit) {
        for low in (0..lanes).filter(|low| low & by == 0) {
            let (low, high) = (&numbers[low], &numbers[low + by]);
            line(&format!(
                "{{ const bool is_high = lane & {by}; const {c_type} got = __shfl_xor_sync(0xffffffffu, is_high ? {low} : {high}, {by}); if (is_high) {low} = got; else {high} = got; }}"
            ));
        }
    }
    for n in 0..lanes {
        line(&format!("const int at_{n} = __shfl_sync(0xffffffffu, at, first + {n});"));
    }
    for n in 1..lanes {
        let before = n - 1;
        line(&format!(
            "if (at_{before} == at_{n}) v{n} = v{before} + v{n}; else if (at_{before} >= 0) atomicAdd(to + at_{before} + lane, v{before});"
        ));
    }
    line(&format!("if (at_{0} >= 0) atomicAdd(to + at_{0} + lane, v{0});", lanes - 1));
    text.push_str("}\n");
    text
}
