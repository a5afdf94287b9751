//! Functions on elements that follow each other (`templates/step_rows.cu`): a kernel gets those that it calls, and what these call.

use crate::device::{self, Section};
use std::collections::BTreeSet;

/// The functions, and the types that they use.
fn all() -> Vec<Section> {
    device::sections(include_str!("../../../templates/step_rows.cu"))
}

/// Their names.
#[cfg(test)]
pub fn names() -> Vec<String> {
    all().into_iter().map(|own| own.name.to_owned()).collect()
}

/// These functions, and all that they use: further ones, and operations of the hardware.
pub fn with_used(mut names: BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    device::add_used(&all(), &mut names);
    names
}

/// The lines of those of them that are functions on rows.
pub fn lines(names: &BTreeSet<&'static str>) -> Vec<String> {
    let sections = all().into_iter().filter(|own| names.contains(own.name));
    sections.flat_map(|own| own.text.lines()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::check_uses;

    #[test]
    fn a_function_comes_with_what_it_uses() {
        assert_eq!(with_used(BTreeSet::from(["put_between"])), BTreeSet::from(["Run", "put_between", "put_row"]));
        assert!(with_used(BTreeSet::from(["load_row_where"])).contains("load_where"));
        assert!(lines(&BTreeSet::from(["copy_run"]))[0].starts_with("/* W elements"));
    }

    #[test]
    fn every_function_says_what_it_uses() {
        check_uses(&all(), &device::operations(), |section| section.text.lines().collect());
    }
}
