//! What the command line knows of texts, for callers that hold them in memory: where they are found, what they import, what there is
//! to say of them, and what is done with them. Options are the words that the command line takes.

use crate::args::KernelArgs;
use crate::args::given::Given;
use crate::audience::{Audience, Kept};
use crate::explain::{self, Told};
use crate::heard::{Heard, hearing};
use crate::input::{self, Input};
use crate::tuned::{Sought, name_of_device};
use crate::{test, tune, tuned, verify};
use clap::Parser;
use clap::error::ContextKind;
pub use serde_json::Value;
use stencilc_compiler::diagnostic::{Diagnostic, Failure, Severity};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::shown;
use stencilc_runtime::device::Platform;
use stencilc_runtime::job::{self, Ready};
use stencilc_runtime::tune::database::name_of;
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

/// The kernel for a stencil of a text on arrays in rows that `stencilc tune` has remembered, and notes of it; nothing if there is none
/// that computes on them.
pub fn tuned_kernel(source: &Source, sought: &job::Sought<'_>) -> (Option<Choices>, Vec<String>) {
    let (found, Heard { notes, .. }) = hearing(|| {
        let gpu = name_of_device(sought.device)?;
        let of = Sought {
            source: &source.text,
            stencil: sought.stencil,
            choices: sought.choices,
            extents: sought.grid,
            neighbours: None,
        };
        of.on(&gpu, |own| sought.fits(own))
    });
    (found, notes)
}

/// Takes the way to compute a program of a text that `stencilc tune` has remembered, if the job leaves it open which; gives notes of it.
///
/// # Errors
/// The mesh lacks what the way needs.
pub fn take_tuned(source: &Source, ready: &mut Ready, platform: &Platform) -> Result<Vec<String>> {
    if !ready.is_open() || matches!(platform, Platform::Cpu) {
        return Ok(Vec::new());
    }
    let (done, Heard { notes, .. }) = hearing(|| tuned::take(source, ready, name_of(&platform.facts())));
    done.map(|()| notes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        in_memory("-mean.stn", text).unwrap()
    }

    const TEXT: &str = "
        stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }
        test \"a line stays\" { mean { a = 3*i }; expect b == 3*i }
        test \"a square stays\" { mean { a = i*i }; expect b == i*i }
    ";

    #[test]
    fn what_comes_of_a_text_in_memory_is_told_to_whoever_asks() {
        let words = |words: &str| -> Vec<String> { words.split_whitespace().map(str::to_owned).collect() };
        let came = done(Verb::Test { of: Some("mean") }, &source(TEXT), &words("--filter=line")).unwrap();
        assert!(came.failure.is_none() && came.diagnostics.is_empty());
        assert_eq!(came.text, "passed  mean: a line stays\nin all: 1 passed\n");
        assert_eq!(came.data["tests"][0]["status"], "passed");
        let came = done(Verb::Test { of: None }, &source(TEXT), &[]).unwrap();
        assert_eq!(came.failure.map(|own| own.message), Some("1 of 2 tests failed".to_owned()));
        assert_eq!((came.diagnostics.len(), &came.data["totals"]["failed"]), (1, &Value::from(1)));
        let came = done(Verb::Test { of: Some("other") }, &source(TEXT), &[]).unwrap();
        assert_eq!(came.failure.unwrap().message, "there is no test of `other` in `-mean.stn`");
        assert_eq!(came.data, Value::Null);
        let error = done(Verb::Tune, &source(TEXT), &words("--colour=red")).err().unwrap();
        assert_eq!(error.message, "unexpected argument '--colour' found");
        let wrong = done(Verb::Verify, &source("stencil s { in a; out b; b = c }"), &[]).err().unwrap();
        assert!(wrong.message.contains("unknown name `c`"), "{wrong}");
        let came = done(Verb::Tune, &source(TEXT), &words("--device=cpu")).unwrap();
        assert!(came.failure.unwrap().message.starts_with("there is nothing to tune on the cpu"));
    }
}
