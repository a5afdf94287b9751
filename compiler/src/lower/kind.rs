//! Kinds: what a value is, and what it becomes.

use super::{Found, Lowering};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{Kind, Node, NodeId};
use crate::source::Span;

impl Lowering<'_> {
    pub(super) fn kind(&self, node: NodeId) -> Found<Kind> {
        self.bodies.last().map(|own| own.body.kind_of(node))
    }

    /// A node as `kind`, which it is or widens to.
    pub(super) fn widen(&mut self, node: NodeId, kind: Kind, span: Span) -> Found<NodeId> {
        match (self.kind(node)?, kind) {
            (Kind::Int, Kind::Real) => self.node(Node::ToReal(node), Kind::Real, span),
            _ => Some(node),
        }
    }

    /// A node that is a truth value, where one is needed.
    pub(super) fn truth(&mut self, node: NodeId, span: Span, needed: &str, example: &str) -> Found<NodeId> {
        let kind = self.kind(node)?;
        if kind == Kind::Bool {
            return Some(node);
        }
        let found = wrong(span, format!("{needed}, this is {}", article(kind)), kind.name());
        self.report(found.help(format!("compare it with something, as in `{example}`")))
    }

    /// The kind of a node that is a number, where one is needed.
    pub(super) fn number_kind(&mut self, node: NodeId, span: Span, needed: &str) -> Found<Kind> {
        match self.kind(node)? {
            Kind::Bool => self.report(wrong(span, format!("{needed}, this is a truth value"), "bool")),
            kind @ (Kind::Real | Kind::Int) => Some(kind),
        }
    }

    /// A node as `kind`, or an error that says why not.
    pub(super) fn convert(&mut self, node: NodeId, kind: Kind, span: Span, what: &str) -> Found<NodeId> {
        let own = self.kind(node)?;
        if own == kind || (own, kind) == (Kind::Int, Kind::Real) {
            return self.widen(node, kind, span);
        }
        let message = format!("`{what}` is {}, this value is {}", article(kind), article(own));
        let found = Diagnostic::error(span, message).label(own.name());
        self.report(match (own, kind) {
            (Kind::Real, Kind::Int) => found.help("there is no way from `real` to `int`; `/` is always real division"),
            (Kind::Bool, _) => found.help("write `if c { 1 } else { 0 }`"),
            (_, Kind::Bool) => found.help("compare it with something, as in `a > 0`"),
            (Kind::Int | Kind::Real, _) => found,
        })
    }
}

/// A kind with its article.
pub(super) fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::Real => "a real number",
        Kind::Int => "a whole number",
        Kind::Bool => "a truth value",
    }
}

/// `1 part`, `2 parts`.
pub(super) fn parts(count: usize) -> String {
    format!("{count} part{}", if count == 1 { "" } else { "s" })
}
