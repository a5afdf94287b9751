//! Rows of tables: the places of a target, so many for each, as an array in registers.

use super::Degrees;
use super::writer::Writer;
use crate::kernel::{ArrayId, Type, ValueId};

/// Up to so many places a target, a row is walked without a loop.
const UNROLLED: usize = 8;

/// The row of an item as an array in registers.
pub fn row(writer: &mut Writer, table: ArrayId, width: usize, item: ValueId) -> ArrayId {
    let name = writer.own.kernel().arrays[table].name.to_string();
    let at_once = [4, 2, 1].into_iter().find(|count| width.is_multiple_of(*count)).unwrap_or(1);
    let mut parts = Vec::new();
    for first in (0..width).step_by(at_once) {
        let [length, first] = [width, first].map(|number| writer.own.int(number as i64));
        let row = writer.own.mul(length, item);
        let at = writer.own.add(row, first);
        let some = writer.own.load_run(table, at, at_once as u8);
        if at_once == 1 {
            parts.push(some);
            continue;
        }
        let some = writer.own.name(&format!("{name}_row"), some);
        parts.extend((0..at_once).map(|lane| writer.own.lane(some, lane as u8)));
    }
    writer.own.list(&format!("{name}_here"), Type::I32, parts)
}

/// Whether rows of so many places are walked without a loop.
pub fn is_row(degrees: Degrees) -> bool {
    degrees.max > 0 && degrees.max <= UNROLLED.max(2 * degrees.mean as usize)
}
