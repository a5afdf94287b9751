//! Random programs over random meshes, those of one call among them: gathers, sums over maps, holes, lets read elsewhere, vectors,
//! increments, reductions; calls that add to elements, go on with the sums, look at them through maps, fold numbers, in loops.
//!
//! [`generate`] writes a stencil as a [`tree`], and [`evaluate`] says what it means, element by element, from `docs/language.md` alone:
//! it shares nothing with the compiler, not even the parser. [`program`] is the same for what calls them, and [`case`] compares.

pub mod case;
mod evaluate;
mod generate;
mod program;
mod tree;
