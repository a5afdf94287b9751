//! Statements and declarations that begin with a word of another language, or with one of ours in the wrong place.

use super::{Stop, is_word};
use crate::diagnostic::{Diagnostic, guess as nearest, wrong};
use crate::source::Span;

/// Words that cannot be names, as in the grammar.
pub const RESERVED: &[&str] = &[
    "stencil", "program", "mesh", "test", "fn", "const", "param", "inout", "inc", "in", "out", "reduce", "and", "or",
    "not", "let", "if", "else", "sum", "sweep", "repeat", "boundary", "expect", "true", "false",
];

/// What begins a declaration of a file, and a statement of a stencil.
const ITEMS: &[&str] = &["stencil", "fn", "const", "param", "type", "program", "mesh", "test"];
const STATEMENTS: &[&str] = &["in", "out", "inout", "param", "const", "let", "fn"];

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    // A block's closing brace may end a statement, as in `{ x } else`.
    if stop.outside {
        return stop.known("outside").or_else(|| open_test(stop)).or_else(|| outside(stop));
    }
    if stop.item == Some("test")
        && let Some(found) = parted(stop).or_else(|| stop.known("what a test has not"))
    {
        return Some(found);
    }
    if stop.first == "type" && stop.previous.is_some_and(|(_, span)| span == stop.first_span) {
        let found = wrong(stop.first_span, "a type is named at file level", "in braces");
        return Some(found.help("write `type vp = f32` outside of them"));
    }
    if stop.found == "else" && !stop.before.trim_end().ends_with('}') && stop.bracket.is_some_and(|(own, _)| own == '{')
    {
        return Some(open_before_else(stop.here()));
    }
    if let Some(found) = order(stop) {
        return Some(found);
    }
    if stop.at_start() && (RESERVED.contains(&stop.found) || stop.found == "(") {
        return stop.known("misplaced");
    }
    // `x = ...` is an assignment even where `x` is a word of another language.
    if stop.is_assigned() {
        return parted(stop);
    }
    if stop.item == Some("test") {
        return stop.known("test").or_else(|| stop.known("words")).or_else(|| parted(stop));
    }
    stop.known("words").or_else(|| parted(stop)).or_else(|| two_words(stop))
}

/// An `else` that no `}` stands before.
pub fn open_before_else(place: Span) -> Diagnostic {
    wrong(place, "the block before this `else` is not closed", "`}` is missing before it")
        .help("write `if a > 0 { ... } else { ... }`")
}

/// `sum by level`, `sums by levels`, `sums_by_level`: nearly what puts sums in order.
fn order(stop: &Stop) -> Option<Diagnostic> {
    let rest = stop.rest.split(['\n', ';', '}']).next().unwrap_or_default();
    let line = format!("{}{rest}", stop.statement);
    let words: Vec<&str> = line.split([' ', '_', '-']).filter(|word| !word.is_empty()).take(3).collect();
    let [sums, by, level] = words[..] else { return None };
    let level = level.split(|letter: char| !letter.is_alphanumeric()).next()?;
    let is_meant = ["sum", "sums"].contains(&sums) && by == "by" && ["level", "levels"].contains(&level);
    let found =
        Diagnostic::error(stop.first_span, "sums are added level by level where a stencil says so in three words");
    is_meant.then(|| found.label("not as it is written").help("write `sums by level`"))
}

/// `lett x = a`, `inn a`: two words, the first nearly one of ours.
fn two_words(stop: &Stop) -> Option<Diagnostic> {
    let follows = stop.previous.is_some_and(|(_, span)| span == stop.first_span);
    if !follows || !stop.found.starts_with(is_word) || RESERVED.contains(&stop.first) {
        return None;
    }
    let found = Diagnostic::error(stop.first_span, format!("`{}` begins no statement", stop.first));
    Some(found.meant(nearest(stop.first, STATEMENTS.iter().copied()), |found| {
        found.label("not a word of the language").help(
            "a statement begins with `in`, `out`, `inout`, `param`, `const`, `let`, `fn` or `print`, or is `name = ...`",
        )
    }))
}

/// A test whose title something else than a brace follows.
fn open_test(stop: &Stop) -> Option<Diagnostic> {
    let title = stop.rest.strip_prefix("test")?.trim_start().strip_prefix('"')?;
    let rest = title.get(title.find('"')? + 1..)?.trim_start();
    let at = stop.before.len() + stop.rest.len() - rest.len();
    let length = rest.chars().next().filter(|&first| first != '{')?.len_utf8();
    let found = wrong(Span::new(at, at + length), "what a test consists of stands in braces", "expected `{`");
    Some(found.help("as in `test \"title\" { lap { phi = i }; expect abs(res) < 1e-12 }`"))
}

/// Words after a closing brace that are no statement.
const ELSEWHERE: &[&str] = &["else", "elif", "elseif", "elsif", "stencil", "program", "mesh", "test"];

/// A second statement on the line of one that ended with a bracket, as in `s { a = 1 } expect b == 1`, or one that is assigned.
pub fn parted(stop: &Stop) -> Option<Diagnostic> {
    let is_after_block = stop.at_start() && stop.line().trim_end().ends_with('}');
    let is_after_grid = stop.item == Some("test") && stop.first == "grid" && stop.line().trim_end().ends_with(')');
    let begins = stop.found.starts_with(is_word) && !ELSEWHERE.contains(&stop.found);
    let in_block = stop.bracket.is_some_and(|(bracket, _)| bracket == '{');
    let follows = stop.rest[stop.found.len()..].trim_start();
    // What is assigned is no operand of what stands before it.
    let is_assigned = follows.starts_with('=') && !follows.starts_with("==");
    let is_named = ["let", "const"].contains(&stop.first) && stop.statement.contains('=');
    let has_assigned = stop.is_assigned() || is_named;
    let is_after_whole = has_assigned && stop.last().is_some_and(|last| is_word(last) || ")]}".contains(last));
    let is_second = is_after_block || is_after_grid || (is_assigned && is_after_whole);
    if begins && in_block && is_second { stop.known("parted") } else { None }
}

/// What stands in no braces.
fn outside(stop: &Stop) -> Option<Diagnostic> {
    if !stop.at_start() && RESERVED.contains(&stop.first) {
        return None;
    }
    if let Some(found) = stop.known("words").or_else(|| stop.known("items")) {
        return Some(found);
    }
    let first = stop.first;
    if first.is_empty() || ITEMS.contains(&first) {
        return None;
    }
    if let Some(found) = stop.known("assigned outside") {
        return Some(found);
    }
    let follows = stop.rest[stop.found.len()..].trim_start();
    let meant = nearest(first, ITEMS.iter().copied()).filter(|_| follows.starts_with(is_word));
    let found = Diagnostic::error(stop.first_span, format!("`{first}` begins nothing that can stand here"));
    let found = found.meant(meant, |found| {
        found.label("expected `stencil`, `program`, `mesh`, `test`, `fn`, `const`, `param` or `type`")
    });
    Some(found.help(
        "a file holds `stencil name { ... }`, `program name { ... }`, `mesh name { ... }`, `test \"title\" { ... }`, `fn`, `const`, `param` and `type`",
    ))
}
