//! Indices of elements: where a field's value lies that a cell reads or writes.

use super::Named;
use crate::access::{Lookups, Shape};
use crate::ir::{FieldId, Levels, Path};
use crate::names::Names;
use crate::plan::schedule::Context;
use crate::plan::{Plan, shape_of};

/// The index of a field's element at the end of a path, before fields that lie together are told apart.
pub fn index(plan: &Plan, named: &mut Named, lookups: &Lookups, field: FieldId, at: &Path, context: Context) -> String {
    let column = at.clone().without_levels();
    let shape = shape_of(&plan.stencil, field);
    let own = match shape {
        Some(shape) if !column.is_here() => lookups.index[&(column, shape)].clone(),
        _ => own_index(plan, &mut named.names, field),
    };
    let levels = plan.stencil.fields[field].place.levels;
    let shift = at.levels();
    if levels == Levels::None || shift == 0 {
        return own;
    }
    let (sign, n) = (if shift < 0 { "-" } else { "+" }, shift.unsigned_abs());
    let plane = named.names.internal("plane");
    let distance = match (shape, n) {
        (None, _) => n.to_string(),
        (Some(_), 1) => plane,
        (Some(_), _) => format!("{n} * {plane}"),
    };
    if context.sure {
        return format!("{own} {sign} {distance}");
    }
    let exists = level_exists(named, shift, levels);
    format!("{own} {sign} ({exists} ? {distance} : 0)")
}

/// Whether the level `shift` away exists.
pub fn level_exists(named: &mut Named, shift: i32, levels: Levels) -> String {
    let [k, nk] = named.names.internals(["k", "nk"]);
    match (shift, levels) {
        (..0, _) => format!("{k} >= {}", shift.unsigned_abs()),
        (_, Levels::Interfaces) => format!("{k} <= {nk} - {shift}"),
        (_, Levels::Full | Levels::None) => format!("{k} < {nk} - {shift}"),
    }
}

/// The index of a field's value at the thread's own column and level.
fn own_index(plan: &Plan, names: &mut Names, field: FieldId) -> String {
    match shape_of(&plan.stencil, field) {
        Some(Shape::Volume) => names.internal("c"),
        Some(Shape::Plane) => names.internal("column"),
        None => names.internal("k"),
    }
}
