//! How a plane is cut into strips of warps, and how rows lie in registers.

use super::super::flow::{Flow, Source, Window};
use super::{Shape, StepTask, Strip, computed};
use crate::diagnostic::Refusal;
use crate::gpu::{Gpu, WARP};
use std::collections::BTreeMap;
use std::ops::Range;

/// The columns of a lane and the rows of a warp.
#[derive(Clone, Debug)]
pub struct Tiling {
    /// The columns and rows that are computed.
    pub computed: [Range<usize>; 2],
    /// How each row lies in its registers.
    pub held: Vec<Held>,
    /// Columns of a lane.
    pub lane: usize,
    /// Lanes that are others' at the left and at the right.
    pub halo: [usize; 2],
    /// Columns that a warp writes.
    pub columns: usize,
    /// Strips of a row.
    pub strips: usize,
    /// Rows that a warp writes.
    pub rows: usize,
    /// Parts of a strip.
    pub parts: usize,
    /// Steps after which registers have the same meaning again.
    pub unrolled: usize,
    /// Steps of a warp, among them those before its first output.
    pub steps: usize,
}

/// How a row lies in its registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Columns before and after the lane's own.
    pub halo: [usize; 2],
    /// Whether the columns beside are computed, or loaded; else they come from the neighbouring lanes.
    pub computed: bool,
    /// Rows that there is room for.
    pub slots: usize,
}

impl Tiling {
    /// The tiling of a task.
    ///
    /// # Errors
    /// The stencil reaches too far for the shape.
    pub fn new(task: &StepTask, flow: &Flow, shape: &Shape) -> Result<Self, Refusal> {
        let [ni, _, nk] = task.extents;
        let computed = computed(task, flow.reach)?;
        let (nj, reach) = (computed[1].len(), flow.reach.i);
        let refuse = |why: String| Err(task.refusal(format!("cannot stream: {why}")));
        let too_far = || refuse(format!("it reads {} to {} columns away", reach.low, reach.high));
        if !shape.lane.is_power_of_two() || !(4..=128).contains(&shape.lane) {
            return refuse(format!("{} bytes a lane, and 4 to 128 are possible", shape.lane));
        }
        let mut lane = (shape.lane / task.precision.bytes()).max(1);
        while !ni.is_multiple_of(lane) {
            lane /= 2;
        }
        let (halo, columns) = match shape.strip {
            Strip::Overlapping if ni == WARP * lane => ([0, 0], ni),
            Strip::Overlapping => {
                let halo = [reach.before().div_ceil(lane), reach.after().div_ceil(lane)];
                let own = WARP.saturating_sub(halo[0] + halo[1]);
                if own == 0 {
                    return too_far();
                }
                (halo, own * lane)
            }
            Strip::Aligned => {
                if !ni.is_multiple_of(WARP * lane) {
                    return refuse(format!("{ni} columns are no whole strips of {}", WARP * lane));
                }
                if reach.before().max(reach.after()) > lane {
                    return too_far();
                }
                ([0, 0], WARP * lane)
            }
        };
        let period = flow.rows.iter().map(|row| row.kept).max().unwrap_or(0).max(1);
        let mut multiples = (1..=shape.ahead).map(|times| times * period);
        let unrolled = multiples.find(|steps| steps.is_multiple_of(shape.ahead)).unwrap_or(period);
        let (strips, held) = (ni.div_ceil(columns), held(flow, shape, unrolled));
        let mut tiling = Self { computed, held, lane, halo, columns, strips, rows: nj, parts: 1, unrolled, steps: 0 };
        let rows = shape.rows.unwrap_or_else(|| tiling.whole_waves(flow, nk, tiling.resident(task, flow, shape)));
        tiling.rows = rows.clamp(1, nj);
        tiling.parts = nj.div_ceil(tiling.rows);
        tiling.steps = tiling.rows + flow.span;
        Ok(tiling)
    }

    /// How many warps should be there at once.
    pub fn resident(&self, task: &StepTask, flow: &Flow, shape: &Shape) -> u32 {
        shape.gpu.warps(shape.registers.unwrap_or_else(|| self.registers(task, flow, shape)), shape.block)
    }

    /// About how many registers a thread takes.
    fn registers(&self, task: &StepTask, flow: &Flow, shape: &Shape) -> u32 {
        let rows = flow.rows.iter().zip(&self.held).map(|(row, held)| {
            let coming = if row.uses.is_empty() { shape.ahead } else { 0 };
            let words = row.kept * (self.lane + held.halo[0] + held.halo[1]) + coming * self.lane;
            task.kind(row.source).registers() * words
        });
        let scratch = 24 + 4 * self.lane * task.precision.bytes() / 4;
        (scratch + rows.sum::<usize>()).min(255) as u32
    }

    /// How long a kernel should take, in loads of the plane.
    pub fn cost(&self, task: &StepTask, flow: &Flow, shape: &Shape) -> f64 {
        /// What a definition costs, in loads: fused multiply-adds are cheap, but shuffles are among them.
        const COMPUTED: f64 = 0.1;
        let columns = (self.strips * WARP * self.lane) as f64 / task.extents[0] as f64;
        let (mut loaded, mut computed) = (0.0, 0.0);
        for (row, held) in flow.rows.iter().zip(&self.held) {
            let around = (held.halo[0] + held.halo[1]) as f64;
            match row.source {
                // What lies beyond a strip are two more sectors of 32 bytes.
                Source::Field(..) if held.computed => {
                    loaded += columns * (1.0 + around.min(1.0) * 64.0 / (WARP * shape.lane) as f64);
                }
                Source::Field(..) => loaded += columns,
                Source::Def(..) if held.computed => computed += columns * (1.0 + around / self.lane as f64),
                Source::Def(..) => computed += columns,
            }
        }
        let steps = self.steps.next_multiple_of(self.unrolled) * self.parts;
        let warps = (self.strips * self.parts * task.extents[2]) as f64;
        let waves = warps / f64::from(self.resident(task, flow, shape));
        let idle = waves.ceil() / waves;
        (loaded + COMPUTED * computed) * steps as f64 / task.extents[1] as f64 * idle
    }

    /// The rows of a warp for which the GPU's last wave of warps is fullest, against the steps before the first output.
    fn whole_waves(&self, flow: &Flow, nk: usize, resident: u32) -> usize {
        let nj = self.rows;
        let mut best = (0.0, nj);
        for parts in 1..=nj.min(1024) {
            let rows = nj.div_ceil(parts);
            if nj.div_ceil(rows) != parts {
                continue;
            }
            let waves = (self.strips * parts * nk) as f64 / f64::from(resident);
            let steps = (rows + flow.span).next_multiple_of(self.unrolled);
            let worth = waves / waves.ceil() * nj as f64 / (parts * steps) as f64;
            if worth > best.0 {
                best = (worth, rows);
            }
        }
        best.1
    }
}

impl Gpu {
    /// How many warps are there at once, of blocks of so many threads with so many registers each.
    pub fn warps(&self, registers: u32, block: usize) -> u32 {
        let warps = (block / WARP) as u32;
        let of_registers = self.registers / (32 * registers.clamp(8, 255).next_multiple_of(8));
        (of_registers.min(self.threads / 32) / warps).max(1) * warps * self.processors.max(1)
    }
}

/// How far users look along i at each row, by how many rows back.
pub fn wanted(flow: &Flow) -> BTreeMap<(usize, usize), Window> {
    let mut wanted: BTreeMap<(usize, usize), Window> = BTreeMap::new();
    for (lag, used) in flow.users() {
        if let Some(row) = flow.age(lag, used) {
            let window = wanted.entry(row).or_default();
            *window = window.union(Window::at(used.i));
        }
    }
    wanted
}

/// How each row lies in its registers.
fn held(flow: &Flow, shape: &Shape, unrolled: usize) -> Vec<Held> {
    let wanted = wanted(flow);
    let held = flow.rows.iter().enumerate().map(|(place, row)| {
        // A divisor of the unrolled steps, so that a slot is the same in each round.
        let slots = (row.kept..=unrolled).find(|&slots| slots > 0 && unrolled.is_multiple_of(slots));
        let slots = if row.kept == 0 { 0 } else { slots.unwrap_or(unrolled) };
        let (beside, computed) = match shape.strip {
            Strip::Aligned => (row.area.i, true),
            Strip::Overlapping => {
                // What several rows need is fetched from the neighbouring lanes once, and kept.
                let windows = wanted.range((place, 0)..(place + 1, 0)).map(|(_, window)| *window);
                (Window::of_several(windows), false)
            }
        };
        Held { halo: beside.sides(), computed, slots }
    });
    held.collect()
}
