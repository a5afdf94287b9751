//! Expressions with operators, calls and brackets of other languages.

use super::{Stop, is_word, last_word};
use crate::diagnostic::{Diagnostic, wrong};
use crate::foreign::{self, FUNCTIONS, function, scalar};
use crate::source::Span;

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    if let Some(found) = stop.known("words in expressions") {
        return Some(found);
    }
    if stop.else_expected {
        // Where the next line was looked at, too, the place is the end of the branch.
        let end = stop.before.trim_end();
        let passed = stop.before[end.len()..].contains('\n');
        let place = if passed { Span::new(end.len().saturating_sub(1), end.len()) } else { stop.here() };
        let found = wrong(place, "this `if` has no `else`", "expected `else { ... }`");
        return Some(found.help("an `if` is a value, so it needs one in either case: `if a > 0 { a } else { 0 }`"));
    }
    if ["and", "or"].contains(&stop.found) {
        return stop.known("words as operators");
    }
    stop.known("words as operators")
        .or_else(|| fortran(stop))
        .or_else(|| stop.known("ends of blocks"))
        .or_else(|| super::operators::guess(stop))
        .or_else(|| stop.known("signs in expressions"))
        .or_else(|| fold(stop))
        .or_else(|| slice(stop))
        .or_else(|| stop.known("joined"))
        .or_else(|| member(stop))
        .or_else(|| missing(stop))
}

/// `.gt.` and its like, which the parser gives up after.
fn fortran(stop: &Stop) -> Option<Diagnostic> {
    let head = stop.before.trim_end().strip_suffix('.')?;
    let word = last_word(head);
    let lower = word.to_lowercase();
    let ours = foreign::meaning("words between points", &format!(".{lower}."))
        .or_else(|| foreign::meaning("words after points", &lower))?;
    let start = head.len().checked_sub(word.len() + 1)?;
    let place = Span::new(start, head.len() + 1);
    Some(Diagnostic::error(place, format!("`.{word}.` is no operator")).label(format!("write {ours}")))
}

/// `a[1:3]`, `a[0..3]`.
fn slice(stop: &Stop) -> Option<Diagnostic> {
    let (bracket, word) = stop.bracket?;
    let is_subscript = bracket == '[' || bracket == '(' && word.starts_with(is_word);
    let is_range = stop.rest.starts_with("..") || stop.rest.starts_with('.') && stop.before.ends_with('.');
    let is_slice = is_subscript && stop.found == ":" && !stop.rest.starts_with("::");
    if is_slice || bracket == '[' && is_range { stop.known("slice") } else { None }
}

/// `sum(n = 1..3)` and its like.
fn fold(stop: &Stop) -> Option<Diagnostic> {
    let told = |message: &str, label: &str| {
        let form = "write `sum(n in 1..=3) { a[i+n] }`; both ends are included";
        Some(Diagnostic::error(stop.here(), message).label(label).help(form))
    };
    let word = stop.bracket.filter(|(bracket, _)| *bracket == '(').map_or("", |(_, word)| word);
    let (has_counter, has_range) = (stop.statement.contains(" in "), stop.statement.contains("..="));
    let is_fold = word == "sum" || ["min", "max"].contains(&word) && has_counter;
    if !is_fold {
        if stop.found == "in" && stop.after_operand && word.starts_with(is_word) {
            let found =
                wrong(stop.here(), "only `sum`, `min` and `max` run over a range", format!("`{word}` does not"));
            return Some(found.help("a mean is a `sum` divided by the number of its terms; a product is written out"));
        }
        let is_headed = has_counter && has_range && stop.last() == Some(')');
        if is_headed && (stop.found.starts_with(is_word) || stop.found == "(") {
            return told("what a `sum` adds stands in braces", "expected `{`");
        }
        return None;
    }
    if has_range {
        return told("what is added stands in braces, after the parenthesis", "not here");
    }
    if !stop.before.rsplit(word).next().unwrap_or("").contains(" in ") {
        return stop.known("sum without range");
    }
    match stop.found {
        "." | ":" | ".." | ")" => told("the range of a counter is written `1..=3`", "expected `..=`"),
        _ => None,
    }
}

/// `np.sqrt(a)`.
fn member(stop: &Stop) -> Option<Diagnostic> {
    if stop.found != "(" {
        return None;
    }
    let (name, span) = stop.previous?;
    let head = &stop.before[..span.start as usize];
    let owner = last_word(head.strip_suffix('.')?);
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_name(owner) || !is_name(name) {
        return None;
    }
    let place = Span::new(head.len() - 1 - owner.len(), span.end as usize);
    let found = Diagnostic::error(place, format!("`{owner}.{name}` is no function"));
    Some(match function(name) {
        _ if FUNCTIONS.contains(&name) => found.label(format!("write `{name}` alone")),
        Some(ours) => found.label(format!("write `{ours}`")),
        None => found.label("functions are called by their name alone").help(foreign::functions()),
    })
}

/// `if (c) a else b`, `(real) a`: what follows a parenthesis that has another meaning elsewhere.
fn after_parenthesis(stop: &Stop) -> Option<Diagnostic> {
    let head = stop.before.trim_end().strip_suffix(')')?;
    let choice = stop.statement.rfind("if").map(|at| stop.statement[at + 2..].trim());
    if choice.is_some_and(|rest| rest.starts_with('(') && rest.ends_with(')')) {
        let found = wrong(stop.here(), "a branch stands in braces", "expected `{`");
        return Some(found.help("a choice is written `if c { a } else { b }`"));
    }
    let start = head.rfind('(')?;
    scalar(head[start + 1..].trim()).map(|_| {
        wrong(Span::new(start, head.len() + 1), "there are no casts", "leave it out")
            .help("numbers are converted where kinds meet; the type of a field says how it is stored")
    })
}

/// Something that is missing, where what was found would fit after it.
fn missing(stop: &Stop) -> Option<Diagnostic> {
    let last = stop.last()?;
    if let Some(found) = stop.known("commas") {
        return Some(found);
    }
    if stop.after_operand && (stop.found == "(" || stop.found.starts_with(is_word)) {
        let (word, span) = stop.previous.unwrap_or(("", stop.here()));
        let adjacent = stop.before.trim_end_matches([' ', '\t']).len() == span.end as usize;
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if adjacent && !is_number && stop.found != "(" && function(word).is_some() {
            let found = Diagnostic::error(stop.here(), "an argument stands in parentheses");
            return Some(found.label(format!("write `{word}({})`", stop.found)));
        }
        if super::RESERVED.contains(&stop.found) {
            return stop.known("parted");
        }
        return after_parenthesis(stop).or_else(|| stop.known("no operator"));
    }
    if let Some(found) = stop.known("nothing") {
        return Some(found);
    }
    // `a +` and then something else: the mistake is at the operator.
    let begins_statement = ["in", "out", "inout", "let", "param", "const", "stencil", "else"].contains(&stop.found);
    let ends = ["", "}", ";", ")", "]", ","].contains(&stop.found) || begins_statement;
    if ends && !stop.after_operand && "+-*/%<>=&|!".contains(last) {
        let at = stop.before.trim_end().len();
        let head = &stop.before[..at];
        let start = head.trim_end_matches(|c| "+-*/%<>=&|!".contains(c)).len();
        let operator = &head[start..];
        let found = Diagnostic::error(Span::new(start, at), format!("nothing follows `{operator}`"));
        return Some(found.label("an expression is expected after it"));
    }
    None
}
