//! Which axis is fastest in memory: the columns of a plane follow each other, or the levels of a column do.
//!
//! Where levels are fastest, threads that follow each other compute the levels of a column: what they look up is the same for all of
//! them, and their accesses are aligned whichever column they lead to.

use super::fields::BLOCK;
use super::neighbors::Hop;
use super::{
    ALIGNMENT, Along, Coordinates, Layout, LayoutRequest, Origin, Row, STORAGES, Sizes, Storage, Stride, Strides,
    Threads,
};
use crate::access::LevelsPerThread;
use crate::grid::{Form, Grid, Region};
use crate::kernel::ValueId;
use crate::kernel::build::Builder;
use crate::named::named;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::LazyLock;

named! {
    /// Which axis is fastest in memory.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Fastest {
        /// The columns of a plane follow each other, plane by plane.
        #[default]
        Columns = "columns", "the columns of a plane follow each other, level by level";
        /// The levels of a column follow each other, column by column.
        Levels = "levels", "the levels of a column follow each other, column by column";
    }
}

/// Every way, in the order that lists show.
pub const FASTEST: [Fastest; 2] = Fastest::ALL;

impl Fastest {
    /// A storage whose fastest axis is this one.
    pub fn of(self, storage: &'static dyn Storage) -> &'static dyn Storage {
        static ALL: LazyLock<Vec<ByColumn>> =
            LazyLock::new(|| STORAGES.iter().map(|&storage| ByColumn::new(storage)).collect());
        match self {
            Fastest::Columns => storage,
            Fastest::Levels => ALL.iter().find(|own| own.name() == storage.name()).map_or(storage, |own| own),
        }
    }
}

/// The size that columns are apart.
const COLUMN: (&str, &str) = ("column", "elements from a column to the next");

/// A storage of columns whose levels stand together. To the storage within, a column is one element, so large that rows and planes
/// of them are aligned as they are.
struct ByColumn {
    within: &'static dyn Storage,
    sizes: Vec<(&'static str, &'static str)>,
}

impl ByColumn {
    fn new(within: &'static dyn Storage) -> Self {
        let sizes = std::iter::once(COLUMN).chain(within.sizes()[1..].iter().copied()).collect();
        Self { within, sizes }
    }
}

/// Elements that are reserved for so many levels: columns begin at aligned elements, and where they are shorter than that, none lies
/// across such an element.
fn reserved(levels: usize, smallest: usize) -> usize {
    let levels = levels.max(1);
    levels.next_multiple_of((ALIGNMENT / smallest).min(levels.next_power_of_two()))
}

impl Storage for ByColumn {
    fn name(&self) -> &'static str {
        self.within.name()
    }

    fn summary(&self) -> &'static str {
        self.within.summary()
    }

    fn sizes(&self) -> &[(&'static str, &'static str)] {
        &self.sizes
    }

    fn strides(&self) -> Strides {
        Strides { place: Stride::Size(0), level: Stride::One }
    }

    fn tables(&self) -> &'static [(&'static str, &'static str)] {
        self.within.tables()
    }

    fn constant(&self) -> Option<usize> {
        self.within.constant()
    }

    fn coordinates(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Coordinates {
        self.within.coordinates(own, sizes, threads)
    }

    fn row(&self, own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Row {
        self.within.row(own, sizes, threads)
    }

    fn column_of_row(
        &self,
        own: &mut Builder,
        sizes: &Sizes,
        threads: &Threads,
        row: &Row,
        at: ValueId,
    ) -> Coordinates {
        self.within.column_of_row(own, sizes, threads, row, at)
    }

    fn place_of(&self, own: &mut Builder, sizes: &Sizes, from: &Coordinates, chain: &[&Hop]) -> ValueId {
        self.within.place_of(own, sizes, from, chain)
    }

    fn distance(&self, own: &mut Builder, sizes: &Sizes, hop: &Hop, from: &Origin) -> ValueId {
        self.within.distance(own, sizes, hop, from)
    }

    fn layout(&self, request: &LayoutRequest) -> Layout {
        let within = self.within.layout(&LayoutRequest { smallest: ALIGNMENT, ..*request });
        let mut sizes = within.sizes;
        sizes[0] = reserved(request.levels, request.smallest);
        // Fields without levels are one plane, which is made of whole blocks.
        let places = within.places.next_multiple_of(BLOCK);
        Layout { strides: self.strides(), sizes, places, ..within }
    }

    fn arrangement(&self, known: Option<(Grid, &Layout)>, place: &str) -> Vec<String> {
        let is_in_rows = !self.has_tables();
        match known {
            None if is_in_rows => {
                vec![
                    "Level 0 of cell (i, j) lies at (i + j * row) * column; column is at least as long as the highest field."
                        .into(),
                ]
            }
            None => {
                let mut lines = self.within.arrangement(None, place);
                lines.push(
                    "Level 0 of a cell lies at its number * column; column is at least as long as the highest field."
                        .into(),
                );
                lines
            }
            Some((grid, layout)) if is_in_rows => {
                let (column, row) = (layout.sizes[0], layout.sizes[1]);
                vec![format!("Grid {grid}: level 0 of cell (i, j) lies at (i + j * {row}) * {column}.")]
            }
            Some((grid, layout)) => {
                let at = if grid.form == Form::Rows { "i, j" } else { "cell" };
                vec![format!("Grid {grid}: level 0 of column ({at}) lies at {place}({at}) * {}.", layout.sizes[0])]
            }
        }
    }

    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        self.within.bounds()
    }

    fn columns_along(&self, levels: LevelsPerThread) -> &'static [Along] {
        const SECOND: Along = Along { blocks: Along::X.blocks, threads: Along::Y.threads };
        const THIRD: Along = Along { blocks: Along::Y.blocks, threads: Along::Z.threads };
        const BOTH: Along = Along { blocks: Along::X.blocks, threads: &[Along::Y.threads[0], Along::Z.threads[0]] };
        match (levels, self.bounds().len()) {
            // Threads have no levels beside each other.
            (LevelsPerThread::All, _) => self.within.columns_along(levels),
            (_, 1) => &[BOTH],
            _ => &[SECOND, THIRD],
        }
    }

    fn levels_along(&self, levels: LevelsPerThread) -> Along {
        match levels {
            LevelsPerThread::All => self.within.levels_along(levels),
            LevelsPerThread::One | LevelsPerThread::Slice(_) => {
                Along { blocks: Along::Z.blocks, threads: Along::X.threads }
            }
        }
    }

    fn columns(&self, region: &Region, layout: &Layout) -> Vec<Range<usize>> {
        self.within.columns(region, layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Topology;

    #[test]
    fn columns_are_aligned_or_lie_within_what_is_moved_at_once() {
        assert_eq!([1, 3, 10, 16, 17, 64, 90].map(|levels| reserved(levels, 8)), [1, 4, 16, 16, 32, 64, 96]);
        assert_eq!([1, 3, 64, 90].map(|levels| reserved(levels, 4)), [1, 4, 64, 96]);
    }

    #[test]
    fn no_two_cells_share_an_element() {
        let (grid, region) = (Grid::rows(7, 5, 3), Region::rows(1..6, 1..4, 0..3));
        for storage in STORAGES {
            let storage = Fastest::Levels.of(*storage);
            let topology = Topology::Rows { ni: grid.ni, nj: grid.nj };
            let layout = storage.layout(&LayoutRequest { levels: 4, ..LayoutRequest::new(topology, &region) });
            let mut seen = vec![false; layout.elements(4)];
            for (i, j) in (0..grid.nj).flat_map(|j| (0..grid.ni).map(move |i| (i, j))) {
                let place = layout.place(grid, i, j);
                assert_eq!(layout.index(place, 1), layout.index(place, 0) + 1);
                for k in 0..4 {
                    let element = layout.index(place, k);
                    assert!(!std::mem::replace(&mut seen[element], true), "{} {i} {j} {k}", storage.name());
                }
            }
        }
    }
}
