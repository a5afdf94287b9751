//! Elements of a field that follow each other along i and are moved by one instruction.
//!
//! A thread that computes a tile begins at an aligned element. What is read at some width from there lies in aligned runs of
//! that width. A run of which at least two elements are read is loaded as one; what is written, always is.

use super::{Elements, Frame};
use crate::access::Cell;
use crate::analysis::extents::extents;
use crate::ir::{FieldId, Node, Offset, Path};
use crate::kernel::build::Builder;
use crate::names::path_name;
use crate::plan::phases::Phase;
use crate::plan::schedule::{Context, Item, KERNEL};
use crate::plan::{Plan, shape_of};
use std::collections::{BTreeMap, BTreeSet};

/// Loads the runs that a plan's kernel reads. Returns the elements in them, by fields and paths.
pub(super) fn load(frame: &Frame, own: &mut Builder, cell: Cell) -> Elements {
    let plan = frame.plan;
    let mut runs = Elements::new();
    let Some(width) = plan.run_width() else { return runs };
    let width = width as i32;
    let reach = extents(&plan.stencil);
    let mut read: BTreeMap<(FieldId, Offset), BTreeSet<i32>> = BTreeMap::new();
    for (field, path) in surely_read(plan) {
        let offset = path.offset();
        let first = offset.i.div_euclid(width) * width;
        read.entry((field, Offset { i: first, ..offset })).or_default().insert(offset.i);
    }
    for ((field, first), elements) in read {
        // What no cell of the tile can reach need not be there.
        let is_there = (reach.low.i..=reach.high.i).contains(&first.i);
        let Some(&nearest) = elements.first().filter(|_| elements.len() > 1 && is_there) else { continue };
        let path = |i: i32| Path::from_offset(Offset { i, ..first });
        let start = frame.index(own, cell, field, &path(nearest), true);
        let kind = own.kind(start);
        let back = own.literal(i64::from(nearest - first.i), kind);
        let start = own.sub(start, back);
        let array = frame.inputs[&field];
        let name = format!("{}_{}", own.kernel().arrays[array].name, path_name(&path(first.i)));
        let run = own.load_run(array, start, width as u8);
        let run = own.name(&name, run);
        for i in elements {
            let element = own.lane(run, (i - first.i) as u8);
            runs.insert((field, path(i)), element);
        }
    }
    runs
}

/// The reads of horizontal fields that each thread makes, whatever the conditions.
fn surely_read(plan: &Plan) -> BTreeSet<(FieldId, Path)> {
    let stencil = &plan.stencil;
    let mut read = BTreeSet::new();
    for (body, Item { at, contexts, .. }) in plan.phases.iter().flat_map(Phase::bodies) {
        for ((_, node), context) in body.iter().zip(contexts) {
            if let (Node::Read { field, path, .. }, Some(Context { block: KERNEL, sure: true })) = (node, context)
                && shape_of(stencil, *field).is_some()
            {
                read.insert((*field, plan.path_classes.join(at, path)));
            }
        }
    }
    read
}
