//! The intermediate representation: what a stencil means.
//!
//! # Meaning
//!
//! A [`Stencil`] computes its outputs on a set of cells, each cell by itself: nothing that it writes is read by it. The
//! value of a cell is that of a [`Body`], evaluated *at* the cell.
//!
//! **Bodies.** A body is one written expression: [`Node`]s in operand-first order, so that every pass is a loop; the last
//! node is the value. Nodes have a [`Kind`] and a span beside them. Evaluation has no effects, so order is free, except
//! for laziness: the branch of [`Node::Choose`] that is not chosen is not evaluated, nor is the right side of
//! [`Node::And`] and [`Node::Or`] where the left side decides. That matters for one thing only: which levels are read.
//!
//! **Definitions.** A [`Def`] is a body with a name: a `let`, a function's argument or result, a constant, the base of a
//! power. [`Node::Use`] means its value *at the cell where the path leads*: its reads, its `k` and its guards move along.
//! A definition is evaluated where it is used; one that nobody uses is not evaluated. Definitions come before their
//! users. Fused multiply-adds never cross a body, so a value is the same bits however often, and wherever, it is computed.
//!
//! **Paths.** A read or use looks along a [`Path`]: horizontal steps in walking order and a shift of levels. The path of a
//! read inside a definition used at a path is the use's path followed by the read's.
//!
//! **Where.** Outputs are computed on the columns for which every horizontal read, in whatever branch, lies inside the
//! grid, times the levels for which every level read that counts does (`analysis::levels`). No read outside the grid is
//! ever evaluated. Cells not computed keep what was there.
//!
//! **Sweeps.** A stencil with sweeps is computed on every level, and in [`phases`]: sweep after sweep, and then the stores
//! that belong to none. A [`Sweep`] does its stores level by level, in its direction; otherwise cells are computed each by
//! itself, as ever. What is read of a value of a sweep at an earlier level of it, or anywhere after it, is in a field of
//! [`Role::Carried`], which the sweep stores. Such a field is read at the column itself only.
//!
//! **Prints.** A [`Print`] is a value to show at chosen cells. It is no part of the computation: its reads do not count, and
//! no kernel of the stencil holds it. [`Stencil::of_print`] is a stencil of its own, which computes nothing else.
//!
//! **Numbers.** `Real` is f32 or f64, chosen after lowering ([`Precision`]); `Int` is 32 bits and wraps; `Bool`. Fields say
//! how they are stored ([`Stored`]): a read converts to the kind's type, a write rounds to nearest even. What each
//! operation means, to the last bit, is [`scalar`]. `Int` becomes `Real` only by an explicit [`Node::ToReal`].
//!
//! **Meshes.** What a stencil over the elements of a mesh is, beyond this, [`mesh`] says. Paths then have [`Hop`]s instead
//! of steps.

pub mod arena;
mod body;
mod by_level;
pub mod called;
mod contract;
mod display;
mod field;
mod fold;
mod function;
mod invariant;
pub mod mesh;
pub mod operation;
mod path;
mod print;
pub mod program;
pub mod scalar;
mod shown;
mod split;
mod stencil;
mod sweep;
mod test;
mod verify;
mod walk;

pub use crate::precision::Precision;
pub use arena::{Arena, Handle};
pub use body::{Binary, Body, Kind, Node, Relation};
pub use by_level::{MOST_TERMS, by_level};
pub use contract::{contract, contract_body};
pub use field::{Field, Levels, Place, Role, Stored};
pub(crate) use fold::fold_body;
pub use fold::{Constants, fold};
pub use function::Function;
pub use invariant::{share_invariants, varies_across, varying};
pub use mesh::{Home, Mesh, MeshProgram, MeshStencil};
pub use path::{Axis, Hop, Offset, Path, Step};
pub use print::Print;
pub use program::Program;
pub use shown::ShownPrint;
pub use split::split;
pub use stencil::{Bound, Bounding, Def, Origin, Param, Part, Stencil, Store};
pub use sweep::{Direction, Phase, Sweep, needed, phases, reads_of_sweeps};
pub use test::{COORDINATES, Expectation, Made, MadeKind, MeshCheck, MeshTest, OF_ELEMENT, Test};
pub use verify::{Stages, Verify};
pub use walk::{known_defs, known_nodes};

arena::handles! {
    /// A field of a stencil.
    FieldId
    /// A parameter of a stencil.
    ParamId
    /// A definition of a stencil.
    DefId
    /// A sweep of a stencil.
    SweepId
    /// A node of a body.
    NodeId
    /// A field of a program.
    VariableId
    /// A set of a mesh.
    SetId
    /// A map of a mesh.
    MapId
}
