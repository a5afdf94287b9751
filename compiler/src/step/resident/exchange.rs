//! Rows that warps send to the warps beside them.

use super::Shape;
use super::kernel::{Here, Maker, Neighbours, Now};
use super::spans::{Part, window};
use crate::ir::Relation;
use crate::kernel::build::{Builder, Making};
use crate::kernel::{ArrayId, Operand, Routine, Type, ValueId};

impl Maker<'_> {
    /// Sends the outermost rows.
    pub(super) fn send(&mut self, here: &Here, neighbours: &Neighbours, now: Now) {
        let Shape { rows, warps, .. } = self.shape;
        let columns = self.lower.task.extents[0];
        let own = self.own();
        let zero = own.int(0);
        let is_first = own.compare(Relation::Eq, here.lane, zero);
        let barrier = place_of_barrier(own, neighbours.arrived, (now.half, here.warp), warps);
        let bytes = own.literal(neighbours.bytes as i64, Type::U32);
        own.when(is_first, |own| own.perform(Routine::BarrierExpect, vec![barrier, Operand::Value(bytes)]));
        for &(_, field) in self.carry {
            let (Some(&sent), Some(&own_rows)) = (self.sent.get(&field), self.state.get(&field)) else { continue };
            let window = window(self.flow, field);
            let (before, after) = (window.before(), window.after());
            // What is below a warp's last row is the first of the next, and the other way round.
            let ways = [(after, neighbours.above, before, before), (before, neighbours.below, 0, rows)];
            for (count, [warp, rank], slot, from) in ways.into_iter().filter(|way| way.0 > 0) {
                self.each_row((0, count as i32), |maker, r| {
                    let (slot, from) = (maker.on(r, slot as i32), maker.on(r, from as i32));
                    let own = maker.own();
                    let at = place_of_sent(own, (now.half, warp, slot), [warps, before + after, columns]);
                    let barrier = place_of_barrier(own, neighbours.arrived, (now.half, warp), warps);
                    let operands = vec![
                        Operand::Place(sent, at),
                        Operand::Place(own_rows, from),
                        Operand::Value(here.lane),
                        Operand::Value(rank),
                        barrier,
                    ];
                    own.perform(Routine::PushRow, operands);
                });
            }
        }
    }

    /// Takes row `r` of what the neighbours have sent, less its lag.
    pub(super) fn receive(&mut self, place: usize, here: &Here, now: Now, r: ValueId) {
        let Shape { rows, warps, .. } = self.shape;
        let (columns, lag) = (self.lower.task.extents[0], self.flow.rows[place].lag);
        let Part::State(field) = self.parts[place] else { return };
        let (Some(&sent), Some(&own_rows)) = (self.sent.get(&field), self.state.get(&field)) else { return };
        let window = window(self.flow, field);
        let (before, after) = (window.before() as i32, window.after() as i32);
        // First those from above, then those from below.
        let (above, below) = (self.on(r, before - lag), self.on(r, before - rows as i32 - lag));
        let slot = match (before, after) {
            (_, 0) => above,
            (0, _) => below,
            _ => {
                let own = self.own();
                let is_above = is_above(own, r, lag);
                own.choose(is_above, above, below)
            }
        };
        let own = self.own();
        let at = place_of_sent(own, (now.half, here.warp, slot), [warps, (before + after) as usize, columns]);
        let operands = vec![Operand::Place(own_rows, above), Operand::Place(sent, at), Operand::Value(here.lane)];
        own.perform(Routine::PullRow, operands);
    }
}

/// The rows that are sent of a field, of all of a block, as a place in them.
fn place_of_sent(
    own: &mut Builder,
    (half, warp, slot): (ValueId, ValueId, ValueId),
    [warps, count, columns]: [usize; 3],
) -> ValueId {
    let [warps, count, columns] = [warps, count, columns].map(|number| own.int(number as i64));
    let at = own.mul(half, warps);
    let at = own.add(at, warp);
    let at = own.mul(at, count);
    let at = own.add(at, slot);
    own.mul(at, columns)
}

/// Where the barrier of a warp is among those of a block.
pub(super) fn place_of_barrier(
    own: &mut Builder,
    arrived: ArrayId,
    (half, warp): (ValueId, ValueId),
    warps: usize,
) -> Operand {
    let warps = own.int(warps as i64);
    let at = own.mul(half, warps);
    Operand::Place(arrived, own.add(at, warp))
}

/// Whether a warp's rows are above those of a neighbour, as a truth.
fn is_above(own: &mut Builder, r: ValueId, lag: i32) -> ValueId {
    let lag = own.int(i64::from(lag));
    own.compare(Relation::Lt, r, lag)
}
