//! Statements and declarations that begin with a word of another language, or with one of ours in the wrong place.

use super::Stop;
use crate::diagnostic::{Diagnostic, guess as nearest};
use crate::source::Span;

/// Words that cannot be names, as in the grammar.
pub const RESERVED: &[&str] = &[
    "stencil", "program", "mesh", "test", "fn", "const", "param", "inout", "inc", "in", "out", "reduce", "and", "or",
    "not", "let", "if", "else", "sum", "sweep", "repeat", "boundary", "expect", "true", "false",
];

/// What begins a declaration of a file, and a statement of a stencil.
const ITEMS: &[&str] = &["stencil", "fn", "const", "param", "program", "mesh", "test"];
const STATEMENTS: &[&str] = &["in", "out", "inout", "param", "const", "let", "fn"];

/// What a first word of another language means: the words, what is wrong, a word about the place, what mends it.
const FOREIGN: &[(&[&str], &str, &str, &str)] = &[
    (
        &["for", "foreach", "while", "do", "loop", "until", "forall"],
        "there are no loops",
        "a stencil is computed on every cell by itself",
        "write the formula for one cell, with its neighbours as `a[i-1]`; `sum(n in 1..=3) { a[i+n] }` adds several terms",
    ),
    (
        &["return", "yield"],
        "nothing is returned",
        "leave this word out",
        "the last expression of a `fn` is its value; a stencil assigns its outputs, as in `res = ...`",
    ),
    (
        &["def", "func", "function", "subroutine", "lambda", "void", "procedure", "proc", "inline"],
        "functions begin with `fn`",
        "not a word of the language",
        "write `fn name(a, b) = a + b`, or `fn name(a, b) { let s = a + b; s / 2 }`",
    ),
    (
        &["import", "from", "include", "use", "using", "module", "require", "implicit", "package", "namespace"],
        "a file stands alone",
        "nothing can be imported",
        "write the functions that it needs into it",
    ),
    (
        &["end", "enddo", "endif", "endfor", "endfunction", "done", "fi"],
        "blocks end with `}`",
        "there is no `end`",
        "leave it out: what a `{` opens, a `}` closes",
    ),
    (
        &["pass", "break", "continue", "goto", "exit", "stop", "cycle"],
        "there are no loops and no jumps",
        "leave this word out",
        "a stencil is a list of declarations and assignments, all of which hold on every cell",
    ),
    (
        &["switch", "match", "case", "select", "where", "elsewhere", "unless", "when", "try"],
        "choices are written with `if`",
        "not a word of the language",
        "an `if` is a value: `res = if a > 0 { 1 } else { 2 }`",
    ),
    (
        &["print", "println", "printf", "echo", "write", "puts", "cout"],
        "a print has parentheses",
        "not understood",
        "write `print(phi[i-1])`, or `print(\"on the left\", phi[i-1])`",
    ),
    (
        &["with"],
        "there is no `with`",
        "not a word of the language",
        "a formula holds on every level; levels are told apart by `k`, as in `res = if k == 0 { a } else { a - a[k-1] }`",
    ),
    (
        &["assert", "check", "ensure"],
        "what has to be true stands in a `test`",
        "not a word of the language",
        "beside the stencil, write `test \"title\" { lap { phi = i }; expect abs(res) < 1e-12 }`",
    ),
    (
        &["call"],
        "there is no `call`",
        "leave this word out",
        "a function is called in an expression, as in `let lap = laplacian(phi)`",
    ),
    (
        &["var", "auto", "val", "local", "mut", "static", "set", "temp", "tmp", "temporary"],
        "values are named with `let`",
        "not a word of the language",
        "write `let name = ...`",
    ),
    (
        &["input", "inputs", "output", "outputs", "field", "fields", "array", "storage", "intent"],
        "fields are declared with `in`, `out` or `inout`",
        "not a word of the language",
        "write `in phi`, `out res`; both may have a type and axes, as in `in h: f32 on (i, j)`",
    ),
    (
        &[
            "float",
            "double",
            "real",
            "int",
            "integer",
            "logical",
            "bool",
            "boolean",
            "f32",
            "f64",
            "single",
            "complex",
            "char",
            "character",
            "string",
            "long",
            "short",
            "unsigned",
            "size_t",
            "dimension",
            "type",
            "struct",
            "class",
        ],
        "no declaration begins with a type",
        "the type follows the name",
        "write `in a: f32` or `param n: int`; a value is named with `let x = ...`, whose type follows by itself",
    ),
];

/// Words that begin a stencil elsewhere.
const KERNELS: &[&str] = &["Stencil", "STENCIL", "kernel", "gtscript", "__global__", "computation", "procedure"];

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    let place = stop.first_span;
    // A block's closing brace may end a statement, as in `{ x } else`.
    if stop.outside {
        return outside(stop);
    }
    let lower = stop.first.to_lowercase();
    if let Some(found) = parted(stop).filter(|_| stop.in_test) {
        return Some(found);
    }
    if let Some(found) = of_a_test(stop).filter(|_| stop.in_test) {
        return Some(found);
    }
    if stop.at_start() && RESERVED.contains(&stop.found) {
        return misplaced(stop);
    }
    if stop.at_start() && stop.found == "(" {
        return Some(
            Diagnostic::error(stop.here(), "no statement begins with a parenthesis")
                .label("not understood")
                .help("outputs are assigned one by one, as in `b = ...; c = ...`"),
        );
    }
    // `x = ...` is an assignment even where `x` is a word of another language.
    let rest = stop.statement.get(stop.first.len()..).unwrap_or("").trim_start();
    if rest.starts_with('=') && !rest.starts_with("==") {
        return None;
    }
    if stop.in_test && ["assert", "check", "assertEquals", "require"].contains(&stop.first) {
        return Some(
            Diagnostic::error(place, format!("`{}` is no word of the language", stop.first))
                .label("write `expect`")
                .help("as in `expect abs(res - 1) < 1e-12`"),
        );
    }
    if stop.in_test && stop.at_start() && stop.rest[stop.found.len()..].trim_start().starts_with('(') {
        return Some(
            Diagnostic::error(place, "the inputs of a stencil stand in braces")
                .label(format!("write `{} {{ ... }}`", stop.first))
                .help("as in `laplap { phi = 2*i }`: each input with its formula"),
        );
    }
    if stop.in_test && stop.first == "grid" && !stop.at_start() {
        return Some(
            Diagnostic::error(place, "the extents of a grid stand in parentheses")
                .label("write `grid(12, 10, 6)`")
                .help("cells along i, j and k, halo included"),
        );
    }
    // Also in the parentheses that are written around it elsewhere.
    let is_expected = stop.bracket.is_some_and(|(bracket, word)| bracket == '{' || word == "expect");
    if stop.in_test && stop.first == "expect" && stop.found == "," && is_expected {
        return Some(
            Diagnostic::error(stop.here(), "an `expect` takes one truth value")
                .label("nothing may follow it")
                .help("compare the values, as in `expect abs(res - 1) < 1e-12`; what it is about stands in the title"),
        );
    }
    if stop.in_test && stop.found == ":" && stop.previous.is_some_and(|(_, span)| span == place) {
        return Some(
            Diagnostic::error(stop.here(), "an input is given with `=`").label(format!("write `{} = ...`", stop.first)),
        );
    }
    if let Some((_, message, label, help)) = FOREIGN.iter().find(|(words, ..)| words.contains(&lower.as_str())) {
        return Some(Diagnostic::error(place, *message).label(*label).help(*help));
    }
    if let Some(found) = parted(stop) {
        return Some(found);
    }
    if stop.in_test {
        return None;
    }
    // `lett x = a`, `inn a`: two words, the first nearly one of ours.
    let two_words = stop.previous.is_some_and(|(_, span)| span == place) && stop.found.starts_with(super::is_word);
    if two_words && !RESERVED.contains(&stop.first) {
        let meant = nearest(stop.first, STATEMENTS.iter().copied());
        let known = "a statement begins with `in`, `out`, `inout`, `param`, `const`, `let`, `fn` or `print`, or is `name = ...`";
        let found = Diagnostic::error(place, format!("`{}` begins no statement", stop.first));
        return Some(match meant {
            Some(meant) => found.label(format!("did you mean `{meant}`?")),
            None => found.label("not a word of the language").help(known),
        });
    }
    None
}

/// What stands in a test as it would elsewhere.
fn of_a_test(stop: &Stop) -> Option<Diagnostic> {
    let after = stop.rest.get(stop.found.len()..)?.trim_start();
    let found = Diagnostic::error(stop.here(), format!("a test has no `{}`", stop.found));
    Some(match stop.found {
        "if" if stop.at_start() => found
            .label("an expectation holds on every cell")
            .help("cells that are left out stand in it, as in `expect k == 0 || res == i`"),
        "param" if stop.at_start() => {
            found.label("leave it out").help("a parameter is set with the inputs, as in `lap { phi = i; dt = 3 }`")
        }
        "const" if stop.at_start() => found.label("write `let`"),
        "print" if stop.at_start() && after.starts_with('(') => {
            found.label("leave it out").help("where an `expect` is false, its values are told")
        }
        "," if stop.bracket.is_some_and(|(bracket, word)| bracket == '{' && !word.is_empty())
            && !["expect", "let"].contains(&stop.first) =>
        {
            Diagnostic::error(stop.here(), "inputs are parted by `;`").label("write `;`")
        }
        word if stop.at_start() && word.starts_with(super::is_word) && after.starts_with('=') => {
            Diagnostic::error(stop.here(), "in a test, a value is named with `let`")
                .label(format!("write `let {word} = ...`"))
                .help("inputs are given in the braces of the stencil, as in `laplap { phi = 2*i }`")
        }
        _ => return None,
    })
}

/// A test whose title something else than a brace follows.
fn open_test(stop: &Stop) -> Option<Diagnostic> {
    let title = stop.rest.strip_prefix("test")?.trim_start().strip_prefix('"')?;
    let rest = title.get(title.find('"')? + 1..)?.trim_start();
    let at = stop.before.len() + stop.rest.len() - rest.len();
    let length = rest.chars().next().filter(|&first| first != '{')?.len_utf8();
    Some(
        Diagnostic::error(Span::new(at, at + length), "what a test consists of stands in braces")
            .label("expected `{`")
            .help("as in `test \"title\" { lap { phi = i }; expect abs(res) < 1e-12 }`"),
    )
}

/// Words after a closing brace that are no statement.
const ELSEWHERE: &[&str] = &["else", "elif", "elseif", "elsif", "stencil", "program", "mesh", "test"];

/// A second statement on the line of one that ended with a bracket, as in `s { a = 1 } expect b == 1`.
pub fn parted(stop: &Stop) -> Option<Diagnostic> {
    let is_after_block = stop.at_start() && stop.line().trim_end().ends_with('}');
    let is_after_grid = stop.in_test && stop.first == "grid" && stop.line().trim_end().ends_with(')');
    let begins = stop.found.starts_with(super::is_word) && !ELSEWHERE.contains(&stop.found);
    let in_block = stop.bracket.is_some_and(|(bracket, _)| bracket == '{');
    (begins && in_block && (is_after_block || is_after_grid)).then(|| {
        Diagnostic::error(stop.here(), "two statements on one line are parted by `;`")
            .label("a new statement begins here")
            .help("put it on a line of its own, or `;` before it")
    })
}

/// A word of the language where it cannot stand.
fn misplaced(stop: &Stop) -> Option<Diagnostic> {
    let error = |message: &str| Diagnostic::error(stop.here(), message);
    Some(match stop.found {
        "if" => error("an `if` is a value, not a statement")
            .label("a declaration or an assignment was expected")
            .help("choose the value, and assign that: `res = if a > 0 { 1 } else { 2 }`"),
        "else" if stop.before.rsplit('\n').next().is_some_and(|line| line.contains("if ")) => {
            error("a part of this `if` is missing")
                .label("a condition, and a branch in braces, are expected before `else`")
                .help("as in `if a > 0 { 1 } else { 0 }`")
        }
        "else" => error("this `else` belongs to no `if`")
            .label("the statement before it has ended")
            .help("write `if c { a } else { b }`, without `;` before `else`"),
        "stencil" | "program" | "mesh" | "test" => {
            error(&format!("a `{}` cannot stand inside another block", stop.found))
                .label("the block before it is still open")
                .help("is a `}` missing before it?")
        }
        "expect" => error("an `expect` stands in a `test`")
            .label("not in a stencil")
            .help("beside the stencil, write `test \"title\" { lap { phi = i }; expect abs(res) < 1e-12 }`"),
        "sum" => error("a `sum` is a value, not a statement")
            .label("a declaration or an assignment was expected")
            .help("write `res = sum(n in 1..=3) { ... }`"),
        _ => return None,
    })
}

/// What stands in no braces.
fn outside(stop: &Stop) -> Option<Diagnostic> {
    let lower = stop.first.to_lowercase();
    let known = "a file holds `stencil name { ... }`, `test \"title\" { ... }`, `fn`, `const` and `param`";
    let error = |message: String| Diagnostic::error(stop.first_span, message);
    if KERNELS.contains(&stop.first) {
        return Some(
            error(format!("`{}` is no word of the language", stop.first)).label("write `stencil name { ... }`"),
        );
    }
    if let Some(found) = header(stop).or_else(|| open_test(stop)) {
        return Some(found);
    }
    if stop.first == "test" && stop.found.starts_with(super::is_word) && !stop.at_start() {
        return Some(
            Diagnostic::error(stop.here(), "the title of a test stands in quotes")
                .label(format!("write `\"{}\"`", stop.found)),
        );
    }
    if !stop.at_start() && RESERVED.contains(&stop.first) {
        return None;
    }
    if stop.first == "print" && stop.rest[stop.found.len()..].trim_start().starts_with('(') {
        return Some(
            error("a `print` stands in a stencil only".into())
                .label("this is outside")
                .help("put it among the statements of the stencil whose values it shows"),
        );
    }
    if let Some((_, message, label, help)) = FOREIGN.iter().find(|(words, ..)| words.contains(&lower.as_str())) {
        return Some(Diagnostic::error(stop.first_span, *message).label(*label).help(*help));
    }
    if stop.at_start() && ITEMS.contains(&stop.found) && stop.last() == Some('}') && !stop.line().trim().is_empty() {
        return Some(
            Diagnostic::error(stop.here(), format!("a `{}` begins on a line of its own", stop.found))
                .label("write `;` or begin a new line before it"),
        );
    }
    if stop.first.is_empty() || ITEMS.contains(&stop.first) {
        return None;
    }
    Some(match stop.first {
        "in" | "out" | "inout" => error(format!("`{}` stands inside a stencil only", stop.first))
            .label("this is outside")
            .help("put the fields and the formula between braces: `stencil name { ... }`"),
        "expect" => error("an `expect` stands inside the braces of a `test`".into())
            .label("this is outside")
            .help("as in `test \"title\" { lap { phi = i }; expect abs(res) < 1e-12 }`"),
        "let" => error("`let` stands inside a stencil or a block only".into())
            .label("at file level, write `const` or `param`")
            .help("a `const` is known when compiling, a `param` is given when running"),
        first if stop.rest[stop.found.len()..].trim_start().starts_with('=') => {
            error(format!("`{first}` cannot be assigned outside a stencil"))
                .label(format!("write `const {first} = ...`"))
                .help("a `const` is known when compiling, a `param` is given when running")
        }
        first => {
            let found = error(format!("`{first}` begins nothing that can stand here"));
            match nearest(first, ITEMS.iter().copied()) {
                Some(meant) if stop.rest[stop.found.len()..].trim_start().starts_with(super::is_word) => {
                    found.label(format!("did you mean `{meant}`?")).help(known)
                }
                _ => found.label("expected `stencil`, `test`, `fn`, `const` or `param`").help(known),
            }
        }
    })
}

/// `stencil s:`, `stencil s(a)`: the line that begins a stencil.
fn header(stop: &Stop) -> Option<Diagnostic> {
    if !matches!(stop.first, "stencil" | "program" | "mesh") || stop.at_start() {
        return None;
    }
    let error = |message: String| Diagnostic::error(stop.here(), message);
    let named = stop.previous.is_some_and(|(word, span)| span != stop.first_span && !word.is_empty());
    Some(match stop.found {
        ":" => {
            error("a block begins with `{`".into()).label("write `{`").help("and ends with `}`: blanks mean nothing")
        }
        "(" => error(format!("a `{}` takes no arguments", stop.first))
            .label("expected `{`")
            .help("its fields are declared inside: `stencil name { in a; out b; ... }`"),
        "{" if !named => error(format!("this `{}` has no name", stop.first)).label("a name is expected before `{`"),
        "-" | "." | "+" if named => error(format!("`{}` cannot be part of a name", stop.found))
            .label("write `_`")
            .help("names are made of ASCII letters, digits and `_`"),
        "=" => error("a stencil is no value".into()).label("write `{` and what it consists of, then `}`"),
        _ => return None,
    })
}
