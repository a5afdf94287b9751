//! The increment turned round: a thread a target. It walks over the elements that lead to it, in the order in which the user
//! numbers them, computes what each adds again, and takes what is added to the slot that it stands in.
//!
//! Nothing is written twice, and nothing races. What elements read of the target itself is read once. Of two paths, as
//! those of an edge to its two cells, a table holds the other cell, and which of the two the target is.

use super::emit::{At, Emitter, OTHER, OWN, pseudo, pseudo_of};
use super::group::Group;
use super::mirror::mirrored;
use super::seats::{self, Seats};
use super::{Choices, Degrees, Items, Kernel, Parameter, Subject, Table, What};
use crate::cuda::expression::{read_as, stored_as};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{Body, DefId, FieldId, Handle, Hop, Kind, Node, Path, Precision, SetId, Stored};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Up to so many places a target, a row is walked without a loop.
const UNROLLED: usize = 8;

/// The kernel of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ.
pub fn kernel(subject: &Subject, choices: &Choices, group: &Group, number: usize) -> Result<Kernel, Refusal> {
    group.check_order(subject.stencil)?;
    let stencil = subject.stencil;
    let degrees = (subject.degrees)(&group.paths);
    let is_sparse = degrees.share < 0.5;
    // A sum that is stored in fewer bits than it is computed in may come to -0, where there was something.
    let rounds = |field: FieldId| {
        let stored = stencil.stencil.fields[field].stored;
        stored.bytes(subject.precision) < subject.precision.bytes() && stored.kind() == Kind::Real
    };
    let starts = |field: FieldId| (subject.from_zero)(field) && !rounds(field);
    let from_zero = !is_sparse && group.fields().into_iter().all(starts);
    let in_place = group.fields().into_iter().filter(|&field| is_sparse || !(subject.from_zero)(field)).collect();
    let items = if is_sparse { Items::Targets(number) } else { Items::Set(group.target) };
    // Of two places, the target's own and the other's values are what everything is made of.
    let is_sure = |path: &Path| {
        let mut hops = path.hops().iter();
        !path.is_here() && hops.all(|hop| stencil.mesh.maps[hop.map].missing == Missing::Never)
    };
    let mirror = if group.paths.iter().all(is_sure) { mirrored(subject, group, !from_zero) } else { None };
    let (name, text, parameters) = match &mirror {
        Some((own, of_both)) => {
            let subject = Subject { stencil: own, ..*subject };
            let walk = Walk { group: of_both, along: &group.paths, number, degrees, is_sparse, is_mirrored: true };
            walk.text(&subject, choices)
        }
        None => {
            let walk = Walk { group, along: &group.paths, number, degrees, is_sparse, is_mirrored: false };
            walk.text(subject, choices)
        }
    };
    Ok(Kernel { name, text, parameters, items, block: choices.block, in_place })
}

/// The walk of a thread over those who lead to its target.
struct Walk<'g> {
    group: &'g Group,
    /// The paths to the targets, as entries know them.
    along: &'g [Path],
    number: usize,
    degrees: Degrees,
    /// Whether there are threads for those targets alone to which any element leads.
    is_sparse: bool,
    /// Whether everything is made of the own and the other element's values.
    is_mirrored: bool,
}

impl Walk<'_> {
    /// Name, text and parameters of the kernel.
    fn text(&self, subject: &Subject, choices: &Choices) -> (String, String, Vec<Parameter>) {
        let stencil = subject.stencil;
        let mut emitter = Emitter::new(subject, choices);
        emitter.share_divisions();
        let set_name = &stencil.mesh.sets[self.group.target].name;
        let [target, row] = if self.is_sparse {
            let (item, n) = (emitter.names.internal("item"), emitter.parameter("items", "int", What::Items));
            let table = What::Table(self.number, Table::Targets);
            let targets = emitter.parameter(&format!("{set_name}_led_to"), "const int*", table);
            emitter.line(format!("const int {item} = blockIdx.x * {} + threadIdx.x;", choices.block));
            emitter.line(format!("if ({item} >= {n}) {}", emitter.leave()));
            let target = emitter.element_of(self.group.target);
            emitter.line(format!("const int {target} = {targets}[{item}];"));
            [target, item]
        } else {
            let target = emitter.thread_of(self.group.target);
            [target.clone(), target]
        };
        self.write(&mut emitter, &target, &row);
        let name = emitter.names.fresh(&format!("{}_to_{set_name}", stencil.stencil.name));
        let what = format!("a thread a {set_name}, which gathers what is added to it");
        let (text, parameters) = emitter.text(&name, &what, &[]);
        (name, text, parameters)
    }

    fn write(&self, emitter: &mut Emitter, target: &str, item: &str) {
        emitter.level_line();
        let sums = self.sums(emitter, target, self.is_sparse);
        let Looks { reads, present } = Looks::new(emitter.subject, self.group);
        let leaves = self.leaves(emitter.subject, &reads);
        if self.is_mirrored {
            emitter.set_index(&pseudo(OWN), target);
            emitter.is_second = emitter.names.internal("is_second");
            own_first(emitter, &reads);
        }
        // With the other element known, and nothing read at the elements in between, nobody needs their numbers.
        let needs_entries = !self.is_mirrored || {
            let at_element = |hops: &[Hop]| self.begins_at_element(hops, &leaves);
            reads.iter().any(|(_, at, _)| at_element(&at.0)) || present.iter().any(|hops| at_element(hops))
        };
        let mut tables: Vec<(Table, String)> = Vec::new();
        if self.is_mirrored {
            tables.push((Table::Others, "others".to_owned()));
        }
        if needs_entries {
            tables.push((Table::Entries, "entries".to_owned()));
        }
        let width = self.degrees.max;
        let is_row = is_row(self.degrees);
        let mut shared: Vec<(Seats, Vec<Path>)> = Vec::new();
        if self.is_mirrored && !needs_entries {
            for leaves in self.by_set(emitter.subject, &leaves) {
                let seats = (emitter.subject.seats)(self.along, &leaves);
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
                let name = emitter.parameter(wish, "const int*", What::Table(self.number, table.clone()));
                columns.push(row(emitter, &name, width, item));
            }
            for (shape, leaves) in shared {
                let mesh = &emitter.subject.stencil.mesh;
                let set = mesh.sets[mesh.end(emitter.subject.stencil.set(), &leaves[0])].name.clone();
                seats.push(seats::Read::new(emitter, shape, self.number, leaves, item, &set));
            }
            emitter.line("#pragma unroll");
            emitter.open(&format!("for (int {place} = 0; {place} < {width}; ++{place})"));
        } else {
            let offsets = emitter.parameter("offsets", "const int*", What::Table(self.number, Table::Offsets));
            for (table, wish) in &tables {
                columns.push(emitter.parameter(wish, "const int*", What::Table(self.number, table.clone())));
            }
            emitter.open(&format!("for (int {place} = {offsets}[{item}]; {place} < {offsets}[{item} + 1]; ++{place})"));
        }
        let first = format!("{}[{place}]", columns[0]);
        if is_row {
            emitter.open(&format!("if ({first} != -1)"));
        }
        self.step(emitter, &tables, &columns, &place);
        seats.iter().for_each(|own: &seats::Read| own.step(emitter, &place));
        self.add(emitter, &sums);
        if is_row {
            emitter.close();
        }
        emitter.close();
        emitter.leave_if_unusual();
        let is_led_to = match (self.is_sparse, is_row) {
            (true, _) => "true".to_owned(),
            (false, true) => format!("{}[0] != -1", columns[0]),
            (false, false) => {
                let offsets = emitter.parameter("offsets", "const int*", What::Table(self.number, Table::Offsets));
                format!("{offsets}[{item}] < {offsets}[{item} + 1]")
            }
        };
        store(emitter, target, &sums, &is_led_to);
    }

    /// The numbers that are added to: names, by field and part.
    fn sums(&self, emitter: &mut Emitter, target: &str, in_place: bool) -> Vec<(FieldId, Vec<String>)> {
        let mut all = Vec::new();
        for field in self.group.fields() {
            let own = &emitter.subject.stencil.stencil.fields[field];
            let (name, stored) = (own.name.clone(), own.stored);
            let width = own.place.home.map_or(1, |home| home.width as usize);
            let c_type = emitter.c_type(stored.kind());
            let starts = if (emitter.subject.from_zero)(field) && !in_place {
                let zero = if c_type == "int" {
                    "0"
                } else if c_type == "float" {
                    "0.0f"
                } else {
                    "0.0"
                };
                vec![zero.to_owned(); width]
            } else {
                let array = emitter.output(field);
                emitter.load(&array, field, target, 0, &format!("{name}_before"))
            };
            let mut names = Vec::new();
            for (part, start) in starts.into_iter().enumerate() {
                let wish = if width == 1 { format!("{name}_sum") } else { format!("{name}_sum_{part}") };
                let sum = emitter.names.fresh(&wish);
                emitter.line(format!("{c_type} {sum} = {start};"));
                names.push(sum);
            }
            all.push((field, names));
        }
        all
    }

    /// Where reads begin, other than at the group's own targets: the first hops of their ways.
    fn leaves(&self, subject: &Subject, reads: &[(FieldId, At, u32)]) -> Vec<Path> {
        let mut leaves = BTreeSet::new();
        for (_, at, _) in reads {
            if let (None, Some(first)) = (pseudo_of(&at.0), at.0.first()) {
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
        // That the own element stands second is no place.
        pseudo_of(hops).is_none() && !leaves.iter().any(starts)
    }

    /// Finds the element of a place, and where its paths lead.
    fn step(&self, emitter: &mut Emitter, tables: &[(Table, String)], columns: &[String], place: &str) {
        let paths = self.along.len();
        for ((table, _), column) in tables.iter().zip(columns) {
            let here = format!("{column}[{place}]");
            match table {
                Table::Others => {
                    let is_second = emitter.is_second.clone();
                    emitter.line(format!("const bool {is_second} = {here} < 0;"));
                    let turn = emitter.names.internal("turn");
                    emitter.line(format!("const int {turn} = int(unsigned({here}) & 0x80000000);"));
                    let name = emitter.names.internal("other");
                    emitter.line(format!("const int {name} = {is_second} ? -2 - {here} : {here};"));
                    emitter.set_index(&pseudo(OTHER), &name);
                }
                Table::Entries => {
                    // Not by the name of its set, which may be the target's.
                    let element = emitter.names.internal("element");
                    let text = if paths == 1 { here.clone() } else { format!("unsigned({here}) / {paths}") };
                    emitter.line(format!("const int {element} = {text};"));
                    emitter.set_index(&[], &element);
                    if paths > 1 && !self.is_mirrored {
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
    fn add(&self, emitter: &mut Emitter, sums: &[(FieldId, Vec<String>)]) {
        let subject = emitter.subject;
        let (stores, fields) = (&subject.stencil.stencil.stores, &subject.stencil.stencil.fields);
        let sum_of = |field: FieldId, part: u32| {
            let names = sums.iter().find(|(own, _)| *own == field).map(|(_, names)| names);
            names.and_then(|names| names.get(part as usize)).cloned().unwrap_or_default()
        };
        let paths = self.group.paths.len();
        let by_path: Vec<Vec<_>> =
            (0..paths).map(|path| self.group.adds.iter().filter(|add| add.path == path).collect()).collect();
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
                self.add_one(emitter, &sum_of(add.field, add.part), text, fields[add.field].stored);
            }
            if paths > 1 {
                emitter.close();
            }
        }
    }

    fn add_one(&self, emitter: &mut Emitter, sum: &str, text: String, stored: Stored) {
        let total = added(sum, &text, stored, emitter.subject.precision);
        emitter.line(format!("{sum} = {total};"));
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

/// Writes the sums of a target. What has more bits than sums are computed in stays as it was where nothing is added to it.
pub fn store(emitter: &mut Emitter, target: &str, sums: &[(FieldId, Vec<String>)], is_led_to: &str) {
    for (field, names) in sums {
        let (stored, precision) = (emitter.subject.stencil.stencil.fields[*field].stored, emitter.subject.precision);
        let texts: Vec<String> = names.iter().map(|name| stored_as(name.clone(), stored, precision)).collect();
        let array = emitter.output(*field);
        let is_wide = stored.bytes(precision) > precision.bytes() && !(emitter.subject.from_zero)(*field);
        if is_wide {
            emitter.open(&format!("if ({is_led_to})"));
        }
        emitter.store_all(&array, *field, target, &texts);
        if is_wide {
            emitter.close();
        }
    }
}

/// The places of a row as an array in registers.
pub fn row(emitter: &mut Emitter, table: &str, width: usize, item: &str) -> String {
    let name = emitter.names.fresh(&format!("{table}_here"));
    let at_once = [4, 2, 1].into_iter().find(|count| width.is_multiple_of(*count)).unwrap_or(1);
    let mut parts = Vec::new();
    for first in (0..width).step_by(at_once) {
        let at = if first == 0 { format!("{width} * {item}") } else { format!("{width} * {item} + {first}") };
        if at_once == 1 {
            parts.push(format!("{table}[{at}]"));
            continue;
        }
        let some = emitter.names.fresh(&format!("{table}_row"));
        emitter.line(format!("const int{at_once} {some} = *reinterpret_cast<const int{at_once}*>({table} + {at});"));
        parts.extend(["x", "y", "z", "w"].iter().take(at_once).map(|part| format!("{some}.{part}")));
    }
    emitter.line(format!("const int {name}[{width}] = {{{}}};", parts.join(", ")));
    name
}

/// Whether rows of so many places are walked without a loop.
pub fn is_row(degrees: Degrees) -> bool {
    degrees.max > 0 && degrees.max <= UNROLLED.max(2 * degrees.mean as usize)
}

/// Reads the own element's numbers, and computes what is made of them alone, before the walk.
fn own_first(emitter: &mut Emitter, reads: &[(FieldId, At, u32)]) {
    for (field, at, part) in reads.iter().filter(|(_, at, _)| at.0 == pseudo(OWN)) {
        emitter.read(*field, at, *part);
    }
    let stencil = emitter.subject.stencil;
    let mut is_own: Vec<bool> = Vec::new();
    for (def, own) in stencil.stencil.defs.iter() {
        let alone = own.body.iter().all(|(_, node)| match node {
            Node::Read { field, path, .. } => {
                path.hops() == pseudo(OWN) || !stencil.stencil.fields[*field].place.horizontal
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

/// A sum and one value more, as it would be read after it was stored. Whole numbers wrap.
pub fn added(sum: &str, value: &str, stored: Stored, precision: Precision) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let value = if value.chars().all(is_name) { value.to_owned() } else { format!("({value})") };
    let text = match stored.kind() {
        Kind::Int => format!("int(unsigned({sum}) + unsigned({value}))"),
        Kind::Real | Kind::Bool => format!("{sum} + {value}"),
    };
    let as_stored = stored_as(text.clone(), stored, precision);
    if as_stored == text { text } else { read_as(as_stored, stored, precision) }
}

/// The definitions at the element itself that a body uses, directly or not.
fn definitions(subject: &Subject, body: &Body, found: &mut HashSet<DefId>) {
    for (_, node) in body.iter() {
        if let Node::Use { def, path } = node
            && path.is_here()
            && found.insert(*def)
        {
            definitions(subject, &subject.stencil.stencil.defs[*def].body, found);
        }
    }
}

/// What the increments of a group look at.
#[derive(Default)]
pub struct Looks {
    /// Numbers of fields, and where.
    pub reads: Vec<(FieldId, At, u32)>,
    /// Whether there is an element along hops.
    pub present: Vec<Vec<Hop>>,
}

impl Looks {
    /// Of the increments of a group.
    pub fn new(subject: &Subject, group: &Group) -> Self {
        let stencil = &subject.stencil.stencil;
        let (mut looks, mut seen) = (Self::default(), HashSet::new());
        let mut waiting: Vec<(&Body, At)> =
            group.adds.iter().map(|add| (&stencil.stores[add.store].body, At::default())).collect();
        while let Some((body, at)) = waiting.pop() {
            for (_, node) in body.iter() {
                let moved =
                    |path: &Path| -> At { (at.0.iter().chain(path.hops()).copied().collect(), at.1 + path.levels()) };
                match node {
                    Node::Read { field, path, part } if stencil.fields[*field].place.horizontal => {
                        let read = (*field, moved(path), *part);
                        if !looks.reads.contains(&read) {
                            looks.reads.push(read);
                        }
                    }
                    Node::Present { path } => looks.present.push(moved(path).0),
                    Node::Use { def, path } => {
                        let at = moved(path);
                        if seen.insert((*def, at.clone())) {
                            waiting.push((&stencil.defs[*def].body, at));
                        }
                    }
                    _ => {}
                }
            }
        }
        looks
    }
}
