//! Words that mean something to somebody who should not be told: a C++ compiler, a terminal, a browser, a shell.

use fastrand::Rng;

/// What ends or begins comments, literals and lines, and what joins them.
const PIECES: &[&str] = &[
    "*", "/", "\\", "\"", "'", "?", "<", ">", "&", "*/", "/*", "//", "*\\", "\\/", "??/", "*??/", "%:", "#", "{", "}",
    "(", ")", ";", "R\"(", ")\"", "`", "$", "@", "|", "%", "\t", " ", "x", "é", "\u{2028}",
];

/// What no text may hold, and names of files do.
const UNSEEN: &[&str] =
    &["\x1b[2J", "\x1b", "\x1b]0;x\x07", "\r", "\n", "\x08", "\x7f", "\u{9b}", "\u{202e}", "\u{2066}", "\u{200b}"];

/// What would be code if the comment around it ended.
const CODE: &[&str] = &[
    "*\\ int injected(void); /*",
    "*/ int injected(void); /*",
    "p */ ; int injected(void); /* x",
    "*??/\\ int injected(void); /*",
    "\\",
    "??/",
    "\\ ",
    "*\\",
    "*/",
];

fn pieces(rng: &mut Rng, from: &[&[&str]]) -> String {
    let mut text = String::new();
    for _ in 0..rng.usize(1..10) {
        let own = from[rng.usize(0..from.len())];
        text.push_str(own[rng.usize(0..own.len())]);
    }
    text
}

/// A line of a comment, of characters that a text may hold; now and then of others.
pub fn comment(rng: &mut Rng) -> String {
    match rng.usize(0..16) {
        0..5 => CODE[rng.usize(0..CODE.len())].to_owned(),
        5 => pieces(rng, &[PIECES, UNSEEN]).replace('\n', " "),
        _ => pieces(rng, &[PIECES, PIECES, CODE]),
    }
}

/// The name of a file or a folder, without what its kind ends with: no file system keeps any of this from being one.
pub fn name(rng: &mut Rng) -> String {
    let text = match rng.usize(0..8) {
        0..3 => CODE[rng.usize(0..CODE.len())].to_owned(),
        _ => pieces(rng, &[PIECES, UNSEEN]),
    };
    // A name has no slash, is none of `.` and `..`, and is no option.
    format!("n{}", text.replace('/', "\\"))
}

/// What a terminal or a browser would act on, as a name in a data file.
pub fn word(rng: &mut Rng) -> String {
    match rng.usize(0..4) {
        0 => "</script><script>alert(1)</script>".to_owned(),
        1 => CODE[rng.usize(0..CODE.len())].to_owned(),
        _ => pieces(rng, &[PIECES, UNSEEN]),
    }
}

/// The first character of what a program writes that is not shown as itself; colours and weights of letters are.
pub fn unseen(text: &str) -> Option<char> {
    let mut left = text.chars();
    while let Some(character) = left.next() {
        let rest = left.as_str();
        let style =
            rest.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match style.and_then(|rest| rest.strip_prefix('m')) {
            Some(rest) if character == '\x1b' => left = rest.chars(),
            _ if !is_shown(character) => return Some(character),
            _ => {}
        }
    }
    None
}

/// Whether a character is shown as itself by every terminal and in every line: no control character but the end of a line and
/// a tabulator, and none of those that turn what follows around.
pub fn is_shown(character: char) -> bool {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}');
    !turns && (!character.is_control() || matches!(character, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_found_but_colours() {
        assert_eq!(unseen("a\n\x1b[1;31mb\x1b[0m é"), None);
        assert_eq!(unseen("a\x1b[2J"), Some('\x1b'));
        assert_eq!(unseen("a\x1b[31"), Some('\x1b'));
        assert_eq!(unseen("a\u{202e}"), Some('\u{202e}'));
        assert!(UNSEEN.iter().filter(|piece| unseen(piece).is_none()).all(|piece| ["\n", "\u{200b}"].contains(piece)));
    }
}
