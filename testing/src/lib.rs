//! Random programs: stencils of the whole language, computed in every way there is, and compared to the last bit.
//!
//! A [`subject::Case`] is a program and all that is chosen for it, of one of three subjects: a stencil on a grid ([`case`], which
//! [`generate`] writes and [`evaluate`] gives a second meaning), a program on a grid ([`time`]), or a program over a mesh ([`over`]).
//! [`batch`] computes many. Not shipped with the program.

pub mod attack;
pub mod batch;
pub mod case;
pub mod constructs;
mod device;
pub mod evaluate;
pub mod generate;
pub mod graph;
pub mod over;
mod print;
mod shrink;
pub mod subject;
pub mod time;
pub mod tree;
