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

    /// The index of a field's element at the end of a path, on a level that is data, and that level: `by` further, or the nearest that there is.
    pub(super) fn index_moved(
        &self,
        own: &mut Builder,
        cell: Cell,
        field: FieldId,
        at: &Path,
        by: ValueId,
    ) -> [ValueId; 2] {
        let plan = self.plan;
        let column = at.clone().without_levels();
        let last = match plan.stencil.fields[field].place.levels {
            Levels::Interfaces => self.sizes.level_count,
            Levels::Full | Levels::None => own.term(self.sizes.level_count.minus(1)),
        };
        let level = own.level_away(cell.k, at.levels(), by, last);
        let Some(shape) = shape_of(&plan.stencil, field) else {
            return [own.convert(level, self.sizes.index), level];
        };
        // From the cell's own level, since that is where neighbours are looked up.
        let here = match column.is_here() {
            true => cell.index(shape),
            false => self.neighbourhood().index(own, &self.addresses, &column, shape, cell),
        };
        let levels = own.term(level.minus(cell.k).to(self.sizes.index));
        let apart = plan.storage.levels_apart(own, &self.sizes, 1);
        [own.term(here.plus(levels.times(apart))), level]
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
