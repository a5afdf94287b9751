//! The stencil of a test: its inputs and parameters.

use super::super::declare::new_field;
use super::super::scope::Binding;
use super::super::{Found, Lowering};
use super::Outline;
use super::parts::names;
use crate::ast;
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::{Body, Field, FieldId, Node, Param, ParamId, Role, Stencil, scalar};
use crate::source::Span;
use std::collections::BTreeMap;

/// What a value is for.
pub(super) enum Target {
    Field(FieldId),
    Param(ParamId),
}

impl<'a> Lowering<'a> {
    /// Writes the stencil that computes what the test gives.
    pub(super) fn give(&mut self, outline: &Outline<'a>, stencil: &Stencil) {
        self.declare_params_of(stencil);
        for (_, own) in stencil.own_fields() {
            self.define(&name_of(&own.name, own.span), Binding::Broken);
        }
        for binding in &outline.before {
            self.check_known(binding.value, stencil);
            self.define_let(binding);
        }
        let mut given: BTreeMap<&str, Span> = BTreeMap::new();
        let mut all_known = true;
        for assign in &outline.subject.values {
            let Some((name, target)) = self.target(assign, stencil) else {
                all_known = false;
                continue;
            };
            if self.is_given_again(name, &mut given) {
                continue;
            }
            self.check_known(assign.value, stencil);
            match target {
                Target::Field(id) => self.input(assign.value, &stencil.fields[id]),
                Target::Param(id) => self.set_param(id, assign.value, stencil),
            }
        }
        // What was meant to be given is not missing, too.
        if all_known {
            self.check_given(outline.subject, stencil, &given, true);
        }
        self.check_params(stencil);
    }

    /// Whether something is given a second time, which is reported.
    pub(super) fn is_given_again(&mut self, name: &'a ast::Name, given: &mut BTreeMap<&'a str, Span>) -> bool {
        let Some(before) = given.insert(&name.text, name.span) else { return false };
        let found = wrong(name.span, format!("`{}` is given twice", name.text), "given again here");
        self.tell(found.note(before, "given here first"));
        true
    }

    /// Sets a parameter. The test's own stencil has the same parameters as the tested one, and under the same numbers.
    pub(super) fn set_param(&mut self, id: ParamId, value: ast::ExprId, stencil: &Stencil) {
        let own = &stencil.params[id];
        let body = self.constant_body(value, Some(own.kind), &own.name);
        let body = body.and_then(|body| self.finite(body, value, own));
        self.stencil.params[id].default =
            body.filter(|body| !own.is_single || self.check_single(body, &own.name).is_some());
    }

    /// What a parameter is set to, which is as finite as what `--set` gives.
    fn finite(&mut self, body: Body, value: ast::ExprId, param: &Param) -> Found<Body> {
        let number = match self.constants.folded.value(&self.stencil, &body) {
            Some(scalar::Value::Real(number)) if !number.is_finite() => number,
            _ => return Some(body),
        };
        let what = if number.is_nan() { "not a number (NaN)" } else { "infinite" };
        let found = Diagnostic::error(self.span(value), format!("what `{}` is set to is {what}", param.name));
        self.report(found.label("a parameter is finite"))
    }

    /// The parameters of the tested stencil, first in this stencil of the test's own, and with the same names.
    pub(super) fn declare_params_of(&mut self, stencil: &Stencil) {
        for (_, own) in stencil.params.iter() {
            let id = self.stencil.params.add(Param { default: None, ..own.clone() });
            // Those of the file are found there.
            if self.globals.find(&own.name).is_none() {
                self.define(&name_of(&own.name, own.span), Binding::Param(id));
            }
        }
    }

    /// What is given a value.
    pub(super) fn target(&mut self, assign: &'a ast::Assign, stencil: &Stencil) -> Found<(&'a ast::Name, Target)> {
        let [ast::Target { name, index }] = assign.targets.as_slice() else {
            let place = assign.targets.first().map_or(assign.op.span, |target| target.name.span);
            let found = Diagnostic::error(place, "inputs are given one by one");
            return self.report(found.help("write one line for each input"));
        };
        if let Some(index) = index {
            let found = wrong(index.1, "an input is given on all cells at once", "no offset may stand here");
            let found = found.help("cells differ by their `i`, `j` and `k`, as in `if i == 3 { 1 } else { 0 }`");
            return self.report(found);
        }
        if assign.op.text != "=" {
            let message = format!("`{}` adds, but nothing is there yet", assign.op.text);
            return self.report(wrong(assign.op.span, message, "only `=` gives a value"));
        }
        if let Some((id, _)) = stencil.params.iter().find(|(_, param)| param.name == name.text) {
            return Some((name, Target::Param(id)));
        }
        match stencil.field_named(&name.text) {
            Some(id) if stencil.fields[id].role.is_read() => Some((name, Target::Field(id))),
            Some(id) => {
                let message = format!("`{}` is an output: `{}` computes it", name.text, stencil.name);
                let found = Diagnostic::error(name.span, message).label("given a value here");
                let found = found.note(stencil.fields[id].span, "declared as `out` here");
                self.report(
                    found.help(format!("say what it has to be after the stencil: `expect {} == ...`", name.text)),
                )
            }
            None => {
                let mut known: Vec<&str> = inputs(stencil).collect();
                known.extend(stencil.params.iter().map(|(_, param)| param.name.as_str()));
                let what = format!("stencil `{}` has no input or parameter `{}`", stencil.name, name.text);
                let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                self.report(Diagnostic::error(name.span, what).meant(guess(&name.text, known), |found| {
                    found.label("not one of its inputs").help(format!("it has {list}"))
                }))
            }
        }
    }

    /// Reports fields that a value is made of: they have no numbers before the stencil ran.
    fn check_known(&mut self, value: ast::ExprId, stencil: &Stencil) {
        for (name, span) in names(self.file, value) {
            if stencil.field_named(name).is_some() {
                let found = Diagnostic::error(span, format!("the field `{name}` has no numbers here"));
                self.tell(found.label("known only after the stencil ran").help(
                    "inputs are made of `i`, `j`, `k`, `ni`, `nj`, `nk`, parameters, and names given by `let` before the \
                     stencil",
                ));
            }
        }
    }

    fn input(&mut self, value: ast::ExprId, own: &Field) {
        if let Some(body) = self.body_as(value, own.stored.kind(), &own.name) {
            self.check_axes(&body, own, self.span(value));
            self.add_output(new_field(&own.name, Role::Out, own.place, own.stored, own.span), body);
        }
    }

    /// Reports parameters without a default, and inputs if all of them have to be given, that have no value.
    pub(super) fn check_given(
        &mut self,
        subject: &ast::TestedCall,
        stencil: &Stencil,
        given: &BTreeMap<&str, Span>,
        with_inputs: bool,
    ) {
        let params = stencil.params.iter().filter(|(_, param)| param.default.is_none());
        let needed = inputs(stencil).filter(|_| with_inputs).chain(params.map(|(_, param)| param.name.as_str()));
        let missing: Vec<&str> = needed.filter(|name| !given.contains_key(name)).collect();
        let [first, ..] = missing.as_slice() else { return };
        let list = missing.join("`, `");
        let example = match stencil.field_named(first) {
            Some(_) => format!("give numbers made of `i`, `j` and `k`, as in `{first} = 2*i + 3*j`"),
            None => format!("give a constant, as in `{first} = 1`"),
        };
        let found = Diagnostic::error(subject.name.span, format!("`{}` needs a value for `{list}`", stencil.name));
        self.tell(found.label("not given in the braces").help(example));
    }

    /// Reports parameters of the file that have no value: those that the stencil does not have cannot be given one.
    pub(super) fn check_params(&mut self, stencil: &Stencil) {
        let others = self.stencil.params.iter().skip(stencil.params.len());
        let without: Vec<(ParamId, String)> =
            others.filter(|(_, param)| param.default.is_none()).map(|(id, param)| (id, param.name.clone())).collect();
        for (id, name) in without {
            let nodes =
                self.stencil.bodies().flat_map(|body| body.iter().map(move |(at, node)| (body.span_of(at), node)));
            let Some((place, _)) = nodes.into_iter().find(|(_, node)| **node == Node::Param(id)) else { continue };
            let found = Diagnostic::error(place, format!("the parameter `{name}` has no value here"));
            let found = found.label(format!("`{}` does not use it", stencil.name));
            self.tell(found.help(format!("give it a default: `param {name} = ...`")));
        }
    }
}

/// The names of what a stencil reads.
fn inputs(stencil: &Stencil) -> impl Iterator<Item = &str> {
    stencil.fields.iter().filter(|(_, field)| field.role.is_read()).map(|(_, field)| field.name.as_str())
}

/// A name of the tested stencil.
pub(super) fn name_of(text: &str, span: Span) -> ast::Name {
    ast::Name { text: text.to_owned(), span }
}
