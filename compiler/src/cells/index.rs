//! Indices of elements: where a field's value lies that a cell reads or writes.

use super::Frame;
use crate::access::{Cell, Shape};
use crate::ir::{FieldId, Levels, Path, Relation};
use crate::kernel::ValueId;
use crate::kernel::build::{Builder, Computing};
use crate::plan::shape_of;

impl Frame<'_> {
    /// The index of a field's element at the end of a path, before fields that lie together are told apart. Where the level need not
    /// exist, a read that is not `sure` to be needed stays on the cell's own.
    pub(super) fn index(&self, own: &mut Builder, cell: Cell, field: FieldId, at: &Path, sure: bool) -> ValueId {
        let plan = self.plan;
        let column = at.clone().without_levels();
        let shape = shape_of(&plan.stencil, field);
        let index = match shape {
            Some(shape) if !column.is_here() => self.neighbourhood().index(own, &self.addresses, &column, shape, cell),
            Some(shape) => cell.index(shape),
            None => own.convert(cell.k, self.sizes.index),
        };
        let levels = plan.stencil.fields[field].place.levels;
        let shift = at.levels();
        if levels == Levels::None || shift == 0 {
            return index;
        }
        let mut distance = match shape {
            None => own.literal(i64::from(shift.unsigned_abs()), self.sizes.index),
            Some(Shape::Volume | Shape::Plane) => plan.storage.levels_apart(own, &self.sizes, shift.unsigned_abs()),
        };
        if !sure {
            let exists = self.level_exists(own, cell, shift, levels);
            distance = own.term(exists.picks(distance, 0));
        }
        if shift < 0 { own.sub(index, distance) } else { own.add(index, distance) }
    }

    /// Whether the level `shift` away from a cell exists.
    pub(super) fn level_exists(&self, own: &mut Builder, cell: Cell, shift: i32, levels: Levels) -> ValueId {
        let apart = shift.unsigned_abs();
        if shift < 0 {
            return own.term(cell.k.is(Relation::Ge, apart));
        }
        let relation = if levels == Levels::Interfaces { Relation::Le } else { Relation::Lt };
        own.term(cell.k.is(relation, self.sizes.level_count.minus(apart)))
    }
}
