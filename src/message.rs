//! Messages as data, for `--json`.

use serde::Serialize;
use stencilc_compiler::diagnostic::{Diagnostic, Severity};
use stencilc_compiler::source::{Source, Span};
use stencilc_runtime::Error;

/// A diagnostic with places that an editor can go to.
#[derive(Clone, Serialize)]
pub struct Message {
    file: String,
    severity: Severity,
    message: String,
    #[serde(flatten)]
    label: Place,
    notes: Vec<Place>,
    help: Vec<String>,
}

#[derive(Clone, Serialize)]
struct Place {
    label: String,
    /// The file, where it is not that of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_file: Option<String>,
    span: Span,
    line: usize,
    column: usize,
}

impl Message {
    /// What is told about `source`.
    pub fn new(diagnostic: &Diagnostic, source: &Source) -> Self {
        let Diagnostic { severity, message, label, notes, help, may_follow: _ } = diagnostic;
        let file = source.file_name(label.span.start);
        let place = |span: Span, label: &str| {
            let (line, column) = source.position(span.start);
            let own = source.file_name(span.start);
            let in_file = (own != file).then(|| own.to_owned());
            Place { label: label.to_owned(), in_file, span: source.local(span), line, column }
        };
        Self {
            file: file.to_owned(),
            severity: *severity,
            message: message.clone(),
            label: place(label.span, &label.text),
            notes: notes.iter().map(|note| place(note.span, &note.text)).collect(),
            help: help.clone(),
        }
    }
}

/// Why there is no result.
#[derive(Serialize)]
pub struct Failure {
    error: Reason,
}

#[derive(Serialize)]
struct Reason {
    /// The exit status.
    status: u8,
    message: String,
    help: Option<String>,
    /// What was told about stencil files.
    diagnostics: Vec<Message>,
}

impl Failure {
    /// The end of the program with `error`.
    pub fn new(error: &Error, diagnostics: Vec<Message>) -> Self {
        let (status, message, help) = (error.fault.status(), error.message.clone(), error.help.clone());
        Self { error: Reason { status, message, help, diagnostics } }
    }

    /// A command line that is not understood.
    pub fn call(message: &str) -> Self {
        let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or("").trim_start_matches("error: ").to_owned();
        let rest: Vec<&str> = lines.collect();
        let help = (!rest.is_empty()).then(|| rest.join("\n"));
        Self { error: Reason { status: 2, message: first, help, diagnostics: Vec::new() } }
    }
}
