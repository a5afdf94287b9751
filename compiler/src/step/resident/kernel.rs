//! A resident kernel, in the kernel IR: what stands around the rows of a step.

use super::super::StepTask;
use super::super::flow::Flow;
use super::super::lower::{Frame, Lowering};
use super::rows::halos;
use super::spans::{Part, Span};
use super::{Carry, Shape};
use crate::gpu::WARP;
use crate::ir::{FieldId, Relation};
use crate::kernel::build::{Builder, Computing, Making};
use crate::kernel::{ArrayId, Axis, Coordinate, Math, Routine, Step, Type, Unroll, ValueId};
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
    /// Of each row how many neighbouring columns are kept before and after its own.
    pub(super) halos: Vec<[usize; 2]>,
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
        let frame = Frame { ending: "resident", threads: warps * WARP, aliased: true, math: Math::Own, how };
        let mut lower = Lowering::new(task, &flow.sources(), frame);
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
            halos: halos(flow),
            state: BTreeMap::new(),
            sent: BTreeMap::new(),
            from: BTreeMap::new(),
            made: BTreeMap::new(),
            new: BTreeMap::new(),
        }
    }

    /// Columns of a lane.
    pub(super) fn lane(&self) -> usize {
        self.lower.task.extents[0] / WARP
    }

    /// Says what is done.
    pub fn write(&mut self) {
        let here = self.setup();
        let neighbours = self.neighbours(&here);
        let share = self.share(&here);
        let own = self.own();
        let (turn, one) = (own.variable("turn", 0.to(Type::U32)), own.int(1));
        // The last plane first: another cluster may wait for what a plane's first steps come to.
        let bounds = (share.last_plane, share.first_plane, Step::Down(one));
        let blocks = self.shape.blocks;
        self.each("k", bounds, Unroll::Times(1), |maker, k| {
            maker.lower.at_level(k);
            let own = maker.own();
            let first_step = k.is(Relation::Eq, share.first_plane).picks(share.before, 0);
            let first_step = own.name("first_step", first_step);
            let last_step = k.is(Relation::Eq, share.last_plane).picks(share.after, here.steps);
            let last_step = own.name("last_step", last_step);
            maker.begin(&here, first_step);
            maker.repeated("step", (first_step, last_step, 1), |maker, step| {
                let own = maker.own();
                let half = own.name("buffer", turn.rem(2).to(Type::I32));
                let parity = own.term(turn.over(2).rem(2));
                maker.step(&here, neighbours.as_ref(), Now { step, half }, parity);
                maker.own().assign(turn, turn.plus(1));
            });
            maker.end(&here);
            let own = maker.own();
            let next = own.place(here.flags, Coordinate::Block.along(Axis::X).plus(blocks));
            own.when(last_step.less(here.steps), |own| own.perform(Routine::FlagRaise, vec![next]));
        });
        if neighbours.is_some() {
            let own = self.own();
            own.note("No block ends while others send to it.");
            own.perform(Routine::ClusterArrive, Vec::new());
            own.perform(Routine::ClusterWait, Vec::new());
        }
    }
}
