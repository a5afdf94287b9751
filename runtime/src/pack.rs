//! Between the user's order of cells and a storage's.

use crate::array::{Data, Element};
use rayon::prelude::*;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Place;
use stencilc_compiler::storage::{Columns, Layout};

/// What bytes that belong to no cell are filled with: a NaN for every floating-point type, so that reading one shows.
pub const PADDING: u8 = 0xF5;

/// Where the cells of one field are in its buffer. Counts are in elements.
pub struct Packing<'a> {
    layout: &'a Layout,
    grid: Grid,
    place: Place,
    element: Element,
}

impl<'a> Packing<'a> {
    /// The packing of a field that lives on `place`.
    pub fn new(layout: &'a Layout, grid: Grid, place: Place, element: Element) -> Self {
        Self { layout, grid, place, element }
    }

    /// Elements before the first cell.
    pub fn origin(&self) -> usize {
        if self.place.horizontal { self.layout.origin(self.element.bytes()) } else { 0 }
    }

    fn levels(&self) -> usize {
        self.place.levels.count(self.grid.nk)
    }

    /// Elements of the whole buffer, padding included.
    pub fn elements(&self) -> usize {
        if self.place.horizontal { self.origin() + self.levels() * self.layout.plane } else { self.levels() }
    }

    /// The index of the cell that is number `index` in the user's order.
    pub fn index(&self, index: usize) -> usize {
        if !self.place.horizontal {
            return index;
        }
        let Grid { ni, nj, .. } = self.grid;
        let (k, column) = (index / (ni * nj), index % (ni * nj));
        self.origin() + k * self.layout.plane + self.layout.place(self.grid, column % ni, column / ni)
    }

    /// The buffer's bytes, with padding where no cell is.
    pub fn pack(&self, data: &Data) -> Vec<u8> {
        let bytes = self.element.bytes();
        let source = data_bytes(data);
        let mut packed = vec![PADDING; self.elements() * bytes];
        if !self.place.horizontal {
            packed.copy_from_slice(source);
            return packed;
        }
        let columns = self.grid.columns();
        let plane = self.layout.plane * bytes;
        let head = self.origin() * bytes;
        packed[head..].par_chunks_mut(plane).zip(source.par_chunks(columns * bytes)).for_each(|(plane, level)| {
            self.each_run(|from, to, count| {
                plane[to * bytes..(to + count) * bytes].copy_from_slice(&level[from * bytes..(from + count) * bytes]);
            });
        });
        packed
    }

    /// The cells of a buffer in the user's order.
    pub fn unpack(&self, packed: &[u8]) -> Data {
        let bytes = self.element.bytes();
        if !self.place.horizontal {
            return data_from(self.element, packed);
        }
        let columns = self.grid.columns();
        let plane = self.layout.plane * bytes;
        let head = self.origin() * bytes;
        let mut cells = vec![0; self.levels() * columns * bytes];
        cells.par_chunks_mut(columns * bytes).zip(packed[head..].par_chunks(plane)).for_each(|(level, plane)| {
            self.each_run(|to, from, count| {
                level[to * bytes..(to + count) * bytes].copy_from_slice(&plane[from * bytes..(from + count) * bytes]);
            });
        });
        data_from(self.element, &cells)
    }

    /// Calls `copy` with runs of columns that lie together: number in the user's order, place in the plane, how many.
    fn each_run(&self, mut copy: impl FnMut(usize, usize, usize)) {
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

    /// The first byte of a buffer that belongs to no cell and is not as [`Packing::pack`] left it.
    pub fn damaged(&self, packed: &[u8]) -> Option<usize> {
        let bytes = self.element.bytes();
        let mut is_cell = vec![false; self.elements()];
        let cells = self.levels() * if self.place.horizontal { self.grid.columns() } else { 1 };
        (0..cells).for_each(|cell| is_cell[self.index(cell)] = true);
        is_cell
            .par_iter()
            .enumerate()
            .find_first(|(index, is_cell)| {
                !**is_cell && packed[index * bytes..(index + 1) * bytes].iter().any(|&byte| byte != PADDING)
            })
            .map(|(index, _)| index * bytes)
    }
}

fn data_bytes(data: &Data) -> &[u8] {
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
    use stencilc_compiler::grid::Region;
    use stencilc_compiler::ir::{Levels, Offset};
    use stencilc_compiler::storage::STORAGES;

    #[test]
    fn every_storage_gives_back_what_it_took() {
        let grid = Grid::rows(37, 11, 3);
        let region = Region::rows(2..36, 1..9, 0..3);
        for storage in STORAGES {
            let layout = storage.layout(grid, &region, &[Offset { i: 1, j: 0, k: 0 }], 1);
            for element in [Element::F32, Element::F64, Element::I32, Element::Bool] {
                for horizontal in [true, false] {
                    for levels in [Levels::None, Levels::Full, Levels::Interfaces] {
                        let place = Place { horizontal, levels };
                        let len = grid.shape(place).iter().product();
                        let data = random::fill(element, len, -5.0, 5.0, 1, "data");
                        let packing = Packing::new(&layout, grid, place, element);
                        let mut packed = packing.pack(&data);
                        assert_eq!(packing.unpack(&packed), data, "{} {place:?}", storage.name());
                        assert_eq!(packing.damaged(&packed), None);
                        if horizontal {
                            let last = packed.len() - 1;
                            packed[last] = 0;
                            assert!(packing.damaged(&packed).is_some());
                        }
                    }
                }
            }
        }
    }
}
