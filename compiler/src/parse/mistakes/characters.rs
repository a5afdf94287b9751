//! Characters that are not in the language, and numbers as other languages write them.

use super::{Stop, is_word, last_word};
use crate::diagnostic::{Diagnostic, wrong};
use crate::foreign;
use crate::source::Span;

pub fn guess(stop: &Stop) -> Option<Diagnostic> {
    let first = stop.found.chars().next()?;
    number(stop)
        .or_else(|| lookalike(stop, first))
        .or_else(|| quote(stop, first))
        .or_else(|| stop.known("characters"))
        .or_else(|| not_ascii(stop, first))
}

/// A character of typesetters, mathematicians and other keyboards.
fn lookalike(stop: &Stop, first: char) -> Option<Diagnostic> {
    let ours = foreign::meaning("characters", first.encode_utf8(&mut [0; 4]))?;
    let place = Span::new(stop.before.len(), stop.before.len() + first.len_utf8());
    let message = format!("`{first}` is no character of the language");
    Some(Diagnostic::error(place, message).label(format!("write `{ours}`")))
}

/// What is not written in ASCII: a name, or a character that means nothing.
fn not_ascii(stop: &Stop, first: char) -> Option<Diagnostic> {
    if stop.found.is_ascii() {
        return None;
    }
    if !is_word(first) {
        let found = wrong(stop.here(), format!("`{first}` is no character of the language"), "not understood");
        return Some(found.help("everything but comments is written in ASCII"));
    }
    let begun = last_word(stop.before);
    let place = Span::new(stop.before.len() - begun.len(), stop.before.len() + stop.found.len());
    let found = wrong(place, format!("`{begun}{}` cannot be a name", stop.found), "not all of it is ASCII");
    Some(found.help("names are made of ASCII letters, digits and `_`, as in `alpha` or `dx2`"))
}

/// Quotes around the label of a print or the title of a test.
fn quote(stop: &Stop, first: char) -> Option<Diagnostic> {
    let theirs = "“”„‘’«»\'`";
    let takes_text =
        stop.bracket.is_some_and(|(bracket, word)| bracket == '(' && word == "print") || stop.first == "test";
    let at = stop.before.len();
    if takes_text && first == '"' && stop.previous.is_some_and(|(_, span)| span.end as usize == at) {
        let (word, span) = stop.previous?;
        let found = wrong(span, "a text is plain: nothing is put into it", format!("leave out `{word}`"));
        return Some(found.help("write a label and one value, as in `print(\"on the left\", phi[i-1])`"));
    }
    if !takes_text || !theirs.contains(first) {
        return None;
    }
    let line = stop.rest.lines().next().unwrap_or_default();
    let inside = &line[first.len_utf8()..];
    let end = inside.find(|c| theirs.contains(c)).unwrap_or(inside.len());
    let close = inside[end..].chars().next().map_or(0, char::len_utf8);
    let place = Span::new(at, at + first.len_utf8() + end + close);
    let label = format!("write `\"{}\"`", &inside[..end]);
    Some(wrong(place, "a text stands between straight double quotes", label))
}

/// Advice for those who write the precision of a number at its end.
const NO_ENDINGS: &str =
    "numbers have no endings: `real` has the precision that `--precision` says, `f64` if it says nothing";

/// The digits of `1_000`, and those of Fortran's `1.0_8` without its kind; and whether there was one. A kind that were taken for
/// digits would change the number without a word, so only groups of three are digits.
fn without_kind(digits: &str) -> (String, bool) {
    let digits = digits.trim_end_matches('_');
    match digits.rsplit_once('_') {
        Some((number, kind)) if kind.len() != 3 && !number.is_empty() => (number.replace('_', ""), true),
        _ => (digits.replace('_', ""), false),
    }
}

/// `2a`, `1.0d0`, `0x10`, `1_000`, `1e`: a word that begins like a number.
fn number(stop: &Stop) -> Option<Diagnostic> {
    let at = stop.before.len();
    let is_part = |c: char| is_word(c) || c == '.';
    if !stop.found.chars().next().is_some_and(is_part) {
        return None;
    }
    let head: usize = stop.before.chars().rev().take_while(|&c| is_part(c)).map(char::len_utf8).sum();
    let tail: usize = stop.rest.chars().take_while(|&c| is_part(c)).map(char::len_utf8).sum();
    let start = at - head;
    let token = format!("{}{}", &stop.before[start..], &stop.rest[..tail]);
    let place = Span::new(start, at + tail);
    let digits = token.chars().take_while(|c| c.is_ascii_digit() || *c == '.' || *c == '_').collect::<String>();
    let letters = &token[digits.len()..];
    let is_begun = token.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
    if !is_begun || letters.is_empty() && !digits.contains('_') {
        return None;
    }
    let (plain, has_kind) = without_kind(&digits);
    let error = |label: String| Some(Diagnostic::error(place, format!("`{token}` is no number")).label(label));
    if ["0x", "0X", "0b", "0o"].iter().any(|head| token.starts_with(head)) {
        return error("write it in decimal".into());
    }
    if plain.contains("..") || letters.contains("..") {
        return None;
    }
    let is_name = !digits.contains(['.', '_'])
        && !stop.after_operand
        && stop
            .previous
            .is_some_and(|(word, _)| ["in", "out", "inout", "let", "const", "param", "fn", "stencil"].contains(&word));
    if is_name {
        let found = wrong(place, format!("`{token}` cannot be a name"), "begins with a digit");
        return Some(found.help("names begin with a letter or `_`"));
    }
    // Fortran's `1d-3`, `1.0_dp`; C's `1.0f`.
    let kind_at = |power: &str| power.find(|c: char| !c.is_ascii_digit()).unwrap_or(power.len());
    let is_power = |rest: &&str| rest.chars().all(|c| c.is_ascii_digit());
    let kind = letters.strip_prefix(['e', 'E']).map(|power| power.split_at(kind_at(power)));
    if let Some((power, _)) = kind.filter(|(power, kind)| !power.is_empty() && kind.starts_with('_')) {
        return error(format!("write `{plain}e{power}`")).map(|found| found.help(NO_ENDINGS));
    }
    if let Some(exponent) = letters.strip_prefix(['d', 'D']).filter(is_power) {
        let behind = &stop.rest[tail..];
        let digits = behind.strip_prefix(['-', '+']).map_or("", super::word_at);
        let exponent = match exponent {
            "" if digits.is_empty() => "0",
            "" => &behind[..digits.len() + 1],
            own => own,
        };
        return error(format!("write `{plain}e{exponent}`"))
            .map(|found| found.help("`real` has the precision that `--precision` says, `f64` if it says nothing"));
    }
    if letters == "e" || letters == "E" {
        // Fortran's `1.0e-3_wp`.
        let exponent = super::word_at(stop.rest[tail..].trim_start_matches(['-', '+']));
        let (power, kind) = exponent.split_at(kind_at(exponent));
        if !power.is_empty() && !kind.is_empty() {
            let sign = stop.rest[tail..].chars().next().unwrap_or('+');
            let end = at + tail + 1 + exponent.len();
            let found = Diagnostic::error(Span::new(start, end), format!("`{token}{sign}{exponent}` is no number"));
            return Some(found.label(format!("write `{plain}e{sign}{power}`")).help(NO_ENDINGS));
        }
        return error("an exponent is missing after `e`, as in `1e-3`".into());
    }
    let is_ending = has_kind && letters.is_empty() || ["f", "F", "l", "L", "u", "f32", "f64", "d"].contains(&letters);
    if digits.ends_with('_') || is_ending {
        return error(format!("write `{plain}`")).map(|found| found.help(NO_ENDINGS));
    }
    if letters.is_empty() {
        return error(format!("write `{plain}`"));
    }
    let found = Diagnostic::error(place, format!("`{token}` is neither a number nor a name"));
    Some(found.label(format!("if a product is meant, write `{plain} * {letters}`")))
}
