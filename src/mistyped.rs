//! Calls that cannot be read, with what was probably meant: words of other tools, and what stands where a command should.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, builder::StyledStr};
use std::ffi::OsString;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::text::ShellWord;

/// Commands, and what they are called elsewhere.
const COMMANDS: &[(&str, &[&str])] = &[
    ("build", &["compile", "make", "emit", "generate", "codegen", "translate", "transpile"]),
    ("run", &["exec", "execute", "start", "compute", "simulate", "plot"]),
    ("bench", &["benchmark", "time", "measure", "sweep", "tune", "autotune", "profile"]),
    ("report", &["html", "page", "dashboard", "chart", "charts", "visualize", "visualise"]),
    ("check", &["lint", "validate", "parse", "fmt", "format"]),
    ("explain", &["info", "analyze", "analyse", "cost", "roofline", "describe"]),
    ("verify", &["compare", "prove"]),
    ("new", &["init", "create"]),
    ("list", &["ls", "show", "stencils", "examples"]),
];

/// Options as they are given, and what they are called elsewhere.
const OPTIONS: &[(&str, &[&str])] = &[
    ("--set NAME=VALUE", &["--param", "--params", "--parameter", "--define", "-D", "-p", "--var"]),
    ("--in NAME=FILE", &["--input", "--inputs", "--data", "-i", "--load"]),
    ("--out NAME=FILE", &["--output", "--outputs", "-o", "--save", "--write"]),
    ("-o DIR", &["--output", "--out-dir", "--dir", "--directory", "--out"]),
    ("--grid NIxNJxNK", &["--size", "--shape", "--dims", "--domain", "--extents", "-g", "-n"]),
    ("--precision f32", &["--dtype", "--type", "--float", "--single", "--real"]),
    ("--precision f64", &["--double"]),
    ("--device cuda", &["--gpu", "--cuda", "--backend", "--target"]),
    ("--device cpu", &["--cpu"]),
    ("--plot NAME=FILE", &["--png", "--image", "--picture", "--show"]),
    ("--animate NAME=FILE", &["--gif", "--apng", "--movie", "--video", "--film", "--animation"]),
];

/// The same error of a call, with advice that helps.
pub fn mended(mut error: Error, commands: &Command, words: &[OsString]) -> Error {
    // How to pass what was written as a value helps nobody here: no command takes words that begin with `-`.
    let useless = error.remove(ContextKind::Suggested).is_some();
    let advice = match error.kind() {
        ErrorKind::InvalidSubcommand => command(&mut error, commands, words),
        ErrorKind::UnknownArgument => option(&mut error, commands, words),
        ErrorKind::MissingRequiredArgument => choices(&error, commands, words),
        _ => None,
    };
    if let Some(advice) = advice {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
    } else if useless
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_number(word))
    {
        let advice = "a value that begins with `-` is joined to its option by `=`, as in --set dt=-1";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
    }
    error
}

fn is_number(word: &str) -> bool {
    word.starts_with('-') && word[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// The word at which the call could not be read.
fn word(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    }
}

fn command(error: &mut Error, commands: &Command, words: &[OsString]) -> Option<String> {
    let word = word(error, ContextKind::InvalidSubcommand)?;
    // What stands before it may be a command that has others of its own.
    let outer = words.iter().skip(1).try_fold(commands, |outer, word| outer.find_subcommand(word).ok_or(outer));
    let outer = outer.unwrap_or_else(|innermost| innermost);
    let names: Vec<&str> = outer.get_subcommands().map(Command::get_name).filter(|&name| name != "help").collect();
    let list = format!("commands are {}", names.join(", "));
    if outer.get_name() != commands.get_name() {
        error.remove(ContextKind::SuggestedSubcommand);
        return Some(list);
    }
    let is_file = word.ends_with(".stn") || std::path::Path::new(&word).is_file();
    if is_file || crate::input::embedded().any(|source| source.name == word) {
        return Some(format!(
            "a command stands before the file, as in `stencilc check {0}` or `stencilc run {0}`",
            ShellWord::path(&word)
        ));
    }
    let lower = word.to_lowercase();
    if let Some((ours, _)) = COMMANDS.iter().find(|(_, theirs)| theirs.contains(&lower.as_str())) {
        error.remove(ContextKind::SuggestedSubcommand);
        return Some(format!("write `stencilc {ours}`"));
    }
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    Some(guess(&lower, names).map_or(list, |name| format!("did you mean `stencilc {name}`?")))
}

/// The first word of the call that is no option: the command.
fn command_given(words: &[OsString]) -> Option<&OsString> {
    words.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-"))
}

/// What there is to choose from, for an argument that is missing and takes one of a few words.
fn choices(error: &Error, commands: &Command, words: &[OsString]) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let own = commands.find_subcommand(command_given(words)?)?;
    let name = |argument: &clap::Arg| format!("<{}>", argument.get_id().as_str().to_uppercase());
    let argument = own.get_positionals().find(|argument| missing.contains(&name(argument)))?;
    let words: Vec<String> = argument.get_possible_values().iter().map(|word| word.get_name().to_owned()).collect();
    (!words.is_empty()).then(|| format!("{} is one of {}", name(argument), words.join(", ")))
}

fn option(error: &mut Error, commands: &Command, words: &[OsString]) -> Option<String> {
    let word = word(error, ContextKind::InvalidArg)?;
    let name = word.split('=').next().unwrap_or_default();
    let own = commands.find_subcommand(command_given(words)?)?;
    let takes = |option: &str| {
        let option = option.split(' ').next().unwrap_or_default();
        own.get_arguments().any(|argument| {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let short = argument.get_short().map(|short| format!("-{short}"));
            long.as_deref() == Some(option) || short.as_deref() == Some(option)
        })
    };
    let (ours, _) = OPTIONS.iter().find(|(ours, theirs)| theirs.contains(&name) && takes(ours))?;
    error.remove(ContextKind::SuggestedArg);
    Some(format!("write {ours}"))
}
