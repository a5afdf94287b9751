//! How a thread of a target walks over the elements that lead to it, and computes what each adds.

use super::emit::{At, Emitter};
use super::ends::Ends;
use super::group::Group;
use super::looks::Looks;
use super::mirror::{Mirror, mirrored};
use super::rows::{is_row, row};
use super::seats::{self, Seats};
use super::sums::Sums;
use super::{Degrees, Subject, Table, What};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{Body, DefId, FieldId, Handle, Hop, Kind, Node, Path, SetId};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What those who lead to a target add, as a thread of it computes it.
pub struct Walk<'a> {
    group: &'a Group,
    degrees: Degrees,
    /// Whether there is a row of places for each target, and no list.
    in_rows: bool,
    /// What is computed, if everything is made of the own and the other element's values.
    mirror: Option<Mirror>,
}

impl<'a> Walk<'a> {
    /// Over those who lead to the targets of the group. If all sums start from +0, zeros have no signs that matter.
    ///
    /// # Errors
    /// The increments of its fields come in orders that differ.
    pub fn new(subject: &Subject, group: &'a Group, from_zero: bool) -> Result<Self, Refusal> {
        let stencil = subject.stencil;
        group.check_order(subject)?;
        // A sum that is stored in fewer bits than it is computed in may come to -0, where there was something.
        let rounds = |field: FieldId| {
            let stored = stencil.stencil.fields[field].stored;
            stored.bytes(subject.precision) < subject.precision.bytes() && stored.kind() == Kind::Real
        };
        let from_zero = from_zero && !group.fields().into_iter().any(rounds);
        // Of two places, the target's own and the other's values are what everything is made of.
        let is_sure = |path: &Path| {
            let mut hops = path.hops().iter();
            !path.is_here() && hops.all(|hop| stencil.mesh.maps[hop.map].missing == Missing::Never)
        };
        let mirror = if group.paths.iter().all(is_sure) { mirrored(subject, group, !from_zero) } else { None };
        let degrees = subject.degrees(group);
        Ok(Self { group, degrees, in_rows: is_row(degrees), mirror })
    }

    /// The same where all targets walk, even if to most of them nobody leads.
    pub fn for_all_targets(self) -> Self {
        let in_rows = self.in_rows && self.degrees.share >= 0.5;
        Self { in_rows, ..self }
    }

    /// The subject, with the stencil that the walk computes.
    pub fn subject<'s>(&'s self, subject: &Subject<'s>) -> Subject<'s> {
        Subject { stencil: self.mirror.as_ref().map_or(subject.stencil, |own| &own.stencil), ..*subject }
    }

    fn computed(&self) -> &Group {
        self.mirror.as_ref().map_or(self.group, |own| &own.group)
    }

    /// Writes the walk of the thread of `target`, whose row is that of `item`, if there are rows for those alone to which any leads.
    /// The emitter's subject is that of the walk. Returns the condition that any element leads there.
    pub fn write(&self, emitter: &mut Emitter, target: &str, sparse: Option<&str>, sums: &Sums) -> String {
        let item = sparse.unwrap_or(target);
        let is_mirrored = self.mirror.is_some();
        let Looks { reads, present } = Looks::new(emitter.subject, self.computed());
        let leaves = self.leaves(emitter.subject, &reads);
        if let Some(Mirror { ends, .. }) = &self.mirror {
            emitter.set_index(&[ends.own], target);
            emitter.ends = Some(*ends);
            own_first(emitter, &reads, *ends);
        }
        if let ([only], false) = (self.group.paths.as_slice(), is_mirrored) {
            emitter.set_index(only.hops(), target);
        }
        // With the other element known, and nothing read at the elements in between, nobody needs their numbers.
        let needs_entries = !is_mirrored || {
            let at_element = |hops: &[Hop]| self.begins_at_element(hops, &leaves);
            reads.iter().any(|(_, at, _)| at_element(&at.0)) || present.iter().any(|hops| at_element(hops))
        };
        let mut tables: Vec<(Table, String)> = Vec::new();
        if is_mirrored {
            tables.push((Table::Others, "others".to_owned()));
        }
        if needs_entries {
            tables.push((Table::Entries, "entries".to_owned()));
        }
        let width = self.degrees.max;
        let is_row = self.in_rows;
        let mut shared: Vec<(Seats, Vec<Path>)> = Vec::new();
        if is_mirrored && !needs_entries {
            for leaves in self.by_set(emitter.subject, &leaves) {
                let seats = emitter.subject.counts.seats(self.group, &leaves);
                match Seats::of_row(seats, leaves.len(), width).filter(|_| is_row) {
                    Some(shape) => shared.push((shape, leaves)),
                    None => tables.extend(leaves.into_iter().map(|leaf| {
                        let wish = emitter.hops_name(leaf.hops());
                        (Table::Leaf(leaf), wish)
                    })),
                }
            }
        }
        let place = emitter.names.internal("place");
        let (mut columns, mut seats) = (Vec::new(), Vec::new());
        if is_row {
            for (table, wish) in &tables {
                let name = emitter.parameter(wish, "const int*", What::Table(self.group.number, table.clone()));
                columns.push(row(emitter, &name, width, item));
            }
            for (shape, leaves) in shared {
                let mesh = &emitter.subject.stencil.mesh;
                let set = mesh.sets[mesh.end(emitter.subject.stencil.set(), &leaves[0])].name.clone();
                seats.push(seats::Read::new(emitter, shape, self.group.number, leaves, item, &set));
            }
            emitter.line("#pragma unroll");
            emitter.open(&format!("for (int {place} = 0; {place} < {width}; ++{place})"));
        } else {
            let offsets = emitter.parameter("offsets", "const int*", What::Table(self.group.number, Table::Offsets));
            for (table, wish) in &tables {
                columns.push(emitter.parameter(wish, "const int*", What::Table(self.group.number, table.clone())));
            }
            emitter.open(&format!("for (int {place} = {offsets}[{item}]; {place} < {offsets}[{item} + 1]; ++{place})"));
        }
        let first = format!("{}[{place}]", columns[0]);
        if is_row {
            emitter.open(&format!("if ({first} != -1)"));
        }
        self.step(emitter, &tables, &columns, &place);
        seats.iter().for_each(|own: &seats::Read| own.step(emitter, &place));
        self.add(emitter, sums);
        if is_row {
            emitter.close();
        }
        emitter.close();
        match (sparse, is_row) {
            (Some(_), _) => "true".to_owned(),
            (None, true) => format!("{}[0] != -1", columns[0]),
            (None, false) => {
                let offsets =
                    emitter.parameter("offsets", "const int*", What::Table(self.group.number, Table::Offsets));
                format!("{offsets}[{item}] < {offsets}[{item} + 1]")
            }
        }
    }

    /// Where reads begin, other than at the group's own targets: the first hops of their ways.
    fn leaves(&self, subject: &Subject, reads: &[(FieldId, At, u32)]) -> Vec<Path> {
        let mut leaves = BTreeSet::new();
        for (_, at, _) in reads {
            if let (false, Some(first)) = (self.begins_at_end(&at.0), at.0.first()) {
                let can_miss = subject.stencil.mesh.maps[first.map].missing != Missing::Never;
                if !can_miss {
                    leaves.insert(Path::through([*first]));
                }
            }
        }
        leaves.into_iter().collect()
    }

    /// Paths by the sets they end in.
    fn by_set(&self, subject: &Subject, leaves: &[Path]) -> Vec<Vec<Path>> {
        let mut by_set: BTreeMap<SetId, Vec<Path>> = BTreeMap::new();
        for leaf in leaves {
            by_set.entry(subject.stencil.mesh.end(subject.stencil.set(), leaf)).or_default().push(leaf.clone());
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
    fn step(&self, emitter: &mut Emitter, tables: &[(Table, String)], columns: &[String], place: &str) {
        let paths = self.group.paths.len();
        for ((table, _), column) in tables.iter().zip(columns) {
            let here = format!("{column}[{place}]");
            match table {
                Table::Others => {
                    let is_second = emitter.names.internal("is_second");
                    emitter.line(format!("const bool {is_second} = {here} < 0;"));
                    let turn = emitter.names.internal("turn");
                    emitter.line(format!("const int {turn} = int(unsigned({here}) & 0x80000000);"));
                    let name = emitter.names.internal("other");
                    emitter.line(format!("const int {name} = {is_second} ? -2 - {here} : {here};"));
                    if let Some(Mirror { ends, .. }) = &self.mirror {
                        emitter.set_index(&[ends.other], &name);
                    }
                }
                Table::Entries => {
                    // Not by the name of its set, which may be the target's.
                    let element = emitter.names.internal("element");
                    let text = if paths == 1 { here.clone() } else { format!("unsigned({here}) / {paths}") };
                    emitter.line(format!("const int {element} = {text};"));
                    emitter.set_index(&[], &element);
                    if paths > 1 && self.mirror.is_none() {
                        let path = emitter.names.internal("path");
                        emitter.line(format!("const int {path} = unsigned({here}) % {paths};"));
                    }
                }
                Table::Leaf(leaf) => emitter.set_index(leaf.hops(), &here),
                Table::Seats(_) | Table::Codes(_) | Table::Targets | Table::Offsets | Table::Coloured => {}
            }
        }
    }

    /// Adds what the element of a place adds.
    fn add(&self, emitter: &mut Emitter, sums: &Sums) {
        let subject = emitter.subject;
        let stores = &subject.stencil.stencil.stores;
        let group = self.computed();
        let paths = group.paths.len();
        let by_path: Vec<Vec<_>> =
            (0..paths).map(|path| group.adds.iter().filter(|add| add.path == path).collect()).collect();
        if paths > 1 {
            // What several paths need is computed before; what only one needs, in its branch.
            self.share(emitter, &by_path);
        }
        for (path, adds) in by_path.iter().enumerate() {
            if paths > 1 {
                let condition = format!("{} == {path}", emitter.names.internal("path"));
                emitter.open(&format!("if ({condition})"));
            }
            // Loads and values first, so that none waits for a sum.
            let texts: Vec<String> =
                adds.iter().map(|add| emitter.body(&stores[add.store].body, &At::default())).collect();
            for (add, text) in adds.iter().zip(texts) {
                sums.add(emitter, add.field, add.part, &text);
            }
            if paths > 1 {
                emitter.close();
            }
        }
    }

    /// Names what the increments along several paths are made of.
    fn share(&self, emitter: &mut Emitter, by_path: &[Vec<&super::group::Add>]) {
        let stencil = &emitter.subject.stencil.stencil;
        let mut seen: Vec<HashSet<DefId>> = Vec::new();
        for adds in by_path {
            let mut own = HashSet::new();
            for add in adds {
                definitions(emitter.subject, &stencil.stores[add.store].body, &mut own);
            }
            seen.push(own);
        }
        for (def, own) in stencil.defs.iter() {
            if seen.iter().filter(|used| used.contains(&def)).count() > 1 {
                let mut body = Body::new();
                body.add(Node::Use { def, path: Path::default() }, own.body.kind(), Default::default());
                emitter.body(&body, &At::default());
            }
        }
    }
}

/// Reads the own element's numbers, and computes what is made of them alone, before the walk.
fn own_first(emitter: &mut Emitter, reads: &[(FieldId, At, u32)], ends: Ends) {
    for (field, at, part) in reads.iter().filter(|(_, at, _)| at.0 == [ends.own]) {
        emitter.read(*field, at, *part);
    }
    let stencil = emitter.subject.stencil;
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
            emitter.value(def, &At::default());
        }
    }
}

/// The definitions at the element itself that a body uses, directly or not.
fn definitions(subject: &Subject, body: &Body, found: &mut HashSet<DefId>) {
    let mut waiting = vec![body];
    while let Some(body) = waiting.pop() {
        for (_, node) in body.iter() {
            if let Node::Use { def, path } = node
                && path.is_here()
                && found.insert(*def)
            {
                waiting.push(&subject.stencil.stencil.defs[*def].body);
            }
        }
    }
}
