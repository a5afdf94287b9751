//! Operations of the hardware that CUDA C++ has no word for: `templates/device.h`, and which of them a text uses.
//!
//! Each has two bodies, one for the GPU and one for the emulator. A kernel that is printed gets the first of those that
//! it uses, so it needs no header; the emulator puts the whole file, with the second, before it.

use std::collections::BTreeSet;

/// The operations, with both bodies. `STENCILC_EMULATED` chooses.
pub const HEADER: &str = include_str!("../../templates/device.h");

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name, which calls use.
    pub name: &'static str,
    /// Comment and both bodies.
    text: &'static str,
}

/// Every operation, in the order of the file: each stands after those that it uses.
pub fn operations() -> impl Iterator<Item = Operation> {
    HEADER.split("//: ").skip(1).map(|section| {
        let (name, text) = section.split_once('\n').unwrap_or((section, ""));
        Operation { name: name.trim(), text: text.trim() }
    })
}

impl Operation {
    /// Comment and body for the GPU.
    fn lines(&self) -> Vec<&'static str> {
        let (mut lines, mut keep) = (Vec::new(), true);
        for line in self.text.lines() {
            match line {
                "#ifdef STENCILC_EMULATED" => keep = false,
                "#ifndef STENCILC_EMULATED" | "#else" | "#endif" => keep = true,
                line if keep => lines.push(line),
                _ => {}
            }
        }
        lines
    }
}

/// The lines that a kernel needs before it for the operations in its `text`; none if it uses none.
pub fn lines(text: &str) -> Vec<String> {
    of(&operations().map(|operation| operation.name).filter(|name| has_word(text, name)).collect())
}

/// The lines that a kernel needs before it for operations with these names; none if there are none.
pub fn of(names: &BTreeSet<&str>) -> Vec<String> {
    let all: Vec<Operation> = operations().collect();
    let mut used: Vec<bool> = all.iter().map(|operation| names.contains(operation.name)).collect();
    // Whatever uses another stands after it.
    for user in (0..all.len()).rev() {
        if used[user] {
            let body = all[user].lines().join("\n");
            (0..user).for_each(|other| used[other] |= has_word(&body, all[other].name));
        }
    }
    let bodies = all.iter().zip(&used).filter(|(_, used)| **used).flat_map(|(operation, _)| operation.lines());
    let mut lines: Vec<String> = bodies.map(str::to_owned).collect();
    if !lines.is_empty() {
        lines.insert(0, "#ifndef STENCILC_EMULATED".into());
        lines.push("#endif".into());
    }
    lines
}

/// A text with the operations that it uses before it: what stands alone for NVRTC, nvcc and the emulator.
pub fn with_operations(text: &str) -> String {
    let mut whole: String = lines(text).iter().map(|line| format!("{line}\n")).collect();
    whole.push_str(text);
    whole
}

/// Whether a word stands in a text.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_what_it_uses_and_what_that_uses() {
        assert_eq!(with_operations("b[c] = a[c];"), "b[c] = a[c];");
        let text = with_operations("copy_async<8>(to, from);");
        assert!(text.starts_with("#ifndef STENCILC_EMULATED\n"));
        assert!(text.find("unsigned shared_address(").unwrap() < text.find("void copy_async(").unwrap());
        assert!(text.ends_with("#endif\ncopy_async<8>(to, from);"));
        assert!(!text.contains("copy_async_wait") && !text.contains("emulated::"));
        // A name within another is no use of it.
        assert!(!with_operations("copy_async_commit();").contains("void copy_async("));
    }

    #[test]
    fn every_operation_has_a_name_a_comment_and_a_body() {
        for operation in operations() {
            let lines = operation.lines();
            assert!(lines.len() > 1 && lines[0].starts_with("// "), "{}", operation.name);
            assert!(lines[1..].join("\n").contains(operation.name), "{}", operation.name);
            assert_eq!(operation.text.matches("#if").count(), 1, "{}", operation.name);
            assert!(operation.text.ends_with("#endif"), "{}", operation.name);
        }
        assert!(operations().count() > 15);
    }
}
