//! Options that make a difference for some kernels alone: which, and why they make none for others.

use super::Choices;
use crate::access::knobs::knobs;
use crate::access::{ACCESSES, Access};
use crate::diagnostic::Refusal;
use crate::storage::neighbors::Neighbors;
use crate::storage::{Storage, order};
use crate::{access, storage};

/// An option that belongs to some choices of strategy, storage and order.
pub(super) struct OfSome {
    /// Its name, without the dashes.
    name: &'static str,
    /// Whether plans refuse it, and where it says something else than what is usual. Numbers that make no difference may be left
    /// over from another kernel.
    pub(super) is_planned: fn(&Choices) -> bool,
    /// Why it makes no difference, and for which it does.
    pub(super) refusal: fn(&Choices, &dyn Access, &dyn Storage) -> Option<Refusal>,
}

/// Who has tables.
const TABLES: &str = "--storage compressed and --storage uncompressed have them";

/// All of them.
pub(super) const SOME: [OfSome; 5] = [
    OfSome {
        name: "neighbors",
        is_planned: |choices| choices.neighbors != Neighbors::Direct,
        refusal: |_, access, storage| {
            if access.has_patches() {
                let why =
                    format!("`{}` access has a row of columns for each patch, and follows no steps", access.name());
                return Some(Refusal::new(why).help("another access can: --access idxvar"));
            }
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

/// Names of the options that belong to some kernels alone: those above, and the knobs of strategies.
pub fn options() -> impl Iterator<Item = &'static str> {
    SOME.iter().map(|own| own.name).chain(knobs().into_iter().map(|knob| knob.name))
}

/// Why an option makes no difference for a kernel of these choices; nothing if it makes one, or there is no such kernel.
pub fn idle(option: &str, choices: &Choices) -> Option<Refusal> {
    let (access, storage) = (access::find(&choices.access).ok()?, storage::find(&choices.storage).ok()?);
    if let Some(own) = SOME.iter().find(|own| own.name == option) {
        return (own.refusal)(choices, access, storage);
    }
    let has = |access: &dyn Access| access.knobs().iter().any(|knob| knob.name == option);
    let others = ACCESSES.iter().filter(|&&other| has(other)).map(|other| format!("--access {}", other.name()));
    let why = || format!("`{}` access makes no use of it", access.name());
    (!has(access)).then(|| Refusal::new(why()).help(format!("for {}", others.collect::<Vec<_>>().join(" and "))))
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
        for option in options() {
            let (not, are): (Vec<Choices>, Vec<Choices>) =
                variants().partition(|choices| idle(option, choices).is_some());
            assert!(!not.is_empty() && !are.is_empty(), "{option}");
            let refusal = idle(option, &not[0]).unwrap();
            assert!(refusal.help.is_some_and(|help| help.contains("--")), "{}", refusal.message);
        }
    }
}
