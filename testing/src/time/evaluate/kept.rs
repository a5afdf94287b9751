//! Values of sweeps that are kept on every level: those that are read on other levels, or after their sweep.

use super::swept_value;
use crate::time::tree::{Stencil, Swept, Term};
use std::collections::BTreeSet;

/// The lets that are kept. One that is made of no value of a sweep is an ordinary let where it is read below its definition;
/// one that no output needs reads nothing.
pub fn kept(stencil: &Stencil) -> BTreeSet<Swept> {
    let (mut kept, needed) = (BTreeSet::new(), needed(stencil));
    // What depends on a sweep, of what is defined above.
    let (mut defined, mut tied) = (BTreeSet::new(), BTreeSet::new());
    for sweep in &stencil.sweeps {
        let mut inner = BTreeSet::new();
        for (own, term) in &sweep.values {
            let (mut is_tied, mut reads) = (matches!(own, Swept::Field(_)), Vec::new());
            swept_reads(stencil, term, &mut reads);
            for (name, by) in reads {
                let is_ahead = !defined.contains(&name);
                if needed.contains(own) && (is_ahead || tied.contains(&name) && (by != 0 || !inner.contains(&name))) {
                    kept.insert(name);
                }
                is_tied |= is_ahead || tied.contains(&name);
            }
            tied.extend(is_tied.then_some(*own));
            defined.insert(*own);
            inner.insert(*own);
        }
    }
    let mut reads = Vec::new();
    stencil.outputs.iter().for_each(|(_, term)| swept_reads(stencil, term, &mut reads));
    kept.extend(reads.into_iter().map(|(name, _)| name).filter(|name| tied.contains(name)));
    kept
}

/// The values of sweeps that outputs need, which are outputs or lead to one.
fn needed(stencil: &Stencil) -> BTreeSet<Swept> {
    let mut reads = Vec::new();
    stencil.outputs.iter().for_each(|(_, term)| swept_reads(stencil, term, &mut reads));
    let written = stencil.sweeps.iter().flat_map(|sweep| &sweep.values).map(|(own, _)| *own);
    let mut open: Vec<Swept> = written.filter(|own| matches!(own, Swept::Field(_))).collect();
    open.extend(reads.into_iter().map(|(name, _)| name));
    let mut needed = BTreeSet::new();
    while let Some(own) = open.pop() {
        if needed.insert(own) {
            let mut reads = Vec::new();
            swept_reads(stencil, swept_value(stencil, own), &mut reads);
            open.extend(reads.into_iter().map(|(name, _)| name));
        }
    }
    needed
}

/// The values of sweeps that a term reads, and how many levels away.
fn swept_reads(stencil: &Stencil, term: &Term, reads: &mut Vec<(Swept, i64)>) {
    match term {
        Term::Swept(own, by) => reads.push((*own, *by)),
        Term::Use(own, _) => swept_reads(stencil, &stencil.lets[*own], reads),
        other => other.children().into_iter().for_each(|child| swept_reads(stencil, child, reads)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::tree::Sweep;

    #[test]
    fn what_is_read_on_other_levels_or_after_its_sweep_is_kept() {
        let own = Swept::Let;
        let swept = |number, by| Term::Swept(own(number), by);
        let values = vec![
            // Made of itself, on the level before.
            (own(0), swept(0, 1)),
            // Read after the sweep.
            (own(1), swept(0, 0)),
            // Read on its own level alone.
            (own(2), swept(0, 0)),
            (own(3), swept(2, 0)),
            // Made of no value of a sweep.
            (own(4), Term::Number(0.5)),
            // Read above its definition, whatever it is made of.
            (own(5), swept(6, 1)),
            (own(6), Term::Number(0.5)),
        ];
        let sweeps = vec![
            Sweep { is_up: false, values },
            Sweep { is_up: true, values: vec![(own(7), swept(3, -1)), (own(8), swept(4, -1)), (own(9), swept(2, 0))] },
        ];
        // Nothing comes of the last, which would have the third kept.
        let outputs = vec![(0, swept(1, 0)), (1, swept(7, 0)), (2, swept(8, 0)), (3, swept(5, 0))];
        let stencil = Stencil { fields: Vec::new(), params: Vec::new(), lets: Vec::new(), sweeps, outputs };
        assert_eq!(kept(&stencil), [0, 1, 3, 5, 6, 7].map(own).into());
    }
}
