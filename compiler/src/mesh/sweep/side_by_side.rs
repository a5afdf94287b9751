//! The kernel of a stencil with sweeps on a CPU: a thread goes from level to level with many columns, which have nothing to do with each
//! other, so that compilers make vectors of them.

use super::ahead::{beside, is_level, prefetch, wanted};
use super::{Column, Sweeping, level, levels};
use crate::cells::carried::{COMING, Carried, LINE, columns_side_by_side};
use crate::ir::{Direction, FieldId, MeshStencil};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{Step, Unroll, ValueId};
use crate::mesh::writer::Writer;
use crate::mesh::{Items, Kernel, MeshChoices, MeshTask};
use crate::plan::phases::Kept;
use std::collections::BTreeMap;

/// Columns side by side where each lies by itself, at most: what lies as far apart as columns do has few places in a cache.
const COLUMNS: usize = 16;

/// Returns the kernel that does this in each of its loops.
pub fn kernel<'a>(
    task: &'a MeshTask<'a>,
    choices: &'a MeshChoices,
    loops: &'a [(Option<Direction>, MeshStencil)],
    kept: &BTreeMap<FieldId, Kept>,
) -> Kernel {
    let own = task.stencil;
    let columns = columns_side_by_side(&own.stencil, kept, task.levels, task.precision);
    let columns = if choices.layout.is_by_column() { columns.min(COLUMNS) } else { columns };
    let mut writer = Writer::new(task, choices, &own.stencil.name);
    let range = writer.own_range();
    let n = range.as_ref().map_or_else(|| writer.size(own.set()), |range| range.n);
    let [first, end] = writer.items_of_block(columns as u32, n);
    let levels = levels(&writer) as i64;
    let all = Carried::of_columns(&mut writer.own, (&own.stencil, kept), (task.levels, columns), task.precision);
    for (direction, phase) in loops {
        let is_down = *direction == Some(Direction::Down);
        let (from, to) = if is_down { (levels - 1, 0) } else { (0, levels) };
        let one = writer.own.int(1);
        let step = if is_down { Step::Down(one) } else { Step::By(one) };
        let coming = if choices.layout.is_by_column() { Vec::new() } else { wanted(&writer, phase) };
        let coming = beside(&writer, coming);
        let element_of = |writer: &mut Writer, item: ValueId| match &range {
            Some(range) => writer.own.name(range.name, range.first.plus(item)),
            None => item,
        };
        writer.each("k", (from, to, step), Unroll::Times(1), |writer, k| {
            let further = if is_down { k.minus(COMING) } else { k.plus(COMING) };
            let further = writer.own.name("k_further", further);
            let is_level = is_level(writer, further, is_down);
            writer.when_if((!coming.is_empty()).then_some(is_level), |writer| {
                let line = Step::By(writer.own.int(LINE as i64));
                writer.each("item", (first, end, line), Unroll::Times(1), |writer, item| {
                    let element = element_of(writer, item);
                    writer.set_index(&[], element);
                    prefetch(writer, &coming, further);
                });
            });
            writer.each("item", (first, end, Step::By(one)), Unroll::SideBySide, |writer, item| {
                let element = element_of(writer, item);
                let number = writer.own.term(item.minus(first));
                let carried = all.of_column(&mut writer.own, number, columns);
                writer.sweeping = Some(Sweeping { carried, direction: *direction, stores: &phase.stencil.stores });
                writer.set_index(&[], element);
                writer.at_level(k);
                level(writer, phase, Column { element, of_block: None }, None);
            });
        });
    }
    let items = range.map_or(Items::Set(own.set(), None), |range| range.items);
    writer.finish("a thread some elements side by side, from level to level", items, Vec::new())
}
