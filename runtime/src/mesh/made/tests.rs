//! Made meshes are what they are said to be.

use super::sphere::{Point, cross, difference, dot, sum};
use super::*;
use crate::mesh::{Field, HOLE, Map, Mesh, load};
use std::f64::consts::PI;
use std::path::Path;

fn map<'a>(mesh: &'a Mesh, set: &str, name: &str) -> &'a Map {
    &mesh.maps[mesh.map_named(mesh.set_named(set).unwrap(), name).unwrap()]
}

fn field<'a>(mesh: &'a Mesh, name: &str, set: &str) -> &'a Field {
    mesh.field_on(name, mesh.set_named(set).unwrap(), None).unwrap()
}

fn slot_field<'a>(mesh: &'a Mesh, name: &str, set: &str, map: &str) -> &'a Field {
    let set = mesh.set_named(set).unwrap();
    mesh.field_on(name, set, mesh.map_named(set, map)).unwrap()
}

fn size(mesh: &Mesh, name: &str) -> usize {
    mesh.sets[mesh.set_named(name).unwrap()].size
}

fn point(field: &Field, element: usize) -> Point {
    std::array::from_fn(|part| if part < field.parts { field.data.get(element * field.parts + part) } else { 0.0 })
}

/// The mean place of what a map leads to.
fn middle(mesh: &Mesh, map: &Map, element: usize) -> Point {
    let x = field(mesh, "x", &mesh.sets[map.to].name);
    let row: Vec<i32> = map.row(element).iter().copied().filter(|&node| node != HOLE).collect();
    let all = row.iter().map(|&node| point(x, node as usize)).fold([0.0; 3], sum);
    all.map(|part| part / row.len() as f64)
}

/// Edges of a plane mesh look from the first cell to the second, and out of the cell on the border.
fn edges_look_outwards(mesh: &Mesh) {
    let x = field(mesh, "x", "node");
    let cell_nodes = map(mesh, "cell", "nodes");
    for (set, cells) in [("edge", "cells"), ("bedge", "cell")] {
        let (nodes, cells) = (map(mesh, set, "nodes"), map(mesh, set, cells));
        for edge in 0..size(mesh, set) {
            let [a, b] = [0, 1].map(|end| point(x, nodes.row(edge)[end] as usize));
            let d = difference(a, b);
            let normal = [d[1], -d[0], 0.0];
            let from = |cell: i32| difference(middle(mesh, nodes, edge), middle(mesh, cell_nodes, cell as usize));
            assert!(dot(normal, from(cells.row(edge)[0])) > 0.0, "{set} {edge} looks out of its first cell");
            if let Some(&other) = cells.row(edge).get(1) {
                assert!(dot(normal, from(other)) < 0.0, "{set} {edge} looks into its second cell");
            }
        }
    }
}

/// Around every cell the normals of its sides, as long as these, add up to nothing.
fn cells_are_closed(mesh: &Mesh, inner: &str) {
    let x = field(mesh, "x", "node");
    let mut around = vec![[0.0; 3]; size(mesh, "cell")];
    let mut largest = 0.0_f64;
    for (set, cells) in [(inner.to_owned(), "cells"), (format!("b{inner}"), "cell")] {
        let (nodes, cells) = (map(mesh, &set, "nodes"), map(mesh, &set, cells));
        for side in 0..size(mesh, &set) {
            let corner = |at: usize| point(x, nodes.row(side)[at] as usize);
            let normal = match nodes.arity {
                2 => cross(difference(corner(0), corner(1)), [0.0, 0.0, 1.0]),
                // Half the cross product of the diagonals.
                _ => cross(difference(corner(2), corner(0)), difference(corner(3), corner(1))).map(|part| 0.5 * part),
            };
            largest = largest.max(dot(normal, normal).sqrt());
            for (&cell, sign) in cells.row(side).iter().zip([1.0, -1.0]) {
                around[cell as usize] = sum(around[cell as usize], normal.map(|part| sign * part));
            }
        }
    }
    let far = around.iter().map(|all| dot(*all, *all).sqrt()).fold(0.0, f64::max);
    assert!(far < 1e-14 * largest.max(1.0), "{far} of {largest}");
}

#[test]
fn airfoils_are_like_the_given_one() {
    let given = load(Path::new("../examples/grid_120x60.dat")).unwrap();
    edges_look_outwards(&given);
    for (around, outwards) in [(3, 1), (12, 5), (120, 60)] {
        let made = airfoil(around, outwards).unwrap();
        made.check().unwrap();
        edges_look_outwards(&made);
        cells_are_closed(&made, "edge");
        let names = |mesh: &Mesh| {
            let maps = mesh.maps.iter().map(|map| (mesh.full_name(map), map.arity, mesh.sets[map.to].name.clone()));
            let fields = mesh.fields.iter().map(|field| (mesh.field_place(field), field.parts, field.data.element()));
            (maps.collect::<Vec<_>>(), fields.collect::<Vec<_>>())
        };
        assert_eq!(names(&made), names(&given));
        let sizes = ["node", "cell", "edge", "bedge"].map(|set| size(&made, set));
        let cells = around * outwards;
        assert_eq!(sizes, [cells + around, cells, 2 * cells - around, 2 * around]);
        // A ring: as many nodes and cells as edges.
        assert_eq!(sizes[0] + sizes[1], sizes[2] + sizes[3]);
    }
    // The profile has the length 1 and is 12% thick; the far field is ten lengths away.
    let made = airfoil(400, 10).unwrap();
    let x = field(&made, "x", "node");
    let ends = |axis: usize, from: usize| {
        let all = (from..from + 400).map(|node| point(x, node)[axis]);
        all.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)))
    };
    let ((left, right), (low, high)) = (ends(0, 0), ends(1, 0));
    assert!(
        (right - left - 1.0).abs() < 0.05 && ((high - low) / (right - left) - 0.12).abs() < 0.03,
        "{left} {right} {low} {high}"
    );
    assert!(ends(0, 4000).0 < -5.0 && ends(1, 4000).1 > 5.0);
}

#[test]
fn boxes_are_filled() {
    let perturbed = Perturbed { by: 0.24, seed: 5 };
    for how in [Perturbed::default(), perturbed] {
        for (ni, nj) in [(1, 1), (5, 3), (2, 7)] {
            let mesh = triangles(ni, nj, how).unwrap();
            mesh.check().unwrap();
            edges_look_outwards(&mesh);
            cells_are_closed(&mesh, "edge");
            let sizes = ["node", "cell", "edge", "bedge"].map(|set| size(&mesh, set));
            assert_eq!(sizes, [(ni + 1) * (nj + 1), 2 * ni * nj, 3 * ni * nj - ni - nj, 2 * (ni + nj)]);
            let (x, nodes) = (field(&mesh, "x", "node"), map(&mesh, "cell", "nodes"));
            let area = |cell: usize| {
                let [a, b, c] = [0, 1, 2].map(|slot| point(x, nodes.row(cell)[slot] as usize));
                let twice = cross(difference(b, a), difference(c, a))[2];
                assert!(twice > 0.0, "cell {cell} goes counter-clockwise");
                0.5 * twice
            };
            let area: f64 = (0..size(&mesh, "cell")).map(area).sum();
            assert!((area * ni as f64 / nj as f64 - 1.0).abs() < 1e-12, "{area}");
            sides_know_their_cells(&mesh, "edge");
        }
        let mesh = hexahedra(4, 3, 2, how).unwrap();
        mesh.check().unwrap();
        assert_eq!(["node", "cell", "face", "bface"].map(|set| size(&mesh, set)), [60, 24, 46, 52]);
        sides_know_their_cells(&mesh, "face");
        cells_are_closed(&mesh, "face");
        let (cells, nodes) = (map(&mesh, "cell", "nodes"), map(&mesh, "face", "nodes"));
        for face in 0..46 {
            let corner = |at: usize| point(field(&mesh, "x", "node"), nodes.row(face)[at] as usize);
            let normal = cross(difference(corner(2), corner(0)), difference(corner(3), corner(1)));
            let [first, second] =
                [0, 1].map(|at| middle(&mesh, cells, map(&mesh, "face", "cells").row(face)[at] as usize));
            assert!(dot(normal, difference(second, first)) > 0.0, "face {face} looks into its second cell");
        }
    }
    // Slots of faces are left, right, front, back, below, above.
    let mesh = hexahedra(3, 3, 3, Perturbed::default()).unwrap();
    let (cells, faces) = (map(&mesh, "cell", "nodes"), map(&mesh, "cell", "faces"));
    for (slot, &face) in faces.row(13).iter().enumerate() {
        let to = difference(middle(&mesh, map(&mesh, "face", "nodes"), face as usize), middle(&mesh, cells, 13));
        let expected = if slot % 2 == 0 { -1.0 } else { 1.0 } / 6.0;
        assert!((to[slot / 2] - expected).abs() < 1e-15 && (dot(to, to).sqrt() - 1.0 / 6.0).abs() < 1e-15, "{slot}");
    }
    let bound = field(&mesh, "bound", "bface");
    for which in 1..=6 {
        assert_eq!((0..54).filter(|&face| bound.data.get(face) == f64::from(which)).count(), 9);
    }
}

/// Cells have the sides that have them, and know where these look.
fn sides_know_their_cells(mesh: &Mesh, side: &str) {
    let (cells, own) = (map(mesh, side, "cells"), map(mesh, "cell", &format!("{side}s")));
    let sign = slot_field(mesh, "orientation", "cell", &format!("{side}s"));
    let mut seen = 0;
    for cell in 0..size(mesh, "cell") {
        for (slot, &number) in own.row(cell).iter().enumerate() {
            let which = usize::try_from(number).ok().map(|number| {
                seen += 1;
                cells.row(number).iter().position(|&own| own == cell as i32).expect("a side of the cell")
            });
            let expected = which.map_or(0.0, |which| if which == 0 { 1.0 } else { -1.0 });
            assert_eq!(sign.data.get(cell * own.arity + slot), expected);
        }
    }
    assert_eq!(seen, 2 * size(mesh, side));
    assert_eq!(own.holes(), size(mesh, &format!("b{side}")));
}

#[test]
fn spheres_are_covered() {
    for (text, radius) in
        [("R1B0", 1.0), ("R1B3", 1.0), ("R2B2", 1.0), ("R3B1", 6_371_229.0), ("R5B0", 1.0), ("R2B4", 1.0)]
    {
        let division: Division = text.parse().unwrap();
        let mesh = icosahedral(division, radius).unwrap();
        mesh.check().unwrap();
        assert_eq!(mesh.origin, format!("icosahedral {text}"));
        let [vertices, edges, cells] = ["vertex", "edge", "cell"].map(|set| size(&mesh, set));
        assert_eq!(cells, 20 * (division.root.pow(2) * 4_u32.pow(division.bisections)) as usize);
        assert_eq!((vertices + cells, 2 * edges), (edges + 2, 3 * cells), "Euler's formula");
        assert_eq!(map(&mesh, "vertex", "edges").holes(), 12, "twelve pentagons");
        let whole = |name: &str, set: &str| {
            let field = field(&mesh, name, set);
            assert!((0..field.data.len()).all(|at| field.data.get(at) > 0.0), "{name}");
            (0..field.data.len()).map(|at| field.data.get(at)).sum::<f64>() / (4.0 * PI * radius * radius)
        };
        for (name, set) in [("area", "cell"), ("dual_area", "vertex")] {
            assert!((whole(name, set) - 1.0).abs() < 1e-12, "{text}: {name} {}", whole(name, set));
        }
        stand_as_said(&mesh, radius);
        divergence_and_curl_vanish(&mesh);
    }
}

/// Normals, tangents and rings are as the documentation says.
fn stand_as_said(mesh: &Mesh, radius: f64) {
    let place = |set: &str, number: i32| point(field(mesh, "x", set), number as usize);
    let (vertices, cells) = (map(mesh, "edge", "vertices"), map(mesh, "edge", "cells"));
    for edge in 0..size(mesh, "edge") {
        let [normal, tangent] = ["normal", "tangent"].map(|name| point(field(mesh, name, "edge"), edge));
        let up = place("edge", edge as i32).map(|part| part / radius);
        let is_near = |a: Point, b: Point| difference(a, b).iter().all(|part| part.abs() < 1e-12);
        assert!(is_near(cross(up, normal), tangent) && (dot(up, up) - 1.0).abs() < 1e-14);
        let [a, b] = [0, 1].map(|at| place("vertex", vertices.row(edge)[at]));
        let [first, second] = [0, 1].map(|at| place("cell", cells.row(edge)[at]));
        let (along, across) = (difference(b, a), difference(second, first));
        assert!(dot(along, tangent) > 0.0 && dot(across, normal) > 0.0);
        // The dual edge crosses at a right angle.
        assert!(dot(across, tangent).abs() < 1e-9 * radius);
        // An arc is longer than its chord, by less than the third power of its angle over 24, and a little.
        let length = field(mesh, "length", "edge").data.get(edge) / radius;
        let chord = dot(along, along).sqrt() / radius;
        assert!(length > chord && length - chord < length.powi(3) / 24.0 + 1e-12, "{length} {chord}");
        let (dual, chord) =
            (field(mesh, "dual_length", "edge").data.get(edge) / radius, dot(across, across).sqrt() / radius);
        assert!(dual > chord && dual - chord < dual.powi(3) / 24.0 + 1e-12, "{dual} {chord}");
    }
    // Rings turn to the left: what comes next is on the left of what was before, around a vertex and around a cell.
    for (set, ring, other) in [
        ("vertex", "edges", "edge"),
        ("vertex", "cells", "cell"),
        ("cell", "vertices", "vertex"),
        ("cell", "edges", "edge"),
    ] {
        let table = map(mesh, set, ring);
        for element in 0..size(mesh, set) {
            let row: Vec<i32> = table.row(element).iter().copied().filter(|&to| to != HOLE).collect();
            let centre = place(set, element as i32);
            for (at, &to) in row.iter().enumerate() {
                let [a, b] = [to, row[(at + 1) % row.len()]].map(|to| difference(place(other, to), centre));
                assert!(dot(cross(a, b), centre) > 0.0, "{set} {element}: slot {at} of {ring}");
            }
        }
    }
    // Side k of a cell is between vertices k and k + 1, and cell k around a vertex between edges k and k + 1.
    let (cell_edges, cell_vertices) = (map(mesh, "cell", "edges"), map(mesh, "cell", "vertices"));
    for cell in 0..size(mesh, "cell") {
        for slot in 0..3 {
            let ends = vertices.row(cell_edges.row(cell)[slot] as usize);
            assert!([slot, (slot + 1) % 3].iter().all(|&at| ends.contains(&cell_vertices.row(cell)[at])));
        }
    }
    // Beyond side k stands the cell that has it, too; a diamond is made of its two cells.
    let [beyond, beside] = [map(mesh, "cell", "cells"), map(mesh, "edge", "edges")];
    let diamond = map(mesh, "edge", "diamond");
    for cell in 0..size(mesh, "cell") {
        for slot in 0..3 {
            let both = cells.row(cell_edges.row(cell)[slot] as usize);
            assert!(both.contains(&(cell as i32)) && both.contains(&beyond.row(cell)[slot]));
            assert_ne!(beyond.row(cell)[slot], cell as i32);
        }
    }
    for edge in 0..size(mesh, "edge") {
        assert_eq!(diamond.row(edge)[..2], *vertices.row(edge));
        for (number, &cell) in cells.row(edge).iter().enumerate() {
            let corner = diamond.row(edge)[2 + number];
            assert!(cell_vertices.row(cell as usize).contains(&corner) && !vertices.row(edge).contains(&corner));
            let own = cell_edges.row(cell as usize);
            let at = own.iter().position(|&side| side as usize == edge).unwrap();
            assert_eq!(beside.row(edge)[2 * number..][..2], [own[(at + 1) % 3], own[(at + 2) % 3]]);
        }
    }
    let (around, between) = (map(mesh, "vertex", "edges"), map(mesh, "vertex", "cells"));
    for vertex in 0..size(mesh, "vertex") {
        let count = around.row(vertex).iter().filter(|&&edge| edge != HOLE).count();
        for slot in 0..count {
            let cell = between.row(vertex)[slot] as usize;
            let both = [slot, (slot + 1) % count].map(|at| around.row(vertex)[at]);
            assert!(both.iter().all(|edge| cell_edges.row(cell).contains(edge)));
        }
        assert!(around.row(vertex)[count..].iter().all(|&edge| edge == HOLE), "holes come last");
    }
}

/// A flow along the lines of a stream function has no divergence, and a gradient has no curl; in whole numbers, exactly.
fn divergence_and_curl_vanish(mesh: &Mesh) {
    let random = |number: usize| ((number as i64 * 7919 + 13) % 10_007) - 5000;
    let (vertices, cells) = (map(mesh, "edge", "vertices"), map(mesh, "edge", "cells"));
    let change = |map: &Map, edge: usize| random(map.row(edge)[1] as usize) - random(map.row(edge)[0] as usize);
    for (set, from) in [("cell", vertices), ("vertex", cells)] {
        let (edges, sign) = (map(mesh, set, "edges"), slot_field(mesh, "orientation", set, "edges"));
        for element in 0..size(mesh, set) {
            let slots = edges.row(element).iter().enumerate().filter(|(_, edge)| **edge != HOLE);
            let of = |(slot, &edge): (usize, &i32)| {
                sign.data.get(element * edges.arity + slot) as i64 * change(from, edge as usize)
            };
            assert_eq!(slots.map(of).sum::<i64>(), 0, "{set} {element}");
        }
        // What leaves one element enters another.
        let total: f64 = (0..sign.data.len()).map(|at| sign.data.get(at)).sum();
        assert_eq!(total, 0.0);
    }
}

#[test]
fn a_solid_body_turns_without_divergence_and_with_curl() {
    // u = ω × x has the curl 2 ω·x upwards and no divergence; both are met the better, the smaller cells are.
    let errors = [3, 4].map(|bisections| {
        let mesh = icosahedral(Division { root: 1, bisections }, 1.0).unwrap();
        let flow = |set: &str, edge: usize| {
            let u = cross([0.0, 0.6, 0.8], point(field(&mesh, "x", "edge"), edge));
            let name = if set == "cell" { "length" } else { "dual_length" };
            dot(u, point(field(&mesh, "normal", "edge"), edge)) * field(&mesh, name, "edge").data.get(edge)
        };
        let sum = |set: &str, area: &str, element: usize| {
            let (edges, sign) = (map(&mesh, set, "edges"), slot_field(&mesh, "orientation", set, "edges"));
            let slots = edges.row(element).iter().enumerate().filter(|(_, edge)| **edge != HOLE);
            let of =
                |(slot, &edge): (usize, &i32)| sign.data.get(element * edges.arity + slot) * flow(set, edge as usize);
            slots.map(of).sum::<f64>() / field(&mesh, area, set).data.get(element)
        };
        let curl = |vertex: usize| {
            sum("vertex", "dual_area", vertex) - 2.0 * dot([0.0, 0.6, 0.8], point(field(&mesh, "x", "vertex"), vertex))
        };
        let mean = |count: usize, of: &dyn Fn(usize) -> f64| {
            ((0..count).map(|at| of(at).powi(2)).sum::<f64>() / count as f64).sqrt()
        };
        let (divergence, curl) =
            (mean(size(&mesh, "cell"), &|cell| sum("cell", "area", cell)), mean(size(&mesh, "vertex"), &curl));
        assert!(divergence < 0.02 && curl < 0.02, "{divergence} {curl}");
        [divergence, curl]
    });
    assert!(errors[1][0] < 0.6 * errors[0][0] && errors[1][1] < 0.6 * errors[0][1], "{errors:?}");
}

#[test]
fn meshes_that_cannot_be() {
    let said = |made: crate::Result<Mesh>| made.unwrap_err().to_string();
    assert_eq!(
        said(airfoil(2, 5)),
        "there is no airfoil mesh of 2x5 cells\n  \
         help: give 3 cells or more around the profile, and 1 or more outwards: --size 120x60"
    );
    assert_eq!(
        said(airfoil(1 << 20, 1 << 20)),
        "a set of this mesh would have more than 2^30 elements\n  help: give a smaller --size"
    );
    assert_eq!(
        said(triangles(3, 0, Perturbed::default())),
        "there is no mesh of 3x0 cells\n  help: give 1 or more along each axis"
    );
    assert!(said(hexahedra(usize::MAX, 2, 2, Perturbed::default())).contains("more than 2^30"));
    for by in [0.25, -0.1, f64::NAN] {
        let said = said(hexahedra(2, 2, 2, Perturbed { by, seed: 0 }));
        assert!(said.starts_with(&format!("nodes cannot be moved by {by} lengths of a cell")), "{said}");
    }
    assert!(said(icosahedral(Division { root: 1, bisections: 40 }, 1.0)).contains("more than 2^30"));
    assert!(said(icosahedral(Division { root: u32::MAX, bisections: 0 }, 1.0)).contains("more than 2^30"));
    assert!(
        said(icosahedral(Division { root: 1, bisections: 0 }, -1.0)).starts_with("a sphere cannot have the radius -1")
    );
    for text in ["", "2", "R2", "B3", "R0B1", "R-1B1", "RxB1", "2B4", "R2B"] {
        assert!(text.parse::<Division>().is_err(), "{text}");
    }
    assert_eq!("R02B04".parse(), Ok(Division { root: 2, bisections: 4 }));
}
