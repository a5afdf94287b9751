//! What a C++ compiler sees of a text: the comments are taken out, all else stays.
//!
//! Compilers differ in how they read lines, and a text has to mean the same to all of them: [`READINGS`]. Source: ISO/IEC
//! 14882:2014, [lex.phases], [lex.trigraph] and [lex.comment].

/// How a compiler reads lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `??/` is a backslash, and so on: gcc's `-trigraphs` and `-std=c++14`.
    pub trigraphs: bool,
    /// A carriage return ends a line, as clang has it.
    pub returns: bool,
    /// Blanks may stand between a backslash and the end of the line that it joins to the next, as gcc has it.
    pub blanks: bool,
}

/// All ways of reading.
pub const READINGS: [Reading; 8] = {
    let mut all = [Reading { trigraphs: false, returns: false, blanks: false }; 8];
    let mut number = 0;
    while number < 8 {
        all[number] = Reading { trigraphs: number & 1 != 0, returns: number & 2 != 0, blanks: number & 4 != 0 };
        number += 1;
    }
    all
};

/// The third characters of trigraphs, and what they mean.
const TRIGRAPHS: [(char, char); 9] =
    [('=', '#'), ('/', '\\'), ('\'', '^'), ('(', '['), (')', ']'), ('!', '|'), ('<', '{'), ('>', '}'), ('-', '~')];

/// What stands for a comment that never ends.
pub const OPEN: &str = "<a comment without an end>";

/// A text without its comments: blanks that follow each other are one, lines that hold nothing are left out.
pub fn without_comments(text: &str, reading: Reading) -> String {
    let text: Vec<char> = text.chars().collect();
    let mut scanner = Scanner { text: &text, reading, at: 0, seen: String::new() };
    while let Some(next) = scanner.take() {
        match next {
            '/' if scanner.peek() == Some('/') => scanner.skip_line(),
            '/' if scanner.peek() == Some('*') => scanner.skip_comment(),
            '"' if scanner.is_raw() => scanner.raw_string(),
            '"' => scanner.literal('"'),
            '\'' if !scanner.seen.ends_with(|c: char| c.is_ascii_hexdigit()) => scanner.literal('\''),
            next => scanner.see(next),
        }
    }
    scanner.seen.truncate(scanner.seen.trim_end().len());
    scanner.seen
}

struct Scanner<'a> {
    text: &'a [char],
    reading: Reading,
    at: usize,
    seen: String,
}

impl Scanner<'_> {
    /// The character at a place, as trigraphs and ends of lines are read, and where the next one is.
    fn mapped(&self, at: usize) -> Option<(char, usize)> {
        let character = *self.text.get(at)?;
        let ahead = |by: usize| self.text.get(at + by).copied();
        if character == '\r' && ahead(1) == Some('\n') {
            return Some(('\n', at + 2));
        }
        if character == '\r' && self.reading.returns {
            return Some(('\n', at + 1));
        }
        if self.reading.trigraphs && character == '?' && ahead(1) == Some('?') {
            let found = TRIGRAPHS.iter().find(|(third, _)| ahead(2) == Some(*third));
            if let Some(&(_, meaning)) = found {
                return Some((meaning, at + 3));
            }
        }
        Some((character, at + 1))
    }

    /// Where the text goes on if a line that ends at `at`, after a backslash, is joined to the next.
    fn joined(&self, mut at: usize) -> Option<usize> {
        loop {
            match self.mapped(at)? {
                ('\n', next) => return Some(next),
                (' ' | '\t' | '\x0b' | '\x0c' | '\r', next) if self.reading.blanks => at = next,
                _ => return None,
            }
        }
    }

    /// The next character, lines joined.
    fn next(&self) -> Option<(char, usize)> {
        let mut at = self.at;
        loop {
            let (character, next) = self.mapped(at)?;
            match (character, self.joined(next)) {
                ('\\', Some(joined)) => at = joined,
                _ => return Some((character, next)),
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.next().map(|(character, _)| character)
    }

    fn take(&mut self) -> Option<char> {
        let (character, next) = self.next()?;
        self.at = next;
        Some(character)
    }

    /// Adds what is no literal.
    fn see(&mut self, character: char) {
        let ends_blank = self.seen.is_empty() || self.seen.ends_with([' ', '\n']);
        match character {
            '\n' => {
                self.seen.truncate(self.seen.trim_end_matches(' ').len());
                if !self.seen.is_empty() && !self.seen.ends_with('\n') {
                    self.seen.push('\n');
                }
            }
            character if character.is_ascii_whitespace() || character == '\x0b' => {
                if !ends_blank {
                    self.seen.push(' ');
                }
            }
            character => self.seen.push(character),
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|next| next != '\n') {
            self.take();
        }
        self.see(' ');
    }

    fn skip_comment(&mut self) {
        self.take();
        let mut before = ' ';
        while let Some(next) = self.take() {
            if (before, next) == ('*', '/') {
                return self.see(' ');
            }
            before = next;
        }
        self.seen.push_str(OPEN);
    }

    /// A string or a character, whose beginning was taken; one that does not end on its line ends with it.
    fn literal(&mut self, quote: char) {
        self.seen.push(quote);
        while let Some(next) = self.take() {
            self.seen.push(next);
            match next {
                '\\' => {
                    let escaped = self.take();
                    self.seen.extend(escaped);
                }
                '\n' => return,
                next if next == quote => return,
                _ => {}
            }
        }
    }

    /// Whether what was seen makes the next string a raw one.
    fn is_raw(&self) -> bool {
        let word = self.seen.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        ["R", "LR", "uR", "UR", "u8R"].contains(&word)
    }

    /// A raw string, in which nothing is joined or replaced.
    fn raw_string(&mut self) {
        let rest = &self.text[self.at..];
        let open = rest.iter().position(|&c| c == '(').unwrap_or(rest.len());
        let end: Vec<char> = [&[')'], &rest[..open], &['"']].concat();
        let found = rest.windows(end.len()).position(|window| window == end);
        let length = found.map_or(rest.len(), |at| at + end.len());
        self.seen.push('"');
        self.seen.extend(&rest[..length]);
        self.at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Reading = Reading { trigraphs: false, returns: false, blanks: false };

    #[test]
    fn comments_are_taken_out_and_nothing_else() {
        let code = |text: &str| without_comments(text, PLAIN);
        assert_eq!(code("a /* b */ c // d\ne"), "a c\ne");
        assert_eq!(code("a/**/b"), "a b");
        assert_eq!(code("\n\n  /* a\n * b\n */\n\nint x;\n"), "int x;");
        assert_eq!(code("\"// no\" '\"' \"\\\"/*\" x"), "\"// no\" '\"' \"\\\"/*\" x");
        assert_eq!(code("1'000 /* a */ 'a'"), "1'000 'a'");
        assert_eq!(code("R\"x(/* )\" )x\" /* a */ y"), "R\"x(/* )\" )x\" y");
        assert_eq!(code("a /* b"), format!("a {OPEN}"));
    }

    #[test]
    fn lines_are_joined_before_comments_are_seen() {
        let code = |text: &str| without_comments(text, PLAIN);
        assert_eq!(code("// a \\\nb\nc"), "c");
        assert_eq!(code("/\\\n/ a\nc"), "c");
        assert_eq!(code("/* a *\\\n/ c"), "c");
        assert_eq!(code("// a \\\r\nb\nc"), "c");
    }

    #[test]
    fn compilers_that_differ_are_all_followed() {
        let with = |trigraphs, returns, blanks| Reading { trigraphs, returns, blanks };
        assert_eq!(without_comments("// a ??/\nb\nc", PLAIN), "b\nc");
        assert_eq!(without_comments("// a ??/\nb\nc", with(true, false, false)), "c");
        assert_eq!(without_comments("// a \\ \nb\nc", PLAIN), "b\nc");
        assert_eq!(without_comments("// a \\ \nb\nc", with(false, false, true)), "c");
        assert_eq!(without_comments("// a\rb\nc", PLAIN), "c");
        assert_eq!(without_comments("// a\rb\nc", with(false, true, false)), "b\nc");
        assert_eq!(READINGS.iter().filter(|own| own.trigraphs).count(), 4);
    }
}
