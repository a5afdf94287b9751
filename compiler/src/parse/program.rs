//! Programs: what stands in them beside the statements of stencils.

use super::{Builder, Built, Node, Rule, headline, name, names, span};
use crate::ast::{Boundary, EdgeRule, Program, Repeat};

impl Builder<'_> {
    pub(super) fn program(&mut self, pair: Node, doc: String) -> Built<Program> {
        let mut program = Program { doc, name: name(&pair), over: None, statements: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => program.name = name(&part),
                Rule::over => program.over = super::trail_in(part),
                Rule::body => program.statements = self.statements(part)?,
                _ => {}
            }
        }
        Ok(program)
    }

    pub(super) fn repeat(&mut self, pair: Node) -> Built<Repeat> {
        let place = headline(&pair);
        let (mut times, mut statements) = (None, Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => times = Some(self.expr(part)?),
                Rule::body => statements = self.statements(part)?,
                _ => {}
            }
        }
        Ok(Repeat { times: self.present(times, place)?, statements, span: place })
    }

    pub(super) fn boundary(&mut self, pair: Node) -> Built<Boundary> {
        let mut boundary = Boundary { names: Vec::new(), rules: Vec::new(), span: headline(&pair) };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::names => boundary.names = names(part),
                Rule::edge_rule => boundary.rules.push(self.edge_rule(part)?),
                _ => {}
            }
        }
        Ok(boundary)
    }

    fn edge_rule(&mut self, pair: Node) -> Built<EdgeRule> {
        let own = name(&pair);
        let mut rule = EdgeRule { axis: own.clone(), side: None, kind: own, value: None, span: span(&pair) };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => rule.axis = name(&part),
                Rule::side => rule.side = Some(name(&part)),
                Rule::edge_kind | Rule::kw_value => rule.kind = name(&part),
                Rule::expr => rule.value = Some(self.expr(part)?),
                _ => {}
            }
        }
        Ok(rule)
    }
}
