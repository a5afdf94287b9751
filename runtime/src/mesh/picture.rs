//! A picture of a mesh: its cells at their places, coloured by their numbers, so that their order is seen.

use super::Mesh;
use super::cells::{Cells, newell};
use super::check::plural;
use super::sides::Shape;
use crate::error::{Error, Result};
use crate::plot::{self, Picture, Scattered};
use std::path::Path;

/// Pixels along the longer side.
const SIDE: usize = 1200;

/// How large a cell is at least, in pixels, that gets an outline.
const OUTLINED: f64 = 7.0;

/// How far from the side of a cell its outline reaches, in pixels.
const LINE: f64 = 0.6;

/// Draws a mesh into the PNG file at `path`. Elements of the set that `cells` leads from (`cell.nodes`; if not given, those that are
/// cells by their names) have the colours of their numbers. Cells of less than a pixel still have one, of which the nearest to
/// its middle is seen. Meshes in space are seen obliquely from above.
///
/// # Errors
/// No positions are known, or there is no such map; those of [`plot::save_png`].
pub fn picture(mesh: &Mesh, cells: Option<&str>, title: &str, path: &Path) -> Result<()> {
    let cells = Cells::find(mesh, cells)?;
    let set = &mesh.sets[cells.map.from];
    let canvas = drawn(&cells, set.size, SIDE, true)?;
    let axes = if is_flat(&cells) { ["x", "y"] } else { ["", ""] };
    let scattered = Scattered { count: set.size, what: &plural(&set.name), axes };
    plot::save_png(
        path,
        &Picture { title, values: &canvas.values, ni: canvas.width, nj: canvas.height, scattered: Some(scattered) },
    )
}

/// Where the elements of a set are seen, so that what they hold can be drawn again and again. Elements whose own positions are known
/// are corners of cells: a cell has the mean of what its corners hold.
pub struct View {
    /// Points to the right.
    pub ni: usize,
    /// Points downwards.
    pub nj: usize,
    /// How many elements there are.
    pub count: usize,
    /// What they are called.
    pub what: String,
    /// What the axes are called.
    pub axes: [&'static str; 2],
    /// At each point the number of an element or cell; NaN where there is none.
    cells: Vec<f64>,
    /// Of each cell its corners, if these are the elements.
    corners: Option<Vec<Vec<usize>>>,
}

impl View {
    /// Of a set, with so many points along the longer side.
    ///
    /// # Errors
    /// Nobody knows where its elements are.
    pub fn new(mesh: &Mesh, set: usize, side: usize) -> Result<Self> {
        let (cells, are_corners) = Cells::of(mesh, set)?;
        let count = mesh.sets[cells.map.from].size;
        let canvas = drawn(&cells, count, side, false)?;
        let corners = |cell| cells.corners(cell).iter().map(|&corner| corner as usize).collect();
        Ok(Self {
            ni: canvas.width,
            nj: canvas.height,
            count: mesh.sets[set].size,
            what: plural(&mesh.sets[set].name),
            axes: if is_flat(&cells) { ["x", "y"] } else { ["", ""] },
            cells: canvas.values,
            corners: are_corners.then(|| (0..count).map(corners).collect()),
        })
    }

    /// What is seen at each point, where elements hold these values.
    pub fn values(&self, value: &dyn Fn(usize) -> f64) -> Vec<f64> {
        let mean = |all: &Vec<usize>| all.iter().map(|&corner| value(corner)).sum::<f64>() / all.len() as f64;
        let means: Option<Vec<f64>> = self.corners.as_ref().map(|own| own.iter().map(mean).collect());
        let at = |cell: f64| match (cell.is_nan(), &means) {
            (true, _) => f64::NAN,
            (false, Some(means)) => means[cell as usize],
            (false, None) => value(cell as usize),
        };
        self.cells.iter().map(|&cell| at(cell)).collect()
    }
}

/// Whether all corners are at one height.
fn is_flat(cells: &Cells) -> bool {
    let corners = cells.x.data.len() / cells.x.parts;
    cells.x.parts == 2 || (0..corners).all(|corner| cells.place(corner as i32)[2] == cells.place(0)[2])
}

/// Pixels while they are drawn.
struct Canvas {
    width: usize,
    height: usize,
    /// The number of the element at each pixel, row 0 at the top; NaN where there is none, and on outlines.
    values: Vec<f64>,
    /// How near to the eye it is.
    depths: Vec<f64>,
    has_outlines: bool,
}

/// Where the eye sees a point: to the right, upwards, towards the eye.
fn seen(is_flat: bool, [x, y, z]: [f64; 3]) -> [f64; 3] {
    if is_flat {
        return [x, y, z];
    }
    // From 30 degrees to the right of the x axis and 30 degrees above the plane.
    let (sine, cosine) = (0.5, 0.75_f64.sqrt());
    let near = cosine * x + sine * y;
    [cosine * y - sine * x, cosine * z - sine * near, cosine * near + sine * z]
}

/// `count` elements, with so many pixels along the longer side.
fn drawn(cells: &Cells, count: usize, longer_side: usize, has_outlines: bool) -> Result<Canvas> {
    let corners = cells.x.data.len() / cells.x.parts;
    let is_flat = is_flat(cells);
    let places: Vec<[f64; 3]> = (0..corners).map(|corner| seen(is_flat, cells.place(corner as i32))).collect();
    let ends = |axis: usize| {
        let all = places.iter().map(|place| place[axis]);
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
    };
    let ((left, right), (bottom, top)) = (ends(0), ends(1));
    let longer = (right - left).max(top - bottom);
    if count == 0 || places.is_empty() {
        return Err(Error::input("there is nothing to draw: the mesh has no cells"));
    }
    // Places may be too near or too far for any scale.
    let last = longer_side - 1;
    let scale = Some(last as f64 / longer).filter(|scale| scale.is_normal()).unwrap_or(1.0);
    let side = |length: f64| (length * scale).ceil().clamp(0.0, last as f64) as usize + 1;
    let (width, height) = (side(right - left), side(top - bottom));
    let mut canvas = Canvas {
        width,
        height,
        values: vec![f64::NAN; width * height],
        depths: vec![f64::NEG_INFINITY; width * height],
        has_outlines,
    };
    let pixel = |corner: i32| {
        let [x, y, z] = places[corner as usize];
        [(x - left) * scale, (top - y) * scale, z * scale]
    };
    for cell in 0..count {
        let row = cells.corners(cell);
        match Shape::of(row.len(), true).filter(|_| cells.is_solid) {
            Some(shape) => {
                for side in shape.sides() {
                    let polygon: Vec<[f64; 3]> = side.iter().map(|&at| pixel(row[at])).collect();
                    canvas.polygon(&polygon, cell as f64);
                }
            }
            None => canvas.polygon(&row.iter().map(|&corner| pixel(corner)).collect::<Vec<_>>(), cell as f64),
        }
    }
    Ok(canvas)
}

impl Canvas {
    /// Draws a polygon, or a line or a point, in pixels.
    fn polygon(&mut self, corners: &[[f64; 3]], value: f64) {
        let ends = |axis: usize| {
            let all = corners.iter().map(|corner| corner[axis]);
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
        };
        let (Some(first), (left, right), (top, bottom)) = (corners.first(), ends(0), ends(1)) else { return };
        let count = corners.len() as f64;
        let middle: [f64; 3] =
            std::array::from_fn(|axis| corners.iter().map(|corner| corner[axis]).sum::<f64>() / count);
        if corners.len() == 2 {
            // Places so far apart that their distance is no number leave the scale as it is.
            let steps = (right - left).max(bottom - top).ceil().clamp(1.0, 2.0 * SIDE as f64);
            for step in 0..=steps as usize {
                let share = step as f64 / steps;
                let at: [f64; 3] = std::array::from_fn(|axis| first[axis] + share * (corners[1][axis] - first[axis]));
                self.put(at[0].round() as usize, at[1].round() as usize, at[2], value);
            }
            return;
        }
        // However small it is, it has a pixel.
        self.put(middle[0].round() as usize, middle[1].round() as usize, middle[2], value);
        let normal = newell(corners);
        let depth = |x: f64, y: f64| match normal[2] {
            0.0 => middle[2],
            up => middle[2] - (normal[0] * (x - middle[0]) + normal[1] * (y - middle[1])) / up,
        };
        // As large as a square of the same area.
        let is_outlined = self.has_outlines && (0.5 * normal[2].abs()).sqrt() >= OUTLINED;
        for y in top.ceil() as usize..=(bottom.floor().max(0.0) as usize).min(self.height - 1) {
            for x in left.ceil() as usize..=(right.floor().max(0.0) as usize).min(self.width - 1) {
                let (at_x, at_y) = (x as f64, y as f64);
                if let Some(distance) = inside(corners, at_x, at_y) {
                    let is_line = is_outlined && distance < LINE;
                    self.put(x, y, depth(at_x, at_y), if is_line { f64::NAN } else { value });
                }
            }
        }
    }

    fn put(&mut self, x: usize, y: usize, depth: f64, value: f64) {
        if x < self.width && y < self.height && depth >= self.depths[y * self.width + x] {
            self.depths[y * self.width + x] = depth;
            self.values[y * self.width + x] = value;
        }
    }
}

/// How far a point is from the nearest side of a polygon that it lies in.
fn inside(corners: &[[f64; 3]], x: f64, y: f64) -> Option<f64> {
    let mut is_inside = false;
    let mut least = f64::INFINITY;
    for (at, a) in corners.iter().enumerate() {
        let b = &corners[(at + 1) % corners.len()];
        if (a[1] > y) != (b[1] > y) && x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0] {
            is_inside = !is_inside;
        }
        let (along, from) = ([b[0] - a[0], b[1] - a[1]], [x - a[0], y - a[1]]);
        let square = along[0] * along[0] + along[1] * along[1];
        let share =
            if square > 0.0 { ((along[0] * from[0] + along[1] * from[1]) / square).clamp(0.0, 1.0) } else { 0.0 };
        least = least.min((from[0] - share * along[0]).hypot(from[1] - share * along[1]));
    }
    is_inside.then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::made::{Division, Perturbed, airfoil, hexahedra, icosahedral, triangles};

    /// The canvas of a mesh.
    fn canvas(mesh: &Mesh, cells: Option<&str>) -> Canvas {
        let cells = Cells::find(mesh, cells).unwrap();
        drawn(&cells, mesh.sets[cells.map.from].size, SIDE, true).unwrap()
    }

    /// The numbers that are seen, each once.
    fn seen_numbers(canvas: &Canvas) -> Vec<usize> {
        let mut numbers: Vec<usize> =
            canvas.values.iter().filter(|value| value.is_finite()).map(|&value| value as usize).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    #[test]
    fn cells_are_where_they_are() {
        let mesh = triangles(6, 4, Perturbed { by: 0.2, seed: 1 }).unwrap();
        let found = canvas(&mesh, None);
        assert_eq!((found.width, found.height), (SIDE, 801));
        let cells = Cells::find(&mesh, None).unwrap();
        for cell in 0..48 {
            let corners: Vec<[f64; 3]> = cells.corners(cell).iter().map(|&corner| cells.place(corner)).collect();
            let [x, y] = [0, 1].map(|axis| corners.iter().map(|corner| corner[axis]).sum::<f64>() / 3.0);
            let scale = (SIDE - 1) as f64;
            // Upwards y grows.
            let (column, row) = ((x * scale).round() as usize, ((4.0 / 6.0 - y) * scale).round() as usize);
            assert_eq!(found.values[row * found.width + column], cell as f64);
        }
        // Outlines are thin, and everything else is filled.
        let empty = found.values.iter().filter(|value| value.is_nan()).count();
        assert!(empty > 5_000 && empty < found.values.len() / 20, "{empty}");
    }

    #[test]
    fn small_cells_leave_no_gaps() {
        let mesh = triangles(900, 600, Perturbed::default()).unwrap();
        let found = canvas(&mesh, None);
        assert!(found.values.iter().filter(|value| value.is_nan()).count() < 2 * (found.width + found.height));
        // However small, the wing's cells are seen at their places, and nothing is in the wing.
        let mesh = airfoil(600, 300).unwrap();
        assert!(seen_numbers(&canvas(&mesh, None)).len() > 100_000);
    }

    #[test]
    fn of_bodies_the_front_is_seen() {
        let mesh = hexahedra(4, 3, 2, Perturbed::default()).unwrap();
        assert!(Cells::find(&mesh, None).unwrap().is_solid);
        // Those with a side to the right, behind or above.
        let front: Vec<usize> = (0..24).filter(|cell| cell % 4 == 3 || cell / 4 % 3 == 2 || cell / 12 == 1).collect();
        assert_eq!(seen_numbers(&canvas(&mesh, None)), front);

        let mesh = icosahedral(Division { root: 2, bisections: 2 }, 3.0).unwrap();
        for (map, count) in [("cell.vertices", 1280), ("vertex.cells", 642)] {
            assert!(!Cells::find(&mesh, Some(map)).unwrap().is_solid, "{map}");
            let seen = seen_numbers(&canvas(&mesh, Some(map))).len();
            assert!(2 * seen > count && 2 * seen < count + count / 5, "{map}: {seen} of {count}");
        }
        // Edges are lines.
        assert!(seen_numbers(&canvas(&mesh, Some("edge.vertices"))).len() > 900);
    }

    #[test]
    fn places_may_be_anywhere() {
        for (far, arity) in [(1e308, 2), (1e308, 3), (0.0, 3), (1e-320, 3), (f64::MAX, 1)] {
            let mut mesh = Mesh::default();
            let (cell, node) = (mesh.add_set("cell", 1), mesh.add_set("node", 3));
            mesh.add_map(cell, "nodes", node, arity, (0..arity as i32).collect());
            mesh.add_field("x", node, 2, crate::Data::F64(vec![-far, far, far, far, 0.0, -far]));
            mesh.check().unwrap();
            let _ = canvas(&mesh, None);
        }
    }

    #[test]
    fn elements_show_what_they_hold() {
        let mesh = triangles(6, 4, Perturbed::default()).unwrap();
        let set = |name: &str| mesh.set_named(name).unwrap();
        let view = View::new(&mesh, set("cell"), 61).unwrap();
        assert_eq!((view.ni, view.nj, view.count, view.what.as_str()), (61, 41, 48, "cells"));
        let values = view.values(&|cell| 10.0 * cell as f64);
        let mut seen: Vec<u64> = values.iter().filter(|own| own.is_finite()).map(|own| *own as u64).collect();
        assert!(seen.len() + 2 * (61 + 41) > values.len(), "nearly all of the plane");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..48).map(|cell| 10 * cell).collect::<Vec<u64>>());

        // A plane over the nodes is one of means over the cells: the middle of each.
        let nodes = View::new(&mesh, set("node"), 61).unwrap();
        assert_eq!((nodes.count, nodes.what.as_str()), (35, "nodes"));
        let x = mesh.position_of(set("node")).unwrap();
        let values = nodes.values(&|node| x.data.get(2 * node));
        let (low, high) = values.iter().fold((1.0, 0.0), |(low, high): (f64, f64), &own| (low.min(own), high.max(own)));
        assert!((low - 1.0 / 18.0).abs() < 1e-12 && (high - 17.0 / 18.0).abs() < 1e-12, "{low} {high}");

        let edges = View::new(&mesh, set("edge"), 61).unwrap();
        assert!(edges.values(&|_| 1.0).iter().any(|own| own.is_nan()), "lines, and nothing between them");
    }

    #[test]
    fn what_cannot_be_drawn() {
        let told = |mesh: &Mesh, cells: Option<&str>| {
            picture(mesh, cells, "", Path::new("/dev/null")).unwrap_err().to_string()
        };
        let mut mesh = airfoil(12, 6).unwrap();
        assert_eq!(
            told(&mesh, Some("cell.node")),
            "`cell.node` is no map to elements whose positions are known\n  help: is it `cell.nodes`?"
        );
        assert_eq!(
            told(&mesh, Some("wall")),
            "`wall` is no map to elements whose positions are known\n  \
             help: there is edge.nodes, bedge.nodes, cell.nodes"
        );
        mesh.fields.clear();
        assert!(
            told(&mesh, None).starts_with("no map leads to elements whose positions are known\n  help: positions are")
        );
        let mut mesh = Mesh::default();
        let (cell, node) = (mesh.add_set("cell", 0), mesh.add_set("node", 0));
        mesh.add_map(cell, "nodes", node, 3, vec![]);
        mesh.add_field("x", node, 2, crate::Data::F64(vec![]));
        assert_eq!(told(&mesh, None), "there is nothing to draw: the mesh has no cells");
    }
}
