//! What calls stencils over meshes.

pub mod evaluate;
pub mod generate;
pub mod shrink;
pub mod tree;
