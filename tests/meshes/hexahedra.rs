//! Stencils on hexahedra whose nodes are moved at random: volumes and forces, and the fluxes of a gas.

use super::largest;
use crate::common::over_mesh::{Over, has_hole, points, slots};
use stencilc_runtime::mesh::Mesh;
use stencilc_runtime::mesh::made::{Perturbed, hexahedra};

const CELLS: usize = 6 * 5 * 4;
/// The box is 1 long along the axis with the first number of cells.
const VOLUME: f64 = 5.0 * 4.0 / 36.0;

fn boxes(by: f64) -> Mesh {
    hexahedra(6, 5, 4, Perturbed { by, seed: 7 }).unwrap()
}

fn over<'a>(file: &'a str, name: &'a str, mesh: &'a Mesh, arrays: Vec<(&'a str, Vec<f64>)>) -> Over<'a> {
    Over { file, name, mesh, arrays, settings: Vec::new(), levels: None }
}

fn forces(mesh: &Mesh, stress: Vec<f64>) -> Vec<[f64; 3]> {
    let nodes = points::<3>(mesh, "x", "node").len();
    let arrays = vec![("stress", stress), ("force", vec![0.0; 3 * nodes])];
    over("hexahedral8", "hexahedral8", mesh, arrays).output("force").as_chunks::<3>().0.to_vec()
}

/// For each element of a set, whether an element of the border leads to it.
fn on_border(mesh: &Mesh, border: &str, map: &str, count: usize) -> Vec<bool> {
    let mut found = vec![false; count];
    slots(mesh, border, map).into_iter().flatten().for_each(|&at| found[at as usize] = true);
    found
}

fn sum_of(rows: impl Iterator<Item = [f64; 3]>) -> [f64; 3] {
    rows.fold([0.0; 3], |[a, b, c], [x, y, z]| [a + x, b + y, c + z])
}

#[test]
fn volumes_fill_the_box() {
    let mesh = boxes(0.2);
    let volumes = over("hexahedral8", "volume", &mesh, Vec::new()).output("volume");
    assert!(volumes.iter().all(|&own| own > 0.0));
    assert!(largest(volumes.iter().map(|own| own - VOLUME / CELLS as f64)) > 1e-4, "nothing was moved");
    assert!((volumes.iter().sum::<f64>() - VOLUME).abs() < 1e-14);
}

#[test]
fn forces_of_any_stress_cancel_out() {
    let mesh = boxes(0.2);
    let stress: Vec<f64> = (0..3 * CELLS).map(|at| ((at * at) as f64).sin()).collect();
    let forces = forces(&mesh, stress);
    assert!(largest(forces.iter().copied().flatten()) > 1e-3);
    assert!(largest(sum_of(forces.into_iter())) < 1e-15);
}

#[test]
fn the_same_stress_everywhere_gives_no_force_inside() {
    let mesh = boxes(0.2);
    let forces = forces(&mesh, [1.0, 2.0, -3.0].repeat(CELLS));
    let border = on_border(&mesh, "bface", "nodes", forces.len());
    let inside = || forces.iter().zip(&border).filter(|(_, border)| !**border).map(|(own, _)| *own);
    assert_eq!(inside().count(), 5 * 4 * 3);
    assert!(largest(inside().flatten()) < 1e-16);
}

/// Moved outwards by a part of where they are, nodes do as much work against a pressure as the volume that they win: forces
/// are the derivative of the volume.
#[test]
fn a_pressure_pushes_as_the_volume_grows() {
    let mesh = boxes(0.2);
    let forces = forces(&mesh, vec![-1.0; 3 * CELLS]);
    let x = points::<3>(&mesh, "x", "node");
    let work: f64 = forces.iter().zip(&x).flat_map(|(f, x)| (0..3).map(move |axis| f[axis] * x[axis])).sum();
    assert!((work - 3.0 * VOLUME).abs() < 1e-14, "{work}");
}

const GAMMA: f64 = 1.4;

/// Density, momentum and energy of a density, velocity and pressure.
fn conserved([density, u, v, w, pressure]: [f64; 5]) -> [f64; 5] {
    let energy = pressure / (GAMMA - 1.0) + 0.5 * density * (u * u + v * v + w * w);
    [density, density * u, density * v, density * w, energy]
}

fn centres(mesh: &Mesh) -> Vec<[f64; 3]> {
    let x = points::<3>(mesh, "x", "node");
    let middle = |row: &[i32]| sum_of(row.iter().map(|&node| x[node as usize])).map(|sum| sum / 8.0);
    slots(mesh, "cell", "nodes").into_iter().map(middle).collect()
}

/// What fluxes through inner faces make of states, with the same gradients in all cells.
fn rates(mesh: &Mesh, state: impl Fn([f64; 3]) -> [f64; 5], gradients: [[f64; 5]; 3]) -> Vec<[f64; 5]> {
    let centres = centres(mesh);
    let [gx, gy, gz] = gradients.map(|own| own.repeat(CELLS));
    let q = centres.iter().flat_map(|&centre| conserved(state(centre))).collect();
    let centre = centres.as_flattened().to_vec();
    let rate = vec![0.0; 5 * CELLS];
    let arrays = vec![("centre", centre), ("q", q), ("gx", gx), ("gy", gy), ("gz", gz), ("rate", rate)];
    over("face_flux28", "face_flux28", mesh, arrays).output("rate").as_chunks::<5>().0.to_vec()
}

/// The cells all of whose faces are inner ones.
fn inner_cells(mesh: &Mesh) -> Vec<usize> {
    let faces = slots(mesh, "cell", "faces");
    let inner: Vec<usize> = (0..CELLS).filter(|&cell| !has_hole(faces[cell])).collect();
    assert_eq!(inner.len(), 4 * 3 * 2);
    inner
}

#[test]
fn a_uniform_gas_stays_as_it_is() {
    let mesh = boxes(0.2);
    let rates = rates(&mesh, |_| [1.2, 0.3, -0.2, 0.5, 3.0], [[0.0; 5]; 3]);
    assert!(largest(rates.iter().copied().flatten()) > 0.01, "cells on the border lack faces");
    assert!(largest(inner_cells(&mesh).into_iter().flat_map(|cell| rates[cell])) < 1e-15);
}

#[test]
fn what_leaves_a_cell_enters_another() {
    let mesh = boxes(0.2);
    let state = |[x, y, z]: [f64; 3]| [1.0 + 0.3 * (9.0 * x).sin(), y, -0.5, x * z, 2.0 + (7.0 * z).cos()];
    let rates = rates(&mesh, state, [[0.1; 5], [0.2; 5], [-0.1; 5]]);
    for part in 0..5 {
        let (sum, most) = (rates.iter().map(|own| own[part]).sum::<f64>(), largest(rates.iter().map(|own| own[part])));
        assert!(sum.abs() < 1e-13 * most && most > 1e-3, "part {part}: {sum} of {most}");
    }
}

/// With gradients, a density that grows along a line is carried along exactly.
#[test]
fn a_linear_density_is_carried_along() {
    let mesh = boxes(0.0);
    let (wind, slope) = ([0.3, -0.2, 0.5], [0.4, 0.1, -0.3]);
    let density = |x: [f64; 3]| 1.0 + (0..3).map(|axis| slope[axis] * x[axis]).sum::<f64>();
    let gradients = slope.map(|slope| [slope, 0.0, 0.0, 0.0, 0.0]);
    let rates = rates(&mesh, |x| [density(x), wind[0], wind[1], wind[2], 1.0], gradients);
    let carried = -(0..3).map(|axis| wind[axis] * slope[axis]).sum::<f64>() * VOLUME / CELLS as f64;
    let half: f64 = wind.iter().map(|own| 0.5 * own * own).sum();
    let exact = [1.0, wind[0], wind[1], wind[2], half].map(|part| part * carried);
    for cell in inner_cells(&mesh) {
        let errors = rates[cell].iter().zip(exact).map(|(found, exact)| found - exact);
        assert!(largest(errors) < 1e-15, "{:?} {exact:?}", rates[cell]);
    }
}

/// Faster than sound, only what lies upstream counts.
#[test]
fn faster_than_sound_the_flux_is_that_of_upstream() {
    let mesh = boxes(0.0);
    let wind = 3.0;
    let state = |x: f64| [1.0 + 0.2 * (5.0 * x).sin(), wind + 0.1 * x, 0.0, 0.0, 1.0 + 0.1 * (3.0 * x).cos()];
    let rates = rates(&mesh, |[x, ..]| state(x), [[0.0; 5]; 3]);
    let flux = |x: f64| {
        let own = state(x);
        let [density, momentum, .., energy] = conserved(own);
        [momentum, momentum * own[1] + own[4], 0.0, 0.0, (energy + own[4]) * own[1] + 0.0 * density]
    };
    let (width, centres) = (1.0 / 6.0, centres(&mesh));
    for cell in inner_cells(&mesh) {
        let x = centres[cell][0];
        let (here, before) = (flux(x), flux(x - width));
        let errors = (0..5).map(|part| rates[cell][part] - width * width * (before[part] - here[part]));
        assert!(largest(errors) < 1e-14, "{:?}", rates[cell]);
    }
}
