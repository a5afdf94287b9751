//! How tiles of fields come from memory.

use super::super::flow::{Area, Window};
use super::body::Tile;
use super::{Layout, TOGETHER};
use crate::ir::FieldId;
use crate::kernel::build::{Computing, Making};
use crate::kernel::{Operand, Routine};

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

impl Layout<'_> {
    /// How the tile of a field is loaded that is needed in an area.
    pub fn load(&self, field: FieldId, area: Area) -> Load {
        // Wherever a row begins, and wherever a tile or a plane does, that many elements are aligned.
        let [columns, before] = [self.tile[0], self.memory.before];
        let tile = if self.tiles[0] > 1 { columns } else { 0 };
        let many = self.task.at_once(field, TOGETHER, &[self.task.extents[0], tile]);
        let first = before.saturating_add_signed(area.i.low as isize) / many * many;
        let end = (before + columns).saturating_add_signed(area.i.high as isize);
        Load { many, columns: [first, end.next_multiple_of(many) - first], j: area.j }
    }
}

impl Load {
    /// How often threads ask for some of them.
    pub fn items(&self, rows: usize) -> usize {
        self.elements(rows) / self.many
    }

    /// Elements that are loaded, for a tile of so many rows.
    pub fn elements(&self, rows: usize) -> usize {
        self.columns[1] * rows.saturating_add_signed((self.j.high - self.j.low) as isize)
    }
}

impl Tile<'_> {
    /// Starts to load the tiles of fields, those together that have the same cells. Whether some of them come while threads go on.
    pub fn loads(&mut self) -> bool {
        let layout = self.layout;
        let mut alike: Vec<(Load, Vec<usize>)> = Vec::new();
        for (place, field) in layout.flow.fields() {
            let Some(area) = layout.loops.kept[place] else { continue };
            let load = layout.load(field, area);
            match alike.iter_mut().find(|(known, _)| *known == load) {
                Some((_, places)) => places.push(place),
                None => alike.push((load, vec![place])),
            }
        }
        let mut is_async = false;
        for (load, places) in alike {
            is_async |= self.load(load, &places);
        }
        if is_async {
            self.own().perform(Routine::CopyAsyncCommit, Vec::new());
        }
        is_async
    }

    fn load(&mut self, load: Load, places: &[usize]) -> bool {
        let (memory, tile) = (&self.layout.memory, self.layout.tile);
        let Load { many, columns: [first, count], j } = load;
        let left = first as i32 - memory.before as i32;
        let i = Window { low: left, high: left + count as i32 - tile[0] as i32 };
        let mut is_async = false;
        self.each_item(load.items(tile[1]), count / many, |own, column, row| {
            let (column, row) = (own.whole("column", column.times(many)), own.whole("row", row));
            let i = own.column(column, i);
            let cell = own.cell(i, own.first_row.plus(row), j);
            for &place in places {
                let (Some((slot, to)), Some(from)) = (own.tiles[place], own.planes[place]) else { continue };
                let index = row.times(memory.pitch).plus(column).plus(memory.index(slot, left, j.low));
                let routine = match many * memory.slots[slot].element.bytes() {
                    bytes @ (4 | 8 | 16) => Routine::CopyAsync(bytes),
                    _ => Routine::CopyRun(many),
                };
                is_async |= matches!(routine, Routine::CopyAsync(_));
                let to = own.own().place(to, index);
                own.own().perform(routine, vec![to, Operand::Place(from, cell)]);
            }
        });
        is_async
    }
}
