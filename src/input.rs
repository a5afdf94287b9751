//! Stencil files: paths, and stencils that come along.

mod meshes;

use crate::terminal;
use include_dir::{Dir, include_dir};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;
use stencilc_compiler::analysis::numbers::numbers;
use stencilc_compiler::ast;
use stencilc_compiler::diagnostic::{Diagnostic, Refusal, Severity, guess};
use stencilc_compiler::import::{self, Text};
use stencilc_compiler::ir::{MeshProgram, MeshStencil, MeshTest, Precision, Program, Stencil, Stored, Test};
use stencilc_compiler::lower::{Lowered, lower};
use stencilc_compiler::parse::{LENGTH, parse};
use stencilc_compiler::source::Source;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::{Error, Result, files};

/// The stencils that come along.
static STENCILS: Dir = include_dir!("$CARGO_MANIFEST_DIR/stencils");

/// The commands that take programs.
const OF_PROGRAMS: &str = "run, test, verify, bench, tune, profile, build, snapshot and explain";

/// The ending of a stencil file.
const ENDING: &str = ".stn";

/// Every stencil file that comes along, by name.
pub fn embedded() -> impl Iterator<Item = Source> {
    STENCILS.files().filter_map(|file| {
        let name = file.path().to_str()?.strip_suffix(ENDING)?;
        Some(Source::new(name, file.contents_utf8()?))
    })
}

/// Reads `file`, which is a path or the name of a stencil that comes along.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn open(file: &str) -> Result<Source> {
    with_types(import::joined(text(file)?, &mut imported))
}

/// A text that is in memory, with what it imports.
///
/// # Errors
/// As [`open`].
pub fn in_memory(name: &str, text: &str) -> Result<Source> {
    if text.len() > LENGTH {
        let most = LENGTH >> 10;
        return Err(Error::input(format!("`{name}` is larger than {most} KiB: that is no stencil file")));
    }
    // Keys of files stand in quotes, and those of files that come along in nothing.
    let key = format!("<{name}>");
    with_types(import::joined(Text { key, name: name.to_owned(), text: text.to_owned() }, &mut imported))
}

fn with_types(source: Source) -> Result<Source> {
    match TYPES.get() {
        Some(types) => {
            source.with_types(types).map_err(|Refusal { message, help }| Error { help, ..Error::call(message) })
        }
        None => Ok(source),
    }
}

/// What the call says of types: the same for all files that it reads.
static TYPES: OnceLock<Vec<(String, Stored)>> = OnceLock::new();

/// `vp=f32`
pub fn type_given(text: &str) -> std::result::Result<(String, Stored), String> {
    let example = "a name and a type are needed, as in `--type vp=f32`";
    let (name, stored) = text.split_once('=').ok_or(example)?;
    match Stored::named(stored.trim()) {
        Some(stored @ (Stored::Real | Stored::F32 | Stored::F64)) => Ok((name.trim().to_owned(), stored)),
        _ => Err(format!("`{}` is none of `real`, `f32` and `f64`", stored.trim())),
    }
}

/// Says what types are, before anything is read.
///
/// # Errors
/// One is said twice.
pub fn give_types(types: Vec<(String, Stored)>) -> Result<()> {
    for (number, (name, _)) in types.iter().enumerate() {
        if types[..number].iter().any(|(before, _)| before == name) {
            return Err(Error::call(format!("--type says twice what `{name}` is")).help("say it once"));
        }
    }
    if !types.is_empty() {
        TYPES.get_or_init(|| types);
    }
    Ok(())
}

fn text(file: &str) -> Result<Text> {
    let path = Path::new(file);
    let own = format!("{file}{ENDING}");
    // A name has no dot and no slash. So what else lies in the folder, as a program that was made of the stencil, hides nothing.
    if let Some(text) = along(file) {
        for other in [format!("./{file}"), own] {
            if Path::new(&other).is_file() {
                terminal::note(&format!(
                    "`{file}` is the stencil that comes along; `{other}` names the file in this folder"
                ));
            }
        }
        return Ok(text);
    }
    if file.ends_with(ENDING) || path.exists() {
        return read(path, file);
    }
    // So that a stencil of one's own goes by its name too.
    if Path::new(&own).is_file() {
        return read(Path::new(&own), &own);
    }
    Err(unknown(file))
}

/// A stencil file that comes along.
fn along(name: &str) -> Option<Text> {
    let Source { name, text, .. } = embedded().find(|source| source.name == name)?;
    // Keys of other files stand in quotes.
    Some(Text { key: name.clone(), name, text })
}

/// Reads what a file imports: a path, seen from the folder of that file, or the name of a stencil that comes along.
fn imported(by: &Text, path: &str) -> std::result::Result<Text, Refusal> {
    let refused = |Error { message, help, .. }: Error| Refusal { message, help };
    if path.is_empty() {
        return Err(Refusal::new("an import names a file").help(format!("as in `import \"advection{ENDING}\"`")));
    }
    let beside = Path::new(&by.name);
    // What comes through a pipe lies in no folder.
    let own = if beside.is_file() { beside.with_file_name(path) } else { path.into() };
    let is_along = along(&by.name).is_some_and(|own| own.key == by.key);
    let named = along(path.strip_suffix(ENDING).filter(|_| is_along).unwrap_or(path));
    match named {
        Some(text) if is_along || !path.ends_with(ENDING) && !own.exists() => Ok(text),
        _ => read(&own, &own.display().to_string()).map_err(refused),
    }
}

fn unknown(file: &str) -> Error {
    let names: Vec<String> = embedded().map(|source| source.name).collect();
    let error = Error::input(format!("there is no file `{file}`, and no stencil of that name comes along"));
    match guess(file, names.iter().map(String::as_str)) {
        Some(guess) => error.help(format!("did you mean `{guess}`? There are {}", names.join(", "))),
        None => error.help(format!("give a path, or one of {}", names.join(", "))),
    }
}

fn read(path: &Path, name: &str) -> Result<Text> {
    if path.is_dir() {
        return Err(Error::input(format!("`{name}` is a directory, not a stencil file")).help(format!(
            "name a file in it, or several: {}/*{ENDING}",
            ShellWord::path(name.trim_end_matches('/'))
        )));
    }
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => missing(path, name),
        ErrorKind::InvalidInput => Error::input(format!("`{name}` is a pipe or a device, not a stencil file"))
            .help("name a text file; what comes through a pipe is read from /dev/stdin"),
        _ => Error::input(format!("cannot read `{name}`: {error}")),
    };
    let file = files::open_given(path).map_err(failed)?;
    files::reads(files::Kind::Source, path)?;
    let mut bytes = Vec::new();
    file.take(LENGTH as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > LENGTH {
        let most = LENGTH >> 10;
        return Err(Error::input(format!("`{name}` is larger than {most} KiB: that is no stencil file")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        // Archives, arrays: what is meant for an option stands where the stencil should.
        if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\x93NUMPY") {
            return Error::input(format!("`{name}` is a file of numbers, and a stencil is needed here")).help(format!(
                "the stencil comes first, and a grid is given with --grid {0}, a mesh with --mesh {0}, an array with --in NAME={0}",
                ShellWord::path(name)
            ));
        }
        let is_utf16 = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
        if is_utf16 {
            return Error::input(format!("`{name}` is a text in UTF-16, and UTF-8 is needed")).help(format!(
                "save it as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8 {} > new{ENDING}",
                ShellWord::path(name)
            ));
        }
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count();
        Error::input(format!("`{name}` is no text in UTF-8: line {line} has a byte that is not"))
            .help("a stencil file is a text; if it is one, save it as UTF-8")
    })?;
    // Two names of one file are the same file.
    let key = format!("{:?}", path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    Ok(Text { key, name: name.to_owned(), text })
}

/// The stencil file beside a path whose name is nearly its own.
fn near(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let stems: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(ENDING)?.to_owned())).collect();
    let near = guess(path.file_stem()?.to_str()?, stems.iter().map(String::as_str))?;
    Some(path.with_file_name(format!("{near}{ENDING}")).display().to_string())
}

fn missing(path: &Path, name: &str) -> Error {
    let error = Error::input(format!("there is no file `{name}`"));
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match embedded().find(|source| source.name == stem) {
        Some(source) => error.help(format!("`{}`, without {ENDING}, is one that comes along", source.name)),
        None => error.help(match near(path) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "give the path of a stencil file; `stencilc list stencils` shows those that come along".to_owned(),
        }),
    }
}

/// A stencil file without errors.
pub struct Input {
    /// Its text.
    pub source: Source,
    /// Its stencils.
    pub stencils: Vec<Stencil>,
    /// Its programs.
    pub programs: Vec<Program>,
    /// Its stencils over meshes.
    pub mesh_stencils: Vec<MeshStencil>,
    /// Its programs over meshes.
    pub mesh_programs: Vec<MeshProgram>,
    /// Its tests.
    pub tests: Vec<Test>,
    /// Its tests over meshes.
    pub mesh_tests: Vec<MeshTest>,
    /// Seconds that parsing took.
    pub parse_seconds: f64,
    /// Seconds that lowering took.
    pub lower_seconds: f64,
}

/// The syntax tree of a file. What is wrong with it is shown.
///
/// # Errors
/// It cannot be parsed.
pub fn tree(source: &Source) -> Result<ast::File> {
    parse(source).map_err(|diagnostic| {
        terminal::diagnostics(&[diagnostic], source);
        broken(source, 1)
    })
}

/// The stencils of `file`. What there is to tell about it is shown.
///
/// # Errors
/// It cannot be read, or has errors.
pub fn load(file: &str) -> Result<Input> {
    let source = open(file)?;
    let start = Instant::now();
    let tree = tree(&source)?;
    let parse_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let lowered = lower(&tree, &source.name);
    let lower_seconds = start.elapsed().as_secs_f64();
    terminal::diagnostics(&lowered.diagnostics, &source);
    match lowered.diagnostics.iter().filter(|found| found.severity == Severity::Error).count() {
        0 => Ok(Input { parse_seconds, lower_seconds, ..Input::of(source, lowered) }),
        errors => Err(broken(&source, errors)),
    }
}

/// Numbers of a stencil that a precision loses, and double precision does not.
fn lost(stencil: &Stencil, precision: Precision) -> Vec<Diagnostic> {
    if precision == Precision::F64 {
        return Vec::new();
    }
    let before = numbers(stencil, Precision::F64);
    let mut found = numbers(stencil, precision);
    found.retain(|new| before.iter().all(|old| old.label.span != new.label.span));
    found.dedup();
    found
}

/// That `name`, which --stencil names, is a program of a file.
fn is_program(name: &str, file: &str, stencils: &str) -> Error {
    Error::call(format!("`{name}` is a program, and --stencil names a stencil"))
        .help(format!("give --program {name} ({OF_PROGRAMS}); the stencils of `{file}` are {stencils}"))
}

fn broken(source: &Source, errors: usize) -> Error {
    Error::input(format!("`{}` has {}", source.name, terminal::count(errors, "error")))
}

impl Input {
    /// A text that was read and is right.
    pub fn of(source: Source, lowered: Lowered) -> Self {
        let Lowered { stencils, programs, mesh_stencils, mesh_programs, tests, mesh_tests, .. } = lowered;
        let (parse_seconds, lower_seconds) = (0.0, 0.0);
        Self {
            source,
            stencils,
            programs,
            mesh_stencils,
            mesh_programs,
            tests,
            mesh_tests,
            parse_seconds,
            lower_seconds,
        }
    }

    /// Tells of numbers in `stencil` that `precision` cannot hold. Those that no precision can were told before.
    pub fn warn_of_numbers(&self, stencil: &Stencil, precision: Precision) {
        terminal::diagnostics(&lost(stencil, precision), &self.source);
    }

    /// Tells the same of a program: of the defaults of its parameters, and of the stencils that it calls.
    pub fn warn_of_program(&self, program: &Program, precision: Precision) {
        let mut found: Vec<Diagnostic> = Vec::new();
        for stencil in program.stencils.iter().chain([&program.numbers]) {
            let new = lost(stencil, precision);
            found.extend(new.into_iter().filter(|new| !found.contains(new)).collect::<Vec<_>>());
        }
        terminal::diagnostics(&found, &self.source);
    }

    /// The stencils of this file and of `others`, which is none if there are no others. A file counts once, whatever its name.
    ///
    /// # Errors
    /// Another file cannot be read, or has errors.
    pub fn sharing(&self, others: &[String]) -> Result<Option<Vec<Stencil>>> {
        let (mut texts, mut stencils) = (vec![self.source.text.clone()], self.stencils.clone());
        for file in others {
            let other = open(file)?;
            if !texts.contains(&other.text) {
                stencils.extend(load(file)?.stencils);
                texts.push(other.text);
            }
        }
        Ok((!others.is_empty()).then_some(stencils))
    }

    /// The program called `name`; without a name, the only one, unless a stencil is asked for.
    ///
    /// # Errors
    /// There is none of that name, or there are several.
    pub fn program(&self, name: Option<&str>, stencil: Option<&str>) -> Result<Option<&Program>> {
        self.refuse_meshes(name.or(stencil))?;
        let file = &self.source.name;
        let names: Vec<&str> = self.programs.iter().map(|program| program.name.as_str()).collect();
        match (name, stencil, self.programs.as_slice()) {
            (None, Some(_), _) | (None, None, []) => Ok(None),
            (None, None, [program]) => Ok(Some(program)),
            (None, None, _) => Err(Error::call(format!("`{file}` has {} programs: {}", names.len(), names.join(", ")))
                .help(format!("choose one: --program {}, or a stencil: --stencil NAME", names[0]))),
            (Some(name), _, programs) => {
                let found = programs.iter().find(|program| program.name == name);
                let error = || {
                    let error = Error::call(format!("`{file}` has no program `{name}`"));
                    match guess(name, names.iter().copied()) {
                        Some(guess) => error.help(format!("did you mean `{guess}`?")),
                        None if names.is_empty() => error.help("it has stencils alone: --stencil NAME"),
                        None => error.help(format!("it has {}", names.join(", "))),
                    }
                };
                found.map(Some).ok_or_else(error)
            }
        }
    }

    /// Tells that a command is about a stencil, where the file has programs and nobody has said which stencil is meant.
    pub fn tell_of_programs(&self, name: Option<&str>, command: &str, stencil: &str) {
        if let (None, Some(program)) = (name, self.programs.first()) {
            terminal::note(&format!(
                "without --program, `{command}` is about a stencil: this is `{stencil}`; for the program, give --program {}",
                program.name
            ));
        }
    }

    /// Whether a stencil is declared in the file itself, and not in one that it imports.
    fn is_own(&self, stencil: &Stencil) -> bool {
        stencil.fields.iter().next().is_none_or(|(_, field)| self.source.is_own(field.span))
    }

    /// The only stencil of the file itself among these, if others are imported.
    fn only_own<'a, T>(&self, all: &'a [T], stencil: impl Fn(&T) -> &Stencil) -> Option<&'a T> {
        let mut own = all.iter().filter(|one| self.is_own(stencil(one)));
        own.next().filter(|_| own.next().is_none())
    }

    /// The stencil called `name`; without a name, the only one, or the only one that is not imported.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn stencil(&self, name: Option<&str>) -> Result<&Stencil> {
        self.refuse_meshes(name)?;
        let file = &self.source.name;
        let names: Vec<&str> = self.stencils.iter().map(|stencil| stencil.name.as_str()).collect();
        let list = names.join(", ");
        match (name, self.stencils.as_slice()) {
            (None, [stencil]) => Ok(stencil),
            (_, []) if self.mesh_stencils.is_empty() => {
                Err(Error::call(format!("`{file}` has no stencil: what it has is there for files that import it"))
                    .help("name a file that imports it, or write one: `stencil copy { in a; out b; b = a }`"))
            }
            (None, all) => {
                if let Some(only) = self.only_own(all, |own| own) {
                    return Ok(only);
                }
                let programs: Vec<String> = self.programs.iter().map(|own| own.name.clone()).collect();
                let choose = match names.as_slice() {
                    [one, two] => format!("choose one: --stencil {one}, or --stencil {two}"),
                    all => format!("choose one: --stencil {}", all.first().unwrap_or(&"NAME")),
                };
                let help = match programs.as_slice() {
                    [] => choose,
                    [program] => format!("{choose}; or the program: --program {program} ({OF_PROGRAMS})"),
                    all => {
                        format!("{choose}; or a program, of {}: --program {} ({OF_PROGRAMS})", all.join(", "), all[0])
                    }
                };
                Err(Error::call(format!("`{file}` has {} stencils: {list}", names.len())).help(help))
            }
            (Some(name), stencils) => stencils.iter().find(|stencil| stencil.name == name).ok_or_else(|| {
                if self.programs.iter().any(|program| program.name == name) {
                    return is_program(name, file, &list);
                }
                let error = Error::call(format!("`{file}` has no stencil `{name}`"));
                match guess(name, names.iter().copied()) {
                    Some(guess) => error.help(format!("did you mean `{guess}`?")),
                    None => error.help(format!("it has {list}")),
                }
            }),
        }
    }
}
