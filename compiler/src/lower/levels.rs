//! `levels 1..nk`, `level nk-1`: which levels a stencil computes, of those that it can.

use super::{Found, Lowering};
use crate::analysis::levels::{Known, candidates, goes_on};
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::scalar::Value;
use crate::ir::{Body, Kind, Node, NodeId, Origin, Precision, Relation};
use crate::source::Span;

/// So many levels are many: what is said in numbers is less.
const MANY: usize = 1 << 20;

impl<'a> Lowering<'a> {
    /// Says which levels are computed.
    pub(super) fn declare_levels(&mut self, own: &'a ast::Levels) {
        if self.lacks_levels() {
            self.no_levels::<()>(own.span, "there is no `k`");
            return;
        }
        if let Some(before) = self.levels_said.replace(own.span) {
            let found = wrong(own.span, "which levels are computed is said twice", "said again");
            return self.tell(found.note(before, "said here").help("leave one of them out"));
        }
        self.stencil.levels = self.body(|lowering| lowering.is_computed(own)).and_then(|body| {
            self.check_bounds(&body, own.span)?;
            Some(body)
        });
    }

    /// The truth that a level is computed.
    fn is_computed(&mut self, own: &'a ast::Levels) -> Found<NodeId> {
        let first = self.level_number(own.first)?;
        let Some(end) = own.end else { return self.compared(Relation::Eq, first, own.span) };
        let from = self.compared(Relation::Ge, first, own.span)?;
        let end = self.level_number(end)?;
        let before = self.compared(Relation::Lt, end, own.span)?;
        self.node(Node::And(from, before), Kind::Bool, own.span)
    }

    fn level_number(&mut self, expr: ast::ExprId) -> Found<NodeId> {
        let span = self.span(expr);
        let number = self.scalar(expr)?;
        self.convert(number, Kind::Int, span, "level")
    }

    fn compared(&mut self, relation: Relation, with: NodeId, span: Span) -> Found<NodeId> {
        let level = self.node(Node::Level, Kind::Int, span)?;
        self.node(Node::Compare(relation, level, with), Kind::Bool, span)
    }

    /// Reports bounds that depend on where something is computed.
    fn check_bounds(&mut self, body: &Body, span: Span) -> Found<()> {
        for (id, node) in body.iter() {
            let what = match node {
                Node::Read { .. } | Node::Present { .. } | Node::InZone(_) => "a field",
                Node::Level if body.span_of(id) != span => "the level itself",
                Node::Use { def, .. } if self.stencil.defs[*def].origin != Origin::Constant => "a value at a cell",
                _ => continue,
            };
            let place = if body.span_of(id).end > 0 { body.span_of(id) } else { span };
            let found = Diagnostic::error(place, "which levels are computed is known before any is").label(what);
            return self.report(found.help("bounds are made of `nk`, numbers, constants and parameters"));
        }
        Some(())
    }

    /// What can be told of levels once the whole stencil is known. Returns whether all is well.
    pub(super) fn finish_levels(&mut self) -> bool {
        let Some(span) = self.levels_said else { return true };
        let found = if !self.stencil.sweeps.is_empty() {
            let found = Diagnostic::error(span, "a sweep goes through all levels").label("but these are some");
            found.help("leave it out, and say in the sweep what holds at other levels, as in `if k < 3 { ... }`")
        } else if self.says_level(candidates(&self.stencil, 0..MANY).end as i64) {
            let found = Diagnostic::error(span, "these levels go on behind the last one").label("too far");
            match goes_on(&self.stencil) {
                false => found.help("to `nk + 1` where all that is written is on interfaces, `k+1`; else to `nk`"),
                true => found.help("the last interface has the number `nk`: `levels 0..nk + 1` are all of them"),
            }
        } else if self.says_level(-1) {
            let found = Diagnostic::error(span, "these levels begin before the first one").label("too early");
            found.help("levels are counted from 0, the highest")
        } else {
            return true;
        };
        self.tell(found);
        false
    }

    /// Whether a level is said to be computed, of [`MANY`], if no parameter decides.
    fn says_level(&self, level: i64) -> bool {
        let Some(levels) = &self.stencil.levels else { return false };
        if levels.iter().any(|(_, node)| matches!(node, Node::Param(_))) {
            return false;
        }
        let known = Known::new(&self.stencil, Precision::F64, MANY, &[]);
        known.values(levels, level).pop().flatten() == Some(Value::Bool(true))
    }
}
