//! Step kernels: whole time steps of a stencil on a grid in rows whose planes are independent of each other.
//!
//! ```text
//! stencil -> flow: which rows of which values, and when -> stream, ...: one kernel, of what lower knows -> cuda
//! ```
//!
//! A kernel of [`crate::plan`] computes a cell a thread, whatever the grid. One of these knows more: columns stand in
//! rows, extents are known, no value looks at another level. Then a warp can walk down a plane row by row and keep in
//! registers what it has read or computed ([`stream`]), a block can compute a tile with its values in shared memory
//! ([`tiled`]), or a cluster can hold a plane in registers through all steps ([`resident`]).
//!
//! Each kernel computes every output on every cell that its [`Edge`]s let it, and its values are those of the interpreter
//! to the last bit: operations are those of the stencil's bodies, in their order.

mod flow;
mod lower;
pub mod resident;
pub mod stream;
pub mod tiled;

use crate::cuda::Parameter;
use crate::diagnostic::Refusal;
use crate::ir::{FieldId, Levels, Precision, Stencil};
use crate::kernel;
use crate::names::Identifier;
use flow::{Flow, Window};
use std::collections::BTreeSet;
use std::ops::Range;

/// What a step kernel computes, and on which arrays.
#[derive(Clone, Copy, Debug)]
pub struct StepTask<'a> {
    /// The stencil, as [`crate::plan::prepare`] leaves it. Several time steps are one larger stencil.
    pub stencil: &'a Stencil,
    /// What `real` is.
    pub precision: Precision,
    /// Cells along i, j and k.
    pub extents: [usize; 3],
    /// Where cells are in the arrays.
    pub rows: Rows,
    /// What lies beyond the first and last cells along i and j.
    pub edges: [Edge; 2],
}

/// Where cells are in arrays, in elements: the same for every field. A field on (i, j) has one plane, one on (k) a value a
/// level without any gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Where the first cell is.
    pub first: usize,
    /// From a cell to the next along j.
    pub row: usize,
    /// From a cell to the next along k.
    pub plane: usize,
}

/// What lies beyond the edges of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The other side: every cell is computed.
    Periodic,
    /// Nothing: only cells whose reads lie inside are computed, the others stay as they are.
    Open,
}

/// A step kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: Identifier,
    /// What it does.
    pub code: kernel::Kernel,
    /// Its CUDA C++.
    pub text: String,
    /// What it takes, in order.
    pub parameters: Vec<Parameter>,
    /// How it is launched.
    pub launch: Launch,
}

/// How a step kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Whether all blocks are there at once.
    pub cooperative: bool,
}

/// An output, and the input that it becomes in the next step.
pub type Carry = (FieldId, FieldId);

/// What a step kernel can use of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Multiprocessors.
    pub processors: u32,
    /// Registers of 32 bits that one has.
    pub registers: u32,
    /// Threads that one holds.
    pub threads: u32,
    /// Bytes of shared memory that one has.
    pub shared: u32,
}

impl Gpu {
    /// An H200, and an H100 with all its memory: sm_90.
    pub const SM_90: Gpu = Gpu { processors: 132, registers: 65_536, threads: 2_048, shared: 228 << 10 };
}

/// Lanes of a warp.
const LANES: usize = 32;

/// The most bytes of shared memory that a block can have.
const SHARED: usize = 227 << 10;

/// The columns and rows that are computed.
fn computed(task: &StepTask, flow: &Flow) -> [Range<usize>; 2] {
    let [ni, nj, _] = task.extents;
    let along = |edge: Edge, n: usize, reach: Window| match edge {
        Edge::Periodic => 0..n,
        Edge::Open => reach.before()..n.saturating_sub(reach.after()),
    };
    [along(task.edges[0], ni, flow.i), along(task.edges[1], nj, flow.j)]
}

/// Refuses outputs that cannot become the inputs that they are said to become, and fields that change without one.
fn check_carry(task: &StepTask, carry: &[Carry]) -> Result<(), Refusal> {
    let stencil = task.stencil;
    let refuse = |why: String| Err(Refusal::new(format!("stencil `{}` is not repeated: {why}", stencil.name)));
    if carry.is_empty() {
        return refuse("no output becomes an input".into());
    }
    let mut seen = BTreeSet::new();
    for &(to, from) in carry {
        let (own, next) = (&stencil.fields[to], &stencil.fields[from]);
        let is_pair = own.role.is_written() && next.role.is_read();
        if !is_pair || own.stored != next.stored || own.place != next.place || own.place.levels != Levels::Full {
            return refuse(format!("`{}` cannot become `{}`", own.name, next.name));
        }
        if !seen.insert((true, to)) || !seen.insert((false, from)) {
            return refuse(format!("`{}` or `{}` is carried twice", own.name, next.name));
        }
    }
    for (id, field) in stencil.fields.iter() {
        let is_read = field.role.is_read() && field.role.is_written();
        if is_read && !(seen.contains(&(true, id)) && seen.contains(&(false, id))) {
            return refuse(format!("`{}` changes, and nothing says into what", field.name));
        }
    }
    Ok(())
}

impl Edge {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Edge::Periodic => "periodic",
            Edge::Open => "open",
        }
    }
}

impl StepTask<'_> {
    /// Refuses what no step kernel can compute.
    fn check(&self) -> Result<(), Refusal> {
        let StepTask { stencil, extents: [ni, nj, nk], rows, .. } = *self;
        let refuse = |why: String| Err(Refusal::new(format!("stencil `{}` {why}", stencil.name)));
        if !stencil.sweeps.is_empty() {
            return refuse("has sweeps, and its planes depend on each other".into());
        }
        if stencil.stores.is_empty() {
            return refuse("computes nothing".into());
        }
        for store in &stencil.stores {
            let field = &stencil.fields[store.field];
            if !field.place.horizontal {
                return refuse(format!("writes `{}`, which has no horizontal axes", field.name));
            }
        }
        if ni == 0
            || nj == 0
            || nk == 0
            || rows.row < ni
            || rows.plane < rows.row.saturating_mul(nj - 1).saturating_add(ni)
        {
            return Err(Refusal::new(format!("{rows:?} is no place for {ni}x{nj}x{nk} cells")));
        }
        // Interfaces have one plane more.
        let last = rows.first as u128 + rows.plane as u128 * (nk as u128 + 1);
        if ni > 1 << 24 || nj > 1 << 24 || nk > 1 << 24 || last > 1 << 46 {
            return Err(Refusal::new(format!("{ni}x{nj}x{nk} cells are more than a step kernel can count")));
        }
        Ok(())
    }
}
