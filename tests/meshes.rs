//! Stencils over meshes that come along, against exact fields, and what they conserve.

mod common;
#[path = "meshes/flood.rs"]
mod flood;
#[path = "meshes/hexahedra.rs"]
mod hexahedra;
#[path = "meshes/icosahedral.rs"]
mod icosahedral;
#[path = "meshes/levels.rs"]
mod levels;
#[path = "meshes/quadrilaterals.rs"]
mod quadrilaterals;

/// The largest absolute value.
fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    // A NaN is as large as can be.
    numbers.into_iter().fold(0.0, |most, own| if own.abs() <= most { most } else { own.abs() })
}
