//! Hierarchical colouring: a block of threads has a block of elements, an element a thread. What they add to is loaded to shared
//! memory, and so is what they read of the same targets, as far as it fits. Threads add there, one colour after the other: no two of
//! a colour lead to the same target. Then the block writes back. Blocks of one colour, which are launched together, share no target.
//!
//! After A. Sulyok and others, "Locality Optimized Unstructured Mesh Algorithms on GPUs", 2019, section 2.2.

use super::{Additions, Strategy};
use crate::cuda::expression::{read_as, stored_as};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{FieldId, Path};
use crate::mesh::emit::{At, Emitter};
use crate::mesh::group::Group;
use crate::mesh::looks::Looks;
use crate::mesh::shared::{Shared, USUAL, bytes, fitting};
use crate::mesh::sums::added;
use crate::mesh::{Choices, Cut, Items, Kernel, NOWHERE, PieceTable, Subject, What};
use crate::plan::stored_type;

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

    fn kernels(&self, subject: &Subject, choices: &Choices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(subject, choices, group)?])
    }
}

/// The kernel of a group.
///
/// # Errors
/// What a single element adds to does not fit into shared memory.
fn kernel(subject: &Subject, choices: &Choices, group: &Group) -> Result<Kernel, Refusal> {
    let stencil = subject.stencil;
    let width = |field: FieldId| stencil.stencil.fields[field].place.home.map_or(1, |home| home.width as usize);
    let stored = |field: FieldId| stored_type(stencil.stencil.fields[field].stored, subject.precision);
    let targets =
        |elements: usize| subject.counts.largest(group, Cut::Blocks { elements }).map(|largest| largest.targets);
    let bytes_of = |elements: usize| {
        let targets = targets(elements)?;
        Some(group.fields().into_iter().map(|field| width(field) * bytes(stored(field), targets)).sum())
    };
    let elements = fitting(choices.block as usize, &bytes_of, HierarchicalColouring.name())?;
    let targets = targets(elements).unwrap_or(0);
    // Where elements are few, so are threads.
    let block = choices.block.min(elements.next_multiple_of(32) as u32);
    let choices = &Choices { block, ..*choices };
    let mut emitter = Emitter::new(subject, choices);
    let own = Block::new(&mut emitter, group, targets);
    own.load(&mut emitter);
    emitter.line("__syncthreads();");
    own.add(&mut emitter);
    own.write_back(&mut emitter);
    let name = emitter.names.declared(&format!("{}_in_blocks", stencil.stencil.name));
    let what = format!("a block of threads a block of elements, at most {elements}, which add colour after colour");
    let (text, parameters) = emitter.text(&name, &what, &[]);
    let items = Items::Pieces { group: group.number, cut: Cut::Blocks { elements }, shared: own.shared.bytes() };
    Ok(Kernel { name, text, parameters, items, block, in_place: group.fields() })
}

/// The texts of a block of threads.
struct Block<'g> {
    group: &'g Group,
    shared: Shared,
    /// What is added to, as it is stored: a name in shared memory for each part of a field.
    kept: Vec<(FieldId, Vec<String>)>,
    /// What is read of targets.
    staged: Vec<Staged>,
    /// The ranges of the block, and the number of the thread.
    range: String,
    thread: String,
    /// The targets of all blocks.
    targets: String,
}

/// Numbers of a field at targets, on a level so far away.
struct Staged {
    field: FieldId,
    shift: i32,
    /// Names in shared memory, by part.
    parts: Vec<(u32, String)>,
    /// Along which paths which parts are read.
    reads: Vec<(usize, u32)>,
}

impl<'g> Block<'g> {
    /// Decides what lies in shared memory, and finds the block.
    fn new(emitter: &mut Emitter, group: &'g Group, targets: usize) -> Self {
        let subject = emitter.subject;
        let (fields, precision) = (&subject.stencil.stencil.fields, subject.precision);
        let mut shared = Shared::default();
        let mut kept = Vec::new();
        for field in group.fields() {
            let own = &fields[field];
            let width = own.place.home.map_or(1, |home| home.width as usize);
            let c_type = stored_type(own.stored, precision);
            let mut names = Vec::new();
            for part in 0..width {
                let name = emitter.names.fresh(&part_name(&format!("{}_kept", own.name), width, part));
                shared.array(&name, c_type, targets);
                names.push(name);
            }
            kept.push((field, names));
        }
        let mut staged = Vec::new();
        for mut own in readable(subject, group) {
            let field = &fields[own.field];
            let c_type = stored_type(field.stored, precision);
            if shared.bytes() + own.parts.len() * bytes(c_type, targets) > USUAL {
                continue;
            }
            let level = match own.shift {
                0 => String::new(),
                1.. => format!("_down{}", own.shift),
                _ => format!("_up{}", -own.shift),
            };
            let width = field.place.home.map_or(1, |home| home.width as usize);
            for (part, name) in &mut own.parts {
                *name = emitter.names.fresh(&part_name(&format!("{}_near{level}", field.name), width, *part as usize));
                shared.array(name, c_type, targets);
            }
            staged.push(own);
        }
        shared.declare(emitter, emitter.lines.len());
        let blocks = emitter.parameter("blocks", "const int4*", What::Piece(PieceTable::Ranges));
        let first = emitter.parameter("first", "int", What::First);
        let (range, thread) = (emitter.names.fresh("range"), emitter.names.fresh("thread"));
        emitter.line(format!("const int {thread} = threadIdx.x;"));
        emitter.line(format!("const int4 {range} = {blocks}[{first} + blockIdx.x];"));
        emitter.level_line();
        let set_name = &subject.stencil.mesh.sets[group.target].name;
        let table = What::Piece(PieceTable::Targets);
        let targets = emitter.parameter(&format!("{set_name}_of_blocks"), "const int*", table);
        Self { group, shared, kept, staged, range, thread, targets }
    }

    /// A loop over the targets of the block: the target, and its place among them.
    fn open_targets(&self, emitter: &mut Emitter) -> [String; 2] {
        let (range, thread, block) = (&self.range, &self.thread, emitter.choices.block);
        let place = emitter.names.fresh("place");
        emitter.open(&format!("for (int {place} = {thread}; {place} < {range}.w - {range}.z; {place} += {block})"));
        let target = emitter.names.fresh(&emitter.subject.stencil.mesh.sets[self.group.target].name);
        emitter.line(format!("const int {target} = {}[{range}.z + {place}];", self.targets));
        [target, place]
    }

    /// Loads what is kept in shared memory.
    fn load(&self, emitter: &mut Emitter) {
        let [target, place] = self.open_targets(emitter);
        // All loads first, so that they wait together.
        let mut stores = Vec::new();
        let name_of = |emitter: &Emitter, field: FieldId| emitter.subject.stencil.stencil.fields[field].name.clone();
        for (field, arrays) in &self.kept {
            let (array, wish) = (emitter.output(*field), format!("{}_before", name_of(emitter, *field)));
            let values = emitter.load_stored(&array, *field, &target, 0, &wish);
            stores.extend(arrays.iter().cloned().zip(values));
        }
        for own in &self.staged {
            let (array, wish) = (emitter.input(own.field), format!("{}_there", name_of(emitter, own.field)));
            let values = emitter.load_stored(&array, own.field, &target, own.shift, &wish);
            stores.extend(own.parts.iter().map(|(part, array)| (array.clone(), values[*part as usize].clone())));
        }
        for (array, value) in stores {
            emitter.line(format!("{array}[{place}] = {value};"));
        }
        emitter.close();
    }

    /// Computes what elements add, and adds it, colour after colour.
    fn add(&self, emitter: &mut Emitter) {
        let subject = emitter.subject;
        let (stencil, group, range, thread) = (subject.stencil, self.group, &self.range, &self.thread);
        let columns = group.paths.len() + 1;
        let table = What::Piece(PieceTable::Places);
        let places = emitter.parameter("places", "const unsigned short*", table);
        let item = emitter.names.fresh("item");
        // Threads without an element of their own compute the last one's, and add nothing.
        emitter.line(format!("const int {item} = min({range}.x + {thread}, {range}.y - 1);"));
        let colour = emitter.names.fresh("colour");
        let own = format!("{thread} < {range}.y - {range}.x");
        emitter.line(format!("const int {colour} = {own} ? int({places}[{columns} * {item}]) : -1;"));
        emitter.in_piece = Some(item.clone());
        let mut own_places = Vec::new();
        for (path, way) in group.paths.iter().enumerate() {
            let place = emitter.names.fresh(&format!("place_{path}"));
            emitter.line(format!("const int {place} = {places}[{columns} * {item} + {}];", path + 1));
            own_places.push((place, can_miss(subject, way)));
        }
        self.near(emitter, &own_places);
        // Values come before all barriers.
        let mut values = Vec::new();
        for add in &group.adds {
            let body = &stencil.stencil.stores[add.store].body;
            let text = emitter.body(body, &At::default());
            let c_type = emitter.c_type(body.kind());
            let name = emitter.names.fresh(&format!("{}_add_{}", stencil.stencil.fields[add.field].name, add.part));
            emitter.line(format!("const {c_type} {name} = {text};"));
            values.push(name);
        }
        let (colours, turn) = (emitter.names.fresh("colours"), emitter.names.fresh("turn"));
        // The last element has the last colour.
        emitter.line(format!("const int {colours} = {places}[{columns} * ({range}.y - 1)] + 1;"));
        emitter.open(&format!("for (int {turn} = 0; {turn} < {colours}; ++{turn})"));
        emitter.open(&format!("if ({turn} == {colour})"));
        for (path, (place, can_miss)) in own_places.iter().enumerate() {
            if *can_miss {
                emitter.open(&format!("if ({place} != {NOWHERE})"));
            }
            for (add, value) in group.adds.iter().zip(&values).filter(|(add, _)| add.path == path) {
                let stored = stencil.stencil.fields[add.field].stored;
                let arrays = self.kept.iter().find(|(field, _)| *field == add.field).map(|(_, arrays)| arrays);
                let Some(array) = arrays.and_then(|arrays| arrays.get(add.part as usize)) else { continue };
                let before = read_as(format!("{array}[{place}]"), stored, subject.precision);
                let total = added(&before, value, stored, subject.precision);
                emitter.line(format!("{array}[{place}] = {};", stored_as(total, stored, subject.precision)));
            }
            if *can_miss {
                emitter.close();
            }
        }
        emitter.close();
        emitter.line("__syncthreads();");
        emitter.close();
    }

    /// Names what is read of targets in shared memory.
    fn near(&self, emitter: &mut Emitter, places: &[(String, bool)]) {
        let subject = emitter.subject;
        for own in &self.staged {
            let field = &subject.stencil.stencil.fields[own.field];
            let c_type = emitter.c_type(field.stored.kind());
            for (path, part) in &own.reads {
                let Some((_, array)) = own.parts.iter().find(|(known, _)| known == part) else { continue };
                let (place, can_miss) = &places[*path];
                let text = match can_miss {
                    // Nobody looks at what comes through a hole.
                    true => format!("{array}[{place} != {NOWHERE} ? {place} : 0]"),
                    false => format!("{array}[{place}]"),
                };
                let at = (self.group.paths[*path].hops().to_vec(), own.shift);
                let width = field.place.home.map_or(1, |home| home.width as usize);
                let wish = part_name(&emitter.read_name(own.field, &at), width, *part as usize);
                let name = emitter.names.fresh(&wish);
                let text = read_as(text, field.stored, subject.precision);
                emitter.line(format!("const {c_type} {name} = {text};"));
                emitter.remember((own.field, at, *part), &name);
            }
        }
    }

    /// Writes what is kept to memory.
    fn write_back(&self, emitter: &mut Emitter) {
        let [target, place] = self.open_targets(emitter);
        for (field, arrays) in &self.kept {
            let array = emitter.output(*field);
            let texts: Vec<String> = arrays.iter().map(|kept| format!("{kept}[{place}]")).collect();
            emitter.store_all(&array, *field, &target, &texts);
        }
        emitter.close();
    }
}

/// What is read where a group's paths lead, each field and level by itself; names are still missing. Numbers of slots of maps
/// are read by one element each, and an element's own by itself.
fn readable(subject: &Subject, group: &Group) -> Vec<Staged> {
    let mut all: Vec<Staged> = Vec::new();
    for (field, at, part) in Looks::new(subject, group).reads {
        let path = group.paths.iter().position(|path| !path.is_here() && path.hops() == at.0);
        let is_plain = subject.stencil.stencil.fields[field].place.home.is_some_and(|home| home.map.is_none());
        let (Some(path), true) = (path, is_plain) else { continue };
        let own = match all.iter().position(|own| (own.field, own.shift) == (field, at.1)) {
            Some(known) => &mut all[known],
            None => {
                all.push(Staged { field, shift: at.1, parts: Vec::new(), reads: Vec::new() });
                let last = all.len() - 1;
                &mut all[last]
            }
        };
        if own.parts.iter().all(|(known, _)| *known != part) {
            own.parts.push((part, String::new()));
        }
        own.reads.push((path, part));
    }
    for own in &mut all {
        own.parts.sort();
        own.reads.sort();
    }
    all
}

fn can_miss(subject: &Subject, path: &Path) -> bool {
    path.hops().iter().any(|hop| subject.stencil.mesh.maps[hop.map].missing != Missing::Never)
}

fn part_name(wish: &str, width: usize, part: usize) -> String {
    if width == 1 { wish.to_owned() } else { format!("{wish}_{part}") }
}
