//! The functions that devices round differently, each as one algorithm of the language's own.
//!
//! `double.rs` and `single.rs`, with their common `angles.rs`, `turn.rs` and `wide.rs` are read twice: by the Rust compiler, for the interpreter and the
//! folding of constants, and as text by [`cpp`], which writes them down as C++. So there is one text of each function. Every operation in it
//! is one that all devices compute alike: those of IEEE 754, the fused multiply-add, whole numbers, binary digits.

#![allow(clippy::excessive_precision, clippy::approx_constant, reason = "coefficients stand as they were computed")]

pub(crate) mod cpp;
pub(crate) mod double;
mod operations;
pub(crate) mod single;
mod turn;
mod wide;

pub(crate) use operations::choose;
