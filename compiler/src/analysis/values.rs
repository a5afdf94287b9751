//! How many values a cell needs: each definition wherever it is looked at.
//!
//! A definition that reads the one before it at two places, and is itself read at two, needs it at four, and so on: a short
//! text can ask for more than any machine computes. So this is found out before anything else follows the definitions.

use crate::diagnostic::Diagnostic;
use crate::ir::{Handle, Path, Precision, Stencil, fold};
use crate::source::Span;
use std::collections::HashSet;

/// The most values of one cell.
pub const VALUES: usize = 30_000;

/// The most operations of one cell, those of a value at every offset counted.
pub const OPERATIONS: usize = 2_000_000;

/// An error at `span` if a cell of `stencil`, called `what`, needs too many values, or operations to compute them.
pub fn values(stencil: &Stencil, what: &str, span: Span) -> Option<Diagnostic> {
    let stencil = fold(stencil, Precision::F64);
    let mut places: Vec<HashSet<Path>> = vec![HashSet::new(); stencil.defs.len()];
    let (mut values, mut operations) = (0, 0);
    let stores = stencil.outputs().map(|body| (None, body));
    // Users come after what they use, so backwards every set is complete when its turn comes.
    let defs = stencil.defs.iter().rev().map(|(id, def)| (Some(id), &def.body));
    for (id, body) in stores.chain(defs) {
        let at = id.map_or(HashSet::from([Path::default()]), |id| std::mem::take(&mut places[id.index()]));
        operations += at.len().saturating_mul(body.len());
        for (def, path) in body.uses() {
            for from in &at {
                if values > VALUES || operations > OPERATIONS {
                    break;
                }
                values += usize::from(places[def.index()].insert(joined(from, path)));
            }
        }
    }
    let limit = match () {
        () if values > VALUES => format!("{VALUES} intermediate values"),
        () if operations > OPERATIONS => format!("{OPERATIONS} operations, each value at each offset counted"),
        () => return None,
    };
    Some(Diagnostic::error(span, format!("a cell of {what} needs more than {limit}")).label("too much at once"))
}

/// Where a path leads that goes on from another. On a grid in rows, all that add up to the same offset are one; a mesh has no rows.
fn joined(from: &Path, path: &Path) -> Path {
    let joined = from.then(path);
    if joined.hops().is_empty() { Path::from_offset(joined.offset()) } else { joined }
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    fn told(text: &str) -> String {
        let told = crate::check(&Source::new("s", text)).diagnostics;
        told.into_iter().map(|found| found.message).collect::<Vec<_>>().join("\n")
    }

    /// Each value needs the one before it at twice as many places: without a limit that is seen early, this would not end.
    #[test]
    fn values_that_double_are_refused_before_they_are_followed() {
        for axis in ["i", "k"] {
            let lets = (0..29).map(|n| format!("let x{} = x{n} + x{n}[{axis}+{}]\n", n + 1, 1 << n.min(19)));
            let text = format!("stencil s {{ in a; out r\nlet x0 = 2*a\n{}r = x29 }}", lets.collect::<String>());
            assert!(told(&text).contains("more than 30000 intermediate values"), "{}", told(&text));
        }
        let lets = (0..29).map(|n| format!("let x{} = x{n}[next.0] + x{n}[next.1]\n", n + 1));
        let text = format!(
            "mesh m {{ set cell; map cell.next -> cell[2] }}
            stencil s over m.cell {{ in a; out r\nlet x0 = 2*a\n{}r = x29 }}",
            lets.collect::<String>()
        );
        assert!(told(&text).contains("more than 30000 intermediate values"), "{}", told(&text));
    }

    #[test]
    fn operations_are_counted_at_every_offset() {
        let text = "stencil s { in a; out r
            let x = sum(n in 1..=9000) { a[i+n] }
            r = sum(n in 1..=9000) { x[j+n] }
        }";
        assert!(told(text).contains("more than 2000000 operations"));
    }
}
