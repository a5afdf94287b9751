//! Expressions into the body being written.

use super::kind::{article, parts};
use super::rounding::Writing;
use super::value::{Bound, Nodes, Value};
use super::{Found, Lowering};
use crate::ast::{Expr, ExprId, Infix};
use crate::depth::NESTED;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{Kind, Node, NodeId, Origin, Path};
use crate::source::Span;

impl Lowering<'_> {
    /// A single number or truth value.
    pub(super) fn scalar(&mut self, expr: ExprId) -> Found<NodeId> {
        let span = self.span(expr);
        match self.value(expr)? {
            Value::One(node) => Some(node),
            Value::Many(items) => {
                let found = Diagnostic::error(span, "a single value is needed here");
                let found = found.label(format!("this is a vector of {}", parts(items.len())));
                self.report(found.help("take a part of it, as in `v[0]`"))
            }
        }
    }

    /// A value, perhaps with parts. Whatever recurses along the text comes through here, so here is counted how deep it is.
    pub(super) fn value(&mut self, expr: ExprId) -> Found<Nodes> {
        if self.is_lost() {
            return None;
        }
        if self.size.nested >= NESTED {
            let message = format!(
                "this is nested more than {NESTED} deep, with the functions and constants around it written out"
            );
            let found = wrong(self.span(expr), message, "one too many");
            return self.report_number(found.help("name parts of the expressions with `let`"));
        }
        self.size.nested += 1;
        let value = self.chain(expr);
        self.size.nested -= 1;
        value
    }

    /// A chain of operators from left to right, walked in a loop.
    fn chain(&mut self, expr: ExprId) -> Found<Nodes> {
        let file = self.file;
        let mut spine = Vec::new();
        let mut first = expr;
        while let Expr::Infix(op, left, right) = &file.exprs[first] {
            spine.push((*op, *right, file.exprs.span(first), *left));
            first = *left;
        }
        let is_base = spine.last().is_some_and(|(op, ..)| *op == Infix::Power);
        let mut value = if is_base { None } else { self.operand(first) };
        let mut left_span = file.exprs.span(first);
        // Along a chain of `&&` (or `||`): what is known where all before it are true (or false).
        let mut known: Option<(Infix, Vec<Path>)> = None;
        for (op, right, whole, left_expr) in spine.into_iter().rev() {
            // Both sides are looked at even if one is wrong, so that both are reported.
            value = match op {
                // The base is used several times, so a larger one gets a name. (`**` groups from the right: a base is
                // always the first operand of its chain.)
                Infix::Power => {
                    let base = self.base(first).and_then(|bound| self.place_value(bound, left_span));
                    base.and_then(|base| self.power(base, left_span, right, whole))
                }
                _ if self.is_lost() => return None,
                _ => {
                    // On the right of `&&` it is known that the left holds, on that of `||` that it does not.
                    let right_value = match op {
                        Infix::And | Infix::Or => {
                            let paths = match known.take() {
                                Some((same, paths)) if same == op => paths,
                                _ => self.also_assured(Vec::new(), left_expr, op == Infix::And),
                            };
                            let value = self.with_present(paths.clone(), |own| own.value(right));
                            known = Some((op, self.also_assured(paths, right, op == Infix::And)));
                            value
                        }
                        _ => self.value(right),
                    };
                    let spans = (left_span, file.exprs.span(right), whole);
                    value.zip(right_value).and_then(|(a, b)| self.infix(op, a, b, spans))
                }
            };
            left_span = whole;
        }
        value
    }

    fn operand(&mut self, expr: ExprId) -> Found<Nodes> {
        let span = self.span(expr);
        let file = self.file;
        match &file.exprs[expr] {
            Expr::Real(x) => self.one(Node::Real(*x), Kind::Real, span),
            Expr::Int(x) => match i32::try_from(*x) {
                Ok(x) => self.one(Node::Int(x), Kind::Int, span),
                Err(_) => {
                    let found = wrong(span, "this whole number does not fit 32 bits", "at most 2147483647");
                    self.report(found.help("write it as a real number, with a point, as in `3000000000.0`"))
                }
            },
            Expr::Truth(x) => self.one(Node::Bool(*x), Kind::Bool, span),
            Expr::Name(name) => self.name(name, span),
            Expr::Prefix(op, inner) => self.prefix(*op, *inner, span),
            // A chain: walked by `value`.
            Expr::Infix(..) => self.value(expr),
            Expr::Group(inner) => self.value(*inner),
            Expr::Block(block) => self.block(block),
            Expr::Index(base, parts) => self.index(*base, parts, span),
            Expr::Level(_) => {
                let found = wrong(span, "`level` says which level of a field is read", "stands in brackets alone");
                self.report(found.help("as in `a[level 0]`"))
            }
            Expr::Component(base, part) => self.component(*base, part, span),
            Expr::Call(function, arguments) => self.call(function, arguments, span),
            Expr::Choose(arms, otherwise) => self.choose(arms, otherwise, span),
            Expr::Fold(op, binders, block) => self.fold(op, binders, block, span),
            Expr::Vector(parts) if parts.iter().any(|&part| matches!(file.exprs[part], Expr::Vector(_))) => {
                let found = wrong(span, "a vector holds single numbers", "vectors in a vector");
                self.report(found.help("there are no matrices: name a vector for each row"))
            }
            Expr::Vector(parts) => {
                let parts: Vec<Found<NodeId>> = parts.iter().map(|&part| self.scalar(part)).collect();
                parts.into_iter().collect::<Option<Vec<_>>>().map(Value::Many)
            }
        }
    }

    pub(super) fn one(&mut self, node: Node, kind: Kind, span: Span) -> Found<Nodes> {
        self.node(node, kind, span).map(Value::One)
    }

    /// A whole constant: the end of a range, an offset, the number of a part.
    pub(super) fn whole_constant(&mut self, expr: ExprId) -> Found<i32> {
        let span = self.span(expr);
        self.bodies.push(Writing::default());
        let node = self.scalar(expr);
        let whole = node.and_then(|node| self.whole(node));
        let (why, help) = match node.and_then(|node| Some((self.written(node)?, self.kind(node)?))) {
            Some((Node::Param(_), _)) => (
                "a parameter is known when running only",
                "write a `const` instead of the `param`: the compiler has to know how far a stencil reaches",
            ),
            Some((Node::Level | Node::Count(_), _)) => {
                ("the level is known when running only", "a choice by level is written `if k < n { ... } else { ... }`")
            }
            Some((Node::Real(_), _)) => ("not whole", "a whole number is written without a point"),
            Some((Node::Use { def, .. }, Kind::Int)) if self.stencil.defs[*def].origin == Origin::Constant => (
                "depends on the precision: real numbers choose it",
                "compare whole numbers, or real numbers that are further apart",
            ),
            Some((_, Kind::Int)) => ("known when running only", "use whole numbers, `const`s, or counters of a `sum`"),
            Some((_, kind)) => (article(kind), "use whole numbers, `const`s, or counters of a `sum`"),
            None => ("", ""),
        };
        self.bodies.pop();
        node?;
        whole.or_else(|| {
            self.report(wrong(span, "a whole number that is known when compiling is needed here", why).help(help))
        })
    }

    /// The node as it was written into this body.
    pub(super) fn written(&self, node: NodeId) -> Option<&Node> {
        self.bodies.last().map(|own| &own.body[node])
    }

    /// The whole constant that a node is.
    pub(super) fn whole(&self, node: NodeId) -> Option<i32> {
        if let Some(Node::Int(x)) = self.written(node) { Some(*x) } else { None }
    }

    /// Gives the value a name of its own unless it is one already.
    pub(super) fn base(&mut self, expr: ExprId) -> Found<Bound> {
        let file = self.file;
        // A name stands for its value as it is: of a long array, one part is wanted, and not all others too.
        if let Expr::Name(name) = &file.exprs[expr]
            && (self.scope.find(name).is_some() || self.globals.find(name).is_some() || self.is_ahead(name))
        {
            return self.resolve(name, file.exprs.span(expr));
        }
        self.bind(expr, "value", Origin::Base)
    }
}
