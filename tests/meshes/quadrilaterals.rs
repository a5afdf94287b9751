//! Forces in an elastic body, on the quadrilaterals around a profile.

use super::largest;
use crate::common::over_mesh::{Over, points, slots};
use stencilc_runtime::mesh::Mesh;
use stencilc_runtime::mesh::made::airfoil;

const LAMBDA: f64 = 1.7;
const MU: f64 = 0.6;

/// Forces where nodes are displaced by a function of where they are.
fn forces(mesh: &Mesh, displaced: impl Fn([f64; 2]) -> [f64; 2]) -> Vec<[f64; 2]> {
    let x = points::<2>(mesh, "x", "node");
    let arrays = vec![("u", x.iter().flat_map(|&x| displaced(x)).collect()), ("force", vec![0.0; 2 * x.len()])];
    let settings = vec![("lambda", LAMBDA), ("mu", MU)];
    let over = Over { file: "elasticity4", name: "elasticity4", mesh, arrays, settings, levels: None };
    over.output("force").as_chunks::<2>().0.to_vec()
}

fn linear([x, y]: [f64; 2]) -> [f64; 2] {
    [1.0 + 0.1 * x + 0.3 * y, 2.0 - 0.2 * x + 0.05 * y]
}

/// The patch test: with the same strain everywhere, nothing pulls at a node inside.
#[test]
fn the_same_strain_everywhere_gives_no_force_inside() {
    let mesh = airfoil(24, 10).unwrap();
    let forces = forces(&mesh, linear);
    let mut border = vec![false; forces.len()];
    slots(&mesh, "bedge", "nodes").into_iter().flatten().for_each(|&node| border[node as usize] = true);
    let inside = || forces.iter().zip(&border).filter(|(_, border)| !**border).map(|(own, _)| *own);
    assert!(inside().count() > 100);
    let most = largest(forces.iter().copied().flatten());
    assert!(largest(inside().flatten()) < 1e-14 * most && most > 0.1, "{}", largest(inside().flatten()));
}

#[test]
fn forces_cancel_out() {
    let mesh = airfoil(24, 10).unwrap();
    let forces = forces(&mesh, |[x, y]| [(x * y).sin(), (x - 2.0 * y).cos()]);
    for axis in 0..2 {
        let sum: f64 = forces.iter().map(|own| own[axis]).sum();
        assert!(sum.abs() < 1e-13 * largest(forces.iter().map(|own| own[axis])));
    }
}

/// Moved a little more, nodes do as much work as the stress does on the strain, by Hooke's law.
#[test]
fn the_work_of_the_forces_is_that_of_the_stress() {
    let mesh = airfoil(24, 10).unwrap();
    let (forces, x) = (forces(&mesh, linear), points::<2>(&mesh, "x", "node"));
    let cells = slots(&mesh, "cell", "nodes");
    // The shoelace formula.
    let area: f64 = cells
        .iter()
        .map(|row| {
            let corner = |at: usize| x[row[at % 4] as usize];
            (0..4).map(|at| corner(at)[0] * corner(at + 1)[1] - corner(at + 1)[0] * corner(at)[1]).sum::<f64>() / 2.0
        })
        .sum();
    let (xx, yy, xy) = (0.1, 0.05, 0.3 - 0.2);
    let stress = [LAMBDA * (xx + yy) + 2.0 * MU * xx, LAMBDA * (xx + yy) + 2.0 * MU * yy, MU * xy];
    let work = |along: usize, by: usize| forces.iter().zip(&x).map(|(f, x)| f[along] * x[by]).sum::<f64>();
    for (found, exact) in
        [(work(0, 0), stress[0]), (work(1, 1), stress[1]), (work(0, 1), stress[2]), (work(1, 0), stress[2])]
    {
        assert!((found - exact * area).abs() < 1e-12 * area.abs(), "{found} {}", exact * area);
    }
}
