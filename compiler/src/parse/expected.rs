//! Turns the parser's one error into a sentence a beginner understands.

use super::Rule;
use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};
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
        Rule::expr => "an expression",
        Rule::typed => "`: type`",
        Rule::scalar => "a type (`real`, `f32`, `f64`, `int` or `bool`)",
        Rule::place => "`on (...)`",
        Rule::axes | Rule::axis => "axes, as in `(i, j)`",
        Rule::assign_op | Rule::is => "`=`",
        Rule::index => "`[`",
        Rule::kw_else => "`else`",
        Rule::kw_in => "`in`",
        Rule::kw_if => "`if`",
        Rule::range | Rule::path => "a range, as in `1..=3`",
        Rule::arity => "`[n]`",
        Rule::binder => "a name and its range, as in `n in 1..=3`",
        Rule::string => "a title in quotes",
        Rule::argument => "an argument",
        Rule::test_part => "a stencil with its inputs, `let`, `expect` or `grid(...)`",
        Rule::digits => "a part's number",
        Rule::direction => "`up` or `down`",
        Rule::edge_rule => "a rule, as in `i: periodic`",
        Rule::edge_kind => "`periodic`, `copy`, `mirror`, `halo` or `value(x)`",
        _ => return None,
    })
}

/// Rules that are possible nearly everywhere and would only distract.
const NOISE: &[Rule] = &[Rule::docs, Rule::doc, Rule::component, Rule::mistake, Rule::neg, Rule::not, Rule::no_levels];

/// The parser's error as a diagnostic.
pub fn diagnose(error: &Error<Rule>, source: &Source) -> Diagnostic {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let rest = &source.text[at..];
    let found = found(rest);
    let place = Span::new(at, at + found.len());
    let what = match found {
        "" if rest.is_empty() => "the file ends here".to_owned(),
        "" => "the line ends here".to_owned(),
        word => format!("`{word}` does not fit here"),
    };
    let expected = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => expected(positives),
        ErrorVariant::CustomError { message } => message.clone(),
    };
    let mut diagnostic = Diagnostic::error(place, what);
    if !expected.is_empty() {
        diagnostic = diagnostic.label(format!("expected {expected}"));
    }
    // What does not fit is often the word before: `for n`, `return x`.
    let before = &source.text[..at];
    let previous = before.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let of_previous = || if previous.is_empty() { None } else { help(previous, previous, before) };
    match help(found, rest, before).or_else(of_previous) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
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

/// Words that cannot be names, as in the grammar.
const RESERVED: &[&str] = &[
    "stencil", "program", "mesh", "test", "fn", "const", "param", "inout", "inc", "in", "out", "reduce", "let", "if",
    "else", "sum", "sweep", "repeat", "boundary", "expect", "true", "false",
];

/// What people of other languages write.
fn help(found: &str, rest: &str, before: &str) -> Option<String> {
    let line = before.rsplit('\n').next().unwrap_or("").trim();
    Some(match found {
        "and" => "write `&&`".into(),
        "or" => "write `||`".into(),
        "not" => "write `!`".into(),
        "for" | "while" | "do" | "loop" => {
            "there are no loops: a stencil is computed on every cell; `sum(n in 1..=3) { ... }` adds terms".into()
        }
        "def" | "function" | "func" | "subroutine" => "functions are written `fn name(a, b) = a + b`".into(),
        "return" => "the last expression of a block is its value".into(),
        "float" | "double" | "integer" | "logical" | "real" | "f32" | "f64" | "int" | "bool" => {
            "a type stands behind the name: `in a: f32`; types are `real`, `f32`, `f64`, `int` and `bool`".into()
        }
        "var" | "auto" => "names are given by `let name = ...`".into(),
        "/" if rest.starts_with("/*") => "comments begin with `//` and end with the line".into(),
        "Stencil" | "kernel" | "gtscript" => "write `stencil name { ... }`".into(),
        "import" | "use" | "include" => "a file stands alone: write the functions that it needs into it".into(),
        "elif" | "elseif" | "elsif" => "write `else if`".into(),
        "input" | "output" => "fields are declared by `in`, `out` and `inout`".into(),
        "&" | "|" if !rest.starts_with("&&") && !rest.starts_with("||") => "write `&&` and `||`".into(),
        _ if RESERVED.contains(&found) => format!("`{found}` is a word of the language, and cannot be a name"),
        "#" => "comments begin with `//`".into(),
        "?" => "write `if c { a } else { b }`".into(),
        "'" => "names end in letters, digits or `_`".into(),
        ":" if line.starts_with("let ") => "a `let` has no type: it follows from the value".into(),
        "assert" | "check" => "write `expect res == 1`".into(),
        "\"" => "only the title of a `test` is a text".into(),
        _ if rest.starts_with("..") && !rest.starts_with("..=") || rest.starts_with('.') && before.ends_with('.') => {
            "ranges of a `sum` are written `1..=3`, both ends included".into()
        }
        _ if before.contains("if ") && (found == "}" || found.is_empty()) => "an `if` always has an `else`".into(),
        _ => return None,
    })
}
