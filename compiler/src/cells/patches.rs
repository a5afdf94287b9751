//! Kernels of patches: a warp computes a patch of columns, or a lone one, of which a row of a table tells where its columns are. Blocks
//! stay, and take groups of patches by turns, so that one front moves over the grid; the next row comes while one is computed.

use super::body::Writer;
use super::checked::Site;
use super::{Frame, Given, levels};
use crate::access::{Addresses, Cell, Elements, Shape};
use crate::gpu::WARP;
use crate::ir::{Path, Relation};
use crate::kernel::build::{Builder, Computing, Making, Term};
use crate::kernel::{ArrayId, Axis, Coordinate, Step, Unroll, ValueId};
use crate::names::path_name;
use crate::plan::{Patches, Plan};
use crate::storage::Coordinates;
use std::collections::BTreeMap;

/// Lanes of a warp, and entries of a table that they load at once.
const LANES: u32 = WARP as u32;

/// What the threads of a kernel of patches look up.
struct Rows {
    table: ArrayId,
    /// How many there are.
    count: ValueId,
    /// Entries of one.
    width: u32,
    /// The lane of a thread, where all threads of its warp have the same row, and each looks up a part of it.
    lane: Option<ValueId>,
}

impl Rows {
    /// The index of a row's first entry; of the last row, if there are not so many.
    fn start(&self, own: &mut Builder, row: ValueId) -> ValueId {
        let there = row.less(self.count).picks(row, self.count.minus(1));
        own.term(there.times(self.width))
    }

    /// What a lane loads of a row.
    fn part(&self, own: &mut Builder, row: ValueId) -> Vec<ValueId> {
        let Some(lane) = self.lane else { return Vec::new() };
        let start = self.start(own, row);
        (0..self.width.div_ceil(LANES)).map(|part| own.load(self.table, start.plus(part * LANES).plus(lane))).collect()
    }

    /// The first entries of a row: from the lanes that have loaded them, or else each by itself.
    fn entries(&self, own: &mut Builder, row: ValueId, loaded: &[ValueId], count: usize) -> Vec<ValueId> {
        let start = self.start(own, row);
        let all = own.mask(u32::MAX);
        let entries = (0..count as u32).map(|number| match loaded.get((number / LANES) as usize) {
            Some(&part) => {
                let lane = own.int(i64::from(number % LANES));
                own.shuffle(part, lane, all)
            }
            None => own.load(self.table, start.plus(number)),
        });
        let entries: Vec<ValueId> = entries.collect();
        entries.into_iter().map(|entry| own.name("entry", entry)).collect()
    }
}

/// Computes the patches of a grid, and its lone columns.
pub(super) fn each_patch(given: &Given, own: &mut Builder, sites: &mut Vec<Site>, plan: &Plan, patches: &Patches) {
    let [x, y, z] = plan.choices.block;
    let sizes = &given.sizes;
    let (first, end) = (sizes.levels[0], sizes.levels[1]);
    own.blocks_at_once(plan.blocks_at_once().unwrap_or_default());
    let thread = Coordinate::Thread.along(Axis::X);
    let lane = x.is_multiple_of(LANES).then(|| own.name("lane", thread.rem(LANES)));
    let width = patches.wanted.width() as u32;
    let rows = Rows { table: sizes.tables[0], count: sizes.bounds[0][1], width, lane };
    let depth = x * plan.tile.levels;
    let slices = own.name("slices", end.minus(first).plus(depth - 1).over(depth));
    let turns = own.name("turns", rows.count.plus(y * z - 1).over(y * z).times(slices));
    let row_of = |own: &mut Builder, turn: ValueId| {
        let in_group = match z {
            1 => Coordinate::Thread.along(Axis::Y),
            _ => Coordinate::Thread.along(Axis::Z).times(y).plus(Coordinate::Thread.along(Axis::Y)),
        };
        own.term(turn.over(slices).times(y * z).plus(in_group))
    };
    let [block, blocks] = [Coordinate::Block, Coordinate::Blocks].map(|own| own.along(Axis::X));
    let (block, blocks) = (own.term(block), own.term(blocks));
    let row = row_of(own, block);
    let ahead = rows.part(own, row);
    let ahead: Vec<_> = ahead.into_iter().map(|entries| own.variable("ahead", entries)).collect();
    own.each("turn", (block, turns, Step::By(blocks)), Unroll::Times(1), |own, turn| {
        let row = row_of(own, turn);
        let row = own.name("row", row);
        let level = Coordinate::Thread.along(Axis::X).times(plan.tile.levels);
        let k = own.name("k", first.plus(turn.rem(slices).times(depth)).plus(level));
        let loaded = ahead.iter().map(|&ahead| own.get(ahead)).collect::<Vec<_>>();
        let loaded: Vec<_> = loaded.into_iter().map(|entries| own.name("entries", entries)).collect();
        let following = own.term(turn.plus(blocks));
        let following = row_of(own, following);
        let next = rows.part(own, following);
        ahead.iter().zip(next).for_each(|(&ahead, entries)| own.assign(ahead, entries));
        let count = patches.wanted.footprint.len().max(patches.wanted.lone.len());
        let entries = rows.entries(own, row, &loaded, count);
        let is_first = own.term(row.is(Relation::Eq, 0));
        own.when(row.less(rows.count).and(k.less(end)), |own| {
            let footprint: Vec<Path> =
                patches.wanted.footprint.iter().map(|&offset| Path::from_offset(offset)).collect();
            let patch = own.block(|own| one(given, plan, own, sites, (k, is_first), (&footprint, &entries)));
            let lone = own.block(|own| {
                let mut entries = entries.clone();
                entries[0] = own.term(Term::from(-1).minus(entries[0]));
                one(given, &patches.lone, own, sites, (k, is_first), (&patches.wanted.lone, &entries));
            });
            let is_patch = own.term(entries[0].is(Relation::Ge, 0));
            own.branch(is_patch, patch, lone);
        });
    });
}

/// Computes a patch, or a lone column: the places of its columns are known, by their paths from the first.
fn one(
    given: &Given,
    plan: &Plan,
    own: &mut Builder,
    sites: &mut Vec<Site>,
    (k, first): (ValueId, ValueId),
    (paths, entries): (&[Path], &[ValueId]),
) {
    let sizes = &given.sizes;
    let places: BTreeMap<&Path, ValueId> = paths.iter().zip(entries.iter().copied()).collect();
    let column = own.convert(entries[0], sizes.index);
    let column = own.name("column", column);
    let coordinates = Coordinates { axes: Vec::new(), outside: own.truth(false), column, first };
    let c = plan.storage.index(own, sizes, column, k);
    let cell = Cell { k, c: own.name("c", c), column };
    let mut frame = Frame::of(plan, given, coordinates);
    let known = plan.wanted.iter().map(|wanted| {
        let place = own.convert(places[&wanted.path], sizes.index);
        let (index, suffix) = match wanted.shape {
            Shape::Volume => (plan.storage.index(own, sizes, place, k), ""),
            Shape::Plane => (place, "_column"),
        };
        let name = format!("{}{suffix}", path_name(&wanted.path));
        ((wanted.path.clone(), wanted.shape), own.name(&name, index))
    });
    frame.addresses = Addresses::Indices(known.collect());
    own.gap();
    let loaded: Elements = levels::elements(&frame, own, cell);
    for phase in &plan.phases {
        Writer::new(&frame, phase, own, sites, cell, loaded.clone()).write();
    }
}
