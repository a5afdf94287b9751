//! What people write who know another language, and how it is written here. Each guess looks at the place where the parser
//! stopped, and answers with the whole message; where none fits, what the parser expected has to do.

mod characters;
mod declarations;
mod expressions;
mod meshes;
mod operators;
mod statements;

use crate::diagnostic::{Diagnostic, guess as nearest};
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
    /// Whether it stands in a `test`.
    pub in_test: bool,
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
    /// The place where the parser of `text` stopped.
    pub fn new(text: &'a str, at: usize, found: &'a str) -> Self {
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
        let in_test = item == Some("test");
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
            in_test,
            bracket,
            after_operand: false,
            type_expected: false,
            else_expected: false,
        }
    }

    /// What was found.
    fn here(&self) -> Span {
        let at = self.before.len();
        Span::new(at, at + self.found.len())
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

/// What the rules of edges are called elsewhere.
const RULES: &[(&str, &[&str])] = &[
    ("value(0)", &["zero", "zeros", "constant", "const", "dirichlet", "fixed", "clamp", "absorbing", "0"]),
    (
        "copy",
        &["neumann", "nearest", "edge", "extend", "extrapolate", "outflow", "open", "zerogradient", "zero_gradient"],
    ),
    ("periodic", &["wrap", "cyclic", "circular", "torus", "repeat"]),
    ("mirror", &["reflect", "reflecting", "symmetric", "symmetry", "reflective"]),
    ("halo", &["none", "keep", "given", "ghost"]),
];

/// A word in the braces of a `boundary` that is no rule.
fn edge_rule(stop: &Stop) -> Option<Diagnostic> {
    let open = stop.before.rfind('{')?;
    let head = stop.before[..open].trim_end().rsplit(['\n', ';', '{', '}']).next().unwrap_or_default();
    let place = stop.before.trim_end();
    if word_at(head.trim_start()) != "boundary" || !place.ends_with(':') || place.len() < open {
        return None;
    }
    let number = &stop.rest[..stop.rest.find(|c: char| !(is_word(c) || "+-.".contains(c))).unwrap_or(stop.rest.len())];
    let known = "the rules are periodic, value(x), copy, mirror and halo";
    let begins_number = number.trim_start_matches(['-', '+', '.']).starts_with(|c: char| c.is_ascii_digit());
    if begins_number {
        let here = Span::new(stop.before.len(), stop.before.len() + number.len());
        return Some(
            Diagnostic::error(here, "a value at an edge stands in parentheses")
                .label(format!("write `value({number})`"))
                .help(known),
        );
    }
    if !stop.found.starts_with(is_word) {
        return None;
    }
    let lower = stop.found.to_lowercase();
    let found = Diagnostic::error(stop.here(), format!("`{}` is no rule for an edge", stop.found));
    let ours =
        [("periodic", "periodic"), ("value(0)", "value"), ("copy", "copy"), ("mirror", "mirror"), ("halo", "halo")];
    let all = || ours.into_iter().chain(RULES.iter().flat_map(|(own, theirs)| theirs.iter().map(|word| (*own, *word))));
    let exact = all().find(|(_, word)| *word == lower);
    let near = || nearest(&lower, all().map(|(_, word)| word)).and_then(|near| all().find(|(_, word)| *word == near));
    Some(match exact.or_else(near) {
        Some((own, _)) => found.label(format!("did you mean `{own}`?")).help(known),
        None => found.label("not a word of the language").help(known),
    })
}

/// What stands in a `program`.
fn larger(stop: &Stop) -> Option<Diagnostic> {
    if stop.item == Some("program")
        && let Some(found) = edge_rule(stop).or_else(|| statements::parted(stop))
    {
        return Some(found);
    }
    let help = match stop.item? {
        "program" => {
            "a program has fields (`inout phi on (i, j) = 0..1`), `param n: int = 10`, \
             `boundary phi { i: periodic, j: copy }` with the rules periodic, value(x), copy, mirror and halo, calls of stencils \
             (`phi = step(phi)`, `let flux = slope(phi)`), and `repeat n { ... }`"
        }
        _ => return None,
    };
    Some(
        Diagnostic::error(stop.here(), "this cannot be read as a part of a `program`")
            .label("not understood")
            .help(help),
    )
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
