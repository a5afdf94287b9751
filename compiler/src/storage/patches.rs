//! Patches: boxes of columns whose neighbours stand as in rows, found in a grid of any neighbours.
//!
//! A column is **even** if all paths of a stencil that add up to the same offset lead from it to the same column. A box of even columns
//! whose paths agree with each other is a **patch**: what its columns read is what a tile of a grid in rows reads, each column of it
//! once. Columns that belong to no patch are **lone**, and are reached by the paths themselves. So nothing is assumed of a grid, and
//! nothing but its neighbours is asked; where columns are decides the order of the work alone.

use super::{Layout, LayoutRequest, Placement};
use crate::grid::adjacency::DIRECTIONS;
use crate::grid::{Adjacency, Topology};
use crate::ir::{Offset, Path, Step};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The table of patches, and what it means.
pub const TABLE: (&str, &str) = (
    "patches",
    "the places of the columns of each patch, its own first; of a lone column the first is -1 less its place",
);

/// Entries behind the last row, which a warp that looks ahead loads, and nobody uses.
pub const BEHIND: usize = 32;

/// What patches are found for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// Columns of a patch along i and j.
    pub columns: [u32; 2],
    /// The columns in the row of a patch, from its first one: its own ones come first.
    pub footprint: Vec<Offset>,
    /// The columns in the row of a lone column: itself first.
    pub lone: Vec<Path>,
    /// All paths by which values of a column are found.
    pub paths: Vec<Path>,
}

impl Wanted {
    /// Entries of a row: its quarters are aligned.
    pub fn width(&self) -> usize {
        self.footprint.len().max(self.lone.len()).next_multiple_of(4)
    }
}

/// A patch, or a lone column.
struct Row {
    /// Where it is, along i and j.
    centre: [f64; 2],
    /// The columns that it computes.
    own: Vec<u32>,
    /// The columns that are read or written, by their numbers in the user's order.
    columns: Vec<u32>,
    is_lone: bool,
}

/// No column.
const NONE: u32 = u32::MAX;

/// The layout of a grid with a table of patches in place of its own.
pub fn laid_out(layout: Layout, request: &LayoutRequest, wanted: &Wanted) -> Layout {
    let mut rows = rows(request, wanted);
    let lone = rows.iter().filter(|row| row.is_lone).count();
    let count = rows.len();
    bisect(&mut rows);
    let super::Columns::Places(places) = &layout.columns else { return layout };
    let width = wanted.width();
    let mut table = vec![0; count * width + BEHIND];
    for (row, entries) in rows.iter().zip(table.chunks_exact_mut(width)) {
        let all = row.columns.iter().map(|&column| places[column as usize] as i32);
        entries.iter_mut().zip(all).for_each(|(entry, place)| *entry = place);
        if row.is_lone {
            entries[0] = -1 - entries[0];
        }
    }
    let placement = Placement::Patches { rows: count, lone };
    Layout { placement, tables: vec![table], ..layout }
}

/// What a column belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The patch of this number.
    Patch(u32),
    /// No patch: it is computed by itself.
    Lone,
    /// It is not computed.
    Outside,
}

/// What each column belongs to, by its number in the user's order, where a layout has a table of patches.
pub fn members(layout: &Layout, wanted: &Wanted) -> Option<Vec<Member>> {
    let (Placement::Patches { rows, .. }, super::Columns::Places(places)) = (&layout.placement, &layout.columns) else {
        return None;
    };
    let mut of_places = vec![Member::Outside; layout.places];
    let count = wanted.columns.iter().product::<u32>() as usize;
    for (number, row) in (0..).zip(layout.tables.first()?.chunks_exact(wanted.width()).take(*rows)) {
        match row[0] {
            lone @ ..0 => of_places[(-1 - lone) as usize] = Member::Lone,
            _ => row[..count].iter().for_each(|&place| of_places[place as usize] = Member::Patch(number)),
        }
    }
    Some(places.iter().map(|&place| of_places[place as usize]).collect())
}

/// Every patch, and every lone column.
fn rows(request: &LayoutRequest, wanted: &Wanted) -> Vec<Row> {
    let graph = Graph::new(request);
    let ends = Ends::new(&graph, wanted);
    let parts = Parts::new(&graph, &ends.is_even);
    let positions = graph.positions();
    let mut boxes = Boxes::new(&graph, &ends, wanted);
    let centre = |own: &[u32]| {
        let mean = |along: &[f64]| own.iter().map(|&column| along[column as usize]).sum::<f64>() / own.len() as f64;
        [mean(&positions[0]), mean(&positions[1])]
    };
    let best = parts.best(&boxes);
    let mut rows = Vec::new();
    // Where boxes stand as most of them can, and then wherever there is room.
    for aligned in [true, false] {
        for &column in &graph.computed {
            let is_best = || best.get(&parts.number[column as usize]) == Some(&parts.alignment(column, wanted.columns));
            if ends.is_even[column as usize]
                && (!aligned || is_best())
                && let Some([own, columns]) = boxes.at(column)
            {
                own.iter().for_each(|&column| boxes.is_covered[column as usize] = true);
                rows.push(Row { centre: centre(&own), own, columns, is_lone: false });
            }
        }
    }
    for &column in &graph.computed {
        if !boxes.is_covered[column as usize] {
            let columns = (0..ends.lone).map(|path| ends.at(path, column)).collect();
            rows.push(Row { centre: centre(&[column]), own: vec![column], columns, is_lone: true });
        }
    }
    rows
}

/// The columns of a grid and their neighbours.
struct Graph<'a> {
    topology: Topology<'a>,
    count: usize,
    /// Of each direction the neighbour of each column.
    neighbours: [Vec<u32>; 4],
    /// The columns that are computed.
    computed: Vec<u32>,
}

impl<'a> Graph<'a> {
    fn new(request: &LayoutRequest<'a>) -> Self {
        let (topology, count) = (request.topology, request.topology.columns());
        let neighbours = DIRECTIONS.map(|(_, step)| {
            let mut path = Path::default();
            path.walk(step);
            let to = |column| topology.walk(column, &path).map_or(NONE, |column| column as u32);
            (0..count).map(to).collect()
        });
        Self { topology, count, neighbours, computed: super::tables::inner_columns(request) }
    }

    fn step(&self, column: u32, step: Step) -> u32 {
        match DIRECTIONS.iter().position(|(_, own)| *own == step) {
            Some(direction) if column != NONE => self.neighbours[direction][column as usize],
            _ => NONE,
        }
    }

    fn positions(&self) -> [Vec<f64>; 2] {
        match self.topology {
            Topology::Adjacent(adjacency) => Adjacency::positions(adjacency),
            Topology::Rows { ni, .. } => {
                let along =
                    |at: fn(usize, usize) -> usize| (0..self.count).map(|column| at(column, ni) as f64).collect();
                [along(|column, ni| column % ni), along(|column, ni| column / ni)]
            }
        }
    }
}

/// Where paths lead.
struct Ends {
    /// Of each path the column that it leads to, from each that is computed, by the number of that.
    of_paths: Vec<Vec<u32>>,
    /// The number of each column among those that are computed.
    rank: Vec<u32>,
    /// How many of the paths, from the first on, lead to the columns of a lone column's row.
    lone: usize,
    /// One path for each offset.
    offsets: Vec<(Offset, usize)>,
    /// Whether paths with the same offset lead from a column to the same.
    is_even: Vec<bool>,
}

impl Ends {
    fn new(graph: &Graph, wanted: &Wanted) -> Self {
        // Paths share their beginnings, each of which is walked once.
        let mut walked: HashMap<Vec<Step>, Vec<u32>> = HashMap::from([(Vec::new(), graph.computed.clone())]);
        let mut ends = |path: &Path| {
            let steps: Vec<Step> = path.units().collect();
            for length in 1..=steps.len() {
                if !walked.contains_key(&steps[..length]) {
                    let from = &walked[&steps[..length - 1]];
                    let to = from.iter().map(|&column| graph.step(column, steps[length - 1])).collect();
                    walked.insert(steps[..length].to_vec(), to);
                }
            }
            walked[&steps].clone()
        };
        let mut paths: Vec<&Path> = wanted.lone.iter().collect();
        paths.extend(wanted.paths.iter().filter(|path| !wanted.lone.contains(path)));
        let of_paths: Vec<Vec<u32>> = paths.iter().map(|path| ends(path)).collect();
        let mut by_offset: BTreeMap<Offset, Vec<usize>> = BTreeMap::new();
        for (number, path) in paths.iter().enumerate() {
            by_offset.entry(path.offset().horizontal()).or_default().push(number);
        }
        let mut is_even = vec![false; graph.count];
        for (rank, &column) in graph.computed.iter().enumerate() {
            let agree = |all: &Vec<usize>| all.iter().all(|&path| of_paths[path][rank] == of_paths[all[0]][rank]);
            is_even[column as usize] = by_offset.values().all(agree);
        }
        let mut rank = vec![NONE; graph.count];
        graph.computed.iter().enumerate().for_each(|(own, &column)| rank[column as usize] = own as u32);
        let offsets = by_offset.into_iter().map(|(offset, paths)| (offset, paths[0])).collect();
        Self { of_paths, rank, lone: wanted.lone.len(), offsets, is_even }
    }

    /// The end of a path from a column that is computed.
    fn at(&self, path: usize, column: u32) -> u32 {
        self.of_paths[path][self.rank[column as usize] as usize]
    }
}

/// Even columns that hang together, with coordinates: they say where boxes had best stand, and no more.
struct Parts {
    /// The part of each column.
    number: Vec<u32>,
    coordinates: Vec<[i32; 2]>,
}

impl Parts {
    fn new(graph: &Graph, is_even: &[bool]) -> Self {
        let mut own = Self { number: vec![NONE; graph.count], coordinates: vec![[0; 2]; graph.count] };
        let mut parts = 0;
        for &first in &graph.computed {
            if !is_even[first as usize] || own.number[first as usize] != NONE {
                continue;
            }
            own.number[first as usize] = parts;
            let mut waiting = VecDeque::from([first]);
            while let Some(column) = waiting.pop_front() {
                let [i, j] = own.coordinates[column as usize];
                for (number, by) in [[-1, 0], [1, 0], [0, -1], [0, 1]].into_iter().enumerate() {
                    let next = graph.neighbours[number][column as usize];
                    if next != NONE && is_even[next as usize] && own.number[next as usize] == NONE {
                        own.number[next as usize] = parts;
                        own.coordinates[next as usize] = [i + by[0], j + by[1]];
                        waiting.push_back(next);
                    }
                }
            }
            parts += 1;
        }
        own
    }

    /// Where a column stands in a box, if boxes follow each other from the first column of its part.
    fn alignment(&self, column: u32, columns: [u32; 2]) -> [u32; 2] {
        let at = self.coordinates[column as usize];
        [0, 1].map(|axis| at[axis].rem_euclid(columns[axis] as i32) as u32)
    }

    /// Of each part the alignment with which it has the most boxes.
    fn best(&self, boxes: &Boxes) -> HashMap<u32, [u32; 2]> {
        let mut counts: HashMap<u32, BTreeMap<[u32; 2], usize>> = HashMap::new();
        for &column in &boxes.graph.computed {
            if boxes.at(column).is_some() {
                let alignment = self.alignment(column, boxes.wanted.columns);
                *counts.entry(self.number[column as usize]).or_default().entry(alignment).or_default() += 1;
            }
        }
        let most = |all: BTreeMap<[u32; 2], usize>| {
            // Of several that are as good the first.
            let best = all.into_iter().rev().max_by_key(|(_, count)| *count);
            best.map(|(alignment, _)| alignment).unwrap_or_default()
        };
        counts.into_iter().map(|(part, all)| (part, most(all))).collect()
    }
}

/// Boxes of even columns.
struct Boxes<'a> {
    graph: &'a Graph<'a>,
    ends: &'a Ends,
    wanted: &'a Wanted,
    /// How many offsets from a box's first column there are.
    offsets: usize,
    /// Of each column of a box the number of its own offset, and with each of [`Ends::offsets`] added.
    slots: Vec<(usize, Vec<usize>)>,
    /// Those of the columns in its row.
    footprint: Vec<usize>,
    /// Columns that a patch has already.
    is_covered: Vec<bool>,
}

impl<'a> Boxes<'a> {
    fn new(graph: &'a Graph<'a>, ends: &'a Ends, wanted: &'a Wanted) -> Self {
        let mut numbers: BTreeMap<Offset, usize> = BTreeMap::new();
        let mut number = |offset: Offset| {
            let next = numbers.len();
            *numbers.entry(offset).or_insert(next)
        };
        let [i, j] = wanted.columns.map(|count| count as i32);
        let places = (0..j).flat_map(|j| (0..i).map(move |i| Offset { i, j, k: 0 }));
        let of_place =
            |at: Offset| (number(at), ends.offsets.iter().map(|&(offset, _)| number(at.plus(offset))).collect());
        let slots: Vec<_> = places.map(of_place).collect();
        let footprint = wanted.footprint.iter().map(|&offset| number(offset)).collect();
        Self { graph, ends, wanted, offsets: numbers.len(), slots, footprint, is_covered: vec![false; graph.count] }
    }

    /// The columns of the patch whose first is this one, and those in its row; nothing if there is no such patch.
    fn at(&self, first: u32) -> Option<[Vec<u32>; 2]> {
        let [right, down] = [DIRECTIONS[1].1, DIRECTIONS[3].1];
        let [count, rows] = self.wanted.columns;
        let mut own = Vec::with_capacity(self.slots.len());
        let mut row = first;
        for _ in 0..rows {
            let mut column = row;
            for _ in 0..count {
                let is_free = column != NONE && self.ends.is_even[column as usize] && !self.is_covered[column as usize];
                if !is_free || own.contains(&column) {
                    return None;
                }
                own.push(column);
                column = self.graph.step(column, right);
            }
            row = self.graph.step(row, down);
        }
        // All columns of a box have to find the same columns at the same offsets.
        let mut known = vec![NONE; self.offsets];
        own.iter().zip(&self.slots).for_each(|(&column, (slot, _))| known[*slot] = column);
        for (&column, (_, slots)) in own.iter().zip(&self.slots) {
            for (&(_, path), &slot) in self.ends.offsets.iter().zip(slots) {
                let end = self.ends.at(path, column);
                if known[slot] != NONE && known[slot] != end {
                    return None;
                }
                known[slot] = end;
            }
        }
        let columns: Vec<u32> = self.footprint.iter().map(|&slot| known[slot]).collect();
        (!columns.contains(&NONE)).then_some([own, columns])
    }
}

/// The most rows that a block of threads computes at once, as far as anybody would give it so many.
const GROUP: usize = 64;

/// Sorts rows so that those that follow each other are compact: so many from a multiple of as many on, and groups of these.
fn bisect(rows: &mut [Row]) {
    if rows.len() <= 1 {
        return;
    }
    let extent = |axis: usize| {
        let along = rows.iter().map(|row| row.centre[axis]);
        along.clone().fold(f64::NEG_INFINITY, f64::max) - along.fold(f64::INFINITY, f64::min)
    };
    let axis = usize::from(extent(0) <= extent(1));
    let middle = match rows.len() {
        few @ ..=GROUP => few.next_power_of_two() / 2,
        many => many.div_ceil(GROUP) / 2 * GROUP,
    };
    let key = |row: &Row| (row.centre[axis], row.centre[1 - axis], row.own[0]);
    rows.select_nth_unstable_by(middle, |a, b| {
        let (a, b) = (key(a), key(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
    });
    let (before, after) = rows.split_at_mut(middle);
    bisect(before);
    bisect(after);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Region;
    use crate::storage::fastest::Fastest;
    use crate::storage::{Columns, Storage, find};

    /// All paths of up to two steps, and what a patch of so many columns, each of which has them, reads.
    fn wanted(columns: [u32; 2]) -> Wanted {
        let steps = DIRECTIONS.map(|(_, step)| {
            let mut path = Path::default();
            path.walk(step);
            path
        });
        let mut paths = vec![Path::default()];
        paths.extend(steps.iter().cloned());
        paths.extend(steps.iter().flat_map(|first| steps.iter().map(|second| first.then(second))));
        let [i, j] = columns.map(|count| count as i32);
        let mut footprint: Vec<Offset> = (0..j).flat_map(|j| (0..i).map(move |i| Offset { i, j, k: 0 })).collect();
        for own in footprint.clone() {
            for offset in paths.iter().map(|path| own.plus(path.offset())) {
                if !footprint.contains(&offset) {
                    footprint.push(offset);
                }
            }
        }
        Wanted { columns, footprint, lone: paths.clone(), paths }
    }

    /// Every column is computed once, and every path from it leads to the column in its row. Returns how many rows there are, and how
    /// many of them are lone.
    fn checked(topology: Topology, region: &Region, columns: [u32; 2]) -> [usize; 2] {
        let wanted = wanted(columns);
        let request = LayoutRequest { patches: Some(&wanted), ..LayoutRequest::new(topology, region) };
        let storage: &dyn Storage = Fastest::Levels.of(find("uncompressed").unwrap());
        let layout = request.layout(storage);
        let Placement::Patches { rows, lone } = layout.placement else { panic!("patches were asked for") };
        let Columns::Places(places) = &layout.columns else { panic!("columns stand in any order") };
        let mut column_of = vec![usize::MAX; layout.places];
        places.iter().enumerate().for_each(|(column, &place)| column_of[place as usize] = column);
        let end = |column: usize, path: &Path| topology.walk(column, path).map(|end| places[end] as i32);
        let (mut seen, mut alone) = (vec![0; topology.columns()], 0);
        for row in layout.tables[0].chunks_exact(wanted.width()).take(rows) {
            if row[0] < 0 {
                let own = column_of[(-1 - row[0]) as usize];
                (seen[own], alone) = (seen[own] + 1, alone + 1);
                let others = row[1..].iter().zip(&wanted.lone[1..]);
                others.for_each(|(&entry, path)| assert_eq!(Some(entry), end(own, path)));
                continue;
            }
            let entries: HashMap<Offset, i32> = wanted.footprint.iter().copied().zip(row.iter().copied()).collect();
            for place in &wanted.footprint[..(columns[0] * columns[1]) as usize] {
                let own = column_of[entries[place] as usize];
                seen[own] += 1;
                for path in &wanted.paths {
                    assert_eq!(Some(entries[&place.plus(path.offset())]), end(own, path), "{path} of column {own}");
                }
            }
        }
        let computed = crate::storage::tables::inner_columns(&request);
        (0..topology.columns()).for_each(|own| assert_eq!(seen[own], usize::from(computed.contains(&(own as u32)))));
        assert_eq!(alone, lone);
        let members = members(&layout, &wanted).expect("there is a table of patches");
        let is_outside = |own: usize| members[own] == Member::Outside;
        (0..topology.columns()).for_each(|own| assert_eq!(is_outside(own), seen[own] == 0));
        assert_eq!(members.iter().filter(|own| **own == Member::Lone).count(), lone);
        for number in (0..rows as u32).map(Member::Patch) {
            let own = members.iter().filter(|own| **own == number).count();
            assert!(own == 0 || own == (columns[0] * columns[1]) as usize, "{own} columns of {number:?}");
        }
        [rows, lone]
    }

    #[test]
    fn columns_in_rows_are_all_in_patches_but_for_odd_ends() {
        let rows = Topology::Rows { ni: 17, nj: 13 };
        assert_eq!(checked(rows, &Region::rows(2..14, 2..10, 0..1), [2, 2]), [24, 0]);
        assert_eq!(checked(rows, &Region::rows(2..15, 2..11, 0..1), [2, 2]), [24 + 13 + 8, 13 + 8]);
        assert_eq!(checked(rows, &Region::rows(2..15, 2..11, 0..1), [4, 1]), [3 * 9 + 9, 9]);
        assert_eq!(checked(rows, &Region::rows(2..15, 2..11, 0..1), [1, 1]), [13 * 9, 0]);
    }

    /// A torus in rows, some of whose neighbours are others, or its cells themselves.
    #[test]
    fn whatever_the_neighbours_paths_lead_where_they_lead() {
        let mut state = 7u64;
        let mut draw = |range: std::ops::Range<usize>| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            range.start + (state >> 33) as usize % range.len()
        };
        let (mut patches, mut all) = (0, 0);
        for twisted in [0, 1, 3, 20, 400] {
            let (ni, nj) = (draw(3..20), draw(3..16));
            let count = ni * nj;
            let at = |i: usize, j: usize| ((j % nj) * ni + i % ni) as i32;
            let mut neighbours = [(ni - 1, 0), (1, 0), (0, nj - 1), (0, 1)]
                .map(|(di, dj)| (0..count).map(|own| at(own % ni + di, own / ni + dj)).collect::<Vec<i32>>());
            for _ in 0..twisted {
                let (direction, column, other) = (draw(0..4), draw(0..count), draw(0..count));
                neighbours[direction][column] = other as i32;
            }
            let adjacency = Adjacency::new("twisted", neighbours, None).unwrap();
            let region = Region { cells: None, ..Region::rows(0..count, 0..1, 0..1) };
            for columns in [[1, 1], [2, 2], [4, 2], [1, 4]] {
                let [rows, lone] = checked(Topology::Adjacent(&adjacency), &region, columns);
                (patches, all) = (patches + rows - lone, all + rows);
            }
        }
        assert!(patches > 100 && all > patches + 100, "{patches} of {all}");
    }

    #[test]
    fn groups_are_compact() {
        let wanted = wanted([2, 2]);
        let region = Region::rows(2..66, 2..66, 0..1);
        let topology = Topology::Rows { ni: 68, nj: 68 };
        let request = LayoutRequest { patches: Some(&wanted), ..LayoutRequest::new(topology, &region) };
        let mut all = rows(&request, &wanted);
        bisect(&mut all);
        for group in all.chunks(4) {
            for axis in [0, 1] {
                let along = || group.iter().map(|row| row.centre[axis]);
                let extent = along().fold(0.0, f64::max) - along().fold(f64::MAX, f64::min);
                assert_eq!(extent, 2.0, "four patches are a square");
            }
        }
    }
}
