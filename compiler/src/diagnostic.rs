//! Diagnostics are data, rendered in one place.

use crate::source::{Source, Span};
use crate::text::{is_deceiving, shown, shown_in_line};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing can be generated.
    Error,
    /// Worth a look; an error under `check --strict`.
    Warning,
}

/// Something to tell about a source text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where, and what was expected or the guess.
    pub label: Label,
    /// Other places that matter.
    pub notes: Vec<Label>,
    /// What mends it, or why it is so.
    pub help: Vec<String>,
    /// Whether it may be so only since something else is wrong: then it is told once nothing is.
    #[serde(skip)]
    pub may_follow: bool,
}

/// A place with a word about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The word, perhaps empty.
    pub text: String,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: short(message.into()),
            label: Label { span, text: String::new() },
            notes: Vec::new(),
            help: Vec::new(),
            may_follow: false,
        }
    }

    /// What is told only if nothing else is wrong, since it may be so because of that.
    pub fn that_may_follow(self) -> Self {
        Self { may_follow: true, ..self }
    }

    /// A warning of a name that nobody uses: `what` it is, such as "the value". Where something is wrong, who would use it may
    /// not have been read.
    pub fn unused(span: Span, what: &str, name: &str) -> Self {
        Self::warning(span, format!("{what} `{name}` is never used")).label("not used").that_may_follow()
    }

    /// A warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// With a word at the place.
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label.text = short(text.into());
        self
    }

    /// With the name that was probably meant as the word at the place, if there is one, and else as `otherwise` says.
    pub fn meant(self, guess: Option<&str>, otherwise: impl FnOnce(Self) -> Self) -> Self {
        match guess {
            Some(guess) => self.label(format!("did you mean `{guess}`?")),
            None => otherwise(self),
        }
    }

    /// With another place.
    pub fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push(Label { span, text: short(text.into()) });
        self
    }

    /// With advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(short(text.into()));
        self
    }

    /// The same about a text that begins so many bytes later.
    pub(crate) fn moved(mut self, by: usize) -> Self {
        self.label.span = self.label.span.moved(by);
        self.notes.iter_mut().for_each(|note| note.span = note.span.moved(by));
        self
    }

    /// With advice, if there is some.
    pub fn help_if(self, text: Option<impl Into<String>>) -> Self {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }
}

/// An error at a place, with a word about the place.
pub(crate) fn wrong(at: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error(at, message).label(label)
}

/// The most characters of a message: a name in it may be longer than a screen.
const MESSAGE: usize = 400;

/// A text, without its middle if it is very long.
fn short(text: String) -> String {
    let length = text.chars().count();
    if length <= MESSAGE {
        return text;
    }
    let head: String = text.chars().take(MESSAGE / 2).collect();
    let tail: String = text.chars().skip(length - MESSAGE / 4).collect();
    format!("{head} ... {tail}")
}

/// Longest line that is shown whole; of a longer one only the part around the place is.
const LINE: usize = 240;

/// The diagnostics as text, with colours if `styled`.
pub fn render(diagnostics: &[Diagnostic], source: &Source, styled: bool) -> String {
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() }.decor_style(DecorStyle::Unicode);
    diagnostics.iter().map(|diagnostic| format!("{}\n", renderer.render(&report(diagnostic, source)))).collect()
}

fn report<'a>(diagnostic: &'a Diagnostic, source: &'a Source) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(shown(&diagnostic.message)));
    for labels in by_file(diagnostic, source) {
        group = group.element(snippet(&labels, source));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(shown(help)));
    }
    vec![group]
}

/// What is said of places, and whether it is what the diagnostic is about: each file's by itself, that of the diagnostic first.
fn by_file<'a>(diagnostic: &'a Diagnostic, source: &Source) -> Vec<Vec<(&'a Label, AnnotationKind)>> {
    let mut files: Vec<Vec<(&Label, AnnotationKind)>> = vec![vec![(&diagnostic.label, AnnotationKind::Primary)]];
    for note in &diagnostic.notes {
        let file = |label: &Label| source.file(label.span.start);
        match files.iter_mut().find(|own| file(own[0].0) == file(note)) {
            Some(own) => own.push((note, AnnotationKind::Context)),
            None => files.push(vec![(note, AnnotationKind::Context)]),
        }
    }
    files
}

/// The part of a file that holds these places, of which there is one.
fn snippet<'a>(labels: &[(&'a Label, AnnotationKind)], source: &'a Source) -> Snippet<'a, Annotation<'a>> {
    let window = window(labels, source);
    let part = &source.text[window.clone()];
    let (visible, places) = visible(part);
    let (line, _) = source.position(window.start as u32);
    let range = |span: Span| {
        let clamp = |offset: u32| {
            let mut at = (offset as usize).clamp(window.start, window.end) - window.start;
            while !part.is_char_boundary(at) {
                at -= 1;
            }
            places[at]
        };
        clamp(span.start)..clamp(span.end)
    };
    let file = source.file_name(labels[0].0.span.start);
    let mut snippet = Snippet::source(visible).line_start(line).path(shown_in_line(file));
    for (label, kind) in labels {
        snippet = snippet.annotation(kind.span(range(label.span)).label(shown(&label.text)));
    }
    snippet
}

/// A part of a source as a screen may show it, and where each of its bytes then is. What ASCII has of control characters the
/// renderer shows by itself, each in one column.
fn visible(part: &str) -> (String, Vec<usize>) {
    let (mut visible, mut places) = (String::new(), Vec::new());
    for character in part.chars() {
        places.resize(places.len() + character.len_utf8(), visible.len());
        match character {
            // The mark that some editors begin a file with.
            '\u{FEFF}' if visible.is_empty() => {}
            bad if !bad.is_ascii() && is_deceiving(bad) => visible.extend(bad.escape_unicode()),
            good => visible.push(good),
        }
    }
    places.push(visible.len());
    (visible, places)
}

/// The bytes of a file that these places are shown with: the lines that hold them and those between, unless one of them is too long
/// for a screen.
fn window(labels: &[(&Label, AnnotationKind)], source: &Source) -> std::ops::Range<usize> {
    let text = &source.text;
    let first = labels[0].0.span;
    let lines = source.lines(labels.iter().map(|(label, _)| label.span).fold(first, Span::to));
    if text[lines.clone()].lines().all(|line| line.len() <= LINE) {
        return lines;
    }
    let at = (first.start as usize).min(text.len());
    let boundary = |mut at: usize, down: bool| {
        while !text.is_char_boundary(at) {
            if down { at -= 1 } else { at += 1 }
        }
        at
    };
    let at = boundary(at, true);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    boundary(start.max(at.saturating_sub(LINE / 2)), false)..boundary(end.min(at + LINE / 2), true)
}

/// A refusal that belongs to no place in a source: a grid that is too small, a combination that makes no sense.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// What is refused, and why.
    pub message: String,
    /// What to do instead.
    pub help: Option<String>,
}

impl Refusal {
    /// A refusal without advice.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// With advice.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Why a text was not compiled.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The text is wrong.
    Wrong {
        /// What there is to tell, in the order of the text.
        diagnostics: Vec<Diagnostic>,
        /// The same as [`render`] shows it.
        rendered: String,
    },
    /// The text is right, but not everything that was asked for it can be done.
    Refused(Refusal),
}

impl Failure {
    /// The failure of a text about which there is something to tell.
    pub fn wrong(diagnostics: Vec<Diagnostic>, source: &Source) -> Self {
        let rendered = render(&diagnostics, source, false);
        Self::Wrong { diagnostics, rendered }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { rendered, .. } => f.write_str(rendered.trim_end()),
            Self::Refused(refusal) => match &refusal.help {
                Some(help) => write!(f, "{refusal}; {help}"),
                None => refusal.fmt(f),
            },
        }
    }
}

impl std::error::Error for Failure {}

/// The candidate that `name` was probably meant to be.
pub fn guess<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > 64 {
        return None;
    }
    let lower = name.to_lowercase();
    let tolerance = match length {
        0..=3 => 1,
        4..=5 => 2,
        _ => 3,
    };
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates
        .iter()
        .copied()
        .filter(|own| own.len() <= 4 * 64 && own.chars().count().abs_diff(length) <= tolerance);
    let near = near
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, candidate)| distance <= tolerance && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance);
    if let Some((_, candidate)) = near {
        return Some(candidate);
    }
    // `exner` for `exner_pr`: the only one that begins so, and goes on with another word.
    let mut longer = candidates.into_iter().filter(|own| {
        own.to_lowercase().strip_prefix(&lower).is_some_and(|rest| length > 1 && rest.starts_with(['_', '-', '.']))
    });
    longer.next().filter(|_| longer.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_cut_short_are_guessed_where_one_goes_on() {
        assert_eq!(guess("exner", ["exner_pr", "rho", "exners"]), Some("exners"));
        assert_eq!(guess("exner", ["exner_pr", "rho"]), Some("exner_pr"));
        assert_eq!(guess("exner", ["exner_pr", "exner_now"]), None);
        assert_eq!(guess("e", ["e_pr", "rho"]), None);
    }

    #[test]
    fn guesses_are_close_or_absent() {
        assert_eq!(guess("phy", ["phi", "res"]), Some("phi"));
        assert_eq!(guess("Laplacian", ["laplacian"]), Some("laplacian"));
        assert_eq!(guess("x", ["y"]), None);
        assert_eq!(guess("velocity", ["phi", "res"]), None);
    }

    #[test]
    fn what_deceives_is_shown_and_pointed_at() {
        let source = Source::new("a\u{1b}\n.stn", "x\u{9b}\u{202e}\u{1b} = yy");
        let text = render(&[Diagnostic::error(Span::new(10, 12), "wrong\u{7}").label("this")], &source, false);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert!(text.contains("a\\u{1b}\\n.stn") && text.contains("wrong\\u{7}"), "{text}");
        let shown = lines.iter().find(|line| line.contains("= yy")).unwrap();
        assert!(shown.contains("x\\u{9b}\\u{202e}\u{241b} = yy"), "{text}");
        let column = |line: &str, what: char| line.chars().position(|c| c == what);
        let marked = lines.iter().find(|line| line.contains("this")).unwrap();
        assert_eq!(column(marked, '\u{2501}'), column(shown, 'y'), "{text}");
    }

    #[test]
    fn a_very_long_line_is_shown_in_part() {
        let source = Source::new("long.stn", format!("{}é!{}", "é".repeat(4000), "y".repeat(4000)));
        let at = 8000;
        let text = render(&[Diagnostic::error(Span::new(at, at + 3), "here").label("this")], &source, false);
        assert!(text.contains("this") && text.len() < 2000, "{text}");
    }
}
