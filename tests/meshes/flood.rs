//! Shallow water on triangles: nothing is lost, water at rest stays at rest, and a dam breaks as it should.

use super::largest;
use crate::common::over_mesh::{Over, points, slots};
use std::collections::BTreeMap;
use stencilc_runtime::mesh::Mesh;
use stencilc_runtime::mesh::made::{Perturbed, triangles};

const G: f64 = 9.81;

/// The middles of cells, and their areas.
fn cells(mesh: &Mesh) -> Vec<([f64; 2], f64)> {
    let x = points::<2>(mesh, "x", "node");
    let rows = slots(mesh, "cell", "nodes").into_iter();
    rows.map(|row| {
        let [a, b, c] = [0, 1, 2].map(|at| x[row[at] as usize]);
        let middle = [0, 1].map(|axis| (a[axis] + b[axis] + c[axis]) / 3.0);
        (middle, 0.5 * ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])))
    })
    .collect()
}

fn flood(mesh: &Mesh, w: Vec<[f64; 3]>, bed: Vec<f64>, steps: u32) -> BTreeMap<String, Vec<f64>> {
    let arrays = vec![("w", w.as_flattened().to_vec()), ("bed", bed)];
    let settings = vec![("steps", f64::from(steps))];
    Over { file: "flood", name: "flood", mesh, arrays, settings, levels: None }.run()
}

/// A hill that is an island, and a hole.
fn bumpy([x, y]: [f64; 2]) -> f64 {
    let hill = |at: [f64; 2], height: f64| height * (-40.0 * ((x - at[0]).powi(2) + (y - at[1]).powi(2))).exp();
    hill([0.3, 0.25], 1.4) + hill([0.7, 0.2], 0.6) - hill([0.6, 0.4], 0.5)
}

#[test]
fn a_lake_at_rest_stays_at_rest() {
    let mesh = triangles(24, 12, Perturbed { by: 0.2, seed: 3 }).unwrap();
    let bed: Vec<f64> = cells(&mesh).iter().map(|(middle, _)| bumpy(*middle)).collect();
    let before: Vec<[f64; 3]> = bed.iter().map(|bed| [(1.0 - bed).max(0.0), 0.0, 0.0]).collect();
    assert!(before.iter().any(|w| w[0] == 0.0) && before.iter().any(|w| w[0] > 1.2));
    let after = flood(&mesh, before.clone(), bed, 100);
    assert!(after["time"][0] > 0.05);
    let moved = after["w"].iter().zip(before.as_flattened()).map(|(after, before)| after - before);
    assert!(largest(moved) < 1e-13);
}

#[test]
fn no_water_is_lost_and_none_is_less_than_nothing() {
    let mesh = triangles(24, 12, Perturbed { by: 0.2, seed: 3 }).unwrap();
    let cells = cells(&mesh);
    let bed: Vec<f64> = cells.iter().map(|(middle, _)| bumpy(*middle)).collect();
    // A wall of water before the island.
    let depth = |([x, _], bed): ([f64; 2], f64)| (if x < 0.15 { 1.8 } else { 0.5 } - bed).max(0.0);
    let before: Vec<[f64; 3]> = cells
        .iter()
        .zip(&bed)
        .map(|(cell, bed)| [depth((cell.0, *bed)), 0.2, -0.1])
        .map(|w| if w[0] > 0.0 { w } else { [0.0; 3] })
        .collect();
    let after = flood(&mesh, before.clone(), bed, 300);
    let after = after["w"].as_chunks::<3>().0;
    let total = |all: &[[f64; 3]]| all.iter().zip(&cells).map(|(w, (_, area))| w[0] * area).sum::<f64>();
    assert!((total(after) - total(&before)).abs() < 1e-13 * total(&before));
    assert!(after.iter().all(|w| w[0] >= 0.0 && w.iter().all(|part| part.is_finite())));
    assert!(largest(after.iter().zip(&before).map(|(a, b)| a[0] - b[0])) > 0.2, "nothing has moved");
}

const HIGH: f64 = 2.0;
const LOW: f64 = 1.0;

/// The depth after a dam has broken in the middle of a channel (J. J. Stoker, "Water Waves" (1957), section 10.8): what is
/// above runs down as a rarefaction, what is below is run over by a bore.
fn stoker(x: f64, time: f64) -> f64 {
    let velocity = |depth: f64| 2.0 * ((G * HIGH).sqrt() - (G * depth).sqrt());
    let bore = |depth: f64| (depth - LOW) * (0.5 * G * (1.0 / depth + 1.0 / LOW)).sqrt();
    // Where both have the same velocity.
    let (mut low, mut high) = (LOW, HIGH);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if velocity(middle) > bore(middle) { low = middle } else { high = middle }
    }
    let depth = low;
    let speed = (x - 0.5) / time;
    if speed < -(G * HIGH).sqrt() {
        HIGH
    } else if speed < velocity(depth) - (G * depth).sqrt() {
        (2.0 * (G * HIGH).sqrt() - speed).powi(2) / (9.0 * G)
    } else if speed < depth * velocity(depth) / (depth - LOW) {
        depth
    } else {
        LOW
    }
}

/// The mean error of the depth, in a channel of so many squares, of which the time is much the same.
fn dam_break(squares: u32) -> f64 {
    let mesh = triangles(squares as usize, 4, Perturbed { by: 0.0, seed: 1 }).unwrap();
    let cells = cells(&mesh);
    let before = cells.iter().map(|([x, _], _)| [if *x < 0.5 { HIGH } else { LOW }, 0.0, 0.0]).collect();
    let after = flood(&mesh, before, vec![0.0; cells.len()], 2 * squares);
    let (w, time) = (&after["w"], after["time"][0]);
    assert!((0.03..0.1).contains(&time), "{time}");
    let (errors, all) =
        cells.iter().zip(w.as_chunks::<3>().0).fold((0.0, 0.0), |(errors, all), ((middle, area), w)| {
            (errors + area * (w[0] - stoker(middle[0], time)).abs(), all + area)
        });
    errors / all
}

#[test]
fn a_dam_breaks_as_it_should() {
    let errors = [50, 100, 200].map(dam_break);
    assert!(errors[2] < 0.02, "{errors:?}");
    assert!(errors.windows(2).all(|pair| pair[1] < 0.75 * pair[0]), "{errors:?}");
}
