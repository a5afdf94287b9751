//! How tiles of fields come from memory.

use super::super::flow::{Source, Window};
use super::super::lower::width;
use super::body::Tile;
use super::loops::{Area, ReadFrom};
use super::{Memory, StepTask, TOGETHER, Tiling};
use crate::ir::{FieldId, Levels};
use crate::kernel::{Operand, Routine, Type};

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
    pub fn new(task: &StepTask, tiling: &Tiling, memory: &Memory, field: FieldId, area: Area) -> Self {
        let own = &task.stencil.fields[field];
        let plane = if own.place.levels == Levels::None { 0 } else { task.rows.plane };
        // Wherever a row begins, and wherever a tile or a plane does, that many elements are aligned.
        let mut at = vec![task.rows.first, task.rows.row, plane, task.extents[0]];
        if tiling.tiles[0] > 1 {
            at.push(tiling.tile[0]);
        }
        let many = width(own.stored.bytes(task.precision), TOGETHER, &at);
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

/// Starts to load the tiles of fields, those together that have the same cells. Whether some of them come while threads go on.
pub fn loads(tile: &mut Tile) -> bool {
    let mut alike: Vec<(Load, Vec<usize>)> = Vec::new();
    for (place, row) in tile.flow.rows.iter().enumerate() {
        let (Source::Field(field, _), ReadFrom::Tile(area)) = (row.source, tile.loops.homes[place]) else { continue };
        let load = Load::new(tile.lowering.task, tile.tiling, tile.memory, field, area);
        match alike.iter_mut().find(|(known, _)| *known == load) {
            Some((_, places)) => places.push(place),
            None => alike.push((load, vec![place])),
        }
    }
    let mut is_async = false;
    for (load, places) in alike {
        is_async |= tile.load(load, &places);
    }
    if is_async {
        tile.lowering.own.perform(Routine::CopyAsyncCommit, Vec::new());
    }
    is_async
}

impl Tile<'_> {
    /// Starts to load tiles of fields. Whether some of them come while threads go on.
    fn load(&mut self, load: Load, places: &[usize]) -> bool {
        let memory = self.memory;
        let [ni, nj, _] = self.lowering.task.extents;
        let Load { many, columns: [first, count], j } = load;
        let left = first as i32 - memory.before as i32;
        let is_inside =
            [first >= memory.before && first + count <= memory.before + self.tiling.tile[0], j.low >= 0 && j.high <= 0];
        let mut is_async = false;
        self.each_item(load.items(self.tiling.tile[1]), count / many, |own, column, row| {
            let many_columns = own.lowering.own.literal(many as i64, Type::U32);
            let column = own.lowering.own.mul(column, many_columns);
            let (column, row) = (own.whole("column", column), own.whole("row", row));
            let i = own.column(column, left, ni, is_inside[0]);
            let j_row = own.lowering.own.add(own.first_row, row);
            let cell = own.cell(i, j_row, (j.low, nj, is_inside[1]));
            for &place in places {
                let (Some((slot, to)), Some(from)) = (own.tiles[place], own.planes[place]) else { continue };
                let bytes = many * memory.slots[slot].element.bytes();
                let index = own.in_tile(row, column, memory.index(slot, left, j.low));
                let routine = match bytes {
                    4 | 8 | 16 => Routine::CopyAsync(bytes),
                    _ => Routine::CopyRun(many),
                };
                is_async |= matches!(routine, Routine::CopyAsync(_));
                own.lowering.own.perform(routine, vec![Operand::Place(to, index), Operand::Place(from, cell)]);
            }
        });
        is_async
    }
}
