//! Which shapes a plane can have in the registers of a cluster, and which should be fastest.

use super::super::flow::{Area, Flow};
use super::super::{StepTask, ranked};
use super::spans::{Part, part};
use super::{Carry, Shape, check};
use crate::gpu::{Gpu, WARP};

/// Shapes that a task can have, those that should be fastest first.
pub fn shapes(task: &StepTask, carry: &[Carry], gpu: &Gpu) -> Vec<Shape> {
    let Ok(flow) = Flow::new(task) else { return Vec::new() };
    let [_, nj, nk] = task.extents;
    let mut found = Vec::new();
    // A cluster of one block is launched as none, and then the GPU takes no rows that are sent.
    for blocks in [2, 4, 8, 16] {
        for warps in [1, 2, 4, 8, 16, 32] {
            if !nj.is_multiple_of(blocks * warps) {
                continue;
            }
            let mut shape = Shape { rows: nj / blocks / warps, warps, blocks, early: true };
            if check(task, &flow, carry, shape).is_err() {
                continue;
            }
            // Half of the registers of a thread at most are for the state, or other values find no room.
            let most = (gpu.registers as usize / (WARP * warps)).min(255);
            let [state, all] = registers(task, &flow, carry, shape.rows);
            if 2 * state > most + 8 {
                continue;
            }
            shape.early = all <= most;
            // Clusters that are there at once share the planes; a processor works best with about eight warps, and
            // the more rows a warp has, the less it sends and computes twice.
            let at_once = (gpu.processors as usize / blocks).max(1);
            let waves = (nk as f64 / at_once as f64).max(1.0);
            let reach = flow.reach.j.before() + flow.reach.j.after();
            let work = (shape.rows + reach) as f64 * (warps.max(8) as f64 / 8.0);
            // A step is never quicker than rows come from another processor.
            let least = if blocks > 1 { 6.0 } else { 3.0 };
            found.push(((waves * (work + least) * 1000.0).trunc(), shape));
        }
    }
    ranked(found)
}

/// About how many registers the state takes, and everything if a warp computes early.
fn registers(task: &StepTask, flow: &Flow, carry: &[Carry], rows: usize) -> [usize; 2] {
    let lane = task.extents[0] / WARP;
    let (mut state, mut others) = (0, 30);
    for row in &flow.rows {
        let Area { j, .. } = row.area;
        let around = j.before() + j.after();
        let words = task.kind(row.source).registers() * lane;
        match part(carry, row.source) {
            Part::State(_) => {
                state += words * rows;
                others += words * around;
            }
            Part::Constant(_) | Part::Def => others += words * (around + 1),
        }
    }
    [state, state + others]
}
