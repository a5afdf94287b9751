//! What parts of a program bring from each other, step by step.

use super::{Cut, Known, Told};
use crate::driver::Script;
use crate::driver::dry::asked;
use crate::error::Result;
use crate::mesh::program::MeshScript;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::ir::mesh::How;
use stencilc_compiler::mesh::Chain;

/// What parts bring of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// The variable.
    pub variable: String,
    /// How often in a turn of the outermost loop.
    pub times: usize,
    /// The most elements that a part brings at once.
    pub elements: usize,
    /// The bytes of these.
    pub bytes: usize,
    /// The most parts that one brings them from.
    pub from: usize,
}

/// What is folded over all parts in a turn of the outermost loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Folds {
    /// How many numbers are reductions.
    pub numbers: usize,
    /// The bytes that the others tell the first part of them.
    pub bytes: usize,
}

/// What parts bring in a turn of the outermost loop; in all, of a program that repeats nothing.
pub struct Turn {
    /// By variable, in the order in which they are brought first.
    pub brought: Vec<Traffic>,
    /// How often parts bring something, at once of all variables that a call reads.
    pub exchanges: usize,
    /// What is folded.
    pub folds: Folds,
}

/// What parts bring in a turn of the outermost loop.
///
/// # Errors
/// A number of repetitions is negative.
pub fn traffic(cut: &Cut, merges: &dyn Fn(&Chain) -> bool) -> Result<Turn> {
    let known = Known::new(MeshScript::new(&cut.whole, merges), cut.clone());
    let asked = asked(Arc::<super::OverMesh>::clone(&known.script))?;
    let of = |(variable, times): (VariableId, usize)| {
        let (set, [width, levels]) = known.shape(variable)?;
        let each = width * levels * known.script.element(variable).bytes();
        let messages = || cut.messages.iter().filter(move |own| own.set == set);
        let to = |part: usize| messages().filter(move |own| own.to == part);
        let parts = 0..cut.parts.len();
        let elements = parts.clone().map(|part| to(part).map(|own| own.places.len()).sum()).max().unwrap_or(0);
        let from = parts.map(|part| to(part).map(|own| own.from).collect::<BTreeSet<_>>().len()).max().unwrap_or(0);
        let variable = cut.whole.program.program.variables[variable].name.clone();
        (elements > 0).then_some(Traffic { variable, times, elements, bytes: elements * each, from })
    };
    let (exchanges, all) = asked.exchanges(|variable| known.messages(variable).next().is_some());
    let mut folds = Folds::default();
    for stage in asked.computed {
        let call = &known.script.whole.stage(stage).call;
        for stencil in cut.whole.stages(call.stencil) {
            let folded = stencil.stores().filter(|(_, write)| matches!(write.how, How::Reduce(_))).count();
            if folded > 0 {
                let tiles = known.tiles((stencil.set(), stencil.stencil.zones), cut.whole.levels)?;
                let told: usize = tiles.parts.iter().skip(1).map(Told::count).sum();
                folds.numbers += folded;
                folds.bytes += folded * told * cut.whole.precision.bytes();
            }
        }
    }
    Ok(Turn { brought: all.into_iter().filter_map(of).collect(), exchanges, folds })
}
