//! `warp`: one lane of a column looks its neighbours up and hands them to the others of its warp.

use super::{Access, LevelsPerThread, Lookups, Reach};
use crate::names::{Names, path_name};

/// One thread a cell; those of a column that are in the same warp share what their leader looks up.
pub struct Warp;

/// Lanes of a warp.
const LANES: u32 = 32;

impl Access for Warp {
    fn name(&self) -> &'static str {
        "warp"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; the first of a column's lanes in a warp looks up for all, by shuffles"
    }

    fn template(&self) -> &'static str {
        "cell.cu.tera"
    }

    fn levels(&self, _: u32) -> LevelsPerThread {
        LevelsPerThread::One
    }

    fn block(&self) -> [u32; 3] {
        // Four lanes of a warp are one column's.
        [8, 1, 16]
    }

    fn shares(&self) -> bool {
        true
    }

    fn sharing(&self, [x, y, z]: [u32; 3]) -> u32 {
        (LANES / (x * y)).clamp(1, z)
    }

    fn lookups(&self, reach: &Reach, names: &mut Names) -> Lookups {
        let mut lookups = Lookups::default();
        if reach.wanted.is_empty() {
            return lookups;
        }
        let [x, y, z] = reach.block;
        let [lane, leader, lanes] = names.internals(["lane", "leader", "lanes"]);
        let index_type = names.index_type();
        let (declared, texts) = reach.distances(names, false);
        let thread = match (y, z) {
            (1, 1) => "threadIdx.x".to_owned(),
            (_, 1) => format!("threadIdx.x + {x} * threadIdx.y"),
            (1, _) => format!("threadIdx.x + {x} * threadIdx.z"),
            _ => format!("threadIdx.x + {x} * (threadIdx.y + {y} * threadIdx.z)"),
        };
        let together = &mut lookups.together;
        together.push(format!("const unsigned {lane} = ({thread}) % {LANES};"));
        // Threads are numbered column by column, so lanes this far apart have the same column.
        together.push(format!("const unsigned {leader} = {lane} % {};", x * y));
        let (threads, last) = (x * y * z, (x * y * z) % LANES);
        let mask = match last {
            0 => "0xffffffffu".to_owned(),
            // The last warp of a block is not full.
            _ => format!("{thread} < {} ? 0xffffffffu : {:#x}u", threads - last, (1u32 << last) - 1),
        };
        together.push(format!("const unsigned {lanes} = {mask};"));
        let ends = reach.last_hops();
        let mut handed = texts.clone();
        for &end in &ends {
            let name = names.fresh(&format!("by_{}", path_name(&reach.hops[end].path)));
            together.push(format!("{index_type} {name} = 0;"));
            handed[end] = name;
        }
        together.push(format!("if ({lane} == {leader} && !({})) {{", reach.coordinates.outside));
        together.extend(declared.into_iter().map(|line| format!("    {line}")));
        together.extend(ends.iter().map(|&end| format!("    {} = {};", handed[end], texts[end])));
        together.push("}".into());
        for &end in &ends {
            together.push(format!("{0} = __shfl_sync({lanes}, {0}, {leader});", handed[end]));
        }
        super::indices(reach, names, &handed, &mut lookups);
        lookups
    }
}
