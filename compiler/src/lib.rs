//! From the text of a stencil to the text of its CUDA kernel.
//!
//! One way, no back and forth:
//!
//! ```text
//! text -> parse -> ast -> lower -> ir -> contract, fold, settle -> analysis, plan -> cuda
//! ```
//!
//! [`check`] goes as far as the IR, [`plan::prepare`] contracts and folds it, [`plan::plan`] makes a kernel of it by a storage
//! and an access strategy, [`cuda::print`] and [`cuda::build`] write it down. Nothing here does input or output, needs CUDA
//! or starts a thread, but for the one on whose stack a text is read ([`depth`]); nothing panics, whatever the text.

pub mod access;
pub mod analysis;
pub mod ast;
pub mod cells;
pub mod cuda;
pub mod depth;
pub mod device;
pub mod diagnostic;
mod foreign;
pub mod fuse;
pub mod grid;
pub mod ir;
pub mod kernel;
pub mod lower;
mod math;
pub mod mesh;
pub mod names;
pub mod parse;
pub mod plan;
pub mod program;
pub mod registry;
pub mod source;
pub mod step;
pub mod storage;
pub mod text;

/// Reads a source text as far as the IR of its stencils.
pub fn check(source: &source::Source) -> lower::Lowered {
    match parse::parse(source) {
        Ok(file) => lower::lower(&file, &source.name),
        Err(told) => lower::Lowered { diagnostics: vec![told], ..lower::Lowered::default() },
    }
}
