//! A kernel that streams, in the kernel IR: where a warp is, and what it does step by step.

use super::super::flow::{Flow, Source, Window};
use super::super::lower::{Frame, Lowering};
use super::tiling::{Held, Tiling, wanted};
use super::turns::warp_of_thread;
use super::{Carry, Shape, StepTask, Strip};
use crate::gpu::WARP;
use crate::ir::{FieldId, Relation};
use crate::kernel::build::{Builder, Computing, Making, Term};
use crate::kernel::{ArrayId, Axis, Contents, Coordinate, Math, Type, ValueId, VariableId};
use std::collections::{BTreeMap, BTreeSet};

/// Makes one kernel.
pub struct Maker<'a> {
    /// Arguments, names and operations.
    pub lower: Lowering<'a>,
    pub(super) flow: &'a Flow,
    pub(super) shape: &'a Shape,
    pub(super) tiling: Tiling,
    pub(super) wanted: BTreeMap<(usize, usize), Window>,
    /// Of each row, by how many rows back: where it is found.
    pub(super) views: BTreeMap<(usize, usize), View>,
    /// Of each row its rows that are looked back at.
    pub(super) kept: BTreeMap<usize, ArrayId>,
    /// Of each row of a field its rows that are on their way.
    pub(super) coming: BTreeMap<usize, Coming>,
    /// Of each field that is written where the first row goes.
    pub(super) to: BTreeMap<FieldId, ArrayId>,
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
    pub fn new(
        task: &'a StepTask<'a>,
        flow: &'a Flow,
        shape: &'a Shape,
        tiling: Tiling,
        carry: Option<&[Carry]>,
    ) -> Self {
        let Tiling { lane, columns, rows, .. } = tiling;
        let how = format!(
            "a warp walks down {rows} rows of {columns} columns, a lane has {lane}; {} rows ahead are on their way",
            shape.ahead
        );
        let (ending, how) = match carry {
            None => ("stream", how),
            Some(_) => ("persistent", format!("many steps, and between them all wait for each other; {how}")),
        };
        // Nothing is taken for unchanged that others write between two steps.
        let aliased = carry.is_some();
        let lower =
            Lowering::new(task, &flow.sources(), Frame { ending, threads: shape.block, aliased, math: Math::Own, how });
        Self {
            lower,
            flow,
            shape,
            tiling,
            wanted: wanted(flow),
            views: BTreeMap::new(),
            kept: BTreeMap::new(),
            coming: BTreeMap::new(),
            to: BTreeMap::new(),
            now: BTreeMap::new(),
        }
    }

    /// Says what so many warps do: each of the launch once; or, where outputs are carried, those that are there at once, step after
    /// step.
    pub fn write(&mut self, warps: usize, carry: Option<&[Carry]>) {
        if let Some(carry) = carry {
            return self.turns(carry, warps);
        }
        let warps_of_block = self.shape.block / WARP;
        let own = self.own();
        let warp = own.name("warp", warp_of_thread(warps_of_block));
        if !warps.is_multiple_of(warps_of_block) {
            own.leave_if(warp.is(Relation::Ge, warps));
        }
        self.walk(warp);
    }

    /// What a warp does in a step of the stencil: it walks down its rows.
    pub(super) fn walk(&mut self, warp: ValueId) {
        let Tiling { steps, unrolled, .. } = self.tiling;
        let (ahead, span) = (self.shape.ahead, self.flow.span);
        let here = self.setup(warp);
        self.arrays(&here);
        let own = self.own();
        own.note("NVRTC 13.0 can lose the end of a loop whose length it knows; a launch has one block along y.");
        // Numbers with a sign do not overflow, which compilers make use of.
        let blocks = own.name("blocks", Coordinate::Blocks.along(Axis::Y));
        let count = own.name("count", steps.plus(blocks).minus(1));
        self.registers();
        if !self.coming.is_empty() {
            self.unrolled("q", (0, ahead), |maker, turn| maker.loads(&here, turn));
        }
        self.own().gap();
        self.repeated("step", (0, count, unrolled), |maker, step| {
            maker.unrolled("q", (0, unrolled), |maker, turn| {
                let now = maker.own().term(step.plus(turn));
                maker.takes(&here, turn);
                if !maker.coming.is_empty() {
                    maker.when(now.plus(ahead).less(count), |maker| {
                        let to = maker.turned(turn, ahead);
                        maker.loads(&here, to);
                    });
                }
                maker.look_back(turn);
                maker.values(&here);
                let own = maker.own();
                let is_late = (span > 0).then(|| own.term(now.is(Relation::Ge, span)));
                let is_inside = (!steps.is_multiple_of(unrolled)).then(|| own.term(now.less(count)));
                let writes = own.all(is_late.into_iter().chain(is_inside));
                // What is fetched from other lanes all lanes fetch.
                maker.widen_of_stores(&here);
                let row = maker.own().term(now.minus(span));
                maker.when_if(writes, |maker| maker.stores(&here, row));
                maker.keep(turn);
            });
        });
    }

    /// Where the warp is.
    fn setup(&mut self, warp: ValueId) -> Here {
        let Tiling { lane: width, halo, columns, strips, rows, parts, .. } = self.tiling;
        let [ni, nj, _] = self.lower.task.extents;
        let computed_rows = self.tiling.computed[1].clone();
        let (beyond, strip_shape) = (self.beyond(), self.shape.strip);
        let leads: BTreeSet<i64> = self.flow.fields().map(|(place, _)| self.lead(place)).collect();
        let own = self.own();
        let lane = own.name("lane", Coordinate::Thread.along(Axis::X).rem(WARP));
        // Warps beside each other share what is fastest: rows above each other, or strips side by side.
        let (part, strip) = match strip_shape {
            Strip::Overlapping => {
                let part = own.name("part", warp.rem(parts));
                (part, own.name("strip", warp.over(parts).rem(strips)))
            }
            Strip::Aligned => {
                let strip = own.name("strip", warp.rem(strips));
                (own.name("part", warp.over(strips).rem(parts)), strip)
            }
        };
        let k = own.name("k", warp.over(strips * parts));
        self.lower.at_level(k);
        let own = self.own();
        let strip_start = own.term(back(strip, columns, ni));
        let before = halo[0] * width;
        let around = before.next_multiple_of(ni) - before;
        let mut column = strip_start.plus(lane.times(width)).plus(around);
        if before > 0 || halo[1] > 0 || ni < columns {
            column = column.rem(ni);
        }
        let column = own.name("column", column);
        let first_row = own.name("first_row", back(part, rows, computed_rows.len()).plus(computed_rows.start));
        let end = (WARP - halo[1]).min(halo[0] + ni / width);
        let is_own = own.in_range(lane, halo[0] as i64..end as i64, 0..WARP as i64);
        let is_own = is_own.map(|is_own| own.name("is_own", is_own));
        let edge = (beyond > 0).then(|| {
            let is_first = own.term(lane.is(Relation::Eq, 0));
            let at_edge = own.name("at_edge", is_first.or(lane.is(Relation::Eq, WARP - 1)));
            let by = is_first.picks((ni - beyond) % ni, WARP * width);
            [at_edge, own.name("column_beyond", strip_start.plus(by).rem(ni))]
        });
        let rows = leads.into_iter().map(|lead| {
            let row = match lead {
                0 => first_row,
                _ => own.term(first_row.plus(lead.rem_euclid(nj as i64)).rem(nj)),
            };
            (lead, own.variable("row", row))
        });
        let rows = rows.collect();
        Here { lane, column, first_row, is_own, edge, rows }
    }

    /// Where the warp reads and writes, and what is the same on all columns.
    fn arrays(&mut self, here: &Here) {
        let task = self.lower.task;
        for (place, row) in self.flow.rows.iter().enumerate() {
            if let Some(from) = self.lower.view_from(row.source, 0) {
                // The registers come later.
                self.coming.insert(place, Coming { from, rows: from, beyond: None });
            }
        }
        for store in &task.stencil.stores {
            let first_row = here.first_row.to(Type::I64).times(task.rows.row);
            if let Some(to) = self.lower.view_to(store.field, 0, first_row.plus(here.column.to(Type::I64))) {
                self.to.insert(store.field, to);
            }
        }
        self.lower.uniforms(self.flow);
    }

    /// Rows that a lane holds: those that are looked back at, and those that are on their way.
    fn registers(&mut self) {
        let (lane, ahead, task, flow) = (self.tiling.lane, self.shape.ahead, self.lower.task, self.flow);
        let own = &mut self.lower.own;
        if self.tiling.held.iter().any(|held| held.slots > 0) {
            own.gap();
            own.note("Rows that are looked back at.");
        }
        for (place, row) in flow.rows.iter().enumerate() {
            let Held { halo: [before, after], slots, .. } = self.tiling.held[place];
            if slots > 0 {
                let (wish, size) = (format!("{}_kept", self.lower.name(row.source)), (slots, before + lane + after));
                let kept = self.own().rows(&wish, task.kind(row.source), size, Contents::Zeros);
                self.kept.insert(place, kept);
            }
        }
        if self.coming.is_empty() {
            return;
        }
        self.own().gap();
        self.own().note("Rows on their way.");
        for (&place, coming) in &mut self.coming {
            let Source::Field(field, _) = flow.rows[place].source else { continue };
            let Held { halo: [before, after], computed, .. } = self.tiling.held[place];
            let (stored, lower) = (task.stored(field), &mut self.lower);
            let name = lower.name(flow.rows[place].source).to_owned();
            coming.rows = lower.own.rows(&format!("{name}_coming"), stored, (ahead, lane), Contents::Unset);
            coming.beyond = (computed && before + after > 0).then(|| {
                let size = (ahead, before.max(after));
                lower.own.rows(&format!("{name}_beyond"), stored, size, Contents::Zeros)
            });
        }
    }

    /// Columns beyond a strip that its outermost lanes load.
    pub(super) fn beyond(&self) -> usize {
        let computed =
            self.tiling.held.iter().zip(&self.flow.rows).filter(|(held, row)| held.computed && row.uses.is_empty());
        computed.map(|(held, _)| held.halo[0].max(held.halo[1])).max().unwrap_or(0)
    }

    /// How far the first row that each field loads is from the warp's own first row.
    pub(super) fn lead(&self, place: usize) -> i64 {
        i64::from(self.flow.lag) - i64::from(self.flow.rows[place].lag) - self.flow.span as i64
    }
}

/// Where piece `number` of a size begins. The last one stands back onto that before it: the same bits are written twice.
fn back(number: ValueId, size: usize, extent: usize) -> Term {
    match extent {
        _ if extent <= size => 0.into(),
        _ if extent.is_multiple_of(size) => number.times(size),
        _ => number.times(size).at_most(extent - size),
    }
}
