//! Rows that warps send to the warps beside them.

use super::kernel::{Here, Maker, Neighbours, Now};
use super::spans::{Part, window};
use crate::ir::Relation;
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{Operand, Routine, Type, ValueId};

impl Maker<'_> {
    /// Sends the outermost rows.
    pub(super) fn send(&mut self, here: &Here, neighbours: &Neighbours, now: Now) {
        let columns = self.lower.task.extents[0];
        let barrier = self.barrier(neighbours, now, here.warp);
        let own = self.own();
        let bytes = own.term(neighbours.bytes.to(Type::U32));
        own.when(here.lane.is(Relation::Eq, 0), |own| {
            own.perform(Routine::BarrierExpect, vec![barrier, Operand::Value(bytes)])
        });
        for &(_, field) in self.carry {
            let (Some(&sent), Some(&own_rows)) = (self.sent.get(&field), self.state.get(&field)) else { continue };
            let window = window(self.flow, field);
            let (before, after) = (window.before(), window.after());
            // What is below a warp's last row is the first of the next, and the other way round.
            let ways = [(after, neighbours.above, before, before), (before, neighbours.below, 0, self.shape.rows)];
            for (count, [warp, rank], slot, from) in ways.into_iter().filter(|way| way.0 > 0) {
                self.unrolled("r", (0, count), |maker, r| {
                    let (at, barrier) = (maker.of_warp(now, warp), maker.barrier(neighbours, now, warp));
                    let own = maker.own();
                    let operands = vec![
                        own.place(sent, at.times(before + after).plus(r.plus(slot)).times(columns)),
                        own.place(own_rows, r.plus(from)),
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
        let (columns, lag) = (self.lower.task.extents[0], self.flow.rows[place].lag);
        let Part::State(field) = self.parts[place] else { return };
        let (Some(&sent), Some(&own_rows)) = (self.sent.get(&field), self.state.get(&field)) else { return };
        let window = window(self.flow, field);
        let (before, after) = (window.before() as i32, window.after() as i32);
        let (at, rows) = (self.of_warp(now, here.warp), self.shape.rows as i32);
        let own = self.own();
        // First those from above, then those from below.
        let above = own.term(r.plus(before - lag));
        let below = r.plus(before - rows - lag);
        let slot = match (before, after) {
            (_, 0) => above,
            (0, _) => own.term(below),
            _ => own.term(r.less(lag).picks(above, below)),
        };
        let at = at.times(before + after).plus(slot).times(columns);
        let operands = vec![Operand::Place(own_rows, above), own.place(sent, at), Operand::Value(here.lane)];
        own.perform(Routine::PullRow, operands);
    }

    /// The number of a warp among those that one half of what is sent is for.
    fn of_warp(&self, now: Now, warp: ValueId) -> Term {
        now.half.times(self.shape.warps).plus(warp)
    }

    /// The barrier of a warp.
    pub(super) fn barrier(&mut self, neighbours: &Neighbours, now: Now, warp: ValueId) -> Operand {
        let number = self.of_warp(now, warp);
        self.own().place(neighbours.arrived, number)
    }
}
