//! The rules of programs.

use super::super::program::Action;
use super::super::{Body, Handle, Kind, MeshProgram, Program, Stencil, VariableId};
use super::mesh::check_mesh;
use super::{Checker, Verify, ensure};

impl Verify for Program {
    fn verify(&self) -> Result<(), String> {
        self.stencils.iter().try_for_each(Verify::verify)?;
        let variables = self.variables.len();
        let are_there =
            self.changing.len() == self.numbers.fields.len() && self.changing.iter().all(|id| id.index() < variables);
        ensure(are_there, || "fields of its numbers stand for no variables".into())?;
        check_program(self, &self.stencils.iter().collect::<Vec<_>>())
    }
}

impl Verify for MeshProgram {
    fn verify(&self) -> Result<(), String> {
        check_mesh(&self.mesh)?;
        self.stencils.iter().try_for_each(Verify::verify)?;
        let variables = self.program.variables.len();
        let are_there = self.numbers.len() == self.program.numbers.fields.len()
            && self.numbers.iter().all(|id| id.index() < variables);
        ensure(are_there, || "fields of its numbers stand for no variables".into())?;
        check_program(&self.program, &self.stencils.iter().map(|own| &own.stencil).collect::<Vec<_>>())
    }
}

fn check_program(program: &Program, stencils: &[&Stencil]) -> Result<(), String> {
    let numbers = Checker::new(&program.numbers);
    numbers.stencil().map_err(|rule| format!("numbers: {rule}"))?;
    let number = |body: &Body, kind: Kind, what: &str| {
        numbers.body(body, program.numbers.defs.len(), false).map_err(|rule| format!("{what}: {rule}"))?;
        ensure(body.kind() == kind, || format!("{what} is a {}", body.kind().name()))
    };
    let known = |id: VariableId| {
        ensure(id.index() < program.variables.len(), || format!("there is no variable {}", id.index()))?;
        Ok::<_, String>(&program.variables[id])
    };
    let mut waiting: Vec<&Action> = program.actions.iter().collect();
    while let Some(action) = waiting.pop() {
        match action {
            Action::Rename(rename) => {
                let (from, to) = (known(rename.from)?, known(rename.to)?);
                let are_alike = from.stored.kind() == to.stored.kind();
                ensure(are_alike, || format!("{} becomes one of another kind", from.name))?;
            }
            Action::Number(own) => {
                let variable = known(own.to)?;
                number(&own.value, variable.stored.kind(), &variable.name)?;
            }
            Action::Repeat(own) => {
                number(&own.times, Kind::Int, "a number of repetitions")?;
                if let Some(counter) = own.counter {
                    let kind = known(counter)?.stored.kind();
                    ensure(kind == Kind::Int, || format!("the number of a turn is a {}", kind.name()))?;
                }
                waiting.extend(&own.actions);
            }
            Action::Call(call) => {
                let not_there = || format!("a call is of stencil {}, which is not there", call.stencil);
                let stencil = stencils.get(call.stencil).ok_or_else(not_there)?;
                let name = &stencil.name;
                let are_all = (call.fields.len(), call.params.len()) == (stencil.fields.len(), stencil.params.len());
                ensure(are_all, || format!("a call of {name} has bindings for other fields or parameters"))?;
                for ((_, field), binding) in stencil.fields.iter().zip(&call.fields) {
                    let (role, own) = (field.role, &field.name);
                    let fits =
                        (binding.read.is_none() || role.is_read()) && (binding.written.is_none() || role.is_written());
                    ensure(fits, || format!("a call of {name} takes {own} for what it is not"))?;
                    for id in binding.read.into_iter().chain(binding.written) {
                        let is_alike = known(id)?.stored.kind() == field.stored.kind();
                        ensure(is_alike, || format!("a call of {name}: {own} is of another kind"))?;
                    }
                }
                for ((_, param), given) in stencil.params.iter().zip(&call.params) {
                    given.as_ref().map_or(Ok(()), |body| number(body, param.kind, &param.name))?;
                }
            }
        }
    }
    Ok(())
}
