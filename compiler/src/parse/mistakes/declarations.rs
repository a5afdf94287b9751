//! Declarations, assignments and functions with something in the wrong place.

use super::{Stop, is_word, statements::RESERVED};
use crate::diagnostic::{Diagnostic, guess as nearest};
use crate::foreign::scalar;
use crate::source::Span;

const ROLES: &[&str] = &["in", "out", "inout"];
const SCALARS: &[&str] = &["real", "f32", "f64", "int", "bool"];

/// What `on` may be followed by.
const AXES: &str = "one of `(i, j, k)`, `(i, j)`, `(k)`, `(i, j, k+1)`, `(k+1)`";

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    if stop.type_expected && stop.found.starts_with(is_word) {
        let found = Diagnostic::error(stop.here(), format!("`{}` is no type", stop.found));
        let meant = scalar(stop.found).or_else(|| nearest(stop.found, SCALARS.iter().copied()));
        let types = "types are `real`, `f32`, `f64`, `int` (32 bits) and `bool`";
        return Some(match meant {
            Some(meant) => found.label(format!("did you mean `{meant}`?")).help(types),
            None => found.label("expected a type").help(types),
        });
    }
    match stop.first {
        "in" | "out" | "inout" if !stop.at_start() => field(stop),
        "let" if !stop.at_start() => binding(stop),
        "param" | "const" if !stop.at_start() => number(stop),
        "fn" if !stop.at_start() => function(stop),
        _ if stop.outside || stop.in_test => None,
        _ => assignment(stop),
    }
}

fn error(stop: &Stop, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(stop.here(), message)
}

/// A name with a type before it, as in `in float a`.
fn typed_before(stop: &Stop, keyword: &str) -> Option<Diagnostic> {
    let (word, span) = stop.previous?;
    let scalar = scalar(word)?;
    let ours = if keyword == "in" || keyword == "out" || keyword == "inout" || scalar == "int" || scalar == "bool" {
        scalar
    } else {
        "real"
    };
    if !stop.found.starts_with(is_word) {
        return None;
    }
    let mended = if keyword == "let" {
        format!("let {} = ...", stop.found)
    } else {
        format!("{keyword} {}: {ours}", stop.found)
    };
    Some(Diagnostic::error(span, "a type follows the name").label(format!("write `{mended}`")))
}

/// After `in`, `out` or `inout`.
fn field(stop: &Stop) -> Option<Diagnostic> {
    let names = stop.statement.get(stop.first.len()..).unwrap_or("").trim();
    let before_range = !names.contains(['=', ':']) && !names.contains(" on ");
    if stop.found == "on" && names.contains('=') {
        return Some(
            error(stop, "the axes stand before the range").label("too late").help("write `in a on (i, j) = 0..1`"),
        );
    }
    if names.contains('=') && (stop.rest.starts_with(".=") || stop.rest.starts_with("..=")) {
        return Some(
            error(stop, "the range of random input is written `0..1`")
                .label("leave out `=`")
                .help("its first number is included, its second is not"),
        );
    }
    if names.contains('=') && !names.contains("..") {
        let place = stop.before.rfind('=').map_or(stop.here(), |at| Span::new(at, stop.before.trim_end().len()));
        return Some(match stop.first {
            "in" => Diagnostic::error(place, "`=` gives the range that random input is drawn from")
                .label("expected a range, as in `= 0..1`")
                .help("a fixed number is a `const`, or a `param` with a default: `param c = 3`"),
            _ => Diagnostic::error(place, "a declaration gives an output no value").label("assigned too early").help(
                format!("declare it, then assign it: `{} res` and, on a line of its own, `res = ...`", stop.first),
            ),
        });
    }
    if names.ends_with(" on") && ["(", "["].contains(&stop.found) {
        let end = stop.rest.find([')', ']']).map_or(1, |end| end + 1);
        let place = Span::new(stop.before.len(), stop.before.len() + end);
        return Some(Diagnostic::error(place, "a field cannot live on these axes").label(AXES));
    }
    if !before_range {
        return None;
    }
    if ROLES.contains(&stop.found) || ["let", "param", "const", "fn"].contains(&stop.found) {
        if names.is_empty() || names.ends_with(',') {
            return None;
        }
        return Some(
            error(stop, "two statements on one line are parted by `;`")
                .label("a new statement begins here")
                .help("put it on a line of its own, or `;` before it"),
        );
    }
    match stop.found {
        "(" | "[" if !names.is_empty() => Some(
            error(stop, "axes are written with `on`")
                .label(format!("write `{} {} on (i, j)`, or nothing for all axes", stop.first, names))
                .help("a field without `on` lives on every cell (i, j, k)"),
        ),
        "-" | "." | "/" if !names.is_empty() => Some(
            error(stop, format!("`{}` cannot be part of a name", stop.found))
                .label("write `_`")
                .help("names are made of ASCII letters, digits and `_`"),
        ),
        "*" | "&" => Some(
            error(stop, "there are no pointers")
                .label("leave it out")
                .help("a field is declared by its name alone: `in a`"),
        ),
        found
            if found.starts_with(is_word)
                && !RESERVED.contains(&found)
                && !names.is_empty()
                && !names.ends_with(',') =>
        {
            typed_before(stop, stop.first).or_else(|| {
                Some(
                    error(stop, "a comma is missing between two names")
                        .label(format!("write `{} {names}, {found}`", stop.first))
                        .help("or, if this is a new statement, put it on a line of its own"),
                )
            })
        }
        _ => None,
    }
}

/// After `let`.
fn binding(stop: &Stop) -> Option<Diagnostic> {
    let name = stop.statement.get(stop.first.len()..).unwrap_or("").trim();
    if name.contains('=') {
        let is_list = stop.found == "," && stop.bracket.is_none_or(|(bracket, _)| bracket == '{');
        return is_list.then(|| error(stop, "a `let` names one value").label("write one `let` for each name"));
    }
    match stop.found {
        "-" | "." if !name.is_empty() => Some(
            error(stop, format!("`{}` cannot be part of a name", stop.found))
                .label("write `_`")
                .help("names are made of ASCII letters, digits and `_`"),
        ),
        ":" if stop.rest.starts_with(":=") => {
            Some(error(stop, "a value is named with `=`").label(format!("write `let {name} = ...`")))
        }
        "=" if stop.rest.starts_with("==") => {
            Some(error(stop, "a value is named with a single `=`").label(format!("write `let {name} = ...`")))
        }
        ":" => Some(error(stop, "a `let` has no type").label("leave it out").help("the type follows from the value")),
        "=" if name.is_empty() => Some(error(stop, "this `let` has no name").label("a name is expected before `=`")),
        found if RESERVED.contains(&found) && name.is_empty() => None,
        found if found.starts_with(is_word) && name == "mut" => Some(
            Diagnostic::error(stop.previous?.1, "there is no `mut`")
                .label(format!("write `let {found} = ...`"))
                .help("a name means one value and never changes"),
        ),
        found if found.starts_with(is_word) && !name.is_empty() => typed_before(stop, "let")
            .or_else(|| Some(error(stop, "`=` is missing").label(format!("write `let {name} = ...`")))),
        "(" | "[" if !name.is_empty() => Some(
            error(stop, "a `let` names a value at every cell")
                .label("leave out what stands in brackets")
                .help(format!("write `let {name} = ...`; with arguments it is a function: `fn {name}(a) = ...`")),
        ),
        "" | ";" | "}" if !name.is_empty() => {
            Some(error(stop, format!("the value of `{name}` is missing")).label("expected `= ...`"))
        }
        _ => None,
    }
}

/// After `param` or `const`.
fn number(stop: &Stop) -> Option<Diagnostic> {
    let name = stop.statement.get(stop.first.len()..).unwrap_or("").trim();
    if name.contains('=') {
        return None;
    }
    match stop.found {
        "" | ";" | "}" if stop.first == "const" && !name.is_empty() => Some(
            error(stop, format!("the value of `{name}` is missing"))
                .label("expected `= ...`")
                .help("a number that is given when running is a `param`"),
        ),
        found if found.starts_with(is_word) && !RESERVED.contains(&found) && !name.is_empty() => {
            typed_before(stop, stop.first)
        }
        _ => None,
    }
}

/// After `fn`.
fn function(stop: &Stop) -> Option<Diagnostic> {
    let head = stop.statement.get(stop.first.len()..).unwrap_or("").trim();
    let has_body = head.contains('=');
    let in_list = head.contains('(') && !head.contains(')');
    match stop.found {
        ">" if head.ends_with('=') && !head[..head.len() - 1].contains('=') => Some(
            error(stop, "the value of a function follows `=`").label("leave out `>`").help("as in `fn f(a) = 2*a`"),
        ),
        _ if has_body => None,
        ":" if in_list => Some(
            error(stop, "arguments of a function have no types")
                .label("leave the type out")
                .help("what is passed decides: write `fn f(a, b) = a + b`"),
        ),
        "=" if in_list => Some(
            error(stop, "arguments of a function have no defaults")
                .label("leave it out")
                .help("each call gives every argument"),
        ),
        ":" => {
            Some(error(stop, "the value of a function follows `=`").label("write `=`").help("as in `fn f(a) = 2*a`"))
        }
        "-" if stop.rest.starts_with("->") => Some(
            error(stop, "the type of a function's value is not written")
                .label("leave it out")
                .help("write `fn f(a) = 2*a` or `fn f(a) { ... }`"),
        ),
        "(" if head.is_empty() => Some(error(stop, "this function has no name").label("a name is expected before `(`")),
        found if !head.contains('(') && !head.is_empty() && !found.is_empty() && found != "(" => Some(
            error(stop, "the arguments of a function stand in parentheses")
                .label("expected `(`")
                .help(format!("write `fn {head}(a) = ...`; a value without arguments is a `let`, or a `const`")),
        ),
        found if head.ends_with(')') && found.starts_with(is_word) => {
            Some(error(stop, "`=` is missing").label(format!("write `= {found}`")))
        }
        found if in_list && found.starts_with(is_word) => match stop.previous {
            Some((word, span)) if scalar(word).is_some() => {
                Some(Diagnostic::error(span, "arguments of a function have no types").label("leave it out"))
            }
            _ => Some(error(stop, "a comma is missing between two arguments").label("expected `,` before it")),
        },
        _ => None,
    }
}

/// A name that is to be assigned, and no `=` after it.
fn assignment(stop: &Stop) -> Option<Diagnostic> {
    let target = stop.statement.trim_end();
    // Only a name, perhaps with an index, stands before.
    let is_target = target == stop.first || target.ends_with(']') && target[stop.first.len()..].starts_with('[');
    if stop.at_start() || !is_target || target.contains('=') || RESERVED.contains(&stop.first) {
        return None;
    }
    let name = stop.first;
    let rest = stop.rest;
    let plain = format!("write `{name} = ...`");
    let starts = |texts: &[&str]| texts.iter().any(|text| rest.starts_with(text));
    if starts(&["**=", "*=", "/=", "%=", "++", "--", "|=", "&=", "^=", "<<=", ">>=", "-="]) {
        return Some(error(stop, "a value is not changed").label("only `=` assigns").help(
            "a name means one value: give the new one a name of its own, as in `let twice = 2*a`, and assign that",
        ));
    }
    if starts(&[":=", "<-", "==", "=>", ":", "->"]) {
        return Some(error(stop, "an output is assigned with `=`").label(plain));
    }
    match stop.found {
        "(" if !is_assigned(rest) => Some(
            error(stop, "a call stands in an expression")
                .label("no statement begins like this")
                .help("write `res = f(a)` or `let x = f(a)`"),
        ),
        "(" => Some(
            error(stop, "an output is assigned by its name alone")
                .label(plain)
                .help("the formula holds on every cell: nobody writes the cell's indices"),
        ),
        "[" => Some(error(stop, "an output is assigned by its name alone").label(plain)),
        "" | ";" | "}" => Some(error(stop, format!("`{name}` alone says nothing")).label("expected `= ...`")),
        _ => None,
    }
}

/// Whether `=` follows the parentheses that `rest` begins with.
fn is_assigned(rest: &str) -> bool {
    rest.find(')').is_some_and(|end| rest[end + 1..].trim_start().starts_with('='))
}
