//! `tiled`: a block of threads computes a tile of a plane, with values that others look at in shared memory.
//!
//! A block loads its tile of each field that is looked at beside a cell, with as much around it as is looked at. Then it
//! computes each definition once, for the tile and what others look at around it, from the first to the last. Between
//! values that look at each other's cells stands a barrier. Values that nobody looks at from another cell stay in registers,
//! and fields that are read at the cell itself alone come from memory when they are needed.
//!
//! Tiles of a plane know nothing of each other: what lies around one is loaded, and computed, by its neighbours too. Several
//! time steps are one larger stencil, and then this is overlapped tiling in time, as by Holewinski, Pouchet and Sadayappan
//! ("High-performance code generation for stencil computations on GPU architectures", 2012).
//!
//! A thread computes some rows of a column: threads of a warp stand side by side, so that no two of them want the same bank
//! of shared memory, and what two rows look at is read once. Wider accesses would move no more bytes at a time.

mod body;
mod cost;
mod load;
mod loops;
mod memory;

use super::flow::Flow;
use super::{Kernel, Launch, StepTask, check_threads, computed};
use crate::diagnostic::Refusal;
use crate::gpu::MOST_SHARED;
use body::Tile;
pub use cost::shapes;
use loops::Loops;
use memory::Memory;
use std::ops::Range;

/// How a kernel cuts planes into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns and rows of a tile. Fewer where the grid has fewer.
    pub tile: [usize; 2],
    /// Threads of a block: whole warps.
    pub threads: usize,
    /// Rows that a thread computes one after the other, at most: 1 to 16.
    pub rows: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self { tile: [64, 32], threads: 256, rows: 4 }
    }
}

impl Shape {
    /// The one that needs least: where it has no room, none has.
    pub const SMALLEST: Shape = Shape { tile: [32, 8], threads: 128, rows: 4 };
}

/// The most that a tile has along an axis.
const WIDEST: usize = 1024;

/// Elements along i that loads come in where rows are aligned: a tile of a row begins, and ends, at a multiple.
const TOGETHER: usize = 4;

/// How a stencil is computed tile by tile.
struct Layout<'a> {
    task: &'a StepTask<'a>,
    /// The rows.
    flow: &'a Flow,
    /// What is computed when.
    loops: &'a Loops,
    /// Where values are.
    memory: Memory,
    shape: Shape,
    /// Columns and rows of a tile.
    tile: [usize; 2],
    /// Tiles along i and j.
    tiles: [usize; 2],
    /// The columns and rows that are computed.
    computed: [Range<usize>; 2],
}

impl<'a> Layout<'a> {
    fn new(task: &'a StepTask<'a>, flow: &'a Flow, loops: &'a Loops, shape: Shape) -> Result<Self, Refusal> {
        let refusal = |why: String| task.refusal(format!("cannot be tiled: {why}"));
        check_threads(shape.threads).map_err(refusal)?;
        if !(1..=16).contains(&shape.rows) {
            return Err(refusal(format!("{} rows a thread, and 1 to 16 are possible", shape.rows)));
        }
        if shape.tile.iter().any(|size| !(1..=WIDEST).contains(size)) {
            let [i, j] = shape.tile;
            return Err(refusal(format!("tiles of {i}x{j} cells, and 1 to {WIDEST} along an axis are possible")));
        }
        let computed = computed(task, flow.reach)?;
        // All columns are cut into tiles, even those that are not stored, so that tiles begin where rows are aligned.
        let extents = [task.extents[0], computed[1].len()];
        let tile = [0, 1].map(|axis| shape.tile[axis].min(extents[axis]));
        let tiles = [0, 1].map(|axis| extents[axis].div_ceil(tile[axis]));
        let memory = Memory::new(task, flow, loops, tile);
        Ok(Self { task, flow, loops, memory, shape, tile, tiles, computed })
    }

    /// Tiles of all planes.
    fn count(&self) -> u128 {
        self.tiles[0] as u128 * self.tiles[1] as u128 * self.task.extents[2] as u128
    }
}

/// A kernel of tiles.
///
/// # Errors
/// The stencil reads other levels, or the values of a tile find no room in shared memory.
pub fn tiled(task: &StepTask, shape: &Shape) -> Result<Kernel, Refusal> {
    let flow = Flow::new(task)?;
    let loops = Loops::new(&flow);
    let layout = Layout::new(task, &flow, &loops, *shape)?;
    let refuse = |why: String| {
        let refusal = task.refusal(format!("cannot be tiled: {why}"));
        Err(refusal.help("smaller tiles take less, and so do fewer steps at once"))
    };
    let ([i, j], bytes, count) = (layout.tile, layout.memory.bytes, layout.count());
    if bytes > MOST_SHARED {
        return refuse(format!(
            "tiles of {i}x{j} cells take {bytes} bytes of shared memory, and {MOST_SHARED} have room"
        ));
    }
    let Some(blocks) = u32::try_from(count).ok().filter(|&blocks| blocks <= i32::MAX as u32) else {
        return refuse(format!("{count} tiles are more than a launch can have"));
    };
    Tile::new(&layout).lower().finish(Launch::new(blocks, shape.threads))
}
