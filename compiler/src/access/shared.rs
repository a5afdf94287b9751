//! `shared`: one thread of a column looks its neighbours up, all threads of the column read them from shared memory.

use super::{Access, Needs, Neighbourhood};
use crate::diagnostic::Refusal;
use crate::ir::Relation;
use crate::kernel::build::{Builder, Computing, Making};
use crate::kernel::{Axis, Coordinate, ValueId};
use crate::storage::Storage;

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

    fn block(&self) -> [u32; 3] {
        [32, 1, 8]
    }

    fn refusal(&self, storage: &dyn Storage) -> Option<Refusal> {
        super::needs_look_ups(self, storage)
    }

    fn shared_bytes(&self, [x, y, _]: [u32; 3], needs: &Needs) -> usize {
        (x * y) as usize * stride(needs.neighbours) * needs.index
    }

    fn sharing(&self, [_, _, z]: [u32; 3]) -> u32 {
        z
    }

    fn is_together(&self) -> bool {
        true
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        let [x, y, _] = neighbourhood.block;
        // Only what a neighbour's index needs is shared, not the hops on the way.
        let last_hops = neighbourhood.last_hops();
        let stride = stride(last_hops.len());
        let mut thread = Coordinate::Thread.along(Axis::X);
        if y > 1 {
            thread = thread.plus(Coordinate::Thread.along(Axis::Y).times(x));
        }
        let pillar = own.name("pillar", thread.times(stride));
        let shared = own.shared("distances", neighbourhood.sizes.index, (x * y) as usize * stride);
        let has_cell = own.not(neighbourhood.coordinates.outside);
        let is_leader = Coordinate::Thread.along(Axis::Z).is(Relation::Eq, 0).and(has_cell);
        let nothing = own.literal(0, neighbourhood.sizes.index);
        let mut distances = vec![nothing; neighbourhood.hops.len()];
        own.when(is_leader, |own| {
            distances = neighbourhood.hop_distances(own, false);
            for (number, &end) in last_hops.iter().enumerate() {
                own.store(shared, pillar.plus(number), distances[end]);
            }
        });
        own.barrier();
        for (number, &end) in last_hops.iter().enumerate() {
            distances[end] = own.load(shared, pillar.plus(number));
        }
        Some(distances)
    }

    fn has_index_variables(&self) -> bool {
        true
    }
}
