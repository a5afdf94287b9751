//! The rules of programs.

use super::super::program::Action;
use super::super::{Body, Handle, Kind, MeshProgram, Program, Role, Stencil, VariableId};
use super::mesh::check_mesh;
use super::{Checker, Verify};

impl Verify for Program {
    fn verify(&self) -> Result<(), String> {
        self.stencils.iter().try_for_each(Verify::verify)?;
        check_program(self, &self.stencils.iter().collect::<Vec<_>>())
    }
}

impl Verify for MeshProgram {
    fn verify(&self) -> Result<(), String> {
        check_mesh(&self.mesh)?;
        self.stencils.iter().try_for_each(Verify::verify)?;
        let variables = self.program.variables.len();
        if self.numbers.len() != self.program.numbers.fields.len()
            || self.numbers.iter().any(|id| id.index() >= variables)
        {
            return Err("fields of its numbers stand for no variables".into());
        }
        check_program(&self.program, &self.stencils.iter().map(|own| &own.stencil).collect::<Vec<_>>())
    }
}

fn check_program(program: &Program, stencils: &[&Stencil]) -> Result<(), String> {
    let numbers = Checker::new(&program.numbers);
    numbers.stencil().map_err(|rule| format!("numbers: {rule}"))?;
    let number = |body: &Body, kind: Kind, what: &str| {
        numbers.body(body, program.numbers.defs.len(), false).map_err(|rule| format!("{what}: {rule}"))?;
        match body.kind() == kind {
            true => Ok(()),
            false => Err(format!("{what} is a {}", body.kind().name())),
        }
    };
    let known = |id: VariableId| match id.index() < program.variables.len() {
        true => Ok(&program.variables[id]),
        false => Err(format!("there is no variable {}", id.index())),
    };
    let mut waiting: Vec<&Action> = program.actions.iter().collect();
    while let Some(action) = waiting.pop() {
        match action {
            Action::Rename(rename) => {
                if known(rename.from)?.stored.kind() != known(rename.to)?.stored.kind() {
                    return Err(format!("{} becomes one of another kind", known(rename.from)?.name));
                }
            }
            Action::Number(own) => {
                let variable = known(own.to)?;
                number(&own.value, variable.stored.kind(), &variable.name)?;
            }
            Action::Repeat(own) => {
                number(&own.times, Kind::Int, "a number of repetitions")?;
                waiting.extend(&own.actions);
            }
            Action::Call(call) => {
                let Some(stencil) = stencils.get(call.stencil) else {
                    return Err(format!("a call is of stencil {}, which is not there", call.stencil));
                };
                let name = &stencil.name;
                if (call.fields.len(), call.params.len()) != (stencil.fields.len(), stencil.params.len()) {
                    return Err(format!("a call of {name} has bindings for other fields or parameters"));
                }
                for ((_, field), binding) in stencil.fields.iter().zip(&call.fields) {
                    let reads = field.role.is_read() || field.role == Role::Inc;
                    if binding.read.is_some() && !reads || binding.written.is_some() && !field.role.is_written() {
                        return Err(format!("a call of {name} takes {} for what it is not", field.name));
                    }
                    for id in binding.read.into_iter().chain(binding.written) {
                        if known(id)?.stored.kind() != field.stored.kind() {
                            return Err(format!("a call of {name}: {} is of another kind", field.name));
                        }
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
