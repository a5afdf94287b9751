//! The faults, as data.

use crate::Failure;
use serde::Deserialize;
use std::path::Path;

/// What `catalogue.toml` holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Places where the copy lets texts of C++ pass, so that faults in them can be woken.
    #[serde(rename = "hook")]
    pub hooks: Vec<Hook>,
    /// The faults.
    #[serde(rename = "fault")]
    pub faults: Vec<Fault>,
}

/// A change of the copy that is there whichever fault is awake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// From the root of the project.
    pub file: String,
    /// Occurs exactly once in the file.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
}

/// One fault.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its number, from 1.
    pub number: u32,
    /// What is wrong then, in a sentence.
    pub what: String,
    /// From the root of the project.
    pub file: String,
    /// What is right. In Rust an expression, unless `replace` says `AWAKE`.
    pub find: String,
    /// What stands there instead while the fault is awake. Where `AWAKE` occurs in it, it stands there always, and `AWAKE`
    /// is true while the fault is awake.
    pub replace: String,
    /// A longer text of the file around `find`, where that alone occurs more than once.
    pub within: Option<String>,
    /// Whether what is changed is a text within a Rust file, such as a function in C++.
    #[serde(default)]
    pub text: bool,
    /// What is to be said beside the result.
    pub note: Option<String>,
}

impl Catalogue {
    /// The catalogue of the project at `root`.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        Ok(toml::from_str(&std::fs::read_to_string(root.join("faults/catalogue.toml"))?)?)
    }

    /// The fault of a number.
    pub fn find(&self, number: u32) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.number == number)
    }
}

impl Fault {
    /// Whether it is made in a text when that is used, rather than in code.
    pub fn is_text(&self) -> bool {
        self.text || !self.file.ends_with(".rs")
    }

    /// Where `find` stands in the text of its file.
    pub fn place(&self, text: &str) -> Result<std::ops::Range<usize>, Failure> {
        let around = self.within.as_deref().unwrap_or(&self.find);
        let outer = once(text, around).map_err(|why| format!("fault {}: {}: {why}", self.number, self.file))?;
        let inner = once(around, &self.find).map_err(|why| format!("fault {}: `within`: {why}", self.number))?;
        let start = outer + inner;
        Ok(start..start + self.find.len())
    }
}

impl Hook {
    /// Where `find` stands in the text of its file.
    pub fn place(&self, text: &str) -> Result<std::ops::Range<usize>, Failure> {
        let start = once(text, &self.find).map_err(|why| format!("hook in {}: {why}", self.file))?;
        Ok(start..start + self.find.len())
    }
}

/// Where `find` begins in `text`, which holds it exactly once.
fn once(text: &str, find: &str) -> Result<usize, String> {
    let mut places = text.match_indices(find).map(|(place, _)| place);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (None, _) => Err(format!("nowhere is `{find}`")),
        (Some(_), Some(_)) => Err(format!("more than once there is `{find}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::rewrite;
    use std::collections::BTreeSet;

    /// The catalogue follows the code: who changes a line that a fault is about changes the fault too.
    #[test]
    fn every_fault_still_finds_its_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let catalogue = Catalogue::read(&root).unwrap();
        let files: BTreeSet<&str> = catalogue.faults.iter().map(|fault| fault.file.as_str()).collect();
        let mut wrong = Vec::new();
        for file in files.into_iter().chain(catalogue.hooks.iter().map(|hook| hook.file.as_str())) {
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            wrong.extend(rewrite(&catalogue, file, &text).err());
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn numbers_go_on_without_gaps() {
        let catalogue = Catalogue::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        let numbers: Vec<u32> = catalogue.faults.iter().map(|fault| fault.number).collect();
        assert_eq!(numbers, (1..=170).collect::<Vec<u32>>());
        assert!(catalogue.faults.iter().all(|fault| fault.find != fault.replace && !fault.what.is_empty()));
    }
}
