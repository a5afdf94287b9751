//! The pieces of a mesh that blocks of threads work on: tiles of targets, and blocks of elements.

use crate::mesh::blocks::Blocks;
use crate::mesh::lists;
use crate::mesh::slots::Slot;
use crate::mesh::tiles::Tiles;
use crate::mesh::{Bound, HOLE, Mesh};
use crate::{Error, Result};
use std::ops::Range;
use stencilc_compiler::kernel::PieceTable;
use stencilc_compiler::mesh::{Cut, Largest, NOWHERE};

/// Those who lead somewhere along the paths of a group, in pieces.
pub enum Pieces {
    /// Targets, and the elements that lead to them.
    Tiles(Tiles),
    /// Elements, and the targets that they lead to.
    Blocks(Blocks),
}

impl Pieces {
    /// Cuts as `cut` says a mesh of one map, from elements to targets. `users` are the user's numbers of the elements. Where an ordering has `parts` of the set that is cut, each
    /// is cut by itself.
    ///
    /// # Errors
    /// A piece has too many elements or targets for numbers of 16 bits.
    pub fn new(mesh: &Mesh, cut: Cut, users: &[u32], parts: Option<&[u32]>) -> Result<Self> {
        let slots = Slot::all(mesh, 0);
        let [from, to] = [0, 1].map(|set| mesh.sets[set].size);
        let own = match cut {
            Cut::Tiles { targets, is_sparse: false } => {
                let starts = starts(to, targets, parts);
                Self::Tiles(Tiles::new(mesh, &slots, &[], lists::Cut::At(&starts), Some(users))?)
            }
            Cut::Tiles { targets, is_sparse: true } => {
                let mesh = sparse(mesh);
                let starts = starts(mesh.sets[1].size, targets, None);
                Self::Tiles(Tiles::new(&mesh, &slots, &[], lists::Cut::At(&starts), Some(users))?)
            }
            Cut::Blocks { elements } => {
                let starts = starts(from, elements, parts);
                Self::Blocks(Blocks::new(mesh, &slots, &[], lists::Cut::At(&starts))?)
            }
        };
        // The last number is that of a hole.
        match &own {
            Self::Tiles(_) if own.largest().elements * slots.len() > usize::from(NOWHERE) => {
                Err(Error::call("a tile has too many elements for numbers of 16 bits").help("take smaller tiles"))
            }
            Self::Tiles(_) | Self::Blocks(_) => Ok(own),
        }
    }

    /// The same, where the first element that leads anywhere has this number.
    pub fn counted_from(mut self, first: u32) -> Self {
        let elements = match &mut self {
            Self::Tiles(tiles) => &mut tiles.elements,
            Self::Blocks(blocks) => &mut blocks.elements,
        };
        elements.iter_mut().for_each(|element| *element += first);
        self
    }

    /// What the largest have.
    pub fn largest(&self) -> Largest {
        let most = |starts: &[u32]| starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
        match self {
            Self::Tiles(tiles) => Largest { elements: most(&tiles.offsets), targets: most(&tiles.starts) },
            Self::Blocks(blocks) => Largest { elements: most(&blocks.starts), targets: blocks.lists[0].longest() },
        }
    }

    /// The pieces of each launch.
    pub fn launches(&self) -> Vec<Range<usize>> {
        match self {
            Self::Tiles(tiles) => std::iter::once(0..tiles.count()).collect(),
            Self::Blocks(blocks) => {
                blocks.blocks.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).collect()
            }
        }
    }

    /// A table; of tiles' entries, in rows of equal length or one after the other.
    pub fn table(&self, table: PieceTable, bound: &Bound, in_rows: bool) -> Vec<i32> {
        let signed = |numbers: &[u32]| numbers.iter().map(|&number| number as i32).collect();
        let elements = match self {
            Self::Tiles(tiles) => &tiles.elements,
            Self::Blocks(blocks) => &blocks.elements,
        };
        match (self, table) {
            (_, PieceTable::Elements) => signed(elements),
            (_, PieceTable::Rows(map)) => {
                let (map, arity) = bound.map(map);
                let row = |&element: &u32| &map[element as usize * arity..][..arity];
                elements.iter().flat_map(row).copied().collect()
            }
            (Self::Tiles(tiles), PieceTable::Ranges) => {
                let ends = tiles.starts.windows(2).zip(tiles.offsets.windows(2));
                ends.flat_map(|(targets, elements)| signed(&[targets, elements].concat()) as Vec<i32>).collect()
            }
            (Self::Tiles(tiles), PieceTable::Entries) => entries(tiles, in_rows),
            (Self::Blocks(blocks), PieceTable::Ranges) => {
                let lists = &blocks.lists[0];
                let of = |&block: &u32| {
                    let block = block as usize;
                    signed(&[&blocks.starts[block..block + 2], &lists.offsets[block..block + 2]].concat()) as Vec<i32>
                };
                blocks.blocks.elements.iter().flat_map(of).collect()
            }
            (Self::Blocks(blocks), PieceTable::Targets) => signed(&blocks.lists[0].targets),
            (Self::Blocks(blocks), PieceTable::Places) => places(blocks),
            // Of the other kind of pieces, which no kernel asks for.
            (Self::Tiles(_), PieceTable::Targets | PieceTable::Places) | (Self::Blocks(_), PieceTable::Entries) => {
                Vec::new()
            }
        }
    }
}

/// The local entries of tiles.
fn entries(tiles: &Tiles, in_rows: bool) -> Vec<i32> {
    if !in_rows {
        return tiles.local.iter().map(|&local| i32::from(local)).collect();
    }
    // As many places as fill numbers of 32 bits.
    let (inverse, width) = (&tiles.inverse, tiles.inverse.degrees().max.next_multiple_of(2));
    let mut rows = vec![NOWHERE; inverse.targets() * width];
    for (row, ends) in rows.chunks_mut(width.max(1)).zip(inverse.offsets.windows(2)) {
        let own = &tiles.local[ends[0] as usize..ends[1] as usize];
        row[..own.len()].copy_from_slice(own);
    }
    bytemuck::pod_collect_to_vec(&rows)
}

/// Of each element its colour, and for each path its target's place; two numbers of 16 bits in one of 32.
fn places(blocks: &Blocks) -> Vec<i32> {
    const { assert!(NOWHERE == lists::NOWHERE) };
    let lists = &blocks.lists[0];
    let paths = lists.slots.len();
    let mut numbers: Vec<u16> = Vec::with_capacity(blocks.elements.len() * (paths + 1) + 1);
    for (&colour, own) in blocks.thread_colours.iter().zip(lists.local.chunks(paths)) {
        numbers.push(colour);
        numbers.extend(own);
    }
    numbers.resize(numbers.len().next_multiple_of(2), NOWHERE);
    bytemuck::pod_collect_to_vec(&numbers)
}

/// Where pieces of at most `most` begin, and at last where all end.
fn starts(size: usize, most: usize, parts: Option<&[u32]>) -> Vec<u32> {
    let most = most.max(1);
    let mut starts = Vec::new();
    match parts {
        None => starts.extend((0..size).step_by(most).map(|start| start as u32)),
        Some(parts) => {
            for ends in parts.windows(2) {
                let part = (ends[1] - ends[0]) as usize;
                // Pieces of a part are about equal.
                let each = part.div_ceil(part.div_ceil(most).max(1)).max(1);
                starts.extend((ends[0]..ends[1]).step_by(each));
            }
        }
    }
    starts.push(size as u32);
    starts
}

/// The same with those targets alone to which any element leads.
fn sparse(mesh: &Mesh) -> Mesh {
    let mut sparse = mesh.clone();
    let mut rank = vec![HOLE; mesh.sets[1].size];
    for &target in mesh.maps[0].table.iter().filter(|target| **target != HOLE) {
        rank[target as usize] = 0;
    }
    let mut led_to = 0;
    for rank in rank.iter_mut().filter(|rank| **rank != HOLE) {
        *rank = led_to;
        led_to += 1;
    }
    sparse.sets[1].size = led_to as usize;
    for target in sparse.maps[0].table.iter_mut().filter(|target| **target != HOLE) {
        *target = rank[*target as usize];
    }
    sparse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::inverse::Inverse;
    use crate::mesh::{Map, sample};
    use std::collections::HashSet;
    use stencilc_compiler::ir::Mesh as Declared;

    /// One map of every mesh at random, with numbers of the user's, and a size of pieces.
    fn each_sample(check: impl Fn(u64, &Mesh, &[u32], usize)) {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mesh = sample::random(seed);
            let map = &mesh.maps[0];
            let sets = vec![mesh.sets[map.from].clone(), mesh.sets[map.to].clone()];
            let maps = vec![Map { from: 0, to: 1, ..map.clone() }];
            let mesh = Mesh { sets, maps, ..Mesh::default() };
            let mut users: Vec<u32> = (0..mesh.sets[0].size as u32).collect();
            random.shuffle(&mut users);
            check(seed, &mesh, &users, random.usize(1..20));
        }
    }

    /// A table; no maps are asked for.
    fn table(pieces: &Pieces, table: PieceTable, in_rows: bool) -> Vec<usize> {
        let nothing = Bound::new(&Declared::default(), &Mesh::default()).unwrap();
        pieces.table(table, &nothing, in_rows).into_iter().map(|number| number as usize).collect()
    }

    /// Numbers of 16 bits, two in one of 32.
    fn halves(numbers: &[usize]) -> Vec<u16> {
        numbers.iter().flat_map(|&both| [both as u16, (both >> 16) as u16]).collect()
    }

    #[test]
    fn tiles_hold_for_each_target_who_leads_there_in_the_users_order() {
        each_sample(|seed, mesh, users, targets| {
            let slots = Slot::all(mesh, 0);
            let inverse = Inverse::new(mesh, &slots, Some(users)).unwrap();
            for is_sparse in [false, true] {
                let rows: Vec<usize> =
                    (0..inverse.targets()).filter(|&to| !is_sparse || !inverse.of(to).is_empty()).collect();
                let pieces = Pieces::new(mesh, Cut::Tiles { targets, is_sparse }, users, None).unwrap();
                let (ranges, elements) =
                    (table(&pieces, PieceTable::Ranges, true), table(&pieces, PieceTable::Elements, true));
                let in_rows = halves(&table(&pieces, PieceTable::Entries, true));
                let in_lists = table(&pieces, PieceTable::Entries, false);
                let width = inverse.degrees().max.next_multiple_of(2);
                let (mut met, mut behind, mut largest) = (0, 0, 0);
                assert!(pieces.launches().into_iter().eq(std::iter::once(0..ranges.len() / 4)), "seed {seed}");
                for range in ranges.chunks(4) {
                    let of_tile = &elements[range[2]..range[3]];
                    largest = largest.max(of_tile.len());
                    assert!(range[0] == met && range[1] - range[0] <= targets, "seed {seed}");
                    for row in range[0]..range[1] {
                        let expected = inverse.of(rows[row]);
                        let own = &in_rows[row * width..][..width];
                        assert!(own[expected.len()..].iter().all(|&entry| entry == NOWHERE), "seed {seed}");
                        let meant = |entry: usize| of_tile[entry / slots.len()] * slots.len() + entry % slots.len();
                        let found = own[..expected.len()].iter().map(|&entry| meant(entry.into()) as u32);
                        assert!(found.eq(expected.iter().copied()), "seed {seed}");
                        let found = in_lists[behind..][..expected.len()].iter().map(|&entry| meant(entry) as u32);
                        assert!(found.eq(expected.iter().copied()), "seed {seed}");
                        behind += expected.len();
                    }
                    met = range[1];
                }
                assert_eq!((met, behind), (rows.len(), inverse.entries.len()), "seed {seed}");
                assert_eq!(pieces.largest().elements, largest, "seed {seed}");
            }
        });
    }

    #[test]
    fn what_adds_at_once_in_blocks_adds_to_different_targets() {
        each_sample(|seed, mesh, users, elements| {
            let (map, arity) = (&mesh.maps[0].table, mesh.maps[0].arity);
            let pieces = Pieces::new(mesh, Cut::Blocks { elements }, users, None).unwrap();
            let [ranges, own, targets, places] =
                [PieceTable::Ranges, PieceTable::Elements, PieceTable::Targets, PieceTable::Places]
                    .map(|name| table(&pieces, name, true));
            let places = halves(&places);
            let mut met = HashSet::new();
            for launch in pieces.launches() {
                let mut of_launch = HashSet::new();
                for range in ranges[4 * launch.start..4 * launch.end].chunks(4) {
                    let list = &targets[range[2]..range[3]];
                    assert!(list.iter().all(|&target| of_launch.insert(target)), "seed {seed}");
                    assert!(range[1] > range[0] && range[1] - range[0] <= elements, "seed {seed}");
                    assert!(list.len() <= pieces.largest().targets, "seed {seed}");
                    let mut of_colour = HashSet::new();
                    let last = places[(range[1] - 1) * (arity + 1)];
                    for item in range[0]..range[1] {
                        assert!(met.insert(own[item]), "seed {seed}");
                        let (colour, places) = (places[item * (arity + 1)], &places[item * (arity + 1) + 1..][..arity]);
                        assert!(colour <= last, "seed {seed}");
                        for (&place, &to) in places.iter().zip(&map[own[item] * arity..]) {
                            let found = (place != NOWHERE).then(|| list[usize::from(place)] as i32);
                            assert_eq!(found.unwrap_or(HOLE), to, "seed {seed}");
                        }
                        let led_to: HashSet<u16> = places.iter().copied().filter(|&place| place != NOWHERE).collect();
                        assert!(led_to.into_iter().all(|place| of_colour.insert((colour, place))), "seed {seed}");
                    }
                }
            }
            assert_eq!(met.len(), mesh.sets[0].size, "seed {seed}");
        });
    }

    #[test]
    fn parts_are_cut_into_pieces_of_about_one_size() {
        assert_eq!(starts(10, 4, None), [0, 4, 8, 10]);
        assert_eq!(starts(10, 4, Some(&[0, 5, 5, 9, 10])), [0, 3, 5, 9, 10]);
        assert_eq!(starts(0, 4, None), [0]);
        assert_eq!(starts(0, 4, Some(&[0, 0])), [0]);
    }
}
