//! Everything that is printed: results on stdout, messages on stderr.
//!
//! Names of files and texts of others can hold anything, so whatever is text is [`shown`] on its way out: a screen gets no
//! control character, and nothing that changes the order of letters, but line ends, tabs and our own colours.

use crate::heard::hears;
use crate::message::Message;
use crate::run::together;
use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use stencilc_compiler::diagnostic::{self, Diagnostic};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::{is_deceiving, shown, shown_in_line};
use stencilc_runtime::{Error, Result, files};

/// Prints a result that is text.
///
/// # Errors
/// Nothing more can be written, as on a full disk.
pub fn print(text: &str) -> Result<()> {
    print_bytes(shown(text).as_bytes())
}

/// Prints a result that may be no text. A reader that has left, as `head` does, ends the program: nobody is there who
/// could be told more.
///
/// # Errors
/// Nothing more can be written, as on a full disk.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    if is_silent() {
        return Ok(());
    }
    // Results bear no styles, and bytes that look like one must stay.
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            together::end(0);
            files::exit(0)
        }
        Err(error) => Err(Error::input(format!("cannot write the results to stdout: {error}"))),
    }
}

/// Whether another process speaks for this one.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Says nothing any more, since another process says the same; or speaks again.
pub fn silence(is_silent: bool) {
    IS_SILENT.store(is_silent, Ordering::Relaxed);
}

fn is_silent() -> bool {
    IS_SILENT.load(Ordering::Relaxed)
}

/// What was told about stencil files so far, and whether a result was printed as JSON: who fails tells both.
static TOLD: Mutex<Vec<Message>> = Mutex::new(Vec::new());
static HAS_JSON: AtomicBool = AtomicBool::new(false);

/// What was told about stencil files so far.
pub fn told() -> Vec<Message> {
    std::mem::take(&mut TOLD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether a result was printed as JSON.
pub fn has_json() -> bool {
    HAS_JSON.load(Ordering::Relaxed)
}

/// Prints a result as JSON.
///
/// # Errors
/// As [`print`].
pub fn json(value: &impl Serialize) -> Result<()> {
    HAS_JSON.store(true, Ordering::Relaxed);
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Error::input(format!("the results cannot be written as JSON: {error}")))?;
    print_bytes(format!("{}\n", ascii_controls(&text)).as_bytes())
}

/// JSON whose texts hold no character that a screen would not show as it is: JSON has an escape for each, so the values
/// are the same.
pub fn ascii_controls(json: &str) -> String {
    let mut safe = String::new();
    for character in json.chars() {
        match character {
            bad if is_deceiving(bad) && bad != '\n' => {
                let mut units = [0; 2];
                bad.encode_utf16(&mut units).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
            }
            good => safe.push(good),
        }
    }
    safe
}

/// Writes a text with styles to stderr, in one piece: several processes may share it. That it may not arrive is no reason to stop.
fn write_at_once(text: &str) {
    let stderr = std::io::stderr();
    let text = match AutoStream::choice(&stderr) {
        ColorChoice::Never => strip_str(text).to_string(),
        ColorChoice::Always | ColorChoice::AlwaysAnsi | ColorChoice::Auto => text.to_owned(),
    };
    let _ = stderr.lock().write_all(text.as_bytes());
}

/// Says something on stderr, or to whoever hears this thread. That it may not arrive is no reason to stop.
fn say(style: Style, word: &str, message: &str) {
    if is_silent() || hears(|heard| heard.notes.push(shown(message).into_owned())) {
        return;
    }
    // A further line stands back, so that a name with a line end in it cannot pass for another message.
    let mut lines = shown(message).into_owned();
    if lines.contains('\n') {
        let stands_back = |line: &str| line.is_empty() || line.starts_with(' ');
        let rest = lines.split('\n').enumerate().map(|(number, line)| match number == 0 || stands_back(line) {
            true => line.to_owned(),
            false => format!("    {line}"),
        });
        lines = rest.collect::<Vec<_>>().join("\n");
    }
    write_at_once(&format!("{style}{word}{style:#}: {lines}\n"));
}

/// Says what is wrong about the call, or the help that it asks for, and returns the exit status.
///
/// What was typed is part of such a message, and the message has colours, so the call is read once more with its words as
/// they are shown.
pub fn end_of_call(error: clap::Error, words: &[OsString], read: impl Fn(Vec<OsString>) -> Option<clap::Error>) -> u8 {
    let safe: Vec<OsString> =
        words.iter().map(|word| shown_in_line(&word.to_string_lossy()).into_owned().into()).collect();
    // That it may not arrive is no reason to say that all went well.
    let told = |error: clap::Error| {
        let _ = error.print();
        error.exit_code() as u8
    };
    if safe == words {
        return told(error);
    }
    match read(safe) {
        Some(error) => told(error),
        None => {
            let _ = write!(std::io::stderr(), "{}", shown(&error.render().to_string()));
            error.exit_code() as u8
        }
    }
}

/// Has panics, which are faults of this program, say nothing raw either.
pub fn tame_panics() {
    std::panic::set_hook(Box::new(|fault| {
        let trace = Backtrace::capture();
        let trace = if trace.status() == BacktraceStatus::Captured { format!("{trace}\n") } else { String::new() };
        let _ = write!(std::io::stderr(), "{}\n{}", shown(&fault.to_string()), shown(&trace));
    }));
}

/// Reports an error.
pub fn error(error: &Error) {
    say(AnsiColor::BrightRed.on_default().bold(), "error", &error.message);
    if let Some(help) = &error.help {
        say(AnsiColor::BrightCyan.on_default().bold(), "help", help);
    }
}

/// Tells what would otherwise be silent.
pub fn note(message: &str) {
    say(AnsiColor::BrightGreen.on_default().bold(), "note", message);
}

/// Shows diagnostics with their places.
pub fn diagnostics(diagnostics: &[Diagnostic], source: &Source) {
    if hears(|heard| heard.diagnostics.extend_from_slice(diagnostics)) {
        return;
    }
    let told = diagnostics.iter().map(|diagnostic| Message::new(diagnostic, source));
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).extend(told);
    if is_silent() {
        return;
    }
    write_at_once(&diagnostic::render(diagnostics, source, true));
}

/// Lines with their columns one below the other; numbers stand in the columns `right`. A cell has one line.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let in_line = |row: &Vec<String>| row.iter().map(|cell| shown_in_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(in_line).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if right.contains(&column) {
                line.push_str(&format!("{}{cell}  ", blanks(cell, *width)));
            } else {
                line.push_str(&format!("{cell}{}  ", blanks(cell, *width)));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What fills a text up to a width, which may be more than a format takes.
pub fn blanks(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// `1 error`, `2 errors`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// How far something is, on a terminal, and only if it takes longer than a second.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: OnceLock<()>,
}

/// Makes a bar of `what`, once it is known of how many steps.
pub fn bar(what: &'static str) -> impl FnOnce(usize) -> Box<dyn Fn(usize) + Sync> {
    move |length| {
        let progress = Progress::new(length, what);
        Box::new(move |steps| progress.advance(steps))
    }
}

impl Progress {
    /// `length` steps of `what`.
    pub fn new(length: usize, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {percent:>3}%, {eta} left") {
            bar.set_style(style);
        }
        bar.set_prefix(what);
        Self { bar, start: Instant::now(), shown: OnceLock::new() }
    }

    /// `length` steps of `what`, with how many there are in a second.
    pub fn steps(length: usize, what: &'static str) -> Self {
        let progress = Self::new(length, what);
        let template = "{prefix} {wide_bar} {pos} of {len} steps, {per_sec}, {eta} left";
        let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // That nothing can be written to a bar is no reason to stop.
            let _ = write!(out, "{:.1} a second", state.per_sec());
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            progress.bar.set_style(style.with_key("per_sec", rate));
        }
        progress
    }

    /// `steps` more are done.
    pub fn advance(&self, steps: usize) {
        self.bar.inc(steps as u64);
        if self.start.elapsed() > Duration::from_secs(1) && !is_silent() {
            self.shown.get_or_init(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }

    /// Says something while the bar is there.
    pub fn aside<T>(&self, say: impl FnOnce() -> T) -> T {
        self.bar.suspend(say)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_any_width() {
        // A format takes widths of 16 bits.
        let long = "a".repeat(70_000);
        let text = table(&[vec![long.clone(), "1".into()], vec!["b".into(), "20".into()]], &[1]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, [format!("{long}   1"), format!("b{}  20", " ".repeat(69_999))]);
    }
}
