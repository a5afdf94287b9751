//! What a program does, and which variables nobody looks at after that: their arrays may be written again, or used for
//! something else.

use std::collections::BTreeSet;
use stencilc_compiler::ir::program::{Action, Call, Program};
use stencilc_compiler::ir::{Body, Node, Role, Stencil, VariableId};

/// What a program does.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Computes a stencil.
    Call {
        /// Which.
        call: Call,
        /// What it reads that nobody looks at later.
        last: BTreeSet<VariableId>,
    },
    /// Gives a variable the value of another.
    Rename {
        /// Whose value.
        from: VariableId,
        /// What gets it.
        to: VariableId,
    },
    /// Gives a number a value.
    Number {
        /// Which.
        to: VariableId,
        /// Its value.
        value: Body,
    },
    /// Does something several times.
    Repeat {
        /// How often.
        times: Body,
        /// What.
        steps: Vec<Step>,
    },
}

/// What `program` does. Outputs are looked at when it ends, and after each step of its outermost loops.
pub(crate) fn steps(program: &Program) -> Vec<Step> {
    let outputs = program.variables.iter().filter(|(_, own)| own.role.is_some_and(Role::is_written));
    let mut live: BTreeSet<VariableId> = outputs.map(|(id, _)| id).collect();
    backwards(program, &program.actions, &mut live)
}

/// The declared variables whose old values may stay on some levels, where a call writes them.
pub(super) fn kept<'a>(program: &'a Program, call: &'a Call) -> impl Iterator<Item = VariableId> {
    let is_kept = leaves_levels(&program.stencils[call.stencil]);
    call.writes().filter(move |id| is_kept && program.variables[*id].role.is_some())
}

/// Whether there may be levels that a stencil does not compute.
fn leaves_levels(stencil: &Stencil) -> bool {
    let bodies = stencil.defs.iter().map(|(_, def)| &def.body).chain(stencil.stores.iter().map(|store| &store.body));
    bodies.flat_map(Body::iter).any(|(_, node)| match node {
        Node::Read { path, .. } | Node::Use { path, .. } => path.levels() != 0,
        _ => false,
    })
}

/// The steps of actions, after which the variables `live` are looked at; it becomes those before.
fn backwards(program: &Program, actions: &[Action], live: &mut BTreeSet<VariableId>) -> Vec<Step> {
    let mut steps = Vec::new();
    for action in actions.iter().rev() {
        steps.push(match action {
            Action::Call(call) => {
                call.writes().for_each(|id| {
                    live.remove(&id);
                });
                live.extend(kept(program, call));
                let last = call.reads().filter(|id| !live.contains(id)).collect();
                live.extend(call.reads());
                Step::Call { call: call.clone(), last }
            }
            Action::Rename(rename) => {
                live.remove(&rename.to);
                live.insert(rename.from);
                Step::Rename { from: rename.from, to: rename.to }
            }
            Action::Number(number) => Step::Number { to: number.to, value: number.value.clone() },
            Action::Repeat(repeat) => {
                // What the first of its steps looks at, the last one leaves.
                let mut before = live.clone();
                backwards(program, &repeat.actions, &mut before);
                live.extend(before.iter().copied());
                let mut again = live.clone();
                backwards(program, &repeat.actions, &mut again);
                live.extend(again.iter().copied());
                let mut inside = live.clone();
                let inner = backwards(program, &repeat.actions, &mut inside);
                Step::Repeat { times: repeat.times.clone(), steps: inner }
            }
        });
    }
    steps.reverse();
    steps
}
