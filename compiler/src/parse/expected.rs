//! Turns the parser's one error into a sentence a beginner understands.

use super::Rule;
use super::mistakes::{self, RESERVED, Stop};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use pest::error::{Error, ErrorVariant, InputLocation};

/// Groups of rules that a reader thinks of as one thing, largest first: where all of a group are possible, the group's name
/// stands for them.
const GROUPS: &[(&[Rule], &str)] = &[
    (&[Rule::add, Rule::mul], "an operator"),
    (&[Rule::number, Rule::group], "an expression"),
    (&[Rule::stencil, Rule::function], "`stencil`, `fn`, `const` or `param`"),
    (&[Rule::field, Rule::r#let], "a declaration (`in`, `out`, `param`, `let` ...) or an assignment"),
];

/// What single rules are called.
fn called(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::EOI => "the end of the file",
        Rule::ident | Rule::names => "a name",
        Rule::block | Rule::body => "`{`",
        Rule::open => "`(`",
        Rule::close => "`)`",
        Rule::expr => "an expression",
        Rule::typed => "`: type`",
        Rule::scalar => "a type (`real`, `f32`, `f64`, `int` or `bool`)",
        Rule::place => "`on (...)`",
        Rule::axes | Rule::axis => "axes, as in `(i, j)`",
        Rule::assign_op | Rule::is => "`=`",
        Rule::index => "`[`",
        Rule::kw_else => "`else`",
        Rule::kw_by => "`by`",
        Rule::kw_level => "`level`",
        Rule::kw_in => "`in`",
        Rule::kw_if => "`if`",
        Rule::range | Rule::path | Rule::way => "a range, as in `1..=3`",
        Rule::arity => "`[n]`",
        Rule::binder => "a name and its range, as in `n in 1..=3`",
        Rule::string => "a title in quotes",
        Rule::argument => "an argument",
        Rule::test_part => "a stencil with its inputs, `let`, `expect` or `grid(...)`",
        Rule::digits => "a part's number",
        Rule::direction => "`up` or `down`",
        Rule::edge_rule => "a rule, as in `i: periodic`",
        Rule::edge_kind => "`periodic`, `copy`, `mirror`, `-mirror`, `halo` or `value(x)`",
        _ => return None,
    })
}

/// Rules that are possible nearly everywhere and would only distract.
const NOISE: &[Rule] = &[
    Rule::docs,
    Rule::doc,
    Rule::component,
    Rule::mistake,
    Rule::neg,
    Rule::not,
    Rule::no_levels,
    Rule::along,
    Rule::called,
    Rule::rest,
];

/// The parser's error as a diagnostic.
pub fn diagnose(error: &Error<Rule>, text: &str) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let rest = &text[at..];
    let found = found(rest);
    let place = Span::new(at, at + found.len());
    let what = match found {
        "" if rest.is_empty() => "the file ends here".to_owned(),
        "" => "the line ends here".to_owned(),
        " " | "\t" => "something is missing here".to_owned(),
        word => format!("`{word}` does not fit here"),
    };
    // Other errors are those of parsers that make their own.
    let positives: &[Rule] = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        ErrorVariant::CustomError { .. } => &[],
    };
    let stop = Stop::new(text, at, found, |rule| positives.contains(&rule));
    if let Some(diagnostic) = mistakes::guess(&stop) {
        return diagnostic;
    }
    let mut diagnostic = Diagnostic::error(place, what);
    let expected = expected(positives);
    if !expected.is_empty() {
        diagnostic = diagnostic.label(format!("expected {expected}"));
    }
    diagnostic.help_if(help(&stop))
}

/// The error of a word that is no type, where one is needed.
pub fn no_type(text: &str, span: Span) -> Option<Diagnostic> {
    let at = span.start as usize;
    mistakes::guess(&Stop::new(text, at, found(text.get(at..)?), |rule| rule == Rule::scalar))
}

/// The word or character at which the parser stopped.
fn found(rest: &str) -> &str {
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let first = rest.chars().next().filter(|&c| c != '\n' && c != '\r').map_or(0, char::len_utf8);
    &rest[..word.max(first)]
}

fn expected(positives: &[Rule]) -> String {
    let mut left: Vec<Rule> = positives.iter().copied().filter(|rule| !NOISE.contains(rule)).collect();
    let mut words: Vec<&str> = Vec::new();
    for (group, word) in GROUPS {
        if group.iter().all(|rule| left.contains(rule)) {
            words.push(word);
            // What else may stand in such a place goes without saying.
            left.retain(|rule| called(*rule).is_some() && !matches!(rule, Rule::ident | Rule::index | Rule::expr));
        }
    }
    for word in left.into_iter().filter_map(called) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(4);
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Advice where no mistake is known.
fn help(stop: &Stop) -> Option<String> {
    let before_range = stop.rest.starts_with("..") && !stop.rest.starts_with("..=");
    Some(match stop.found {
        _ if RESERVED.contains(&stop.found) => {
            format!("`{}` is a word of the language, and cannot be a name", stop.found)
        }
        "." if before_range || stop.before.ends_with('.') => {
            "ranges of a `sum` are written `1..=3`, both ends included".into()
        }
        _ => return None,
    })
}
