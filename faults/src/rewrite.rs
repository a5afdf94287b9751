//! Puts sleeping faults into a text.

use crate::Failure;
use crate::catalogue::{Catalogue, Fault};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The word that stands for a fault's being awake.
const AWAKE: &str = "AWAKE";

/// The text of `file` with its hooks and faults put in; faults in texts are only looked for.
///
/// # Errors
/// A place is not found exactly once, or two overlap.
pub fn rewrite(catalogue: &Catalogue, file: &str, text: &str) -> Result<String, Failure> {
    // By place, so that several faults of one place become one chain.
    let mut places: BTreeMap<(usize, usize), Vec<&Fault>> = BTreeMap::new();
    for fault in catalogue.faults.iter().filter(|fault| fault.file == file) {
        let place = fault.place(text)?;
        if !fault.is_text() {
            places.entry((place.start, place.end)).or_default().push(fault);
        }
    }
    let mut changes = Vec::new();
    for ((start, end), faults) in places {
        changes.push((start, end, asleep(&faults, file, &text[start..end])?));
    }
    for hook in catalogue.hooks.iter().filter(|hook| hook.file == file) {
        let place = hook.place(text)?;
        changes.push((place.start, place.end, hook.replace.clone()));
    }
    changes.sort();
    let (mut rewritten, mut at) = (String::new(), 0);
    for (start, end, change) in changes {
        let between =
            text.get(at..start).ok_or_else(|| format!("{file}: two changes overlap at `{}`", &text[start..end]))?;
        rewritten += between;
        rewritten += &change;
        at = end;
    }
    rewritten += &text[at..];
    Ok(rewritten)
}

/// What stands at a place in Rust: each of its faults if that is awake, else what is right.
fn asleep(faults: &[&Fault], file: &str, right: &str) -> Result<String, Failure> {
    let is = |fault: &Fault| format!("{}::is({})", module(file), fault.number);
    match faults {
        [fault] if fault.replace.contains(AWAKE) => return Ok(fault.replace.replace(AWAKE, &is(fault))),
        _ => {}
    }
    let mut chain = String::from("(");
    for fault in faults {
        if fault.replace.contains(AWAKE) {
            return Err(format!("fault {} shares its place with another", fault.number).into());
        }
        write!(chain, "if {} {{ {} }} else ", is(fault), fault.replace)?;
    }
    write!(chain, "{{ {right} }})")?;
    Ok(chain)
}

/// The module that knows which fault is awake, as a file names it.
fn module(file: &str) -> &'static str {
    if file.starts_with("compiler/src/") { "crate::fault" } else { "stencilc_compiler::fault" }
}

/// The text of that module.
pub fn awake(catalogue: &Catalogue) -> String {
    let mut texts = String::new();
    for fault in catalogue.faults.iter().filter(|fault| fault.is_text()) {
        let around = fault.within.as_deref().unwrap_or(&fault.find);
        let wrong = around.replace(&fault.find, &fault.replace);
        texts += &format!("    ({}, {around:?}, {wrong:?}),\n", fault.number);
    }
    include_str!("awake.rs.txt").replace("// TEXTS\n", &texts)
}
