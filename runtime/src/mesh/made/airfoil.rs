//! A wing's profile in the plane, and quadrilaterals around it.

use super::check_size;
use crate::error::{Error, Result};
use crate::mesh::{Mesh, op2};
use rayon::prelude::*;
use std::f64::consts::PI;

/// The circle that becomes the profile has its centre there on the real axis: the profile is 12% as thick as it is long.
const CENTRE: f64 = -0.0924;

/// How much larger the circle is than one through 1, which would give the profile a cusp.
const ROUNDED: f64 = 1.01;

/// How large a mesh is at least.
const HELP: &str = "give 3 cells or more around the profile, and 1 or more outwards: --size 120x60";

/// A mesh with the sets, maps and fields of OP2's airfoil: `around` cells around a profile, `outwards` from it to the far
/// field.
///
/// Nodes lie on circles of the plane w, whose radii grow by the same factor each time, and on rays; the map of N. Joukowsky,
/// z = w + 1/w (L. M. Milne-Thomson, "Theoretical Aerodynamics", chapter 6), turns the innermost circle into the profile. It keeps
/// angles, so that cells have right ones; they are nearly squares where there are twice as many around as outwards. The
/// profile's length is about 1; the far field is some 11 times that away. `bound` is 1 on the profile and 2 on the far field.
///
/// # Errors
/// There are too few cells, or too many for this machine.
pub fn airfoil(around: usize, outwards: usize) -> Result<Mesh> {
    if around < 3 || outwards < 1 {
        return Err(Error::call(format!("there is no airfoil mesh of {around}x{outwards} cells")).help(HELP));
    }
    let cells = around.checked_mul(outwards);
    check_size(cells.and_then(|cells| cells.checked_mul(2)), 40, "give a smaller --size")?;
    let cells = around * outwards;
    let nodes = cells + around;

    let radius = (1.0 - CENTRE) * ROUNDED;
    let places = (0..nodes).into_par_iter().flat_map_iter(|number| {
        let (ring, ray) = (number / around, number % around);
        let out = radius * (PI * ring as f64 / outwards as f64).exp();
        let (sine, cosine) = (2.0 * PI * ray as f64 / around as f64).sin_cos();
        let (u, v) = (CENTRE + out * cosine, out * sine);
        let square = u * u + v * v;
        // The profile is about 4 long, and its middle is at 0.
        [0.25 * (u + u / square) + 0.5, 0.25 * (v - v / square)]
    });
    let x: Vec<f64> = places.collect();

    let at = |ring: usize, ray: usize| (ring * around + ray % around) as i32;
    let corners = |ring, ray| [at(ring, ray), at(ring + 1, ray), at(ring + 1, ray + 1), at(ring, ray + 1)];
    let each = || (0..cells).map(|cell| (cell / around, cell % around));
    let cell_nodes = each().flat_map(|(ring, ray)| corners(ring, ray)).collect();
    // First the edges along rays, between cells of a ring; then those along circles, between rings.
    let along_rays = each().map(|(ring, ray)| {
        let [_, _, far, near] = corners(ring, ray);
        ([near, far], [at(ring, ray), at(ring, ray + 1)])
    });
    let along_circles = each().take(cells - around).map(|(ring, ray)| {
        let [_, first, second, _] = corners(ring, ray);
        ([second, first], [at(ring, ray), at(ring + 1, ray)])
    });
    let (edge_nodes, edge_cells): (Vec<[i32; 2]>, Vec<[i32; 2]>) = along_rays.chain(along_circles).unzip();
    let wall = (0..around).map(|ray| ([at(0, ray), at(0, ray + 1)], at(0, ray), 1));
    let far = (0..around).map(|ray| ([at(outwards, ray + 1), at(outwards, ray)], at(outwards - 1, ray), 2));
    let bedges: Vec<([i32; 2], i32, i32)> = wall.chain(far).collect();

    let mut mesh = op2::airfoil(
        [nodes, edge_nodes.len(), bedges.len(), cells],
        [
            edge_nodes.into_flattened(),
            edge_cells.into_flattened(),
            bedges.iter().flat_map(|(nodes, ..)| *nodes).collect(),
            bedges.iter().map(|(_, cell, _)| *cell).collect(),
            cell_nodes,
        ],
        x,
        bedges.iter().map(|(.., bound)| *bound).collect(),
    );
    mesh.origin = format!("airfoil {around}x{outwards}");
    Ok(mesh)
}
