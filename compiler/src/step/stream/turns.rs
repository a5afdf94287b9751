//! Many steps in one kernel, between which all threads wait for each other.

use super::Carry;
use super::kernel::Maker;
use crate::gpu::WARP;
use crate::ir::{FieldId, Relation};
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Axis, Coordinate, Routine, StepData, Type, ValueId};

/// The number of a thread's warp, in blocks of so many.
pub fn warp_of_thread(warps_of_block: usize) -> Term {
    let [block, thread] = [Coordinate::Block, Coordinate::Thread].map(|own| own.along(Axis::X));
    if warps_of_block == 1 { block } else { block.times(warps_of_block).plus(thread.over(WARP)) }
}

/// An output that is carried: where steps write it, and where they read what it was.
struct Carried {
    from: FieldId,
    to: FieldId,
    input: Option<ArrayId>,
    output: ArrayId,
    spare: ArrayId,
}

impl Maker<'_> {
    /// Lets the warps that there are walk down all of so many strips, step after step.
    pub(super) fn turns(&mut self, carry: &[Carry], warps: usize) {
        let (task, lower) = (self.lower.task, &mut self.lower);
        let mut carried = Vec::new();
        for &(to, from) in carry {
            let Some(&output) = lower.outputs.get(&to) else { continue };
            let wish = format!("{}_spare", lower.written_name(to));
            let spare = lower.beside(&wish, task.stored(to), StepData::Spare(to));
            carried.push(Carried { from, to, input: lower.inputs.get(&from).copied(), output, spare });
        }
        let steps = lower.steps();
        let barrier = lower.beside("barrier", Type::U32, StepData::Barrier);
        self.repeated("time_step", (0, steps, 1), |maker, time| {
            let own = maker.own();
            // So that the last step writes the output.
            let is_output = own.name("writes_output", steps.minus(time).rem(2).is(Relation::Eq, 1));
            own.note("Steps write the output and what is spare in turn, the last one the output.");
            for step in &carried {
                maker.of_step(step, time, is_output);
            }
            let warps_of_block = maker.shape.block / WARP;
            let first = warp_of_thread(warps_of_block);
            let by = Coordinate::Blocks.along(Axis::X).times(warps_of_block);
            maker.repeated("warp", (first, warps, by), |maker, warp| maker.walk(warp));
            let own = maker.own();
            let barrier = own.place(barrier, 0);
            own.when(time.plus(1).less(steps), |own| own.perform(Routine::GridBarrier, vec![barrier]));
        });
    }

    /// Where a step reads and writes.
    fn of_step(&mut self, step: &Carried, time: ValueId, is_output: ValueId) {
        let &Carried { from, to, input, output, spare } = step;
        let lower = &mut self.lower;
        let name = lower.written_name(to).to_owned();
        let written = lower.own.either(&format!("{name}_of_step"), is_output, [output, spare], true);
        lower.outputs.insert(to, written);
        if let Some(input) = input {
            let is_first = lower.own.term(time.is(Relation::Eq, 0));
            let name = lower.read_name(from).to_owned();
            let before = lower.own.either(&format!("{name}_before"), is_output, [spare, output], false);
            let read = lower.own.either(&format!("{name}_of_step"), is_first, [input, before], false);
            lower.inputs.insert(from, read);
        }
    }
}
