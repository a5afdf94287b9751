//! `print(...)`: its label and value, and what is written instead.

use super::{Builder, Built, Node, Rule, parts, quoted, span, word};
use crate::ast::Print;
use crate::diagnostic::{Diagnostic, wrong};
use crate::source::Span;

/// The longest expression that is its own label; of a longer one the beginning is.
const LABEL: usize = 60;

impl Builder<'_> {
    pub(super) fn print(&mut self, pair: &Node) -> Built<Print> {
        let place = span(pair);
        let said = word(pair, Rule::print_word)?;
        if said.text != "print" {
            // Another language's word for it.
            let message = format!("there is no `{}`", said.text);
            return Err(wrong(said.span, message, "did you mean `print`?").help(EXAMPLE));
        }
        let (mut label, mut values) = (None, Vec::new());
        for own in parts(pair, Rule::printed) {
            match quoted(&own) {
                None => values.push((self.value(&own)?, span(&own))),
                Some(text) if label.is_none() && values.is_empty() => label = Some(text.to_owned()),
                Some(_) => {
                    let found = wrong(span(&own), "a print has one label, and it stands first", "another text");
                    return Err(found.help(EXAMPLE));
                }
            }
        }
        match values.as_slice() {
            [(value, at)] => {
                let label = label.unwrap_or_else(|| self.written(*at));
                Ok(Print { label, value: *value, span: place })
            }
            [] => Err(wrong(place, "a print shows one value, and this has none", "nothing to show").help(EXAMPLE)),
            [_, (_, second), ..] => Err(Diagnostic::error(*second, "a print shows one value")
                .label("a second one")
                .help("write a `print` for each")),
        }
    }

    /// The text at a place, on one line.
    fn written(&self, place: Span) -> String {
        let text = self.text.get(place.start as usize..place.end as usize).unwrap_or_default();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() <= LABEL { line } else { line.chars().take(LABEL - 3).chain("...".chars()).collect() }
    }
}

const EXAMPLE: &str = "write `print(phi[i-1])`, or `print(\"on the left\", phi[i-1])`";

/// A print where none can be.
pub(super) fn misplaced(pair: &Node) -> Diagnostic {
    Diagnostic::error(span(pair), "a `print` stands among the statements of a stencil, not inside an expression")
        .label("in a function or a block")
        .help("name the value with `let` in the stencil, and print it there")
}
