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
            None if stored(stop.found, stop).is_some() => return stored(stop.found, stop),
            None => found.label("expected a type").help(types),
        });
    }
    if stop.at_start() {
        // `in a = 3` ends with its line; the parser looked for an operator on the next.
        let end = stop.before.trim_end();
        let line = end.rsplit(['\n', ';', '{']).next().unwrap_or_default();
        let equals =
            line.find('=').filter(|_| ROLES.contains(&super::word_at(line.trim_start())) && !line.contains(".."));
        if let Some(equals) = equals {
            return Some(no_range(end, Span::new(end.len() - line.len() + equals, end.len())));
        }
    }
    if let Some(found) = size(stop) {
        return Some(found);
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

/// A declaration with `=` and no range after it, which ends where `text` does.
fn no_range(text: &str, place: Span) -> Diagnostic {
    let role = text.rsplit(['\n', ';', '{']).next().unwrap_or_default().trim_start();
    if role.starts_with("in ") {
        return Diagnostic::error(place, "`=` gives the range that random input is drawn from")
            .label("expected a range, as in `= 0..1`")
            .help("a fixed number is a `const`, or a `param` with a default: `param c = 3`");
    }
    let role = super::word_at(role);
    Diagnostic::error(place, "a declaration gives an output no value")
        .label("assigned too early")
        .help(format!("declare it, then assign it: `{role} res` and, on a line of its own, `res = ...`"))
}

/// `in a: real(8)`, `const w[3]`, `param p(3)`: a size after a type or a name.
fn size(stop: &Stop) -> Option<Diagnostic> {
    let (closing, stands_in) = match stop.found {
        "(" => (')', "parentheses"),
        "[" => (']', "brackets"),
        _ => return None,
    };
    let (word, span) = stop.previous?;
    let inside = stop.rest[1..].split([closing, '\n']).next().unwrap_or_default();
    let place = Span::new(stop.before.len(), stop.before.len() + inside.len() + 2);
    let names = stop.statement.get(stop.first.len()..)?.trim();
    let is_typed = ROLES.contains(&stop.first) || ["param", "const"].contains(&stop.first);
    if is_typed && SCALARS.contains(&word) && stop.before[..span.start as usize].trim_end().ends_with(':') {
        let bytes = inside.trim_start_matches(|c: char| !c.is_ascii_digit());
        let found = Diagnostic::error(place, format!("a type has no size in {stands_in}"));
        return Some(match (word, bytes) {
            ("real", "8") => found.label("for double precision, write `f64`"),
            ("real", "4") => found.label("for single precision, write `f32`"),
            ("int", "4") => found.label("leave it out").help("an `int` has 32 bits"),
            _ => found
                .label("leave it out")
                .help("a field holds one number a cell: the parts of a vector are fields of their own; sizes are given when running"),
        });
    }
    if !["param", "const"].contains(&stop.first) || names != word {
        return None;
    }
    Some(if stop.first == "const" {
        Diagnostic::error(place, "the number of parts is not written")
            .label("leave it out")
            .help(format!("the value says it, as in `const {word} = [3/4, -3/20, 1/60]`"))
    } else {
        Diagnostic::error(place, "a parameter is one number")
            .label("leave it out")
            .help(format!("write a parameter for each, `param {word}0, {word}1`, or a field `in {word} on (k)`"))
    })
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
    let mended = if keyword == "let" || keyword == "const" {
        format!("{keyword} {} = ...", stop.found)
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
    if let Some(found) = after_place(stop, names) {
        return Some(found);
    }
    if let Some(found) = on_a_mesh(stop, names) {
        return Some(found);
    }
    let is_typed = names.contains(':') && !names.contains('=');
    if is_typed && stop.found.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(error(stop, "a range is written with `=`").label("write `= 0..1`"));
    }
    let points = stop.rest.strip_prefix('.').map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    if names.contains('=') && points.is_some_and(|rest| rest.starts_with(['=', '.'])) {
        return Some(
            error(stop, "the range of random input is written `0..1`")
                .label("two points, and no `=`")
                .help("its first number is included, its second is not"),
        );
    }
    if names.contains('=') && !names.contains("..") {
        let place = stop.before.rfind('=').map_or(stop.here(), |at| Span::new(at, stop.before.trim_end().len()));
        return Some(no_range(stop.before.trim_end(), place));
    }
    if names.contains(" on ") && !names.contains('(') && !["", ";", "}"].contains(&stop.found) {
        return Some(error(stop, "the axes of a field stand in parentheses").label("write `on (i, j)`").help(AXES));
    }
    let range = stop.rest.strip_prefix("in ").unwrap_or_default().trim_start();
    if before_range && !names.is_empty() && range.starts_with(|c: char| c.is_ascii_digit() || "-.([".contains(c)) {
        return Some(
            error(stop, "a range is written with `=`")
                .label(format!("write `{} {names} = 0..1`", stop.first))
                .help("random input is drawn from it, its first number included, its second not"),
        );
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
        if let Some(comma) = stop.before.trim_end().strip_suffix(',').map(str::len).filter(|_| names.len() > 1) {
            return Some(
                Diagnostic::error(Span::new(comma, comma + 1), "two statements on one line are parted by `;`")
                    .label(format!("write `;` before `{}`", stop.found))
                    .help("a comma stands between names of the same declaration"),
            );
        }
        if names.is_empty() {
            return None;
        }
        return Some(
            error(stop, "two statements on one line are parted by `;`")
                .label("a new statement begins here")
                .help("put it on a line of its own, or `;` before it"),
        );
    }
    match stop.found {
        ":" if names.is_empty() => Some(
            error(stop, format!("a name follows `{}`", stop.first)).label("leave it out").help("as in `in a: f32`"),
        ),
        "," if names.is_empty() => {
            Some(error(stop, format!("a name is expected after `{}`", stop.first)).label("leave it out"))
        }
        "(" | "[" if !names.is_empty() => Some(
            error(stop, "axes are written with `on`")
                .label(format!("write `{} {} on (i, j)`, or nothing for all axes", stop.first, names))
                .help("a field without `on` lives on every cell (i, j, k)"),
        ),
        "-" if stop.rest.starts_with("->") => Some(
            error(stop, "every field is declared by itself")
                .label("leave it out")
                .help("as in `in a; out b`, and, on a line of its own, `b = ...`"),
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
            typed_before(stop, stop.first).or_else(|| stored(found, stop)).or_else(|| {
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

/// What is said of fields on meshes in the wrong place: parts of vectors, and `no k`.
fn on_a_mesh(stop: &Stop, names: &str) -> Option<Diagnostic> {
    let role = stop.first;
    if stop.found == "k" && stop.previous.is_some_and(|(word, _)| word == "no") && !names.contains(" on ") {
        let name = names.split(',').next().unwrap_or_default().trim();
        return Some(
            error(stop, "what a field lacks is said after where it lives")
                .label("too early")
                .help(format!("write `{role} {name} on cell, no k`, with the set where it lives")),
        );
    }
    let inside = stop.rest.strip_prefix('[')?;
    let digits = &inside[..inside.find(|c: char| !c.is_ascii_digit())?];
    let after = inside[digits.len()..].strip_prefix(']').filter(|_| !digits.is_empty())?;
    let place = Span::new(stop.before.len(), stop.before.len() + digits.len() + 2);
    let found = Diagnostic::error(place, "the parts of a vector are counted after its type");
    if let Some((name, set)) = names.split_once(" on ").filter(|(_, set)| set.chars().all(is_word)) {
        return Some(found.label(format!("write `{role} {name}: real[{digits}] on {set}`")));
    }
    let set = super::word_at(after.trim_start().strip_prefix("on ")?.trim_start());
    let is_name = !set.is_empty() && names.chars().all(is_word);
    is_name.then(|| found.label(format!("write `{role} {names}: real[{digits}] on {set}`")))
}

/// What stands after the axes of a field, and nothing but a range may.
fn after_place(stop: &Stop, names: &str) -> Option<Diagnostic> {
    if !names.contains(" on (") || names.contains('=') {
        return None;
    }
    Some(match stop.found {
        "on" => error(stop, "a field has one place").label("leave it out"),
        ":" => error(stop, "a type stands before the axes").label("too late").help("write `in a: f32 on (i, j)`"),
        word if scalar(word).is_some() => {
            error(stop, "a type stands before the axes").label("too late").help("write `in a: f32 on (i, j)`")
        }
        word if word.starts_with(is_word) && names.ends_with(',') => {
            error(stop, format!("the next `{}` is a declaration of its own", stop.first))
                .label(format!("write `; {} {word}` for the comma", stop.first))
                .help("a type, a place and a value belong to all names before them")
        }
        _ => return None,
    })
}

/// A field with a word that says how grids are stored or walked, which no source does.
fn stored(word: &str, stop: &Stop) -> Option<Diagnostic> {
    let is_storage = crate::storage::STORAGES.iter().any(|storage| storage.name() == word);
    let is_access = crate::access::ACCESSES.iter().any(|access| access.name() == word);
    (is_storage || is_access || ["storage", "stored", "layout", "access"].contains(&word)).then(|| {
        error(stop, "a source does not say how its grid is stored").label("leave it out").help(
            "storage and access strategy are options, as in `stencilc build FILE --storage compressed --access zloop`",
        )
    })
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
        "(" | "[" if name.is_empty() => Some(
            error(stop, "a `let` names one value")
                .label("a name is expected")
                .help("write one `let` for each name, as in `let a = ...; let b = ...`"),
        ),
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
    if stop.first == "param" && name.contains('=') && stop.found == "." {
        return Some(
            error(stop, "a parameter has a default, and no range")
                .label("not here")
                .help("as in `param c = 0.5`; ranges are what inputs are drawn from"),
        );
    }
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
            typed_before(stop, stop.first).or_else(|| Some(second_name(stop, name)))
        }
        _ => None,
    }
}

/// `param p q`, `const c 3`.
fn second_name(stop: &Stop, name: &str) -> Diagnostic {
    let found = stop.found;
    let own = name.rsplit([',', ' ']).next().unwrap_or_default();
    if stop.first == "const" || found.starts_with(|c: char| c.is_ascii_digit()) {
        return error(stop, "`=` is missing").label(format!("write `{} {name} = {found}`", stop.first));
    }
    if own == found {
        return error(stop, format!("`{found}` stands here twice")).label("leave it out");
    }
    error(stop, "a comma is missing between two names")
        .label(format!("write `param {name}, {found}`"))
        .help("or, if this is a new statement, put it on a line of its own")
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
    if stop.found == "." && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        let whole = target;
        return Some(
            error(stop, "a vector is assigned whole")
                .label("not part by part")
                .help(format!("write `{whole} = [a, b]`, or `{whole} += [a, b]`, with all its parts")),
        );
    }
    let starts = |texts: &[&str]| texts.iter().any(|text| rest.starts_with(text));
    if starts(&["**=", "*=", "/=", "%=", "++", "--", "|=", "&=", "^=", "<<=", ">>=", "-="]) {
        let is_place = target.ends_with(']') && !rest.starts_with("-=");
        return Some(error(stop, "a value is not changed").label("only `=` assigns").help(if is_place {
            "an `inc` of a mesh is added to by `+=` and `-=` alone; else give the new value a name of its own, as in `let twice = 2*a`"
        } else {
            "a name means one value: give the new one a name of its own, as in `let twice = 2*a`, and assign that"
        }));
    }
    if starts(&["::"]) {
        return Some(
            Diagnostic::error(stop.first_span, "no statement begins like this")
                .label("names are not joined by `::`")
                .help(
                    "a stencil is a list of declarations and assignments: there are no loops and no calls of libraries",
                ),
        );
    }
    if starts(&[".=", ".*=", "./=", ".+=", ".-="]) {
        return Some(
            error(stop, "an output is assigned with `=`")
                .label(plain)
                .help("every operation is done on each cell by itself, without a point"),
        );
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
        "(" if is_function(stop) => {
            let end = rest.find(')').map_or(1, |end| end + 1);
            Some(
                Diagnostic::error(stop.first_span, "functions begin with `fn`")
                    .label(format!("write `fn {name}{} = ...`", &rest[..end])),
            )
        }
        "(" => Some(
            error(stop, "an output is assigned by its name alone")
                .label(plain)
                .help("the formula holds on every cell: nobody writes the cell's indices"),
        ),
        "[" => Some(error(stop, "an output is assigned by its name alone").label(plain)),
        "" | ";" | "}" => {
            let found = error(stop, format!("`{name}` alone says nothing")).label("expected `= ...`");
            let goes_on = stop.line().trim_start().len() == stop.statement.len();
            Some(if goes_on {
                found.help("to go on with the line before, begin this one with an operator")
            } else {
                found
            })
        }
        _ => None,
    }
}

/// Whether `=` follows the parentheses that `rest` begins with.
fn is_assigned(rest: &str) -> bool {
    rest.find(')').is_some_and(|end| rest[end + 1..].trim_start().starts_with('='))
}

/// Whether `f(x) = ...` defines a function: its name is no output, its arguments are names other than those of axes.
fn is_function(stop: &Stop) -> bool {
    let is_output = |line: &str| {
        let mut words = line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        matches!(words.next(), Some("out" | "inout")) && words.any(|word| word == stop.first)
    };
    let arguments = stop.rest[1..].split(')').next().unwrap_or_default();
    let is_argument = |text: &str| {
        let name = text.trim();
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(is_word)
            && !["i", "j", "k"].contains(&name)
    };
    arguments.split(',').all(is_argument) && !stop.before.split(['\n', ';', '{']).any(|line| is_output(line.trim()))
}
