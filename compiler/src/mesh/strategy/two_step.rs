//! Two kernels: a thread an element writes what it adds to memory, then a thread a target gathers that, in order.

use super::{Additions, Strategy, signed};
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Path, Relation};
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Binary, Element, Meaning, MeshData, MeshTable, Type, ValueId};
use crate::mesh::gather::entry;
use crate::mesh::group::Group;
use crate::mesh::rows::{Places, is_row, row};
use crate::mesh::sums::Sums;
use crate::mesh::writer::Writer;
use crate::mesh::{Items, Kernel, MeshChoices, MeshTask};

/// Each element writes its contributions to memory, then each target gathers them.
pub struct TwoStep;

impl Strategy for TwoStep {
    fn name(&self) -> &'static str {
        "two-step"
    }

    fn summary(&self) -> &'static str {
        "elements write what they add to memory, then each target gathers it"
    }

    fn additions(&self) -> Additions {
        Additions::InOrder
    }

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        group.check_order(task)?;
        let kind = |field: FieldId| task.stencil.stencil.fields[field].stored.kind();
        let (fields, name) = (group.fields(), &task.stencil.stencil.name);
        let own = |field: FieldId| &task.stencil.stencil.fields[field].name;
        if let Some(&other) = fields.iter().find(|&&field| kind(field) != kind(fields[0])) {
            let (first, second) = (own(fields[0]), own(other));
            return Err(Refusal::new(format!(
                "`{name}` adds to `{first}` and `{second}`, of which one holds whole numbers: two-step keeps what is added in one array"
            ))
            .help("take another strategy, such as owner, or make two stencils of it"));
        }
        Ok(vec![written(task, choices, group), gathered(task, choices, group)])
    }
}

/// What lies between the steps: of each element (and level) what it adds along each path, path after path; or once, where paths
/// differ in signs alone. So what comes along an entry, which is an element's number times the paths plus that of the path, stands
/// together.
struct Between {
    array: ArrayId,
    /// By increment and path, whether it is the negative of what lies there, if that lies there once.
    turned: Option<Vec<Vec<bool>>>,
    /// How many values come along a path.
    each: usize,
    paths: usize,
    kind: Type,
}

impl Between {
    fn new(writer: &mut Writer, group: &Group, is_written: bool) -> Self {
        let stencil = writer.task.stencil;
        let kind = writer.computing(stencil.stencil.stores[group.adds[0].store].body.kind());
        let array = writer.array("between", kind, is_written, Meaning::Mesh(MeshData::Between(group.number)));
        let turned = group.turned(stencil);
        let paths = if turned.is_some() { 1 } else { group.paths.len() };
        let each = (0..paths).map(|path| group.along(path).len()).max().unwrap_or(0);
        Self { array, turned, each, paths, kind }
    }

    /// How many values one instruction moves.
    fn at_once(&self) -> usize {
        match self.kind.element {
            Element::F64 if self.each.is_multiple_of(2) => 2,
            Element::F32 if self.each.is_multiple_of(4) => 4,
            _ => 1,
        }
    }

    /// Where the values begin that stand for an element, or for an element and a path.
    fn place(&self, writer: &mut Writer, entry: Term) -> ValueId {
        let mut entry = entry;
        let levels = writer.task.computed.len();
        if levels > 1 && writer.choices.layout.is_by_column() {
            entry = entry.times(levels).plus(writer.level_number());
        } else if levels > 1 {
            let rows = writer.level_number().times(writer.size(writer.task.stencil.set()));
            entry = entry.plus(rows.times(self.paths));
        }
        writer.own.term(self.each.times(entry))
    }

    /// What lies at a place.
    fn load(&self, writer: &mut Writer, place: ValueId) -> Vec<ValueId> {
        let at_once = self.at_once();
        let runs = (0..self.each).step_by(at_once).flat_map(|first| {
            let run = writer.own.load_run(self.array, place.plus(first), at_once as u8);
            let run = writer.own.name("added", run);
            writer.lanes_of(run, at_once)
        });
        runs.collect()
    }

    /// Writes values to a place.
    fn store(&self, writer: &mut Writer, place: ValueId, values: &[ValueId]) {
        let at_once = self.at_once();
        for (n, run) in values.chunks(at_once).enumerate() {
            // What is left over goes one by one.
            for (m, moved) in run.chunks(if run.len() == at_once { at_once } else { 1 }).enumerate() {
                let value = writer.side_by_side(moved);
                writer.own.store(self.array, place.plus(n * at_once + m), value);
            }
        }
    }
}

fn written(task: &MeshTask, choices: &MeshChoices, group: &Group) -> Kernel {
    let stencil = task.stencil;
    let mut writer = Writer::new(task, choices, &format!("{}_values", stencil.stencil.name));
    let (element, items) = writer.thread_of_own();
    writer.find_level();
    writer.set_index(&[], element);
    let between = Between::new(&mut writer, group, true);
    for path in 0..between.paths {
        let values = group.along(path).into_iter();
        let values = values.map(|add| writer.body(&stencil.stencil.stores[add.store].body, &Path::default()));
        let values: Vec<ValueId> = values.collect();
        // A path along which less comes leaves some places as they are.
        let place = between.place(&mut writer, between.paths.times(element).plus(path));
        between.store(&mut writer, place, &values);
    }
    writer.finish("a thread an element, which writes what it adds", items, Vec::new())
}

fn gathered(task: &MeshTask, choices: &MeshChoices, group: &Group) -> Kernel {
    let stencil = task.stencil;
    let set_name = &stencil.mesh.sets[group.target].name;
    let mut writer = Writer::new(task, choices, &format!("{}_gathered", stencil.stencil.name));
    let target = writer.thread_of(group.target);
    writer.find_level();
    let sums = Sums::new(&mut writer, &group.fields(), target, false, false);
    let degrees = task.counts.degrees(group);
    let between = Between::new(&mut writer, group, false);
    let entries = writer.table("entries", MeshData::Table(group.number, MeshTable::Entries));
    let row_width = is_row(degrees).then_some(degrees.max);
    let places = Places::new(&mut writer, group, row_width, target, (Relation::Ge, 0));
    let entries = row_width.map_or(entries, |width| row(&mut writer, entries, width, target));
    let entry_here = |writer: &mut Writer, place: ValueId| writer.own.name("entry_here", entries.at(place));
    places.each(&mut writer, entry_here, |writer, _, entry| add(writer, group, &between, &sums, entry));
    sums.store(&mut writer, target, &|_| true);
    let (what, in_place) = (format!("a thread a {set_name}, which gathers"), task.in_place(group.fields(), false));
    writer.finish(&what, Items::Set(group.target, None), in_place)
}

/// Adds what lies at an entry to the sums: where paths add to the same numbers, it does not matter which one it was, but for signs.
fn add(writer: &mut Writer, group: &Group, between: &Between, sums: &Sums, at: ValueId) {
    let paths = group.paths.len();
    let first = match between.turned {
        Some(_) => writer.own.name("element", entry(at, paths, Binary::Div)),
        None => at,
    };
    let place = between.place(writer, first.into());
    let mut values = between.load(writer, place);
    if let Some(turned) = &between.turned {
        let path = writer.own.name("path", entry(at, paths, Binary::Rem));
        for (value, turned) in values.iter_mut().zip(turned) {
            *value = signed(writer, *value, path, turned);
        }
    }
    let is_alike = group.is_alike();
    for number in 0..if is_alike { 1 } else { between.paths } {
        let is_own = (!is_alike).then(|| entry(at, between.paths, Binary::Rem).is(Relation::Eq, number));
        writer.when_if(is_own, |writer| {
            for (add, value) in group.along(number).iter().zip(&values) {
                sums.add(writer, add, 0, *value);
            }
        });
    }
}
