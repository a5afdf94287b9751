//! What is known on levels that are alike: found out once for all of them.

use super::plan::{Item, Row};
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::analysis::runs::{differing, runs};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Handle, NodeId};

/// The most values that are kept.
const KEPT: usize = 1 << 20;

/// The values of nodes that are known.
pub(super) type Values = Arc<[Option<Value>]>;

/// Known values, level by level.
pub(super) struct Alike {
    /// Levels of which one tells all but numbers that depend on the level.
    runs: Vec<Range<usize>>,
    /// By definition, and by store, the nodes that are such numbers.
    differing: [Vec<Vec<NodeId>>; 2],
    /// On the first level of a run: of what, and how many levels from there.
    found: Mutex<Kept<(Item, i32, usize), Values>>,
}

/// What is kept of values, until there are too many. How many there are is counted as they come: whoever looks at all of them for
/// each that comes does most of the work here.
struct Kept<K, V> {
    found: HashMap<K, V>,
    values: usize,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { found: HashMap::new(), values: 0 }
    }
}

impl<K: Eq + Hash, V: AsRef<[Option<Value>]>> Kept<K, V> {
    fn keep(&mut self, key: K, values: V) {
        if self.values > KEPT {
            *self = Self::default();
        }
        self.values += values.as_ref().len();
        // Two threads may have found the same.
        if let Some(before) = self.found.insert(key, values) {
            self.values -= before.as_ref().len();
        }
    }
}

impl Alike {
    /// On the levels of a region.
    pub fn new(known: &Known, levels: Range<usize>) -> Self {
        // Sweeps are computed level by level.
        let (runs, differing) = match levels.len() {
            0 | 1 => (vec![levels], Default::default()),
            _ => (runs(known, levels, None), differing(known)),
        };
        Self { runs, differing, found: Mutex::default() }
    }

    /// The values of a row's body where a level of the region is computed.
    pub fn values(&self, known: &Known, body: &Body, row: Row, level: usize) -> Values {
        let run = &self.runs[self.runs.partition_point(|run| run.end <= level)];
        if run.len() == 1 {
            return known.values(body, row.level.into()).into();
        }
        let shift = row.level - level as i32;
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (row.item, shift, run.start);
        let first = found().found.get(&key).cloned();
        let first = first.unwrap_or_else(|| {
            let first: Values = known.values(body, run.start as i64 + i64::from(shift)).into();
            found().keep(key, first.clone());
            first
        });
        let differing = match row.item {
            Item::Def(def) => &self.differing[0][def.index()],
            Item::Store(store) => &self.differing[1][store],
            Item::Load(_) => return first,
        };
        if differing.is_empty() {
            return first;
        }
        let mut own = first.to_vec();
        known.change(body, row.level.into(), differing, &mut own);
        own.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Values that count how often somebody looks at them.
    struct Counted<'a>(&'a Cell<usize>);

    impl AsRef<[Option<Value>]> for Counted<'_> {
        fn as_ref(&self) -> &[Option<Value>] {
            self.0.set(self.0.get() + 1);
            &[None; 1000]
        }
    }

    #[test]
    fn keeping_looks_at_what_comes_and_no_more() {
        let (looks, mut kept, count) = (Cell::new(0), Kept::default(), 5000);
        for key in 0..count {
            kept.keep(key, Counted(&looks));
            kept.keep(key, Counted(&looks));
            assert!(kept.values <= KEPT + 1000 && kept.values == 1000 * kept.found.len());
        }
        assert!(looks.get() <= 4 * count, "{}", looks.get());
    }
}
