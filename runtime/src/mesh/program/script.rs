//! What a program over a mesh does, as a driver follows it.

use super::MeshProblem;
use super::live::{Step, kept};
use super::moving::Moving;
use super::numbers::Scope;
use crate::array::{Data, Element};
use crate::driver::{Before, NumberOf, Script, Uses, Write};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::ir::program::{Call, Program};
use stencilc_compiler::ir::scalar::{Value, apply};
use stencilc_compiler::ir::{Body, Handle, Levels, Role, Stencil, VariableId};
use stencilc_compiler::mesh::{Chain, changed_in_place};
use stencilc_compiler::program::{self as compiled, Loop, Times};

/// A program over a mesh, some of whose chains are one stage.
pub struct MeshScript {
    problem: Arc<MeshProblem>,
    steps: Vec<compiled::Step>,
    stages: Vec<Stage>,
}

/// A call, or a chain of calls.
pub(super) struct Stage {
    /// The call, or the one that stands for all of the chain.
    pub call: Call,
    uses: Uses,
    reads_numbers: bool,
}

impl MeshScript {
    /// What a problem's program does, where `merges` says which chains are computed by one kernel.
    pub fn new(problem: &Arc<MeshProblem>, merges: &dyn Fn(&Chain) -> bool) -> Self {
        let mut script = Self { problem: Arc::clone(problem), steps: Vec::new(), stages: Vec::new() };
        script.steps = script.all(&problem.steps, merges);
        script
    }

    /// The same, but what is given to the program and not written by it is there until its end.
    pub(super) fn keeping_inputs(mut self) -> Self {
        let variables = &self.problem.program.program.variables;
        for stage in &mut self.stages {
            stage.uses.ends.retain(|&id| variables[id].role != Some(Role::In));
        }
        self
    }

    /// The calls of all its stages.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.stages.iter().map(|stage| &stage.call)
    }

    /// A stage, by its number.
    pub(super) fn stage(&self, number: usize) -> &Stage {
        &self.stages[number]
    }

    fn all(&mut self, steps: &[Step], merges: &dyn Fn(&Chain) -> bool) -> Vec<compiled::Step> {
        let mut all = Vec::new();
        for step in steps {
            match step {
                Step::Call { call, last } => all.push(self.call(call, last)),
                Step::Chain { call, last, .. } if merges(self.problem.chain(call)) => all.push(self.call(call, last)),
                Step::Chain { apart, .. } => all.append(&mut self.all(apart, merges)),
                Step::Rename { from, to } => all.push(compiled::Step::Rename(*from, *to)),
                Step::Number { to, value } => all.push(compiled::Step::Number(*to, value.clone())),
                Step::Repeat { times, counter, steps } => {
                    let turns = vec![self.all(steps, merges)];
                    let times = Times::Of(times.clone());
                    let (counter, names) = (*counter, Vec::new());
                    let own = Loop { times, counter, turns, again: 0, names, unrolled: None, whole: None };
                    all.push(compiled::Step::Repeat(own));
                }
            }
        }
        all
    }

    fn call(&mut self, call: &Call, last: &BTreeSet<VariableId>) -> compiled::Step {
        let program = &self.problem.program.program;
        let kept: BTreeSet<VariableId> = kept(program, call).collect();
        // Chains leave nothing as it is.
        let own = self.problem.program.stencils.get(call.stencil);
        let in_place = own.map(changed_in_place).unwrap_or_default();
        let mut uses = Uses { ends: last.iter().copied().collect(), ..Uses::default() };
        for (binding, (field, own)) in call.fields.iter().zip(self.stencil(call).fields.iter()) {
            // What is added to is read in its place, if the sum has one.
            let is_changed = own.role == Role::Inc || in_place.contains(&field);
            if let Some(read) = binding.read.filter(|_| !is_changed || binding.written.is_none()) {
                uses.reads.push((field, read));
            }
            let Some(variable) = binding.written.filter(|_| !self.problem.is_passed_on(call, field)) else {
                continue;
            };
            let before = match (own.role, binding.read) {
                // What is added to and left out starts from 0, whatever there was.
                (Role::Inc, None) => Before::Zero,
                (Role::Inc, Some(read)) => Before::Sum(read),
                (Role::InOut, Some(read)) if in_place.contains(&field) => Before::Sum(read),
                (Role::InOut, read) => Before::Kept(read),
                (_, _) => Before::Kept(Some(variable).filter(|id| kept.contains(id))),
            };
            uses.writes.push(Write { field, variable, before });
        }
        let given = call.params.iter().flatten();
        let reads_numbers = given.clone().any(|body| !self.scope().reads(body).is_empty());
        self.stages.push(Stage { call: call.clone(), uses, reads_numbers });
        compiled::Step::Stage(self.stages.len() - 1)
    }

    /// The fields and parameters of a call, or of a chain.
    fn stencil(&self, call: &Call) -> &Stencil {
        &self.problem.stages(call.stencil)[0].stencil
    }

    fn scope(&self) -> Scope<'_> {
        let MeshProblem { program, precision, levels, params, .. } = &*self.problem;
        Scope { program, precision: *precision, levels: *levels, params }
    }
}

impl Script for MeshScript {
    fn program(&self) -> &Program {
        &self.problem.program.program
    }

    fn steps(&self) -> &[compiled::Step] {
        &self.steps
    }

    fn initial(&self) -> Result<Vec<(VariableId, &Data)>> {
        Ok(self.problem.initial.iter().map(|(&variable, data)| (variable, data)).collect())
    }

    fn shape(&self, variable: VariableId) -> Vec<usize> {
        self.problem.shape(variable)
    }

    fn element(&self, variable: VariableId) -> Element {
        self.problem.element(variable)
    }

    fn check_levels(&self, variable: VariableId, data: &Data) -> Result<()> {
        let MeshProblem { program, precision, levels, bound, .. } = &*self.problem;
        let own = &program.program.variables[variable];
        Moving::new(program, *precision, *levels).check(variable, own, data, program, bound)
    }

    fn uses(&self, stage: usize) -> Uses {
        self.stages[stage].uses.clone()
    }

    fn params(&self, stage: usize, number: &mut NumberOf) -> Result<Vec<Value>> {
        let (call, precision) = (&self.stages[stage].call, self.problem.precision);
        let stencil = self.stencil(call);
        let mut values = Vec::new();
        for (id, own) in stencil.params.iter() {
            let given = call.params[id.index()].as_ref().map(|body| self.scope().value(body, number)).transpose()?;
            let default = || apply(precision, own.default.as_ref()?.literal()?, &[]);
            let value = given.or_else(default).ok_or_else(|| {
                Error::call(format!("the parameter `{}` of `{}` has no value", own.name, stencil.told()))
            })?;
            values.push(value.rounded(precision));
        }
        Ok(values)
    }

    fn region(&self, stage: usize, params: &[Value], variable: VariableId) -> Result<Option<u64>> {
        let levels = self.problem.program.program.variables[variable].place.levels;
        let call = &self.stages[stage].call;
        let computed = self.problem.computed(call.stencil, params)?;
        let is_whole = levels == Levels::None || computed.len() == levels.count(self.problem.levels);
        let computed = if is_whole { 0..0 } else { computed };
        // What is added to is written everywhere.
        let stencil = self.stencil(call);
        let mut written = stencil.fields.iter().zip(&call.fields).filter(|(_, own)| own.written == Some(variable));
        let is_assigned = written.any(|((_, field), _)| matches!(field.role, Role::Out | Role::InOut));
        let zones = stencil.zones.filter(|_| is_assigned);
        if is_whole && zones.is_none() {
            return Ok(None);
        }
        // As many bits as there can be levels and zones.
        let numbers = [computed.start, computed.end].map(|level| (level as u64, 24));
        let zones = zones.map_or([0, 0], |zones| [zones.first + 1, zones.last + 1]).map(|zone| (u64::from(zone), 8));
        Ok(Some(numbers.into_iter().chain(zones).fold(0, |region, (number, bits)| region << bits | number)))
    }

    fn is_number(&self, variable: VariableId) -> bool {
        self.problem.is_number(variable)
    }

    fn numbers_in(&self, body: &Body) -> Vec<VariableId> {
        self.scope().reads(body)
    }

    fn reads_numbers(&self, stage: usize) -> bool {
        self.stages[stage].reads_numbers
    }

    fn value(&self, body: &Body, number: &mut NumberOf) -> Result<Value> {
        self.scope().value(body, number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpu::Interpreter;
    use super::super::{MeshProblem, Request};
    use crate::driver::Driver;
    use crate::driver::recorder::Recorder;
    use crate::mesh::made::airfoil;
    use crate::{Cast, Drawing};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use stencilc_compiler::ir::Precision;
    use stencilc_compiler::source::Source;

    const MESH: &str = "mesh plane { set edge; set cell; map edge.cells -> cell[2] }
stencil flux over plane.edge {
    in a on cell
    inc res on cell
    let f = 0.25*(a[cells.1] - a[cells.0])
    res[cells.0] += f
    res[cells.1] += -f
}
stencil update over plane.cell { in a, res; param dt: real; out b; b = a + dt*res }
stencil total over plane.cell { in a; reduce t: sum; t += a*a }
";

    /// A program whose loop is run 600 times.
    fn problem(inner: &str) -> Arc<MeshProblem> {
        let text = format!("{MESH}program p over plane {{\n    inout a on cell\n{inner}\n}}");
        let source = Source::new("p.stn", &text);
        let lowered = stencilc_compiler::check(&source);
        let told = stencilc_compiler::diagnostic::render(&lowered.diagnostics, &source, false);
        assert!(lowered.is_ok(), "{told}");
        let request = Request {
            program: &lowered.mesh_programs[0],
            precision: Precision::F64,
            contract: true,
            mesh: airfoil(12, 5).unwrap(),
            levels: None,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 1,
            cast: Cast::Exact,
            drawing: Drawing::Everything,
        };
        Arc::new(MeshProblem::new(request).unwrap())
    }

    #[test]
    fn recorded_loops_equal_others() {
        for (inner, is_recorded) in [
            ("repeat 600 { let res = flux(a); a = update(a, res, dt = 0.5) }", true),
            (
                "    out t: real on ()\nrepeat 600 { let res = flux(a); a = update(a, res, dt = 0.5); t = total(a) }",
                true,
            ),
            (
                "    out t: real on ()\nrepeat 600 { let res = flux(a); t = total(a); a = update(a, res, dt = 1/(1 + t)) }",
                false,
            ),
        ] {
            let problem = problem(inner);
            for every in [None, Some(70), Some(7), Some(3)] {
                let [plain, recorded] = [false, true].map(|records| {
                    let backend = Recorder::new(Interpreter::new(problem.clone()), records);
                    let mut driver = Driver::new(&backend).given().unwrap();
                    let (mut seen, mut done) = (Vec::new(), 0);
                    driver
                        .run(every, &mut |driver, times| {
                            done += times;
                            if every.is_some_and(|every| done % every == 0) {
                                seen.push(driver.results()?);
                            }
                            Ok(())
                        })
                        .unwrap();
                    seen.push(driver.results().unwrap());
                    (seen, backend.computed.get())
                });
                assert_eq!(recorded.0, plain.0, "{inner} {every:?}");
                let is_recorded = is_recorded && every != Some(3);
                assert_eq!(recorded.1 < plain.1, is_recorded, "{inner} {every:?}: {} of {}", recorded.1, plain.1);
            }
        }
    }
}
