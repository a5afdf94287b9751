//! The kernels that make one number of many: neighbours become one pairwise, as in the interpreter, bit for bit.

use crate::error::Result;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::ir::mesh::Fold;
use stencilc_compiler::kernel::{Element, machine};

/// Threads of a block.
pub const BLOCK: u32 = machine::FOLDING;

/// Numbers that a block makes one of.
pub const NUMBERS: usize = machine::FOLDED;

/// The kernel's name.
pub fn name(fold: Fold, precision: Precision) -> String {
    format!("fold_{}_{}", fold.name(), precision.name())
}

/// The kernel, which makes one number of each block of [`NUMBERS`]. A number whose neighbour does not exist stays as it is.
///
/// # Errors
/// A template is broken, which is a fault of the compiler.
pub fn text(fold: Fold, precision: Precision) -> Result<String> {
    let real = match precision {
        Precision::F32 => Element::F32,
        Precision::F64 => Element::F64,
    };
    Ok(cuda::text(&machine::fold(&name(fold, precision), fold, real))?)
}
