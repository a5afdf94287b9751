//! Numbers that change: those of turns, what is made of them, and what reductions leave over a mesh.

use super::call::outputs;
use super::{Programmer, new_variable};
use crate::ast::{self, ExprId};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::program::{Action, Assignment};
use crate::ir::{Body, FieldId, Handle, Kind, Node, Place, Role, Stored, VariableId};
use crate::lower::declare::new_field;
use crate::lower::scope::Binding;
use crate::lower::{Found, Lowering};

impl Lowering<'_> {
    /// The field that stands for a number of the program, in the bodies of its numbers.
    pub(in crate::lower) fn number_field(&self, variable: VariableId) -> Option<FieldId> {
        self.numbers.iter().position(|own| *own == variable).map(FieldId::new)
    }

    /// What a declared field of a program may not be.
    pub(in crate::lower) fn check_place(&mut self, role: Role, place: Place, fields: &ast::Fields) -> Found<()> {
        if !self.is_over_mesh() {
            return Some(());
        }
        let found = |what| Diagnostic::error(fields.role.span, what);
        if place == Place::NOWHERE && role != Role::Out {
            let what = found("a single number that is given is a parameter");
            let name = fields.names.first().map_or("", |name| &name.text);
            return self.report(what.label(format!("write `param {name}: real`")));
        }
        if role != Role::In && place != Place::NOWHERE && place.home.is_none_or(|home| home.map.is_some()) {
            return self.report(found("an output lives on a set").label("no stencil computes this"));
        }
        Some(())
    }
}

impl<'a> Programmer<'_, 'a> {
    /// Whether a variable is a number.
    pub(super) fn is_number(&self, id: VariableId) -> bool {
        self.lowering.number_field(id).is_some()
    }

    /// Makes a number of a variable on no axis.
    pub(super) fn add_number(&mut self, id: VariableId) {
        let own = &self.program.variables[id];
        if own.place != Place::NOWHERE {
            return;
        }
        let (name, stored, span) = (own.name.clone(), own.stored, own.span);
        self.lowering.stencil.fields.add(new_field(&name, Role::In, Place::NOWHERE, stored, span));
        self.lowering.numbers.push(id);
    }

    /// `let half = dt / 2` where a number changes: then it is a number that is given a value here.
    pub(super) fn let_number(&mut self, name: &'a ast::Name, value: ExprId, actions: &mut Vec<Action>) -> bool {
        if !self.names_a_number(value) {
            return false;
        }
        match self.number(value, None, &name.text) {
            Some(body) => {
                let stored = if body.kind() == Kind::Int { Stored::Int } else { Stored::Real };
                if let Some(to) = self.add(name, new_variable(name, Place::NOWHERE, stored)) {
                    self.valued.insert(to);
                    actions.push(Action::Number(Assignment { to, value: body }));
                }
            }
            None => self.lowering.define(name, Binding::Broken),
        }
        true
    }

    /// Whether a body is made of numbers that change.
    pub(super) fn changes(&self, body: &Body) -> bool {
        let defs = &self.lowering.stencil.defs;
        let (mut waiting, mut seen) = (vec![body], std::collections::BTreeSet::new());
        while let Some(body) = waiting.pop() {
            if body.reads().next().is_some() {
                return true;
            }
            waiting.extend(body.uses().filter(|(def, _)| seen.insert(*def)).map(|(def, _)| &defs[def].body));
        }
        false
    }

    fn names_a_number(&self, expr: ExprId) -> bool {
        let names = crate::lower::test::parts::names(self.lowering.file, expr);
        let is_number = |binding| matches!(binding, Some(&Binding::Variable(id)) if self.is_number(id));
        names.iter().any(|(name, _)| is_number(self.lowering.scope.binding(name)))
    }

    /// `rms = sqrt(change / size(cell))`
    pub(super) fn assign_number(&mut self, to: VariableId, value: ExprId, actions: &mut Vec<Action>) {
        let (name, stored) = (self.program.variables[to].name.clone(), self.program.variables[to].stored);
        if let Some(body) = self.number(value, Some(stored.kind()), &name) {
            self.valued.insert(to);
            actions.push(Action::Number(Assignment { to, value: body }));
        }
    }

    /// Reports a number that may have no value yet.
    pub(super) fn check_known(&mut self, body: &Body) -> Found<()> {
        for (id, node) in body.iter() {
            if let Node::Read { field, .. } = node {
                let variable = self.lowering.numbers[field.index()];
                self.with_value(variable, body.span_of(id))?;
            }
        }
        Some(())
    }

    /// Reductions that are assigned to names nobody declared: these become numbers.
    pub(super) fn name_reductions(&mut self, assign: &'a ast::Assign) {
        if !self.lowering.is_over_mesh() {
            return;
        }
        let ast::Expr::Call(called, _) = &self.lowering.file.exprs[assign.value] else { return };
        let stencils = self.stencils;
        let Some(stencil) = stencils.iter().find(|stencil| stencil.name == called.text) else { return };
        for (target, output) in assign.targets.iter().zip(outputs(stencil)) {
            if output.role == Role::Reduce && self.lowering.scope.find(&target.name.text).is_none() {
                self.add(&target.name, new_variable(&target.name, output.place, output.stored));
            }
        }
    }

    /// Reports a stencil that does not run over this program's mesh.
    pub(super) fn check_mesh(&mut self, name: &ast::Name) {
        let called = self.lowering.file.stencils().filter(|own| own.name.text == name.text).last();
        let theirs = called.and_then(|own| own.over.as_ref()?.names.first()).map(|name| name.text.clone());
        let ours = self.lowering.over.as_ref().map(|over| over.declared.mesh.name.clone());
        if theirs == ours {
            return;
        }
        let what = match (&theirs, &ours) {
            (Some(theirs), None) => format!("`{}` runs over the mesh `{theirs}`, this program over a grid", name.text),
            (None, Some(ours)) => format!("`{}` runs over a grid, this program over the mesh `{ours}`", name.text),
            _ => format!("`{}` runs over another mesh", name.text),
        };
        let help = match &theirs {
            Some(theirs) => format!("a program that calls it begins with `program name over {theirs}`"),
            None => "a program over a mesh calls stencils over its sets".to_owned(),
        };
        self.tell(wrong(name.span, what, "cannot be called here").help(help));
    }
}
