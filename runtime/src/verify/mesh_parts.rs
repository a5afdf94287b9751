//! Programs over meshes that are cut into parts, as several devices have them: every way against the interpreter, which cuts nothing.

use super::mesh::{Expected, Way};
use super::{Site, Sites, Subject, Verdict, overwritten};
use crate::build::Build;
use crate::driver::Driver;
use crate::emulate::Source;
use crate::mesh::order::Ordering;
use crate::mesh::program::MeshProblem;
use crate::mesh::program::cpu::Interpreter;
use crate::mesh::program::kernels::{Kernels, Renumbered};
use crate::mesh::program::parts::{Cut, Owners, Parts, Rank};
use crate::program::planned::Text;
use crate::ranks::threads::together;
use crate::{Error, Result};
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::mesh::MeshChoices;

/// A program over a mesh in the parts of owners, each on a machine of its own where there are several.
pub struct OverMeshInParts<'a> {
    /// The program, the mesh and the numbers.
    pub problem: &'a Arc<MeshProblem>,
    /// What it leaves where it is not cut.
    pub expected: &'a Expected,
    /// Who owns which element.
    pub owners: Owners,
}

impl OverMeshInParts<'_> {
    /// What comes of it where the interpreter computes the parts: those of one process, and one of each of several ranks.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn interpreted(&self) -> Result<Verdict> {
        let cut = Cut::new(Arc::clone(self.problem), &self.owners)?;
        let mut driver = Driver::new(Parts::interpreted(cut.clone())?).given()?;
        driver.finish()?;
        let verdict = self.expected.judged(self.problem, &driver, true)?;
        if !matches!(verdict, Verdict::Equal { .. }) {
            return Ok(verdict);
        }
        let verdicts = together(cut.parts().len(), |ranks| {
            let backend = Interpreter::new(Arc::clone(&cut.parts()[ranks.rank()].problem)).leaving();
            let mut driver = Driver::new(Rank::new(cut.clone(), backend, ranks, &|_| false)?).given()?;
            driver.finish()?;
            self.expected.judged(self.problem, &driver, true)
        })?;
        let wrong = verdicts.into_iter().find(|own| !matches!(own, Verdict::Equal { .. }));
        Ok(wrong.unwrap_or(verdict))
    }
}

/// A way in which parts are computed, and the kernels that are known before anything is.
pub struct Planned {
    cut: Cut,
    choices: MeshChoices,
    renumbered: Vec<Arc<Renumbered>>,
    texts: Vec<Text>,
}

impl Subject for OverMeshInParts<'_> {
    type Way = Way;
    type Planned = Planned;

    fn plan(&self, Way { renumbered, choices }: &Way) -> Result<Planned> {
        let (cut, choices) = Cut::new(Arc::clone(self.problem), &self.owners)?.chosen(*choices);
        let ordering: Ordering = renumbered.ordering(self.problem);
        let (mut all, mut texts) = (Vec::new(), Vec::new());
        for (number, part) in cut.parts().iter().enumerate() {
            let renumbered = Renumbered::new(&part.problem, &cut.ordering(number, &ordering))?;
            texts.extend(renumbered.texts(&part.problem, &choices)?);
            all.push(Arc::new(renumbered));
        }
        Ok(Planned { cut, choices, renumbered: all, texts })
    }

    fn texts<'a>(&self, planned: &'a Planned) -> Vec<Source<'a>> {
        planned.texts.iter().map(|Text { name, text }| Source { name, text }).collect()
    }

    fn run<M: Build>(&self, planned: &Planned, sites: &Sites<M>) -> Result<Verdict> {
        let Planned { cut, choices, renumbered, .. } = planned;
        let backends = cut.parts().iter().zip(renumbered).enumerate().map(|(number, (part, renumbered))| {
            let Site { machine, maker } = sites.of_part(number);
            let problem = Arc::clone(&part.problem);
            let kernels = Kernels::new(problem, Arc::clone(machine), *choices, Arc::clone(renumbered));
            kernels.made_by(Rc::clone(maker)).leaving().watched()
        });
        let backend = Parts::keeping_inputs(cut.clone(), backends.collect(), &|chain| cut.merges(chain, *choices))?;
        let mut driver = Driver::new(&backend).given()?;
        driver.finish()?;
        let verdict = self.expected.judged(self.problem, &driver, choices.strategy.is_ordered())?;
        let initial = &self.problem.initial;
        let mut own = overwritten(&driver, |variable| {
            initial.get(&variable).ok_or_else(|| Error::check("an input is held that was not given"))
        })?;
        for kernels in backend.backends() {
            own.extend(kernels.damage()?);
        }
        Ok(verdict.with_damage(own))
    }
}
