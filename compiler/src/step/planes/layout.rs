//! How a block walks: its tile of a plane, the planes that it computes, and where fields are in shared memory.

use super::flow::{Flow, Home};
use super::order::Order;
use super::{Prepared, Request, Shape, load};
use crate::diagnostic::Refusal;
use crate::gpu::{AT_ONCE, Gpu, MOST_SHARED, WARP};
use crate::ir::{FieldId, Levels, Precision};
use crate::kernel::Type;
use crate::step::{StepTask, check_threads};
use std::collections::BTreeMap;
use std::ops::Range;

/// How a stencil is walked through.
pub struct Layout<'a> {
    /// What is computed.
    pub task: &'a StepTask<'a>,
    /// How.
    pub request: &'a Request,
    /// What is computed when.
    pub flow: &'a Flow,
    /// The shape.
    pub shape: Shape,
    /// Rows of a thread.
    pub rows: usize,
    /// Threads of a block.
    pub threads: usize,
    /// Columns and rows of a block.
    pub tile: [usize; 2],
    /// Blocks along i and j.
    pub tiles: [usize; 2],
    /// In which order values are computed.
    pub order: Order,
    /// Planes that a block computes.
    pub planes: usize,
    /// Blocks along k.
    pub parts: usize,
    /// Fields in shared memory.
    pub memory: Memory,
}

/// Fields in shared memory: of each plane the rows and columns of a block, and those around it that any of them needs.
pub struct Memory {
    /// Of each field where it begins, in bytes, how many planes there are, and how it is loaded.
    pub homes: BTreeMap<FieldId, Tile>,
    /// Columns and rows before the block's own.
    pub before: [usize; 2],
    /// Elements from a row to the next.
    pub pitch: usize,
    /// Rows.
    pub rows: usize,
    /// Planes that there is room for, of each field that has some.
    pub slots: usize,
    /// Bytes of all planes.
    pub bytes: usize,
}

/// Planes of a field in shared memory.
#[derive(Clone, Copy)]
pub struct Tile {
    /// The type of its elements.
    pub element: Type,
    /// The byte that they begin with.
    pub offset: usize,
    /// Whether there is another plane on each level.
    pub is_walked: bool,
    /// Elements that are copied at once.
    pub many: usize,
}

impl Memory {
    /// Elements of a plane.
    pub fn plane(&self) -> usize {
        self.pitch * self.rows
    }
}

impl<'a> Layout<'a> {
    /// The layout of a shape with so many rows a thread.
    ///
    /// # Errors
    /// The shape is none, or a plane finds no room in shared memory.
    pub fn new(
        task: &'a StepTask<'a>,
        request: &'a Request,
        prepared: &'a Prepared,
        (shape, rows): (Shape, usize),
    ) -> Result<Self, Refusal> {
        let flow = &prepared.flow;
        let refusal = |why: String| task.refusal(format!("cannot be walked through: {why}"));
        let [x, y] = shape.block;
        let threads = x.saturating_mul(y);
        check_threads(threads).map_err(refusal)?;
        if !x.is_multiple_of(WARP) {
            return Err(refusal(format!("{x} threads along i are no whole warps")));
        }
        if !(1..=16).contains(&rows) {
            return Err(refusal(format!("{rows} rows a thread, and 1 to 16 are possible")));
        }
        if !(2..=8).contains(&shape.stages) {
            return Err(refusal(format!("{} planes at once, and 2 to 8 are possible", shape.stages)));
        }
        let inside = request.computed.iter().zip(task.extents);
        if inside.clone().any(|(computed, extent)| computed.end > extent) {
            return Err(refusal("it computes the last interface, and planes are those of levels".to_owned()));
        }
        if inside.clone().any(|(computed, _)| computed.is_empty()) {
            return Err(refusal("no cell is computed".to_owned()));
        }
        let [ni, nj, levels] = request.computed.each_ref().map(Range::len);
        let tile = [x, y * rows];
        let tiles = [ni.div_ceil(tile[0]), nj.div_ceil(tile[1])];
        let memory = Memory::new(task, request, flow, &shape, tile);
        let bytes = memory.bytes;
        if bytes > MOST_SHARED {
            let [i, j] = tile;
            return Err(refusal(format!(
                "planes of {i}x{j} cells take {bytes} bytes of shared memory, and {MOST_SHARED} have room"
            ))
            .help("fewer rows a thread take less, and so do fewer warps and planes"));
        }
        let order = Order::new(task.stencil, flow, rows);
        let mut layout =
            Self { task, request, flow, shape, rows, order, threads, tile, tiles, planes: levels, parts: 1, memory };
        layout.planes = shape.planes.unwrap_or_else(|| layout.whole_waves()).clamp(1, levels);
        layout.parts = levels.div_ceil(layout.planes);
        Ok(layout)
    }

    /// Blocks that are there at once.
    fn resident(&self) -> usize {
        let Gpu { processors, shared, threads, registers, .. } = self.shape.gpu;
        let of_registers = registers as usize / (self.registers() * self.threads);
        let of_threads = threads as usize / self.threads;
        let of_shared = shared as usize / (self.memory.bytes + RESERVED);
        of_registers.min(of_threads).min(of_shared).max(1) * processors.max(1) as usize
    }

    /// About how many registers a thread takes.
    fn registers(&self) -> usize {
        /// What addresses and counters take.
        const BESIDE: usize = 40;
        (BESIDE + words(&self.order, self.task.precision)).next_multiple_of(8).min(MOST_REGISTERS)
    }

    /// How many registers are lacking for the values of a thread.
    pub fn lacking(&self) -> usize {
        lacking(&self.order, self.task.precision, (self.threads, self.shape.gpu))
    }

    /// The planes of a block for which the last wave of blocks is fullest, against the steps before the first output.
    fn whole_waves(&self) -> usize {
        /// Blocks that walk for longer drift apart, and no longer find in the cache what their neighbours have read: on an H100 37 points
        /// on 512^3 cells take 1.07 times as long with 512 planes a block as with 128.
        const MOST: usize = 128;
        let (levels, resident) = (self.request.computed[2].len(), self.resident());
        let mut best = (0.0, levels.min(MOST));
        for parts in levels.div_ceil(MOST)..=levels.min(1024) {
            let planes = levels.div_ceil(parts);
            if levels.div_ceil(planes) != parts {
                continue;
            }
            let waves = (self.tiles.iter().product::<usize>() * parts) as f64 / resident as f64;
            let worth = waves / waves.ceil() * levels as f64 / (parts * (planes + self.flow.span)) as f64;
            if worth > best.0 {
                best = (worth, planes);
            }
        }
        best.1
    }
}

/// The most registers that values of a thread take.
fn words(order: &Order, precision: Precision) -> usize {
    order.most * precision.bytes() / 4
}

/// How many registers are lacking for the values of each of so many threads, all of which have to be there at once.
pub fn lacking(order: &Order, precision: Precision, (threads, gpu): (usize, Gpu)) -> usize {
    /// What divisions and functions hold on the way: for `sm_80` 102 words of a stencil that divides find no room in 128 registers.
    const SLOW: usize = 28;
    // Addresses and counters take what is saved by putting things off: for `sm_90` NVRTC 13.0 finds room for 128 words in 128 registers,
    // for 246 in 243 and for 256 in 251.
    let room = (gpu.registers as usize / threads).min(MOST_REGISTERS + 1);
    let on_the_way = if order.is_slow { SLOW } else { 0 };
    (words(order, precision) + on_the_way).saturating_sub(room)
}

/// The most registers of a thread.
const MOST_REGISTERS: usize = 255;

/// Bytes of shared memory that a block has besides its own.
const RESERVED: usize = 1 << 10;

impl Memory {
    fn new(task: &StepTask, request: &Request, flow: &Flow, shape: &Shape, tile: [usize; 2]) -> Self {
        let shared = || {
            flow.fields.iter().filter_map(|(&field, own)| match own.home {
                Home::Shared { area, back, .. } => Some((field, area, back)),
                Home::Memory | Home::Registers { .. } => None,
            })
        };
        let reach = shared().map(|(_, area, _)| area).reduce(|a, b| a.union(b)).unwrap_or_default();
        let ([before, after], [above, below]) = (reach.i.sides(), reach.j.sides());
        let widths: Vec<usize> =
            shared().map(|(field, ..)| load::at_once(task, request, field, (tile[0], before))).collect();
        let widest = widths.iter().copied().max().unwrap_or(1);
        let before = before.next_multiple_of(widest);
        let mut memory = Self {
            homes: BTreeMap::new(),
            before: [before, above],
            pitch: (before + tile[0] + after).next_multiple_of(widest),
            rows: above + tile[1] + below,
            slots: 0,
            bytes: 0,
        };
        let back = shared().map(|(_, _, back)| back).max().unwrap_or(0);
        memory.slots = shape.stages + back;
        for ((field, ..), many) in shared().zip(widths) {
            let element = task.stored(field);
            let is_walked = task.stencil.fields[field].place.levels != Levels::None;
            let slots = if is_walked { memory.slots } else { 1 };
            memory.homes.insert(field, Tile { element, offset: memory.bytes, is_walked, many });
            memory.bytes += (slots * memory.plane() * element.bytes()).next_multiple_of(AT_ONCE);
        }
        memory
    }
}
