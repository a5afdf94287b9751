//! Elements of a field that follow each other along i and are moved by one instruction.
//!
//! A thread that computes a tile begins at an aligned element. What is read at some width from there lies in aligned runs of
//! that width. A run of which at least two elements are read is loaded as one; what is written, always is.

use super::Named;
use super::index::index;
use crate::access::Lookups;
use crate::analysis::extents::extents;
use crate::ir::{FieldId, Node, Offset, Path};
use crate::plan::phases::Phase;
use crate::plan::schedule::{Context, Item, KERNEL};
use crate::plan::{Plan, shape_of};
use std::collections::{BTreeMap, BTreeSet};

/// What runs are moved by: C++.
pub const HELPER: &str = "\
/* N elements that follow each other, moved at once. */
template <class T, int N> struct alignas(N * sizeof(T)) Run {
    T at[N];
};
template <int N, class T> static __device__ __forceinline__ Run<T, N> load_run(const T* first)
{
    return *reinterpret_cast<const Run<T, N>*>(first);
}
template <class T, class... Values> static __device__ __forceinline__ void store_run(T* first, Values... values)
{
    *reinterpret_cast<Run<T, sizeof...(Values)>*>(first) = {{T(values)...}};
}";

/// The loads of runs, and the elements in them.
#[derive(Default)]
pub struct Runs {
    /// Declarations.
    pub lines: Vec<String>,
    /// Of a field read at a path the text of its value.
    pub elements: BTreeMap<(FieldId, Path), String>,
}

impl Runs {
    /// The runs that `plan`'s kernel loads.
    pub fn new(plan: &Plan, named: &mut Named, lookups: &Lookups) -> Self {
        let mut runs = Self::default();
        let Some(width) = plan.run_width() else { return runs };
        let width = width as i32;
        let reach = extents(&plan.stencil);
        let mut read: BTreeMap<(FieldId, Offset), BTreeSet<i32>> = BTreeMap::new();
        for (field, path) in surely_read(plan) {
            let offset = path.offset();
            let first = offset.i.div_euclid(width) * width;
            read.entry((field, Offset { i: first, ..offset })).or_default().insert(offset.i);
        }
        for ((field, first), own) in read {
            // What no cell of the tile can reach need not be there.
            let is_there = (reach.low.i..=reach.high.i).contains(&first.i);
            let Some(&nearest) = own.first().filter(|_| own.len() > 1 && is_there) else { continue };
            let path = |i: i32| Path::from_offset(Offset { i, ..first });
            let sure = Context { block: KERNEL, sure: true };
            let start = index(plan, named, lookups, field, &path(nearest), sure);
            let start = match nearest - first.i {
                0 => start,
                back => format!("{start} - {back}"),
            };
            let array = named.inputs[&field].clone();
            let name = named.names.fresh(&format!("{array}_{}", crate::names::path_name(&path(first.i))));
            runs.lines.push(format!("const auto {name} = load_run<{width}>(&{array}[{start}]);"));
            let elements = own.iter().map(|&i| ((field, path(i)), format!("{name}.at[{}]", i - first.i)));
            runs.elements.extend(elements);
        }
        runs
    }
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
                read.insert((*field, plan.ways.join(at, path)));
            }
        }
    }
    read
}
