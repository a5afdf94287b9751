//! Declarations, assignments and functions with something in the wrong place.

use super::{Stop, is_word, statements::RESERVED};
use crate::diagnostic::{Diagnostic, guess as nearest, wrong};
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
        "in" | "out" | "inout" if !stop.at_start() => {
            stop.known("field").or_else(|| on_a_mesh(stop)).or_else(|| field(stop))
        }
        "let" if !stop.at_start() => binding(stop),
        "param" | "const" if !stop.at_start() => stop.known("param and const").or_else(|| number(stop)),
        "fn" if !stop.at_start() => stop.known(if stop.name().contains('=') { "value of fn" } else { "fn" }),
        _ if stop.outside || stop.item == Some("test") => None,
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
        return wrong(place, "`=` gives the range that random input is drawn from", "expected a range, as in `= 0..1`")
            .help("a fixed number is a `const`, or a `param` with a default: `param c = 3`");
    }
    let role = super::word_at(role);
    wrong(place, "a declaration gives an output no value", "assigned too early")
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
    let names = stop.name();
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
        wrong(place, "the number of parts is not written", "leave it out")
            .help(format!("the value says it, as in `const {word} = [3/4, -3/20, 1/60]`"))
    } else {
        wrong(place, "a parameter is one number", "leave it out")
            .help(format!("write a parameter for each, `param {word}0, {word}1`, or a field `in {word} on (k)`"))
    })
}

/// A name with a type before it, as in `in float a`.
fn typed_before(stop: &Stop) -> Option<Diagnostic> {
    let (word, span) = stop.previous?;
    let scalar = scalar(word)?;
    if !stop.found.starts_with(is_word) {
        return None;
    }
    let (keyword, name) = (stop.first, stop.found);
    let is_kept = ROLES.contains(&keyword) || ["int", "bool"].contains(&scalar);
    let mended = match keyword {
        "let" | "const" => format!("{keyword} {name} = ..."),
        _ => format!("{keyword} {name}: {}", if is_kept { scalar } else { "real" }),
    };
    Some(Diagnostic::error(span, "a type follows the name").label(format!("write `{mended}`")))
}

/// After `in`, `out` or `inout`.
fn field(stop: &Stop) -> Option<Diagnostic> {
    let names = stop.name();
    let before_range = !names.contains(['=', ':']) && !names.contains(" on ");
    if names.contains('=') && !names.contains("..") {
        let place = stop.before.rfind('=').map_or(stop.here(), |at| Span::new(at, stop.before.trim_end().len()));
        return Some(no_range(stop.before.trim_end(), place));
    }
    if let (":", Some((name, place))) = (stop.found, names.split_once(" on ")) {
        let found = error(stop, "a type stands before the axes").label("too late");
        let stored = super::word_at(stop.rest[1..].trim_start());
        let stored = if SCALARS.contains(&stored) { stored } else { "real" };
        return Some(found.help(format!("write `{} {}: {stored} on {place}`", stop.first, name.trim())));
    }
    if names.contains(" on ") && !names.contains('(') && !["", ";", "}"].contains(&stop.found) {
        return Some(error(stop, "the axes of a field stand in parentheses").label("write `on (i, j)`").help(AXES));
    }
    let range = stop.rest.strip_prefix("in ").unwrap_or_default().trim_start();
    if before_range && !names.is_empty() && range.starts_with(|c: char| c.is_ascii_digit() || "-.([".contains(c)) {
        let found = error(stop, "a range is written with `=`").label(format!("write `{} {names} = 0..1`", stop.first));
        return Some(found.help("random input is drawn from it, its first number included, its second not"));
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
            let found = Diagnostic::error(Span::new(comma, comma + 1), "two statements on one line are parted by `;`")
                .label(format!("write `;` before `{}`", stop.found));
            return Some(found.help("a comma stands between names of the same declaration"));
        }
        return if names.is_empty() { None } else { stop.known("parted") };
    }
    if let Some(found) = stop.known("names of fields") {
        return Some(found);
    }
    let is_name = stop.found.starts_with(is_word) && !RESERVED.contains(&stop.found);
    if !is_name || names.is_empty() || names.ends_with(',') {
        return None;
    }
    typed_before(stop).or_else(|| stored(stop.found, stop)).or_else(|| stop.known("comma between names"))
}

/// What is said of fields on meshes in the wrong place: parts of vectors, and `no k`.
fn on_a_mesh(stop: &Stop) -> Option<Diagnostic> {
    let (role, names) = (stop.first, stop.name());
    if stop.found == "k" && stop.previous.is_some_and(|(word, _)| word == "no") && !names.contains(" on ") {
        let name = names.split(',').next().unwrap_or_default().trim();
        let found = error(stop, "what a field lacks is said after where it lives").label("too early");
        return Some(found.help(format!("write `{role} {name} on cell, no k`, with the set where it lives")));
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
    if stop.name().contains('=') {
        return stop.known("value of let");
    }
    stop.known("let").or_else(|| typed_before(stop)).or_else(|| stop.known("let without value"))
}

/// After `param` or `const`.
fn number(stop: &Stop) -> Option<Diagnostic> {
    let name = stop.name();
    let is_name = stop.found.starts_with(is_word) && !RESERVED.contains(&stop.found);
    if !is_name || name.is_empty() || name.contains('=') {
        return None;
    }
    typed_before(stop).or_else(|| stop.known("second number")).or_else(|| stop.known("comma between names"))
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
    if let Some(found) = stop.known("assignment") {
        return Some(found);
    }
    if stop.found != "(" {
        return None;
    }
    let end = stop.rest.find(')').map_or(1, |end| end + 1);
    let (arguments, follows) = stop.rest.split_at(end);
    Some(if !arguments.ends_with(')') || !follows.trim_start().starts_with('=') {
        error(stop, "a call stands in an expression")
            .label("no statement begins like this")
            .help("write `res = f(a)` or `let x = f(a)`")
    } else if is_function(stop) {
        wrong(stop.first_span, "functions begin with `fn`", format!("write `fn {name}{arguments} = ...`"))
    } else {
        error(stop, "an output is assigned by its name alone")
            .label(format!("write `{name} = ...`"))
            .help("the formula holds on every cell: nobody writes the cell's indices")
    })
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
