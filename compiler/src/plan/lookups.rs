//! How often a kernel looks up where its neighbours are, read off the texts that strategy and storage make.

use super::{Plan, shape_of};
use crate::access::{LevelsPerThread, Shape};
use crate::analysis::reuse::Evaluation;
use crate::ir::{Offset, Path};
use crate::names::Names;
use serde::Serialize;
use std::collections::BTreeMap;

/// What reaching the neighbours takes, as the kernel's text says it. Compilers may find out that some of it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Work {
    /// Levels a thread.
    pub levels: usize,
    /// Variables for indices, a thread.
    pub index_variables: usize,
    /// Places of neighbours that are worked out, a cell.
    pub lookups: f64,
    /// Entries of tables that are loaded, a cell.
    pub table_loads: f64,
}

/// The work of `plan` for cells of `levels` levels; `evaluations` are those of the cells of a column, each with how many
/// cells have it.
pub fn work(plan: &Plan, levels: usize, evaluations: &[(&Evaluation, usize)]) -> Work {
    let mut names = Names::new(plan.wide);
    let coordinates = plan.coordinates(&mut names);
    let lookups = plan.access.lookups(&plan.reach(&coordinates), &mut names);
    let tables: Vec<String> = plan.tables().iter().map(|&(table, _)| names.internal(table)).collect();
    let loads = |text: &str| {
        // A step of the helper looks into each table once.
        let steps = text.matches("neighbour_of(").count() * tables.len();
        (tables.iter().map(|table| count(text, table)).sum::<usize>() + steps) as f64
    };

    let own = levels_of_a_thread(plan, levels);
    let threads = levels.div_ceil(own.max(1)) as f64;
    let cells = levels.max(1) as f64;
    let all = |lines: &[String]| lines.iter().fold(0.0, |sum, line| sum + loads(line));
    let together = f64::from(plan.access.sharing(plan.choices.block)).min(levels.max(1) as f64);
    let in_front = all(&lookups.lines) + all(&lookups.together) / together;
    let mut work = Work {
        levels: own,
        index_variables: lookups.lines.len(),
        lookups: 0.0,
        table_loads: in_front * threads / cells,
    };
    let uses = uses(plan, evaluations);
    for (place, &uses) in &uses {
        let uses = uses as f64 / cells;
        work.table_loads += lookups.index.get(place).map_or(0.0, |text| loads(text)) * uses;
        work.lookups += uses;
    }
    // Of a tile each place is worked out once, and serves all its cells.
    if plan.access.tiles() {
        let [i, j] = plan.tile.columns;
        work.lookups = plan.wanted.len() as f64 / f64::from(i * j);
    }
    // What stands in front of the first use is worked out once a thread; without it, every use works it out.
    if !lookups.lines.is_empty() {
        work.lookups = plan.wanted.len() as f64 * threads / cells / together;
    }
    work
}

/// How many of `levels` levels a thread computes.
pub(super) fn levels_of_a_thread(plan: &Plan, levels: usize) -> usize {
    match plan.levels_per_thread() {
        LevelsPerThread::One => 1,
        LevelsPerThread::Slice(slice) => (slice as usize).min(levels),
        LevelsPerThread::All => levels,
    }
}

/// How often the cells of a column read each neighbour in fields of each shape, every value computed once.
fn uses(plan: &Plan, evaluations: &[(&Evaluation, usize)]) -> BTreeMap<(Path, Shape), u64> {
    let mut uses = BTreeMap::new();
    for &(evaluation, cells) in evaluations {
        for (&field, reads) in &evaluation.reads {
            let Some(shape) = shape_of(&plan.stencil, field) else { continue };
            for (offset, times) in reads {
                if offset.horizontal() != Offset::default() {
                    *uses.entry((Path::from_offset(offset.horizontal()), shape)).or_default() += times * cells as u64;
                }
            }
        }
    }
    uses
}

/// How often `table[` stands in a text, as a name of its own.
fn count(text: &str, table: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let places = text.match_indices(table).map(|(at, _)| at);
    places
        .filter(|&at| text[at + table.len()..].starts_with('[') && !text[..at].chars().next_back().is_some_and(is_word))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_counted_by_their_table() {
        assert_eq!(count("cell + table[pattern[cell]]", "table"), 1);
        assert_eq!(count("cell + table[pattern[cell]] + my_table[3] + tables[4]", "table"), 1);
        assert_eq!(count("const int p = pattern[cell];", "pattern"), 1);
    }
}
