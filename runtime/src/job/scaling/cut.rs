//! How a program is cut into parts: how large they are, what they bring from each other, and what one of them is by itself.

use super::{Brought, Scaling};
use crate::device::Platform;
use crate::error::Result;
use crate::job::{Checked, Ready};
use crate::mesh::program::parts as over;
use crate::program::parts::{self, Cut};
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::mesh::MeshChoices;

/// A program in parts.
pub(super) struct Cutting {
    /// The fewest and the most rows of a part, or elements that one owns.
    pub parts: [usize; 2],
    /// What they bring.
    pub brought: Brought,
    over_mesh: Option<(over::Cut, Option<MeshChoices>)>,
}

impl Scaling<'_> {
    /// A program in so many parts.
    ///
    /// # Errors
    /// It is not cut like that.
    pub(super) fn cut(&self, ready: &Ready, devices: usize) -> Result<Cutting> {
        let (checked, is_interpreted) =
            (ready.checked.with_times(self.asked.times), matches!(self.platform, Platform::Cpu));
        match checked {
            Checked::Grid(problem) => {
                let plan = ready.how.plan.as_ref().filter(|_| !is_interpreted);
                let cut = match plan {
                    Some(plan) => Cut::fused(&problem, plan, devices)?.0,
                    None => Cut::new(problem, devices)?,
                };
                let turn = parts::traffic(&cut)?;
                let steps = turn.steps.max(1) as f64;
                let brought = Brought {
                    exchanges: turn.exchanges as f64 / steps,
                    bytes_to_a_part: turn.to_a_part as f64 / steps,
                    bytes_over_a_link: Some(turn.over_a_link as f64 / steps),
                    bytes_folded: 0.0,
                };
                let parts = sizes(cut.parts().iter().map(|own| own.staged.domain.nj));
                Ok(Cutting { parts, brought, over_mesh: None })
            }
            Checked::Mesh(problem) => {
                let (cut, choices) = match is_interpreted {
                    true => (over::Cut::new(Arc::clone(&problem), &over::Owners::new(&problem, devices)?)?, None),
                    false => {
                        let (own, cut) = ready.cut_mesh(problem, devices, &|_| Ok(()))?;
                        (cut, Some(own.choices))
                    }
                };
                let turn = over::traffic(&cut, &|chain| choices.is_some_and(|own| cut.merges(chain, own)))?;
                let brought = Brought {
                    exchanges: turn.exchanges as f64,
                    bytes_to_a_part: turn.brought.iter().map(|own| (own.times * own.bytes) as f64).sum(),
                    bytes_over_a_link: None,
                    bytes_folded: turn.folds.bytes as f64,
                };
                let parts = sizes(cut.parts().iter().map(over::Part::owned));
                Ok(Cutting { parts, brought, over_mesh: Some((cut, choices)) })
            }
        }
    }

    /// The largest part by itself, on one device: a grid of its rows, or its mesh. Nothing where that is no program that can be computed.
    pub(super) fn share(&self, cutting: &Cutting) -> Option<Ready> {
        let Some((cut, choices)) = &cutting.over_mesh else {
            let share = self.on(Grid { nj: cutting.parts[1], ..self.grid()? }).ok()?;
            let Checked::Grid(problem) = &share.checked else { return None };
            let suits = share.how.plan.as_ref().is_none_or(|plan| plan.check(problem).is_ok());
            return suits.then_some(share);
        };
        let part = cut.largest();
        let problem = cut.share(part, &|chain| choices.is_some_and(|own| cut.merges(chain, own))).ok()?;
        let mut share = self.whole.clone();
        share.checked = Checked::Mesh(Arc::new(problem));
        if let (Some(choices), Some(ordering)) = (choices, &self.whole.how.ordering) {
            share.over_mesh(*choices, cut.ordering(part, ordering));
        }
        Some(share)
    }
}

/// The smallest and the largest.
fn sizes(all: impl Iterator<Item = usize> + Clone) -> [usize; 2] {
    [all.clone().min().unwrap_or(0), all.max().unwrap_or(0)]
}
