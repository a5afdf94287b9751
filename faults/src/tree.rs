//! The copy of the project that the faults are in.

use crate::Failure;
use crate::catalogue::Catalogue;
use crate::rewrite;
use crate::suites::Suite;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The copy.
pub struct Tree {
    folder: PathBuf,
    target: PathBuf,
}

/// Makes the copy under `work`, or brings it up to date; only files that differ are written, so that little is built again.
///
/// # Errors
/// A fault does not find its place, or a file cannot be read or written.
pub fn make(root: &Path, work: &Path, catalogue: &Catalogue) -> Result<Tree, Failure> {
    let tree = Tree { folder: work.join("tree"), target: work.join("target") };
    let listed = Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(root).output()?;
    if !listed.status.success() {
        return Err("`git ls-files` failed: the copy is made of what git knows".into());
    }
    let listed = String::from_utf8(listed.stdout)?;
    let mut kept: BTreeSet<PathBuf> = BTreeSet::new();
    for name in listed.lines().filter(|name| root.join(name).is_file()) {
        let bytes = std::fs::read(root.join(name))?;
        let bytes = match std::str::from_utf8(&bytes) {
            Ok(text) => with_faults(catalogue, name, text)?.into_bytes(),
            Err(_) => bytes,
        };
        tree.write(name, &bytes)?;
        kept.insert(tree.folder.join(name));
    }
    tree.write("compiler/src/fault.rs", rewrite::awake(catalogue).as_bytes())?;
    kept.insert(tree.folder.join("compiler/src/fault.rs"));
    remove_others(&tree.folder, &kept)?;
    Ok(tree)
}

fn with_faults(catalogue: &Catalogue, name: &str, text: &str) -> Result<String, Failure> {
    let mut text = rewrite::rewrite(catalogue, name, text)?;
    if name == "compiler/src/lib.rs" {
        text += "pub mod fault;\n";
    }
    Ok(text)
}

/// Removes what the project no longer has.
fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if !kept.contains(&path) {
                std::fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

impl Tree {
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.folder.join(name);
        if std::fs::read(&path).is_ok_and(|known| known == bytes) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(path, bytes)?)
    }

    /// Builds the tests.
    ///
    /// # Errors
    /// The copy does not compile: a fault is no expression of the right type.
    pub fn build(&self) -> Result<Vec<Suite>, Failure> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-run", "--locked", "--workspace", "--exclude", "stencilc-faults"]);
        cargo.args(["--message-format", "json"]);
        cargo.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target);
        let built = cargo.stderr(Stdio::inherit()).output()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut suites = Vec::new();
        for line in String::from_utf8(built.stdout)?.lines() {
            let message: Value = serde_json::from_str(line)?;
            // The copy is full of parentheses that are not needed: warnings say nothing.
            if message["message"]["level"] == "error" {
                eprintln!("{}", text(&message["message"]["rendered"]).unwrap_or_default());
            }
            let Some(executable) = text(&message["executable"]) else { continue };
            if message["profile"]["test"] != true {
                continue;
            }
            let kind = text(&message["target"]["kind"][0]).unwrap_or_default();
            let name = text(&message["target"]["name"]).unwrap_or_default();
            let folder =
                text(&message["manifest_path"]).and_then(|path| Some(Path::new(&path).parent()?.to_path_buf()));
            let executable = PathBuf::from(executable);
            let parts = match kind.as_str() {
                "test" => modules(&executable)?,
                _ => BTreeMap::from([(format!("units of {name}"), Vec::new())]),
            };
            let folder = folder.unwrap_or_default();
            suites.extend(parts.into_iter().map(|(name, tests)| {
                let (executable, folder) = (executable.clone(), folder.clone());
                Suite { name, executable, tests, folder, seconds: 0.0 }
            }));
        }
        if !built.status.success() {
            return Err("the copy with the faults in it does not compile".into());
        }
        Ok(suites)
    }
}

/// The tests of an executable, by the module that they stand in.
fn modules(executable: &Path) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let listed = Command::new(executable).args(["--list", "--format", "terse"]).output()?;
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in String::from_utf8(listed.stdout)?.lines().filter_map(|line| line.strip_suffix(": test")) {
        let module = name.split("::").next().unwrap_or(name);
        modules.entry(module.to_owned()).or_default().push(name.to_owned());
    }
    Ok(modules)
}
