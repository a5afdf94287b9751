//! What is smaller than a program over a mesh: parts of the tree are dropped, or replaced by what they are made of.

use super::tree::{Action, Number, Program};
use crate::over::generate::shape;
use crate::over::tree::{Expr, Kind, Write};

/// Programs that are one step smaller, the greatest steps first.
pub fn smaller(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    let mut add = |change: &mut dyn FnMut(&mut Program)| {
        let mut own = program.clone();
        change(&mut own);
        let own = own.declared_as_used();
        if own.has_output() && own.to_string() != program.to_string() {
            all.push(own);
        }
    };
    for n in 0..count(&program.actions) {
        add(&mut |own| change_action(&mut own.actions, n, &mut |_| Vec::new()));
    }
    for n in 0..count(&program.actions) {
        add(&mut |own| change_action(&mut own.actions, n, &mut plainer));
    }
    for (n, stencil) in program.stencils.iter().enumerate() {
        add(&mut |own| own.stencils[n].zones = None);
        for write in 0..stencil.writes.len() {
            add(&mut |own| drop_write(own, n, write));
        }
        for value in 0..stencil.lets.len() + stencil.writes.len() {
            for node in 0..nodes(&mut value_of(&mut program.clone(), n, value).clone()) {
                for choice in 0..4 {
                    add(&mut |own| change_value(own, n, value, node, choice));
                }
            }
        }
    }
    if program.mesh.levels.is_some_and(|levels| levels > 1) {
        add(&mut |own| {
            own.mesh.levels = own.mesh.levels.map(|levels| levels - 1);
            let levels = own.mesh.levels;
            own.stencils.iter_mut().for_each(|stencil| stencil.mesh.levels = levels);
        });
    }
    all
}

fn count(actions: &[Action]) -> usize {
    let of = |action: &Action| match action {
        Action::Repeat(_, inner) => 1 + count(inner),
        Action::Call { .. } | Action::Rename { .. } | Action::Number { .. } => 1,
    };
    actions.iter().map(of).sum()
}

/// Puts something in the place of the action with this number.
fn change_action(actions: &mut Vec<Action>, number: usize, change: &mut dyn FnMut(Action) -> Vec<Action>) {
    let mut at = 0;
    for place in 0..actions.len() {
        let own = count(&actions[place..=place]);
        if at == number {
            let new = change(actions.remove(place));
            actions.splice(place..place, new);
            return;
        }
        if let Action::Repeat(_, inner) = &mut actions[place]
            && number < at + own
        {
            return change_action(inner, number - at - 1, change);
        }
        at += own;
    }
}

/// A loop that is run once; a call that starts from 0 and has plain numbers.
fn plainer(action: Action) -> Vec<Action> {
    match action {
        Action::Repeat(Number::Int(1), inner) => inner,
        Action::Repeat(_, inner) => vec![Action::Repeat(Number::Int(1), inner)],
        Action::Call { stencil, inputs, sums, params, targets, fresh, place: _ } => {
            let sums = vec![None; sums.len()];
            let params = params.iter().map(|_| Number::Real(0.5)).collect();
            let place = Default::default();
            vec![Action::Call { stencil, inputs, sums, params, targets, fresh, place }]
        }
        other @ (Action::Rename { .. } | Action::Number { .. }) => vec![other],
    }
}

/// A result less of a stencil; of several increments to a field, one.
fn drop_write(program: &mut Program, stencil: usize, write: usize) {
    let own = &mut program.stencils[stencil];
    let place = match own.writes[write].0 {
        Write::Inc(sum, ..) => {
            let is_last =
                own.writes.iter().filter(|(write, _)| matches!(write, Write::Inc(n, ..) if *n == sum)).count() == 1;
            if is_last {
                // Fields are called by their numbers, so it stays declared.
                return;
            }
            None
        }
        Write::Out(_) | Write::Reduce(..) => {
            let is_result = |(write, _): &&(Write, Expr)| !matches!(write, Write::Inc(..));
            Some(own.sums.len() + own.writes[..write].iter().filter(is_result).count())
        }
    };
    if place.is_some() && own.writes.len() < 2 {
        return;
    }
    own.writes.remove(write);
    for sweep in &mut own.sweeps {
        sweep.writes.retain(|own| *own != write);
        sweep.writes.iter_mut().filter(|own| **own > write).for_each(|own| *own -= 1);
    }
    if let Some(place) = place {
        each_call(&mut program.actions, stencil, &mut |targets| {
            targets.remove(place);
        });
    }
}

fn each_call(actions: &mut [Action], of: usize, change: &mut dyn FnMut(&mut Vec<usize>)) {
    for action in actions {
        match action {
            Action::Call { stencil, targets, .. } if *stencil == of => change(targets),
            Action::Repeat(_, inner) => each_call(inner, of, change),
            Action::Call { .. } | Action::Rename { .. } | Action::Number { .. } => {}
        }
    }
}

fn value_of(program: &mut Program, stencil: usize, value: usize) -> &mut Expr {
    let own = &mut program.stencils[stencil];
    let lets = own.lets.len();
    if value < lets { &mut own.lets[value].value } else { &mut own.writes[value - lets].1 }
}

fn nodes(expr: &mut Expr) -> usize {
    1 + expr.children_mut().into_iter().map(nodes).sum::<usize>()
}

/// Puts a part of an expression, or a number, in its place.
fn change_value(program: &mut Program, stencil: usize, value: usize, node: usize, choice: usize) {
    fn find(expr: &mut Expr, number: usize) -> Option<&mut Expr> {
        if number == 0 {
            return Some(expr);
        }
        let mut at = 1;
        for child in expr.children_mut() {
            let own = nodes(child);
            if number < at + own {
                return find(child, number - at);
            }
            at += own;
        }
        None
    }
    let before = program.stencils[stencil].clone();
    let Some(own) = find(value_of(program, stencil, value), node) else { return };
    let (kind, parts) = shape(&before, own);
    let is_plain = matches!(own, Expr::Real(_) | Expr::Int(_)) || matches!(own, Expr::Vector(_));
    let number = if kind == Kind::Int { Expr::Int(1) } else { Expr::Real(0.5) };
    let new = match choice {
        0 if !is_plain && parts == 1 => number,
        0 if !is_plain => Expr::Vector(vec![number; parts]),
        0 => return,
        choice => match own.children_mut().into_iter().nth(choice - 1) {
            Some(child) if shape(&before, child) == (kind, parts) => child.clone(),
            _ => return,
        },
    };
    *own = new;
}
