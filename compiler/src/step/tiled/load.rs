//! How tiles of fields come from memory.

use super::super::flow::{Source, Window};
use super::super::write::width;
use super::loops::{Area, Home};
use super::memory::element;
use super::print::{Own, Printer, around, plus};
use super::{Memory, Subject, TOGETHER, Tiling};
use crate::ir::{FieldId, Levels};
use serde::Serialize;

/// Tiles of fields that are loaded alike.
#[derive(Serialize)]
pub struct LoadTexts {
    items: usize,
    /// What is done for each item.
    pub lines: Vec<String>,
}

/// How a field's tile is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Elements that come at once.
    many: usize,
    /// The first column, from that of the slots, and how many there are.
    columns: [usize; 2],
    /// Rows, from the tile's own.
    j: Window,
}

impl Load {
    /// How the tile of a field is loaded that is needed in an area.
    pub fn new(subject: &Subject, tiling: &Tiling, memory: &Memory, field: FieldId, area: Area) -> Self {
        let own = &subject.stencil.fields[field];
        let plane = if own.place.levels == Levels::None { 0 } else { subject.rows.plane };
        // Wherever a row begins, and wherever a tile or a plane does, that many elements are aligned.
        let mut at = vec![subject.rows.first, subject.rows.row, plane, subject.extents[0]];
        if tiling.tiles[0] > 1 {
            at.push(tiling.tile[0]);
        }
        let many = width(own.stored.bytes(subject.precision), TOGETHER, &at);
        let first = memory.before.saturating_add_signed(area.i.low as isize) / many * many;
        let end = (memory.before + tiling.tile[0]).saturating_add_signed(area.i.high as isize);
        Self { many, columns: [first, end.next_multiple_of(many) - first], j: area.j }
    }

    /// How often threads ask for some of them.
    pub fn items(&self, rows: usize) -> usize {
        self.elements(rows) / self.many
    }

    /// Elements that are loaded, for a tile of so many rows.
    pub fn elements(&self, rows: usize) -> usize {
        self.columns[1] * rows.saturating_add_signed((self.j.high - self.j.low) as isize)
    }
}

/// Starts to load the tiles of fields, those together that have the same cells.
pub fn loads(printer: &mut Printer) -> Vec<LoadTexts> {
    let mut alike: Vec<(Load, Vec<usize>)> = Vec::new();
    for (place, row) in printer.flow.rows.iter().enumerate() {
        let (Source::Field(field, _), Home::Tile(area)) = (row.source, printer.loops.homes[place]) else { continue };
        let load = Load::new(printer.writer.subject, printer.tiling, printer.memory, field, area);
        match alike.iter_mut().find(|(known, _)| *known == load) {
            Some((_, places)) => places.push(place),
            None => alike.push((load, vec![place])),
        }
    }
    alike.into_iter().map(|(load, places)| load_texts(printer, load, &places)).collect()
}

/// Whether some of them come while the threads go on.
pub fn is_async(loads: &[LoadTexts]) -> bool {
    loads.iter().flat_map(|load| &load.lines).any(|line| line.starts_with("copy_async"))
}

fn load_texts(printer: &mut Printer, load: Load, places: &[usize]) -> LoadTexts {
    let subject = printer.writer.subject;
    let memory = printer.memory;
    let [ni, nj, _] = subject.extents;
    let Load { many, columns: [first, count], j } = load;
    let pieces = count / many;
    let Own { item, column, row, first_column, first_row, i, j: j_name, .. } = &printer.own;
    let times = if many > 1 { format!(" * {many}") } else { String::new() };
    let left = first as i32 - memory.before as i32;
    let is_inside =
        [first >= memory.before && first + count <= memory.before + printer.tiling.tile[0], j.low >= 0 && j.high <= 0];
    let [i_text, j_text] = [
        around(&format!("{first_column} + {column}"), left, ni, is_inside[0]),
        around(&format!("{first_row} + {row}"), j.low, nj, is_inside[1]),
    ];
    let mut lines = vec![
        format!("const int {column} = {item} % {pieces}{times}, {row} = {item} / {pieces};"),
        format!("const int {i} = {i_text};"),
        format!("const int {j_name} = {j_text};"),
        printer.cell_line(),
    ];
    for &place in places {
        let Some(slot) = memory.homes[place] else { continue };
        let (tile, from) = (printer.tile(place), printer.from(place));
        let (_, bytes) = element(subject, printer.flow.rows[place].source);
        let Own { row, column, cell, .. } = &printer.own;
        let to = plus(format!("{tile} + {row} * {} + {column}", memory.pitch), memory.index(slot, left, j.low));
        lines.push(match many * bytes {
            bytes @ (4 | 8 | 16) => format!("copy_async<{bytes}>({to}, {from} + {cell});"),
            _ => format!("copy_run<{many}>({to}, {from} + {cell});"),
        });
    }
    LoadTexts { items: load.items(printer.tiling.tile[1]), lines }
}
