//! `planes`: a block of threads walks along k, with a plane of each field at a time in shared memory.
//!
//! A field that is read beside the cell comes plane by plane into shared memory, each plane once, some steps before it is needed. A thread
//! computes some rows of a column: what several rows look at is read once. A value is computed as soon as the planes are there that it
//! reads, and waits in registers for those that read it on later planes (`flow.rs`).
//!
//! Which values these are, [`Queue`] says. With an *output* queue, sums are cut where levels change (`cut.rs`): each plane
//! adds to all outputs that read it, and 2r sums of a stencil that reaches r levels up and down are on their way. This is SWiC: O.
//! Anjum, G. de Gonzalo Simon, M. Hidayetoglu and W. Hwu, "An Efficient GPU Implementation Technique for Higher-Order 3D Stencils"
//! (HPCC 2019). With an *input* queue values of fields wait instead, as by P. Micikevicius, "3D Finite Difference Computation
//! on GPUs using CUDA" (2009), which computes anything.
//!
//! Definitions that are looked at beside the cell are computed by each thread that looks at them, for its own rows and those around.

mod body;
mod cut;
mod flow;
mod layout;
mod load;
mod order;
mod read;
mod values;

use super::{Edge, Kernel, Launch, Rows, StepTask, computed};
use crate::diagnostic::Refusal;
use crate::gpu::Gpu;
use crate::ir::{DefId, Precision, Stencil};
use crate::kernel::Math;
use body::Walk;
use flow::{Flow, Home, Timing};
use layout::Layout;
use order::Order;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

/// What waits in registers for later planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Sums that are not complete.
    Output,
    /// Values of fields.
    Input,
}

/// How a block walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows that a thread computes: 1 to 16; as many as registers have room for, up to a few, if they are not given.
    pub rows: Option<usize>,
    /// Threads of a block along i, in whole warps, and along j.
    pub block: [usize; 2],
    /// Planes in shared memory, the present one among them: 2 to 8.
    pub stages: usize,
    /// Planes that a block computes; chosen for whole waves if it is not given.
    pub planes: Option<usize>,
    /// What it runs on.
    pub gpu: Gpu,
}

impl Default for Shape {
    fn default() -> Self {
        Self { rows: None, block: [128, 4], stages: 3, planes: None, gpu: Gpu::SM_90 }
    }
}

/// What a kernel of planes is asked for beside its task.
#[derive(Clone, Debug)]
pub struct Request {
    /// What waits in registers.
    pub queue: Queue,
    /// The columns, rows and levels that are computed. Along a periodic edge, all.
    pub computed: [Range<usize>; 3],
    /// What lies beyond the first and the last level.
    pub edge: Edge,
    /// A column at which every row of each array is aligned; none if arrays are aligned in other ways.
    pub aligned: Option<usize>,
    /// Whose functions are called where devices round differently.
    pub math: Math,
}

impl Request {
    /// What can be computed of a task whose outputs need no level that is not there, of the levels given.
    ///
    /// # Errors
    /// There is nothing.
    pub fn of(task: &StepTask, queue: Queue, levels: Range<usize>, edge: Edge) -> Result<Self, Refusal> {
        let flow = Flow::new(task, &BTreeSet::new(), Timing::Early)?;
        let [i, j] = computed(task, flow.reach)?;
        Ok(Self { queue, computed: [i, j, levels], edge, aligned: Some(0), math: Math::Own })
    }
}

/// A kernel that walks along k.
///
/// # Errors
/// The stencil reaches too far, or a plane finds no room in shared memory.
pub fn planes(task: &StepTask, request: &Request, shape: &Shape) -> Result<Kernel, Refusal> {
    let ways = Prepared::ways(task, request.queue, request.edge)?;
    let tasks = ways.each_ref().map(|own| StepTask { stencil: &own.stencil, ..*task });
    let heights = shape.rows.map_or_else(|| heights(task.precision), |rows| vec![rows]);
    let both = || ways.iter().zip(&tasks);
    let mut layouts = heights
        .iter()
        .flat_map(|&rows| both().map(move |(prepared, task)| Layout::new(task, request, prepared, (*shape, rows))))
        .filter_map(Result::ok);
    // What not even the fewest rows have room for is told of these.
    let fewest = || Layout::new(&tasks[0], request, &ways[0], (*shape, heights.last().copied().unwrap_or(1)));
    let layout = roomiest(&mut layouts).map_or_else(fewest, Ok)?;
    let count = layout.tiles.iter().product::<usize>() as u128 * layout.parts as u128;
    let Some(blocks) = u32::try_from(count).ok().filter(|&blocks| blocks <= i32::MAX as u32) else {
        return Err(task.refusal(format!("cannot be walked through: {count} blocks are more than a launch can have")));
    };
    let [x, y] = layout.shape.block.map(|threads| threads as u32);
    Walk::new(&layout).lower().finish(Launch { block: [x, y, 1], ..Launch::new(blocks, layout.threads) })
}

/// How many rows a thread has if nobody says, where registers have room for them, the best first. What four rows of doubles are computed
/// with on the way often has none.
fn heights(precision: Precision) -> Vec<usize> {
    match precision {
        Precision::F32 => vec![4, 3, 2, 1],
        Precision::F64 => vec![2, 1],
    }
}

/// The first layout whose values have room in registers; if none has, the one that lacks the fewest.
fn roomiest<'a>(layouts: &mut dyn Iterator<Item = Layout<'a>>) -> Option<Layout<'a>> {
    let mut best: Option<Layout> = None;
    for layout in layouts {
        if best.as_ref().is_none_or(|best| layout.lacking() < best.lacking()) {
            best = Some(layout);
        }
        if best.as_ref().is_some_and(|best| best.lacking() == 0) {
            break;
        }
    }
    best
}

/// What waits while a block walks along k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// Values that a thread holds from a plane to the next, for each cell that it computes there.
    pub values: usize,
    /// Planes of a field that stay in shared memory behind the present one, because they are read beside the cell once more.
    pub planes: usize,
}

/// What waits of a stencil, as [`crate::plan::prepare`] leaves it, if a thread of the usual block has one row.
///
/// # Errors
/// It cannot be walked through.
pub fn waits(stencil: &Stencil, precision: Precision, queue: Queue) -> Result<Waits, Refusal> {
    // How large a grid is makes no difference.
    let rows = Rows { first: 0, row: 1, plane: 1 };
    let task = StepTask { stencil, precision, extents: [1; 3], rows, edges: [Edge::Open; 2] };
    let [early, late] = Prepared::ways(&task, queue, Edge::Open)?;
    let lacking = |own: &Prepared| {
        let Shape { block: [x, y], gpu, .. } = Shape::default();
        layout::lacking(&Order::new(&own.stencil, &own.flow, 1), precision, (x * y, gpu))
    };
    let Prepared { flow, .. } = if lacking(&late) < lacking(&early) { late } else { early };
    let of_fields = flow.fields.values().map(|own| match own.home {
        Home::Memory => [0, 0],
        Home::Registers { kept } => [kept + 1, 0],
        Home::Shared { back, kept, .. } => [kept.saturating_sub(back), back],
    });
    let [of_fields, planes] = of_fields.fold([0, 0], |[values, most], [own, back]| [values + own, most.max(back)]);
    let of_defs: usize = flow.instances.values().map(|own| own.kept).sum();
    Ok(Waits { values: of_fields + of_defs, planes })
}

/// The stencil as it is walked through.
struct Prepared {
    stencil: Stencil,
    flow: Flow,
}

impl Prepared {
    /// With values that are early, and with late ones.
    fn ways(task: &StepTask, queue: Queue, edge: Edge) -> Result<[Self; 2], Refusal> {
        let way = |timing| Self::new(task, queue, edge, timing);
        Ok([way(Timing::Early)?, way(Timing::Late)?])
    }

    fn new(task: &StepTask, queue: Queue, edge: Edge, timing: Timing) -> Result<Self, Refusal> {
        let (stencil, links) = match queue {
            Queue::Output => cut::cut(task.stencil, timing),
            Queue::Input => (task.stencil.clone(), BTreeSet::<DefId>::new()),
        };
        let flow = Flow::new(&StepTask { stencil: &stencil, ..*task }, &links, timing)?;
        if edge == Edge::Periodic {
            let mut fields = stencil.fields.iter();
            if let Some((_, field)) = fields.find(|(_, own)| own.place.levels == crate::ir::Levels::Interfaces) {
                return Err(task.refusal(format!(
                    "cannot be walked through: `{}` has a level more than there are, and levels are a circle",
                    field.name
                )));
            }
        }
        Ok(Self { stencil, flow })
    }
}
