//! Tiles: a block of threads owns consecutive targets. It computes what every element that leads to one of them adds, once, into
//! shared memory; then each target adds its own, in the order in which the user numbers the elements.
//!
//! Nothing races, and nothing is computed twice but at the rims of tiles: elements that lead into several are computed by each.

use super::{Additions, Strategy};
use crate::cuda::expression::{read_as, stored_as};
use crate::diagnostic::Refusal;
use crate::ir::FieldId;
use crate::mesh::emit::{At, Emitter};
use crate::mesh::group::{Add, Group};
use crate::mesh::rows::{is_row, row};
use crate::mesh::shared::{Shared, fitting};
use crate::mesh::sums::{Sums, added};
use crate::mesh::{Choices, Cut, Items, Kernel, NOWHERE, PieceTable, Subject, Table, What};

/// Blocks of targets compute the contributions of all elements that lead to them into shared memory, and gather them.
pub struct Tiled;

impl Strategy for Tiled {
    fn name(&self) -> &'static str {
        "tiled"
    }

    fn summary(&self) -> &'static str {
        "blocks of targets have what is added to them computed into shared memory, and gather it"
    }

    fn additions(&self) -> Additions {
        Additions::InOrder
    }

    fn kernels(&self, subject: &Subject, choices: &Choices, group: &Group) -> Result<Vec<Kernel>, Refusal> {
        Ok(vec![kernel(subject, choices, group)?])
    }
}

/// The kernel of a group.
///
/// # Errors
/// The increments of its fields come in orders that differ, or what is added to a single target does not fit into shared memory.
fn kernel(subject: &Subject, choices: &Choices, group: &Group) -> Result<Kernel, Refusal> {
    group.check_order(subject)?;
    let stencil = subject.stencil;
    let degrees = subject.degrees(group);
    let is_sparse = degrees.share < 0.5;
    let set_name = &stencil.mesh.sets[group.target].name;
    let mut emitter = Emitter::new(subject, choices);
    let declarations = emitter.lines.len();
    let tiles = emitter.parameter("tiles", "const int4*", What::Piece(PieceTable::Ranges));
    let (tile, thread) = (emitter.names.fresh("tile"), emitter.names.fresh("thread"));
    emitter.line(format!("const int {thread} = threadIdx.x;"));
    emitter.line(format!("const int4 {tile} = {tiles}[blockIdx.x];"));
    emitter.level_line();
    // Threads without a target of their own do as the last one does, but for the end.
    let target = emitter.names.fresh(set_name);
    let last = format!("min({tile}.x + {thread}, {tile}.y - 1)");
    let row_of = if is_sparse {
        let item = emitter.names.fresh("item");
        let targets =
            emitter.parameter(&format!("{set_name}_led_to"), "const int*", What::Table(group.number, Table::Targets));
        emitter.line(format!("const int {item} = {last};"));
        emitter.line(format!("const int {target} = {targets}[{item}];"));
        item
    } else {
        emitter.line(format!("const int {target} = {last};"));
        target.clone()
    };
    let sums = Sums::stored(&mut emitter, &group.fields(), &target, is_sparse);
    let entries = emitter.parameter("entries", "const int*", What::Piece(PieceTable::Entries));
    let in_rows = is_row(degrees);
    let here = if in_rows { row(&mut emitter, &entries, degrees.max.div_ceil(2), &row_of) } else { entries };
    let columns = computed(&mut emitter, group, &tile, &thread);
    emitter.line("__syncthreads();");
    let place = emitter.names.fresh("place");
    if in_rows {
        emitter.line("#pragma unroll");
        emitter.open(&format!("for (int {place} = 0; {place} < {}; ++{place})", degrees.max));
    } else {
        let offsets = emitter.parameter("offsets", "const int*", What::Table(group.number, Table::Offsets));
        let range = format!("{place} = {offsets}[{row_of}]; {place} < {offsets}[{row_of} + 1]");
        emitter.open(&format!("for (int {range}; ++{place})"));
    }
    let entry = emitter.names.fresh("entry");
    if in_rows {
        // Two stand in one number.
        emitter.line(format!("const int {entry} = {here}[{place} / 2] >> 16 * ({place} % 2) & {NOWHERE};"));
        emitter.open(&format!("if ({entry} != {NOWHERE})"));
    } else {
        emitter.line(format!("const int {entry} = {here}[{place}];"));
    }
    columns.gather(&mut emitter, group, &sums, &entry);
    if in_rows {
        emitter.close();
    }
    emitter.close();
    emitter.open(&format!("if ({thread} < {tile}.y - {tile}.x)"));
    for (field, names) in sums.iter() {
        let array = emitter.output(field);
        emitter.store_all(&array, field, &target, names);
    }
    emitter.close();

    let of_tile = |targets: usize| {
        let largest = subject.counts.largest(group, Cut::Tiles { targets, is_sparse })?;
        Some(columns.shared(largest.elements).bytes())
    };
    let targets = fitting(choices.block as usize, &of_tile, Tiled.name())?;
    let cut = Cut::Tiles { targets, is_sparse };
    let elements = subject.counts.largest(group, cut).map_or(0, |largest| largest.elements);
    let shared = columns.shared(elements);
    shared.declare(&mut emitter, declarations);
    let name = emitter.names.declared(&format!("{}_tiled", stencil.stencil.name));
    let what = format!("a block of threads a tile, of {set_name} at most {targets}");
    let (text, parameters) = emitter.text(&name, &what, &[]);
    let starts_from_zero = |field: &FieldId| !is_sparse && (subject.from_zero)(*field);
    let in_place = group.fields().into_iter().filter(|field| !starts_from_zero(field)).collect();
    let items = Items::Pieces { group: group.number, cut, shared: shared.bytes() };
    Ok(Kernel { name, text, parameters, items, block: choices.block, in_place })
}

/// What lies in shared memory.
struct Columns {
    paths: usize,
    /// By path, what is added along it, and in which column it lies.
    along: Vec<Vec<(Add, usize)>>,
    /// Whether the same is added to along every path, so that it does not matter which one it was.
    are_alike: bool,
    columns: Vec<Column>,
}

/// Values of each element of a tile.
struct Column {
    array: String,
    c_type: &'static str,
    /// Whether there is one for each path, and not one for all.
    by_path: bool,
    /// By path, whether it is the negative that is added.
    is_negative: Vec<bool>,
}

/// Computes what the elements of a tile add.
fn computed(emitter: &mut Emitter, group: &Group, tile: &str, thread: &str) -> Columns {
    let stores = &emitter.subject.stencil.stencil.stores;
    let kind = |add: &Add| stores[add.store].body.kind();
    let paths = group.paths.len();
    let along = |path: usize| -> Vec<Add> { group.adds.iter().copied().filter(|add| add.path == path).collect() };
    let by_path: Vec<Vec<Add>> = (0..paths).map(along).collect();
    let same = |a: &Add, b: &Add| (a.field, a.part, kind(a)) == (b.field, b.part, kind(b));
    let are_alike = by_path
        .iter()
        .all(|own| own.len() == by_path[0].len() && own.iter().zip(&by_path[0]).all(|(own, first)| same(own, first)));

    let (at, place) = (emitter.names.fresh("at"), emitter.names.fresh("place"));
    let block = emitter.choices.block;
    emitter.open(&format!("for (int {at} = {tile}.z + {thread}; {at} < {tile}.w; {at} += {block})"));
    emitter.line(format!("const int {place} = {at} - {tile}.z;"));
    emitter.in_piece = Some(at);
    // Values come first, so that loads need not wait for what is written.
    let texts: Vec<Vec<String>> = by_path
        .iter()
        .map(|adds| adds.iter().map(|add| emitter.body(&stores[add.store].body, &At::default())).collect())
        .collect();
    let mut columns = Columns { paths, along: vec![Vec::new(); paths], are_alike, columns: Vec::new() };
    let wish = |emitter: &Emitter, add: &Add| {
        format!("{}_added_{}", emitter.subject.stencil.stencil.fields[add.field].name, add.part)
    };
    if are_alike {
        for (n, first) in by_path[0].iter().enumerate() {
            let wish = wish(emitter, first);
            let array = emitter.names.fresh(&wish);
            let (by_path_of, is_negative) = match group.signs(emitter.subject.stencil, n) {
                Some(is_negative) => {
                    emitter.line(format!("{array}[{place}] = {};", texts[0][n]));
                    (false, is_negative)
                }
                None => {
                    for (path, texts) in texts.iter().enumerate() {
                        let index = entry_text(paths, path, &place);
                        emitter.line(format!("{array}[{index}] = {};", texts[n]));
                    }
                    (paths > 1, vec![false; paths])
                }
            };
            for (path, adds) in by_path.iter().enumerate() {
                columns.along[path].push((adds[n], columns.columns.len()));
            }
            let c_type = emitter.c_type(kind(first));
            columns.columns.push(Column { array, c_type, by_path: by_path_of, is_negative });
        }
    } else {
        for (path, adds) in by_path.iter().enumerate() {
            for (add, text) in adds.iter().zip(&texts[path]) {
                let wish = wish(emitter, add);
                let array = emitter.names.fresh(&wish);
                emitter.line(format!("{array}[{place}] = {text};"));
                columns.along[path].push((*add, columns.columns.len()));
                let c_type = emitter.c_type(kind(add));
                columns.columns.push(Column { array, c_type, by_path: false, is_negative: vec![false; paths] });
            }
        }
    }
    emitter.close();
    emitter.in_piece = None;
    columns
}

/// An entry: where the values of an element along a path stand.
fn entry_text(paths: usize, path: usize, place: &str) -> String {
    match (paths, path) {
        (1, _) => place.to_owned(),
        (_, 0) => format!("{paths} * {place}"),
        _ => format!("{paths} * {place} + {path}"),
    }
}

impl Columns {
    /// The shared memory of tiles of so many elements.
    fn shared(&self, elements: usize) -> Shared {
        let mut shared = Shared::default();
        for own in &self.columns {
            shared.array(&own.array, own.c_type, elements * if own.by_path { self.paths } else { 1 });
        }
        shared
    }

    /// Adds what lies at an entry.
    fn gather(&self, emitter: &mut Emitter, group: &Group, sums: &Sums, entry: &str) {
        let paths = self.paths;
        let (mut at, mut path_name) = (entry.to_owned(), String::new());
        if paths > 1 && self.columns.iter().any(|own| !own.by_path) {
            at = emitter.names.fresh("at");
            emitter.line(format!("const int {at} = unsigned({entry}) / {paths};"));
        }
        let differ = |own: &Column| own.is_negative.iter().any(|&own_sign| own_sign != own.is_negative[0]);
        if paths > 1 && (!self.are_alike || self.columns.iter().any(differ)) {
            path_name = emitter.names.fresh("path");
            emitter.line(format!("const int {path_name} = unsigned({entry}) % {paths};"));
        }
        // Loads first, so that none waits for a sum.
        for path in 0..if self.are_alike { 1 } else { group.paths.len() } {
            if !self.are_alike {
                emitter.open(&format!("if ({path_name} == {path})"));
            }
            let mut values = Vec::new();
            for (_, column) in &self.along[path] {
                let own = &self.columns[*column];
                let value = emitter.names.fresh("value");
                let place = if own.by_path { entry } else { &at };
                emitter.line(format!("const {} {value} = {}[{place}];", own.c_type, own.array));
                values.push(own.signed(&value, &path_name));
            }
            for ((add, _), value) in self.along[path].iter().zip(values) {
                let stored = emitter.subject.stencil.stencil.fields[add.field].stored;
                let sum = sums.of(add.field, add.part);
                let precision = emitter.subject.precision;
                let total = added(&read_as(sum.clone(), stored, precision), &value, stored, precision);
                emitter.line(format!("{sum} = {};", stored_as(total, stored, precision)));
            }
            if !self.are_alike {
                emitter.close();
            }
        }
    }
}

impl Column {
    /// What is added of a value, along the path with a number in `path`.
    fn signed(&self, value: &str, path: &str) -> String {
        let negative: Vec<String> = (0..self.is_negative.len())
            .filter(|&number| self.is_negative[number])
            .map(|number| format!("{path} == {number}"))
            .collect();
        match negative.len() {
            0 => value.to_owned(),
            all if all == self.is_negative.len() => format!("-{value}"),
            _ => format!("{} ? -{value} : {value}", negative.join(" || ")),
        }
    }
}
