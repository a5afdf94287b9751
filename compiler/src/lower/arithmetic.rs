//! Operators: kinds that meet, and whole numbers that are computed at once.

use super::kind::{article, parts};
use super::value::{Nodes, meet};
use super::{Found, Lowering};
use crate::ast::{Expr, ExprId, Infix, Prefix};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::scalar::int_binary;
use crate::ir::{Binary, Function, Kind, Node, NodeId, Relation};
use crate::source::Span;

impl Lowering<'_> {
    pub(super) fn prefix(&mut self, op: Prefix, inner: ExprId, span: Span) -> Found<Nodes> {
        let at = self.span(inner);
        // The one whole number that has no positive counterpart.
        if let (Prefix::Negate, Expr::Int(2_147_483_648)) = (op, &self.file.exprs[inner]) {
            return self.one(Node::Int(i32::MIN), Kind::Int, span);
        }
        let value = self.value(inner)?;
        value
            .map(|node| {
                let kind = self.kind(node)?;
                match (op, kind) {
                    (Prefix::Not, _) => {
                        let truth = self.truth(node, at, "`!` takes a truth value", "!(a > 0)")?;
                        self.node(Node::Not(truth), Kind::Bool, span)
                    }
                    (Prefix::Negate, Kind::Bool) => {
                        let found = wrong(at, "`-` takes a number, this is a truth value", "bool");
                        self.report(found.help("`!` turns a truth value round"))
                    }
                    (Prefix::Negate, Kind::Int) if self.whole(node) == Some(i32::MIN) => self.overflow(span),
                    (Prefix::Negate, Kind::Int | Kind::Real) => self.node(Node::Negate(node), kind, span),
                }
            })
            .collected()
    }

    pub(super) fn infix(&mut self, op: Infix, a: Nodes, b: Nodes, spans: (Span, Span, Span)) -> Found<Nodes> {
        self.part_by_part(a, b, spans, |own, a, b| own.infix_one(op, a, b, spans))
    }

    /// What is made of the parts of two values; a number meets every part.
    pub(super) fn part_by_part(
        &mut self,
        a: Nodes,
        b: Nodes,
        spans: (Span, Span, Span),
        mut of: impl FnMut(&mut Self, NodeId, NodeId) -> Found<NodeId>,
    ) -> Found<Nodes> {
        if let Some(pairs) = a.clone().spread(b.clone()) {
            return pairs.try_map(|(a, b)| of(self, a, b));
        }
        self.report_number(
            Diagnostic::error(spans.2, "two vectors of different lengths do not fit together")
                .note(spans.0, parts(a.into_parts().len()))
                .note(spans.1, parts(b.into_parts().len()))
                .help("operators work part by part"),
        )
    }

    fn infix_one(&mut self, op: Infix, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        match op {
            Infix::And => self.logic(Node::And(a, b), "&&", a, b, spans),
            Infix::Or => self.logic(Node::Or(a, b), "||", a, b, spans),
            Infix::Compare(relation) => self.compare(relation, a, b, spans),
            Infix::Arithmetic(op) => self.arithmetic(op, a, b, spans),
            // Powers look at the exponent as it is written, and never come here.
            Infix::Power => None,
        }
    }

    fn logic(&mut self, node: Node, symbol: &str, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        for (side, place) in [(a, spans.0), (b, spans.1)] {
            self.truth(side, place, &format!("`{symbol}` takes truth values"), "a > 0")?;
        }
        self.node(node, Kind::Bool, spans.2)
    }

    fn compare(&mut self, relation: Relation, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (a_kind, b_kind) = (self.kind(a)?, self.kind(b)?);
        let ordered = !matches!(relation, Relation::Eq | Relation::Ne);
        match meet(a_kind, b_kind) {
            Some(kind) if !(ordered && kind == Kind::Bool) => {
                let (a, b) = (self.widen(a, kind, spans.0)?, self.widen(b, kind, spans.1)?);
                self.node(Node::Compare(relation, a, b), Kind::Bool, spans.2)
            }
            _ => self.do_not_meet(relation.name(), (a_kind, b_kind), spans),
        }
    }

    fn do_not_meet<T>(&mut self, symbol: &str, kinds: (Kind, Kind), spans: (Span, Span, Span)) -> Found<T> {
        let takes = if ["==", "!="].contains(&symbol) { "two numbers or two truth values" } else { "two numbers" };
        let found = Diagnostic::error(spans.2, format!("`{symbol}` takes {takes}")).note(spans.0, article(kinds.0));
        let found = found.note(spans.1, article(kinds.1));
        self.report(found.help("a truth value becomes a number by `if c { 1 } else { 0 }`"))
    }

    /// `+ - * / %`
    pub(super) fn arithmetic(&mut self, op: Binary, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (a_kind, b_kind) = (self.kind(a)?, self.kind(b)?);
        let kind = match meet(a_kind, b_kind) {
            Some(Kind::Bool) | None => return self.do_not_meet(op.name(), (a_kind, b_kind), spans),
            Some(_) if op == Binary::Div => Kind::Real,
            Some(kind) => kind,
        };
        if kind == Kind::Int {
            return self.whole_arithmetic(op, a, b, spans);
        }
        let (a, b) = (self.widen(a, kind, spans.0)?, self.widen(b, kind, spans.1)?);
        self.node(Node::Binary(op, a, b), kind, spans.2)
    }

    /// Whole numbers: constants are computed at once, since they may be offsets.
    fn whole_arithmetic(&mut self, op: Binary, a: NodeId, b: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (x, y) = (self.whole(a), self.whole(b));
        if op == Binary::Rem {
            let is_param = matches!(self.written(b), Some(Node::Param(_)));
            if y == Some(0) {
                let found = wrong(spans.1, "a remainder of a division by 0", "this is 0");
                return self.report_number(found.help("`n % 2` is the rest of the division of `n` by 2"));
            }
            if y.is_none() && !is_param {
                let found =
                    Diagnostic::error(spans.1, "the divisor of a whole `%` is a number, a constant or a parameter")
                        .label("none of these, and might be 0");
                return self.report_number(found.help("make one side real to get a real remainder: `1.0 * n % m`"));
            }
        }
        if let (Some(x), Some(y)) = (x, y) {
            let exact = match op {
                Binary::Add => x.checked_add(y),
                Binary::Sub => x.checked_sub(y),
                Binary::Mul => x.checked_mul(y),
                Binary::Div | Binary::Rem => Some(int_binary(op, x, y)),
            };
            if exact.is_none() {
                return self.overflow(spans.2);
            }
        }
        self.node(Node::Binary(op, a, b), Kind::Int, spans.2)
    }

    fn overflow<T>(&mut self, span: Span) -> Found<T> {
        let found = wrong(span, "this whole number does not fit 32 bits", "overflows");
        self.report_number(found.help("write one side as a real number, with a point"))
    }

    /// `a ** n`: with a whole constant the product from the left, and else `pow(a, n)`.
    pub(super) fn power(&mut self, base: Nodes, base_span: Span, exponent: ExprId, span: Span) -> Found<Nodes> {
        let at = self.span(exponent);
        let exponent = self.scalar(exponent)?;
        let Some(n) = self.whole(exponent) else {
            return base.map(|base| self.any_power(base, exponent, (base_span, at, span))).collected();
        };
        if n.unsigned_abs() > 1024 {
            let found = wrong(at, "this exponent is too large", "at most 1024: a power is written out as a product");
            return self.report_number(found);
        }
        base.map(|base| self.power_one(base, n, base_span, span)).collected()
    }

    fn any_power(&mut self, base: NodeId, exponent: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        for (operand, at) in [(base, spans.0), (exponent, spans.1)] {
            self.number_kind(operand, at, "`**` takes numbers")?;
        }
        let base = self.widen(base, Kind::Real, spans.0)?;
        let exponent = self.widen(exponent, Kind::Real, spans.1)?;
        self.node(Node::Call(Function::Pow, vec![base, exponent]), Kind::Real, spans.2)
    }

    fn power_one(&mut self, base: NodeId, n: i32, base_span: Span, span: Span) -> Found<NodeId> {
        let kind = self.number_kind(base, base_span, "`**` takes a number")?;
        let spans = (base_span, base_span, span);
        if n == 0 {
            let one = if kind == Kind::Int { Node::Int(1) } else { Node::Real(1.0) };
            return self.node(one, kind, span);
        }
        let mut product = base;
        for _ in 1..n.unsigned_abs() {
            product = self.arithmetic(Binary::Mul, product, base, spans)?;
        }
        if n > 0 {
            return Some(product);
        }
        let one = self.node(Node::Real(1.0), Kind::Real, span)?;
        self.arithmetic(Binary::Div, one, product, spans)
    }
}
