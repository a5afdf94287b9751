//! Files that import each other, of which some are damaged, missing, directories or themselves: none may take the compiler down, and
//! each message points into a file that there is.

use std::collections::BTreeMap;
use stencilc_compiler::diagnostic::{Refusal, render};
use stencilc_compiler::import::{Text, joined};
use stencilc_testing::attack::texts::{Case, originals};

/// How many sets of files there are.
const SETS: u64 = 60;

/// What a file imports of its set: others, itself, a directory, nothing, what is not there.
const PATHS: [&str; 7] = ["main", "left", "right", "folder", "", "missing", "le\\ft\u{1F300}"];

/// The files of a set: damaged texts, before or in the midst of which imports stand.
fn files(originals: &[String], seed: u64) -> BTreeMap<&'static str, String> {
    let mut numbers = fastrand::Rng::with_seed(seed);
    let mut file = |name: &'static str, seed: u64| {
        let text = Case::new(originals, seed).text;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for _ in 0..numbers.usize(1..4) {
            let path = PATHS[numbers.usize(..PATHS.len())];
            let at = if numbers.bool() { 0 } else { numbers.usize(..=lines.len()) };
            lines.insert(at, format!("import \"{path}\""));
        }
        (name, lines.join("\n"))
    };
    ["main", "left", "right"].into_iter().zip(3 * seed..).map(|(name, seed)| file(name, seed)).collect()
}

#[test]
fn no_import_does_harm() {
    let originals = originals();
    for seed in 0..SETS {
        let files = files(&originals, seed);
        let text = |name: &str| Text { key: name.to_owned(), name: name.to_owned(), text: files[name].clone() };
        let mut read = |_: &Text, path: &str| match path {
            "folder" => Err(Refusal::new("`folder` is a directory")),
            path if files.contains_key(path) => Ok(text(path)),
            path => Err(Refusal::new(format!("there is no file `{path}`"))),
        };
        let source = joined(text("main"), &mut read);
        let lowered = stencilc_compiler::check(&source);
        for found in &lowered.diagnostics {
            assert!(found.label.span.end as usize <= source.text.len(), "set {seed}: {found:?}");
        }
        render(&lowered.diagnostics, &source, false);
    }
}
