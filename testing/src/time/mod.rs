//! Random programs in time: small stencils, calls of them, loops, boundaries.
//!
//! [`generate`] writes one as a [`tree`]; [`evaluate`] says what it means, cell by cell, from `docs/language.md` alone: it
//! shares nothing with the compiler, not even the parser; [`case`] compares that with the interpreter, the interpreter with
//! itself after fusing, and with kernels; [`shrink`] makes what fails small.

pub mod case;
pub mod evaluate;
pub mod generate;
mod print;
mod shrink;
pub mod tree;
