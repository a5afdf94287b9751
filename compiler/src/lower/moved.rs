//! Levels that are data: `theta[cells.0, k + offset]`, where `offset` is an `int` field. Over meshes and on grids they are the same.

use super::scope::Binding;
use super::value::{Alias, Value};
use super::{Found, Lowering};
use crate::ast::{Expr, ExprId, Infix};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{Binary, Kind, Levels, Node, NodeId, Role};
use crate::source::Span;

/// How far away a level is: so many levels, or where something leads.
#[derive(Clone, Copy, Default)]
pub(super) struct LevelOffset {
    pub by: i32,
    pub leads: Option<Leads>,
}

/// What leads to a level, as how many levels further than the cell's it is.
#[derive(Clone, Copy)]
pub(super) enum Leads {
    /// `k + n`: a number of a field says how many.
    Data(NodeId),
    /// `level n`: a number of a field says the level.
    DataItself(NodeId),
    /// `level nk - 1`: a number says the level, and that is the first.
    Said(NodeId, NodeId),
}

impl Leads {
    /// Whether a number says the level itself.
    pub fn is_level(self) -> bool {
        !matches!(self, Leads::Data(_))
    }
}

/// What is added and taken away, in order.
type Terms = Vec<(Binary, ExprId)>;

impl Lowering<'_> {
    /// `k + offset - 1` in brackets.
    pub(super) fn level_offset(&mut self, part: ExprId) -> Found<LevelOffset> {
        let (_, terms) = self.terms(part);
        if !terms.iter().any(|(_, term)| self.is_of_a_field(*term)) {
            let (_, by, _) = self.offset(part)?;
            return Some(LevelOffset { by, leads: None });
        }
        let (data, others) = self.data_among(terms)?;
        let mut sum = 0i32;
        for (op, term) in others {
            let by = self.whole_constant(term)?;
            sum = sum.saturating_add(if op == Binary::Sub { by.saturating_neg() } else { by });
        }
        let by = match sum {
            0 => data,
            _ => {
                let own = self.node(Node::Int(sum), Kind::Int, self.span(part))?;
                self.node(Node::Binary(Binary::Add, data, own), Kind::Int, self.span(part))?
            }
        };
        Some(LevelOffset { by: 0, leads: Some(Leads::Data(by)) })
    }

    /// The first operand of a sum, and what is added to it or taken away.
    pub(super) fn terms(&self, sum: ExprId) -> (ExprId, Terms) {
        let (mut first, mut terms) = (sum, Vec::new());
        while let Expr::Infix(Infix::Arithmetic(op @ (Binary::Add | Binary::Sub)), left, right) =
            &self.file.exprs[first]
        {
            terms.push((*op, *right));
            first = *left;
        }
        terms.reverse();
        (first, terms)
    }

    /// The number of the only field among terms, and the others.
    pub(super) fn data_among(&mut self, terms: Terms) -> Found<(NodeId, Terms)> {
        let (mut data, mut others) = (None, Vec::new());
        for (op, term) in terms {
            let at = self.span(term);
            if !self.is_of_a_field(term) {
                others.push((op, term));
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
        Some((data?, others))
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

    /// A number of a field on the level that something leads to.
    pub(super) fn read_led(&mut self, alias: &Alias, leads: Leads, span: Span) -> Found<NodeId> {
        self.check_here(alias, span)?;
        let (by, what) = match leads {
            Leads::Data(by) | Leads::DataItself(by) => (by, "a level that is data"),
            Leads::Said(_, by) => (by, "a level that is said by its number"),
        };
        if self.coordinates.is_some() && !matches!(leads, Leads::Said(..)) {
            let found = Diagnostic::error(span, "a test reads nothing on a level that is data");
            let found = found.label("whether there is that level is asked of the stencil alone");
            return self.report(found.help("let the stencil write it to an output, and expect something of that"));
        }
        let Alias::Field(field, path, part) = alias else {
            let found = wrong(span, format!("{what} is one of a field"), "not a field");
            if matches!(alias, Alias::Param(_) | Alias::Int(_)) {
                return self.report(found.help("a number is the same on all levels: write it without one"));
            }
            return self.report(
                found.help("what is computed is known on such a level if a stencil before has written it to a field"),
            );
        };
        let own = self.stencil.fields[*field].clone();
        if own.place.levels == Levels::None {
            let found = Diagnostic::error(span, format!("`{}` has no levels", own.name));
            let found = found.label("the same on all of them").note(own.span, "declared here");
            return self.report(found.help(format!("write `{}` without a level", own.name)));
        }
        if own.role == Role::Carried {
            let found = wrong(span, format!("`{}` comes of a sweep", own.name), "not known on any level");
            return self.report(found.help("assign it to an output, and read that in another stencil"));
        }
        if let Leads::Said(number, _) = leads {
            self.check_there(&own, path.levels(), number, span)?;
        }
        let read = Node::Read { field: *field, path: path.clone(), part: *part, by: Some(by) };
        self.node(read, own.stored.kind(), span)
    }
}
