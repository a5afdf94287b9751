//! The increment turned round: a thread a target. It walks over the elements that lead to it, in the order in which the user
//! numbers them, computes what each adds again, and takes what is added to the slot that it stands in.
//!
//! Nothing is written twice, and nothing races. What elements read of the target itself is read once. Of two paths, as
//! those of an edge to its two cells, a table holds the other cell, and which of the two the target is.

use super::emit::{At, Emitter, Mirror, own_and_other};
use super::group::Group;
use super::{Choices, Degrees, Items, Kernel, Subject, Table, What};
use crate::cuda::expression::{read_as, stored_as};
use crate::diagnostic::Refusal;
use crate::ir::mesh::Missing;
use crate::ir::{Body, DefId, FieldId, Hop, Node, Path, Stored};
use std::collections::{BTreeSet, HashSet};

/// Up to so many places a target, a row is walked without a loop.
const UNROLLED: usize = 8;

/// Up to so many operations that only one path needs are done for all paths, and one result is chosen.
const CHOSEN: usize = 4;

/// The kernel of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ.
pub fn kernel(subject: &Subject, choices: &Choices, group: &Group, number: usize) -> Result<Kernel, Refusal> {
    group.check_order(subject.stencil)?;
    let stencil = subject.stencil;
    let degrees = (subject.degrees)(&group.paths);
    let is_sparse = degrees.share < 0.5;
    let mut emitter = Emitter::new(subject, choices);
    let set_name = &stencil.mesh.sets[group.target].name;
    let target = emitter.names.internal(set_name);
    if is_sparse {
        let (item, n) = (emitter.names.internal("item"), emitter.parameter("items", "int", What::Items));
        let targets =
            emitter.parameter(&format!("{set_name}_led_to"), "const int*", What::Table(number, Table::Targets));
        emitter.line(format!("const int {item} = blockIdx.x * {} + threadIdx.x;", choices.block));
        emitter.line(format!("if ({item} >= {n}) return;"));
        emitter.line(format!("const int {target} = {targets}[{item}];"));
        Walk { item, group, number, degrees }.write(&mut emitter, &target, is_sparse);
    } else {
        let n = emitter.size(group.target);
        emitter.line(format!("const int {target} = blockIdx.x * {} + threadIdx.x;", choices.block));
        emitter.line(format!("if ({target} >= {n}) return;"));
        Walk { item: target.clone(), group, number, degrees }.write(&mut emitter, &target, is_sparse);
    }
    let name = emitter.names.fresh(&format!("{}_to_{set_name}", stencil.stencil.name));
    let what = format!("a thread a {set_name}, which gathers what is added to it");
    let (text, parameters) = emitter.text(&name, &what, &[]);
    Ok(Kernel {
        name,
        text,
        parameters,
        items: if is_sparse { Items::Targets(number) } else { Items::Set(group.target) },
        block: choices.block,
        in_place: group.fields().into_iter().filter(|&field| is_sparse || !(subject.from_zero)(field)).collect(),
    })
}

/// The walk of a thread over those who lead to its target.
struct Walk<'g> {
    /// The row of its tables.
    item: String,
    group: &'g Group,
    number: usize,
    degrees: Degrees,
}

impl Walk<'_> {
    fn write(&self, emitter: &mut Emitter, target: &str, in_place: bool) {
        emitter.level_line();
        let sums = self.sums(emitter, target, in_place);
        let Looks { reads, present } = Looks::new(emitter.subject, self.group);
        let leaves = self.leaves(emitter.subject, &reads);
        let mirror = self.mirror(emitter);
        if let Some([first, second]) = &mirror {
            let [own, _] = own_and_other();
            emitter.set_index(&own, target);
            let is_second = emitter.names.internal("is_second");
            emitter.mirror = Some(Mirror { hops: [first.clone(), second.clone()], is_second });
            emitter.read_own(&reads);
        }
        // With a mirror, and nothing read at the elements themselves, nobody needs their numbers.
        let needs_entries = mirror.is_none() || {
            let at_element = |hops: &[Hop]| self.begins_at_element(hops, &leaves);
            reads.iter().any(|(_, at, _)| at_element(&at.0)) || present.iter().any(|hops| at_element(hops))
        };
        let mut tables: Vec<(Table, String)> = Vec::new();
        if mirror.is_some() {
            tables.push((Table::Others, "others".to_owned()));
        }
        if needs_entries {
            tables.push((Table::Entries, "entries".to_owned()));
        }
        if mirror.is_some() && !needs_entries {
            for leaf in &leaves {
                let name = emitter.subject.stencil.mesh.written(leaf);
                let name: String = name.chars().filter(|c| c.is_alphanumeric() || *c == '.').collect();
                tables.push((Table::Leaf(leaf.clone()), name.replace('.', "_")));
            }
        }
        let width = self.degrees.max;
        let is_row = width <= UNROLLED.max(2 * self.degrees.mean as usize) && width > 0;
        let place = emitter.names.internal("place");
        let mut columns = Vec::new();
        if is_row {
            for (table, wish) in &tables {
                let name = emitter.parameter(wish, "const int*", What::Table(self.number, table.clone()));
                columns.push(self.row(emitter, &name, width));
            }
            emitter.line("#pragma unroll");
            emitter.open(&format!("for (int {place} = 0; {place} < {width}; ++{place})"));
        } else {
            let offsets = emitter.parameter("offsets", "const int*", What::Table(self.number, Table::Offsets));
            for (table, wish) in &tables {
                columns.push(emitter.parameter(wish, "const int*", What::Table(self.number, table.clone())));
            }
            let item = &self.item;
            emitter.open(&format!("for (int {place} = {offsets}[{item}]; {place} < {offsets}[{item} + 1]; ++{place})"));
        }
        let first = format!("{}[{place}]", columns[0]);
        if is_row {
            emitter.open(&format!("if ({first} != -1)"));
        }
        self.step(emitter, &tables, &columns, &place, &mirror);
        self.add(emitter, &sums, &mirror);
        if is_row {
            emitter.close();
        }
        emitter.close();
        self.store(emitter, target, &sums);
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

    /// The two paths of a mirror: those of the group, if there are two that are never missing.
    fn mirror(&self, emitter: &Emitter) -> Option<[Vec<Hop>; 2]> {
        let [first, second] = self.group.paths.as_slice() else { return None };
        let mesh = &emitter.subject.stencil.mesh;
        let is_sure = |path: &Path| {
            !path.hops().is_empty() && path.hops().iter().all(|hop| mesh.maps[hop.map].missing == Missing::Never)
        };
        (is_sure(first) && is_sure(second)).then(|| [first.hops().to_vec(), second.hops().to_vec()])
    }

    /// Where reads begin, other than at the group's own targets: the first hops of their ways.
    fn leaves(&self, subject: &Subject, reads: &[(FieldId, At, u32)]) -> Vec<Path> {
        let mut leaves = BTreeSet::new();
        for (_, at, _) in reads {
            let is_target =
                self.group.paths.iter().any(|path| at.0.starts_with(path.hops()) && !path.hops().is_empty());
            if let (false, Some(first)) = (is_target, at.0.first()) {
                let can_miss = subject.stencil.mesh.maps[first.map].missing != Missing::Never;
                if !can_miss {
                    leaves.insert(Path::through([*first]));
                }
            }
        }
        // More of them would cost more bytes than the element's own maps.
        leaves.into_iter().collect()
    }

    /// Whether the number of the element itself is needed to read where hops lead.
    fn begins_at_element(&self, hops: &[Hop], leaves: &[Path]) -> bool {
        let starts = |path: &Path| !path.hops().is_empty() && hops.starts_with(path.hops());
        !self.group.paths.iter().any(starts) && !leaves.iter().any(starts)
    }

    /// The places of a row as an array in registers.
    fn row(&self, emitter: &mut Emitter, table: &str, width: usize) -> String {
        let name = emitter.names.fresh(&format!("{table}_here"));
        let at_once = [4, 2, 1].into_iter().find(|count| width.is_multiple_of(*count)).unwrap_or(1);
        let mut parts = Vec::new();
        for first in (0..width).step_by(at_once) {
            let at = if first == 0 {
                format!("{width} * {}", self.item)
            } else {
                format!("{width} * {} + {first}", self.item)
            };
            if at_once == 1 {
                parts.push(format!("{table}[{at}]"));
                continue;
            }
            let some = emitter.names.fresh(&format!("{table}_row"));
            emitter
                .line(format!("const int{at_once} {some} = *reinterpret_cast<const int{at_once}*>({table} + {at});"));
            parts.extend(["x", "y", "z", "w"].iter().take(at_once).map(|part| format!("{some}.{part}")));
        }
        emitter.line(format!("const int {name}[{width}] = {{{}}};", parts.join(", ")));
        name
    }

    /// Finds the element of a place, and where its paths lead.
    fn step(
        &self,
        emitter: &mut Emitter,
        tables: &[(Table, String)],
        columns: &[String],
        place: &str,
        mirror: &Option<[Vec<Hop>; 2]>,
    ) {
        let paths = self.group.paths.len();
        for ((table, _), column) in tables.iter().zip(columns) {
            let here = format!("{column}[{place}]");
            match table {
                Table::Others => {
                    let [_, other] = own_and_other();
                    let is_second = emitter.mirror.as_ref().map_or(String::new(), |mirror| mirror.is_second.clone());
                    emitter.line(format!("const bool {is_second} = {here} < 0;"));
                    let name = emitter.names.internal("other");
                    emitter.line(format!("const int {name} = {is_second} ? -2 - {here} : {here};"));
                    emitter.set_index(&other, &name);
                }
                Table::Entries => {
                    let element = emitter
                        .names
                        .internal(&emitter.subject.stencil.mesh.sets[emitter.subject.stencil.set()].name.clone());
                    let text = if paths == 1 { here.clone() } else { format!("unsigned({here}) / {paths}") };
                    emitter.line(format!("const int {element} = {text};"));
                    emitter.set_index(&[], &element);
                    if paths > 1 && mirror.is_none() {
                        let path = emitter.names.internal("path");
                        emitter.line(format!("const int {path} = unsigned({here}) % {paths};"));
                    }
                }
                Table::Leaf(leaf) => emitter.set_index(leaf.hops(), &here),
                Table::Targets | Table::Offsets | Table::Coloured => {}
            }
        }
    }

    /// Adds what the element of a place adds.
    fn add(&self, emitter: &mut Emitter, sums: &[(FieldId, Vec<String>)], mirror: &Option<[Vec<Hop>; 2]>) {
        let subject = emitter.subject;
        let stores = &subject.stencil.stencil.stores;
        let sum_of = |field: FieldId, part: u32| {
            let names = sums.iter().find(|(own, _)| *own == field).map(|(_, names)| names);
            names.and_then(|names| names.get(part as usize)).cloned().unwrap_or_default()
        };
        let paths = self.group.paths.len();
        let by_path: Vec<Vec<_>> =
            (0..paths).map(|path| self.group.adds.iter().filter(|add| add.path == path).collect()).collect();
        let alike = by_path.iter().all(|adds| {
            adds.len() == by_path[0].len()
                && adds.iter().zip(&by_path[0]).all(|(a, b)| (a.field, a.part) == (b.field, b.part))
        });
        let small = self.group.adds.iter().all(|add| stores[add.store].body.len() <= CHOSEN + 1);
        if paths == 1 || mirror.is_some() && alike && small {
            let mut texts = Vec::new();
            for adds in 0..by_path[0].len() {
                let each: Vec<String> =
                    by_path.iter().map(|own| emitter.body(&stores[own[adds].store].body, &At::default())).collect();
                texts.push(match (each.as_slice(), &emitter.mirror) {
                    ([one], _) => one.clone(),
                    ([first, second], Some(mirror)) => format!("({} ? {second} : {first})", mirror.is_second),
                    _ => String::new(),
                });
            }
            for (add, text) in by_path[0].iter().zip(texts) {
                self.add_one(
                    emitter,
                    &sum_of(add.field, add.part),
                    text,
                    subject.stencil.stencil.fields[add.field].stored,
                );
            }
            return;
        }
        // What several paths need is computed before; what only one needs, in its branch.
        self.share(emitter, &by_path);
        for (path, adds) in by_path.iter().enumerate() {
            let condition = match (&emitter.mirror, path) {
                (Some(mirror), 0) => format!("!{}", mirror.is_second),
                (Some(mirror), _) => mirror.is_second.clone(),
                (None, _) => format!("{} == {path}", emitter.names.internal("path")),
            };
            emitter.open(&format!("if ({condition})"));
            for add in adds {
                let text = emitter.body(&stores[add.store].body, &At::default());
                self.add_one(
                    emitter,
                    &sum_of(add.field, add.part),
                    text,
                    subject.stencil.stencil.fields[add.field].stored,
                );
            }
            emitter.close();
        }
    }

    fn add_one(&self, emitter: &mut Emitter, sum: &str, text: String, stored: Stored) {
        let text = if text.contains(' ') && !text.starts_with('(') { format!("({text})") } else { text };
        let total = rounded(format!("{sum} + {text}"), stored, emitter);
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

    fn store(&self, emitter: &mut Emitter, target: &str, sums: &[(FieldId, Vec<String>)]) {
        for (field, names) in sums {
            let stored = emitter.subject.stencil.stencil.fields[*field].stored;
            let precision = emitter.subject.precision;
            let texts: Vec<String> = names.iter().map(|name| stored_as(name.clone(), stored, precision)).collect();
            let array = emitter.output(*field);
            emitter.store_all(&array, *field, target, &texts);
        }
    }
}

/// A sum as it would be read after it was stored.
pub fn rounded(text: String, stored: Stored, emitter: &Emitter) -> String {
    let precision = emitter.subject.precision;
    let stored_text = stored_as(text.clone(), stored, precision);
    if stored_text == text {
        return text;
    }
    read_as(stored_text, stored, precision)
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
