//! What would wait if blocks walked along k (`--access swic` and `queue`), and what another order of sums would change.

use crate::terminal::table;
use serde::Serialize;
use stencilc_compiler::ir::{Precision, Stencil, by_level};
use stencilc_compiler::plan::prepare;

use stencilc_compiler::step::planes::{Queue, Waits, waits};

/// Of a stencil that reads other levels what waits.
#[derive(Serialize)]
pub struct WalkFacts {
    /// With sums that are not complete in registers.
    pub swic: Waits,
    /// With values of fields there.
    pub queue: Waits,
    /// With sums that are not complete, if the stencil said `sums by level`, and less waits then.
    pub by_level: Option<Waits>,
}

impl WalkFacts {
    /// Of a stencil as it is written, and as it is prepared; nothing if no level is read but the cell's, or it cannot be walked through.
    pub fn new(written: &Stencil, prepared: &Stencil, precision: Precision, contract: bool) -> Option<Self> {
        let swic = waits(prepared, precision, Queue::Output).ok()?;
        let queue = waits(prepared, precision, Queue::Input).ok()?;
        if !stencilc_compiler::analysis::levels::leaves_levels(prepared) {
            return None;
        }
        let ordered = by_level(written).filter(|(_, has_sums)| *has_sums);
        let by_level = ordered
            .and_then(|(ordered, _)| waits(&prepare(&ordered, precision, contract), precision, Queue::Output).ok())
            .filter(|own| own.planes < swic.planes || own.planes == swic.planes && own.values < swic.values);
        Some(Self { swic, queue, by_level })
    }
}

/// What waits, for people.
pub fn write(walks: Option<&WalkFacts>) -> String {
    let Some(WalkFacts { swic, queue, by_level }) = walks else { return String::new() };
    let row = |name: &str, own: &Waits| {
        let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let shared = format!("{} of a field stay in shared memory", counted(own.planes, "plane"));
        vec![format!("  {name}"), format!("{} of a cell wait in registers", counted(own.values, "value")), shared]
    };
    let mut text = "walks along k, from a plane to the next\n".to_owned();
    text.push_str(&table(&[row("swic", swic), row("queue", queue)], &[]));
    if let Some(own) = by_level {
        text.push_str("  with `sums by level`, which changes last bits, the same everywhere\n");
        text.push_str(&table(&[row("swic", own)], &[]));
    }
    text
}
