//! Levels that are data: `theta[cells.0, k + offset]`, where `offset` is an `int` field. Over meshes and on grids they are the same.

use super::scope::Binding;
use super::value::{Alias, Value};
use super::{Found, Lowering};
use crate::ast::{Expr, ExprId, Infix};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{Binary, Kind, Levels, Node, NodeId, Role};
use crate::source::Span;

/// How far away a level is: so many levels, and as many more as a number of a field says.
#[derive(Clone, Copy, Default)]
pub(super) struct LevelOffset {
    pub by: i32,
    pub data: Option<NodeId>,
}

impl Lowering<'_> {
    /// `k + offset - 1` in brackets.
    pub(super) fn level_offset(&mut self, part: ExprId) -> Found<LevelOffset> {
        let file = self.file;
        let (mut first, mut terms) = (part, Vec::new());
        while let Expr::Infix(Infix::Arithmetic(op @ (Binary::Add | Binary::Sub)), left, right) = &file.exprs[first] {
            terms.push((*op, *right));
            first = *left;
        }
        if !terms.iter().any(|(_, term)| self.is_of_a_field(*term)) {
            let (_, by, _) = self.offset(part)?;
            return Some(LevelOffset { by, data: None });
        }
        let (mut sum, mut data) = (0i32, None);
        for (op, term) in terms.into_iter().rev() {
            let at = self.span(term);
            if !self.is_of_a_field(term) {
                let by = self.whole_constant(term)?;
                sum = sum.saturating_add(if op == Binary::Sub { by.saturating_neg() } else { by });
                continue;
            }
            if op == Binary::Sub {
                let found = wrong(at, "the number of a field that says a level is added", "taken away");
                return self.report(found.help("give the field with the opposite sign"));
            }
            if data.is_some() {
                let found = wrong(at, "one field says which level is read", "a second one");
                return self.report(found.help("give their sum as one field"));
            }
            data = Some(self.number_of_levels(term)?);
        }
        let data = data?;
        let by = match sum {
            0 => data,
            _ => {
                let own = self.node(Node::Int(sum), Kind::Int, self.span(part))?;
                self.node(Node::Binary(Binary::Add, data, own), Kind::Int, self.span(part))?
            }
        };
        Some(LevelOffset { by: 0, data: Some(by) })
    }

    /// Whether an expression is a field's name, perhaps with brackets behind it.
    pub(super) fn is_of_a_field(&self, expr: ExprId) -> bool {
        let expr = self.ungrouped(expr);
        match &self.file.exprs[expr] {
            Expr::Index(base, _) => self.is_of_a_field(*base),
            Expr::Name(name) => match self.scope.binding(name) {
                Some(Binding::Field(_)) => true,
                Some(Binding::Value(Value::One(alias))) => matches!(alias, Alias::Field(..) | Alias::Slots(..)),
                _ => false,
            },
            _ => false,
        }
    }

    /// A number of an `int` field that is only read.
    fn number_of_levels(&mut self, term: ExprId) -> Found<NodeId> {
        let (span, node) = (self.span(term), self.scalar(term)?);
        let field = match self.written(node) {
            Some(Node::Read { field, by: None, .. }) => Some(*field),
            _ => None,
        };
        let Some(field) = field else {
            let found = wrong(span, "the number of a field says which level is read", "not as it stands in a field");
            return self.report(found.help("what is read through the holes of a map is no such number"));
        };
        let own = self.stencil.fields[field].clone();
        if own.stored.kind() != Kind::Int {
            let found = wrong(span, "levels are counted in whole numbers", "real");
            let found = found.note(own.span, "declared here");
            return self.report(found.help(format!("declare it as `in {}: int`", own.name)));
        }
        if own.role != Role::In {
            let message = format!("`{}` says which level is read: it is only read itself", own.name);
            let found = wrong(span, message, format!("an `{}`", own.role.name())).note(own.span, "declared here");
            return self.report(found.help("pass it as an `in`"));
        }
        Some(node)
    }

    /// A number of a field on a level that is data.
    pub(super) fn read_moved(&mut self, alias: &Alias, by: NodeId, span: Span) -> Found<NodeId> {
        self.check_here(alias, span)?;
        if self.coordinates.is_some() {
            let found = Diagnostic::error(span, "a test reads nothing on a level that is data");
            let found = found.label("whether there is that level is asked of the stencil alone");
            return self.report(found.help("let the stencil write it to an output, and expect something of that"));
        }
        let Alias::Field(field, path, part) = alias else {
            let found = wrong(span, "a level that is data is one of a field", "not a field");
            return self.report(
                found.help("what is computed is known on such a level if a stencil before has written it to a field"),
            );
        };
        let own = self.stencil.fields[*field].clone();
        if own.place.levels == Levels::None {
            let found = Diagnostic::error(span, format!("`{}` has no levels", own.name));
            return self.report(found.label("the same on all of them").note(own.span, "declared here"));
        }
        if own.role == Role::Carried {
            let found = wrong(span, format!("`{}` comes of a sweep", own.name), "not known on any level");
            return self.report(found.help("assign it to an output, and read that in another stencil"));
        }
        let read = Node::Read { field: *field, path: path.clone(), part: *part, by: Some(by) };
        self.node(read, own.stored.kind(), span)
    }
}
