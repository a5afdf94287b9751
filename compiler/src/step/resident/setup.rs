//! Where a warp of a resident kernel is, whose rows it needs, which steps its cluster computes, and what is there before and after them.

use super::kernel::{Here, Maker, Neighbours, WorkRange};
use super::spans::{Part, sent, window};
use super::{Shape, sent_bytes};
use crate::gpu::WARP;
use crate::kernel::build::{Builder, Computing, Making, Term};
use crate::kernel::{Axis, Contents, Coordinate, Function, Operand, Routine, StepData, Type, ValueId};

impl Maker<'_> {
    /// Where the warp is.
    pub(super) fn setup(&mut self) -> Here {
        let Shape { rows, warps, blocks, .. } = self.shape;
        let (planes, width) = (self.lower.task.extents[2], self.lane());
        let steps = self.lower.steps();
        let flags = self.lower.beside("flags", Type::U32, StepData::Flags(planes * blocks));
        let own = self.own();
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let lane = own.name("lane", thread.rem(WARP));
        let warp = own.name("warp", thread.over(WARP));
        let rank = match blocks {
            1 => own.int(0),
            _ => {
                let rank = own.call(Function::ClusterRank, Vec::new(), Type::I32);
                own.name("rank", rank)
            }
        };
        let first_row = own.name("first_row", rank.times(warps).plus(warp).times(rows));
        let column = own.name("column", lane.times(width));
        Here { lane, warp, rank, first_row, column, steps, flags }
    }

    /// The warps with the rows above and below; nothing where no rows are sent.
    pub(super) fn neighbours(&mut self, here: &Here) -> Option<Neighbours> {
        let Shape { warps, blocks, .. } = self.shape;
        let (task, flow, carry) = (self.lower.task, self.flow, self.carry);
        let bytes = sent_bytes(task, flow, carry);
        if bytes == 0 {
            return None;
        }
        let own = self.own();
        own.note("The warps with the rows above and below: the ends of a plane meet.");
        let beside = |own: &mut Builder, name: &str, by: [usize; 2], is_inside: Term| {
            let warp = own.name(name, here.warp.plus(by[0]).rem(warps));
            let rank = is_inside.picks(here.rank, here.rank.plus(by[1]).rem(blocks));
            [warp, own.name(&format!("{name}_rank"), rank.to(Type::U32))]
        };
        let above = beside(own, "above", [warps - 1, blocks - 1], 0.less(here.warp));
        let below = beside(own, "below", [1, 1], here.warp.less(warps - 1));
        let arrived = own.shared("arrived", Type::BARRIER, 2 * warps);
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        own.when(thread.less(2 * warps), |own| {
            let arrivals = own.literal(1, Type::U32);
            own.perform(Routine::BarrierInit, vec![Operand::Place(arrived, thread), Operand::Value(arrivals)]);
            own.perform(Routine::BarrierFence, Vec::new());
        });
        own.perform(Routine::ClusterArrive, Vec::new());
        own.perform(Routine::ClusterWait, Vec::new());
        let memory = own.dynamic("sent", 2 * warps * bytes);
        let mut first = 0;
        for field in carry.iter().map(|own| own.1).filter(|&field| sent(flow, field) > 0) {
            let (element, count) = (task.stored(field), 2 * warps * sent(flow, field) * task.extents[0]);
            let wish = format!("{}_sent", self.lower.read_name(field));
            let part = self.own().part(&wish, memory, element, (first, count));
            self.sent.insert(field, part);
            first += count * element.bytes();
        }
        Some(Neighbours { above, below, arrived, bytes })
    }

    /// Which steps of which planes the cluster computes.
    ///
    /// A share is at least as long as a plane's steps. So a plane is in two shares at most, and the cluster that has its first
    /// steps computes them first of all, no later than the other needs them, which computes its last steps last of all.
    pub(super) fn share(&mut self, here: &Here) -> WorkRange {
        let (planes, blocks) = (self.lower.task.extents[2], self.shape.blocks);
        let own = self.own();
        own.note("All steps of all planes are shared evenly; a share ends amid a plane, and the next cluster goes on.");
        let clusters = own.name("clusters", Coordinate::Blocks.along(Axis::X).over(blocks));
        let cluster = own.name("cluster", Coordinate::Block.along(Axis::X).over(blocks));
        let [clusters, cluster, steps] = [clusters, cluster, here.steps].map(|number| own.convert(number, Type::I64));
        let all = own.name("all", planes.times(steps));
        let even = own.name("even", all.plus(clusters).minus(1).over(clusters));
        let share = own.name("share", even.less(steps).picks(steps, even));
        let begin = own.name("begin", cluster.times(share).at_most(all));
        let end = own.name("end", all.minus(begin).less(share).picks(all, begin.plus(share)));
        let last = own.term(end.minus(1));
        WorkRange {
            first_plane: own.name("first_plane", begin.over(steps).to(Type::I32)),
            before: own.name("first_of_all", begin.rem(steps).to(Type::I32)),
            last_plane: own.name("last_plane", last.over(steps).to(Type::I32)),
            after: own.name("last_of_all", last.rem(steps).to(Type::I32).plus(1)),
        }
    }

    /// Where a row of the warp is in a plane.
    pub(super) fn at_row(&self, here: &Here, r: ValueId) -> Term {
        let row = here.first_row.plus(r).to(Type::I64);
        row.times(self.lower.task.rows.row).plus(here.column.to(Type::I64))
    }

    /// Where a plane of the arrays is, and the state before its first step here: what is given, or what another cluster has
    /// left in the outputs.
    pub(super) fn begin(&mut self, here: &Here, first_step: ValueId) {
        let (task, flow) = (self.lower.task, self.flow);
        for (place, row) in flow.rows.iter().enumerate() {
            if let Part::Constant(_) = self.parts[place]
                && let Some(from) = self.lower.view_from(row.source, here.column.to(Type::I64))
            {
                self.from.insert(place, from);
            }
        }
        self.lower.uniforms(flow);
        let own = self.own();
        own.gap();
        let goes_on = own.term(0.less(first_step));
        let flag = own.place(here.flags, Coordinate::Block.along(Axis::X));
        own.when(goes_on, |own| own.perform(Routine::FlagWait, vec![flag]));
        for &(to, from) in self.carry {
            let arrays = (self.lower.inputs.get(&from), self.lower.outputs.get(&to));
            let (Some(&input), Some(&output)) = arrays else { continue };
            let base = self.lower.read_name(from).to_owned();
            let plane = self.lower.plane(from, 0);
            let before = self.own().either(&format!("{base}_before"), goes_on, [output, input], false);
            let [above, below] = window(flow, from).sides();
            let (lane, at_once) = (self.lane(), task.at_once(from, self.lane(), &[]));
            let size = (above + self.shape.rows + below, lane);
            let rows = self.own().rows(&format!("{base}_rows"), task.stored(from), size, Contents::Unset);
            self.state.insert(from, rows);
            self.unrolled("r", (0, self.shape.rows), |maker, r| {
                let at = plane.plus(maker.at_row(here, r));
                let own = maker.own();
                let operands = vec![own.place(rows, r.plus(above)), own.place(before, at)];
                own.perform(Routine::LoadRow(at_once), operands);
            });
        }
    }

    /// Writes the state after the last step.
    pub(super) fn end(&mut self, here: &Here) {
        let task = self.lower.task;
        for &(to, from) in self.carry {
            let arrays = (self.lower.outputs.get(&to), self.state.get(&from));
            let (Some(&output), Some(&rows)) = arrays else { continue };
            let plane = self.lower.plane(to, 0);
            let (above, at_once) = (window(self.flow, from).before(), task.at_once(to, self.lane(), &[]));
            self.unrolled("r", (0, self.shape.rows), |maker, r| {
                let at = plane.plus(maker.at_row(here, r));
                let own = maker.own();
                let operands = vec![own.place(output, at), own.place(rows, r.plus(above))];
                own.perform(Routine::PutRow(at_once), operands);
            });
        }
    }
}
