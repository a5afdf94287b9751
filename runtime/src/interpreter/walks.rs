//! Paths on a grid whose columns stand in no rows.

use super::plan::{Item, Plan, Row, Target};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use stencilc_compiler::grid::{Adjacency, Region, Topology};
use stencilc_compiler::ir::Path;

/// Where paths lead, each walked once for all levels.
pub(super) struct Walks<'a> {
    adjacency: &'a Adjacency,
    found: Mutex<HashMap<Path, Arc<[i32]>>>,
}

impl<'a> Walks<'a> {
    pub fn new(adjacency: &'a Adjacency) -> Self {
        Self { adjacency, found: Mutex::default() }
    }

    /// Of each column the one at the end of a path, or -1.
    pub fn along(&self, path: &Path) -> Arc<[i32]> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ends) = found.get(path) {
            return Arc::clone(ends);
        }
        let grid = Topology::Adjacent(self.adjacency);
        let ends = (0..self.adjacency.cells()).map(|column| grid.walk(column, path).map_or(-1, |end| end as i32));
        let ends: Arc<[i32]> = ends.collect();
        found.insert(path.clone(), Arc::clone(&ends));
        ends
    }

    /// Of each of a level's rows, by column: whether an output of the region needs its value there.
    pub fn looked_at(&self, region: &Region, plans: &[Plan]) -> Vec<Arc<[bool]>> {
        let mut looked_at: HashMap<Row, Vec<bool>> = HashMap::new();
        let mut all = Vec::new();
        for plan in plans.iter().rev() {
            let mut here = looked_at.remove(&plan.row).unwrap_or_else(|| vec![false; self.adjacency.cells()]);
            if let (Item::Store(_), Some(cells)) = (plan.row.item, &region.cells) {
                cells.iter().for_each(|&cell| here[cell as usize] = true);
            }
            for target in plan.targets() {
                let Target::Row(row, path) = target else { continue };
                let there = looked_at.entry(*row).or_insert_with(|| vec![false; here.len()]);
                for (&end, _) in self.along(path).iter().zip(&here).filter(|&(&end, &here)| here && end >= 0) {
                    there[end as usize] = true;
                }
            }
            all.push(here.into());
        }
        all.reverse();
        all
    }
}
