//! What storages with tables share: cells of a plane in any order, halo cells first.

use super::{Columns, Coordinates, Layout, LayoutRequest, Placement, Row, Sizes, Stride, Strides, Threads, padded};
use crate::grid::{Form, Grid, Region, Topology};
use crate::ir::Relation;
use crate::kernel::build::{Builder, Computing, Term};
use crate::kernel::{Type, ValueId};
use std::collections::HashMap;
use std::ops::Range;

/// Cells to which the first inner one, and planes, are aligned: a warp, or a block of an array of structs of arrays.
pub const WARP: usize = 32;

/// A thread for each inner cell of the plane: how these go along cells is given.
pub fn coordinates(own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Coordinates {
    let [cell_first, cell_end] = sizes.bounds[0];
    let thread = threads.along[0].number(own, threads.block);
    let number =
        own.name(if threads.placement == Placement::Listed { "rank" } else { "cell" }, cell_first.plus(thread));
    let (cell, outside, first) = match &threads.placement {
        Placement::Aligned => (number, number.is(Relation::Ge, cell_end), cell_first.into()),
        // Warps begin at an aligned cell, which others may compute.
        Placement::From(first) => {
            (number, number.less(*first).or(number.is(Relation::Ge, cell_end)), Term::from(*first))
        }
        Placement::Listed => {
            // The list stands after the storage's own tables.
            let list = sizes.tables[sizes.tables.len() - 1];
            let cell = own.name("cell", number.less(cell_end).picks(list.at(number), -1));
            (cell, cell.less(0), cell_first.into())
        }
        // Who computes patches finds its columns by itself.
        Placement::Patches { .. } => (number, number.is(Relation::Ge, cell_end), cell_first.into()),
    };
    let (outside, first) = (own.term(outside), own.term(number.is(Relation::Eq, first)));
    Coordinates { axes: vec![cell], outside, column: own.convert(cell, sizes.index), first }
}

/// A share of the inner cells of the plane.
pub fn row(own: &mut Builder, sizes: &Sizes, threads: &Threads) -> Row {
    let [cell_first, cell_end] = sizes.bounds[0];
    let (name, first) = match threads.placement {
        Placement::From(first) => ("cell", own.literal(first as i64, Type::I32)),
        Placement::Listed => ("rank", cell_first),
        Placement::Aligned | Placement::Patches { .. } => ("cell", cell_first),
    };
    let range = threads.along[0].share(own, threads.block, [first, cell_end], name);
    Row { name, range, others: Vec::new(), outside: None }
}

/// One of them, by its number.
pub fn column_of_row(own: &mut Builder, sizes: &Sizes, threads: &Threads, at: ValueId) -> Coordinates {
    let cell = match threads.placement {
        Placement::Listed => own.name("cell", sizes.tables[sizes.tables.len() - 1].at(at)),
        Placement::Aligned | Placement::From(_) | Placement::Patches { .. } => at,
    };
    let first = match threads.placement {
        Placement::From(first) => own.literal(first as i64, Type::I32),
        Placement::Aligned | Placement::Listed | Placement::Patches { .. } => sizes.bounds[0][0],
    };
    let (outside, first) = (own.truth(false), own.term(at.is(Relation::Eq, first)));
    Coordinates { axes: vec![cell], outside, column: own.convert(cell, sizes.index), first }
}

/// Where cells are: as a function tells, or in the order that every kernel relies on.
pub fn arrangement(known: Option<(Grid, &Layout)>, place: &str) -> Vec<String> {
    let Some((grid, layout)) = known else {
        return vec![
            "Halo cells stand first, then the cells that are computed.".into(),
            "Steps along i and j commute, as on grids in rows.".into(),
        ];
    };
    let (column, at) = match grid.form {
        Form::Rows => ("column (i, j)", "i, j"),
        Form::Cells => ("column `cell`", "cell"),
    };
    vec![format!("Grid {grid}: {column} lies at {place}({at}); plane is {}.", layout.places)]
}

/// One range: of places, or of the list of them.
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]
pub fn columns(region: &Region, layout: &Layout) -> Vec<Range<usize>> {
    let count = region.columns();
    vec![match layout.placement {
        Placement::Aligned => layout.lead..layout.lead + count,
        Placement::From(first) => first / WARP * WARP..first + count,
        Placement::Listed => 0..count,
        Placement::Patches { rows, .. } => 0..rows,
    }]
}

/// Places of columns, and of each place its column.
pub struct Plane {
    /// Of each column, in the user's order, its place.
    pub places: Vec<u32>,
    /// The columns, in the order of their places.
    pub order: Vec<u32>,
    /// The place of the first in `order`.
    pub first: usize,
    /// Numbers in `order` of the columns that are computed, in ascending order.
    pub inner: Vec<usize>,
    /// The place that is aligned: the first inner one, or the first of the innermost ring.
    pub lead: usize,
}

impl Plane {
    /// Halo columns in the user's order, then the inner ones in the order that is chosen. Where stencils share the layout,
    /// rings of columns from the outside in.
    pub fn new(request: &LayoutRequest) -> Self {
        let count = request.topology.columns();
        let inner = inner_columns(request);
        let (rings, innermost) = match request.sharing {
            Some(sharing) => sharing.rings(count),
            None => {
                let mut rings = vec![0; count];
                inner.iter().for_each(|&column| rings[column as usize] = 1);
                (rings, 1)
            }
        };
        let ring = |column: u32| rings[column as usize];
        let mut order: Vec<u32> = (0..count as u32).collect();
        let [along_i, along_j] = coordinates_of(request, |column| ring(column) == innermost);
        let coordinates = |column: u32| (along_i[column as usize], along_j[column as usize]);
        let run = request.run_width.max(1).ilog2();
        let mut runs: HashMap<(u32, u32, u32), u32> = HashMap::new();
        if request.short_last {
            for &column in &order {
                let (i, j) = coordinates(column);
                *runs.entry((ring(column), i >> run, j)).or_default() += 1;
            }
        }
        order.sort_by_cached_key(|&column| {
            let ring = ring(column);
            if ring == 0 {
                return (ring, false, (0, column));
            }
            let (i, j) = coordinates(column);
            let is_short = request.short_last && runs[&(ring, i >> run, j)] < 1 << run;
            (ring, is_short, request.order.key(column, i, j, run))
        });
        let outside = order.partition_point(|&column| ring(column) < innermost);
        let first = (WARP - outside % WARP) % WARP;
        let mut places = vec![0; count];
        for (at, &column) in order.iter().enumerate() {
            places[column as usize] = (first + at) as u32;
        }
        let mut inner: Vec<usize> = inner.iter().map(|&column| places[column as usize] as usize - first).collect();
        inner.sort_unstable();
        Self { places, order, first, inner, lead: first + outside }
    }

    /// One past the last place that holds a column.
    pub fn end(&self) -> usize {
        self.first + self.order.len()
    }

    /// Numbers in `order` of the columns where look-ups start: the inner ones alone, or any.
    pub fn looked_up(&self, inner_only: bool) -> Vec<usize> {
        if inner_only { self.inner.clone() } else { (0..self.order.len()).collect() }
    }

    /// The distance from a column to the end of each relation's path; 0 where there is no such column.
    pub fn distances(&self, request: &LayoutRequest, at: usize) -> impl Iterator<Item = i32> {
        let column = self.order[at] as usize;
        let place = (self.first + at) as i64;
        request.relations.iter().map(move |path| {
            let end = request.topology.walk(column, path);
            end.map_or(0, |end| (i64::from(self.places[end]) - place) as i32)
        })
    }

    /// How the inner columns stand.
    fn standing(&self) -> Placement {
        let first = self.inner.first().copied().unwrap_or_default();
        let end = self.inner.last().map_or(0, |last| last + 1);
        match end - first == self.inner.len() {
            true if self.first + first == self.lead => Placement::Aligned,
            true => Placement::From(self.first + first),
            false => Placement::Listed,
        }
    }

    /// The layout in planes, given the length of a relation in the tables, and these.
    pub fn layout(self, smallest: usize, length: usize, mut tables: Vec<Vec<i32>>) -> Layout {
        let placement = self.standing();
        if placement == Placement::Listed {
            tables.push(self.inner.iter().map(|at| (self.first + at) as i32).collect());
        }
        let plane = padded(self.end().next_multiple_of(WARP), smallest);
        Layout {
            places: plane,
            strides: Strides { place: Stride::One, level: Stride::Size(0) },
            lead: self.lead,
            placement,
            columns: Columns::Places(self.places),
            sizes: vec![plane, length],
            tables,
        }
    }
}

/// The columns that are computed, by their numbers in the user's order.
pub(super) fn inner_columns(request: &LayoutRequest) -> Vec<u32> {
    match (&request.region.cells, request.topology) {
        (Some(cells), _) => cells.to_vec(),
        (None, Topology::Rows { ni, .. }) => {
            let Region { i, j, .. } = request.region;
            j.clone().flat_map(|j| i.clone().map(move |i| (j * ni + i) as u32)).collect()
        }
        (None, Topology::Adjacent(_)) => (0..request.topology.columns() as u32).collect(),
    }
}

/// Every column's coordinates along i and j, counted from the first innermost one along each.
fn coordinates_of(request: &LayoutRequest, is_innermost: impl Fn(u32) -> bool) -> [Vec<u32>; 2] {
    let columns = 0..request.topology.columns() as u32;
    let mut coordinates: [Vec<u32>; 2] = match request.topology {
        Topology::Rows { ni, .. } => [
            columns.clone().map(|column| column % ni as u32).collect(),
            columns.clone().map(|column| column / ni as u32).collect(),
        ],
        Topology::Adjacent(adjacency) => adjacency.positions().map(|along| grid_lines(&along)),
    };
    for along in &mut coordinates {
        let innermost = columns.clone().filter(|&column| is_innermost(column));
        let first = innermost.map(|column| along[column as usize]).min().unwrap_or_default();
        along.iter_mut().for_each(|at| *at = at.saturating_sub(first));
    }
    coordinates
}

/// Positions as whole coordinates: their numbers among all different ones.
fn grid_lines(positions: &[f64]) -> Vec<u32> {
    let mut lines = positions.to_vec();
    lines.sort_by(f64::total_cmp);
    lines.dedup();
    positions.iter().map(|at| lines.partition_point(|line| line < at) as u32).collect()
}

/// Patterns: cells whose neighbours lie at the same relative offsets share one.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// The pattern of each place; 0 where none is needed.
    pub of_place: Vec<i32>,
    /// The offsets of each pattern, by relation.
    pub offsets: Vec<Vec<i32>>,
    /// How many cells have each pattern.
    pub counts: Vec<usize>,
}

impl Patterns {
    /// The patterns of the inner columns, or of all.
    pub fn new(plane: &Plane, request: &LayoutRequest, inner_only: bool) -> Self {
        let mut patterns = Patterns { of_place: vec![0; plane.end()], ..Patterns::default() };
        let mut known: HashMap<Vec<i32>, i32> = HashMap::new();
        for at in plane.looked_up(inner_only) {
            let tuple: Vec<i32> = plane.distances(request, at).collect();
            let number = *known.entry(tuple).or_insert_with_key(|tuple| {
                patterns.offsets.push(tuple.clone());
                patterns.counts.push(0);
                patterns.offsets.len() as i32 - 1
            });
            patterns.of_place[plane.first + at] = number;
            patterns.counts[number as usize] += 1;
        }
        patterns
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ir::{Offset, Path};
    use crate::storage::neighbors::Neighbors;
    use crate::storage::{Storage, order};

    /// Every table leads every inner cell, hop by hop, to the cell at the end of each path.
    pub fn leads_to_the_neighbours(storage: &dyn Storage, entry: impl Fn(&Layout, usize, usize) -> i32) {
        let (ni, nj) = (19, 11);
        let region = Region::rows(2..16, 1..10, 0..1);
        let paths = [(-2, 0), (1, 1), (3, -1)].map(|(i, j)| Path::from_offset(Offset { i, j, k: 0 }));
        let topology = Topology::Rows { ni, nj };
        for order in order::ORDERS {
            for neighbors in crate::storage::neighbors::NEIGHBORS {
                let relations = neighbors.relations(&paths);
                let request = LayoutRequest {
                    relations: &relations,
                    inner_only: neighbors == Neighbors::Direct,
                    order: *order,
                    run_width: 4,
                    short_last: neighbors == Neighbors::Direct,
                    ..LayoutRequest::new(topology, &region)
                };
                let layout = storage.layout(&request);
                let Columns::Places(places) = &layout.columns else { panic!("cells in any order") };
                let mut sorted = places.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), ni * nj, "no two columns share a place");
                assert_eq!(layout.lead % WARP, 0);
                let (hops, last_hops) = neighbors.hops(&paths).unwrap();
                for column in region.column_numbers(crate::grid::Grid::rows(ni, nj, 1)) {
                    let own = places[column as usize] as usize;
                    assert!(own >= layout.lead, "inner cells follow the halo");
                    let mut reached: Vec<usize> = Vec::new();
                    for hop in &hops {
                        let from = hop.from.map_or(own, |hop| reached[hop]);
                        reached.push(from.strict_add_signed(entry(&layout, hop.relation, from) as isize));
                    }
                    for path in &paths {
                        let end = topology.walk(column as usize, path).unwrap();
                        assert_eq!(reached[last_hops[path]], places[end] as usize, "{} {path}", order.name());
                    }
                }
            }
        }
    }

    #[test]
    fn short_runs_can_stand_behind_the_others() {
        let (ni, nj) = (72, 5);
        let region = Region::rows(1..71, 1..4, 0..1);
        for name in ["row-major", "z-curve", "hilbert"] {
            let request = LayoutRequest {
                order: order::find(name).unwrap(),
                short_last: true,
                ..LayoutRequest::new(Topology::Rows { ni, nj }, &region)
            };
            let plane = Plane::new(&request);
            let inner = &plane.order[plane.inner[0]..];
            // Two runs of 32 a row, then 6 columns more.
            for run in inner[..2 * 3 * 32].chunks(32) {
                assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1), "{name} {run:?}");
            }
            assert!(inner[2 * 3 * 32..].iter().all(|column| column % ni as u32 > 64), "{name}");
        }
    }

    #[test]
    fn patterns_of_the_thesis() {
        // Table 6.7: 512 x 512 columns with a halo of two, patterns over all cells; direct and chasing.
        let region = Region::rows(2..510, 2..510, 0..1);
        let near = |reach: i32| {
            let all = (-reach..=reach).flat_map(move |i| (-reach..=reach).map(move |j| Offset { i, j, k: 0 }));
            let near = all.filter(move |at| (1..=reach).contains(&(at.i.abs() + at.j.abs())));
            near.map(Path::from_offset).collect::<Vec<_>>()
        };
        let patterns = |layout: &str, run_width, relations: &[Path], inner_only| {
            let order = order::find(layout).unwrap();
            let rows = LayoutRequest::new(Topology::Rows { ni: 512, nj: 512 }, &region);
            let request = LayoutRequest { relations, inner_only, order, run_width, ..rows };
            Patterns::new(&Plane::new(&request), &request, inner_only).offsets.len()
        };
        let (one, two) = (near(1), near(2));
        assert_eq!((one.len(), two.len()), (4, 12));
        let counts = |layout, width, inner| [&one, &two].map(|paths| patterns(layout, width, paths, inner));
        assert_eq!(counts("row-major", 32, false), [2054, 4093]);
        assert_eq!(counts("z-curve", 16, false), [2435, 5299]);
        assert_eq!(counts("z-curve", 32, false), [2222, 4582]);
        assert_eq!(counts("row-major", 32, true), [1019, 2037]);
    }
}
