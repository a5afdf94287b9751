//! Which tiles should be fastest.
//!
//! A model of what a multiprocessor has to do for a tile: bytes that come from memory and, around the tile, from the level 2
//! cache; accesses to shared memory, 32 banks wide; operations. What is slowest counts, with a part of the others, which do
//! not hide behind it entirely. A tile's loads and barriers follow each other: that is hidden only by other blocks.

use super::super::flow::{Flow, Source, Use};
use super::super::{StepTask, ranked};
use super::loops::{Loops, Parts};
use super::memory::element;
use super::{Layout, Shape};
use crate::gpu::{Gpu, MOST_SHARED, WARP};
use crate::ir::{Body, Node, Precision};
use std::collections::BTreeSet;

/// Bytes a clock that a multiprocessor gets from memory, and from the level 2 cache, where all of them ask for some.
const MEMORY: f64 = 17.0;
const CACHE: f64 = 28.0;

/// Clocks until what is asked for comes from memory, and until it comes from shared memory and is computed with.
const LOADED: f64 = 900.0;
const LOOKED: f64 = 60.0;

/// Clocks from an operation of a warp to its next.
const NEXT: f64 = 2.0;

/// Warps' operations a clock.
const ISSUED: f64 = 4.0;

/// Operations that find a thread's cells in a loop, and what a load of some elements needs.
const PLACED: f64 = 14.0;

/// What the slower parts leave of the faster ones' time to be seen.
const SEEN: f64 = 0.25;

/// Bytes of shared memory that a block has besides its own.
const RESERVED: usize = 1 << 10;

/// Threads of the smallest blocks.
const FEWEST: usize = 128;

/// Shapes that a task can have, those that should be fastest first.
pub fn shapes(task: &StepTask, gpu: &Gpu) -> Vec<Shape> {
    let Ok(flow) = Flow::new(task) else { return Vec::new() };
    let loops = Loops::new(&flow);
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for columns in [32, 64, 128] {
        for tile in [8, 16, 32, 64].map(|rows| [columns, rows]) {
            for (threads, rows) in
                [FEWEST, 256, 512].into_iter().flat_map(|threads| [8, 4, 2].map(|rows| (threads, rows)))
            {
                let shape = Shape { tile, threads, rows };
                let Ok(layout) = Layout::new(task, &flow, &loops, shape) else { continue };
                // Threads of a larger block would have nothing to do.
                if threads > FEWEST && layout.tile[0] * layout.tile[1] < threads * rows {
                    continue;
                }
                let has_room = layout.memory.bytes <= MOST_SHARED.min(gpu.shared as usize - RESERVED);
                if has_room && known.insert((layout.tile, threads, rows)) {
                    found.push((layout.cost(gpu), shape));
                }
            }
        }
    }
    ranked(found)
}

impl Layout<'_> {
    /// Clocks that the tiles of all planes should take.
    fn cost(&self, gpu: &Gpu) -> f64 {
        let work = Work::new(self);
        let parts = [work.from_memory / MEMORY + work.from_cache / CACHE, work.shared, work.operations / ISSUED];
        let most = parts.into_iter().fold(0.0, f64::max);
        let own = most + SEEN * (parts.iter().sum::<f64>() - most);
        let room = gpu.shared as usize / (self.memory.bytes + RESERVED);
        let blocks = room.min(gpu.threads as usize / self.shape.threads).clamp(1, 32) as f64;
        let each = own.max((own + work.latency) / blocks);
        let tiles = self.count() as f64 / f64::from(gpu.processors);
        // Blocks follow each other, so only the last of them leave a multiprocessor idle.
        (tiles + 0.5 * (blocks.min(tiles) - 1.0)).max(1.0) * each
    }
}

/// What a block does.
#[derive(Default)]
struct Work {
    /// Bytes.
    from_memory: f64,
    from_cache: f64,
    /// Clocks of shared memory.
    shared: f64,
    /// Instructions of warps.
    operations: f64,
    /// Clocks that what follows each other takes.
    latency: f64,
}

impl Work {
    fn new(layout: &Layout) -> Self {
        let Layout { task, flow, loops, tile, .. } = *layout;
        let mut own = Self::default();
        let stencil = task.stencil;
        let cells = (tile[0] * tile[1]) as f64;
        for store in &stencil.stores {
            own.from_memory += cells * stencil.fields[store.field].stored.bytes(task.precision) as f64;
        }
        for (place, field) in flow.fields() {
            let bytes = task.stored(field).bytes();
            own.from_memory += cells * bytes as f64;
            if let Some(area) = loops.kept[place] {
                let load = layout.load(field, area);
                let loaded = load.elements(tile[1]) as f64;
                own.from_cache += (loaded - cells).max(0.0) * bytes as f64;
                own.shared += loaded * bytes as f64 / 128.0;
                own.operations += load.items(tile[1]) as f64 * PLACED / WARP as f64;
                own.latency = LOADED;
            }
        }
        for number in 0..loops.loops.len() {
            own.add_loop(layout, number);
        }
        own
    }

    fn add_loop(&mut self, layout: &Layout, number: usize) {
        let Layout { task, flow, loops, tile, shape, .. } = *layout;
        let stencil = task.stencil;
        let own = &loops.loops[number];
        let Parts { cells: [columns, _], count, rows, .. } = own.parts(tile, shape.rows);
        let (items, rows) = ((columns * count) as f64, rows as i32);
        let words = |place: usize| (element(task, flow.rows[place].source).bytes() as f64 / 4.0).max(1.0);
        // What several rows look at is read once.
        let looks: BTreeSet<(usize, Use)> = loops
            .uses(flow, number)
            .filter(|(place, _)| loops.kept[*place].is_some())
            .flat_map(|(place, used)| (0..rows).map(move |row| (place, Use { j: used.j + row, ..used })))
            .collect();
        let kept: Vec<usize> = own.values.iter().copied().filter(|&place| loops.kept[place].is_some()).collect();
        let moved = looks.iter().map(|(place, _)| words(*place)).sum::<f64>()
            + kept.iter().map(|&place| words(place) * f64::from(rows)).sum::<f64>();
        self.shared += items * moved / WARP as f64;
        let mut bodies: Vec<&Body> = Vec::new();
        for &place in &own.values {
            if let Source::Def(def, _) = flow.rows[place].source {
                bodies.push(&stencil.defs[def].body);
            }
        }
        if number + 1 == loops.loops.len() {
            bodies.extend(stencil.stores.iter().map(|store| &store.body));
        }
        let nodes = bodies.into_iter().flat_map(Body::iter);
        let nodes = nodes.filter(|(_, node)| !matches!(node, Node::Read { .. } | Node::Use { .. })).count();
        // Multiprocessors have half as many units for double precision.
        let each = if task.precision == Precision::F64 { 2.0 } else { 1.0 };
        let accesses = (looks.len() + kept.len() * rows as usize) as f64;
        let operations = accesses + each * f64::from(rows) * nodes as f64 + PLACED;
        self.operations += items * operations / WARP as f64;
        self.latency += (items / shape.threads as f64).ceil() * (LOOKED + NEXT * operations);
    }
}
