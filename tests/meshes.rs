//! Stencils over meshes that come along, against exact fields, and what they conserve.

mod core;
mod elsewhere;
mod flood;
mod hexahedra;
mod icosahedral;
pub mod levels;
mod quadrilaterals;
mod sweeps;
mod williamson;

/// The largest absolute value.
fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    // A NaN is as large as can be.
    numbers.into_iter().fold(0.0, |most, own| if own.abs() <= most { most } else { own.abs() })
}
