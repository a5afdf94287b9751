//! The operators on an icosahedral grid, against spherical harmonics: each of them is on a level of its own.

use super::largest;
use crate::common::over_mesh::{Over, field, has_hole, points, slots};
use std::ops::Range;
use stencilc_runtime::mesh::Mesh;
use stencilc_runtime::mesh::made::{Division, icosahedral};

type Point = [f64; 3];

/// A function on the unit sphere whose Laplacian is -l (l + 1) times itself, and its gradient in space.
struct Harmonic {
    l: f64,
    value: fn(Point) -> f64,
    gradient: fn(Point) -> Point,
}

const HARMONICS: [Harmonic; 3] = [
    Harmonic { l: 1.0, value: |[_, _, z]| z, gradient: |_| [0.0, 0.0, 1.0] },
    Harmonic { l: 2.0, value: |[x, y, _]| x * y, gradient: |[x, y, _]| [y, x, 0.0] },
    Harmonic {
        l: 3.0,
        value: |[x, y, _]| x * (x * x - 3.0 * y * y),
        gradient: |[x, y, _]| [3.0 * (x * x - y * y), -6.0 * x * y, 0.0],
    },
];

fn grid(bisections: u32) -> Mesh {
    icosahedral(Division { root: 1, bisections }, 1.0).unwrap()
}

fn cross([a, b, c]: Point, [x, y, z]: Point) -> Point {
    [b * z - c * y, c * x - a * z, a * y - b * x]
}

fn dot(a: Point, b: Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What is known of each harmonic at the elements of a set, level after level.
fn exact(mesh: &Mesh, set: &str, value: impl Fn(&Harmonic, Point) -> f64) -> Vec<f64> {
    let x = points::<3>(mesh, "x", set);
    HARMONICS.iter().flat_map(|own| x.iter().map(|&x| value(own, x)).collect::<Vec<f64>>()).collect()
}

/// The component along the normals of edges of something that is made of each harmonic's gradient.
fn along_normals(mesh: &Mesh, of: fn(Point, Point) -> Point) -> Vec<f64> {
    let (x, normals) = (points::<3>(mesh, "x", "edge"), points::<3>(mesh, "normal", "edge"));
    let component = |own: &Harmonic, (x, normal): (&Point, &Point)| dot(of(*x, (own.gradient)(*x)), *normal);
    HARMONICS
        .iter()
        .flat_map(|own| x.iter().zip(&normals).map(|edge| component(own, edge)).collect::<Vec<_>>())
        .collect()
}

fn operator(mesh: &Mesh, name: &str, input: &str, numbers: Vec<f64>, output: &str) -> Vec<f64> {
    let arrays = vec![(input, numbers)];
    let levels = Some(HARMONICS.len());
    Over { file: "icosahedral", name, mesh, arrays, settings: Vec::new(), levels }.output(output)
}

/// By level: the root of the mean square of the errors, each weighing as much as the area around it.
fn means(found: &[f64], exact: &[f64], areas: &[f64]) -> Vec<f64> {
    let total: f64 = areas.iter().sum();
    let levels = found.chunks(areas.len()).zip(exact.chunks(areas.len()));
    levels
        .map(|(found, exact)| {
            let all = found.iter().zip(exact).zip(areas);
            (all.map(|((a, b), area)| (a - b) * (a - b) * area).sum::<f64>() / total).sqrt()
        })
        .collect()
}

/// Asserts that errors go down with a power of the width that lies in a band, from each grid to the one with halved edges.
fn check_order(about: &str, band: Range<f64>, errors: impl Fn(&Mesh) -> Vec<f64>) {
    let errors: Vec<Vec<f64>> = [3, 4, 5].map(|bisections| errors(&grid(bisections))).to_vec();
    for pair in errors.windows(2) {
        let orders: Vec<f64> = pair[0].iter().zip(&pair[1]).map(|(coarse, fine)| (coarse / fine).log2()).collect();
        assert!(orders.iter().all(|order| band.contains(order)), "{about}: orders {orders:?}, errors {errors:?}");
    }
}

#[test]
fn the_gradient_converges() {
    check_order("gradient", 1.45..1.6, |mesh| {
        let found = operator(mesh, "gradient", "a", exact(mesh, "cell", |own, x| (own.value)(x)), "grad");
        let lengths = field(mesh, "length", "edge").into_iter().zip(field(mesh, "dual_length", "edge"));
        let areas: Vec<f64> = lengths.map(|(length, dual)| length * dual).collect();
        means(&found, &along_normals(mesh, |_, gradient| gradient), &areas)
    });
}

/// On triangles the divergence is of first order, however smooth the field.
#[test]
fn the_divergence_converges() {
    check_order("divergence", 0.97..1.05, |mesh| {
        let found = operator(mesh, "divergence", "u", along_normals(mesh, |_, gradient| gradient), "div");
        let exact = exact(mesh, "cell", |own, x| -own.l * (own.l + 1.0) * (own.value)(x));
        means(&found, &exact, &field(mesh, "area", "cell"))
    });
}

fn vorticity(mesh: &Mesh) -> (Vec<f64>, Vec<f64>) {
    let found = operator(mesh, "curl", "u", along_normals(mesh, cross), "vorticity");
    (found, exact(mesh, "vertex", |own, x| -own.l * (own.l + 1.0) * (own.value)(x)))
}

/// The wind blows along the contours of each harmonic, whose Laplacian then is the vorticity.
#[test]
fn the_vorticity_converges() {
    check_order("vorticity", 1.05..1.55, |mesh| {
        let (found, exact) = vorticity(mesh);
        means(&found, &exact, &field(mesh, "dual_area", "vertex"))
    });
}

/// Pentagons have a hole among their six edges. Their symmetry makes them of second order.
#[test]
fn the_vorticity_is_right_at_the_twelve_pentagons() {
    check_order("vorticity of pentagons", 1.97..2.03, |mesh| {
        let (found, exact) = vorticity(mesh);
        let rows = slots(mesh, "vertex", "edges");
        let pentagons: Vec<usize> = (0..rows.len()).filter(|&vertex| has_hole(rows[vertex])).collect();
        assert_eq!(pentagons.len(), 12);
        let levels = found.chunks(rows.len()).zip(exact.chunks(rows.len()));
        levels.map(|(found, exact)| largest(pentagons.iter().map(|&at| found[at] - exact[at]))).collect()
    });
}

#[test]
fn what_flows_out_of_cells_flows_into_others() {
    let mesh = grid(4);
    let areas = field(&mesh, "area", "cell");
    let div = operator(&mesh, "divergence", "u", along_normals(&mesh, |_, gradient| gradient), "div");
    for level in div.chunks(areas.len()) {
        let total: f64 = level.iter().zip(&areas).map(|(div, area)| div * area).sum();
        assert!(total.abs() < 1e-13, "{total}");
    }
}

#[test]
fn a_gradient_has_no_vorticity() {
    let mesh = grid(4);
    let values = exact(&mesh, "cell", |own, x| (own.value)(x));
    let gradient = operator(&mesh, "gradient", "a", values, "grad");
    let vorticity = operator(&mesh, "curl", "u", gradient, "vorticity");
    assert!(largest(vorticity) < 1e-10);
}

#[test]
fn harmonics_fade_as_they_should_and_nothing_is_lost() {
    let mesh = grid(4);
    let areas = field(&mesh, "area", "cell");
    let before = exact(&mesh, "cell", |own, x| 1.0 + (own.value)(x));
    let (steps, dt) = (400.0, 1e-4);
    let over = Over {
        file: "icosahedral",
        name: "diffusion",
        mesh: &mesh,
        arrays: vec![("a", before.clone())],
        settings: vec![("steps", steps), ("dt", dt)],
        levels: Some(HARMONICS.len()),
    };
    let after = over.output("a");
    let cells = areas.len();
    for (level, own) in HARMONICS.iter().enumerate() {
        let total = |all: &[f64]| all[level * cells..].iter().zip(&areas).map(|(a, area)| a * area).sum::<f64>();
        assert!((total(&after) - total(&before)).abs() < 1e-12 * total(&before));
        let fading = (-own.l * (own.l + 1.0) * steps * dt).exp();
        let pairs = after[level * cells..].iter().zip(&before[level * cells..]).take(cells);
        let error = largest(pairs.map(|(after, before)| after - (1.0 + fading * (before - 1.0))));
        assert!(error < 0.01, "harmonic {}: {error}", own.l);
    }
}
