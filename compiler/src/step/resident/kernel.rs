//! A resident kernel, in the kernel IR: what stands around the rows of a step.

use super::super::flow::Flow;
use super::super::lower::width;
use super::super::lower::{Frame, Lowering};
use super::super::{LANES, StepTask};
use super::rows::kept_wide;
use super::spans::{Part, Span};
use super::{Carry, Shape, field_bytes};
use crate::ir::{FieldId, Levels, Relation};
use crate::kernel::build::Builder;
use crate::kernel::build::Making;
use crate::kernel::{ArrayId, Axis, Binary, Coordinate, Operand, Routine, Step, Type, Unroll, ValueId};
use std::collections::BTreeMap;

/// Makes one kernel.
pub struct Maker<'a> {
    /// Arguments, names and operations.
    pub lower: Lowering<'a>,
    pub(super) flow: &'a Flow,
    pub(super) shape: Shape,
    pub(super) carry: &'a [Carry],
    pub(super) parts: Vec<Part>,
    /// Of each row, then of each store.
    pub(super) spans: Vec<Span>,
    /// Of rows whose neighbouring columns are kept beside their own: how many before and after.
    pub(super) widened: BTreeMap<usize, [usize; 2]>,
    /// The rows of the state, by the fields that are read.
    pub(super) state: BTreeMap<FieldId, ArrayId>,
    /// Where the rows of each field are that neighbours send.
    pub(super) sent: BTreeMap<FieldId, ArrayId>,
    /// Planes of what stays as it is.
    pub(super) from: BTreeMap<usize, ArrayId>,
    /// What is made of rows in a step: computed, loaded, or fetched from neighbouring lanes.
    pub(super) made: BTreeMap<usize, ArrayId>,
    /// The next state, by the outputs.
    pub(super) new: BTreeMap<FieldId, ArrayId>,
}

/// Where a warp is.
#[derive(Clone, Copy)]
pub struct Here {
    pub lane: ValueId,
    pub warp: ValueId,
    pub rank: ValueId,
    pub first_row: ValueId,
    pub column: ValueId,
    pub steps: ValueId,
    pub flags: ArrayId,
}

/// The warps beside, and what counts the bytes that come from them.
#[derive(Clone, Copy)]
pub struct Neighbours {
    /// The warp above and its block.
    pub above: [ValueId; 2],
    /// The warp below and its block.
    pub below: [ValueId; 2],
    pub arrived: ArrayId,
    /// Bytes that a warp is sent in a step.
    pub bytes: usize,
}

/// When something is done.
#[derive(Clone, Copy)]
pub struct Now {
    pub k: ValueId,
    pub step: ValueId,
    /// Which of the two halves of what is sent.
    pub half: ValueId,
}

/// The steps of the planes that a cluster computes.
pub struct WorkRange {
    pub first_plane: ValueId,
    pub last_plane: ValueId,
    /// Steps that others have computed of the first plane.
    pub before: ValueId,
    /// Those after which others go on with the last plane.
    pub after: ValueId,
}

impl Making for Maker<'_> {
    fn own(&mut self) -> &mut Builder {
        &mut self.lower.own
    }
}

impl<'a> Maker<'a> {
    /// Of a kernel of these rows.
    pub fn new(
        task: &'a StepTask<'a>,
        flow: &'a Flow,
        carry: &'a [Carry],
        shape: Shape,
        (parts, spans): (Vec<Part>, Vec<Span>),
    ) -> Self {
        let Shape { rows, warps, blocks, .. } = shape;
        let how = format!(
            "a plane stays in the registers of {blocks} blocks of {warps} warps of {rows} rows, step after step"
        );
        let frame = Frame { ending: "resident", threads: warps * LANES, aliased: true, how };
        let mut lower = Lowering::new(task, flow, frame);
        for &(to, from) in carry {
            // One that nobody reads is still what the first step begins with, if there is none.
            lower.need(from);
            lower.need(to);
        }
        lower.own.blocks_at_once(1);
        Self {
            lower,
            flow,
            shape,
            carry,
            parts,
            spans,
            widened: kept_wide(flow),
            state: BTreeMap::new(),
            sent: BTreeMap::new(),
            from: BTreeMap::new(),
            made: BTreeMap::new(),
            new: BTreeMap::new(),
        }
    }

    /// Columns of a lane.
    pub(super) fn lane(&self) -> usize {
        self.lower.task.extents[0] / LANES
    }

    /// What an array is called.
    pub(super) fn array_name(&self, array: Option<ArrayId>) -> String {
        array.map(|array| self.lower.own.kernel().arrays[array].name.to_string()).unwrap_or_default()
    }

    /// The type that a field is stored in.
    pub(super) fn stored(&self, field: FieldId) -> Type {
        Type::stored(self.lower.task.stencil.fields[field].stored, self.lower.task.precision)
    }

    /// How many elements of a field one instruction moves.
    pub(super) fn at_once(&self, field: FieldId) -> usize {
        let rows = self.lower.task.rows;
        let declared = &self.lower.task.stencil.fields[field];
        let plane = if declared.place.levels == Levels::None { 0 } else { rows.plane };
        width(field_bytes(self.lower.task, field), self.lane(), &[rows.first, rows.row, plane])
    }

    /// Rows one after the other, by their numbers.
    pub(super) fn each_row(&mut self, (first, end): (i32, i32), write: impl FnOnce(&mut Self, ValueId)) {
        let [first, end, one] = [first, end, 1].map(|number| self.own().int(i64::from(number)));
        self.each("r", (first, end, Step::By(one)), Unroll::Whole, write);
    }

    /// A row so many further on.
    pub(super) fn on(&mut self, r: ValueId, by: i32) -> ValueId {
        let own = self.own();
        let by = own.int(i64::from(by));
        own.add(r, by)
    }

    /// Says what is done.
    pub fn write(&mut self) {
        let here = self.setup();
        let neighbours = self.neighbours(&here);
        let share = self.share(&here);
        let own = self.own();
        let (none, one) = (own.literal(0, Type::U32), own.int(1));
        let turn = own.variable("turn", none);
        // The last plane first: another cluster may wait for what a plane's first steps come to.
        let bounds = (share.last_plane, share.first_plane, Step::Down(one));
        let of_cluster = self.shape.blocks as i64;
        self.each("k", bounds, Unroll::Times(1), |maker, k| {
            maker.lower.at_level(k);
            let own = maker.own();
            let zero = own.int(0);
            let (is_first, is_last) =
                (own.compare(Relation::Eq, k, share.first_plane), own.compare(Relation::Eq, k, share.last_plane));
            let first_step = own.choose(is_first, share.before, zero);
            let first_step = own.name("first_step", first_step);
            let last_step = own.choose(is_last, share.after, here.steps);
            let last_step = own.name("last_step", last_step);
            maker.begin(&here, first_step);
            maker.each("step", (first_step, last_step, Step::By(one)), Unroll::Times(1), |maker, step| {
                let own = maker.own();
                let (two, now) = (own.literal(2, Type::U32), own.get(turn));
                let half = own.binary(Binary::Rem, now, two);
                let half = own.convert(half, Type::I32);
                let half = own.name("buffer", half);
                let parity = own.binary(Binary::Div, now, two);
                let parity = own.binary(Binary::Rem, parity, two);
                maker.step(&here, neighbours.as_ref(), Now { k, step, half }, parity);
                let own = maker.own();
                let (now, one) = (own.get(turn), own.literal(1, Type::U32));
                let next = own.add(now, one);
                own.assign(turn, next);
            });
            maker.end(&here);
            let own = maker.own();
            let goes_on = own.less(last_step, here.steps);
            let block = own.coordinate(Coordinate::Block, Axis::X);
            let blocks = own.int(of_cluster);
            let next = own.add(block, blocks);
            own.when(goes_on, |own| own.perform(Routine::FlagRaise, vec![Operand::Place(here.flags, next)]));
        });
        if neighbours.is_some() {
            let own = self.own();
            own.note("No block ends while others send to it.");
            own.perform(Routine::ClusterArrive, Vec::new());
            own.perform(Routine::ClusterWait, Vec::new());
        }
    }
}
