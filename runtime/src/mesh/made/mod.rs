//! Meshes that are computed: to begin with, to test and to measure with.

mod airfoil;
mod boxes;
mod icosahedral;
mod sphere;
#[cfg(test)]
mod tests;

pub use airfoil::airfoil;
pub use boxes::{Perturbed, hexahedra, triangles};
pub use icosahedral::{Division, icosahedral};

use crate::error::{Error, Result};
use crate::mesh::MOST;
use crate::problem;

/// Refuses what has too many elements or what this machine's memory does not hold. The largest set has `most` elements, and
/// all together take `bytes`.
fn check_size(most: Option<usize>, bytes_each: usize, help: &str) -> Result<usize> {
    let most = most
        .filter(|&most| most <= MOST)
        .ok_or_else(|| Error::call("a set of this mesh would have more than 2^30 elements".to_owned()).help(help))?;
    problem::check_room(
        most as u128 * bytes_each as u128,
        &format!("a mesh with {most} elements in a set takes"),
        help,
    )?;
    Ok(most)
}
