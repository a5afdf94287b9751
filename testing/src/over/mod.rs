//! Random stencils over random meshes: gathers, sums over maps, holes, lets read elsewhere, vectors, increments, reductions.
//!
//! [`generate`] writes one as a [`tree`]; [`evaluate`] says what it means, element by element, from `docs/language.md` alone: it
//! shares nothing with the compiler, not even the parser; [`case`] compares that with the interpreter. [`program`] is the same for whole programs.

pub mod case;
mod evaluate;
mod generate;
mod kernels;
pub mod program;
mod tree;
