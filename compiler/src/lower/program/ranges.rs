//! What random numbers are drawn from for inputs of a program that do not say it: what the first field of a stencil says that they
//! are passed to.

use crate::ir::program::{Action, Call, Rename};
use crate::ir::{Handle, Program, Role, VariableId};

/// Gives inputs without a range that of the first field with one that they are passed to, be it under another name.
pub(super) fn take(program: &mut Program) {
    let is_input = |id: VariableId| program.variables[id].role.is_some_and(Role::is_read);
    let holds = program.variables.handles().map(|id| is_input(id).then_some(id)).collect();
    let mut follower = Follower { program, holds, found: Vec::new() };
    follower.actions(&program.actions);
    let found = follower.found;
    for (input, range) in found {
        program.variables[input].range.get_or_insert(range);
    }
}

struct Follower<'a> {
    program: &'a Program,
    /// By variable: the input whose first values it holds.
    holds: Vec<Option<VariableId>>,
    /// What fields say of inputs, in the order in which they are passed.
    found: Vec<(VariableId, (f64, f64))>,
}

impl Follower<'_> {
    fn actions(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Call(call) => self.call(call),
                Action::Rename(Rename { from, to }) => self.holds[to.index()] = self.holds[from.index()],
                Action::Number(_) => {}
                // What is passed in a first turn has been passed by then.
                Action::Repeat(repeat) => self.actions(&repeat.actions),
            }
        }
    }

    fn call(&mut self, call: &Call) {
        let stencil = &self.program.stencils[call.stencil];
        for ((_, field), binding) in stencil.fields.iter().zip(&call.fields) {
            let input = binding.read.and_then(|read| self.holds[read.index()]);
            self.found.extend(input.zip(field.range));
        }
        for binding in &call.fields {
            if let Some(written) = binding.written {
                self.holds[written.index()] = None;
            }
        }
    }
}
