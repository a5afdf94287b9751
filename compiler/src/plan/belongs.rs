//! Options that make a difference for some kernels alone: which, and why they make none for others.

use super::Choices;
use crate::access::{Access, LevelsPerThread};
use crate::diagnostic::Refusal;
use crate::storage::neighbors::Neighbors;
use crate::storage::{Storage, order};
use crate::{access, storage};

/// An option that belongs to some choices of strategy, storage and order.
pub struct OfSome {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// Whether plans refuse it, and where it says something else than what is usual. Numbers that make no difference may be left
    /// over from another kernel.
    pub(super) is_planned: fn(&Choices) -> bool,
    /// Why it makes no difference, and for which it does.
    pub(super) refusal: fn(&Choices, &dyn Access, &dyn Storage) -> Option<Refusal>,
}

/// Who has tables.
const TABLES: &str = "--storage compressed and --storage uncompressed have them";

/// All of them.
pub const SOME: [OfSome; 7] = [
    OfSome {
        name: "slice",
        is_planned: |_| false,
        refusal: |choices, access, _| {
            let levels = match access.levels(choices.slice) {
                LevelsPerThread::Slice(_) => return None,
                LevelsPerThread::One => "one level",
                LevelsPerThread::All => "all levels",
            };
            let why = format!("`{}` access gives a thread {levels}: there are no slices", access.name());
            Some(Refusal::new(why).help("--access zloop-sliced has them"))
        },
    },
    OfSome {
        name: "tile",
        is_planned: |_| false,
        refusal: |_, access, _| {
            let why = || format!("`{}` access gives a thread one column: there are no tiles", access.name());
            (!access.tiles()).then(|| Refusal::new(why()).help("--access tile has them"))
        },
    },
    OfSome {
        name: "neighbors",
        is_planned: |choices| choices.neighbors != Neighbors::Direct,
        refusal: |_, _, storage| {
            let why = || format!("{} storage has no tables of neighbours to follow step by step", storage.name());
            (!storage.has_tables()).then(|| Refusal::new(why()).help(TABLES))
        },
    },
    OfSome {
        name: "layout",
        is_planned: |choices| choices.layout != Choices::default().layout,
        refusal: |_, _, storage| no_layouts(storage),
    },
    OfSome {
        name: "short_runs",
        is_planned: |choices| choices.short_last && storage::find(&choices.storage).is_ok_and(|own| !own.has_tables()),
        refusal: |choices, _, storage| no_layouts(storage).or_else(|| no_runs(choices)),
    },
    OfSome {
        name: "run_width",
        is_planned: |_| false,
        refusal: |choices, _, storage| no_layouts(storage).or_else(|| no_runs(choices)),
    },
    OfSome {
        name: "table",
        is_planned: |choices| choices.constant,
        refusal: |_, _, storage| {
            let why = || format!("{} storage has no table for constant memory", storage.name());
            let help = "the table of --storage compressed can be small enough";
            storage.constant().is_none().then(|| Refusal::new(why()).help(help))
        },
    },
];

impl OfSome {
    /// Why the option makes no difference for a kernel of these choices; nothing if it makes one, or there is no such kernel.
    pub fn refusal(&self, choices: &Choices) -> Option<Refusal> {
        let (access, storage) = (access::find(&choices.access).ok()?, storage::find(&choices.storage).ok()?);
        (self.refusal)(choices, access, storage)
    }
}

fn no_layouts(storage: &dyn Storage) -> Option<Refusal> {
    let why = || format!("{} storage keeps cells in rows: it has no other layouts", storage.name());
    (!storage.has_tables())
        .then(|| Refusal::new(why()).help("--storage compressed and --storage uncompressed have any"))
}

fn no_runs(choices: &Choices) -> Option<Refusal> {
    let has_runs = order::find(&choices.layout).is_ok_and(|order| order.has_runs());
    let why = || format!("the layout {} has no runs along i that stay together", choices.layout);
    (!has_runs).then(|| Refusal::new(why()).help("--layout z-curve and --layout hilbert have them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::variants;

    #[test]
    fn every_option_belongs_to_some_kernels_and_not_to_others() {
        for own in SOME {
            let (not, are): (Vec<Choices>, Vec<Choices>) =
                variants().partition(|choices| own.refusal(choices).is_some());
            assert!(!not.is_empty() && !are.is_empty(), "{}", own.name);
            let refusal = own.refusal(&not[0]).unwrap();
            assert!(refusal.help.is_some_and(|help| help.contains("--")), "{}", refusal.message);
        }
    }
}
