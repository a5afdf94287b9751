//! Tests in the source: a stencil, numbers to run it on, and what is expected of it, all in the IR.
//!
//! Nothing here has a meaning of its own. What a test gives and expects is written down as two more stencils, which read
//! the coordinates of the cells as fields and are computed by the interpreter like any other.

use super::{FieldId, Stencil};
use crate::grid::Grid;
use crate::source::Span;

/// Names of the fields that hold the coordinates i and j in a test's own stencils: `int`, on (i, j).
pub const COORDINATES: [&str; 2] = ["i", "j"];

/// `test "title" { ... }`
#[derive(Clone, Debug)]
pub struct Test {
    /// What the user calls it.
    pub title: String,
    /// Where the title stands.
    pub span: Span,
    /// The name of the stencil that is tested, which is one of the same file.
    pub stencil: String,
    /// Where the test names it.
    pub stencil_span: Span,
    /// The grid, halo included.
    pub grid: Grid,
    /// Its outputs are the inputs of the stencil, by name. It reads the coordinates, at whatever offset: they exist beyond
    /// the grid, too. Parameters of the stencil that the test sets have their value as a default here.
    pub inputs: Stencil,
    /// Reads the stencil's fields, all as they are afterwards, and the coordinates. Its outputs are those of `expectations`.
    pub checks: Stencil,
    /// What is expected, in the order of the text.
    pub expectations: Vec<Expectation>,
}

/// `expect abs(res) < 1e-12`
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Where it stands, with the word `expect`.
    pub span: Span,
    /// The output that says whether it is true.
    pub truth: FieldId,
    /// Parts of the expression worth a look where it is false: where each stands, and the output that holds its value.
    pub parts: Vec<(Span, FieldId)>,
}
