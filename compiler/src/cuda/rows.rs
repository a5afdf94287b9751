//! Functions on elements that follow each other (`templates/step_rows.cu`): a kernel gets those that it calls, and what these call.

use crate::device::{self, has_word};
use std::collections::BTreeSet;

/// The functions, each with its name before it.
const TEXT: &str = include_str!("../../../templates/step_rows.cu");

/// A function, or a type that functions use.
struct Section {
    name: &'static str,
    text: &'static str,
}

/// All of them, each after those that it uses.
fn sections() -> impl DoubleEndedIterator<Item = Section> {
    let all: Vec<&str> = TEXT.split("//: ").skip(1).collect();
    all.into_iter()
        .filter_map(|section| section.split_once('\n'))
        .map(|(name, text)| Section { name: name.trim(), text: text.trim() })
}

/// What they are called.
pub fn names() -> impl Iterator<Item = &'static str> {
    sections().map(|section| section.name)
}

/// These functions, and all that they use: further ones, and operations of the hardware.
pub fn with_used(mut names: BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    for Section { name, text } in sections().rev() {
        if !names.contains(name) {
            continue;
        }
        let others = sections().map(|other| other.name).chain(device::operations().map(|operation| operation.name));
        names.extend(others.filter(|other| has_word(text, other)));
    }
    names
}

/// The lines of those of them that are functions on rows.
pub fn lines(names: &BTreeSet<&'static str>) -> Vec<String> {
    let sections = sections().filter(|own| names.contains(own.name));
    sections.flat_map(|own| own.text.lines()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_comes_with_what_it_uses() {
        assert_eq!(with_used(BTreeSet::from(["put_between"])), BTreeSet::from(["Run", "put_between", "put_row"]));
        assert!(with_used(BTreeSet::from(["load_row_where"])).contains("load_where"));
        assert!(lines(&BTreeSet::from(["copy_run"]))[0].starts_with("/* W elements"));
    }
}
