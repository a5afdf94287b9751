//! What goes wrong, as the exception `stencilc.Error`: nothing else crosses into Python, panics included. And processes that were forked
//! from one that computes, which have none of its threads.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use stencilc_compiler::diagnostic::{Diagnostic, Severity, render};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::shown;
use stencilc_runtime::{Error, Fault, threads};

/// What there is to say of a place in a text: severity, file, line, column, message, label, help.
pub type Told = (&'static str, String, usize, usize, String, String, Vec<String>);

/// Whether threads were started, which a fork does not take along.
static HAS_THREADS: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    if HAS_THREADS.load(Ordering::Relaxed) {
        IS_FORKED.store(true, Ordering::Relaxed);
    }
}

/// Sees to it that a fork is noticed.
pub fn watch_forks() {
    // SAFETY: what is called in the child sets a number, which is allowed there.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// Starts the threads that share the work, before anything is computed for the first time.
///
/// # Errors
/// They are those of another process.
pub fn begin() -> Result<(), Error> {
    static STARTED: Once = Once::new();
    if IS_FORKED.load(Ordering::Relaxed) {
        return Err(Error::call(
            "this process was forked from one that had computed with stencilc, whose threads and GPU it has not",
        )
        .help(
            "start processes afresh: multiprocessing.set_start_method(\"spawn\"); or fork before anything is computed",
        ));
    }
    STARTED.call_once(|| {
        HAS_THREADS.store(true, Ordering::Relaxed);
        threads::start();
    });
    Ok(())
}

/// Does what takes its time: others may use Python meanwhile.
///
/// # Errors
/// Those of the work, as `stencilc.Error`; so is a panic.
pub fn apart<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    begin().map_err(|error| raised(py, &error))?;
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(done) => done.map_err(|error| raised(py, &error)),
        Err(panic) => Err(mistake(py, &*panic)),
    }
}

/// Does what needs Python.
///
/// # Errors
/// Those of the work; a panic is a `stencilc.Error`.
pub fn caught<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(mistake(py, &*panic)))
}

/// An error of the library as an exception.
pub fn raised(py: Python<'_>, Error { fault, message, help }: &Error) -> PyErr {
    exception(py, fault_name(*fault), message, help.as_deref(), Vec::new())
}

/// Whose turn it is, as `stencilc.Error` calls it.
pub fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Input => "input",
        Fault::Machine => "machine",
        Fault::Call => "call",
        Fault::Check => "check",
    }
}

/// What is wrong about a call.
pub fn wrong(py: Python<'_>, message: impl AsRef<str>, help: impl AsRef<str>) -> PyErr {
    let help = help.as_ref();
    exception(py, "call", message.as_ref(), (!help.is_empty()).then_some(help), Vec::new())
}

/// What is wrong with a text.
pub fn wrong_text(py: Python<'_>, source: &Source, diagnostics: &[Diagnostic]) -> PyErr {
    let text = render(diagnostics, source, false);
    exception(py, "input", text.trim_end(), None, told(source, diagnostics))
}

/// Diagnostics as data.
pub fn told(source: &Source, diagnostics: &[Diagnostic]) -> Vec<Told> {
    let one = |own: &Diagnostic| {
        let severity = match own.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let (line, column) = source.position(own.label.span.start);
        let file = source.file_name(own.label.span.start).to_owned();
        (severity, file, line, column, own.message.clone(), own.label.text.clone(), own.help.clone())
    };
    diagnostics.iter().map(one).collect()
}

fn exception(py: Python<'_>, fault: &str, message: &str, help: Option<&str>, diagnostics: Vec<Told>) -> PyErr {
    static RAISED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = RAISED.get_or_try_init(py, || Ok(py.import("stencilc._errors")?.getattr("made")?.unbind()));
    // Names of files and texts of others can hold anything, and whoever prints the error has a screen.
    let (message, help) = (shown(message), help.map(shown));
    match made.and_then(|made: &Py<PyAny>| made.bind(py).call1((fault, message, help, diagnostics))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

fn mistake(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("nothing is known of it");
    let message = format!("a mistake in stencilc: {said}");
    exception(py, "check", &message, Some("nothing is wrong with the call; the mistake is worth a report"), Vec::new())
}
