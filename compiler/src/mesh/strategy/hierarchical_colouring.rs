//! Hierarchical colouring: a block of threads has a block of elements, an element a thread. What they add to is loaded to shared
//! memory, and so is what they read of the same targets, as far as it fits. Threads add there, one colour after the other: no two of
//! a colour lead to the same target. Then the block writes back. Blocks of one colour, which are launched together, share no target.
//!
//! After A. Sulyok and others, "Locality Optimized Unstructured Mesh Algorithms on GPUs", 2019, section 2.2.

use super::{Additions, Strategy, values};
use crate::diagnostic::Refusal;
use crate::gpu::SHARED;
use crate::ir::{FieldId, Path, Relation};
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Element, Meaning, MeshData, PieceTable, Step, Type, Unroll, ValueId};
use crate::mesh::footprint::Footprint;
use crate::mesh::group::Group;
use crate::mesh::shared::{Shared, bytes, fitting, piece};
use crate::mesh::sums::add_to;
use crate::mesh::writer::Writer;
use crate::mesh::writer::numbers::part_name;
use crate::mesh::writer::values::level_name;
use crate::mesh::{Cut, Items, Kernel, MeshChoices, MeshTask, NOWHERE, Threads, VectorLayout};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of elements add in shared memory, colour by colour, and blocks of one colour write to memory together.
pub struct HierarchicalColouring;

impl Strategy for HierarchicalColouring {
    fn name(&self) -> &'static str {
        "hierarchical-colouring"
    }

    fn summary(&self) -> &'static str {
        "blocks of elements add in shared memory, colour by colour; no two blocks at once add to the same target"
    }

    fn additions(&self) -> Additions {
        Additions::SameEveryTime
    }

    /// Blocks are of pieces, on one level.
    fn usual_layout(&self, _has_levels: bool) -> VectorLayout {
        VectorLayout::Pairs
    }

    fn kernels(&self, task: &MeshTask, choices: &MeshChoices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        let stencil = &task.stencil.stencil;
        let width = |field: FieldId| stencil.fields[field].place.home.map_or(1, |home| home.width as usize);
        let stored = |field: FieldId| Type::stored(stencil.fields[field].stored, task.precision);
        let targets =
            |elements: usize| task.counts.largest(group, Cut::Blocks { elements }).map(|largest| largest.targets);
        let bytes_of = |elements: usize| {
            let targets = targets(elements)?;
            Some(group.fields().into_iter().map(|field| width(field) * bytes(stored(field), targets)).sum())
        };
        let elements = fitting(choices.threads.block as usize, &bytes_of, self.name())?;
        let targets = targets(elements).unwrap_or(0);
        // Where elements are few, so are threads.
        let block = choices.threads.block.min(elements.next_multiple_of(32) as u32);
        let choices = &MeshChoices { threads: Threads { block, ..choices.threads }, ..*choices };
        let mut writer = Writer::new(task, choices, &format!("{}_in_blocks", stencil.name));
        let own = Block::new(&mut writer, group, targets);
        own.load(&mut writer);
        writer.own.barrier();
        own.add(&mut writer);
        own.write_back(&mut writer);
        let what = format!("a block of threads a block of elements, at most {elements}, which add colour after colour");
        let items = Items::Pieces { group: group.number, cut: Cut::Blocks { elements } };
        Ok(vec![writer.finish(&what, items, group.fields())])
    }
}

/// A block of threads.
struct Block<'g> {
    group: &'g Group,
    /// What is added to, as it is stored: an array in shared memory for each part of a field.
    kept: Vec<(FieldId, Vec<ArrayId>)>,
    /// What is read of targets.
    staged: Vec<Staged>,
    thread: ValueId,
    /// Where its elements begin and end.
    elements: [ValueId; 2],
    /// Where its targets do, among those of all blocks.
    targets: [ValueId; 2],
    /// The targets of all blocks.
    table: ArrayId,
}

/// Numbers of a field at targets, on a level so far away.
struct Staged {
    field: FieldId,
    shift: i32,
    /// Along which paths which parts are read.
    reads: BTreeSet<(usize, u32)>,
    /// Arrays in shared memory, by part.
    arrays: BTreeMap<u32, ArrayId>,
}

impl<'g> Block<'g> {
    /// Decides what lies in shared memory, and finds the block.
    fn new(writer: &mut Writer, group: &'g Group, targets: usize) -> Self {
        let task = writer.task;
        let fields = &task.stencil.stencil.fields;
        let mut shared = Shared::default();
        let mut kept = Vec::new();
        for field in group.fields() {
            let (wish, width, kind) =
                (format!("{}_kept", fields[field].name), writer.width(field), writer.stored(field));
            let part = |part| shared.array(writer, &part_name(&wish, width, part), kind, targets);
            kept.push((field, (0..width).map(part).collect()));
        }
        let mut staged = Vec::new();
        for mut own in readable(task, group) {
            let kind = writer.stored(own.field);
            let parts: BTreeSet<u32> = own.reads.iter().map(|(_, part)| *part).collect();
            if shared.bytes() + parts.len() * bytes(kind, targets) > SHARED {
                continue;
            }
            let wish = format!("{}_near{}", fields[own.field].name, level_name(own.shift));
            let width = writer.width(own.field);
            let array = |part| (part, shared.array(writer, &part_name(&wish, width, part as usize), kind, targets));
            own.arrays = parts.into_iter().map(array).collect();
            staged.push(own);
        }
        let (thread, [x, y, z, w]) = piece(writer, ["blocks", "range"], true);
        writer.find_level_of_block();
        let set_name = &task.stencil.mesh.sets[group.target].name;
        let table = writer.table(&format!("{set_name}_of_blocks"), MeshData::Piece(PieceTable::Targets));
        Self { group, kept, staged, thread, elements: [x, y], targets: [z, w], table }
    }

    /// A loop over the targets of the block: the target, and its place among them.
    fn each_target(&self, writer: &mut Writer, write: impl FnOnce(&mut Writer, ValueId, ValueId)) {
        let [first, end] = self.targets;
        let step = Step::By(writer.own.term(writer.choices.threads.block));
        writer.each("place", (self.thread, end.minus(first), step), Unroll::Free, |writer, place| {
            let set_name = &writer.task.stencil.mesh.sets[self.group.target].name;
            let target = writer.own.name(set_name, self.table.at(first.plus(place)));
            write(writer, target, place);
        });
    }

    /// Loads what is kept in shared memory.
    fn load(&self, writer: &mut Writer) {
        self.each_target(writer, |writer, target, place| {
            let fields = &writer.task.stencil.stencil.fields;
            // All loads first, so that they wait together.
            let mut stores = Vec::new();
            for (field, arrays) in &self.kept {
                let (array, wish) = (writer.output(*field), format!("{}_before", fields[*field].name));
                let values = writer.load(array, *field, (Some(target), 0), &wish, true);
                stores.extend(arrays.iter().copied().zip(values));
            }
            for own in &self.staged {
                let (array, wish) = (writer.input(own.field), format!("{}_there", fields[own.field].name));
                let values = writer.load(array, own.field, (Some(target), own.shift), &wish, true);
                stores.extend(own.arrays.iter().map(|(part, array)| (*array, values[*part as usize])));
            }
            for (array, value) in stores {
                writer.own.store(array, place, value);
            }
        });
    }

    /// Computes what elements add, and adds it, colour after colour.
    fn add(&self, writer: &mut Writer) {
        let group = self.group;
        let [first, end] = self.elements;
        let table = Meaning::Mesh(MeshData::Piece(PieceTable::Places));
        let places = writer.array("places", Type::one(Element::U16), false, table);
        // Of an element, its colour and then its places.
        let of_element = |element: Term, number: usize| -> Term {
            places.at((group.paths.len() + 1).times(element).plus(number)).to(Type::I32)
        };
        // Threads without an element of their own compute the last one's, and add nothing.
        let item = writer.own.name("item", first.plus(self.thread).at_most(end.minus(1)));
        let colour = self.thread.less(end.minus(first)).picks(of_element(item.into(), 0), -1);
        let colour = writer.own.name("colour", colour);
        writer.in_piece = Some(item);
        let mut own_places = Vec::new();
        for path in 0..group.paths.len() {
            own_places.push(writer.own.name(&format!("place_{path}"), of_element(item.into(), path + 1)));
        }
        self.near(writer, &own_places);
        // Values come before all barriers.
        let values = values(writer, group);
        // The last element has the last colour.
        let colours = of_element(end.minus(1), 0);
        let colours = writer.own.name("colours", colours.plus(1));
        let one = Step::By(writer.own.int(1));
        writer.each("turn", (0, colours, one), Unroll::Free, |writer, turn| {
            writer.when(turn.is(Relation::Eq, colour), |writer| {
                for (path, &place) in own_places.iter().enumerate() {
                    writer.when_if(self.is_there(writer, path, place), |writer| {
                        for (add, &value) in group.adds.iter().zip(&values).filter(|(add, _)| add.path == path) {
                            let arrays = self.kept.iter().find(|(field, _)| *field == add.field);
                            let array = arrays.and_then(|(_, arrays)| arrays.get(add.part as usize));
                            if let Some(&array) = array {
                                add_to(writer, add.field, array, place, value);
                            }
                        }
                    });
                }
            });
            writer.own.barrier();
        });
        writer.in_piece = None;
    }

    /// Whether there is a target at a place, if there may be none.
    fn is_there(&self, writer: &Writer, path: usize, place: ValueId) -> Option<Term> {
        let can_miss = writer.can_miss(self.group.paths[path].hops());
        can_miss.then(|| place.is(Relation::Ne, u32::from(NOWHERE)))
    }

    /// Says what is read of targets: what lies in shared memory.
    fn near(&self, writer: &mut Writer, places: &[ValueId]) {
        for own in &self.staged {
            let stored = writer.task.stencil.stencil.fields[own.field].stored;
            for (path, part) in &own.reads {
                let Some(&array) = own.arrays.get(part) else { continue };
                // Nobody looks at what comes through a hole.
                let place = places[*path];
                let place = self.is_there(writer, *path, place).map_or(place.into(), |own| own.picks(place, 0));
                let at = self.group.paths[*path].then(&Path::levels_only(own.shift));
                let wish = part_name(&writer.read_name(own.field, &at), writer.width(own.field), *part as usize);
                let number = writer.own.load(array, place);
                let number = writer.scalar().read(&mut writer.own, number, stored);
                let number = writer.own.name(&wish, number);
                writer.remember((own.field, at, *part), number);
            }
        }
    }

    /// Writes what is kept to memory.
    fn write_back(&self, writer: &mut Writer) {
        self.each_target(writer, |writer, target, place| {
            for (field, arrays) in &self.kept {
                let array = writer.output(*field);
                let values: Vec<ValueId> = arrays.iter().map(|&kept| writer.own.load(kept, place)).collect();
                writer.store_all(array, *field, (target, 0), &values);
            }
        });
    }
}

/// What is read where a group's paths lead, each field and level by itself; arrays are still missing. Numbers of slots of maps
/// are read by one element each, and an element's own by itself.
fn readable(task: &MeshTask, group: &Group) -> Vec<Staged> {
    let mut all: Vec<Staged> = Vec::new();
    for (field, at, part) in Footprint::new(task, group).reads {
        let path = group.paths.iter().position(|path| !path.is_here() && path.hops() == at.hops());
        let is_plain = task.stencil.stencil.fields[field].place.home.is_some_and(|home| home.map.is_none());
        let (Some(path), true) = (path, is_plain) else { continue };
        let known = all.iter().position(|own| (own.field, own.shift) == (field, at.levels()));
        let known = known.unwrap_or_else(|| {
            all.push(Staged { field, shift: at.levels(), reads: BTreeSet::new(), arrays: BTreeMap::new() });
            all.len() - 1
        });
        all[known].reads.insert((path, part));
    }
    all
}
