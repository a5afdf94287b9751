//! Numbers that wait in shared memory for their levels, a ring of places for each thread.
//!
//! Where a level takes many numbers, registers hold those of few levels, so that few are under way. Copies from memory to shared memory need
//! no registers, and each level waits for its own alone.

use super::Column;
use super::ahead::{LEVELS, WAITING, is_level, wanted, words};
use crate::gpu::COMMON_SHARED;
use crate::ir::{FieldId, MeshStencil, Path};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{ArrayId, Axis, Coordinate, Operand, Routine, ValueId};
use crate::mesh::shared::{Shared, bytes};
use crate::mesh::writer::Writer;

/// What waits, and where.
pub(super) struct Ring {
    reads: Vec<Read>,
    /// The thread in its block.
    thread: ValueId,
}

struct Read {
    field: FieldId,
    at: Path,
    places: ArrayId,
}

impl Ring {
    /// Declares where the numbers of a loop wait, if they are too many for registers, and copies can move each.
    pub fn new(writer: &mut Writer, shared: &mut Shared, phase: &MeshStencil, column: Column) -> Option<Self> {
        let wanted = wanted(writer, phase);
        let count = writer.choices.threads.block as usize * LEVELS;
        let is_copied =
            |(field, _): &(FieldId, Path)| writer.width(*field) == 1 && [4, 8].contains(&writer.stored(*field).bytes());
        let room: usize = wanted.iter().map(|(field, _)| bytes(writer.stored(*field), count)).sum();
        let has_room = writer.own.shared_bytes() + shared.bytes() + room <= COMMON_SHARED;
        let is_for_it = column.of_block.is_none() && words(writer, &wanted) * LEVELS > WAITING;
        if !is_for_it || !has_room || !wanted.iter().all(is_copied) {
            return None;
        }
        let mut reads = Vec::new();
        for (field, at) in wanted {
            let wish = format!("{}_ring", writer.read_name(field, &at));
            let places = shared.array(writer, &wish, writer.stored(field), count);
            reads.push(Read { field, at, places });
        }
        let thread = writer.own.name("place", Coordinate::Thread.along(Axis::X));
        Some(Self { reads, thread })
    }

    /// Lets the numbers of the first levels come, from one on.
    pub fn fill(&self, writer: &mut Writer, from: ValueId, is_down: bool) {
        writer.unrolled("n", (0, LEVELS), |writer, number| {
            let k = writer.own.name("k", if is_down { from.minus(number) } else { from.plus(number) });
            self.send_for(writer, k, is_down);
        });
    }

    /// Waits for the numbers of a level, says what they are, and lets those of the level come that takes their places.
    pub fn enter(&self, writer: &mut Writer, k: ValueId, is_down: bool) {
        writer.own.perform(Routine::CopyAsyncWait(LEVELS - 1), Vec::new());
        let mut come = Vec::new();
        for Read { field, at, places } in &self.reads {
            let (stored, wish, place) =
                (writer.field(*field).stored, writer.read_name(*field, at), self.place(writer, k));
            let value = writer.own.load(*places, place);
            let value = writer.scalar().read(&mut writer.own, value, stored);
            come.push(((*field, at.clone(), 0), writer.own.name(&wish, value)));
        }
        let further = if is_down { k.minus(LEVELS) } else { k.plus(LEVELS) };
        let further = writer.own.name("k_further", further);
        self.send_for(writer, further, is_down);
        writer.at_level(k);
        come.into_iter().for_each(|(key, value)| writer.remember(key, value));
    }

    /// Starts to copy the numbers of a level, if there is one: a group of copies, be it empty.
    fn send_for(&self, writer: &mut Writer, k: ValueId, is_down: bool) {
        let is_level = is_level(writer, k, is_down);
        writer.when(is_level, |writer| {
            writer.at_level(k);
            let to = self.place(writer, k);
            for Read { field, at, places } in &self.reads {
                let element = writer.index(at.hops());
                let from = writer.index_at(*field, (Some(element), at.levels()), 0);
                let array = writer.input(*field);
                let routine = Routine::CopyAsync(writer.stored(*field).bytes());
                writer.own.perform(routine, vec![Operand::Place(*places, to), Operand::Place(array, from)]);
            }
        });
        writer.own.perform(Routine::CopyAsyncCommit, Vec::new());
    }

    /// Where the numbers of a level wait.
    fn place(&self, writer: &mut Writer, k: ValueId) -> ValueId {
        let threads = writer.choices.threads.block;
        writer.own.term(k.rem(LEVELS).times(threads).plus(self.thread))
    }
}
