//! What of a mesh can be drawn: elements with corners at known places.

use super::check::plural;
use super::{Field, HOLE, Map, Mesh};
use crate::error::{Error, Result};
use stencilc_compiler::diagnostic::guess;

/// What sets of corners are usually called, and the maps to them.
const CORNERS: &[&str] = &["node", "nodes", "vertex", "vertices", "point", "points", "corner", "corners"];

/// What sets of cells are usually called.
const CELLS: &[&str] = &["cell", "cells", "element", "elements"];

/// A cell whose corners are further from a plane, in parts of its size, is a solid.
const FLAT: f64 = 0.2;

/// How many cells are looked at to know of what shape they are.
const SAMPLE: usize = 1000;

/// Elements with corners.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    /// From them to their corners.
    pub map: &'a Map,
    /// Where the corners are.
    pub x: &'a Field,
    /// Whether they are bodies in space, and no polygons.
    pub is_solid: bool,
}

impl<'a> Cells<'a> {
    /// The elements that a map leads from, `cell.nodes`; if none is named, those whose names and maps say best that they are
    /// cells: of several maps to sets with positions the one from `cell` to `node`, and else the first with the most slots.
    ///
    /// # Errors
    /// There is no such map, or none leads to a set whose positions are known.
    pub fn find(mesh: &'a Mesh, named: Option<&str>) -> Result<Self> {
        let all: Vec<&Map> = mesh.maps.iter().filter(|map| mesh.position_of(map.to).is_some()).collect();
        let map = match named {
            Some(name) => all.iter().copied().find(|map| mesh.full_name(map) == name).ok_or_else(|| {
                let names: Vec<String> = all.iter().map(|map| mesh.full_name(map)).collect();
                let error = Error::call(format!("`{name}` is no map to elements whose positions are known"));
                match guess(name, names.iter().map(String::as_str)) {
                    Some(guess) => error.help(format!("is it `{guess}`?")),
                    None if names.is_empty() => error.help(POSITIONS),
                    None => error.help(format!("there is {}", names.join(", "))),
                }
            })?,
            None => {
                let is = |names: &[&str], name: &str| names.contains(&name);
                let rank = |map: &Map| {
                    let corners = is(CORNERS, &mesh.sets[map.to].name) || is(CORNERS, &map.name);
                    let shape = map.arity >= 3;
                    (shape, is(CELLS, &mesh.sets[map.from].name), corners, if shape { 0 } else { map.arity })
                };
                // Of equal ones the first.
                let best = all.iter().copied().rev().max_by_key(|map| rank(map));
                best.ok_or_else(|| {
                    Error::input("no map leads to elements whose positions are known".to_owned()).help(POSITIONS)
                })?
            }
        };
        let x = mesh.position_of(map.to).ok_or_else(|| Error::input("its positions are not known").help(POSITIONS))?;
        let mut cells = Self { map, x, is_solid: false };
        cells.is_solid = cells.looks_solid(mesh);
        Ok(cells)
    }

    /// The elements of a set; or, if their own positions are known, the cells whose corners they are, which is said.
    ///
    /// # Errors
    /// No map leads from them to elements whose positions are known.
    pub fn of(mesh: &'a Mesh, set: usize) -> Result<(Self, bool)> {
        let main = Self::find(mesh, None)?;
        if main.map.to == set {
            return Ok((main, true));
        }
        let map = map_to_corners(mesh, set, |to| to == main.map.to);
        let map = map.or_else(|| map_to_corners(mesh, set, |to| mesh.position_of(to).is_some())).ok_or_else(|| {
            let (own, corners) = (plural(&mesh.sets[set].name), plural(&mesh.sets[main.map.to].name));
            Error::call(format!(
                "{own} cannot be drawn: no map leads from them to {corners}, whose positions are known"
            ))
        })?;
        let x = mesh.position_of(map.to).unwrap_or(main.x);
        let mut cells = Self { map, x, is_solid: false };
        cells.is_solid = cells.looks_solid(mesh);
        Ok((cells, false))
    }

    /// The corners of an element.
    pub fn corners(&self, element: usize) -> &'a [i32] {
        let row = self.map.row(element);
        &row[..row.iter().take_while(|&&corner| corner != HOLE).count()]
    }

    /// Where a corner is; the third part is 0 in the plane.
    pub fn place(&self, corner: i32) -> [f64; 3] {
        let at = corner as usize * self.x.parts;
        std::array::from_fn(|part| if part < self.x.parts { self.x.data.get(at + part) } else { 0.0 })
    }

    /// Whether most cells are far from being flat.
    fn looks_solid(&self, mesh: &Mesh) -> bool {
        if self.x.parts < 3 || self.map.arity < 4 {
            return false;
        }
        let size = mesh.sets[self.map.from].size;
        let cells = (0..size).step_by(size / SAMPLE + 1).map(|cell| self.corners(cell));
        let (solid, all) = cells.filter(|corners| corners.len() > 3).fold((0, 0), |(solid, all), corners| {
            let places: Vec<[f64; 3]> = corners.iter().map(|&corner| self.place(corner)).collect();
            (solid + usize::from(unevenness(&places) > FLAT), all + 1)
        });
        2 * solid > all
    }
}

const POSITIONS: &str =
    "positions are a field `x` with 2 or 3 numbers for each element: `numpy.savez(..., **{'x on node': x})`";

/// The map from the elements of a set to their corners, elements of one of some sets: the one whose name says so, which a
/// map to the ends of an edge does and one to the four vertices around it does not; else the one with the most slots.
pub fn map_to_corners(mesh: &Mesh, set: usize, is_corners: impl Fn(usize) -> bool) -> Option<&Map> {
    let maps = mesh.maps.iter().filter(|map| map.from == set && is_corners(map.to));
    maps.max_by_key(|map| (CORNERS.contains(&map.name.as_str()), map.arity))
}

/// How far the furthest corner is from the plane through their middle that a polygon of these corners lies in best, in
/// parts of how far it is from that middle.
fn unevenness(places: &[[f64; 3]]) -> f64 {
    let count = places.len() as f64;
    let middle: [f64; 3] = std::array::from_fn(|axis| places.iter().map(|place| place[axis]).sum::<f64>() / count);
    let from: Vec<[f64; 3]> =
        places.iter().map(|place| std::array::from_fn(|axis| place[axis] - middle[axis])).collect();
    let normal = newell(&from);
    let length = |v: [f64; 3]| v.iter().map(|part| part * part).sum::<f64>().sqrt();
    let along = |v: &[f64; 3]| (0..3).map(|axis| v[axis] * normal[axis]).sum::<f64>().abs();
    let size = from.iter().map(|&v| length(v)).fold(0.0, f64::max);
    from.iter().map(along).fold(0.0, f64::max) / (size * length(normal)).max(f64::MIN_POSITIVE)
}

/// The normal of a polygon by M. E. Newell's sum over its sides, twice as long as its area (I. E. Sutherland et al., "A
/// characterization of ten hidden-surface algorithms", ACM Computing Surveys 6 (1974), page 14).
pub(super) fn newell(places: &[[f64; 3]]) -> [f64; 3] {
    let mut normal = [0.0; 3];
    for (at, a) in places.iter().enumerate() {
        let b = &places[(at + 1) % places.len()];
        for (axis, part) in normal.iter_mut().enumerate() {
            let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
            *part += (a[next] - b[next]) * (a[last] + b[last]);
        }
    }
    normal
}

impl Mesh {
    /// The field that says where the elements of a set are.
    pub fn position_of(&self, set: usize) -> Option<&Field> {
        self.fields.iter().find(|field| field.set == set && self.is_position(field))
    }
}
