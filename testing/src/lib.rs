//! Random programs: stencils of the whole language, computed in every way there is, and compared to the last bit.
//!
//! [`generate`] writes a program, and [`case`] chooses a grid, a storage, a strategy and their knobs. It is computed by the
//! interpreter and by [`evaluate`], a second meaning of the language that shares nothing with the compiler but the parser;
//! [`device`] runs its kernel. Programs in time have a generator and an evaluator of their own: [`time`]; so have stencils over
//! meshes: [`over`]. Not shipped with the program.

pub mod attack;
pub mod batch;
pub mod case;
pub mod constructs;
mod device;
pub mod evaluate;
pub mod generate;
pub mod over;
mod print;
mod shrink;
pub mod subject;
pub mod time;
pub mod tree;
