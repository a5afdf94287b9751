//! C++ that generated code brings along: the files of `templates/` that are no skeletons, in sections.
//!
//! A section begins with a line `//: name of what uses other another`. Several of one name are functions of different things, which
//! `of what` tells apart. Lines behind that which begin with `//-` are for readers of the file alone.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A file of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// Operations of the language that C++ lacks or leaves undefined.
    Language,
    /// What the functions of [`crate::math`] are made of.
    Math,
    /// Functions and types beside these.
    Prelude,
    /// Operations of the hardware.
    Hardware,
    /// Functions on elements that follow each other.
    Rows,
}

/// The text of [`File::Hardware`].
pub const HARDWARE: &str = include_str!("../../templates/device.h");

/// All files, each after those that it uses.
const FILES: [(File, &str); 5] = [
    (File::Language, include_str!("../../templates/language.cu")),
    (File::Math, include_str!("../../templates/math.cu")),
    (File::Prelude, include_str!("../../templates/prelude.cu")),
    (File::Hardware, HARDWARE),
    (File::Rows, include_str!("../../templates/step_rows.cu")),
];

/// A part of a file.
#[derive(Clone, Debug)]
pub struct Section {
    /// The file.
    pub file: File,
    /// Its name, which calls use.
    pub name: &'static str,
    /// What it is a function of, where others have its name; or nothing.
    pub of: &'static str,
    /// The names of the sections that it uses.
    pub uses: Vec<&'static str>,
    /// Its comment and its code.
    pub text: &'static str,
}

/// The sections of all files, each after those that it uses.
pub static ALL: LazyLock<Vec<Section>> =
    LazyLock::new(|| FILES.into_iter().flat_map(|(file, text)| read(file, text)).collect());

/// The sections of a file, in its order.
pub fn sections(file: File) -> impl Iterator<Item = &'static Section> {
    ALL.iter().filter(move |own| own.file == file)
}

fn read(file: File, text: &'static str) -> impl Iterator<Item = Section> {
    let sections = text.split("//: ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.map(move |(head, text)| {
        let (what, uses) = head.split_once(" uses ").unwrap_or((head, ""));
        let (name, of) = what.split_once(" of ").unwrap_or((what, ""));
        let mut text = text.trim();
        while let Some((_, rest)) = text.strip_prefix("//-").and_then(|text| text.split_once('\n')) {
            text = rest;
        }
        Section { file, name, of, uses: uses.split_whitespace().collect(), text }
    })
}

/// Adds to names what sections with these names use, and what that uses.
pub fn add_used(names: &mut BTreeSet<&'static str>) {
    for section in ALL.iter().rev() {
        if names.contains(section.name) {
            names.extend(&section.uses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_comes_along() {
        let with_used = |name| {
            let mut names = BTreeSet::from([name]);
            add_used(&mut names);
            names
        };
        assert_eq!(with_used("put_between"), BTreeSet::from(["Run", "put_between", "put_row"]));
        assert!(with_used("load_row_where").contains("load_where"));
        let copies = ALL.iter().find(|section| section.name == "copy_run").unwrap();
        assert!(copies.text.starts_with("/* W elements") && copies.text.ends_with('}'), "{}", copies.text);
        let opaque = ALL.iter().find(|section| section.name == "real_opaque").unwrap();
        assert!(opaque.text.starts_with("STENCILC_FUNCTION REAL real_opaque"), "{}", opaque.text);
    }

    /// What of the code of a section is compiled for the GPU is what counts here.
    #[test]
    fn every_section_says_what_it_uses() {
        for (number, section) in ALL.iter().enumerate() {
            let is_comment = |line: &str| ["//", "/*"].iter().any(|sign| line.trim_start().starts_with(sign));
            let lines = crate::device::lines(section).into_iter().filter(|line| !is_comment(line));
            let code = lines.collect::<Vec<&str>>().join("\n");
            // A part of an instruction's name is no use.
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let words: BTreeSet<&str> = code.split(|c| !is_part(c)).collect();
            let known = ALL[..number].iter().map(|other| other.name).filter(|name| *name != section.name);
            let used: BTreeSet<&str> = known.filter(|other| words.contains(other)).collect();
            assert_eq!(section.uses.iter().copied().collect::<BTreeSet<_>>(), used, "{}", section.name);
        }
    }
}
