//! What the command line knows of texts, for callers that hold them in memory: where they are found, what they import, what there is
//! to say of them, and what is done with them. Options are the words that the command line takes.

use crate::args::KernelArgs;
use crate::args::given::Given;
use crate::audience::{Audience, Kept};
use crate::explain::{self, Told};
use crate::heard::{Heard, hearing};
use crate::input::{self, Input};
use crate::{test, tune, verify};
use clap::Parser;
use clap::error::ContextKind;
pub use serde_json::Value;
use stencilc_compiler::diagnostic::{Diagnostic, Failure, Severity};
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

/// What is done with a text in memory, as a command does it with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// Every way to compute it is compared with the interpreter.
    Verify,
    /// The fastest way is found, and remembered.
    Tune,
    /// Its tests are run.
    Test {
        /// Those of this stencil or program alone.
        of: Option<&'a str>,
    },
}

/// What came of it.
pub struct Came {
    /// To be read, as the command prints it.
    pub text: String,
    /// The same as data, as the command prints it as JSON; null if it failed before there was any.
    pub data: Value,
    /// What there is to note.
    pub notes: Vec<String>,
    /// What there is to tell of places in the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Why it failed, if it did: a kernel differs, a test does not pass.
    pub failure: Option<Error>,
}

/// A call of a command.
#[derive(Parser)]
#[command(disable_help_flag = true, disable_help_subcommand = true)]
enum Call {
    Explain(explain::Args),
    Verify(verify::Args),
    Tune(Box<tune::Args>),
    Test(test::Args),
}

impl Call {
    /// Of a text, with options.
    fn of(command: &str, source: &Source, options: &[String]) -> Result<Self> {
        let options = options.iter().map(String::as_str);
        // What is behind `--` is no option, whatever the text is called.
        let words = ["stencilc", command].into_iter().chain(options).chain(["--", &source.name]);
        Self::try_parse_from(words).map_err(not_understood)
    }
}

/// A text that was read.
fn read(source: &Source) -> Result<Input> {
    let lowered = stencilc_compiler::check(source);
    if lowered.diagnostics.iter().any(|told| told.severity == Severity::Error) {
        return Err(Error::input(Failure::wrong(lowered.diagnostics, source).to_string()));
    }
    Ok(Input::of(source.clone(), lowered))
}

/// What a stencil or program of a text reads, computes and costs, as `stencilc explain` says it.
///
/// # Errors
/// The text is wrong; an option does not exist, or makes no difference; no cell can be computed.
pub fn explained(source: &Source, options: &[String]) -> Result<String> {
    let Call::Explain(args) = Call::of("explain", source, options)? else { return Err(another()) };
    match explain::told(&args, &read(source)?, false)? {
        (_, Some(refusal)) => Err(refusal.into()),
        (Told::Text(text), None) => Ok(shown(&text).into_owned()),
        (Told::Data(data), None) => Ok(data.to_string()),
    }
}

/// Does what `stencilc verify`, `tune` or `test` do with a file, and says what came of it.
///
/// # Errors
/// The text is wrong; an option does not exist, or makes no difference. What fails later is in what came of it.
pub fn done(verb: Verb, source: &Source, options: &[String]) -> Result<Came> {
    let command = match verb {
        Verb::Verify => "verify",
        Verb::Tune => "tune",
        Verb::Test { .. } => "test",
    };
    let call = Call::of(command, source, options)?;
    let input = read(source)?;
    let inputs = std::slice::from_ref(&input);
    let mut audience = Audience::Caller(Kept::default());
    let (done, Heard { notes, diagnostics }) = hearing(|| match (&call, verb) {
        (Call::Verify(args), _) => verify::verified(args, inputs, &mut audience),
        (Call::Tune(args), _) => tune::tuned(args, &input, &mut audience),
        (Call::Test(args), Verb::Test { of }) => test::tested(args, inputs, of, &mut audience),
        (Call::Test(_) | Call::Explain(_), _) => Err(another()),
    });
    let kept = if let Audience::Caller(kept) = audience { kept } else { Kept::default() };
    Ok(Came { text: kept.text, data: kept.data, notes, diagnostics, failure: done.err() })
}

fn another() -> Error {
    Error::check("a command was read as another one")
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
