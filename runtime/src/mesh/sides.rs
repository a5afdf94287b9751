//! What cells have in common: edges of a plane mesh, faces of one in space.
//!
//! A side that two cells have is an element of one set, and leads to both; one that a single cell has is an element of
//! another, the boundary. The side's nodes are those of the first cell, and say where it looks: out of that cell, and
//! towards the second. In space this is by the right-hand rule. In the plane it is by d = (first node) - (second node) and
//! the normal (d.y, -d.x), as in OP2's airfoil.

use super::check::plural;
use super::{HOLE, Mesh};
use crate::error::{Error, Result};
use rayon::prelude::*;

/// The most nodes of a side.
const MOST_NODES: usize = 4;

/// The shape of a cell, its nodes in the order of VTK and Gmsh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// Three nodes or more, counter-clockwise.
    Polygon(usize),
    Tetrahedron,
    Pyramid,
    Prism,
    Hexahedron,
}

impl Shape {
    /// The shape of a cell of so many nodes, in the plane or in space.
    pub(crate) fn of(nodes: usize, is_solid: bool) -> Option<Self> {
        match (is_solid, nodes) {
            (false, 3..) => Some(Shape::Polygon(nodes)),
            (true, 4) => Some(Shape::Tetrahedron),
            (true, 5) => Some(Shape::Pyramid),
            (true, 6) => Some(Shape::Prism),
            (true, 8) => Some(Shape::Hexahedron),
            (_, _) => None,
        }
    }

    /// The nodes of its sides, which look out of it. Of a polygon they stand as those of an edge do.
    pub(crate) fn sides(self) -> Vec<Vec<usize>> {
        let list = |sides: &[&[usize]]| sides.iter().map(|side| side.to_vec()).collect();
        match self {
            Shape::Polygon(nodes) => (0..nodes).map(|side| vec![(side + 1) % nodes, side]).collect(),
            Shape::Tetrahedron => list(&[&[0, 2, 1], &[0, 1, 3], &[1, 2, 3], &[0, 3, 2]]),
            Shape::Pyramid => list(&[&[0, 3, 2, 1], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]]),
            Shape::Prism => list(&[&[0, 2, 1], &[3, 4, 5], &[0, 1, 4, 3], &[1, 2, 5, 4], &[2, 0, 3, 5]]),
            Shape::Hexahedron => {
                list(&[&[0, 4, 7, 3], &[1, 2, 6, 5], &[0, 1, 5, 4], &[3, 7, 6, 2], &[0, 3, 2, 1], &[4, 5, 6, 7]])
            }
        }
    }
}

/// A side of a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    /// Its nodes in the order of their numbers, with holes in front.
    key: [i32; MOST_NODES],
    cell: u32,
    slot: u32,
}

/// Adds the sides of cells to a mesh, which has a map from cells to their nodes: a set of those that two cells have, called
/// `inner`, with maps `nodes` and `cells`; a set of those that one has, `b` and `inner`, with maps `nodes` and `cell`; and
/// a map from cells to inner sides, `inner` and `s`, -1 on the border. Sides are numbered by their first cells.
///
/// # Errors
/// A cell is of no known shape, or more than two cells have a side.
pub(super) fn add_sides(mesh: &mut Mesh, cell_nodes: usize, inner: &str, is_solid: bool) -> Result<()> {
    let map = &mesh.maps[cell_nodes];
    let (cell, node, cells) = (map.from, map.to, mesh.sets[map.from].size);
    let shapes = (0..=map.arity).map(|nodes| Shape::of(nodes, is_solid).map(Shape::sides)).collect::<Vec<_>>();
    let count = |cell: usize| map.row(cell).iter().take_while(|&&node| node != HOLE).count();
    let sides_of = |cell: usize| shapes[count(cell)].as_deref().unwrap_or_default();
    if let Some(number) = (0..cells).find(|&cell| shapes[count(cell)].is_none()) {
        let (what, count) = (&mesh.sets[cell].name, count(number));
        return Err(Error::input(format!("{what} {number} has {count} nodes: that is no known shape")));
    }
    let of_cell = |cell: usize| {
        let row = map.row(cell);
        sides_of(cell).iter().enumerate().map(move |(slot, side)| {
            let mut key = [HOLE; MOST_NODES];
            side.iter().zip(&mut key).for_each(|(&node, place)| *place = row[node]);
            key.sort_unstable();
            Side { key, cell: cell as u32, slot: slot as u32 }
        })
    };
    let mut sides: Vec<Side> = (0..cells).into_par_iter().flat_map_iter(of_cell).collect();
    sides.par_sort_unstable();
    // Neighbours in this order are one side; the first of them is of the first cell.
    let mut pairs = Vec::new();
    let mut border = Vec::new();
    for same in sides.chunk_by(|a, b| a.key == b.key) {
        match *same {
            [one] => border.push(one),
            [one, other] => pairs.push((one, other)),
            [one, other, third, ..] => {
                let nodes: Vec<String> =
                    one.key.iter().filter(|&&node| node != HOLE).map(ToString::to_string).collect();
                let what = plural(&mesh.sets[cell].name);
                return Err(Error::input(format!(
                    "{what} {}, {} and {} have the {inner} between nodes {} in common: two at most can",
                    one.cell,
                    other.cell,
                    third.cell,
                    nodes.join(", ")
                ))
                .help(format!("are {what} in the file twice?")));
            }
            [] => {}
        }
    }
    drop(sides);
    pairs.par_sort_unstable_by_key(|(one, _)| (one.cell, one.slot));
    border.par_sort_unstable_by_key(|one| (one.cell, one.slot));

    let slots = shapes.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let widest = shapes.iter().flatten().flatten().map(Vec::len).max().unwrap_or(0);
    let nodes = |side: &Side| {
        let row = map.row(side.cell as usize);
        let own = sides_of(side.cell as usize)[side.slot as usize].iter().map(|&node| row[node]);
        own.chain(std::iter::repeat(HOLE)).take(widest).collect::<Vec<i32>>()
    };
    let inner_nodes = pairs.iter().flat_map(|(one, _)| nodes(one)).collect();
    let inner_cells = pairs.iter().flat_map(|(one, other)| [one.cell as i32, other.cell as i32]).collect();
    let border_nodes = border.iter().flat_map(nodes).collect();
    let border_cell = border.iter().map(|one| one.cell as i32).collect();
    let mut own = vec![HOLE; cells * slots];
    for (number, (one, other)) in pairs.iter().enumerate() {
        for side in [one, other] {
            own[side.cell as usize * slots + side.slot as usize] = number as i32;
        }
    }
    let side = mesh.add_set(inner, pairs.len());
    let outer = mesh.add_set(&format!("b{inner}"), border.len());
    mesh.add_map(side, "nodes", node, widest, inner_nodes);
    mesh.add_map(side, "cells", cell, 2, inner_cells);
    mesh.add_map(outer, "nodes", node, widest, border_nodes);
    mesh.add_map(outer, "cell", cell, 1, border_cell);
    mesh.add_map(cell, &format!("{inner}s"), side, slots, own);
    Ok(())
}
