//! `a // 2`: whole division in Python, a comment here. It would be read as `a`, without a word.

use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// Warns where a line looks as if a division were lost in a comment: an operand, `//`, and a number alone.
pub fn lost_divisions(text: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some((code, comment)) = split(line)
            && is_number(comment)
        {
            let place = Span::new(at + code.len(), at + line.trim_end().len());
            found.push(
                Diagnostic::warning(place, "`//` begins a comment: nothing is divided here")
                    .label("not computed")
                    .help("a quotient is `a / b`, rounded down `floor(a / b)`; a comment with a word in it brings no warning"),
            );
        }
        at += line.len();
    }
    found
}

/// The help for a bracket that is missing because it stands in a comment of `text`.
pub fn lost_bracket(text: &str, bracket: char) -> Option<String> {
    let is_lost = text.lines().filter_map(split).any(|(_, comment)| comment.contains(bracket));
    is_lost.then(|| {
        format!(
            "a `{bracket}` stands in a comment: `//` begins one; a quotient is `a / b`, rounded down `floor(a / b)`"
        )
    })
}

/// What stands before and after `//` on a line, if an operand stands right before it.
fn split(line: &str) -> Option<(&str, &str)> {
    let at = line.find("//").filter(|&at| !line[at..].starts_with("///"))?;
    let (code, comment) = (&line[..at], &line[at + 2..]);
    let ends_in_operand = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ')' | ']' | '.');
    code.trim_end().ends_with(ends_in_operand).then_some((code, comment))
}

/// Whether a comment is a number, and perhaps what closes an expression.
fn is_number(comment: &str) -> bool {
    let text = comment.trim();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    rest.len() < text.len() && rest.chars().all(|c| matches!(c, ')' | ']' | '}' | ';' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_division_is_told() {
        assert_eq!(lost_divisions("let x = a // 2\nlet y = (a[i] // 2)\n").len(), 2);
        for harmless in ["in a // 2 m", "// 2", "in a, // 2", "/// 2", "x = a // half", "x = a // 3-point"] {
            assert_eq!(lost_divisions(harmless).len(), 0, "{harmless}");
        }
    }
}
