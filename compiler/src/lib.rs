//! From the text of a stencil to the text of its CUDA kernel.

pub mod analysis;
pub mod ast;
pub mod diagnostic;
pub mod grid;
pub mod ir;
pub mod lower;
pub mod parse;
pub mod source;
