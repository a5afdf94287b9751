//! `stream`: a warp walks down rows of a strip, and keeps in registers what it looks back at.
//!
//! A lane holds some consecutive columns, loaded and stored by wide instructions. Neighbours along i are a lane's own, or
//! come by shuffles; neighbours along j are rows that were loaded, or computed, some steps before. Nothing goes through
//! shared memory, and no thread waits for another warp.
//!
//! How a strip begins and ends ([`Strip`]): its outermost lanes may hold columns that neighbouring strips own, and whose
//! values spoil step by step from outside; or each lane also computes the columns beside its own that others need.

mod kernel;
mod rows;
mod tiling;
mod turns;

use super::flow::Flow;
use super::{Carry, Edge, Kernel, Launch, StepTask, check_carry, check_threads, computed, ranked};
use crate::diagnostic::Refusal;
use crate::gpu::{Gpu, WARP};
use kernel::Maker;
use tiling::Tiling;

/// How a strip's edges get what lies beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strip {
    /// Strips overlap by whole lanes; or one strip is the whole row, and its ends meet.
    Overlapping,
    /// Strips stand side by side. The first and the last lane load the columns beyond, and every lane computes what lies
    /// around its own columns too: the loads are aligned and none is wasted, which pays where little is computed.
    Aligned,
}

/// How a kernel streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of reals that a lane has of a row: 16 or 32. Fewer where extents along i do not divide.
    pub lane: usize,
    /// Rows that are loaded ahead, 1 to 8.
    pub ahead: usize,
    /// How strips meet.
    pub strip: Strip,
    /// Rows of a warp; chosen for whole waves if it is not given.
    pub rows: Option<usize>,
    /// Threads of a block: whole warps.
    pub block: usize,
    /// Registers of a thread, where they are known.
    pub registers: Option<u32>,
    /// What it runs on.
    pub gpu: Gpu,
}

impl Default for Shape {
    fn default() -> Self {
        Self { lane: 16, ahead: 2, strip: Strip::Overlapping, rows: None, block: 128, registers: None, gpu: Gpu::SM_90 }
    }
}

/// Shapes that a task can have, those that should be fastest first: by how much more than the plane is loaded
/// and computed, and how full the GPU is.
pub fn shapes(task: &StepTask, gpu: &Gpu) -> Vec<Shape> {
    let Ok(flow) = Flow::new(task) else { return Vec::new() };
    let mut found = Vec::new();
    for (strip, lane) in [Strip::Aligned, Strip::Overlapping].into_iter().flat_map(|strip| [(strip, 16), (strip, 32)]) {
        for ahead in [4, 2] {
            let shape = Shape { lane, ahead, strip, gpu: *gpu, ..Shape::default() };
            if let Ok(tiling) = Tiling::new(task, &flow, &shape) {
                found.push((tiling.cost(task, &flow, &shape), shape));
            }
        }
    }
    ranked(found)
}

/// A kernel that streams.
///
/// # Errors
/// The stencil reads other levels, or reaches too far for the shape.
pub fn stream(task: &StepTask, shape: &Shape) -> Result<Kernel, Refusal> {
    walked(task, shape, None)
}

/// A kernel that streams step after step, at least one, and whose blocks, all there at once, wait for each other between two:
/// planes that are in the level 2 cache stay there. It takes a spare array for each output that is carried. The launch has as
/// many blocks as should be there at once; fewer do as well.
///
/// # Errors
/// As [`stream`], and an output that is carried is no match for its input.
pub fn persistent(task: &StepTask, carry: &[Carry], shape: &Shape) -> Result<Kernel, Refusal> {
    if task.edges != [Edge::Periodic; 2] {
        // What is not computed would be missing in the spare array.
        return Err(task.refusal("cannot persist: its grid is not periodic"));
    }
    check_carry(task, carry)?;
    walked(task, shape, Some(carry))
}

fn walked(task: &StepTask, shape: &Shape, carry: Option<&[Carry]>) -> Result<Kernel, Refusal> {
    let flow = Flow::new(task)?;
    let refusal = |why: String| task.refusal(format!("cannot stream: {why}"));
    check_threads(shape.block).map_err(refusal)?;
    if !(1..=8).contains(&shape.ahead) {
        return Err(refusal(format!("{} rows ahead, and 1 to 8 are possible", shape.ahead)));
    }
    let tiling = Tiling::new(task, &flow, shape)?;
    let warps = tiling.strips as u128 * tiling.parts as u128 * task.extents[2] as u128;
    let warps_of_block = shape.block / WARP;
    let blocks = warps.div_ceil(warps_of_block as u128);
    let Some(blocks) = u32::try_from(blocks).ok().filter(|_| warps <= i32::MAX as u128) else {
        return Err(refusal(format!("{warps} warps are more than a launch can have")));
    };
    let launch = match carry {
        None => Launch::new(blocks, shape.block),
        Some(_) => {
            let at_once = tiling.resident(task, &flow, shape) / warps_of_block as u32;
            Launch { cooperative: true, ..Launch::new(blocks.min(at_once), shape.block) }
        }
    };
    let mut maker = Maker::new(task, &flow, shape, tiling, carry);
    maker.write(warps as usize, carry);
    maker.lower.finish(launch)
}
