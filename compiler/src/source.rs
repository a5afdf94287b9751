//! Source text and places in it.

use crate::diagnostic::{Diagnostic, Refusal, guess};
use crate::ir::Stored;
use crate::parse::types as types_of;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// A file's text and the name that messages give it. The texts of files that it imports follow its own, so that a place in any of
/// them is a place in the whole ([`import`](crate::import)).
#[derive(Clone, Debug)]
pub struct Source {
    /// A path, or the name of an embedded stencil.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// Where each line begins.
    lines: Vec<u32>,
    /// Where the texts of other files begin, in the order of the text.
    parts: Vec<Part>,
    /// What became of the imports.
    pub(crate) imports: Imports,
    /// The types that were given to names, as `stencilc` takes them: `--type vp=f32`.
    pub(crate) types: String,
}

/// The text of a file that is imported.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// What messages call the file.
    pub name: String,
    /// Its first byte.
    pub start: u32,
}

/// What became of the imports of a text.
#[derive(Clone, Debug)]
pub(crate) enum Imports {
    /// Nobody looked for any.
    Unread,
    /// What is imported follows.
    Read,
    /// One went wrong.
    Failed(Box<Diagnostic>),
}

impl Source {
    /// A source called `name`, which imports nothing.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::joined(name, text, Vec::new(), Imports::Unread)
    }

    /// A source whose text was that of a file and of all that it imports, where nobody asks any more which file a place is in.
    pub fn whole(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::joined(name, text, Vec::new(), Imports::Read)
    }

    pub(crate) fn joined(name: impl Into<String>, text: impl Into<String>, parts: Vec<Part>, imports: Imports) -> Self {
        let text = text.into();
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect();
        Self { name: name.into(), text, lines, parts, imports, types: String::new() }
    }

    /// The same text with other types behind names that it has for some: `type vp = f32` with `f64` for `vp` says `type vp = f64`.
    ///
    /// # Errors
    /// It has no such name.
    pub fn with_types(&self, types: &[(String, Stored)]) -> Result<Self, Refusal> {
        // What is wrong with a text that cannot be parsed is told by whoever parses it.
        let Some(declared) = types_of(&self.text) else { return Ok(self.clone()) };
        let mut places: Vec<(Span, &'static str)> = Vec::new();
        for (name, stored) in types {
            let Some((_, place)) = declared.iter().find(|(own, _)| own == name) else {
                let refusal = Refusal::new(format!("`{}` has no type `{name}`", self.name));
                let names = declared.iter().map(|(own, _)| own.as_str());
                return Err(match guess(name, names.clone()) {
                    Some(guess) => refusal.help(format!("did you mean `{guess}`?")),
                    None if declared.is_empty() => {
                        refusal.help(format!("it says none; one is named by `type {name} = f32`"))
                    }
                    None => refusal.help(format!("its types are {}", names.collect::<Vec<_>>().join(", "))),
                });
            };
            let said = self.slice(*place).trim();
            if !["real", "f32", "f64"].contains(&said) {
                let refusal =
                    Refusal::new(format!("`{name}` is `{said}`: its numbers do not become `{}`", stored.name()));
                return Err(refusal.help("a call says how precise numbers are that are real already"));
            }
            places.push((*place, stored.name()));
        }
        // From the end, so that places before stay where they are.
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let (mut text, mut parts) = (self.text.clone(), self.parts.clone());
        for (place, stored) in places {
            text.replace_range(place.start as usize..place.end as usize, stored);
            for part in parts.iter_mut().filter(|part| part.start > place.start) {
                part.start = part.start - (place.end - place.start) + stored.len() as u32;
            }
        }
        let given = types.iter().map(|(name, stored)| format!("--type {name}={}", stored.name()));
        let types = given.collect::<Vec<_>>().join(" ");
        Ok(Self { types, ..Self::joined(self.name.clone(), text, parts, self.imports.clone()) })
    }

    /// What the names are that the text has for types, and the text without that; nothing if it has none.
    pub fn types(&self) -> Option<(BTreeMap<String, String>, String)> {
        let mut declared = types_of(&self.text).filter(|declared| !declared.is_empty())?;
        declared.sort_by_key(|(_, place)| std::cmp::Reverse(place.start));
        let (mut types, mut text) = (BTreeMap::new(), self.text.clone());
        for (name, place) in declared {
            types.insert(name, self.slice(place).to_owned());
            text.replace_range(place.start as usize..place.end as usize, "");
        }
        Some((types, text))
    }

    /// The text at `span`; empty where the span is not one of this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column (in characters) in the file that holds the place, both counted from 1.
    pub fn position(&self, offset: u32) -> (usize, usize) {
        let before = self.text.get(..offset as usize).unwrap_or(&self.text);
        let line_of = |at: usize| self.lines.partition_point(|&start| start as usize <= at);
        let line = line_of(before.len());
        let earlier = line_of(self.file(before.len() as u32).start) - 1;
        (line - earlier, before[self.lines[line - 1] as usize..].chars().count() + 1)
    }

    /// Of how many imported files the texts begin before a place.
    fn begun(&self, offset: u32) -> usize {
        self.parts.partition_point(|part| part.start <= offset)
    }

    /// The bytes of the file that holds a place.
    pub fn file(&self, offset: u32) -> Range<usize> {
        let begun = self.begun(offset);
        let start = begun.checked_sub(1).map_or(0, |own| self.parts[own].start as usize);
        // A line break parts the texts.
        start..self.parts.get(begun).map_or(self.text.len(), |next| next.start as usize - 1)
    }

    /// The bytes of each file, the importing one first.
    pub fn files(&self) -> impl Iterator<Item = Range<usize>> {
        std::iter::once(0).chain(self.parts.iter().map(|part| part.start)).map(|start| self.file(start))
    }

    /// What messages call the file that holds a place.
    pub fn file_name(&self, offset: u32) -> &str {
        self.begun(offset).checked_sub(1).map_or(&self.name, |own| &self.parts[own].name)
    }

    /// Whether a place is in the text that imports, and not in what it imports.
    pub fn is_own(&self, span: Span) -> bool {
        self.begun(span.start) == 0
    }

    /// Where the texts begin that are imported, if there are any.
    pub(crate) fn imported_from(&self) -> Option<u32> {
        self.parts.first().map(|part| part.start)
    }

    /// A place, counted from the beginning of its file.
    pub fn local(&self, span: Span) -> Span {
        let start = self.file(span.start).start as u32;
        Span { start: span.start - start, end: span.end.saturating_sub(start) }
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

    /// As many bytes later.
    pub(crate) fn moved(self, by: usize) -> Self {
        Self { start: self.start.saturating_add(by as u32), end: self.end.saturating_add(by as u32) }
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
    fn a_place_is_one_of_its_file() {
        let parts = vec![Part { name: "b.stn".into(), start: 4 }, Part { name: "c.stn".into(), start: 10 }];
        let source = Source::joined("a.stn", "one\ntwo\nx\nlast", parts, Imports::Read);
        let at = |offset: u32| (source.file_name(offset), source.position(offset));
        assert_eq!(at(0), ("a.stn", (1, 1)));
        assert_eq!(at(3), ("a.stn", (1, 4)));
        assert_eq!(at(4), ("b.stn", (1, 1)));
        assert_eq!(at(8), ("b.stn", (2, 1)));
        assert_eq!(at(12), ("c.stn", (1, 3)));
        assert_eq!(at(99), ("c.stn", (1, 5)));
        assert_eq!(source.files().map(|own| &source.text[own]).collect::<Vec<_>>(), ["one", "two\nx", "last"]);
        assert_eq!(source.local(Span::new(12, 14)), Span::new(2, 4));
        assert!(source.is_own(Span::new(3, 3)) && !source.is_own(Span::new(4, 5)));
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
