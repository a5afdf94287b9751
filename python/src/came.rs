//! What is done with a text as the command line does it with a file: it is verified, tuned and tested.

use crate::declared::{Subject, Text};
use crate::error::{Told, apart, fault_name, told};
use pyo3::prelude::*;
use stencilc::texts::{self, Verb};
use stencilc_compiler::diagnostic::{Diagnostic, render};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::shown;

/// What came of it: a dictionary.
#[derive(IntoPyObject)]
pub struct Came {
    /// To be read.
    text: String,
    /// The same as JSON.
    data: String,
    notes: Vec<String>,
    diagnostics: Vec<Told>,
    /// The diagnostics with their places, to be read.
    rendered: String,
    /// Why it failed, if it did: whose turn it is, what is wrong, what mends it.
    failure: Option<(&'static str, String, Option<String>)>,
}

fn done(py: Python<'_>, verb: Verb<'_>, source: &Source, options: &[String]) -> PyResult<Came> {
    let came = apart(py, || texts::done(verb, source, options))?;
    let failure = came.failure.map(|own| {
        let help = own.help.map(|help| shown(&help).into_owned());
        (fault_name(own.fault), shown(&own.message).into_owned(), help)
    });
    let diagnostics = came.diagnostics.into_iter().map(|own| in_python(py, own)).collect::<PyResult<Vec<_>>>()?;
    Ok(Came {
        text: came.text,
        data: came.data.to_string(),
        notes: came.notes,
        rendered: render(&diagnostics, source, false),
        diagnostics: told(source, &diagnostics),
        failure,
    })
}

/// The same, with what mends it in words of Python. The rest may be the user's text.
fn in_python(py: Python<'_>, own: Diagnostic) -> PyResult<Diagnostic> {
    let words = py.import("stencilc._errors")?.getattr("in_python")?;
    let help = own.help.iter().map(|help| words.call1((help,))?.extract());
    Ok(Diagnostic { help: help.collect::<PyResult<_>>()?, ..own })
}

impl Subject {
    /// Options that name it, too.
    pub fn named(&self, mut options: Vec<String>) -> Vec<String> {
        options.extend([format!("--{}", self.what()), self.of.name().to_owned()]);
        options
    }
}

/// Compares every way to compute it with the interpreter; options are those of `stencilc verify`.
#[pyfunction]
pub fn verify(py: Python<'_>, own: &Subject, options: Vec<String>) -> PyResult<Came> {
    done(py, Verb::Verify, &own.source, &own.named(options))
}

/// Finds the fastest way to compute it, and remembers it; options are those of `stencilc tune`.
#[pyfunction]
pub fn tune(py: Python<'_>, own: &Subject, options: Vec<String>) -> PyResult<Came> {
    done(py, Verb::Tune, &own.source, &own.named(options))
}

/// Runs its tests; options are those of `stencilc test`.
#[pyfunction]
pub fn test(py: Python<'_>, own: &Subject, options: Vec<String>) -> PyResult<Came> {
    done(py, Verb::Test { of: Some(own.of.name()) }, &own.source, &options)
}

/// Runs all tests of a text; options are those of `stencilc test`.
#[pyfunction]
pub fn test_all(py: Python<'_>, text: &Text, options: Vec<String>) -> PyResult<Came> {
    done(py, Verb::Test { of: None }, &text.source, &options)
}
