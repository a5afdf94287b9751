//! A limited area of an icosahedral grid: a piece of it, with zones that tell how far from the border an element is.

use super::icosahedral::{Division, icosahedral};
use super::sphere::{Point, arc};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::mesh::{Field, HOLE, Map, Mesh, Set, ZONE};
use std::f64::consts::PI;

/// The zones, by their numbers: at the border values come from outside, then those that are computed are nudged towards them.
const LATERAL: usize = 0;
const NUDGING: usize = 1;
const INTERIOR: usize = 2;

/// By how much of a radian a vertex may be too far away: those that are equally far are all inside, however they are rounded.
const ROUNDING: f64 = 1e-9;

/// Which piece of a sphere is made, and how its border is cut into zones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Its middle: degrees to the east and to the north.
    pub centre: [f64; 2],
    /// How far from there vertices are at most whose triangles are all there, in degrees of a great circle.
    pub within: f64,
    /// How many rows of cells at the border are lateral.
    pub lateral: usize,
    /// How many rows of cells next to those are nudged.
    pub nudging: usize,
}

/// Makes the cells around those vertices of [`icosahedral`] that are near a place, with all of their edges and vertices.
///
/// All that is there has the maps and fields that it has on the whole sphere, in the same slots; a slot that leads out of the
/// piece is a hole. Lengths, areas and directions are those of the sphere, also of a cell that is not there.
///
/// Two fields say more. `row` on `cell` counts rows of triangles from the border, the first being 1: its cells have a vertex there, and those of
/// the next row share one with it. `zone` on each set is 0 in the lateral rows, 1 in those that are nudged, and 2 inside; an edge or a vertex is
/// in the outermost zone of its cells. So cells of the zones 1 and 2 have all three neighbours, their edges two cells, and their vertices
/// all cells around them.
///
/// # Errors
/// As [`icosahedral`]; there is no such piece, it is the whole sphere, or its rows leave nothing inside.
pub fn limited(division: Division, radius: f64, piece: Piece) -> Result<Mesh> {
    piece.check()?;
    let globe = icosahedral(division, radius)?;
    let known = Known { globe: &globe };
    let cells = known.cells_near(&piece, radius)?;
    let (vertices, edges) = (known.around("vertices", &cells)?, known.around("edges", &cells)?);
    let mut mesh = restricted(&globe, |set| match set {
        "vertex" => &vertices,
        "edge" => &edges,
        _ => &cells,
    });
    add_zones(&mut mesh, &piece)?;
    mesh.origin = format!("limited {division}");
    Ok(mesh)
}

impl Piece {
    /// Refuses what is no piece of any sphere.
    fn check(&self) -> Result<()> {
        let [east, north] = self.centre;
        if !(-360.0..=360.0).contains(&east) || !(-90.0..=90.0).contains(&north) {
            return Err(Error::call(format!("there is no place {east} degrees east and {north} degrees north"))
                .help("give both in degrees, the longitude first: --centre 10,50"));
        }
        if !(self.within > 0.0 && self.within < 180.0) {
            let what = format!("an area cannot reach {} degrees from its centre", self.within);
            return Err(Error::call(what).help(
                "give more than 0 and less than 180 degrees; the whole sphere is made by `stencilc mesh make icosahedral`",
            ));
        }
        if self.lateral == 0 {
            return Err(Error::call("there has to be a lateral row: at the border cells lack neighbours")
                .help("give 1 or more: --lateral 4"));
        }
        Ok(())
    }

    /// Its middle on the unit sphere.
    fn middle(&self) -> Point {
        let [east, north] = self.centre.map(f64::to_radians);
        [north.cos() * east.cos(), north.cos() * east.sin(), north.sin()]
    }
}

/// The whole sphere, whose maps are there.
struct Known<'a> {
    globe: &'a Mesh,
}

/// The map of a set that has this name.
fn map<'a>(mesh: &'a Mesh, set: &str, name: &str) -> Result<&'a Map> {
    let found = mesh.set_named(set).and_then(|set| mesh.map_named(set, name));
    found.map(|map| &mesh.maps[map]).ok_or_else(|| Error::check(format!("the mesh has no map `{set}.{name}`")))
}

impl Known<'_> {
    /// Which cells have a vertex that is near enough.
    fn cells_near(&self, piece: &Piece, radius: f64) -> Result<Vec<bool>> {
        let corners = map(self.globe, "cell", "vertices")?;
        let places = self.globe.field_on("x", corners.to, None);
        let places = places.ok_or_else(|| Error::check("the mesh does not say where its vertices are"))?;
        let (middle, reach) = (piece.middle(), piece.within * PI / 180.0 + ROUNDING);
        let is_near = |vertex: usize| {
            let place = std::array::from_fn(|part| places.data.get(3 * vertex + part) / radius);
            arc(place, middle) <= reach
        };
        let near: Vec<bool> = (0..self.globe.sets[corners.to].size).map(is_near).collect();
        let has_one = |cell: usize| corners.row(cell).iter().any(|&vertex| near[vertex as usize]);
        let cells: Vec<bool> = (0..self.globe.sets[corners.from].size).map(has_one).collect();
        let count = cells.iter().filter(|&&own| own).count();
        let [east, north] = piece.centre;
        if count == 0 {
            let what = format!("no vertex is within {} degrees of {east},{north}", piece.within);
            return Err(Error::call(what).help("give a larger --within, or a finer --size"));
        }
        if count == cells.len() {
            let what = format!("all cells are within {} degrees of {east},{north}: there is no border", piece.within);
            return Err(Error::call(what)
                .help("give a smaller --within; the whole sphere is made by `stencilc mesh make icosahedral`"));
        }
        Ok(cells)
    }

    /// Which elements a map leads to from these cells.
    fn around(&self, name: &str, cells: &[bool]) -> Result<Vec<bool>> {
        let map = map(self.globe, "cell", name)?;
        let mut found = vec![false; self.globe.sets[map.to].size];
        for cell in (0..cells.len()).filter(|&cell| cells[cell]) {
            map.row(cell).iter().for_each(|&to| found[to as usize] = true);
        }
        Ok(found)
    }
}

/// Some elements of each set, in their order, with their maps and fields.
fn restricted<'a>(mesh: &Mesh, is_kept: impl Fn(&str) -> &'a [bool]) -> Mesh {
    let kept: Vec<Vec<usize>> = mesh
        .sets
        .iter()
        .map(|set| is_kept(&set.name).iter().enumerate().filter_map(|(old, &is)| is.then_some(old)).collect())
        .collect();
    let new: Vec<Vec<i32>> = kept
        .iter()
        .zip(&mesh.sets)
        .map(|(kept, set)| {
            let mut new = vec![HOLE; set.size];
            kept.iter().zip(0..).for_each(|(&old, number)| new[old] = number);
            new
        })
        .collect();
    let sets = mesh.sets.iter().zip(&kept).map(|(set, kept)| Set { name: set.name.clone(), size: kept.len() });
    let maps = mesh.maps.iter().map(|map| {
        let lead = |&to: &i32| if to == HOLE { HOLE } else { new[map.to][to as usize] };
        let table = kept[map.from].iter().flat_map(|&old| map.row(old).iter().map(lead)).collect();
        Map { name: map.name.clone(), table, ..*map }
    });
    let fields = mesh.fields.iter().map(|field| {
        let numbers = field.parts * field.map.map_or(1, |map| mesh.maps[map].arity);
        let all = kept[field.set].iter().flat_map(|&old| old * numbers..(old + 1) * numbers);
        Field { name: field.name.clone(), data: field.data.pick(all), ..*field }
    });
    Mesh { origin: String::new(), sets: sets.collect(), maps: maps.collect(), fields: fields.collect() }
}

/// Counts the rows of cells, and says in which zone elements are.
fn add_zones(mesh: &mut Mesh, piece: &Piece) -> Result<()> {
    let rows = rows(mesh)?;
    let deepest = rows.iter().copied().max().unwrap_or_default();
    let outside = piece.lateral.saturating_add(piece.nudging);
    if deepest <= outside {
        let (lateral, nudging) = (piece.lateral, piece.nudging);
        let what = format!(
            "{lateral} lateral and {nudging} nudging rows leave nothing inside: from the border to the middle there are {deepest}"
        );
        return Err(
            Error::call(what).help("give fewer by --lateral and --nudging, a larger --within or a finer --size")
        );
    }
    let zone = |row: usize| match row {
        row if row <= piece.lateral => LATERAL,
        row if row <= outside => NUDGING,
        _ => INTERIOR,
    };
    let of_cells: Vec<usize> = rows.iter().map(|&row| zone(row)).collect();
    let numbers = |all: &[usize]| Data::I32(all.iter().map(|&number| number as i32).collect());
    let mut zones = Vec::new();
    for name in ["vertices", "edges"] {
        let map = map(mesh, "cell", name)?;
        let mut outermost = vec![INTERIOR; mesh.sets[map.to].size];
        for (cell, &zone) in of_cells.iter().enumerate() {
            for &to in map.row(cell) {
                let own = &mut outermost[to as usize];
                *own = zone.min(*own);
            }
        }
        zones.push((map.to, numbers(&outermost)));
    }
    let cell = map(mesh, "cell", "vertices")?.from;
    zones.push((cell, numbers(&of_cells)));
    mesh.add_field("row", cell, 1, numbers(&rows));
    zones.into_iter().for_each(|(set, zone)| mesh.add_field(ZONE, set, 1, zone));
    Ok(())
}

/// In which row from the border each cell is, counted from 1.
fn rows(mesh: &Mesh) -> Result<Vec<usize>> {
    let (corners, sides, ends) =
        (map(mesh, "cell", "vertices")?, map(mesh, "edge", "cells")?, map(mesh, "edge", "vertices")?);
    let mut is_reached = vec![false; mesh.sets[corners.to].size];
    for edge in (0..mesh.sets[sides.from].size).filter(|&edge| sides.row(edge).contains(&HOLE)) {
        ends.row(edge).iter().for_each(|&vertex| is_reached[vertex as usize] = true);
    }
    let mut rows = vec![0; mesh.sets[corners.from].size];
    let mut left: Vec<usize> = (0..rows.len()).collect();
    for row in 1.. {
        let touches = |&cell: &usize| corners.row(cell).iter().any(|&vertex| is_reached[vertex as usize]);
        let (own, others): (Vec<usize>, Vec<usize>) = left.iter().partition(|cell| touches(cell));
        if own.is_empty() {
            break;
        }
        for cell in own {
            rows[cell] = row;
            corners.row(cell).iter().for_each(|&vertex| is_reached[vertex as usize] = true);
        }
        left = others;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: Piece = Piece { centre: [0.0, 90.0], within: 40.0, lateral: 2, nudging: 2 };

    fn made(piece: Piece) -> Result<Mesh> {
        limited(Division { root: 2, bisections: 2 }, 3.0, piece)
    }

    fn whole<'a>(mesh: &'a Mesh, name: &str, set: &str) -> &'a [i32] {
        match &mesh.field_on(name, mesh.set_named(set).unwrap(), None).unwrap().data {
            Data::I32(numbers) => numbers,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_go_around_and_inside_nothing_is_missing() {
        for centre in [[0.0, 90.0], [10.0, 50.0], [-170.0, -12.5]] {
            let mesh = made(Piece { centre, ..PIECE }).unwrap();
            mesh.check().unwrap();
            let zones = ["vertex", "edge", "cell"].map(|set| whole(&mesh, ZONE, set));
            for name in ["vertex.edges", "vertex.cells", "edge.cells", "edge.edges", "edge.diamond", "cell.cells"] {
                let (set, slots) = name.split_once('.').unwrap();
                let (map, zones) = (map(&mesh, set, slots).unwrap(), whole(&mesh, ZONE, set));
                assert!(map.holes() > 0, "{name} has a border");
                for element in (0..zones.len()).filter(|&element| zones[element] > 0) {
                    let holes = map.row(element).iter().filter(|&&to| to == HOLE).count();
                    // A pentagon has one on the sphere, too.
                    assert!(holes <= usize::from(set == "vertex"), "{name} of {element}");
                }
            }
            let counts = zones.map(|zones| [0, 1, 2].map(|zone| zones.iter().filter(|&&own| own == zone).count()));
            assert!(counts.iter().flatten().all(|&count| count > 0), "{counts:?}");
            // The number of vertices, less that of edges, more that of cells is 1 of what has one border and no hole in it.
            let [vertices, edges, cells] = zones.map(<[i32]>::len);
            assert_eq!(vertices + cells, edges + 1);
            let (rows, beyond) = (whole(&mesh, "row", "cell"), map(&mesh, "cell", "cells").unwrap());
            for (cell, &row) in rows.iter().enumerate() {
                assert_eq!(
                    zones[2][cell],
                    if row <= 2 {
                        0
                    } else if row <= 4 {
                        1
                    } else {
                        2
                    }
                );
                let near = beyond.row(cell).iter().filter(|&&to| to != HOLE);
                assert!(near.map(|&to| (rows[to as usize] - row).abs()).all(|apart| apart <= 1));
            }
        }
    }

    #[test]
    fn all_is_as_on_the_sphere() {
        let (globe, piece) = (icosahedral(Division { root: 2, bisections: 2 }, 3.0).unwrap(), made(PIECE).unwrap());
        let names = |mesh: &Mesh| mesh.fields.iter().map(|field| mesh.field_place(field)).collect::<Vec<_>>();
        assert_eq!(names(&piece)[..names(&globe).len()], names(&globe));
        // Cells are known by their places.
        let places = |mesh: &Mesh| {
            let x = mesh.field_on("x", mesh.set_named("cell").unwrap(), None).unwrap();
            (0..x.data.len() / 3).map(|cell| [0, 1, 2].map(|part| x.data.bits(3 * cell + part))).collect::<Vec<_>>()
        };
        let (own, all) = (places(&piece), places(&globe));
        let old: Vec<usize> = own.iter().map(|at| all.iter().position(|place| place == at).unwrap()).collect();
        assert!(old.is_sorted(), "they keep their order");
        let (here, there) = (map(&piece, "cell", "cells").unwrap(), map(&globe, "cell", "cells").unwrap());
        let signs = [&piece, &globe].map(|mesh| {
            let cell = mesh.set_named("cell").unwrap();
            mesh.field_on("orientation", cell, mesh.map_named(cell, "edges")).unwrap()
        });
        for (cell, &old_cell) in old.iter().enumerate() {
            for slot in 0..3 {
                let beyond = old.iter().position(|&old| old as i32 == there.row(old_cell)[slot]);
                assert_eq!(here.row(cell)[slot], beyond.map_or(HOLE, |number| number as i32));
                assert_eq!(signs[0].data.get(3 * cell + slot), signs[1].data.get(3 * old_cell + slot));
            }
        }
    }

    #[test]
    fn pieces_that_cannot_be() {
        let said = |piece: Piece| made(piece).unwrap_err().to_string();
        for centre in [[0.0, 91.0], [f64::NAN, 0.0], [400.0, 0.0]] {
            assert!(said(Piece { centre, ..PIECE }).starts_with("there is no place "));
        }
        for within in [0.0, -3.0, 180.0, f64::NAN] {
            assert!(said(Piece { within, ..PIECE }).starts_with("an area cannot reach "));
        }
        assert!(said(Piece { within: 179.0, ..PIECE }).starts_with("all cells are within 179 degrees of 0,90"));
        assert!(said(Piece { within: 1.0, centre: [3.0, 50.0], ..PIECE }).starts_with("no vertex is within 1 degrees"));
        assert!(said(Piece { lateral: 0, ..PIECE }).starts_with("there has to be a lateral row"));
        let rows = said(Piece { nudging: usize::MAX, ..PIECE });
        assert!(rows.contains("from the border to the middle there are 6"), "{rows}");
    }
}
