//! How threads are spread over what is computed, and how many blocks of them are launched.

use super::{KnownGrid, Plan};
use crate::access::LevelsPerThread;
use crate::diagnostic::Refusal;
use crate::storage::{Along, Threads};

impl Plan {
    /// How threads are spread over the computed columns.
    pub fn threads(&self) -> Threads {
        let (block, along) = (self.choices.block, self.columns_along());
        Threads { block, along, placement: self.placement().clone(), tile: self.tile }
    }

    /// About how many columns a thread computes, along each axis of columns.
    pub fn columns_of_a_thread(&self) -> [u32; 2] {
        match self.access.row() {
            Some(row) => [row, 1],
            None => self.tile.columns,
        }
    }

    /// How many levels a thread computes.
    pub fn levels_per_thread(&self) -> LevelsPerThread {
        self.access.levels(&self.choices.knobs)
    }

    /// How threads go along each axis of columns.
    pub fn columns_along(&self) -> &'static [Along] {
        self.storage.columns_along(self.levels_per_thread())
    }

    /// How threads go along levels.
    pub fn levels_along(&self) -> Along {
        self.storage.levels_along(self.levels_per_thread())
    }

    /// How many of `levels` levels a thread computes.
    pub fn levels_of_a_thread(&self, levels: usize) -> usize {
        match self.levels_per_thread() {
            LevelsPerThread::One => self.tile.levels as usize,
            LevelsPerThread::Slice(slice) => (slice as usize).min(levels),
            LevelsPerThread::All => levels,
        }
    }

    /// Whether the levels computed are known, and slices of them come out even.
    pub fn has_whole_slices(&self) -> bool {
        let known_grid = self.known_grid.as_ref().filter(|known_grid| known_grid.levels_known);
        match (self.levels_per_thread(), known_grid) {
            (LevelsPerThread::Slice(slice), Some(known_grid)) => {
                known_grid.region.k.len().is_multiple_of(slice as usize)
            }
            _ => false,
        }
    }

    /// Blocks along x, y and z for the known grid.
    ///
    /// # Errors
    /// There are more blocks than a launch can have.
    pub fn launch(&self, known_grid: &KnownGrid) -> Result<[u32; 3], Refusal> {
        if self.patches.is_some() {
            return self.launch_of_patches(known_grid);
        }
        if let Some(walk) = &self.walk {
            return Ok(walk.launch.grid);
        }
        let columns = self.storage.columns(&known_grid.region, &known_grid.layout);
        let columns =
            columns.iter().zip(self.columns_of_a_thread()).map(|(range, tile)| range.len().div_ceil(tile as usize));
        let levels = known_grid.region.k.len();
        let levels = levels.div_ceil(self.levels_of_a_thread(levels).max(1));
        let mut blocks = [1; 3];
        let along = self.columns_along().iter().copied().zip(columns);
        for (along, threads) in along.chain([(self.levels_along(), levels)]) {
            blocks[along.blocks as usize] = threads.div_ceil(along.threads_of(self.choices.block) as usize);
        }
        let limits = [i32::MAX as usize, 65_535, 65_535];
        for (axis, (blocks, limit)) in blocks.iter().zip(limits).enumerate() {
            if *blocks > limit {
                let name = ["x", "y", "z"][axis];
                return Err(Refusal::new(format!("{blocks} blocks along {name}: a launch has at most {limit}"))
                    .help(format!("give more threads along {name} with --block")));
            }
        }
        Ok(blocks.map(|blocks| blocks as u32))
    }
}
