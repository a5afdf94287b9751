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
use crate::kernel::build::{Computing, Making};
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
        let (stencil, set) = (task.stencil, task.stencil.set());
        let fields = group.fields();
        if let Some(&field) = fields.iter().find(|&&field| !has_atomics(task, field)) {
            let own = &stencil.stencil.fields[field];
            let what = format!("`{}` is not stored in the precision in which one computes", own.name);
            return Err(Refusal::new(format!("{what}, and no atomic operation rounds"))
                .help("choose another strategy, or store it as `real`"));
        }
        let mut writer = Writer::new(task, choices, &format!("{}_scatter", stencil.stencil.name));
        let paths = 0..group.paths.len();
        let adds: Vec<Vec<Add>> = paths.clone().map(|path| group.along(path)).collect();
        let runs: Vec<Vec<Run>> = adds.iter().map(|adds| Run::all(&writer, &fields, adds)).collect();
        let all_stay = runs.iter().flatten().any(|run| run.lanes > 1);
        let (element, items, is_there) = if all_stay {
            // All lanes take part in turning.
            let item = writer.own.name("item", writer.item());
            let range = writer.own_range();
            let n = range.as_ref().map_or_else(|| writer.size(set), |own| own.n);
            let is_there = writer.own.name("is_there", item.less(n));
            let element = is_there.picks(item, n.minus(1));
            let element = match range {
                Some(own) => own.first.plus(element),
                None => element,
            };
            let element = writer.own.name(&stencil.mesh.sets[set].name, element);
            (element, Items::Set(set, stencil.stencil.zones), Some(is_there))
        } else {
            let (element, items) = writer.thread_of_own();
            (element, items, None)
        };
        writer.find_level();
        writer.set_index(&[], element);
        let values = values(&mut writer, group);
        let mut targets: Vec<ValueId> = Vec::new();
        for path in &group.paths {
            let mut to = writer.raw(path.hops());
            if let Some(is_there) = is_there {
                to = writer.own.name(&format!("{}_or_none", writer.end_name(path)), is_there.picks(to, -1));
            }
            targets.push(to);
        }
        let along = |path: usize| group.adds.iter().zip(&values).filter(move |(add, _)| add.path == path);
        let mut values_of: Vec<Vec<ValueId>> =
            paths.map(|path| along(path).map(|(_, value)| *value).collect()).collect();
        if let ([a, b], [x, y], true) = (targets.as_mut_slice(), values_of.as_mut_slice(), all_stay && group.is_alike())
        {
            smaller_first(&mut writer, [a, b], [x, y], &adds[0]);
        }
        for (path, &to) in targets.iter().enumerate() {
            for run in &runs[path] {
                let array = writer.output(run.field);
                let place = writer.index_at(run.field, (Some(to), 0), run.first);
                if run.lanes > 1 {
                    let wish = format!("{}_at", writer.own.kernel().arrays[array].name);
                    let index = writer.own.name(&wish, to.less(0).picks(-1, place));
                    let values = run.adds.iter().map(|&add| values_of[path][add]).collect();
                    writer.own.atomic_add(array, index, values);
                    continue;
                }
                let can_miss = all_stay || writer.can_miss(group.paths[path].hops());
                let is_somewhere = can_miss.then(|| to.is(Relation::Ge, 0));
                let value = values_of[path][run.adds[0]];
                writer.when_if(is_somewhere, |writer| writer.own.atomic_add(array, place, vec![value]));
            }
        }
        Ok(vec![writer.finish("a thread an element, which adds atomically", items, fields)])
    }
}

/// Whether the sums of a field are stored as they are computed.
fn has_atomics(task: &MeshTask, field: FieldId) -> bool {
    match (task.stencil.stencil.fields[field].stored, task.precision) {
        (Stored::F32, Precision::F64) | (Stored::F64, Precision::F32) => false,
        (stored, _) => stored.kind() != Kind::Bool,
    }
}

/// Numbers of a field that lanes add together.
struct Run {
    field: FieldId,
    /// The first of them.
    first: usize,
    /// How many lanes, and numbers: 1, 2 or 4.
    lanes: usize,
    /// Which of the path's increments are added, one to each.
    adds: Vec<usize>,
}

impl Run {
    /// Those of all increments along a path.
    fn all(writer: &Writer, fields: &[FieldId], adds: &[Add]) -> Vec<Self> {
        let mut all = Vec::new();
        for &field in fields {
            let (own, choices) = (writer.field(field), writer.choices);
            let of_home = |home| choices.layout.together(home, own.stored, writer.task.precision);
            let together = own.place.home.map_or(1, of_home);
            let fits = |lanes: &usize| together.is_multiple_of(*lanes) && choices.threads.block.is_multiple_of(32);
            let lanes = [4, 2].into_iter().find(fits).unwrap_or(1);
            for first in (0..writer.width(field)).step_by(lanes) {
                let of_part = |part: usize| {
                    let is_own = move |add: &Add| add.field == field && add.part as usize == part;
                    (0..adds.len()).filter(move |&add| is_own(&adds[add]))
                };
                let parts = first..first + lanes;
                if lanes > 1 && parts.clone().all(|part| of_part(part).count() == 1) {
                    all.push(Self { field, first, lanes, adds: parts.flat_map(of_part).collect() });
                    continue;
                }
                for (number, add) in adds.iter().enumerate() {
                    let part = add.part as usize;
                    if add.field == field && parts.contains(&part) {
                        all.push(Self { field, first: part, lanes: 1, adds: vec![number] });
                    }
                }
            }
        }
        all
    }
}

/// Changes two targets round, and what is added to them, where the second is the smaller.
fn smaller_first(writer: &mut Writer, [a, b]: [&mut ValueId; 2], [xs, ys]: [&mut Vec<ValueId>; 2], adds: &[Add]) {
    let is_turned = writer.own.name("is_turned", b.less(*a));
    let turn = |writer: &mut Writer, [x, y]: [&mut ValueId; 2], end: &str| {
        let both = [(*x, *y, "smaller"), (*y, *x, "larger")];
        [*x, *y] = both.map(|(no, yes, name)| writer.own.name(&format!("{name}{end}"), is_turned.picks(yes, no)));
    };
    turn(writer, [a, b], "");
    for ((x, y), add) in xs.iter_mut().zip(ys).zip(adds) {
        turn(writer, [x, y], &format!("_{}", add.part));
    }
}
