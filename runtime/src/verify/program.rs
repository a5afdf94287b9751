//! Programs on grids: every plan against the interpreter.

use super::{Mismatch, Site, Sites, Subject, Verdict, compare, overwritten};
use crate::array::Data;
use crate::build::Build;
use crate::driver::Driver;
use crate::emulate::Source;
use crate::error::Result;
use crate::measure::Progress;
use crate::program::cpu::Interpreter;
use crate::program::kernels::Kernels;
use crate::program::plan::ProgramPlan;
use crate::program::planned::{Planned, Text};
use crate::program::{ProgramProblem, results};
use std::sync::Arc;

/// What the interpreter leaves of a program.
pub struct Reference {
    /// The program.
    pub problem: Arc<ProgramProblem>,
    /// What its outputs hold, by field of the facade.
    pub outputs: Vec<Option<Data>>,
}

impl Reference {
    /// What the interpreter computes; `progress` is told how often outermost loops were run since it was told last.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(problem: ProgramProblem, progress: &Progress) -> Result<Self> {
        let problem = Arc::new(problem);
        let outputs = {
            let backend = Interpreter::new(problem.clone());
            let mut driver = Driver::new(&backend).given()?;
            // As many steps at once as there can be: stages of several are compared by this, too.
            driver.run(None, &mut |_, times| {
                progress(times as usize);
                Ok(())
            })?;
            results(&problem, &driver)?
        };
        Ok(Self { problem, outputs })
    }

    /// Whether a comparison with it proves something.
    ///
    /// # Errors
    /// Too many values are not finite, or an output is the same everywhere.
    pub fn check_worth(&self) -> Result<()> {
        let outer = &self.problem.outer;
        let variables = self.problem.staged.program.outer();
        for (((_, field), data), variable) in outer.stencil.fields.iter().zip(&self.outputs).zip(variables) {
            if let Some(data) = data {
                let region = self.problem.region_of(variable);
                super::compare::check_worth(&field.name, data, region.numbers(outer.grid, field.place))?;
            }
        }
        Ok(())
    }

    /// Where results differ from it, field by field.
    pub fn mismatches(&self, found: &[Option<Data>]) -> Vec<Mismatch> {
        let outer = &self.problem.outer;
        let fields = outer.stencil.fields.iter().zip(&self.outputs).zip(found);
        let mismatches = fields.filter_map(|(((_, field), expected), found)| {
            compare(outer, &field.name, expected.as_ref()?, found.as_ref()?)
        });
        mismatches.collect()
    }

    pub(super) fn cells(&self) -> usize {
        self.outputs.iter().flatten().map(Data::len).sum()
    }
}

impl Subject for Reference {
    type Way = ProgramPlan;
    type Planned = (Arc<Planned>, Vec<Text>);

    fn plan(&self, plan: &ProgramPlan) -> Result<Self::Planned> {
        let planned = Planned::new(&self.problem, plan)?;
        let texts = planned.texts()?;
        Ok((Arc::new(planned), texts))
    }

    fn texts<'a>(&self, (_, texts): &'a Self::Planned) -> Vec<Source<'a>> {
        texts.iter().map(|Text { name, text }| Source { name, text }).collect()
    }

    fn run<M: Build>(
        &self,
        (planned, texts): &Self::Planned,
        Sites { first: Site { machine, maker }, .. }: &Sites<M>,
    ) -> Result<Verdict> {
        let loaded = texts.iter().map(|text| maker(&text.name, &text.text)).collect::<Result<_>>()?;
        let backend = Kernels::new(Arc::clone(machine), Arc::clone(planned), loaded)?.watched();
        let mut driver = Driver::new(&backend).given()?;
        driver.finish()?;
        let mismatches = self.mismatches(&results(&planned.problem, &driver)?);
        let mut damage: Vec<String> = backend.damage()?.into_iter().collect();
        damage.extend(overwritten(&driver, |variable| planned.problem.held_before(variable))?);
        Ok(Verdict::of(self.cells(), mismatches, damage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::{Compiler, Settings};
    use crate::program::measure::candidates;
    use crate::program::plan::PlanKind;
    use crate::program::tests::{problem, program};
    use crate::verify::{Tools, verify};
    use stencilc_compiler::grid::Grid;
    use stencilc_compiler::ir::Precision;
    use stencilc_compiler::plan::Choices;

    const WAVE: &str = "
        program wave { inout a; in c; boundary { i: copy }; repeat 3 { let b = push(a, c); a = push(b, c) } }
        stencil push { in a, c; out b; b = 0.5*a[i-1] + c*a[i+1] }
    ";

    #[test]
    fn one_bit_is_found() {
        let problem = problem(&program(WAVE), Grid::rows(7, 3, 2), Precision::F64, &[]).unwrap();
        let compiler = Compiler::find().unwrap();
        let tools = Tools::emulated(&compiler, Settings::default());
        let choices = Choices { contract: false, ..Choices::default() };
        let plans = candidates(&[PlanKind::Separate, PlanKind::Merged, PlanKind::Streamed], &[1], &[choices], true);
        let mut reference = Reference::new(problem.with_times(5), &|_| {}).unwrap();
        reference.check_worth().unwrap();
        let verdicts = verify(&reference, &plans, &tools, &|_| {}).unwrap();
        let equal = |verdict: &&Verdict| matches!(verdict, Verdict::Equal { cells: 42 });
        // An axis that is no circle is not streamed.
        assert_eq!(verdicts.iter().filter(equal).count(), 2, "{verdicts:?}");
        assert!(verdicts[2..].iter().all(|verdict| matches!(verdict, Verdict::Refused { .. })));

        let Some(Data::F64(numbers)) = &mut reference.outputs[0] else { panic!("no numbers") };
        numbers[40] = f64::from_bits(numbers[40].to_bits() ^ 1);
        let verdicts = verify(&reference, &plans[..2], &tools, &|_| {}).unwrap();
        for verdict in verdicts {
            let Verdict::Failed { mismatches, damage, .. } = verdict else { panic!("{verdict:?}") };
            assert_eq!((mismatches.len(), mismatches[0].cells, damage.len()), (1, 1, 0));
            assert!(mismatches[0].to_string().starts_with("`a` differs on 1 cell, first at i=5, j=2, k=1: "));
        }
    }

    #[test]
    fn what_is_the_same_everywhere_proves_nothing() {
        let flat = "program flat { inout a; repeat 2 { a = one(a) } }\n stencil one { in a; out b; b = 0*a + 1 }";
        let problem = problem(&program(flat), Grid::rows(3, 3, 2), Precision::F64, &[]).unwrap();
        let said = Reference::new(problem, &|_| {}).unwrap().check_worth().unwrap_err().message;
        assert!(said.contains("values of `a` are the same"), "{said}");
    }
}
