//! Tests: a stencil, its inputs, and what is expected of it.

use super::{Builder, Built, Node, Rule, name, span};
use crate::ast::{ExprId, Name, Test, TestPart, TestedCall};

impl Builder<'_> {
    pub(super) fn test(&mut self, pair: Node) -> Built<Test> {
        let mut test = Test { title: name(&pair), span: span(&pair), parts: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::string => test.title = title(part),
                Rule::test_part => {
                    for part in part.into_inner() {
                        test.parts.push(self.test_part(part)?);
                    }
                }
                _ => {}
            }
        }
        Ok(test)
    }

    fn test_part(&mut self, pair: Node) -> Built<TestPart> {
        let at = span(&pair);
        Ok(match pair.as_rule() {
            Rule::grid => TestPart::Grid(self.exprs(pair)?, at),
            Rule::r#let => TestPart::Let(self.binding(pair)?),
            Rule::expect => {
                let truth = self.exprs(pair)?.pop();
                TestPart::Expect(self.present(truth, at)?, at)
            }
            _ => TestPart::TestedCall(self.subject(pair)?),
        })
    }

    fn subject(&mut self, pair: Node) -> Built<TestedCall> {
        let mut subject = TestedCall { name: name(&pair), values: Vec::new() };
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => subject.name = name(&part),
                Rule::assign => subject.values.push(self.assign(part)?),
                _ => {}
            }
        }
        Ok(subject)
    }

    /// The expressions of a construct that has words and expressions only.
    fn exprs(&mut self, pair: Node) -> Built<Vec<ExprId>> {
        pair.into_inner().filter(|part| part.as_rule() == Rule::expr).map(|part| self.expr(part)).collect()
    }
}

fn title(pair: Node) -> Name {
    let span = span(&pair);
    let text = pair.into_inner().next().map_or("", |text| text.as_str());
    Name { text: text.trim().to_owned(), span }
}
