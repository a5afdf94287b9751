//! Divisions that share what they can.
//!
//! A device divides by multiplying with an approximate inverse and correcting the result, and leaves for a slow path of its own
//! if a number comes near the ends of the range. Kernels of fluids divide by the same density time and again. Here the inverse is
//! computed once for all quotients by a number, and a thread leaves at most once: where any division is not a usual one, it
//! computes everything again, by the device's own divisions. The bits are those of the division, either way: P. W. Markstein,
//! "Computation of elementary functions on the IBM RISC System/6000 processor", 1990.

use crate::ir::{Binary, Kind, MeshStencil, Node, Precision};

/// Whether real numbers are divided anywhere.
pub fn divides(stencil: &MeshStencil) -> bool {
    stencil.stencil.bodies().any(|body| {
        body.iter().any(|(id, node)| matches!(node, Node::Binary(Binary::Div, ..)) && body.kind_of(id) == Kind::Real)
    })
}

/// The inverse of a number, if a division by it is a usual one.
pub fn inverse_of(number: f64, precision: Precision) -> Option<f64> {
    match precision {
        Precision::F64 => (1e-30..1e30).contains(&number.abs()).then_some(1.0 / number),
        Precision::F32 => (1e-8..1e8).contains(&number.abs()).then_some(f64::from(1.0 / number as f32)),
    }
}
