//! Operations of the hardware that CUDA C++ has no word for: `templates/device.h`.
//!
//! Each has two bodies, one for the GPU and one for the emulator. A kernel that is printed gets the first of those that
//! it uses, so it needs no header; the emulator puts the whole file, with the second, before it.

use std::collections::BTreeSet;

/// The operations, with both bodies. `STENCILC_EMULATED` chooses.
pub const HEADER: &str = include_str!("../../templates/device.h");

/// A part of a file of CUDA that begins with a line `//: name uses other another`.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its name, which calls use.
    pub name: &'static str,
    /// The names of the sections that it uses.
    pub uses: Vec<&'static str>,
    /// Its comment and its code.
    pub text: &'static str,
}

/// The sections of a file, in its order.
pub(crate) fn sections(file: &'static str) -> Vec<Section> {
    let sections = file.split("//: ").skip(1).filter_map(|section| section.split_once('\n'));
    let section = |(head, text): (&'static str, &'static str)| {
        let mut words = head.split_whitespace();
        let name = words.next().unwrap_or_default();
        Section { name, uses: words.skip(1).collect(), text: text.trim() }
    };
    sections.map(section).collect()
}

/// Adds to names what sections with these names use, and what that uses. Each section stands after those that it uses.
pub(crate) fn add_used(sections: &[Section], names: &mut BTreeSet<&'static str>) {
    for section in sections.iter().rev() {
        if names.contains(section.name) {
            names.extend(&section.uses);
        }
    }
}

/// The names of all operations, in the order of the file.
pub fn operations() -> Vec<&'static str> {
    sections(HEADER).into_iter().map(|operation| operation.name).collect()
}

/// The comment of an operation and its body for the GPU.
fn lines(operation: &Section) -> Vec<&'static str> {
    let (mut lines, mut keep) = (Vec::new(), true);
    for line in operation.text.lines() {
        match line {
            "#ifdef STENCILC_EMULATED" => keep = false,
            "#ifndef STENCILC_EMULATED" | "#else" | "#endif" => keep = true,
            line if keep => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// The lines that a kernel needs before it for operations with these names; none if there are none.
pub fn of(names: &BTreeSet<&'static str>) -> Vec<String> {
    let (all, mut names) = (sections(HEADER), names.clone());
    add_used(&all, &mut names);
    let used = all.iter().filter(|operation| names.contains(operation.name));
    let mut lines: Vec<String> = used.flat_map(lines).map(str::to_owned).collect();
    if !lines.is_empty() {
        lines.insert(0, "#ifndef STENCILC_EMULATED".into());
        lines.push("#endif".into());
    }
    lines
}

/// A text with all operations before it: kernels written by hand that stand alone for NVRTC, nvcc and the emulator.
pub fn with_operations(text: &str) -> String {
    let mut whole: String = of(&operations().into_iter().collect()).iter().map(|line| format!("{line}\n")).collect();
    whole.push_str(text);
    whole
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_kernel_gets_what_it_uses_and_what_that_uses() {
        assert_eq!(of(&BTreeSet::new()), Vec::<String>::new());
        let text = of(&BTreeSet::from(["store_async"])).join("\n");
        assert!(text.starts_with("#ifndef STENCILC_EMULATED\n") && text.ends_with("\n#endif"), "{text}");
        let places = ["unsigned shared_address(", "unsigned cluster_address(", "void store_async("];
        let places = places.map(|place| text.find(place).unwrap());
        assert!(places.is_sorted(), "{places:?}");
        assert!(!text.contains("copy_async") && !text.contains("emulated::"));
        // A name within another is no use of it.
        assert!(!of(&BTreeSet::from(["copy_async_commit"])).join("\n").contains("void copy_async("));
    }

    #[test]
    fn every_operation_has_a_name_a_comment_and_a_body() {
        let operations = sections(HEADER);
        for operation in &operations {
            let lines = lines(operation);
            assert!(lines.len() > 1 && lines[0].starts_with("// "), "{}", operation.name);
            assert!(lines[1..].join("\n").contains(operation.name), "{}", operation.name);
            assert_eq!(operation.text.matches("#if").count(), 1, "{}", operation.name);
            assert!(operation.text.ends_with("#endif"), "{}", operation.name);
        }
        assert!(operations.len() > 15);
    }

    /// Whether each section says what it uses of those before it and of `others`, in words of its code.
    pub(crate) fn check_uses(
        sections: &[Section],
        others: &[&'static str],
        code: impl Fn(&Section) -> Vec<&'static str>,
    ) {
        for (number, section) in sections.iter().enumerate() {
            let is_comment = |line: &&str| ["//", "/*"].iter().any(|sign| line.trim_start().starts_with(sign));
            let lines = code(section).into_iter().filter(|line| !is_comment(line));
            let code: Vec<&str> = lines.collect();
            let code = code.join("\n");
            // A part of an instruction's name is no use.
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let words: BTreeSet<&str> = code.split(|c| !is_part(c)).collect();
            let known = sections[..number].iter().map(|other| other.name).chain(others.iter().copied());
            let used: BTreeSet<&str> = known.filter(|other| words.contains(other)).collect();
            assert_eq!(section.uses.iter().copied().collect::<BTreeSet<_>>(), used, "{}", section.name);
        }
    }

    #[test]
    fn every_operation_says_what_it_uses() {
        check_uses(&sections(HEADER), &[], lines);
    }
}
