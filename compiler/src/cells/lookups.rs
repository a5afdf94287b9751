//! How often a kernel looks up where its neighbours are, counted in what strategy and storage make.

use super::levels::{distances, find_neighbours};
use super::{Frame, sizes, tables};
use crate::access::{Cell, Shape};
use crate::analysis::reuse::Evaluation;
use crate::ir::{Offset, Path};
use crate::kernel::Type;
use crate::kernel::build::Builder;
use crate::kernel::cost::Counter;
use crate::plan::{Plan, shape_of};
use serde::Serialize;
use std::collections::BTreeMap;

/// What reaching the neighbours takes, as the kernel is written. Compilers may find out that some of it is the same.
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
    if let Some(patches) = &plan.patches {
        // The lanes of a warp load a row together.
        let own = plan.levels_of_a_thread(levels);
        let cells = (plan.tile.columns.iter().product::<u32>() as usize * own) as f64;
        let wanted = plan.wanted.len();
        // Unless its warps have several.
        let width = patches.wanted.width();
        let loads = if plan.choices.block[0].is_multiple_of(32) { width.div_ceil(32) } else { width };
        let table_loads = loads as f64 / cells;
        return Work { levels: own, index_variables: wanted, lookups: wanted as f64 / cells, table_loads };
    }
    // Nothing but what leads to the neighbours.
    let mut builder = Builder::new("work", 1, "");
    let own = &mut builder;
    let tables = tables(plan, own);
    let sizes = sizes(plan, own, tables);
    let coordinates = plan.coordinates(own, &sizes);
    let (k, c) = (own.number("k", Type::I32), own.number("c", sizes.index));
    let cell = Cell { k, c, column: own.name("column", coordinates.column) };
    let mut frame = Frame::new(plan, sizes, coordinates);
    let (together, alone) = (own.open(), own.open());
    let handed = own.within(together, |own| distances(&frame, own, true));
    own.within(alone, |own| find_neighbours(&mut frame, own, handed, cell));
    let uses = uses(plan, evaluations);
    let is_wanted =
        |(path, shape): &(Path, Shape)| plan.wanted.iter().any(|wanted| wanted.path == *path && wanted.shape == *shape);
    let used = uses.iter().filter(|(place, _)| is_wanted(place)).map(|((path, shape), &uses)| {
        (own.within(alone, |own| frame.neighbourhood().index(own, &frame.addresses, path, *shape, cell)), uses)
    });
    let used: Vec<_> = used.collect();
    let (together, alone) = (own.close(together), own.close(alone));
    let mut counter = Counter::new(own.kernel());

    let own = plan.levels_of_a_thread(levels);
    let threads = levels.div_ceil(own.max(1)) as f64;
    let cells = levels.max(1) as f64;
    let sharing = f64::from(plan.access.sharing(plan.choices.block)).min(levels.max(1) as f64);
    let [for_all, for_one] = [&together, &alone].map(|block| counter.of_block(block).lookups as f64);
    let in_front = for_one + for_all / sharing;
    // Sums begin with 0: that of nothing would be -0.
    let of_uses =
        used.iter().fold(0.0, |sum, &(index, uses)| sum + counter.of_value(index).lookups as f64 * uses as f64 / cells);
    let lookups = match plan.tile.columns.iter().product::<u32>() {
        // Of a tile each place is worked out once, and serves all its cells.
        tile @ 2.. => plan.wanted.len() as f64 / f64::from(tile),
        // What stands in front of the first use is worked out once a thread; without it, every use works it out.
        _ if !alone.0.is_empty() => plan.wanted.len() as f64 * threads / cells / sharing,
        _ => uses.values().fold(0.0, |sum, &uses| sum + uses as f64 / cells),
    };
    Work { levels: own, index_variables: alone.0.len(), lookups, table_loads: in_front * threads / cells + of_uses }
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
