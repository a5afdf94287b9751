//! What README.md and the documents for users show is done here, in a fresh folder for each of them: files are written, commands
//! run, and what they print has to be what stands there.
//!
//! After its language, a block says by words what it is:
//!
//! | block | is |
//! |---|---|
//! | `stencil file=NAME` | a file, which is written; `append=NAME`: what is added to one |
//! | `stencil` | whole declarations, in which there is no error |
//! | `python file=NAME` | a script, which is written |
//! | `python package` | lines for the Python package, whose own tests execute them |
//! | `console` | commands, each after `$ `, with all that they print; a line `...` stands for any lines |
//! | `console numbers` | the same, but numbers, and the bars drawn of them, depend on the machine |
//! | `sh` | commands that have to succeed, whatever they print |
//! | `LANGUAGE from=FILE` | lines that follow each other in a file that the commands wrote |
//!
//! `gpu` says that a block is for a GPU: without one, its calls have to be understood. `nvrtc`, `numpy`, `nvcc`, `fortran` and `cmake` say what else a
//! block needs; where that is missing it is not run. `unrun` marks what installs something, or runs the tests. `text` is to be read alone.

use crate::common::process::PROGRAM;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use stencilc_compiler::diagnostic;
use stencilc_compiler::source::Source;
use stencilc_runtime::nvrtc;

/// The root of the project.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A block of a document.
struct Block<'a> {
    /// The line in which it begins.
    line: usize,
    /// What stands behind its first mark.
    words: Vec<&'a str>,
    text: String,
}

impl Block<'_> {
    fn is(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn named(&self, key: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open): (Vec<Block>, _) = (Vec::new(), false);
    for (line, text) in (1..).zip(document.lines()) {
        match text.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(words) => {
                open = true;
                blocks.push(Block { line, words: words.split_whitespace().collect(), text: String::new() });
            }
            None if open => blocks.last_mut().unwrap().text += &format!("{text}\n"),
            None => {}
        }
    }
    assert!(!open, "a block is not closed");
    blocks
}

/// Where a document's commands are run.
struct Session {
    folder: tempfile::TempDir,
    has_numpy: bool,
}

impl Session {
    /// In a folder like that of the project, as far as data are concerned, for every document begins there.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["examples", "stencils"] {
            std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
        }
        let numpy = Command::new("python3").args(["-c", "import numpy"]).stderr(Stdio::null()).status();
        Self { folder, has_numpy: numpy.is_ok_and(|status| status.success()) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What commands print, and whether they succeed.
    fn run(&self, script: &str, has_gpu: bool) -> (String, bool) {
        let bin = Path::new(PROGRAM).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("timeout");
        // As a new user has it: nothing was compiled or tuned before.
        command
            .args(["--kill-after", "1", "600", "sh", "-ec", &format!("exec 2>&1\n{script}")])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env("PATH", path)
            .env("STENCILC_HOME", self.path("home"))
            .env("STENCILC_TUNED", self.path("home/tuned"))
            .env("LC_ALL", "C")
            .env("COLUMNS", "120")
            .env_remove("CLICOLOR_FORCE");
        if let Ok(located) = nvrtc::locate() {
            command.env("STENCILC_NVRTC", &located.path);
        }
        if !has_gpu {
            command.env("CUDA_VISIBLE_DEVICES", "");
        }
        let output = command.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    }

    /// What a block needs and is not there.
    fn missing(&self, block: &Block) -> Option<&'static str> {
        let finds = |tool| Command::new(tool).arg("--version").output().is_ok();
        let needs = [
            ("nvrtc", "NVRTC", nvrtc::locate().is_ok()),
            ("fortran", "gfortran (apt-get install gfortran)", finds("gfortran")),
            ("cmake", "cmake and gfortran (apt-get install cmake gfortran)", finds("cmake") && finds("gfortran")),
            ("numpy", "NumPy", self.has_numpy),
            ("nvcc", "CUDA toolkit", finds("nvcc")),
        ];
        needs.into_iter().find_map(|(word, name, is_there)| (block.is(word) && !is_there).then_some(name))
    }
}

/// The commands of a transcript, each with what it prints.
fn commands(transcript: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for line in transcript.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((command, said))) if said.is_empty() && command.ends_with('\\') => {
                *command += &format!("\n{line}")
            }
            (None, Some((_, said))) => said.push(line),
            (None, None) => panic!("`{line}` stands before the first command"),
        }
    }
    commands
}

/// A line without what depends on the machine.
fn plain(line: &str, without_numbers: bool) -> String {
    for cause in ["note: running on the cpu: ", "note: no GPU: "] {
        if line.starts_with(cause) {
            return cause.to_owned();
        }
    }
    if !without_numbers {
        return line.trim_end().to_owned();
    }
    let is_number = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit()) || word.contains(['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'])
    };
    line.split_whitespace().map(|word| if is_number(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
}

/// Whether lines are those expected, of which `...` is any number.
fn agree(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first.trim() == "..." => (0..=found.len()).any(|skipped| agree(rest, &found[skipped..])),
        Some((first, rest)) => found.split_first().is_some_and(|(line, others)| line == first && agree(rest, others)),
    }
}

/// Does all that a document shows; returns how many blocks were executed.
fn execute(name: &str) -> usize {
    let document = fs::read_to_string(root().join(name)).unwrap();
    let session = Session::new();
    let mut executed = 0;
    for block in blocks(&document) {
        let place = format!("{name}:{}", block.line);
        if let Some(missing) = session.missing(&block) {
            println!("{place} is not run: there is no {missing}");
            continue;
        }
        if let Some(file) = block.named("file") {
            fs::write(session.path(file), &block.text).unwrap();
        } else if let Some(file) = block.named("append") {
            let before = fs::read_to_string(session.path(file)).unwrap();
            fs::write(session.path(file), format!("{before}\n{}", block.text)).unwrap();
        } else if let Some(file) = block.named("from") {
            let text =
                fs::read_to_string(session.path(file)).unwrap_or_else(|error| panic!("{place}: {file}: {error}"));
            assert!(text.contains(&block.text), "{place}: these lines are not in {file}:\n{text}");
        } else if block.is("stencil") {
            let source = Source::new(name, &block.text);
            let checked = stencilc_compiler::check(&source);
            assert!(checked.is_ok(), "{place}\n{}", diagnostic::render(&checked.diagnostics, &source, false));
        } else if block.is("unrun") || block.is("text") || block.is("package") {
            continue;
        } else if block.is("sh") {
            for command in block.text.replace("\\\n", " ").lines() {
                let (said, is_done) = session.run(command, block.is("gpu"));
                assert!(is_done || block.is("gpu") && lacks_gpu(&said), "{place}\n$ {command}\n{said}");
            }
        } else if block.is("console") {
            for (command, expected) in commands(&block.text) {
                compare(&session, &block, &place, &command, &expected);
            }
        } else {
            panic!("{place}: nothing says what this block is");
        }
        executed += 1;
    }
    executed
}

fn compare(session: &Session, block: &Block, place: &str, command: &str, expected: &[&str]) {
    let (said, is_done) = session.run(command, block.is("gpu"));
    if block.is("gpu") && lacks_gpu(&said) {
        return;
    }
    let plain = |line: &str| plain(line, block.is("numbers"));
    let without_nvrtc = "note: kernels are not compiled for GPUs: ";
    let found: Vec<String> = said.lines().filter(|line| !line.starts_with(without_nvrtc)).map(plain).collect();
    let wanted: Vec<String> = expected.iter().copied().map(plain).collect();
    assert!(agree(&wanted, &found), "{place}\n$ {command}\n{said}\nis not\n{}", expected.join("\n"));
    let is_error = expected.iter().any(|line| line.starts_with("error"));
    assert_eq!(is_done, !is_error, "{place}\n$ {command}\n{said}");
}

/// Whether a call was understood, and failed since there is no GPU for it.
fn lacks_gpu(said: &str) -> bool {
    let is_cause =
        |error: &str| ["no CUDA driver", "no GPU", "no CUDA-capable device"].iter().any(|cause| error.contains(cause));
    said.lines().filter_map(|line| line.strip_prefix("error: ")).any(is_cause)
}

#[test]
fn the_readme_does_what_it_says() {
    assert!(execute("README.md") >= 7);
}

#[test]
fn the_tutorial_does_what_it_says() {
    assert!(execute("docs/tutorial.md") >= 23);
}

#[test]
fn callers_do_what_the_document_says() {
    assert!(execute("docs/callers.md") >= 3);
}

#[test]
fn the_reference_of_the_command_line_does_what_it_says() {
    assert!(execute("docs/command-line.md") >= 10);
}

/// Every file that a document names in a link is there, and every heading.
#[test]
fn links_lead_to_files_and_headings() {
    let mut documents = vec![PathBuf::from("README.md")];
    let entries = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    documents.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    for document in documents {
        let path = root().join(&document);
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: there is no {link}", document.display());
            if !heading.is_empty() {
                let known = headings(&fs::read_to_string(target).unwrap());
                assert!(known.iter().any(|known| known == heading), "{}: there is no {link}", document.display());
            }
        }
    }
}

/// The anchors of a document's headings, as they are made of them: small letters, digits, hyphens and underscores.
fn headings(text: &str) -> Vec<String> {
    let heading = |line: &str| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
        let kept = title.to_lowercase().replace(' ', "-");
        Some(kept.chars().filter(|c| c.is_alphanumeric() || ['-', '_'].contains(c)).collect())
    };
    text.lines().filter_map(heading).collect()
}

#[test]
fn transcripts_are_compared_line_by_line() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(agree(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
    assert!(agree(&lines("a\n..."), &lines("a")));
    assert!(!agree(&lines("a\n...\nd"), &lines("a\nb\nc")));
    assert!(!agree(&lines("a"), &lines("a\nb")));
    assert_eq!(plain("compute  0.462 ms", true), plain("compute 12.5  ms", true));
    assert_ne!(plain("compute  0.462 ms", false), plain("compute 12.5  ms", false));
    assert_eq!(commands("$ a \\\n  b\nsaid\n$ c"), [("a \\\n  b".to_owned(), vec!["said"]), ("c".to_owned(), vec![])]);
}
