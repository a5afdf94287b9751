//! Blocks, and what is made of them: choices and sums.

use super::kind::article;
use super::scope::{Binding, Symbol};
use super::value::{Alias, Nodes, Value, meet};
use super::{Found, Lowering};
use crate::ast::{self, ExprId, Infix};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{Binary, Node, NodeId};
use crate::source::Span;

impl<'a> Lowering<'a> {
    pub(super) fn choose(
        &mut self,
        arms: &'a [(ExprId, ast::Block)],
        otherwise: &'a ast::Block,
        span: Span,
    ) -> Found<Nodes> {
        let mut parts = Vec::new();
        let mut fine = true;
        for (condition, block) in arms {
            let at = self.span(*condition);
            // What the conditions before it have ruled out is known here.
            let before = arms.iter().take_while(|(own, _)| own != condition).map(|(own, _)| *own).collect::<Vec<_>>();
            let truth = self.where_known(&before, false, |own| own.scalar(*condition));
            let truth = truth.and_then(|node| self.truth(node, at, "a condition is needed", "a > 0"));
            let value =
                self.where_known(&before, false, |own| own.where_known(&[*condition], true, |own| own.block(block)));
            match truth.zip(value) {
                Some((truth, value)) => parts.push((truth, value, self.span(block.value))),
                None => fine = false,
            }
        }
        let all: Vec<ExprId> = arms.iter().map(|(condition, _)| *condition).collect();
        let mut value = self.where_known(&all, false, |own| own.block(otherwise))?;
        if !fine {
            return None;
        }
        let last = self.span(otherwise.value);
        for (condition, yes, at) in parts.into_iter().rev() {
            let Some(pairs) = yes.zip(value) else {
                let found = Diagnostic::error(span, "the branches have different numbers of parts");
                return self.report_number(found.note(at, "this one").note(last, "and this one"));
            };
            value = pairs.map(|(yes, no)| self.choose_one(condition, yes, no, (at, last, span))).collected()?;
        }
        Some(value)
    }

    fn choose_one(&mut self, condition: NodeId, yes: NodeId, no: NodeId, spans: (Span, Span, Span)) -> Found<NodeId> {
        let (yes_kind, no_kind) = (self.kind(yes)?, self.kind(no)?);
        let Some(kind) = meet(yes_kind, no_kind) else {
            let found = Diagnostic::error(spans.2, "the branches of this `if` do not fit together");
            return self.report(found.note(spans.0, article(yes_kind)).note(spans.1, article(no_kind)));
        };
        let (yes, no) = (self.widen(yes, kind, spans.0)?, self.widen(no, kind, spans.1)?);
        self.node(Node::Choose { condition, yes, no }, kind, spans.2)
    }

    /// A block in this body: its lets are definitions, its value stands here.
    pub(super) fn block(&mut self, block: &'a ast::Block) -> Found<Nodes> {
        let mark = self.scope.mark();
        for binding in &block.lets {
            self.define_let(binding);
        }
        let value = self.value(block.value);
        self.warn_unused_since(mark, "the value");
        self.scope.forget(mark);
        value
    }

    /// A sum (or `min`, `max`) written out: its terms from left to right.
    pub(super) fn fold(
        &mut self,
        op: &'a ast::Name,
        binders: &'a [ast::Binder],
        block: &'a ast::Block,
        span: Span,
    ) -> Found<Nodes> {
        let mut ranges = Vec::new();
        let mut terms = 1u64;
        for binder in binders {
            let (low, high) = match &binder.range {
                ast::Range::Numbers(low, high) => (self.whole_constant(*low)?, self.whole_constant(*high)?),
                ast::Range::Map(trail) if binders.len() == 1 => {
                    return self.fold_over_map(op, &binder.name, trail, block, span);
                }
                ast::Range::Map(trail) => {
                    let found = wrong(trail.span, "a sum over a map has one counter", "one of several");
                    let help =
                        "maps follow each other with points, as in `n in edges.cells`; or put one sum into the other";
                    return self.report(found.help(help));
                }
            };
            if low > high {
                let found = wrong(binder.name.span, format!("the range {low}..={high} is empty"), "has no term");
                return self.report_number(found.help("both ends are included, the smaller comes first"));
            }
            let count = (i64::from(high) - i64::from(low) + 1).unsigned_abs();
            terms = terms.saturating_mul(count);
            ranges.push((low, count));
        }
        if terms > 10_000 {
            let found = wrong(span, format!("this sum has {terms} terms"), "at most 10000 are written out");
            return self.report_number(found);
        }
        let mut total: Option<Nodes> = None;
        for term in 0..terms {
            let mark = self.scope.mark();
            // The last counter runs fastest.
            let mut step = terms;
            for (binder, (low, count)) in binders.iter().zip(&ranges) {
                step /= count;
                let counter = low + (term / step % count) as i32;
                self.define(&binder.name, Binding::Value(Value::One(Alias::Int(counter))));
            }
            let value = self.block(block);
            if term == 0 {
                self.warn_unused_since(mark, "the value");
            }
            self.scope.forget(mark);
            total = Some(self.join(&op.text, total, value?, span)?);
        }
        total
    }

    /// What there is so far, if there is something, and one more value.
    pub(super) fn join(&mut self, op: &str, total: Option<Nodes>, value: Nodes, span: Span) -> Found<Nodes> {
        let Some(total) = total else { return Some(value) };
        let spans = (span, span, span);
        if op == "sum" {
            return self.infix(Infix::Arithmetic(Binary::Add), total, value, (span, span, span));
        }
        self.part_by_part(total, value, spans, |own, a, b| own.extreme(op, a, b, spans))
    }

    /// Warns of names of a block that nothing in it uses.
    pub(super) fn warn_unused_since(&mut self, mark: usize, what: &str) {
        for Symbol { name, span, .. } in self.scope.unused_since(mark) {
            self.warn(Diagnostic::unused(span, what, &name));
        }
    }
}
