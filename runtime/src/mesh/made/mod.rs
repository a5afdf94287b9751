//! Meshes that are computed: to begin with, to test and to measure with.

mod airfoil;
mod boxes;
mod icosahedral;
mod limited;
mod sphere;
#[cfg(test)]
mod tests;

pub use airfoil::airfoil;
pub use boxes::{Perturbed, hexahedra, triangles};
pub use icosahedral::{Division, icosahedral};
pub use limited::{Piece, limited};

use crate::array::Data;
use crate::error::{Error, Result};
use crate::memory;
use crate::mesh::{MOST, Mesh};

/// Refuses what has too many elements or what this machine's memory does not hold. The largest set has `most` elements, and
/// all together take `bytes`.
fn check_size(most: Option<usize>, bytes_each: usize, help: &str) -> Result<usize> {
    let most = most
        .filter(|&most| most <= MOST)
        .ok_or_else(|| Error::call("a set of this mesh would have more than 2^30 elements".to_owned()).help(help))?;
    memory::check(most as u128 * bytes_each as u128, &format!("a mesh with {most} elements in a set takes"), help)?;
    Ok(most)
}

/// Fields that hold how large something is.
const SIZES: [&str; 4] = ["length", "dual_length", "area", "dual_area"];

/// Whether all that a made mesh says is a number, and what says how large something is can be divided by.
///
/// # Errors
/// It is so large, or so small, that double precision has no number for a length or an area in it.
pub fn check_numbers(mesh: &Mesh) -> Result<()> {
    for field in &mesh.fields {
        let numbers: &[f64] = match &field.data {
            Data::F64(numbers) => numbers,
            Data::F32(_) | Data::I32(_) | Data::Bool(_) => continue,
        };
        let is_size = SIZES.contains(&field.name.as_str());
        let is_wrong = |number: &&f64| !number.is_finite() || is_size && !(number.is_normal() && **number > 0.0);
        if let Some(number) = numbers.iter().find(is_wrong) {
            return Err(Error::call(format!("`{}` of this mesh would be {number:?}", mesh.field_place(field)))
                .help("lengths and areas have to be numbers of double precision: give a mesh of another size"));
        }
    }
    Ok(())
}
