//! A thread an element, which adds to its targets by atomic operations.
//!
//! Where the numbers of a target stand together, those of one target are added by neighbouring lanes, which is one request
//! to memory: the lanes of a two or a four turn their values round, so that each has one number of all their targets. Targets
//! that follow each other are then added to once. So that they do, an element adds to its smaller target first, and the elements
//! are in the order of these.

use super::{Additions, Strategy, values};
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Kind, Precision, Relation, Stored};
use crate::kernel::ValueId;
use crate::kernel::build::Making;
use crate::mesh::group::{Add, Group};
use crate::mesh::writer::Writer;
use crate::mesh::{Items, Kernel, MeshChoices, MeshTask};

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

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(task, choices, group)?])
    }
}

/// The kernel of a group.
///
/// # Errors
/// What is added to is rounded in a way that no atomic operation has.
fn kernel(task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Kernel, Refusal> {
    let (stencil, set) = (task.stencil, task.stencil.set());
    for field in group.fields() {
        let own = &stencil.stencil.fields[field];
        if !has_atomics(own.stored, task.precision) {
            let what = format!("`{}` is not stored in the precision in which one computes", own.name);
            return Err(Refusal::new(format!("{what}, and no atomic operation rounds"))
                .help("choose another strategy, or store it as `real`"));
        }
    }
    let mut writer = Writer::new(task, choices, &format!("{}_scatter", stencil.stencil.name));
    let parts = Parts::new(task, choices, group);
    let all_stay = parts.iter().any(|part| part.lanes > 1);
    let (element, is_there) = if all_stay {
        // All lanes take part in turning.
        let item = writer.item();
        let item = writer.own.name("item", item);
        let (n, one) = (writer.size(set), writer.own.int(1));
        let is_there = writer.own.less(item, n);
        let is_there = writer.own.name("is_there", is_there);
        let last = writer.own.sub(n, one);
        let element = writer.own.choose(is_there, item, last);
        (writer.own.name(&stencil.mesh.sets[set].name, element), Some(is_there))
    } else {
        (writer.thread_of(set), None)
    };
    writer.find_level();
    writer.set_index(&[], element);
    let values = values(&mut writer, group);
    let [zero, nowhere] = [0, -1].map(|number| writer.own.int(number));
    let mut targets: Vec<ValueId> = Vec::new();
    for path in &group.paths {
        let to = writer.raw(path.hops());
        targets.push(match is_there {
            None => to,
            Some(is_there) => {
                let to = writer.own.choose(is_there, to, nowhere);
                writer.own.name(&format!("{}_or_none", writer.end_name(path)), to)
            }
        });
    }
    let mut values_of: Vec<Vec<ValueId>> = (0..group.paths.len()).map(|path| along(group, &values, path)).collect();
    if all_stay && is_alike(group) {
        smaller_first(&mut writer, group, &mut targets, &mut values_of);
    }
    for (path, &to) in targets.iter().enumerate() {
        let adds: Vec<Add> = group.adds.iter().copied().filter(|add| add.path == path).collect();
        let added_to = |field: FieldId, part: usize| {
            let at = adds.iter().position(|add| add.field == field && add.part as usize == part);
            at.map(|at| values_of[path][at])
        };
        for own in parts.iter().filter(|own| own.path == path) {
            let array = writer.output(own.field);
            let place = writer.index_at(own.field, (Some(to), 0), own.first);
            if own.lanes > 1 {
                let values = (own.first..own.first + own.lanes).filter_map(|part| added_to(own.field, part)).collect();
                let is_hole = writer.own.less(to, zero);
                let place = writer.own.choose(is_hole, nowhere, place);
                let wish = writer.own.kernel().arrays[array].name.to_string();
                let index = writer.own.name(&format!("{wish}_at"), place);
                writer.own.atomic_add(array, index, values);
                continue;
            }
            let value = values_of[path][own.add];
            let can_miss = all_stay || writer.can_miss(group.paths[path].hops());
            let is_somewhere = can_miss.then(|| writer.own.compare(Relation::Ge, to, zero));
            writer.when_if(is_somewhere, |writer| writer.own.atomic_add(array, place, vec![value]));
        }
    }
    let code = writer.finish("a thread an element, which adds atomically");
    Ok(Kernel { code, items: Items::Set(set), in_place: group.fields() })
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
    fn new(task: &MeshTask, choices: &MeshChoices, group: &Group) -> Vec<Self> {
        let mut all = Vec::new();
        for path in 0..group.paths.len() {
            let adds: Vec<&Add> = group.adds.iter().filter(|add| add.path == path).collect();
            for field in group.fields() {
                let own = &task.stencil.stencil.fields[field];
                let together =
                    own.place.home.map_or(1, |home| choices.layout.together(home, own.stored, task.precision));
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
fn along(group: &Group, values: &[ValueId], path: usize) -> Vec<ValueId> {
    group.adds.iter().zip(values).filter(|(add, _)| add.path == path).map(|(_, value)| *value).collect()
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
fn smaller_first(writer: &mut Writer, group: &Group, targets: &mut [ValueId], values: &mut [Vec<ValueId>]) {
    let [a, b] = [targets[0], targets[1]];
    let is_turned = writer.own.less(b, a);
    let is_turned = writer.own.name("is_turned", is_turned);
    for (path, [no, yes], name) in [(0, [a, b], "smaller"), (1, [b, a], "larger")] {
        let target = writer.own.choose(is_turned, yes, no);
        targets[path] = writer.own.name(name, target);
    }
    let adds = group.adds.iter().filter(|add| add.path == 0);
    for (number, add) in adds.enumerate() {
        let [x, y] = [values[0][number], values[1][number]];
        for (path, [no, yes], name) in [(0, [x, y], "smaller"), (1, [y, x], "larger")] {
            let value = writer.own.choose(is_turned, yes, no);
            values[path][number] = writer.own.name(&format!("{name}_{}", add.part), value);
        }
    }
}
