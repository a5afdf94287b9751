//! Sums over the slots of a map, and their kin, written out.

use crate::ast;
use crate::diagnostic::wrong;
use crate::ir::mesh::{Fold, Missing};
use crate::ir::{Body, Handle, Kind, Node, Origin, Path};
use crate::lower::scope::Binding;
use crate::lower::value::{Bound, Nodes, Value};
use crate::lower::{Found, Lowering};
use crate::source::Span;

/// The value at a slot, and the way to the slot if that may be a hole.
type Term = (Value<Body>, Option<Path>);

impl<'a> Lowering<'a> {
    /// `sum(e in edges) { ... }`: what the slots come to, in order; holes are left out.
    pub(in crate::lower) fn fold_over_map(
        &mut self,
        op: &'a ast::Name,
        binder: &'a ast::Name,
        trail: &'a ast::Trail,
        block: &'a ast::Block,
        span: Span,
    ) -> Found<Nodes> {
        if self.site().is_none() {
            let message = "sums over maps belong to stencils over a mesh";
            return self.only_over_mesh(trail.span, message, "a range such as `1..=3` is needed");
        }
        let paths = self.paths(&trail.names)?;
        let mut terms = Vec::new();
        for (n, path) in paths.iter().enumerate() {
            let doubtful = self.doubtful(path, Missing::Skip);
            let mark = self.scope.mark();
            self.define(binder, Binding::Slot(path.clone()));
            // Beyond the last hole that is left out, there are only such as are read as a number.
            let hole = doubtful.last().map(|(path, _)| path.clone());
            let known = doubtful.into_iter().map(|(path, _)| path).collect();
            let term = self.with_present(known, |own| own.bodies(|own| own.block(block)));
            // A counter that nobody names counts, where the same number is taken each time.
            let counts = matches!(&term, Some(Value::One(body)) if body.literal().is_some());
            if n == 0 && !counts {
                self.warn_unused_since(mark, "the value");
            }
            self.scope.forget(mark);
            terms.push((term?, hole));
        }
        if terms.iter().all(|(_, hole)| hole.is_none()) {
            let mut total: Option<Nodes> = None;
            for (term, _) in terms {
                let term = self.written_out(term, span)?;
                total = Some(self.join(&op.text, total, term, span)?);
            }
            return total;
        }
        self.fold_with_holes(op, terms, span)
    }

    /// A term in the body being written.
    fn written_out(&mut self, term: Value<Body>, span: Span) -> Found<Nodes> {
        let place = |own: &mut Self, body: Body| {
            let mut renamed = Vec::new();
            for (id, node) in body.iter() {
                let node = node.map_operands(|operand| renamed[operand.index()]);
                let at = if body.span_of(id).end > 0 { body.span_of(id) } else { span };
                renamed.push(own.node(node, body.kind_of(id), at)?);
            }
            renamed.last().copied()
        };
        term.map(|body| place(self, body)).collected()
    }

    /// The terms whose slots lead somewhere, from left to right. What there is so far has a name, since it is used twice:
    /// with the next term, and without.
    fn fold_with_holes(&mut self, op: &ast::Name, terms: Vec<Term>, span: Span) -> Found<Nodes> {
        let fold = fold_named(op);
        let kind = match &terms.first()?.0 {
            Value::One(body) => body.kind(),
            Value::Many(bodies) => bodies.first()?.kind(),
        };
        if kind == Kind::Bool {
            let found = wrong(span, format!("`{}` takes numbers", op.text), "truth values");
            return self.report(found.help("count them: `sum(e in edges) { if c { 1 } else { 0 } }`"));
        }
        // There is no infinite whole number.
        let kind = if fold == Fold::Sum { kind } else { Kind::Real };
        let certain = terms.iter().any(|(_, hole)| hole.is_none());
        let holes: Vec<Path> = terms.iter().filter_map(|(_, hole)| hole.clone()).collect();
        let mut total: Option<Bound> = None;
        for term in terms {
            let next = |own: &mut Self| own.with_term(fold, kind, total, term, span);
            total = Some(self.bind_with(&op.text, Origin::Base, next)?);
        }
        let total = self.place_value(total?, span)?;
        if fold != Fold::Sum || kind != Kind::Real || certain {
            return Some(total);
        }
        // The sum of nothing is 0, although -0 is what changes no sum.
        let mut any = None;
        for path in holes {
            let present = self.node(Node::Present { path }, Kind::Bool, span)?;
            any = Some(match any {
                None => present,
                Some(before) => self.node(Node::Or(before, present), Kind::Bool, span)?,
            });
        }
        let condition = any?;
        total
            .map(|total| {
                let zero = self.node(Node::Real(0.0), Kind::Real, span)?;
                self.node(Node::Choose { condition, yes: total, no: zero }, Kind::Real, span)
            })
            .collected()
    }

    /// What there is so far, and one more term, unless its slot is a hole.
    fn with_term(&mut self, fold: Fold, kind: Kind, total: Option<Bound>, term: Term, span: Span) -> Found<Nodes> {
        let (term, hole) = term;
        let term = self.written_out(term, span)?;
        let term = term.map(|node| self.widen(node, kind, span)).collected()?;
        let before = match total {
            Some(total) => Some(self.place_value(total, span)?),
            None => None,
        };
        let joined = self.join(fold.name(), before.clone(), term, span)?;
        let Some(path) = hole else { return Some(joined) };
        let condition = self.node(Node::Present { path }, Kind::Bool, span)?;
        let start = match (fold, kind) {
            (Fold::Sum, Kind::Real) => Node::Real(-0.0),
            (Fold::Sum, _) => Node::Int(0),
            (Fold::Min | Fold::Max, _) => Node::Real(fold.empty(Kind::Real)),
        };
        let start = self.node(start, kind, span)?;
        let otherwise = before.unwrap_or_else(|| joined.clone().map(|_| start));
        joined.zip(otherwise)?.map(|(yes, no)| self.node(Node::Choose { condition, yes, no }, kind, span)).collected()
    }
}

/// `sum`, `min` or `max`.
pub(super) fn fold_named(op: &ast::Name) -> Fold {
    match op.text.as_str() {
        "sum" => Fold::Sum,
        "min" => Fold::Min,
        _ => Fold::Max,
    }
}
