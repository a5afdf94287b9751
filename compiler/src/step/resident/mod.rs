//! `resident`: the time loop is inside the kernel, and a plane stays in the registers of the blocks of one cluster.
//!
//! Each warp holds some full rows of the plane; a lane has as many consecutive columns of each as there are for 32 lanes, and
//! the ends of a row meet. At each step a warp sends its outermost rows to the two warps beside it, wherever in the cluster
//! they are, computes what its own rows suffice for, waits for what its neighbours have sent, and computes the rest.
//!
//! Nobody waits at a barrier. Each warp has two mbarriers, used in turn, which count the bytes that are sent to it. Two are
//! enough: who sends the rows of a step has received those of the step before, which were sent after the rows before
//! these had been read. So each of two neighbours has to look at the other.
//!
//! Where there are more planes than clusters at once, all steps of all planes are shared evenly among these, as McNaughton
//! ("Scheduling with deadlines and loss functions", 1959) shares tasks that can be interrupted: a cluster begins with the
//! first steps of a plane whose others are too many for it, and hands the plane over to the next cluster, which ends with it.

mod exchange;
mod kernel;
mod rows;
mod setup;
mod shapes;
mod spans;

use super::flow::{Area, Flow, Window};
use super::{Carry, Edge, Kernel, Launch, StepTask, check_carry};
use crate::diagnostic::Refusal;
use crate::gpu::{MOST_SHARED, WARP};
use crate::ir::FieldId;
use kernel::Maker;
pub use shapes::shapes;
use spans::{Part, part, sent};

/// How a plane lies in the registers of a cluster. `rows * warps * blocks` are the plane's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of a warp.
    pub rows: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Blocks of a cluster: 1 to 16. More than 8 not every GPU takes.
    pub blocks: usize,
    /// Whether a warp computes what its own rows suffice for before its neighbours' rows have come: that hides how long they
    /// take, and needs more registers.
    pub early: bool,
}

/// Bytes that a lane sends at once.
const SENT: usize = 16;

/// A kernel with a time loop in it. It takes the number of steps, at least 1, and leaves in each output what it is after so
/// many. Fewer clusters than its launch has do as well.
///
/// # Errors
/// The stencil reads other levels, an output that is carried is no match for its input, or the shape does not fit the grid.
pub fn resident(task: &StepTask, carry: &[Carry], shape: Shape) -> Result<Kernel, Refusal> {
    let flow = Flow::new(task)?;
    check(task, &flow, carry, shape)?;
    let parts: Vec<Part> = flow.rows.iter().map(|row| part(carry, row.source)).collect();
    let (mut shape, mut spans) = (shape, spans::spans(&flow, &parts, shape));
    if spans.iter().any(|span| span.inner[0] > span.inner[1]) {
        // Too few rows for anyone to begin with.
        shape.early = false;
        spans = spans::spans(&flow, &parts, shape);
    }
    let mut maker = Maker::new(task, &flow, carry, shape, (parts, spans));
    maker.write();
    let launch = Launch::new((task.extents[2] * shape.blocks) as u32, shape.warps * WARP);
    maker.lower.finish(Launch { cluster: [shape.blocks as u32, 1, 1], cooperative: true, ..launch })
}

fn check(task: &StepTask, flow: &Flow, carry: &[Carry], shape: Shape) -> Result<(), Refusal> {
    let refuse = |why: String| Err(task.refusal(format!("cannot be resident: {why}")));
    let ([ni, nj, nk], Area { i, j }) = (task.extents, flow.reach);
    let Shape { rows, warps, blocks, .. } = shape;
    if task.edges != [Edge::Periodic; 2] {
        return refuse("its grid is not periodic".into());
    }
    if !(1..=32).contains(&warps) || !(1..=16).contains(&blocks) || rows.saturating_mul(warps * blocks) != nj {
        return refuse(format!("{rows} rows in {warps} warps of {blocks} blocks are not the {nj} rows of a plane"));
    }
    if nk > i32::MAX as usize / blocks {
        return refuse(format!("{nk} planes are more than a launch can have"));
    }
    if j.before().max(j.after()) > rows {
        return refuse(format!("it reads {} to {} rows away, and warps have {rows}", j.low, j.high));
    }
    if i.before().max(i.after()) >= ni {
        return refuse(format!("it reads {} to {} columns away", i.low, i.high));
    }
    check_carry(task, carry)?;
    // Who is sent nothing back does not know when the rows of two steps ago have been read.
    let windows = carry.iter().map(|&(_, from)| spans::window(flow, from));
    let all = windows.fold(Window::default(), Window::union);
    if warps * blocks > 1 && (all.before() == 0) != (all.after() == 0) {
        return refuse(format!("it reads {} to {} rows away, on one side alone", j.low, j.high));
    }
    for &(to, _) in carry {
        if !ni.is_multiple_of(WARP) || !(ni / WARP * field_bytes(task, to)).is_multiple_of(SENT) {
            let name = &task.stencil.fields[to].name;
            return refuse(format!("{ni} columns of `{name}` are no whole {SENT} bytes a lane"));
        }
    }
    // Each warp has two barriers, too.
    let bytes = 2 * warps * (sent_bytes(task, flow, carry) + 8);
    if bytes > MOST_SHARED {
        return refuse(format!("{bytes} bytes of rows are sent to a block, and {MOST_SHARED} have room"));
    }
    Ok(())
}

/// Bytes of rows that a warp is sent in a step.
fn sent_bytes(task: &StepTask, flow: &Flow, carry: &[Carry]) -> usize {
    carry.iter().map(|&(_, from)| sent(flow, from) * task.extents[0] * field_bytes(task, from)).sum()
}

fn field_bytes(task: &StepTask, field: FieldId) -> usize {
    task.stencil.fields[field].stored.bytes(task.precision)
}
