//! Finds the fastest kernel of a stencil, and remembers it.
//!
//! ```text
//! search: which candidates are worth a try -> kernels: compiled and timed -> the fastest, measured as `bench` does, compared
//! with the interpreter -> database: one entry a stencil, precision and grid
//! ```
//!
//! Plans of programs and ways over meshes are searched in the same way: [`crate::measure`].

pub mod database;
pub(crate) mod kernels;
pub mod search;
#[cfg(test)]
mod tests;

pub use kernels::{Tuned, Tuner};
