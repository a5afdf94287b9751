//! Rows of tables: the places of a target, so many for each, as an array in registers.

use super::Degrees;
use super::emit::Emitter;

/// Up to so many places a target, a row is walked without a loop.
const UNROLLED: usize = 8;

/// The row of an item as an array in registers.
pub fn row(emitter: &mut Emitter, table: &str, width: usize, item: &str) -> String {
    let name = emitter.names.fresh(&format!("{table}_here"));
    let at_once = [4, 2, 1].into_iter().find(|count| width.is_multiple_of(*count)).unwrap_or(1);
    let mut parts = Vec::new();
    for first in (0..width).step_by(at_once) {
        let at = if first == 0 { format!("{width} * {item}") } else { format!("{width} * {item} + {first}") };
        if at_once == 1 {
            parts.push(format!("{table}[{at}]"));
            continue;
        }
        let some = emitter.names.fresh(&format!("{table}_row"));
        emitter.line(format!("const int{at_once} {some} = *reinterpret_cast<const int{at_once}*>({table} + {at});"));
        parts.extend(["x", "y", "z", "w"].iter().take(at_once).map(|part| format!("{some}.{part}")));
    }
    emitter.line(format!("const int {name}[{width}] = {{{}}};", parts.join(", ")));
    name
}

/// Whether rows of so many places are walked without a loop.
pub fn is_row(degrees: Degrees) -> bool {
    degrees.max > 0 && degrees.max <= UNROLLED.max(2 * degrees.mean as usize)
}
