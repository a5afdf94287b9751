//! Between the user's order of cells and a storage's.

use crate::array::{Data, Element};
use rayon::prelude::*;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Levels, Place};
use stencilc_compiler::storage::fields::{BLOCK, FieldSlot, Fields};
use stencilc_compiler::storage::{Columns, Layout, Stride};

/// What bytes that belong to no cell are filled with: a NaN for every floating-point type, so that reading one shows.
pub const PADDING: u8 = 0xF5;

/// Where the cells of one field are in the buffer of its group. Counts are in elements.
pub struct Packing<'a> {
    layout: &'a Layout,
    grid: Grid,
    place: Place,
    element: Element,
    fields: Fields,
    slot: FieldSlot,
}

impl<'a> Packing<'a> {
    /// The packing of a field that lives on `place`, and has a `slot` among fields that lie together in one buffer.
    pub fn new(
        layout: &'a Layout,
        grid: Grid,
        place: Place,
        element: Element,
        fields: Fields,
        slot: FieldSlot,
    ) -> Self {
        // Alone it is an array, whatever was chosen.
        let fields = if slot.fields == 1 { Fields::Soa } else { fields };
        Self { layout, grid, place, element, fields, slot }
    }

    /// Elements of a field before its first cell, as if it lay alone.
    fn origin(&self) -> usize {
        match (self.place.horizontal, self.fields) {
            (false, _) => 0,
            (true, Fields::Soa | Fields::Aos) => self.layout.origin(self.element.bytes()),
            // A block begins with the first cell.
            (true, Fields::Aosoa) => self.layout.origin(self.element.bytes()) / BLOCK * BLOCK,
        }
    }

    /// Bytes in front of the element that kernels get a pointer to: the field's first.
    pub fn pointer(&self) -> usize {
        self.fields.index(self.slot, self.origin()) * self.element.bytes()
    }

    fn levels(&self) -> usize {
        self.place.levels.count(self.grid.nk)
    }

    /// Elements of the field, padding included, as if it lay alone.
    fn elements(&self) -> usize {
        match (self.place.horizontal, self.place.levels) {
            (false, _) => self.levels(),
            (true, Levels::None) => self.origin() + self.layout.places,
            (true, Levels::Full | Levels::Interfaces) => self.origin() + self.layout.elements(self.levels()),
        }
    }

    /// Bytes of the whole buffer.
    pub fn bytes(&self) -> usize {
        self.fields.length(self.slot.fields, self.elements()) * self.element.bytes()
    }

    /// Writes the cells of `data`, which are in the user's order, into the buffer.
    pub fn pack(&self, data: &Data, buffer: &mut [u8]) {
        let bytes = self.element.bytes();
        let source = data_bytes(data);
        if !self.place.horizontal {
            return buffer.copy_from_slice(source);
        }
        let columns = self.grid.columns();
        if let Some((head, size)) = self.pillars() {
            let column_at = self.columns_of_places();
            buffer[head..].par_chunks_mut(size).zip(column_at).for_each(|(pillar, column)| {
                let Some(column) = column else { return };
                let levels = source.chunks(columns * bytes).zip(pillar.chunks_mut(bytes));
                levels.for_each(|(level, value)| value.copy_from_slice(&level[column * bytes..(column + 1) * bytes]));
            });
            return;
        }
        let Some((head, plane)) = self.planes() else {
            return source.chunks(bytes).enumerate().for_each(|(cell, value)| {
                let at = self.index(cell) * bytes;
                buffer[at..at + bytes].copy_from_slice(value);
            });
        };
        buffer[head..].par_chunks_mut(plane).zip(source.par_chunks(columns * bytes)).for_each(|(plane, level)| {
            self.each_run(|from, to, count| {
                plane[to * bytes..(to + count) * bytes].copy_from_slice(&level[from * bytes..(from + count) * bytes]);
            });
        });
    }

    /// The cells of a buffer in the user's order.
    pub fn unpack(&self, buffer: &[u8]) -> Data {
        let bytes = self.element.bytes();
        if !self.place.horizontal {
            return data_from(self.element, buffer);
        }
        let columns = self.grid.columns();
        let mut cells = vec![0; self.levels() * columns * bytes];
        if let Some((head, size)) = self.pillars() {
            let places = self.places();
            cells.par_chunks_mut(columns * bytes).enumerate().for_each(|(k, level)| {
                for (value, place) in level.chunks_mut(bytes).zip(&places) {
                    let at = head + place * size + k * bytes;
                    value.copy_from_slice(&buffer[at..at + bytes]);
                }
            });
            return data_from(self.element, &cells);
        }
        let Some((head, plane)) = self.planes() else {
            cells.par_chunks_mut(bytes).enumerate().for_each(|(cell, value)| {
                let at = self.index(cell) * bytes;
                value.copy_from_slice(&buffer[at..at + bytes]);
            });
            return data_from(self.element, &cells);
        };
        cells.par_chunks_mut(columns * bytes).zip(buffer[head..].par_chunks(plane)).for_each(|(level, plane)| {
            self.each_run(|to, from, count| {
                level[to * bytes..(to + count) * bytes].copy_from_slice(&plane[from * bytes..(from + count) * bytes]);
            });
        });
        data_from(self.element, &cells)
    }

    /// Bytes before the first plane, and of each plane, where levels follow each other plane by plane. With blocks, both are whole ones.
    fn planes(&self) -> Option<(usize, usize)> {
        let is_plane_by_plane = self.place.levels == Levels::None || self.layout.strides.place == Stride::One;
        let together = if self.fields == Fields::Soa { 1 } else { self.slot.fields };
        let bytes = self.element.bytes() * together;
        is_plane_by_plane.then(|| (self.origin() * bytes, self.layout.places * bytes))
    }

    /// Bytes before the first column, and from each to the next, of a field that lies alone, the levels of a column beside each other.
    fn pillars(&self) -> Option<(usize, usize)> {
        let bytes = self.element.bytes();
        let is_by_column = self.place.levels != Levels::None && self.layout.strides.level == Stride::One;
        let size = self.layout.stride(self.layout.strides.place) * bytes;
        (is_by_column && self.fields == Fields::Soa).then(|| (self.origin() * bytes, size))
    }

    /// The place of each column.
    fn places(&self) -> Vec<usize> {
        let Grid { ni, nj, .. } = self.grid;
        (0..ni * nj).map(|column| self.layout.place(self.grid, column % ni, column / ni)).collect()
    }

    /// The column at each place, if one is there.
    fn columns_of_places(&self) -> Vec<Option<usize>> {
        let mut columns = vec![None; self.layout.places];
        self.places().into_iter().enumerate().for_each(|(column, place)| columns[place] = Some(column));
        columns
    }

    /// Calls `copy` with runs of columns that lie together: number in the user's order, element of a plane, how many.
    fn each_run(&self, mut copy: impl FnMut(usize, usize, usize)) {
        if self.fields != Fields::Soa {
            let Grid { ni, nj, .. } = self.grid;
            for column in 0..ni * nj {
                let place = self.layout.place(self.grid, column % ni, column / ni);
                copy(column, self.fields.index(self.slot, place), 1);
            }
            return;
        }
        let Grid { ni, nj, .. } = self.grid;
        match &self.layout.columns {
            Columns::Rows { row } => (0..nj).for_each(|j| copy(j * ni, j * row, ni)),
            Columns::Places(places) => {
                let mut start = 0;
                while start < places.len() {
                    let next = |at: usize| places.get(at).copied() == Some(places[start] + (at - start) as u32);
                    let end = (start + 1..).find(|&at| !next(at)).unwrap_or(places.len());
                    copy(start, places[start] as usize, end - start);
                    start = end;
                }
            }
        }
    }

    /// Whether a byte of the buffer belongs to one of the field's cells.
    pub fn holds(&self, byte: usize) -> bool {
        let element = byte / self.element.bytes();
        let cells = self.levels() * if self.place.horizontal { self.grid.columns() } else { 1 };
        (0..cells).any(|cell| self.index(cell) == element)
    }

    /// The element of the buffer that is the cell with a number in the user's order.
    fn index(&self, number: usize) -> usize {
        if !self.place.horizontal {
            return number;
        }
        let Grid { ni, nj, .. } = self.grid;
        let (k, column) = (number / (ni * nj), number % (ni * nj));
        let place = self.layout.place(self.grid, column % ni, column / ni);
        let element = if self.place.levels == Levels::None { place } else { self.layout.index(place, k) };
        self.fields.index(self.slot, self.origin() + element)
    }
}

/// The numbers as they lie in memory.
pub(crate) fn data_bytes(data: &Data) -> &[u8] {
    match data {
        Data::F32(v) => bytemuck::cast_slice(v),
        Data::F64(v) => bytemuck::cast_slice(v),
        Data::I32(v) => bytemuck::cast_slice(v),
        Data::Bool(v) => v,
    }
}

fn data_from(element: Element, bytes: &[u8]) -> Data {
    match element {
        Element::F32 => Data::F32(bytemuck::allocation::pod_collect_to_vec(bytes)),
        Element::F64 => Data::F64(bytemuck::allocation::pod_collect_to_vec(bytes)),
        Element::I32 => Data::I32(bytemuck::allocation::pod_collect_to_vec(bytes)),
        Element::Bool => Data::Bool(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;
    use std::sync::Arc;
    use stencilc_compiler::grid::{Adjacency, Region, Topology};
    use stencilc_compiler::ir::{Offset, Path};
    use stencilc_compiler::storage::fastest::FASTEST;
    use stencilc_compiler::storage::fields::FIELDS;
    use stencilc_compiler::storage::order::ORDERS;
    use stencilc_compiler::storage::sharing::Sharing;
    use stencilc_compiler::storage::{LayoutRequest, STORAGES};

    /// A grid in rows or of cells that anything links, what is computed of it, and stencils to share its layout with.
    struct Drawn {
        grid: Grid,
        adjacency: Option<Adjacency>,
        region: Region,
        sharing: Option<Sharing>,
    }

    fn drawn(seed: u64) -> Drawn {
        let draw = |name: &str, count: usize, end: usize| -> Vec<usize> {
            let Data::I32(numbers) = random::fill(Element::I32, count, 0.0, end as f64, seed, name) else {
                unreachable!("whole numbers are drawn")
            };
            // The end itself is drawn, too.
            numbers.into_iter().map(|number| (number as usize).min(end - 1)).collect()
        };
        let one = |name: &str, end: usize| draw(name, 1, end)[0];
        let (ni, nj, nk) = (1 + one("ni", 60), 1 + one("nj", 12), 1 + one("nk", 4));
        let count = ni * nj;
        // Any columns, at least one.
        let some = |name: &str| {
            let mut columns = draw(name, 1 + one(&format!("{name} count"), count), count);
            columns.sort_unstable();
            columns.dedup();
            Arc::<[u32]>::from(columns.into_iter().map(|column| column as u32).collect::<Vec<_>>())
        };
        let (grid, adjacency, region) = match one("form", 2) {
            0 => {
                let (i, j) = (one("i", ni), one("j", nj));
                let (width, height) = (1 + one("width", ni - i), 1 + one("height", nj - j));
                (Grid::rows(ni, nj, nk), None, Region::rows(i..i + width, j..j + height, 0..nk))
            }
            _ => {
                let lists = ["left", "right", "top", "bottom"]
                    .map(|name| draw(name, count, count + 1).into_iter().map(|to| to as i32 - 1).collect::<Vec<i32>>());
                let region = Region { i: 0..count, j: 0..1, k: 0..nk, cells: Some(some("inner")) };
                (Grid::cells(count, nk), Some(Adjacency::new("drawn", lists, None).unwrap()), region)
            }
        };
        let computed = vec![region.column_numbers(grid).into(), some("others"), some("more")];
        let sharing = (one("shared", 2) == 1).then_some(Sharing { computed, smallest: 1, levels: nk + 1 });
        Drawn { grid, adjacency, region, sharing }
    }

    #[test]
    fn every_storage_gives_back_what_it_took() {
        for seed in 0..24 {
            let Drawn { grid, adjacency, region, sharing } = drawn(seed);
            let topology = adjacency.as_ref().map_or(Topology::Rows { ni: grid.ni, nj: grid.nj }, Topology::Adjacent);
            let storages = STORAGES.iter().flat_map(|storage| FASTEST.map(|fastest| fastest.of(*storage)));
            for (storage, order) in storages.flat_map(|storage| ORDERS.iter().map(move |order| (storage, order))) {
                if adjacency.is_some() && !storage.has_tables() {
                    continue;
                }
                let layout = storage.layout(&LayoutRequest {
                    levels: grid.nk + 1,
                    sharing: sharing.as_ref(),
                    relations: &[Path::from_offset(Offset { i: 1, j: 0, k: 0 })],
                    order: *order,
                    run_width: 1 << (seed % 6),
                    short_last: seed % 2 == 0,
                    smallest: 1,
                    ..LayoutRequest::new(topology, &region)
                });
                let name = format!("{} {} {:?} {grid} {seed}", storage.name(), order.name(), storage.strides());
                for element in [Element::F32, Element::F64, Element::I32, Element::Bool] {
                    for levels in [Levels::None, Levels::Full, Levels::Interfaces] {
                        for (horizontal, fields) in
                            FIELDS.map(|fields| (true, fields)).into_iter().chain([(false, Fields::Soa)])
                        {
                            let place = Place { horizontal, levels, home: None };
                            check(&layout, grid, place, element, fields, &name);
                        }
                    }
                }
            }
        }
    }

    /// Several fields in one buffer come back as they were, and the rest of the buffer stays as it was.
    fn check(layout: &Layout, grid: Grid, place: Place, element: Element, fields: Fields, name: &str) {
        let members = if fields == Fields::Soa || !place.horizontal { 1 } else { 3 };
        let len = grid.shape(place).iter().product();
        let slot = |number| FieldSlot { group: 0, number, fields: members };
        let packings: Vec<Packing> =
            (0..members).map(|number| Packing::new(layout, grid, place, element, fields, slot(number))).collect();
        let mut buffer = vec![PADDING; packings[0].bytes()];
        let data: Vec<Data> =
            (0..members as u64).map(|seed| random::fill(element, len, -5.0, 5.0, seed, "data")).collect();
        packings.iter().zip(&data).for_each(|(packing, data)| packing.pack(data, &mut buffer));
        for (packing, data) in packings.iter().zip(&data) {
            assert_eq!(packing.unpack(&buffer), *data, "{name} {place:?} {}", fields.name());
        }
        let bytes = element.bytes();
        let mut is_cell = vec![false; buffer.len() / bytes];
        for packing in &packings {
            (0..len).for_each(|number| is_cell[packing.index(number)] = true);
        }
        for at in 0..is_cell.len() {
            let untouched = buffer[at * bytes..(at + 1) * bytes].iter().all(|&byte| byte == PADDING);
            assert!(is_cell[at] || untouched, "{name} {place:?} {}: element {at}", fields.name());
        }
    }
}
