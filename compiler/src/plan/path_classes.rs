//! Which paths lead to the same cell.
//!
//! Where columns stand in rows, steps commute: paths that add up to the same offset are one. On other grids each path is
//! walked from every cell that is computed, and those that lead to the same cell from all of them are one.

use crate::grid::Adjacency;
use crate::ir::{Path, Step};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Paths, and one to stand for all that lead to the same cells.
#[derive(Clone, Debug, Default)]
pub struct PathClasses {
    /// Of each path without its levels the one that stands for it; none where steps commute.
    known: Option<BTreeMap<Path, Path>>,
}

/// Finds out which paths are one.
#[derive(Clone)]
pub struct Walker<'a> {
    adjacency: Option<&'a Adjacency>,
    /// The cells that are computed.
    cells: Vec<u32>,
    /// Whether paths with different sums of steps stay apart, wherever they lead.
    keeps_sums: bool,
    path_classes: PathClasses,
    /// Paths that stand for others, by a hash of where they lead.
    ends: HashMap<u64, Vec<Path>>,
}

impl PathClasses {
    /// The paths that stand for all others; nothing where steps commute.
    pub fn representatives(&self) -> Option<Vec<Path>> {
        let own: BTreeSet<&Path> = self.known.as_ref()?.values().collect();
        Some(own.into_iter().cloned().collect())
    }

    /// The path that stands for walking `first`, then `second`. Levels add up.
    pub fn join(&self, first: &Path, second: &Path) -> Path {
        let path = first.then(second);
        match &self.known {
            None => Path::from_offset(path.offset()),
            Some(known) => {
                let levels = path.levels();
                let own = path.without_levels();
                known.get(&own).cloned().unwrap_or(own).then(&Path::levels_only(levels))
            }
        }
    }
}

impl<'a> Walker<'a> {
    /// For grids whose columns stand in rows.
    pub fn rows() -> Self {
        let (cells, path_classes, ends) = Default::default();
        Self { adjacency: None, cells, keeps_sums: false, path_classes, ends }
    }

    /// For the cells of a grid that are computed.
    pub fn cells(adjacency: &'a Adjacency, cells: Vec<u32>) -> Self {
        let path_classes = PathClasses { known: Some(BTreeMap::new()) };
        let (keeps_sums, ends) = (false, HashMap::new());
        let mut walker = Self { adjacency: Some(adjacency), cells, keeps_sums, path_classes, ends };
        // A path that leads back is no path.
        walker.find(&Path::default());
        walker
    }

    /// The same, where of paths that lead to the same cells only those are one that have the same sum of steps: a path for each sum is
    /// there.
    pub fn keeping_sums(self) -> Self {
        Self { keeps_sums: true, ..self }
    }

    /// As [`PathClasses::join`], for any paths.
    pub fn join(&mut self, first: &Path, second: &Path) -> Path {
        self.find(&first.then(second).without_levels());
        self.path_classes.join(first, second)
    }

    /// What was found out.
    pub fn finish(self) -> PathClasses {
        self.path_classes
    }

    fn find(&mut self, path: &Path) {
        let (Some(adjacency), Some(known)) = (self.adjacency, &mut self.path_classes.known) else { return };
        if known.contains_key(path) {
            return;
        }
        let steps: Vec<Step> = path.units().collect();
        let end =
            |steps: &[Step], cell: u32| steps.iter().try_fold(cell as usize, |cell, &step| adjacency.step(cell, step));
        let mut hasher = DefaultHasher::new();
        self.cells.iter().for_each(|&cell| end(&steps, cell).hash(&mut hasher));
        let alike = self.ends.entry(hasher.finish()).or_default();
        let keeps_sums = self.keeps_sums;
        let same = alike.iter().filter(|other| !keeps_sums || other.offset() == path.offset()).find(|other| {
            let others: Vec<Step> = other.units().collect();
            self.cells.iter().all(|&cell| end(&steps, cell) == end(&others, cell))
        });
        let found = same.cloned().unwrap_or_else(|| {
            alike.push(path.clone());
            path.clone()
        });
        known.insert(path.clone(), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Axis;

    #[test]
    fn paths_that_lead_to_the_same_cells_are_one() {
        let step = |axis, by| Step { axis, by };
        let path = |steps: &[Step]| {
            let mut path = Path::default();
            steps.iter().for_each(|&step| path.walk(step));
            path
        };
        let (left, right, top) = (step(Axis::I, -1), step(Axis::I, 1), step(Axis::J, -1));
        let mut rows = Walker::rows();
        assert_eq!(rows.join(&path(&[top]), &path(&[left])), path(&[left, top]));
        assert_eq!(rows.join(&path(&[right]), &path(&[left])), Path::default());
        // Cell 1 is to the right of 0; what is left of 1 is 2.
        let adjacency =
            Adjacency::new("g", [vec![0, 2, 2], vec![1, 0, 0], vec![0, 0, 0], vec![1, 1, 1]], None).unwrap();
        let mut cells = Walker::cells(&adjacency, vec![0]);
        assert_eq!(cells.join(&path(&[right]), &path(&[left])), path(&[right, left]));
        assert_eq!(cells.join(&path(&[]), &path(&[left])), Path::default(), "0 is left of itself");
        let up = Path::levels_only(1);
        assert_eq!(cells.join(&path(&[top]), &path(&[right])), path(&[top, right]));
        assert_eq!(cells.join(&up, &path(&[right])), path(&[top, right]).then(&up), "found before");
        let mut sums = Walker::cells(&adjacency, vec![0]).keeping_sums();
        assert_eq!(sums.join(&path(&[]), &path(&[left])), path(&[left]), "0 is left of itself, one step away");
        assert_eq!(sums.join(&path(&[left]), &path(&[right])), path(&[left, right]), "and right of that is 1");
    }
}
