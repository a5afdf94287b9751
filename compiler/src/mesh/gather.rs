//! How the thread of a target gathers: it goes through the elements that lead to the target, and computes what each adds.

use super::dictionary::{self, Dictionary};
use super::ends::Ends;
use super::footprint::Footprint;
use super::group::{Add, Group};
use super::mirror::{Mirror, mirrored};
use super::rows::{Places, is_row, row};
use super::sums::Sums;
use super::writer::{Turn, Writer};
use super::{Degrees, MeshTask};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{Body, DefId, FieldId, Handle, Hop, Kind, Node, Path, Relation, SetId};
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Binary, MeshData, MeshTable, Type, ValueId};
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

/// What is read at each place.
struct Columns {
    /// The other element, and which of two places the own one has.
    others: Option<(Ends, ArrayId)>,
    /// The element, and along which path it leads to the target.
    entries: Option<ArrayId>,
    /// Where paths from the element end.
    leaves: Vec<(Path, ArrayId)>,
    dictionaries: Vec<dictionary::Read>,
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
        let degrees = task.counts.degrees(group);
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
    /// The writer's task is that of the gather.
    pub fn write(&self, writer: &mut Writer, target: ValueId, sparse: Option<ValueId>, sums: &Sums) {
        let item = sparse.unwrap_or(target);
        let Footprint { mut reads, moved, present } = Footprint::new(writer.task, self.computed());
        let own_reads = reads.clone();
        reads.extend(moved);
        let leaves = self.leaves(writer.task, &reads);
        if let Some(Mirror { ends, .. }) = &self.mirror {
            writer.set_index(&[ends.own], target);
            writer.ends = Some(*ends);
            own_first(writer, &own_reads, *ends);
        }
        if let ([only], None) = (self.group.paths.as_slice(), &self.mirror) {
            writer.set_index(only.hops(), target);
        }
        let needs_entries = self.needs_entries(&reads, &present, &leaves);
        let row_width = self.in_rows.then_some(self.degrees.max);
        let places = Places::new(writer, self.group, row_width, item, (Relation::Ne, -1));
        let column = |writer: &mut Writer, wish: &str, table: MeshTable| {
            let array = writer.table(wish, MeshData::Table(self.group.number, table));
            row_width.map_or(array, |width| row(writer, array, width, item))
        };
        let others = self.mirror.as_ref().map(|own| (own.ends, column(writer, "others", MeshTable::Others)));
        let entries = needs_entries.then(|| column(writer, "entries", MeshTable::Entries));
        let mut columns = Columns { others, entries, leaves: Vec::new(), dictionaries: Vec::new() };
        let mut shared: Vec<(Dictionary, Vec<Path>)> = Vec::new();
        if !needs_entries {
            for leaves in self.by_set(writer.task, &leaves) {
                let entries = writer.task.counts.distinct_ends(self.group, &leaves);
                match Dictionary::of_row(entries, leaves.len(), self.degrees.max).filter(|_| self.in_rows) {
                    Some(shape) => shared.push((shape, leaves)),
                    None => columns.leaves.extend(leaves.into_iter().map(|leaf| {
                        let wish = writer.end_name(&leaf);
                        let column = column(writer, &wish, MeshTable::Leaf(leaf.clone()));
                        (leaf, column)
                    })),
                }
            }
        }
        for (shape, leaves) in shared {
            columns.dictionaries.push(dictionary::Read::new(writer, shape, self.group.number, leaves, item));
        }
        let Some(first) = columns.others.map(|(_, others)| others).or(columns.entries) else { return };
        places.each(
            writer,
            |writer, place| writer.own.load(first, place),
            |writer, place, _| {
                let path = self.step(writer, &columns, place);
                self.add(writer, sums, path);
            },
        );
    }

    /// Whether the numbers of the elements that are walked over are needed. With the other element known, and nothing read at the elements in
    /// between, they are not.
    fn needs_entries(&self, reads: &[(FieldId, Path, u32)], present: &[Vec<Hop>], leaves: &[Path]) -> bool {
        let at_element = |hops: &[Hop]| self.begins_at_element(hops, leaves);
        self.mirror.is_none()
            || reads.iter().any(|(_, at, _)| at_element(at.hops()))
            || present.iter().any(|hops| at_element(hops))
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

    /// Finds the element of a place, and where its paths lead; along which of several it leads to the target, if that is not one already.
    fn step(&self, writer: &mut Writer, columns: &Columns, place: ValueId) -> Option<ValueId> {
        if let Some((ends, others)) = columns.others {
            let here = writer.own.load(others, place);
            other(writer, here, ends);
        }
        let mut path = None;
        if let Some(entries) = columns.entries {
            let here = writer.own.load(entries, place);
            let paths = self.group.paths.len();
            // Not by the name of its set, which may be the target's.
            let element = writer.own.name("element", entry(here, paths, Binary::Div));
            writer.set_index(&[], element);
            path =
                (paths > 1 && self.mirror.is_none()).then(|| writer.own.name("path", entry(here, paths, Binary::Rem)));
        }
        for (leaf, ends) in &columns.leaves {
            let end = writer.own.load(*ends, place);
            writer.set_index(leaf.hops(), end);
        }
        columns.dictionaries.iter().for_each(|own| own.step(writer, place));
        path
    }

    /// Adds what the element of a place adds.
    fn add(&self, writer: &mut Writer, sums: &Sums, led_along: Option<ValueId>) {
        let task = writer.task;
        let stores = &task.stencil.stencil.stores;
        let group = self.computed();
        let paths = group.paths.len();
        let by_path: Vec<Vec<Add>> = (0..paths).map(|path| group.along(path)).collect();
        if paths > 1 {
            // What several paths need is computed before; what only one needs, in its branch.
            self.share_reads(writer, &by_path);
        }
        for (path, adds) in by_path.iter().enumerate() {
            let is_here = led_along.filter(|_| paths > 1).map(|own| own.is(Relation::Eq, path));
            writer.when_if(is_here, |writer| {
                // Loads and values first, so that none waits for a sum.
                let mut values: Vec<(usize, &Add, ValueId)> = Vec::new();
                for level in 0..writer.levels {
                    let at = Path::levels_only(level as i32);
                    values.extend(adds.iter().map(|add| (level, add, writer.body(&stores[add.store].body, &at))));
                }
                for (level, add, value) in values {
                    sums.add(writer, add, level, value);
                }
            });
        }
    }

    /// Names what the increments along several paths are made of.
    fn share_reads(&self, writer: &mut Writer, by_path: &[Vec<Add>]) {
        let stencil = &writer.task.stencil.stencil;
        let mut seen: Vec<HashSet<DefId>> = Vec::new();
        for adds in by_path {
            let mut own = HashSet::new();
            for add in adds {
                definitions(writer.task, &stencil.stores[add.store].body, &mut own);
            }
            seen.push(own);
        }
        for def in stencil.defs.handles() {
            if seen.iter().filter(|used| used.contains(&def)).count() > 1 {
                on_each_level(writer, def);
            }
        }
    }
}

/// Finds the other element of a place, and which of two places the own one has.
fn other(writer: &mut Writer, here: ValueId, ends: Ends) {
    let is_second = writer.own.name("is_second", here.less(0));
    let bit = here.to(Type::U32).by(Binary::BitAnd, 1i64 << 31).to(Type::I32);
    let bit = writer.own.name("turn", bit);
    let other = writer.own.name("other", is_second.picks((-2).minus(here), here));
    writer.turn = Some(Turn { is_second, bit });
    writer.set_index(&[ends.other], other);
}

/// What an entry says: its number divided by that of the paths is the element's, and the rest is the path's.
pub fn entry(entry: ValueId, paths: usize, operation: Binary) -> Term {
    match (paths, operation) {
        (1, Binary::Div) => entry.into(),
        (1, _) => 0.into(),
        _ => entry.to(Type::U32).by(operation, paths).to(Type::I32),
    }
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
            on_each_level(writer, def);
        }
    }
}

/// Computes a definition on each level of the thread.
fn on_each_level(writer: &mut Writer, def: DefId) {
    for level in 0..writer.levels as i32 {
        writer.value(def, &Path::levels_only(level));
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
