//! The functions of this language, and what other languages call its things, as `foreign.txt` lists it.

const WORDS: &str = include_str!("foreign.txt");

use crate::ir::Function;
use std::sync::LazyLock;

/// The functions of the language: those that are one operation, `dot`, which is written out, and those that are an algorithm.
pub static FUNCTIONS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = |is_inexact: bool| {
        let own = Function::ALL.iter().filter(move |function| function.is_inexact() == is_inexact);
        own.map(|function| function.name())
    };
    names(false).chain(["dot"]).chain(names(true)).collect()
});

/// The same as a sentence.
pub fn functions() -> String {
    format!("functions are {}, and those written with `fn`", FUNCTIONS.join(", "))
}

/// The words of a section of the list, each with what is written for it here.
pub fn words(section: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = WORDS.split("\n[").find_map(|own| own.strip_prefix(section)?.strip_prefix("]\n")).unwrap_or_default();
    let lines = own.lines().filter_map(|line| line.split_once(" means "));
    lines.flat_map(|(theirs, ours)| theirs.split(' ').map(move |word| (word, ours)))
}

/// What is written here for a word of a section.
pub fn meaning(section: &str, foreign: &str) -> Option<&'static str> {
    words(section).find(|(theirs, _)| *theirs == foreign).map(|(_, ours)| ours)
}

/// What is written here for a function of another language.
pub fn function(foreign: &str) -> Option<&'static str> {
    meaning("functions", &foreign.to_lowercase())
}

/// How an operator of other languages and libraries is written out here.
pub fn operator(foreign: &str) -> Option<&'static str> {
    meaning("operators", &foreign.to_lowercase())
}

/// What is written here for an attribute of a field elsewhere.
pub fn attribute(foreign: &str) -> Option<&'static str> {
    meaning("attributes", foreign)
}

/// What is written here for a type of another language.
pub fn scalar(foreign: &str) -> Option<&'static str> {
    meaning("types", &foreign.to_lowercase())
}

/// What is written here for a constant of another language.
pub fn constant(foreign: &str) -> Option<&'static str> {
    meaning("constants", foreign)
}

/// The axis that a name stands for elsewhere.
pub fn axis(foreign: &str) -> Option<&'static str> {
    meaning("axes", foreign)
}
