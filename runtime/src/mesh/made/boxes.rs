//! Rectangles and boxes whose cells stand in rows, as if they were none.

use super::check_size;
use crate::array::{Data, Element};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::mesh::sides::add_sides;
use crate::random;
use rayon::prelude::*;

/// By how much nodes may be moved: further, and cells could turn over.
const FURTHEST: f64 = 0.25;

/// Nodes that are moved at random, save those on the border.
#[derive(Clone, Copy, Debug, Default)]
pub struct Perturbed {
    /// By how much at most along each axis, in lengths of a cell.
    pub by: f64,
    /// Of the random numbers.
    pub seed: u64,
}

/// A rectangle of `ni` by `nj` squares of equal size, 1 wide, each cut into two triangles. The cuts take turns, so that no direction is
/// preferred.
///
/// Sets: `node`, `cell`, `edge` (between two cells), `bedge` (on the border). Maps: `cell.nodes` (counter-clockwise),
/// `cell.edges` (edge k is between nodes k and k + 1; -1 on the border), `edge.nodes`, `edge.cells`, `bedge.nodes`, `bedge.cell`.
/// Fields: `x`; `bound` on `bedge`, 1 to 4 on the left, right, lower and upper side; `orientation` on `cell.edges`, 1 where the edge's
/// normal points out of the cell and -1 where it points into it, 0 on the border.
///
/// # Errors
/// There are no cells, or too many for this machine; nodes are moved too far.
pub fn triangles(ni: usize, nj: usize, perturbed: Perturbed) -> Result<Mesh> {
    let nodes = check(&[ni, nj], perturbed, 3, 250)?;
    let mut mesh = Mesh { origin: format!("triangles {ni}x{nj}"), ..Mesh::default() };
    let node = mesh.add_set("node", nodes);
    let cell = mesh.add_set("cell", 2 * ni * nj);
    let at = |i: usize, j: usize| (j * (ni + 1) + i) as i32;
    let of_square = |square: usize| {
        let (i, j) = (square % ni, square / ni);
        let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
        if (i + j) % 2 == 0 { [a, b, c, a, c, d] } else { [a, b, d, b, c, d] }
    };
    let table = (0..ni * nj).into_par_iter().flat_map_iter(of_square).collect();
    let cell_nodes = mesh.add_map(cell, "nodes", node, 3, table);
    mesh.add_field("x", node, 2, places([ni, nj], perturbed));
    add_sides(&mut mesh, cell_nodes, "edge", false)?;
    finish(&mut mesh, [ni, nj], "edge")
}

/// A box of `ni` by `nj` by `nk` cubes of equal size, 1 wide.
///
/// Sets: `node`, `cell`, `face` (between two cells), `bface` (on the border). Maps: `cell.nodes` (in the order of VTK), `cell.faces`
/// (left, right, front, back, below, above: x, y and z fall and grow; -1 on the border), `face.nodes`, `face.cells`, `bface.nodes`, `bface.cell`.
/// Fields: `x`; `bound` on `bface`, 1 to 6 in the order of `cell.faces`; `orientation` on `cell.faces`, as in [`triangles`].
///
/// # Errors
/// As [`triangles`].
pub fn hexahedra(ni: usize, nj: usize, nk: usize, perturbed: Perturbed) -> Result<Mesh> {
    let nodes = check(&[ni, nj, nk], perturbed, 3, 300)?;
    let mut mesh = Mesh { origin: format!("hexahedra {ni}x{nj}x{nk}"), ..Mesh::default() };
    let node = mesh.add_set("node", nodes);
    let cell = mesh.add_set("cell", ni * nj * nk);
    let at = |i: usize, j: usize, k: usize| ((k * (nj + 1) + j) * (ni + 1) + i) as i32;
    let of_cube = |cube: usize| {
        let (i, j, k) = (cube % ni, cube / ni % nj, cube / ni / nj);
        let ring = |k: usize| [at(i, j, k), at(i + 1, j, k), at(i + 1, j + 1, k), at(i, j + 1, k)];
        ring(k).into_iter().chain(ring(k + 1))
    };
    let table = (0..ni * nj * nk).into_par_iter().flat_map_iter(of_cube).collect();
    let cell_nodes = mesh.add_map(cell, "nodes", node, 8, table);
    mesh.add_field("x", node, 3, places([ni, nj, nk], perturbed));
    add_sides(&mut mesh, cell_nodes, "face", true)?;
    finish(&mut mesh, [ni, nj, nk], "face")
}

/// How many nodes there are, if the mesh can be made. There are at most `most` elements of a set for each of them.
fn check(size: &[usize], Perturbed { by, .. }: Perturbed, most: usize, bytes: usize) -> Result<usize> {
    let shown: Vec<String> = size.iter().map(usize::to_string).collect();
    if size.contains(&0) {
        return Err(Error::call(format!("there is no mesh of {} cells", shown.join("x")))
            .help("give 1 or more along each axis"));
    }
    if !(0.0..FURTHEST).contains(&by) {
        return Err(Error::call(format!("nodes cannot be moved by {by} lengths of a cell"))
            .help(format!("from 0 to less than {FURTHEST} is possible; further, and cells could turn over")));
    }
    let nodes = size.iter().try_fold(1_usize, |all, &cells| all.checked_mul(cells.checked_add(1)?));
    check_size(nodes.and_then(|nodes| nodes.checked_mul(most)), bytes / most, "give a smaller --size")?;
    Ok(nodes.unwrap_or_default())
}

/// Where nodes are.
fn places<const N: usize>(size: [usize; N], Perturbed { by, seed }: Perturbed) -> Data {
    let length = 1.0 / size[0] as f64;
    let count: usize = size.iter().map(|cells| cells + 1).product();
    let moved = match by {
        0.0 => Data::F64(Vec::new()),
        by => random::fill(Element::F64, N * count, -by, by, seed, "x"),
    };
    let place = |number: usize| {
        let at = index(number, size.map(|cells| cells + 1));
        let is_inside = at.iter().zip(size).all(|(&at, cells)| at > 0 && at < cells);
        let axes = at.into_iter().enumerate();
        axes.map(move |(axis, at)| (at, is_inside.then_some(N * number + axis)))
    };
    let real = |(at, own): (usize, Option<usize>)| {
        let by = own.filter(|_| !moved.is_empty()).map_or(0.0, |own| moved.get(own));
        (at as f64 + by) * length
    };
    Data::F64((0..count).into_par_iter().flat_map_iter(|number| place(number).map(real)).collect())
}

/// The coordinates of an element in rows, the first axis the fastest.
fn index<const N: usize>(mut number: usize, size: [usize; N]) -> [usize; N] {
    size.map(|length| {
        let at = number % length;
        number /= length;
        at
    })
}

/// Adds what is known of sides: where they look, and which part of the border they are.
fn finish<const N: usize>(mesh: &mut Mesh, size: [usize; N], side: &str) -> Result<Mesh> {
    let set = |name: &str| mesh.set_named(name).ok_or_else(|| Error::check(format!("the mesh has no set `{name}`")));
    let (inner, outer, cell) = (set(side)?, set(&format!("b{side}"))?, set("cell")?);
    let map = |set: usize, name: &str| {
        mesh.map_named(set, name).ok_or_else(|| Error::check(format!("the mesh has no map `{name}`")))
    };
    let (cells, own) = (map(inner, "cells")?, map(cell, &format!("{side}s"))?);
    let (first, slots) = (&mesh.maps[cells], &mesh.maps[own]);
    let looks = |(at, &side): (usize, &i32)| match usize::try_from(side) {
        Err(_) => 0,
        Ok(side) if first.row(side)[0] as usize == at / slots.arity => 1,
        Ok(_) => -1,
    };
    let orientation = slots.table.iter().enumerate().map(looks).collect();

    let nodes = &mesh.maps[map(outer, "nodes")?];
    let bound = |side: usize| {
        // All nodes of a side on the border have one coordinate in common, which is the least or the greatest.
        let at = |&node: &i32| index(node as usize, size.map(|cells| cells + 1));
        let row: Vec<[usize; N]> = nodes.row(side).iter().map(at).collect();
        let all = |axis: usize, end: usize| row.iter().all(|at| at[axis] == end);
        let found = (0..2 * N).find(|which| all(which / 2, if which % 2 == 0 { 0 } else { size[which / 2] }));
        found.map_or(0, |which| which as i32 + 1)
    };
    let bounds = (0..mesh.sets[outer].size).map(bound).collect();
    mesh.add_field("bound", outer, 1, Data::I32(bounds));
    mesh.add_slot_field("orientation", own, Data::I32(orientation));
    Ok(std::mem::take(mesh))
}
