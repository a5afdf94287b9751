//! The kernels that make one number of many: neighbours become one pairwise, as in the interpreter, bit for bit.

use crate::error::Result;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::ir::mesh::Fold;
use stencilc_compiler::kernel::{Element, machine};

/// Numbers that a block makes one of.
pub const NUMBERS: usize = machine::FOLDED;

/// What of many numbers a kernel makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Folds {
    /// Each [`NUMBERS`] that follow each other.
    Blocks,
    /// The same, on a CPU.
    Turns,
    /// The tiles of a table.
    Tiles,
}

impl Folds {
    /// Threads of a block.
    pub fn threads(self) -> u32 {
        match self {
            Folds::Blocks | Folds::Tiles => machine::FOLDING,
            Folds::Turns => 1,
        }
    }
}

/// The kernel's name.
pub fn name(folds: Folds, fold: Fold, precision: Precision) -> String {
    let what = match folds {
        Folds::Blocks => "fold",
        Folds::Turns => "fold_in_turns",
        Folds::Tiles => "fold_tiles",
    };
    format!("{what}_{}_{}", fold.name(), precision.name())
}

/// The kernel. A number whose neighbour does not exist stays as it is.
///
/// # Errors
/// A template is broken, which is a fault of the compiler.
pub fn text(folds: Folds, fold: Fold, precision: Precision) -> Result<String> {
    let real = match precision {
        Precision::F32 => Element::F32,
        Precision::F64 => Element::F64,
    };
    let name = name(folds, fold, precision);
    Ok(cuda::text(&match folds {
        Folds::Blocks => machine::fold(&name, fold, real),
        Folds::Turns => machine::fold_in_turns(&name, fold, real),
        Folds::Tiles => machine::fold_tiles(&name, fold, real),
    })?)
}
