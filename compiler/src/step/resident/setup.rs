//! Where a warp of a resident kernel is, whose rows it needs, which steps its cluster computes, and what is there before and after them.

use super::super::LANES;
use super::super::flow::Source;
use super::kernel::{Here, Maker, Neighbours, WorkRange};
use super::spans::{Part, sent, window};
use super::{Shape, field_bytes};
use crate::ir::FieldId;
use crate::kernel::build::Builder;
use crate::kernel::build::Making;
use crate::kernel::{
    Array, Axis, Binary, Contents, Coordinate, Function, Meaning, Operand, Routine, Space, StepData, Type, ValueId,
};
use std::collections::BTreeMap;

impl Maker<'_> {
    /// Where the warp is.
    pub(super) fn setup(&mut self) -> Here {
        let Shape { rows, warps, blocks, .. } = self.shape;
        let planes = self.lower.task.extents[2];
        let lane_width = self.lane();
        let own = self.own();
        let name = own.names().declared("steps");
        let steps = own.argument(name, Type::I32, Meaning::Step(StepData::Count));
        let name = own.names().declared("flags");
        let space = Space::Global { aliased: true };
        let flags = Array { name, element: Type::U32, space, is_written: true, watched: None };
        let flags = own.add_array(flags, Meaning::Step(StepData::Flags(planes * blocks)));
        let [lanes, warps, rows, width] = [LANES, warps, rows, lane_width].map(|number| own.int(number as i64));
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let lane = own.binary(Binary::Rem, thread, lanes);
        let lane = own.name("lane", lane);
        let warp = own.binary(Binary::Div, thread, lanes);
        let warp = own.name("warp", warp);
        let rank = match blocks {
            1 => own.int(0),
            _ => {
                let rank = own.call(Function::ClusterRank, Vec::new(), Type::I32);
                own.name("rank", rank)
            }
        };
        let of_cluster = own.mul(rank, warps);
        let of_cluster = own.add(of_cluster, warp);
        let first_row = own.mul(of_cluster, rows);
        let first_row = own.name("first_row", first_row);
        let column = own.mul(lane, width);
        let column = own.name("column", column);
        Here { lane, warp, rank, first_row, column, steps, flags }
    }

    /// The warps with the rows above and below; nothing where no rows are sent.
    pub(super) fn neighbours(&mut self, here: &Here) -> Option<Neighbours> {
        let Shape { warps, blocks, .. } = self.shape;
        let offsets = self.offsets();
        if offsets.values().all(|(_, rows)| *rows == 0) {
            return None;
        }
        let task = self.lower.task;
        let of_row = |field: FieldId| task.extents[0] * field_bytes(task, field);
        let bytes = offsets.iter().map(|(&field, (_, rows))| rows * of_row(field)).sum();
        let all = offsets.iter().map(|(&field, &(first, rows))| first + 2 * warps * rows * of_row(field)).max();
        let own = self.own();
        let [zero, one, last, count, others, ranks] =
            [0, 1, warps - 1, warps, blocks - 1, blocks].map(|number| own.int(number as i64));
        own.note("The warps with the rows above and below: the ends of a plane meet.");
        let beside = |own: &mut Builder, name: &str, by: ValueId, by_rank: ValueId, is_inside| {
            let warp = own.add(here.warp, by);
            let warp = own.binary(Binary::Rem, warp, count);
            let warp = own.name(name, warp);
            let rank = own.add(here.rank, by_rank);
            let rank = own.binary(Binary::Rem, rank, ranks);
            let rank = own.choose(is_inside, here.rank, rank);
            let rank = own.convert(rank, Type::U32);
            [warp, own.name(&format!("{name}_rank"), rank)]
        };
        let (has_above, has_below) = (own.less(zero, here.warp), own.less(here.warp, last));
        let above = beside(own, "above", last, others, has_above);
        let below = beside(own, "below", one, one, has_below);
        let arrived = own.shared("arrived", Type::BARRIER, 2 * warps);
        let (thread, barriers) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2 * warps as i64));
        let has_barrier = own.less(thread, barriers);
        own.when(has_barrier, |own| {
            let arrivals = own.literal(1, Type::U32);
            own.perform(Routine::BarrierInit, vec![Operand::Place(arrived, thread), Operand::Value(arrivals)]);
            own.perform(Routine::BarrierFence, Vec::new());
        });
        own.perform(Routine::ClusterArrive, Vec::new());
        own.perform(Routine::ClusterWait, Vec::new());
        let sent = own.dynamic("sent", all.unwrap_or(0));
        for (field, (first, rows)) in offsets.into_iter().filter(|(_, (_, rows))| *rows > 0) {
            let wish = format!("{}_sent", self.array_name(self.lower.input(field)));
            let (kind, count) = (self.stored(field), 2 * warps * rows * task.extents[0]);
            let part = self.own().part(&wish, sent, kind, (first, count));
            self.sent.insert(field, part);
        }
        Some(Neighbours { above, below, arrived, bytes })
    }

    /// Where the rows that are sent of each field are in shared memory, in bytes, and how many a warp gets.
    fn offsets(&self) -> BTreeMap<FieldId, (usize, usize)> {
        let task = self.lower.task;
        let mut at = 0;
        let mut offsets = BTreeMap::new();
        for &(_, field) in self.carry {
            let count = sent(self.flow, field);
            offsets.insert(field, (at, count));
            at += 2 * self.shape.warps * count * task.extents[0] * field_bytes(task, field);
        }
        offsets
    }

    /// Which steps of which planes the cluster computes.
    ///
    /// A share is at least as long as a plane's steps. So a plane is in two shares at most, and the cluster that has its first
    /// steps computes them first of all, no later than the other needs them, which computes its last steps last of all.
    pub(super) fn share(&mut self, here: &Here) -> WorkRange {
        let (planes, blocks) = (self.lower.task.extents[2], self.shape.blocks);
        let own = self.own();
        own.note("All steps of all planes are shared evenly; a share ends amid a plane, and the next cluster goes on.");
        let blocks = own.int(blocks as i64);
        let (of_launch, block) =
            (own.coordinate(Coordinate::Blocks, Axis::X), own.coordinate(Coordinate::Block, Axis::X));
        let clusters = own.binary(Binary::Div, of_launch, blocks);
        let clusters = own.name("clusters", clusters);
        let cluster = own.binary(Binary::Div, block, blocks);
        let cluster = own.name("cluster", cluster);
        let [clusters, cluster, steps] = [clusters, cluster, here.steps].map(|number| own.convert(number, Type::I64));
        let [planes, one] = [planes as i64, 1].map(|number| own.literal(number, Type::I64));
        let all = own.mul(planes, steps);
        let all = own.name("all", all);
        let even = own.add(all, clusters);
        let even = own.sub(even, one);
        let even = own.binary(Binary::Div, even, clusters);
        let even = own.name("even", even);
        let is_short = own.less(even, steps);
        let share = own.choose(is_short, steps, even);
        let share = own.name("share", share);
        let begin = own.mul(cluster, share);
        let begin = own.binary(Binary::Min, begin, all);
        let begin = own.name("begin", begin);
        let left = own.sub(all, begin);
        let is_last = own.less(left, share);
        let behind = own.add(begin, share);
        let end = own.choose(is_last, all, behind);
        let end = own.name("end", end);
        let last = own.sub(end, one);
        let named = |own: &mut Builder, name: &str, operation: Binary, number: ValueId| {
            let value = own.binary(operation, number, steps);
            let value = own.convert(value, Type::I32);
            own.name(name, value)
        };
        let first_plane = named(own, "first_plane", Binary::Div, begin);
        let before = named(own, "first_of_all", Binary::Rem, begin);
        let last_plane = named(own, "last_plane", Binary::Div, last);
        let after = own.binary(Binary::Rem, last, steps);
        let after = own.convert(after, Type::I32);
        let one = own.int(1);
        let after = own.add(after, one);
        let after = own.name("last_of_all", after);
        WorkRange { first_plane, last_plane, before, after }
    }

    /// Where a row of the warp is in a plane.
    pub(super) fn at_row(&mut self, here: &Here, r: ValueId) -> ValueId {
        let stride = self.lower.task.rows.row as i64;
        let own = self.own();
        let row = own.add(here.first_row, r);
        let (row, column) = (own.convert(row, Type::I64), own.convert(here.column, Type::I64));
        let stride = own.literal(stride, Type::I64);
        let before = own.mul(row, stride);
        own.add(before, column)
    }

    /// Where a plane of the arrays is, and the state before its first step here: what is given, or what another cluster has
    /// left in the outputs.
    pub(super) fn begin(&mut self, here: &Here, first_step: ValueId) {
        let task = self.lower.task;
        for (place, row) in self.flow.rows.iter().enumerate() {
            let (Part::Constant(field), Source::Field(_, shift)) = (self.parts[place], row.source) else { continue };
            let Some(input) = self.lower.input(field) else { continue };
            let plane = self.lower.plane(task.stencil.fields[field].place.levels, shift);
            let wish = format!("{}_from", self.lower.name(row.source));
            let own = self.own();
            let column = own.convert(here.column, Type::I64);
            let at = own.add(plane, column);
            let from = own.view(&wish, input, at);
            self.from.insert(place, from);
        }
        self.lower.uniforms(self.flow);
        let own = self.own();
        own.gap();
        let zero = own.int(0);
        let goes_on = own.less(zero, first_step);
        let block = own.coordinate(Coordinate::Block, Axis::X);
        own.when(goes_on, |own| own.perform(Routine::FlagWait, vec![Operand::Place(here.flags, block)]));
        for &(output, field) in self.carry {
            let (Some(input), Some(output)) = (self.lower.input(field), self.lower.output(output)) else { continue };
            let base = self.array_name(Some(input));
            let plane = self.lower.plane(task.stencil.fields[field].place.levels, 0);
            let own = self.own();
            let before = own.either(&format!("{base}_before"), goes_on, [output, input], false);
            let above = window(self.flow, field).before();
            let count = above + self.shape.rows + window(self.flow, field).after();
            let (kind, lane, at_once) = (self.stored(field), self.lane(), self.at_once(field));
            let rows = self.own().rows(&format!("{base}_rows"), kind, (count, lane), Contents::Unset);
            self.state.insert(field, rows);
            self.each_row((0, self.shape.rows as i32), |maker, r| {
                let at = maker.at_row(here, r);
                let (to, at) = (maker.on(r, above as i32), maker.own().add(plane, at));
                let operands = vec![Operand::Place(rows, to), Operand::Place(before, at)];
                maker.own().perform(Routine::LoadRow(at_once), operands);
            });
        }
    }

    /// Writes the state after the last step.
    pub(super) fn end(&mut self, here: &Here) {
        let task = self.lower.task;
        for &(to, from) in self.carry {
            let (Some(output), Some(&rows)) = (self.lower.output(to), self.state.get(&from)) else { continue };
            let plane = self.lower.plane(task.stencil.fields[to].place.levels, 0);
            let (above, at_once) = (window(self.flow, from).before() as i32, self.at_once(to));
            self.each_row((0, self.shape.rows as i32), |maker, r| {
                let at = maker.at_row(here, r);
                let (of, at) = (maker.on(r, above), maker.own().add(plane, at));
                let operands = vec![Operand::Place(output, at), Operand::Place(rows, of)];
                maker.own().perform(Routine::PutRow(at_once), operands);
            });
        }
    }
}
