//! Many steps in one kernel, between which all threads wait for each other.

use super::kernel::Maker;
use super::{Carry, LANES};
use crate::ir::{FieldId, Relation};
use crate::kernel::build::Builder;
use crate::kernel::build::Making;
use crate::kernel::{
    Array, ArrayId, Axis, Binary, Coordinate, Meaning, Operand, Routine, Space, Step, StepData, Type, Unroll, ValueId,
};

/// The number of a thread's warp, in blocks of so many.
pub fn warp_of_thread(own: &mut Builder, warps_of_block: usize) -> ValueId {
    let block = own.coordinate(Coordinate::Block, Axis::X);
    if warps_of_block == 1 {
        return block;
    }
    let [warps, lanes] = [warps_of_block, LANES].map(|number| own.int(number as i64));
    let before = own.mul(block, warps);
    let thread = own.coordinate(Coordinate::Thread, Axis::X);
    let warp = own.binary(Binary::Div, thread, lanes);
    own.add(before, warp)
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
    pub(super) fn turns(&mut self, carry: &[Carry], warps: u128) {
        let mut carried = Vec::new();
        for &(to, from) in carry {
            let Some(output) = self.lower.output(to) else { continue };
            let (wish, element) = (format!("{}_spare", self.written_name(to)), self.element(output));
            let spare = self.argument(&wish, element, Meaning::Step(StepData::Spare(to)));
            carried.push(Carried { from, to, input: self.lower.input(from), output, spare });
        }
        let name = self.own().names().declared("steps");
        let steps = self.own().argument(name, Type::I32, Meaning::Step(StepData::Count));
        let barrier = self.argument("barrier", Type::U32, Meaning::Step(StepData::Barrier));
        let own = self.own();
        let [zero, one, two, all] = [0, 1, 2, warps as i64].map(|number| own.int(number));
        self.each("time_step", (zero, steps, Step::By(one)), Unroll::Times(1), |maker, time| {
            // So that the last step writes the output.
            let left = maker.own().sub(steps, time);
            let parity = maker.own().binary(Binary::Rem, left, two);
            let is_output = maker.own().compare(Relation::Eq, parity, one);
            let is_output = maker.own().name("writes_output", is_output);
            maker.own().note("Steps write the output and what is spare in turn, the last one the output.");
            for step in &carried {
                maker.of_step(step, time, is_output);
            }
            let warps_of_block = maker.shape.block / LANES;
            let first = warp_of_thread(maker.own(), warps_of_block);
            let (blocks, each) =
                (maker.own().coordinate(Coordinate::Blocks, Axis::X), maker.own().int(warps_of_block as i64));
            let by = maker.own().mul(blocks, each);
            maker.each("warp", (first, all, Step::By(by)), Unroll::Times(1), |maker, warp| maker.walk(warp));
            let own = maker.own();
            let next = own.add(time, one);
            let goes_on = own.less(next, steps);
            own.when(goes_on, |own| own.perform(Routine::GridBarrier, vec![Operand::Place(barrier, zero)]));
        });
    }

    /// Where a step reads and writes.
    fn of_step(&mut self, step: &Carried, time: ValueId, is_output: ValueId) {
        let &Carried { from, to, input, output, spare } = step;
        let name = self.written_name(to);
        let own = self.own();
        let written = own.either(&format!("{name}_of_step"), is_output, [output, spare], true);
        self.outputs.insert(to, written);
        if let Some(input) = input {
            let name = self.lower.own.kernel().arrays[input].name.to_string();
            let own = self.own();
            let zero = own.int(0);
            let is_first = own.compare(Relation::Eq, time, zero);
            let before = own.either(&format!("{name}_before"), is_output, [spare, output], false);
            let read = own.either(&format!("{name}_of_step"), is_first, [input, before], false);
            self.inputs.insert(from, read);
        }
    }

    fn element(&self, array: ArrayId) -> Type {
        self.lower.own.kernel().arrays[array].element
    }

    /// An array that the kernel takes beside fields.
    fn argument(&mut self, wish: &str, element: Type, meaning: Meaning) -> ArrayId {
        let own = self.own();
        let name = own.names().declared(wish);
        let array = Array { name, element, space: Space::Global { aliased: true }, is_written: true, watched: None };
        own.add_array(array, meaning)
    }
}
