//! Assignments of outputs.

use super::scope::Binding;
use super::{Found, Lowering};
use crate::ast::{self, Expr, ExprId};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// `res = ...`
    pub(super) fn assign(&mut self, assign: &'a ast::Assign) {
        let [target] = assign.targets.as_slice() else {
            let place = assign.targets.first().map_or(Span::default(), |target| target.name.span);
            let last = assign.targets.last().map_or(place, |target| target.name.span);
            let found = wrong(place.to(last), "outputs are assigned one by one", "several at once");
            self.tell(found.help("as in `b = ...; c = ...`"));
            // That they are not assigned would be the same error again.
            let names = assign.targets.iter().map(|target| (target.name.text.clone(), target.name.span));
            return self.scope.assigned.extend(names);
        };
        if self.is_over_mesh() {
            return self.mesh_assign(assign, target);
        }
        let (name, text) = (&target.name, &target.name.text);
        let field = self.field_at(text);
        let declared = field.map(|field| self.stencil.fields[field].clone());
        if declared.as_ref().is_some_and(|field| field.role.is_written())
            && (target.index.is_some() || assign.op.text != "=")
        {
            // It was meant to be assigned: that it is not would be the same error again.
            self.scope.assigned.insert(text.clone(), name.span);
        }
        if let Some((parts, index)) = &target.index {
            let index = *index;
            if let Some(found) = self.assigned_on_level(text, parts, index) {
                return self.tell(found);
            }
            let found = Diagnostic::error(index, "an output is assigned at the cell itself").label("leave this out");
            return self.tell(found.help(format!(
                "write `{text} = ...`: the formula holds on every cell, and nobody writes the cell's indices; an offset \
                 belongs to what is read, with the opposite sign"
            )));
        }
        if assign.op.text != "=" {
            if matches!(self.scope.binding(text), Some(Binding::Broken)) {
                return;
            }
            let found = Diagnostic::error(assign.op.span, "an output is assigned with `=`, and once");
            return self.tell(if declared.is_some_and(|field| field.role.is_read()) {
                found
                    .label(format!("write `{text} = {text} {} ...`", assign.op.text.trim_end_matches('=')))
                    .help("the value that is read is the one before")
            } else {
                found
                    .label(format!("write `{text} = ...`"))
                    .help("collect the sum in a `let`, and assign that: nobody adds to an output")
            });
        }
        let (Some(field), Some(declared)) = (field, declared) else {
            return self
                .no_target(name, format!("declare it with `out {text}`, or name a value with `let {text} = ...`"));
        };
        if !declared.role.is_written() {
            let found = wrong(name.span, format!("`{text}` is an input: it cannot be assigned"), "assigned here");
            let found = found.note(declared.span, "declared as `in` here");
            return self.tell(found.help("declare it as `inout` to read the value before and write a new one"));
        }
        if self.check_first(name, self.scope.assigned.get(text).copied()).is_none() {
            return;
        }
        self.scope.assigned.insert(text.clone(), name.span);
        if let Some(body) = self.body_as(assign.value, declared.stored.kind(), text) {
            self.check_axes(&body, &declared, self.span(assign.value));
            self.store(field, body);
        }
    }

    /// What is wrong with `res[level 0] = ...`, if that is what is written.
    pub(super) fn assigned_on_level(&self, name: &str, index: &[ExprId], at: Span) -> Option<Diagnostic> {
        let is_level = |part: &ExprId| matches!(self.file.exprs[*part], Expr::Level(_));
        index.iter().any(is_level).then(|| {
            wrong(at, "an output is assigned on the levels that are computed", "leave this out").help(format!(
                "write `{name} = ...`; which level is computed a stencil says by `level 0` above it, and a call by `on level 0`"
            ))
        })
    }

    /// Reports what was assigned before.
    pub(super) fn check_first(&mut self, name: &ast::Name, before: Option<Span>) -> Found<()> {
        let Some(before) = before else { return Some(()) };
        let found = wrong(name.span, format!("`{}` is assigned twice", name.text), "assigned again here");
        let found = found.note(before, "assigned here first");
        self.report(found.help("collect the value in a `let`, or choose it with `if`, and assign it once"))
    }

    /// Reports an assignment to what is no field, with what to do if it was to be one.
    pub(super) fn no_target(&mut self, name: &'a ast::Name, help: String) {
        self.scope.assigned.insert(name.text.clone(), name.span);
        if let Some(symbol) = self.scope.find(&name.text).cloned() {
            if !matches!(symbol.binding, Binding::Broken) {
                let message = format!("{} `{}` cannot be assigned again", symbol.what, name.text);
                let found = wrong(name.span, message, "assigned here").note(symbol.span, "defined here");
                self.tell(found.help("a name means one value: give the new one a name of its own, with `let`"));
            }
            return;
        }
        let meant = guess(&name.text, self.outputs().map(|field| field.name.as_str())).map(str::to_owned);
        let found = Diagnostic::error(name.span, format!("`{}` is no output of this stencil", name.text));
        self.tell(found.meant(meant.as_deref(), |found| found.label("not declared")).help(help));
        // That it is never assigned would be the same error again.
        self.scope.assigned.extend(meant.map(|meant| (meant, name.span)));
        self.define(name, Binding::Broken);
    }
}
