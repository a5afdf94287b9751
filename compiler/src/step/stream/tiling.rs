//! How a plane is cut into strips of warps, and how rows lie in registers.

use super::super::flow::{Flow, Source, Window};
use super::{Gpu, LANES, Shape, StepTask, Strip, computed};
use crate::diagnostic::Refusal;
use crate::kernel::Type;
use std::collections::BTreeMap;

/// The columns of a lane and the rows of a warp.
#[derive(Clone, Copy, Debug)]
pub struct Tiling {
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
        let [i, j] = computed(task, flow);
        if i.is_empty() || j.is_empty() {
            return Err(Refusal::new(format!(
                "no column has all neighbours that stencil `{}` reads",
                task.stencil.name
            )));
        }
        let nj = j.len();
        let refuse = |why: String| Err(Refusal::new(format!("stencil `{}` cannot stream: {why}", task.stencil.name)));
        if !shape.lane.is_power_of_two() || !(4..=128).contains(&shape.lane) {
            return refuse(format!("{} bytes a lane, and 4 to 128 are possible", shape.lane));
        }
        let mut lane = (shape.lane / task.precision.bytes()).max(1);
        while !ni.is_multiple_of(lane) {
            lane /= 2;
        }
        let (halo, columns) = match shape.strip {
            Strip::Overlapping if ni == LANES * lane => ([0, 0], ni),
            Strip::Overlapping => {
                let halo = [flow.i.before().div_ceil(lane), flow.i.after().div_ceil(lane)];
                let own = LANES.saturating_sub(halo[0] + halo[1]);
                if own == 0 {
                    return refuse(format!("it reads {} to {} columns away", flow.i.low, flow.i.high));
                }
                (halo, own * lane)
            }
            Strip::Aligned => {
                if !ni.is_multiple_of(LANES * lane) {
                    return refuse(format!("{ni} columns are no whole strips of {}", LANES * lane));
                }
                if flow.i.before().max(flow.i.after()) > lane {
                    return refuse(format!("it reads {} to {} columns away", flow.i.low, flow.i.high));
                }
                ([0, 0], LANES * lane)
            }
        };
        let period = flow.rows.iter().map(|row| row.kept).max().unwrap_or(0).max(1);
        let unrolled = least_common_multiple(period, shape.ahead);
        let strips = ni.div_ceil(columns);
        let mut tiling = Self { lane, halo, columns, strips, rows: nj, parts: 1, unrolled, steps: 0 };
        let rows = shape.rows.unwrap_or_else(|| {
            let warps = shape.gpu.warps(shape.registers.unwrap_or(tiling.registers(task, flow, shape)), shape.block);
            tiling.whole_waves(flow, nj, nk, warps)
        });
        tiling.rows = rows.clamp(1, nj);
        tiling.parts = nj.div_ceil(tiling.rows);
        tiling.steps = tiling.rows + flow.span;
        Ok(tiling)
    }

    /// About how many registers a thread takes.
    pub fn registers(&self, task: &StepTask, flow: &Flow, shape: &Shape) -> u32 {
        let held = held(flow, shape, self);
        let words = |source: Source| match source {
            Source::Field(field, _) => {
                Type::computing(task.stencil.fields[field].stored.kind(), task.precision).registers()
            }
            Source::Def(def, _) => Type::computing(task.stencil.defs[def].body.kind(), task.precision).registers(),
        };
        let rows = flow.rows.iter().zip(&held).map(|(row, held)| {
            let coming = if row.uses.is_empty() { shape.ahead } else { 0 };
            words(row.source) * (row.kept * (self.lane + held.halo[0] + held.halo[1]) + coming * self.lane)
        });
        let scratch = 24 + 4 * self.lane * task.precision.bytes() / 4;
        (scratch + rows.sum::<usize>()).min(255) as u32
    }

    /// How long a kernel should take, in loads of the plane.
    pub fn cost(&self, task: &StepTask, flow: &Flow, shape: &Shape) -> f64 {
        /// What a definition costs, in loads: fused multiply-adds are cheap, but shuffles are among them.
        const COMPUTED: f64 = 0.1;
        let held = held(flow, shape, self);
        let columns = (self.strips * LANES * self.lane) as f64 / task.extents[0] as f64;
        let (mut loaded, mut computed) = (0.0, 0.0);
        for (row, held) in flow.rows.iter().zip(&held) {
            let around = (held.halo[0] + held.halo[1]) as f64;
            match row.source {
                // What lies beyond a strip are two more sectors of 32 bytes.
                Source::Field(..) if held.computed => {
                    loaded += columns * (1.0 + around.min(1.0) * 64.0 / (LANES * shape.lane) as f64);
                }
                Source::Field(..) => loaded += columns,
                Source::Def(..) if held.computed => computed += columns * (1.0 + around / self.lane as f64),
                Source::Def(..) => computed += columns,
            }
        }
        let steps = self.steps.next_multiple_of(self.unrolled) * self.parts;
        let resident = shape.gpu.warps(shape.registers.unwrap_or(self.registers(task, flow, shape)), shape.block);
        let waves = (self.strips * self.parts * task.extents[2]) as f64 / f64::from(resident);
        let idle = waves.ceil() / waves;
        (loaded + COMPUTED * computed) * steps as f64 / task.extents[1] as f64 * idle
    }

    /// The rows of a warp for which the GPU's last wave of warps is fullest, against the steps before the first output.
    fn whole_waves(&self, flow: &Flow, nj: usize, nk: usize, resident: u32) -> usize {
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
        let warps = (block / LANES) as u32;
        let of_registers = self.registers / (32 * registers.clamp(8, 255).next_multiple_of(8));
        (of_registers.min(self.threads / 32) / warps).max(1) * warps * self.processors.max(1)
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

/// How far users look along i at each row, by how many rows back.
pub fn wanted(flow: &Flow) -> BTreeMap<(usize, usize), Window> {
    let mut wanted: BTreeMap<(usize, usize), Window> = BTreeMap::new();
    for (lag, used) in flow.users() {
        if let Some(row) = flow.age(lag, used) {
            let window = wanted.entry(row).or_default();
            *window = Window { low: window.low.min(used.i), high: window.high.max(used.i) };
        }
    }
    wanted
}

/// How each row lies in its registers.
pub fn held(flow: &Flow, shape: &Shape, tiling: &Tiling) -> Vec<Held> {
    let wanted = wanted(flow);
    let held = flow.rows.iter().enumerate().map(|(place, row)| {
        // A divisor of the unrolled steps, so that a slot is the same in each round.
        let slots = (row.kept..=tiling.unrolled).find(|&slots| slots > 0 && tiling.unrolled.is_multiple_of(slots));
        let slots = if row.kept == 0 { 0 } else { slots.unwrap_or(tiling.unrolled) };
        let (halo, computed) = match shape.strip {
            Strip::Aligned => ([row.i.before(), row.i.after()], true),
            Strip::Overlapping => {
                let wide = wanted.range((place, 0)..(place + 1, 0)).map(|(_, window)| *window);
                let wide: Vec<Window> = wide.filter(|window| *window != Window::default()).collect();
                // What several rows need is fetched from the neighbouring lanes once, and kept.
                let kept = if wide.len() > 1 { wide } else { Vec::new() };
                let most = |side: fn(Window) -> usize| kept.iter().map(|window| side(*window)).max().unwrap_or(0);
                ([most(Window::before), most(Window::after)], false)
            }
        };
        Held { halo, computed, slots }
    });
    held.collect()
}
