//! Plans whose blocks walk along k through planes in shared memory (`step/planes`).

use super::{Choices, KnownGrid, Plan};
use crate::access::knobs::Knob;
use crate::access::swic::{CHUNK, HEIGHT, STAGE};
use crate::diagnostic::Refusal;
use crate::gpu::{Gpu, WARP};
use crate::step::planes::{Queue, Request, Shape, planes};
use crate::step::{Edge, Kernel, Rows, StepTask};
use crate::storage::Stride;
use crate::storage::fields::Fields;

/// Whether choices let blocks walk.
///
/// # Errors
/// They do not.
pub(super) fn check(choices: &Choices) -> Result<(), Refusal> {
    let access = &choices.access;
    if choices.fields != Fields::Soa {
        return Err(Refusal::new(format!("`{access}` access copies planes of single fields")).help("give --fields soa"));
    }
    if choices.checked {
        return Err(Refusal::new(format!("`{access}` access copies whole planes, and checks no index"))
            .help("look for the fault with --access idxvar"));
    }
    let [x, y, z] = choices.block;
    if z != 1 || !(x as usize).is_multiple_of(WARP) {
        return Err(Refusal::new(format!(
            "`{access}` access has blocks of whole warps along i that are flat, and not {x}x{y}x{z}"
        ))
        .help("give a block as --block 128x4x1"));
    }
    Ok(())
}

impl Choices {
    /// How blocks walk.
    pub fn walk(&self, gpu: Gpu) -> Shape {
        let number = |knob: &Knob| knob.of::<1>(&self.knobs, self.precision)[0] as usize;
        let [x, y, _] = self.block.map(|threads| threads as usize);
        let [rows, planes] = [HEIGHT, CHUNK].map(|knob| Some(number(&knob)).filter(|&chosen| chosen > 0));
        Shape { rows, block: [x, y], stages: number(&STAGE), planes, gpu }
    }
}

impl Plan {
    /// The kernel of blocks that walk.
    ///
    /// # Errors
    /// The stencil has what cannot be walked through, or a plane has no room.
    pub(super) fn walking(&self, known_grid: &KnownGrid, queue: Queue) -> Result<Kernel, Refusal> {
        if !known_grid.levels_known {
            return Err(Refusal::new(format!(
                "`{}` access has to know the levels that are computed, and they depend on parameters",
                self.choices.access
            ))
            .help("give another access, as --access idxvar"));
        }
        let KnownGrid { grid, region, layout, .. } = known_grid;
        let stride = |stride: Stride| layout.stride(stride);
        let task = StepTask {
            stencil: &self.stencil,
            precision: self.choices.precision,
            extents: [grid.ni, grid.nj, grid.nk],
            rows: Rows { first: 0, row: layout.sizes[1], plane: stride(layout.strides.level) },
            edges: [Edge::Open; 2],
        };
        let computed = [region.i.clone(), region.j.clone(), region.k.clone()];
        // Arrays that are shared are not aligned to the first cell of each stencil.
        let aligned = self.choices.share.is_empty().then_some(layout.lead);
        let request = Request { queue, computed, edge: Edge::Open, aligned, math: self.choices.math };
        planes(&task, &request, &self.choices.walk(Gpu::SM_90))
    }
}
