//! Telling what is wrong: each thing once, and not too much.

use super::{Found, Lowering};
use crate::diagnostic::{Diagnostic, Severity, wrong};
use crate::source::Span;
use std::collections::HashSet;

/// The most diagnostics of a file; more are of no help.
pub(super) const DIAGNOSTICS: usize = 30;
/// With so many, the rest of a stencil is not looked at.
const GIVEN_UP: usize = 1_000;

/// Leaves the first ones.
pub(super) fn abridge(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() <= DIAGNOSTICS {
        return;
    }
    // Errors first: a file must not look right because its warnings came first.
    diagnostics.sort_by_key(|found| (found.severity == Severity::Warning, found.label.span.start));
    let more = diagnostics.len() - DIAGNOSTICS;
    let last = diagnostics.split_off(DIAGNOSTICS);
    let place = last.first().map_or(Span::default(), |first| first.label.span);
    let severity = diagnostics[0].severity;
    // Where a stencil was given up, nobody knows how many there are.
    let more = if more < GIVEN_UP - DIAGNOSTICS { more.to_string() } else { "many".to_owned() };
    let rest = Diagnostic::warning(place, format!("{more} more like these are not shown")).label("the next one");
    diagnostics.push(Diagnostic { severity, ..rest });
}

/// How many calls an error inside functions shows.
const CALLS_SHOWN: usize = 3;

/// Whether something is wrong, and not only worth a look.
pub(super) fn has_error(told: &[Diagnostic]) -> bool {
    told.iter().any(|found| found.severity == Severity::Error)
}

/// What was reported.
#[derive(Clone, Default)]
pub(super) struct Reports {
    pub diagnostics: Vec<Diagnostic>,
    /// How many of these are errors of expressions and statements.
    errors: usize,
    /// Whether nothing is told, since it is told elsewhere.
    pub is_silent: bool,
    /// What was told where: an error inside a function is told once, however often the function is called.
    told: HashSet<(Span, String)>,
    /// Whether an error was reported that other numbers would not have brought: an index, a limit.
    pub depend_on_numbers: bool,
}

impl Reports {
    /// Tells something, and returns whether it is told for the first time.
    fn tell(&mut self, diagnostic: Diagnostic) -> bool {
        let is_new = !self.is_silent && self.told.insert((diagnostic.label.span, diagnostic.message.clone()));
        if is_new {
            self.diagnostics.push(diagnostic);
        }
        is_new
    }
}

impl Lowering<'_> {
    /// Reports what is wrong here: in a function, with the calls that led to it.
    pub(super) fn report<T>(&mut self, mut diagnostic: Diagnostic) -> Found<T> {
        for call in self.calls.iter().rev().filter(|call| call.span.end > 0).take(CALLS_SHOWN) {
            diagnostic = diagnostic.note(call.span, call.description());
        }
        self.report_alone(diagnostic)
    }

    /// The same, where nothing is to be returned.
    pub(super) fn tell(&mut self, diagnostic: Diagnostic) {
        self.report(diagnostic).unwrap_or_default()
    }

    /// Reports what stencils over a mesh alone have.
    pub(super) fn only_over_mesh<T>(&mut self, at: Span, message: &str, label: &str) -> Found<T> {
        self.report(
            wrong(at, message, label)
                .help("what runs over a mesh says so: `stencil name over mesh.set`, `program name over mesh`"),
        )
    }

    /// Reports what is wrong with these numbers, and might be right with others.
    pub(super) fn report_number<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        self.reports.depend_on_numbers = true;
        self.report(diagnostic)
    }

    /// Reports what is wrong wherever a function is called from.
    pub(super) fn report_alone<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        self.reports.errors += usize::from(self.reports.tell(diagnostic));
        None
    }

    /// Warns of something: once, however often it is written out.
    pub(super) fn warn(&mut self, diagnostic: Diagnostic) {
        self.reports.tell(diagnostic);
    }

    /// Whether so much is wrong that the rest is not looked at. Of warnings there may be any number: what is right is never left out.
    pub(super) fn is_given_up(&self) -> bool {
        self.reports.errors >= GIVEN_UP
    }
}
