//! Text of the user's on its way to readers and into generated code.
//!
//! Documentation, paths and labels hold any characters at all, so they are a type of their own: [`FreeText`], which neither
//! `format!` nor a template takes. Into generated code it comes as a [`Comment`] alone, which is made by escaping. What is
//! not free, the names of stencils, fields and parameters, comes there as an [`Identifier`](crate::names::Identifier). No
//! string literal of generated code holds anything else.
//!
//! What is suggested to be typed holds such text as a [`ShellWord`], so that no name is a command.

use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

/// Text that somebody wrote as they liked: documentation, the path of a file, a label.
///
/// It cannot be displayed, nor serialised, and what `Debug` writes does not show it, so it gets nowhere by accident.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct FreeText(String);

/// A line of a `/* ... */` comment, which neither ends that comment nor begins another, whatever it was made of.
///
/// `*/` and `/*` are taken apart, as are trigraphs; a backslash, which may join lines, is a slash; control characters,
/// line ends of all kinds, and characters that cannot be seen or change the order in which text is shown, are written as
/// `<U+202E>`. All else stays as it is: letters of any language, and `//`, which means nothing in such a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comment(String);

/// A word of a command that somebody may copy into a shell, which takes it for that one word, whatever it was made of.
///
/// It stays so in a [`Comment`] and on a screen: a backslash, which these change, has no part in the quoting, and what they would
/// write in another way is written as `\u{1b}` here, which a shell takes for these very characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellWord(String);

/// The third characters of trigraphs: `??/` was a backslash in C and C++ for long.
const TRIGRAPHS: &str = "=/'()!<>-";

impl FreeText {
    /// What somebody wrote.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text itself, for those who tell it to somebody, or open the file that it names. Not for generated code.
    pub fn as_told(&self) -> &str {
        &self.0
    }

    /// Its lines as those of a comment.
    pub fn comments(&self) -> impl Iterator<Item = Comment> {
        self.0.lines().map(Comment::new)
    }

    /// All of it as one line of a comment.
    pub fn comment(&self) -> Comment {
        Comment::new(&self.0)
    }

    /// Its first line as one of a comment; empty if there is none.
    pub fn first_comment(&self) -> Comment {
        Comment::new(self.0.lines().next().unwrap_or(""))
    }
}

impl fmt::Debug for FreeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FreeText of {} bytes", self.0.len())
    }
}

impl Comment {
    /// A line that says this. What is in a comment already stays as it is.
    pub fn new(text: impl AsRef<str>) -> Self {
        let mut line = String::new();
        let mut last = [' '; 2];
        for character in text.as_ref().chars() {
            let character = if character == '\\' { '/' } else { character };
            if is_deceiving(character) && character != '\t' {
                // `??<` is a trigraph, too.
                if last == ['?', '?'] {
                    line.push(' ');
                }
                line.push_str(&format!("<U+{:04X}>", u32::from(character)));
                last = [' ', '>'];
                continue;
            }
            let is_mark = matches!((last[1], character), ('*', '/') | ('/', '*'));
            if is_mark || last == ['?', '?'] && TRIGRAPHS.contains(character) {
                line.push(' ');
            }
            line.push(character);
            last = [last[1], character];
        }
        line.truncate(line.trim_end().len());
        Self(line)
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Comment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ShellWord {
    /// The word that stands for this text.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = shown_in_line(text.as_ref());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "./_-+=:,".contains(c);
        // Some shells look for a program behind a `=` at the beginning.
        if !text.is_empty() && !text.starts_with('=') && text.chars().all(is_plain) {
            return Self(text.into_owned());
        }
        Self(format!("'{}'", text.replace('\'', r#"'"'"'"#)))
    }

    /// The word that stands for a file, which is no option either.
    pub fn path(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_string_lossy();
        if path.starts_with('-') { Self::new(format!("./{path}")) } else { Self::new(path) }
    }
}

impl fmt::Display for ShellWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What stands between the single quotes of a string of Python that says this.
pub fn in_python(text: &str) -> String {
    shown_in_line(text).replace('\\', "\\\\").replace('\'', "\\'")
}

/// Characters that are not shown: those with the property Default_Ignorable_Code_Point, as `DerivedCoreProperties.txt` of
/// Unicode 16 has it, which are invisible letters, joiners, variation selectors, tags and marks that turn text round. Besides,
/// blanks that are no spaces, and marks of annotations.
const UNSEEN: &[RangeInclusive<char>] = &[
    '\u{00A0}'..='\u{00A0}',
    '\u{00AD}'..='\u{00AD}',
    '\u{034F}'..='\u{034F}',
    '\u{061C}'..='\u{061C}',
    '\u{115F}'..='\u{1160}',
    '\u{17B4}'..='\u{17B5}',
    '\u{180B}'..='\u{180F}',
    '\u{200B}'..='\u{200F}',
    '\u{2028}'..='\u{202E}',
    '\u{2060}'..='\u{206F}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{FE00}'..='\u{FE0F}',
    '\u{FEFF}'..='\u{FEFF}',
    '\u{FFA0}'..='\u{FFA0}',
    '\u{FFF0}'..='\u{FFFB}',
    '\u{1BCA0}'..='\u{1BCA3}',
    '\u{1D173}'..='\u{1D17A}',
    '\u{E0000}'..='\u{E0FFF}',
];

/// Whether a character does something to a screen, cannot be seen there, or changes the order in which others are shown.
pub fn is_deceiving(character: char) -> bool {
    character.is_control() || UNSEEN.iter().any(|range| range.contains(&character))
}

/// A text for a screen: characters that deceive are written as `\u{1b}`; line ends and tabs stay.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_deceiving(character) && !matches!(character, '\n' | '\t'))
}

/// A text that has one line on a screen, as a name: line ends and tabs are written as `\n` and `\t`, too.
pub fn shown_in_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_deceiving)
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            good if !is_bad(good) => safe.push(good),
            '\n' | '\t' | '\r' => safe.extend(character.escape_default()),
            bad => safe.extend(bad.escape_unicode()),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_neither_end_nor_begin_nor_join_lines() {
        let line = |text: &str| Comment::new(text).to_string();
        assert_eq!(line("x *\\ CODE /*"), "x * / CODE / *");
        assert_eq!(line("/*/ */* **/"), "/ * / * / * ** /");
        assert_eq!(line("ends with \\"), "ends with /");
        assert_eq!(line("really??? ??/ *??/"), "really??? ?? / *?? /");
        assert_eq!(line("a\u{1b}[2Jb\rc\u{2028}d\u{202e}e\nf"), "a<U+001B>[2Jb<U+000D>c<U+2028>d<U+202E>e<U+000A>f");
        assert_eq!(line("??\u{3164} ??\u{1b}"), "?? <U+3164> ?? <U+001B>");
        // What people write stays as it is.
        for usual in
            ["µ = 0.5, é, 温度: see https://example.org/a?b=c&d", "a * b / c ** 2", "is it? yes!", "\tindented"]
        {
            assert_eq!(line(usual), usual);
        }
        let twice = Comment::new(line("*\\ ??/ \u{7}"));
        assert_eq!(twice.to_string(), line("*\\ ??/ \u{7}"));
    }

    #[test]
    fn screens_get_no_control_characters() {
        assert_eq!(shown("a\u{1b}]0;x\u{7}\tb\nc\u{9b}\u{202e}\r"), "a\\u{1b}]0;x\\u{7}\tb\nc\\u{9b}\\u{202e}\\r");
        assert_eq!(shown_in_line("a\n\tb"), "a\\n\\tb");
        assert!(matches!(shown("plain é\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_shell_takes_any_name_for_one_word() {
        let word = |text: &str| ShellWord::new(text).to_string();
        for plain in ["laplap", "made/../x_1.stn", "dt=0.5", "512x512x64", "--u"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("q'; touch PWNED; '"), r#"'q'"'"'; touch PWNED; '"'"''"#);
        assert_eq!(word(""), "''");
        assert_eq!(word("=ls"), "'=ls'");
        assert_eq!(word("a\u{1b}[2J\nb"), r"'a\u{1b}[2J\nb'");
        assert_eq!(ShellWord::path("-rf").to_string(), "./-rf");
        assert_eq!(in_python("a'], b\\"), r"a\'], b\\");
    }

    #[test]
    fn words_are_the_same_to_a_shell_in_comments_and_on_screens() {
        let bad =
            ["'; touch PWNED; '", "\\'; touch PWNED; \\'", "??'; touch PWNED;'", "*/'/*", "$(touch PWNED)`x`", "a\n;x"];
        for text in bad {
            let word = ShellWord::new(text).to_string();
            for told in [Comment::new(&word).to_string(), shown(&word).into_owned(), word.clone()] {
                // As a shell reads it: nothing stands outside of quotes.
                let mut quote = None;
                for character in told.chars() {
                    match quote {
                        None if matches!(character, '\'' | '"') => quote = Some(character),
                        None => panic!("{told}"),
                        Some(own) if own == character => quote = None,
                        Some(own) => assert!(own == '\'' || character == '\'', "{told}"),
                    }
                }
                assert_eq!(quote, None, "{told}");
            }
        }
    }

    #[test]
    fn nothing_gets_to_a_screen_that_nobody_sees() {
        let unseen = "\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{180b}\u{200d}\u{2029}\u{202e}\u{2064}\u{2800}\u{3164}\u{fe00}\
                      \u{fe0f}\u{feff}\u{ffa0}\u{fff0}\u{fffb}\u{1bca0}\u{1d173}\u{e0001}\u{e0100}\u{e01ef}\u{e0fff}";
        assert_eq!(unseen.chars().find(|&character| !is_deceiving(character)), None);
        let seen = " a\u{308}é温…\u{3000}\u{2801}\u{fe10}\u{fffd}⚠";
        assert_eq!(seen.chars().find(|&character| is_deceiving(character)), None);
    }

    #[test]
    fn free_text_shows_itself_to_nobody_by_accident() {
        assert!(!format!("{:?}", FreeText::new("secret */")).contains("secret"));
    }
}
