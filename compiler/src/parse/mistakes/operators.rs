//! Operators of other languages.

use super::{Stop, is_word};
use crate::diagnostic::{Diagnostic, wrong};
use crate::foreign;
use crate::source::Span;

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    elementwise(stop).or_else(|| sign(stop)).or_else(|| comment(stop)).or_else(|| foreign(stop))
}

/// `a .* b`, `a .^ 2`.
fn elementwise(stop: &Stop) -> Option<Diagnostic> {
    let head = stop.before.strip_suffix('.')?;
    let operator = &stop.rest[..stop.rest.find(|c| !"*/^+-<>=!&|\\".contains(c)).unwrap_or(stop.rest.len())];
    if operator.is_empty() || head.ends_with('.') {
        return None;
    }
    let ours = match operator {
        "^" => "**",
        "\\" => "/",
        other => other,
    };
    let place = Span::new(head.len(), stop.before.len() + operator.len());
    let found = wrong(place, format!("`.{operator}` is no operator"), format!("write `{ours}`"));
    Some(found.help("every operation is done on each cell by itself, without a point"))
}

/// `|a|`, and Fortran's `&` at the end of a line.
fn sign(stop: &Stop) -> Option<Diagnostic> {
    let line = stop.rest.lines().next().unwrap_or_default();
    let error = |message: &str| Diagnostic::error(stop.here(), message);
    if stop.found == "&" && line[1..].trim().is_empty() {
        let help = "a line goes on by itself after an operator or a comma, inside brackets, and before an operator";
        return Some(error("`&` does not continue a line").label("leave it out").help(help));
    }
    let end = line.get(1..).and_then(|rest| rest.find('|')).filter(|_| stop.found == "|" && !stop.after_operand)?;
    let inside = line[1..=end].trim();
    let place = Span::new(stop.before.len(), stop.before.len() + end + 2);
    (!inside.is_empty()).then(|| wrong(place, "a magnitude is written with `abs`", format!("write `abs({inside})`")))
}

/// `a  % half`, `a  -- half`: comments of MATLAB, Haskell or SQL, whose second word cannot follow.
fn comment(stop: &Stop) -> Option<Diagnostic> {
    let (_, word) = stop.previous.filter(|_| stop.after_operand && stop.found.starts_with(is_word))?;
    let head = stop.line().get(..stop.line().len().checked_sub(stop.before.len() - word.start as usize)?)?.trim_end();
    let mark = ["--", "%"].into_iter().find(|mark| head.ends_with(mark))?;
    let at = stop.before.len() - stop.line().len() + head.len();
    let found = wrong(Span::new(at - mark.len(), at), format!("`{mark}` does not begin a comment"), "write `//`");
    Some(found.help("comments begin with `//` and end with the line"))
}

/// A sign of the list.
fn foreign(stop: &Stop) -> Option<Diagnostic> {
    for (theirs, ours) in foreign::words("signs") {
        // The parser takes the first characters of some for an operator of ours.
        for taken in (0..theirs.len().min(3)).rev() {
            if stop.before.ends_with(&theirs[..taken]) && stop.rest.starts_with(&theirs[taken..]) {
                let start = stop.before.len() - taken;
                // `a => b` as a statement is an assignment.
                if theirs == "=>" && !stop.statement.trim_end_matches('=').contains(['=', ' ', '(']) {
                    let place = Span::new(start, start + 2);
                    return Some(Diagnostic::error(place, "an output is assigned with `=`").label("leave out `>`"));
                }
                if theirs.starts_with(['&', '|']) && taken > 0 {
                    continue;
                }
                let place = Span::new(start, start + theirs.len());
                return Some(wrong(place, format!("`{theirs}` is no operator"), format!("write {ours}")));
            }
        }
    }
    None
}
