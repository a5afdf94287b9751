//! `stencilc new`: a stencil file to begin with.

use crate::{input, terminal};
use serde_json::json;
use std::path::{Path, PathBuf};
use stencilc_compiler::diagnostic::{Diagnostic, Severity};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::{Error, Result, files};

/// The ending of a stencil file.
const ENDING: &str = "stn";

/// Arguments of `new`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    stencilc new smooth              writes smooth.stn, with an input, an output and a test\n  \
    stencilc new models/smooth       the same in a folder that is there")]
pub struct Args {
    /// The name of the stencil, which is that of its file
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    name: String,
}

/// Writes a stencil file.
///
/// # Errors
/// The name is none, the file exists already, or it cannot be written.
pub fn new(args: &Args, json: bool) -> Result<()> {
    if args.name.ends_with(std::path::is_separator) {
        return Err(Error::call(format!("`{}` is a folder", args.name)).help(format!(
            "name a stencil in it: `stencilc new {}`",
            ShellWord::path(format!("{}smooth", args.name))
        )));
    }
    let path = path_of(&args.name);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    check_name(stem, &path)?;
    // A link counts, wherever it leads.
    if path.symlink_metadata().is_ok() {
        return Err(Error::call(format!("`{}` exists already, and stays as it is", path.display())).help(format!(
            "choose another name, as `{stem}2`; or look at it: `stencilc check {}`",
            ShellWord::path(&path)
        )));
    }
    files::will_write(files::Kind::Source, "new", &path)?;
    files::write_atomic(&path, |file| file.write_all(text(stem).as_bytes()))?;
    if input::embedded().any(|source| source.name == stem) {
        terminal::note(&format!(
            "`{stem}` alone still means the stencil that comes along; yours is `{}`",
            path.display()
        ));
    }
    if json {
        return terminal::json(&json!({ "files": [path] }));
    }
    let file = ShellWord::path(&path);
    terminal::print(&format!(
        "wrote {}\n\n  stencilc test {file}                  run its tests\n  \
         stencilc run {file} --grid 64x64x8    compute it on random numbers\n",
        path.display()
    ))
}

/// `smooth`, `smooth.stn`, `models/smooth` -> the file.
fn path_of(name: &str) -> PathBuf {
    let path = Path::new(name);
    match path.extension() {
        Some(ending) if ending == ENDING => path.to_owned(),
        // Another ending is a part of the name, about which there is something to say.
        Some(_) | None => PathBuf::from(format!("{name}.{ENDING}")),
    }
}

/// Refuses what cannot be the name of a stencil, in the words of the language.
fn check_name(name: &str, path: &Path) -> Result<()> {
    let error = || Error::call(format!("`{name}` cannot be the name of a stencil"));
    let suits = |character: char| character.is_ascii_alphanumeric() || character == '_';
    if name.is_empty() || !name.chars().all(suits) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let mended = mended(name);
        let rules = "names are ASCII letters, digits and `_`, and do not begin with a digit";
        let folder = path.parent().unwrap_or(Path::new(""));
        return Err(error().help(match mended.is_empty() {
            true => format!("{rules}; as in `stencilc new smooth`"),
            false => format!("{rules}: `stencilc new {}`", ShellWord::path(folder.join(mended))),
        }));
    }
    // What the language says of words that it needs itself.
    let source = Source::new(format!("{name}.{ENDING}"), text(name));
    let lowered = stencilc_compiler::check(&source);
    match lowered.diagnostics.iter().find(|found| found.severity == Severity::Error) {
        None => Ok(()),
        Some(Diagnostic { message, help, .. }) => {
            let why = help.first().unwrap_or(message);
            Err(Error::call(format!("`{name}` cannot be the name of a stencil: {why}"))
                .help(format!("choose another, as `my_{name}`")))
        }
    }
}

/// What the name was probably meant to be.
fn mended(name: &str) -> String {
    let plain: String =
        name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect();
    let plain = plain.trim_matches('_').to_lowercase();
    if plain.starts_with(|first: char| first.is_ascii_digit()) { format!("my_{plain}") } else { plain }
}

/// The file of a stencil called `name`.
fn text(name: &str) -> String {
    // The function's name is the stencil's own, should it have that one.
    let laplacian = if name == "laplacian" { "curvature" } else { "laplacian" };
    format!(
        "/// What it computes, in one sentence: `stencilc list` and the generated code show it.
///
///     smoothed = field - strength * L(field),  L(a) = 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]
stencil {name} {{
    /// What it is, and its unit. The range is what random numbers are drawn from.
    in  field = -1..1
    /// A number given when it runs; stable up to 1/4.
    param strength: real = 1/8
    out smoothed

    smoothed = field - strength * {laplacian}(field)
}}

fn {laplacian}(a) = 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]

test \"a plane stays as it is\" {{
    {name} {{ field = 2*i + 3*j - k }}
    expect smoothed == field
}}

test \"a bowl is filled by its curvature\" {{
    {name} {{ field = i**2 + j**2; strength = 1/4 }}
    expect smoothed == field + 1
}}
"
    )
}
