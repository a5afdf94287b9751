//! The text of a kernel of tiles.

use super::super::flow::{Flow, Source, Use, Window};
use super::super::write::{Writer, functions};
use super::load::{LoadTexts, is_async, loads};
use super::loops::{Area, Home, Loop, Loops};
use super::memory::Memory;
use super::{Shape, Subject, Tiling};
use crate::cuda::expression::read_as;
use crate::cuda::{prelude, render};
use crate::device;
use crate::diagnostic::Refusal;
use crate::ir::{Levels, Store};
use crate::names::Identifier;
use crate::plan::stored_type;
use crate::text::Comment;
use serde::Serialize;
use std::collections::BTreeMap;

/// The skeleton of the kernel.
const TEMPLATE: &str = "step_tiled.cu.tera";

#[derive(Serialize)]
struct Texts {
    comment: Vec<Comment>,
    prelude: Vec<String>,
    name: Identifier,
    threads: usize,
    signature: Vec<String>,
    setup: Vec<String>,
    item: String,
    r: String,
    loads: Vec<LoadTexts>,
    /// What stands after them.
    loaded: Vec<String>,
    loops: Vec<LoopTexts>,
}

#[derive(Serialize)]
struct LoopTexts {
    /// What is waited for before it.
    before: Vec<String>,
    comment: String,
    items: usize,
    /// Where a thread's cells are.
    setup: Vec<String>,
    /// Rows of a thread.
    rows: usize,
    /// Whether a row is none of the thread's, where some have one more than others.
    is_over: String,
    body: Vec<String>,
    /// What is left in shared memory, once everything has been looked at that it might replace.
    kept: Vec<String>,
}

/// Names of a kernel's own variables.
pub struct Own {
    /// The plane.
    pub k: String,
    /// The number of a piece of work of a block.
    pub item: String,
    /// The row of a thread's.
    pub r: String,
    /// Where the tile begins.
    pub first_column: String,
    pub first_row: String,
    /// Where a thread's cells begin, from the first of the loop.
    pub column: String,
    pub part: String,
    pub row: String,
    /// The place in shared memory of a thread's first cell, and of the present one.
    pub at: String,
    pub here: String,
    /// The present cell, and its place in a plane.
    pub i: String,
    pub j: String,
    pub cell: String,
}

/// Prints one kernel.
pub struct Printer<'a> {
    /// Names and texts.
    pub writer: Writer<'a>,
    /// The rows.
    pub flow: &'a Flow,
    /// What is computed when.
    pub loops: &'a Loops,
    /// Where values are.
    pub memory: &'a Memory,
    /// Where tiles are.
    pub tiling: &'a Tiling,
    shape: &'a Shape,
    /// Names.
    pub own: Own,
    /// Of each row the names of its tile and of its plane.
    tiles: Vec<String>,
    planes: Vec<String>,
}

impl<'a> Printer<'a> {
    /// A printer of a kernel of these loops.
    pub fn new(
        subject: &'a Subject<'a>,
        flow: &'a Flow,
        loops: &'a Loops,
        memory: &'a Memory,
        tiling: &'a Tiling,
        shape: &'a Shape,
    ) -> Self {
        let mut writer = Writer::new(subject, flow);
        let [k, item, r, first_column, first_row, column, part, row, at, here, i, j, cell] = writer.names.internals([
            "k",
            "item",
            "r",
            "first_column",
            "first_row",
            "column",
            "part",
            "row",
            "at",
            "here",
            "i",
            "j",
            "cell",
        ]);
        let own = Own { k, item, r, first_column, first_row, column, part, row, at, here, i, j, cell };
        let mut named = |ending: &str| -> Vec<String> {
            let wishes = flow.rows.iter().map(|row| format!("{}_{ending}", writer.name(row.source)));
            let wishes: Vec<String> = wishes.collect();
            wishes.iter().map(|wish| writer.names.internal(wish)).collect()
        };
        let (tiles, planes) = (named("tile"), named("from"));
        Self { writer, flow, loops, memory, tiling, shape, own, tiles, planes }
    }

    /// The kernel's name and text.
    ///
    /// # Errors
    /// A template is broken, which is a fault of the compiler.
    pub fn print(&mut self) -> Result<(Identifier, String), Refusal> {
        let subject = self.writer.subject;
        let name = self.writer.names.declared(&format!("{}_tiled", subject.stencil.name));
        let setup = self.setup();
        let loads = loads(self);
        let is_async = is_async(&loads);
        let loops: Vec<LoopTexts> = (0..self.loops.loops.len()).map(|number| self.computed(number, is_async)).collect();
        let [i, j] = self.tiling.tile;
        let how = format!(
            "a block computes a tile of {i}x{j} cells, {} loops over it and what they look at around it, with {} bytes of \
             shared memory",
            loops.len(),
            self.memory.bytes()
        );
        let mut load_lines: Vec<String> = loads.iter().flat_map(|load| load.lines.clone()).collect();
        let loaded: Vec<String> = is_async.then(|| "copy_async_commit();".to_owned()).into_iter().collect();
        load_lines.extend(loaded.clone());
        let waits: Vec<String> = loops.iter().flat_map(|own| own.before.clone()).collect();
        let mut lines = device::lines(&[&setup[..], &load_lines, &waits].concat().join("\n"));
        lines.extend(prelude::functions(&self.writer.helpers, subject.precision));
        lines.extend(functions(&[&load_lines]));
        let texts = Texts {
            comment: self.writer.comment(how),
            prelude: lines,
            name: name.clone(),
            threads: self.shape.threads,
            signature: self.writer.signature(true),
            setup,
            item: self.own.item.clone(),
            r: self.own.r.clone(),
            loads,
            loaded,
            loops,
        };
        Ok((name, render(TEMPLATE, &texts)?))
    }

    /// Where the block's tile is, and where it reads and writes.
    fn setup(&mut self) -> Vec<String> {
        let subject = self.writer.subject;
        let Tiling { tile, tiles, computed } = self.tiling;
        let Own { k, first_column, first_row, .. } = &self.own;
        // The last tile stands back onto the one before it: the same bits are written twice.
        let place = |number: String, axis: usize, first: usize, extent: usize| {
            let size = tile[axis];
            let text = match tiles[axis] {
                1 => return first.to_string(),
                _ if extent.is_multiple_of(size) => format!("{number} * {size}"),
                _ => format!("min({number} * {size}, {})", extent - size),
            };
            if first > 0 { format!("{text} + {first}") } else { text }
        };
        let number = "int(blockIdx.x)";
        let along = |before: usize, count: usize| match before {
            1 => format!("{number} % {count}"),
            _ => format!("{number} / {before} % {count}"),
        };
        let mut lines = vec![
            format!("const int {first_column} = {};", place(along(1, tiles[0]), 0, 0, subject.extents[0])),
            format!(
                "const int {first_row} = {};",
                place(along(tiles[0], tiles[1]), 1, computed[1].start, computed[1].len())
            ),
            format!("const int {k} = {number} / {};", tiles[0] * tiles[1]),
        ];
        let memory = self.writer.names.internal("memory");
        if !self.memory.slots.is_empty() {
            lines.push(format!("STENCILC_DYNAMIC_SHARED(unsigned char, {memory});"));
        }
        for (place, row) in self.flow.rows.iter().enumerate() {
            if let Some(slot) = self.memory.homes[place] {
                let slot = &self.memory.slots[slot];
                let (c_type, tile) = (slot.c_type, self.tile(place));
                let begin = match slot.offset {
                    0 => memory.clone(),
                    offset => format!("{memory} + {offset}"),
                };
                lines.push(format!("{c_type}* const {tile} = reinterpret_cast<{c_type}*>({begin});"));
            }
            if let Source::Field(field, shift) = row.source {
                let own = &subject.stencil.fields[field];
                let from = self.from(place);
                let stored = stored_type(own.stored, subject.precision);
                let plane = subject.plane(own.place.levels, shift, &self.own.k);
                let base = self.writer.input(field);
                lines.push(format!("const {stored}* const {from} = {base} + {plane};").replace(" + 0;", ";"));
            }
        }
        for store in &subject.stencil.stores {
            let field = &subject.stencil.fields[store.field];
            let name = self.writer.output(store.field).to_owned();
            let to = self.writer.names.internal(&format!("{name}_to"));
            let stored = stored_type(field.stored, subject.precision);
            let plane = subject.plane(field.place.levels, 0, &self.own.k);
            lines.push(format!("{stored}* const {to} = {name} + {plane};").replace(" + 0;", ";"));
        }
        lines.extend(self.writer.uniforms(self.flow));
        lines
    }

    /// The tile of a value.
    pub fn tile(&self, place: usize) -> &str {
        &self.tiles[place]
    }

    /// The plane of a field that is read.
    pub fn from(&self, place: usize) -> &str {
        &self.planes[place]
    }

    /// Where a cell is in its plane.
    pub fn cell_line(&self) -> String {
        let subject = self.writer.subject;
        let Own { i, j, cell, .. } = &self.own;
        let row = subject.rows.row;
        match row.saturating_mul(subject.extents[1]) > i32::MAX as usize {
            true => format!("const long long {cell} = {j} * {row}LL + {i};"),
            false => format!("const int {cell} = {j} * {row} + {i};"),
        }
    }

    /// What is looked at in a loop, at the present cell.
    fn looks(&self, number: usize) -> BTreeMap<Use, String> {
        let subject = self.writer.subject;
        let Area { i, j } = self.loops.loops[number].area;
        let mut texts = BTreeMap::new();
        for (place, used) in self.loops.uses(self.flow, number) {
            let element = match (self.loops.homes[place], self.memory.homes[place]) {
                (Home::Tile(_), Some(slot)) => {
                    let index = self.memory.index(slot, i.low + used.i, j.low + used.j);
                    format!("{}[{}]", self.tile(place), plus(self.own.here.clone(), index))
                }
                (Home::Array, _) => format!("{}[{}]", self.from(place), self.own.cell),
                (Home::Tile(_) | Home::Register, _) => continue,
            };
            let text = match used.source {
                Source::Field(field, _) => read_as(element, subject.stencil.fields[field].stored, subject.precision),
                Source::Def(..) => element,
            };
            texts.insert(used, text);
        }
        texts
    }

    /// A loop over the cells of an area, some rows a thread.
    fn computed(&mut self, number: usize, is_async: bool) -> LoopTexts {
        let subject = self.writer.subject;
        let [ni, nj, _] = subject.extents;
        let Loop { area, values, .. } = self.loops.loops[number].clone();
        let is_last = number + 1 == self.loops.loops.len();
        let [columns, all_rows] = area.cells(self.tiling.tile);
        // Parts of a column are as long as each other, but for a row.
        let parts = all_rows.div_ceil(self.shape.rows);
        let (rows, longer) = (all_rows.div_ceil(parts), all_rows % parts);
        let looks = self.looks(number);
        let has_cells =
            is_last || self.loops.uses(self.flow, number).any(|(row, _)| self.loops.homes[row] == Home::Array);
        let (mut names, mut body, mut kept, mut made) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let stencil = subject.stencil;
        for &place in &values {
            let source = self.flow.rows[place].source;
            let Source::Def(def, shift) = source else { continue };
            let name = self.writer.name(source).to_owned();
            let text = self.writer.expression(&stencil.defs[def].body, shift, &|used| looks.get(&used).cloned());
            let c_type = self.writer.c_type(source);
            match self.memory.homes[place] {
                None => body.push(format!("const {c_type} {name} = {text};")),
                Some(slot) => {
                    let r = &self.own.r;
                    body.push(format!("{name}[{r}] = {text};"));
                    made.push(format!("{c_type} {name}[{rows}];"));
                    let index = self.memory.index(slot, area.i.low, area.j.low);
                    let at = plus(format!("{} + {r} * {}", self.own.at, self.memory.pitch), index);
                    kept.push(format!("{}[{at}] = {name}[{r}];", self.tile(place)));
                }
            }
            names.push(name);
        }
        if is_last {
            body.extend(stencil.stores.iter().map(|store| self.store(store, &looks)));
        }
        let Own { item, r, first_column, first_row, column, part, row, at, here, i, j, .. } = &self.own;
        let begin = match longer {
            0 => format!("{part} * {rows}"),
            _ => format!("{part} * {} + min({part}, {longer})", rows - 1),
        };
        let mut setup = vec![
            format!("const int {column} = {item} % {columns}, {part} = {item} / {columns};"),
            format!("const int {row} = {begin};"),
        ];
        let mut cell = Vec::new();
        let uses_tiles = self.loops.uses(self.flow, number).any(|(place, _)| self.memory.homes[place].is_some());
        if uses_tiles || !kept.is_empty() {
            setup.push(format!("const int {at} = {row} * {} + {column};", self.memory.pitch));
        }
        if uses_tiles {
            cell.push(format!("const int {here} = {at} + {r} * {};", self.memory.pitch));
        }
        if has_cells {
            let is_inside = |window: Window| window.low >= 0 && window.high <= 0;
            let text = around(&format!("{first_column} + {column}"), area.i.low, ni, is_inside(area.i));
            setup.push(format!("const int {i} = {text};"));
            let text = around(&format!("{first_row} + {row} + {r}"), area.j.low, nj, is_inside(area.j));
            cell.push(format!("const int {j} = {text};"));
            cell.push(self.cell_line());
        }
        setup.extend(made);
        body.splice(0..0, cell);
        let what = if is_last { "The outputs".to_owned() } else { names.join(", ") };
        LoopTexts {
            before: self.waits(number, is_async),
            comment: format!("// {what}: {columns}x{all_rows} cells."),
            items: columns * parts,
            setup,
            rows,
            is_over: if longer > 0 { format!("{r} == {} && {part} >= {longer}", rows - 1) } else { String::new() },
            body,
            kept,
        }
    }

    /// What is waited for before a loop.
    fn waits(&self, number: usize, is_async: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let is_first = self.loops.first_reader(self.flow) == Some(number);
        if is_first && is_async {
            lines.push("copy_async_wait<0>();".to_owned());
        }
        if is_first || self.loops.waits(number) {
            lines.push("__syncthreads();".to_owned());
        }
        lines
    }

    /// Stores an output.
    fn store(&mut self, store: &Store, looks: &BTreeMap<Use, String>) -> String {
        let subject = self.writer.subject;
        let field = &subject.stencil.fields[store.field];
        let text = self.writer.stored(store, &|used| looks.get(&used).cloned());
        let name = self.writer.output(store.field).to_owned();
        let to = self.writer.names.internal(&format!("{name}_to"));
        let Own { k, i, cell, .. } = &self.own;
        let columns = &self.tiling.computed[0];
        let mut guards: Vec<String> = Vec::new();
        if columns.start > 0 {
            guards.push(format!("{i} >= {}", columns.start));
        }
        if columns.end < subject.extents[0] {
            guards.push(format!("{i} < {}", columns.end));
        }
        if field.place.levels == Levels::None {
            guards.push(format!("{k} == 0"));
        }
        let written = format!("{to}[{cell}] = {text};");
        match guards.is_empty() {
            true => written,
            false => format!("if ({}) {written}", guards.join(" && ")),
        }
    }
}

/// `name + 5`
pub fn plus(text: String, by: i64) -> String {
    match by {
        0 => text,
        1.. => format!("{text} + {by}"),
        _ => format!("{text} - {}", by.unsigned_abs()),
    }
}

/// A column or row of the plane that may be so much before one of the tile's, and then, beyond the last, is the first again.
pub fn around(text: &str, by: i32, extent: usize, is_inside: bool) -> String {
    match is_inside {
        true => plus(text.to_owned(), i64::from(by)),
        false => format!("unsigned({}) % {extent}", plus(text.to_owned(), i64::from(by).rem_euclid(extent as i64))),
    }
}
