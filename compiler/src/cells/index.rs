//! Indices of elements: where a field's value lies that a cell reads or writes.

use super::Frame;
use crate::access::{Cell, Shape};
use crate::analysis::levels::goes_on;
use crate::ir::{FieldId, Levels, Path, Relation};
use crate::kernel::ValueId;
use crate::kernel::build::{Builder, Computing};
use crate::plan::shape_of;

impl Frame<'_> {
    /// The index of a field's element at the end of a path, before fields that lie together are told apart. Where the level need not
    /// exist, a read that is not `sure` to be needed stays on the cell's own, or on the last there is.
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
        // On the last interface there is no level of a field that has none there, not even the cell's own.
        let may_lack = !sure && levels == Levels::Full && goes_on(&plan.stencil);
        if levels == Levels::None || shift == 0 && !may_lack {
            return index;
        }
        let apart = |own: &mut Builder, levels: u32| match shape {
            None => own.literal(i64::from(levels), self.sizes.index),
            Some(Shape::Volume | Shape::Plane) => plan.storage.levels_apart(own, &self.sizes, levels),
        };
        let mut nearest = index;
        if may_lack {
            let (is_there, one) = (self.level_exists(own, cell, 0, levels), apart(own, 1));
            let above = own.term(is_there.picks(0, one));
            nearest = own.sub(index, above);
        }
        if shift == 0 {
            return nearest;
        }
        let mut distance = apart(own, shift.unsigned_abs());
        let moved =
            |own: &mut Builder, distance| if shift < 0 { own.sub(index, distance) } else { own.add(index, distance) };
        if may_lack {
            let (exists, moved) = (self.level_exists(own, cell, shift, levels), moved(own, distance));
            return own.term(exists.picks(moved, nearest));
        }
        if !sure {
            let exists = self.level_exists(own, cell, shift, levels);
            distance = own.term(exists.picks(distance, 0));
        }
        moved(own, distance)
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
