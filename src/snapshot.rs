//! `stencilc snapshot`: generated code that is kept beside its source, so that its changes can be reviewed.
//!
//! The folder `NAME.snap` holds a kernel with its launcher and its header for each line of its `kernels.txt`, which are
//! options of `stencilc build`. Nothing else is remembered, so the list may be edited by hand; a line that is taken out leaves its
//! files, which are nobody's then and stay. Folders come along with sources, from whomever: nothing but files in the folder itself is
//! read, and a line names no others.

use crate::args::given::Given;
use crate::input::{self, Input};
use crate::kernel::Wanted;
use crate::terminal;
use clap::{Parser, ValueHint};
use serde::Serialize;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use stencilc_compiler::cuda;
use stencilc_compiler::ir::Stencil;
use stencilc_compiler::text::{FreeText, ShellWord};
use stencilc_runtime::{Error, Result, files};

/// The list of kernels in a folder.
const LIST: &str = "kernels.txt";

/// Its first line.
const HEAD: &str =
    "# Kernels under review, each by the options of `stencilc build`. `stencilc snapshot` reads and writes this.\n";

/// More bytes than a generated text ever has.
const LARGEST: u64 = 16 << 20;

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// Arguments of `snapshot`.
#[derive(clap::Args)]
#[command(
    after_help = "The code is kept in NAME.snap beside the file: one kernel for each line of NAME.snap/kernels.txt.\n\
    Options of a kernel add it to those; the first time, each stencil's usual kernel is taken.\n\n\
    Examples:\n  \
    stencilc snapshot smooth.stn --accept                   keep the usual kernel\n  \
    stencilc snapshot smooth.stn --access zloop --accept    and one more\n  \
    stencilc snapshot smooth.stn                            show what has changed\n  \
    stencilc snapshot smooth.stn --check                    fail if something has, as in continuous integration"
)]
pub struct Args {
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = ValueHint::FilePath)]
    file: String,
    /// Fail if something is not as it was accepted
    #[arg(long, conflicts_with = "accept")]
    check: bool,
    /// Write what has changed
    #[arg(long)]
    accept: bool,
    /// The folder of the code; NAME.snap beside the file if not given
    #[arg(short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    kernel: Given<Wanted>,
}

/// A line of the list.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    kernel: Wanted,
}

/// What is different about a file.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    /// As it was accepted.
    Same,
    /// Another text.
    Changed,
    /// Not there yet.
    New,
    /// It was accepted, and is gone.
    Missing,
    /// It belongs to a line of the list whose stencil is gone.
    Stale,
}

/// A file of the folder.
#[derive(Serialize)]
struct Kept {
    file: PathBuf,
    change: Change,
    /// As a unified diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    diff: String,
    /// What it has to hold; nothing if it has to go.
    #[serde(skip)]
    text: Option<String>,
}

/// Compares, or writes, generated code.
///
/// # Errors
/// With `--check`, something is not as it was accepted; or a kernel cannot be made, or a file not be read or written.
pub fn snapshot(args: &Args, json: bool) -> Result<()> {
    let mut input = input::load(&args.file)?;
    // Where the file lies on this machine is no part of the code.
    for stencil in &mut input.stencils {
        let name = Path::new(stencil.file.as_told()).file_name().unwrap_or_default();
        stencil.file = FreeText::new(name.to_string_lossy());
    }
    let folder = args.output.clone().unwrap_or_else(|| folder_of(&input.source.name));
    refuse_link(args, &folder)?;
    let kept = look(args, &input, &folder)?;
    let open: Vec<&Kept> = kept.iter().filter(|kept| kept.change != Change::Same).collect();
    if args.accept {
        tell(&open)?;
        write(&open)?;
    }
    if json {
        terminal::json(&kept)?;
    } else {
        terminal::print(&report(args, &folder, &kept))?;
    }
    if open.is_empty() || args.accept {
        return Ok(());
    }
    let file = ShellWord::path(&args.file);
    let output = args.output.as_ref().map_or(String::new(), |folder| format!(" -o {}", ShellWord::path(folder)));
    let again = format!("`stencilc snapshot {file}{}{output} --accept`", args.options(&input));
    if args.check {
        let all = terminal::count(kept.len(), "file");
        let (number, are) = (open.len(), if open.len() == 1 { "is" } else { "are" });
        return Err(Error::check(format!("{number} of {all} of `{}` {are} not as accepted", folder.display()))
            .help(format!("review the changes; {again} takes them")));
    }
    terminal::note(&format!("nothing was written; {again} takes these changes"));
    Ok(())
}

impl Args {
    /// The options that were given for a kernel.
    fn options(&self, input: &Input) -> String {
        let Given { args, is_given, .. } = &self.kernel;
        let stencil = args.stencil.iter().map(|name| format!(" --stencil {name}")).collect::<String>();
        let words = match input.stencil(args.stencil.as_deref()) {
            Ok(stencil) => args.words_for(stencil).unwrap_or_else(|_| args.words()),
            Err(_) => args.words(),
        };
        if *is_given { format!("{stencil} {words}") } else { String::new() }
    }
}

/// `dir/smooth.stn` -> `dir/smooth.snap`
fn folder_of(file: &str) -> PathBuf {
    Path::new(file).with_extension("snap")
}

/// Every file that is in the folder, or ought to be.
fn look(args: &Args, input: &Input, folder: &Path) -> Result<Vec<Kept>> {
    let list = read(&folder.join(LIST))?;
    let accepted = match &list {
        Some(text) => parse(text, &folder.join(LIST))?,
        None => Vec::new(),
    };
    let known: BTreeSet<String> = accepted.iter().map(|kernel| name(kernel, input)).collect();
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for kernel in accepted.into_iter().chain(asked_for(args, input, list.is_some())?) {
        // A kernel of a stencil that is gone has gone with it.
        if kernel.stencil.as_deref().is_none_or(|own| input.stencils.iter().any(|stencil| stencil.name == own)) {
            wanted.insert(name(&kernel, input), kernel);
        }
    }
    let mut texts: BTreeMap<PathBuf, (String, bool)> = BTreeMap::new();
    for (name, kernel) in &wanted {
        let built = cuda::build(&kernel.plan(input)?)?;
        let accepted = known.contains(name);
        texts.insert(folder.join(format!("{name}.cu")), (built.source, accepted));
        texts.insert(folder.join(format!("{name}.h")), (built.header, accepted));
    }
    texts.insert(folder.join(LIST), (listed(list.as_deref(), &wanted, input), list.is_some()));
    let mut kept = Vec::new();
    // Of a line whose stencil is gone. What merely lies there too is the user's.
    for name in known.iter().filter(|name| !wanted.contains_key(*name)) {
        for file in ["cu", "h"].map(|ending| folder.join(format!("{name}.{ending}"))) {
            if read(&file)?.is_some_and(|text| cuda::is_generated(&text)) {
                kept.push(Kept { file, change: Change::Stale, diff: String::new(), text: None });
            }
        }
    }
    for (file, (text, accepted)) in texts {
        let before = read(&file)?;
        let change = match (&before, accepted) {
            (Some(before), _) if *before == text => Change::Same,
            (Some(_), _) => Change::Changed,
            (None, true) => Change::Missing,
            (None, false) => Change::New,
        };
        let diff = before.filter(|_| change == Change::Changed).map(|before| diff(&file, &before, &text));
        kept.push(Kept { file, change, diff: diff.unwrap_or_default(), text: Some(text) });
    }
    kept.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(kept)
}

/// Kernels that the call asks for, beside those of the list.
fn asked_for(args: &Args, input: &Input, is_list: bool) -> Result<Vec<Wanted>> {
    if is_list && !args.kernel.is_given {
        return Ok(Vec::new());
    }
    let stencils: Vec<&Stencil> = match &args.kernel.args.stencil {
        Some(name) => vec![input.stencil(Some(name))?],
        None => {
            input.refuse_meshes(None)?;
            input.stencils.iter().collect()
        }
    };
    let wanted = &args.kernel.args;
    let kernel = |stencil: &Stencil| kernel_of(&format!("--stencil {} {}", stencil.name, wanted.words_for(stencil)?));
    stencils.into_iter().map(kernel).collect()
}

/// The kernel that options stand for.
fn kernel_of(options: &str) -> Result<Wanted> {
    let Some(words) = shlex::split(options) else {
        return Err(Error::input(format!("`{options}`: a quote does not end")));
    };
    match Line::try_parse_from(words) {
        Ok(Line { kernel }) if kernel.names_files() => {
            Err(Error::input(format!("`{options}`: a folder of code has kernels that the source alone makes"))
                .help("leave out --share and the file of --grid; `stencilc build -o DIR` writes such a kernel"))
        }
        Ok(Line { kernel }) => match &kernel.stencil {
            // It becomes a part of files' names.
            Some(name) if !name.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                Err(Error::input(format!("`{options}`: `{name}` is no stencil's name")))
            }
            Some(_) | None => Ok(kernel),
        },
        Err(error) => {
            let text = error.render().to_string();
            let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let wrong = Error::input(format!("`{options}`: {first}"));
            // What clap guesses.
            Err(match lines.find_map(|line| line.strip_prefix("tip: ")) {
                Some(tip) => wrong.help(tip),
                None => wrong.help("a line holds options of `stencilc build`, as in `--stencil smooth --access zloop`"),
            })
        }
    }
}

/// The kernels of a list.
fn parse(text: &str, path: &Path) -> Result<Vec<Wanted>> {
    let mut kernels = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let options = line.trim();
        if options.is_empty() || options.starts_with('#') {
            continue;
        }
        let place = format!("{}, line {}", path.display(), number + 1);
        let kernel = kernel_of(options);
        kernels.push(kernel.map_err(|error| Error { message: format!("{place}: {}", error.message), ..error })?);
    }
    Ok(kernels)
}

/// A kernel's line in the list.
fn line(kernel: &Wanted, input: &Input) -> String {
    format!("--stencil {} {}\n", stencil_of(kernel, input), kernel.words())
}

/// The name of its files, without the ending.
fn name(kernel: &Wanted, input: &Input) -> String {
    format!("{}-{}", stencil_of(kernel, input), kernel.name())
}

fn stencil_of<'a>(kernel: &'a Wanted, input: &'a Input) -> &'a str {
    let only = input.stencils.first().map_or("", |stencil| stencil.name.as_str());
    kernel.stencil.as_deref().unwrap_or(only)
}

/// The list with the kernels that are wanted: lines of others leave it, new ones come last, comments stay.
fn listed(before: Option<&str>, wanted: &BTreeMap<String, Wanted>, input: &Input) -> String {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    for own in before.unwrap_or(HEAD).lines() {
        let options = own.trim();
        let is_kept = options.is_empty() || options.starts_with('#') || {
            let name = kernel_of(options).map(|kernel| name(&kernel, input)).unwrap_or_default();
            wanted.contains_key(&name) && seen.insert(name)
        };
        if is_kept {
            text.push_str(&format!("{own}\n"));
        }
    }
    for (name, kernel) in wanted {
        if !seen.contains(name) {
            text.push_str(&line(kernel, input));
        }
    }
    text
}

/// A file's text, if there is one.
fn read(path: &Path) -> Result<Option<String>> {
    let failed = |error: &dyn Display| Error::input(format!("cannot read `{}`: {error}", path.display()));
    match files::read_at_most(path, LARGEST, files::Links::Refuse) {
        Ok(bytes) => Ok(Some(String::from_utf8(bytes).map_err(|_| failed(&"it is no text"))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            let folder = path.parent().unwrap_or(path).display();
            Err(Error::call(format!("`{folder}` is a file")).help("name a folder for the code: -o DIR"))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn diff(file: &Path, before: &str, after: &str) -> String {
    let name = file.display().to_string();
    TextDiff::from_lines(before, after).unified_diff().context_radius(CONTEXT).header(&name, &name).to_string()
}

/// Refuses a folder of code that nobody has named, and that comes with the source, if it is a link: it might lead to anything.
fn refuse_link(args: &Args, folder: &Path) -> Result<()> {
    if args.output.is_none() && folder.is_symlink() {
        let shown = folder.display();
        return Err(Error::input(format!("`{shown}` is a link, and code would be read and written where it leads"))
            .help(format!("name the folder, if that is meant: -o {}", ShellWord::path(folder))));
    }
    Ok(())
}

/// Tells of the files that will be written or removed.
fn tell(open: &[&Kept]) -> Result<()> {
    open.iter().try_for_each(|kept| files::will_write_inside(files::Kind::Code, "--accept", &kept.file))
}

/// Writes what has to be there, and removes what has to go.
fn write(open: &[&Kept]) -> Result<()> {
    open.iter().try_for_each(|kept| match &kept.text {
        Some(text) => files::write_atomic(&kept.file, |file| file.write_all(text.as_bytes())),
        None => files::remove(&kept.file),
    })
}

/// What is different, and the differences.
fn report(args: &Args, folder: &Path, kept: &[Kept]) -> String {
    let mut text = String::new();
    for Kept { file, change, diff, .. } in kept {
        let word = match (change, args.accept) {
            (Change::Same, _) => continue,
            (Change::Changed, false) => "changed",
            (Change::New, false) => "new",
            (Change::Missing, false) => "missing",
            (Change::Stale, false) => "stale",
            (Change::Changed | Change::New | Change::Missing, true) => "wrote",
            (Change::Stale, true) => "removed",
        };
        text.push_str(&format!("{word:<7}  {}\n", file.display()));
        if !args.accept {
            text.push_str(diff);
        }
    }
    if text.is_empty() {
        text = format!("{}: {}, as accepted\n", folder.display(), terminal::count(kept.len(), "file"));
    }
    text
}
