//! A thread an element, which goes through its levels one after the other: what a stencil with sweeps computes.
//!
//! What is carried from level to level is kept as on grids ([`Carried`]). What a level reads does not depend on the levels before it, so it
//! is loaded for several of them at once, and a thread waits for memory once for all.

use super::own::Written;
use super::writer::Writer;
use super::{Kernel, MeshChoices, MeshTask};
use crate::analysis::footprint::Footprint;
use crate::cells::carried::Carried;
use crate::ir::{Direction, FieldId, Levels, MeshStencil, Path, Phase, Relation, Role, Store};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{ArrayId, Step, Unroll, ValueId};
use crate::plan::phases::loops;

/// Numbers that wait in a thread for their levels, at most: with more of them registers spill.
const WAITING: usize = 64;

/// Levels that are loaded at once, at most.
const AHEAD: usize = 8;

/// What a thread knows of the sweep that it is in.
pub struct Sweeping<'a> {
    carried: Carried,
    direction: Option<Direction>,
    /// What the loop at hand stores.
    stores: &'a [Store],
}

/// Numbers of a field that are loaded for several levels: where, and an array for each part.
struct Ahead {
    field: FieldId,
    at: Path,
    parts: Vec<ArrayId>,
}

/// The kernel of a stencil with sweeps.
pub fn kernel(task: &MeshTask, choices: &MeshChoices) -> Kernel {
    let own = task.stencil;
    let (loops, kept) = loops(&own.stencil);
    let loops: Vec<(Option<Direction>, MeshStencil)> =
        loops.into_iter().map(|Phase { direction, stencil }| (direction, own.of_stores(stencil))).collect();
    let mut writer = Writer::new(task, choices, &own.stencil.name);
    let (element, items) = writer.thread_of_own();
    writer.set_index(&[], element);
    known_of_column(&mut writer);
    let block = (task.levels, [choices.block, 1, 1]);
    let carried = Carried::declare(&mut writer.own, (&own.stencil, &kept), block, task.precision);
    writer.sweeping = Some(Sweeping { carried, direction: None, stores: &[] });
    for (direction, phase) in &loops {
        if let Some(own) = &mut writer.sweeping {
            (own.direction, own.stores) = (*direction, &phase.stencil.stores);
        }
        through(&mut writer, phase, *direction, element);
    }
    writer.finish("a thread an element, which goes through its levels", items, Vec::new())
}

/// Finds what does not depend on the level: where ways lead, and numbers without levels.
fn known_of_column(writer: &mut Writer) {
    let stencil = writer.task.stencil;
    let footprint = Footprint::new(stencil, 0..stencil.stencil.stores.len());
    for hops in footprint.ways().filter(|hops| !hops.is_empty()) {
        writer.index(hops);
    }
    for ((field, hops), parts) in &footprint.reads {
        if writer.field(*field).place.levels == Levels::None {
            for &part in parts {
                writer.read(*field, &Path::through(hops.clone()), part);
            }
        }
    }
}

/// A loop through all levels.
fn through<'a>(writer: &mut Writer<'a>, phase: &'a MeshStencil, direction: Option<Direction>, element: ValueId) {
    let is_down = direction == Some(Direction::Down);
    let levels = writer.task.levels;
    let (from, to) = if is_down { (levels as i64 - 1, 0) } else { (0, levels as i64) };
    let (ahead, at_once) = loaded_ahead(writer, phase);
    let step = if is_down { Step::Down } else { Step::By };
    if ahead.is_empty() {
        let one = writer.own.int(1);
        return writer.each("k", (from, to, step(one)), Unroll::Times(4), |writer, k| {
            writer.at_level(k);
            level(writer, phase, element);
        });
    }
    let count = writer.own.int(at_once as i64);
    writer.each("k_start", (from, to, step(count)), Unroll::Times(1), |writer, start| {
        let levels = |writer: &mut Writer<'a>, write: &mut dyn FnMut(&mut Writer<'a>, ValueId)| {
            writer.unrolled("n", (0, count), |writer, number| {
                let k = writer.own.name("k", if is_down { start.minus(number) } else { start.plus(number) });
                let relation = if is_down { Relation::Lt } else { Relation::Ge };
                writer.own.break_if(k.is(relation, to));
                writer.at_level(k);
                write(writer, number);
            });
        };
        levels(writer, &mut |writer, number| {
            for Ahead { field, at, parts } in &ahead {
                let element = writer.index(at.hops());
                let (array, wish) = (writer.input(*field), writer.read_name(*field, at));
                let values = writer.load(array, *field, (Some(element), at.levels()), &wish, true);
                for (own, value) in parts.iter().zip(values) {
                    writer.own.store(*own, number, value);
                }
            }
        });
        levels(writer, &mut |writer, number| {
            for Ahead { field, at, parts } in &ahead {
                let (stored, wish) = (writer.field(*field).stored, writer.read_name(*field, at));
                for (part, own) in parts.iter().enumerate() {
                    let value = writer.own.load(*own, number);
                    let value = writer.scalar().read(&mut writer.own, value, stored);
                    let value = writer.own.name(&wish, value);
                    writer.remember((*field, at.clone(), part as u32), value);
                }
            }
            level(writer, phase, element);
        });
    });
}

/// What is read of elements on a level, and how many levels of it are loaded at once.
fn loaded_ahead(writer: &mut Writer, phase: &MeshStencil) -> (Vec<Ahead>, usize) {
    let footprint = Footprint::new(phase, 0..phase.stencil.stores.len());
    let mut reads: Vec<(FieldId, Path)> = Vec::new();
    for ((field, hops), shifts) in &footprint.shifts {
        let own = writer.field(*field);
        // Of a field on a map one number is read, not all.
        let is_plain = own.place.home.is_some_and(|home| home.map.is_none());
        if is_plain && own.place.levels != Levels::None && own.role != Role::Carried {
            reads.extend(
                shifts.iter().map(|&shift| (*field, Path::through(hops.clone()).then(&Path::levels_only(shift)))),
            );
        }
    }
    let numbers: usize = reads.iter().map(|(field, _)| writer.width(*field)).sum();
    let fitting = (WAITING / numbers.max(1)).clamp(1, AHEAD);
    let at_once = if fitting.is_power_of_two() { fitting } else { fitting.next_power_of_two() / 2 };
    if at_once == 1 {
        return (Vec::new(), 1);
    }
    let ahead = reads.into_iter().map(|(field, at)| {
        let (kind, wish) = (writer.stored(field), format!("{}_ahead", writer.read_name(field, &at)));
        let parts = (0..writer.width(field)).map(|_| writer.own.local(&wish, kind, at_once)).collect();
        Ahead { field, at, parts }
    });
    (ahead.collect(), at_once)
}

/// What is computed on a level.
fn level(writer: &mut Writer, phase: &MeshStencil, element: ValueId) {
    let is_carried = |store: &&Store| phase.stencil.fields[store.field].role == Role::Carried;
    Written::of(writer, phase).store(writer, element, &|_| true);
    let mut carried = Vec::new();
    for store in phase.stencil.stores.iter().filter(is_carried) {
        carried.push((store.field, writer.body(&store.body, &Path::default())));
    }
    if let (Some(own), Some(k)) = (&writer.sweeping, writer.level_at_hand()) {
        own.carried.keep(&mut writer.own, &carried, k);
    }
}

impl Writer<'_> {
    /// A value of a sweep, so many levels away.
    pub fn carried(&mut self, field: FieldId, shift: i32) -> ValueId {
        let nothing = |writer: &mut Self| writer.own.int(0);
        let Some(own) = &self.sweeping else { return nothing(self) };
        let store = own.stores.iter().find(|store| store.field == field);
        if let (Some(store), Some(direction)) = (store, own.direction) {
            if shift == 0 {
                return self.body(&store.body, &Path::default());
            }
            if let Some(value) = own.carried.before(&mut self.own, field, direction.before(shift)) {
                return value;
            }
        }
        // What lies beyond the levels is looked at by nobody.
        let Some(level) = self.level(shift, Levels::Full) else { return nothing(self) };
        let Some(own) = &self.sweeping else { return nothing(self) };
        // Whatever is read here is kept.
        own.carried.at(&mut self.own, field, level).unwrap_or(level)
    }
}
