//! Programs on grids that are cut into parts, as several devices have them: every plan against the interpreter, which cuts nothing.

use super::program::Reference;
use super::{Site, Sites, Subject, Verdict, overwritten};
use crate::array::Data;
use crate::build::Build;
use crate::driver::Driver;
use crate::emulate::Source;
use crate::error::Result;
use crate::program::kernels::Kernels;
use crate::program::parts::{Cut, Parts, Rank};
use crate::program::plan::ProgramPlan;
use crate::program::planned::{Planned, Text};
use crate::program::{cpu, results};
use crate::ranks::threads::together;
use std::sync::Arc;

/// A program in so many parts, each on a machine of its own where there are several.
pub struct InParts<'a> {
    /// What it leaves where it is not cut.
    pub reference: &'a Reference,
    /// How many parts.
    pub parts: usize,
}

impl InParts<'_> {
    /// What differs where the interpreter computes the parts, if anything does: those of one process, and one of each of several ranks.
    ///
    /// # Errors
    /// The grid has too few rows.
    pub fn interpreted(&self) -> Result<Option<String>> {
        let cut = Cut::new(Arc::clone(&self.reference.problem), self.parts)?;
        let backends = cut.parts().iter().map(|part| cpu::Interpreter::new(Arc::clone(part))).collect();
        let mut driver = Driver::new(Parts::new(cut, backends)?).given()?;
        driver.finish()?;
        let found = results(&self.reference.problem, &driver)?;
        let told = |what: &str, found: &[Option<Data>]| {
            let wrong = self.reference.mismatches(found);
            wrong.first().map(|mismatch| format!("in {} {what}: {mismatch}", self.parts))
        };
        if let Some(wrong) = told("parts", &found) {
            return Ok(Some(wrong));
        }
        // The same, where each part is that of another process.
        let cut = driver.backend().cut().clone();
        let found = together(self.parts, |ranks| {
            let backend = cpu::Interpreter::new(Arc::clone(&cut.parts()[ranks.rank()]));
            let mut driver = Driver::new(Rank::new(cut.clone(), backend, ranks)?).given()?;
            driver.finish()?;
            results(&self.reference.problem, &driver)
        })?;
        Ok(found.iter().find_map(|found| told("ranks", found)))
    }
}

impl Subject for InParts<'_> {
    type Way = ProgramPlan;
    type Planned = (Cut, Vec<(Arc<Planned>, Vec<Text>)>);

    fn plan(&self, plan: &ProgramPlan) -> Result<Self::Planned> {
        let (cut, plan) = Cut::fused(&self.reference.problem, plan, self.parts)?;
        let planned = cut.parts().iter().map(|part| {
            let planned = Planned::new(part, &plan)?;
            let texts = planned.texts()?;
            Ok((Arc::new(planned), texts))
        });
        let planned = planned.collect::<Result<_>>()?;
        Ok((cut, planned))
    }

    fn texts<'a>(&self, (_, planned): &'a Self::Planned) -> Vec<Source<'a>> {
        let texts = planned.iter().flat_map(|(_, texts)| texts);
        texts.map(|Text { name, text }| Source { name, text }).collect()
    }

    fn run<M: Build>(&self, (cut, planned): &Self::Planned, sites: &Sites<M>) -> Result<Verdict> {
        let backends = planned.iter().enumerate().map(|(part, (planned, texts))| {
            let Site { machine, maker } = sites.of_part(part);
            let loaded = texts.iter().map(|text| maker(&text.name, &text.text)).collect::<Result<_>>()?;
            Ok(Kernels::new(Arc::clone(machine), Arc::clone(planned), loaded)?.watched())
        });
        let backend = Parts::new(cut.clone(), backends.collect::<Result<_>>()?)?;
        let mut driver = Driver::new(&backend).given()?;
        driver.finish()?;
        let reference = self.reference;
        let mismatches = reference.mismatches(&results(&reference.problem, &driver)?);
        let mut damage = Vec::new();
        for kernels in backend.backends() {
            damage.extend(kernels.damage()?);
        }
        damage.extend(overwritten(&driver, |variable| reference.problem.held_before(variable))?);
        Ok(Verdict::of(reference.cells(), mismatches, damage))
    }
}
