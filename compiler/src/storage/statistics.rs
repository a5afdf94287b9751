//! Statistics of tables of neighbours: how much compression gains, and how near neighbours are.
//!
//! After A. Roesti, "Efficient GPU Implementation of Stencils on Unstructured Grids" (ETH Zurich, 2020), section 6.4.2.

use super::tables::{Patterns, Plane, WARP};
use super::{ALIGNMENT, LayoutRequest};
use std::collections::BTreeMap;

/// What the tables of one plane hold. Whatever is counted in cells is counted in columns: tables are the same on each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Cells of the plane, halo included.
    pub cells: usize,
    /// Cells that are computed.
    pub inner: usize,
    /// Neighbours of a cell that the tables hold.
    pub relations: usize,
    /// How many cells share each pattern, halo included; the most common first. A neighbour that does not exist has the
    /// offset 0.
    pub counts: Vec<usize>,
    /// How many patterns the computed cells alone have.
    pub inner_patterns: usize,
    /// Bytes that the tables take.
    pub bytes: Bytes,
    /// How near the neighbours of computed cells are.
    pub nearness: Nearness,
}

/// Bytes of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// An offset a place and relation.
    pub uncompressed: usize,
    /// Compressed: a pattern a place.
    pub pattern: usize,
    /// Compressed: an offset a pattern and relation. Patterns that only halo cells have are left out where no look-up starts
    /// at these.
    pub table: usize,
}

/// How near the neighbours of computed cells are in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearness {
    /// The median distance from a cell to a neighbour, in cells.
    pub distance: u32,
    /// How many lines of 128 bytes the 32 cells of a warp reach for one neighbour each, on average, in the field of the
    /// smallest elements.
    pub lines: f64,
}

impl Statistics {
    /// The statistics of the tables for a grid, a stencil's relations and an order.
    pub fn new(request: &LayoutRequest) -> Self {
        let plane = Plane::new(request);
        let all = Patterns::new(&plane, request, false);
        // Computed cells with each pattern: the others belong to the halo alone.
        let mut inner_counts: BTreeMap<i32, usize> = BTreeMap::new();
        for &pattern in &all.of_place[plane.lead..] {
            *inner_counts.entry(pattern).or_default() += 1;
        }
        let kept = if request.inner_only { inner_counts.len() } else { all.offsets.len() };
        let relations = request.relations.len();
        let entry = size_of::<i32>();
        let mut counts = all.counts.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            cells: plane.order.len(),
            inner: plane.inner.len(),
            relations,
            counts,
            inner_patterns: inner_counts.len(),
            bytes: Bytes {
                uncompressed: relations * plane.end() * entry,
                pattern: plane.end() * entry,
                table: relations * kept * entry,
            },
            nearness: Nearness {
                distance: distance(&inner_counts, &all),
                lines: lines(&all.of_place[plane.lead..], &all, relations, ALIGNMENT / request.smallest),
            },
        }
    }

    /// Entries of the uncompressed tables: a relation and cell each.
    pub fn entries(&self) -> usize {
        self.relations * self.cells
    }

    /// Entries of the compressed table, relations times patterns, to those of the uncompressed one, relations times cells.
    pub fn ratio(&self) -> f64 {
        fraction(self.counts.len(), self.cells)
    }

    /// The share of cells that have the most common pattern.
    pub fn most_common(&self) -> f64 {
        fraction(self.counts.first().copied().unwrap_or(0), self.cells)
    }
}

impl Bytes {
    /// What the compressed tables take together.
    pub fn compressed(&self) -> usize {
        self.pattern + self.table
    }
}

fn fraction(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The median distance to a neighbour, given how many cells have each pattern.
fn distance(counts: &BTreeMap<i32, usize>, patterns: &Patterns) -> u32 {
    let mut distances: BTreeMap<u32, usize> = BTreeMap::new();
    for (&pattern, &cells) in counts {
        for offset in &patterns.offsets[pattern as usize] {
            *distances.entry(offset.unsigned_abs()).or_default() += cells;
        }
    }
    let half = distances.values().sum::<usize>().div_ceil(2);
    let mut nearer = 0;
    let median = distances.into_iter().find(|&(_, neighbours)| {
        nearer += neighbours;
        nearer >= half
    });
    median.map_or(0, |(distance, _)| distance)
}

/// The mean number of lines, of `line` elements each, in which one neighbour of each cell of a warp lies. `of_place` are the
/// patterns of computed cells, the first of which is at the begin of a line.
fn lines(of_place: &[i32], patterns: &Patterns, relations: usize, line: usize) -> f64 {
    let (mut sum, mut reads) = (0, 0);
    let mut reached = Vec::with_capacity(WARP);
    for (warp, own) in of_place.chunks(WARP).enumerate() {
        for relation in 0..relations {
            reached.clear();
            reached.extend(own.iter().enumerate().map(|(thread, &pattern)| {
                let place = (warp * WARP + thread) as i64;
                (place + i64::from(patterns.offsets[pattern as usize][relation])).div_euclid(line as i64)
            }));
            reached.sort_unstable();
            reached.dedup();
            sum += reached.len();
            reads += 1;
        }
    }
    fraction(sum, reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Region, Topology};
    use crate::ir::{Offset, Path};
    use crate::storage::neighbors::{NEIGHBORS, Neighbors};
    use crate::storage::{Storage, compressed::Compressed, order, uncompressed::Uncompressed};

    /// The statistics of a grid with a halo of two, for a stencil that reads at `offsets`.
    fn statistics(n: usize, offsets: &[(i32, i32)], neighbors: Neighbors, layout: &str, run_width: u32) -> Statistics {
        let paths: Vec<_> = offsets.iter().map(|&(i, j)| Path::from_offset(Offset { i, j, k: 0 })).collect();
        let relations = neighbors.relations(&paths);
        let region = Region::rows(2..n - 2, 2..n - 2, 0..1);
        let request = LayoutRequest {
            relations: &relations,
            inner_only: neighbors == Neighbors::Direct,
            order: order::find(layout).unwrap(),
            run_width,
            ..LayoutRequest::new(Topology::Rows { ni: n, nj: n }, &region)
        };
        let found = Statistics::new(&request);
        let bytes = |storage: &dyn Storage| storage.layout(&request).tables.iter().map(|table| 4 * table.len()).sum();
        assert_eq!((found.bytes.uncompressed, found.bytes.compressed()), (bytes(&Uncompressed), bytes(&Compressed)));
        assert_eq!(found.counts.iter().sum::<usize>(), n * n);
        found
    }

    const NEAR: [(i32, i32); 12] =
        [(-2, 0), (-1, -1), (-1, 0), (-1, 1), (0, -2), (0, -1), (0, 1), (0, 2), (1, -1), (1, 0), (1, 1), (2, 0)];

    #[test]
    fn table_6_7_of_the_thesis() {
        let row = |neighbors, layout, width| {
            let found = statistics(512, &NEAR, neighbors, layout, width);
            let percent = (1000.0 * found.most_common()).round() / 10.0;
            (found.entries(), found.counts.len(), found.inner_patterns, percent)
        };
        let [direct, chasing] = NEIGHBORS;
        assert_eq!(row(chasing, "row-major", 32), (1_048_576, 2054, 1019, 97.7));
        assert_eq!(row(direct, "row-major", 32), (3_145_728, 4093, 2037, 96.9));
        let (_, patterns, _, percent) = row(chasing, "z-curve", 16);
        assert_eq!((patterns, percent), (2435, 20.3));
        let (_, patterns, _, percent) = row(direct, "z-curve", 16);
        assert_eq!((patterns, percent), (5299, 8.1));
    }

    #[test]
    fn nearness_of_rows_by_hand() {
        // 64 cells in a row of the inner part: two cells to the right of a warp's are in 3 lines of 16, its row below in 2.
        let right = statistics(68, &[(2, 0)], Neighbors::Direct, "row-major", 32).nearness;
        assert_eq!(right.lines, 3.0);
        let below = statistics(68, &[(0, 1)], Neighbors::Direct, "row-major", 32).nearness;
        // Those below the last row stand in the halo, whose beginning is not aligned.
        assert!((2.0..2.05).contains(&below.lines), "{below:?}");
        let near = statistics(132, &NEAR, Neighbors::Direct, "row-major", 32).nearness;
        let random = statistics(132, &NEAR, Neighbors::Direct, "random", 32).nearness;
        // Four of the twelve are in the cell's own row, six in the next ones, 128 cells apart, give or take one.
        assert_eq!(near.distance, 128);
        assert!(random.distance > 10 * near.distance && random.lines > 30.0, "{near:?} {random:?}");
    }
}
