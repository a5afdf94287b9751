//! The mistakes that `known.txt` lists: how they are recognised, and what is told about them.

use super::{Stop, is_word};
use crate::diagnostic::Diagnostic;
use crate::foreign::scalar;

const KNOWN: &str = include_str!("known.txt");

/// The mistakes of a section.
fn section(name: &str) -> impl Iterator<Item = &'static str> {
    let own = KNOWN.split("\n== ").find_map(|own| own.strip_prefix(name)?.strip_prefix('\n'));
    own.unwrap_or_default().split("\n\n")
}

/// What a line of a mistake says.
fn line<'a>(mistake: &'a str, key: &str) -> Option<&'a str> {
    mistake.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

impl Stop<'_> {
    /// The message of the first mistake of a section that was made here.
    pub(super) fn known(&self, name: &str) -> Option<Diagnostic> {
        let mistake = section(name).find(|mistake| self.is(mistake))?;
        let place = match line(mistake, "at") {
            Some("first") => self.first_span,
            Some("previous") => self.previous?.1,
            _ => self.here(),
        };
        let text = |key| line(mistake, key).map(|text| self.filled(text));
        Some(Diagnostic::error(place, text("error")?).label(text("label")?).help_if(text("help")))
    }

    /// Whether a mistake was made here.
    fn is(&self, mistake: &str) -> bool {
        let any = |key, is: &dyn Fn(&str) -> bool| line(mistake, key).is_none_or(|words| words.split(' ').any(is));
        let all = |conditions: &str| conditions.split(" and ").all(|condition| self.holds(condition) == Some(true));
        any("found", &|own| self.is_at(own))
            && any("first", &|own| own == self.first)
            && any("any case", &|own| own == self.first.to_lowercase())
            && line(mistake, "when").is_none_or(|when| when.split(" or ").any(all))
    }

    /// Whether the parser stopped at a word, or at a sign.
    fn is_at(&self, own: &str) -> bool {
        match own {
            "<end>" => self.found.is_empty(),
            "<word>" => self.found.starts_with(is_word),
            word if word.starts_with(is_word) => self.found == word,
            sign => self.rest.starts_with(sign),
        }
    }

    /// Whether a condition holds, if there is one of that name.
    fn holds(&self, condition: &str) -> Option<bool> {
        if let Some(other) = condition.strip_prefix("not ") {
            return self.holds(other).map(|holds| !holds);
        }
        let name = self.name();
        let follows = self.rest[self.found.len()..].trim_start();
        let in_bracket = |open: &str| self.bracket.is_some_and(|(bracket, _)| open.starts_with(bracket));
        let owner = self.bracket.map_or("", |(_, word)| word);
        Some(match condition {
            "at start" => self.at_start(),
            "at a number" => self.found.starts_with(|c: char| c.is_ascii_digit()),
            "at a type" => scalar(self.found).is_some(),
            "after a declaration" => self.after_declaration(),
            "after a type" => self.previous.is_some_and(|(word, _)| scalar(word).is_some()),
            "after an operand" => self.after_operand,
            "after an operator" => self.last().is_some_and(|c| "*/+-%<>".contains(c)),
            "after another word" => self.previous.is_some_and(|(_, span)| span != self.first_span),
            "after axes" => name.contains(" on (") && !name.contains('='),
            "after the first word" => self.previous.is_some_and(|(_, span)| span == self.first_span),
            "after the first =" => name.find('=').is_some_and(|at| at + 1 == name.len()),
            "before a name" => follows.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'),
            "assigned" => self.is_assigned(),
            "over a mesh" => self.is_over_mesh(),
            "doubled" => self.before.ends_with(self.found) || self.rest[self.found.len()..].starts_with(self.found),
            "else expected" => self.else_expected,
            "if on this line" => self.line().contains("if "),
            "in a choice" => self.statement.contains("if "),
            "in a declaration" => ["let", "in", "out", "inout", "fn", "param", "const"].contains(&self.first),
            "right after a word" => self.before.ends_with(is_word),
            "twice" => self.previous.is_some_and(|(word, _)| word == self.found),
            "named" => !name.is_empty(),
            "on a line of its own" => self.line().trim_start().len() == self.statement.len(),
            _ => match condition.rsplit_once(' ')? {
                ("at", own) => self.is_at(own),
                ("after", text) => self.before.trim_end().ends_with(text),
                ("right after", text) => self.before.ends_with(text),
                ("before", text) => follows.starts_with(text),
                ("ends with", text) => name.ends_with(text),
                ("first", word) => self.first == word,
                ("name", own) => name == own,
                ("has", text) => name.contains(text),
                ("in", open) => in_bracket(open),
                ("in bare", open) => in_bracket(open) && owner.is_empty(),
                ("in named", open) => in_bracket(open) && !owner.is_empty(),
                ("within", word) => owner == word,
                _ => return None,
            },
        })
    }

    /// A text with what was written in it: a word or a sign, or what has no braces, so that nothing is filled in twice.
    fn filled(&self, text: &str) -> String {
        let statement = self.statement.trim_end();
        let written =
            [("{found}", self.found), ("{first}", self.first), ("{name}", self.name()), ("{statement}", statement)];
        written.iter().fold(text.to_owned(), |text, (hole, own)| text.replace(hole, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_is_understood() {
        let stop = Stop::new("stencil s { in a b }", 17, "b", |_| false);
        let mistakes = KNOWN.split("\n== ").skip(1).flat_map(|own| own.split("\n\n").skip(1));
        for mistake in mistakes.map(str::trim).filter(|mistake| !mistake.is_empty()) {
            assert!(line(mistake, "error").is_some() && line(mistake, "label").is_some(), "{mistake}");
            for text in mistake.lines() {
                let (key, said) = text.split_once(": ").unwrap();
                let is_known = match key {
                    "when" => {
                        said.split(" or ").flat_map(|all| all.split(" and ")).all(|own| stop.holds(own).is_some())
                    }
                    "at" => ["first", "previous"].contains(&said),
                    key => ["found", "first", "any case", "error", "label", "help"].contains(&key),
                };
                assert!(is_known, "{text}");
            }
        }
    }
}
