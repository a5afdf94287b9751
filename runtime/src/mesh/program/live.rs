//! What a program does, and which variables nobody looks at after that: their arrays may be written again, or used for
//! something else.

use std::collections::BTreeSet;
use stencilc_compiler::analysis::levels::leaves_levels;
use stencilc_compiler::ir::program::{Action, Call, Program, Variable};
use stencilc_compiler::ir::{Body, MeshProgram, Precision, Role, VariableId};
use stencilc_compiler::mesh::{Chain, Link};

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
    /// Computes several stencils by one kernel.
    Chain {
        /// The call that stands for all of them.
        call: Call,
        /// What they read that nobody looks at later.
        last: BTreeSet<VariableId>,
        /// The calls by themselves, for those who compute them so.
        apart: Vec<Step>,
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
        /// The number that counts the turns.
        counter: Option<VariableId>,
        /// What.
        steps: Vec<Step>,
    },
}

/// What `program` does. Outputs are looked at when it ends, and after each step of its outermost loops.
pub(crate) fn steps(program: &Program) -> Vec<Step> {
    let is_wanted = |own: &Variable| own.is_shown || own.role.is_some_and(Role::is_written);
    let wanted = program.variables.iter().filter(|(_, own)| is_wanted(own));
    let mut live: BTreeSet<VariableId> = wanted.map(|(id, _)| id).collect();
    backwards(program, &program.actions, &mut live)
}

/// The variables whose old values may stay on some levels or in some zones, where a call writes them: what is declared has some, and so has
/// what was written before.
pub(super) fn kept<'a>(program: &'a Program, call: &'a Call) -> impl Iterator<Item = VariableId> {
    // A chain computes all levels.
    let is_kept = program.stencils.get(call.stencil).is_some_and(|own| leaves_levels(own) || own.zones.is_some());
    let has_old = |id| program.variables[id].role.is_some() || !program.begins(id, call);
    call.writes().filter(move |&id| is_kept && has_old(id))
}

/// The same steps, with calls that one kernel can compute as chains. Stencils are prepared.
pub(crate) fn chained(
    program: &MeshProgram,
    precision: Precision,
    steps: Vec<Step>,
    chains: &mut Vec<Chain>,
) -> Vec<Step> {
    let (mut all, mut calls) = (Vec::new(), Vec::new());
    for step in steps {
        if let Step::Call { .. } = step {
            calls.push(step);
            continue;
        }
        all.append(&mut in_chains(program, precision, std::mem::take(&mut calls), chains));
        all.push(match step {
            Step::Repeat { times, counter, steps } => {
                Step::Repeat { times, counter, steps: chained(program, precision, steps, chains) }
            }
            Step::Call { .. } | Step::Chain { .. } | Step::Rename { .. } | Step::Number { .. } => step,
        });
    }
    all.append(&mut in_chains(program, precision, calls, chains));
    all
}

/// Calls that follow each other, with chains where these can be.
fn in_chains(program: &MeshProgram, precision: Precision, mut calls: Vec<Step>, chains: &mut Vec<Chain>) -> Vec<Step> {
    let mut all = Vec::new();
    while !calls.is_empty() {
        let links: Vec<Link> = calls
            .iter()
            .filter_map(|step| if let Step::Call { call, last } = step { Some(Link { call, last }) } else { None })
            .collect();
        let Some((mut chain, count)) = Chain::first(program, precision, &links) else {
            all.push(calls.remove(0));
            continue;
        };
        let last = links[..count].iter().flat_map(|link| link.last.iter().copied()).collect();
        chain.call.stencil = program.stencils.len() + chains.len();
        let call = chain.call.clone();
        chains.push(chain);
        let apart: Vec<Step> = calls.drain(..count).collect();
        all.push(Step::Chain { call, last, apart });
    }
    all
}

/// The variables that actions look at before they write them. That is all that a loop of them adds to what is looked at after it, however
/// often it is done; so the steps of loops in loops are followed once for each loop around them.
fn looked_at(program: &Program, actions: &[Action]) -> BTreeSet<VariableId> {
    let mut live = BTreeSet::new();
    for action in actions.iter().rev() {
        match action {
            Action::Call(call) => {
                call.writes().for_each(|id| {
                    live.remove(&id);
                });
                live.extend(kept(program, call));
                live.extend(call.reads());
            }
            Action::Rename(rename) => {
                live.remove(&rename.to);
                live.insert(rename.from);
            }
            Action::Number(_) => {}
            Action::Repeat(repeat) => live.extend(looked_at(program, &repeat.actions)),
        }
    }
    live
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
                // What gets a new value is looked at once more at most, to be kept where it stays.
                let last = call.reads().filter(|id| !live.contains(id)).collect();
                live.extend(kept(program, call));
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
                live.extend(looked_at(program, &repeat.actions));
                let inner = backwards(program, &repeat.actions, &mut live.clone());
                Step::Repeat { times: repeat.times.clone(), counter: repeat.counter, steps: inner }
            }
        });
    }
    steps.reverse();
    steps
}
