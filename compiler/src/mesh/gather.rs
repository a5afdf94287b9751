//! How the thread of a target gathers: it goes through the elements that lead to the target, and computes what each adds.

use super::dictionary::{self, Dictionary};
use super::ends::Ends;
use super::footprint::Footprint;
use super::group::Group;
use super::mirror::{Mirror, mirrored};
use super::rows::{is_row, row};
use super::sums::Sums;
use super::writer::{Turn, Writer};
use super::{Degrees, MeshTask};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{Body, DefId, FieldId, Handle, Hop, Kind, Node, Path, Relation, SetId};
use crate::kernel::build::Making;
use crate::kernel::{ArrayId, Binary, MeshData, MeshTable, Step, Type, Unroll, ValueId};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What those who lead to a target add, as a thread of it computes it.
pub struct Gather<'a> {
    group: &'a Group,
    degrees: Degrees,
    /// Whether there is a row of places for each target, and no list.
    in_rows: bool,
    /// What is computed, if everything is made of the own and the other element's values.
    mirror: Option<Mirror>,
}

impl<'a> Gather<'a> {
    /// Over those who lead to the targets of the group. If all sums start from +0, zeros have no signs that matter.
    ///
    /// # Errors
    /// The increments of its fields come in orders that differ.
    pub fn new(task: &MeshTask, group: &'a Group, from_zero: bool) -> Result<Self, Refusal> {
        let stencil = task.stencil;
        group.check_order(task)?;
        // A sum that is stored in fewer bits than it is computed in may come to -0, where there was something.
        let rounds = |field: FieldId| {
            let stored = stencil.stencil.fields[field].stored;
            stored.bytes(task.precision) < task.precision.bytes() && stored.kind() == Kind::Real
        };
        let from_zero = from_zero && !group.fields().into_iter().any(rounds);
        // Of two places, the target's own and the other's values are what everything is made of.
        let is_sure = |path: &Path| {
            let mut hops = path.hops().iter();
            !path.is_here() && hops.all(|hop| stencil.mesh.maps[hop.map].missing == Missing::Never)
        };
        let mirror = if group.paths.iter().all(is_sure) { mirrored(task, group, !from_zero) } else { None };
        let degrees = task.degrees(group);
        Ok(Self { group, degrees, in_rows: is_row(degrees), mirror })
    }

    /// The same where all targets gather, even if to most of them nobody leads.
    pub fn for_all_targets(self) -> Self {
        let in_rows = self.in_rows && self.degrees.share >= 0.5;
        Self { in_rows, ..self }
    }

    /// The task, with the stencil that the gather computes.
    pub fn task<'s>(&'s self, task: &MeshTask<'s>) -> MeshTask<'s> {
        MeshTask { stencil: self.mirror.as_ref().map_or(task.stencil, |own| &own.stencil), ..*task }
    }

    fn computed(&self) -> &Group {
        self.mirror.as_ref().map_or(self.group, |own| &own.group)
    }

    /// Writes the gather of the thread of `target`, whose row is that of `item`, if there are rows for those alone to which any leads.
    /// The writer's task is that of the gather. Returns whether any element leads there, where that is not sure.
    pub fn write(&self, writer: &mut Writer, target: ValueId, sparse: Option<ValueId>, sums: &Sums) -> Option<ValueId> {
        let item = sparse.unwrap_or(target);
        let Footprint { reads, present } = Footprint::new(writer.task, self.computed());
        let leaves = self.leaves(writer.task, &reads);
        if let Some(Mirror { ends, .. }) = &self.mirror {
            writer.set_index(&[ends.own], target);
            writer.ends = Some(*ends);
            own_first(writer, &reads, *ends);
        }
        if let ([only], None) = (self.group.paths.as_slice(), &self.mirror) {
            writer.set_index(only.hops(), target);
        }
        let needs_entries = self.needs_entries(&reads, &present, &leaves);
        let mut tables: Vec<(MeshTable, String)> = Vec::new();
        if self.mirror.is_some() {
            tables.push((MeshTable::Others, "others".to_owned()));
        }
        if needs_entries {
            tables.push((MeshTable::Entries, "entries".to_owned()));
        }
        let mut shared: Vec<(Dictionary, Vec<Path>)> = Vec::new();
        if self.mirror.is_some() && !needs_entries {
            for leaves in self.by_set(writer.task, &leaves) {
                let entries = writer.task.counts.distinct_ends(self.group, &leaves);
                match Dictionary::of_row(entries, leaves.len(), self.degrees.max).filter(|_| self.in_rows) {
                    Some(shape) => shared.push((shape, leaves)),
                    None => tables.extend(leaves.into_iter().map(|leaf| {
                        let wish = writer.hops_name(leaf.hops());
                        (MeshTable::Leaf(leaf), wish)
                    })),
                }
            }
        }
        let read = |writer: &mut Writer, (table, wish): (MeshTable, String)| {
            let array = writer.table(&wish, MeshData::Table(self.group.number, table.clone()));
            let array = if self.in_rows { row(writer, array, self.degrees.max, item) } else { array };
            (table, array)
        };
        match self.in_rows {
            true => {
                let columns: Vec<_> = tables.into_iter().map(|own| read(writer, own)).collect();
                let entries: Vec<dictionary::Read> =
                    shared.into_iter().map(|(shape, leaves)| self.distinct_ends(writer, shape, leaves, item)).collect();
                let [zero, one, width, hole] = [0, 1, self.degrees.max as i64, -1].map(|number| writer.own.int(number));
                let first = columns.first().map(|(_, column)| *column)?;
                writer.each("place", (zero, width, Step::By(one)), Unroll::Whole, |writer, place| {
                    let here = writer.own.load(first, place);
                    let is_taken = writer.own.compare(Relation::Ne, here, hole);
                    writer.when(is_taken, |writer| {
                        self.step(writer, &columns, place);
                        entries.iter().for_each(|own| own.step(writer, place));
                        self.add(writer, sums);
                    });
                });
                let here = writer.own.load(first, zero);
                sparse.is_none().then(|| writer.own.compare(Relation::Ne, here, hole))
            }
            false => {
                let offsets = writer.table("offsets", MeshData::Table(self.group.number, MeshTable::Offsets));
                let columns: Vec<_> = tables.into_iter().map(|own| read(writer, own)).collect();
                let ([first, end], one) = (ends_of(writer, offsets, item), writer.own.int(1));
                writer.each("place", (first, end, Step::By(one)), Unroll::Free, |writer, place| {
                    self.step(writer, &columns, place);
                    self.add(writer, sums);
                });
                sparse.is_none().then(|| writer.own.less(first, end))
            }
        }
    }

    /// Whether the numbers of the elements that are walked over are needed. With the other element known, and nothing read at the elements in
    /// between, they are not.
    fn needs_entries(&self, reads: &[(FieldId, Path, u32)], present: &[Vec<Hop>], leaves: &[Path]) -> bool {
        let at_element = |hops: &[Hop]| self.begins_at_element(hops, leaves);
        self.mirror.is_none()
            || reads.iter().any(|(_, at, _)| at_element(at.hops()))
            || present.iter().any(|hops| at_element(hops))
    }

    /// Reads the entries where some paths end, all in one set.
    fn distinct_ends(
        &self,
        writer: &mut Writer,
        shape: Dictionary,
        leaves: Vec<Path>,
        item: ValueId,
    ) -> dictionary::Read {
        let mesh = &writer.task.stencil.mesh;
        let set = mesh.sets[mesh.end(writer.task.stencil.set(), &leaves[0])].name.clone();
        dictionary::Read::new(writer, shape, self.group.number, leaves, item, &set)
    }

    /// Where reads begin, other than at the group's own targets: the first hops of their ways.
    fn leaves(&self, task: &MeshTask, reads: &[(FieldId, Path, u32)]) -> Vec<Path> {
        let mut leaves = BTreeSet::new();
        for (_, at, _) in reads {
            if let (false, Some(first)) = (self.begins_at_end(at.hops()), at.hops().first()) {
                let can_miss = task.stencil.mesh.maps[first.map].missing != Missing::Never;
                if !can_miss {
                    leaves.insert(Path::through([*first]));
                }
            }
        }
        leaves.into_iter().collect()
    }

    /// Paths by the sets they end in.
    fn by_set(&self, task: &MeshTask, leaves: &[Path]) -> Vec<Vec<Path>> {
        let mut by_set: BTreeMap<SetId, Vec<Path>> = BTreeMap::new();
        for leaf in leaves {
            by_set.entry(task.stencil.mesh.end(task.stencil.set(), leaf)).or_default().push(leaf.clone());
        }
        by_set.into_values().collect()
    }

    /// Whether the number of the element itself is needed to read where hops lead.
    fn begins_at_element(&self, hops: &[Hop], leaves: &[Path]) -> bool {
        let starts = |path: &Path| !path.hops().is_empty() && hops.starts_with(path.hops());
        !self.begins_at_end(hops) && !leaves.iter().any(starts)
    }

    /// Whether hops begin at the own or the other element, or ask which place the own one has.
    fn begins_at_end(&self, hops: &[Hop]) -> bool {
        self.mirror.as_ref().is_some_and(|own| own.ends.begin(hops))
    }

    /// Finds the element of a place, and where its paths lead.
    fn step(&self, writer: &mut Writer, columns: &[(MeshTable, ArrayId)], place: ValueId) {
        for (table, column) in columns {
            let here = writer.own.load(*column, place);
            match table {
                MeshTable::Others => self.other(writer, here),
                MeshTable::Entries => {
                    let element = entry(writer, here, self.group.paths.len(), Binary::Div);
                    // Not by the name of its set, which may be the target's.
                    let element = writer.own.name("element", element);
                    writer.set_index(&[], element);
                    writer.path = (self.group.paths.len() > 1 && self.mirror.is_none()).then(|| {
                        let path = entry(writer, here, self.group.paths.len(), Binary::Rem);
                        writer.own.name("path", path)
                    });
                }
                MeshTable::Leaf(leaf) => writer.set_index(leaf.hops(), here),
                MeshTable::Dictionary(_)
                | MeshTable::Codes(_)
                | MeshTable::Targets
                | MeshTable::Offsets
                | MeshTable::Coloured => {}
            }
        }
    }

    /// Finds the other element of a place, and which of two places the own one has.
    fn other(&self, writer: &mut Writer, here: ValueId) {
        let [zero, beyond] = [0, -2].map(|number| writer.own.int(number));
        let is_second = writer.own.less(here, zero);
        let is_second = writer.own.name("is_second", is_second);
        let (bits, sign) = (writer.own.convert(here, Type::U32), writer.own.literal(1 << 31, Type::U32));
        let bit = writer.own.binary(Binary::BitAnd, bits, sign);
        let bit = writer.own.convert(bit, Type::I32);
        let bit = writer.own.name("turn", bit);
        let other = writer.own.sub(beyond, here);
        let other = writer.own.choose(is_second, other, here);
        let other = writer.own.name("other", other);
        writer.turn = Some(Turn { is_second, bit });
        if let Some(Mirror { ends, .. }) = &self.mirror {
            writer.set_index(&[ends.other], other);
        }
    }

    /// Adds what the element of a place adds.
    fn add(&self, writer: &mut Writer, sums: &Sums) {
        let task = writer.task;
        let stores = &task.stencil.stencil.stores;
        let group = self.computed();
        let paths = group.paths.len();
        let by_path: Vec<Vec<_>> =
            (0..paths).map(|path| group.adds.iter().filter(|add| add.path == path).collect()).collect();
        if paths > 1 {
            // What several paths need is computed before; what only one needs, in its branch.
            self.share_reads(writer, &by_path);
        }
        for (path, adds) in by_path.iter().enumerate() {
            let number = writer.own.int(path as i64);
            let is_here = writer.path.map(|own| writer.own.compare(Relation::Eq, own, number));
            writer.when_if(is_here.filter(|_| paths > 1), |writer| {
                // Loads and values first, so that none waits for a sum.
                let values: Vec<ValueId> =
                    adds.iter().map(|add| writer.body(&stores[add.store].body, &Path::default())).collect();
                for (add, value) in adds.iter().zip(values) {
                    sums.add(writer, add.field, add.part, value);
                }
            });
        }
    }

    /// Names what the increments along several paths are made of.
    fn share_reads(&self, writer: &mut Writer, by_path: &[Vec<&super::group::Add>]) {
        let stencil = &writer.task.stencil.stencil;
        let mut seen: Vec<HashSet<DefId>> = Vec::new();
        for adds in by_path {
            let mut own = HashSet::new();
            for add in adds {
                definitions(writer.task, &stencil.stores[add.store].body, &mut own);
            }
            seen.push(own);
        }
        for (def, own) in stencil.defs.iter() {
            if seen.iter().filter(|used| used.contains(&def)).count() > 1 {
                let mut body = Body::new();
                body.add(Node::Use { def, path: Path::default() }, own.body.kind(), Default::default());
                writer.body(&body, &Path::default());
            }
        }
    }
}

/// Where the list of an item begins and ends.
pub fn ends_of(writer: &mut Writer, offsets: ArrayId, item: ValueId) -> [ValueId; 2] {
    let one = writer.own.int(1);
    let next = writer.own.add(item, one);
    [item, next].map(|at| writer.own.load(offsets, at))
}

/// What an entry says: its number divided by that of the paths is the element's, and the rest is the path's.
pub fn entry(writer: &mut Writer, entry: ValueId, paths: usize, operation: Binary) -> ValueId {
    if paths == 1 {
        return if operation == Binary::Div { entry } else { writer.own.int(0) };
    }
    let (bits, paths) = (writer.own.convert(entry, Type::U32), writer.own.literal(paths as i64, Type::U32));
    let number = writer.own.binary(operation, bits, paths);
    writer.own.convert(number, Type::I32)
}

/// Reads the own element's numbers, and computes what is made of them alone, before the loop over the elements.
fn own_first(writer: &mut Writer, reads: &[(FieldId, Path, u32)], ends: Ends) {
    for (field, at, part) in reads.iter().filter(|(_, at, _)| at.hops() == [ends.own]) {
        writer.read(*field, at, *part);
    }
    let stencil = writer.task.stencil;
    let mut is_own: Vec<bool> = Vec::new();
    for (def, own) in stencil.stencil.defs.iter() {
        let alone = own.body.iter().all(|(_, node)| match node {
            Node::Read { field, path, .. } => {
                path.hops() == [ends.own] || !stencil.stencil.fields[*field].place.horizontal
            }
            Node::Present { .. } => false,
            Node::Use { def, .. } => is_own[def.index()],
            _ => true,
        });
        is_own.push(alone);
        if alone {
            writer.value(def, &Path::default());
        }
    }
}

/// The definitions at the element itself that a body uses, directly or not.
fn definitions(task: &MeshTask, body: &Body, found: &mut HashSet<DefId>) {
    let mut waiting = vec![body];
    while let Some(body) = waiting.pop() {
        for (_, node) in body.iter() {
            if let Node::Use { def, path } = node
                && path.is_here()
                && found.insert(*def)
            {
                waiting.push(&task.stencil.stencil.defs[*def].body);
            }
        }
    }
}
