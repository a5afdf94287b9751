//! The places of a target: a row, so many for each, as an array in registers; or a list, of which a table says where it begins and ends.

use super::Degrees;
use super::group::Group;
use super::writer::Writer;
use crate::ir::Relation;
use crate::kernel::build::{Computing, Making, Term};
use crate::kernel::{ArrayId, MeshData, MeshTable, Step, Type, Unroll, ValueId};

/// Up to so many places a target, a row is walked without a loop.
const UNROLLED: usize = 8;

/// The same of rows of which half and more is there. With 39 turns of a long body NVRTC took minutes.
const MOST_UNROLLED: usize = 16;

/// The row of an item as an array in registers.
pub fn row(writer: &mut Writer, table: ArrayId, width: usize, item: ValueId) -> ArrayId {
    let name = writer.own.kernel().arrays[table].name.to_string();
    let at_once = [4, 2, 1].into_iter().find(|count| width.is_multiple_of(*count)).unwrap_or(1);
    let mut parts = Vec::new();
    for first in (0..width).step_by(at_once) {
        let mut some = writer.own.load_run(table, width.times(item).plus(first), at_once as u8);
        if at_once > 1 {
            some = writer.own.name(&format!("{name}_row"), some);
        }
        parts.extend(writer.lanes_of(some, at_once));
    }
    writer.own.list(&format!("{name}_here"), Type::I32, parts)
}

/// Whether rows of so many places are walked without a loop.
pub fn is_row(degrees: Degrees) -> bool {
    degrees.max > 0 && degrees.max <= UNROLLED.max(MOST_UNROLLED.min(2 * degrees.mean as usize))
}

/// The places of an item.
pub struct Places {
    walked: Walked,
    /// How numbers that stand at a place compare to which one, if it is no hole.
    taken: (Relation, i64),
}

/// What is walked over.
enum Walked {
    /// So many places, of which the last may be holes.
    Row(usize),
    /// Places of a table that all items have in common: where an item's begin is there, by its number.
    List { offsets: ArrayId, item: ValueId },
}

impl Places {
    /// Those of an item of a group. Where rows have holes, the numbers that stand there do not compare as `taken` says.
    pub fn new(writer: &mut Writer, group: &Group, row: Option<usize>, item: ValueId, taken: (Relation, i64)) -> Self {
        let walked = match row {
            Some(width) => Walked::Row(width),
            None => {
                let offsets = writer.table("offsets", MeshData::Table(group.number, MeshTable::Offsets));
                Walked::List { offsets, item }
            }
        };
        Self { walked, taken }
    }

    /// Goes through the places where something stands: what that is `here` finds out, and `walk` is given the place and that.
    pub fn each<'a>(
        &self,
        writer: &mut Writer<'a>,
        here: impl FnOnce(&mut Writer<'a>, ValueId) -> ValueId,
        walk: impl FnOnce(&mut Writer<'a>, ValueId, ValueId),
    ) {
        match &self.walked {
            Walked::Row(width) => writer.unrolled_if_short("place", *width, |writer, place| {
                let here = here(writer, place);
                writer.when(self.is_taken(here), |writer| walk(writer, place, here));
            }),
            Walked::List { offsets, item } => {
                let one = Step::By(writer.own.int(1));
                let bounds = (offsets.at(*item), offsets.at(item.plus(1)), one);
                writer.each("place", bounds, Unroll::Free, |writer, place| {
                    let here = here(writer, place);
                    walk(writer, place, here);
                });
            }
        }
    }

    fn is_taken(&self, here: impl Into<Term>) -> Term {
        let (relation, number) = self.taken;
        here.into().is(relation, number)
    }
}

/// The target that stands at a number among those to which any element leads.
pub fn led_to(writer: &mut Writer, group: &Group, item: ValueId) -> ValueId {
    let name = &writer.task.stencil.mesh.sets[group.target].name;
    let table = MeshData::Table(group.number, MeshTable::Targets);
    let targets = writer.table(&format!("{name}_led_to"), table);
    writer.own.name(name, targets.at(item))
}
