//! The stencil of a test: its inputs and parameters.

use super::super::scope::Binding;
use super::super::{Found, Lowering};
use super::parts::names;
use super::{Outline, field};
use crate::ast;
use crate::diagnostic::{Diagnostic, guess};
use crate::ir::{Body, Field, FieldId, Node, Param, ParamId, Role, Stencil, Store};
use crate::source::Span;
use std::collections::BTreeMap;

/// What a value is for.
enum Target {
    Field(FieldId),
    Param(ParamId),
}

impl<'a> Lowering<'a> {
    /// Writes the stencil that computes what the test gives.
    pub(super) fn give(&mut self, outline: &Outline<'a>, stencil: &Stencil) {
        self.declare_params_of(stencil);
        for (_, own) in stencil.own_fields() {
            self.define(&ast::Name { text: own.name.clone(), span: own.span }, Binding::Broken);
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
            if let Some(before) = given.insert(&name.text, name.span) {
                self.report::<()>(
                    Diagnostic::error(name.span, format!("`{}` is given twice", name.text))
                        .label("given again here")
                        .note(before, "given here first"),
                );
                continue;
            }
            self.check_known(assign.value, stencil);
            match target {
                Target::Field(id) => self.input(assign.value, &stencil.fields[id]),
                Target::Param(id) => self.setting(assign.value, &stencil.params[id]),
            }
        }
        // What was meant to be given is not missing, too.
        if all_known {
            self.check_given(outline.subject, stencil, &given);
        }
        self.check_params(stencil);
    }

    /// The parameters of the tested stencil, first in this stencil of the test's own, and with the same names.
    pub(super) fn declare_params_of(&mut self, stencil: &Stencil) {
        for (_, own) in stencil.params.iter() {
            let id = self.stencil.params.add(Param { default: None, ..own.clone() });
            // Those of the file are found there.
            if self.globals.find(&own.name).is_none() {
                self.define(&ast::Name { text: own.name.clone(), span: own.span }, Binding::Param(id));
            }
        }
    }

    /// What is given a value.
    fn target(&mut self, assign: &'a ast::Assign, stencil: &Stencil) -> Found<(&'a ast::Name, Target)> {
        let [ast::Target { name, index }] = assign.targets.as_slice() else {
            let place = assign.targets.first().map_or(assign.op.span, |target| target.name.span);
            return self
                .report(Diagnostic::error(place, "inputs are given one by one").help("write one line for each input"));
        };
        if let Some(index) = index {
            return self.report(
                Diagnostic::error(index.1, "an input is given on all cells at once")
                    .label("no offset may stand here")
                    .help("cells differ by their `i`, `j` and `k`, as in `if i == 3 { 1 } else { 0 }`"),
            );
        }
        if assign.op.text != "=" {
            return self.report(
                Diagnostic::error(assign.op.span, format!("`{}` adds, but nothing is there yet", assign.op.text))
                    .label("only `=` gives a value"),
            );
        }
        if let Some((id, _)) = stencil.params.iter().find(|(_, param)| param.name == name.text) {
            return Some((name, Target::Param(id)));
        }
        match stencil.field_named(&name.text) {
            Some(id) if stencil.fields[id].role.is_read() => Some((name, Target::Field(id))),
            Some(id) => self.report(
                Diagnostic::error(name.span, format!("`{}` is an output: `{}` computes it", name.text, stencil.name))
                    .label("given a value here")
                    .note(stencil.fields[id].span, "declared as `out` here")
                    .help(format!("say what it has to be after the stencil: `expect {} == ...`", name.text)),
            ),
            None => {
                let inputs = stencil.fields.iter().filter(|(_, field)| field.role.is_read());
                let mut known: Vec<&str> = inputs.map(|(_, field)| field.name.as_str()).collect();
                known.extend(stencil.params.iter().map(|(_, param)| param.name.as_str()));
                let what = format!("stencil `{}` has no input or parameter `{}`", stencil.name, name.text);
                let diagnostic = Diagnostic::error(name.span, what);
                let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                self.report(match guess(&name.text, known) {
                    Some(guess) => diagnostic.label(format!("did you mean `{guess}`?")),
                    None => diagnostic.label("not one of its inputs").help(format!("it has {list}")),
                })
            }
        }
    }

    /// Reports fields that a value is made of: they have no numbers before the stencil ran.
    fn check_known(&mut self, value: ast::ExprId, stencil: &Stencil) {
        for (name, span) in names(self.file, value) {
            if stencil.field_named(name).is_some() {
                self.report::<()>(
                    Diagnostic::error(span, format!("the field `{name}` has no numbers here"))
                        .label("known only after the stencil ran")
                        .help(
                            "inputs are made of `i`, `j`, `k`, `ni`, `nj`, `nk`, parameters, and names given by `let` \
                             before the stencil",
                        ),
                );
            }
        }
    }

    fn input(&mut self, value: ast::ExprId, own: &Field) {
        let span = self.file.exprs.span(value);
        self.bodies.push(Body::new());
        let node = self.scalar(value).and_then(|node| self.convert(node, own.stored.kind(), span, &own.name));
        let body = self.bodies.pop().unwrap_or_default();
        if let Some(node) = node {
            let body = body.rooted(node);
            self.check_axes(&body, own, span);
            let field =
                self.stencil.fields.add(Field { span: own.span, ..field(&own.name, Role::Out, own.place, own.stored) });
            self.stencil.stores.push(Store { field, body, sweep: None });
        }
    }

    fn setting(&mut self, value: ast::ExprId, own: &Param) {
        let body = self.constant_body(value, Some(own.kind), &own.name);
        let id = self.stencil.params.iter().find(|(_, param)| param.span == own.span).map(|(id, _)| id);
        if let (Some(id), Some(body)) = (id, body) {
            self.stencil.params[id].default = Some(body);
        }
    }

    /// Reports inputs, and parameters without a default, that have no value.
    fn check_given(&mut self, subject: &ast::TestedCall, stencil: &Stencil, given: &BTreeMap<&str, Span>) {
        let inputs = stencil.fields.iter().filter(|(_, field)| field.role.is_read()).map(|(_, field)| &field.name);
        let params = stencil.params.iter().filter(|(_, param)| param.default.is_none()).map(|(_, param)| &param.name);
        let missing: Vec<&str> =
            inputs.chain(params).map(String::as_str).filter(|name| !given.contains_key(name)).collect();
        let [first, ..] = missing.as_slice() else { return };
        let list = missing.join("`, `");
        let example = match stencil.field_named(first) {
            Some(_) => format!("give numbers made of `i`, `j` and `k`, as in `{first} = 2*i + 3*j`"),
            None => format!("give a constant, as in `{first} = 1`"),
        };
        self.report::<()>(
            Diagnostic::error(subject.name.span, format!("`{}` needs a value for `{list}`", stencil.name))
                .label("not given in the braces")
                .help(example),
        );
    }

    /// Reports parameters of the file that have no value: those that the stencil does not have cannot be given one.
    pub(super) fn check_params(&mut self, stencil: &Stencil) {
        let others = self.stencil.params.iter().skip(stencil.params.len());
        let without: Vec<(ParamId, String)> =
            others.filter(|(_, param)| param.default.is_none()).map(|(id, param)| (id, param.name.clone())).collect();
        for (id, name) in without {
            let bodies = self.stencil.bodies();
            let used = bodies.flat_map(|body| body.iter().map(move |(at, node)| (body.span_of(at), node)));
            let place = used.filter(|(_, node)| **node == Node::Param(id)).map(|(span, _)| span).next();
            let Some(place) = place else { continue };
            self.report::<()>(
                Diagnostic::error(place, format!("the parameter `{name}` has no value here"))
                    .label(format!("`{}` does not use it", stencil.name))
                    .help(format!("give it a default: `param {name} = ...`")),
            );
        }
    }
}
