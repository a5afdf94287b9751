//! Expressions with operators, calls and brackets of other languages.

use super::{Stop, is_word, last_word};
use crate::diagnostic::Diagnostic;
use crate::foreign::{self, FUNCTIONS, function, scalar};
use crate::source::Span;

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    let here = stop.here();
    let error = |message: &str| Diagnostic::error(here, message);
    let within = stop.bracket;
    // Words.
    match stop.found {
        "if" | "for" if stop.after_operand => {
            return Some(if stop.found == "if" {
                error("a choice begins with `if`")
                    .label("too late")
                    .help("write `if c { a } else { b }` for `a if c else b`")
            } else {
                error("there are no loops").label("not here").help("terms are added by `sum(n in 1..=3) { a[i+n] }`")
            });
        }
        "then" => {
            return Some(
                error("there is no `then`").label("write `{`").help("a choice is written `if c { a } else { b }`"),
            );
        }
        "elif" | "elseif" | "elsif" => {
            return Some(error(&format!("there is no `{}`", stop.found)).label("write `else if`"));
        }
        ";" if stop.else_expected && stop.rest[1..].trim_start().starts_with("else") => {
            return Some(error("no `;` stands before `else`").label("leave it out"));
        }
        "in" if stop.after_operand && stop.statement.contains("if ") => {
            return Some(error("`in` is no operator").label("compare with both ends").help("as in `1 <= k && k < 3`"));
        }
        _ if stop.else_expected => {
            // Where the next line was looked at, too, the place is the end of the branch.
            let end = stop.before.trim_end();
            let passed = stop.before[end.len()..].contains('\n');
            let place = if passed { Span::new(end.len().saturating_sub(1), end.len()) } else { here };
            return Some(
                Diagnostic::error(place, "this `if` has no `else`")
                    .label("expected `else { ... }`")
                    .help("an `if` is a value, so it needs one in either case: `if a > 0 { a } else { 0 }`"),
            );
        }
        "mod" if stop.after_operand => return Some(error("`mod` is no operator").label("write `%`")),
        "div" if stop.after_operand => {
            return Some(error("`div` is no operator").label("write `floor(a / b)`"));
        }
        "is" | "eq" => return Some(error(&format!("`{}` is no operator", stop.found)).label("write `==`")),
        "not"
            if !stop.after_operand && !["let", "in", "out", "inout", "fn", "param", "const"].contains(&stop.first) =>
        {
            return Some(error("`not` is no operator").label("write `!`, as in `!(a > 0)`"));
        }
        "and" | "or" => return None,
        _ => {}
    }
    if let Some(found) = fortran(stop).or_else(|| in_block(stop)) {
        return Some(found);
    }
    if let Some(found) = super::operators::guess(stop) {
        return Some(found);
    }
    match stop.found {
        "?" => return Some(error("there is no `?`").label("not understood").help("write `if c { a } else { b }`")),
        ":" if stop.statement.contains("if ") => {
            return Some(
                error("a branch stands in braces")
                    .label("write `{`")
                    .help("a choice is written `if c { a } else { b }`"),
            );
        }
        "+" | "-"
            if stop.before.ends_with(stop.found) || stop.rest.starts_with("++") || stop.rest.starts_with("--") =>
        {
            return Some(
                error(&format!("there is no `{0}{0}`", stop.found)).label("not understood").help("write `a + 1`"),
            );
        }
        "+" if !stop.after_operand => {
            return Some(error("a number has no `+` before it").label("leave it out"));
        }
        "*" | "/" if stop.last().is_some_and(|c| "*/+-%<>".contains(c)) => {
            return Some(error("two operators follow each other").label("a number or a name is missing before it"));
        }
        _ => {}
    }
    if let Some(diagnostic) = fold(stop) {
        return Some(diagnostic);
    }
    let is_subscript =
        within.is_some_and(|(bracket, word)| bracket == '[' || bracket == '(' && word.starts_with(is_word));
    let is_range = within.is_some_and(|(bracket, _)| bracket == '[')
        && (stop.rest.starts_with("..") || stop.rest.starts_with('.') && stop.before.ends_with('.'));
    if is_range || is_subscript && stop.found == ":" && !stop.rest.starts_with("::") {
        return Some(error("there are no slices").label("one cell is read at a time").help(
            "a neighbour is written with its axis, as in `a[i-1]` or `a[i+1, j-1]`; the formula holds on every cell",
        ));
    }
    if stop.found == ":" && stop.rest.starts_with("::") || stop.before.ends_with("::") {
        return Some(error("names are not joined by `::`").label("write the function alone, as in `max(a, b)`"));
    }
    member(stop).or_else(|| missing(stop))
}

/// `.gt.` and its like, which the parser gives up after.
fn fortran(stop: &Stop) -> Option<Diagnostic> {
    let head = stop.before.trim_end().strip_suffix('.')?;
    let word = last_word(head);
    let ours = match word.to_lowercase().as_str() {
        "and" => "&&",
        "or" => "||",
        "not" => "!",
        "gt" => ">",
        "ge" => ">=",
        "lt" => "<",
        "le" => "<=",
        "eq" | "eqv" => "==",
        "ne" | "neqv" => "!=",
        "true" => "true",
        "false" => "false",
        _ => return None,
    };
    let start = head.len().checked_sub(word.len() + 1)?;
    let place = Span::new(start, head.len() + 1);
    Some(Diagnostic::error(place, format!("`.{word}.` is no operator")).label(format!("write `{ours}`")))
}

/// What stands in a block and is no value.
fn in_block(stop: &Stop) -> Option<Diagnostic> {
    if !stop.after_operand
        || !["", ";", "}"].contains(&stop.found)
        || stop.bracket.is_none_or(|(bracket, _)| bracket != '{')
    {
        return None;
    }
    if stop.first == "let" && stop.found == "}" {
        return Some(
            Diagnostic::error(stop.here(), "this block has no value")
                .label("an expression is expected before `}`")
                .help("the last expression of a block is its value, as in `{ let s = a + b; s / 2 }`"),
        );
    }
    let rest = stop.statement.get(stop.first.len()..)?.trim_start();
    let is_assignment = rest.starts_with('=') && !rest.starts_with("==");
    is_assignment.then(|| {
        Diagnostic::error(stop.first_span, "inside a block, a value is named with `let`")
            .label(format!("write `let {} = ...`", stop.first))
    })
}

/// `sum(n = 1..3)` and its like.
fn fold(stop: &Stop) -> Option<Diagnostic> {
    let error = |message: &str| Diagnostic::error(stop.here(), message);
    let form = "write `sum(n in 1..=3) { a[i+n] }`; both ends are included";
    if stop.found == "sum" && !stop.after_operand {
        return Some(error("this `sum` is not complete").label("expected a counter, a range and a block").help(form));
    }
    let word = stop.bracket.filter(|(bracket, _)| *bracket == '(').map_or("", |(_, word)| word);
    let is_fold = word == "sum" || ["min", "max"].contains(&word) && stop.statement.contains(" in ");
    if is_fold && stop.statement.contains("..=") {
        return Some(error("what is added stands in braces, after the parenthesis").label("not here").help(form));
    }
    if !is_fold && stop.found == "in" && stop.after_operand && word.starts_with(is_word) {
        return Some(
            error("only `sum`, `min` and `max` run over a range")
                .label(format!("`{word}` does not"))
                .help("a mean is a `sum` divided by the number of its terms; a product is written out"),
        );
    }
    if !is_fold {
        let trimmed = stop.before.trim_end();
        let is_headed = trimmed.ends_with(')') && stop.statement.contains(" in ") && stop.statement.contains("..=");
        return (is_headed && (stop.found.starts_with(is_word) || stop.found == "("))
            .then(|| error("what a `sum` adds stands in braces").label("expected `{`").help(form));
    }
    let inside = stop.before.rsplit(word).next().unwrap_or("");
    if !inside.contains(" in ") {
        return Some(match stop.found {
            "=" => error("a counter runs over a range with `in`").label("write `in`").help(form),
            _ => error("a `sum` needs a counter and a range")
                .label("expected `in` and a range")
                .help("a few terms are added with `+`; many with `sum(n in 1..=3) { a[i+n] }`"),
        });
    }
    let is_range = [".", ":", ".."].contains(&stop.found) || stop.found == ")";
    is_range.then(|| error("the range of a counter is written `1..=3`").label("expected `..=`").help(form))
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
        return Some(
            Diagnostic::error(stop.here(), "a branch stands in braces")
                .label("expected `{`")
                .help("a choice is written `if c { a } else { b }`"),
        );
    }
    let start = head.rfind('(')?;
    scalar(head[start + 1..].trim()).map(|_| {
        Diagnostic::error(Span::new(start, head.len() + 1), "there are no casts")
            .label("leave it out")
            .help("numbers are converted where kinds meet; the type of a field says how it is stored")
    })
}

/// Something that is missing, where what was found would fit after it.
fn missing(stop: &Stop) -> Option<Diagnostic> {
    let error = |message: String| Diagnostic::error(stop.here(), message);
    let last = stop.last()?;
    if stop.found == "," && stop.bracket.is_none_or(|(bracket, _)| bracket == '{') {
        // `param p = 1, q = 2` and `in a: f32, b`, but not `const w = 1, 2`.
        let is_name = stop.rest[1..].trim_start().starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name && ["in", "out", "inout", "param", "const"].contains(&stop.first) {
            return Some(
                error(format!("the next `{}` is a declaration of its own", stop.first))
                    .label(format!("write `; {}`", stop.first))
                    .help("a type, a place and a value belong to all names before them"),
            );
        }
        return Some(error("`,` does not fit here".into()).label("the expression has ended").help(
            if stop.first == "const" && !is_name {
                "several numbers are an array, as in `const w = [1, 2, 3]`; a single one has a point, as in `0.5`"
            } else if stop.bracket.is_some_and(|(bracket, word)| bracket == '{' && word.is_empty()) {
                "a vector is written `[a, b]`"
            } else {
                "a number has a point, as in `0.5`, and no commas; several values are assigned one by one"
            },
        ));
    }
    if stop.after_operand && (stop.found == "(" || stop.found.starts_with(is_word)) {
        let (word, span) = stop.previous.unwrap_or(("", stop.here()));
        let adjacent = stop.before.trim_end_matches([' ', '\t']).len() == span.end as usize;
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if adjacent && !is_number && stop.found != "(" && function(word).is_some() {
            return Some(
                error("an argument stands in parentheses".into()).label(format!("write `{word}({})`", stop.found)),
            );
        }
        if super::RESERVED.contains(&stop.found) {
            return Some(
                error("two statements on one line are parted by `;`".into())
                    .label("a new statement begins here")
                    .help("put it on a line of its own, or `;` before it"),
            );
        }
        if let Some(found) = after_parenthesis(stop) {
            return Some(found);
        }
        return Some(
            error("an operator is missing before this".into()).label("expected `*`, `+` or another operator").help(
                "a product is written with `*`, as in `2*a`; a new statement begins on a line of its own or after `;`",
            ),
        );
    }
    if stop.found == "{" && stop.after_operand {
        return Some(
            error("no block fits here".into())
                .label("expected an operator")
                .help("a neighbour is written in square brackets, `a[i-1]`; a choice begins with `if`"),
        );
    }
    if stop.found == "," && stop.bracket.is_some_and(|(bracket, word)| bracket == '(' && word.is_empty()) {
        return Some(error("several values do not stand in parentheses".into()).label("a vector is written `[a, b]`"));
    }
    if last == ',' && [")", "]"].contains(&stop.found) {
        return Some(
            error("there is a comma too many".into()).label("something is missing after the comma, or leave it out"),
        );
    }
    if last == '{' && stop.found == "}" {
        return Some(error("there is nothing between the braces".into()).label("expected an expression"));
    }
    if last == '[' && stop.found == "]" || last == '(' && stop.found == ")" {
        return Some(error("there is nothing between the brackets".into()).label("expected an expression"));
    }
    // `a +` and then something else: the mistake is at the operator.
    let begins_statement = ["in", "out", "inout", "let", "param", "const", "stencil", "else"].contains(&stop.found);
    let ends = ["", "}", ";", ")", "]", ","].contains(&stop.found) || begins_statement;
    if ends && !stop.after_operand && "+-*/%<>=&|!".contains(last) {
        let at = stop.before.trim_end().len();
        let head = &stop.before[..at];
        let start = head.trim_end_matches(|c| "+-*/%<>=&|!".contains(c)).len();
        let operator = &head[start..];
        return Some(
            Diagnostic::error(Span::new(start, at), format!("nothing follows `{operator}`"))
                .label("an expression is expected after it"),
        );
    }
    None
}
