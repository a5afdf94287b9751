//! The kernels of a stencil, as candidates: those that differ in their blocks and knobs alone are a kind, and the search moves on
//! from one to those that have half or twice as much of one extent. To lay fields out anew takes as long as many kernels, so one
//! layout comes after the other.

use super::search::{Found, Kind};
use crate::bench::sweep::{Came, Kernels, Sweep, Swept, layout};
use crate::clock::Budget;
use crate::error::Result;
use crate::measure::{Asked, Progress, search};
use std::collections::BTreeMap;
use stencilc_compiler::plan::Choices;

/// Blocks beside a strategy's own that each kind is begun with.
const BEGIN: [[u32; 3]; 1] = [[32, 4, 1]];

/// A problem to be tuned.
pub struct Tuner<'a> {
    /// What is measured, and how the finalists are.
    pub sweep: Sweep<'a>,
    /// The time for the search, once what is usual was measured. Finalists are measured after it.
    pub budget: Budget<'a>,
}

/// What came of tuning.
#[derive(Debug)]
pub struct Tuned {
    /// The finalists, exactly measured; and what failed or makes no sense.
    pub swept: Swept,
    /// What the search found.
    pub found: Found,
}

impl Tuner<'_> {
    /// Searches among kernels; `progress` is called after each that was tried.
    ///
    /// # Errors
    /// The machine cannot be used any more.
    pub fn run(&self, kernels: &[Choices], asked: Asked, progress: &Progress) -> Result<Tuned> {
        let mut came = Came::default();
        let found = search(&Kernels::new(&self.sweep, kernels, None, true), &mut came, asked, self.budget, progress)?;
        Ok(Tuned { swept: came.swept(), found })
    }
}

/// Everything but the block and the numbers of knobs.
pub(crate) fn kind_of(choices: &Choices) -> String {
    Choices { block: Choices::usual_block(&choices.access), ..choices.clone() }.words()
}

/// The kinds of kernels, of which `estimate` says what the first of each may take; and the number of each kernel's.
pub(crate) fn kinds(
    kernels: &[Choices],
    names: &[String],
    estimate: impl FnOnce(&[&Choices]) -> Vec<Option<f64>>,
) -> (Vec<Kind>, Vec<usize>) {
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (kernel, name) in names.iter().enumerate() {
        members.entry(name).or_default().push(kernel);
    }
    let numbers: BTreeMap<&str, usize> = members.keys().enumerate().map(|(at, &name)| (name, at)).collect();
    let kind_of = names.iter().map(|name| numbers[name.as_str()]).collect();
    let begins: Vec<Vec<usize>> = members.values().map(|members| first_of(kernels, members)).collect();
    let leaders: Vec<&Choices> = begins.iter().map(|begin| &kernels[begin[0]]).collect();
    let known = estimate(&leaders).into_iter().zip(begins);
    let mut known: Vec<(f64, Vec<usize>)> = known.filter_map(|(own, begin)| Some((own?, begin))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The layout of the most promising kind comes first.
    let mut layouts = Vec::new();
    let kinds = known.into_iter().map(|(estimate, begin)| {
        let own = layout(&kernels[begin[0]]);
        let turn = layouts.iter().position(|known| *known == own).unwrap_or_else(|| {
            layouts.push(own);
            layouts.len() - 1
        });
        Kind { begin, estimate, turn }
    });
    (kinds.collect(), kind_of)
}

/// The kernels that a kind is begun with: those of the usual blocks, or whatever there is.
fn first_of(kernels: &[Choices], members: &[usize]) -> Vec<usize> {
    let own = Choices::usual_block(&kernels[members[0]].access);
    let with = |block| members.iter().copied().find(|&kernel| kernels[kernel].block == block);
    let mut first: Vec<usize> = std::iter::once(own).chain(BEGIN).filter_map(with).collect();
    first.dedup();
    if first.is_empty() { members[members.len() / 2..][..1].to_vec() } else { first }
}

/// Whether two kernels differ by a factor of two in one extent of the block, or one number of a knob; or in two of the block, which has as
/// many threads all the same.
pub(crate) fn are_beside(one: &Choices, other: &Choices) -> bool {
    let extents = |own: &Choices| -> Vec<u32> {
        let settings = own.settings().flat_map(|(_, setting)| setting.numbers().to_vec());
        own.block.into_iter().chain(settings).collect()
    };
    let (from, to) = (extents(one), extents(other));
    let steps: Vec<f64> = from.iter().zip(to).map(|(&from, to)| (f64::from(to) / f64::from(from)).log2()).collect();
    let distance: f64 = steps.iter().map(|step| step.abs()).sum();
    let turned = distance == 2.0 && steps[..3].iter().sum::<f64>() == 0.0 && steps[3..].iter().all(|&step| step == 0.0);
    if !(distance == 1.0 || turned) {
        return false;
    }
    let same = Choices { block: one.block, knobs: one.knobs.clone(), ..other.clone() };
    same == *one
}
