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
pub mod planes;
pub mod resident;
pub mod stream;
pub mod tiled;

use crate::analysis::moving::read_anywhere;
use crate::cuda::Parameter;
use crate::diagnostic::Refusal;
use crate::gpu::{MOST_THREADS, WARP};
use crate::ir::{FieldId, Levels, Precision, Stencil};
use crate::kernel::{self, Type};
use crate::names::Identifier;
use flow::{Area, Source, Window};
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

/// The columns and rows that are computed.
fn computed(task: &StepTask, area: Area) -> Result<[Range<usize>; 2], Refusal> {
    let along = |axis: usize, reach: Window| match task.edges[axis] {
        Edge::Periodic => 0..task.extents[axis],
        Edge::Open => reach.before()..task.extents[axis].saturating_sub(reach.after()),
    };
    let computed = [along(0, area.i), along(1, area.j)];
    if computed.iter().any(Range::is_empty) {
        return Err(Refusal::new(format!("no column has all neighbours that stencil `{}` reads", task.stencil.name)));
    }
    Ok(computed)
}

/// Refuses blocks that are no whole warps.
fn check_threads(threads: usize) -> Result<(), String> {
    match threads.is_multiple_of(WARP) && (WARP..=MOST_THREADS).contains(&threads) {
        true => Ok(()),
        false => Err(format!("{threads} threads are no whole warps")),
    }
}

/// Shapes by what they should cost, the cheapest first.
fn ranked<Shape>(mut found: Vec<(f64, Shape)>) -> Vec<Shape> {
    found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    found.into_iter().map(|(_, shape)| shape).collect()
}

/// Refuses outputs that cannot become the inputs that they are said to become, and fields that change without one.
fn check_carry(task: &StepTask, carry: &[Carry]) -> Result<(), Refusal> {
    let stencil = task.stencil;
    let refuse = |why: String| Err(task.refusal(format!("is not repeated: {why}")));
    if carry.is_empty() {
        return refuse("no output becomes an input".into());
    }
    for (number, &(to, from)) in carry.iter().enumerate() {
        let (own, next) = (&stencil.fields[to], &stencil.fields[from]);
        let is_pair = own.role.is_written() && next.role.is_read();
        if !is_pair || own.stored != next.stored || own.place != next.place || own.place.levels != Levels::Full {
            return refuse(format!("`{}` cannot become `{}`", own.name, next.name));
        }
        if carry[..number].iter().any(|known| known.0 == to || known.1 == from) {
            return refuse(format!("`{}` or `{}` is carried twice", own.name, next.name));
        }
    }
    for (id, field) in stencil.fields.iter() {
        let is_read = field.role.is_read() && field.role.is_written();
        if is_read && !(carry.iter().any(|known| known.0 == id) && carry.iter().any(|known| known.1 == id)) {
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

impl Launch {
    /// So many blocks of so many threads, which know nothing of each other.
    fn new(blocks: u32, threads: usize) -> Self {
        let block = [threads as u32, 1, 1];
        Self { grid: [blocks, 1, 1], block, cluster: [1; 3], shared: 0, cooperative: false }
    }
}

impl StepTask<'_> {
    /// What is wrong with the stencil.
    fn refusal(&self, why: impl AsRef<str>) -> Refusal {
        Refusal::new(format!("stencil `{}` {}", self.stencil.name, why.as_ref()))
    }

    /// The type that a field is stored in.
    fn stored(&self, field: FieldId) -> Type {
        Type::stored(self.stencil.fields[field].stored, self.precision)
    }

    /// The type that a value is computed in.
    fn kind(&self, source: Source) -> Type {
        let kind = match source {
            Source::Field(field, _) => self.stencil.fields[field].stored.kind(),
            Source::Def(def, _) => self.stencil.defs[def].body.kind(),
        };
        Type::computing(kind, self.precision)
    }

    /// The type of indices in a plane.
    fn index(&self) -> Type {
        let is_wide = self.rows.row.saturating_mul(self.extents[1]) > i32::MAX as usize;
        if is_wide { Type::I64 } else { Type::I32 }
    }

    /// The most elements of a field that one instruction moves, if they come in groups of `together`, and groups begin at multiples
    /// of all of `at` in rows.
    fn at_once(&self, field: FieldId, together: usize, at: &[usize]) -> usize {
        let Rows { first, row, plane } = self.rows;
        let own = &self.stencil.fields[field];
        let plane = if own.place.levels == Levels::None { 0 } else { plane };
        let mut width = (16 / own.stored.bytes(self.precision)).max(1);
        let has_groups =
            |width: usize| [together, first, row, plane].iter().chain(at).all(|at| at.is_multiple_of(width));
        while !has_groups(width) {
            width /= 2;
        }
        width
    }

    /// Refuses what no step kernel can compute.
    fn check(&self) -> Result<(), Refusal> {
        let StepTask { stencil, extents: [ni, nj, nk], rows, .. } = *self;
        if !stencil.sweeps.is_empty() {
            return Err(self.refusal("has sweeps, and its planes depend on each other"));
        }
        if let Some((&field, how)) = read_anywhere(stencil).first_key_value() {
            let name = &stencil.fields[field].name;
            return Err(self.refusal(format!("reads `{name}` {how}: a plane of it is not enough")));
        }
        if stencil.stores.is_empty() {
            return Err(self.refusal("computes nothing"));
        }
        let mut written = stencil.stores.iter().map(|store| &stencil.fields[store.field]);
        if let Some(field) = written.find(|field| !field.place.horizontal) {
            return Err(self.refusal(format!("writes `{}`, which has no horizontal axes", field.name)));
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
