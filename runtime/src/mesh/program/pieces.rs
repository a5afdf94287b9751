//! The pieces of a mesh that blocks of threads work on: tiles of targets, and blocks of elements.

use super::tables::Leading;
use crate::Result;
use crate::mesh::blocks::Blocks;
use crate::mesh::lists;
use crate::mesh::slots::Slot;
use crate::mesh::tiles::Tiles;
use crate::mesh::{HOLE, Mesh};
use std::ops::Range;
use stencilc_compiler::mesh::{Cut, Largest, NOWHERE, PieceTable};

/// Those who lead somewhere along the paths of a group, in pieces.
pub enum Pieces {
    /// Targets, and the elements that lead to them.
    Tiles(Tiles),
    /// Elements, and the targets that they lead to.
    Blocks(Blocks),
}

impl Pieces {
    /// Cuts as `cut` says. `users` are the user's numbers of the elements. Where an ordering has `parts` of the set that is cut, each
    /// is cut by itself.
    ///
    /// # Errors
    /// A piece has too many elements or targets for numbers of 16 bits.
    pub fn new(leading: &Leading, cut: Cut, users: &[u32], parts: Option<&[u32]>) -> Result<Self> {
        let slots = Slot::all(&leading.mesh, 0);
        let [from, to] = [0, 1].map(|set| leading.mesh.sets[set].size);
        Ok(match cut {
            Cut::Tiles { targets, is_sparse: false } => {
                let starts = starts(to, targets, parts);
                Self::Tiles(Tiles::new(&leading.mesh, &slots, &[], lists::Cut::At(&starts), Some(users))?)
            }
            Cut::Tiles { targets, is_sparse: true } => {
                let mesh = sparse(&leading.mesh, &leading.led_to());
                let starts = starts(mesh.sets[1].size, targets, None);
                Self::Tiles(Tiles::new(&mesh, &slots, &[], lists::Cut::At(&starts), Some(users))?)
            }
            Cut::Blocks { elements } => {
                let starts = starts(from, elements, parts);
                Self::Blocks(Blocks::new(&leading.mesh, &slots, &[], lists::Cut::At(&starts))?)
            }
        })
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
    pub fn table(&self, table: PieceTable, in_rows: bool) -> Vec<i32> {
        let signed = |numbers: &[u32]| numbers.iter().map(|&number| number as i32).collect();
        match (self, table) {
            (Self::Tiles(tiles), PieceTable::Ranges) => {
                let ends = tiles.starts.windows(2).zip(tiles.offsets.windows(2));
                ends.flat_map(|(targets, elements)| signed(&[targets, elements].concat()) as Vec<i32>).collect()
            }
            (Self::Tiles(tiles), PieceTable::Elements) => signed(&tiles.elements),
            (Self::Tiles(tiles), PieceTable::Entries) => entries(tiles, in_rows),
            (Self::Blocks(blocks), PieceTable::Ranges) => {
                let lists = &blocks.lists[0];
                let of = |&block: &u32| {
                    let block = block as usize;
                    signed(&[&blocks.starts[block..block + 2], &lists.offsets[block..block + 2]].concat()) as Vec<i32>
                };
                blocks.blocks.elements.iter().flat_map(of).collect()
            }
            (Self::Blocks(blocks), PieceTable::Elements) => signed(&blocks.elements),
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
    let (inverse, width) = (&tiles.inverse, tiles.inverse.degrees().max);
    let mut rows = vec![HOLE; inverse.targets() * width];
    for (row, ends) in rows.chunks_mut(width.max(1)).zip(inverse.offsets.windows(2)) {
        let own = &tiles.local[ends[0] as usize..ends[1] as usize];
        row.iter_mut().zip(own).for_each(|(to, &local)| *to = i32::from(local));
    }
    rows
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
fn sparse(mesh: &Mesh, led_to: &[i32]) -> Mesh {
    let mut sparse = mesh.clone();
    let mut rank = vec![HOLE; mesh.sets[1].size];
    for (number, &target) in (0..).zip(led_to) {
        rank[target as usize] = number;
    }
    sparse.sets[1].size = led_to.len();
    for target in sparse.maps[0].table.iter_mut().filter(|target| **target != HOLE) {
        *target = rank[*target as usize];
    }
    sparse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_into_pieces_of_about_one_size() {
        assert_eq!(starts(10, 4, None), [0, 4, 8, 10]);
        assert_eq!(starts(10, 4, Some(&[0, 5, 5, 9, 10])), [0, 3, 5, 9, 10]);
        assert_eq!(starts(0, 4, None), [0]);
        assert_eq!(starts(0, 4, Some(&[0, 0])), [0]);
    }
}
