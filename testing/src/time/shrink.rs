//! What is smaller than a program in time: parts of the tree are dropped, or replaced by what they are made of.

use super::case::Case;
use super::tree::{Action, Number, Op, Stencil, Swept, Term, Timed};

/// Cases that are one step smaller, the greatest steps first.
pub fn smaller(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Timed)| {
        let mut timed = case.timed.clone();
        change(&mut timed);
        all.push(Case { timed, ..case.clone() });
    };
    for n in 0..count(&case.timed.actions) {
        add(&|timed| change_action(&mut timed.actions, n, &mut |_| Vec::new()));
    }
    for n in 0..count(&case.timed.actions) {
        add(&|timed| change_action(&mut timed.actions, n, &mut flattened));
        add(&|timed| change_action(&mut timed.actions, n, &mut once));
        for axis in 0..3 {
            add(&|timed| change_action(&mut timed.actions, n, &mut |action| everywhere(action, axis)));
        }
    }
    for n in 0..case.timed.boundaries.len() {
        add(&|timed| {
            timed.boundaries.remove(n);
        });
        for axis in 0..3 {
            if case.timed.boundaries[n].rules[axis] != [None; 2] {
                add(&|timed| timed.boundaries[n].rules[axis] = [None; 2]);
            }
        }
    }
    for n in 0..case.timed.stencils.len() {
        let outputs = case.timed.stencils[n].outputs.len();
        for output in 0..outputs {
            if outputs > 1 {
                add(&|timed| drop_output(timed, n, output));
            }
        }
        // From the last, which nothing below may need.
        for sweep in (0..case.timed.stencils[n].sweeps.len()).rev() {
            let values = case.timed.stencils[n].sweeps[sweep].values.iter().enumerate().rev();
            for (value, (own, _)) in values {
                if matches!(own, Swept::Let(_)) {
                    add(&|timed| {
                        timed.stencils[n].sweeps[sweep].values.remove(value);
                        timed.stencils[n].sweeps.retain(|own| !own.values.is_empty());
                    });
                } else {
                    add(&|timed| out_of_sweep(&mut timed.stencils[n], sweep, value));
                }
            }
        }
        for field in 0..case.timed.stencils[n].fields.len() {
            add(&|timed| drop_input(timed, n, field));
        }
        for term in 0..terms(&case.timed, n) {
            for choice in 0..4 {
                add(&|timed| change_term(timed, n, term, choice));
            }
        }
    }
    // What changed nothing is no smaller.
    let text = case.timed.to_string();
    all.retain(|own| own.timed.to_string() != text);
    let axes = if let Some(graph) = &case.graph {
        all.extend(graph.smaller().into_iter().map(|graph| case.clone().linked(graph)));
        2..3
    } else {
        0..3
    };
    for axis in axes {
        let mut extents = case.extents;
        extents[axis] -= 1;
        if extents[axis] > 0 {
            all.push(Case { extents, ..case.clone() });
        }
    }
    all
}

/// How many actions there are, those in loops among them.
fn count(actions: &[Action]) -> usize {
    let of = |action: &Action| match action {
        Action::Repeat(_, inner) => 1 + count(inner),
        Action::Call { .. } | Action::Rename { .. } | Action::Let(..) => 1,
    };
    actions.iter().map(of).sum()
}

/// Puts something in the place of the action with this number.
fn change_action(actions: &mut Vec<Action>, number: usize, change: &mut dyn FnMut(Action) -> Vec<Action>) {
    let mut at = 0;
    for place in 0..actions.len() {
        if at == number {
            let old = actions.remove(place);
            let new = change(old);
            actions.splice(place..place, new);
            return;
        }
        let own = count(&actions[place..=place]);
        if number < at + own {
            if let Action::Repeat(_, inner) = &mut actions[place] {
                change_action(inner, number - at - 1, change);
            }
            return;
        }
        at += own;
    }
}

/// What is in a loop, without it.
fn flattened(action: Action) -> Vec<Action> {
    match action {
        Action::Repeat(_, inner) => inner,
        other => vec![other],
    }
}

/// A loop that is run once or twice; a call whose numbers are plain.
fn once(action: Action) -> Vec<Action> {
    vec![match action {
        Action::Repeat(Number::Whole(n), inner) => Action::Repeat(Number::Whole(n.min(3) - i64::from(n > 1)), inner),
        Action::Repeat(_, inner) => Action::Repeat(Number::Whole(2), inner),
        Action::Call { stencil, reads, params, targets, fresh, within } => {
            let params = params.iter().map(|own| own.as_ref().map(|_| Number::Literal(0.5))).collect();
            Action::Call { stencil, reads, params, targets, fresh, within }
        }
        other @ (Action::Rename { .. } | Action::Let(..)) => other,
    }]
}

/// A call that says nothing of an axis.
fn everywhere(mut action: Action, axis: usize) -> Vec<Action> {
    if let Action::Call { within, .. } = &mut action {
        within.retain(|own| own.axis != axis);
    }
    vec![action]
}

/// Calls `change` with every call of a stencil.
fn each_call(actions: &mut [Action], of: usize, change: &mut dyn FnMut(&mut Vec<usize>, &mut Vec<usize>)) {
    for action in actions {
        match action {
            Action::Call { stencil, reads, targets, .. } if *stencil == of => change(reads, targets),
            Action::Repeat(_, inner) => each_call(inner, of, change),
            Action::Call { .. } | Action::Rename { .. } | Action::Let(..) => {}
        }
    }
}

/// A field that a sweep assigns is assigned after all of them.
fn out_of_sweep(stencil: &mut Stencil, sweep: usize, value: usize) {
    let (own, term) = stencil.sweeps[sweep].values.remove(value);
    if let Swept::Field(field) = own {
        stencil.outputs.push((field, term));
    }
    stencil.sweeps.retain(|own| !own.values.is_empty());
}

fn drop_output(timed: &mut Timed, stencil: usize, output: usize) {
    let (field, _) = timed.stencils[stencil].outputs.remove(output);
    let (role, _) = timed.stencils[stencil].fields[field];
    let written = |n: &usize| timed.stencils[stencil].fields[*n].0.is_written();
    let place = (0..field).filter(written).count();
    each_call(&mut timed.actions, stencil, &mut |_, targets| {
        targets.remove(place);
    });
    if role.is_read() {
        timed.stencils[stencil].fields[field].0 = super::tree::Role::In;
    } else {
        remove_field(timed, stencil, field);
    }
}

/// An input that is not read goes.
fn drop_input(timed: &mut Timed, stencil: usize, field: usize) {
    let own = &timed.stencils[stencil];
    if own.fields[field].0 != super::tree::Role::In || own.fields.len() < 2 {
        return;
    }
    let place = (0..field).filter(|&n| own.fields[n].0.is_read()).count();
    each_call(&mut timed.actions, stencil, &mut |reads, _| {
        reads.remove(place);
    });
    let other = (0..own.fields.len()).find(|&n| n != field && own.fields[n].0.is_read());
    each_term(timed, stencil, &mut |term| {
        if let Term::Read(read, _) = term
            && *read == field
        {
            *term = other.map_or(Term::Number(0.5), |other| Term::Read(other, [0; 3]));
        } else if let Term::Moved(read, [by, _]) | Term::ByNumber(read, [by, _]) = term
            && read.contains(&field)
        {
            *term = if read[1] == field { Term::Read(read[0], [by[0], by[1], 0]) } else { Term::Number(0.5) };
        } else if let Term::OnLevel(read, ..) = term
            && *read == field
        {
            *term = Term::Number(0.5);
        }
    });
    remove_field(timed, stencil, field);
}

fn remove_field(timed: &mut Timed, stencil: usize, field: usize) {
    timed.stencils[stencil].fields.remove(field);
    let own = &mut timed.stencils[stencil];
    let swept = own.sweeps.iter_mut().flat_map(|sweep| &mut sweep.values);
    let swept = swept.filter_map(|(own, _)| if let Swept::Field(field) = own { Some(field) } else { None });
    for own in own.outputs.iter_mut().map(|(own, _)| own).chain(swept) {
        *own -= usize::from(*own > field);
    }
    each_term(timed, stencil, &mut |term| {
        if let Term::Read(own, _) | Term::Swept(Swept::Field(own), _) = term {
            *own -= usize::from(*own > field);
        }
        if let Term::OnLevel(own, ..) = term {
            *own -= usize::from(*own > field);
        }
        if let Term::Moved(both, _) | Term::ByNumber(both, _) = term {
            both.iter_mut().for_each(|own| *own -= usize::from(*own > field));
        }
    });
}

/// Calls `change` with every term of a stencil, outer ones first.
fn each_term(timed: &mut Timed, stencil: usize, change: &mut dyn FnMut(&mut Term)) {
    fn walk(term: &mut Term, change: &mut dyn FnMut(&mut Term)) {
        change(term);
        term.children_mut().into_iter().for_each(|child| walk(child, change));
    }
    let own = &mut timed.stencils[stencil];
    own.lets.iter_mut().for_each(|term| walk(term, change));
    let swept = own.sweeps.iter_mut().flat_map(|sweep| &mut sweep.values);
    swept.for_each(|(_, term)| walk(term, change));
    own.outputs.iter_mut().for_each(|(_, term)| walk(term, change));
}

fn terms(timed: &Timed, stencil: usize) -> usize {
    let mut count = 0;
    each_term(&mut timed.clone(), stencil, &mut |_| count += 1);
    count
}

/// Puts something smaller in the place of a term.
fn change_term(timed: &mut Timed, stencil: usize, number: usize, choice: usize) {
    let lets = timed.stencils[stencil].lets.clone();
    let mut at = 0;
    let mut found = None;
    each_term(timed, stencil, &mut |term| {
        if at == number {
            found = smaller_term(term, choice, &lets);
        }
        at += 1;
    });
    let Some(new) = found else { return };
    at = 0;
    each_term(timed, stencil, &mut |term| {
        if at == number {
            *term = new.clone();
        }
        at += 1;
    });
}

fn smaller_term(term: &Term, choice: usize, lets: &[Term]) -> Option<Term> {
    match (term, choice) {
        (Term::Read(field, by), axis @ 0..3) if by[axis] != 0 => {
            let mut less = *by;
            less[axis] -= by[axis].signum();
            Some(Term::Read(*field, less))
        }
        (Term::Moved([field, levels], [by, at]), axis @ 0..3) if by[axis] != 0 || at[axis] != 0 => {
            let (mut by, mut at) = (*by, *at);
            (by[axis], at[axis]) = (0, 0);
            Some(Term::Moved([*field, *levels], [by, at]))
        }
        (Term::ByNumber(both, [by, at]), axis @ 0..3) if by[axis] != 0 || at[axis] != 0 => {
            let (mut by, mut at) = (*by, *at);
            (by[axis], at[axis]) = (0, 0);
            Some(Term::ByNumber(*both, [by, at]))
        }
        (Term::Moved([field, _], [by, _]) | Term::ByNumber([field, _], [by, _]), 3) => {
            Some(Term::Read(*field, [by[0], by[1], 0]))
        }
        (Term::OnLevel(field, [i, j], _), 3) => Some(Term::Read(*field, [*i, *j, 0])),
        (Term::OnLevel(..) | Term::ByNumber(..), _) => None,
        (Term::Use(own, by), axis @ 0..3) if by[axis] != 0 => {
            let mut less = *by;
            less[axis] -= by[axis].signum();
            Some(Term::Use(*own, less))
        }
        (Term::Use(own, [0, 0, 0]), 3) => lets.get(*own).cloned(),
        (Term::Number(_) | Term::Whole(_) | Term::Read(..) | Term::Moved(..) | Term::Use(..) | Term::Swept(..), _) => {
            None
        }
        (Term::Param(_) | Term::Level, 0) => Some(Term::Number(0.5)),
        (Term::Binary(Op::Sub | Op::Mul | Op::Min | Op::Max, a, b), 2) => {
            Some(Term::Binary(Op::Add, a.clone(), b.clone()))
        }
        (other, choice) => other.children().get(choice).map(|child| (*child).clone()),
    }
}
