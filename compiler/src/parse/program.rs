//! Programs: what stands in them beside the statements of stencils.

use super::{Builder, Built, Node, Rule, headline, name, names, part, parts, present, span, word};
use crate::ast::{Boundary, EdgeRule, Repeat};

impl Builder<'_> {
    pub(super) fn repeat(&mut self, pair: &Node) -> Built<Repeat> {
        let counter = part(pair, Rule::counter).map(|own| present(part(&own, Rule::ident), span(&own)));
        let counter = counter.transpose()?.map(|own| name(&own));
        Ok(Repeat { times: self.value(pair)?, counter, statements: self.body(pair)?, span: headline(pair) })
    }

    pub(super) fn boundary(&mut self, pair: &Node) -> Built<Boundary> {
        let rules = parts(pair, Rule::edge_rule).map(|own| self.edge_rule(&own)).collect::<Built<_>>()?;
        Ok(Boundary { names: names(pair), rules, span: headline(pair) })
    }

    fn edge_rule(&mut self, pair: &Node) -> Built<EdgeRule> {
        let kind = part(pair, Rule::edge_kind).or_else(|| part(pair, Rule::kw_value));
        let mut kind = present(kind, span(pair)).map(|own| name(&own))?;
        // A blank after a minus means nothing, here as in numbers.
        kind.text.retain(|c| c != ' ');
        Ok(EdgeRule {
            axis: word(pair, Rule::ident)?,
            side: part(pair, Rule::side).map(|own| name(&own)),
            kind,
            value: self.optional(pair)?,
            span: span(pair),
        })
    }
}
