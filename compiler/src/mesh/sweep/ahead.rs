//! Numbers that are loaded for several levels while those before are computed.
//!
//! Where elements follow each other in memory, each thread loads those of its own column: threads that follow each other look at elements
//! that do. Where what is carried leaves room for few threads, what follows comes to the cache meanwhile.
//! Where the levels of an element follow each other, threads that follow each other load the levels of one column, hand them over through
//! shared memory, where each finds its own, and write what came of it the same way.

use super::{Column, levels};
use crate::analysis::footprint::Footprint;
use crate::gpu::SHARED;
use crate::ir::{FieldId, Hop, Levels, MeshStencil, Path, Relation, Role};
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, Axis, Binary, Coordinate, Operand, Routine, Type, ValueId};
use crate::mesh::own::Written;
use crate::mesh::writer::Writer;
use std::collections::{BTreeMap, BTreeSet};

/// Words of registers that wait in a thread for their levels, and as many that are on their way.
pub(super) const WAITING: usize = 64;

/// Levels of its own column that a thread loads at once, at most.
pub(super) const LEVELS: usize = 8;

/// Bytes of a column that threads load at once for each other, at most: with fewer of them memory gives less than it could.
const PIECE: usize = 128;

/// What is loaded, and what is written.
pub(super) struct Ahead {
    /// How many levels at once.
    pub levels: usize,
    reads: Vec<Read>,
    writes: Vec<Tile>,
    /// Whether what follows those that are on their way comes to the cache.
    is_prefetched: bool,
    /// Where threads load for each other.
    block: Option<Block>,
}

/// Numbers of a field that are read.
struct Read {
    field: FieldId,
    at: Path,
    /// By part, those that are on their way.
    next: Vec<ArrayId>,
    /// By part, those of the levels at hand.
    here: Vec<ArrayId>,
}

/// Numbers of a field that are written.
struct Tile {
    field: FieldId,
    array: ArrayId,
}

/// A block whose threads load for each other.
struct Block {
    thread: ValueId,
    /// The first item.
    item: ValueId,
    column: Column,
    /// Where ways lead from the columns of the block.
    ends: BTreeMap<Vec<Hop>, ArrayId>,
}

/// A number that a thread moves: of which column of the block, and which of the levels at once.
struct Moved {
    column: ValueId,
    number: ValueId,
}

impl Ahead {
    /// Decides what a loop loads and writes this way, and declares where it waits.
    pub fn new(writer: &mut Writer, phase: &MeshStencil, column: Column) -> Self {
        let wanted = wanted(writer, phase);
        let turns = column.of_block.is_some();
        let mut outputs: Vec<FieldId> = Vec::new();
        for store in phase.stencil.stores.iter().filter(|_| turns) {
            let own = writer.field(store.field);
            if own.role != Role::Carried && own.place.levels != Levels::None && writer.width(store.field) == 1 {
                outputs.push(store.field);
            }
        }
        let waiting = words(writer, &wanted);
        let threads = writer.choices.threads.block as usize;
        let bytes = |writer: &Writer, levels: usize| -> usize {
            let reads = wanted.iter().map(|(field, _)| writer.width(*field) * writer.stored(*field).bytes());
            let writes = outputs.iter().map(|field| writer.stored(*field).bytes());
            // Each thread says where the ways of its column lead.
            let ends: BTreeSet<&[Hop]> =
                wanted.iter().map(|(_, at)| at.hops()).filter(|hops| !hops.is_empty()).collect();
            let ends = ends.len() * threads * Type::I32.bytes();
            ends + reads.chain(writes).map(|each| each * threads * (levels + 1)).sum::<usize>()
        };
        let fields = wanted.iter().map(|(field, _)| *field).chain(outputs.iter().copied());
        let widest = fields.map(|field| writer.stored(field).bytes()).max().unwrap_or(1);
        let fits = |writer: &Writer, levels: &usize| match turns {
            false => *levels <= LEVELS && waiting * levels <= WAITING,
            true => {
                let has_room = bytes(writer, *levels) + writer.own.shared_bytes() <= SHARED;
                levels * widest <= PIECE && waiting * levels <= 2 * WAITING && has_room
            }
        };
        let levels = [32, 16, 8, 4, 2].into_iter().find(|levels| fits(writer, levels));
        let (Some(levels), false) = (levels, wanted.is_empty() && outputs.is_empty()) else {
            return Self { levels: 1, reads: Vec::new(), writes: Vec::new(), is_prefetched: false, block: None };
        };
        let array = |writer: &mut Writer, name: &str, kind: Type, is_shared: bool| match is_shared {
            true => writer.own.shared(name, kind, threads * (levels + 1)),
            false => writer.own.local(name, kind, levels),
        };
        let mut reads = Vec::new();
        for (field, at) in wanted {
            let (kind, wish, width) = (writer.stored(field), writer.read_name(field, &at), writer.width(field));
            let parts = |writer: &mut Writer, end: &str, is_shared: bool| -> Vec<ArrayId> {
                (0..width).map(|_| array(writer, &format!("{wish}_{end}"), kind, is_shared)).collect()
            };
            let (next, here) = (parts(writer, "next", false), parts(writer, "ahead", turns));
            reads.push(Read { field, at, next, here });
        }
        let mut writes = Vec::new();
        for field in outputs {
            let (kind, wish) = (writer.stored(field), format!("{}_turned", writer.field(field).name));
            writes.push(Tile { field, array: array(writer, &wish, kind, true) });
        }
        let block = turns.then(|| Block::new(writer, column, &reads));
        let precision = writer.task.precision;
        let is_prefetched = !turns && writer.sweeping.as_ref().is_some_and(|own| own.carried.prefetches(precision));
        Self { levels, reads, writes, is_prefetched, block }
    }

    /// Whether nothing is loaded or written this way.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Whether a field is written this way.
    pub fn stores(&self, field: FieldId) -> bool {
        self.writes.iter().any(|own| own.field == field)
    }

    /// Lets the numbers of the levels from `start` on come, of those that there are.
    pub fn load(&self, writer: &mut Writer, start: ValueId, is_down: bool) {
        let count = writer.own.int(self.levels as i64);
        writer.unrolled("n", (0, count), |writer, number| {
            let moved = self.block.as_ref().map(|block| block.moved(writer, number, self.levels));
            let level = moved.as_ref().map_or(number, |moved| moved.number);
            let k = writer.own.name("k", if is_down { start.minus(level) } else { start.plus(level) });
            let is_level = is_level(writer, k, is_down);
            writer.when(is_level, |writer| {
                writer.at_level(k);
                for Read { field, at, next, .. } in &self.reads {
                    let element = match (&self.block, &moved) {
                        (Some(block), Some(moved)) => block.end(writer, at.hops(), moved),
                        _ => writer.index(at.hops()),
                    };
                    let (array, wish) = (writer.input(*field), writer.read_name(*field, at));
                    let values = writer.load(array, *field, (Some(element), at.levels()), &wish, true);
                    for (own, value) in next.iter().zip(values) {
                        writer.own.store(*own, number, value);
                    }
                }
            });
            if self.is_prefetched {
                let further = if is_down { k.minus(self.levels) } else { k.plus(self.levels) };
                let further = writer.own.name("k_further", further);
                let own: Vec<_> = self.reads.iter().map(|own| (own.field, own.at.clone())).collect();
                let is_further = self::is_level(writer, further, is_down);
                let own = beside(writer, own);
                writer.when_if((!own.is_empty()).then_some(is_further), |writer| prefetch(writer, &own, further));
            }
        });
    }

    /// What has come is that of the levels at hand.
    pub fn hand_over(&self, writer: &mut Writer) {
        let count = writer.own.int(self.levels as i64);
        if self.block.is_some() {
            writer.own.barrier();
        }
        writer.unrolled("n", (0, count), |writer, number| {
            let moved = self.block.as_ref().map(|block| block.moved(writer, number, self.levels));
            for Read { next, here, .. } in &self.reads {
                for (from, to) in next.iter().zip(here) {
                    let value = writer.own.load(*from, number);
                    let place = moved.as_ref().map_or(number.into(), |moved| self.place(moved.column, moved.number));
                    writer.own.store(*to, place, value);
                }
            }
        });
        if self.block.is_some() {
            writer.own.barrier();
        }
    }

    /// Where a number of a column of the block is in shared memory.
    fn place(&self, column: impl Into<Term>, number: ValueId) -> Term {
        column.into().times(self.levels + 1).plus(number)
    }

    /// Says what is read on a level: what has come for it.
    pub fn remember(&self, writer: &mut Writer, number: ValueId) {
        for Read { field, at, here, .. } in &self.reads {
            let (stored, wish) = (writer.field(*field).stored, writer.read_name(*field, at));
            for (part, own) in here.iter().enumerate() {
                let place = self.block.as_ref().map_or(number.into(), |block| self.place(block.thread, number));
                let value = writer.own.load(*own, place);
                let value = writer.scalar().read(&mut writer.own, value, stored);
                let value = writer.own.name(&wish, value);
                writer.remember((*field, at.clone(), part as u32), value);
            }
        }
    }

    /// Keeps what is written on a level.
    pub fn keep(&self, writer: &mut Writer, written: &Written, number: ValueId) {
        let Some(block) = &self.block else { return };
        for Tile { field, array } in &self.writes {
            let stored = writer.field(*field).stored;
            if let Some(value) = written.number(*field) {
                let value = writer.scalar().stored(&mut writer.own, value, stored);
                writer.own.store(*array, self.place(block.thread, number), value);
            }
        }
    }

    /// Writes what was kept of the levels from `start` on.
    pub fn store(&self, writer: &mut Writer, start: ValueId, is_down: bool) {
        let Some(block) = self.block.as_ref().filter(|_| !self.writes.is_empty()) else { return };
        writer.own.barrier();
        let count = writer.own.int(self.levels as i64);
        writer.unrolled("n", (0, count), |writer, number| {
            let moved = block.moved(writer, number, self.levels);
            let k = writer.own.name("k", if is_down { start.minus(moved.number) } else { start.plus(moved.number) });
            let is_level = writer.own.term(is_level(writer, k, is_down));
            let is_column = block.is_column(writer, &moved);
            let both = writer.own.and(is_level, is_column);
            writer.when(both, |writer| {
                writer.at_level(k);
                let element = block.element(writer, &moved);
                for Tile { field, array } in &self.writes {
                    let value = writer.own.load(*array, self.place(moved.column, moved.number));
                    let to = writer.output(*field);
                    writer.store_all(to, *field, (element, 0), &[value]);
                }
            });
        });
    }
}

/// What a loop reads on the level at hand, or as many levels away on each.
pub(super) fn wanted(writer: &Writer, phase: &MeshStencil) -> Vec<(FieldId, Path)> {
    let footprint = Footprint::new(phase, 0..phase.stencil.stores.len());
    let mut wanted = Vec::new();
    for ((field, hops), shifts) in &footprint.shifts {
        let own = writer.field(*field);
        // Of a field on a map one number is read, not all.
        let is_plain = own.place.home.is_some_and(|home| home.map.is_none());
        if is_plain && own.place.levels != Levels::None && own.role != Role::Carried {
            let at = |&shift: &i32| Path::through(hops.clone()).then(&Path::levels_only(shift));
            wanted.extend(shifts.iter().map(|shift| (*field, at(shift))));
        }
    }
    wanted
}

/// Those of some numbers that are one of the element at hand.
pub(super) fn beside(writer: &Writer, mut wanted: Vec<(FieldId, Path)>) -> Vec<(FieldId, Path)> {
    wanted.retain(|(field, at)| at.hops().is_empty() && writer.width(*field) == 1);
    wanted
}

/// Lets numbers of the element at hand on a level come to the cache.
pub(super) fn prefetch(writer: &mut Writer, own: &[(FieldId, Path)], k: ValueId) {
    writer.at_level(k);
    for (field, at) in own {
        let element = writer.index(&[]);
        let place = writer.index_at(*field, (Some(element), at.levels()), 0);
        let array = writer.input(*field);
        writer.own.perform(Routine::Prefetch, vec![Operand::Place(array, place)]);
    }
}

/// Words of registers for these numbers on a level.
pub(super) fn words(writer: &Writer, wanted: &[(FieldId, Path)]) -> usize {
    wanted.iter().map(|(field, _)| writer.width(*field) * writer.stored(*field).bytes().div_ceil(4)).sum()
}

/// Whether there is a level.
pub(super) fn is_level(writer: &Writer, k: ValueId, is_down: bool) -> Term {
    match is_down {
        true => k.is(Relation::Ge, 0),
        false => k.less(levels(writer)),
    }
}

impl Block {
    fn new(writer: &mut Writer, column: Column, reads: &[Read]) -> Self {
        let thread = writer.own.name("place", Coordinate::Thread.along(Axis::X));
        let item = Coordinate::Block.along(Axis::X).times(writer.choices.threads.block);
        let item = writer.own.name("first_of_block", item);
        let mut own = Self { thread, item, column, ends: BTreeMap::new() };
        for Read { at, .. } in reads.iter().filter(|own| !own.at.hops().is_empty()) {
            if own.ends.contains_key(at.hops()) {
                continue;
            }
            let (wish, threads) = (format!("{}_of_block", writer.end_name(at)), writer.choices.threads.block as usize);
            let array = writer.own.shared(&wish, Type::I32, threads);
            let end = writer.index(at.hops());
            writer.own.store(array, thread, end);
            own.ends.insert(at.hops().to_vec(), array);
        }
        if !own.ends.is_empty() {
            writer.own.barrier();
        }
        own
    }

    /// What a thread moves in a turn: threads that follow each other have the levels of a column.
    fn moved(&self, writer: &mut Writer, turn: ValueId, levels: usize) -> Moved {
        let place = turn.times(writer.choices.threads.block).plus(self.thread);
        let place = writer.own.term(place);
        let column = writer.own.name("column", place.over(levels));
        let number = writer.own.name("level", place.by(Binary::Rem, levels));
        Moved { column, number }
    }

    /// Whether there is a column.
    fn is_column(&self, writer: &mut Writer, moved: &Moved) -> ValueId {
        let n = self.column.of_block.map_or(self.item, |[n, _]| n);
        writer.own.term(self.item.plus(moved.column).less(n))
    }

    /// The element of a column; of some, where there is none.
    fn element(&self, writer: &mut Writer, moved: &Moved) -> ValueId {
        let [n, first] = self.column.of_block.unwrap_or([self.item, self.item]);
        let item = writer.own.term(self.item.plus(moved.column));
        writer.own.term(first.plus(item.at_most(n.minus(1))))
    }

    /// Where hops lead from a column.
    fn end(&self, writer: &mut Writer, hops: &[Hop], moved: &Moved) -> ValueId {
        match self.ends.get(hops) {
            Some(&ends) => writer.own.load(ends, moved.column),
            None => self.element(writer, moved),
        }
    }
}
