//! Tests in the source: a stencil, numbers to run it on, and what is expected of it, all in the IR.
//!
//! Nothing here has a meaning of its own. What a test gives and expects is written down as two more stencils, which read
//! the coordinates of the cells as fields and are computed by the interpreter like any other.

use super::{FieldId, MeshStencil, SetId, Stencil};
use crate::grid::Grid;
use crate::named::named;
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

/// Names of the fields that hold the number of an element, how many elements its set has, and where it is, in a test's own
/// stencils over a mesh: `int` on the set, `int` on (), and `real[3]` on the set. No field of the user's has such names.
pub const OF_ELEMENT: [&str; 3] = ["i", "ni", "the position"];

named! {
    /// A kind of mesh that can be made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MadeKind {
        /// Quadrilaterals around a wing's profile.
        Airfoil = "airfoil";
        /// Triangles on a sphere.
        Icosahedral = "icosahedral";
        /// A piece of such a sphere around its pole, with zones.
        Limited = "limited";
        /// A rectangle of triangles.
        Triangles = "triangles";
        /// A box of cubes.
        Hexahedra = "hexahedra";
    }
}

/// The mesh of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// What is made.
    pub kind: MadeKind,
    /// How large: as many numbers as [`MadeKind::sizes`] names.
    pub sizes: Vec<usize>,
}

impl MadeKind {
    /// What its numbers are, in order.
    pub fn sizes(self) -> &'static [&'static str] {
        match self {
            MadeKind::Airfoil => &["cells around the profile", "cells outwards"],
            MadeKind::Icosahedral => &["parts of an edge of the icosahedron", "bisections"],
            MadeKind::Limited => &[
                "parts of an edge of the icosahedron",
                "bisections",
                "degrees from the pole",
                "lateral rows",
                "nudging rows",
            ],
            MadeKind::Triangles => &["squares along x", "squares along y"],
            MadeKind::Hexahedra => &["cubes along x", "cubes along y", "cubes along z"],
        }
    }

    /// Whether one of these numbers may be 0: a sphere may never be bisected, and nothing nudged.
    pub fn may_be_zero(self, number: usize) -> bool {
        match self {
            MadeKind::Icosahedral => number == 1,
            MadeKind::Limited => number == 1 || number == 4,
            MadeKind::Airfoil | MadeKind::Triangles | MadeKind::Hexahedra => false,
        }
    }
}

impl Made {
    /// How many cells it has, or the sphere that it is a piece of; nothing if that is no number of 128 bits.
    pub fn cells(&self) -> Option<u128> {
        let product = || self.sizes.iter().try_fold(1u128, |all, &size| all.checked_mul(size as u128));
        match (self.kind, self.sizes.as_slice()) {
            (MadeKind::Icosahedral | MadeKind::Limited, [root, bisections, ..]) => {
                let four = 4u128.checked_pow(u32::try_from(*bisections).ok()?)?;
                (*root as u128).checked_pow(2)?.checked_mul(20)?.checked_mul(four)
            }
            (MadeKind::Triangles, _) => product()?.checked_mul(2),
            (MadeKind::Airfoil | MadeKind::Hexahedra | MadeKind::Icosahedral | MadeKind::Limited, _) => product(),
        }
    }
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(usize::to_string).collect();
        write!(f, "{}({})", self.kind.name(), sizes.join(", "))
    }
}

/// A test of what runs over a mesh.
#[derive(Clone, Debug)]
pub struct MeshTest {
    /// What the user calls it.
    pub title: String,
    /// Where the title stands.
    pub span: Span,
    /// The name of the stencil or program that is tested, which is one of the same file.
    pub subject: String,
    /// Where the test names it.
    pub subject_span: Span,
    /// The mesh; nothing if the call says which.
    pub made: Option<Made>,
    /// How many levels there are, of a mesh that has some.
    pub levels: usize,
    /// Parameters alone: those that the test sets have their value as a default here.
    pub settings: Stencil,
    /// Each computes one input of the same name over the set where that is at home. It reads what an element is
    /// ([`OF_ELEMENT`]), and fields that come with the mesh.
    pub inputs: Vec<MeshStencil>,
    /// Sets, and what computes the number of the zone of each element there: an input as those of `inputs`, over a mesh that names no
    /// zones.
    pub zones: Vec<(String, MeshStencil)>,
    /// What is added to and not given: it starts from 0.
    pub from_zero: Vec<String>,
    /// What is expected, in the order of the text.
    pub checks: Vec<MeshCheck>,
}

/// An expectation of each element of a set.
#[derive(Clone, Debug)]
pub struct MeshCheck {
    /// Reads what is tested, all as it is afterwards, and what an element is. Its outputs are those of `expectation`.
    pub stencil: MeshStencil,
    /// What is expected.
    pub expectation: Expectation,
}

impl MeshCheck {
    /// The set on whose elements it is looked at.
    pub fn set(&self) -> SetId {
        self.stencil.set()
    }
}
