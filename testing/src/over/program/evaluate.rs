//! What a program over a mesh means: its stencils are evaluated, and what they give gets names.

use super::tree::{Action, End, Number, Program};
use crate::over::evaluate::{Evaluation, empty_array};
use crate::over::tree::Write;
use std::collections::BTreeMap;

/// What variables hold; numbers are alone in theirs.
pub type Arrays = BTreeMap<usize, Vec<f64>>;

/// What a program comes to, if each call has a level to compute. `arrays` holds what is given.
pub fn run(program: &Program, single: bool, mut arrays: Arrays) -> Option<Arrays> {
    let round = |x: f64| if single { f64::from(x as f32) } else { x };
    done(program, &round, single, &program.actions, &mut arrays)?;
    Some(arrays)
}

fn done(
    program: &Program,
    round: &dyn Fn(f64) -> f64,
    single: bool,
    actions: &[Action],
    arrays: &mut Arrays,
) -> Option<()> {
    for action in actions {
        match action {
            Action::Call { stencil, inputs, sums, params, targets, fresh, place } => {
                let own = &program.stencils[*stencil];
                let inputs: Vec<Vec<f64>> = inputs.iter().map(|n| arrays[n].clone()).collect();
                let params: Vec<f64> = params.iter().map(|value| number(program, round, value, arrays)).collect();
                let sums = own.sums.iter().zip(sums).map(|(field, from)| match from {
                    Some(from) => arrays[from].clone(),
                    None => vec![0.0; empty_array(&program.mesh, field).len()],
                });
                let sums = sums.collect();
                let value = |own: &Number| number(program, round, own, arrays) as i64;
                let all = program.mesh.levels.unwrap_or(1) as i64;
                let levels = place.levels.as_ref().map(|(first, end)| {
                    let first = value(first);
                    first..match end {
                        None => first + 1,
                        Some(End::All(by)) => all + by,
                        Some(End::At(end)) => value(end),
                    }
                });
                let evaluation = Evaluation::new(own, single, &inputs, &params).on(place.zones, levels);
                let mut written = targets[own.sums.len()..].iter();
                let before = own.writes.iter().map(|(write, _)| match write {
                    Write::Inc(..) => Vec::new(),
                    Write::Reduce(..) => {
                        written.next();
                        Vec::new()
                    }
                    // What is not computed stays, but for what is new.
                    Write::Out(_) => {
                        let old = written.next().filter(|_| !fresh);
                        old.and_then(|target| arrays.get(target)).cloned().unwrap_or_else(|| evaluation.fresh(write))
                    }
                });
                let before = before.collect();
                let found = evaluation.run(sums, before)?;
                let writes = found.writes.into_iter().zip(&own.writes);
                let writes = writes.filter(|(_, (write, _))| !matches!(write, Write::Inc(..))).map(|(all, _)| all);
                arrays.extend(targets.iter().copied().zip(found.sums.into_iter().chain(writes)));
            }
            Action::Rename { from, to, .. } => {
                arrays.insert(*to, arrays[from].clone());
            }
            Action::Number { to, value, .. } => {
                arrays.insert(*to, vec![number(program, round, value, arrays)]);
            }
            Action::Repeat(times, inner) => {
                for _ in 0..number(program, round, times, arrays) as i64 {
                    done(program, round, single, inner, arrays)?;
                }
            }
        }
    }
    Some(())
}

fn number(program: &Program, round: &dyn Fn(f64) -> f64, own: &Number, arrays: &Arrays) -> f64 {
    match own {
        Number::Real(x) => round(*x),
        Number::Int(x) => f64::from(*x),
        Number::Param(n) => round(program.params[*n].0),
        Number::Of(n) => arrays[n][0],
        Number::Size(set) => program.mesh.sets[*set] as f64,
        Number::Binary(op, a, b) => {
            let (a, b) = (number(program, round, a, arrays), number(program, round, b, arrays));
            round(match op {
                '+' => a + b,
                '-' => a - b,
                '*' => a * b,
                _ => a / b,
            })
        }
    }
}
