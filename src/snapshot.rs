//! `stencilc snapshot`: generated code that is kept beside its source, so that its changes can be reviewed.
//!
//! The folder `NAME.snap` holds what `stencilc build` makes with each line of its `kernels.txt`: of a stencil on grids a kernel with its
//! launcher and its header, of a program or of what runs over a mesh all kernels, in one file. Nothing else is remembered, so the list
//! may be edited by hand; a line that is taken out leaves its files, which are nobody's then and stay. Folders come along with sources,
//! from whomever: nothing but files in the folder itself is read, and a line names no others, but for a mesh, which is read where the
//! call names it as well.

mod lines;

use crate::args::given::{Given, Names};
use crate::drawn::{is_of_grids, refuse_of_grids};
use crate::input::{self, Input};
use crate::terminal;
use clap::ValueHint;
use lines::{Line, Options, listed, parse};
use serde::Serialize;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use stencilc_compiler::cuda;
use stencilc_compiler::text::{FreeText, ShellWord};
use stencilc_runtime::{Error, Result, files};

/// The list of kernels in a folder.
const LIST: &str = "kernels.txt";

/// More bytes than a generated text ever has.
const LARGEST: u64 = 16 << 20;

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// Arguments of `snapshot`.
#[derive(clap::Args)]
#[command(
    after_help = "The code is kept in NAME.snap beside the file: what `stencilc build` makes with each line of\n\
    NAME.snap/kernels.txt. Options of a kernel add it to those; the first time, each stencil's usual kernel is taken,\n\
    and those of programs over meshes. Lines for a mesh are looked at where --mesh FILE says where that is.\n\n\
    Examples:\n  \
    stencilc snapshot smooth.stn --accept                   keep the usual kernel\n  \
    stencilc snapshot smooth.stn --access zloop --accept    and one more\n  \
    stencilc snapshot heat --program heat_periodic --grid 128x64x20 --accept    the kernels of a program\n  \
    stencilc snapshot airfoil.stn --mesh m.npz --strategy tiled --accept   and over a mesh\n  \
    stencilc snapshot smooth.stn                            show what has changed\n  \
    stencilc snapshot smooth.stn --check                    fail if something has, as in continuous integration"
)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
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
    kernel: Given<Options>,
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
        if *is_given { args.again(input, self.adds()) } else { String::new() }
    }

    /// Whether a kernel is asked for: a mesh alone says where those of the list are to find it.
    fn adds(&self) -> bool {
        self.kernel.is_given_beside(&["mesh"])
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
        Some(text) => parse(text, &folder.join(LIST), input)?,
        None => Vec::new(),
    };
    let known: BTreeSet<String> = accepted.iter().map(Line::name).collect();
    let mut wanted: BTreeMap<String, Line> = BTreeMap::new();
    for line in accepted.into_iter().chain(asked_for(args, input, list.is_some())?) {
        // A kernel of a stencil that is gone has gone with it.
        if line.is_there(input) {
            wanted.insert(line.name(), line);
        }
    }
    let text = listed(list.as_deref(), &wanted, input);
    let there: BTreeSet<String> = wanted.keys().cloned().collect();
    let mut texts: BTreeMap<PathBuf, (String, bool)> = BTreeMap::new();
    for (name, line) in wanted {
        let accepted = known.contains(&name);
        for (ending, text) in line.texts(args, input)? {
            texts.insert(folder.join(format!("{name}.{ending}")), (text, accepted));
        }
    }
    texts.insert(folder.join(LIST), (text, list.is_some()));
    let mut kept = Vec::new();
    // Of a line whose stencil is gone. What merely lies there too is the user's.
    for name in known.iter().filter(|name| !there.contains(*name)) {
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
fn asked_for(args: &Args, input: &Input, is_list: bool) -> Result<Vec<Line>> {
    if is_list && !args.adds() {
        return Ok(Vec::new());
    }
    let own = &args.kernel.args;
    let of_grids = is_of_grids(&args.names, &OPTIONS);
    if let Some(name) = own.of_program.program.as_deref() {
        if input.mesh_program(name)?.is_some() {
            refuse_of_grids(&args.names, &OPTIONS, name)?;
        } else {
            input.program(Some(name), None)?;
            own.over.refuse()?;
        }
        return Ok(vec![own.line_of(input, name)?]);
    }
    let (on_grids, over_meshes): (Vec<_>, Vec<_>) = match own.kernel.stencil.as_deref() {
        Some(name) => match input.mesh_stencil(Some(name))? {
            Some(own) => (Vec::new(), vec![&own.stencil]),
            None => (vec![input.stencil(Some(name))?], Vec::new()),
        },
        None => {
            let over_meshes = input.mesh_stencils.iter().map(|own| &own.stencil);
            match (of_grids, own.over.given().is_some()) {
                // Each kind is asked for by options of its own.
                (true, false) if !input.stencils.is_empty() => (input.stencils.iter().collect(), Vec::new()),
                (false, true) if !input.mesh_stencils.is_empty() => (Vec::new(), over_meshes.collect()),
                _ => (input.stencils.iter().collect(), over_meshes.collect()),
            }
        }
    };
    if !on_grids.is_empty() {
        own.over.refuse()?;
        own.of_program.refuse()?;
    }
    for own in &over_meshes {
        refuse_of_grids(&args.names, &OPTIONS[..3], &own.name)?;
    }
    let all_of_mesh = own.kernel.stencil.is_none() && !over_meshes.is_empty();
    let programs = input.mesh_programs.iter().filter(|_| all_of_mesh).map(|own| &own.program.name);
    let stencils = on_grids.iter().chain(&over_meshes).map(|stencil| own.line_of_stencil(input, stencil));
    stencils.chain(programs.map(|name| own.line_of(input, name))).collect()
}

/// Options that are not about grids: of the command itself, and of programs.
const OPTIONS: [&str; 5] = ["check", "accept", "output", "program", "fuse"];

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
