//! Source text and places in it.

use serde::Serialize;

/// A file's text and the name that messages give it.
#[derive(Clone, Debug)]
pub struct Source {
    /// A path, or the name of an embedded stencil.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Where each line begins.
    lines: Vec<u32>,
}

impl Source {
    /// A source called `name`.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect();
        Self { name: name.into(), text, lines }
    }

    /// The text at `span`; empty where the span is not one of this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column (in characters), both counted from 1.
    pub fn position(&self, offset: u32) -> (usize, usize) {
        let before = self.text.get(..offset as usize).unwrap_or(&self.text);
        let line = self.lines.partition_point(|&start| start as usize <= before.len());
        (line, before[self.lines[line - 1] as usize..].chars().count() + 1)
    }

    /// The whole lines that hold all of these bytes.
    pub fn lines(&self, span: Span) -> std::ops::Range<usize> {
        let first = self.lines.partition_point(|&start| start <= span.start) - 1;
        let after = self.lines.partition_point(|&start| start <= span.end);
        self.lines[first] as usize..self.lines.get(after).map_or(self.text.len(), |&start| start as usize)
    }
}

/// Bytes `start..end` of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Bytes `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let source = Source::new("s.stn", "aé\n\nb");
        let positions: Vec<_> = [0, 1, 3, 4, 5, 6, 99].map(|at| source.position(at)).to_vec();
        assert_eq!(positions, [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2), (3, 2)]);
        assert_eq!(Source::new("s.stn", "").position(0), (1, 1));
        assert_eq!(Source::new("s.stn", "a\n").position(2), (2, 1));
    }

    #[test]
    fn lines_are_whole() {
        let source = Source::new("s.stn", "one\ntwo\nthree");
        assert_eq!(&source.text[source.lines(Span::new(1, 2))], "one\n");
        assert_eq!(&source.text[source.lines(Span::new(3, 3))], "one\n");
        assert_eq!(&source.text[source.lines(Span::new(5, 9))], "two\nthree");
        assert_eq!(&source.text[source.lines(Span::new(13, 13))], "three");
        assert_eq!(&source.text[source.lines(Span::new(50, 99))], "three");
    }
}
