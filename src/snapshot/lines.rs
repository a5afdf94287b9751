//! The list of kernels under review: lines of options of `stencilc build`, and what these make.

use super::Args;
use crate::args::ARCH;
use crate::args::mesh::MeshArgs;
use crate::build::program::{self, ProgramArgs};
use crate::build::{mesh, mesh_program};
use crate::input::Input;
use crate::kernel::{Wanted, words_over_meshes};
use clap::Parser;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::Stencil;
use stencilc_compiler::kernel::Kernel;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::{Error, Result};

/// The first line of the list.
const HEAD: &str =
    "# Kernels under review, each by the options of `stencilc build`. `stencilc snapshot` reads and writes this.\n";

/// Options that say which kernels are meant.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub kernel: Wanted,
    #[command(flatten)]
    pub of_program: ProgramArgs,
    #[command(flatten)]
    pub over: MeshArgs,
}

/// The options of a line as they are read.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Parsed {
    #[command(flatten)]
    own: Options,
}

/// A line of the list.
pub struct Line {
    options: Options,
    /// The stencil or the program.
    subject: String,
    /// Whether that runs over a mesh.
    is_over_mesh: bool,
    /// The options that say so again.
    words: String,
}

impl Options {
    /// The options for a program, or for a stencil over a mesh, without saying again for what; `levels` is whether a mesh has them, and
    /// `mesh` what it is called.
    fn words(&self, levels: Option<bool>, mesh: Option<&str>) -> Result<String> {
        let (own, plan) = (&self.kernel, self.of_program.plan.words());
        let Some(has_levels) = levels else {
            return Ok(format!("{plan} {}", own.words()).trim_start().to_owned());
        };
        let choices = own.choices();
        let words = words_over_meshes(choices.precision, choices.contract, own.levels, &own.set);
        Ok(format!("{words}{plan} {}", self.over.words_on(mesh, has_levels)?))
    }

    /// The mesh by its file's name: where the file lies on this machine is no part of the code.
    fn mesh_name(&self) -> Option<String> {
        Some(self.over.mesh.as_ref()?.file_name()?.to_string_lossy().into_owned())
    }

    /// The line of a stencil.
    ///
    /// # Errors
    /// An option makes no difference for it, or is none of a folder of code.
    pub fn line_of_stencil(&self, input: &Input, stencil: &Stencil) -> Result<Line> {
        let name = &stencil.name;
        let words = match over_mesh(input, name) {
            levels @ Some(_) => self.words(levels, self.mesh_name().as_deref())?,
            None => self.kernel.words_for(stencil)?,
        };
        Line::new(&format!("--stencil {name} {words}"), input)
    }

    /// The line of a program. Of one on a grid it says which plan is taken, where that is left open.
    ///
    /// # Errors
    /// There is no such plan, or an option is none of a folder of code.
    pub fn line_of(&self, input: &Input, name: &str) -> Result<Line> {
        if let levels @ Some(_) = over_mesh(input, name) {
            let words = self.words(levels, self.mesh_name().as_deref())?;
            return Line::new(&format!("--program {name} {words}"), input);
        }
        // What it is made of has to be known before anything is read.
        Line::new(&format!("--program {name} {}", self.words(None, None)?), input)?;
        Line::new(&self.of_grid(input, name)?.again, input)
    }

    fn of_grid(&self, input: &Input, name: &str) -> Result<program::Kernels> {
        let own = &self.kernel;
        let found = input.program(Some(name), None)?;
        let program = found.ok_or_else(|| Error::call(format!("`{}` has no program `{name}`", input.source.name)))?;
        let choices = own.choices_of(program)?;
        let (grid, levels, set, plan) = (own.grid(), own.levels, &own.set[..], &self.of_program.plan);
        let wanted = program::Wanted { choices: &choices, grid, levels, set, plan, arch: ARCH, of_parts: false };
        wanted.kernels(input, program)
    }

    /// The same options again for `stencilc snapshot`, with where the mesh is; `adds` says whether they ask for a kernel.
    pub fn again(&self, input: &Input, adds: bool) -> String {
        let file = self.over.mesh.as_ref().map(|file| file.display().to_string());
        if !adds {
            return file.map_or(String::new(), |file| format!(" --mesh {}", ShellWord::path(file)));
        }
        let (stencil, program) = (self.kernel.stencil.as_deref(), self.of_program.program.as_deref());
        let named = |option: &str, name: Option<&str>| name.map_or(String::new(), |name| format!(" --{option} {name}"));
        let levels = match program.or(stencil) {
            Some(name) => over_mesh(input, name),
            None => (input.stencils.is_empty() || file.is_some()).then(|| has_levels(input)),
        };
        let words = match input.stencil(stencil) {
            Ok(own) if program.is_none() && levels.is_none() => {
                self.kernel.words_for(own).unwrap_or(self.kernel.words())
            }
            _ => self.words(levels, file.as_deref()).unwrap_or_default(),
        };
        format!("{}{} {words}", named("stencil", stencil), named("program", program))
    }
}

/// Whether the mesh of a program or stencil of this name has levels; nothing if it runs over none.
fn over_mesh(input: &Input, name: &str) -> Option<bool> {
    let programs = input.mesh_programs.iter().map(|own| (&own.program.name, own.mesh.levels));
    let mut all = programs.chain(input.mesh_stencils.iter().map(|own| (&own.stencil.name, own.mesh.levels)));
    all.find(|(own, _)| *own == name).map(|(_, levels)| levels)
}

/// Whether the mesh of a text's first stencil over one has levels.
fn has_levels(input: &Input) -> bool {
    input.mesh_stencils.first().is_some_and(|own| own.mesh.levels)
}

impl Line {
    /// What options stand for.
    fn new(options: &str, input: &Input) -> Result<Self> {
        let Some(words) = shlex::split(options) else {
            return Err(Error::input(format!("`{options}`: a quote does not end")));
        };
        let own = match Parsed::try_parse_from(words) {
            Ok(Parsed { own }) => own,
            Err(error) => {
                let text = error.render().to_string();
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let wrong = Error::input(format!("`{options}`: {first}"));
                // What clap guesses.
                return Err(match lines.find_map(|line| line.strip_prefix("tip: ")) {
                    Some(tip) => wrong.help(tip),
                    None => {
                        wrong.help("a line holds options of `stencilc build`, as in `--stencil smooth --access zloop`")
                    }
                });
            }
        };
        let is_elsewhere = own.over.mesh.as_ref().is_some_and(|file| file.file_name() != Some(file.as_os_str()));
        if own.kernel.names_files() || is_elsewhere {
            return Err(Error::input(format!("`{options}`: a folder of code has kernels that the source alone makes"))
                .help("leave out --share, the file of --grid and the folder of --mesh; `stencilc build -o DIR` writes such a kernel"));
        }
        let (stencil, program) = (own.kernel.stencil.as_ref(), own.of_program.program.as_ref());
        let is_name = |name: &String| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        // It becomes a part of files' names.
        if let Some(name) = stencil.or(program).filter(|name| !is_name(name)) {
            let what = if stencil.is_some() { "stencil" } else { "program" };
            return Err(Error::input(format!("`{options}`: `{name}` is no {what}'s name")));
        }
        let only = || input.stencils.iter().chain(input.mesh_stencils.iter().map(|own| &own.stencil)).next();
        let subject = stencil.or(program).cloned().or_else(|| Some(only()?.name.clone())).unwrap_or_default();
        // One that is gone is known by its options.
        let is_over = || own.over.given().is_some().then(|| has_levels(input));
        let levels = over_mesh(input, &subject).or_else(is_over);
        let words = own.words(levels, own.mesh_name().as_deref())?;
        Ok(Self { options: own, subject, is_over_mesh: levels.is_some(), words })
    }

    fn is_program(&self) -> bool {
        self.options.of_program.program.is_some()
    }

    /// The name of its files, without the ending.
    pub fn name(&self) -> String {
        if !self.is_program() && !self.is_over_mesh {
            return format!("{}-{}", self.subject, self.options.kernel.name());
        }
        let mut name = self.subject.clone();
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._=+-".contains(c) { c } else { '_' };
        for word in self.words.split_whitespace().filter(|word| !PLAIN.contains(word)) {
            name.push('-');
            name.extend(word.trim_start_matches("--").chars().map(plain));
        }
        name
    }

    /// Whether what it is about is still there.
    pub fn is_there(&self, input: &Input) -> bool {
        let name = &self.subject;
        match (self.is_program(), self.is_over_mesh) {
            (false, false) => input.stencils.iter().any(|own| own.name == *name),
            (true, false) => input.programs.iter().any(|own| own.name == *name),
            (false, true) => input.mesh_stencils.iter().any(|own| own.stencil.name == *name),
            (true, true) => input.mesh_programs.iter().any(|own| own.program.name == *name),
        }
    }

    /// As it stands in the list.
    fn text(&self) -> String {
        let what = if self.is_program() { "program" } else { "stencil" };
        format!("--{what} {} {}\n", self.subject, self.words)
    }

    /// The texts that it stands for, each with the ending of its file.
    ///
    /// # Errors
    /// There are no such kernels, or they are of a mesh of which the call does not say where it is.
    pub fn texts(mut self, args: &Args, input: &Input) -> Result<Vec<(&'static str, String)>> {
        if !self.is_program() && !self.is_over_mesh {
            let built = cuda::build(&self.options.kernel.plan(input)?)?;
            return Ok(vec![("cu", built.source), ("h", built.header)]);
        }
        if let Some(mesh) = self.options.mesh_name() {
            let given = &args.kernel.args;
            if given.mesh_name().as_ref() != Some(&mesh) {
                return Err(Error::call(format!(
                    "`{}` of the list is for the mesh `{mesh}`, and a list alone has nothing read",
                    self.text().trim_end()
                ))
                .help(format!("say where it is: --mesh {}", ShellWord::path(&mesh))));
            }
            self.options.over.mesh.clone_from(&given.over.mesh);
        }
        let file = Path::new(&args.file).file_name().unwrap_or_default().to_string_lossy();
        let made = cuda::made(&format!("{} {}", ShellWord::path(&*file), self.text().trim_end()));
        let mut texts = Vec::new();
        for mut code in self.codes(input)? {
            code.made = Some(made.clone());
            texts.push(cuda::text(&code)?);
        }
        Ok(vec![("cu", texts.join("\n"))])
    }

    /// The kernels of a program, or of a stencil over a mesh.
    fn codes(&self, input: &Input) -> Result<Vec<Kernel>> {
        let Options { kernel, of_program, over } = &self.options;
        let name = self.subject.as_str();
        if !self.is_over_mesh {
            return Ok(self.options.of_grid(input, name)?.codes);
        }
        let kernels = if self.is_program() {
            let Some(program) = input.mesh_program(name)? else { return Ok(Vec::new()) };
            let (choices, levels, set, plan) = (kernel.choices(), kernel.levels, &kernel.set[..], &of_program.plan);
            let (precision, contract) = (choices.precision, choices.contract);
            let wanted = mesh_program::Wanted { program, precision, contract, over, levels, set, plan };
            wanted.kernels(input)?.calls.into_iter().flat_map(|own| own.kernels).collect()
        } else {
            let Some(stencil) = input.mesh_stencil(Some(name))? else { return Ok(Vec::new()) };
            mesh::kernels(kernel, over, stencil, &over.choices(stencil.mesh.levels)?)?
        };
        Ok(kernels.into_iter().map(|kernel| kernel.code).collect())
    }
}

/// Options whose values say in a file's name which they are of.
const PLAIN: [&str; 6] = ["--access", "--storage", "--precision", "--fuse", "--strategy", "--vectors"];

/// The kernels of a list.
///
/// # Errors
/// A line holds something else.
pub fn parse(text: &str, path: &Path, input: &Input) -> Result<Vec<Line>> {
    let mut kernels = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let options = line.trim();
        if options.is_empty() || options.starts_with('#') {
            continue;
        }
        let place = format!("{}, line {}", path.display(), number + 1);
        let kernel = Line::new(options, input);
        kernels.push(kernel.map_err(|error| Error { message: format!("{place}: {}", error.message), ..error })?);
    }
    Ok(kernels)
}

/// The list with the kernels that are wanted: lines of others leave it, new ones come last, comments stay.
pub fn listed(before: Option<&str>, wanted: &BTreeMap<String, Line>, input: &Input) -> String {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    for own in before.unwrap_or(HEAD).lines() {
        let options = own.trim();
        let is_kept = options.is_empty() || options.starts_with('#') || {
            let name = Line::new(options, input).map(|line| line.name()).unwrap_or_default();
            wanted.contains_key(&name) && seen.insert(name)
        };
        if is_kept {
            text.push_str(&format!("{own}\n"));
        }
    }
    for (name, line) in wanted {
        if !seen.contains(name) {
            text.push_str(&line.text());
        }
    }
    text
}
