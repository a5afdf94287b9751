//! `shared`: one thread of a column looks its neighbours up, all threads of the column read them from shared memory.

use super::{Access, LevelsPerThread, Lookups, Reach};
use crate::names::Names;

/// One thread a cell; those of a column, along z in a block, share what their leader looks up.
pub struct Shared;

/// Distances of a column in shared memory. Odd, and so coprime with the 32 banks: threads that read the same relation of
/// different columns meet in no bank.
fn stride(neighbours: usize) -> usize {
    neighbours | 1
}

impl Access for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; the first of a column's threads in a block looks up for all, through shared memory"
    }

    fn template(&self) -> &'static str {
        "cell.cu.tera"
    }

    fn levels(&self, _: u32) -> LevelsPerThread {
        LevelsPerThread::One
    }

    fn block(&self) -> [u32; 3] {
        [32, 1, 8]
    }

    fn shares(&self) -> bool {
        true
    }

    fn shared_bytes(&self, [x, y, _]: [u32; 3], neighbours: usize, wide: bool) -> usize {
        (x * y) as usize * stride(neighbours) * if wide { 8 } else { 4 }
    }

    fn sharing(&self, [_, _, z]: [u32; 3]) -> u32 {
        z
    }

    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups {
        let mut lookups = Lookups::default();
        if reach.wanted.is_empty() {
            return lookups;
        }
        let [x, y, _] = reach.block;
        let [pillar, distances] = names.internals(["pillar", "distances"]);
        let index_type = names.index_type();
        let (declared, texts) = reach.distances(names, false);
        // Only what a neighbour's index needs is shared, not the hops on the way.
        let ends = reach.last_hops();
        let stride = stride(ends.len());
        let row = match y {
            1 => "threadIdx.x".to_owned(),
            _ => format!("threadIdx.x + threadIdx.y * {x}"),
        };
        lookups
            .together
            .push(format!("const int {pillar} = ({row}) * {stride};").replace("(threadIdx.x)", "threadIdx.x"));
        lookups.together.push(format!("STENCILC_SHARED({index_type}, {distances}, [{}]);", (x * y) as usize * stride));
        lookups.together.push(format!("if (threadIdx.z == 0 && !({})) {{", reach.coordinates.outside));
        lookups.together.extend(declared.into_iter().map(|line| format!("    {line}")));
        let slot = |number: usize| match number {
            0 => format!("{distances}[{pillar}]"),
            _ => format!("{distances}[{pillar} + {number}]"),
        };
        let mut shared = texts.clone();
        for (number, &end) in ends.iter().enumerate() {
            lookups.together.push(format!("    {} = {};", slot(number), texts[end]));
            shared[end] = slot(number);
        }
        lookups.together.push("}".into());
        lookups.together.push("__syncthreads();".into());
        super::indices(reach, names, &shared, &mut lookups);
        lookups
    }
}
