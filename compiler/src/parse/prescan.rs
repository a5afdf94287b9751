//! A linear look at the text before it is parsed: what no parser should be asked to read.

use super::division::lost_bracket;
use super::mistakes::open_before_else;
use crate::diagnostic::{Diagnostic, wrong};
use crate::source::Span;
use crate::text::is_deceiving;

/// How deeply brackets may be nested: the parser and everything after it recurse along them.
const NESTING: usize = 256;

/// Longest text, in bytes: more than anybody writes, and answered within a second, whatever it says.
pub const LENGTH: usize = 1 << 19;

/// Refuses texts that are too long, nested too deeply, or contain characters that deceive a reader.
pub fn prescan(text: &str) -> Result<(), Diagnostic> {
    if text.len() > LENGTH {
        return Err(Diagnostic::error(Span::new(0, 0), format!("this file is larger than {} KiB", LENGTH >> 10))
            .label("no stencil is as long as that"));
    }
    let mut open = Vec::new();
    let (mut comment, mut string) = (false, None);
    let mut previous = '\n';
    for (at, character) in text.char_indices().chain([(text.len(), '\n')]) {
        let here = Span::new(at, at + character.len_utf8());
        // Some editors begin a file with a byte order mark.
        let is_mark = at == 0 && character == '\u{FEFF}';
        let is_usual = matches!(character, '\n' | '\r' | '\t');
        if !is_mark && !is_usual && is_deceiving(character) {
            let code = u32::from(character);
            return Err(Diagnostic::error(here, format!("the character U+{code:04X} is not allowed"))
                .label("it cannot be seen, or changes how the text is shown")
                .help("delete it and type the line again"));
        }
        match character {
            '\n' => {
                if let Some(opened) = string {
                    return Err(open_text(opened));
                }
                comment = false;
            }
            _ if comment => {}
            '"' => string = if string.is_some() { None } else { Some(here) },
            _ if string.is_some() => {}
            '/' if previous == '/' => comment = true,
            '(' | '[' | '{' => {
                open.push((character, here));
                if open.len() > NESTING {
                    return Err(wrong(here, format!("brackets are nested more than {NESTING} deep"), "one too many")
                        .help("name parts of the expression with `let`"));
                }
            }
            ')' | ']' | '}' => {
                let nothing = || Diagnostic::error(here, format!("`{character}` closes nothing"));
                let Some((bracket, opened)) = open.pop() else {
                    return Err(nothing().label("no bracket is open here"));
                };
                let expected = closing(bracket);
                if character != expected {
                    if bracket == '{' && open.iter().all(|&(other, _)| closing(other) != character) {
                        let opening = if character == ')' { '(' } else { '[' };
                        return Err(nothing().label(format!("no `{opening}` is open here")));
                    }
                    let found = Diagnostic::error(here, format!("`{character}` does not close `{bracket}`"))
                        .label(format!("`{expected}` was expected"))
                        .note(opened, "opened here");
                    return Err(found.help_if(lost_bracket(&text[opened.start as usize..at], expected)));
                }
            }
            _ => {}
        }
        previous = character;
    }
    match open.last() {
        Some(&(bracket, opened)) => {
            let mut found = Diagnostic::error(opened, format!("`{bracket}` is never closed"))
                .label(format!("`{}` is missing", closing(bracket)));
            let lost = text[opened.end as usize..].split("//").next().and_then(else_without_end);
            if let (Some(at), '{') = (lost, bracket) {
                let at = at + opened.end as usize;
                return Err(open_before_else(Span::new(at, at + 4)).note(opened, "so this is never closed"));
            }
            if bracket == '{' && text.lines().any(ends_a_block) {
                found = found.help("a block ends with `}`: there is no `end`");
            }
            Err(found.help_if(lost_bracket(&text[opened.start as usize..], closing(bracket))))
        }
        None => Ok(()),
    }
}

/// A text whose second quote is missing.
fn open_text(opened: Span) -> Diagnostic {
    wrong(opened, "this quote is never closed", "a second `\"` is missing on this line")
        .help("texts are the labels of prints, as in `print(\"on the left\", phi[i-1])`, and the titles of tests")
}

/// Whether a line closes a block as in Fortran, Julia or MATLAB.
fn ends_a_block(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default().to_lowercase();
    ["end", "endif", "enddo", "endfunction", "done"].contains(&first.as_str())
}

/// Where an `else` stands that no `}` stands before.
fn else_without_end(text: &str) -> Option<usize> {
    let words = text.match_indices("else").filter(|(at, word)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    });
    let is_word = |at: &usize| {
        let line = text[..*at].rsplit('\n').next().unwrap_or_default();
        let is_told = line.contains('#') || line.contains("//") || !line.matches('"').count().is_multiple_of(2);
        !is_told && !text[..*at].trim_end().ends_with('}')
    };
    words.map(|(at, _)| at).find(is_word)
}

fn closing(bracket: char) -> char {
    match bracket {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        prescan(text).map_or_else(|error| error.message, |()| String::new())
    }

    #[test]
    fn brackets_must_match_outside_comments_and_strings() {
        assert_eq!(message("a { b ( c [ d ] ) } // ( \" {\n test \"(\" {}"), "");
        assert_eq!(message("( ]"), "`]` does not close `(`");
        assert_eq!(message("{ ]"), "`]` closes nothing");
        assert_eq!(message("[ ( ]"), "`]` does not close `(`");
        assert_eq!(message("{ ("), "`(` is never closed");
        assert_eq!(message(")"), "`)` closes nothing");
        assert_eq!(message(&"(".repeat(50_000)), "brackets are nested more than 256 deep");
    }

    #[test]
    fn deceiving_characters_are_refused() {
        assert!(message("a\0b").contains("U+0000"));
        assert!(message("a \u{202E} b").contains("U+202E"));
    }
}
