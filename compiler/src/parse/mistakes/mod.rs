//! What people write who know another language, and how it is written here. Each guess looks at the place where the parser
//! stopped, and answers with the whole message; where none fits, what the parser expected has to do. Mistakes that are a word
//! in a certain place are listed in `known.txt`; those that need a closer look are functions.

mod characters;
mod declarations;
mod expressions;
mod known;
mod meshes;
mod operators;
mod statements;

pub(super) use statements::open_before_else;

use super::Rule;
use crate::diagnostic::{Diagnostic, guess as nearest};
use crate::foreign;
use crate::source::Span;

/// Where the parser stopped, and what stands around it.
pub struct Stop<'a> {
    /// The text before it.
    pub before: &'a str,
    /// The text from it on.
    pub rest: &'a str,
    /// The word or character there; empty at the end of a line.
    pub found: &'a str,
    /// The last word before it, and what stands between: blanks only, or nothing.
    pub previous: Option<(&'a str, Span)>,
    /// The statement so far: since the last newline, `;` or brace.
    pub statement: &'a str,
    /// The first word of the statement, be it before the place or at it.
    pub first: &'a str,
    /// Where that word is.
    pub first_span: Span,
    /// Whether it stands in no braces.
    pub outside: bool,
    /// The first word of the item whose braces it stands in.
    pub item: Option<&'a str>,
    /// The innermost bracket that is open, and the word before it.
    pub bracket: Option<(char, &'a str)>,
    /// Whether an operator could have followed, so an operand is complete.
    pub after_operand: bool,
    /// Whether a type was expected.
    pub type_expected: bool,
    /// Whether an `else` was expected.
    pub else_expected: bool,
}

impl<'a> Stop<'a> {
    /// The place where the parser of `text` stopped, and whether it expected a rule there.
    pub fn new(text: &'a str, at: usize, found: &'a str, expects: impl Fn(Rule) -> bool) -> Self {
        let (before, rest) = text.split_at(at);
        let statement_start = before.rfind(['\n', ';', '{', '}']).map_or(0, |end| end + 1);
        let statement = before[statement_start..].trim_start();
        let statement_at = at - statement.len();
        let (first, first_at) = match word_at(statement) {
            "" if statement.is_empty() => (word_at(rest), at),
            first => (first, statement_at),
        };
        let trimmed = before.trim_end_matches([' ', '\t']);
        let word = last_word(trimmed);
        let previous = (!word.is_empty()).then(|| (word, Span::new(trimmed.len() - word.len(), trimmed.len())));
        let (item, outside, bracket) = brackets(before);
        Stop {
            before,
            rest,
            found,
            previous,
            statement,
            first,
            first_span: Span::new(first_at, first_at + first.len()),
            outside,
            item,
            bracket,
            after_operand: expects(Rule::add),
            type_expected: expects(Rule::scalar),
            else_expected: expects(Rule::kw_else),
        }
    }

    /// What was found.
    fn here(&self) -> Span {
        let at = self.before.len();
        Span::new(at, at + self.found.len())
    }

    /// Whether the item in whose braces it stands runs over a mesh.
    fn is_over_mesh(&self) -> bool {
        let mut items = self.before.rsplit('\n').map(|line| line.split("//").next().unwrap_or_default().trim_start());
        let head = items.find(|line| ["stencil", "program"].contains(&word_at(line)));
        head.is_some_and(|head| head.split(|c| !is_word(c)).any(|word| word == "over"))
    }

    /// Whether the parser stopped at the first word of a statement.
    fn at_start(&self) -> bool {
        self.statement.is_empty()
    }

    /// Whether it follows what may be a whole declaration, `in a: f32`, on its line.
    fn after_declaration(&self) -> bool {
        ["in", "out", "inout", "inc", "param", "reduce"].contains(&self.first)
            && !self.statement.contains('=')
            && self.statement.trim_end().len() > self.first.len()
            && self.statement.trim_end().ends_with(|c: char| is_word(c) || c == ')')
    }

    /// What stands between the first word of the statement and the place, often a name.
    fn name(&self) -> &'a str {
        self.statement.get(self.first.len()..).unwrap_or("").trim()
    }

    /// Whether `=` follows the first word of the statement.
    fn is_assigned(&self) -> bool {
        self.name().starts_with('=') && !self.name().starts_with("==")
    }

    /// The line before the place.
    fn line(&self) -> &'a str {
        self.before.rsplit('\n').next().unwrap_or_default()
    }

    /// The last character before it that is not blank.
    fn last(&self) -> Option<char> {
        self.before.trim_end().chars().next_back()
    }
}

/// The message for a mistake that is known.
pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    characters::guess(stop)
        .or_else(|| meshes::guess(stop))
        .or_else(|| larger(stop))
        .or_else(|| statements::guess(stop))
        .or_else(|| declarations::guess(stop))
        .or_else(|| expressions::guess(stop))
}

/// A word in the braces of a `boundary` that is no rule.
fn edge_rule(stop: &Stop) -> Option<Diagnostic> {
    let open = stop.before.rfind('{')?;
    let head = stop.before[..open].trim_end().rsplit(['\n', ';', '{', '}']).next().unwrap_or_default();
    let place = stop.before.trim_end();
    if word_at(head.trim_start()) != "boundary" || !place.ends_with(':') || place.len() < open {
        return None;
    }
    let told = |place: Span, message: String, label: String| {
        let help = "the rules are periodic, value(x), copy, mirror, -mirror and halo";
        Some(Diagnostic::error(place, message).label(label).help(help))
    };
    let number = &stop.rest[..stop.rest.find(|c: char| !(is_word(c) || "+-.".contains(c))).unwrap_or(stop.rest.len())];
    if number.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit()) {
        let place = Span::new(stop.before.len(), stop.before.len() + number.len());
        return told(place, "a value at an edge stands in parentheses".into(), format!("write `value({number})`"));
    }
    if let Some(rest) = stop.rest.strip_prefix('-')
        && let word = word_at(rest.trim_start())
        && !word.is_empty()
    {
        let place =
            Span::new(stop.before.len(), stop.before.len() + stop.rest.len() - rest.trim_start().len() + word.len());
        return told(place, format!("`-{word}` is no rule for an edge"), "a minus stands before `mirror` alone".into());
    }
    if !stop.found.starts_with(is_word) {
        return None;
    }
    let lower = stop.found.to_lowercase();
    let meaning = |word: &str| foreign::meaning("edges", word);
    let near = || nearest(&lower, foreign::words("edges").map(|(theirs, _)| theirs)).and_then(meaning);
    let label = match meaning(&lower).or_else(near) {
        Some(own) => format!("did you mean `{own}`?"),
        None => "not a word of the language".into(),
    };
    told(stop.here(), format!("`{}` is no rule for an edge", stop.found), label)
}

/// What stands in a `program`.
fn larger(stop: &Stop) -> Option<Diagnostic> {
    if stop.item != Some("program") {
        return None;
    }
    edge_rule(stop).or_else(|| statements::parted(stop)).or_else(|| stop.known("program"))
}

pub use statements::RESERVED;

/// Whether a character may be part of a name or number, or was meant to.
fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The word that `text` begins with.
fn word_at(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// The word that `text` ends with.
fn last_word(text: &str) -> &str {
    &text[text.rfind(|c| !is_word(c)).map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8))..]
}

/// The first word of the item that the end of a text lies in, whether it lies outside all braces, and the innermost bracket
/// that is open there.
fn brackets(text: &str) -> (Option<&str>, bool, Option<(char, &str)>) {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = &line[..line.find("//").unwrap_or(line.len())];
        for (offset, character) in code.char_indices() {
            match character {
                '(' | '[' | '{' => open.push((character, at + offset)),
                ')' | ']' | '}' => drop(open.pop()),
                _ => {}
            }
        }
        at += line.len();
    }
    let outside = open.iter().all(|(bracket, _)| *bracket != '{');
    let item = open.first().filter(|(bracket, _)| *bracket == '{').map(|&(_, at)| {
        // The brace may begin a line of its own.
        let head = text[..at].trim_end();
        word_at(head.rsplit(['\n', ';', '}']).next().unwrap_or_default().trim_start())
    });
    (item, outside, open.last().map(|&(bracket, at)| (bracket, last_word(text[..at].trim_end()))))
}
