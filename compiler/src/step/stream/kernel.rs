//! A kernel that streams, in the kernel IR: where a warp is, and what it does step by step.

use super::super::flow::{Flow, Source, Window};
use super::super::lower::{Frame as Head, Lowering};
use super::tiling::{Held, Tiling, held, wanted};
use super::turns::warp_of_thread;
use super::{Carry, LANES, Shape, StepTask, Strip, computed};
use crate::ir::{FieldId, Relation};
use crate::kernel::build::Builder;
use crate::kernel::build::Making;
use crate::kernel::{ArrayId, Axis, Binary, Contents, Coordinate, Step, Type, Unroll, ValueId, VariableId};
use std::collections::BTreeMap;

/// Who walks down the rows.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// Each warp of the launch, once.
    Kernel,
    /// The warps that are there at once, step after step.
    Turns(&'a [Carry]),
}

/// Makes one kernel.
pub struct Maker<'a> {
    /// Arguments, names and operations.
    pub lower: Lowering<'a>,
    pub(super) flow: &'a Flow,
    pub(super) shape: &'a Shape,
    pub(super) tiling: Tiling,
    pub(super) held: Vec<Held>,
    pub(super) wanted: BTreeMap<(usize, usize), Window>,
    /// Of each row, by how many rows back: where it is found.
    pub(super) views: BTreeMap<(usize, usize), View>,
    /// Of each row its rows that are looked back at.
    pub(super) kept: BTreeMap<usize, ArrayId>,
    /// Of each row of a field its rows that are on their way.
    pub(super) coming: BTreeMap<usize, Coming>,
    /// Of each field that is written where the first row goes.
    pub(super) to: BTreeMap<FieldId, ArrayId>,
    /// The arrays of this step.
    pub(super) inputs: BTreeMap<FieldId, ArrayId>,
    pub(super) outputs: BTreeMap<FieldId, ArrayId>,
    /// Of each row that is kept where the present one is.
    pub(super) now: BTreeMap<usize, ArrayId>,
}

/// A row that can be looked at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its array.
    pub row: ArrayId,
    /// Columns before and after the lane's own.
    pub halo: [usize; 2],
}

/// The rows of a field that are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    /// Its plane.
    pub from: ArrayId,
    /// What is on its way.
    pub rows: ArrayId,
    /// And what lies beyond the strip.
    pub beyond: Option<ArrayId>,
}

/// Where a warp is.
pub struct Here {
    /// The place of the lane in its warp.
    pub lane: ValueId,
    /// The level.
    pub k: ValueId,
    /// The first column of the lane.
    pub column: ValueId,
    /// The first row of the warp.
    pub first_row: ValueId,
    /// Whether the lane's columns are the strip's own; nothing where all are.
    pub is_own: Option<ValueId>,
    /// Of a strip that loads what is beyond it: whether the lane does, and which column.
    pub edge: Option<[ValueId; 2]>,
    /// Of each lead the row that its fields load next.
    pub rows: BTreeMap<i64, VariableId>,
}

impl Making for Maker<'_> {
    fn own(&mut self) -> &mut Builder {
        &mut self.lower.own
    }
}

impl<'a> Maker<'a> {
    /// Of a kernel of these rows.
    pub fn new(task: &'a StepTask<'a>, flow: &'a Flow, shape: &'a Shape, tiling: Tiling, frame: Frame) -> Self {
        let Tiling { lane, columns, rows, .. } = tiling;
        let how = format!(
            "a warp walks down {rows} rows of {columns} columns, a lane has {lane}; {} rows ahead are on their way",
            shape.ahead
        );
        let (ending, how) = match frame {
            Frame::Kernel => ("stream", how),
            Frame::Turns(_) => ("persistent", format!("many steps, and between them all wait for each other; {how}")),
        };
        // Nothing is taken for unchanged that others write between two steps.
        let aliased = matches!(frame, Frame::Turns(_));
        let lower = Lowering::new(task, flow, Head { ending, threads: shape.block, aliased, how });
        let fields = || task.stencil.fields.handles();
        let inputs = fields().filter_map(|field| Some((field, lower.input(field)?))).collect();
        let outputs = fields().filter_map(|field| Some((field, lower.output(field)?))).collect();
        Self {
            lower,
            flow,
            shape,
            tiling,
            held: held(flow, shape, &tiling),
            wanted: wanted(flow),
            views: BTreeMap::new(),
            kept: BTreeMap::new(),
            coming: BTreeMap::new(),
            to: BTreeMap::new(),
            inputs,
            outputs,
            now: BTreeMap::new(),
        }
    }

    /// What an output is called.
    pub(super) fn written_name(&self, field: FieldId) -> String {
        let array = self.lower.output(field);
        array.map(|array| self.lower.own.kernel().arrays[array].name.to_string()).unwrap_or_default()
    }

    /// Says what is done by so many warps.
    pub fn write(&mut self, warps: u128, frame: Frame) {
        match frame {
            Frame::Kernel => {
                let warps_of_block = self.shape.block / LANES;
                let warp = warp_of_thread(self.own(), warps_of_block);
                let warp = self.own().name("warp", warp);
                if !warps.is_multiple_of(warps_of_block as u128) {
                    let own = self.own();
                    let all = own.int(warps as i64);
                    let is_beyond = own.compare(Relation::Ge, warp, all);
                    own.leave_if(is_beyond);
                }
                self.walk(warp);
            }
            Frame::Turns(carry) => self.turns(carry, warps),
        }
    }

    /// What a warp does in a step of the stencil: it walks down its rows.
    pub(super) fn walk(&mut self, warp: ValueId) {
        let Tiling { steps, unrolled, .. } = self.tiling;
        let here = self.setup(warp);
        self.arrays(&here);
        let own = self.own();
        own.note("NVRTC 13.0 can lose the end of a loop whose length it knows; a launch has one block along y.");
        let (steps_known, blocks) = (own.int(steps as i64), own.coordinate(Coordinate::Blocks, Axis::Y));
        let [zero, one] = [0, 1].map(|number| own.int(number));
        // Numbers with a sign do not overflow, which compilers make use of.
        let blocks = own.name("blocks", blocks);
        let count = own.add(steps_known, blocks);
        let count = own.sub(count, one);
        let count = own.name("count", count);
        self.registers();
        if !self.coming.is_empty() {
            let ahead = self.shape.ahead as i64;
            let ahead = self.own().int(ahead);
            self.each("q", (zero, ahead, Step::By(one)), Unroll::Whole, |maker, turn| maker.loads(&here, turn));
        }
        self.own().gap();
        let [by, ahead, span] = [unrolled, self.shape.ahead, self.flow.span].map(|n| self.own().int(n as i64));
        self.each("step", (zero, count, Step::By(by)), Unroll::Times(1), |maker, step| {
            maker.each("q", (zero, by, Step::By(one)), Unroll::Whole, |maker, turn| {
                let now = maker.own().add(step, turn);
                maker.takes(&here, turn);
                if !maker.coming.is_empty() {
                    let next = maker.own().add(now, ahead);
                    let is_there = maker.own().less(next, count);
                    maker.when(is_there, |maker| {
                        let to = maker.turned(turn, maker.shape.ahead);
                        maker.loads(&here, to);
                    });
                }
                maker.look_back(turn);
                maker.values(&here);
                let (is_late, is_inside) = {
                    let own = maker.own();
                    (own.compare(Relation::Ge, now, span), own.less(now, count))
                };
                let writes = match (maker.flow.span > 0, !steps.is_multiple_of(unrolled)) {
                    (true, true) => Some(maker.own().and(is_late, is_inside)),
                    (true, false) => Some(is_late),
                    (false, true) => Some(is_inside),
                    (false, false) => None,
                };
                // What is fetched from other lanes all lanes fetch.
                maker.widen_of_stores(&here);
                let row = maker.own().sub(now, span);
                maker.when_if(writes, |maker| maker.stores(&here, row));
                maker.keep(turn);
            });
        });
    }

    /// Where the warp is.
    fn setup(&mut self, warp: ValueId) -> Here {
        let Tiling { lane: width, halo, columns, strips, rows, parts, .. } = self.tiling;
        let [ni, nj, _] = self.lower.task.extents;
        let [_, computed_rows] = computed(self.lower.task, self.flow);
        let (beyond, leads, strip_shape) = (self.beyond(), self.leads(), self.shape.strip);
        let own = self.own();
        let lanes = own.int(LANES as i64);
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let lane = own.binary(Binary::Rem, thread, lanes);
        let lane = own.name("lane", lane);
        // Warps beside each other share what is fastest: rows above each other, or strips side by side.
        let [inner, outer] = match strip_shape {
            Strip::Overlapping => [("part", parts), ("strip", strips)],
            Strip::Aligned => [("strip", strips), ("part", parts)],
        };
        let [inner_count, outer_count, both] = [inner.1, outer.1, strips * parts].map(|n| own.int(n as i64));
        let first = own.binary(Binary::Rem, warp, inner_count);
        let first = own.name(inner.0, first);
        let second = own.binary(Binary::Div, warp, inner_count);
        let second = own.binary(Binary::Rem, second, outer_count);
        let second = own.name(outer.0, second);
        let k = own.binary(Binary::Div, warp, both);
        let k = own.name("k", k);
        self.lower.at_level(k);
        let own = self.own();
        let (part, strip) = match strip_shape {
            Strip::Overlapping => (first, second),
            Strip::Aligned => (second, first),
        };
        let (width_known, ni_known, nj_known) = (own.int(width as i64), own.int(ni as i64), own.int(nj as i64));
        let strip_start = back(own, strip, columns, ni);
        let of_lane = own.mul(lane, width_known);
        let mut column = own.add(strip_start, of_lane);
        let before = halo[0] * width;
        if before > 0 {
            let around = own.int((before.next_multiple_of(ni) - before) as i64);
            column = own.add(column, around);
        }
        if before > 0 || halo[1] > 0 || ni < columns {
            column = own.binary(Binary::Rem, column, ni_known);
        }
        let column = own.name("column", column);
        let start = own.int(computed_rows.start as i64);
        let first_row = back(own, part, rows, computed_rows.len());
        let first_row = own.add(first_row, start);
        let first_row = own.name("first_row", first_row);
        let mut is_own = None;
        let end = (LANES - halo[1]).min(halo[0] + ni / width);
        if halo[0] > 0 {
            let halo = own.int(halo[0] as i64);
            is_own = Some(own.compare(Relation::Ge, lane, halo));
        }
        if end < LANES {
            let end = own.int(end as i64);
            let is_before = own.less(lane, end);
            is_own = Some(is_own.map_or(is_before, |is_behind| own.and(is_behind, is_before)));
        }
        let is_own = is_own.map(|is_own| own.name("is_own", is_own));
        let edge = (beyond > 0).then(|| {
            let [zero, last, left, right] =
                [0, LANES - 1, (ni - beyond) % ni, LANES * width].map(|number| own.int(number as i64));
            let (is_first, is_last) = (own.compare(Relation::Eq, lane, zero), own.compare(Relation::Eq, lane, last));
            let at_edge = own.or(is_first, is_last);
            let at_edge = own.name("at_edge", at_edge);
            let by = own.choose(is_first, left, right);
            let column = own.add(strip_start, by);
            let column = own.binary(Binary::Rem, column, ni_known);
            [at_edge, own.name("column_beyond", column)]
        });
        let rows = leads.into_iter().map(|lead| {
            let row = match lead {
                0 => first_row,
                _ => {
                    let start = own.int(lead.rem_euclid(nj as i64));
                    let row = own.add(first_row, start);
                    own.binary(Binary::Rem, row, nj_known)
                }
            };
            (lead, own.variable("row", row))
        });
        let rows = rows.collect();
        Here { lane, k, column, first_row, is_own, edge, rows }
    }

    /// Where the warp reads and writes, and what is the same on all columns.
    fn arrays(&mut self, here: &Here) {
        let task = self.lower.task;
        for (place, row) in self.flow.rows.iter().enumerate() {
            if let Source::Field(field, shift) = row.source {
                let Some(input) = self.inputs.get(&field).copied() else { continue };
                let plane = self.lower.plane(task.stencil.fields[field].place.levels, shift);
                let wish = format!("{}_from", self.lower.name(row.source));
                let from = self.own().view(&wish, input, plane);
                // The registers come later.
                self.coming.insert(place, Coming { from, rows: from, beyond: None });
            }
        }
        for store in &task.stencil.stores {
            let Some(output) = self.outputs.get(&store.field).copied() else { continue };
            let plane = self.lower.plane(task.stencil.fields[store.field].place.levels, 0);
            let wish = format!("{}_to", self.written_name(store.field));
            let own = self.own();
            let (row, first_row) =
                (own.literal(task.rows.row as i64, Type::I64), own.convert(here.first_row, Type::I64));
            let (above, column) = (own.mul(first_row, row), own.convert(here.column, Type::I64));
            let at = own.add(plane, above);
            let at = own.add(at, column);
            let to = own.view(&wish, output, at);
            self.to.insert(store.field, to);
        }
        self.lower.uniforms(self.flow);
    }

    /// Rows that a lane holds: those that are looked back at, and those that are on their way.
    fn registers(&mut self) {
        let (lane, ahead, flow) = (self.tiling.lane, self.shape.ahead, self.flow);
        if self.held.iter().any(|held| held.slots > 0) {
            self.own().gap();
            self.own().note("Rows that are looked back at.");
        }
        for (place, row) in flow.rows.iter().enumerate() {
            let Held { halo: [before, after], slots, .. } = self.held[place];
            if slots > 0 {
                let (wish, kind) = (format!("{}_kept", self.lower.name(row.source)), self.lower.kind(row.source));
                let kept = self.own().rows(&wish, kind, (slots, before + lane + after), Contents::Zeros);
                self.kept.insert(place, kept);
            }
        }
        if self.coming.is_empty() {
            return;
        }
        self.own().gap();
        self.own().note("Rows on their way.");
        for place in self.coming.keys().copied().collect::<Vec<_>>() {
            let source = flow.rows[place].source;
            let Held { halo: [before, after], computed, .. } = self.held[place];
            let Source::Field(field, _) = source else { continue };
            let name = self.lower.name(source).to_owned();
            let task = self.lower.task;
            let stored = Type::stored(task.stencil.fields[field].stored, task.precision);
            let rows = self.own().rows(&format!("{name}_coming"), stored, (ahead, lane), Contents::Unset);
            let beyond = (computed && before + after > 0).then(|| {
                self.own().rows(&format!("{name}_beyond"), stored, (ahead, before.max(after)), Contents::Zeros)
            });
            if let Some(own) = self.coming.get_mut(&place) {
                (own.rows, own.beyond) = (rows, beyond);
            }
        }
    }

    /// Columns beyond a strip that its outermost lanes load.
    pub(super) fn beyond(&self) -> usize {
        let computed = self.held.iter().zip(&self.flow.rows).filter(|(held, row)| held.computed && row.uses.is_empty());
        computed.map(|(held, _)| held.halo[0].max(held.halo[1])).max().unwrap_or(0)
    }

    /// How far the first row that each field loads is from the warp's own first row.
    pub(super) fn lead(&self, place: usize) -> i64 {
        i64::from(self.flow.lag) - i64::from(self.flow.rows[place].lag) - self.flow.span as i64
    }

    fn leads(&self) -> Vec<i64> {
        let fields =
            (0..self.flow.rows.len()).filter(|&place| matches!(self.flow.rows[place].source, Source::Field(..)));
        let mut leads: Vec<i64> = fields.map(|place| self.lead(place)).collect();
        leads.sort_unstable();
        leads.dedup();
        leads
    }
}

/// Where piece `number` of a size begins. The last one stands back onto that before it: the same bits are written twice.
fn back(own: &mut Builder, number: ValueId, size: usize, extent: usize) -> ValueId {
    let size_known = own.int(size as i64);
    match extent {
        _ if extent <= size => own.int(0),
        _ if extent.is_multiple_of(size) => own.mul(number, size_known),
        _ => {
            let (start, last) = (own.mul(number, size_known), own.int((extent - size) as i64));
            own.binary(Binary::Min, start, last)
        }
    }
}
