//! Tests: a stencil, its inputs, and what is expected of it.

use super::{Builder, Built, Node, Rule, part, parts, present, quoted, span, word};
use crate::ast::{Name, Test, TestPart, TestedCall};
use crate::diagnostic::wrong;

impl Builder<'_> {
    pub(super) fn test(&mut self, pair: &Node) -> Built<Test> {
        let title = present(part(pair, Rule::string), span(pair))?;
        let text = quoted(pair).unwrap_or_default().trim().to_owned();
        let own = parts(pair, Rule::test_part).flat_map(Node::into_inner);
        Ok(Test {
            title: Name { text, span: span(&title) },
            span: span(pair),
            parts: own.map(|own| self.test_part(&own)).collect::<Built<_>>()?,
        })
    }

    fn test_part(&mut self, pair: &Node) -> Built<TestPart> {
        let at = span(pair);
        Ok(match pair.as_rule() {
            Rule::grid => TestPart::Grid(self.values(pair)?, at),
            Rule::made => TestPart::Made(word(pair, Rule::ident)?, self.values(pair)?, at),
            Rule::depth => TestPart::Depth(self.value(pair)?, at),
            Rule::zoned => TestPart::Zone(word(pair, Rule::ident)?, self.value(pair)?, at),
            Rule::r#let => {
                let (place, typed) = (part(pair, Rule::place), part(pair, Rule::typed));
                let what = if place.is_some() {
                    "set is said: it is what it says, on each"
                } else {
                    "type is said: `f32(a)` converts"
                };
                if let Some(said) = place.or(typed) {
                    let found = wrong(span(&said), format!("of a `let` of a test no {what}"), "too much");
                    return Err(found.help("leave this out"));
                }
                TestPart::Let(self.binding(pair)?)
            }
            Rule::expect => TestPart::Expect(self.value(pair)?, at),
            _ => TestPart::TestedCall(TestedCall {
                name: word(pair, Rule::ident)?,
                values: parts(pair, Rule::assign).map(|own| self.assign(&own)).collect::<Built<_>>()?,
            }),
        })
    }
}
