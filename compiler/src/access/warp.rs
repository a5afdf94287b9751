//! `warp`: one lane of a column looks its neighbours up and hands them to the others of its warp.

use super::{Access, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::gpu::WARP;
use crate::ir::Relation;
use crate::kernel::build::{Builder, Computing, Making, Term};
use crate::kernel::{Axis, Coordinate, ValueId};
use crate::names::path_name;
use crate::storage::Storage;

/// One thread a cell; those of a column that are in the same warp share what their leader looks up.
pub struct Warp;

/// Lanes of a warp.
const LANES: u32 = WARP as u32;

impl Access for Warp {
    fn name(&self) -> &'static str {
        "warp"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; the first of a column's lanes in a warp looks up for all, by shuffles"
    }

    fn block(&self) -> [u32; 3] {
        // Four lanes of a warp are one column's.
        [8, 1, 16]
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        super::needs_look_ups(self, storage)
    }

    fn sharing(&self, [x, y, z]: [u32; 3]) -> u32 {
        (LANES / (x * y)).clamp(1, z)
    }

    fn is_together(&self) -> bool {
        true
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        let [x, y, z] = neighbourhood.block;
        let thread = own.term(thread_of_block(neighbourhood.block));
        let lane = own.name("lane", thread.rem(LANES));
        // Threads are numbered column by column, so lanes this far apart have the same column.
        let leader = own.name("leader", lane.rem(x * y));
        let (threads, last) = (x * y * z, (x * y * z) % LANES);
        let all = own.mask(u32::MAX);
        let here = match last {
            0 => all,
            _ if threads < LANES => own.mask((1 << last) - 1),
            // The last warp of a block is not full.
            _ => {
                let rest = own.mask((1 << last) - 1);
                own.term(thread.less(threads - last).picks(all, rest))
            }
        };
        let here = own.name("lanes", here);
        let last_hops = neighbourhood.last_hops();
        let zero = own.literal(0, neighbourhood.sizes.index);
        let handed = last_hops.iter().map(|&end| {
            let name = format!("by_{}", path_name(&neighbourhood.hops[end].path));
            (end, own.variable(&name, zero))
        });
        let handed: Vec<_> = handed.collect();
        let has_cell = own.not(neighbourhood.coordinates.outside);
        let mut distances = vec![zero; neighbourhood.hops.len()];
        own.when(lane.is(Relation::Eq, leader).and(has_cell), |own| {
            distances = neighbourhood.hop_distances(own, false);
            handed.iter().for_each(|&(end, variable)| own.assign(variable, distances[end]));
        });
        for (end, variable) in handed {
            let mine = own.get(variable);
            let leaders = own.shuffle(mine, leader, here);
            own.assign(variable, leaders);
            distances[end] = own.get(variable);
        }
        Some(distances)
    }

    fn has_index_variables(&self) -> bool {
        true
    }
}

/// The number of a thread in its block.
fn thread_of_block([x, y, z]: [u32; 3]) -> Term {
    let [along_x, along_y, along_z] = [Axis::X, Axis::Y, Axis::Z].map(|axis| Coordinate::Thread.along(axis));
    let rows = match (y, z) {
        (1, 1) => return along_x,
        (_, 1) => along_y,
        (1, _) => along_z,
        _ => along_y.plus(y.times(along_z)),
    };
    along_x.plus(x.times(rows))
}
