//! What the command line knows of texts, for callers that hold them in memory: where they are found, what they import, and what there is
//! to say of them. Options are the words that the command line takes.

use crate::args::KernelArgs;
use crate::args::given::Given;
use crate::explain::{self, Told};
use crate::input::{self, Input};
use clap::Parser;
use clap::error::ContextKind;
use stencilc_compiler::diagnostic::{Failure, Severity};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::shown;
use stencilc_runtime::{Error, Result};

/// The text of a file, with all that it imports: a path, or the name of a stencil that comes along.
///
/// # Errors
/// There is no such file, or it cannot be read.
pub fn open(file: &str) -> Result<Source> {
    input::open(file)
}

/// A text that is in memory, with all that it imports; messages call it by the name.
///
/// # Errors
/// It is too long.
pub fn in_memory(name: &str, text: &str) -> Result<Source> {
    input::in_memory(name, text)
}

/// The names of the stencils that come along.
pub fn along() -> Vec<String> {
    let mut names: Vec<String> = input::embedded().map(|source| source.name).collect();
    names.sort();
    names
}

/// The options of `explain`.
#[derive(Parser)]
struct ExplainCall {
    #[command(flatten)]
    args: explain::Args,
}

/// What a stencil or program of a text reads, computes and costs, as `stencilc explain` says it.
///
/// # Errors
/// The text is wrong; an option does not exist, or makes no difference; no cell can be computed.
pub fn explained(source: &Source, options: &[String]) -> Result<String> {
    let words = ["explain", &source.name].into_iter().map(str::to_owned).chain(options.iter().cloned());
    let ExplainCall { args } = ExplainCall::try_parse_from(words).map_err(not_understood)?;
    let lowered = stencilc_compiler::check(source);
    if lowered.diagnostics.iter().any(|told| told.severity == Severity::Error) {
        return Err(Error::input(Failure::wrong(lowered.diagnostics, source).to_string()));
    }
    match explain::told(&args, &Input::of(source.clone(), lowered), false)? {
        (_, Some(refusal)) => Err(refusal.into()),
        (Told::Text(text), None) => Ok(shown(&text).into_owned()),
        (Told::Data(data), None) => Ok(data.to_string()),
    }
}

/// The options that choose a kernel.
#[derive(Parser)]
struct KernelCall {
    #[command(flatten)]
    kernel: Given<KernelArgs>,
}

/// The kernel that options choose, as those of `run` do, and how much they leave open.
///
/// # Errors
/// An option does not exist, or makes no difference for the kernel that is chosen.
pub fn choices(options: &[String]) -> Result<(Choices, Open)> {
    let words = std::iter::once("kernel".to_owned()).chain(options.iter().cloned());
    let KernelCall { kernel } = KernelCall::try_parse_from(words).map_err(not_understood)?;
    let chosen = kernel.open_on(stencilc_runtime::Device::Cuda(0));
    kernel.refuse_idle(&chosen.0)?;
    Ok(chosen)
}

/// What clap says, without what only a command line shows.
fn not_understood(mut error: clap::Error) -> Error {
    // How to pass what was written as a value helps nobody here.
    error.remove(ContextKind::Suggested);
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n").map(|own| own.trim().trim_start_matches("error: ").to_owned());
    let message = paragraphs.next().unwrap_or_default();
    let help: Vec<String> =
        paragraphs.filter(|own| !own.starts_with("Usage:") && !own.starts_with("For more")).collect();
    let error = Error::call(message);
    if help.is_empty() { error } else { error.help(help.join("\n").trim_start_matches("tip: ").to_owned()) }
}
