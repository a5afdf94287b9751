//! Grids of triangles on a sphere, which come from an icosahedron, and their duals of twelve pentagons and else hexagons.

use super::check_size;
use super::sphere::{Point, arc, circumcentre, cross, difference, scaled, sum, triangle, unit};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::mesh::{HOLE, Mesh};
use rayon::prelude::*;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// How an icosahedron is divided, written `R2B4`: each of its edges into `root` parts, and then each triangle into four, again and
/// again. There are 20 root² 4^bisections triangles (G. Zängl et al., "The ICON (ICOsahedral Non-hydrostatic) modelling framework
/// of DWD and MPI-M", Q. J. R. Meteorol. Soc. 141 (2015)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Parts of an edge of the icosahedron.
    pub root: u32,
    /// How often triangles are then divided into four.
    pub bisections: u32,
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "R{}B{}", self.root, self.bisections)
    }
}

impl FromStr for Division {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers = text.strip_prefix(['R', 'r']).and_then(|rest| rest.split_once(['B', 'b']));
        let parsed = numbers.and_then(|(root, bisections)| Some((root.parse().ok()?, bisections.parse().ok()?)));
        match parsed {
            Some((root, bisections)) if root > 0 => Ok(Self { root, bisections }),
            Some(_) | None => {
                Err("expected a division such as R2B4: edges of the icosahedron into 2 parts, then four times \
                                   each triangle into four"
                    .to_owned())
            }
        }
    }
}

/// Makes the grid on a sphere of this radius.
///
/// Sets: `vertex`, `edge`, `cell` (the triangles). Maps, where all that is around an element stands counter-clockwise, seen
/// from outside:
///
/// - `cell.vertices` and `cell.edges`: edge k is between vertices k and k + 1;
/// - `edge.cells` and `edge.vertices`: the edge's normal n points from its first cell to the second, its tangent t from its
///   first vertex to the second; t = k × n with k upwards;
/// - `cell.cells`: the one beyond edge k; `edge.edges`: the other two of its first cell, and of its second; `edge.diamond`: its
///   vertices, and those opposite to it in its first cell and in its second;
/// - `vertex.edges` and `vertex.cells`, -1 as the last of the twelve vertices of the icosahedron: cell k is between edges k and k + 1.
///
/// Fields, in lengths of the radius given: `x` on `vertex`, on `cell` (the circumcentre) and on `edge` (the middle, where the
/// dual edge, from circumcentre to circumcentre, crosses it at a right angle); `normal` and `tangent` on `edge`, of length 1; `length`
/// and `dual_length` on `edge`, along great circles; `area` on `cell` and `dual_area` on `vertex`, of polygons of great circles.
///
/// `orientation` on `cell.edges` is 1 where the edge's normal points out of the cell, and else -1, so that the divergence of
/// normal components u is the sum of orientation · u · length over area. `orientation` on `vertex.edges` is 1 where the
/// normal points counter-clockwise around the vertex, and else -1, so that their curl is the sum of orientation · u ·
/// dual_length over dual_area. This is the C-grid on a Voronoi mesh of T. D. Ringler et al., "A unified approach to energy conservation
/// and potential vorticity dynamics for arbitrarily-structured C-grids", J. Comput. Phys. 229 (2010), whose n_e and t_v these are.
///
/// # Errors
/// There are too many cells for this machine, or the radius is no length.
pub fn icosahedral(division: Division, radius: f64) -> Result<Mesh> {
    if !(radius > 0.0 && radius.is_finite()) {
        return Err(
            Error::call(format!("a sphere cannot have the radius {radius}")).help("give a length: --radius 6371229")
        );
    }
    let edges = 4_usize.checked_pow(division.bisections).zip((division.root as usize).checked_pow(2));
    let edges = edges.and_then(|(four, root)| four.checked_mul(root)?.checked_mul(30));
    check_size(edges, 340, "give a smaller --size")?;
    let mut triangles = Triangles::root(division.root);
    for _ in 0..division.bisections {
        triangles = triangles.bisected();
    }
    let mut mesh = triangles.mesh(radius);
    mesh.origin = format!("icosahedral {division}");
    Ok(mesh)
}

/// A triangulation of the unit sphere.
struct Triangles {
    points: Vec<Point>,
    /// The ends of edges.
    edges: Vec<[i32; 2]>,
    /// The corners of cells, counter-clockwise.
    cells: Vec<[i32; 3]>,
    /// The edges of cells: the k-th is between corners k and k + 1.
    sides: Vec<[i32; 3]>,
}

/// The corners of an icosahedron, two of which are poles.
fn corners() -> [Point; 12] {
    // The others are at the latitudes ± atan(1/2).
    let (height, distance) = (0.2_f64.sqrt(), 0.8_f64.sqrt());
    std::array::from_fn(|number| {
        let ring = |turn: f64, height: f64| {
            let (sine, cosine) = (turn * std::f64::consts::TAU / 10.0).sin_cos();
            unit([distance * cosine, distance * sine, height])
        };
        match number {
            0 => [0.0, 0.0, 1.0],
            1..=5 => ring(2.0 * (number - 1) as f64, height),
            6..=10 => ring(2.0 * (number - 6) as f64 + 1.0, -height),
            _ => [0.0, 0.0, -1.0],
        }
    })
}

/// Its faces, counter-clockwise.
fn faces() -> impl Iterator<Item = [usize; 3]> {
    (0..5).flat_map(|turn| {
        let next = (turn + 1) % 5;
        let [upper, upper_next, lower, lower_next] = [1 + turn, 1 + next, 6 + turn, 6 + next];
        [[0, upper, upper_next], [upper, lower, upper_next], [lower, lower_next, upper_next], [11, lower_next, lower]]
    })
}

impl Triangles {
    /// The faces of the icosahedron, whose edges are divided into `root` parts.
    fn root(root: u32) -> Self {
        let corners = corners();
        let mut triangles = Self { points: Vec::new(), edges: Vec::new(), cells: Vec::new(), sides: Vec::new() };
        // Points of edges belong to several faces; they are known by how much of each corner they have.
        let mut known = HashMap::new();
        let mut point = |points: &mut Vec<Point>, face: [usize; 3], shares: [u32; 3]| {
            let mut key = [0, 1, 2].map(|at| (face[at], shares[at])).map(|own| if own.1 == 0 { (0, 0) } else { own });
            key.sort_unstable();
            *known.entry(key).or_insert_with(|| {
                let own = [0, 1, 2].map(|at| scaled(corners[face[at]], f64::from(shares[at])));
                points.push(unit(sum(sum(own[0], own[1]), own[2])));
                points.len() as i32 - 1
            })
        };
        for face in faces() {
            for i in 0..root {
                for j in 0..root - i {
                    let mut at = |i: u32, j: u32| point(&mut triangles.points, face, [root - i - j, i, j]);
                    triangles.cells.push([at(i, j), at(i + 1, j), at(i, j + 1)]);
                    if i + j + 1 < root {
                        triangles.cells.push([at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)]);
                    }
                }
            }
        }
        let mut known = HashMap::new();
        for &[a, b, c] in &triangles.cells {
            triangles.sides.push([[a, b], [b, c], [c, a]].map(|[from, to]| {
                *known.entry([from.min(to), from.max(to)]).or_insert_with(|| {
                    triangles.edges.push([from, to]);
                    triangles.edges.len() as i32 - 1
                })
            }));
        }
        triangles
    }

    /// Each triangle divided into four, at the middles of its edges.
    fn bisected(&self) -> Self {
        let (points, edges) = (self.points.len() as i32, self.edges.len() as i32);
        let middle = |edge: i32| points + edge;
        let middles = self.edges.par_iter().map(|&[a, b]| unit(sum(self.points[a as usize], self.points[b as usize])));
        // The halves of an edge, and then the three edges between the middles of a cell's.
        let half = |edge: i32, end: i32| 2 * edge + i32::from(self.edges[edge as usize][1] == end);
        let halves = self.edges.iter().zip(0..).flat_map(|(&[a, b], edge)| [[a, middle(edge)], [middle(edge), b]]);
        let inner = self.sides.iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]].map(|ends| ends.map(middle)));
        let all = || self.cells.iter().zip(&self.sides).zip(0..);
        let cells = all().flat_map(|((&[a, b, c], sides), _)| {
            let [ab, bc, ca] = sides.map(middle);
            [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
        });
        let sides = all().flat_map(|((&[a, b, c], &[ab, bc, ca]), cell)| {
            // Of the edges inside, the k-th is between the middles of sides k and k + 1.
            let [at_b, at_c, at_a] = [0, 1, 2].map(|at| 2 * edges + 3 * cell + at);
            [
                [half(ab, a), at_a, half(ca, a)],
                [half(ab, b), half(bc, b), at_b],
                [at_c, half(bc, c), half(ca, c)],
                [at_b, at_c, at_a],
            ]
        });
        Self {
            points: self.points.par_iter().copied().chain(middles).collect(),
            edges: halves.chain(inner).collect(),
            cells: cells.collect(),
            sides: sides.collect(),
        }
    }

    /// The mesh, with all that is known of it.
    fn mesh(self, radius: f64) -> Mesh {
        let mut mesh = Mesh::default();
        let [vertex, edge, cell] =
            [("vertex", &self.points.len()), ("edge", &self.edges.len()), ("cell", &self.cells.len())]
                .map(|(name, size)| mesh.add_set(name, *size));

        // Cells know the ends of their edges counter-clockwise, and the first cell of an edge decides.
        let mut edge_cells = vec![[HOLE; 2]; self.edges.len()];
        let mut edge_vertices = vec![[HOLE; 2]; self.edges.len()];
        for ((&[a, b, c], sides), number) in self.cells.iter().zip(&self.sides).zip(0..) {
            for (&side, ends) in sides.iter().zip([[a, b], [b, c], [c, a]]) {
                let [first, second] = &mut edge_cells[side as usize];
                match *first {
                    HOLE => (*first, edge_vertices[side as usize]) = (number, ends),
                    _ => *second = number,
                }
            }
        }
        let rings = Rings::new(&self);

        let at = |number: i32| self.points[number as usize];
        let centres: Vec<Point> = self
            .cells
            .par_iter()
            .map(|cell| {
                let [a, b, c] = cell.map(at);
                circumcentre(a, b, c)
            })
            .collect();
        let middles: Vec<Point> = edge_vertices.par_iter().map(|&[a, b]| unit(sum(at(a), at(b)))).collect();
        let tangents: Vec<Point> = edge_vertices.par_iter().map(|&[a, b]| unit(difference(at(b), at(a)))).collect();
        let normals = tangents.par_iter().zip(&middles).map(|(&tangent, &up)| cross(tangent, up)).collect();
        let lengths = edge_vertices.par_iter().map(|&[a, b]| radius * arc(at(a), at(b))).collect();
        let centre = |number: i32| centres[number as usize];
        let dual_lengths = edge_cells.par_iter().map(|&[a, b]| radius * arc(centre(a), centre(b))).collect();
        let areas = self.cells.par_iter().map(|cell| {
            let [a, b, c] = cell.map(at);
            radius * radius * triangle(a, b, c)
        });
        let areas = areas.collect();
        let dual_areas = rings.cells.par_iter().zip(&self.points).map(|(ring, &middle)| {
            let count = ring.iter().take_while(|&&cell| cell != HOLE).count();
            let part = |at: usize| triangle(middle, centre(ring[at]), centre(ring[(at + 1) % count]));
            radius * radius * (0..count).map(part).sum::<f64>()
        });
        let dual_areas = dual_areas.collect();
        let outwards = self
            .sides
            .iter()
            .zip(0..)
            .flat_map(|(sides, own)| sides.map(|side| if edge_cells[side as usize][0] == own { 1 } else { -1 }));
        let outwards = outwards.collect();
        let around = rings.edges.iter().zip(0..).flat_map(|(ring, own)| {
            ring.map(|edge| match usize::try_from(edge) {
                Err(_) => 0,
                Ok(edge) if edge_vertices[edge][1] == own => 1,
                Ok(_) => -1,
            })
        });
        let around = around.collect();

        let Beyond { cells: beyond, edges: beside, vertices: diamonds } =
            Beyond::new(&self, &edge_cells, &edge_vertices);

        mesh.add_map(cell, "vertices", vertex, 3, self.cells.into_flattened());
        let cell_edges = mesh.add_map(cell, "edges", edge, 3, self.sides.into_flattened());
        mesh.add_map(edge, "cells", cell, 2, edge_cells.into_flattened());
        mesh.add_map(edge, "vertices", vertex, 2, edge_vertices.into_flattened());
        let vertex_edges = mesh.add_map(vertex, "edges", edge, 6, rings.edges.into_flattened());
        mesh.add_map(vertex, "cells", cell, 6, rings.cells.into_flattened());
        mesh.add_map(cell, "cells", cell, 3, beyond.into_flattened());
        mesh.add_map(edge, "edges", edge, 4, beside.into_flattened());
        mesh.add_map(edge, "diamond", vertex, 4, diamonds.into_flattened());
        let places =
            |points: Vec<Point>| Data::F64(points.into_iter().flat_map(|point| scaled(point, radius)).collect());
        let directions = |points: Vec<Point>| Data::F64(points.into_flattened());
        mesh.add_field("x", vertex, 3, places(self.points));
        mesh.add_field("x", edge, 3, places(middles));
        mesh.add_field("x", cell, 3, places(centres));
        mesh.add_field("normal", edge, 3, directions(normals));
        mesh.add_field("tangent", edge, 3, directions(tangents));
        mesh.add_field("length", edge, 1, Data::F64(lengths));
        mesh.add_field("dual_length", edge, 1, Data::F64(dual_lengths));
        mesh.add_field("area", cell, 1, Data::F64(areas));
        mesh.add_field("dual_area", vertex, 1, Data::F64(dual_areas));
        mesh.add_slot_field("orientation", cell_edges, Data::I32(outwards));
        mesh.add_slot_field("orientation", vertex_edges, Data::I32(around));
        mesh
    }
}

/// What is beyond the edges of cells.
struct Beyond {
    /// Of each cell the one beyond its k-th edge.
    cells: Vec<[i32; 3]>,
    /// Of each edge the others of its first cell, counter-clockwise, and of its second.
    edges: Vec<[i32; 4]>,
    /// Of each edge its ends, and the corners opposite to it in its first cell and in its second.
    vertices: Vec<[i32; 4]>,
}

impl Beyond {
    fn new(triangles: &Triangles, edge_cells: &[[i32; 2]], edge_vertices: &[[i32; 2]]) -> Self {
        let other = |side: i32, own: i32| {
            let [first, second] = edge_cells[side as usize];
            if first == own { second } else { first }
        };
        let cells =
            triangles.sides.par_iter().enumerate().map(|(own, sides)| sides.map(|side| other(side, own as i32)));
        // Where an edge stands in a cell: the next two sides are the others, and the corner behind the next one is not one of its ends.
        let place = |cell: i32, edge: usize| {
            let sides = &triangles.sides[cell as usize];
            sides.iter().position(|&side| side as usize == edge).unwrap_or(0)
        };
        let edges = edge_cells.par_iter().enumerate().map(|(edge, cells)| {
            let [a, b] = cells.map(|cell| {
                let (sides, at) = (&triangles.sides[cell as usize], place(cell, edge));
                [sides[(at + 1) % 3], sides[(at + 2) % 3]]
            });
            [a[0], a[1], b[0], b[1]]
        });
        let vertices = edge_cells.par_iter().zip(edge_vertices).enumerate().map(|(edge, (cells, ends))| {
            let [a, b] = cells.map(|cell| triangles.cells[cell as usize][(place(cell, edge) + 2) % 3]);
            [ends[0], ends[1], a, b]
        });
        Self { cells: cells.collect(), edges: edges.collect(), vertices: vertices.collect() }
    }
}

/// What is around each vertex, counter-clockwise: edges, the one with the lowest number first, and cells between them.
struct Rings {
    edges: Vec<[i32; 6]>,
    cells: Vec<[i32; 6]>,
}

impl Rings {
    fn new(triangles: &Triangles) -> Self {
        let count = triangles.points.len();
        // Of each vertex and each cell around it: the edge before the cell, the cell, the edge after it.
        let mut around = vec![[[HOLE; 3]; 6]; count];
        let mut found = vec![0_usize; count];
        for ((corners, sides), cell) in triangles.cells.iter().zip(&triangles.sides).zip(0..) {
            for (slot, &corner) in corners.iter().enumerate() {
                let corner = corner as usize;
                around[corner][found[corner]] = [sides[slot], cell, sides[(slot + 2) % 3]];
                found[corner] += 1;
            }
        }
        let rings = around.par_iter().map(|own| {
            let all = || own.iter().filter(|[_, cell, _]| *cell != HOLE);
            let mut next = all().map(|[edge, ..]| *edge).min();
            let (mut edges, mut cells) = ([HOLE; 6], [HOLE; 6]);
            for at in 0..all().count() {
                if let Some([edge, cell, after]) = all().find(|[edge, ..]| Some(*edge) == next) {
                    (edges[at], cells[at], next) = (*edge, *cell, Some(*after));
                }
            }
            (edges, cells)
        });
        let (edges, cells) = rings.unzip();
        Self { edges, cells }
    }
}
